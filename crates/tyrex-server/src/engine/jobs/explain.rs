//! Advice for many rows.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tyrex::counterfactual::Tick;
use tyrex::data::{Column, Table};
use tyrex::explain::{
    AdviceFile, AnswerDocument, Applicant, Ask, FORMAT_VERSION, Fresh, Meaning, PortfolioDocument,
    PortfolioTerms, PromisedPoints, QuestionPortfolio, Request, SearchedModels,
};
use tyrex::{Error as LibraryError, Seed};
use uuid::Uuid;

use super::{JobEntry, Pace};
use crate::engine::error::{Error, Result};
use crate::engine::questions::{Advising, Certifying, Found};
use crate::engine::served::Training;
use crate::engine::store::StoredRow;
use crate::engine::{Engine, Recording, Served};

/// Rows that are finished and stored together.
const CHUNK: usize = 16;

/// Advice to find for many rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ExplainWork {
    /// The model's fingerprint.
    pub(crate) fingerprint: String,
    pub(crate) rows: KeptRows,
    /// The question; none in jobs of earlier versions.
    #[serde(default)]
    pub(crate) question: Option<Box<KeptQuestion>>,
    pub(crate) request: Request,
    pub(crate) certifying: Option<KeptCertifying>,
    pub(crate) examining: bool,
    pub(crate) recording: Option<Recording>,
}

/// The question of an answer, for its document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeptQuestion {
    pub(crate) ask: Ask,
    pub(crate) without_promise: Option<String>,
    /// The promised outcome; none in jobs of earlier versions.
    #[serde(default)]
    pub(crate) meaning: Option<Meaning>,
    /// The number of rows in the model's reference.
    pub(crate) reference: usize,
    /// The retrained models that took part in the search; none in jobs of earlier versions.
    #[serde(default)]
    pub(crate) searched: Option<SearchedModels>,
}

/// The fields that all answers of a job share.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum KeptResult {
    Whole {
        columns: Vec<String>,
        #[serde(default)]
        portfolio: Option<PortfolioDocument>,
    },
    /// As earlier versions wrote it: the columns of the table.
    Columns(Vec<String>),
}

/// The terms of the certificates, without the retrained models.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeptCertifying {
    pub(crate) terms: tyrex::certificate::Terms,
    pub(crate) seed: Seed,
    /// Whether retrained models existed when the job was created, so that the result does not
    /// depend on when it runs.
    pub(crate) ensemble: bool,
    /// The number of answers that these models have judged before.
    #[serde(default)]
    pub(crate) looks: u32,
}

/// The rows of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeptRows {
    /// Rows of the model's own table.
    Indices(Vec<usize>),
    /// Other rows: named columns of cells.
    Columns(Vec<(String, Vec<String>)>),
}

impl KeptRows {
    /// The rows of a table.
    pub(crate) fn of(table: &Table) -> Self {
        let cells = |column: &Column| column.cells().map(str::to_owned).collect();
        let columns = table.columns().iter();
        Self::Columns(columns.map(|column| (column.name().to_owned(), cells(column))).collect())
    }

    fn applicants(&self, served: &Served) -> Result<Vec<Applicant>> {
        match self {
            Self::Indices(indices) => indices
                .iter()
                .map(|&row| {
                    let applicant = served.applicant(row);
                    applicant.ok_or_else(|| Error::absent("row", row.to_string()))
                })
                .collect(),
            Self::Columns(columns) => {
                let column = |(name, cells): &(String, Vec<String>)| {
                    let mut column = Column::new(name);
                    cells.iter().for_each(|cell| column.push(cell));
                    column
                };
                let table = Table::new("rows", columns.iter().map(column).collect())?;
                Ok(served.explainer().applicants().read(&table)?)
            }
        }
    }
}

/// Advice for rows, from a job or a direct answer.
#[derive(Debug)]
pub(crate) struct ExplainAnswer {
    pub(crate) model: String,
    pub(crate) document: AnswerDocument<Box<RawValue>>,
    /// The promises of the rows, if they were recorded.
    pub(crate) recorded: Option<Vec<Option<Uuid>>>,
    /// The same as a table, if requested.
    pub(crate) table: Option<Table>,
}

impl ExplainWork {
    /// The document of the answer. `found` is the number of rows with advice, `warnings` are reasons
    /// to doubt it, unless the model was removed.
    pub(crate) fn document(
        &self,
        rows: Vec<Box<RawValue>>,
        found: usize,
        portfolio: Option<PortfolioDocument>,
        warnings: Vec<String>,
    ) -> AnswerDocument<Box<RawValue>> {
        let question = self.question.clone();
        AnswerDocument {
            format_version: FORMAT_VERSION,
            fingerprint: self.fingerprint.clone(),
            meaning: question.as_ref().and_then(|own| own.meaning.clone()),
            reference: question.as_ref().map_or(0, |question| question.reference),
            without_promise: question.as_ref().and_then(|own| own.without_promise.clone()),
            searched: question.as_ref().and_then(|own| own.searched.clone()),
            ask: question.map(|question| question.ask),
            request: self.request.clone(),
            warnings,
            calibration: None,
            asked: rows.len(),
            found,
            portfolio,
            rows,
        }
    }
}

impl Advising {
    /// The statements about all promises, if there are any.
    pub(crate) fn portfolio(
        &self,
        served: &Served,
        promised: PromisedPoints,
    ) -> Result<Option<PortfolioDocument>> {
        let fresh = self.certifying.as_ref().and_then(|own| own.fresh.as_deref());
        let Some((promise, fresh)) = self.request.promise.zip(fresh) else { return Ok(None) };
        let (terms, explainer) = (PortfolioTerms::default(), served.explainer());
        let document = |all: QuestionPortfolio| {
            all.document(&terms, explainer.reference().table(), explainer.schema())
        };
        let fresh = served.explainer_for(&self.request)?.recorded(fresh);
        Ok(promised.judged(&fresh, promise)?.map(document).transpose()?)
    }
}

impl Engine {
    pub(super) async fn run_explain(
        &self,
        entry: &Arc<JobEntry>,
        work: &ExplainWork,
    ) -> Result<()> {
        let served = self.model_of(entry, &work.fingerprint)?;
        if work.request.method.needs_models() {
            self.awaited_ensemble(entry, &served).await?;
        }
        let advising = Arc::new(Advising {
            request: work.request.clone(),
            certifying: match &work.certifying {
                None => None,
                Some(kept) => Some(Certifying {
                    terms: kept.terms.clone(),
                    seed: kept.seed,
                    fresh: if kept.ensemble {
                        self.awaited_ensemble(entry, &served).await?;
                        served.fresh_after(kept.looks)?
                    } else {
                        None
                    },
                }),
            },
            examining: work.examining,
        });
        let (rows, asked) = (work.rows.clone(), Arc::clone(&served));
        let applicants = self.pool.run_in_background(move || rows.applicants(&asked)).await?;
        let job = entry.id.to_string();
        let names = AdviceFile::new(served.explainer(), &work.request).table(&[], None)?;
        let columns: Vec<String> =
            names.columns().iter().map(|column| column.name().to_owned()).collect();
        self.keep_result(&job, columns.clone(), None).await?;
        let kept = self.store.rows(&job).await?;
        let finished: BTreeSet<usize> = kept.iter().map(|row| row.number).collect();
        drop(kept);
        let missing: Vec<usize> =
            (0..applicants.len()).filter(|number| !finished.contains(number)).collect();
        let mut done = finished.len();
        let pace = Pace::new(done);
        for numbers in missing.chunks(CHUNK) {
            let some: Vec<Applicant> =
                numbers.iter().map(|&number| applicants[number].clone()).collect();
            let found = self.chunk(entry, &served, &advising, some);
            let found = self.told(entry, done, &pace, found).await?;
            let rows = self.kept_rows(entry.id, &served, work, &advising, numbers, found).await?;
            self.store.add_rows(&job, &rows).await?;
            done += numbers.len();
        }
        if work.request.promise.is_some() {
            // Rows that were found before a restart are in the table only.
            let JobRows { table, .. } = stored_rows(self.store.rows(&job).await?, columns.clone())?;
            let judge = move || match found_in(&table) {
                0 => Ok(None),
                _ => {
                    let promised = PromisedPoints::of_table(served.explainer(), &table)?;
                    advising.portfolio(&served, promised)
                }
            };
            let portfolio = self.pool.run_in_background(judge).await?;
            self.keep_result(&job, columns, portfolio).await?;
        }
        Ok(())
    }

    async fn keep_result(
        &self,
        job: &str,
        columns: Vec<String>,
        portfolio: Option<PortfolioDocument>,
    ) -> Result<()> {
        let result = serde_json::to_string(&KeptResult::Whole { columns, portfolio })
            .map_err(|error| Error::Broken(format!("a result without text: {error}")))?;
        self.store.set_result(job, &result).await
    }

    /// Advice for some rows, on the background threads.
    async fn chunk(
        &self,
        entry: &Arc<JobEntry>,
        served: &Arc<Served>,
        advising: &Arc<Advising>,
        applicants: Vec<Applicant>,
    ) -> Result<Vec<Found>> {
        let (entry, parking) = (Arc::clone(entry), self.parking.clone());
        let (served, advising) = (Arc::clone(served), Arc::clone(advising));
        self.pool
            .run_in_background(move || {
                let go_on = || match parking.go_on() {
                    ControlFlow::Continue(()) => entry.stop.go_on(),
                    stop @ ControlFlow::Break(()) => stop,
                };
                let adviser = served.adviser(&advising.request)?;
                let advice = adviser.advise(&applicants, |tick| {
                    if tick == Tick::Answered {
                        entry.step();
                    }
                    go_on()
                })?;
                advising.documents(&adviser, advice, &go_on)
            })
            .await
    }

    /// Records the advice if requested, and converts it to rows of the job.
    async fn kept_rows(
        &self,
        job: Uuid,
        served: &Served,
        work: &ExplainWork,
        advising: &Advising,
        numbers: &[usize],
        found: Vec<Found>,
    ) -> Result<Vec<StoredRow>> {
        let promises = match &work.recording {
            None => vec![None; found.len()],
            Some(recording) => {
                let numbered: Vec<(usize, &Found)> = numbers.iter().copied().zip(&found).collect();
                let subjects: Vec<String> = numbers
                    .iter()
                    .filter_map(|&number| recording.subjects.get(number).cloned())
                    .collect();
                let until = recording.holds_until;
                self.record(served, &work.request, &subjects, until, &numbered, Some(job)).await?
            }
        };
        let advice: Vec<_> = found.iter().map(|found| found.advice.clone()).collect();
        let fresh = advising.certifying.as_ref().and_then(|own| own.fresh.as_deref());
        let explainer = served.explainer_for(&work.request)?;
        let table = AdviceFile::new(&explainer, &work.request).table(&advice, fresh)?;
        let cells = |line: usize| -> Vec<&str> {
            table.columns().iter().map(|column| column.cell(line)).collect()
        };
        let rows = numbers.iter().zip(found).zip(promises).enumerate();
        rows.map(|(line, ((&number, found), promise))| {
            Ok(StoredRow {
                number,
                document: found.document.get().to_owned(),
                cells: serde_json::to_string(&cells(line))
                    .map_err(|error| Error::Broken(format!("cells without text: {error}")))?,
                promise: promise.map(|promise| promise.to_string()),
            })
        })
        .collect()
    }

    /// Waits for the retrained models.
    async fn awaited_ensemble(&self, entry: &JobEntry, served: &Served) -> Result<Arc<Fresh>> {
        while matches!(served.training(), Training::Under(..)) {
            if entry.stop.is_set() || self.parking.is_set() {
                let what = "the retrained models were not ready yet".to_owned();
                return Err(LibraryError::Cancelled(what).into());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        served.fresh_so_far()
    }

    /// The result of a job that gives advice.
    pub(super) async fn explained(&self, id: Uuid) -> Result<ExplainAnswer> {
        let stored = self.store.job(&id.to_string()).await?;
        let stored = stored.ok_or_else(|| Error::absent("job", id.to_string()))?;
        let damaged = |error: serde_json::Error| Error::Broken(format!("a damaged job: {error}"));
        let super::Work::Explain(work) = serde_json::from_str(&stored.question).map_err(damaged)?
        else {
            return Err(Error::Broken("a job of another kind".to_owned()));
        };
        // The model may have been removed; its results are stored.
        let kept = self.store.result(&id.to_string()).await?.unwrap_or_default();
        let (columns, portfolio) = match serde_json::from_str(&kept).map_err(damaged)? {
            KeptResult::Whole { columns, portfolio } => (columns, portfolio),
            KeptResult::Columns(columns) => (columns, None),
        };
        let rows = self.store.rows(&id.to_string()).await?;
        let JobRows { table, documents, recorded } = stored_rows(rows, columns)?;
        let served = self.model(Some(&stored.model)).ok();
        let served = served.filter(|served| served.fingerprint() == work.fingerprint);
        let warnings = served.map_or_else(Vec::new, |served| served.warnings(&work.request));
        Ok(ExplainAnswer {
            model: stored.model,
            document: work.document(documents, found_in(&table), portfolio, warnings),
            recorded: work.recording.map(|_| recorded),
            table: Some(table),
        })
    }
}

/// The rows of a job.
struct JobRows {
    table: Table,
    documents: Vec<Box<RawValue>>,
    /// The promises in the ledger.
    recorded: Vec<Option<Uuid>>,
}

/// The stored rows of a job, with the columns of their table.
fn stored_rows(rows: Vec<StoredRow>, columns: Vec<String>) -> Result<JobRows> {
    let damaged = |error: serde_json::Error| Error::Broken(format!("a damaged job: {error}"));
    let mut columns: Vec<Column> = columns.into_iter().map(Column::new).collect();
    let (mut documents, mut recorded) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let cells: Vec<String> = serde_json::from_str(&row.cells).map_err(damaged)?;
        columns.iter_mut().zip(&cells).for_each(|(column, cell)| column.push(cell));
        documents.push(RawValue::from_string(row.document).map_err(damaged)?);
        recorded.push(row.promise.as_deref().and_then(|id| Uuid::parse_str(id).ok()));
    }
    Ok(JobRows { table: Table::new("counterfactuals", columns)?, documents, recorded })
}

/// The rows of a table of advice that have advice.
fn found_in(table: &Table) -> usize {
    let status = table.columns().iter().find(|column| column.name() == "status");
    status.map_or(0, |status| status.cells().filter(|cell| *cell == "found").count())
}
