//! `tyrex explain`

use serde::Serialize;
use tyrex::certificate::{PortfolioStatement, at_least};
use tyrex::counterfactual::{Budget, MethodSpec, Protocol};
use tyrex::data::{Table, TableWriter};
use tyrex::explain::{
    Advice, AdviceFile, Advised, Adviser, AnswerDocument, Answered, Answering, Applicant, Ask,
    CALIBRATED_ROWS, Counter, Explained, Part, Performance, PortfolioDocument, PortfolioTerms,
    Request, Stage, check_advice_names,
};
use tyrex::{Error, Result, Seed};

use super::batches::Batches;
use super::record::{self, RecordReport, Recording};
use super::summary::{
    DataSummary, FavourableClass, ModelSummary, counted, performance_table, shown,
};
use super::{Answer, Context, retrain, source};
use crate::args::{ExplainArgs, SearchArgs, SourceArgs};
use crate::help::Usage;
use crate::interrupt;
use crate::printer::{Page, Report, Stand};
use crate::progress::Stages;

/// Applicants that fit a screen.
const SHOWN: usize = 5;

pub(crate) fn run(context: &mut Context<'_>, args: &ExplainArgs) -> anyhow::Result<Answer> {
    let title = source::title(&args.source)?;
    let overwrite = args.force.overwrite();
    // Refuse now what would be refused after minutes of work.
    if let Some(out) = &args.out {
        let SourceArgs { data, schema, .. } = &args.source;
        let ledger = args.record.ledger.as_deref().and_then(|own| source::ledger_file(Some(own)));
        let split = source::split_file(schema.as_deref());
        let models = [&args.model.model, &args.ensemble];
        let inputs =
            [data, schema, models[0], models[1], &args.reference.reference, &ledger, &split];
        source::keep_inputs(out, &inputs.map(Option::as_ref))?;
        Table::check_writable(out, overwrite)?;
    }
    let mut ask = ask(&args.search, args.source.protocol)?;
    ask.promise = args.promise;
    ask.confidence = args.confidence.unwrap_or(ask.confidence);
    ask.models = args.models;
    ask.request()?;
    ask.change = retrain::change(&args.change)?;
    let (training, seed) = (Some(&args.training), Seed(ask.seed));
    let reference = args.reference.reference.as_deref();
    let subject = source::subject(context, &args.source, &args.model, reference, training, seed)?;
    let explainer = &subject.explainer;
    // Rows and model are sound, so a ledger may be made; the search has not begun.
    let mut batches = subject.batches()?;
    let recording = record::open(&args.record, &args.source)?;
    let terms = PortfolioTerms { by: args.by.clone(), amount: args.amount.clone() };
    if recording.is_some() || terms.needs_table() {
        // Every promise needs a subject, a group and an amount, so all rows are read first.
        batches.whole()?;
        terms.check(batches.table(), batches.rejected_ahead())?;
    }
    if let Some(recording) = &recording {
        recording.check(&batches)?;
    }
    if args.out.is_some() && ask.protocol == Protocol::Product {
        check_advice_names(explainer.schema())?;
    }
    let options = source::import_options(&args.model.import);
    let read = |folder| explainer.retraining().read(folder, &options);
    let given = args.ensemble.as_deref().map(read).transpose()?;
    if terms.needs_table() && ask.for_model(explainer, given.as_ref()).promise.is_none() {
        return Err(Usage {
            problem: "--by and --amount are about promises, and this search makes none".to_owned(),
            help: "pass --promise P, or leave them out".to_owned(),
        }
        .into());
    }
    let bars = context.stages();
    let first =
        if ask.is_calibrated() { batches.first_rejected(CALIBRATED_ROWS)? } else { Vec::new() };
    let mut answering = explainer.answering(&first, &ask, given.as_ref(), &|at| bars.at(at))?;
    let everyone = args.out.is_some() || recording.is_some();
    let most = args.limit.unwrap_or(if everyone { usize::MAX } else { SHOWN });
    let kept = if recording.is_some() { most } else { args.limit.unwrap_or(SHOWN) };
    let certified = match &args.out {
        None => search(&mut answering, &mut batches, most, kept, &bars, |_, _| Ok(()))?,
        // An interrupt waits until the temporary file is gone.
        Some(path) => {
            // The lines of the file say what the fresh models show.
            let promises = answering.adviser().request().promise.is_some();
            let fresh = if promises { answering.fresh(&|at| bars.at(at))? } else { None };
            let adviser = answering.adviser();
            let columns = AdviceFile::new(adviser.explainer(), adviser.request()).columns()?;
            interrupt::whole(|| -> anyhow::Result<Vec<Advice>> {
                let mut out =
                    TableWriter::create_with(path, overwrite, &columns, args.cells.cells())?;
                let write = |adviser: &Adviser, advice: &[Advice]| {
                    let fresh = fresh.as_deref();
                    let file = AdviceFile::new(adviser.explainer(), adviser.request());
                    out.write(&file.table(advice, fresh)?)
                };
                let certified = search(&mut answering, &mut batches, most, kept, &bars, write)?;
                out.finish()?;
                Ok(certified)
            })?
        }
    };
    let answered = answering.answered(certified, &|at| bars.at(at))?;
    drop(bars);
    let recorded = recording
        .map(|recording: Recording<'_>| {
            let Answered { adviser, advice, certificates, .. } = &answered;
            recording.record(batches.table(), adviser, advice, certificates)
        })
        .transpose()?;
    let go_on = |_| std::ops::ControlFlow::Continue(());
    let rows = answered.rows(args.limit.unwrap_or(SHOWN), go_on)?;
    let warnings = explainer.warnings(answered.adviser.request(), batches.tally());
    let report = ExplainReport {
        data: batches.summary(&title),
        model: ModelSummary::of_explainer(explainer),
        favourable_class: subject.class.clone(),
        seed,
        performances: batches.performances(),
        part: batches.part(),
        rejected_rows: batches.rejected(),
        answer: answered.document(rows, &terms, batches.table(), warnings)?,
        out: args.out.as_deref().map(shown),
        recorded,
        details: args.details,
        pairs: subject.pairs(&batches.summary(&title)),
    };
    let answer = if answered.found > 0 || answered.asked == 0 { Answer::Yes } else { Answer::No };
    context.printer.show(&report)?;
    Ok(answer)
}

/// The question that was typed. A flag that was left out is the library's default.
pub(super) fn ask(search: &SearchArgs, protocol: Protocol) -> anyhow::Result<Ask> {
    let usual = Ask::default();
    let ask = Ask {
        method: search.method.clone(),
        protocol,
        norm: search.norm.unwrap_or(usual.norm),
        tau: search.tau,
        k: search.k,
        sigma: search.sigma,
        plausible: search.plausible,
        path: search.path,
        params: search.score.map(|score| ("score".to_owned(), score.into())).into_iter().collect(),
        keep: search.keep.clone(),
        vary: search.vary.clone(),
        budget: Budget {
            steps: search.max_steps,
            evaluations: search.max_evaluations,
            seconds: search.max_seconds,
        },
        stability: !search.no_stability,
        prove: search.prove,
        seed: search.seed.unwrap_or(usual.seed),
        ..Ask::default()
    };
    let request = ask.request();
    if ask.tau.is_some() || ask.k.is_some() || ask.sigma.is_some() {
        let plain = Ask { tau: None, k: None, sigma: None, ..ask.clone() }.request()?;
        if plain.method.robustness().is_none() {
            return Err(Usage {
                problem: format!(
                    "{} has no test of stability for --tau, --k and --sigma",
                    plain.method.name()
                ),
                help: format!(
                    "leave them out, or choose {} with --method",
                    MethodSpec::listed(MethodSpec::is_robust)
                ),
            }
            .into());
        }
    }
    request?;
    Ok(ask)
}

/// Searches for the first `most` rejected applicants, batch by batch. Every answer goes to `take`;
/// the first `kept` are returned. A model that ranks the rows the wrong way round is refused before
/// the first answer if the first batch shows it, and before anything is kept otherwise.
fn search(
    answering: &mut Answering,
    batches: &mut Batches<'_>,
    most: usize,
    kept: usize,
    bars: &Stages,
    mut take: impl FnMut(&Adviser, &[Advice]) -> Result<()>,
) -> anyhow::Result<Vec<Advice>> {
    let (mut asked, mut first, mut is_first) = (0, Vec::new(), true);
    while let Some(batch) = batches.next()? {
        if is_first {
            batches.check_model()?;
            is_first = false;
        }
        let mut rejected: Vec<Applicant> =
            batch.into_iter().filter(Applicant::is_rejected).collect();
        rejected.truncate(most - asked);
        if rejected.is_empty() {
            // Those that follow are counted all the same.
            if bars.share(Stage::Searching, batches.share_read()).is_break() {
                return Err(Error::Cancelled("the search was interrupted".to_owned()).into());
            }
            continue;
        }
        let share = batches.share_read();
        let watch = |at: tyrex::explain::Progress| match share {
            Some(share) => bars.share(Stage::Searching, Some(share)),
            None => bars.at(at),
        };
        let counter = Counter::new(Stage::Searching, rejected.len() as u64, &watch);
        let mut advice = answering.advise(&rejected, |tick| counter.tick(tick))?;
        if interrupt::requested() {
            return Err(Error::Cancelled("the search was interrupted".to_owned()).into());
        }
        asked += advice.len();
        take(answering.adviser(), &advice)?;
        advice.truncate(kept - first.len().min(kept));
        first.append(&mut advice);
    }
    batches.check_model()?;
    Ok(first)
}

/// The report of `explain`.
#[derive(Debug, Serialize)]
struct ExplainReport<'a> {
    data: DataSummary,
    model: ModelSummary,
    favourable_class: Option<FavourableClass>,
    seed: Seed,
    performances: Vec<Performance>,
    part: Part,
    rejected_rows: usize,
    #[serde(flatten)]
    answer: AnswerDocument<Explained<'a>>,
    out: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<RecordReport>,
    /// Whether people see all details.
    #[serde(skip)]
    details: bool,
    // The same seed gives the same document, so times are for people only.
    #[serde(skip)]
    pairs: Vec<(&'static str, String)>,
}

/// One applicant, for people: the advice and its promise, and on request all that is known of them.
fn applicant_page(page: &mut Page, applicant: &Explained<'_>, details: bool, usual: bool) {
    let label = applicant.label.map(|label| format!(", labelled {label}")).unwrap_or_default();
    page.title(&format!(
        "Row {}: rejected with a score of {:.3}{label}",
        applicant.row, applicant.score
    ));
    let promise = ("promise", applicant.retraining.clone());
    let mut pairs = vec![("advice", applicant.sentence.clone())];
    let usual = applicant.plausibility.iter().filter(|_| usual || details);
    let usual = usual.map(|own| ("usual", own.clone()));
    match &applicant.advice {
        Advised::NotFound { rules, highest, .. } => {
            pairs.extend(usual);
            // The second line is what helps most.
            pairs.extend(highest.iter().map(|_| promise.clone()));
            pairs.extend(rules.iter().map(|rules| ("rules", rules.clone())));
            pairs.extend(applicant.unchanged.filter(|_| highest.is_none()).map(|_| promise));
            pairs.truncate(if details { pairs.len() } else { 2 });
        }
        Advised::Found { score, stability, cost, certificate, proof, path, .. } if details => {
            let stability = stability.map(|r| format!(", stability {r:.3}")).unwrap_or_default();
            let cost = cost
                .map(|cost| format!("; cost {:.3} in L1, {:.3} in L2", cost.l1, cost.l2))
                .unwrap_or_default();
            pairs.push(promise);
            pairs.extend(usual);
            pairs.extend(path.iter().map(|path| ("path", path.sentence.clone())));
            pairs.extend(proof.iter().map(|proof| ("proof", proof.sentence.clone())));
            pairs.push(("then", format!("a score of {score:.3}{stability}{cost}")));
            pairs.extend(certificate.iter().map(|own| ("sure", own.words.sentence.clone())));
        }
        Advised::Found { proof, path, .. } => {
            pairs.push(promise);
            pairs.extend(usual);
            pairs.extend(path.iter().map(|path| ("path", path.sentence.clone())));
            pairs.extend(proof.iter().map(|proof| ("proof", proof.sentence.clone())));
        }
    }
    page.pairs(&pairs);
}

/// The statements about groups and amounts, for people: a line for all promises and for each group.
fn portfolio_page(page: &mut Page, portfolio: &PortfolioDocument) {
    let PortfolioDocument { statements, .. } = portfolio;
    let Some(first) = statements.first().filter(|_| statements.len() > 1) else { return };
    let amount = statements.iter().find_map(|statement| statement.amount.as_deref());
    page.title(&format!(
        "With probability {}, for each line alone, the next model keeps at least",
        at_least(first.probability)
    ));
    let counted = statements.iter().filter(|statement| statement.amount.is_none());
    let rows: Vec<Vec<String>> = counted
        .map(|own| {
            let group = own.group.as_ref();
            let name = group.map_or("all".to_owned(), |of| format!("{} {}", of.column, of.name));
            let mut cells = vec![name, own.promises.to_string(), at_least(own.at_least)];
            if amount.is_some() {
                // A group whose amounts are all zero has no statement about them.
                let same = |other: &&PortfolioStatement| {
                    other.amount.is_some() && other.group == own.group
                };
                let weighted = statements.iter().find(same);
                cells.push(weighted.map_or("-".to_owned(), |other| at_least(other.at_least)));
            }
            cells
        })
        .collect();
    let of_amount = format!("of {}", amount.unwrap_or_default());
    let mut header =
        vec![("", Stand::Left), ("promises", Stand::Right), ("of the promises", Stand::Right)];
    header.extend(amount.map(|_| (of_amount.as_str(), Stand::Right)));
    page.table(&header, &rows);
}

impl ExplainReport<'_> {
    /// The search, in words.
    fn search(&self) -> String {
        let Request { method, norm, protocol, promise, plausible, .. } = &self.answer.request;
        let promise = promise.map(|own| format!(", a promise of {}", own.probability()));
        let test = method.robustness().map(|test| {
            format!(", stability at least {} (k {}, sigma {})", test.tau, test.samples, test.sigma)
        });
        let answers = match protocol {
            Protocol::Product => "",
            Protocol::Paper | Protocol::Reference => "; answers are points, not rows",
        };
        let required = promise.or(test).unwrap_or_default();
        let usual = plausible.map(|least| format!(", a p-value of at least {least}"));
        let usual = usual.unwrap_or_default();
        format!("{}, cost in {}{required}{usual}{answers}", method.name(), norm.name())
    }
}

impl Report for ExplainReport<'_> {
    const COMMAND: &'static str = "explain";
    // The answer has its own.
    const FORMAT_VERSION: Option<u32> = None;

    fn page(&self, page: &mut Page) {
        let answer = &self.answer;
        page.title(&self.data.title);
        page.pairs(&self.pairs);
        if answer.reference == 0 {
            let none = "none: searches start from the applicant alone; pass --reference FILE with \
                        the rows that the model was trained on";
            page.pairs(&[("reference", none.to_owned())]);
        }
        let warnings = answer.warnings.iter().map(|warning| ("warning", warning.clone()));
        page.pairs(&warnings.collect::<Vec<_>>());
        page.title("Accuracy");
        performance_table(page, &self.performances);
        page.title("Rejected applicants");
        let applicants = self.performances.iter().find(|p| p.part == self.part);
        let all = applicants.map_or(0, |performance| performance.rows);
        let which = if self.part == Part::Test { "test rows" } else { "rows" };
        let asked = match answer.asked {
            asked if asked == self.rejected_rows => "all".to_owned(),
            asked => format!("the first {asked}"),
        };
        let mut pairs = vec![
            ("rejected", format!("{} of {all} {which} score below 0.5", self.rejected_rows)),
            ("search", self.search()),
        ];
        pairs.extend(answer.without_promise.iter().map(|why| ("promise", format!("none: {why}"))));
        pairs.extend(answer.calibration.iter().map(|own| ("auto", own.sentence())));
        let mut found = format!("advice for {} of {asked}", counted(answer.found, "applicant"));
        if let (Some(portfolio), Some(promise)) = (&answer.portfolio, answer.request.promise) {
            found += &format!(
                "; the promise of {} is shown for {}",
                promise.probability(),
                portfolio.shown
            );
        }
        pairs.push(("found", found));
        pairs.extend(answer.portfolio.iter().map(|all| ("portfolio", all.sentence.clone())));
        page.pairs(&pairs);
        if let Some(portfolio) = &answer.portfolio {
            portfolio_page(page, portfolio);
        }
        for applicant in &answer.rows {
            applicant_page(page, applicant, self.details, answer.request.plausible.is_some());
        }
        if let Some(out) = &self.out {
            page.title(&format!("Wrote {out}"));
        }
        if let Some(recorded) = &self.recorded {
            recorded.page(page);
        }
    }
}
