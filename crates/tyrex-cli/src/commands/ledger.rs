//! `tyrex ledger`

use std::io::IsTerminal as _;
use std::ops::ControlFlow;

use serde::Serialize;
use tyrex::certificate::at_least;
use tyrex::data::Table;
use tyrex::explain::PromisedProbability;
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::{
    self, AnswerFiles, Closing, Content, Entry, Filter, Forgotten, Given, Head, Ledger, Promised,
    RecordedAnswers, Timestamp, Uuid, Verification,
};

use super::summary::{counted, shown};
use super::{Answer, Context, block_on, source};
use crate::args::{
    FilterArgs, LedgerArgs, LedgerCloseArgs, LedgerExportArgs, LedgerForgetArgs, LedgerListArgs,
    LedgerRecordArgs, LedgerShowArgs, LedgerVerifyArgs,
};
use crate::help::Usage;
use crate::interrupt;
use crate::printer::{Page, Report, Stand};
use crate::progress::Unit;

/// The environment variable that names the ledger if `--ledger` does not.
const VARIABLE: &str = "TYREX_LEDGER";

/// The ledger of the arguments, or of the variable.
pub(super) fn address(typed: Option<&str>) -> Option<String> {
    let variable = || std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
    typed.map(str::to_owned).or_else(variable)
}

/// The ledger of the arguments, which must exist.
fn existing(args: &LedgerArgs) -> anyhow::Result<Ledger> {
    typed_or_named(args.ledger.as_deref())
}

/// The ledger of the arguments, or else of the variable. It must exist.
pub(super) fn typed_or_named(typed: Option<&str>) -> anyhow::Result<Ledger> {
    open_existing(&named_address(typed)?)
}

/// The ledger of the arguments, or else of the variable.
fn named_address(typed: Option<&str>) -> anyhow::Result<String> {
    let missing = || Usage {
        problem: "no ledger is named".to_owned(),
        help: format!("pass --ledger FILE or --ledger postgres://..., or set {VARIABLE}"),
    };
    Ok(address(typed).ok_or_else(missing)?)
}

/// A ledger that must exist.
pub(super) fn open_existing(address: &str) -> anyhow::Result<Ledger> {
    Ok(Ledger::new(block_on(Database::open_existing(address))??))
}

/// Closes the connections, so that SQLite leaves a single file.
pub(super) fn close(ledger: &Ledger) -> anyhow::Result<()> {
    block_on(ledger.database().close())
}

pub(crate) fn list(context: &mut Context<'_>, args: &LedgerListArgs) -> anyhow::Result<()> {
    let ledger = existing(&args.ledger)?;
    // One more than is shown, to know whether there are more.
    let filter = Filter {
        after: args.after,
        limit: Some(args.limit.saturating_add(1)),
        ..filter(&args.filter)
    };
    let mut entries = block_on(ledger.list(&filter))??;
    let more = entries.len() > args.limit;
    entries.truncate(args.limit);
    context.printer.show(&ListReport {
        ledger: ledger.database().address().to_owned(),
        head: block_on(ledger.head())??,
        entries,
        more,
    })?;
    close(&ledger)
}

fn filter(args: &FilterArgs) -> Filter {
    Filter {
        status: args.status,
        subject: args.subject.clone(),
        model: args.model.clone(),
        ..Filter::default()
    }
}

pub(crate) fn show(context: &mut Context<'_>, args: &LedgerShowArgs) -> anyhow::Result<()> {
    let ledger = existing(&args.ledger)?;
    let entry = named(&ledger, &args.entry)?;
    context.printer.show(&EntryReport { entry })?;
    close(&ledger)
}

/// The entry with this number or id.
fn named(ledger: &Ledger, name: &str) -> anyhow::Result<Entry> {
    if let Ok(sequence) = name.parse() {
        return Ok(block_on(ledger.at(sequence))??);
    }
    let Ok(id) = name.parse::<Uuid>() else {
        return Err(Usage {
            problem: format!("`{name}` is not an entry, expected its number or its id"),
            help: "`tyrex ledger list` shows both".to_owned(),
        }
        .into());
    };
    Ok(block_on(ledger.entry(id))??)
}

pub(crate) fn export(context: &mut Context<'_>, args: &LedgerExportArgs) -> anyhow::Result<()> {
    let overwrite = args.force.overwrite();
    let own = source::ledger_file(args.ledger.ledger.as_deref());
    source::keep_inputs(&args.out, &[own.as_ref()])?;
    Table::check_writable(&args.out, overwrite)?;
    let ledger = existing(&args.ledger)?;
    let chosen = filter(&args.filter);
    let all_kinds = chosen == Filter::default();
    let entries = block_on(ledger.list(&Filter { all_kinds, ..chosen }))??;
    let table = ledger::table(&entries)?;
    interrupt::whole(|| table.write_with(&args.out, overwrite, args.cells.cells()))?;
    context.printer.show(&ExportReport {
        ledger: ledger.database().address().to_owned(),
        entries: entries.len(),
        out: shown(&args.out),
    })?;
    close(&ledger)
}

pub(crate) fn record(context: &mut Context<'_>, args: &LedgerRecordArgs) -> anyhow::Result<()> {
    let answers = AnswerFiles::check(&args.files, &args.subject_column)?;
    let ledger =
        Ledger::new(block_on(Database::open(&named_address(args.ledger.ledger.as_deref())?))??);
    let progress = context.progress("recording", Unit::Rows);
    let work = ledger.record_answers(&answers, |so_far| {
        progress.at(so_far.answers, answers.rows().unwrap_or(0), String::new());
        // An interrupt takes effect between two transactions.
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let all = interrupt::whole(|| block_on(work))??;
    progress.finish();
    context.printer.show(&RecordAnswersReport {
        ledger: ledger.database().address().to_owned(),
        files: answers.files().len(),
        recorded: all,
        head: block_on(ledger.head())??,
    })?;
    close(&ledger)
}

pub(crate) fn verify(context: &mut Context<'_>, args: &LedgerVerifyArgs) -> anyhow::Result<Answer> {
    let ledger = existing(&args.ledger)?;
    let verification = block_on(ledger.verify(args.head.as_ref()))??;
    let answer = if verification.is_sound() { Answer::Yes } else { Answer::No };
    context.printer.show(&VerifyReport {
        ledger: ledger.database().address().to_owned(),
        intact: verification.is_sound(),
        verification,
    })?;
    close(&ledger)?;
    Ok(answer)
}

pub(crate) fn forget(context: &mut Context<'_>, args: &LedgerForgetArgs) -> anyhow::Result<Answer> {
    if !args.yes && std::io::stdin().is_terminal() {
        return Err(Usage {
            problem: "erased data cannot be restored".to_owned(),
            help: "pass --yes to confirm".to_owned(),
        }
        .into());
    }
    let ledger = existing(&args.ledger)?;
    let forgotten = interrupt::whole(|| block_on(ledger.forget(&args.subject)))??;
    let answer = if forgotten.is_nothing() { Answer::No } else { Answer::Yes };
    context.printer.show(&ForgetReport {
        ledger: ledger.database().address().to_owned(),
        forgotten,
        head: block_on(ledger.head())??,
    })?;
    close(&ledger)?;
    Ok(answer)
}

pub(crate) fn close_promise(
    context: &mut Context<'_>,
    args: &LedgerCloseArgs,
) -> anyhow::Result<()> {
    let ledger = existing(&args.ledger)?;
    let closing = args.closing;
    let id = named(&ledger, &args.entry)?.id;
    interrupt::whole(|| block_on(ledger.close(id, closing)))??;
    let entry = block_on(ledger.entry(id))??;
    let head = block_on(ledger.head())??;
    context.printer.show(&CloseReport { id, sequence: entry.sequence, closing, head })?;
    close(&ledger)
}

/// A time for display, to the minute.
fn moment(moment: Timestamp) -> String {
    let text = moment.to_string();
    text.chars().take("2026-11-16T00:00".len()).collect::<String>().replacen('T', " ", 1)
}

/// Numbers or ids for display.
fn listed(things: &[impl ToString]) -> String {
    things.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The prefix of a fingerprint that distinguishes models.
fn short(fingerprint: &str) -> String {
    fingerprint.chars().take(8).collect()
}

#[derive(Debug, Serialize)]
struct ListReport {
    ledger: String,
    head: Head,
    entries: Vec<Entry>,
    more: bool,
}

impl Report for ListReport {
    const COMMAND: &'static str = "ledger list";

    fn page(&self, page: &mut Page) {
        let header = [
            ("no.", Stand::Right),
            ("recorded (UTC)", Stand::Left),
            ("status", Stand::Left),
            ("holds until", Stand::Left),
            ("model", Stand::Left),
            ("subject", Stand::Left),
        ];
        let row = |entry: &Entry| {
            let promised = entry.promise()?;
            let until = promised.holds_until.map_or("for good".to_owned(), moment);
            Some(vec![
                entry.sequence.to_string(),
                moment(entry.time),
                promised.status.to_string(),
                until,
                short(&promised.model),
                entry.given().map_or("-".to_owned(), |given| given.subject.clone()),
            ])
        };
        let rows: Vec<Vec<String>> = self.entries.iter().filter_map(row).collect();
        let first = if self.more { "the first " } else { "" };
        page.title(&format!("{}: {first}{}", self.ledger, counted(rows.len(), "promise")));
        if !rows.is_empty() {
            page.table(&header, &rows);
        }
        if let (true, Some(last)) = (self.more, self.entries.last()) {
            page.line(&format!("  more with --after {}", last.sequence));
        }
    }
}

#[derive(Debug, Serialize)]
struct EntryReport {
    #[serde(flatten)]
    entry: Entry,
}

impl Report for EntryReport {
    const COMMAND: &'static str = "ledger show";

    fn page(&self, page: &mut Page) {
        let Entry { sequence, id, time, content, previous, hash } = &self.entry;
        let kind = self.entry.kind().name();
        page.title(&format!("Entry {sequence}, {kind}"));
        let mut pairs = vec![("id", id.to_string()), ("recorded", moment(*time) + " UTC")];
        match content {
            Content::Promise(promised) => pairs.extend(promised_pairs(promised)),
            Content::Closed { promise, closing } => {
                pairs.push(("closes", format!("entry {promise}, which was {}", closing.name())));
            }
            Content::Forgotten { promises } => {
                pairs.push(("forgets", format!("entries {}", listed(promises))));
            }
        }
        pairs.push(("hash", hash.to_string()));
        pairs.push(("previous", previous.to_string()));
        page.pairs(&pairs);
        if let Some(given) = self.entry.given() {
            values_table(page, given);
        }
    }
}

fn promised_pairs(promised: &Promised) -> Vec<(&'static str, String)> {
    let method = promised.request["method"]["method"].as_str().unwrap_or("unknown");
    let mut pairs = vec![
        ("status", promised.status.to_string()),
        (
            "holds",
            promised
                .holds_until
                .map_or("for good".to_owned(), |m| format!("until {} UTC", moment(m))),
        ),
        ("model", promised.model.clone()),
        ("method", method.to_owned()),
    ];
    match &promised.given {
        None => pairs.push(("subject", "forgotten, with all personal data".to_owned())),
        Some(given) => {
            let document = &given.document;
            pairs.push(("subject", given.subject.clone()));
            let stability = document.stability.map(|r| format!(", stability {r:.3}"));
            let stability = stability.unwrap_or_default();
            pairs.push(("then", format!("a score of {:.3}{stability}", document.score)));
            if let Some(stated) = document.promised {
                let PromisedProbability { probability, confidence, predictive } = stated;
                pairs.push((
                    "promised",
                    format!(
                        "at least {} at confidence {confidence}; predictive {}",
                        at_least(probability),
                        at_least(predictive)
                    ),
                ));
            }
            if let Some(sentence) = certificate_sentence(given) {
                pairs.push(("sure", sentence));
            }
        }
    }
    pairs
}

/// The certificate in words, if this version can read it.
fn certificate_sentence(given: &Given) -> Option<String> {
    let certificate = given.document.certificate.clone()?;
    let certificate: tyrex::certificate::Certificate = serde_json::from_value(certificate).ok()?;
    Some(certificate.sentence())
}

/// The applicant before and after.
fn values_table(page: &mut Page, given: &Given) {
    page.title("What was promised");
    let advised = &given.document.advised;
    let mut names = vec![String::new()];
    let mut before = vec!["is".to_owned()];
    let mut after = vec!["should become".to_owned()];
    for (feature, value) in given.document.factual.iter() {
        let changed = advised.value(feature).filter(|other| *other != value);
        names.push(feature.to_owned());
        before.push(value.for_people());
        after.push(changed.map(tyrex::data::Value::for_people).unwrap_or_default());
    }
    page.abreast(&names, &[before, after]);
}

#[derive(Debug, Serialize)]
struct ExportReport {
    ledger: String,
    entries: usize,
    out: String,
}

impl Report for ExportReport {
    const COMMAND: &'static str = "ledger export";

    fn page(&self, page: &mut Page) {
        let count = match self.entries {
            1 => "1 entry".to_owned(),
            count => format!("{count} entries"),
        };
        page.title(&format!("Wrote {count} to {}", self.out));
    }
}

#[derive(Debug, Serialize)]
struct RecordAnswersReport {
    ledger: String,
    files: usize,
    #[serde(flatten)]
    recorded: RecordedAnswers,
    head: Head,
}

impl Report for RecordAnswersReport {
    const COMMAND: &'static str = "ledger record";

    fn page(&self, page: &mut Page) {
        let RecordedAnswers { answers, recorded, already, without } = self.recorded;
        page.title(&format!(
            "Recorded {} in {}",
            counted(recorded as usize, "promise"),
            self.ledger
        ));
        page.pairs(&[
            ("answers", format!("{answers} in {}", counted(self.files, "file"))),
            ("already", format!("{already} were in the ledger")),
            ("without", format!("{without} have no advice, so they promise nothing")),
            ("head", self.head.hash.to_string()),
        ]);
    }
}

#[derive(Debug, Serialize)]
struct VerifyReport {
    ledger: String,
    intact: bool,
    #[serde(flatten)]
    verification: Verification,
}

impl Report for VerifyReport {
    const COMMAND: &'static str = "ledger verify";

    fn page(&self, page: &mut Page) {
        let Verification { entries, promises, forgotten, head, .. } = &self.verification;
        page.title(&self.ledger);
        let mut pairs = vec![(
            "entries",
            format!(
                "{entries} in an unbroken chain; {promises} are promises, {forgotten} of them forgotten"
            ),
        )];
        pairs.push(("head", head.to_string()));
        let result = if self.intact { "sound" } else { "broken" };
        pairs.push((result, self.verification.sentence()));
        page.pairs(&pairs);
    }
}

#[derive(Debug, Serialize)]
struct ForgetReport {
    ledger: String,
    #[serde(flatten)]
    forgotten: Forgotten,
    head: Head,
}

impl Report for ForgetReport {
    const COMMAND: &'static str = "ledger forget";

    fn page(&self, page: &mut Page) {
        if self.forgotten.is_nothing() {
            page.title(&format!("{} knows no such subject", self.ledger));
            return;
        }
        let Forgotten { promises, jobs, .. } = &self.forgotten;
        let mut pairs = Vec::new();
        let mut counts = Vec::new();
        if !promises.is_empty() {
            counts.push(counted(promises.len(), "promise"));
            pairs.push(("entries", listed(promises)));
        }
        if !jobs.is_empty() {
            counts.push(counted(jobs.len(), "finished job"));
            pairs.push(("jobs", listed(jobs)));
        }
        page.title(&format!("Forgot {}", counts.join(" and ")));
        pairs.push(("head", self.head.hash.to_string()));
        page.pairs(&pairs);
    }
}

#[derive(Debug, Serialize)]
struct CloseReport {
    id: Uuid,
    sequence: u64,
    #[serde(rename = "as")]
    closing: Closing,
    head: Head,
}

impl Report for CloseReport {
    const COMMAND: &'static str = "ledger close";

    fn page(&self, page: &mut Page) {
        page.title(&format!("Promise {} is {}", self.sequence, self.closing.name()));
        page.pairs(&[("head", self.head.hash.to_string())]);
    }
}
