//! `tyrex explain`

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use tyrex::action::Overrides;
use tyrex::calibrate::{Goal, Missing, TAUS, Test, usual_models};
use tyrex::certificate::{Certificate, Terms};
use tyrex::change::Ensemble;
use tyrex::counterfactual::{Budget, MethodSpec, Protocol, Tick};
use tyrex::data::schema::Action;
use tyrex::data::{Schema, Table};
use tyrex::explain::{
    Advice, Advised, Applicant, CalibrationTerms, Explained, Explainer, Fresh, Part, Performance,
    Request, RetrainingTerms, check_advice_names,
};
use tyrex::model::TrainParams;
use tyrex::{Points, Result, Seed};

use super::record::{self, RecordReport};
use super::summary::{
    DataSummary, FavourableClass, ModelSummary, counted, performance_table, shown, with_unit,
};
use super::{Answer, Context, calibrate, retrain, source};
use crate::args::{ExplainArgs, SearchArgs, SourceArgs, Threshold};
use crate::help::Usage;
use crate::interrupt;
use crate::printer::{Page, Report};
use crate::progress::Unit;

/// Applicants that fit a screen.
const SHOWN: usize = 5;
/// Models trained again for the certificates, unless said otherwise.
const MODELS: usize = 20;
/// What `--tau auto` promises: so much validity, with so much confidence.
const PROMISE: (f64, f64) = (0.95, 0.95);
/// The most rows it tries thresholds on.
const CALIBRATED_ON: usize = 100;
/// Rules let go one at a time for an applicant without advice.
const TRIES: usize = 24;

pub(crate) fn run(context: &mut Context<'_>, args: &ExplainArgs) -> anyhow::Result<Answer> {
    let title = source::title(&args.source)?;
    let overwrite = args.force.overwrite();
    // Minutes of work should not end in a refusal that could be had at once.
    if let Some(out) = &args.out {
        let SourceArgs { data, schema, .. } = &args.source;
        source::keep_inputs(out, &[data.as_ref(), schema.as_ref(), args.model.model.as_ref()])?;
        Table::check_writable(out, overwrite)?;
    }
    let mut request = request(&args.search, args.source.protocol)?;
    let seed = Seed(args.search.seed);
    let params = TrainParams::default();
    let subject = source::subject(context, &args.source, &args.model, &params, seed)?;
    let explainer = &subject.explainer;
    // Rows and model are sound, so a ledger may be made; the search has not begun.
    let recording = record::open(&args.record, &args.source)?;
    recording.as_ref().map(|recording| recording.check(explainer)).transpose()?;
    if args.out.is_some() && request.protocol == Protocol::Product {
        check_advice_names(explainer.schema())?;
    }
    let given =
        args.ensemble.as_deref().map(|folder| explainer.read_ensemble(folder)).transpose()?;
    let calibrated = args.search.tau == Some(Threshold::Auto);
    if calibrated {
        calibrate_tau(context, explainer, args, given.as_ref(), &mut request)?;
    }
    let part = explainer.data().applicants();
    let rejected = explainer.rejected(part);
    let all = args.out.is_some() || recording.is_some();
    let most = args.limit.unwrap_or(if all { usize::MAX } else { SHOWN });
    let asked = &rejected[..rejected.len().min(most)];
    let advice = search(context, explainer, asked, &request)?;
    if let Some(path) = &args.out {
        let table = explainer.advice_table(&advice, &request)?;
        interrupt::whole(|| table.write(path, overwrite))?;
    }
    let presented = &advice[..advice.len().min(args.limit.unwrap_or(SHOWN))];
    // What is recorded is recorded with its certificate.
    let certified = if recording.is_some() { &advice } else { presented };
    // A folder of models that also chose the threshold is not fresh any more.
    let steered = calibrated && given.is_some();
    let ensemble = match given {
        None if certified.iter().any(|advice| advice.found().is_some()) => {
            retrained(context, explainer, args)?
        }
        given => given,
    };
    let certificates = certificates(explainer, certified, ensemble.as_ref(), steered, seed)?;
    let recorded = recording
        .map(|recording| recording.record(explainer, &advice, &certificates, &request))
        .transpose()?;
    let found = advice.iter().filter(|advice| advice.found().is_some()).count();
    let pairs = subject.pairs(&title);
    context.printer.show(&ExplainReport {
        data: DataSummary::of(title, explainer.data()),
        model: ModelSummary::of(explainer.model()),
        favourable_class: subject.class,
        seed,
        performances: explainer.performances(),
        part,
        rejected_rows: rejected.len(),
        request: &request,
        asked: asked.len(),
        found,
        rejected: presented
            .iter()
            .zip(certificates)
            .map(|(advice, certificate)| explainer.explained(advice, certificate, &request, TRIES))
            .collect::<Result<_>>()?,
        schema: explainer.schema(),
        out: args.out.as_deref().map(shown),
        recorded,
        pairs,
    })?;
    Ok(if found > 0 || asked.is_empty() { Answer::Yes } else { Answer::No })
}

/// The request that was typed.
pub(super) fn request(search: &SearchArgs, protocol: Protocol) -> anyhow::Result<Request> {
    let SearchArgs { method, norm, tau, k, sigma, vary, keep, seed, .. } = search;
    let seed = Seed(*seed).derive("search");
    let mut request = Request::new(method, protocol, *norm, seed)?;
    if request.method.robustness().is_some() {
        let tau = tau.as_ref().and_then(|tau| match tau {
            Threshold::Given(tau) => Some(*tau),
            Threshold::Auto => None,
        });
        request.set_test(tau, *k, *sigma)?;
    } else if tau.is_some() || k.is_some() || sigma.is_some() {
        return Err(Usage {
            problem: format!("{method} has no test of stability for --tau, --k and --sigma"),
            help: format!(
                "leave them out, or choose {} with --method",
                MethodSpec::listed(MethodSpec::is_robust)
            ),
        }
        .into());
    }
    request.budget = Budget {
        steps: search.max_steps,
        evaluations: search.max_evaluations,
        seconds: search.max_seconds,
    };
    request.budget.check()?;
    let actions: BTreeMap<String, Action> =
        keep.iter().map(|feature| (feature.clone(), Action::Fixed)).collect();
    request.overrides = Overrides { vary: vary.clone(), actions };
    Ok(request)
}

/// Sets the threshold to the least that keeps the promise.
fn calibrate_tau(
    context: &Context<'_>,
    explainer: &Explainer,
    args: &ExplainArgs,
    given: Option<&Ensemble>,
    request: &mut Request,
) -> anyhow::Result<()> {
    let (validity, confidence) = PROMISE;
    let trained;
    let ensemble = if let Some(given) = given {
        given
    } else {
        let models = usual_models(validity, confidence)?;
        let change = retrain::change(&args.change)?;
        let params = explainer.training_params()?;
        let seed = Seed(args.search.seed).derive("calibration");
        let terms = RetrainingTerms { change, models, params, seed };
        trained = retrain::with_progress(context, explainer, &terms)?;
        &trained
    };
    let terms = CalibrationTerms {
        goal: Goal { validity, confidence, missing: Missing::LeftOut, test: Test::Betting },
        taus: TAUS.to_vec(),
        request: request.clone(),
        factuals: CALIBRATED_ON,
    };
    let calibration = calibrate::with_progress(context, explainer, &terms, ensemble)?;
    let Some(tau) = calibration.tau() else {
        return Err(Usage {
            problem: format!(
                "--tau auto: no threshold was shown to keep {} % of the advice valid",
                100.0 * validity
            ),
            help: "`tyrex calibrate` shows what every threshold keeps and costs; then pass --tau \
                   with a number"
                .to_owned(),
        }
        .into());
    };
    if let Some(robustness) = request.method.robustness_mut() {
        robustness.tau = tau;
    }
    Ok(())
}

/// Searches, with a bar if it takes long.
fn search(
    context: &Context<'_>,
    explainer: &Explainer,
    applicants: &[Applicant],
    request: &Request,
) -> Result<Vec<Advice>> {
    let progress = context.progress("searching", Unit::Rows);
    let done = AtomicU64::new(0);
    let advice = explainer.advise(applicants, request, |tick| {
        if tick == Tick::Answered {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress.at(done, applicants.len() as u64, String::new());
        }
        ControlFlow::Continue(())
    });
    progress.finish();
    advice
}

/// Models trained again for the certificates, if there are to be any.
fn retrained(
    context: &Context<'_>,
    explainer: &Explainer,
    args: &ExplainArgs,
) -> anyhow::Result<Option<Ensemble>> {
    let usual = if explainer.training().is_some() { MODELS } else { 0 };
    let models = args.models.unwrap_or(usual);
    if models == 0 {
        return Ok(None);
    }
    let change = retrain::change(&args.change)?;
    let params = explainer.training_params()?;
    let seed = Seed(args.search.seed).derive("certificates");
    let terms = RetrainingTerms { change, models, params, seed };
    retrain::with_progress(context, explainer, &terms).map(Some).map_err(Into::into)
}

/// A certificate for each of the advised points.
fn certificates(
    explainer: &Explainer,
    advice: &[Advice],
    ensemble: Option<&Ensemble>,
    steered: bool,
    seed: Seed,
) -> Result<Vec<Option<Certificate>>> {
    let mut points = Points::new(explainer.points().dim());
    advice.iter().filter_map(Advice::found).for_each(|found| points.push(&found.point));
    let fresh = ensemble.map(|ensemble| Fresh { ensemble, steered });
    let mut certificates = explainer
        .certify(&points, fresh, &Terms::default(), seed.derive("certificates"), || {
            ControlFlow::Continue(())
        })?
        .into_iter();
    Ok(advice.iter().map(|advice| advice.found().and_then(|_| certificates.next())).collect())
}

/// What `explain` has to say.
#[derive(Debug, Serialize)]
struct ExplainReport<'a> {
    data: DataSummary,
    model: ModelSummary,
    favourable_class: Option<FavourableClass>,
    seed: Seed,
    performances: Vec<Performance>,
    part: Part,
    rejected_rows: usize,
    request: &'a Request,
    asked: usize,
    found: usize,
    rejected: Vec<Explained<'a>>,
    out: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<RecordReport>,
    #[serde(skip)]
    schema: &'a Schema,
    // The same seed gives the same document, so times are for people only.
    #[serde(skip)]
    pairs: Vec<(&'static str, String)>,
}

/// What people are told about one applicant.
fn applicant_page(page: &mut Page, schema: &Schema, applicant: &Explained<'_>) {
    let label = applicant.label.map(|label| format!(", labelled {label}")).unwrap_or_default();
    page.title(&format!(
        "Row {}: rejected with a score of {:.3}{label}",
        applicant.row, applicant.score
    ));
    match &applicant.advice {
        Advised::NotFound { sentence, relaxations, .. } => {
            let mut pairs = vec![("advice", format!("none: {sentence}"))];
            if let Some(relaxations) = relaxations {
                pairs.push(("rules", relaxations.to_string()));
            }
            page.pairs(&pairs);
        }
        Advised::Found { changes, score, stability, cost, certificate, .. } => {
            let mut pairs: Vec<(&str, String)> = Vec::new();
            for change in *changes {
                let title = if pairs.is_empty() { "change" } else { "" };
                let value = |value| with_unit(schema, change.position, value);
                let (from, to) = (change.from.for_people(), value(&change.to));
                pairs.push((title, format!("{} from {from} to {to}", change.feature)));
            }
            let stability = stability.map(|r| format!(", stability {r:.3}")).unwrap_or_default();
            let cost = cost
                .map(|cost| format!("; cost {:.3} in L1, {:.3} in L2", cost.l1, cost.l2))
                .unwrap_or_default();
            pairs.push(("then", format!("a score of {score:.3}{stability}{cost}")));
            if let Some(certificate) = certificate {
                pairs.push(("sure", certificate.words.sentence.clone()));
            }
            page.pairs(&pairs);
        }
    }
}

impl ExplainReport<'_> {
    /// What was asked of the search, in words.
    fn search(&self) -> String {
        let Request { method, norm, protocol, .. } = self.request;
        let test = method.robustness().map(|test| {
            format!(", stability at least {} (k {}, sigma {})", test.tau, test.samples, test.sigma)
        });
        let answers = match protocol {
            Protocol::Product => "",
            Protocol::Paper | Protocol::Reference => "; answers are points, not rows",
        };
        format!("{}, cost in {}{}{answers}", method.name(), norm.name(), test.unwrap_or_default())
    }
}

impl Report for ExplainReport<'_> {
    const COMMAND: &'static str = "explain";

    fn page(&self, page: &mut Page) {
        page.title(&self.data.title);
        page.pairs(&self.pairs);
        page.title("Accuracy");
        performance_table(page, &self.performances);
        page.title("Rejected applicants");
        let applicants = self.performances.iter().find(|p| p.part == self.part);
        let all = applicants.map_or(0, |performance| performance.rows);
        let which = if self.part == Part::Test { "test rows" } else { "rows" };
        let asked = match self.asked {
            asked if asked == self.rejected_rows => "all".to_owned(),
            asked => format!("the first {asked}"),
        };
        page.pairs(&[
            ("rejected", format!("{} of {all} {which} score below 0.5", self.rejected_rows)),
            ("search", self.search()),
            ("found", format!("advice for {} of {asked}", counted(self.found, "applicant"))),
        ]);
        for applicant in &self.rejected {
            applicant_page(page, self.schema, applicant);
        }
        if let Some(out) = &self.out {
            page.title(&format!("Wrote {out}"));
        }
        if let Some(recorded) = &self.recorded {
            recorded.page(page);
        }
    }
}
