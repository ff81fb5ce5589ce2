//! `tyrex train`

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tyrex::data::Dataset;
use tyrex::explain::{Explainer, Performance, Training};
use tyrex::model::TrainParams;
use tyrex::model::train::{ClassWeights, EarlyStopping};
use tyrex::{Result, Seed};

use super::summary::{DataSummary, ModelSummary, counted, performance_table, shown};
use super::{Context, source};
use crate::args::{SourceArgs, TrainArgs, TrainingArgs, Weights};
use crate::help::Usage;
use crate::interrupt;
use crate::printer::{Page, Report};
use crate::progress::Unit;

pub(crate) fn run(context: &mut Context<'_>, args: &TrainArgs) -> anyhow::Result<()> {
    let title = source::title(&args.source)?;
    let params = params(&args.training, TrainParams::default())?;
    let overwrite = args.force.overwrite();
    // Checked before the training, so that the error does not come minutes later.
    let SourceArgs { data, schema, .. } = &args.source;
    let inputs = [data.as_ref(), schema.as_ref(), args.training.params.as_ref()];
    source::keep_inputs(&args.out, &inputs)?;
    check_ending(&args.out)?;
    tyrex::file::check_writable(&args.out, overwrite)?;
    let dataset = source::dataset(context, &args.source)?;
    let (explainer, time) = with_progress(context, dataset, &params, Seed(args.seed))?;
    interrupt::whole(|| explainer.write_model(&args.out, overwrite))?;
    context.printer.show(&TrainReport {
        data: DataSummary::of(title, explainer.reference()),
        model: ModelSummary::of(explainer.model()),
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

/// The parameters of the file, or the defaults, overridden by the flags.
pub(super) fn params(args: &TrainingArgs, usual: TrainParams) -> Result<TrainParams> {
    let mut params = match &args.params {
        Some(path) => TrainParams::read(path)?,
        None => usual,
    };
    if let Some(widths) = &args.hidden {
        params.hidden.clone_from(&widths.0);
    }
    params.activation = args.activation.unwrap_or(params.activation);
    params.epochs = args.epochs.unwrap_or(params.epochs);
    params.batch = args.batch.unwrap_or(params.batch);
    params.learning_rate = args.learning_rate.unwrap_or(params.learning_rate);
    params.l2 = args.l2.unwrap_or(params.l2);
    params.dropout = args.dropout.unwrap_or(params.dropout);
    if let Some(weights) = &args.class_weights {
        params.class_weights = class_weights(weights);
    }
    if let Some(patience) = args.early_stopping {
        let own = params.early_stopping.unwrap_or_default();
        params.early_stopping = Some(EarlyStopping { patience: patience.get(), ..own });
    }
    Ok(params)
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
