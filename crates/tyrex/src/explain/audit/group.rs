//! Promises in groups: by the levels of a feature, or by ranges of its numbers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::written::{WrittenPromise, unknown};
use crate::data::value::parse_number;
use crate::data::{Feature, Schema, Value};
use crate::error::{Error, Result};

/// The maximum number of levels in a table of groups.
const LEVELS: usize = 60;
/// Numbers of a column that is in no schema are levels if there are at most this many.
const FEW: usize = 8;

/// How promises are grouped: `sex`, `age` (quartiles of the promises' own numbers), or
/// `age:25,40,60` (ranges between these edges). The values are those of the original rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Grouping {
    feature: String,
    edges: Vec<f64>,
}

impl Grouping {
    /// Groups by a feature: by ranges between edges, or by levels or quartiles without edges. An
    /// edge belongs to the range above it.
    pub(crate) fn new(feature: impl Into<String>, edges: Vec<f64>) -> Result<Self> {
        let feature = feature.into();
        let ascending = edges.windows(2).all(|pair| pair[0] < pair[1]);
        if feature.is_empty() || !ascending || edges.iter().any(|edge| !edge.is_finite()) {
            let given = Self { feature, edges };
            return Err(Error::param("by", given, "the name of a feature, and edges that rise"));
        }
        Ok(Self { feature, edges })
    }

    /// The feature.
    pub(crate) fn feature(&self) -> &str {
        &self.feature
    }
}

impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.feature)?;
        for (index, edge) in self.edges.iter().enumerate() {
            write!(f, "{}{edge}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl FromStr for Grouping {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (feature, edges) = match text.rsplit_once(':') {
            None => (text, Vec::new()),
            Some((feature, edges)) => {
                let edges: Option<Vec<f64>> = edges.split(',').map(parse_number).collect();
                let Some(edges) = edges else {
                    return Err(Error::param(
                        "by",
                        text,
                        "a feature such as sex, or one with edges such as age:25,40,60",
                    ));
                };
                (feature, edges)
            }
        };
        Self::new(feature, edges)
    }
}

impl TryFrom<String> for Grouping {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Grouping> for String {
    fn from(grouping: Grouping) -> Self {
        grouping.to_string()
    }
}

/// Promises in groups: each is in exactly one.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::explain) struct Partition {
    pub(in crate::explain) feature: String,
    pub(super) unit: Option<String>,
    /// The names of the groups, in the order of the table.
    pub(in crate::explain) names: Vec<String>,
    /// For each promise, its group.
    pub(in crate::explain) group_of: Vec<usize>,
}

impl Partition {
    /// The groups of promises. The levels are those of the first schema that has the feature, if
    /// any.
    pub(super) fn of<'a>(
        grouping: &Grouping,
        promises: &[WrittenPromise],
        mut schemas: impl Iterator<Item = &'a Schema>,
    ) -> Result<Self> {
        let feature = schemas.find_map(|schema| {
            schema.position(&grouping.feature).map(|position| &schema.features[position])
        });
        let values: Vec<Option<&Value>> = promises
            .iter()
            .map(|promise| promise.factual.as_ref()?.get(&grouping.feature))
            .collect();
        if values.iter().all(Option::is_none) && !promises.is_empty() {
            return Err(unknown(&grouping.feature, promises));
        }
        let texts: Vec<Option<String>> = values.iter().map(|value| known(*value)).collect();
        Self::of_texts(grouping, &texts, feature)
    }

    /// The groups of values, each `None` if it is not known.
    pub(in crate::explain) fn of_texts(
        grouping: &Grouping,
        texts: &[Option<String>],
        feature: Option<&Feature>,
    ) -> Result<Self> {
        let numbers: Vec<Option<f64>> =
            texts.iter().map(|text| text.as_deref().and_then(parse_number)).collect();
        let (names, group_of) = if !grouping.edges.is_empty() {
            check_edges(grouping, feature, &numbers)?;
            ranges(&grouping.edges, texts, &numbers)
        } else if are_numbers(feature, texts, &numbers) {
            ranges(&quartiles(&numbers), texts, &numbers)
        } else {
            levels(&grouping.feature, feature, texts)?
        };
        let unit = feature.and_then(|feature| feature.unit.clone());
        Ok(Self { feature: grouping.feature.clone(), unit, names, group_of })
    }
}

/// The text of a value that is not missing.
fn known(value: Option<&Value>) -> Option<String> {
    value.map(ToString::to_string).filter(|text| !text.is_empty())
}

/// Rejects edges for values that are not numbers.
fn check_edges(
    grouping: &Grouping,
    feature: Option<&Feature>,
    numbers: &[Option<f64>],
) -> Result<()> {
    let is_number = |level: &Value| parse_number(&level.to_string()).is_some();
    let between_numbers = match feature {
        Some(feature) => feature.kind.is_number() || feature.kind.levels().iter().all(is_number),
        None => numbers.is_empty() || numbers.iter().any(Option::is_some),
    };
    if between_numbers {
        return Ok(());
    }
    let name = &grouping.feature;
    let expected = format!("`{name}` without edges: its values are not numbers, each is a group");
    Err(Error::param("by", grouping, expected))
}

/// Whether a feature is numeric: by the schema, or by the values if it is in no schema.
fn are_numbers(feature: Option<&Feature>, texts: &[Option<String>], all: &[Option<f64>]) -> bool {
    if let Some(feature) = feature {
        return feature.kind.is_number();
    }
    let mut numbers: Vec<f64> = all.iter().copied().flatten().collect();
    let every = numbers.len() == texts.iter().flatten().count();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    every && numbers.len() > FEW
}

/// The quartiles, which divide the numbers into four groups of about equal size; fewer if many are
/// equal.
fn quartiles(numbers: &[Option<f64>]) -> Vec<f64> {
    let mut sorted: Vec<f64> = numbers.iter().copied().flatten().collect();
    sorted.sort_by(f64::total_cmp);
    let Some(&least) = sorted.first() else { return Vec::new() };
    let mut edges: Vec<f64> = [1, 2, 3].map(|quarter| sorted[sorted.len() * quarter / 4]).to_vec();
    edges.retain(|edge| *edge > least);
    edges.dedup();
    edges
}

/// Groups between edges, then one for values that are not numbers and one for unknown values.
fn ranges(
    edges: &[f64],
    texts: &[Option<String>],
    numbers: &[Option<f64>],
) -> (Vec<String>, Vec<usize>) {
    let mut names = Vec::new();
    // Without an exponent, the largest numbers have hundreds of digits.
    let text = |edge: f64| match edge.abs() {
        1e-6..1e15 | 0.0 => Value::Number(edge).to_string(),
        _ => format!("{edge:e}"),
    };
    match edges {
        [] => names.push("all numbers".to_owned()),
        [first, .., last] | [first @ last] => {
            names.push(format!("below {}", text(*first)));
            for pair in edges.windows(2) {
                names.push(format!("{} to below {}", text(pair[0]), text(pair[1])));
            }
            names.push(format!("{} and above", text(*last)));
        }
    }
    let (no_number, not_known) = (names.len(), names.len() + 1);
    let mut group_of: Vec<usize> = texts
        .iter()
        .zip(numbers)
        .map(|(text, number)| match (text, number) {
            (_, Some(number)) => edges.partition_point(|edge| edge <= number),
            (Some(_), None) => no_number,
            (None, None) => not_known,
        })
        .collect();
    for (group, name) in [(no_number, "no number"), (not_known, "not known")] {
        if group_of.contains(&group) {
            let own = names.len();
            names.push(name.to_owned());
            group_of.iter_mut().filter(|of| **of == group).for_each(|of| *of = own);
        }
    }
    (names, group_of)
}

/// A group for each level: first in the schema's order, then the others by name.
fn levels(
    name: &str,
    feature: Option<&Feature>,
    texts: &[Option<String>],
) -> Result<(Vec<String>, Vec<usize>)> {
    let declared = feature.map_or(&[][..], |feature| feature.kind.levels());
    // The schema's text of a level: `1` and `1.0` are the same number.
    let word = |text: &str| {
        declared
            .iter()
            .find(|level| level.matches(text))
            .map_or_else(|| text.to_owned(), Value::to_string)
    };
    let words: Vec<Option<String>> = texts.iter().map(|text| text.as_deref().map(word)).collect();
    let mut others: Vec<&String> = words.iter().flatten().collect();
    others.sort_unstable();
    others.dedup();
    let mut names: Vec<String> =
        declared.iter().map(Value::to_string).filter(|level| others.contains(&level)).collect();
    let rest: Vec<String> =
        others.into_iter().filter(|other| !names.contains(other)).cloned().collect();
    names.extend(rest);
    if names.len() > LEVELS {
        return Err(Error::param(
            "by",
            name,
            format!(
                "a feature with at most {LEVELS} different values, but there are {}; edges make \
                 groups of numbers, such as {name}:25,40,60",
                names.len()
            ),
        ));
    }
    let not_known = names.len();
    let place = |word: &Option<String>| match word {
        Some(word) => names.iter().position(|name| name == word).unwrap_or(not_known),
        None => not_known,
    };
    let group_of: Vec<usize> = words.iter().map(place).collect();
    if group_of.contains(&not_known) {
        names.push("not known".to_owned());
    }
    Ok((names, group_of))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn schema() -> Schema {
        Schema::from_toml(
            "format_version = 1\n[label]\ncolumn = \"y\"\nfavourable = 1\n\
             [[feature]]\nname = \"age\"\nkind = \"integer\"\nunit = \"years\"\n\
             [[feature]]\nname = \"sex\"\nkind = \"categorical\"\nlevels = [\"male\", \"female\"]\n\
             [[feature]]\nname = \"grade\"\nkind = \"ordinal\"\nlevels = [3, 2, 1]\n",
        )
        .unwrap()
    }

    fn promises(feature: &str, values: Vec<Option<Value>>) -> Vec<WrittenPromise> {
        let promise = |(index, value): (usize, Option<Value>)| WrittenPromise {
            name: index.to_string(),
            factual: value.map(|value| [(feature.to_owned(), value)].into()),
            advised: std::collections::BTreeMap::new(),
            meaning: None,
            promised: None,
        };
        values.into_iter().enumerate().map(promise).collect()
    }

    fn partition(grouping: &str, promises: &[WrittenPromise]) -> Partition {
        Partition::of(&grouping.parse().unwrap(), promises, [&schema()].into_iter()).unwrap()
    }

    /// Names and sizes.
    fn sizes(partition: &Partition) -> Vec<(&str, usize)> {
        let size = |index| partition.group_of.iter().filter(|&&group| group == index).count();
        partition.names.iter().enumerate().map(|(index, name)| (&**name, size(index))).collect()
    }

    fn numbers(values: &[f64]) -> Vec<Option<Value>> {
        values.iter().map(|&value| Some(value.into())).collect()
    }

    #[test]
    fn what_is_typed_is_read_back() {
        for text in ["sex", "age:25,40,60", "a:b:1", "x:-1.5,0"] {
            assert_eq!(text.parse::<Grouping>().unwrap().to_string(), text);
            let json = serde_json::to_string(&text.parse::<Grouping>().unwrap()).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Grouping>(&json).unwrap().to_string(), text);
        }
        for wrong in ["", "age:", "age:25,", "age:40,25", "age:25,25", "age:old", "age:nan", ":1"] {
            let error = wrong.parse::<Grouping>().unwrap_err().to_string();
            assert!(error.starts_with("parameter `by` is"), "{error}");
        }
    }

    #[test]
    fn an_edge_belongs_to_the_range_above() {
        let ages = promises("age", numbers(&[24.0, 25.0, 39.0, 40.0, 90.0]));
        assert_eq!(
            sizes(&partition("age:25,40,60", &ages)),
            [("below 25", 1), ("25 to below 40", 2), ("40 to below 60", 1), ("60 and above", 1)]
        );
        assert_eq!(sizes(&partition("age:25", &ages)), [("below 25", 1), ("25 and above", 4)]);
        assert_eq!(partition("age:25", &ages).unit.as_deref(), Some("years"));
        let far = partition("age:-1e308,0,1e-300,1e15", &ages);
        assert_eq!(far.names[1..3], ["-1e308 to below 0", "0 to below 1e-300"]);
        assert_eq!(far.names[4], "1e15 and above");
    }

    #[test]
    fn numbers_are_parted_by_their_quartiles() {
        let ages = promises("age", numbers(&(1..=8).map(f64::from).collect::<Vec<_>>()));
        assert_eq!(
            sizes(&partition("age", &ages)),
            [("below 3", 2), ("3 to below 5", 2), ("5 to below 7", 2), ("7 and above", 2)]
        );
        // If most are equal there are fewer groups, and none is empty.
        let same = promises("age", numbers(&[5.0, 5.0, 5.0, 5.0, 9.0]));
        assert_eq!(sizes(&partition("age", &same)), [("all numbers", 5)]);
        let two = promises("age", numbers(&[5.0, 5.0, 9.0, 9.0]));
        assert_eq!(sizes(&partition("age", &two)), [("below 9", 2), ("9 and above", 2)]);
    }

    #[test]
    fn levels_stand_in_the_schemas_order_and_others_behind() {
        let text = |text: &str| Some(Value::from(text));
        let sexes =
            promises("sex", vec![text("other"), text("female"), text("male"), None, text("")]);
        assert_eq!(
            sizes(&partition("sex", &sexes)),
            [("male", 1), ("female", 1), ("other", 1), ("not known", 2)]
        );
        // A number is the same level however it is written.
        let grades = promises("grade", vec![text("1.0"), Some(1.0.into()), text("3")]);
        assert_eq!(sizes(&partition("grade", &grades)), [("3", 1), ("1", 2)]);
        // A column that is in no schema: few numbers are levels, many are ranges.
        let few = promises("branch", numbers(&[1.0, 2.0, 2.0]));
        assert_eq!(sizes(&partition("branch", &few)), [("1", 1), ("2", 2)]);
        let many = promises("branch", numbers(&(0..20).map(f64::from).collect::<Vec<_>>()));
        assert_eq!(partition("branch", &many).names.len(), 4);
    }

    #[test]
    fn what_cannot_be_grouped_is_refused() {
        let message = |feature: &str, promises: &[WrittenPromise]| {
            let grouping = feature.parse().unwrap();
            Partition::of(&grouping, promises, [&schema()].into_iter()).unwrap_err().to_string()
        };
        let ages = promises("age", numbers(&[1.0]));
        assert_eq!(
            message("sex", &ages),
            "parameter `by` is sex, expected a column of the rows as they were: `age`"
        );
        let sexes = promises("sex", vec![Some("male".into())]);
        assert_eq!(
            message("sex:25", &sexes),
            "parameter `by` is sex:25, expected `sex` without edges: its values are not numbers, \
             each is a group"
        );
        let towns = promises("town", vec![Some("Ulm".into())]);
        assert!(message("town:25,40", &towns).contains("without edges"));
        let unknown = promises("age", vec![None]);
        assert!(message("age", &unknown).contains("not known"));
        let names: Vec<_> = (0..61).map(|n| Some(Value::from(&*format!("person {n}")))).collect();
        assert!(message("name", &promises("name", names)).contains("there are 61"));
    }

    fn any_value() -> impl Strategy<Value = Option<Value>> {
        prop_oneof![
            Just(None),
            Just(Some(Value::Missing)),
            (-5..40_i32).prop_map(|n| Some(Value::Number(f64::from(n) / 2.0))),
            (-5..40_i32).prop_map(|n| Some(Value::Text(n.to_string()))),
            "[a-c]{0,2}".prop_map(|text| Some(Value::Text(text))),
        ]
    }

    proptest! {
        /// Every promise is in exactly one group, whatever its value is.
        #[test]
        fn groups_part_the_promises(
            mut values in prop::collection::vec(any_value(), 1..60),
            edges in prop::collection::btree_set(-20..40_i32, 0..4),
            feature in prop_oneof![Just("age"), Just("sex"), Just("grade"), Just("branch")],
        ) {
            values.push(Some(Value::Number(1.0)));
            let mut edges: Vec<f64> = edges.into_iter().map(f64::from).collect();
            if feature == "sex" {
                edges.clear();
            }
            let grouping = Grouping::new(feature, edges.clone()).unwrap();
            let promises = promises(feature, values);
            let own = schema();
            let partition = Partition::of(&grouping, &promises, [&own].into_iter()).unwrap();
            prop_assert_eq!(partition.group_of.len(), promises.len());
            prop_assert!(partition.group_of.iter().all(|group| *group < partition.names.len()));
            let total: usize = sizes(&partition).iter().map(|(_, size)| size).sum();
            prop_assert_eq!(total, promises.len());
            let mut names = partition.names.clone();
            names.sort();
            names.dedup();
            prop_assert_eq!(names.len(), partition.names.len(), "{:?}", partition.names);
            // Only a requested range may be empty.
            if edges.is_empty() {
                prop_assert!(sizes(&partition).iter().all(|(_, size)| *size > 0));
            }
        }
    }
}
