//! Rules between features: sums, ratios, and changes that need other changes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::check::check_interval;
use super::{Feature, FeatureKind, Interval, Schema};
use crate::data::listed;
use crate::data::value::Value;

/// A rule between features of the advised row, or between their changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RuleToml", into = "RuleToml")]
pub struct Rule {
    /// A short description of the rule.
    pub description: Option<String>,
    /// The requirement.
    pub relation: Relation,
}

/// The requirement of a rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Relation {
    /// `at_least <= sum of coefficient * feature <= at_most`
    Sum {
        /// The coefficient of each feature.
        terms: BTreeMap<String, f64>,
        /// The lower bound of the sum.
        at_least: Option<f64>,
        /// The upper bound of the sum.
        at_most: Option<f64>,
    },
    /// `at_least * divisor <= dividend <= at_most * divisor`, for a divisor that is never negative.
    Ratio {
        /// The feature that is divided.
        dividend: String,
        /// The feature that divides it. Its range has no negative numbers.
        divisor: String,
        /// The lower bound of the ratio.
        at_least: Option<f64>,
        /// The upper bound of the ratio.
        at_most: Option<f64>,
    },
    /// Where the first feature goes up, the second does; where it goes down, the second does.
    Monotone {
        /// The feature that another one follows.
        leader: String,
        /// The feature that follows.
        follower: String,
    },
    /// Where all changes of `condition` are made, all of `consequence` are.
    Implication {
        /// The changes that trigger it, by feature.
        condition: BTreeMap<String, Change>,
        /// The changes that it then requires, by feature.
        consequence: BTreeMap<String, Change>,
    },
}

/// How a value differs from the applicant's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A larger number or a later level.
    Up,
    /// A smaller number or an earlier level.
    Down,
    /// Another value.
    Any,
    /// The same, or a smaller number or an earlier level.
    NotUp,
    /// The same, or a larger number or a later level.
    NotDown,
    /// The same value.
    None,
    /// A number that is larger by a number in this interval.
    By(Interval),
    /// A number in this interval.
    Within(Interval),
    /// One of these levels.
    Levels(Vec<Value>),
}

impl Rule {
    /// The features that it is about.
    pub(crate) fn features(&self) -> Vec<&str> {
        match &self.relation {
            Relation::Sum { terms, .. } => terms.keys().map(String::as_str).collect(),
            Relation::Ratio { dividend, divisor, .. } => vec![dividend, divisor],
            Relation::Monotone { leader, follower } => vec![leader, follower],
            Relation::Implication { condition, consequence } => {
                condition.keys().chain(consequence.keys()).map(String::as_str).collect()
            }
        }
    }
}

/// A rule in TOML and JSON: the keys of one of four forms.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleToml {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    terms: Option<BTreeMap<String, f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ratio: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    monotone: Option<Vec<String>>,
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    condition: Option<BTreeMap<String, Change>>,
    #[serde(default, rename = "then", skip_serializing_if = "Option::is_none")]
    consequence: Option<BTreeMap<String, Change>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_least: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_most: Option<f64>,
}

impl TryFrom<RuleToml> for Rule {
    type Error = String;

    fn try_from(toml: RuleToml) -> Result<Self, String> {
        let RuleToml { description, at_least, at_most, .. } = toml;
        let is_bound = at_least.is_some() || at_most.is_some();
        // An array of serde would drop a third name of a TOML file.
        let pair = |key: &str, names: Vec<String>| {
            <[String; 2]>::try_from(names)
                .map_err(|names| format!("`{key}` has 2 features, found {}", names.len()))
        };
        let implied = (toml.condition, toml.consequence);
        let relation = match (toml.terms, toml.ratio, toml.monotone, implied) {
            (Some(terms), None, None, (None, None)) => Relation::Sum { terms, at_least, at_most },
            (None, Some(names), None, (None, None)) => {
                let [dividend, divisor] = pair("ratio", names)?;
                Relation::Ratio { dividend, divisor, at_least, at_most }
            }
            (None, None, Some(names), (None, None)) if !is_bound => {
                let [leader, follower] = pair("monotone", names)?;
                Relation::Monotone { leader, follower }
            }
            (None, None, None, (Some(condition), Some(consequence))) if !is_bound => {
                Relation::Implication { condition, consequence }
            }
            _ => {
                return Err(
                    "a rule has `terms` or `ratio`, with `at_least`, `at_most` or both; or \
                            `monotone`; or `if` and `then`; and not two of them"
                        .to_owned(),
                );
            }
        };
        Ok(Self { description, relation })
    }
}

impl From<Rule> for RuleToml {
    fn from(Rule { description, relation }: Rule) -> Self {
        let none = Self { description, ..Self::default() };
        match relation {
            Relation::Sum { terms, at_least, at_most } => {
                Self { terms: Some(terms), at_least, at_most, ..none }
            }
            Relation::Ratio { dividend, divisor, at_least, at_most } => {
                Self { ratio: Some(vec![dividend, divisor]), at_least, at_most, ..none }
            }
            Relation::Monotone { leader, follower } => {
                Self { monotone: Some(vec![leader, follower]), ..none }
            }
            Relation::Implication { condition, consequence } => {
                Self { condition: Some(condition), consequence: Some(consequence), ..none }
            }
        }
    }
}

impl Schema {
    /// Checks that a rule fits the features; else what is wrong with it.
    pub(crate) fn check_rule(&self, rule: &Rule) -> Result<(), String> {
        match &rule.relation {
            Relation::Sum { terms, at_least, at_most } => {
                if terms.is_empty() {
                    return Err("`terms` is empty".to_owned());
                }
                for (name, coefficient) in terms {
                    self.number(name)?;
                    if !coefficient.is_finite() {
                        return Err(format!("the coefficient of `{name}` is not finite"));
                    }
                }
                check_bounds(*at_least, *at_most)
            }
            Relation::Ratio { dividend, divisor, at_least, at_most } => {
                self.number(dividend)?;
                let below = self.number(divisor)?;
                if dividend == divisor {
                    return Err(format!("`ratio` divides `{dividend}` by itself"));
                }
                if below.range.is_none_or(|range| range.lower < 0.0) {
                    return Err(format!(
                        "`{divisor}` divides, so it needs a `range` without negative numbers"
                    ));
                }
                check_bounds(*at_least, *at_most)
            }
            Relation::Monotone { leader, follower } => {
                if leader == follower {
                    return Err(format!("`monotone` names `{leader}` twice"));
                }
                for change in [Change::Up, Change::Down] {
                    self.check_condition(leader, &change)?;
                    self.check_consequence(follower, &change)?;
                }
                Ok(())
            }
            Relation::Implication { condition, consequence } => {
                if condition.is_empty() || consequence.is_empty() {
                    return Err("expected at least one feature in `if` and in `then`".to_owned());
                }
                if let Some(name) = condition.keys().find(|name| consequence.contains_key(*name)) {
                    return Err(format!("`{name}` is both in `if` and in `then`"));
                }
                for (name, change) in condition {
                    self.check_condition(name, change)?;
                }
                for (name, change) in consequence {
                    self.check_consequence(name, change)?;
                }
                Ok(())
            }
        }
    }

    /// The feature, if it is a number.
    fn number(&self, name: &str) -> Result<&Feature, String> {
        let feature = self.named(name)?;
        if feature.kind.is_number() {
            Ok(feature)
        } else {
            Err(format!("`{name}` is not a number"))
        }
    }

    fn named(&self, name: &str) -> Result<&Feature, String> {
        let position = self.position(name).ok_or_else(|| format!("`{name}` is not a feature"))?;
        Ok(&self.features[position])
    }

    fn check_condition(&self, name: &str, change: &Change) -> Result<(), String> {
        check_change(self.named(name)?, change)?;
        let no_change = match change {
            Change::None | Change::NotUp | Change::NotDown => true,
            Change::By(interval) => interval.contains(0.0),
            _ => false,
        };
        if no_change {
            let words = change.in_words();
            return Err(format!(
                "`{name}` {words} holds for the applicant's own row, expected a change in `if`"
            ));
        }
        Ok(())
    }

    fn check_consequence(&self, name: &str, change: &Change) -> Result<(), String> {
        let feature = self.named(name)?;
        check_change(feature, change)?;
        let needs_step = matches!(change, Change::Up | Change::Down | Change::Any);
        if needs_step && feature.kind == FeatureKind::Numeric && feature.step.is_none() {
            return Err(format!(
                "`{name}` has no smallest change, so it cannot be required to go up or down or to \
                 change: give it a `step`, or say by how much: `by = [100, inf]`"
            ));
        }
        Ok(())
    }
}

fn check_bounds(at_least: Option<f64>, at_most: Option<f64>) -> Result<(), String> {
    match (at_least, at_most) {
        (None, None) => Err("expected `at_least`, `at_most` or both".to_owned()),
        (Some(lower), Some(upper)) if lower > upper => {
            Err(format!("`at_least` {lower} is above `at_most` {upper}"))
        }
        (lower, upper) if [lower, upper].iter().flatten().any(|end| !end.is_finite()) => {
            Err("`at_least` and `at_most` must be finite".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_change(feature: &Feature, change: &Change) -> Result<(), String> {
    let (name, kind) = (&feature.name, feature.kind.name());
    match change {
        Change::Any | Change::None => Ok(()),
        Change::Up | Change::Down | Change::NotUp | Change::NotDown => match feature.kind {
            FeatureKind::Categorical { .. } => {
                Err(format!("the levels of `{name}` have no order, so they go neither up nor down"))
            }
            _ => Ok(()),
        },
        Change::By(interval) | Change::Within(interval) => {
            let key = if matches!(change, Change::By(_)) { "by" } else { "within" };
            if !feature.kind.is_number() {
                return Err(format!("`{name}`: `{key}` goes with numbers, not with kind `{kind}`"));
            }
            check_interval(key, *interval).map_err(|problem| format!("`{name}`: {problem}"))
        }
        Change::Levels(_) if feature.kind.is_number() => {
            Err(format!("`{name}`: `levels` goes with levels, not with kind `{kind}`"))
        }
        Change::Levels(levels) if levels.is_empty() => {
            Err(format!("`{name}`: `levels` is empty, expected at least one"))
        }
        Change::Levels(levels) => {
            match levels.iter().find(|level| !feature.kind.levels().contains(level)) {
                Some(unknown) => Err(format!("`{name}` has no level `{unknown}`")),
                None => Ok(()),
            }
        }
    }
}

impl Change {
    /// The change in words, after the name of a feature: `up by 2 or more`.
    pub(crate) fn in_words(&self) -> String {
        let numbers = |interval: &Interval| {
            let Interval { lower, upper } = interval;
            match (lower.is_finite(), upper.is_finite()) {
                (true, true) if lower == upper => lower.to_string(),
                (true, true) => format!("{lower} to {upper}"),
                (true, false) => format!("{lower} or more"),
                (false, true) => format!("{upper} or less"),
                (false, false) => "any number".to_owned(),
            }
        };
        match self {
            Self::Up => "up".to_owned(),
            Self::Down => "down".to_owned(),
            Self::Any => "changed".to_owned(),
            Self::NotUp => "not up".to_owned(),
            Self::NotDown => "not down".to_owned(),
            Self::None => "unchanged".to_owned(),
            Self::By(interval) if interval.lower >= 0.0 => format!("up by {}", numbers(interval)),
            Self::By(interval) => format!("changed by {}", numbers(interval)),
            Self::Within(interval) => format!("at {}", numbers(interval)),
            Self::Levels(levels) => format!("one of {}", listed(levels)),
        }
    }
}

impl Relation {
    /// The formula: `12 * instalment - 0.3 * income <= 0`, `if education up then age up by 2 or more`.
    pub(crate) fn in_words(&self) -> String {
        let bound = |middle: String, at_least: &Option<f64>, at_most: &Option<f64>| {
            let lower = at_least.map_or_else(String::new, |lower| format!("{lower} <= "));
            let upper = at_most.map_or_else(String::new, |upper| format!(" <= {upper}"));
            format!("{lower}{middle}{upper}")
        };
        match self {
            Self::Sum { terms, at_least, at_most } => bound(sum_in_words(terms), at_least, at_most),
            Self::Ratio { dividend, divisor, at_least, at_most } => {
                bound(format!("{dividend} / {divisor}"), at_least, at_most)
            }
            Self::Monotone { leader, follower } => {
                format!("{follower} goes up with {leader}, and down with it")
            }
            Self::Implication { condition, consequence } => {
                let all = |changes: &BTreeMap<String, Change>| {
                    let each =
                        changes.iter().map(|(name, own)| format!("{name} {}", own.in_words()));
                    each.collect::<Vec<_>>().join(" and ")
                };
                format!("if {} then {}", all(condition), all(consequence))
            }
        }
    }
}

fn sum_in_words(terms: &BTreeMap<String, f64>) -> String {
    let mut words = String::new();
    for (index, (name, coefficient)) in terms.iter().enumerate() {
        words += match (index, *coefficient < 0.0) {
            (0, false) => "",
            (0, true) => "-",
            (_, false) => " + ",
            (_, true) => " - ",
        };
        words += &match coefficient.abs() {
            1.0 => name.clone(),
            size => format!("{size} * {name}"),
        };
    }
    words
}
