//! A comparison of methods: one cell for each contender, norm and base.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tyrex::counterfactual::Norm;
use tyrex::error::Result;
use tyrex::metric::{Summary, Validity, found_points, label_agreement};
use tyrex::model::Model;
use tyrex::points::Points;

use super::calibration;
use super::contender::Contender;
use super::progress::{Share, Tracker};
use super::result::{Answered, Cell, Comparison, Family, Found, Timing};
use super::setup::Setup;
use super::spec::{ComparisonTask, World};
use super::store::Store;

/// A result and its time.
#[derive(Debug, Serialize, Deserialize)]
struct Timed<T> {
    value: T,
    timing: Timing,
}

/// A comparison to run.
pub(super) struct Run<'a> {
    pub(super) name: &'a str,
    pub(super) world: &'a World,
    pub(super) task: &'a ComparisonTask,
    pub(super) setup: &'a Setup,
    pub(super) store: &'a Store,
    /// The seed of the suite, which also determines the result.
    pub(super) key: &'a str,
}

/// The steps of a comparison: the cells, and a calibration for each norm of some contenders.
pub(super) fn steps(world: &World, task: &ComparisonTask) -> Result<usize> {
    let contenders = task.contenders()?;
    let calibrated = contenders.iter().filter(|contender| contender.calibrated).count();
    Ok(task.norms.len() * (contenders.len() * world.bases + calibrated))
}

impl Run<'_> {
    /// Runs the missing pieces.
    pub(super) fn run(&self, tracker: &Tracker<'_>) -> Result<(Comparison, Vec<Timing>)> {
        let (mut cells, mut calibrations, mut timings) = (Vec::new(), Vec::new(), Vec::new());
        for contender in self.task.contenders()? {
            for &norm in &self.task.norms {
                let label = format!("{} {}", contender.full_label(), norm.name());
                let contender = if contender.calibrated {
                    let calibration = &self.task.calibration;
                    let doing = format!("{}: threshold of {label}", self.name);
                    let (calibrated, timing) = tracker.step(&doing, |share| {
                        self.timed(&label, &contender, norm, None, || {
                            calibration::threshold(self.setup, calibration, &contender, norm, share)
                                .map(|calibrated| (calibrated, None))
                        })
                    })?;
                    let chosen = contender.at(calibrated.tau);
                    calibrations.push(calibrated);
                    timings.push(timing);
                    chosen
                } else {
                    contender.clone()
                };
                for base in 0..self.setup.bases() {
                    let doing = format!("{}: {label}, base {base}", self.name);
                    let (cell, timing) = tracker.step(&doing, |share| {
                        self.timed(&label, &contender, norm, Some(base), || {
                            self.cell(&contender, norm, base, share)
                        })
                    })?;
                    cells.push(cell);
                    timings.push(timing);
                }
            }
        }
        let comparison = Comparison {
            data: self.setup.summary(),
            changes: self.setup.changes().to_vec(),
            calibrations,
            cells,
        };
        Ok((comparison, timings))
    }

    /// A piece, from the store or computed now, and its time.
    fn timed<T: Serialize + serde::de::DeserializeOwned>(
        &self,
        label: &str,
        contender: &Contender,
        norm: Norm,
        base: Option<usize>,
        compute: impl FnOnce() -> Result<(T, Option<Summary>)>,
    ) -> Result<(T, Timing)> {
        let calibration = base.is_none().then_some(&self.task.calibration);
        let inputs = (self.key, self.world, contender, norm, base, calibration);
        let what = if base.is_some() { label.to_owned() } else { format!("threshold of {label}") };
        let place = base.map_or_else(|| what.clone(), |base| format!("{what} base {base}"));
        let piece = self.store.piece(self.name, &place, &inputs, || {
            let started = Instant::now();
            let (value, per_factual) = compute()?;
            let timing = Timing {
                experiment: self.name.to_owned(),
                what,
                norm: Some(norm),
                base,
                seconds: started.elapsed().as_secs_f64(),
                per_factual,
            };
            Ok(Timed { value, timing })
        })?;
        Ok((piece.value, piece.timing))
    }

    /// One contender on one base with one norm.
    fn cell(
        &self,
        contender: &Contender,
        norm: Norm,
        base: usize,
        share: &Share<'_>,
    ) -> Result<(Cell, Option<Summary>)> {
        let setup = self.setup;
        let rows = setup.factuals(base, usize::MAX);
        let done = AtomicUsize::new(0);
        let outcomes = setup.search(contender, norm, base, &rows, || {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            share(done as f64 / rows.len() as f64)
        })?;
        let dim = setup.train().dim();
        let (mut factuals, mut points) = (Points::new(dim), Points::new(dim));
        for (&row, outcome) in rows.iter().zip(&outcomes) {
            if let Some(found) = outcome.found() {
                factuals.push(setup.points().row(row));
                points.push(&found.point);
            }
        }
        let mut metrics = setup.metrics()?.of(&factuals, &points)?.into_iter();
        let mut inliers = setup.favourable_inliers(&points)?.into_iter();
        let counterfactuals = found_points(&outcomes);
        let mut families = Vec::new();
        let mut survivals: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for judges in setup.judges(base) {
            if counterfactuals.is_empty() {
                continue;
            }
            let validity = Validity::of(&counterfactuals, &judges.models)?;
            for (place, survival) in validity.by_factual.iter().enumerate() {
                survivals.entry(place).or_default().push(*survival);
            }
            let model = setup.base(base) as &dyn Model;
            let agreement = label_agreement(&counterfactuals, model, &judges.models)?;
            families.push(Family {
                change: judges.change.to_owned(),
                validities: validity.by_model,
                agreement: agreement.map(|summary| summary.mean),
            });
        }
        let answers = rows
            .iter()
            .zip(&outcomes)
            .enumerate()
            .map(|(place, (&row, outcome))| {
                let found = outcome.found().and_then(|found| {
                    Some(Found {
                        score: found.score,
                        value: found.value,
                        metrics: metrics.next()?,
                        is_favourable_inlier: inliers.next(),
                        survival: survivals.remove(&place).unwrap_or_default(),
                    })
                });
                Answered { row: setup.table_row(row), reason: outcome.reason(), found }
            })
            .collect();
        let seconds: Vec<f64> = outcomes.iter().map(|outcome| outcome.seconds).collect();
        let cell = Cell { norm, base, contender: contender.clone(), answers, families };
        Ok((cell, Summary::of(&seconds)?))
    }
}
