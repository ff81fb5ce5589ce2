//! The applicants of a command, some at a time.
//!
//! Rows of a file are read as they are needed, so that memory does not grow with the file. Rows
//! that came with the model are in memory already.

use std::collections::VecDeque;
use std::path::Path;

use tyrex::data::{ReadReport, Table, TableReader};
use tyrex::explain::{Applicant, Explainer, Part, Performance, PerformanceTally};

use super::summary::DataSummary;

/// Rows that are read and answered together.
const BATCH: usize = 1024;

/// The applicants, some at a time.
#[derive(Debug)]
pub(super) struct Batches<'a> {
    explainer: &'a Explainer,
    rows: Rows,
    /// Batches that were read before they were asked for.
    ahead: VecDeque<Vec<Applicant>>,
    /// Of the rows of a file, so far.
    tally: PerformanceTally,
    report: ReadReport,
    rejected: usize,
}

/// Where the rows are.
#[derive(Debug)]
enum Rows {
    /// In the explainer's own data.
    Own,
    /// In a file that is read bit by bit.
    File(TableReader),
    /// In a file that is in memory.
    Table(Table),
}

impl<'a> Batches<'a> {
    /// The rows of a file; without one, those that the explainer holds for it.
    pub(super) fn of(explainer: &'a Explainer, file: Option<&Path>) -> anyhow::Result<Self> {
        let mut batches = Self {
            explainer,
            rows: Rows::Own,
            ahead: VecDeque::new(),
            tally: PerformanceTally::default(),
            report: ReadReport::default(),
            rejected: 0,
        };
        match file {
            Some(file) => batches.rows = Rows::File(TableReader::open(file, BATCH)?),
            None => {
                let own = explainer.applicants().part(explainer.reference().applicants());
                batches.rejected = own.iter().filter(|own| own.is_rejected()).count();
                batches.ahead.push_back(own);
            }
        }
        Ok(batches)
    }

    /// The next applicants; `None` after the last. The first batch of a file may not be empty.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<Vec<Applicant>>> {
        match self.ahead.pop_front() {
            Some(batch) => Ok(Some(batch)),
            None => self.read(),
        }
    }

    fn read(&mut self) -> anyhow::Result<Option<Vec<Applicant>>> {
        let Rows::File(reader) = &mut self.rows else { return Ok(None) };
        let Some(table) = reader.next().transpose()? else {
            self.report.require_rows(reader.path())?;
            return Ok(None);
        };
        self.taken(&table).map(Some)
    }

    /// The applicants of a table, counted.
    fn taken(&mut self, table: &Table) -> anyhow::Result<Vec<Applicant>> {
        let (applicants, report) = self.explainer.applicants().read_batch(table)?;
        self.report.add(&report);
        for applicant in &applicants {
            self.tally.add(applicant.score, applicant.favourable);
            self.rejected += usize::from(applicant.is_rejected());
        }
        Ok(applicants)
    }

    /// All applicants.
    pub(super) fn all(&mut self) -> anyhow::Result<Vec<Applicant>> {
        let mut all = Vec::new();
        while let Some(mut batch) = self.next()? {
            all.append(&mut batch);
        }
        Ok(all)
    }

    /// The first rejected applicants, which come again with [`next`](Self::next).
    pub(super) fn first_rejected(&mut self, count: usize) -> anyhow::Result<Vec<Applicant>> {
        let rejected = |batches: &VecDeque<Vec<Applicant>>| {
            let all = batches.iter().flatten().filter(|applicant| applicant.is_rejected());
            all.take(count).cloned().collect::<Vec<_>>()
        };
        while rejected(&self.ahead).len() < count {
            let Some(batch) = self.read()? else { break };
            self.ahead.push_back(batch);
        }
        Ok(rejected(&self.ahead))
    }

    /// Reads everything, and gives the table of it.
    pub(super) fn whole(&mut self) -> anyhow::Result<&Table> {
        if let Rows::File(reader) = &self.rows {
            let table = Table::read(reader.path())?;
            let applicants = self.taken(&table)?;
            self.ahead.push_back(applicants);
            self.rows = Rows::Table(table);
        }
        Ok(self.table())
    }

    /// The table that was read whole.
    pub(super) fn table(&self) -> &Table {
        match &self.rows {
            Rows::Table(table) => table,
            Rows::Own | Rows::File(_) => self.explainer.reference().table(),
        }
    }

    /// The rows, in the table, of applicants that were read ahead.
    pub(super) fn rows_ahead(&self) -> impl Iterator<Item = usize> {
        self.ahead.iter().flatten().map(|applicant| applicant.row)
    }

    /// The rows of the rejected ones among them.
    pub(super) fn rejected_ahead(&self) -> impl Iterator<Item = usize> {
        let ahead = self.ahead.iter().flatten();
        ahead.filter(|applicant| applicant.is_rejected()).map(|applicant| applicant.row)
    }

    /// The share of a file that was read; `None` if that is not known.
    pub(super) fn share_read(&self) -> Option<f64> {
        match &self.rows {
            Rows::File(reader) => reader.progress(),
            Rows::Own | Rows::Table(_) => None,
        }
    }

    /// The rows that were read, in numbers.
    pub(super) fn summary(&self, title: &str) -> DataSummary {
        match &self.rows {
            Rows::Own => DataSummary::of(title.to_owned(), self.explainer.reference()),
            Rows::File(_) | Rows::Table(_) => DataSummary::of_applicants(
                title.to_owned(),
                self.tally.performance(Part::All).rows,
                self.explainer.schema().features.len(),
                self.report.clone(),
            ),
        }
    }

    /// How well the model does on them.
    pub(super) fn performances(&self) -> Vec<Performance> {
        match &self.rows {
            Rows::Own => self.explainer.performances(),
            Rows::File(_) | Rows::Table(_) => vec![self.tally.performance(Part::All)],
        }
    }

    /// How well the model does on the rows of a file.
    pub(super) fn tally(&self) -> Option<&PerformanceTally> {
        match &self.rows {
            Rows::Own => None,
            Rows::File(_) | Rows::Table(_) => Some(&self.tally),
        }
    }

    /// Rejects a model that ranks the rows of the file, as far as they were read, the wrong way
    /// round.
    pub(super) fn check_model(&self) -> tyrex::Result<()> {
        self.tally().map_or(Ok(()), |tally| self.explainer.check_applicants(tally))
    }

    /// Which part of the data they are.
    pub(super) fn part(&self) -> Part {
        match &self.rows {
            Rows::Own => self.explainer.reference().applicants(),
            Rows::File(_) | Rows::Table(_) => Part::All,
        }
    }

    /// Those that the model rejects, so far.
    pub(super) fn rejected(&self) -> usize {
        self.rejected
    }
}
