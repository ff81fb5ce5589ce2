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

use std::path::Path;

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

impl RecordedAnswers {
    /// Adds those of another file.
    pub fn add(&mut self, other: &Self) {
        self.answers += other.answers;
        self.recorded += other.recorded;
        self.already += other.already;
        self.without += other.without;
    }
}

impl Ledger {
    /// Records the promises in a file of answers, some thousand at a time; those that were recorded
    /// before an error stay. `subject` is the column that names the subjects.
    ///
    /// `watch` is called with the answers read so far.
    pub async fn record_answers(
        &self,
        file: &Path,
        subject: &str,
        mut watch: impl FnMut(&RecordedAnswers),
    ) -> Result<RecordedAnswers> {
        let mut recorded = RecordedAnswers::default();
        for table in TableReader::open(file, ROWS)? {
            let table = table?;
            let promises = NewPromise::of_answers(&table, subject)?;
            recorded.answers += table.rows() as u64;
            recorded.without += (table.rows() - promises.len()) as u64;
            for each in self.record(&promises).await? {
                *(if each.already { &mut recorded.already } else { &mut recorded.recorded }) += 1;
            }
            watch(&recorded);
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
        let subjects = table.column(subject)?;
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
