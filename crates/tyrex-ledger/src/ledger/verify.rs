//! Is the ledger as it was written?

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::Ledger;
use super::chain::{Hash, Line, Payload};
use super::entry::{Kind, forgets};
use super::error::Result;
use crate::database::{Transaction, from_row, on};

/// Entries read at a time.
const PAGE: i64 = 1000;

/// What `verify` found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Verification {
    /// The entries that are as they were written, from the first.
    pub entries: u64,
    /// Those of them that are promises.
    pub promises: u64,
    /// The promises whose personal data were removed on request.
    pub forgotten: u64,
    /// The hash of the last entry that is as it was written. Note it elsewhere: with it, a later
    /// `verify` shows that nobody has rewritten what was there.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub head: Hash,
    /// What is wrong first, if anything is.
    pub problem: Option<Problem>,
}

/// What is wrong with the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// The first entry that is not as it was written; `None` if all are and only the end is
    /// wrong.
    pub sequence: Option<u64>,
    /// The kind of trouble.
    pub trouble: Trouble,
    /// In words.
    pub sentence: String,
}

/// The kinds of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// An entry says something else than when it was written.
    Edited,
    /// An entry is gone.
    Removed,
    /// An entry stands where it was not written, or twice.
    Reordered,
    /// An entry was put in.
    Inserted,
    /// The personal data are not those that were recorded.
    PayloadChanged,
    /// The personal data are gone, and no entry says that they were forgotten.
    PayloadMissing,
    /// There are personal data where there should be none.
    PayloadAdded,
    /// The chain does not end where it should, or a head noted earlier is not in it.
    Head,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl Verification {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problem.is_none()
    }
}

impl Ledger {
    /// Checks every entry, every payload and the end of the chain, as they are at one moment.
    ///
    /// `expected_head` is a head that was noted elsewhere earlier: it must still be in the chain.
    /// Without one, a ledger that somebody has rewritten as a whole looks sound.
    pub async fn verify(&self, expected_head: Option<&Hash>) -> Result<Verification> {
        let mut snapshot = self.database.snapshot().await?;
        let verification = Check::new(expected_head).run(&mut snapshot).await?;
        snapshot.rollback().await?;
        Ok(verification)
    }
}

/// An entry with its payload, as they stand in the database.
#[derive(Debug)]
struct Stored {
    line: Line,
    hash: Vec<u8>,
    salt: Option<Vec<u8>>,
    subject: Option<String>,
    document: Option<String>,
}
from_row!(Stored { hash, salt, subject, document, ..line });

impl Stored {
    fn payload(&self) -> Option<Payload> {
        let (salt, subject) = (self.salt.clone()?, self.subject.clone()?);
        Some(Payload { salt, subject, document: self.document.clone()? })
    }
}

/// The check on its way through the chain.
#[derive(Debug)]
struct Check<'a> {
    expected_head: Option<&'a Hash>,
    has_expected: bool,
    entries: u64,
    promises: u64,
    last: Hash,
    /// Promises without personal data.
    bare: BTreeSet<u64>,
    /// Promises that some entry says are forgotten.
    forgotten: BTreeSet<u64>,
    /// The first payload that is not what was recorded.
    changed: Option<u64>,
}

impl<'a> Check<'a> {
    fn new(expected_head: Option<&'a Hash>) -> Self {
        Self {
            expected_head,
            has_expected: expected_head.is_none_or(|head| *head == Hash::START),
            entries: 0,
            promises: 0,
            last: Hash::START,
            bare: BTreeSet::new(),
            forgotten: BTreeSet::new(),
            changed: None,
        }
    }

    async fn run(mut self, snapshot: &mut Transaction) -> Result<Verification> {
        // The chain first: only if it holds can its entries say what was forgotten.
        let mut problem = self.chain(snapshot).await?;
        if problem.is_none() {
            problem = self.end(snapshot).await?;
        }
        if problem.is_none() {
            problem = self.payloads(snapshot).await?;
        }
        let Self { entries, promises, last: head, .. } = self;
        let forgotten = self.bare.len() as u64;
        Ok(Verification { entries, promises, forgotten, head, problem })
    }

    /// Follows the chain to its end, or to the first entry that is wrong.
    async fn chain(&mut self, snapshot: &mut Transaction) -> Result<Option<Problem>> {
        let mut limit = PAGE;
        let mut after = i64::MIN;
        loop {
            let page = match page(snapshot, after, limit).await {
                Ok(page) => page,
                // One entry at a time, to see which one cannot be read.
                Err(sqlx::Error::ColumnDecode { .. }) if limit > 1 => {
                    limit = 1;
                    continue;
                }
                Err(sqlx::Error::ColumnDecode { index, .. }) => {
                    let what = format!("its column {index} cannot be read");
                    return Ok(Some(self.next_is(Trouble::Edited, &what)));
                }
                Err(error) => return Err(error.into()),
            };
            let full = page.len() as i64 == limit;
            for stored in page {
                after = stored.line.sequence;
                if let Some(problem) = self.follow(&stored) {
                    // It may have been written for another place.
                    return self.moved(snapshot, &stored, problem).await.map(Some);
                }
            }
            if !full {
                return Ok(None);
            }
        }
    }

    /// Goes one entry on.
    fn follow(&mut self, stored: &Stored) -> Option<Problem> {
        let line = &stored.line;
        let expected = self.entries as i64 + 1;
        if line.sequence > expected {
            let gap = match line.sequence - expected {
                1 => "it is missing".to_owned(),
                more => format!("it is missing, and {} more behind it", more - 1),
            };
            return Some(self.next_is(Trouble::Removed, &gap));
        }
        if line.sequence < expected {
            let what = format!("an entry with the number {} stands before it", line.sequence);
            return Some(self.next_is(Trouble::Inserted, &what));
        }
        let hash = line.hash();
        if hash.0 != *stored.hash {
            let what = "it does not say what it said when it was written";
            return Some(self.next_is(Trouble::Edited, what));
        }
        if line.previous != self.last.0 {
            let what = "it was not written behind the entry before it";
            return Some(self.next_is(Trouble::Inserted, what));
        }
        self.entries += 1;
        self.last = hash;
        self.has_expected |= self.expected_head == Some(&hash);
        if line.kind == Kind::Promise.name() {
            self.promises += 1;
            match stored.payload() {
                None => {
                    self.bare.insert(self.entries);
                }
                Some(payload) if line.commitment.as_deref() != Some(&payload.commitment().0) => {
                    self.changed = self.changed.or(Some(self.entries));
                }
                Some(_) => {}
            }
        } else if line.kind == Kind::Forgotten.name() {
            self.forgotten.extend(forgets(line.forgets.as_deref()).unwrap_or_default());
        }
        None
    }

    /// Whether an entry that does not fit its place fits another.
    async fn moved(
        &self,
        snapshot: &mut Transaction,
        stored: &Stored,
        problem: Problem,
    ) -> Result<Problem> {
        if problem.trouble != Trouble::Edited {
            return Ok(problem);
        }
        let highest: Option<i64> = on!(snapshot, connection => {
            sqlx::query_scalar("SELECT max(sequence) FROM entries").fetch_one(&mut **connection).await?
        });
        let places = 1..=highest.unwrap_or(0).saturating_add(1);
        let written_at = |&place: &i64| stored.line.hash_at(place).0 == *stored.hash;
        Ok(match places.into_iter().find(written_at) {
            Some(place) => {
                self.next_is(Trouble::Reordered, &format!("it was written as entry {place}"))
            }
            None => problem,
        })
    }

    /// Whether the chain ends where it should.
    async fn end(&self, snapshot: &mut Transaction) -> Result<Option<Problem>> {
        let heads: Result<Vec<(i64, i64, Vec<u8>)>, sqlx::Error> = on!(snapshot, connection => {
            sqlx::query_as("SELECT one, count, hash FROM head").fetch_all(&mut **connection).await
        });
        let heads = match heads {
            Err(sqlx::Error::ColumnDecode { .. }) => Vec::new(),
            other => other?,
        };
        let at_end =
            |sentence: String| Problem { sequence: None, trouble: Trouble::Head, sentence };
        let [(1, count, hash)] = &*heads else {
            return Ok(Some(at_end("the record of where the ledger ends is damaged".to_owned())));
        };
        let entries = self.entries as i64;
        Ok(if *count > entries {
            let what = format!("the ledger ends before it, but {count} entries were written");
            Some(self.next_is(Trouble::Removed, &what))
        } else if *count < entries {
            let sequence = u64::try_from(count + 1).unwrap_or(1);
            let sentence = format!("entry {sequence} stands behind the end of the ledger");
            Some(Problem { sequence: Some(sequence), trouble: Trouble::Inserted, sentence })
        } else if self.last.0 != **hash {
            Some(at_end("the last entry is not the one that was written last".to_owned()))
        } else if !self.has_expected {
            let head = self.expected_head.map(ToString::to_string).unwrap_or_default();
            Some(at_end(format!(
                "no entry has the hash {head}: what was written up to there is not in this ledger"
            )))
        } else {
            None
        })
    }

    /// Whether the personal data are those that were recorded.
    async fn payloads(&self, snapshot: &mut Transaction) -> Result<Option<Problem>> {
        let stray: Option<i64> = on!(snapshot, connection => sqlx::query_scalar(
            "SELECT min(sequence) FROM payloads WHERE sequence NOT IN \
             (SELECT sequence FROM entries WHERE kind = 'promise')",
        )
        .fetch_one(&mut **connection)
        .await?);
        let problem = |sequence: u64, trouble: Trouble, what: &str| Problem {
            sequence: Some(sequence),
            trouble,
            sentence: format!("entry {sequence}: {what}"),
        };
        let changed = self.changed.map(|sequence| {
            problem(sequence, Trouble::PayloadChanged, "its personal data were changed")
        });
        let missing = self.bare.difference(&self.forgotten).next().map(|&sequence| {
            let what = "its personal data are gone, and nobody asked for that";
            problem(sequence, Trouble::PayloadMissing, what)
        });
        let added = self.forgotten.difference(&self.bare).next().map(|&sequence| {
            let what = "there are personal data, though they were forgotten";
            problem(sequence, Trouble::PayloadAdded, what)
        });
        let stray = stray.map(|sequence| {
            let what = format!("there are personal data for entry {sequence}, which is no promise");
            Problem {
                sequence: u64::try_from(sequence).ok(),
                trouble: Trouble::PayloadAdded,
                sentence: what,
            }
        });
        let all = [changed, missing, added, stray].into_iter().flatten();
        Ok(all.min_by_key(|problem| problem.sequence))
    }

    /// Trouble with the entry that comes next.
    fn next_is(&self, trouble: Trouble, what: &str) -> Problem {
        let sequence = self.entries + 1;
        Problem { sequence: Some(sequence), trouble, sentence: format!("entry {sequence}: {what}") }
    }
}

async fn page(
    snapshot: &mut Transaction,
    after: i64,
    limit: i64,
) -> Result<Vec<Stored>, sqlx::Error> {
    on!(snapshot, connection => sqlx::query_as(
        "SELECT e.*, p.salt, p.subject, p.document FROM entries e \
         LEFT JOIN payloads p ON p.sequence = e.sequence \
         WHERE e.sequence > $1 ORDER BY e.sequence LIMIT $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(&mut **connection)
    .await)
}
