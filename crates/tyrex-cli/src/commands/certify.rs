//! `tyrex certify`

mod verify;

use std::path::Path;

use serde::Serialize;
use tyrex::certificate::{
    Certificate, CertificateDocument, SearchRecord, Terms, TheoremTerms, Tier, TierKind, Verdict,
};
use tyrex::data::Table;
use tyrex::explain::{AdviceRows, Ask, Explainer, Fresh, Reference};
use tyrex::model::TrainParams;

use super::summary::{FavourableClass, ModelSummary, counted, shown};
use super::{Answer, Context, retrain, source, train};
use crate::args::CertifyArgs;
use crate::help::Usage;
use crate::interrupt;
use crate::printer::{Page, Report, Stand};

/// Certificates to show.
const SHOWN: usize = 10;

pub(crate) fn run(context: &mut Context<'_>, args: &CertifyArgs) -> anyhow::Result<Answer> {
    match (&args.verify, &args.counterfactuals) {
        (Some(file), _) => verify::run(context, args, file),
        (None, Some(file)) => certify(context, args, file),
        // The parser requires one of them.
        (None, None) => Err(Usage {
            problem: "nothing to certify".to_owned(),
            help: "pass --counterfactuals FILE, or --verify FILE".to_owned(),
        }
        .into()),
    }
}

fn certify(
    context: &mut Context<'_>,
    args: &CertifyArgs,
    counterfactuals: &Path,
) -> anyhow::Result<Answer> {
    let overwrite = args.force.overwrite();
    // Checked before the work, so that the error does not come minutes later.
    if let Some(out) = &args.out {
        let split = source::split_file(args.schema.as_deref());
        let CertifyArgs { counterfactuals, schema, reference, model, ensemble, .. } = args;
        let inputs = [counterfactuals, schema, reference, ensemble, &split].map(Option::as_ref);
        source::keep_inputs(out, &[&inputs[..], &[Some(model)]].concat())?;
        Table::check_writable(out, overwrite)?;
    }
    terms(args).check()?;
    let (model, schema) =
        source::model_and_schema(&args.model, args.schema.as_deref(), &args.import)?;
    let schema = schema.ok_or_else(|| Usage {
        problem: format!("there is no schema for the columns of {}", counterfactuals.display()),
        help: "pass --schema FILE, the one the counterfactuals were found with".to_owned(),
    })?;
    let given = AdviceRows::read(&schema, &Table::read(counterfactuals)?)?;
    let class = FavourableClass::of(&model);
    let rows = match &args.reference {
        Some(path) => Reference::read(&schema, Table::read(path)?)?,
        None => Reference::none(&schema)?,
    };
    let changes = train::changes(&args.training, &TrainParams::default())?;
    let explainer = Explainer::with_model(rows, model)?.retraining().with(&changes)?;
    // The points of the search, so that its models can be told from others.
    let explainer = match &given.searched {
        Some(searched) => explainer.on_scale(searched.scale())?,
        None => explainer,
    };
    let searched = given.searched.as_ref();
    let steered = match (args.steered, args.unsteered) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let mut left_out = 0;
    let bars = context.stages();
    let fresh = match (&args.ensemble, args.models) {
        (Some(folder), _) => {
            let options = source::import_options(&args.import);
            let all = explainer.retraining().read(folder, &options)?;
            let (fresh, others) =
                explainer.retraining().unsearched(searched, all, steered, &|at| bars.at(at))?;
            left_out = others;
            Some(fresh)
        }
        (None, Some(models)) => {
            let change = retrain::change(&args.change)?;
            let ask = Ask { seed: args.seed, models: Some(models), change, ..Ask::default() };
            let fresh = explainer.fresh(&ask, None, &|at| bars.at(at))?;
            fresh.map(|fresh| fresh.beside(searched, explainer.scale(), steered))
        }
        (None, None) => None,
    };
    drop(bars);
    // As `explain` and the service derive it: the same seed gives the same certificate.
    let seed = Ask { seed: args.seed, ..Ask::default() }.certificate_seed();
    let points = explainer.encoder().encode_rows(given.data.rows())?;
    let total = points.len() as u64;
    let certificates = context.counted("certifying", total, |count| {
        explainer.certify(&points, fresh.as_ref(), &terms(args), seed, count)
    })?;
    if let Some(path) = &args.out {
        let count = certificates.len().min(args.limit.unwrap_or(usize::MAX));
        let (rows, written) = (&given.factuals[..count], &certificates[..count]);
        let table = explainer.certificate_table(rows, written, seed)?;
        interrupt::whole(|| table.write_with(path, overwrite, args.cells.cells()))?;
    }
    let required = args.require;
    let below = certificates.iter().filter(|certificate| certificate.verdict() < required).count();
    let own = explainer.fingerprint().to_string();
    let report = CertifyReport {
        counterfactuals: shown(counterfactuals),
        not_found: given.not_found,
        found_for: given.model.filter(|model| !model.is_empty() && *model != own),
        model: ModelSummary::of_explainer(&explainer),
        favourable_class: class,
        ensemble: fresh.as_ref().map(|Fresh { ensemble, steered, search, .. }| EnsembleSummary {
            change: ensemble.origin().description(),
            models: ensemble.members().len(),
            steered: *steered,
            search: *search,
            left_out,
        }),
        verdicts: Verdicts::of(&certificates),
        required,
        below,
        certificates: given
            .factuals
            .iter()
            .zip(&certificates)
            .take(args.limit.unwrap_or(usize::MAX))
            .map(|(&row, certificate)| Certified { row, certificate: certificate.clone().into() })
            .collect(),
        all: args.limit.is_none(),
        out: args.out.as_deref().map(shown),
    };
    context.printer.show(&report)?;
    Ok(if below == 0 { Answer::Yes } else { Answer::No })
}

fn terms(args: &CertifyArgs) -> Terms {
    Terms {
        probability: args.probability,
        confidence: args.confidence,
        theorem: Some(TheoremTerms {
            samples: args.k,
            sigma: args.sigma,
            ..TheoremTerms::default()
        }),
        delta: Some(args.delta),
        radius: args.radius,
        ..Terms::default()
    }
}

/// The report of `certify`.
#[derive(Debug, Serialize)]
struct CertifyReport {
    counterfactuals: String,
    not_found: usize,
    /// The model the counterfactuals were found for, if it is another one.
    found_for: Option<String>,
    model: ModelSummary,
    favourable_class: FavourableClass,
    ensemble: Option<EnsembleSummary>,
    verdicts: Verdicts,
    required: Verdict,
    below: usize,
    certificates: Vec<Certified>,
    #[serde(skip)]
    all: bool,
    out: Option<String>,
}

#[derive(Debug, Serialize)]
struct EnsembleSummary {
    change: String,
    models: usize,
    steered: bool,
    /// The known facts about the models that searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<SearchRecord>,
    /// Further models of the folder, which took part in the search.
    left_out: usize,
}

impl EnsembleSummary {
    /// The part of the models in the search, in words.
    fn part(&self) -> String {
        let known = match self.search {
            _ if self.steered => "used in the search".to_owned(),
            Some(SearchRecord::Others { models }) => {
                format!("none of them among the {models} that searched")
            }
            Some(SearchRecord::Among { models }) => format!("{models} of them searched"),
            Some(SearchRecord::NotRecorded) => {
                "the file does not record which models searched".to_owned()
            }
            Some(SearchRecord::Unknown) => "the file does not record which models searched, so \
                 nothing is certified; pass --unsteered if these did not"
                .to_owned(),
            None => return String::new(),
        };
        match self.left_out {
            0 => format!("; {known}"),
            some => format!("; {known}; {some} more took part in the search and are left out"),
        }
    }
}

/// The number of certificates per verdict.
#[derive(Debug, Serialize)]
struct Verdicts {
    certified: usize,
    empirical: usize,
    vacuous: usize,
}

impl Verdicts {
    fn of(certificates: &[Certificate]) -> Self {
        let count = |verdict| certificates.iter().filter(|c| c.verdict() == verdict).count();
        Self {
            certified: count(Verdict::Certified),
            empirical: count(Verdict::Empirical),
            vacuous: count(Verdict::Vacuous),
        }
    }
}

#[derive(Debug, Serialize)]
struct Certified {
    row: usize,
    certificate: CertificateDocument,
}

impl Certified {
    fn tiers(&self) -> &[Tier] {
        self.certificate.certificate.tiers()
    }

    /// A line of the table, with a brief text per tier.
    fn cells(&self, kinds: &[&TierKind]) -> Vec<String> {
        let certificate = &self.certificate.certificate;
        let brief = |kind: &&TierKind| {
            let tier = self.tiers().iter().find(|tier| tier.name() == kind.name);
            tier.map_or_else(|| "-".to_owned(), Tier::brief)
        };
        let head = [
            self.row.to_string(),
            format!("{:.3}", certificate.score()),
            certificate.verdict().to_string(),
        ];
        head.into_iter().chain(kinds.iter().map(brief)).collect()
    }
}

impl Report for CertifyReport {
    const COMMAND: &'static str = "certify";

    fn page(&self, page: &mut Page) {
        page.title(&self.counterfactuals);
        let count = self.verdicts.certified + self.verdicts.empirical + self.verdicts.vacuous;
        let missing = match self.not_found {
            0 => String::new(),
            some => format!("; {some} more not found"),
        };
        let mut pairs = vec![("rows", format!("{}{missing}", counted(count, "counterfactual")))];
        pairs.extend(self.model.pairs());
        pairs.extend(self.favourable_class.pairs());
        if let Some(other) = &self.found_for {
            pairs.push(("note", format!("found for another model, {other}")));
        }
        match &self.ensemble {
            Some(summary) => {
                let EnsembleSummary { change, models, .. } = summary;
                let text = format!("{}, {change}{}", counted(*models, "model"), summary.part());
                pairs.push(("ensemble", text));
            }
            None => pairs.push(("ensemble", "none".to_owned())),
        }
        page.pairs(&pairs);
        page.title("Certificates");
        let Verdicts { certified, empirical, vacuous } = self.verdicts;
        page.line(&format!("  {certified} certified, {empirical} empirical, {vacuous} vacuous"));
        page.line("");
        let shown = if self.all { SHOWN } else { usize::MAX };
        // Some tiers exist for some models only.
        let is_there = |kind: &&TierKind| {
            let mut tiers = self.certificates.iter().flat_map(Certified::tiers);
            tiers.any(|tier| tier.name() == kind.name)
        };
        let kinds: Vec<&TierKind> = Tier::KINDS.iter().filter(is_there).collect();
        let rows: Vec<Vec<String>> =
            self.certificates.iter().take(shown).map(|each| each.cells(&kinds)).collect();
        let right = |name| (name, Stand::Right);
        let left = |name| (name, Stand::Left);
        let mut header = vec![right("row"), right("score"), left("verdict")];
        header.extend(kinds.iter().map(|kind| left(kind.heading)));
        page.table(&header, &rows);
        if let Some(first) = self.certificates.first() {
            page.title(&format!("In words, row {}", first.row));
            page.item(&first.certificate.words.sentence);
        }
        if let Some(out) = &self.out {
            page.title(&format!("Wrote {out}"));
        }
        if self.below > 0 {
            let what = match self.required {
                Verdict::Certified => "are not certified",
                Verdict::Empirical | Verdict::Vacuous => "have no certificate",
            };
            page.title(&format!("No: {} of {count} {what}", self.below));
        }
    }
}
