//! Advice in words. Every front end prints these.

use serde::{Deserialize, Serialize};

use super::{Advice, FeatureChange};
use crate::data::schema::Action;
use crate::data::{Feature, FeatureKind, Value};

/// One change in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangeWords {
    /// The value before.
    pub from: String,
    /// The value after, with its unit.
    pub to: String,
    /// The change: "lower duration from 48 to 24 months".
    pub clause: String,
}

impl Advice {
    /// The advice as a sentence: "Lower duration from 48 to 24 months and set telephone to `yes`.";
    /// or the reason why there is no advice.
    pub fn sentence(&self) -> String {
        if let Some(reason) = self.outcome.reason() {
            return format!("No advice: {reason}.");
        }
        if self.advised.is_none() {
            let (changed, all) = (self.changed_count().unwrap_or(0), self.applicant.point.len());
            return format!(
                "The answer is a point, not a row: {changed} of {all} encoded columns change."
            );
        }
        let mut sentence = FeatureChange::in_words(&self.changes);
        if self.outcome.is_cut_short() {
            sentence.push_str(CUT_SHORT);
        }
        sentence
    }
}

/// Appended if the budget ended the search.
const CUT_SHORT: &str = " The budget was spent: a longer search may find cheaper advice.";

impl FeatureChange {
    /// Changes as one sentence.
    pub fn in_words(changes: &[Self]) -> String {
        let clauses: Vec<&str> = changes.iter().map(|change| &*change.words.clause).collect();
        let sentence = match clauses.as_slice() {
            [] => "Nothing has to change".to_owned(),
            [only] => (*only).to_owned(),
            [most @ .., last] => format!("{} and {last}", most.join(", ")),
        };
        let mut letters = sentence.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string());
        format!("{}{}.", first.unwrap_or_default(), letters.as_str())
    }

    /// A change of one feature.
    pub fn new(feature: &Feature, from: &Value, to: &Value) -> Self {
        let Feature { name, kind, unit, .. } = feature;
        // Rounded, unless that makes them equal.
        let alike = from.for_people() == to.for_people();
        let plain = |value: &Value| match value {
            Value::Missing => "(missing)".to_owned(),
            _ if alike => value.to_string(),
            _ => value.for_people(),
        };
        let named = matches!(kind, FeatureKind::Categorical { .. } | FeatureKind::Flag { .. });
        // A change to the number in words has to pass as well.
        let end = match to {
            Value::Number(_) if !alike && !named => {
                let beyond = to.for_people_from(from);
                let is_allowed = beyond.parse().is_ok_and(|number| is_allowed(feature, number));
                if is_allowed { beyond } else { to.to_string() }
            }
            _ => plain(to),
        };
        let quoted = |value: &Value, words: &str| match value {
            Value::Missing => words.to_owned(),
            Value::Number(_) if !named => words.to_owned(),
            _ => format!("`{words}`"),
        };
        let start = plain(from);
        let unit = match (unit, to) {
            (Some(unit), Value::Number(_)) if kind.is_number() => format!(" {unit}"),
            _ => String::new(),
        };
        let verb = match (from, to) {
            (Value::Number(from), Value::Number(to)) if !named && to > from => "raise",
            (Value::Number(_), Value::Number(_)) if !named => "lower",
            _ => "change",
        };
        let clause = match kind {
            _ if *from == Value::Missing => format!("provide {name}: {}{unit}", quoted(to, &end)),
            _ if *to == Value::Missing => format!("leave out {name}, now {}", quoted(from, &start)),
            FeatureKind::Flag { .. } => format!("set {name} to {}", quoted(to, &end)),
            _ => {
                format!("{verb} {name} from {} to {}{unit}", quoted(from, &start), quoted(to, &end))
            }
        };
        Self {
            feature: name.clone(),
            words: ChangeWords { from: start, to: end + &unit, clause },
            from: from.clone(),
            to: to.clone(),
            unit: feature.unit.clone(),
        }
    }
}

/// Whether the range and the interval of a feature hold this number.
fn is_allowed(feature: &Feature, number: f64) -> bool {
    let within = match &feature.action {
        Action::Within(interval) => Some(interval),
        _ => None,
    };
    feature.range.iter().chain(within).all(|interval| interval.contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::schema::Interval;

    fn change(name: &str, from: impl Into<Value>, to: impl Into<Value>) -> FeatureChange {
        let kind = match name {
            "amount" => FeatureKind::Numeric,
            "savings" => FeatureKind::Ordinal { levels: vec![] },
            "purpose" => FeatureKind::Categorical { levels: vec![] },
            _ => FeatureKind::Flag { values: [Value::Missing, Value::Missing] },
        };
        let feature = Feature { unit: Some("DM".to_owned()), ..Feature::new(name, kind) };
        FeatureChange::new(&feature, &from.into(), &to.into())
    }

    #[test]
    fn verbs_units_quotes_and_digits() {
        let none = Value::Missing;
        let cases = [
            (change("amount", 9_055.123_456, 3343.0), "lower amount from 9055.12 to 3343 DM"),
            (
                change("amount", 0.123_456_7, 0.123_456_8),
                "raise amount from 0.1234567 to 0.1234568 DM",
            ),
            // A change to the number in words goes at least as far.
            (change("amount", 49.35, 63.630_020_1), "raise amount from 49.35 to 63.6301 DM"),
            (change("amount", 70.0, 63.629_98), "lower amount from 70 to 63.6299 DM"),
            (change("amount", -1.0, -0.123_456_01), "raise amount from -1 to -0.123456 DM"),
            (change("amount", 1.0, -0.123_456_01), "lower amount from 1 to -0.123457 DM"),
            (change("amount", 5.0, 99_999.96), "raise amount from 5 to 100000 DM"),
            (change("amount", 5.0, 99_999.94), "raise amount from 5 to 100000 DM"),
            // Zeros before the point are digits.
            (change("amount", 120_000.4, 500_000.2), "raise amount from 120000 to 500001 DM"),
            (change("amount", 999_999.6, 120_000.4), "lower amount from 1000000 to 120000 DM"),
            (change("amount", none.clone(), 3.5), "provide amount: 3.5 DM"),
            (change("amount", 3.5, none.clone()), "leave out amount, now 3.5"),
            (change("telephone", none, "yes"), "provide telephone: `yes`"),
            (change("savings", "none", "some"), "change savings from `none` to `some`"),
            (change("savings", 2.0, 1.0), "lower savings from 2 to 1"),
            (change("purpose", 0.0, 1.0), "change purpose from `0` to `1`"),
            (change("telephone", "no", "yes"), "set telephone to `yes`"),
        ];
        for (change, clause) in cases {
            let ChangeWords { from, to, clause: own } = change.words;
            assert_eq!(own, clause);
            let ends = match () {
                () if own.starts_with("set") || own.starts_with("provide") => to,
                () if own.starts_with("leave out") => from,
                () => format!("{from} to {to}"),
            };
            assert!(clause.replace('`', "").ends_with(&ends), "{ends}");
        }
    }

    /// Rounding does not lead out of the interval of a feature.
    #[test]
    fn words_stay_inside_the_rules() {
        let interval = |upper| Interval { lower: 0.0, upper };
        let within = |range: Option<f64>, action: Option<f64>| Feature {
            range: range.map(interval),
            action: action.map_or(Action::Free, |upper| Action::Within(interval(upper))),
            ..Feature::new("amount", FeatureKind::Numeric)
        };
        let end = 63.630_02;
        for (feature, words) in [
            (within(None, None), "63.6301"),
            (within(Some(63.630_05), None), "63.63002"),
            (within(None, Some(63.630_05)), "63.63002"),
            (within(Some(64.0), Some(64.0)), "63.6301"),
        ] {
            let change = FeatureChange::new(&feature, &Value::Number(1.0), &Value::Number(end));
            assert_eq!(change.words.to, words, "{feature:?}");
        }
    }

    #[test]
    fn commas() {
        let all = ["a", "b", "c"].map(|name| change(name, 0.0, 1.0));
        assert_eq!(FeatureChange::in_words(&[]), "Nothing has to change.");
        assert_eq!(FeatureChange::in_words(&all[..1]), "Set a to `1`.");
        assert_eq!(FeatureChange::in_words(&all), "Set a to `1`, set b to `1` and set c to `1`.");
    }
}
