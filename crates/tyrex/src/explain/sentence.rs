//! Advice in words. Every front end prints these.

use serde::{Deserialize, Serialize};

use super::{Advice, FeatureChange};
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
    #[must_use]
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
        let mut sentence = in_words(&self.changes);
        if self.outcome.is_cut_short() {
            sentence.push_str(CUT_SHORT);
        }
        sentence
    }
}

/// Appended if the budget ended the search.
const CUT_SHORT: &str = " The budget was spent: a longer search may find cheaper advice.";

/// Changes as one sentence.
pub(super) fn in_words(changes: &[FeatureChange]) -> String {
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

impl FeatureChange {
    /// A change of one feature.
    #[must_use]
    pub fn new(feature: &Feature, from: &Value, to: &Value) -> Self {
        Self {
            feature: feature.name.clone(),
            from: from.clone(),
            to: to.clone(),
            unit: feature.unit.clone(),
            words: ChangeWords::new(feature, from, to),
        }
    }
}

impl ChangeWords {
    fn new(Feature { name, kind, unit, .. }: &Feature, before: &Value, after: &Value) -> Self {
        // Rounded, unless that makes them equal.
        let alike = before.for_people() == after.for_people();
        let plain = |value: &Value| match value {
            Value::Missing => "(missing)".to_owned(),
            _ if alike => value.to_string(),
            _ => value.for_people(),
        };
        let has_names = matches!(kind, FeatureKind::Categorical { .. } | FeatureKind::Flag { .. });
        let quoted = |value: &Value, words: &str| match value {
            Value::Number(_) if has_names => format!("`{words}`"),
            Value::Text(_) => format!("`{words}`"),
            Value::Number(_) | Value::Missing => words.to_owned(),
        };
        let (from, mut to) = (plain(before), plain(after));
        if let (Some(unit), Value::Number(_), true) = (unit, after, kind.is_number()) {
            to = format!("{to} {unit}");
        }
        let verb = match (before, after) {
            (Value::Number(before), Value::Number(after)) if !has_names => {
                if after > before {
                    "raise"
                } else {
                    "lower"
                }
            }
            _ => "change",
        };
        let (old, new) = (quoted(before, &from), quoted(after, &to));
        let clause = match kind {
            FeatureKind::Flag { .. } => format!("set {name} to {new}"),
            _ => format!("{verb} {name} from {old} to {new}"),
        };
        Self { from, to, clause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Schema;

    fn schema() -> Schema {
        Schema::from_toml(
            r#"
format_version = 1
[label]
column = "paid"
favourable = "yes"
[[feature]]
name = "amount"
kind = "numeric"
unit = "DM"
[[feature]]
name = "duration"
kind = "integer"
[[feature]]
name = "savings"
kind = "ordinal"
levels = ["none", "some"]
[[feature]]
name = "rate"
kind = "ordinal"
levels = [1, 2, 3]
[[feature]]
name = "purpose"
kind = "categorical"
levels = [0, 1]
[[feature]]
name = "telephone"
kind = "flag"
levels = ["no", "yes"]
"#,
        )
        .unwrap()
    }

    fn change(position: usize, from: impl Into<Value>, to: impl Into<Value>) -> FeatureChange {
        FeatureChange::new(&schema().features[position], &from.into(), &to.into())
    }

    #[test]
    fn verbs_units_and_commas() {
        let amount = || change(0, 9_055.123_456, 3343.0);
        let cases = [
            (vec![], "Nothing has to change."),
            (vec![amount()], "Lower amount from 9055.12 to 3343 DM."),
            (vec![change(0, Value::Missing, 3.5)], "Change amount from (missing) to 3.5 DM."),
            (vec![change(1, 12.0, 24.0)], "Raise duration from 12 to 24."),
            (
                vec![change(0, 0.123_456_7, 0.123_456_8)],
                "Raise amount from 0.1234567 to 0.1234568 DM.",
            ),
            (
                vec![amount(), change(2, "none", "some")],
                "Lower amount from 9055.12 to 3343 DM and change savings from `none` to `some`.",
            ),
            (
                vec![change(3, 2.0, 1.0), change(4, 0.0, 1.0), change(5, "no", "yes")],
                "Lower rate from 2 to 1, change purpose from `0` to `1` and set telephone to \
                 `yes`.",
            ),
        ];
        for (changes, expected) in cases {
            assert_eq!(in_words(&changes), expected);
        }
    }

    #[test]
    fn values_are_quoted_in_clauses_only() {
        let words = |change: FeatureChange| (change.words.from, change.words.to);
        let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        assert_eq!(words(change(0, Value::Missing, 3.5)), pair("(missing)", "3.5 DM"));
        assert_eq!(words(change(0, 3.5, Value::Missing)), pair("3.5", "(missing)"));
        assert_eq!(words(change(2, "none", "some")), pair("none", "some"));
        assert_eq!(words(change(5, "no", "yes")), pair("no", "yes"));
    }
}
