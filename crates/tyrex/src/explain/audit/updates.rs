//! Candidates as successive updates: the share of promises that each keeps, and a bound on the
//! expected share that holds after every update.

use serde::{Deserialize, Serialize};

use super::verdict::JudgedCandidate;
use crate::certificate::{KeptShares, at_least};
use crate::error::Result;
use crate::statistics::mean;

/// The candidates in the order in which they were given, as successive updates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Updates {
    /// The updates. A model that is the same as an earlier one is not an update.
    pub updates: Vec<Update>,
    /// The mean share of promises that they keep.
    pub mean_kept: f64,
    /// The lower bound after the last update.
    pub at_least: f64,
    /// The statement in words.
    pub sentence: String,
}

/// One update.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Update {
    /// The name of the candidate.
    pub name: String,
    /// The share of promises that it keeps.
    pub share_kept: f64,
    /// The lower bound on the expected share of an update, from this update and those before it.
    /// With the confidence of the report, no bound of this list exceeds the expected share.
    pub at_least: f64,
}

impl Updates {
    /// The updates of candidates in the order in which they were given. `None` if no promise was
    /// judged.
    pub(super) fn of<'a>(
        mut candidates: impl Iterator<Item = &'a JudgedCandidate> + Clone,
        confidence: f64,
    ) -> Result<Option<Self>> {
        let mut updates: Vec<Update> = Vec::new();
        let mut shares = Vec::new();
        for candidate in candidates.clone().filter(|each| each.same_as.is_none()) {
            let Some(share_kept) = candidate.tally.share_kept else { continue };
            shares.push(share_kept);
            let at_least = KeptShares::new(shares.clone())?.lower(confidence)?;
            updates.push(Update { name: candidate.name.clone(), share_kept, at_least });
        }
        let (Some(last), Some(mean_kept)) = (updates.last(), mean(&shares)) else {
            return Ok(None);
        };
        let bound = last.at_least;
        let promised = candidates.next().and_then(|each| each.tally.stated);
        let promised = promised.map_or_else(String::new, |stated| {
            format!("; promised with a mean probability of {:.3}", stated.mean_probability)
        });
        let models = match updates.len() {
            1 => "1 update".to_owned(),
            some => format!("{some} updates in the order given"),
        };
        let sentence = format!(
            "Over {models} the mean share kept is {mean_kept:.3}{promised}. With confidence \
             {confidence}, after every update, the expected share is at least {}, if it is the \
             same for every update.",
            at_least(bound)
        );
        Ok(Some(Self { updates, mean_kept, at_least: bound, sentence }))
    }
}
