//! A second look at a draft: columns that look like something else than their cells say.
//!
//! Names and simple statistics raise the doubts. Whatever is likely enough is put into the draft
//! (columns that identify rows, features that nobody can change, outliers that flatten a scale);
//! the rest is a remark. Both are for a person to confirm.

use std::collections::{BTreeMap, BTreeSet};

use super::{Inferred, Table};
use crate::auc::auc;
use crate::data::cell::listed;
use crate::data::schema::{Action, Feature, FeatureKind, Interval, Schema, Split};
use crate::data::table::Column;
use crate::data::value::{Value, parse_number};
use crate::error::Result;

/// Fewer rows show nothing.
const LEAST_ROWS: usize = 50;
/// Tables with fewer rows get no test part.
const LEAST_SPLIT: usize = 100;
/// The part of the rows that trains.
const TRAIN: f64 = 0.75;
/// The share of different values of a column that identifies rows.
const DIFFERENT: f64 = 0.95;
/// The AUC, or the accuracy of its levels, from which a single column gives the label away.
const LEAK: f64 = 0.98;
/// A number is an outlier if it is so many times as far from the median as 99 % of the column.
const FAR: f64 = 6.0;

/// Words in the name of a column that identifies rows.
const IDENTIFIERS: [&str; 5] = ["id", "uuid", "guid", "identifier", "ssn"];
/// Words in the name of a feature that nobody can change.
const UNCHANGEABLE: [&str; 13] = [
    "sex",
    "gender",
    "race",
    "ethnicity",
    "ethnic",
    "nationality",
    "citizenship",
    "native",
    "birth",
    "born",
    "birthday",
    "birthdate",
    "religion",
];
/// Words in the name of a label that is true for a bad outcome.
const BAD_OUTCOMES: [&str; 22] = [
    "default",
    "defaulted",
    "defaults",
    "bad",
    "churn",
    "churned",
    "exited",
    "attrition",
    "ill",
    "illness",
    "disease",
    "diabetes",
    "cancer",
    "stroke",
    "fraud",
    "fraudulent",
    "delinquent",
    "delinquency",
    "delinq",
    "dlqin",
    "death",
    "died",
];

/// Whether the name of a label says that its truth is a bad outcome.
pub(super) fn is_bad_outcome(name: &str) -> bool {
    words(name).iter().any(|word| BAD_OUTCOMES.contains(&word.as_str()))
}

/// The words of a name in small letters: `customerID` and `customer_id` have the same.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for letter in name.chars() {
        let begins = letter.is_uppercase() && after_small;
        if (begins || !letter.is_alphanumeric()) && words.last().is_some_and(|w| !w.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        after_small = letter.is_lowercase() || letter.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn has_word(name: &str, known: &[&str]) -> bool {
    words(name).iter().any(|word| known.contains(&word.as_str()))
}

/// Reviews all features of a draft.
pub(super) fn review(inferred: &mut Inferred, table: &Table) -> Result<()> {
    ignore_identifiers(inferred, table)?;
    let labels = labels(&inferred.schema, table);
    let mut notes = Vec::new();
    for index in 0..inferred.schema.features.len() {
        let mut feature = inferred.schema.features[index].clone();
        let column = table.column(&feature.name)?;
        let numbers = numbers(&inferred.schema, column);
        let mut doubts = vec![limited(&mut feature)];
        if feature.kind.is_number() {
            doubts.push(zeros(&numbers));
            doubts.push(outliers(&mut feature, &numbers));
        }
        doubts.push(leak(&feature, column, &numbers, &labels));
        notes.extend(doubts.into_iter().flatten().map(|text| (feature.name.clone(), text)));
        inferred.schema.features[index] = feature;
    }
    for (name, text) in notes {
        inferred.note(Some(&name), text);
    }
    if table.rows() >= LEAST_SPLIT && inferred.schema.split == Split::AllTrain {
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

/// Moves columns that identify rows, and copies of other columns, out of the features.
fn ignore_identifiers(inferred: &mut Inferred, table: &Table) -> Result<()> {
    let features = std::mem::take(&mut inferred.schema.features);
    let mut kept: Vec<Feature> = Vec::new();
    for feature in features {
        let column = table.column(&feature.name)?;
        let same = |other: &&Feature| {
            let other = table.column(&other.name);
            other.is_ok_and(|other| other.cells().eq(column.cells()))
        };
        let label = table.column(&inferred.schema.label.column);
        let reason = if identifies(column, &feature.kind) {
            Some("identifies the rows".to_owned())
        } else if label.is_ok_and(|label| label.cells().eq(column.cells())) {
            Some("repeats the label".to_owned())
        } else {
            kept.iter().find(same).map(|other| format!("repeats column `{}`", other.name))
        };
        let Some(reason) = reason else {
            kept.push(feature);
            continue;
        };
        inferred.note(None, format!("Column `{}` is ignored: it {reason}.", feature.name));
        inferred.schema.ignore.push(feature.name);
    }
    inferred.schema.features = kept;
    Ok(())
}

/// Whether nearly all cells differ, and the column is text or named as an identifier.
fn identifies(column: &Column, kind: &FeatureKind) -> bool {
    let different = column.cells().collect::<BTreeSet<_>>().len();
    let differs = different as f64 >= DIFFERENT * column.len() as f64;
    let is_named = has_word(column.name(), &IDENTIFIERS);
    match kind {
        _ if !differs || column.len() < 20 => false,
        FeatureKind::Categorical { .. } => true,
        FeatureKind::Integer => is_named,
        _ => false,
    }
}

/// The numbers of a column; `None` for other cells.
fn numbers(schema: &Schema, column: &Column) -> Vec<Option<f64>> {
    let is_missing = |cell: &str| schema.missing.tokens.iter().any(|token| token == cell);
    column.cells().map(|cell| parse_number(cell).filter(|_| !is_missing(cell))).collect()
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

/// Limits the changes of features with well-known names.
fn limited(feature: &mut Feature) -> Option<String> {
    if feature.action != Action::Free {
        return None;
    }
    if has_word(&feature.name, &UNCHANGEABLE) {
        feature.action = Action::Fixed;
        return Some("Nobody can change it, so its `action` is `fixed`.".to_owned());
    }
    let is_age = words(&feature.name).last().is_some_and(|word| word == "age");
    if is_age && feature.kind.is_number() {
        feature.action = Action::OnlyUp;
        return Some("An age only rises, so its `action` is `only-up`.".to_owned());
    }
    None
}

/// Zeros far below all other values, which may stand for missing ones.
fn zeros(numbers: &[Option<f64>]) -> Option<String> {
    let zeros = numbers.iter().flatten().filter(|number| **number == 0.0).count();
    let mut others: Vec<f64> = numbers.iter().flatten().copied().filter(|n| *n != 0.0).collect();
    others.sort_by(f64::total_cmp);
    let (&least, &most) = (others.first()?, others.last()?);
    let median = others[others.len() / 2];
    // Counts and amounts have small values between zero and the usual ones.
    let is_apart = least >= 5.0 && least >= 0.1 * median;
    (zeros > 0 && is_apart && others.len() >= LEAST_ROWS).then(|| {
        format!(
            "{zeros} of {} cells are 0, and the others are {least} or more. If 0 means missing, set \
             `range = [{least}, {most}]` and `special = {{ values = [0], as = \"level\" }}`.",
            numbers.len(),
        )
    })
}

/// Clips a column whose outliers would flatten its scale.
fn outliers(feature: &mut Feature, numbers: &[Option<f64>]) -> Option<String> {
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
    feature.clip = Some(clip);
    let place = match (below, above) {
        (true, true) => format!("{} and {}", Value::Number(least), Value::Number(most)),
        (true, false) => Value::Number(least).to_string(),
        _ => Value::Number(most).to_string(),
    };
    Some(format!(
        "It reaches {place}, but 99 % lie between {} and {}. `clip` keeps the outliers from \
         flattening its scale; check whether they are errors.",
        Value::Number(clip.lower),
        Value::Number(clip.upper)
    ))
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
        // Many small levels would fit any label.
        let is_shown = accuracy >= LEAK && base <= 0.9 && rows >= 20 * counts.len();
        is_shown.then(|| format!("alone it gives {:.1} % of the labels", 100.0 * accuracy))
    };
    shown.map(|shown| {
        format!(
            "It may give the label away: {shown}. If it is known only after the outcome, move it to \
             `ignore`."
        )
    })
}

/// Names the features that advice may change in any way.
fn remark_on_free(inferred: &mut Inferred) {
    let free: Vec<&str> = inferred
        .schema
        .features
        .iter()
        .filter(|feature| feature.action == Action::Free)
        .map(|feature| feature.name.as_str())
        .collect();
    if !free.is_empty() {
        let text = format!(
            "Advice may change {} in any way. Confirm this, or give them an `action`.",
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
        let inferred = Schema::draft(&table, Some(label), &[]).unwrap();
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
    fn words_of_names() {
        for (name, expected) in [
            ("customerID", &["customer", "id"][..]),
            ("CUSTOMER_ID", &["customer", "id"]),
            ("Age", &["age"]),
            ("mortgage", &["mortgage"]),
            ("SeriousDlqin2yrs", &["serious", "dlqin2yrs"]),
            ("place-of birth", &["place", "of", "birth"]),
            ("", &[]),
        ] {
            assert_eq!(words(name), expected, "{name}");
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
        assert_eq!(feature(&inferred, "mortgage").action, Action::Free);
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
