//! Constraints, and their violations by a row.

use std::fmt;

use serde::Serialize;

/// A constraint of a counterfactual.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Constraint {
    /// How a feature may change: its action, and its schema's range, step and levels.
    Feature(String),
    /// A linear rule between features.
    Rule {
        /// Its index among the schema's rules, from 0.
        index: usize,
        /// Its description, or its formula.
        words: String,
    },
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feature(name) => write!(f, "feature `{name}`"),
            Self::Rule { index, words } => write!(f, "rule {index} ({words})"),
        }
    }
}

/// A violated constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Violation {
    /// The constraint.
    pub constraint: Constraint,
    /// The value of the feature, or the sum of the rule.
    pub found: String,
    /// The allowed values for this factual.
    pub allowed: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { constraint, found, allowed } = self;
        write!(f, "{constraint}: found {found}, allowed is {allowed}")
    }
}
