//! `tyrex calibrate`

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use tyrex::calibrate::{Calibration, Goal, Missing, Verdict, usual_models};
use tyrex::change::{Ensemble, ModelChange};
use tyrex::counterfactual::Tick;
use tyrex::explain::{CalibrationTerms, Explainer, Request, RetrainingTerms};
use tyrex::model::TrainParams;
use tyrex::{Result, Seed};

use super::summary::{DataSummary, FavourableClass, ModelSummary, counted};
use super::{Answer, Context, retrain, source};
use crate::args::CalibrateArgs;
use crate::printer::{Page, Report, Stand};
use crate::progress::Unit;

pub(crate) fn run(context: &mut Context<'_>, args: &CalibrateArgs) -> anyhow::Result<Answer> {
    let title = source::title(&args.source)?;
    let change = retrain::change(&args.change)?;
    let terms = terms(args)?;
    // Bad goals are refused here, before any work.
    let usual = usual_models(terms.goal.validity, terms.goal.confidence)?;
    let params = TrainParams::default();
    let seed = Seed(args.seed);
    let subject = source::subject(context, &args.source, &args.model, &params, seed)?;
    let explainer = &subject.explainer;
    let ensemble = if let Some(folder) = &args.ensemble {
        explainer.read_ensemble(folder)?
    } else {
        let params = explainer.training_params()?;
        // With the least number, in two halves, one failure would be too many.
        let models = args.models.unwrap_or(usual);
        // Not the models that `retrain` makes of this seed: those may judge what is chosen here.
        let seed = seed.derive("calibration");
        let terms = RetrainingTerms { change, models, params, seed };
        retrain::with_progress(context, explainer, &terms)?
    };
    let calibration = with_progress(context, explainer, &terms, &ensemble)?;
    let answer = if calibration.tau().is_some() { Answer::Yes } else { Answer::No };
    let pairs = subject.pairs(&title);
    context.printer.show(&CalibrateReport {
        data: DataSummary::of(title, explainer.data()),
        model: ModelSummary::of(explainer.model()),
        favourable_class: subject.class,
        change: ensemble.change().clone(),
        terms,
        calibration,
        pairs,
    })?;
    Ok(answer)
}

fn terms(args: &CalibrateArgs) -> Result<CalibrationTerms> {
    let seed = Seed(args.seed).derive("search");
    let mut request = Request::new(&args.method, args.source.protocol, args.norm, seed)?;
    if let Some(robustness) = request.method.robustness_mut() {
        robustness.samples = args.k.unwrap_or(robustness.samples);
        robustness.sigma = args.sigma.unwrap_or(robustness.sigma);
    }
    let goal = Goal {
        validity: args.target,
        confidence: args.confidence,
        missing: args.missing,
        test: args.test,
    };
    Ok(CalibrationTerms { goal, taus: args.tau.clone(), request, factuals: args.limit })
}

/// Tries all thresholds, with a bar if it takes long.
pub(super) fn with_progress(
    context: &Context<'_>,
    explainer: &Explainer,
    terms: &CalibrationTerms,
    ensemble: &Ensemble,
) -> Result<Calibration> {
    let progress = context.progress("searching", Unit::Rows);
    let done = AtomicU64::new(0);
    let rejected = explainer.rejected(explainer.data().applicants()).len().min(terms.factuals);
    let total = (rejected * terms.taus.len()) as u64;
    let calibration = explainer.calibrate(terms, ensemble, |tick| {
        if tick == Tick::Answered {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress.at(done, total, String::new());
        }
        ControlFlow::Continue(())
    });
    progress.finish();
    calibration
}

/// What `calibrate` has to say.
#[derive(Debug, Serialize)]
struct CalibrateReport {
    data: DataSummary,
    model: ModelSummary,
    favourable_class: Option<FavourableClass>,
    change: ModelChange,
    terms: CalibrationTerms,
    calibration: Calibration,
    // The same seed gives the same document, so times are for people only.
    #[serde(skip)]
    pairs: Vec<(&'static str, String)>,
}

impl CalibrateReport {
    /// The answer in a sentence.
    fn answer(&self) -> String {
        let Calibration { choosing, reporting, .. } = self.calibration;
        match self.calibration.verdict {
            Verdict::Chosen { tau, validity } => format!(
                "tau {tau}: {:.1} % valid under the {} that did not choose it (between {:.1} % \
                 and {:.1} %)",
                100.0 * validity.mean,
                counted(reporting, "model"),
                100.0 * validity.low,
                100.0 * validity.high,
            ),
            Verdict::TooFewModels { models, needed } => format!(
                "no: it cannot be shown with {}; it takes at least {needed}",
                counted(models, "model")
            ),
            Verdict::TooFewFound { coverage } => format!(
                "no: at best {:.1} % have a counterfactual, whatever the threshold",
                100.0 * coverage
            ),
            Verdict::NotShown { tau, p_value } => format!(
                "no: {} do not show it, not even for tau {tau} (p-value {p_value:.3})",
                counted(choosing, "model")
            ),
        }
    }
}

impl Report for CalibrateReport {
    const COMMAND: &'static str = "calibrate";

    fn page(&self, page: &mut Page) {
        page.title(&self.data.title);
        page.pairs(&self.pairs);
        page.title("Calibration");
        let Calibration { goal, factuals, choosing, reporting, curve, .. } = &self.calibration;
        let (share, confidence) = (100.0 * goal.validity, 100.0 * goal.confidence);
        let whom = match goal.missing {
            Missing::Invalid => "of all counterfactuals asked for",
            Missing::LeftOut => "of the counterfactuals found",
        };
        let norm = self.terms.request.norm.name();
        page.pairs(&[
            (
                "promise",
                format!(
                    "{share} % {whom} hold under a retrained model, with confidence {confidence} %"
                ),
            ),
            (
                "search",
                format!(
                    "{}, {norm}, {}",
                    self.terms.request.method.name(),
                    counted(*factuals, "rejected row")
                ),
            ),
            (
                "models",
                format!("{choosing} choose, {reporting} report; {}", self.change.description()),
            ),
            ("answer", self.answer()),
        ]);
        page.title("Cost curve");
        let share = |value: Option<f64>| match value {
            Some(value) => format!("{:.1} %", 100.0 * value),
            None => "-".to_owned(),
        };
        let rows: Vec<Vec<String>> = curve
            .iter()
            .map(|point| {
                vec![
                    point.tau.to_string(),
                    share(Some(point.coverage)),
                    point.mean_cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.3}")),
                    share(point.validity_choosing),
                    share(point.validity_reporting),
                    format!("{:.3}", point.p_value),
                ]
            })
            .collect();
        let header = ["tau", "found", "cost", "valid, choosing", "valid, reporting", "p-value"]
            .map(|name| (name, Stand::Right));
        page.table(&header, &rows);
    }
}
