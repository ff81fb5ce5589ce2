//! What a change is made of: how one member comes about.

use std::borrow::Cow;

use crate::error::Result;
use crate::model::{Mlp, TrainParams};
use crate::seed::Seed;

/// A random way in which a model changes.
pub(super) trait Change {
    /// The name that people type, as it stands in files.
    fn name(&self) -> &'static str;

    /// What it does to a model, for people: "trained again from new weights".
    fn description(&self) -> String;

    /// Whether the parameters are in their range, for this base.
    fn check(&self, base: &Base<'_>) -> Result<()>;

    /// How a member comes about. All its randomness comes from the seed.
    fn member<'a>(&self, base: &Base<'a>, seed: Seed) -> Result<Member<'a>>;

    /// The epochs that a member takes on average: how long it will be.
    fn epochs(&self, params: &TrainParams) -> f64 {
        params.epochs as f64
    }
}

/// The model before the change, and how it came about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base<'a> {
    pub(super) network: &'a Mlp,
    /// The rows it was trained on.
    pub(super) rows: &'a [usize],
    /// Rows that it has not seen.
    pub(super) fresh: &'a [usize],
    pub(super) params: &'a TrainParams,
}

impl<'a> Base<'a> {
    /// The base's own training, from new weights: what most changes alter one thing of.
    pub(super) fn again(&self) -> Training<'a> {
        Training { rows: self.rows.into(), params: Cow::Borrowed(self.params), start: None }
    }
}

/// How one member comes about.
#[derive(Debug)]
pub(super) enum Member<'a> {
    /// By training.
    Trained(Training<'a>),
    /// Without any.
    Made(Mlp),
}

/// A training.
#[derive(Debug)]
pub(super) struct Training<'a> {
    pub(super) rows: Cow<'a, [usize]>,
    pub(super) params: Cow<'a, TrainParams>,
    /// The network to go on from; new weights if absent.
    pub(super) start: Option<Cow<'a, Mlp>>,
}
