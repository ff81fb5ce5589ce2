//! Rules between numbers that hold in all rows of a table, for a person to accept.
//!
//! A rule is proposed only if it is unlikely to hold by chance. The test shuffles one of its columns,
//! as if it were independent of the others: the share of all `n!` orders in which the rule still
//! holds in every row has a formula for each kind of rule, and must be below 1e-6, divided by the
//! number of rules of that kind that were tested. So `age <= income` is not proposed: it holds in
//! any order of both columns.

use std::collections::BTreeMap;

use super::review::{LEAST_ROWS, numbers};
use super::{Inferred, Table};
use crate::data::schema::{Change, FeatureKind, Relation, Rule, Schema};
use crate::data::table::Column;
use crate::data::value::{Value, parse_number};
use crate::error::Result;

/// The probability that a table leads to any chance finding of a kind.
const CHANCE: f64 = 1e-6;
/// The tolerance of a sum, relative to its terms, as rules have it.
const ROUNDING: f64 = 1e-12;
/// The most proposals; those that chance explains least are kept.
const MOST: usize = 20;
/// Sums of two and of three terms are looked for among at most so many columns.
const MOST_FOR_TWO: usize = 100;
const MOST_FOR_THREE: usize = 30;
/// Rows in which a pair is looked at first; most pairs fail there.
const FIRST_ROWS: usize = 100;

/// A rule that holds in all rows, and the logarithm of the probability that it would by chance.
struct Found {
    rule: Rule,
    ln_chance: f64,
}

/// A numeric feature and its cells; or an ordinal one and the ranks of its levels.
struct Numbers<'a> {
    name: &'a str,
    cells: Vec<Option<f64>>,
    has_step: bool,
}

/// The rules to propose, those about the first features first.
pub(super) fn proposed(inferred: &Inferred, table: &Table) -> Result<Vec<Rule>> {
    let schema = &inferred.schema;
    let (mut columns, mut ordinals) = (Vec::new(), Vec::new());
    // Numbers and ordinals in their order: the place of each, and whether it is a number.
    let mut places = Vec::new();
    for feature in &schema.features {
        let name = &feature.name;
        if feature.kind.is_number() {
            let cells = numbers(schema, table.column(name)?);
            let has_step = feature.kind == FeatureKind::Integer || feature.step.is_some();
            places.push((true, columns.len()));
            columns.push(Numbers { name, cells, has_step });
        } else if let FeatureKind::Ordinal { levels } = &feature.kind {
            let cells = ranks(levels, table.column(name)?);
            places.push((false, ordinals.len()));
            ordinals.push(Numbers { name, cells, has_step: true });
        }
    }
    let sums = sums(&columns);
    let orders = orders(&columns, &sums);
    let mut found: Vec<Found> = sums.into_iter().map(|sum| sum.found).collect();
    found.extend(orders);
    let ranked: Vec<&Numbers<'_>> = places
        .into_iter()
        .map(|(is_number, place)| if is_number { &columns[place] } else { &ordinals[place] })
        .collect();
    found.extend(monotone(&ranked));
    found.retain(|found| fits(schema, &found.rule));
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|&a, &b| found[a].ln_chance.total_cmp(&found[b].ln_chance).then(a.cmp(&b)));
    order.truncate(MOST);
    order.sort_unstable();
    Ok(order.into_iter().map(|index| found[index].rule.clone()).collect())
}

fn fits(schema: &Schema, rule: &Rule) -> bool {
    schema.check_rule(rule).is_ok()
}

/// The ranks of cells among the levels of an ordinal feature.
fn ranks(levels: &[Value], column: &Column) -> Vec<Option<f64>> {
    let is = |level: &Value, cell: &str| match level {
        Value::Number(number) => parse_number(cell) == Some(*number),
        other => other.to_string() == cell,
    };
    let rank = |cell: &str| levels.iter().position(|level| is(level, cell.trim()));
    column.cells().map(|cell| rank(cell).map(|rank| rank as f64)).collect()
}

/// The rows in which all of these columns have a number; none if there are too few to show anything.
fn together(columns: &[&Numbers<'_>]) -> Option<Vec<Vec<f64>>> {
    let mut kept: Vec<Vec<f64>> = vec![Vec::new(); columns.len()];
    for row in 0..columns.first()?.cells.len() {
        let numbers: Option<Vec<f64>> = columns.iter().map(|column| column.cells[row]).collect();
        for (kept, number) in kept.iter_mut().zip(numbers.into_iter().flatten()) {
            kept.push(number);
        }
    }
    (kept[0].len() >= LEAST_ROWS).then_some(kept)
}

/// Whether a property holds in all rows that have all of these numbers. Most fail in the first rows.
fn holds(columns: &[&Numbers<'_>], holds: impl Fn(&[f64]) -> bool) -> bool {
    let mut row_of = vec![0.0; columns.len()];
    (0..columns[0].cells.len()).all(|row| {
        for (number, column) in row_of.iter_mut().zip(columns) {
            let Some(own) = column.cells[row] else { return true };
            *number = own;
        }
        holds(&row_of)
    })
}

fn is_rare(ln_chance: f64, looked_at: usize) -> bool {
    ln_chance <= CHANCE.ln() - (looked_at.max(1) as f64).ln()
}

/// A sum that holds, with the places of its columns: the total last.
struct SumFound {
    places: Vec<usize>,
    found: Found,
}

/// `a + b = total` and `a + b + c = total`. If one term was shuffled, only orders that exchange equal
/// numbers would keep it: `prod_v n_v! / n!` for `n_v` cells of the value `v`.
fn sums(columns: &[Numbers<'_>]) -> Vec<SumFound> {
    let count = columns.len();
    if count > MOST_FOR_TWO {
        return Vec::new();
    }
    let mut candidates: Vec<Vec<usize>> = Vec::new();
    for a in 0..count {
        for b in a + 1..count {
            candidates.push(vec![a, b]);
            let third = if count <= MOST_FOR_THREE { b + 1..count } else { 0..0 };
            candidates.extend(third.map(|c| vec![a, b, c]));
        }
    }
    candidates.sort_by_key(Vec::len);
    let looked_at = candidates.iter().map(|terms| count - terms.len()).sum();
    let mut found: Vec<SumFound> = Vec::new();
    for terms in candidates {
        for total in (0..count).filter(|place| !terms.contains(place)) {
            let places: Vec<usize> = terms.iter().copied().chain([total]).collect();
            let own: Vec<&Numbers> = places.iter().map(|&place| &columns[place]).collect();
            let is_sum = |row: &[f64]| {
                let (total, terms) = row.split_last().map_or((0.0, row), |(x, rest)| (*x, rest));
                let size: f64 = row.iter().map(|x| x.abs()).sum();
                (terms.iter().sum::<f64>() - total).abs() <= ROUNDING * size
            };
            if !holds(&own, is_sum) {
                continue;
            }
            let Some(cells) = together(&own) else { continue };
            // The column with the fewest orders of its own says least.
            let chances = cells.iter().map(|cells| ln_exchanges(cells));
            let ln_chance = chances.fold(f64::NEG_INFINITY, f64::max);
            if !is_rare(ln_chance, looked_at) {
                continue;
            }
            let signed = own.iter().enumerate().map(|(place, column)| {
                (column.name.to_owned(), if place + 1 == own.len() { -1.0 } else { 1.0 })
            });
            let relation =
                Relation::Sum { terms: signed.collect(), at_least: Some(0.0), at_most: Some(0.0) };
            let found_here = Found { rule: Rule { description: None, relation }, ln_chance };
            found.push(SumFound { places, found: found_here });
        }
    }
    found
}

/// `x <= y`. The orders of `y` that keep it: the largest `x` has `c_1` cells of `y` that are at least
/// as large, the next `c_2 - 1` of those that are left, and so on.
fn orders(columns: &[Numbers<'_>], sums: &[SumFound]) -> Vec<Found> {
    let count = columns.len();
    let looked_at = count * count.saturating_sub(1);
    let mut holding: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for x in 0..count {
        for y in (0..count).filter(|&y| y != x) {
            let own = [&columns[x], &columns[y]];
            // A part of a sum is not more than the total, which the sum says already.
            let is_part =
                sums.iter().any(|sum| sum.places.last() == Some(&y) && sum.places.contains(&x));
            if is_part || !holds(&own, |row| row[0] <= row[1]) {
                continue;
            }
            let Some(cells) = together(&own) else { continue };
            let ln_chance = ln_orders_below(&cells[0], &cells[1]);
            if is_rare(ln_chance, looked_at) {
                holding.insert((x, y), ln_chance);
            }
        }
    }
    let mut found = Vec::new();
    for (&(x, y), &ln_chance) in &holding {
        let is_between = |z: usize| holding.contains_key(&(x, z)) && holding.contains_key(&(z, y));
        // x <= z <= y says it already; equal columns are each below the other.
        if (0..count).any(|z| is_between(z) && !holding.contains_key(&(z, x))) {
            continue;
        }
        let terms = [(columns[x].name.to_owned(), 1.0), (columns[y].name.to_owned(), -1.0)];
        let relation = Relation::Sum { terms: terms.into(), at_least: None, at_most: Some(0.0) };
        found.push(Found { rule: Rule { description: None, relation }, ln_chance });
    }
    found
}

/// Pairs in which a larger number of one goes with a number of the other that is not smaller, or not
/// larger, in any two rows.
fn monotone(columns: &[&Numbers<'_>]) -> Vec<Found> {
    let count = columns.len();
    let looked_at = count * count.saturating_sub(1);
    let mut found = Vec::new();
    for a in 0..count {
        for b in a + 1..count {
            let own = [columns[a], columns[b]];
            let rows = || own[0].cells.iter().zip(&own[1].cells).filter_map(|(a, b)| a.zip(*b));
            for sign in [1.0, -1.0] {
                let rows = || rows().map(|(a, b)| (a, sign * b));
                if rising(rows().take(FIRST_ROWS)).is_none() || rows().count() < LEAST_ROWS {
                    continue;
                }
                let Some(pair) = rising(rows()).and_then(|rows| Pair::of(&rows)) else { continue };
                if is_rare(pair.ln_chance, looked_at) {
                    let names = [own[0], own[1]];
                    found.extend(pair.rules(names, sign > 0.0).into_iter().map(|relation| Found {
                        rule: Rule { description: None, relation },
                        ln_chance: pair.ln_chance,
                    }));
                }
            }
        }
    }
    found
}

/// Two columns of which the second never falls where the first rises.
struct Pair {
    /// Whether a change of the one always changes the other.
    forward: bool,
    backward: bool,
    ln_chance: f64,
}

impl Pair {
    /// The orders of `b` that keep it: rows with equal `a` may exchange their cells, and so may equal
    /// cells, `prod_k g_k! prod_v (n_v! / prod_k n_kv!) / n!`, where `g_k` rows have the `k`-th value
    /// of `a`, `n_v` the value `v` of `b` and `n_kv` both.
    fn of(rows: &[(f64, f64)]) -> Option<Self> {
        let (firsts, seconds) = (runs(rows, |row| (row.0, 0.0)), runs(rows, |row| (row.1, 0.0)));
        let both = runs(rows, |row| *row);
        if firsts.len() < 2 || seconds.len() < 2 {
            return None;
        }
        let total = |runs: &[usize]| runs.iter().map(|&run| ln_factorial(run)).sum::<f64>();
        Some(Self {
            forward: seconds.len() == both.len(),
            backward: firsts.len() == both.len(),
            ln_chance: total(&firsts) + total(&seconds) - total(&both) - ln_factorial(rows.len()),
        })
    }

    fn rules(&self, [a, b]: [&Numbers<'_>; 2], rises: bool) -> Vec<Relation> {
        let strict = |leader: &Numbers<'_>, follower: &Numbers<'_>| {
            let (leader, follower) = (leader.name.to_owned(), follower.name.to_owned());
            if rises {
                return vec![Relation::Monotone { leader, follower }];
            }
            let one = |change: Change, then: Change| Relation::Implication {
                condition: [(leader.clone(), change)].into(),
                consequence: [(follower.clone(), then)].into(),
            };
            vec![one(Change::Up, Change::Down), one(Change::Down, Change::Up)]
        };
        let mut rules = Vec::new();
        if self.forward && b.has_step {
            rules.extend(strict(a, b));
        }
        if self.backward && a.has_step {
            rules.extend(strict(b, a));
        }
        if rules.is_empty() {
            let ways = if rises {
                [(Change::Up, Change::NotDown), (Change::Down, Change::NotUp)]
            } else {
                [(Change::Up, Change::NotUp), (Change::Down, Change::NotDown)]
            };
            rules.extend(ways.map(|(change, then)| Relation::Implication {
                condition: [(a.name.to_owned(), change)].into(),
                consequence: [(b.name.to_owned(), then)].into(),
            }));
        }
        rules
    }
}

/// The rows sorted, if the second number never falls where the first rises.
fn rising(rows: impl Iterator<Item = (f64, f64)>) -> Option<Vec<(f64, f64)>> {
    let mut rows: Vec<(f64, f64)> = rows.collect();
    rows.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.total_cmp(&y.1)));
    let falls = rows.windows(2).any(|two| two[0].0 < two[1].0 && two[0].1 > two[1].1);
    (!falls).then_some(rows)
}

/// The lengths of runs of rows with an equal key, in sorted rows.
fn runs(rows: &[(f64, f64)], key: impl Fn(&(f64, f64)) -> (f64, f64)) -> Vec<usize> {
    rows.chunk_by(|x, y| key(x) == key(y)).map(<[_]>::len).collect()
}

/// `ln prod_v n_v! - ln n!`
fn ln_exchanges(cells: &[f64]) -> f64 {
    let mut sorted = cells.to_vec();
    sorted.sort_by(f64::total_cmp);
    let same = sorted.chunk_by(|a, b| a == b).map(|run| ln_factorial(run.len()));
    same.sum::<f64>() - ln_factorial(cells.len())
}

/// The logarithm of the share of orders of `y` with `x_i <= y_i` in all rows.
fn ln_orders_below(x: &[f64], y: &[f64]) -> f64 {
    let (mut x, mut y) = (x.to_vec(), y.to_vec());
    x.sort_by(|a, b| b.total_cmp(a));
    y.sort_by(|a, b| b.total_cmp(a));
    let (mut above, mut ln) = (0, 0.0);
    for (used, x) in x.iter().enumerate() {
        while y.get(above).is_some_and(|y| x <= y) {
            above += 1;
        }
        ln += (above.saturating_sub(used) as f64 / (y.len() - used) as f64).ln();
    }
    ln
}

fn ln_factorial(count: usize) -> f64 {
    libm::lgamma(count as f64 + 1.0)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;
    use crate::data::Hints;

    /// All orders of a column, and the share of them in which a property holds.
    fn share(cells: &[f64], holds: &dyn Fn(&[f64]) -> bool) -> f64 {
        fn visit(rest: &mut Vec<f64>, at: usize, holds: &dyn Fn(&[f64]) -> bool) -> (f64, f64) {
            if at == rest.len() {
                return (f64::from(u8::from(holds(rest))), 1.0);
            }
            let mut sum = (0.0, 0.0);
            for other in at..rest.len() {
                rest.swap(at, other);
                let (kept, all) = visit(rest, at + 1, holds);
                sum = (sum.0 + kept, sum.1 + all);
                rest.swap(at, other);
            }
            sum
        }
        let (kept, all) = visit(&mut cells.to_vec(), 0, holds);
        kept / all
    }

    fn pair(a: &[f64], b: &[f64]) -> Option<Pair> {
        rising(a.iter().copied().zip(b.iter().copied())).and_then(|rows| Pair::of(&rows))
    }

    /// The formulas against all 5040 orders of seven rows.
    #[test]
    fn the_chances_are_shares_of_all_orders() {
        let columns = [
            ([1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 5.0], [1.0, 2.0, 3.0, 3.0, 4.0, 6.0, 5.0]),
            ([0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 9.0], [0.0, 1.0, 1.0, 1.0, 1.0, 7.0, 9.0]),
            ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),
        ];
        for (x, y) in &columns {
            let below = |y: &[f64]| x.iter().zip(y).all(|(x, y)| x <= y);
            let close = |ln: f64, share: f64| (ln.exp() - share).abs() <= 1e-9 * share;
            assert!(below(y) && close(ln_orders_below(x, y), share(y, &below)));
            let same = |other: &[f64]| other == y;
            assert!(close(ln_exchanges(y), share(y, &same)));
            let rises = |y: &[f64]| {
                let pairs = || x.iter().zip(y);
                pairs().all(|a| pairs().all(|b| a.0 >= b.0 || a.1 <= b.1))
            };
            assert!(close(pair(x, y).unwrap().ln_chance, share(y, &rises)));
        }
        assert!(pair(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0]).is_none());
        let follows = pair(&[1.0, 2.0, 3.0, 4.0], &[1.0, 1.0, 2.0, 3.0]).unwrap();
        assert!(!follows.forward && follows.backward);
    }

    fn proposals(text: &str) -> (Inferred, Vec<String>) {
        let table = Table::from_csv(Path::new("loans.csv"), text.as_bytes()).unwrap();
        let inferred = Schema::draft(&table, Some("good"), &[], &Hints::default()).unwrap();
        let words = inferred.proposals.iter().map(|rule| rule.relation.in_words());
        let words = words.collect();
        (inferred, words)
    }

    /// Sums, orders and monotone pairs are found; what any order of the rows would show is not.
    #[test]
    fn rules_that_hold_in_all_rows_are_proposed() {
        let header = "car,house,total,least,most,years,months,income,visits,good\n";
        let mut text = header.to_owned();
        for row in 0..120_usize {
            let mixed = row * 7919 % 1009;
            let (car, house) = (mixed % 37, mixed % 61);
            let least = mixed % 97;
            writeln!(
                text,
                "{car},{house},{},{least},{},{},{},{},{},{}",
                car + house,
                least + mixed % 29,
                mixed % 83 / 12,
                mixed % 83,
                20_000 + mixed * 31 % 9001,
                row % 3,
                row % 2,
            )
            .unwrap();
        }
        let (inferred, words) = proposals(&text);
        let expected = [
            "0 <= car + house - total <= 0",
            "least - most <= 0",
            "years goes up with months, and down with it",
        ];
        assert!(expected[..2].iter().all(|rule| words.iter().any(|own| own == rule)), "{words:?}");
        // Years follow months, but not each month makes a year.
        assert!(words.contains(&"months goes up with years, and down with it".to_owned()));
        assert!(!words.contains(&expected[2].to_owned()), "{words:?}");
        // A part is below its total, and 20000 is above everything: neither is news.
        assert!(words.iter().all(|rule| !rule.contains("income") && !rule.contains("visits")));
        assert!(!words.contains(&"car - total <= 0".to_owned()), "{words:?}");
        // Without the `#` the draft is a schema with these rules; the data obey them all.
        let draft = inferred.to_toml().unwrap();
        assert_eq!(Schema::from_toml(&draft).unwrap(), inferred.schema);
        let proposed = draft.find("# [[rule]]").unwrap();
        let accepted = draft[proposed..].lines().map(|line| line.trim_start_matches("# "));
        let accepted: Vec<&str> = accepted.collect();
        let whole = format!("{}\n{}", inferred.schema.to_toml().unwrap(), accepted.join("\n"));
        let schema = Schema::from_toml(&whole).unwrap();
        assert_eq!(schema.rules[inferred.schema.rules.len()..], inferred.proposals[..]);
    }

    /// An ordinal feature whose order is known goes with a number.
    #[test]
    fn ordinal_features_go_with_numbers() {
        let mut text = "education,age,colour,good\n".to_owned();
        for row in 0..120_usize {
            let age = 18 + row * 7919 % 1009 % 60;
            let education = ["none", "school", "college"][(age - 18) / 20];
            writeln!(text, "{education},{age},{},{}", ["b", "a"][row % 2], row % 2).unwrap();
        }
        let table = Table::from_csv(Path::new("loans.csv"), text.as_bytes()).unwrap();
        let levels = ["none", "school", "college"].map(Value::from).into();
        let kinds = [("education".to_owned(), FeatureKind::Ordinal { levels })].into();
        let hints = Hints { kinds, ..Hints::default() };
        let inferred = Schema::draft(&table, Some("good"), &[], &hints).unwrap();
        let words: Vec<String> =
            inferred.proposals.iter().map(|rule| rule.relation.in_words()).collect();
        assert!(
            words.contains(&"age goes up with education, and down with it".to_owned()),
            "{words:?}"
        );
        // Without its order there is nothing to go with.
        let inferred = Schema::draft(&table, Some("good"), &[], &Hints::default()).unwrap();
        assert!(inferred.proposals.is_empty(), "{:?}", inferred.proposals);
    }

    /// Fewer rows, or columns that agree because they hardly vary, show nothing.
    #[test]
    fn chance_findings_are_not_proposed() {
        let mut few = "a,b,c,good\n".to_owned();
        for row in 0..40_usize {
            writeln!(few, "{},{},{},{}", row * 7 % 40, row * 7 % 40 + 3, row % 9, row % 2).unwrap();
        }
        assert!(proposals(&few).1.is_empty());
        // One row of 60 differs from zero: an order of b that keeps b <= a is likely.
        let mut rare = "a,b,c,good\n".to_owned();
        for row in 0..60_usize {
            let (a, b) = if row == 7 { (5, 3) } else { (1, 0) };
            writeln!(rare, "{a},{b},{},{}", row * 7 % 13, row % 2).unwrap();
        }
        let (_, words) = proposals(&rare);
        assert!(words.is_empty(), "{words:?}");
        // Random columns: of 12 columns with 132 ordered pairs, none.
        let mut random = "a,b,c,d,e,f,g,h,i,j,k,l,good\n".to_owned();
        let mut state = 1_u64;
        for row in 0..200_usize {
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                write!(random, "{},", (state >> 33) % 1000).unwrap();
            }
            writeln!(random, "{}", row % 2).unwrap();
        }
        assert!(proposals(&random).1.is_empty());
    }
}
