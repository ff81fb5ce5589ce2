//! Appending to the ledger. Apart from erasure, nothing else changes it.

use std::collections::HashMap;
use std::future::Future;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sqlx::QueryBuilder;
use tyrex::choice::Choice as _;
use uuid::Uuid;

use super::chain::{Hash, Line, Payload};
use super::entry::{CHANGED, Closing, Kind, Status, written};
use super::error::{Error, Result};
use super::promise::NewPromise;
use super::{Ledger, Recorded};
use crate::database::{Database, Transaction, from_row, on, sql};
use crate::new_id;

/// The promises that one statement looks up or writes. SQLite allows 32766 parameters.
const TOGETHER: usize = 256;

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
        let mut recorded: Vec<Recorded> = Vec::with_capacity(promises.len());
        // Where each new one is in the list.
        let mut new: HashMap<Uuid, usize> = HashMap::new();
        for some in promises.chunks(TOGETHER) {
            let mut present = append.find_all(some.iter().map(|each| each.id)).await?;
            let mut entries = Vec::with_capacity(some.len());
            for promise in some {
                let twice =
                    new.get(&promise.id).map(|&place| (&promises[place], recorded[place].clone()));
                recorded.push(match (twice, present.remove(&promise.id)) {
                    (Some((first, own)), _) if first == promise => {
                        Recorded { already: true, ..own }
                    }
                    (Some(_), _) => return Err(Error::Taken(promise.id)),
                    (None, Some(found)) => {
                        let own = found.checked(promise)?;
                        present.insert(promise.id, found);
                        own
                    }
                    (None, None) => {
                        new.insert(promise.id, recorded.len());
                        let (own, entry) = append.promise(promise)?;
                        entries.push(entry);
                        own
                    }
                });
            }
            append.write(&entries).await?;
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

/// An entry to be written, and its personal data if it is a promise.
#[derive(Debug)]
struct NewEntry {
    line: Line,
    hash: Hash,
    payload: Option<Payload>,
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
    /// The recorded promise, if it equals this one.
    fn checked(&self, promise: &NewPromise) -> Result<Recorded> {
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
        Ok(self.find_all(std::iter::once(id)).await?.remove(&id))
    }

    /// The entries with these ids, of those that exist.
    async fn find_all(
        &mut self,
        ids: impl Iterator<Item = Uuid>,
    ) -> Result<HashMap<Uuid, Present>> {
        let found: Vec<Present> = on!(self.transaction.executor(), own => {
            let mut query = QueryBuilder::new(
                "SELECT e.*, p.subject, p.document FROM entries e \
                 LEFT JOIN payloads p ON p.sequence = e.sequence WHERE e.id IN (",
            );
            let mut list = query.separated(", ");
            for id in ids {
                list.push_bind(id.to_string());
            }
            query.push(")");
            query.build_query_as().fetch_all(own).await
        })?;
        let checked = |present: Present| {
            let Present { line, hash, .. } = &present;
            let damaged =
                Error::Damaged { sequence: line.sequence as u64, problem: CHANGED.to_owned() };
            // Also if an index that was exchanged leads to another entry.
            if line.hash().0 != **hash {
                return Err(damaged);
            }
            Ok((Uuid::parse_str(&line.id).map_err(|_| damaged)?, present))
        };
        found.into_iter().map(checked).collect()
    }

    /// How a promise was closed, if it was.
    async fn closed(&mut self, promise: i64) -> Result<Option<Status>> {
        let name: Option<String> = sql!(value in self.transaction;
            "SELECT closed_as FROM entries WHERE closes = $1",
            promise)?;
        Ok(name.and_then(|name| Status::of_word(&name)))
    }

    /// The next entry, a promise, to be written.
    fn promise(&mut self, promise: &NewPromise) -> Result<(Recorded, NewEntry)> {
        let payload = Payload::new(&promise.subject, promise.text()?)?;
        let mut line = self.line(promise.id, Kind::Promise);
        line.model = Some(promise.model.clone());
        line.request = Some(promise.request.to_string());
        line.holds_until = promise.holds_until.map(written);
        line.commitment = Some(payload.commitment().0.to_vec());
        let (recorded, hash) = self.follow(&line)?;
        Ok((recorded, NewEntry { line, hash, payload: Some(payload) }))
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
        let (recorded, hash) = self.follow(&line)?;
        self.write(&[NewEntry { line, hash, payload: None }]).await?;
        Ok(recorded)
    }

    /// Makes this the last entry of the chain; [`write`](Self::write) has to follow.
    fn follow(&mut self, line: &Line) -> Result<(Recorded, Hash)> {
        let hash = line.hash();
        self.count = line.sequence;
        self.hash = hash;
        let damaged = |_| Error::Damaged {
            sequence: line.sequence as u64,
            problem: "it cannot be read back".to_owned(),
        };
        let recorded = Recorded {
            id: Uuid::parse_str(&line.id).unwrap_or_default(),
            sequence: line.sequence as u64,
            time: line.time.parse().map_err(damaged)?,
            hash,
            already: false,
        };
        Ok((recorded, hash))
    }

    /// Writes entries with one statement, and their personal data with another.
    async fn write(&mut self, entries: &[NewEntry]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        on!(self.transaction.executor(), own => {
            let mut query = QueryBuilder::new(
                "INSERT INTO entries (sequence, id, time, kind, model, request, holds_until, \
                 commitment, closes, closed_as, forgets, previous, hash) ",
            );
            query.push_values(entries, |mut row, NewEntry { line, hash, .. }| {
                row.push_bind(line.sequence).push_bind(&line.id).push_bind(&line.time);
                row.push_bind(&line.kind).push_bind(&line.model).push_bind(&line.request);
                row.push_bind(&line.holds_until).push_bind(&line.commitment);
                row.push_bind(line.closes).push_bind(&line.closed_as).push_bind(&line.forgets);
                row.push_bind(&line.previous).push_bind(hash.0.to_vec());
            });
            query.build().execute(own).await.map(drop)
        })?;
        let mut payloads = Vec::with_capacity(entries.len());
        payloads.extend(
            entries.iter().filter_map(|NewEntry { line, payload, .. }| {
                Some((line.sequence, payload.as_ref()?))
            }),
        );
        if payloads.is_empty() {
            return Ok(());
        }
        on!(self.transaction.executor(), own => {
            let mut query =
                QueryBuilder::new("INSERT INTO payloads (sequence, salt, subject, document) ");
            query.push_values(payloads, |mut row, (sequence, payload)| {
                row.push_bind(sequence).push_bind(&payload.salt);
                row.push_bind(&payload.subject).push_bind(&payload.document);
            });
            query.build().execute(own).await.map(drop)
        })?;
        Ok(())
    }

    pub(super) async fn commit(mut self) -> Result<()> {
        sql!(execute in self.transaction;
            "UPDATE head SET count = $1, hash = $2 WHERE one = 1",
            self.count, self.hash.0.to_vec())?;
        Ok(self.transaction.commit().await?)
    }
}
