//! The chain: every entry holds the hash of the previous one.
//!
//! ```text
//! commitment = SHA-256( "tyrex ledger payload 1" || field(salt) || field(subject)
//!                       || field(document) )
//! hash       = SHA-256( "tyrex ledger entry 1" || field(sequence) || field(id) || field(time)
//!                       || field(kind) || field(model) || field(request) || field(holds_until)
//!                       || field(commitment) || field(closes) || field(closed_as)
//!                       || field(forgets) || field(previous) )
//! field(x)   = 0                              if there is no value
//!            = 1 || length of x || x          otherwise
//! ```
//!
//! Lengths and sequences are little-endian u64, text is UTF-8, hashes are their 32 bytes. The
//! lengths make the encoding unambiguous. `previous` of the first entry is 32 zeros.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use tyrex::file::hex;

use super::error::{Error, Result};
use crate::database::from_row;

/// A SHA-256, written in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The predecessor of the first entry.
    pub const START: Self = Self([0; 32]);

    /// The hash of these bytes, if there are 32.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected the 64 hexadecimal digits of a head".to_owned();
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An entry as stored in the database, without its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) sequence: i64,
    pub(super) id: String,
    pub(super) time: String,
    pub(super) kind: String,
    pub(super) model: Option<String>,
    pub(super) request: Option<String>,
    pub(super) holds_until: Option<String>,
    pub(super) commitment: Option<Vec<u8>>,
    pub(super) closes: Option<i64>,
    pub(super) closed_as: Option<String>,
    pub(super) forgets: Option<String>,
    pub(super) previous: Vec<u8>,
}
from_row!(Line {
    sequence,
    id,
    time,
    kind,
    model,
    request,
    holds_until,
    commitment,
    closes,
    closed_as,
    forgets,
    previous
});

impl Line {
    /// Its expected hash.
    pub(super) fn hash(&self) -> Hash {
        self.hash_at(self.sequence)
    }

    /// The hash it would have at another position.
    pub(super) fn hash_at(&self, sequence: i64) -> Hash {
        let text = |text: &Option<String>| text.as_ref().map(|text| text.as_bytes().to_vec());
        let number = |number: i64| number.to_le_bytes().to_vec();
        let mut fields = Fields::new("tyrex ledger entry 1");
        fields.add(Some(&number(sequence)));
        fields.add(Some(self.id.as_bytes()));
        fields.add(Some(self.time.as_bytes()));
        fields.add(Some(self.kind.as_bytes()));
        fields.add(text(&self.model).as_deref());
        fields.add(text(&self.request).as_deref());
        fields.add(text(&self.holds_until).as_deref());
        fields.add(self.commitment.as_deref());
        fields.add(self.closes.map(number).as_deref());
        fields.add(text(&self.closed_as).as_deref());
        fields.add(text(&self.forgets).as_deref());
        fields.add(Some(&self.previous));
        fields.finish()
    }
}

/// The personal data of a promise, as stored in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Payload {
    pub(super) salt: Vec<u8>,
    pub(super) subject: String,
    pub(super) document: String,
}
from_row!(Payload { salt, subject, document });

impl Payload {
    /// With a new salt.
    pub(super) fn new(subject: &str, document: String) -> Result<Self> {
        let mut salt = [0; 32];
        getrandom::fill(&mut salt).map_err(|error| Error::Salt(error.to_string()))?;
        Ok(Self { salt: salt.to_vec(), subject: subject.to_owned(), document })
    }

    /// Its commitment, which the entry holds.
    pub(super) fn commitment(&self) -> Hash {
        commitment(&self.salt, &self.subject, &self.document)
    }
}

/// The commitment to personal data.
pub(super) fn commitment(salt: &[u8], subject: &str, document: &str) -> Hash {
    let mut fields = Fields::new("tyrex ledger payload 1");
    fields.add(Some(salt));
    fields.add(Some(subject.as_bytes()));
    fields.add(Some(document.as_bytes()));
    fields.finish()
}

/// The digest of texts under a name.
pub(super) fn digest<const N: usize>(domain: &str, texts: [Option<&str>; N]) -> Hash {
    let mut fields = Fields::new(domain);
    for text in texts {
        fields.add(text.map(str::as_bytes));
    }
    fields.finish()
}

/// Hashes fields with their lengths, so that their boundaries are unambiguous.
struct Fields(Sha256);

impl Fields {
    fn new(domain: &str) -> Self {
        Self(Sha256::new().chain_update(domain))
    }

    fn add(&mut self, field: Option<&[u8]>) {
        match field {
            None => self.0.update([0]),
            Some(bytes) => {
                self.0.update([1]);
                self.0.update((bytes.len() as u64).to_le_bytes());
                self.0.update(bytes);
            }
        }
    }

    fn finish(self) -> Hash {
        Hash(self.0.finalize().into())
    }
}
