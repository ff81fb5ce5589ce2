//! Whether a report agrees with itself. A file may have been edited, and a report decides whether a
//! model is deployed: all that follows from the scores of its promises is computed again.
//!
//! ```text
//! score -> status -> tally -> passes -> rank, updates, verdict
//! ```
//!
//! The scores themselves are not computed again; that takes the models and the promises.

use std::io::BufReader;
use std::path::Path;

use super::gate::{Gate, against_others, by_rank};
use super::updates::Updates;
use super::verdict::{Group, JudgedCandidate, PromiseStatus, Stated, Tally};
use super::{GateReport, Repair, RepairSummary};
use crate::error::{Error, Result};
use crate::explain::FORMAT_VERSION;
use crate::file::open_within;
use crate::model::THRESHOLD;
use crate::statistics::mean;

/// The most bytes of a report: a promise takes about two kilobytes.
const REPORT_BYTES: u64 = 4 << 30;

impl GateReport {
    /// Reads a report from the JSON that an audit wrote. A report whose tallies, verdict or other
    /// numbers do not follow from the scores of its promises is an error.
    pub fn read(path: &Path) -> Result<Self> {
        let wrong = |problem| Error::Table { file: path.to_owned(), problem };
        let file = BufReader::new(open_within(path, REPORT_BYTES)?);
        let report: Self = serde_json::from_reader(file).map_err(|error| {
            if error.is_io() {
                return Error::io("read", path)(error.into());
            }
            wrong(format!("not a report of `tyrex audit`: {error}"))
        })?;
        report.check().map_err(|problem| wrong(format!("the report was edited: {problem}")))?;
        Ok(report)
    }

    /// Compares what follows from the scores of the promises with what the report says.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.format_version != FORMAT_VERSION {
            let version = self.format_version;
            return Err(format!("its `format_version` is {version}, expected {FORMAT_VERSION}"));
        }
        let gate = Gate {
            request: self.request.clone(),
            by: Vec::new(),
            allow: self.allow,
            confidence: self.confidence,
        };
        let failed = |error: Error| error.to_string();
        gate.check_terms().map_err(failed)?;
        self.promises
            .iter()
            .filter_map(|each| each.promised)
            .try_for_each(|promised| promised.check())
            .map_err(failed)?;
        for (index, candidate) in self.candidates.iter().enumerate() {
            let other = |problem: String| format!("candidate `{}`: {problem}", candidate.name);
            self.check_candidate(&gate, candidate).map_err(other)?;
            let follows = |last: &JudgedCandidate| by_rank(last, candidate).is_lt();
            let is_in_order = index == 0 || follows(&self.candidates[index - 1]);
            same("its rank", &candidate.rank, &(index + 1)).map_err(other)?;
            if !is_in_order {
                return Err(other("it is better than the one before it".to_owned()));
            }
        }
        self.check_groups(&gate).map_err(failed)?;
        self.check_updates()?;
        let verdict = gate.verdict(&self.candidates, self.promises.len());
        same("the verdict", &self.verdict, &verdict)
    }

    fn check_candidate(&self, gate: &Gate, candidate: &JudgedCandidate) -> Result<(), String> {
        same("its number of promises", &candidate.promises.len(), &self.promises.len())?;
        for (judged, written) in candidate.promises.iter().zip(&self.promises) {
            same("the name of a promise", &judged.name, &written.name)?;
            let status = match judged.score {
                None => PromiseStatus::Unreadable,
                Some(score) if score >= THRESHOLD => PromiseStatus::Kept,
                Some(_) => PromiseStatus::Broken,
            };
            same(&format!("the status of `{}`", judged.name), &judged.status, &status)?;
        }
        let statuses = candidate
            .promises
            .iter()
            .zip(&self.promises)
            .map(|(judged, written)| (judged.status, written.promised));
        let tally = Tally::of(statuses, gate.confidence).map_err(|error| error.to_string())?;
        same("its tally", &candidate.tally, &tally)?;
        same("`passes`", &candidate.passes, &gate.allows(&tally))?;
        let stabilities: Vec<f64> =
            candidate.promises.iter().filter_map(|judged| judged.stability).collect();
        same("its mean stability", &candidate.mean_stability, &mean(&stabilities))?;
        let [from_promised, from_factual] = candidate.summaries();
        same("its summary of repairs", &candidate.from_promised, &from_promised)?;
        same("its summary of repairs", &candidate.from_factual, &from_factual)?;
        let Some(name) = &candidate.same_as else { return Ok(()) };
        let is_same =
            |other: &&JudgedCandidate| other.name == *name && other.is_model_of(candidate);
        match self.candidates.iter().find(is_same) {
            Some(_) => Ok(()),
            None => Err(format!("it is not the same model as `{name}`")),
        }
    }

    /// Every promise is in one group of a table, and the tests follow from the counts.
    fn check_groups(&self, gate: &Gate) -> Result<()> {
        let mut anew: Vec<Group> = Vec::new();
        for candidate in &self.candidates {
            let whole = &candidate.tally;
            for table in &candidate.groups {
                for group in &table.groups {
                    let tally = group.tally.anew(gate.confidence)?;
                    let p_value = against_others(&tally, &whole.without(&tally)?)?;
                    let name = group.name.clone();
                    anew.push(Group { name, tally, p_value, adjusted: None, differs: false });
                }
                let sum = |count: fn(&Tally) -> usize| {
                    table.groups.iter().map(|group| count(&group.tally)).sum::<usize>()
                };
                let counts: [fn(&Tally) -> usize; 4] = [
                    |tally| tally.promises,
                    |tally| tally.kept,
                    |tally| tally.unreadable,
                    |tally| tally.stated.map_or(0, |stated: Stated| stated.promises),
                ];
                if counts.into_iter().any(|count| sum(count) != count(whole)) {
                    let expected = "groups whose promises are all promises";
                    return Err(Error::param("groups", &table.feature, expected));
                }
            }
        }
        gate.correct(anew.iter_mut());
        let written = self.candidates.iter().flat_map(|each| &each.groups);
        for (group, anew) in written.flat_map(|table| &table.groups).zip(&anew) {
            if group != anew {
                let expected = "numbers that follow from its counts";
                return Err(Error::param("group", &group.name, expected));
            }
        }
        Ok(())
    }

    /// The updates are in the order in which the candidates were given, which nothing else tells.
    fn check_updates(&self) -> Result<(), String> {
        let updates = self.updates.iter().flat_map(|own| &own.updates);
        let given: Vec<&JudgedCandidate> = updates
            .filter_map(|update| self.candidates.iter().find(|each| each.name == update.name))
            .collect();
        let anew = Updates::of(given.iter().copied(), self.confidence);
        let models = self.candidates.iter().filter(|each| each.same_as.is_none()).count();
        let is_whole = self.promises.is_empty() || given.len() == models;
        match anew {
            Ok(anew) if anew == self.updates && is_whole => Ok(()),
            _ => Err("its updates do not follow from its candidates".to_owned()),
        }
    }
}

fn same<T: PartialEq>(what: &str, written: &T, anew: &T) -> Result<(), String> {
    if written == anew {
        return Ok(());
    }
    Err(format!("{what} does not follow from the scores of the promises"))
}

impl JudgedCandidate {
    /// The summaries of the repairs that the report has.
    pub(super) fn summaries(&self) -> [RepairSummary; 2] {
        let repairs = || self.promises.iter().filter_map(|own| own.repairs.as_ref());
        let from_promised: Vec<&Repair> = repairs().map(|own| &own.from_promised).collect();
        let from_factual: Vec<&Repair> =
            repairs().filter_map(|own| own.from_factual.as_ref()).collect();
        [from_promised, from_factual].map(|own| RepairSummary::written(&own))
    }
}
