//! The threshold of a method, calibrated on the rows a model rejects.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{Explainer, Part, THRESHOLD};
use crate::action::{Actions, FeasibleSet};
use crate::calibrate::{Calibration, Goal, calibrate};
use crate::change::Ensemble;
use crate::counterfactual::{
    Budget, Factual, MethodSpec, Norm, Problem, Protocol, Reason, find_all,
};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::seed::Seed;

/// What is calibrated, and on what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationTerms {
    /// The promise.
    pub goal: Goal,
    /// The thresholds to try.
    pub taus: Vec<f64>,
    /// The method; its own threshold is not read.
    pub method: MethodSpec,
    /// Whether answers are rows that obey the rules, or any points.
    pub protocol: Protocol,
    /// What a change costs.
    pub norm: Norm,
    /// The most work for one factual and threshold.
    pub budget: Budget,
    /// The most rejected rows to search for; the first ones are taken.
    pub factuals: usize,
    /// Where the search's randomness comes from.
    pub seed: Seed,
}

impl Explainer {
    /// Searches for counterfactuals of the rejected applicants with every threshold, and
    /// chooses the threshold by what retrained models say of them.
    ///
    /// `watch` hears whenever one search of all is done.
    pub fn calibrate(
        &self,
        terms: &CalibrationTerms,
        ensemble: &Ensemble,
        watch: impl Fn() -> ControlFlow<()> + Sync,
    ) -> Result<Calibration> {
        let mut method = terms.method.clone();
        if method.robustness().is_none() {
            return Err(Error::param(
                "method",
                method.name(),
                "a method with a threshold of stability: trex-i, trex-o or trex-nn",
            ));
        }
        let rows = self.factuals(self.data().applicants(), terms.factuals)?;
        let sets = self.feasible_sets(&rows, terms.protocol)?;
        let factuals: Vec<Factual> = rows
            .iter()
            .zip(&sets)
            .map(|(&row, set)| Factual::new(self.points().row(row), set))
            .collect();
        let data = self.points().select(&self.training_rows());
        let problem = Problem::new(self.model(), terms.norm, &data)?;
        let members: Vec<&dyn Model> =
            ensemble.members().iter().map(|member| member as &dyn Model).collect();
        calibrate(&terms.goal, &terms.taus, &members, |tau| {
            if let Some(robustness) = method.robustness_mut() {
                robustness.tau = tau;
            }
            let prepared = method.prepare(&problem, terms.seed)?;
            let outcomes = find_all(&problem, &*prepared, &factuals, terms.budget, &watch)?;
            match outcomes.iter().find(|found| found.reason() == Some(Reason::Cancelled)) {
                None => Ok(outcomes),
                Some(_) => Err(Error::Cancelled("not all thresholds were tried".to_owned())),
            }
        })
    }

    /// The first rejected rows of a part, as indices into the rows.
    fn factuals(&self, part: Part, most: usize) -> Result<Vec<usize>> {
        let mut rows = self.data().part(part);
        rows.sort_unstable();
        rows.retain(|&row| self.scores()[row] < THRESHOLD);
        rows.truncate(most);
        if rows.is_empty() {
            return Err(Error::Table {
                file: self.data().source().to_owned(),
                problem: "no row to search for, expected at least one that the model rejects"
                    .to_owned(),
            });
        }
        Ok(rows)
    }

    /// Where the counterfactuals of rows may lie.
    fn feasible_sets(&self, rows: &[usize], protocol: Protocol) -> Result<Vec<FeasibleSet>> {
        match protocol {
            Protocol::Product => {
                let actions = Actions::new(self.schema(), self.encoder())?;
                rows.iter().map(|&row| actions.for_factual(&self.data().rows()[row])).collect()
            }
            Protocol::Paper | Protocol::Reference => {
                Ok(vec![FeasibleSet::everywhere(self.points().dim()); rows.len()])
            }
        }
    }
}
