//! A base model and its changed versions.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::seq::SliceRandom as _;
use rayon::prelude::*;

use super::member::{Base, Member};
use super::{Given, ModelChange, Origin};
use crate::error::{Error, Result};
use crate::model::train::{EpochReport, Job};
use crate::model::{Examples, Mlp, Model, TrainParams};
use crate::seed::Seed;

/// The plan of an ensemble.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The training examples of the base model.
    pub examples: Examples<'a>,
    /// Rows of the same points and labels that it was not trained on; changes that add rows draw
    /// from them, other changes ignore them.
    pub fresh: &'a [usize],
    /// How it was trained.
    pub params: &'a TrainParams,
    /// The change of each member.
    pub change: &'a ModelChange,
    /// The number of members.
    pub members: usize,
    /// The seed of the members.
    pub seed: Seed,
}

impl<'a> Plan<'a> {
    /// The seed of one member. It does not depend on the other members or on their number.
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

    /// Checks the plan, as far as possible in advance.
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
        Base { network, examples: self.examples, rows, fresh: self.fresh, params: self.params }
    }

    /// Makes the given members in parallel. A `Break` from `watch` is an error.
    pub(crate) fn make_members(
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

    /// Makes the given members in parallel, and passes each to `keep` as soon as it is finished.
    ///
    /// After a `Break` from `watch` no further member is started, and unfinished ones are dropped.
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
        // A member that was not fully trained is dropped.
        let given_up = Cell::new(false);
        let trained = job.run(|report| {
            let next = watch(report);
            given_up.set(next.is_break());
            next
        })?;
        if given_up.get() {
            return Err(self.cancelled());
        }
        // Epochs that early stopping left out are done, too: a caller that counts to the expected
        // number gets there.
        if let Some(last) = trained.history.last() {
            for _ in trained.history.len()..training.params.epochs {
                if watch(last).is_break() {
                    return Err(self.cancelled());
                }
            }
        }
        Ok(trained.network)
    }

    fn cancelled(&self) -> Error {
        Error::Cancelled(format!("not all {} models were made", self.members))
    }
}

/// The maximum number of members, for the sake of memory.
pub const MOST_MEMBERS: usize = 10_000;

/// A base model and its changed versions, all of one origin. Clones share the models.
///
/// The members are exchangeable: each comes from its own seed in the same way. Members that were
/// used in a search or to choose a threshold must not be used to evaluate it.
#[derive(Debug, Clone)]
pub struct Ensemble {
    pub(super) base: Arc<dyn Model>,
    pub(super) members: Vec<Arc<dyn Model>>,
    pub(super) origin: Origin,
}

impl PartialEq for Ensemble {
    fn eq(&self, other: &Self) -> bool {
        *self.base == *other.base && self.members == other.members && self.origin == other.origin
    }
}

impl Ensemble {
    /// Makes the members.
    ///
    /// `watch` is called after every epoch of every member, from any thread. A `Break` is an error.
    /// For epochs that early stopping leaves out it is called with the last report of the member.
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

    /// An ensemble of existing models.
    pub(crate) fn new(
        base: Arc<dyn Model>,
        members: Vec<Arc<dyn Model>>,
        origin: Origin,
    ) -> Result<Self> {
        if let Some(other) = members.iter().find(|member| member.dim() != base.dim()) {
            return Err(Error::Dimension {
                what: "coordinates that a member takes".to_owned(),
                expected: base.dim(),
                got: other.dim(),
            });
        }
        Ok(Self { base, members, origin })
    }

    /// An ensemble of networks that this crate trained.
    pub fn of_networks(
        base: Mlp,
        members: Vec<Mlp>,
        change: ModelChange,
        seed: Seed,
        params: TrainParams,
    ) -> Result<Self> {
        Self::new(Arc::new(base), shared(members), Origin::Trained { change, seed, params })
    }

    pub(super) fn of(base: Mlp, members: Vec<Mlp>, plan: &Plan<'_>) -> Self {
        let Plan { change, seed, params, .. } = *plan;
        let origin = Origin::Trained { change: change.clone(), seed, params: params.clone() };
        Self { base: Arc::new(base), members: shared(members), origin }
    }

    /// The members to certify with: the fresh ones if the user chose the sets, or else all.
    #[must_use]
    pub fn fresh(self) -> Self {
        match self.origin {
            Origin::Given(Given { sets: Some([search, tune]), .. }) => {
                self.with_fresh(&self.members[search + tune..])
            }
            _ => self,
        }
    }

    /// Some of the members, all of which are fresh.
    pub(crate) fn with_fresh(&self, members: &[Arc<dyn Model>]) -> Self {
        let origin = match self.origin.clone() {
            Origin::Given(given) => Origin::Given(Given { sets: None, ..given }),
            trained @ Origin::Trained { .. } => trained,
        };
        Self { base: Arc::clone(&self.base), members: members.to_vec(), origin }
    }

    /// The model before the change.
    pub fn base(&self) -> &Arc<dyn Model> {
        &self.base
    }

    /// The models after it.
    pub fn members(&self) -> &[Arc<dyn Model>] {
        &self.members
    }

    /// The models after it, in an order that says nothing about them: members that were made here
    /// have such an order, and those that were given get a random one, unless their sets were
    /// chosen.
    pub(crate) fn shuffled(&self, seed: Seed) -> Vec<Arc<dyn Model>> {
        let mut members = self.members.clone();
        if matches!(self.origin, Origin::Given(Given { sets: None, .. })) {
            members.shuffle(&mut seed.rng());
        }
        members
    }

    /// Where the members come from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }
}

/// Networks as models.
fn shared(networks: Vec<Mlp>) -> Vec<Arc<dyn Model>> {
    networks.into_iter().map(|network| Arc::new(network) as Arc<dyn Model>).collect()
}
