//! `tyrex explain`

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use tyrex::Seed;
use tyrex::data::Table;
use tyrex::explain::{Explainer, Part, Performance, Rejected};
use tyrex::model::TrainParams;

use super::summary::{DataSummary, ModelSummary, Named, performance_table, with_unit};
use super::{Session, source, train};
use crate::args::ExplainArgs;
use crate::interrupt;
use crate::printer::{Page, Report};

/// Rejected applicants that fit a screen.
const SHOWN: usize = 5;

pub(crate) fn run(session: &mut Session<'_>, args: &ExplainArgs) -> anyhow::Result<()> {
    let title = source::title(&args.source)?;
    let overwrite = args.force.overwrite();
    // Minutes of training should not end in a refusal that could be had at once.
    args.out.as_deref().map_or(Ok(()), |out| Table::check_writable(out, overwrite))?;
    let (explainer, training_time) = if let Some(path) = &args.model {
        let (data, model) = source::data_and_model(session, &args.source, path, &args.import)?;
        (Explainer::with_model(data, model)?, None)
    } else {
        let dataset = source::dataset(session, &args.source)?;
        let params = TrainParams::default();
        let (explainer, time) = train::with_progress(session, dataset, &params, Seed(args.seed))?;
        (explainer, Some(time))
    };
    let part = explainer.data().applicants();
    let rejected = explainer.rejected(part);
    if let Some(path) = &args.out {
        let written = &rejected[..rejected.len().min(args.limit.unwrap_or(usize::MAX))];
        let table = explainer.rejected_table(written)?;
        interrupt::whole(|| table.write(path, overwrite))?;
    }
    let shown = args.limit.unwrap_or(SHOWN);
    let report = ExplainReport {
        data: DataSummary::of(title, explainer.data()),
        model: ModelSummary::of(explainer.core()),
        seed: explainer.training().map(|training| training.seed),
        performances: explainer.performances(),
        part,
        rejected_rows: rejected.len(),
        rejected: rejected.iter().take(shown).map(|each| Applicant::of(&explainer, each)).collect(),
        out: args.out.clone(),
        training_time,
    };
    session.printer.show(&report)
}

/// What `explain` has to say.
#[derive(Debug, Serialize)]
struct ExplainReport<'a> {
    data: DataSummary,
    model: ModelSummary,
    seed: Option<Seed>,
    performances: Vec<Performance>,
    part: Part,
    rejected_rows: usize,
    rejected: Vec<Applicant<'a>>,
    out: Option<PathBuf>,
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
    fn cells(&self) -> Vec<String> {
        let schema = self.features.schema;
        let values = self.features.row.values().iter().enumerate();
        let head = [self.row.to_string(), format!("{:.3}", self.score)];
        head.into_iter()
            .chain(self.label.map(str::to_owned))
            .chain(values.map(|(position, value)| with_unit(schema, position, value)))
            .collect()
    }

    fn names(&self) -> Vec<String> {
        let features = self.features.schema.features.iter().map(|feature| feature.name.clone());
        let head = ["row", "score"].map(str::to_owned).into_iter();
        head.chain(self.label.map(|_| "label".to_owned())).chain(features).collect()
    }
}

impl Report for ExplainReport<'_> {
    const COMMAND: &'static str = "explain";

    fn page(&self, page: &mut Page) {
        page.title(&self.data.title);
        let mut pairs = [self.data.pairs(), self.model.pairs()].concat();
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
        let first = if shown < count { format!("; the first {shown}") } else { String::new() };
        page.line(&format!("  {count} of {all} {which} score below 0.5{first}"));
        if let Some(first) = self.rejected.first() {
            page.line("");
            let cells: Vec<Vec<String>> = self.rejected.iter().map(Applicant::cells).collect();
            page.abreast(&first.names(), &cells);
        }
        if let Some(out) = &self.out {
            page.title(&format!("Wrote {}", out.display()));
        }
    }
}
