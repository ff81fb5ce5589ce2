//! Verification of the ledger.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::Ledger;
use super::chain::{Hash, Line, Payload};
use super::entry::{CHANGED, Kind, forgets};
use super::error::Result;
use crate::database::{Either, Transaction, from_row, sql};

/// Entries read at a time.
const PAGE: i64 = 1000;

/// The result of `verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Verification {
    /// The number of intact entries, from the first.
    pub entries: u64,
    /// The promises among them.
    pub promises: u64,
    /// The promises whose personal data was erased on request.
    pub forgotten: u64,
    /// The hash of the last intact entry. Store it elsewhere: with it, a later `verify` shows that
    /// the entries up to it were not rewritten.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub head: Hash,
    /// With a head that was stored elsewhere: the number of entries up to it. The later ones are
    /// not covered by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covered: Option<u64>,
    /// The first problem, if any.
    pub problem: Option<Problem>,
}

/// A problem of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// The first damaged entry; `None` if only the end of the ledger is wrong.
    pub sequence: Option<u64>,
    /// The kind of problem.
    pub trouble: Trouble,
    /// In words.
    pub sentence: String,
}

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// An entry was changed.
    Edited,
    /// An entry is missing.
    Removed,
    /// An entry is at the wrong position, or occurs twice.
    Reordered,
    /// An entry was inserted.
    Inserted,
    /// The personal data was changed.
    PayloadChanged,
    /// The personal data is missing, and no entry records its erasure.
    PayloadMissing,
    /// There is personal data where there should be none.
    PayloadAdded,
    /// The chain has the wrong end, or a head stored earlier is not in it.
    Head,
    /// An index of SQLite does not match its table.
    Index,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl Verification {
    /// Whether there is no problem.
    pub fn is_sound(&self) -> bool {
        self.problem.is_none()
    }

    /// The result as a sentence.
    pub fn sentence(&self) -> String {
        match (&self.problem, self.covered) {
            (Some(problem), _) => problem.to_string(),
            (None, Some(covered)) => {
                let later = match self.entries - covered {
                    0 => "no entry is later".to_owned(),
                    1 => "1 later entry is not covered by this head".to_owned(),
                    more => format!("{more} later entries are not covered by this head"),
                };
                let up_to = match covered {
                    0 => "the head is that of an empty ledger".to_owned(),
                    _ => format!("up to entry {covered}, every entry is as it was written"),
                };
                format!("{up_to}; {later}")
            }
            (None, None) => "no entry was changed, unless the whole ledger was rewritten; a head \
                             stored elsewhere excludes that (--head)"
                .to_owned(),
        }
    }
}

impl Ledger {
    /// Checks every entry, every payload and the end of the chain in one snapshot.
    ///
    /// `expected_head` is a head that was stored elsewhere earlier: it must still be in the chain.
    /// Without one, a ledger that was rewritten as a whole passes.
    pub async fn verify(&self, expected_head: Option<&Hash>) -> Result<Verification> {
        let mut snapshot = self.database.snapshot().await?;
        let verification = Check::new(expected_head).run(&mut snapshot).await?;
        snapshot.rollback().await?;
        Ok(verification)
    }
}

/// An entry with its payload, as stored in the database.
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

/// The state of the check.
#[derive(Debug)]
pub(super) struct Check<'a> {
    expected_head: Option<&'a Hash>,
    /// The number of entries up to the expected head, once it is found.
    covered: Option<u64>,
    entries: u64,
    promises: u64,
    last: Hash,
    /// Promises without personal data.
    bare: BTreeSet<u64>,
    /// Promises whose erasure an entry records.
    forgotten: BTreeSet<u64>,
    /// The first payload that was changed.
    changed: Option<u64>,
}

impl<'a> Check<'a> {
    pub(super) fn new(expected_head: Option<&'a Hash>) -> Self {
        Self {
            expected_head,
            covered: expected_head.filter(|head| **head == Hash::START).map(|_| 0),
            entries: 0,
            promises: 0,
            last: Hash::START,
            bare: BTreeSet::new(),
            forgotten: BTreeSet::new(),
            changed: None,
        }
    }

    pub(super) async fn run(mut self, snapshot: &mut Transaction) -> Result<Verification> {
        // The chain first: only an intact chain is evidence of erasures.
        let mut problem = self.chain(snapshot).await?;
        if problem.is_none() {
            problem = self.end(snapshot).await?;
        }
        if problem.is_none() {
            problem = self.payloads(snapshot).await?;
        }
        if problem.is_none() {
            problem = indexes(snapshot).await?;
        }
        let Self { entries, promises, last: head, covered, .. } = self;
        let forgotten = self.bare.len() as u64;
        Ok(Verification { entries, promises, forgotten, head, covered, problem })
    }

    /// Follows the chain to its end, or to the first damaged entry.
    async fn chain(&mut self, snapshot: &mut Transaction) -> Result<Option<Problem>> {
        let mut limit = PAGE;
        let mut after = i64::MIN;
        loop {
            let page = match page(snapshot, after, limit).await {
                Ok(page) => page,
                // One entry at a time, to find the one that cannot be read.
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
                    // It may belong to another position.
                    return self.moved(snapshot, &stored, problem).await.map(Some);
                }
            }
            if !full {
                return Ok(None);
            }
        }
    }

    /// Checks the next entry.
    fn follow(&mut self, stored: &Stored) -> Option<Problem> {
        let line = &stored.line;
        let expected = self.entries as i64 + 1;
        if line.sequence > expected {
            let gap = match line.sequence - expected {
                1 => "it is missing".to_owned(),
                more => format!("it is missing, and {} more after it", more - 1),
            };
            return Some(self.next_is(Trouble::Removed, &gap));
        }
        if line.sequence < expected {
            let what = format!("an entry with the number {} precedes it", line.sequence);
            return Some(self.next_is(Trouble::Inserted, &what));
        }
        let hash = line.hash();
        if hash.0 != *stored.hash {
            return Some(self.next_is(Trouble::Edited, CHANGED));
        }
        if line.previous != self.last.0 {
            let what = "it was not written after the previous entry";
            return Some(self.next_is(Trouble::Inserted, what));
        }
        self.entries += 1;
        self.last = hash;
        if self.expected_head == Some(&hash) {
            self.covered = Some(self.entries);
        }
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

    /// Whether a misplaced entry fits another position.
    async fn moved(
        &self,
        snapshot: &mut Transaction,
        stored: &Stored,
        problem: Problem,
    ) -> Result<Problem> {
        if problem.trouble != Trouble::Edited {
            return Ok(problem);
        }
        let count: i64 = sql!(one_value in snapshot; "SELECT count(*) FROM entries")?;
        let places = 1..=count.saturating_add(1);
        let written_at = |&place: &i64| stored.line.hash_at(place).0 == *stored.hash;
        Ok(match places.into_iter().find(written_at) {
            Some(place) => {
                self.next_is(Trouble::Reordered, &format!("it was written as entry {place}"))
            }
            None => problem,
        })
    }

    /// Checks the end of the chain.
    async fn end(&self, snapshot: &mut Transaction) -> Result<Option<Problem>> {
        let heads: Result<Vec<(i64, i64, Vec<u8>)>, sqlx::Error> =
            sql!(fetch_all in snapshot; "SELECT one, count, hash FROM head");
        let heads = match heads {
            Err(sqlx::Error::ColumnDecode { .. }) => Vec::new(),
            other => other?,
        };
        let at_end =
            |sentence: String| Problem { sequence: None, trouble: Trouble::Head, sentence };
        let [(1, count, hash)] = &*heads else {
            return Ok(Some(at_end("the head of the ledger is damaged".to_owned())));
        };
        let entries = self.entries as i64;
        Ok(if *count > entries {
            let what = format!("the ledger ends before it, but {count} entries were written");
            Some(self.next_is(Trouble::Removed, &what))
        } else if *count < entries {
            let sequence = u64::try_from(count + 1).unwrap_or(1);
            let sentence = format!("entry {sequence} is after the end of the ledger");
            Some(Problem { sequence: Some(sequence), trouble: Trouble::Inserted, sentence })
        } else if self.last.0 != **hash {
            Some(at_end("the last entry is not the one that was written last".to_owned()))
        } else if self.expected_head.is_some() && self.covered.is_none() {
            let head = self.expected_head.map(ToString::to_string).unwrap_or_default();
            Some(at_end(format!(
                "no entry has the hash {head}: the entries up to this head are not in this ledger"
            )))
        } else {
            None
        })
    }

    /// Checks the personal data.
    async fn payloads(&self, snapshot: &mut Transaction) -> Result<Option<Problem>> {
        let stray: Option<i64> = sql!(one_value in snapshot;
            "SELECT min(sequence) FROM payloads WHERE sequence NOT IN \
             (SELECT sequence FROM entries WHERE kind = 'promise')")?;
        let problem = |sequence: u64, trouble: Trouble, what: &str| Problem {
            sequence: Some(sequence),
            trouble,
            sentence: format!("entry {sequence}: {what}"),
        };
        let changed = self.changed.map(|sequence| {
            problem(sequence, Trouble::PayloadChanged, "its personal data was changed")
        });
        let missing = self.bare.difference(&self.forgotten).next().map(|&sequence| {
            let what = "its personal data is missing, and no entry records its erasure";
            problem(sequence, Trouble::PayloadMissing, what)
        });
        let added = self.forgotten.difference(&self.bare).next().map(|&sequence| {
            let what = "there is personal data, although it was erased";
            problem(sequence, Trouble::PayloadAdded, what)
        });
        let stray = stray.map(|sequence| {
            let what = format!("there is personal data for entry {sequence}, not a promise");
            Problem {
                sequence: u64::try_from(sequence).ok(),
                trouble: Trouble::PayloadAdded,
                sentence: what,
            }
        });
        let all = [changed, missing, added, stray].into_iter().flatten();
        Ok(all.min_by_key(|problem| problem.sequence))
    }

    /// A problem of the next entry.
    fn next_is(&self, trouble: Trouble, what: &str) -> Problem {
        let sequence = self.entries + 1;
        Problem { sequence: Some(sequence), trouble, sentence: format!("entry {sequence}: {what}") }
    }
}

/// Compares the indexes of SQLite with their tables: statements that use an index do not see what it
/// leaves out.
async fn indexes(snapshot: &mut Transaction) -> Result<Option<Problem>> {
    let connection = match snapshot.executor() {
        Either::Sqlite(connection) => connection,
        #[cfg(feature = "postgres")]
        Either::Postgres(_) => return Ok(None),
        #[cfg(not(feature = "postgres"))]
        Either::Postgres(never) => match *never {},
    };
    for check in [
        "PRAGMA integrity_check(entries)",
        "PRAGMA integrity_check(payloads)",
        "PRAGMA integrity_check(head)",
    ] {
        let found: Vec<String> = sqlx::query_scalar(check).fetch_all(&mut *connection).await?;
        // A page that could not be read is not a finding about its content.
        if let Some(problem) = found.iter().find(|line| line.contains("error code=")) {
            return Err(sqlx::Error::Io(std::io::Error::other(problem.clone())).into());
        }
        if let Some(problem) = found.iter().find(|line| *line != "ok") {
            let sentence = format!("the database file does not fit together: {problem}");
            return Ok(Some(Problem { sequence: None, trouble: Trouble::Index, sentence }));
        }
    }
    Ok(None)
}

async fn page(
    snapshot: &mut Transaction,
    after: i64,
    limit: i64,
) -> Result<Vec<Stored>, sqlx::Error> {
    sql!(fetch_all in snapshot;
        "SELECT e.*, p.salt, p.subject, p.document FROM entries e \
         LEFT JOIN payloads p ON p.sequence = e.sequence \
         WHERE e.sequence > $1 ORDER BY e.sequence LIMIT $2",
        after, limit)
}
