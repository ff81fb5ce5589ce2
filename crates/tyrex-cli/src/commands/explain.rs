//! `tyrex explain`

use std::time::Duration;

use serde::Serialize;
use tyrex::Seed;
use tyrex::data::Table;
use tyrex::explain::{Explainer, Part, Performance, Rejected, check_output_names};
use tyrex::model::TrainParams;

use super::summary::{
    DataSummary, FavourableClass, ModelSummary, Named, performance_table, shown, with_unit,
};
use super::{Context, source, train};
use crate::args::{ExplainArgs, SourceArgs};
use crate::interrupt;
use crate::printer::{Page, Report};

/// Rejected applicants that fit a screen.
const SHOWN: usize = 5;

pub(crate) fn run(context: &mut Context<'_>, args: &ExplainArgs) -> anyhow::Result<()> {
    let title = source::title(&args.source)?;
    let overwrite = args.force.overwrite();
    // Minutes of training should not end in a refusal that could be had at once.
    if let Some(out) = &args.out {
        let SourceArgs { data, schema, .. } = &args.source;
        source::keep_inputs(out, &[data.as_ref(), schema.as_ref(), args.model.as_ref()])?;
        Table::check_writable(out, overwrite)?;
    }
    let check_names = |schema| args.out.as_ref().map_or(Ok(()), |_| check_output_names(schema));
    let mut class = None;
    let (explainer, training_time) = if let Some(path) = &args.model {
        let (data, model) = source::data_and_model(context, &args.source, path, &args.import)?;
        check_names(data.schema())?;
        class = Some(FavourableClass::of(&model));
        (Explainer::with_model(data, model)?, None)
    } else {
        let dataset = source::dataset(context, &args.source)?;
        check_names(dataset.schema())?;
        let params = TrainParams::default();
        let (explainer, time) = train::with_progress(context, dataset, &params, Seed(args.seed))?;
        (explainer, Some(time))
    };
    let part = explainer.data().applicants();
    let rejected = explainer.rejected(part);
    if let Some(path) = &args.out {
        let written = &rejected[..rejected.len().min(args.limit.unwrap_or(usize::MAX))];
        let table = explainer.rejected_table(written)?;
        interrupt::whole(|| table.write(path, overwrite))?;
    }
    let limit = args.limit.unwrap_or(SHOWN);
    let report = ExplainReport {
        data: DataSummary::of(title, explainer.data()),
        model: ModelSummary::of(explainer.core()),
        favourable_class: class,
        seed: explainer.training().map(|training| training.seed),
        performances: explainer.performances(),
        part,
        rejected_rows: rejected.len(),
        rejected: rejected.iter().take(limit).map(|each| Applicant::of(&explainer, each)).collect(),
        out: args.out.as_deref().map(shown),
        training_time,
    };
    context.printer.show(&report)
}

/// What `explain` has to say.
#[derive(Debug, Serialize)]
struct ExplainReport<'a> {
    data: DataSummary,
    model: ModelSummary,
    favourable_class: Option<FavourableClass>,
    seed: Option<Seed>,
    performances: Vec<Performance>,
    part: Part,
    rejected_rows: usize,
    rejected: Vec<Applicant<'a>>,
    out: Option<String>,
    // The same seed gives the same document, so the time is for people only.
    #[serde(skip)]
    training_time: Option<Duration>,
}

/// A rejected applicant.
#[derive(Debug, Serialize)]
struct Applicant<'a> {
    row: usize,
    score: f32,
    label: Option<&'a str>,
    favourable: Option<bool>,
    features: Named<'a>,
}

impl<'a> Applicant<'a> {
    fn of(explainer: &'a Explainer, rejected: &Rejected<'a>) -> Self {
        Self {
            row: rejected.row,
            score: rejected.score,
            label: rejected.label,
            favourable: rejected.favourable,
            features: Named { schema: explainer.schema(), row: rejected.values },
        }
    }

    /// A cell for every name of [`names`](Self::names).
    fn cells(&self, labelled: bool) -> Vec<String> {
        let schema = self.features.schema;
        let values = self.features.row.values().iter().enumerate();
        let head = [self.row.to_string(), format!("{:.3}", self.score)];
        head.into_iter()
            .chain(labelled.then(|| self.label.unwrap_or("-").to_owned()))
            .chain(values.map(|(position, value)| with_unit(schema, position, value)))
            .collect()
    }

    fn names(&self, labelled: bool) -> Vec<String> {
        let features = self.features.schema.features.iter().map(|feature| feature.name.clone());
        let head = ["row", "score"].map(str::to_owned).into_iter();
        head.chain(labelled.then(|| "label".to_owned())).chain(features).collect()
    }
}

impl Report for ExplainReport<'_> {
    const COMMAND: &'static str = "explain";

    fn page(&self, page: &mut Page) {
        page.title(&self.data.title);
        let class = self.favourable_class.as_ref().map(FavourableClass::pairs).unwrap_or_default();
        let mut pairs = [self.data.pairs(), self.model.pairs(), class].concat();
        if let (Some(time), Some(seed)) = (self.training_time, self.seed) {
            pairs.push(("trained", format!("in {:.1} s with seed {}", time.as_secs_f64(), seed.0)));
        }
        page.pairs(&pairs);
        page.title("Accuracy");
        performance_table(page, &self.performances);
        page.title("Rejected applicants");
        let applicants = self.performances.iter().find(|p| p.part == self.part);
        let all = applicants.map_or(0, |performance| performance.rows);
        let which = if self.part == Part::Test { "test rows" } else { "rows" };
        let (count, shown) = (self.rejected_rows, self.rejected.len());
        let first = match shown {
            all if all == count => String::new(),
            1 => "; the first one".to_owned(),
            some => format!("; the first {some}"),
        };
        page.line(&format!("  {count} of {all} {which} score below 0.5{first}"));
        if let Some(first) = self.rejected.first() {
            page.line("");
            let labelled = self.rejected.iter().any(|applicant| applicant.label.is_some());
            let cells: Vec<Vec<String>> =
                self.rejected.iter().map(|applicant| applicant.cells(labelled)).collect();
            page.abreast(&first.names(labelled), &cells);
        }
        if let Some(out) = &self.out {
            page.title(&format!("Wrote {out}"));
        }
    }
}
