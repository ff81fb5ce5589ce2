//! A base model and its changed versions.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ModelChange;
use crate::error::{Error, Result};
use crate::model::train::{EpochReport, Job};
use crate::model::{Examples, Mlp, Model, TrainParams, train_all};
use crate::seed::Seed;

/// How the members of an ensemble are to be made.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// What the base model was trained on.
    pub examples: Examples<'a>,
    /// How it was trained.
    pub params: &'a TrainParams,
    /// What is different for every member.
    pub change: ModelChange,
    /// The number of members.
    pub members: usize,
    /// Where the members' randomness comes from.
    pub seed: Seed,
}

impl Plan<'_> {
    /// Where the randomness of one member comes from: not from any other member, nor from
    /// how many there are.
    fn seed_of(&self, member: usize) -> Seed {
        self.seed.derive(self.change.name()).index(member)
    }
}

/// The most members: what a machine can hold.
const MOST_MEMBERS: usize = 10_000;

/// A base model and what one change made of it, many times.
///
/// The members are exchangeable: each comes from its own seed in the same way. Those that
/// steered a search, or chose a threshold, must not judge it; take other members for that.
#[derive(Debug, Clone, PartialEq)]
pub struct Ensemble {
    pub(super) base: Mlp,
    pub(super) members: Vec<Mlp>,
    pub(super) change: ModelChange,
    pub(super) seed: Seed,
    pub(super) params: TrainParams,
}

impl Ensemble {
    /// Trains the members.
    ///
    /// `watch` hears of every epoch of every member, from whichever thread trains it. After a
    /// `Break` there is no ensemble: what was not trained to its end is no member.
    pub fn train(
        base: Mlp,
        plan: &Plan<'_>,
        watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Self> {
        if plan.members == 0 {
            return Err(Error::param("models", 0, "at least 1"));
        }
        if plan.members > MOST_MEMBERS {
            let expected = format!("at most {MOST_MEMBERS}");
            return Err(Error::param("models", plan.members, expected));
        }
        let examples = plan.examples;
        if base.dim() != examples.points.dim() {
            return Err(Error::Dimension {
                what: "inputs of the base model, one for each coordinate of the examples".into(),
                expected: examples.points.dim(),
                got: base.dim(),
            });
        }
        let all: Cow<'_, [usize]> = match examples.rows {
            Some(rows) => rows.into(),
            None => (0..examples.points.len()).collect(),
        };
        let retraining = plan.change.retraining();
        retraining.check(all.len())?;
        let rows: Vec<Cow<'_, [usize]>> =
            (0..plan.members).map(|member| retraining.rows(&all, plan.seed_of(member))).collect();
        let jobs: Vec<Job<'_>> = rows
            .iter()
            .enumerate()
            .map(|(member, rows)| Job {
                examples: examples.with_rows(rows),
                params: plan.params,
                seed: plan.seed_of(member),
            })
            .collect();
        let stopped = AtomicBool::new(false);
        let trained = train_all(&jobs, |member, report| {
            // Members that have not begun when another is stopped are not asked again.
            if stopped.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            let next = watch(member, report);
            if next.is_break() {
                stopped.store(true, Ordering::Relaxed);
            }
            next
        })?;
        if stopped.into_inner() {
            return Err(Error::Cancelled(format!(
                "not all {} models were trained, and none is kept",
                plan.members
            )));
        }
        Ok(Self {
            base,
            members: trained.into_iter().map(|trained| trained.network).collect(),
            change: plan.change,
            seed: plan.seed,
            params: plan.params.clone(),
        })
    }

    /// The model before the change.
    #[must_use]
    pub fn base(&self) -> &Mlp {
        &self.base
    }

    /// The models after it.
    #[must_use]
    pub fn members(&self) -> &[Mlp] {
        &self.members
    }

    /// The change.
    #[must_use]
    pub fn change(&self) -> ModelChange {
        self.change
    }

    /// Where the members' randomness came from.
    #[must_use]
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// How base and members were trained.
    #[must_use]
    pub fn params(&self) -> &TrainParams {
        &self.params
    }
}
