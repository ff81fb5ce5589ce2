//! A second look at a draft: columns whose meaning differs from the type of their cells.
//!
//! Names and simple statistics raise the doubts. Findings that are likely enough change the draft
//! (columns that identify rows, features that nobody can change, outliers that flatten a scale);
//! the others are remarks. A person confirms both.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{IDENTIFIERS, NUMBERS, UNCHANGEABLE, has_word, words};
use super::{Hints, Inferred, MOST_LEVELS, Table};
use crate::auc::auc;
use crate::data::cell::listed;
use crate::data::schema::{Action, Feature, FeatureKind, Interval, Relation, Rule, Schema, Split};
use crate::data::table::Column;
use crate::data::value::{Value, parse_number};
use crate::error::Result;

/// Fewer rows show nothing.
pub(super) const LEAST_ROWS: usize = 50;
/// Tables with fewer rows get no test part.
pub(super) const LEAST_SPLIT: usize = 100;
/// The part of the rows that trains.
const TRAIN: f64 = 0.75;
/// The share of different values of a column that identifies rows.
const DIFFERENT: f64 = 0.95;
/// The AUC, or the accuracy of its levels, from which a single column gives the label away.
const LEAK: f64 = 0.98;
/// A number is an outlier if it is so many times as far from the median as 99 % of the column.
const FAR: f64 = 6.0;

/// Whole numbers of one length that nearly all differ are numbers of phones, accounts or people from
/// this many digits on.
const LONG_NUMBER: usize = 9;
/// Whole numbers of one length with at least so many digits may be.
const LONG_ENOUGH: usize = 7;
/// The share of rows of one label among those with, or without, a value, from which missing values
/// give the label away. It needs `LEAST_SIDE` rows, and another share `USUAL` at most of all rows.
const PURE: f64 = 0.99;
const LEAST_SIDE: usize = 30;
const USUAL: f64 = 0.7;

/// Reviews all features of a draft.
pub(super) fn review(inferred: &mut Inferred, table: &Table, hints: &Hints) -> Result<()> {
    // An existing model takes its input as it is.
    let is_new = hints.features.is_none();
    let labels = labels(&inferred.schema, table);
    let mut notes = Vec::new();
    for index in 0..inferred.schema.features.len() {
        let mut feature = inferred.schema.features[index].clone();
        let column = table.column(&feature.name)?;
        let numbers = numbers(&inferred.schema, column);
        let mut doubts = vec![limited(&mut feature, &mut inferred.schema.rules)];
        if feature.kind.is_number() {
            doubts.push(code(&inferred.schema, &feature, column));
            doubts.push(zeros(&numbers));
            doubts.push(outliers(&mut feature, &numbers, is_new));
        }
        doubts.push(leak(&feature, column, &numbers, &labels));
        doubts.push(leak_by_missing(&inferred.schema, column, &labels));
        notes.extend(doubts.into_iter().flatten().map(|text| (feature.name.clone(), text)));
        inferred.schema.features[index] = feature;
    }
    for (name, text) in notes {
        inferred.note(Some(&name), text);
    }
    if is_new && table.rows() >= LEAST_SPLIT && inferred.schema.split == Split::AllTrain {
        inferred.schema.split = Split::Fraction { train: TRAIN, seed: 0 };
        let percent = 100.0 * TRAIN;
        inferred.note(
            None,
            format!("A random {percent} % of the rows train, the others test ([split])."),
        );
    }
    remark_on_free(inferred);
    inferred.schema.validate()
}

/// Moves columns that identify rows, and copies of other columns, out of the features. Those that an
/// existing model takes stay, and do not change if they identify rows.
pub(super) fn ignore_identifiers(
    inferred: &mut Inferred,
    table: &Table,
    hints: &Hints,
) -> Result<()> {
    let features = std::mem::take(&mut inferred.schema.features);
    let mut kept: Vec<Feature> = Vec::new();
    // Those that are kept, by their cells: a file may have thousands of columns.
    let mut known: BTreeMap<Vec<&str>, String> = BTreeMap::new();
    let label = table.column(&inferred.schema.label.column);
    let label: Option<Vec<&str>> = label.ok().map(|label| label.cells().collect());
    for mut feature in features {
        let column = table.column(&feature.name)?;
        let identifies = identifies(&inferred.schema, column, &feature.kind);
        let cells: Vec<&str> = column.cells().collect();
        if hints.need(&feature.name) {
            if identifies && hints.features.is_some() && feature.action != Action::Fixed {
                feature.action = Action::Fixed;
                let text = "It seems to identify the rows, so its `action` is `fixed`.";
                inferred.note(Some(&feature.name), text.to_owned());
            }
            known.entry(cells).or_insert_with(|| feature.name.clone());
            kept.push(feature);
            continue;
        }
        let reason = if identifies {
            Some("identifies the rows".to_owned())
        } else if label.as_ref() == Some(&cells) {
            Some("repeats the label".to_owned())
        } else {
            known.get(&cells).map(|other| format!("repeats column `{other}`"))
        };
        let Some(reason) = reason else {
            known.insert(cells, feature.name.clone());
            kept.push(feature);
            continue;
        };
        inferred.note(None, format!("Column `{}` is ignored: it {reason}.", feature.name));
        inferred.schema.ignore.push(feature.name);
    }
    inferred.schema.features = kept;
    Ok(())
}

/// The cells of a column that are not missing.
fn present<'a>(schema: &'a Schema, column: &'a Column) -> impl Iterator<Item = &'a str> {
    column.cells().filter(|cell| !is_missing(schema, cell))
}

fn is_missing(schema: &Schema, cell: &str) -> bool {
    schema.missing.tokens.iter().any(|token| token == cell)
}

/// Whether nearly all cells differ, and the column is text, named as an identifier, or has long
/// numbers of one length.
fn identifies(schema: &Schema, column: &Column, kind: &FeatureKind) -> bool {
    let count = present(schema, column).count();
    let different = present(schema, column).collect::<BTreeSet<_>>().len();
    let differs = |share: f64| different as f64 >= share * count as f64;
    let words = words(column.name());
    let is_named = words.iter().any(|word| IDENTIFIERS.contains(&word.as_str()));
    let is_number = words.last().is_some_and(|word| NUMBERS.contains(&word.as_str()));
    if count < 20 {
        return false;
    }
    match kind {
        FeatureKind::Categorical { .. } => differs(DIFFERENT),
        // Of a person with several rows there is one identifier.
        FeatureKind::Integer if is_named => {
            different > MOST_LEVELS && differs(0.2) || differs(DIFFERENT)
        }
        FeatureKind::Integer => {
            let long = digits(schema, column).is_some_and(|digits| digits >= LONG_NUMBER);
            (is_number || long) && differs(DIFFERENT)
        }
        _ => false,
    }
}

/// The number of digits of the cells, if it is the same for all and there is nothing but digits.
fn digits(schema: &Schema, column: &Column) -> Option<usize> {
    let first = present(schema, column).next()?.len();
    let fits = |cell: &str| cell.len() == first && cell.bytes().all(|byte| byte.is_ascii_digit());
    present(schema, column).all(fits).then_some(first)
}

/// Whole numbers that may be codes or identifiers.
fn code(schema: &Schema, feature: &Feature, column: &Column) -> Option<String> {
    if feature.kind != FeatureKind::Integer || feature.action == Action::Fixed {
        return None;
    }
    let cells: Vec<&str> = present(schema, column).collect();
    if cells.len() < 20 {
        return None;
    }
    let different = cells.iter().collect::<BTreeSet<_>>().len();
    let differs = different as f64 >= DIFFERENT * cells.len() as f64;
    let leading = cells.iter().filter(|cell| cell.len() > 1 && cell.starts_with('0')).count();
    let digits = digits(schema, column);
    let numbers: Vec<f64> = cells.iter().filter_map(|cell| parse_number(cell)).collect();
    let rises = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    let shown = if leading > 0 && digits.is_some() {
        format!("{leading} of its cells begin with 0, so they are codes, not amounts")
    } else if differs && digits.is_some_and(|digits| digits >= LONG_ENOUGH) {
        "Nearly all of its cells differ, and all have the same number of digits".to_owned()
    } else if rises {
        "It rises from row to row".to_owned()
    } else if has_word(&feature.name, &IDENTIFIERS) && different > MOST_LEVELS {
        "Its name is that of an identifier".to_owned()
    } else {
        return None;
    };
    Some(format!(
        "{shown}. If it identifies people or things, move it to `ignore`; if it is a code, make it \
         `categorical` with `levels`."
    ))
}

/// The numbers of a column; `None` for other cells.
pub(super) fn numbers(schema: &Schema, column: &Column) -> Vec<Option<f64>> {
    column.cells().map(|cell| parse_number(cell).filter(|_| !is_missing(schema, cell))).collect()
}

/// Whether each row has the favourable label; `None` without a label.
fn labels(schema: &Schema, table: &Table) -> Vec<Option<bool>> {
    let Ok(column) = table.column(&schema.label.column) else { return Vec::new() };
    let is_one = |values: &[Value], cell: &str| {
        values.iter().any(|value| match value {
            Value::Number(number) => parse_number(cell) == Some(*number),
            other => other.to_string() == cell,
        })
    };
    let of = |cell: &str| match cell {
        cell if is_one(&schema.label.favourable, cell) => Some(true),
        cell if is_one(&schema.label.unfavourable, cell) => Some(false),
        _ => None,
    };
    column.cells().map(of).collect()
}

/// Whether a name is that of an age: `Age`, `customer_age`, `age_at_loan`, `person_age_years`.
fn is_age(name: &str) -> bool {
    let words = words(name);
    let units = ["years", "year", "yrs", "yr", "months", "days", "in"];
    let last = words.iter().rfind(|word| !units.contains(&word.as_str()));
    words.first().into_iter().chain(last).any(|word| word == "age")
}

/// Whether a draft limits the changes of a feature in this way by its name alone.
pub(crate) fn is_drafted(feature: &Feature) -> bool {
    match feature.action {
        Action::Fixed => has_word(&feature.name, &UNCHANGEABLE),
        Action::OnlyUp => is_age(&feature.name),
        _ => false,
    }
}

/// Whether a draft writes this rule by the name of a feature alone: the limit of an age.
pub(crate) fn is_drafted_rule(rule: &Rule) -> bool {
    match &rule.relation {
        Relation::Sum { terms, at_least: None, at_most: Some(_) } => {
            terms.len() == 1 && terms.iter().all(|(name, factor)| *factor == 1.0 && is_age(name))
        }
        _ => false,
    }
}

/// Limits the changes of features with well-known names.
fn limited(feature: &mut Feature, rules: &mut Vec<Rule>) -> Option<String> {
    let range = match feature.action {
        Action::Free => None,
        Action::Within(range) => Some(range),
        _ => return None,
    };
    if has_word(&feature.name, &UNCHANGEABLE) {
        feature.action = Action::Fixed;
        return Some("It cannot be changed, so its `action` is `fixed`.".to_owned());
    }
    let most = range.filter(|_| is_age(&feature.name))?.upper;
    feature.action = Action::OnlyUp;
    rules.push(Rule {
        description: Some(format!("`{}` as far as the data reach", feature.name)),
        relation: Relation::Sum {
            terms: [(feature.name.clone(), 1.0)].into(),
            at_least: None,
            at_most: Some(most),
        },
    });
    Some(format!("An age only rises, so its `action` is `only-up`, with a rule up to {most}."))
}

/// Zeros far below all other values, which may stand for missing ones.
fn zeros(numbers: &[Option<f64>]) -> Option<String> {
    let zeros = numbers.iter().flatten().filter(|number| **number == 0.0).count();
    let mut others: Vec<f64> = numbers.iter().flatten().copied().filter(|n| *n != 0.0).collect();
    others.sort_by(f64::total_cmp);
    let &least = others.first()?;
    let median = others[others.len() / 2];
    // Counts and amounts have small values between zero and the usual ones.
    let is_apart = least >= 5.0 && least >= 0.1 * median;
    (zeros > 0 && is_apart && others.len() >= LEAST_ROWS).then(|| {
        format!(
            "{zeros} of {} cells are 0, and the others are {least} or more. If 0 means missing, set \
             `range = [{least}, inf]` and `special = {{ values = [0], as = \"level\" }}`.",
            numbers.len(),
        )
    })
}

/// Clips a column whose outliers would flatten its scale, or remarks on it.
fn outliers(feature: &mut Feature, numbers: &[Option<f64>], clips: bool) -> Option<String> {
    let mut sorted: Vec<f64> = numbers.iter().flatten().copied().collect();
    if sorted.len() < LEAST_ROWS {
        return None;
    }
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let (low, middle, high) = (at(0.01), at(0.5), at(0.99));
    let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
    let above = high > middle && most - middle > FAR * (high - middle);
    let below = low < middle && middle - least > FAR * (middle - low);
    if !above && !below {
        return None;
    }
    let clip =
        Interval { lower: if below { low } else { least }, upper: if above { high } else { most } };
    if clips {
        feature.clip = Some(clip);
    }
    let place = match (below, above) {
        (true, true) => format!("{} and {}", Value::Number(least), Value::Number(most)),
        (true, false) => Value::Number(least).to_string(),
        _ => Value::Number(most).to_string(),
    };
    let usual = format!("{} and {}", Value::Number(clip.lower), Value::Number(clip.upper));
    Some(if clips {
        format!(
            "It reaches {place}, but 99 % lie between {usual}. `clip` keeps the outliers from \
             flattening its scale; check whether they are errors."
        )
    } else {
        format!(
            "It reaches {place}, but 99 % lie between {usual}; check whether the outliers are errors."
        )
    })
}

/// A column that gives the label away.
fn leak(
    feature: &Feature,
    column: &Column,
    numbers: &[Option<f64>],
    labels: &[Option<bool>],
) -> Option<String> {
    if labels.len() < LEAST_ROWS {
        return None;
    }
    let shown = if feature.kind.is_number() {
        let of = |wanted: bool| -> Vec<f32> {
            let pairs = numbers.iter().zip(labels);
            let own = pairs.filter(|(_, label)| **label == Some(wanted));
            own.filter_map(|(number, _)| number.map(|number| number as f32)).collect()
        };
        let area = auc(&of(true), &of(false))?;
        let area = area.max(1.0 - area);
        (area >= LEAK).then(|| format!("alone it ranks the labels with an AUC of {area:.3}"))
    } else {
        let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for (cell, label) in column.cells().zip(labels) {
            if let Some(label) = label {
                counts.entry(cell).or_default()[usize::from(*label)] += 1;
            }
        }
        let rows: usize = counts.values().flatten().sum();
        let right: usize = counts.values().map(|[no, yes]| no.max(yes)).sum();
        let [no, yes] = counts.values().fold([0, 0], |sum, [no, yes]| [sum[0] + no, sum[1] + yes]);
        let (accuracy, base) = (right as f64 / rows as f64, no.max(yes) as f64 / rows as f64);
        // If one label is rare, the accuracy says little: the share of it in each level ranks.
        let share = |cell: &str| {
            let [no, yes] = counts.get(cell).copied().unwrap_or_default();
            yes as f32 / (no + yes) as f32
        };
        let of = |wanted: bool| -> Vec<f32> {
            let pairs = column.cells().zip(labels);
            pairs
                .filter(|(_, label)| **label == Some(wanted))
                .map(|(cell, _)| share(cell))
                .collect()
        };
        let area = auc(&of(true), &of(false)).unwrap_or_default();
        // Many small levels would fit any label.
        let is_shown =
            (accuracy >= LEAK && base <= 0.9 || area >= LEAK) && rows >= 20 * counts.len();
        is_shown.then(|| format!("alone it gives {:.1} % of the labels", 100.0 * accuracy))
    };
    shown.map(|shown| gives_away(&shown))
}

/// A column whose missing cells give the label away: it is filled in only after one outcome.
fn leak_by_missing(schema: &Schema, column: &Column, labels: &[Option<bool>]) -> Option<String> {
    // Rows by whether the cell is there, and by their label.
    let mut counts = [[0_usize; 2]; 2];
    for (cell, label) in column.cells().zip(labels) {
        if let Some(label) = label {
            counts[usize::from(!is_missing(schema, cell))][usize::from(*label)] += 1;
        }
    }
    let rows: usize = counts.iter().flatten().sum();
    if rows < LEAST_ROWS {
        return None;
    }
    let share =
        |label: usize, side: [usize; 2]| side[label] as f64 / (side[0] + side[1]).max(1) as f64;
    let all = [counts[0][0] + counts[1][0], counts[0][1] + counts[1][1]];
    for (side, words) in [(counts[1], "has a value"), (counts[0], "has none")] {
        let count = side[0] + side[1];
        for label in [0, 1] {
            // A column that gives the other side away as well has one side only.
            let is_side = (LEAST_SIDE..rows).contains(&count);
            if is_side && share(label, side) >= PURE && share(label, all) <= USUAL {
                let which = ["unfavourable", "favourable"][label];
                let percent = 100.0 * share(label, side);
                return Some(gives_away(&format!(
                    "{percent:.1} % of the {count} rows where it {words} are {which}, of all rows \
                     {:.1} %",
                    100.0 * share(label, all)
                )));
            }
        }
    }
    None
}

fn gives_away(shown: &str) -> String {
    format!(
        "It may give the label away: {shown}. If it is known only after the outcome, move it to \
         `ignore`."
    )
}

/// Names the features that advice may change in any way.
fn remark_on_free(inferred: &mut Inferred) {
    let free: Vec<&str> = inferred
        .schema
        .features
        .iter()
        .filter(|feature| matches!(feature.action, Action::Free | Action::Within(_)))
        .map(|feature| feature.name.as_str())
        .collect();
    if !free.is_empty() {
        let text = format!(
            "Advice may change {} in any way, numbers inside the range of the data. Confirm this, or \
             give them an `action`.",
            listed(&free)
        );
        inferred.note(None, text);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;
    use crate::data::Dataset;

    fn draft(text: &str, label: &str) -> Inferred {
        let table = Table::from_csv(Path::new("people.csv"), text.as_bytes()).unwrap();
        let inferred = Schema::draft(&table, Some(label), &[], &Hints::default()).unwrap();
        // A draft reads the table it was drawn from, and is read back.
        Dataset::load(&inferred.schema, table).unwrap();
        let again = Schema::from_toml(&inferred.to_toml().unwrap()).unwrap();
        assert_eq!(again, inferred.schema);
        inferred
    }

    fn feature<'a>(inferred: &'a Inferred, name: &str) -> &'a Feature {
        &inferred.schema.features[inferred.schema.position(name).unwrap()]
    }

    fn says(inferred: &Inferred, feature: Option<&str>, part: &str) -> bool {
        let mut about = inferred.notes.iter().filter(|note| note.feature.as_deref() == feature);
        about.any(|note| note.text.contains(part))
    }

    #[test]
    fn an_age_is_known_by_its_name() {
        for name in ["age", "Age", "customer_age", "age_years", "AgeInYears", "age_at_loan"] {
            assert!(is_age(name), "{name}");
        }
        assert!(is_age("person age (months)") && is_age("age.in.years"));
        for name in ["mortgage", "average", "stage", "years", "old_age_pension", "agency", ""] {
            assert!(!is_age(name), "{name}");
        }
    }

    /// Many people with an identifier, zeros for missing, outliers, a leak, and columns that
    /// nobody can change.
    #[test]
    fn doubts_are_settled_or_pointed_at() {
        let mut text =
            "customer_id,Age,sex,glucose,visits,debt,rate,late_days,mortgage,churned\n".to_owned();
        for row in 0..400_usize {
            let churned = usize::from(row % 3 == 0);
            let glucose = if row % 2 == 0 { 0 } else { 60 + row % 90 };
            let debt = if row == 17 { 1294 } else { row % 19 };
            writeln!(
                text,
                "{},{},{},{glucose},{},{debt},{},{},{},{churned}",
                900_000 - 7 * row,
                20 + row % 50,
                ["f", "m"][row % 2],
                row % 5,
                row % 7,
                30 * churned + row % 20,
                row % 11,
            )
            .unwrap();
        }
        let inferred = draft(&text, "churned");
        assert_eq!(inferred.schema.label.favourable, [Value::Number(0.0)]);
        assert!(says(&inferred, None, "`churned` names a bad outcome"));
        assert_eq!(inferred.schema.ignore, ["customer_id"]);
        assert!(says(&inferred, None, "`customer_id` is ignored: it identifies the rows"));
        assert_eq!(feature(&inferred, "Age").action, Action::OnlyUp);
        assert_eq!(feature(&inferred, "sex").action, Action::Fixed);
        let all = Interval { lower: 0.0, upper: 10.0 };
        assert_eq!(feature(&inferred, "mortgage").action, Action::Within(all));
        assert!(says(&inferred, Some("glucose"), "200 of 400 cells are 0"));
        assert!(!says(&inferred, Some("visits"), "cells are 0"));
        let debt = feature(&inferred, "debt");
        assert_eq!(debt.clip, Some(Interval { lower: 0.0, upper: 18.0 }));
        assert!(says(&inferred, Some("debt"), "It reaches 1294, but 99 % lie between 0 and 18"));
        assert_eq!(feature(&inferred, "rate").clip, None);
        assert!(says(&inferred, Some("late_days"), "It may give the label away"));
        assert!(!says(&inferred, Some("debt"), "give the label away"));
        assert_eq!(inferred.schema.split, Split::Fraction { train: 0.75, seed: 0 });
        assert!(says(&inferred, None, "Advice may change `glucose`, `visits`"));
        assert!(!says(&inferred, None, "`Age`"));
    }

    #[test]
    fn numbers_of_people_are_no_features() {
        let header = "customer_no,phone,zip,account,policy,branch_id,owner_id,salary,visit_id,ok\n";
        let mut text = header.to_owned();
        for row in 0..400_usize {
            let mixed = row * 7919 % 10_007;
            writeln!(
                text,
                "{},0171{:07},{:05},{},{},{},{},{},{},{}",
                mixed,
                1_000_000 + mixed,
                row * 37 % 90,
                1_234_500_000 + mixed,
                2_000_000 + mixed,
                row % 9,
                5000 + row / 3,
                20_000 + mixed,
                3 * row + 11,
                usize::from(row % 3 == 0 || mixed > 9000),
            )
            .unwrap();
        }
        let inferred = draft(&text, "ok");
        // By name and by length; of the owner there are three rows each.
        let ignored = ["customer_no", "phone", "account", "owner_id", "visit_id"];
        assert_eq!(inferred.schema.ignore, ignored);
        assert!(says(&inferred, None, "`account` is ignored: it identifies the rows"));
        assert!(says(&inferred, Some("zip"), "of its cells begin with 0, so they are codes"));
        assert!(says(&inferred, Some("policy"), "all have the same number of digits"));
        for name in ["branch_id", "salary"] {
            assert!(!says(&inferred, Some(name), "identif"), "{name}");
        }
        // A model that takes them keeps them, and they do not change.
        let table = Table::from_csv(Path::new("people.csv"), text.as_bytes()).unwrap();
        let features = ["phone", "salary", "account"].map(str::to_owned).to_vec();
        let hints = Hints { features: Some(features.clone()), ..Hints::default() };
        let inferred = Schema::draft(&table, Some("ok"), &[], &hints).unwrap();
        let names: Vec<&str> = inferred.schema.features.iter().map(|own| &*own.name).collect();
        assert_eq!(names, features);
        assert_eq!(feature(&inferred, "phone").action, Action::Fixed);
        assert_eq!(feature(&inferred, "phone").range, None);
        assert!(says(&inferred, Some("phone"), "It seems to identify the rows"));
        assert!(matches!(feature(&inferred, "salary").action, Action::Within(_)));
        assert_eq!(inferred.schema.split, Split::AllTrain);
    }

    #[test]
    fn columns_that_are_filled_in_after_the_outcome_are_pointed_at() {
        let mut text = "income,recovered,closed,note,rare,defaulted\n".to_owned();
        for row in 0..600_usize {
            let bad = row % 3 == 0;
            let recovered =
                if bad && row % 2 == 0 { (row % 70).to_string() } else { String::new() };
            let closed = if bad { String::new() } else { (2000 + row % 20).to_string() };
            let note = if row % 4 == 0 { String::new() } else { (row % 13).to_string() };
            let rare = ["a", "b"][usize::from(row % 7 == 0)];
            writeln!(
                text,
                "{},{recovered},{closed},{note},{rare},{}",
                row * 37 % 101,
                u8::from(bad)
            )
            .unwrap();
        }
        let inferred = draft(&text, "defaulted");
        let shown =
            "100.0 % of the 100 rows where it has a value are unfavourable, of all rows 33.3 %";
        assert!(says(&inferred, Some("recovered"), shown));
        let shown = "100.0 % of the 400 rows where it has a value are favourable";
        assert!(says(&inferred, Some("closed"), shown));
        for name in ["income", "note", "rare"] {
            assert!(!says(&inferred, Some(name), "give the label away"), "{name}");
        }
    }

    /// One row of thirty is bad: guessing the other label is right 97 % of the time.
    #[test]
    fn a_column_gives_a_rare_label_away_too() {
        let mut text = "state,region,fraud\n".to_owned();
        for row in 0..600_usize {
            let fraud = row % 30 == 0;
            let state = if fraud { "blocked" } else { "open" };
            writeln!(text, "{state},{},{}", ["n", "s"][row % 2], u8::from(fraud)).unwrap();
        }
        let inferred = draft(&text, "fraud");
        assert!(says(&inferred, Some("state"), "alone it gives 100.0 % of the labels"));
        assert!(!says(&inferred, Some("region"), "give the label away"));
    }

    /// With an existing model the rules are the same.
    #[test]
    fn an_existing_model_has_the_same_rules() {
        let mut text = "age,sex,debt,good\n".to_owned();
        for row in 0..200_usize {
            let debt = if row == 17 { 1294 } else { row % 19 };
            writeln!(text, "{},{},{debt},{}", 20 + row % 50, ["f", "m"][row % 2], row % 2).unwrap();
        }
        let table = Table::from_csv(Path::new("people.csv"), text.as_bytes()).unwrap();
        let features = ["age", "sex", "debt"].map(str::to_owned).to_vec();
        let hints = Hints { features: Some(features), ..Hints::default() };
        let inferred = Schema::draft(&table, Some("good"), &[], &hints).unwrap();
        let age = feature(&inferred, "age");
        assert_eq!((&age.action, age.range), (&Action::OnlyUp, None));
        assert_eq!(inferred.schema.rules[0].relation.in_words(), "age <= 69");
        assert_eq!(feature(&inferred, "sex").action, Action::Fixed);
        // Its input is not clipped.
        assert_eq!(feature(&inferred, "debt").clip, None);
        assert!(says(&inferred, Some("debt"), "check whether the outliers are errors"));
        assert_eq!(Schema::from_toml(&inferred.to_toml().unwrap()).unwrap(), inferred.schema);
    }

    #[test]
    fn copies_and_names_are_ignored_and_levels_may_leak() {
        let mut text = "name,x,y,status,region,ill\n".to_owned();
        for row in 0..120_usize {
            let ill = ["no", "yes"][usize::from(row % 4 == 0)];
            let status = ["fine", "in hospital"][usize::from(row % 4 == 0)];
            let region = ["n", "s", "w"][row % 3];
            writeln!(text, "person {row},{},{},{status},{region},{ill}", row % 9, row % 9).unwrap();
        }
        let inferred = draft(&text, "ill");
        assert_eq!(inferred.schema.label.favourable, [Value::from("no")]);
        assert_eq!(inferred.schema.ignore, ["name", "y"]);
        assert!(says(&inferred, None, "Column `y` is ignored: it repeats column `x`"));
        assert!(says(&inferred, Some("status"), "alone it gives 100.0 % of the labels"));
        assert!(!says(&inferred, Some("region"), "give the label away"));
    }

    #[test]
    fn a_small_plain_table_is_left_alone() {
        let rows: String =
            (0..30).map(|row| format!("{},{},{}\n", row % 7, row % 5, row % 2)).collect();
        let inferred = draft(&format!("income,debt,good\n{rows}"), "good");
        assert_eq!(inferred.schema.label.favourable, [Value::Number(1.0)]);
        assert_eq!(inferred.schema.split, Split::AllTrain);
        assert!(inferred.schema.ignore.is_empty());
        assert!(inferred.schema.features.iter().all(|own| own.clip.is_none()));
    }
}
