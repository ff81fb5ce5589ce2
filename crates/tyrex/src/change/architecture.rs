//! Retraining with other hidden layers.

use std::borrow::Cow;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::member::{Base, Change, Member, Training};
use crate::error::{Error, Result};
use crate::model::TrainParams;
use crate::seed::Seed;

/// Hidden layers drawn from a list, and new weights.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `hidden` | one, two or three layers, all 64, 128 or 256 wide | the lists of widths to draw from, each as likely | at least one list; every width at least 1 |
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Architecture {
    /// The widths of the hidden layers, one list for each choice.
    pub hidden: Vec<Vec<usize>>,
}

impl Default for Architecture {
    fn default() -> Self {
        let choices = (1..=3).flat_map(|layers| [64, 128, 256].map(|width| vec![width; layers]));
        Self { hidden: choices.collect() }
    }
}

impl Change for Architecture {
    fn description(&self) -> String {
        format!(
            "trained again with hidden layers drawn from {} choices, from new weights",
            self.hidden.len()
        )
    }

    fn check(&self, _: &Base<'_>) -> Result<()> {
        let wrong = |value: &dyn std::fmt::Debug, expected| {
            Err(Error::param("hidden", format!("{value:?}"), expected))
        };
        if self.hidden.is_empty() {
            return wrong(&self.hidden, "at least one list of widths to draw from");
        }
        match self.hidden.iter().find(|widths| widths.contains(&0)) {
            Some(widths) => wrong(widths, "widths of at least 1"),
            None => Ok(()),
        }
    }

    fn member<'a>(&self, base: &Base<'a>, seed: Seed) -> Result<Member<'a>> {
        let drawn = seed.derive("architecture").rng().random_range(0..self.hidden.len());
        let params = TrainParams { hidden: self.hidden[drawn].clone(), ..base.params.clone() };
        Ok(Training { params: Cow::Owned(params), ..base.again() }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::member::tests::Sample;

    #[test]
    fn every_choice_is_as_likely_and_nothing_else_changes() {
        let sample = Sample::new(3);
        let change = Architecture::default();
        assert_eq!(change.hidden.len(), 9);
        assert_eq!(change.hidden[0], [64]);
        assert_eq!(change.hidden[8], [256, 256, 256]);
        let mut times = [0_u32; 9];
        for number in 0..9000 {
            let training = sample.training(&change, number);
            let drawn = change.hidden.iter().position(|widths| *widths == training.params.hidden);
            times[drawn.unwrap()] += 1;
            assert_eq!(training.rows, sample.rows);
            assert!(training.start.is_none());
            let params = TrainParams { hidden: vec![], ..training.params.into_owned() };
            assert_eq!(params, sample.params);
        }
        // 1000 expected, with a standard deviation of 30.
        assert!(times.iter().all(|&times| times.abs_diff(1000) < 150), "{times:?}");
    }

    #[test]
    fn lists_that_are_no_choice_are_refused() {
        for (hidden, expected) in [
            (vec![], "parameter `hidden` is [], expected at least one list of widths to draw from"),
            (
                vec![vec![4], vec![8, 0]],
                "parameter `hidden` is [8, 0], expected widths of at least 1",
            ),
        ] {
            let error = Sample::new(3).check(&Architecture { hidden }).unwrap_err().to_string();
            assert_eq!(error, expected);
        }
        // Without a hidden layer it is a linear model.
        Sample::new(3).check(&Architecture { hidden: vec![vec![]] }).unwrap();
    }
}
