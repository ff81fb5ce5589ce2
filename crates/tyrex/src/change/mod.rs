//! How models change: with new weights, without some rows, or against one point on purpose.
//!
//! A [`ModelChange`] is a random way to make another model; an [`Ensemble`] is a base model
//! and what such a change made of it, many times. Every statement about retrained models
//! speaks about one change, by name. [`Targeted`] stands apart: it is not random, so no
//! ensemble can be made of it and no certificate covers it.

mod ensemble;
mod folder;
mod leave_out;
mod observed;
mod reinitialise;
mod targeted;

pub use ensemble::{Ensemble, Plan};
pub use folder::MANIFEST;
pub use leave_out::LeaveOut;
pub use observed::ObservedChange;
pub use reinitialise::Reinitialise;
pub use targeted::Targeted;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::seed::Seed;

/// A random way in which a model changes when it is trained again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum ModelChange {
    /// New weights and another order of the rows.
    Reinitialise(Reinitialise),
    /// The same, without some of the rows.
    LeaveOut(LeaveOut),
}

/// What one change does to one member of an ensemble.
trait Retraining {
    /// The name that people type, as it stands in files.
    fn name(&self) -> &'static str;

    /// What it does, for people.
    fn description(&self) -> String;

    /// Whether the parameters are in their range, for so many rows.
    fn check(&self, rows: usize) -> Result<()>;

    /// The rows to train on, of those the base model was trained on.
    fn rows<'a>(&self, rows: &'a [usize], seed: Seed) -> Cow<'a, [usize]>;
}

impl ModelChange {
    /// One of each, with the parameters of the paper.
    pub const ALL: [Self; 2] =
        [Self::Reinitialise(Reinitialise {}), Self::LeaveOut(LeaveOut::ONE_PERCENT)];

    /// The change of that name, with the parameters of the paper.
    pub fn named(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|change| change.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(Self::name).collect();
            Error::param("change", name, format!("one of {}", names.join(", ")))
        })
    }

    /// The name that people type, as it stands in files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.retraining().name()
    }

    /// The change with its parameters, for people.
    #[must_use]
    pub fn description(&self) -> String {
        self.retraining().description()
    }

    fn retraining(&self) -> &dyn Retraining {
        match self {
            Self::Reinitialise(change) => change,
            Self::LeaveOut(change) => change,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_named_alike_in_files_and_by_people() {
        for change in ModelChange::ALL {
            assert_eq!(ModelChange::named(change.name()).unwrap(), change);
            let text = serde_json::to_value(change).unwrap();
            assert_eq!(text["name"], change.name());
            assert_eq!(serde_json::from_value::<ModelChange>(text).unwrap(), change);
        }
    }

    #[test]
    fn parameters_may_be_left_out_but_not_misspelt() {
        let read = serde_json::from_str::<ModelChange>;
        assert_eq!(
            read(r#"{"name": "leave-out"}"#).unwrap(),
            ModelChange::LeaveOut(LeaveOut { fraction: 0.01 })
        );
        for wrong in [
            r#"{"name": "leave-out", "share": 0.1}"#,
            r#"{"name": "reinitialise", "fraction": 0.1}"#,
            r#"{"name": "targeted"}"#,
            r"{}",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = ModelChange::named("retrain").unwrap_err().to_string();
        assert_eq!(error, "parameter `change` is retrain, expected one of reinitialise, leave-out");
    }
}
