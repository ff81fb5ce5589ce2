//! The engine's data in the database: models, their retrained versions, and jobs.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sqlx::Row as _;
use tyrex_ledger::database::{Database, on, sql};

use super::error::{Error, Result};

/// The engine's tables.
#[derive(Debug, Clone)]
pub(super) struct Store(Database);

/// A model and its sources.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredModel {
    pub(super) id: String,
    pub(super) created: Timestamp,
    pub(super) fingerprint: String,
    pub(super) dataset: Option<String>,
    pub(super) onnx: Vec<u8>,
    pub(super) schema: Option<String>,
    /// The format of the rows' file and its bytes.
    pub(super) data: Option<(String, Vec<u8>)>,
    /// The same for the rows the model was trained on, if they are separate.
    pub(super) reference: Option<(String, Vec<u8>)>,
    pub(super) options: String,
    pub(super) retraining: Option<String>,
    pub(super) active: bool,
}

/// A job without its finished rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredJob {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) state: String,
    pub(super) model: String,
    pub(super) question: String,
    pub(super) total: usize,
    pub(super) created: Timestamp,
    pub(super) finished: Option<Timestamp>,
    pub(super) problem: Option<String>,
    pub(super) owner: Option<String>,
    pub(super) rows: usize,
}

/// A row of a job that is finished.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredRow {
    pub(super) number: usize,
    pub(super) document: String,
    /// A JSON list of texts.
    pub(super) cells: String,
    /// Its promise in the ledger.
    pub(super) promise: Option<String>,
}

fn time(text: &str) -> Result<Timestamp> {
    text.parse().map_err(|error| Error::Broken(format!("invalid time in the database: {error}")))
}

impl Store {
    pub(super) fn new(database: Database) -> Self {
        Self(database)
    }

    pub(super) async fn models(&self) -> Result<Vec<StoredModel>> {
        const ALL: &str = "SELECT id, created, fingerprint, dataset, onnx, schema_text, \
             data_format, data_file, options, retraining, active, reference_format, \
             reference_file FROM models ORDER BY created, id";
        on!(self.0.executor(), pool => {
            let rows = sqlx::query(ALL).fetch_all(pool).await?;
            rows.iter().map(|row| {
                let format: Option<String> = row.try_get(6)?;
                let file: Option<Vec<u8>> = row.try_get(7)?;
                let reference_format: Option<String> = row.try_get(11)?;
                let reference: Option<Vec<u8>> = row.try_get(12)?;
                Ok(StoredModel {
                    id: row.try_get(0)?,
                    created: time(row.try_get(1)?)?,
                    fingerprint: row.try_get(2)?,
                    dataset: row.try_get(3)?,
                    onnx: row.try_get(4)?,
                    schema: row.try_get(5)?,
                    data: format.zip(file),
                    reference: reference_format.zip(reference),
                    options: row.try_get(8)?,
                    retraining: row.try_get(9)?,
                    active: row.try_get::<i64, _>(10)? != 0,
                })
            }).collect()
        })
    }

    /// Adds a model; `false` if the name is taken.
    pub(super) async fn add_model(&self, model: &StoredModel) -> Result<bool> {
        const ADD: &str = "INSERT INTO models (id, created, fingerprint, dataset, onnx, \
             schema_text, data_format, data_file, options, retraining, active, \
             reference_format, reference_file) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
             0, $11, $12) ON CONFLICT (id) DO NOTHING";
        let parts = |file: &Option<(String, Vec<u8>)>| file.clone().unzip();
        let (format, file) = parts(&model.data);
        let (reference_format, reference) = parts(&model.reference);
        let added = sql!(execute in self.0.writers();
            ADD,
            &model.id, model.created.to_string(), &model.fingerprint, &model.dataset,
            &model.onnx, &model.schema, format, file, &model.options, &model.retraining,
            reference_format, reference)?;
        Ok(added > 0)
    }

    /// Makes one model the active one.
    pub(super) async fn activate(&self, id: &str) -> Result<()> {
        const ACTIVATE: &str = "UPDATE models SET active = CASE WHEN id = $1 THEN 1 ELSE 0 END";
        sql!(execute in self.0.writers(); ACTIVATE, id)?;
        Ok(())
    }

    pub(super) async fn remove_model(&self, id: &str) -> Result<()> {
        const REMOVE: &str = "DELETE FROM models WHERE id = $1";
        sql!(execute in self.0.writers(); REMOVE, id)?;
        Ok(())
    }

    /// The stored retrained versions of a model, with their numbers.
    pub(super) async fn members(&self, model: &str) -> Result<Vec<(usize, Vec<u8>)>> {
        const MEMBERS: &str = "SELECT number, onnx FROM members WHERE model = $1 ORDER BY number";
        let members: Vec<(i64, Vec<u8>)> = sql!(fetch_all in self.0; MEMBERS, model)?;
        Ok(members.into_iter().map(|(number, onnx)| (number as usize, onnx)).collect())
    }

    pub(super) async fn add_member(&self, model: &str, number: usize, onnx: &[u8]) -> Result<()> {
        const ADD: &str = "INSERT INTO members (model, number, onnx) VALUES ($1, $2, $3) \
             ON CONFLICT (model, number) DO NOTHING";
        sql!(execute in self.0.writers(); ADD, model, number as i64, onnx)?;
        Ok(())
    }

    /// All jobs, the oldest first.
    pub(super) async fn jobs(&self) -> Result<Vec<StoredJob>> {
        self.some_jobs("").await
    }

    /// The ids of all jobs.
    pub(super) async fn job_ids(&self) -> Result<BTreeSet<String>> {
        const IDS: &str = "SELECT id FROM jobs";
        let ids: Vec<String> = sql!(values in self.0; IDS)?;
        Ok(ids.into_iter().collect())
    }

    /// One job.
    pub(super) async fn job(&self, id: &str) -> Result<Option<StoredJob>> {
        Ok(self.some_jobs(id).await?.pop())
    }

    /// The job with this id; all jobs if it is empty.
    async fn some_jobs(&self, id: &str) -> Result<Vec<StoredJob>> {
        const SOME: &str = "SELECT id, kind, state, model, question, total, created, finished, \
             problem, (SELECT count(*) FROM job_rows WHERE job = id), owner FROM jobs \
             WHERE id = $1 OR $1 = '' ORDER BY created, id";
        on!(self.0.executor(), pool => {
            let rows = sqlx::query(SOME).bind(id).fetch_all(pool).await?;
            rows.iter().map(|row| {
                let finished: Option<String> = row.try_get(7)?;
                Ok(StoredJob {
                    id: row.try_get(0)?,
                    kind: row.try_get(1)?,
                    state: row.try_get(2)?,
                    model: row.try_get(3)?,
                    question: row.try_get(4)?,
                    total: row.try_get::<i64, _>(5)? as usize,
                    created: time(row.try_get(6)?)?,
                    finished: finished.as_deref().map(time).transpose()?,
                    problem: row.try_get(8)?,
                    rows: row.try_get::<i64, _>(9)? as usize,
                    owner: row.try_get(10)?,
                })
            }).collect()
        })
    }

    pub(super) async fn add_job(&self, job: &StoredJob) -> Result<()> {
        const ADD: &str = "INSERT INTO jobs (id, kind, state, model, question, total, created, \
             owner) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        sql!(execute in self.0.writers();
            ADD,
            &job.id, &job.kind, &job.state, &job.model, &job.question, job.total as i64,
            job.created.to_string(), &job.owner)?;
        Ok(())
    }

    /// Sets the state of a job, and its end if it is finished.
    pub(super) async fn set_job(
        &self,
        id: &str,
        state: &str,
        finished: Option<Timestamp>,
        problem: Option<&str>,
    ) -> Result<()> {
        const SET: &str = "UPDATE jobs SET state = $2, finished = $3, problem = $4 WHERE id = $1";
        sql!(execute in self.0.writers();
            SET,
            id, state, finished.map(|time| time.to_string()), problem)?;
        Ok(())
    }

    /// Stores the result of a job without rows.
    pub(super) async fn set_result(&self, id: &str, result: &str) -> Result<()> {
        const SET: &str = "UPDATE jobs SET result = $2 WHERE id = $1";
        sql!(execute in self.0.writers(); SET, id, result)?;
        Ok(())
    }

    pub(super) async fn result(&self, id: &str) -> Result<Option<String>> {
        const RESULT: &str = "SELECT result FROM jobs WHERE id = $1";
        let found: Option<Option<String>> = sql!(value in self.0; RESULT, id)?;
        Ok(found.flatten())
    }

    /// Removes jobs that ended before a time, with their rows; returns their ids.
    pub(super) async fn remove_finished(&self, before: Timestamp) -> Result<Vec<String>> {
        const OLD: &str = "SELECT id, finished FROM jobs WHERE finished IS NOT NULL";
        let ended: Vec<(String, String)> = sql!(fetch_all in self.0; OLD)?;
        let mut removed = Vec::new();
        for (id, finished) in ended {
            if time(&finished)? < before {
                self.remove_job(&id).await?;
                removed.push(id);
            }
        }
        Ok(removed)
    }

    pub(super) async fn remove_job(&self, id: &str) -> Result<()> {
        const REMOVE: &str = "DELETE FROM jobs WHERE id = $1";
        sql!(execute in self.0.writers(); REMOVE, id)?;
        Ok(())
    }

    /// Stores finished rows of a job, all of them or none.
    pub(super) async fn add_rows(&self, job: &str, rows: &[StoredRow]) -> Result<()> {
        const ADD: &str = "INSERT INTO job_rows (job, number, document, cells, promise) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (job, number) DO NOTHING";
        let mut transaction = self.0.write().await?;
        for row in rows {
            sql!(execute in transaction;
                ADD,
                job, row.number as i64, &row.document, &row.cells, &row.promise)?;
        }
        Ok(transaction.commit().await?)
    }

    /// The finished rows of a job, in their order.
    pub(super) async fn rows(&self, job: &str) -> Result<Vec<StoredRow>> {
        const ROWS: &str = "SELECT number, document, cells, promise FROM job_rows \
             WHERE job = $1 ORDER BY number";
        let rows: Vec<(i64, String, String, Option<String>)> = sql!(fetch_all in self.0;
            ROWS,
            job)?;
        let row = |(number, document, cells, promise): (i64, String, String, Option<String>)| {
            StoredRow { number: number as usize, document, cells, promise }
        };
        Ok(rows.into_iter().map(row).collect())
    }
}
