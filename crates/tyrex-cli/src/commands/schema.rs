//! `tyrex schema infer|check`

use serde::Serialize;
use tyrex::Error;
use tyrex::data::schema::{Note, Rule};
use tyrex::data::{Hints, Schema, Table, Value};
use tyrex::explain::Reference;
use tyrex::file::write_whole;

use super::summary::{DataSummary, counted, feature_table, shown};
use super::{Context, source};
use crate::args::{CheckArgs, InferArgs};
use crate::help::Usage;
use crate::interrupt;
use crate::printer::{self, Page, Report};

pub(crate) fn infer(context: &mut Context<'_>, args: &InferArgs) -> anyhow::Result<()> {
    if let Some(out) = &args.out {
        source::keep_inputs(out, &[Some(&args.data)])?;
    }
    let table = Table::read(&args.data)?;
    let favourable: Vec<Value> = args.favourable.iter().map(|text| Value::of_text(text)).collect();
    let drafted = Schema::draft(&table, args.label.as_deref(), &favourable, &Hints::default());
    let inferred = drafted.map_err(|error| {
        // The usual remedy for an unsuitable table is this command.
        match error {
            Error::Table { .. } => anyhow::Error::new(Usage {
                problem: error.to_string(),
                help: match args.label {
                    Some(_) => "correct the file, or name another column with --label".to_owned(),
                    None => "name the column with --label NAME".to_owned(),
                },
            }),
            other => other.into(),
        }
    })?;
    let text = inferred.to_toml()?;
    if let Some(path) = &args.out {
        let overwrite = args.force.overwrite();
        interrupt::whole(|| write_whole(path, overwrite, |out| out.write_all(text.as_bytes())))?;
    } else if !context.printer.is_json() {
        return printer::product(&text);
    }
    context.printer.show(&InferReport {
        schema: &inferred.schema,
        notes: inferred.notes.iter().map(NoteReport::of).collect(),
        proposals: &inferred.proposals,
        out: args.out.as_deref().map(shown),
    })
}

pub(crate) fn check(context: &mut Context<'_>, args: &CheckArgs) -> anyhow::Result<()> {
    let schema = Schema::read(&args.schema)?;
    let data = match &args.data {
        None => None,
        Some(path) => {
            let data = Reference::read(&schema, Table::read(path)?)?;
            let favourable = data.has_labels().then(|| {
                let rows = 0..data.rows().len();
                rows.filter(|&row| data.is_favourable(row) == Some(true)).count()
            });
            Some((DataSummary::of(path.display().to_string(), &data), favourable))
        }
    };
    let (data, favourable_rows) = data.map_or((None, None), |(data, rows)| (Some(data), rows));
    context.printer.show(&CheckReport { schema: &schema, data, favourable_rows })
}

/// The report of `schema infer`.
#[derive(Debug, Serialize)]
struct InferReport<'a> {
    schema: &'a Schema,
    notes: Vec<NoteReport<'a>>,
    proposals: &'a [Rule],
    out: Option<String>,
}

#[derive(Debug, Serialize)]
struct NoteReport<'a> {
    feature: Option<&'a str>,
    text: &'a str,
}

impl<'a> NoteReport<'a> {
    fn of(note: &'a Note) -> Self {
        Self { feature: note.feature.as_deref(), text: &note.text }
    }
}

impl Report for InferReport<'_> {
    const COMMAND: &'static str = "schema infer";

    fn page(&self, page: &mut Page) {
        page.title(&counted(self.schema.features.len(), "feature"));
        feature_table(page, self.schema);
        page.title("Review these");
        for note in &self.notes {
            match note.feature {
                Some(feature) => page.item(&format!("{feature}: {}", note.text)),
                None => page.item(note.text),
            }
        }
        if let Some(out) = &self.out {
            page.title(&format!("Wrote {out}"));
        }
    }
}

/// The report of `schema check`.
#[derive(Debug, Serialize)]
struct CheckReport<'a> {
    schema: &'a Schema,
    data: Option<DataSummary>,
    favourable_rows: Option<usize>,
}

impl Report for CheckReport<'_> {
    const COMMAND: &'static str = "schema check";

    fn page(&self, page: &mut Page) {
        let label = &self.schema.label;
        let favourable: Vec<String> = label.favourable.iter().map(ToString::to_string).collect();
        let features = counted(self.schema.features.len(), "feature");
        page.title(&format!("The schema is valid: {features}"));
        page.pairs(&[(
            "label",
            format!("{}; favourable is {}", label.column, favourable.join(", ")),
        )]);
        feature_table(page, self.schema);
        if let Some(data) = &self.data {
            page.title(&data.title);
            let labels = match self.favourable_rows {
                Some(rows) => format!("{rows} favourable"),
                None => format!("no column `{}`: can be explained, not trained on", label.column),
            };
            page.pairs(&[data.pairs(), vec![("labels", labels)]].concat());
        }
    }
}
