//! `tyrex retrain`

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tyrex::change::{Ensemble, MANIFEST, MOST_MEMBERS, ModelChange, ObservedChange};
use tyrex::explain::{Part, RetrainingTerms};
use tyrex::model::TrainParams;
use tyrex::model::train::EpochReport;
use tyrex::{Error, Overwrite, Result, Seed};

use super::source::Subject;
use super::summary::{DataSummary, FavourableClass, ModelSummary, counted, name_of, shown};
use super::{Context, source};
use crate::args::{ChangeArgs, RetrainArgs};
use crate::interrupt;
use crate::printer::{Page, Report, Stand};
use crate::progress::{Progress, Unit};

pub(crate) fn run(context: &mut Context<'_>, args: &RetrainArgs) -> anyhow::Result<()> {
    let title = source::title(&args.source)?;
    let change = change(&args.change)?;
    let overwrite = args.force.overwrite();
    // Checked before the training, so that the error does not come minutes later.
    check_folder(&args.out, overwrite)?;
    if !(1..=MOST_MEMBERS).contains(&args.models) {
        let most = format!("at most {MOST_MEMBERS}");
        let expected = if args.models == 0 { "at least 1" } else { &most };
        return Err(Error::param("models", args.models, expected).into());
    }
    let (training, seed) = (Some(&args.training), Seed(args.seed));
    // A model is retrained on the rows it was trained on.
    let reference = args.model.model.as_ref().and(args.source.data.as_deref());
    let subject = source::subject(context, &args.source, &args.model, reference, training, seed)?;
    let params = subject.explainer.retraining().params()?;
    let terms = RetrainingTerms { change, models: args.models, params, seed };
    let progress = EpochProgress::new(context, &terms);
    // An interrupt waits for files that are being written; the next run continues from the finished
    // ones.
    let ensemble = interrupt::whole(|| {
        let watch = |_: usize, _: &EpochReport| progress.epoch();
        subject.explainer.retraining().train_into(&args.out, &terms, overwrite, watch)
    });
    let time = progress.finish();
    context.printer.show(&RetrainReport::of(
        title,
        subject,
        &terms,
        &ensemble?,
        shown(&args.out),
        time,
    )?)
}

/// The change of the flags.
pub(super) fn change(args: &ChangeArgs) -> Result<ModelChange> {
    let params = args.change_params.as_deref().unwrap_or_default();
    ModelChange::with_params(&args.change.join(","), params)
}

/// A bar that counts the epochs of all models.
struct EpochProgress {
    progress: Progress,
    done: AtomicU64,
    total: u64,
}

impl EpochProgress {
    fn new(context: &Context<'_>, terms: &RetrainingTerms) -> Self {
        let progress = context.progress("training again", Unit::Epochs);
        Self { progress, done: AtomicU64::new(0), total: terms.epochs() }
    }

    /// Counts one more epoch.
    fn epoch(&self) -> ControlFlow<()> {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        // If the number of epochs is random, the total is its mean.
        self.progress.at(done, self.total.max(done), "(epochs)".to_owned());
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn finish(self) -> Duration {
        self.progress.finish()
    }
}

/// Checks that the folder can be written to.
fn check_folder(folder: &std::path::Path, overwrite: Overwrite) -> Result<()> {
    let manifest = folder.join(MANIFEST);
    if folder.exists() {
        return tyrex::file::check_writable(&manifest, overwrite);
    }
    match folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) if !parent.exists() => {
            Err(Error::io("write", folder)(std::io::Error::from(std::io::ErrorKind::NotFound)))
        }
        _ => Ok(()),
    }
}

/// The report of `retrain`.
#[derive(Debug, Serialize)]
struct RetrainReport {
    data: DataSummary,
    model: ModelSummary,
    favourable_class: Option<FavourableClass>,
    change: ModelChange,
    models: usize,
    seed: Seed,
    params: TrainParams,
    fingerprints: Vec<String>,
    moved: Vec<Moved>,
    out: String,
    // The same seed gives the same document, so times are for people only.
    #[serde(skip)]
    pairs: Vec<(&'static str, String)>,
    #[serde(skip)]
    time: Duration,
}

/// How far the models moved on some rows.
#[derive(Debug, Serialize)]
struct Moved {
    part: Part,
    rows: usize,
    mean_change: f64,
    mean_variance: f64,
    largest_variance: f64,
    lemma_bound: f64,
    lemma_holds: bool,
    bias: f64,
    flipped: f64,
}

impl Moved {
    fn of(part: Part, observed: &ObservedChange) -> Self {
        Self {
            part,
            rows: observed.points,
            mean_change: observed.mean_change,
            mean_variance: observed.mean_variance(),
            largest_variance: observed.largest_variance(),
            lemma_bound: observed.lemma_bound(),
            lemma_holds: observed.lemma_holds(),
            bias: observed.bias,
            flipped: observed.flipped,
        }
    }
}

impl RetrainReport {
    fn of(
        title: String,
        subject: Subject,
        terms: &RetrainingTerms,
        ensemble: &Ensemble,
        out: String,
        time: Duration,
    ) -> Result<Self> {
        let explainer = &subject.explainer;
        let data = DataSummary::of(title, explainer.reference());
        let pairs = subject.pairs(&data);
        let mut moved = Vec::new();
        // A variance needs two models.
        if ensemble.members().len() > 1 {
            for performance in explainer.performances() {
                let rows = explainer.reference().part(performance.part);
                let observed = ensemble.observed_change(&explainer.points().select(&rows))?;
                moved.push(Moved::of(performance.part, &observed));
            }
        }
        Ok(Self {
            model: ModelSummary::of_explainer(explainer),
            data,
            favourable_class: subject.class,
            change: terms.change.clone(),
            models: ensemble.members().len(),
            seed: terms.seed,
            params: terms.params.clone(),
            fingerprints: ensemble
                .members()
                .iter()
                .filter_map(|member| Some(member.identity()?.to_string()))
                .collect(),
            moved,
            out,
            pairs,
            time,
        })
    }
}

impl Report for RetrainReport {
    const COMMAND: &'static str = "retrain";

    fn page(&self, page: &mut Page) {
        page.title(&self.data.title);
        page.pairs(&self.pairs);
        page.title("Retrained models");
        let (seconds, seed) = (self.time.as_secs_f64(), self.seed.0);
        page.pairs(&[
            ("change", format!("{}: {}", self.change.name(), self.change.description())),
            ("models", format!("{} in {seconds:.1} s, seed {seed}", counted(self.models, "model"))),
        ]);
        if !self.moved.is_empty() {
            page.title("How far they moved");
            let rows: Vec<Vec<String>> = self
                .moved
                .iter()
                .map(|moved| {
                    vec![
                        name_of(&moved.part),
                        moved.rows.to_string(),
                        format!("{:.3}", moved.mean_change),
                        format!("{:.3}", moved.lemma_bound),
                        if moved.lemma_holds { "holds" } else { "fails" }.to_owned(),
                        format!("{:.3}", moved.bias),
                        format!("{:.1} %", 100.0 * moved.flipped),
                    ]
                })
                .collect();
            let right = |name| (name, Stand::Right);
            let header = [
                ("part", Stand::Left),
                right("rows"),
                right("mean change"),
                right("sqrt(nu)"),
                right("Lemma 1"),
                right("bias"),
                right("flipped"),
            ];
            page.table(&header, &rows);
        }
        page.title(&format!("Wrote {}", self.out));
    }
}
