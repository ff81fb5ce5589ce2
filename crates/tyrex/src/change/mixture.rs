//! Several changes, of which each member undergoes one.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::member::{Base, Change, Member};
use super::{Bootstrap, ModelChange, Reinitialise};
use crate::error::{Error, Result};
use crate::model::TrainParams;
use crate::seed::Seed;

/// One of several changes, drawn for each member from its own seed. Each is as likely; a change
/// that is listed twice is twice as likely.
///
/// Members are independent draws from the mixture of the changes' distributions, so they are
/// exchangeable, and a statement about the next model is about a model changed in one of these
/// ways. It is not a statement about each of them: with two changes, a promise of 0.9 can be kept
/// by 1 under one of them and 0.8 under the other.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `changes` | `reinitialise` and `bootstrap` | the changes to draw from | at least two, none of them a mixture |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "Changes")]
pub struct Mixture {
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    changes: Vec<ModelChange>,
}

/// A mixture that is not checked yet.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Changes {
    changes: Vec<ModelChange>,
}

impl Default for Changes {
    fn default() -> Self {
        Self { changes: Mixture::default().changes }
    }
}

impl TryFrom<Changes> for Mixture {
    type Error = Error;

    fn try_from(read: Changes) -> Result<Self> {
        Self::new(read.changes)
    }
}

impl Default for Mixture {
    fn default() -> Self {
        Self { changes: vec![Reinitialise {}.into(), Bootstrap {}.into()] }
    }
}

impl Mixture {
    /// A mixture of at least two changes, none of which is a mixture.
    pub(crate) fn new(changes: Vec<ModelChange>) -> Result<Self> {
        let names = || changes.iter().map(ModelChange::name).collect::<Vec<_>>().join(",");
        if changes.len() < 2 {
            return Err(Error::param("changes", format!("[{}]", names()), "at least two changes"));
        }
        if changes.iter().any(|change| matches!(change, ModelChange::Mixture(_))) {
            let expected = "changes that are not mixtures; list all changes in one mixture";
            return Err(Error::param("changes", format!("[{}]", names()), expected));
        }
        Ok(Self { changes })
    }
}

impl Change for Mixture {
    fn description(&self) -> String {
        let all: Vec<String> = self.changes.iter().map(ModelChange::description).collect();
        format!("one of {} changes, drawn for each model: {}", all.len(), all.join("; or "))
    }

    fn check(&self, base: &Base<'_>) -> Result<()> {
        self.changes.iter().try_for_each(|change| change.kind().check(base))
    }

    fn member<'a>(&self, base: &Base<'a>, seed: Seed) -> Result<Member<'a>> {
        let drawn = seed.derive("mixture").rng().random_range(0..self.changes.len());
        self.changes[drawn].kind().member(base, seed)
    }

    fn repeats(&self) -> bool {
        self.changes.iter().any(ModelChange::repeats)
    }

    fn epochs(&self, params: &TrainParams) -> f64 {
        let total: f64 = self.changes.iter().map(|change| change.epochs(params)).sum();
        total / self.changes.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::LeaveOut;
    use crate::change::member::tests::Sample;

    fn read(text: &str) -> serde_json::Result<ModelChange> {
        serde_json::from_str(text)
    }

    #[test]
    fn every_change_is_as_likely_and_is_the_change_itself() {
        let sample = Sample::new(40);
        let (left, drawn) = (LeaveOut { fraction: 0.25 }, Bootstrap {});
        let changes = vec![Reinitialise {}.into(), left.into(), drawn.into()];
        let mixture = Mixture::new(changes).unwrap();
        let mut times = [0_u32; 3];
        for number in 0..3000 {
            let rows = sample.training(&mixture, number).rows;
            let own: [&dyn Change; 3] = [&Reinitialise {}, &left, &drawn];
            let found = own.iter().position(|own| sample.training(*own, number).rows == rows);
            times[found.expect("the rows of one of the changes, with the same seed")] += 1;
        }
        // 1000 expected, with a standard deviation of 26.
        assert!(times.iter().all(|&times| times.abs_diff(1000) < 130), "{times:?}");
    }

    #[test]
    fn the_epochs_are_the_mean() {
        let params = TrainParams { epochs: 40, ..TrainParams::paper() };
        let text = r#"{"name": "mixture", "changes":
            [{"name": "reinitialise"}, {"name": "fine-tune", "epochs": 5}, {"name": "dropout"}]}"#;
        assert!((read(text).unwrap().epochs(&params) - 15.0).abs() < 1e-12);
    }

    #[test]
    fn a_mixture_names_its_changes_and_checks_them() {
        let mixture = read(
            r#"{"name": "mixture", "changes": [{"name": "bootstrap"}, {"name": "leave-out"}]}"#,
        );
        assert_eq!(
            mixture.unwrap().description(),
            "one of 2 changes, drawn for each model: trained again on as many rows drawn with \
             replacement, from new weights; or trained again without 1 % of the rows, from new \
             weights"
        );
        let wrong = vec![Reinitialise {}.into(), LeaveOut { fraction: 2.0 }.into()];
        let error = Sample::new(9).check(&Mixture::new(wrong).unwrap()).unwrap_err().to_string();
        assert_eq!(error, "parameter `fraction` is 2, expected a number between 0 and 1");
    }

    #[test]
    fn mixtures_of_less_than_two_changes_or_of_mixtures_are_refused() {
        for (changes, expected) in [
            ("[]", "`changes` is [], expected at least two changes"),
            (r#"[{"name": "bootstrap"}]"#, "`changes` is [bootstrap], expected at least two"),
            (
                r#"[{"name": "bootstrap"}, {"name": "mixture"}]"#,
                "`changes` is [bootstrap,mixture], expected changes that are not mixtures",
            ),
            (r#"[{"name": "bootstrap"}, {"name": "other"}]"#, "unknown variant `other`"),
        ] {
            let text = format!(r#"{{"name": "mixture", "changes": {changes}}}"#);
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
