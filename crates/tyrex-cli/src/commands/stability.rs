//! `tyrex stability`

use serde::Serialize;
use tyrex::Seed;
use tyrex::data::Table;
use tyrex::explain::{Counter, Part, RowStability, StabilityTerms, Stage};
use tyrex::measure::Gamma;

use super::summary::{DataSummary, FavourableClass, ModelSummary, shown};
use super::{Context, source};
use crate::args::{SourceArgs, StabilityArgs};
use crate::interrupt;
use crate::printer::{Page, Report, Stand};

/// Rows to show.
const SHOWN: usize = 10;

pub(crate) fn run(context: &mut Context<'_>, args: &StabilityArgs) -> anyhow::Result<()> {
    let title = source::title(&args.source)?;
    let overwrite = args.force.overwrite();
    // Checked before the work, so that the error does not come minutes later.
    if let Some(out) = &args.out {
        let SourceArgs { data, schema, .. } = &args.source;
        let split = source::split_file(schema.as_deref());
        let inputs = [data, schema, &args.model.model, &split];
        source::keep_inputs(out, &inputs.map(Option::as_ref))?;
        Table::check_writable(out, overwrite)?;
    }
    let seed = Seed(args.seed);
    let terms = StabilityTerms {
        samples: args.k,
        sigma: args.sigma,
        gamma: args.gamma,
        seed: seed.derive("stability"),
        ..StabilityTerms::default()
    };
    terms.check()?;
    let subject = source::subject(context, &args.source, &args.model, None, None, seed)?;
    let explainer = &subject.explainer;
    let mut batches = subject.batches()?;
    let applicants = batches.all()?;
    let bars = context.stages();
    let watch = |at| bars.at(at);
    let counter = Counter::new(Stage::Searching, applicants.len() as u64, &watch);
    // The neighbours are drawn first, which takes a while if there are many.
    let _ = counter.add(0);
    let gauge = explainer.stability(&terms)?;
    let rows = gauge.read(&applicants, || counter.add(1))?;
    drop(bars);
    if let Some(path) = &args.out {
        let written = &rows[..rows.len().min(args.limit.unwrap_or(usize::MAX))];
        let table = gauge.table(written)?;
        interrupt::whole(|| table.write_with(path, overwrite, args.cells.cells()))?;
    }
    let count = rows.len();
    let data = batches.summary(&title);
    let (pairs, part) = (subject.pairs(&data), batches.part());
    context.printer.show(&StabilityReport {
        data,
        model: ModelSummary::of_explainer(explainer),
        favourable_class: subject.class,
        terms,
        part,
        count,
        rows: rows.into_iter().take(args.limit.unwrap_or(SHOWN)).collect(),
        out: args.out.as_deref().map(shown),
        pairs,
    })
}

/// The report of `stability`.
#[derive(Debug, Serialize)]
struct StabilityReport {
    data: DataSummary,
    model: ModelSummary,
    favourable_class: Option<FavourableClass>,
    terms: StabilityTerms,
    part: Part,
    count: usize,
    rows: Vec<RowStability>,
    out: Option<String>,
    // The same seed gives the same document, so times are for people only.
    #[serde(skip)]
    pairs: Vec<(&'static str, String)>,
}

impl Report for StabilityReport {
    const COMMAND: &'static str = "stability";

    fn page(&self, page: &mut Page) {
        page.title(&self.data.title);
        page.pairs(&self.pairs);
        let which = if self.part == Part::Test { "test rows" } else { "rows" };
        let first = match self.rows.len() {
            all if all == self.count => String::new(),
            some => format!("; the first {some}"),
        };
        page.title("Stability");
        let StabilityTerms { samples, sigma, .. } = self.terms;
        let count = self.count;
        page.line(&format!("  {count} {which}, {samples} neighbours at sigma {sigma}{first}"));
        page.line("");
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| {
                let number = |value: f64| format!("{value:.3}");
                vec![
                    row.row.to_string(),
                    number(row.score.into()),
                    number(row.mean),
                    number(row.relaxed_stability),
                    number(row.stability),
                    number(row.gamma),
                ]
            })
            .collect();
        let header = ["row", "score", "mean", "R^", "R", "gamma"].map(|name| (name, Stand::Right));
        page.table(&header, &rows);
        page.line("");
        page.item("R^ = mean of m(x_i) - |m(x) - m(x_i)|; R = mean of m(x_i) - gamma |x - x_i|");
        page.item(match self.terms.gamma {
            Gamma::Sound => "gamma is the product of the layers' spectral norms: a proved bound",
            Gamma::SampledGradients => {
                "gamma is the largest gradient among the neighbours: an estimate, so R is not a bound"
            }
            Gamma::SampledSlopes | Gamma::Given(_) => {
                "gamma is the largest slope to a neighbour: an estimate, so R is not a bound"
            }
        });
        if let Some(out) = &self.out {
            page.title(&format!("Wrote {out}"));
        }
    }
}
