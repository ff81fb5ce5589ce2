//! `explain --ledger`: advice becomes promises.

use serde::Serialize;
use tyrex::certificate::Certificate;
use tyrex::counterfactual::Protocol;
use tyrex::explain::{Advice, Explainer, Request};
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::{Head, Ledger, NewPromise, Recorded, Timestamp, check_subject};

use super::block_on;
use super::ledger::close;
use super::summary::{counted, shown};
use crate::args::{RecordArgs, SourceArgs};
use crate::help::Usage;
use crate::interrupt;
use crate::printer::Page;

/// An open ledger, and what promises in it have in common.
#[derive(Debug)]
pub(super) struct Recording<'a> {
    ledger: Ledger,
    args: &'a RecordArgs,
    /// What the rows are called where no column says who they are.
    rows_of: String,
    holds_until: Option<Timestamp>,
}

/// Opens the ledger that was typed, if one was: minutes of work should not end in a refusal.
pub(super) fn open<'a>(
    args: &'a RecordArgs,
    source: &SourceArgs,
) -> anyhow::Result<Option<Recording<'a>>> {
    let Some(address) = &args.ledger else {
        return Ok(None);
    };
    if source.protocol != Protocol::Product {
        return Err(Usage {
            problem: "--ledger: a promise is a row, and the protocols of the paper give points"
                .to_owned(),
            help: "leave out --protocol, or --ledger".to_owned(),
        }
        .into());
    }
    let too_long = |_| Usage {
        problem: "--holds: no calendar reaches that far".to_owned(),
        help: "leave it out for a promise that holds for good".to_owned(),
    };
    let until = |span| Timestamp::now().checked_add(span).map_err(too_long);
    let holds_until = args.holds.map(until).transpose()?;
    let rows_of = match (&source.dataset, &source.data) {
        (Some(name), _) => name.clone(),
        (None, Some(file)) => shown(file),
        (None, None) => String::new(),
    };
    let ledger = Ledger::new(block_on(Database::open(address))??);
    Ok(Some(Recording { ledger, args, rows_of, holds_until }))
}

impl Recording<'_> {
    /// Whether every row has a subject.
    pub(super) fn check(&self, explainer: &Explainer) -> anyhow::Result<()> {
        for &row in explainer.data().table_rows() {
            let subject = self.subject(explainer, row)?;
            if let (Err(error), Some(column)) = (check_subject(&subject), &self.args.subject_column)
            {
                return Err(tyrex::Error::Cell {
                    file: explainer.data().source().to_owned(),
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

    /// Who the row of the table is about.
    fn subject(&self, explainer: &Explainer, row: usize) -> tyrex::Result<String> {
        Ok(match &self.args.subject_column {
            Some(column) => explainer.data().table().column(column)?.cell(row).to_owned(),
            None => format!("{}#row {row}", self.rows_of),
        })
    }

    /// Records everything that was found.
    pub(super) fn record(
        self,
        explainer: &Explainer,
        advice: &[Advice],
        certificates: &[Option<Certificate>],
        request: &Request,
    ) -> anyhow::Result<RecordReport> {
        let mut promises = Vec::new();
        for (advice, certificate) in advice.iter().zip(certificates) {
            let subject = self.subject(explainer, advice.applicant.row)?;
            let certificate = certificate.as_ref();
            promises.extend(NewPromise::of(
                explainer,
                advice,
                certificate,
                request,
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

/// What was recorded.
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
