//! Advice for many rows.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tyrex::counterfactual::Tick;
use tyrex::data::{Column, Table};
use tyrex::explain::{Applicant, Fresh, Request};
use tyrex::{Error as LibraryError, Seed};
use uuid::Uuid;

use super::{Entry, Pace};
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
    pub(crate) request: Request,
    pub(crate) certifying: Option<KeptCertifying>,
    pub(crate) examining: bool,
    pub(crate) recording: Option<Recording>,
}

/// The terms of the certificates, without the retrained models.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeptCertifying {
    pub(crate) terms: tyrex::certificate::Terms,
    pub(crate) seed: Seed,
    /// Whether retrained models existed when the job was created, so that the result does not
    /// depend on when it runs.
    pub(crate) ensemble: bool,
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
                Ok(served.explainer().read_applicants(&table)?)
            }
        }
    }
}

/// Advice for rows, from a job or a direct answer.
#[derive(Debug)]
pub(crate) struct ExplainAnswer {
    pub(crate) model: String,
    pub(crate) fingerprint: String,
    pub(crate) request: Request,
    pub(crate) documents: Vec<Box<RawValue>>,
    /// Reasons to doubt them, unless the model was removed.
    pub(crate) warnings: Vec<String>,
    /// The promises of the rows, if they were recorded.
    pub(crate) recorded: Option<Vec<Option<Uuid>>>,
    /// The same as a table, if requested.
    pub(crate) table: Option<Table>,
}

impl Engine {
    pub(super) async fn run_explain(&self, entry: &Arc<Entry>, work: &ExplainWork) -> Result<()> {
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
                        Some(self.awaited_ensemble(entry, &served).await?)
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
        let names = served.explainer().advice_table(&[], &work.request, None)?;
        let names: Vec<&str> = names.columns().iter().map(Column::name).collect();
        let names = serde_json::to_string(&names)
            .map_err(|error| Error::Broken(format!("names without text: {error}")))?;
        self.store.set_result(&job, &names).await?;
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
        Ok(())
    }

    /// Advice for some rows, on the background threads.
    async fn chunk(
        &self,
        entry: &Arc<Entry>,
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
                advising.documents(&served, &adviser, advice, &go_on)
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
        let table = served.explainer().advice_table(&advice, &work.request, fresh)?;
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
    async fn awaited_ensemble(&self, entry: &Entry, served: &Served) -> Result<Arc<Fresh>> {
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
        let rows = self.store.rows(&id.to_string()).await?;
        // The model may have been removed; its results are stored.
        let names = self.store.result(&id.to_string()).await?.unwrap_or_default();
        let names: Vec<String> = serde_json::from_str(&names).map_err(damaged)?;
        let mut columns: Vec<Column> = names.into_iter().map(Column::new).collect();
        let mut documents = Vec::with_capacity(rows.len());
        let mut recorded = Vec::with_capacity(rows.len());
        for row in rows {
            let cells: Vec<String> = serde_json::from_str(&row.cells).map_err(damaged)?;
            columns.iter_mut().zip(&cells).for_each(|(column, cell)| column.push(cell));
            documents.push(RawValue::from_string(row.document).map_err(damaged)?);
            recorded.push(row.promise.as_deref().and_then(|id| Uuid::parse_str(id).ok()));
        }
        let served = self.model(Some(&stored.model)).ok();
        let served = served.filter(|served| served.fingerprint() == work.fingerprint);
        Ok(ExplainAnswer {
            warnings: served.map_or_else(Vec::new, |served| served.warnings(&work.request)),
            model: stored.model,
            fingerprint: work.fingerprint,
            request: work.request,
            documents,
            recorded: work.recording.map(|_| recorded),
            table: Some(Table::new("counterfactuals", columns)?),
        })
    }
}
