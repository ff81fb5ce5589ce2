//! Advice as a sentence.

use super::{Advice, FeatureChange};
use crate::data::schema::{Feature, FeatureKind, Schema};
use crate::data::value::Value;

impl Advice {
    /// The advice as a sentence: "Lower duration from 48 to 24 months and set telephone to `yes`.";
    /// or the reason why there is no advice.
    #[must_use]
    pub fn sentence(&self, schema: &Schema) -> String {
        if let Some(reason) = self.outcome.reason() {
            return format!("No advice: {reason}.");
        }
        if self.advised.is_none() {
            let (changed, all) = (self.changed_count().unwrap_or(0), self.applicant.point.len());
            return format!(
                "The answer is a point, not a row: {changed} of {all} encoded columns change."
            );
        }
        let mut sentence = in_words(&self.changes, schema);
        if self.outcome.is_cut_short() {
            sentence.push_str(CUT_SHORT);
        }
        sentence
    }
}

/// Appended if the budget ended the search.
const CUT_SHORT: &str = " The budget was spent: a longer search may find cheaper advice.";

/// Changes as one sentence.
pub(super) fn in_words(changes: &[FeatureChange], schema: &Schema) -> String {
    let clauses: Vec<String> = changes
        .iter()
        .filter_map(|change| Some(clause(change, schema.features.get(change.position)?)))
        .collect();
    let sentence = match clauses.as_slice() {
        [] => "Nothing has to change".to_owned(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    };
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

/// One change as a clause.
fn clause(FeatureChange { feature: name, from, to, .. }: &FeatureChange, is: &Feature) -> String {
    let value = |value: &Value| match (value, &is.kind) {
        (Value::Missing, _) => "(missing)".to_owned(),
        (Value::Number(_), FeatureKind::Categorical { .. } | FeatureKind::Flag { .. })
        | (Value::Text(_), _) => format!("`{value}`"),
        (Value::Number(_), _) => value.for_people(),
    };
    let verb = match (&is.kind, from, to) {
        (FeatureKind::Flag { .. }, ..) => return format!("set {name} to {}", value(to)),
        (FeatureKind::Categorical { .. }, ..) => "change",
        (_, Value::Number(from), Value::Number(to)) if to > from => "raise",
        (_, Value::Number(_), Value::Number(_)) => "lower",
        _ => "change",
    };
    let unit = match (&is.unit, to) {
        (Some(unit), Value::Number(_)) if is.kind.is_number() => format!(" {unit}"),
        _ => String::new(),
    };
    format!("{verb} {name} from {} to {}{unit}", value(from), value(to))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let feature = &schema().features[position];
        FeatureChange {
            position,
            feature: feature.name.clone(),
            from: from.into(),
            to: to.into(),
            unit: feature.unit.clone(),
        }
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
            assert_eq!(in_words(&changes, &schema()), expected);
        }
    }
}
