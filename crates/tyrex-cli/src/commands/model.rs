//! `tyrex model show`

use std::collections::BTreeMap;

use serde::Serialize;
use tyrex::model::files::{InputBlock, InputKind, Inputs, ModelFile};

use super::summary::{ModelSummary, counted, shown};
use super::{Context, source};
use crate::args::ShowModelArgs;
use crate::printer::{Page, Report, Stand};

pub(crate) fn show(context: &mut Context<'_>, args: &ShowModelArgs) -> anyhow::Result<()> {
    let model = ModelFile::read(&args.model, &source::import_options(&args.import))?;
    context.printer.show(&ModelReport::of(shown(&args.model), model))
}

/// The report of `model show`.
#[derive(Debug, Serialize)]
struct ModelReport {
    file: String,
    inputs: Vec<InputReport>,
    preprocessing: Vec<StepReport>,
    model: ModelSummary,
    output: String,
    classes: usize,
    favourable: usize,
    labels: Option<Vec<String>>,
    metadata: BTreeMap<String, String>,
}

/// A raw column the model takes.
#[derive(Debug, Serialize)]
struct InputReport {
    name: String,
    kind: &'static str,
}

/// The first step of a raw column.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
enum StepReport {
    Number { column: usize, scale: f64, shift: f64, missing: Option<f64> },
    OneHot { column: usize, categories: Vec<String> },
    Code { column: usize, categories: Vec<String> },
}

impl ModelReport {
    fn of(file: String, model: ModelFile) -> Self {
        let inputs = match &model.inputs {
            Inputs::Matrix { columns } => (0..*columns)
                .map(|column| InputReport { name: column.to_string(), kind: "number" })
                .collect(),
            Inputs::Columns(columns) => columns
                .iter()
                .map(|column| InputReport {
                    name: column.name.clone(),
                    kind: match column.kind {
                        InputKind::Number => "number",
                        InputKind::Integer => "integer",
                        InputKind::Text => "text",
                    },
                })
                .collect(),
        };
        let preprocessing = model
            .preprocessing
            .iter()
            .map(|block| match block {
                InputBlock::Number { column, missing, scale, shift } => StepReport::Number {
                    column: *column,
                    scale: *scale,
                    shift: *shift,
                    missing: *missing,
                },
                InputBlock::OneHot { column, categories } => StepReport::OneHot {
                    column: *column,
                    categories: categories.iter().map(ToString::to_string).collect(),
                },
                InputBlock::Code { column, categories } => StepReport::Code {
                    column: *column,
                    categories: categories.iter().map(ToString::to_string).collect(),
                },
            })
            .collect();
        Self {
            file,
            inputs,
            preprocessing,
            model: ModelSummary::of(model.model()),
            output: model.output,
            classes: model.classes,
            favourable: model.favourable,
            labels: model.labels,
            metadata: model.metadata,
        }
    }

    /// Whether the model takes its columns unchanged.
    fn is_plain(&self) -> bool {
        self.preprocessing.iter().enumerate().all(|(index, step)| {
            matches!(step, StepReport::Number { column, scale, shift, missing: None }
                if *column == index && *scale == 1.0 && *shift == 0.0)
        })
    }

    fn class(&self, class: usize) -> String {
        let name = self.labels.as_ref().and_then(|labels| labels.get(class));
        name.map_or_else(|| format!("number {class}"), Clone::clone)
    }
}

impl Report for ModelReport {
    const COMMAND: &'static str = "model show";

    fn page(&self, page: &mut Page) {
        page.title(&self.file);
        let mut pairs = self.model.pairs();
        let names: Vec<String> = (0..self.classes).map(|class| self.class(class)).collect();
        pairs.push(("classes", format!("{} ({})", self.classes, names.join(", "))));
        pairs.push(("favourable", self.class(self.favourable)));
        pairs.push(("output", self.output.clone()));
        if self.is_plain() {
            pairs.push(("inputs", format!("{}, unchanged", counted(self.inputs.len(), "column"))));
        }
        page.pairs(&pairs);
        if !self.is_plain() {
            page.title(&format!("{}, encoded by the model", counted(self.inputs.len(), "input")));
            let rows: Vec<Vec<String>> =
                self.preprocessing.iter().map(|step| self.step(step)).collect();
            page.table(
                &[("input", Stand::Left), ("kind", Stand::Left), ("becomes", Stand::Left)],
                &rows,
            );
        }
        if !self.metadata.is_empty() {
            page.title("Metadata");
            let rows: Vec<Vec<String>> = self
                .metadata
                .iter()
                .map(|(key, value)| vec![key.clone(), in_brief(value)])
                .collect();
            page.table(&[("key", Stand::Left), ("value", Stand::Left)], &rows);
        }
    }
}

impl ModelReport {
    fn step(&self, step: &StepReport) -> Vec<String> {
        let (column, becomes) = match step {
            StepReport::Number { column, scale, shift, missing } => {
                let filled = missing.map_or_else(String::new, |it| format!(", missing is {it}"));
                let sign = if *shift < 0.0 { '-' } else { '+' };
                let (scale, shift) = (six_digits(*scale), six_digits(shift.abs()));
                (*column, format!("{scale} x {sign} {shift}{filled}"))
            }
            StepReport::OneHot { column, categories } => {
                (*column, format!("one of {}", categories.join(" | ")))
            }
            StepReport::Code { column, categories } => {
                (*column, format!("its place in {}", categories.join(" | ")))
            }
        };
        let input = self.inputs.get(column);
        let name = input.map_or_else(|| column.to_string(), |input| input.name.clone());
        vec![name, input.map_or("", |input| input.kind).to_owned(), becomes]
    }
}

/// The number rounded to six digits, for display.
fn six_digits(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

/// A value, or the size of a long one.
fn in_brief(value: &str) -> String {
    match value.lines().count() {
        0 | 1 if value.len() <= 64 => value.to_owned(),
        0 | 1 => format!("{} bytes", value.len()),
        lines => format!("{lines} lines"),
    }
}
