//! A base model and its changed versions.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::ModelChange;
use super::member::{Base, Member};
use crate::error::{Error, Result};
use crate::model::train::{EpochReport, Job};
use crate::model::{Examples, Mlp, Model, TrainParams};
use crate::seed::Seed;

/// How the members of an ensemble are to be made.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// What the base model was trained on.
    pub examples: Examples<'a>,
    /// Rows of the same points and labels that it was not trained on; a change that takes in
    /// new rows draws from them, others leave them alone.
    pub fresh: &'a [usize],
    /// How it was trained.
    pub params: &'a TrainParams,
    /// What is different for every member.
    pub change: &'a ModelChange,
    /// The number of members.
    pub members: usize,
    /// Where the members' randomness comes from.
    pub seed: Seed,
}

impl<'a> Plan<'a> {
    /// Where the randomness of one member comes from: not from any other member, nor from
    /// how many there are.
    fn seed_of(&self, member: usize) -> Seed {
        self.seed.derive(self.change.name()).index(member)
    }

    /// The rows the base was trained on.
    fn rows(&self) -> Cow<'a, [usize]> {
        match self.examples.rows {
            Some(rows) => rows.into(),
            None => (0..self.examples.points.len()).collect(),
        }
    }

    /// Whether it can be carried out, as far as that can be known before.
    pub(super) fn check(&self, network: &Mlp) -> Result<()> {
        if self.members == 0 {
            return Err(Error::param("models", 0, "at least 1"));
        }
        if self.members > MOST_MEMBERS {
            let expected = format!("at most {MOST_MEMBERS}");
            return Err(Error::param("models", self.members, expected));
        }
        if network.dim() != self.examples.points.dim() {
            return Err(Error::Dimension {
                what: "inputs of the base model, one for each coordinate of the examples".into(),
                expected: self.examples.points.dim(),
                got: network.dim(),
            });
        }
        self.change.kind().check(&self.base(network, &self.rows()))
    }

    fn base<'b>(&self, network: &'b Mlp, rows: &'b [usize]) -> Base<'b>
    where
        'a: 'b,
    {
        Base { network, rows, fresh: self.fresh, params: self.params }
    }

    /// Makes the given members, many at once. After a `Break` from `watch` there are none.
    pub fn make_members(
        &self,
        base: &Mlp,
        members: &[usize],
        watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Mlp>> {
        self.check(base)?;
        if let Some(other) = members.iter().find(|&&member| member >= self.members) {
            let expected = format!("a number below {}", self.members);
            return Err(Error::param("member", other, expected));
        }
        self.carry_out(base, members, watch, |_, network| Ok(network))
    }

    /// Makes the given members, many at once, and hands each to `keep` as soon as it is there.
    ///
    /// After a `Break` from `watch` no other member begins, and those under way are given up.
    pub(super) fn carry_out<T: Send>(
        &self,
        network: &Mlp,
        members: &[usize],
        watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
        keep: impl Fn(usize, Mlp) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let rows = self.rows();
        let base = self.base(network, &rows);
        let stopped = AtomicBool::new(false);
        let make = |member: usize| {
            if stopped.load(Ordering::Relaxed) {
                return Err(self.cancelled());
            }
            let made = self.make(member, &base, |report| {
                if stopped.load(Ordering::Relaxed) || watch(member, report).is_break() {
                    stopped.store(true, Ordering::Relaxed);
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })?;
            keep(member, made)
        };
        members.par_iter().with_max_len(1).map(|&member| make(member)).collect()
    }

    fn make(
        &self,
        member: usize,
        base: &Base<'_>,
        watch: impl Fn(&EpochReport) -> ControlFlow<()>,
    ) -> Result<Mlp> {
        let seed = self.seed_of(member);
        let training = match self.change.kind().member(base, seed)? {
            Member::Made(network) => return Ok(network),
            Member::Trained(training) => training,
        };
        let job = Job {
            examples: self.examples.with_rows(&training.rows),
            params: &training.params,
            seed,
            start: training.start.as_deref(),
        };
        // What was not trained to its end is no member.
        let given_up = Cell::new(false);
        let trained = job.run(|report| {
            let next = watch(report);
            given_up.set(next.is_break());
            next
        })?;
        if given_up.get() { Err(self.cancelled()) } else { Ok(trained.network) }
    }

    fn cancelled(&self) -> Error {
        Error::Cancelled(format!("not all {} models were made", self.members))
    }
}

/// The most members: what a machine can hold.
pub const MOST_MEMBERS: usize = 10_000;

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
    /// Makes the members.
    ///
    /// `watch` hears of every epoch of every member, from whichever thread trains it. After a
    /// `Break` there is no ensemble: what was not trained to its end is no member.
    pub fn train(
        base: Mlp,
        plan: &Plan<'_>,
        watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Self> {
        plan.check(&base)?;
        let all: Vec<usize> = (0..plan.members).collect();
        let members = plan.make_members(&base, &all, watch)?;
        Ok(Self::of(base, members, plan))
    }

    /// An ensemble whose models exist.
    pub fn from_parts(
        base: Mlp,
        members: Vec<Mlp>,
        change: ModelChange,
        seed: Seed,
        params: TrainParams,
    ) -> Result<Self> {
        if let Some(other) = members.iter().find(|member| member.dim() != base.dim()) {
            return Err(Error::Dimension {
                what: "coordinates that a member takes".to_owned(),
                expected: base.dim(),
                got: other.dim(),
            });
        }
        Ok(Self { base, members, change, seed, params })
    }

    pub(super) fn of(base: Mlp, members: Vec<Mlp>, plan: &Plan<'_>) -> Self {
        Self {
            base,
            members,
            change: plan.change.clone(),
            seed: plan.seed,
            params: plan.params.clone(),
        }
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
    pub fn change(&self) -> &ModelChange {
        &self.change
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
