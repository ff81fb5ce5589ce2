//! `tyrex audit`

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use tyrex::certificate::at_least;
use tyrex::counterfactual::{Protocol, Reason, ReferenceUse, Tick};
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::data::schema::Split;
use tyrex::data::{Catalogue, Cells, Dataset, Schema, Table, TableLimits};
use tyrex::explain::{
    Ask, Candidate, Explainer, Gate, GateReport, GateVerdict, Group, JudgedCandidate,
    JudgedPromise, Meaning, PromiseStatus, Reference, Repair, Request, UnlabelledRows, Updates,
    WrittenPromise, embedded_schema, import,
};
use tyrex::file::{check_writable, write_whole};
use tyrex::model::files::ModelFile;
use tyrex::{Overwrite, report};
use tyrex_ledger::ledger::Entry;

use super::ledger::{close, typed_or_named};
use super::summary::{counted, shown};
use super::{Answer, Context, block_on, explain, source};
use crate::args::AuditArgs;
use crate::help::Usage;
use crate::interrupt;
use crate::printer::{Page, Report, Stand};
use crate::progress::Unit;

/// The most promises of a file: each takes about 1.5 kilobytes, and a small Parquet file can hold
/// millions.
const MOST_PROMISES: usize = 500_000;
/// Broken promises to show.
const SHOWN: usize = 5;

pub(crate) fn run(context: &mut Context<'_>, args: &AuditArgs) -> anyhow::Result<Answer> {
    let overwrite = args.force.overwrite();
    // Checked before the work, so that the error does not come minutes later.
    check_outputs(args, overwrite)?;
    check_models(args)?;
    let mut ask = ask(args)?;
    let rows = Rows::read(context, args)?;
    let mut promises = promises(args, rows.as_ref())?;
    if let Some(Rows::Named(dataset)) = &rows {
        // Promises of earlier versions do not name the promised outcome; the schema of the data set
        // does.
        let meaning = Meaning::of(dataset.schema());
        for promise in &mut promises {
            promise.meaning.get_or_insert_with(|| meaning.clone());
        }
    }
    let mut explainers: Vec<Explainer> = args
        .model
        .iter()
        .map(|model| explainer(args, model, rows.as_ref(), &promises))
        .collect::<anyhow::Result<_>>()?;
    if let (Some(folder), [candidate]) = (&args.ensemble, explainers.as_mut_slice()) {
        let given = candidate.retraining().read(folder, &source::import_options(&args.import))?;
        ask = ask.for_model(candidate, Some(&given));
        let bars = context.stages();
        *candidate = candidate.for_repairs(&ask, &given, &|at| bars.at(at))?;
    }
    let gate = Gate {
        request: ask.request()?,
        by: args.by.clone(),
        allow: args.allow,
        confidence: args.confidence,
    };
    let candidates: Vec<Candidate<'_>> = args
        .model
        .iter()
        .zip(&explainers)
        .map(|(model, explainer)| Candidate {
            name: shown(model),
            explainer,
            has_only_promises: rows.is_none() && args.reference.is_none(),
        })
        .collect();
    let report = with_progress(context, &gate, &candidates, &promises)?;
    for path in &args.out {
        write(&report, path, overwrite, args.cells.cells())?;
    }
    let GateReport { verdict, allow, confidence, request, candidates, updates, promises, .. } =
        &report;
    context.printer.show(&AuditReport {
        source: promise_source(args),
        verdict,
        allow: *allow,
        confidence: *confidence,
        request,
        candidates,
        updates: updates.as_ref(),
        promises,
        out: args.out.iter().map(|path| shown(path)).collect(),
    })?;
    Ok(if report.passes() { Answer::Yes } else { Answer::No })
}

/// The rows that `explain` used.
enum Rows {
    /// A data set of the catalogue.
    Named(Box<Dataset>),
    /// A file.
    File(Table),
}

impl Rows {
    fn read(context: &Context<'_>, args: &AuditArgs) -> anyhow::Result<Option<Self>> {
        if let Some(name) = &args.dataset {
            let catalogue = Catalogue::new(context.global.data_dir.as_deref());
            let dataset = catalogue.load(name, Variant::Product, Direction::Favourable)?;
            return Ok(Some(Self::Named(Box::new(dataset))));
        }
        Ok(args.data.as_deref().map(Table::read).transpose()?.map(Self::File))
    }

    fn table(&self) -> &Table {
        match self {
            Self::Named(dataset) => dataset.table(),
            Self::File(table) => table,
        }
    }
}

/// The question of the arguments.
fn ask(args: &AuditArgs) -> anyhow::Result<Ask> {
    let search = &args.search;
    let ask = explain::ask(search, Protocol::Product)?;
    if ask.is_calibrated() {
        return Err(Usage {
            problem: "--tau auto: an audit does not calibrate".to_owned(),
            help: "`tyrex calibrate` finds a threshold; pass its number".to_owned(),
        }
        .into());
    }
    let request = ask.request()?;
    if request.method.reference() == ReferenceUse::Required
        && args.data.is_none()
        && args.reference.is_none()
        && args.dataset.is_none()
    {
        return Err(Usage {
            problem: format!("--method {} needs data rows to find repairs", request.method.name()),
            help: "name them with --reference, --data or --dataset, or choose another method"
                .to_owned(),
        }
        .into());
    }
    Ok(ask)
}

/// The source of the promises. The address of a ledger may hold a password.
fn promise_source(args: &AuditArgs) -> String {
    args.counterfactuals.as_deref().map_or_else(|| "the ledger".to_owned(), shown)
}

/// The promises that are open.
fn promises(args: &AuditArgs, rows: Option<&Rows>) -> anyhow::Result<Vec<WrittenPromise>> {
    if let Some(file) = &args.counterfactuals {
        let limits = TableLimits { rows: MOST_PROMISES, ..TableLimits::default() };
        let advice = Table::read_within(file, limits)?;
        return Ok(WrittenPromise::of_advice(&advice, rows.map(Rows::table))?);
    }
    let ledger = typed_or_named(args.ledger.as_deref())?;
    let entries = block_on(ledger.open_promises())?;
    close(&ledger)?;
    Ok(entries?.iter().filter_map(Entry::written).collect())
}

/// A candidate with rows: the given ones, or else those of the promises.
fn explainer(
    args: &AuditArgs,
    path: &Path,
    rows: Option<&Rows>,
    promises: &[WrittenPromise],
) -> anyhow::Result<Explainer> {
    let options = source::import_options(&args.import);
    let own = match &args.schema {
        Some(schema) => Some(Schema::read(schema)?),
        None => embedded_schema(&ModelFile::read(path, &options)?)?,
    };
    let (schema, data) = match (own, rows) {
        (Some(schema), _) if args.reference.is_some() => {
            let trained_on = args.reference.as_deref().map(Table::read).transpose()?;
            let read = trained_on.map(|table| Reference::read(&schema, table)).transpose()?;
            let data = read.map_or_else(|| Reference::none(&schema), Ok)?;
            (schema, data)
        }
        (Some(schema), Some(rows)) => {
            let rows = UnlabelledRows::read(&schema, rows.table().clone())?;
            // Without a split they may be applicants.
            let applicants = matches!(schema.split, Split::AllTrain);
            let rows = if applicants { rows.without_scale() } else { rows };
            (schema, Reference::Unlabelled(rows))
        }
        (None, Some(Rows::Named(dataset))) => {
            (dataset.schema().clone(), Reference::Labelled((**dataset).clone()))
        }
        (Some(schema), None) => {
            let data = Reference::of_promises(&schema, promises)?;
            (schema, data)
        }
        (None, _) => {
            return Err(Usage {
                problem: format!("there is no schema for the features of {}", path.display()),
                help: "pass --schema FILE, the one the model was trained with".to_owned(),
            }
            .into());
        }
    };
    let model = import(path, &schema, &options)?;
    Explainer::with_model(data, model).map_err(|error| match error {
        tyrex::Error::InvalidModel(problem) => {
            tyrex::Error::Model { file: path.to_owned(), problem }.into()
        }
        other => anyhow::Error::new(other).context(format!("model {}", path.display())),
    })
}

fn with_progress(
    context: &Context<'_>,
    gate: &Gate,
    candidates: &[Candidate<'_>],
    promises: &[WrittenPromise],
) -> tyrex::Result<GateReport> {
    let progress = context.progress("auditing", Unit::Rows);
    let done = AtomicU64::new(0);
    let total = 2 * (promises.len() * candidates.len()) as u64;
    progress.at(0, total, String::new());
    let report = gate.judge(candidates, promises, |tick| {
        if tick == Tick::Answered {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress.at(done, total, String::new());
        }
        ControlFlow::Continue(())
    });
    progress.finish();
    report
}

/// The formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Html,
    Json,
    Table,
}

impl Form {
    fn of(path: &Path) -> Self {
        let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        match extension.as_deref().and_then(std::ffi::OsStr::to_str) {
            Some("html") => Self::Html,
            Some("json") => Self::Json,
            _ => Self::Table,
        }
    }
}

/// Rejects outputs that cannot be written, before the work.
fn check_outputs(args: &AuditArgs, overwrite: Overwrite) -> anyhow::Result<()> {
    let ledger = source::ledger_file(args.ledger.as_deref());
    let split = source::split_file(args.schema.as_deref());
    let mut inputs: Vec<Option<&PathBuf>> = args.model.iter().map(Some).collect();
    inputs.extend([
        ledger.as_ref(),
        args.counterfactuals.as_ref(),
        args.data.as_ref(),
        args.reference.as_ref(),
        args.schema.as_ref(),
        args.ensemble.as_ref(),
        split.as_ref(),
    ]);
    for (index, path) in args.out.iter().enumerate() {
        source::keep_inputs(path, &inputs)?;
        if args.out[..index].contains(path) {
            return Err(Usage {
                problem: format!("--out {} is given twice", path.display()),
                help: "give every output its own name".to_owned(),
            }
            .into());
        }
        match Form::of(path) {
            Form::Table => Table::check_writable(path, overwrite).map_err(|error| match error {
                tyrex::Error::Table { .. } => Usage {
                    problem: format!("--out {}: unknown file format", path.display()),
                    help: "end the name in .html, .json, .csv, .jsonl, .ndjson or .parquet"
                        .to_owned(),
                }
                .into(),
                other => anyhow::Error::new(other),
            })?,
            Form::Html | Form::Json => check_writable(path, overwrite)?,
        }
    }
    Ok(())
}

/// Rejects a file that is given twice: it would be compared with itself.
fn check_models(args: &AuditArgs) -> Result<(), Usage> {
    let models = &args.model;
    if args.ensemble.is_some() && models.len() > 1 {
        return Err(Usage {
            problem: "--ensemble holds retrained versions of one model, and there are several \
                      candidates"
                .to_owned(),
            help: "pass one --model with --ensemble".to_owned(),
        });
    }
    for (index, model) in models.iter().enumerate() {
        let place = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        if models[..index].iter().any(|earlier| place(earlier) == place(model)) {
            return Err(Usage {
                problem: format!("--model {} is given twice", model.display()),
                help: "name every candidate once".to_owned(),
            });
        }
    }
    Ok(())
}

fn write(gate: &GateReport, path: &Path, overwrite: Overwrite, cells: Cells) -> anyhow::Result<()> {
    let text = match Form::of(path) {
        Form::Table => {
            let table = gate.table()?;
            interrupt::whole(|| table.write_with(path, overwrite, cells))?;
            return Ok(());
        }
        Form::Json => serde_json::to_string_pretty(gate)? + "\n",
        Form::Html => report::gate_html(gate),
    };
    interrupt::whole(|| write_whole(path, overwrite, |out| out.write_all(text.as_bytes())))?;
    Ok(())
}

/// The report of `audit`.
#[derive(Debug, Serialize)]
struct AuditReport<'a> {
    source: String,
    verdict: &'a GateVerdict,
    allow: f64,
    confidence: f64,
    request: &'a Request,
    candidates: &'a [JudgedCandidate],
    #[serde(skip_serializing_if = "Option::is_none")]
    updates: Option<&'a Updates>,
    promises: &'a [WrittenPromise],
    out: Vec<String>,
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn interval((low, high): (f64, f64)) -> String {
    format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high)
}

impl AuditReport<'_> {
    fn ranking(&self, page: &mut Page) {
        page.title("Candidates, the best first");
        let rows: Vec<Vec<String>> = self
            .candidates
            .iter()
            .map(|candidate| {
                let tally = candidate.tally;
                let stability = candidate.mean_stability;
                vec![
                    candidate.rank.to_string(),
                    candidate.name.clone(),
                    tally.kept.to_string(),
                    tally.broken.to_string(),
                    tally.unreadable.to_string(),
                    tally.share_kept.map(percent).unwrap_or_default(),
                    interval(tally.interval),
                    stability.map(|mean| format!("{mean:.3}")).unwrap_or_default(),
                    if candidate.passes { "passes" } else { "fails" }.to_owned(),
                ]
            })
            .collect();
        let right = |name| (name, Stand::Right);
        let left = |name| (name, Stand::Left);
        let sure = format!("{} % interval", 100.0 * self.confidence);
        page.table(
            &[
                right(""),
                left("model"),
                right("kept"),
                right("broken"),
                right("unreadable"),
                right("share kept"),
                right(&sure),
                right("stability"),
                left("gate"),
            ],
            &rows,
        );
    }

    /// The promised probability beside the share kept, if promises state one.
    fn stated(&self, page: &mut Page) {
        let stated = |each: &JudgedCandidate| {
            let stated = each.tally.stated?;
            Some(vec![
                each.name.clone(),
                stated.promises.to_string(),
                format!("{:.3}", stated.mean_probability),
                format!("{:.3}", stated.mean_predictive),
                format!("{:.3}", stated.share_kept),
            ])
        };
        let rows: Vec<Vec<String>> = self.candidates.iter().filter_map(stated).collect();
        if rows.is_empty() {
            return;
        }
        page.title("Promised and kept");
        let right = |name| (name, Stand::Right);
        page.table(
            &[
                ("model", Stand::Left),
                right("promises with a probability"),
                right("promised, mean"),
                right("predictive, mean"),
                right("share kept"),
            ],
            &rows,
        );
    }

    fn groups(&self, page: &mut Page, candidate: &JudgedCandidate) {
        for table in &candidate.groups {
            let unit = table.unit.as_ref().map(|unit| format!(" ({unit})")).unwrap_or_default();
            page.title(&format!("By {}{unit}, {}", table.feature, candidate.name));
            let rows: Vec<Vec<String>> = table.groups.iter().map(group_cells).collect();
            let right = |name| (name, Stand::Right);
            let sure = format!("{} % interval", 100.0 * self.confidence);
            page.table(
                &[
                    ("group", Stand::Left),
                    right("promises"),
                    right("kept"),
                    right("broken"),
                    right("share kept"),
                    right(&sure),
                    right("p (Holm)"),
                    ("", Stand::Left),
                ],
                &rows,
            );
        }
    }
}

/// The candidates as successive updates.
fn updates_page(page: &mut Page, updates: &Updates) {
    page.title("Update after update, in the order given");
    let rows: Vec<Vec<String>> = updates
        .updates
        .iter()
        .map(|update| {
            let kept = format!("{:.3}", update.share_kept);
            vec![update.name.clone(), kept, at_least(update.at_least)]
        })
        .collect();
    let header = [
        ("model", Stand::Left),
        ("share kept", Stand::Right),
        ("expected share, at least", Stand::Right),
    ];
    page.table(&header, &rows);
    page.pairs(&[("bound", updates.sentence.clone())]);
}

fn group_cells(group: &Group) -> Vec<String> {
    let tally = group.tally;
    vec![
        group.name.clone(),
        tally.promises.to_string(),
        tally.kept.to_string(),
        tally.broken.to_string(),
        tally.share_kept.map(percent).unwrap_or_default(),
        interval(tally.interval),
        group.adjusted.map(|p| format!("{p:.3}")).unwrap_or_default(),
        if group.differs { "differs from the others" } else { "" }.to_owned(),
    ]
}

/// The first broken promises of a candidate.
fn broken_page(page: &mut Page, candidate: &JudgedCandidate) {
    let all = || {
        let broken = |promise: &&JudgedPromise| promise.status != PromiseStatus::Kept;
        candidate.promises.iter().filter(broken)
    };
    let count = all().count();
    for promise in all().take(SHOWN) {
        let judged = match (promise.status, promise.score, promise.stability) {
            (PromiseStatus::Unreadable, ..) => "cannot be read".to_owned(),
            (_, Some(score), Some(stability)) => {
                format!("broken with a score of {score:.3}, stability {stability:.3}")
            }
            _ => "broken".to_owned(),
        };
        page.title(&format!("{}, {}: {judged}", candidate.name, promise.name));
        let mut pairs: Vec<(&str, String)> = Vec::new();
        if let Some(reason) = &promise.reason {
            pairs.push(("reason", reason.clone()));
        }
        if let Some(sentence) = &promise.sentence {
            pairs.push(("promised", sentence.clone()));
        }
        if let Some(repairs) = &promise.repairs {
            pairs.push(("if done", repair(&repairs.from_promised)));
            if let Some(from_factual) = &repairs.from_factual {
                pairs.push(("if not", repair(from_factual)));
            }
        }
        page.pairs(&pairs);
    }
    if count > SHOWN {
        page.line("");
        page.line(&format!("  {} more of {}", count - SHOWN, candidate.name));
    }
}

fn repair(repair: &Repair) -> String {
    match repair {
        Repair::NotFound { reason: Reason::AlreadyFavourable, .. } => {
            "Nothing: the model accepts the original row.".to_owned()
        }
        Repair::NotFound { sentence, .. } => format!("No repair: {sentence}."),
        Repair::Found { sentence, cost, promise, .. } => {
            let cost =
                cost.map(|cost| format!(" Cost {:.3} in L1, {:.3} in L2.", cost.l1, cost.l2));
            let promise = promise.as_ref().map(|promise| format!(" {}", promise.sentence));
            format!("{sentence}{}{}", cost.unwrap_or_default(), promise.unwrap_or_default())
        }
    }
}

impl Report for AuditReport<'_> {
    const COMMAND: &'static str = "audit";

    fn page(&self, page: &mut Page) {
        page.title(&format!("{} of {}", counted(self.promises.len(), "open promise"), self.source));
        if !self.promises.is_empty() {
            let mut sentences: Vec<(&str, String)> = Vec::new();
            for candidate in self.candidates {
                let sentence = &candidate.search.sentence;
                if sentences.iter().all(|(_, other)| other != sentence) {
                    sentences.push(("repairs", sentence.clone()));
                }
                if let Some(other) = &candidate.same_as {
                    sentences
                        .push(("note", format!("{} is the same model as {other}", candidate.name)));
                }
                if !candidate.ignored.is_empty() {
                    let ignored = candidate.ignored.join(", ");
                    sentences.push(("note", format!("{} does not take {ignored}", candidate.name)));
                }
            }
            page.pairs(&sentences);
            self.ranking(page);
            self.stated(page);
            if let Some(updates) = self.updates.filter(|all| all.updates.len() > 1) {
                updates_page(page, updates);
            }
            for candidate in self.candidates {
                self.groups(page, candidate);
            }
            if let Some((best, others)) = self.candidates.split_first() {
                broken_page(page, best);
                if others.iter().any(|other| other.tally.broken > 0) {
                    page.line("");
                    page.line("  --json and --out list the broken promises of all candidates.");
                }
            }
        }
        if !self.out.is_empty() {
            page.title(&format!("Wrote {}", self.out.join(" and ")));
        }
        let word = if self.verdict.passes { "Yes" } else { "No" };
        page.title(&format!("{word}: {}", self.verdict.sentence));
    }
}
