//! `tyrex train`

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};
use tyrex::data::Dataset;
use tyrex::explain::{Explainer, Performance, Training};
use tyrex::file::{check_writable, write_whole};
use tyrex::model::TrainParams;
use tyrex::model::train::ClassWeights;
use tyrex::{Error, Result, Seed};

use super::summary::{DataSummary, ModelSummary, counted, performance_table, shown};
use super::{Context, source};
use crate::args::{Patience, SourceArgs, TrainArgs, TrainingArgs, Weights};
use crate::help::Usage;
use crate::interrupt;
use crate::printer::{Page, Report};
use crate::progress::Unit;

pub(crate) fn run(context: &mut Context<'_>, args: &TrainArgs) -> anyhow::Result<()> {
    let title = source::title(&args.source)?;
    let usual = args.source.protocol.training();
    let params = usual.with(&changes(&args.training, &usual)?)?;
    let overwrite = args.force.overwrite();
    // Checked before the training, so that the error does not come minutes later.
    let SourceArgs { data, schema, .. } = &args.source;
    let inputs = [data.as_ref(), schema.as_ref(), args.training.params.as_ref()];
    source::keep_inputs(&args.out, &inputs)?;
    check_ending(&args.out)?;
    check_writable(&args.out, overwrite)?;
    let dataset = source::dataset(context, &args.source)?;
    let (explainer, time) = with_progress(context, dataset, &params, Seed(args.seed))?;
    let model = explainer.to_onnx()?;
    interrupt::whole(|| write_whole(&args.out, overwrite, |out| out.write_all(&model)))?;
    context.printer.show(&TrainReport {
        data: DataSummary::of(title, explainer.reference()),
        model: ModelSummary::of_explainer(&explainer),
        training: explainer.training(),
        performances: explainer.performances(),
        out: shown(&args.out),
        time,
    })
}

/// Checks that the name is that of a model file.
fn check_ending(out: &Path) -> Result<(), Usage> {
    if out.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx")) {
        return Ok(());
    }
    Err(Usage {
        problem: format!("--out {}: expected a file name that ends in .onnx", out.display()),
        help: "the model is written as an ONNX file, such as `--out model.onnx`".to_owned(),
    })
}

/// Trains, with a progress bar for long work; also returns the time.
pub(super) fn with_progress(
    context: &Context<'_>,
    dataset: Dataset,
    params: &TrainParams,
    seed: Seed,
) -> Result<(Explainer, Duration)> {
    let progress = context.progress("training", Unit::Epochs);
    let explainer = Explainer::train(dataset, params, seed, |report| {
        let done = report.epoch as u64 + 1;
        progress.at(done, params.epochs as u64, format!("(loss {:.4})", report.loss));
        ControlFlow::Continue(())
    });
    let time = progress.finish();
    Ok((explainer?, time))
}

/// The parameters of the flags, by their names in files. Those of the file, if there is one, come
/// first; parameters that it does not name are the usual ones.
pub(super) fn changes(
    args: &TrainingArgs,
    usual: &TrainParams,
) -> anyhow::Result<Map<String, Value>> {
    let mut changes = match &args.params {
        Some(path) => match serde_json::to_value(usual.with_file(path)?)? {
            Value::Object(all) => all,
            _ => Map::new(),
        },
        None => Map::new(),
    };
    let mut add = |name: &str, value: Option<Value>| {
        changes.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("hidden", args.hidden.as_ref().map(|widths| widths.0.clone().into()));
    add("activation", args.activation.map(serde_json::to_value).transpose()?);
    add("epochs", args.epochs.map(Value::from));
    add("batch", args.batch.map(Value::from));
    for (name, number) in
        [("learning-rate", args.learning_rate), ("l2", args.l2), ("dropout", args.dropout)]
    {
        // JSON has no such numbers.
        if let Some(number) = number.filter(|number| !number.is_finite()) {
            return Err(Error::param(name, number, "a finite number").into());
        }
        add(name, number.map(Value::from));
    }
    let weights = args.class_weights.as_ref().map(class_weights);
    add("class-weights", weights.map(serde_json::to_value).transpose()?);
    if let Some(Patience(patience)) = args.early_stopping {
        let stopping = patience.map_or(Value::Null, |patience| {
            let own = changes.get("early-stopping").cloned().filter(Value::is_object);
            let mut stopping = own.unwrap_or_else(|| json!({}));
            stopping["patience"] = patience.get().into();
            stopping
        });
        changes.insert("early-stopping".to_owned(), stopping);
    }
    Ok(changes)
}

fn class_weights(weights: &Weights) -> ClassWeights {
    match weights {
        Weights::None => ClassWeights::None,
        Weights::Balanced => ClassWeights::Balanced,
        Weights::Given(weights) => ClassWeights::Given(weights.clone()),
    }
}

/// The report of `train`.
#[derive(Debug, Serialize)]
struct TrainReport<'a> {
    data: DataSummary,
    model: ModelSummary,
    training: Option<&'a Training>,
    performances: Vec<Performance>,
    out: String,
    // The same seed gives the same document, so the time is for people only.
    #[serde(skip)]
    time: Duration,
}

impl Report for TrainReport<'_> {
    const COMMAND: &'static str = "train";

    fn page(&self, page: &mut Page) {
        page.title(&self.data.title);
        let mut pairs = [self.data.pairs(), self.model.pairs()].concat();
        if let Some(training) = self.training {
            let (epochs, seconds) = (training.history.len(), self.time.as_secs_f64());
            let (seed, passes) = (training.seed.0, counted(epochs, "epoch"));
            let kept = match training.kept_epoch + 1 {
                last if last == epochs => String::new(),
                earlier => format!("; kept epoch {earlier}"),
            };
            pairs.push(("trained", format!("{passes} in {seconds:.1} s, seed {seed}{kept}")));
        }
        page.pairs(&pairs);
        page.title("Accuracy");
        performance_table(page, &self.performances);
        page.title(&format!("Wrote {}", self.out));
    }
}
