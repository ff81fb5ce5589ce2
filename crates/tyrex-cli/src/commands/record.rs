//! `explain --ledger`: records advice as promises.

use std::time::Duration;

use serde::Serialize;
use tyrex::certificate::Certificate;
use tyrex::counterfactual::Protocol;
use tyrex::data::Table;
use tyrex::explain::{Advice, Adviser, PROMISE_DAYS};
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::{Head, Ledger, NewPromise, Recorded, Timestamp, check_subject};

use super::batches::Batches;
use super::block_on;
use super::ledger::close;
use super::summary::{counted, shown};
use crate::args::{Holds, RecordArgs, SourceArgs};
use crate::help::Usage;
use crate::interrupt;
use crate::printer::Page;

/// An open ledger, and the common properties of the promises.
#[derive(Debug)]
pub(super) struct Recording<'a> {
    ledger: Ledger,
    args: &'a RecordArgs,
    /// The name of the rows if no column names the subjects.
    rows_of: String,
    holds_until: Option<Timestamp>,
}

/// Opens the ledger of the arguments, if any, before the work, so that an error comes early.
pub(super) fn open<'a>(
    args: &'a RecordArgs,
    source: &SourceArgs,
) -> anyhow::Result<Option<Recording<'a>>> {
    let Some(address) = &args.ledger else {
        return Ok(None);
    };
    if source.protocol != Protocol::Product {
        return Err(Usage {
            problem:
                "--ledger: a promise needs a row, but the protocols of the paper return points"
                    .to_owned(),
            help: "leave out --protocol, or --ledger".to_owned(),
        }
        .into());
    }
    let too_long = |_| Usage {
        problem: "--holds: the date is beyond the year 9999".to_owned(),
        help: "pass `--holds for-good` for a promise without an end".to_owned(),
    };
    let usual = Holds::For(Duration::from_hours(24 * u64::from(PROMISE_DAYS)));
    let holds_until = match args.holds.unwrap_or(usual) {
        Holds::For(span) => Some(Timestamp::now().checked_add(span).map_err(too_long)?),
        Holds::ForGood => None,
    };
    let rows_of = match (&source.dataset, &source.data) {
        (Some(name), _) => name.clone(),
        (None, Some(file)) => shown(file),
        (None, None) => String::new(),
    };
    let ledger = Ledger::new(block_on(Database::open(address))??);
    Ok(Some(Recording { ledger, args, rows_of, holds_until }))
}

impl Recording<'_> {
    /// Checks that every applicant has a subject. All of them have been read.
    pub(super) fn check(&self, applicants: &Batches<'_>) -> anyhow::Result<()> {
        let table = applicants.table();
        for row in applicants.rows_ahead() {
            let subject = self.subject(table, row)?;
            if let (Err(error), Some(column)) = (check_subject(&subject), &self.args.subject_column)
            {
                return Err(tyrex::Error::Cell {
                    file: table.source().to_owned(),
                    row,
                    column: column.clone(),
                    value: subject,
                    expected: error.to_string(),
                }
                .into());
            }
        }
        Ok(())
    }

    /// The subject of a row.
    fn subject(&self, table: &Table, row: usize) -> tyrex::Result<String> {
        Ok(match &self.args.subject_column {
            Some(column) => table.cell(row, table.column(column)?).to_owned(),
            None => format!("{}#row {row}", self.rows_of),
        })
    }

    /// Records all advice that was found.
    pub(super) fn record(
        self,
        table: &Table,
        adviser: &Adviser,
        advice: &[Advice],
        certificates: &[Option<Certificate>],
    ) -> anyhow::Result<RecordReport> {
        let mut promises = Vec::new();
        for (advice, certificate) in advice.iter().zip(certificates) {
            let subject = self.subject(table, advice.applicant.row)?;
            promises.extend(NewPromise::of(
                adviser.explainer(),
                advice,
                certificate.as_ref(),
                adviser.promise(),
                adviser.request(),
                subject,
                self.holds_until,
            ));
        }
        let promises = interrupt::whole(|| block_on(self.ledger.record(&promises)))??;
        let head = block_on(self.ledger.head())??;
        let ledger = self.ledger.database().address().to_owned();
        close(&self.ledger)?;
        Ok(RecordReport { ledger, promises, head })
    }
}

/// The recorded promises.
#[derive(Debug, Serialize)]
pub(super) struct RecordReport {
    ledger: String,
    promises: Vec<Recorded>,
    head: Head,
}

impl RecordReport {
    pub(super) fn page(&self, page: &mut Page) {
        page.title(&format!(
            "Recorded {} in {}",
            counted(self.promises.len(), "promise"),
            self.ledger
        ));
        if let (Some(first), Some(last)) = (self.promises.first(), self.promises.last()) {
            let entries = if first == last {
                first.sequence.to_string()
            } else {
                format!("{} to {}", first.sequence, last.sequence)
            };
            page.pairs(&[("entries", entries), ("head", self.head.hash.to_string())]);
        }
    }
}
