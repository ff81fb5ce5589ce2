//! The engine's data in the database: models, their retrained versions, and jobs.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sqlx::Row as _;
use tyrex_ledger::database::{Database, on};

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
        on!(self.0, pool => {
            let rows = sqlx::query(ALL).fetch_all(pool).await.map_err(broken)?;
            rows.iter().map(|row| {
                let format: Option<String> = row.try_get(6).map_err(broken)?;
                let file: Option<Vec<u8>> = row.try_get(7).map_err(broken)?;
                let reference_format: Option<String> = row.try_get(11).map_err(broken)?;
                let reference: Option<Vec<u8>> = row.try_get(12).map_err(broken)?;
                Ok(StoredModel {
                    id: row.try_get(0).map_err(broken)?,
                    created: time(row.try_get(1).map_err(broken)?)?,
                    fingerprint: row.try_get(2).map_err(broken)?,
                    dataset: row.try_get(3).map_err(broken)?,
                    onnx: row.try_get(4).map_err(broken)?,
                    schema: row.try_get(5).map_err(broken)?,
                    data: format.zip(file),
                    reference: reference_format.zip(reference),
                    options: row.try_get(8).map_err(broken)?,
                    retraining: row.try_get(9).map_err(broken)?,
                    active: row.try_get::<i64, _>(10).map_err(broken)? != 0,
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
        let added = on!(self.0.writers(), pool => sqlx::query(ADD)
            .bind(&model.id)
            .bind(model.created.to_string())
            .bind(&model.fingerprint)
            .bind(&model.dataset)
            .bind(&model.onnx)
            .bind(&model.schema)
            .bind(format)
            .bind(file)
            .bind(&model.options)
            .bind(&model.retraining)
            .bind(reference_format)
            .bind(reference)
            .execute(pool)
            .await
            .map_err(broken)?
            .rows_affected());
        Ok(added > 0)
    }

    /// Makes one model the active one.
    pub(super) async fn activate(&self, id: &str) -> Result<()> {
        const ACTIVATE: &str = "UPDATE models SET active = CASE WHEN id = $1 THEN 1 ELSE 0 END";
        on!(self.0.writers(), pool => sqlx::query(ACTIVATE).bind(id).execute(pool).await.map_err(broken)?
            .rows_affected());
        Ok(())
    }

    pub(super) async fn remove_model(&self, id: &str) -> Result<()> {
        const REMOVE: &str = "DELETE FROM models WHERE id = $1";
        on!(self.0.writers(), pool => sqlx::query(REMOVE).bind(id).execute(pool).await.map_err(broken)?
            .rows_affected());
        Ok(())
    }

    /// The stored retrained versions of a model, with their numbers.
    pub(super) async fn members(&self, model: &str) -> Result<Vec<(usize, Vec<u8>)>> {
        const MEMBERS: &str = "SELECT number, onnx FROM members WHERE model = $1 ORDER BY number";
        let members: Vec<(i64, Vec<u8>)> = on!(self.0, pool => sqlx::query_as(MEMBERS)
            .bind(model)
            .fetch_all(pool)
            .await
            .map_err(broken)?);
        Ok(members.into_iter().map(|(number, onnx)| (number as usize, onnx)).collect())
    }

    pub(super) async fn add_member(&self, model: &str, number: usize, onnx: &[u8]) -> Result<()> {
        const ADD: &str = "INSERT INTO members (model, number, onnx) VALUES ($1, $2, $3) \
             ON CONFLICT (model, number) DO NOTHING";
        on!(self.0.writers(), pool => sqlx::query(ADD)
            .bind(model)
            .bind(number as i64)
            .bind(onnx)
            .execute(pool)
            .await
            .map_err(broken)?
            .rows_affected());
        Ok(())
    }

    /// All jobs, the oldest first.
    pub(super) async fn jobs(&self) -> Result<Vec<StoredJob>> {
        self.some_jobs("").await
    }

    /// The ids of all jobs.
    pub(super) async fn job_ids(&self) -> Result<BTreeSet<String>> {
        const IDS: &str = "SELECT id FROM jobs";
        let ids: Vec<String> =
            on!(self.0, pool => sqlx::query_scalar(IDS).fetch_all(pool).await.map_err(broken)?);
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
        on!(self.0, pool => {
            let rows = sqlx::query(SOME).bind(id).fetch_all(pool).await.map_err(broken)?;
            rows.iter().map(|row| {
                let finished: Option<String> = row.try_get(7).map_err(broken)?;
                Ok(StoredJob {
                    id: row.try_get(0).map_err(broken)?,
                    kind: row.try_get(1).map_err(broken)?,
                    state: row.try_get(2).map_err(broken)?,
                    model: row.try_get(3).map_err(broken)?,
                    question: row.try_get(4).map_err(broken)?,
                    total: row.try_get::<i64, _>(5).map_err(broken)? as usize,
                    created: time(row.try_get(6).map_err(broken)?)?,
                    finished: finished.as_deref().map(time).transpose()?,
                    problem: row.try_get(8).map_err(broken)?,
                    rows: row.try_get::<i64, _>(9).map_err(broken)? as usize,
                    owner: row.try_get(10).map_err(broken)?,
                })
            }).collect()
        })
    }

    pub(super) async fn add_job(&self, job: &StoredJob) -> Result<()> {
        const ADD: &str = "INSERT INTO jobs (id, kind, state, model, question, total, created, \
             owner) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        on!(self.0.writers(), pool => sqlx::query(ADD)
            .bind(&job.id)
            .bind(&job.kind)
            .bind(&job.state)
            .bind(&job.model)
            .bind(&job.question)
            .bind(job.total as i64)
            .bind(job.created.to_string())
            .bind(&job.owner)
            .execute(pool)
            .await
            .map_err(broken)?
            .rows_affected());
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
        on!(self.0.writers(), pool => sqlx::query(SET)
            .bind(id)
            .bind(state)
            .bind(finished.map(|time| time.to_string()))
            .bind(problem)
            .execute(pool)
            .await
            .map_err(broken)?
            .rows_affected());
        Ok(())
    }

    /// Stores the result of a job without rows.
    pub(super) async fn set_result(&self, id: &str, result: &str) -> Result<()> {
        const SET: &str = "UPDATE jobs SET result = $2 WHERE id = $1";
        on!(self.0.writers(), pool => sqlx::query(SET).bind(id).bind(result).execute(pool).await
            .map_err(broken)?
            .rows_affected());
        Ok(())
    }

    pub(super) async fn result(&self, id: &str) -> Result<Option<String>> {
        const RESULT: &str = "SELECT result FROM jobs WHERE id = $1";
        let found: Option<Option<String>> = on!(self.0, pool => sqlx::query_scalar(RESULT)
            .bind(id)
            .fetch_optional(pool)
            .await
            .map_err(broken)?);
        Ok(found.flatten())
    }

    /// Removes jobs that ended before a time, with their rows; returns their ids.
    pub(super) async fn remove_finished(&self, before: Timestamp) -> Result<Vec<String>> {
        const OLD: &str = "SELECT id, finished FROM jobs WHERE finished IS NOT NULL";
        let ended: Vec<(String, String)> =
            on!(self.0, pool => sqlx::query_as(OLD).fetch_all(pool).await.map_err(broken)?);
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
        on!(self.0.writers(), pool => sqlx::query(REMOVE).bind(id).execute(pool).await.map_err(broken)?
            .rows_affected());
        Ok(())
    }

    /// Stores finished rows of a job, all of them or none.
    pub(super) async fn add_rows(&self, job: &str, rows: &[StoredRow]) -> Result<()> {
        const ADD: &str = "INSERT INTO job_rows (job, number, document, cells, promise) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (job, number) DO NOTHING";
        let mut transaction = self.0.write().await?;
        for row in rows {
            on!(transaction, connection => sqlx::query(ADD)
                .bind(job)
                .bind(row.number as i64)
                .bind(&row.document)
                .bind(&row.cells)
                .bind(&row.promise)
                .execute(&mut **connection)
                .await
                .map_err(broken)?
                .rows_affected());
        }
        Ok(transaction.commit().await?)
    }

    /// The finished rows of a job, in their order.
    pub(super) async fn rows(&self, job: &str) -> Result<Vec<StoredRow>> {
        const ROWS: &str = "SELECT number, document, cells, promise FROM job_rows \
             WHERE job = $1 ORDER BY number";
        let rows: Vec<(i64, String, String, Option<String>)> = on!(self.0, pool => sqlx::query_as(ROWS).bind(job).fetch_all(pool).await
                .map_err(broken)?);
        let row = |(number, document, cells, promise): (i64, String, String, Option<String>)| {
            StoredRow { number: number as usize, document, cells, promise }
        };
        Ok(rows.into_iter().map(row).collect())
    }
}

/// The error of the database.
fn broken(error: sqlx::Error) -> Error {
    tyrex_ledger::database::Error::from(error).into()
}
