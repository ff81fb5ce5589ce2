//! From the arguments to rows, schemas and model files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use tyrex::counterfactual::Protocol;
use tyrex::data::catalogue::Direction;
use tyrex::data::schema::Split;
use tyrex::data::{Catalogue, Dataset, Schema, Table};
use tyrex::explain::{Explainer, Reference, UnlabelledRows, import, import_embedded};
use tyrex::model::files::{Favourable, ImportOptions, ModelFile};
use tyrex::{Result, Seed};

use super::batches::Batches;
use super::summary::{DataSummary, FavourableClass, ModelSummary};
use super::{Context, ledger, train};
use crate::args::{ImportArgs, ModelArgs, SourceArgs, TrainingArgs};
use crate::help::Usage;

/// The title of the data, for people.
pub(super) fn title(source: &SourceArgs) -> Result<String> {
    Ok(match (&source.dataset, &source.data) {
        (Some(name), _) => Catalogue::entry(name)?.title.to_owned(),
        (None, Some(file)) => file.display().to_string(),
        (None, None) => String::new(),
    })
}

/// The data set to train on.
pub(super) fn dataset(context: &Context<'_>, source: &SourceArgs) -> anyhow::Result<Dataset> {
    if let Some(name) = &source.dataset {
        return Ok(named(context, name, source.protocol)?);
    }
    let (Some(data), Some(schema)) = (&source.data, &source.schema) else {
        return Err(no_schema(source).into());
    };
    Ok(Dataset::load(&Schema::read(schema)?, Table::read(data)?)?)
}

/// A model, its reference, and the rows to ask it about.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) explainer: Explainer,
    /// The file of the applicants; `None` if they are rows of the explainer's own data.
    applicants: Option<PathBuf>,
    /// The favourable class of a model file.
    pub(super) class: Option<FavourableClass>,
    /// How long the training took, if the model was trained here.
    pub(super) time: Option<Duration>,
}

/// The model of a file if there is one, else a network that is trained now.
///
/// The training flags apply to the network that is trained now, and to models that are retrained.
/// The rows of `--reference` are the reference. Without it, the rows that the split of the schema
/// names as training rows are; rows to explain never are.
pub(super) fn subject(
    context: &Context<'_>,
    source: &SourceArgs,
    model: &ModelArgs,
    reference: Option<&Path>,
    training: Option<&TrainingArgs>,
    seed: Seed,
) -> anyhow::Result<Subject> {
    let usual = source.protocol.training();
    let changes = training.map(|training| train::changes(training, &usual)).transpose()?;
    let changes = changes.unwrap_or_default();
    let Some(path) = &model.model else {
        // Rows that train are the reference, wherever they come from.
        let trained_on = match reference {
            Some(file) => {
                let schema = source.schema.as_deref().ok_or_else(|| no_schema(source))?;
                Dataset::load(&Schema::read(schema)?, Table::read(file)?)?
            }
            None => dataset(context, source)?,
        };
        let applicants = reference.and_then(|_| source.data.clone());
        let params = usual.with(&changes)?;
        let (explainer, time) = train::with_progress(context, trained_on, &params, seed)?;
        return Ok(Subject { explainer, applicants, class: None, time: Some(time) });
    };
    if let Some(name) = &source.dataset {
        let dataset = named(context, name, source.protocol)?;
        let model = import(path, dataset.schema(), &import_options(&model.import))?;
        return Subject::with_model(Reference::Labelled(dataset), None, model, &changes);
    }
    let (model, schema) = model_and_schema(path, source.schema.as_deref(), &model.import)?;
    let schema = schema.ok_or_else(|| no_schema(source))?;
    let Some(data) = &source.data else {
        return Err(no_schema(source).into());
    };
    let (rows, applicants) = match reference {
        Some(file) => (Reference::read(&schema, Table::read(file)?)?, Some(data)),
        None if matches!(schema.split, Split::AllTrain) => (Reference::none(&schema)?, Some(data)),
        None => (Reference::Unlabelled(UnlabelledRows::read(&schema, Table::read(data)?)?), None),
    };
    Subject::with_model(rows, applicants.cloned(), model, &changes)
}

impl Subject {
    fn with_model(
        data: Reference,
        applicants: Option<PathBuf>,
        model: ModelFile,
        changes: &Map<String, Value>,
    ) -> anyhow::Result<Self> {
        let class = Some(FavourableClass::of(&model));
        let explainer = Explainer::with_model(data, model)?.retraining().with(changes)?;
        Ok(Self { explainer, applicants, class, time: None })
    }

    /// The applicants, some at a time.
    pub(super) fn batches(&self) -> anyhow::Result<Batches<'_>> {
        Batches::of(&self.explainer, self.applicants.as_deref())
    }

    /// The first lines of a report about it.
    pub(super) fn pairs(&self, data: &DataSummary) -> Vec<(&'static str, String)> {
        let class = self.class.as_ref().map(FavourableClass::pairs).unwrap_or_default();
        let model = ModelSummary::of_explainer(&self.explainer);
        let mut pairs = [data.pairs(), model.pairs(), class].concat();
        if let (Some(time), Some(training)) = (self.time, self.explainer.training()) {
            let (seconds, seed) = (time.as_secs_f64(), training.seed.0);
            pairs.push(("trained", format!("in {seconds:.1} s with seed {seed}")));
        }
        pairs
    }
}

fn named(context: &Context<'_>, name: &str, protocol: Protocol) -> Result<Dataset> {
    let catalogue = Catalogue::new(context.global.data_dir.as_deref());
    catalogue.load(name, protocol.variant(), Direction::Favourable)
}

/// A model with the schema of the file, or else with the one in the model.
pub(super) fn model_and_schema(
    model: &Path,
    schema: Option<&Path>,
    args: &ImportArgs,
) -> Result<(ModelFile, Option<Schema>)> {
    let options = import_options(args);
    let Some(file) = schema else { return import_embedded(model, &options) };
    let schema = Schema::read(file)?;
    Ok((import(model, &schema, &options)?, Some(schema)))
}

/// How to read a model file.
pub(super) fn import_options(args: &ImportArgs) -> ImportOptions {
    let by_number = args.model_class_number.map(Favourable::Class);
    let favourable = args.model_class.clone().map(Favourable::Label).or(by_number);
    ImportOptions { output: args.model_output.clone(), favourable, logits: args.model_logits }
}

/// Refuses an output that is one of the inputs, or in a folder that is one and would be read with
/// it later: `--force` is for old outputs.
pub(super) fn keep_inputs(out: &Path, inputs: &[Option<&PathBuf>]) -> Result<(), Usage> {
    if let Some(folder) = inputs.iter().flatten().find(|input| is_inside(out, input)) {
        return Err(Usage {
            problem: format!("--out {} is in the input folder {}", out.display(), folder.display()),
            help:
                "choose a name in another folder with --out: the files of an input folder belong \
                   together"
                    .to_owned(),
        });
    }
    match inputs.iter().flatten().find(|input| is_same_file(out, input)) {
        None => Ok(()),
        Some(input) => Err(Usage {
            problem: format!("--out {} is the input {}", out.display(), input.display()),
            help: "choose another name with --out; an input is not overwritten, not even with \
                   --force"
                .to_owned(),
        }),
    }
}

/// Whether a name, of a file that need not exist, is below a folder.
fn is_inside(out: &Path, folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let parent = match out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // The file itself may be a link into the folder.
    let places = [parent.canonicalize(), out.canonicalize()];
    folder.is_dir() && places.iter().flatten().any(|place| place.starts_with(&folder))
}

/// Whether two names are of one file: other spellings, symbolic links and hard links included. A
/// file that is not there yet, such as a new ledger, has its name and its folder.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        path.canonicalize().ok().or_else(|| {
            let folder = path.parent().filter(|folder| *folder != Path::new(""));
            let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
            Some(folder.join(path.file_name()?))
        })
    };
    let (Some(place), Some(other_place)) = (place(one), place(other)) else { return false };
    #[cfg(unix)]
    if let (Ok(one), Ok(other)) = (one.metadata(), other.metadata()) {
        use std::os::unix::fs::MetadataExt as _;
        // A device, such as /dev/null, is not replaced.
        return one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino());
    }
    place == other_place
}

/// The file of a SQLite ledger, by the address that was typed or the variable that names it.
pub(super) fn ledger_file(typed: Option<&str>) -> Option<PathBuf> {
    let address = ledger::address(typed)?;
    Some(PathBuf::from(address.strip_prefix("sqlite://").unwrap_or(&address)))
}

/// The file that the split of a schema names. A schema that cannot be read is reported later.
pub(super) fn split_file(schema: Option<&Path>) -> Option<PathBuf> {
    let schema = Schema::read(schema?).ok()?;
    match &schema.split {
        Split::File { file } => Some(schema.folder.join(file)),
        _ => None,
    }
}

fn no_schema(source: &SourceArgs) -> Usage {
    let file = source.data.as_deref().unwrap_or(Path::new("FILE")).display();
    Usage {
        problem: format!("there is no schema for the columns of {file}"),
        help: format!(
            "pass --schema FILE; `tyrex schema infer {file} --label COLUMN` draws up a first one"
        ),
    }
}
