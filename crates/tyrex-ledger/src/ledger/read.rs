//! Reading the ledger.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use super::Ledger;
use super::chain::{Hash, Line};
use super::entry::{CHANGED, Entry, Found, Kind, Status, forgets, written};
use super::error::{Error, Result};
use super::verify::Check;
use crate::database::{Transaction, from_row, sql};

/// A statement over entries and their status at a time (`$1`).
///
/// Forgotten takes precedence over closed, and closed over expired. Closings are read from the table
/// before they are joined: an index of SQLite that was exchanged could assign them to other
/// promises.
macro_rules! entries {
    ($which:literal) => {
        concat!(
            "WITH closings AS MATERIALIZED ( \
               SELECT closes, closed_as FROM entries WHERE kind = 'closed' \
             ) SELECT * FROM ( \
               SELECT e.*, p.salt, p.subject, p.document, \
                 CASE \
                   WHEN e.kind <> 'promise' THEN '' \
                   WHEN p.sequence IS NULL THEN 'forgotten' \
                   WHEN c.closed_as IS NOT NULL THEN c.closed_as \
                   WHEN e.holds_until <= $1 THEN 'expired' \
                   ELSE 'open' \
                 END AS status \
               FROM entries e \
               LEFT JOIN payloads p ON p.sequence = e.sequence \
               LEFT JOIN closings c ON c.closes = e.sequence \
             ) found ",
            $which
        )
    };
}

/// Open promises that are read together.
const PAGE: u64 = 4096;

/// A filter of entries. The default is every promise.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// The status of the promise.
    pub status: Option<Status>,
    /// The subject.
    pub subject: Option<String>,
    /// The fingerprint of the model, or a prefix of it.
    pub model: Option<String>,
    /// Recorded at this time or later.
    pub since: Option<Timestamp>,
    /// After this sequence: that of the last entry of the previous page.
    pub after: Option<u64>,
    /// Maximum number of entries.
    pub limit: Option<usize>,
    /// Include closings and erasures, not only promises.
    pub all_kinds: bool,
}

/// The end of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Head {
    /// The number of entries.
    pub count: u64,
    /// The hash of the last entry.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub hash: Hash,
}

impl Ledger {
    /// The entries that match a filter, the oldest first. An entry or personal data that was
    /// changed is an error.
    pub async fn list(&self, filter: &Filter) -> Result<Vec<Entry>> {
        let mut snapshot = self.database.snapshot().await?;
        let entries = listed(&mut snapshot, filter).await?;
        snapshot.rollback().await?;
        Ok(entries)
    }

    /// One entry.
    pub async fn entry(&self, id: Uuid) -> Result<Entry> {
        let mut snapshot = self.database.snapshot().await?;
        let found: Option<Found> = sql!(fetch_optional in snapshot;
            entries!("WHERE id = $2"),
            written(Timestamp::now()), id.to_string())?;
        Self::checked(snapshot, found.ok_or(Error::Absent(id))?).await
    }

    /// The entry at a position.
    pub async fn at(&self, sequence: u64) -> Result<Entry> {
        let mut snapshot = self.database.snapshot().await?;
        let found: Option<Found> = sql!(fetch_optional in snapshot;
            entries!("WHERE sequence = $2"),
            written(Timestamp::now()), whole(sequence))?;
        Self::checked(snapshot, found.ok_or(Error::Beyond(sequence))?).await
    }

    async fn checked(mut snapshot: Transaction, found: Found) -> Result<Entry> {
        check_endings(&mut snapshot).await?;
        snapshot.rollback().await?;
        found.entry()
    }

    /// The open promises: neither closed, nor expired, nor forgotten. The whole ledger is verified
    /// first, in the same snapshot: a forged closing or another end of a promise would hide it.
    pub async fn open_promises(&self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        self.each_open_promise(|entry| entries.push(entry)).await?;
        Ok(entries)
    }

    /// The same, one after the other: only some thousand are in memory.
    pub async fn each_open_promise(&self, mut take: impl FnMut(Entry)) -> Result<()> {
        let mut snapshot = self.database.snapshot().await?;
        if let Some(problem) = Check::new(None).run(&mut snapshot).await?.problem {
            return Err(problem.into());
        }
        let closed = check_endings(&mut snapshot).await?;
        // All pages are of the same moment.
        let now = written(Timestamp::now());
        let mut after = 0;
        loop {
            // Closings were read once, above: a statement that joins them reads all for each page.
            let page: Vec<Found> = sql!(fetch_all in snapshot;
                "SELECT e.*, p.salt, p.subject, p.document, 'open' AS status FROM entries e \
                 JOIN payloads p ON p.sequence = e.sequence \
                 WHERE e.kind = 'promise' AND e.sequence > $1 ORDER BY e.sequence LIMIT $2",
                after, whole(PAGE))?;
            let full = page.len() as u64 == PAGE;
            for found in page {
                let line = &found.line;
                after = line.sequence;
                let is_over = line.holds_until.as_ref().is_some_and(|until| *until <= now);
                if !is_over && !closed.contains(&after) {
                    take(found.entry()?);
                }
            }
            if !full {
                break;
            }
        }
        snapshot.rollback().await?;
        Ok(())
    }

    /// The stored head of the ledger.
    pub async fn head(&self) -> Result<Head> {
        let head: Option<(i64, Vec<u8>)> =
            sql!(fetch_optional in self.database; "SELECT count, hash FROM head WHERE one = 1")?;
        let read = |(count, hash): (i64, Vec<u8>)| {
            Some(Head { count: u64::try_from(count).ok()?, hash: Hash::of_bytes(&hash)? })
        };
        head.and_then(read).ok_or_else(|| Error::Damaged {
            sequence: 0,
            problem: "the head of the ledger cannot be read".to_owned(),
        })
    }
}

/// The entries of a snapshot that match a filter.
async fn listed(snapshot: &mut Transaction, filter: &Filter) -> Result<Vec<Entry>> {
    let found: Vec<Found> = sql!(fetch_all in snapshot;
        entries!(
         "WHERE ($2 OR kind = 'promise') \
         AND (CAST($3 AS TEXT) IS NULL OR status = $3) \
         AND (CAST($4 AS TEXT) IS NULL OR subject = $4) \
         AND (CAST($5 AS TEXT) IS NULL \
         OR substr(model, 1, length(CAST($5 AS TEXT))) = $5) \
         AND (CAST($6 AS TEXT) IS NULL OR time >= $6) \
         AND sequence > $7 \
         ORDER BY sequence LIMIT $8"
         ),
        written(Timestamp::now()), filter.all_kinds, filter.status.map(Status::name),
        filter.subject.as_deref(), filter.model.as_deref(), filter.since.map(written),
        filter.after.map_or(0, whole),
        filter.limit.map_or(i64::MAX, |limit| whole(limit as u64)))?;
    // All promises, not only those found: one that only seems forgotten could be open.
    check_endings(snapshot).await?;
    found.into_iter().map(Found::entry).collect()
}

/// Rejects a ledger with a closing or an erasure that was changed, or where personal data is missing
/// and no entry records its erasure. Returns the promises that are closed.
async fn check_endings(snapshot: &mut Transaction) -> Result<BTreeSet<i64>> {
    let endings: Vec<Ending> = sql!(fetch_all in snapshot;
        "SELECT * FROM entries WHERE kind <> 'promise' ORDER BY sequence")?;
    let (mut closed, mut forgotten) = (BTreeSet::new(), BTreeSet::new());
    for Ending { line, hash } in endings {
        let damaged = |problem| Error::Damaged { sequence: line.sequence as u64, problem };
        if line.hash().0 != *hash {
            return Err(damaged(CHANGED.to_owned()));
        }
        if line.kind == Kind::Forgotten.name() {
            forgotten.extend(forgets(line.forgets.as_deref()).map_err(damaged)?);
        } else {
            closed.extend(line.closes);
        }
    }
    let bare: Vec<i64> = sql!(values in snapshot;
        "SELECT e.sequence FROM entries e LEFT JOIN payloads p ON p.sequence = e.sequence \
         WHERE e.kind = 'promise' AND p.sequence IS NULL ORDER BY e.sequence")?;
    match bare.into_iter().map(|sequence| sequence as u64).find(|own| !forgotten.contains(own)) {
        None => Ok(closed),
        Some(sequence) => Err(Error::Damaged {
            sequence,
            problem: "its personal data is missing, and no entry records its erasure".to_owned(),
        }),
    }
}

/// An entry that ends promises.
#[derive(Debug)]
struct Ending {
    line: Line,
    hash: Vec<u8>,
}
from_row!(Ending { hash, ..line });

/// Converts to the integer type of the database.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
