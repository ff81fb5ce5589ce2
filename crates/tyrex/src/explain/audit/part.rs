//! Parts of an audit. The promises are judged in every part, which is quick; the repairs of the
//! broken ones, which are not, are divided among the parts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{GateReport, Repair, RepairSummary};
use crate::counterfactual::Reason;
use crate::error::{Error, Result};
use crate::explain::Costs;
use crate::statistics::mean;

/// One of the parts of an audit: it has every `parts`-th of the broken promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "PartFields")]
pub struct RepairPart {
    /// Its number, from 1.
    part: usize,
    /// The number of parts.
    parts: usize,
}

/// A part that is not checked yet.
#[derive(Deserialize)]
struct PartFields {
    part: usize,
    parts: usize,
}

impl TryFrom<PartFields> for RepairPart {
    type Error = Error;

    fn try_from(PartFields { part, parts }: PartFields) -> Result<Self> {
        Self::new(part, parts)
    }
}

impl RepairPart {
    /// Part `part`, from 1, of `parts`.
    pub fn new(part: usize, parts: usize) -> Result<Self> {
        if part == 0 || part > parts {
            let expected = "a part of several, such as 2/8: the second of eight";
            return Err(Error::param("part", format!("{part}/{parts}"), expected));
        }
        Ok(Self { part, parts })
    }

    /// Whether a broken promise is in the part, by its number among the broken ones, from 0.
    pub(super) fn has(self, number: usize) -> bool {
        number % self.parts == self.part - 1
    }
}

impl fmt::Display for RepairPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.parts)
    }
}

impl FromStr for RepairPart {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers = text.split_once('/').and_then(|(part, parts)| {
            Some((part.trim().parse().ok()?, parts.trim().parse().ok()?))
        });
        let (part, parts) = numbers.ok_or_else(|| {
            Error::param("part", text, "a part of several, such as 2/8: the second of eight")
        })?;
        Self::new(part, parts)
    }
}

impl GateReport {
    /// The whole report, from the reports of all its parts in any order. Tallies and verdicts that
    /// do not follow from the scores of the promises are an error.
    pub fn joined(reports: Vec<Self>) -> Result<Self> {
        let count = reports.len();
        let wrong = |expected: String| Error::param("parts", count, expected);
        let parts: Option<Vec<RepairPart>> = reports.iter().map(|report| report.part).collect();
        let Some(parts) = parts.filter(|parts| !parts.is_empty()) else {
            return Err(wrong("reports of `--part`: one is not of a part".to_owned()));
        };
        let all = parts[0].parts;
        for number in 1..=all {
            match parts.iter().filter(|part| part.part == number && part.parts == all).count() {
                1 => {}
                0 => return Err(wrong(format!("{all} parts: {number}/{all} is missing"))),
                _ => return Err(wrong(format!("each part once: {number}/{all} is repeated"))),
            }
        }
        if let Some(other) = parts.iter().find(|part| part.parts != all) {
            return Err(wrong(format!("parts of one audit: there are {other} and {}", parts[0])));
        }
        let mut reports = reports.into_iter();
        let Some(mut whole) = reports.next() else {
            return Err(wrong("at least one part".to_owned()));
        };
        for mut other in reports {
            let part = other.part.take();
            let pairs = whole.candidates.iter_mut().zip(&mut other.candidates);
            for (own, others) in pairs {
                for (own, others) in own.promises.iter_mut().zip(&mut others.promises) {
                    // Of a broken promise only one part has repairs.
                    match (&own.repairs, others.repairs.take()) {
                        (None, Some(repairs)) => {
                            own.repairs = Some(repairs);
                        }
                        (Some(_), Some(_)) => {
                            return Err(wrong(format!(
                                "parts of one audit: two have repairs of {}",
                                own.name
                            )));
                        }
                        (_, None) => {}
                    }
                    others.repairs.clone_from(&own.repairs);
                }
                others.from_promised = own.from_promised.clone();
                others.from_factual = own.from_factual.clone();
            }
            other.part = whole.part;
            if other != whole {
                let part = part.map(|part| part.to_string()).unwrap_or_default();
                return Err(wrong(format!(
                    "parts of one audit: {part} has other promises, candidates or terms than {}",
                    parts[0]
                )));
            }
        }
        whole.part = None;
        for candidate in &mut whole.candidates {
            [candidate.from_promised, candidate.from_factual] = candidate.summaries();
        }
        let edited = |problem| wrong(format!("parts that were not edited: {problem}"));
        whole.check().map_err(edited)?;
        Ok(whole)
    }
}

impl RepairSummary {
    /// The summary of repairs as they are written, as `of` makes it from the searches.
    pub(super) fn written(repairs: &[&Repair]) -> Self {
        let because = |wanted: Reason| {
            let is = |repair: &&&Repair| match **repair {
                Repair::NotFound { reason, .. } => *reason == wanted,
                Repair::Found { .. } => false,
            };
            repairs.iter().filter(is).count()
        };
        let found: Vec<_> = repairs
            .iter()
            .filter_map(|repair| match repair {
                Repair::Found { cost, changes, .. } => Some((cost.as_ref(), changes.len())),
                Repair::NotFound { .. } => None,
            })
            .collect();
        let cost_by = |norm: fn(&Costs) -> f64| {
            let costs = found.iter().filter_map(|(cost, _)| cost.map(norm));
            mean(&costs.collect::<Vec<_>>())
        };
        let changed: Vec<f64> = found.iter().map(|(_, changes)| *changes as f64).collect();
        let already_favourable = because(Reason::AlreadyFavourable);
        let cancelled = because(Reason::Cancelled);
        Self {
            found: found.len(),
            already_favourable,
            cancelled,
            not_found: repairs.len() - found.len() - already_favourable - cancelled,
            mean_l1: cost_by(|cost| cost.l1),
            mean_l2: cost_by(|cost| cost.l2),
            mean_changed: mean(&changed),
        }
    }
}
