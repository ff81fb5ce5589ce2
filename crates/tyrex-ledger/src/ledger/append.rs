//! Appending to the ledger. Apart from erasure, nothing else changes it.

use std::future::Future;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tyrex::choice::Choice as _;
use uuid::Uuid;

use super::chain::{Hash, Line, Payload};
use super::entry::{CHANGED, Closing, Kind, Status, written};
use super::error::{Error, Result};
use super::promise::NewPromise;
use super::{Ledger, Recorded};
use crate::database::{Database, Transaction, from_row, sql};
use crate::new_id;

/// How long to retry after a lost connection.
const RETRIES: Duration = Duration::from_secs(30);

impl Ledger {
    /// Records promises, all of them or none. They are on disk when this returns.
    ///
    /// A promise that exists with the same content is not recorded again; with other content it is
    /// an error. So a lost connection, even after the commit, can be handled by retrying, which
    /// happens here for half a minute.
    pub async fn record(&self, promises: &[NewPromise]) -> Result<Vec<Recorded>> {
        promises.iter().try_for_each(NewPromise::check)?;
        if promises.is_empty() {
            return Ok(Vec::new());
        }
        retrying(|| self.try_record(promises)).await
    }

    async fn try_record(&self, promises: &[NewPromise]) -> Result<Vec<Recorded>> {
        let mut append = Append::begin(&self.database).await?;
        let mut recorded = Vec::with_capacity(promises.len());
        for promise in promises {
            recorded.push(match append.find(promise.id).await? {
                Some(found) => found.checked(promise)?,
                None => append.promise(promise).await?,
            });
        }
        append.commit().await?;
        Ok(recorded)
    }

    /// Closes an open promise. An expired promise can still be fulfilled.
    pub async fn close(&self, id: Uuid, closing: Closing) -> Result<()> {
        let own = new_id();
        retrying(|| self.try_close(id, closing, own)).await
    }

    async fn try_close(&self, id: Uuid, closing: Closing, own: Uuid) -> Result<()> {
        let mut append = Append::begin(&self.database).await?;
        // An earlier attempt was committed, but its answer was lost.
        if append.find(own).await?.is_some() {
            return append.commit().await;
        }
        let found = append.find(id).await?.ok_or(Error::Absent(id))?;
        let not_open = |problem: &str| Error::NotOpen { id, problem: problem.to_owned() };
        if found.line.kind != Kind::Promise.name() {
            return Err(not_open("it is not a promise"));
        }
        if found.subject.is_none() {
            return Err(not_open("its subject was erased"));
        }
        if let Some(status) = append.closed(found.line.sequence).await? {
            return Err(not_open(&format!("it is already {status}")));
        }
        let mut line = append.line(own, Kind::Closed);
        line.closes = Some(found.line.sequence);
        line.closed_as = Some(closing.name().to_owned());
        append.add(line).await?;
        append.commit().await
    }
}

/// Retries while the connection is lost.
pub(super) async fn retrying<T, F: Future<Output = Result<T>>>(
    mut attempt: impl FnMut() -> F,
) -> Result<T> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(50);
    loop {
        match attempt().await {
            Err(error) if error.is_lost_connection() && started.elapsed() < RETRIES => {
                tracing::warn!(%error, "the connection to the ledger was lost; trying again");
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(Duration::from_secs(1));
            }
            other => return other,
        }
    }
}

/// The end of the chain, locked against other writers.
///
/// PostgreSQL locks the row `head` until the transaction ends. So a second attempt waits here until
/// the first, whose connection was lost, is either committed or rolled back.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) transaction: Transaction,
    count: i64,
    hash: Hash,
}

/// An existing entry.
#[derive(Debug)]
pub(super) struct Present {
    pub(super) line: Line,
    hash: Vec<u8>,
    subject: Option<String>,
    document: Option<String>,
}
from_row!(Present { hash, subject, document, ..line });

impl Present {
    /// Whether it equals this promise.
    fn checked(self, promise: &NewPromise) -> Result<Recorded> {
        let line = &self.line;
        let same_text = |stored: Option<&str>, new: &str| {
            // The text of numbers and the order of keys may differ.
            let read = serde_json::from_str::<serde_json::Value>;
            stored.is_some_and(|stored| stored == new || read(stored).ok() == read(new).ok())
        };
        let forgotten = self.subject.is_none();
        let same = line.kind == Kind::Promise.name()
            && line.model.as_ref() == Some(&promise.model)
            && line.holds_until == promise.holds_until.map(written)
            && same_text(line.request.as_deref(), &promise.request.to_string())
            && (forgotten
                || (self.subject.as_ref() == Some(&promise.subject)
                    && same_text(self.document.as_deref(), &promise.text()?)));
        if !same {
            return Err(Error::Taken(promise.id));
        }
        let sequence = line.sequence as u64;
        let damaged = |problem: &str| Error::Damaged { sequence, problem: problem.to_owned() };
        Ok(Recorded {
            id: promise.id,
            sequence,
            time: line.time.parse().map_err(|_| damaged("its time cannot be read"))?,
            hash: Hash::of_bytes(&self.hash).ok_or_else(|| damaged("its hash is not 32 bytes"))?,
            already: true,
        })
    }
}

impl Append {
    pub(super) async fn begin(database: &Database) -> Result<Self> {
        let mut transaction = database.write().await?;
        let head = if transaction.is_postgres() {
            // A commit must wait for the disk, independent of the server's settings.
            sql!(execute in transaction;
                "SELECT set_config('synchronous_commit', 'on', true) \
                 WHERE current_setting('synchronous_commit') = 'off'")?;
            "SELECT count, hash FROM head WHERE one = 1 FOR UPDATE"
        } else {
            "SELECT count, hash FROM head WHERE one = 1"
        };
        let head: Option<(i64, Vec<u8>)> = sql!(fetch_optional in transaction; head)?;
        let last: Option<(i64, Vec<u8>)> = sql!(fetch_optional in transaction;
            "SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1")?;
        let (count, hash) = last.unwrap_or((0, Hash::START.0.to_vec()));
        let damaged = Error::Damaged {
            sequence: count as u64,
            problem: "the last entry does not match the head of the ledger; nothing more is \
                      recorded until `verify` succeeds"
                .to_owned(),
        };
        match Hash::of_bytes(&hash) {
            Some(own) if head == Some((count, hash)) => Ok(Self { transaction, count, hash: own }),
            _ => Err(damaged),
        }
    }

    /// The entry with this id, if it exists.
    pub(super) async fn find(&mut self, id: Uuid) -> Result<Option<Present>> {
        let id = id.to_string();
        let found: Option<Present> = sql!(fetch_optional in self.transaction;
            "SELECT e.*, p.subject, p.document FROM entries e \
             LEFT JOIN payloads p ON p.sequence = e.sequence WHERE e.id = $1",
            id)?;
        match found {
            // Also if an index that was exchanged leads to another entry.
            Some(Present { line, hash, .. }) if line.hash().0 != *hash => {
                Err(Error::Damaged { sequence: line.sequence as u64, problem: CHANGED.to_owned() })
            }
            found => Ok(found),
        }
    }

    /// How a promise was closed, if it was.
    async fn closed(&mut self, promise: i64) -> Result<Option<Status>> {
        let name: Option<String> = sql!(value in self.transaction;
            "SELECT closed_as FROM entries WHERE closes = $1",
            promise)?;
        Ok(name.and_then(|name| Status::of_word(&name)))
    }

    async fn promise(&mut self, promise: &NewPromise) -> Result<Recorded> {
        let payload = Payload::new(&promise.subject, promise.text()?)?;
        let mut line = self.line(promise.id, Kind::Promise);
        line.model = Some(promise.model.clone());
        line.request = Some(promise.request.to_string());
        line.holds_until = promise.holds_until.map(written);
        line.commitment = Some(payload.commitment().0.to_vec());
        let recorded = self.add(line).await?;
        sql!(execute in self.transaction;
            "INSERT INTO payloads (sequence, salt, subject, document) VALUES ($1, $2, $3, $4)",
            self.count, &payload.salt, &payload.subject, &payload.document)?;
        Ok(recorded)
    }

    /// The next entry, without content.
    pub(super) fn line(&self, id: Uuid, kind: Kind) -> Line {
        Line {
            sequence: self.count + 1,
            id: id.to_string(),
            time: written(Timestamp::now()),
            kind: kind.name().to_owned(),
            model: None,
            request: None,
            holds_until: None,
            commitment: None,
            closes: None,
            closed_as: None,
            forgets: None,
            previous: self.hash.0.to_vec(),
        }
    }

    /// Adds the next entry.
    pub(super) async fn add(&mut self, line: Line) -> Result<Recorded> {
        let hash = line.hash();
        sql!(execute in self.transaction;
            "INSERT INTO entries (sequence, id, time, kind, model, request, holds_until, \
             commitment, closes, closed_as, forgets, previous, hash) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            line.sequence, &line.id, &line.time, &line.kind, &line.model, &line.request,
            &line.holds_until, &line.commitment, line.closes, &line.closed_as, &line.forgets,
            &line.previous, hash.0.to_vec())?;
        self.count = line.sequence;
        self.hash = hash;
        let damaged = |_| Error::Damaged {
            sequence: line.sequence as u64,
            problem: "it cannot be read back".to_owned(),
        };
        Ok(Recorded {
            id: Uuid::parse_str(&line.id).unwrap_or_default(),
            sequence: line.sequence as u64,
            time: line.time.parse().map_err(damaged)?,
            hash,
            already: false,
        })
    }

    pub(super) async fn commit(mut self) -> Result<()> {
        sql!(execute in self.transaction;
            "UPDATE head SET count = $1, hash = $2 WHERE one = 1",
            self.count, self.hash.0.to_vec())?;
        Ok(self.transaction.commit().await?)
    }
}
