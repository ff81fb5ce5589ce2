//! `tyrex calibrate`

use serde::Serialize;
use tyrex::calibrate::{Calibration, CalibrationMissing, Goal, usual_models};
use tyrex::change::{ModelChange, Origin};
use tyrex::explain::{Ask, CalibrationTerms, Counter, RetrainingTerms, Stage};
use tyrex::{Result, Seed};

use super::summary::{DataSummary, FavourableClass, ModelSummary, counted};
use super::{Answer, Context, retrain, source};
use crate::args::CalibrateArgs;
use crate::printer::{Page, Report, Stand};

pub(crate) fn run(context: &mut Context<'_>, args: &CalibrateArgs) -> anyhow::Result<Answer> {
    let title = source::title(&args.source)?;
    let change = retrain::change(&args.change)?;
    let terms = terms(args)?;
    // Bad goals are rejected here, before any work.
    let usual = usual_models(terms.goal.validity, terms.goal.confidence)?;
    // The models of a folder are counted when it is read.
    terms.check(if args.ensemble.is_some() { usual } else { args.models.unwrap_or(usual) })?;
    let training = Some(&args.training);
    let seed = Seed(args.seed.unwrap_or_default());
    let reference = args.reference.reference.as_deref();
    let subject = source::subject(context, &args.source, &args.model, reference, training, seed)?;
    let explainer = &subject.explainer;
    let mut batches = subject.batches()?;
    let applicants = batches.first_rejected(terms.factuals)?;
    let bars = context.stages();
    let ensemble = if let Some(folder) = &args.ensemble {
        explainer.retraining().read(folder, &source::import_options(&args.model.import))?
    } else {
        let params = explainer.retraining().params()?;
        // With the minimum number in two halves, a single failure would be too many.
        let models = args.models.unwrap_or(usual);
        // Not the models that `retrain` makes from this seed: those may test the threshold chosen
        // here.
        let seed = seed.derive("calibration");
        let terms = RetrainingTerms { change, models, params, seed };
        let watch = |at| bars.at(at);
        let counter = Counter::new(Stage::Retraining, terms.epochs(), &watch);
        explainer.retraining().train(&terms, |_, _| counter.add(1))?
    };
    let watch = |at| bars.at(at);
    let searches = (applicants.len() * terms.taus.len()) as u64;
    let counter = Counter::new(Stage::Calibrating, searches, &watch);
    let calibration =
        explainer.calibrate(&applicants, &terms, &ensemble, |tick| counter.tick(tick))?;
    drop(bars);
    let answer = if calibration.tau().is_some() { Answer::Yes } else { Answer::No };
    let data = batches.summary(&title);
    let pairs = subject.pairs(&data);
    context.printer.show(&CalibrateReport {
        data,
        model: ModelSummary::of_explainer(explainer),
        favourable_class: subject.class,
        change: ensemble.origin().change().cloned(),
        given: match ensemble.origin() {
            origin @ Origin::Given(_) => Some(origin.description()),
            Origin::Trained { .. } => None,
        },
        terms,
        calibration,
        pairs,
    })?;
    Ok(answer)
}

/// The terms of the arguments. An omitted flag takes the library's default.
fn terms(args: &CalibrateArgs) -> Result<CalibrationTerms> {
    let usual = Ask::default();
    let ask = Ask {
        method: args.method.clone(),
        protocol: args.source.protocol,
        norm: args.norm.unwrap_or(usual.norm),
        k: args.k,
        sigma: args.sigma,
        seed: args.seed.unwrap_or(usual.seed),
        ..Ask::default()
    };
    let goal = Goal::default();
    let goal = Goal {
        validity: args.target.unwrap_or(goal.validity),
        confidence: args.confidence.unwrap_or(goal.confidence),
        missing: args.missing.unwrap_or(goal.missing),
        test: args.test.unwrap_or(goal.test),
    };
    let (taus, factuals) = (args.tau.clone(), args.limit);
    Ok(CalibrationTerms { goal, taus, request: ask.request()?, factuals })
}

/// The report of `calibrate`.
#[derive(Debug, Serialize)]
struct CalibrateReport {
    data: DataSummary,
    model: ModelSummary,
    favourable_class: Option<FavourableClass>,
    /// `null` for models that were retrained elsewhere.
    change: Option<ModelChange>,
    /// Where those come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    given: Option<String>,
    terms: CalibrationTerms,
    calibration: Calibration,
    // The same seed gives the same document, so times are for people only.
    #[serde(skip)]
    pairs: Vec<(&'static str, String)>,
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
            CalibrationMissing::Invalid => "of all counterfactuals asked for",
            CalibrationMissing::LeftOut => "of the counterfactuals found",
        };
        let norm = self.terms.request.norm.name();
        let retrained = self.change.as_ref().map(ModelChange::description);
        let retrained = retrained.or_else(|| self.given.clone()).unwrap_or_default();
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
            ("models", format!("{choosing} choose, {reporting} report; {retrained}")),
            ("answer", self.calibration.sentence()),
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
