//! `tyrex audit`

mod page;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tyrex::counterfactual::{Protocol, ReferenceUse, Tick};
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::data::schema::Split;
use tyrex::data::{Catalogue, CellFormat, Dataset, Table, TableLimits};
use tyrex::explain::{
    Ask, Explainer, Gate, GateCandidate, GateReport, Meaning, Reference, UnlabelledRows,
    WrittenPromise, import,
};
use tyrex::file::{check_writable, write_whole};
use tyrex::{Overwrite, report};
use tyrex_ledger::ledger::Entry;

use self::page::AuditReport;
use super::ledger::{close, typed_or_named};
use super::summary::shown;
use super::{Answer, Context, block_on, explain, source};
use crate::args::{AuditArgs, AuditCommand, AuditJoinArgs};
use crate::help::Usage;
use crate::interrupt;

/// The most promises of a file: each takes about 1.5 kilobytes, and a small Parquet file can hold
/// millions.
const MOST_PROMISES: usize = 500_000;

pub(crate) fn run(context: &mut Context<'_>, args: &AuditArgs) -> anyhow::Result<Answer> {
    if let Some(AuditCommand::Join(args)) = &args.command {
        return join(context, args);
    }
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
    let candidates: Vec<GateCandidate<'_>> = args
        .model
        .iter()
        .zip(&explainers)
        .map(|(model, explainer)| GateCandidate {
            name: shown(model),
            explainer,
            has_only_promises: rows.is_none() && args.reference.is_none(),
        })
        .collect();
    let repairs = 2 * (promises.len() * candidates.len()) as u64;
    let report = context.counted("auditing", repairs, |count| {
        gate.judge_part(args.part, &candidates, promises, |tick| match tick {
            Tick::Answered => count(),
            Tick::Reading => ControlFlow::Continue(()),
        })
    })?;
    shown_and_written(
        context,
        &report,
        promise_source(args),
        &args.out,
        overwrite,
        args.cells.cells(),
    )
}

/// Writes and shows a report.
fn shown_and_written(
    context: &mut Context<'_>,
    report: &GateReport,
    source: String,
    out: &[PathBuf],
    overwrite: Overwrite,
    cells: CellFormat,
) -> anyhow::Result<Answer> {
    for path in out {
        write(report, path, overwrite, cells)?;
    }
    let GateReport { verdict, allow, confidence, request, candidates, updates, promises, .. } =
        report;
    context.printer.show(&AuditReport {
        source,
        verdict,
        allow: *allow,
        confidence: *confidence,
        request,
        candidates,
        updates: updates.as_ref(),
        promises,
        part: report.part,
        out: out.iter().map(|path| shown(path)).collect(),
    })?;
    Ok(if report.passes() { Answer::Yes } else { Answer::No })
}

/// `tyrex audit join`
fn join(context: &mut Context<'_>, args: &AuditJoinArgs) -> anyhow::Result<Answer> {
    let overwrite = args.force.overwrite();
    let inputs: Vec<Option<&PathBuf>> = args.files.iter().map(Some).collect();
    check_files(&args.out, &inputs, overwrite)?;
    let read = |file: &PathBuf| GateReport::read(file);
    let reports = args.files.iter().map(read).collect::<tyrex::Result<Vec<_>>>()?;
    let source = format!("{} parts", reports.len());
    let report = GateReport::joined(reports)?;
    shown_and_written(context, &report, source, &args.out, overwrite, args.cells.cells())
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
    let mut promises = Vec::new();
    let take = |entry: Entry| promises.extend(entry.written());
    let read = block_on(ledger.each_open_promise(take))?;
    close(&ledger)?;
    read?;
    Ok(promises)
}

/// A candidate with rows: the given ones, or else those of the promises.
fn explainer(
    args: &AuditArgs,
    path: &Path,
    rows: Option<&Rows>,
    promises: &[WrittenPromise],
) -> anyhow::Result<Explainer> {
    let (model, own) = source::model_and_schema(path, args.schema.as_deref(), &args.import)?;
    let is_known = own.is_some();
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
    let model = if is_known {
        model
    } else {
        import(path, &schema, &source::import_options(&args.import))?
    };
    Explainer::with_model(data, model).map_err(|error| match error {
        tyrex::Error::InvalidModel(problem) => {
            tyrex::Error::Model { file: path.to_owned(), problem }.into()
        }
        other => anyhow::Error::new(other).context(format!("model {}", path.display())),
    })
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
    if let (Some(_), Some(other)) =
        (args.part, args.out.iter().find(|path| !matches!(Form::of(path), Form::Json)))
    {
        return Err(Usage {
            problem: format!(
                "--out {}: a part of an audit is not a complete report",
                other.display()
            ),
            help: "write the part to a .json file, and join the parts with `tyrex audit join`"
                .to_owned(),
        }
        .into());
    }
    check_files(&args.out, &inputs, overwrite)
}

/// Rejects outputs that are inputs or repeated, or that cannot be written.
fn check_files(
    out: &[PathBuf],
    inputs: &[Option<&PathBuf>],
    overwrite: Overwrite,
) -> anyhow::Result<()> {
    for (index, path) in out.iter().enumerate() {
        source::keep_inputs(path, inputs)?;
        if out[..index].contains(path) {
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

fn write(
    gate: &GateReport,
    path: &Path,
    overwrite: Overwrite,
    cells: CellFormat,
) -> anyhow::Result<()> {
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
