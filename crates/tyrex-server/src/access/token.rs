//! Access tokens: created here, shown once, stored as hashes.
//!
//! `tyrex_<id>_<secret>`: the id is public and finds the row in the database; the secret is 256
//! random bits. Slow hashes protect passwords chosen by people, because they make each guess
//! expensive. 256 random bits cannot be guessed, so one round of SHA-256 is as safe and does not
//! delay requests.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tyrex::file::hex;
use tyrex_ledger::database::{self, Database, from_row, sql};

use super::{Caller, Role};

const PREFIX: &str = "tyrex";
/// Bytes of the public part.
const ID: usize = 8;
/// Bytes of the secret part.
const SECRET: usize = 32;
/// The longest name, in characters.
const LONGEST_NAME: usize = 100;

/// The tokens of a database.
#[derive(Debug, Clone)]
pub struct Tokens {
    database: Database,
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Token {
    /// Its public part.
    pub id: String,
    /// Its display name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// When it was made.
    pub created: Timestamp,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
}

impl Token {
    /// Whether it is neither revoked nor expired at this time.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|end| now < end)
    }
}

/// A new token with its secret, which is not stored.
#[derive(Debug)]
pub struct NewToken {
    /// The text that its holder sends.
    pub text: String,
    /// The stored part.
    pub token: Token,
}

/// Errors of tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// The system provided no random numbers.
    #[error("the system provides no random numbers: {0}")]
    Random(String),
    /// An invalid name.
    #[error(
        "the name of a token has at most {LONGEST_NAME} characters, none of them a control \
             character"
    )]
    Name,
    /// A lifetime out of range.
    #[error("the lifetime of the token is out of range")]
    Lifetime,
    /// There is no such token.
    #[error("there is no token `{0}`")]
    Absent(String),
    /// A row of the table that cannot be read.
    #[error("the token `{0}` is damaged in the database")]
    Damaged(String),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

/// A row of the table.
#[derive(Debug)]
struct TokenRow {
    id: String,
    name: String,
    role: String,
    hash: Vec<u8>,
    created: String,
    expires: Option<String>,
    revoked: Option<String>,
}
from_row!(TokenRow { id, name, role, hash, created, expires, revoked });

impl TokenRow {
    fn token(self) -> Result<Token, Error> {
        let damaged = || Error::Damaged(self.id.clone());
        let moment = |text: &str| text.parse::<Timestamp>().map_err(|_| damaged());
        Ok(Token {
            role: Role::named(&self.role).ok_or_else(damaged)?,
            created: moment(&self.created)?,
            expires: self.expires.as_deref().map(moment).transpose()?,
            revoked: self.revoked.as_deref().map(moment).transpose()?,
            name: self.name,
            id: self.id,
        })
    }
}

impl Tokens {
    /// The tokens of this database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Makes a token.
    pub async fn create(
        &self,
        role: Role,
        name: &str,
        lifetime: Option<Duration>,
    ) -> Result<NewToken, Error> {
        if name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
            return Err(Error::Name);
        }
        let created = Timestamp::now();
        let expires = match lifetime {
            None => None,
            Some(time) => Some(created.checked_add(time).map_err(|_| Error::Lifetime)?),
        };
        let id = hex(&random::<ID>()?);
        let text = format!("{PREFIX}_{id}_{}", hex(&random::<SECRET>()?));
        let hash = Sha256::digest(&text).to_vec();
        let statement = "INSERT INTO tokens (id, name, role, hash, created, expires) \
                         VALUES ($1, $2, $3, $4, $5, $6)";
        sql!(execute in self.database.writers();
            statement,
            &id, name, role.name(), &hash, created.to_string(),
            expires.map(|moment| moment.to_string()))?;
        let name = name.to_owned();
        Ok(NewToken { text, token: Token { id, name, role, created, expires, revoked: None } })
    }

    /// All tokens, the oldest first.
    pub async fn list(&self) -> Result<Vec<Token>, Error> {
        let statement = "SELECT id, name, role, hash, created, expires, revoked FROM tokens";
        let lines: Vec<TokenRow> = sql!(fetch_all in self.database; statement)?;
        let mut tokens = lines.into_iter().map(TokenRow::token).collect::<Result<Vec<_>, _>>()?;
        tokens.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        Ok(tokens)
    }

    /// Whether there is a valid token.
    pub async fn any_good(&self) -> Result<bool, Error> {
        let now = Timestamp::now();
        Ok(self.list().await?.iter().any(|token| token.is_good(now)))
    }

    /// Revokes a token. A second call changes nothing.
    pub async fn revoke(&self, id: &str) -> Result<Token, Error> {
        let statement = "UPDATE tokens SET revoked = $2 WHERE id = $1 AND revoked IS NULL";
        sql!(execute in self.database.writers(); statement, id, Timestamp::now().to_string())?;
        let line = self.line(id).await?.ok_or_else(|| Error::Absent(id.to_owned()))?;
        line.token()
    }

    /// The caller of this token.
    pub(crate) async fn caller(&self, text: &str) -> Result<Caller, Error> {
        const UNKNOWN: Caller = Caller::Unknown("the token is unknown");
        let Some(id) = public_part(text) else { return Ok(UNKNOWN) };
        let Some(line) = self.line(id).await? else { return Ok(UNKNOWN) };
        if !bool::from(Sha256::digest(text).as_slice().ct_eq(&line.hash)) {
            return Ok(UNKNOWN);
        }
        let token = line.token()?;
        Ok(match token {
            Token { revoked: Some(_), .. } => Caller::Unknown("the token was revoked"),
            token if !token.is_good(Timestamp::now()) => Caller::Unknown("the token has expired"),
            Token { id, role, .. } => Caller::Holder { id, role },
        })
    }

    /// Whether a caller that was let in earlier would be let in now: its token may have been revoked
    /// or have expired since.
    pub(crate) async fn still_admit(&self, caller: &Caller) -> Result<bool, Error> {
        let Caller::Holder { id, .. } = caller else { return Ok(*caller == Caller::Anyone) };
        let Some(line) = self.line(id).await? else { return Ok(false) };
        Ok(line.token()?.is_good(Timestamp::now()))
    }

    async fn line(&self, id: &str) -> Result<Option<TokenRow>, Error> {
        let statement = "SELECT id, name, role, hash, created, expires, revoked FROM tokens \
                         WHERE id = $1";
        Ok(sql!(fetch_optional in self.database; statement, id)?)
    }
}

/// The public part of a token, if the text has the form of one.
fn public_part(text: &str) -> Option<&str> {
    let (id, secret) = text.strip_prefix(PREFIX)?.strip_prefix('_')?.split_once('_')?;
    let is_hex = |text: &str, bytes: usize| {
        text.len() == 2 * bytes && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    (is_hex(id, ID) && is_hex(secret, SECRET)).then_some(id)
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tokens(folder: &tempfile::TempDir) -> Tokens {
        let file = folder.path().join("tokens.db");
        let address = file.to_str().expect("a name");
        Tokens::new(Database::open(address).await.expect("a database"))
    }

    /// Why the token is rejected; `None` if it is valid.
    async fn refused(tokens: &Tokens, text: &str) -> Option<&'static str> {
        match tokens.caller(text).await.expect("the database answers") {
            Caller::Unknown(why) => Some(why),
            Caller::Holder { .. } => None,
            Caller::Anyone => panic!("a token always has a holder"),
        }
    }

    #[tokio::test]
    async fn only_the_whole_token_lets_its_holder_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = tokens(&folder).await;
        assert!(!tokens.any_good().await.expect("a list"));
        let made = tokens.create(Role::Explain, "nightly job", None).await.expect("a token");
        let other = tokens.create(Role::Admin, "", None).await.expect("a token");
        let caller = tokens.caller(&made.text).await.expect("an answer");
        assert_eq!(caller, Caller::Holder { id: made.token.id.clone(), role: Role::Explain });

        let text = &made.text;
        let (head, secret) = text.rsplit_once('_').expect("two parts");
        let flipped = if secret.starts_with('0') { "1" } else { "0" };
        let bad = [
            String::new(),
            PREFIX.to_owned(),
            head.to_owned(),
            format!("{head}_"),
            text[..text.len() - 1].to_owned(),
            format!("{text}0"),
            format!(" {text}"),
            text.to_uppercase(),
            format!("{head}_{}", secret.to_uppercase()),
            format!("{head}_{flipped}{}", &secret[1..]),
            format!("{head}_{}", other.text.rsplit_once('_').expect("two parts").1),
            format!("{PREFIX}_{}_{secret}", other.token.id),
            format!("{PREFIX}_{}_{secret}", "0".repeat(2 * ID)),
            format!("{PREFIX}_{}_{secret}", "' OR '1'='1' --"),
            "a".repeat(100_000),
        ];
        for text in bad {
            // Upper-case digits of a secret without letters are the same text.
            if text != made.text {
                assert_eq!(refused(&tokens, &text).await, Some("the token is unknown"), "{text}");
            }
        }
    }

    #[tokio::test]
    async fn tokens_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = tokens(&folder).await;
        let short = tokens.create(Role::Read, "", Some(Duration::ZERO)).await.expect("a token");
        assert_eq!(refused(&tokens, &short.text).await, Some("the token has expired"));
        assert!(!tokens.any_good().await.expect("a list"));
        let week = Some(Duration::from_hours(7 * 24));
        let made = tokens.create(Role::Read, "", week).await.expect("a token");
        assert_eq!(refused(&tokens, &made.text).await, None);
        assert!(tokens.any_good().await.expect("a list"));
        let revoked = tokens.revoke(&made.token.id).await.expect("revoked");
        assert_eq!(refused(&tokens, &made.text).await, Some("the token was revoked"));
        // Again changes nothing.
        assert_eq!(tokens.revoke(&made.token.id).await.expect("revoked"), revoked);
        assert!(matches!(tokens.revoke("none").await, Err(Error::Absent(_))));
        let listed = tokens.list().await.expect("a list");
        assert_eq!(listed, [short.token, revoked]);
        let endless = tokens.create(Role::Read, "", Some(Duration::MAX)).await;
        assert!(matches!(endless, Err(Error::Lifetime)));
        let nameless = tokens.create(Role::Read, "a\nb", None).await;
        assert!(matches!(nameless, Err(Error::Name)));
    }

    #[tokio::test]
    async fn the_database_holds_no_secret() {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = tokens(&folder).await;
        let made = tokens.create(Role::Admin, "", None).await.expect("a token");
        tokens.database.close().await;
        let secret = made.text.rsplit_once('_').expect("two parts").1;
        for file in std::fs::read_dir(folder.path()).expect("files") {
            let bytes = std::fs::read(file.expect("a file").path()).expect("bytes");
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(secret));
        }
    }
}
