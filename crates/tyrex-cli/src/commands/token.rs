//! `tyrex token`

use serde::Serialize;
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::Timestamp;
use tyrex_server::access::{Token, Tokens};

use super::{Context, block_on, serve};
use crate::args::{CreateTokenArgs, RevokeTokenArgs, TokenArgs};
use crate::printer::{Page, Report, Stand};

fn address(args: &TokenArgs) -> String {
    serve::address(args.ledger.as_deref())
}

pub(crate) fn create(context: &mut Context<'_>, args: &CreateTokenArgs) -> anyhow::Result<()> {
    let (made, ledger) = block_on(async {
        let database = Database::open(&address(&args.place)).await?;
        let tokens = Tokens::new(database.clone());
        let made = tokens.create(args.role, &args.name, args.expires).await?;
        database.close().await;
        anyhow::Ok((made, database.address().to_owned()))
    })??;
    context.printer.show(&Created { secret: made.text, line: TokenLine::of(made.token), ledger })
}

pub(crate) fn list(context: &mut Context<'_>, args: &TokenArgs) -> anyhow::Result<()> {
    let tokens = block_on(async {
        let database = Database::open_existing(&address(args)).await?;
        anyhow::Ok(Tokens::new(database).list().await?)
    })??;
    let tokens = tokens.into_iter().map(TokenLine::of).collect();
    context.printer.show(&Listed { tokens })
}

pub(crate) fn revoke(context: &mut Context<'_>, args: &RevokeTokenArgs) -> anyhow::Result<()> {
    let token = block_on(async {
        let database = Database::open_existing(&address(&args.place)).await?;
        let token = Tokens::new(database.clone()).revoke(&args.id).await?;
        database.close().await;
        anyhow::Ok(token)
    })??;
    context.printer.show(&Revoked(TokenLine::of(token)))
}

/// A token for display.
#[derive(Debug, Serialize)]
struct TokenLine {
    #[serde(flatten)]
    token: Token,
    /// `good`, `expired` or `revoked`.
    state: &'static str,
}

impl TokenLine {
    fn of(token: Token) -> Self {
        let state = match &token {
            Token { revoked: Some(_), .. } => "revoked",
            token if token.is_good(Timestamp::now()) => "good",
            _ => "expired",
        };
        Self { token, state }
    }
}

/// The report of `token create`.
#[derive(Debug, Serialize)]
struct Created {
    secret: String,
    #[serde(flatten)]
    line: TokenLine,
    ledger: String,
}

impl Report for Created {
    const COMMAND: &'static str = "token create";

    fn page(&self, page: &mut Page) {
        let token = &self.line.token;
        page.title("This is the token. It is not stored and cannot be shown again.");
        page.line(&format!("  {}", self.secret));
        page.pairs(&[
            ("id", token.id.clone()),
            ("role", token.role.name().to_owned()),
            ("ends", token.expires.map_or("never".to_owned(), |end| day(&end.to_string()))),
            ("kept in", self.ledger.clone()),
            ("use", "Authorization: Bearer TOKEN".to_owned()),
        ]);
    }
}

/// The report of `token list`.
#[derive(Debug, Serialize)]
struct Listed {
    tokens: Vec<TokenLine>,
}

impl Report for Listed {
    const COMMAND: &'static str = "token list";

    fn page(&self, page: &mut Page) {
        if self.tokens.is_empty() {
            page.title("There are no tokens");
            return;
        }
        let header =
            ["id", "role", "state", "made", "ends", "name"].map(|name| (name, Stand::Left));
        let rows: Vec<Vec<String>> = self
            .tokens
            .iter()
            .map(|TokenLine { token, state }| {
                vec![
                    token.id.clone(),
                    token.role.name().to_owned(),
                    (*state).to_owned(),
                    day(&token.created.to_string()),
                    token.expires.map_or("never".to_owned(), |end| day(&end.to_string())),
                    token.name.clone(),
                ]
            })
            .collect();
        page.table(&header, &rows);
    }
}

/// The report of `token revoke`.
#[derive(Debug, Serialize)]
struct Revoked(TokenLine);

impl Report for Revoked {
    const COMMAND: &'static str = "token revoke";

    fn page(&self, page: &mut Page) {
        page.title(&format!("The token {} is revoked", self.0.token.id));
    }
}

/// The date of a time.
fn day(moment: &str) -> String {
    moment.split('T').next().unwrap_or(moment).to_owned()
}
