//! Where the models of an ensemble come from.

use std::sync::Arc;

use super::ModelChange;
use crate::model::{Model, TrainParams};
use crate::seed::Seed;

/// Where the models of an ensemble come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// This crate made them, all by one change.
    Trained {
        /// The change.
        change: ModelChange,
        /// The seed of the members.
        seed: Seed,
        /// How base and members were trained.
        params: TrainParams,
    },
    /// The user retrained them elsewhere.
    Given(Given),
}

/// Models that the user retrained elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// Where they were found, in words: "the folder `retrained`".
    pub from: String,
    /// The number of members to search over and the number that choose the margin, if the user
    /// chose them. They are the first members, in this order; the others are fresh.
    pub sets: Option<[usize; 2]>,
    /// Models that were trained as the model in use was, to compare it with. If there are none, it
    /// is compared with the members.
    pub siblings: Vec<Arc<dyn Model>>,
}

impl Origin {
    /// The origin in words, for certificates.
    pub fn description(&self) -> String {
        match self {
            Self::Trained { change, .. } => change.description(),
            Self::Given(Given { from, .. }) => format!(
                "retrained elsewhere, from {from}; that they are draws of the declared change is \
                 taken on the user's word"
            ),
        }
    }

    /// The change, if this crate made the models.
    pub fn change(&self) -> Option<&ModelChange> {
        match self {
            Self::Trained { change, .. } => Some(change),
            Self::Given(_) => None,
        }
    }
}
