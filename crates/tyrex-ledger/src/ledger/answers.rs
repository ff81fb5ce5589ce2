//! Promises from the answers of other processes.
//!
//! Processes that answer parts of a table do not write the ledger. Their answers carry what a promise
//! needs, and the files of answers are recorded by one process, in one chain. A promise's id is a
//! salted digest of its content:
//!
//! ```text
//! id = the first 128 bits of SHA-256( "tyrex ledger promise 1" || field(salt) || field(model)
//!      || field(request) || field(subject) || field(holds_until) || field(document) ),
//!      as a UUID of version 8
//! ```
//!
//! so files may be recorded in any order, and twice: the second time there is nothing new. The salt
//! is random, the same for all answers of one run, and not in the ledger: an id stays when personal
//! data is erased, and without the salt a guess cannot be tested against it.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use tyrex::data::{Column, Table, TableReader};
use uuid::{Builder, Uuid};

use super::Ledger;
use super::chain::digest;
use super::entry::{Document, written};
use super::error::{Error, Result};
use super::promise::{NewPromise, check_subject};

/// The fewest characters of a salt: 128 bits in hexadecimal.
const LEAST_SALT: usize = 32;

/// The rows of a file that are recorded together.
const ROWS: usize = 8192;

/// The result of recording answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RecordedAnswers {
    /// The answers that were read.
    pub answers: u64,
    /// The promises that are new in the ledger.
    pub recorded: u64,
    /// The promises that it had already.
    pub already: u64,
    /// The answers without advice, which promise nothing.
    pub without: u64,
}

/// Files of answers that can be recorded, as far as their first row shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerFiles {
    files: Vec<PathBuf>,
    subject: String,
    rows: Option<u64>,
}

impl AnswerFiles {
    /// Files, and folders of Parquet files as Spark and Ray write them, with the folders in them.
    /// `subject` is the column that names the subjects. A file without the columns of promises is an
    /// error, now and not after others were recorded.
    pub fn check(paths: &[impl AsRef<Path>], subject: &str) -> Result<Self> {
        let mut files = Vec::new();
        for path in paths.iter().map(AsRef::as_ref) {
            let known = files.len();
            if path.is_dir() {
                parts(path, &mut files)?;
                files[known..].sort_unstable();
            } else {
                files.push(path.to_owned());
            }
            if files.len() == known {
                let problem = "found no file, expected Parquet files of answers".to_owned();
                return Err(tyrex::Error::Table { file: path.to_owned(), problem }.into());
            }
        }
        let mut rows = Some(0_u64);
        for file in &files {
            let mut reader = TableReader::open_columns(file, 1, &columns(subject))?;
            let own = reader.declared_rows();
            rows = rows.zip(own).map(|(before, own)| before.saturating_add(own));
            if let Some(table) = reader.next().transpose()? {
                NewPromise::of_answers(&table, subject)?;
            }
        }
        Ok(Self { files, subject: subject.to_owned(), rows })
    }

    /// The files, in the order of recording.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The number of answers, if all files say it.
    pub fn rows(&self) -> Option<u64> {
        self.rows
    }
}

/// The Parquet files in a folder and its folders, without those that engines write for themselves,
/// such as `_SUCCESS`.
fn parts(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |source| tyrex::Error::Io { action: "read", path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b"_")
            || entry.file_name().as_encoded_bytes().starts_with(b".")
        {
            continue;
        }
        // Links to folders are not followed: they could form a circle.
        if entry.file_type().map_err(failed)?.is_dir() {
            parts(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "parquet") {
            files.push(path);
        }
    }
    Ok(())
}

/// The columns of a file that are read.
fn columns(subject: &str) -> [&str; 7] {
    [subject, "status", "promise", "holds_until", "parameters", "model", "salt"]
}

impl Ledger {
    /// Records the promises in files of answers, some thousand at a time; those that were recorded
    /// before an error stay.
    ///
    /// `watch` is called with the answers read so far, between two transactions; a `Break` ends the
    /// work there. Run again, it records the rest.
    pub async fn record_answers(
        &self,
        answers: &AnswerFiles,
        mut watch: impl FnMut(&RecordedAnswers) -> ControlFlow<()>,
    ) -> Result<RecordedAnswers> {
        let mut recorded = RecordedAnswers::default();
        for file in &answers.files {
            for table in TableReader::open_columns(file, ROWS, &columns(&answers.subject))? {
                let table = table?;
                let promises = NewPromise::of_answers(&table, &answers.subject)?;
                recorded.answers += table.rows() as u64;
                recorded.without += (table.rows() - promises.len()) as u64;
                for each in self.record(&promises).await? {
                    let count =
                        if each.already { &mut recorded.already } else { &mut recorded.recorded };
                    *count += 1;
                }
                if watch(&recorded).is_break() {
                    return Ok(recorded);
                }
            }
        }
        Ok(recorded)
    }
}

impl NewPromise {
    /// The promises in a table of answers. An answer without advice has none.
    pub fn of_answers(table: &Table, subject: &str) -> Result<Vec<Self>> {
        let column = |name: &str| {
            let known = table.columns().iter().find(|own| own.name() == name);
            known.ok_or_else(|| tyrex::Error::Table {
                file: table.source().to_owned(),
                problem: format!(
                    "there is no column `{name}`; expected answers that carry promises, which an \
                     adviser gives with `promises=True`"
                ),
            })
        };
        for name in columns(subject) {
            if table.columns().iter().any(|own| own.repeats() == Some(name)) {
                return Err(tyrex::Error::Table {
                    file: table.source().to_owned(),
                    problem: format!("there are several columns `{name}`, expected one"),
                }
                .into());
            }
        }
        let subjects = table.columns().iter().find(|own| own.name() == subject);
        let subjects = subjects.ok_or_else(|| tyrex::Error::Table {
            file: table.source().to_owned(),
            problem: format!(
                "no column `{subject}`, expected the column of the answers that names the subjects"
            ),
        })?;
        let (status, promise) = (column("status")?, column("promise")?);
        let (until, parameters, model) =
            (column("holds_until")?, column("parameters")?, column("model")?);
        let salt = column("salt")?;
        let mut promises = Vec::new();
        // Nearly all answers have the same.
        let mut last: Option<(&str, Value)> = None;
        for row in table.row_numbers() {
            let wrong = |column: &Column, expected: String| tyrex::Error::Cell {
                file: table.source().to_owned(),
                row,
                column: column.name().to_owned(),
                value: table.cell(row, column).chars().take(120).collect(),
                expected,
            };
            match (table.cell(row, status), table.cell(row, promise).is_empty()) {
                ("found", false) => {}
                ("not_found" | "error", true) => continue,
                ("found", true) => {
                    return Err(
                        wrong(promise, "a promise, since there is advice".to_owned()).into()
                    );
                }
                (_, _) => {
                    let expected = "found, or not_found or error without a promise".to_owned();
                    return Err(wrong(status, expected).into());
                }
            }
            let json = |error: serde_json::Error| format!("a JSON document: {error}");
            let document: Document = serde_json::from_str(table.cell(row, promise))
                .map_err(|error| wrong(promise, json(error)))?;
            let request = match &last {
                Some((text, request)) if *text == table.cell(row, parameters) => request.clone(),
                _ => {
                    let request = request(table.cell(row, parameters))
                        .map_err(|e| wrong(parameters, json(e)))?;
                    last = Some((table.cell(row, parameters), request.clone()));
                    request
                }
            };
            let holds_until = match table.cell(row, until) {
                "" => None,
                text => Some(text.parse().map_err(|error| {
                    wrong(until, format!("a time, or an empty cell for no end: {error}"))
                })?),
            };
            let subject = table.cell(row, subjects).to_owned();
            if let Err(error @ Error::Subject { .. }) = check_subject(&subject) {
                return Err(wrong(subjects, error.to_string()).into());
            }
            let model = table.cell(row, model).to_owned();
            if table.cell(row, salt).len() < LEAST_SALT {
                let expected = format!("at least {LEAST_SALT} random characters");
                return Err(wrong(salt, expected).into());
            }
            let id = Uuid::nil();
            let mut own = Self { id, subject, document, request, model, holds_until };
            own.check()?;
            own.id = own.digest(table.cell(row, salt))?;
            promises.push(own);
        }
        Ok(promises)
    }

    /// The id of this content.
    fn digest(&self, salt: &str) -> Result<Uuid> {
        let until = self.holds_until.map(written);
        let document = self.text()?;
        let hash = digest(
            "tyrex ledger promise 1",
            [
                Some(salt),
                Some(self.model.as_str()),
                Some(&self.request.to_string()),
                Some(&self.subject),
                until.as_deref(),
                Some(&document),
            ],
        );
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.0[..16]);
        Ok(Builder::from_custom_bytes(bytes).into_uuid())
    }
}

/// The request in the cell `parameters` of an answer, which has more.
fn request(parameters: &str) -> serde_json::Result<Value> {
    let mut request: serde_json::Map<String, Value> = serde_json::from_str(parameters)?;
    request.remove("meaning");
    request.remove("searched");
    Ok(request.into())
}
