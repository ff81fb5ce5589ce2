//! `tyrex schema infer|check`

use std::path::PathBuf;

use serde::Serialize;
use tyrex::data::schema::Note;
use tyrex::data::{Schema, Table, Value};
use tyrex::explain::Data;
use tyrex::file::write_whole;

use super::Session;
use super::summary::{DataSummary, feature_table};
use crate::args::{CheckArgs, InferArgs};
use crate::interrupt;
use crate::printer::{self, Page, Report};

pub(crate) fn infer(session: &mut Session<'_>, args: &InferArgs) -> anyhow::Result<()> {
    let table = Table::read(&args.data)?;
    let favourable: Vec<Value> = args.favourable.iter().map(|text| value(text)).collect();
    let inferred = Schema::infer(&table, args.label.as_deref(), &favourable)?;
    let text = inferred.to_toml()?;
    if let Some(path) = &args.out {
        let overwrite = args.force.overwrite();
        interrupt::whole(|| write_whole(path, overwrite, |out| out.write_all(text.as_bytes())))?;
    } else if !session.printer.is_json() {
        return printer::product(&text);
    }
    session.printer.show(&InferReport {
        schema: &inferred.schema,
        notes: inferred.notes.iter().map(NoteReport::of).collect(),
        out: args.out.clone(),
    })
}

/// A value as a person types it: a number if it is one.
fn value(text: &str) -> Value {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Value::Number(number),
        _ => Value::from(text),
    }
}

pub(crate) fn check(session: &mut Session<'_>, args: &CheckArgs) -> anyhow::Result<()> {
    let schema = Schema::read(&args.schema)?;
    let data = match &args.data {
        None => None,
        Some(path) => {
            let data = Data::read(&schema, Table::read(path)?)?;
            let favourable =
                data.labels().map(|labels| labels.iter().filter(|&&label| label).count());
            Some((DataSummary::of(path.display().to_string(), &data), favourable))
        }
    };
    let (data, favourable_rows) = data.map_or((None, None), |(data, rows)| (Some(data), rows));
    session.printer.show(&CheckReport { schema: &schema, data, favourable_rows })
}

/// What `schema infer` has to say.
#[derive(Debug, Serialize)]
struct InferReport<'a> {
    schema: &'a Schema,
    notes: Vec<NoteReport<'a>>,
    out: Option<PathBuf>,
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
        page.title(&format!("{} features", self.schema.features.len()));
        feature_table(page, self.schema);
        page.title("Look at these");
        for note in &self.notes {
            match note.feature {
                Some(feature) => page.item(&format!("{feature}: {}", note.text)),
                None => page.item(note.text),
            }
        }
        if let Some(out) = &self.out {
            page.title(&format!("Wrote {}", out.display()));
        }
    }
}

/// What `schema check` has to say.
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
        page.title(&format!("The schema is right: {} features", self.schema.features.len()));
        page.pairs(&[(
            "label",
            format!("{}; favourable is {}", label.column, favourable.join(", ")),
        )]);
        feature_table(page, self.schema);
        if let Some(data) = &self.data {
            page.title(&data.title);
            let labels = match self.favourable_rows {
                Some(rows) => format!("{rows} favourable"),
                None => format!("no column `{}`: fit to be explained, not to train", label.column),
            };
            page.pairs(&[data.pairs(), vec![("labels", labels)]].concat());
        }
    }
}
