//! The ledger: promises of answers are recorded.

use std::path::PathBuf;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::{AnswerFiles, Error, Head, Ledger, RecordedAnswers};

use crate::error;
use crate::run::run;

/// The exception of an error of the ledger.
fn exception(error: Error) -> PyErr {
    match error {
        Error::Library(error) => error::exception(error),
        other => error::exception(tyrex::Error::Table {
            file: "ledger".into(),
            problem: other.to_string(),
        }),
    }
}

/// Records the promises in files of answers: the counts and the head of the ledger, as JSON.
#[pyfunction]
#[pyo3(signature = (ledger, files, subject, progress = None))]
pub(crate) fn record_answers(
    py: Python<'_>,
    ledger: &str,
    files: Vec<PathBuf>,
    subject: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let recorded = run(py, progress, |watch| {
        // A ledger is created only for files that can be recorded.
        let answers = AnswerFiles::check(&files, subject)?;
        let total = answers.rows().unwrap_or(0);
        runtime.block_on(async {
            let ledger = Ledger::new(Database::open(ledger).await?);
            let report = |own: &RecordedAnswers| {
                watch.at(own.answers, total);
                watch.go_on()
            };
            let all = ledger.record_answers(&answers, report).await?;
            let head = ledger.head().await?;
            ledger.database().close().await;
            Ok::<(RecordedAnswers, Head), Error>((all, head))
        })
    })?;
    let (all, head) = recorded.whole()?.map_err(exception)?;
    #[derive(serde::Serialize)]
    struct Document {
        #[serde(flatten)]
        recorded: RecordedAnswers,
        head: Head,
    }
    error::json(&Document { recorded: all, head })
}
