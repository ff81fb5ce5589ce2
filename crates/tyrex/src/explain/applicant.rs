//! Rows to explain: from the explainer's own data, or other rows of the same schema.

use std::path::Path;

use super::{Explainer, Part};
use crate::data::{Cell, ReadReport, Row, Rows, Table};
use crate::error::{Error, Result};
use crate::model::{Model, THRESHOLD};
use crate::points::Points;

/// A row to explain, with its score.
#[derive(Debug, Clone, PartialEq)]
pub struct Applicant {
    /// Its row in the file, counted from 0 without the header.
    pub row: usize,
    /// Its values, in the order of the schema's features.
    pub values: Row,
    /// The encoded values: the input of the model.
    pub point: Vec<f32>,
    /// `m(x)`, the probability of the favourable class.
    pub score: f32,
    /// Its label as written in the table; `None` if it has no label.
    pub label: Option<String>,
    /// Whether that label is favourable.
    pub favourable: Option<bool>,
}

impl Applicant {
    /// Whether the model rejects it: `m(x) < 0.5`.
    pub fn is_rejected(&self) -> bool {
        self.score < THRESHOLD
    }
}

/// The rows to explain: those of the explainer's own data, and other rows of the same schema.
#[derive(Debug, Clone, Copy)]
pub struct ApplicantsView<'a> {
    explainer: &'a Explainer,
}

impl Explainer {
    /// The rows to explain.
    pub fn applicants(&self) -> ApplicantsView<'_> {
        ApplicantsView { explainer: self }
    }
}

impl ApplicantsView<'_> {
    /// The rows of a part of the explainer's data, in the order of the table.
    pub fn part(self, part: Part) -> Vec<Applicant> {
        let mut rows = self.explainer.reference().part(part);
        rows.sort_unstable();
        rows.into_iter().map(|row| self.own(row)).collect()
    }

    /// The rows of a part that the model rejects, in the order of the table.
    pub fn rejected(self, part: Part) -> Vec<Applicant> {
        let mut applicants = self.part(part);
        applicants.retain(Applicant::is_rejected);
        applicants
    }

    /// The applicant in a row of the table; `None` if there is no such row, or it was dropped.
    pub fn at(self, table_row: usize) -> Option<Applicant> {
        let index = self.explainer.reference().table_rows().binary_search(&table_row).ok()?;
        Some(self.own(index))
    }

    /// Other rows of the same schema. Labels are optional.
    pub fn read(self, table: &Table) -> Result<Vec<Applicant>> {
        let (applicants, report) = self.read_batch(table)?;
        report.require_rows(table.source())?;
        Ok(applicants)
    }

    /// The applicants in a batch of a file, possibly none, and a report of dropped rows and filled
    /// cells.
    pub fn read_batch(self, table: &Table) -> Result<(Vec<Applicant>, ReadReport)> {
        let schema = self.explainer.schema();
        let Rows { rows, table_rows, report } = Rows::read_valid(schema, table)?;
        let points = self.explainer.encoder().encode_rows(&rows)?;
        let model = self.explainer.model();
        let scores = scores(model, table.source(), &rows, &table_rows, &points)?;
        let labels = table.columns().iter().find(|column| column.name() == schema.label.column);
        let applicants = rows
            .into_iter()
            .zip(table_rows)
            .zip(points.rows().zip(scores))
            .map(|((values, row), (point, score))| {
                let label = labels.map(|column| table.cell(row, column));
                let favourable = label.and_then(|label| schema.is_favourable(label));
                Applicant {
                    row,
                    values,
                    point: point.to_vec(),
                    score,
                    // An unknown label counts as no label.
                    label: label.filter(|_| favourable.is_some()).map(str::to_owned),
                    favourable,
                }
            })
            .collect();
        Ok((applicants, report))
    }

    /// The applicants in a batch of a source with types, without labels. `cell(row, feature)` is the
    /// cell of a row, counted from 0, for a feature of the schema; `first` is the number of the
    /// first row. A row that cannot be read or scored is the reason, which does not name the row:
    /// it is the same in any batch.
    pub fn read_cells<'c>(
        self,
        first: usize,
        rows: usize,
        cell: impl Fn(usize, usize) -> Cell<'c>,
    ) -> Vec<Result<Applicant, String>> {
        let Explainer { encoder, .. } = self.explainer;
        let (schema, model) = (self.explainer.schema(), self.explainer.model());
        let (missing, features) = (schema.missing_numbers(), schema.features.len());
        let mut points = Points::new(encoder.dim());
        let read: Vec<Result<Row, String>> = (0..rows)
            .map(|row| {
                let cells = (0..features).map(|feature| cell(row, feature));
                let values = schema.row_of_cells(&missing, cells)?;
                let point = encoder.encode(&values).map_err(|error| error.to_string())?;
                points.push(point.as_slice());
                Ok(values)
            })
            .collect();
        let own = model.score_rows(&read.iter().flatten().cloned().collect::<Vec<_>>());
        let mut scored = own.unwrap_or_else(|| model.score(&points)).into_iter();
        let mut points = points.rows();
        let numbered = read.into_iter().zip(first..);
        let applicant = |(read, row): (Result<Row, String>, usize)| {
            let values = read?;
            let (point, score) = points.next().zip(scored.next()).unwrap_or_default();
            if !score.is_finite() {
                return Err(format!("the model's score is {score}, expected a probability"));
            }
            let point = point.to_vec();
            Ok(Applicant { row, values, point, score, label: None, favourable: None })
        };
        numbered.map(applicant).collect()
    }

    /// A row of the explainer's data, by its index.
    fn own(self, index: usize) -> Applicant {
        let data = self.explainer.reference();
        Applicant {
            row: data.table_rows()[index],
            values: data.rows()[index].clone(),
            point: self.explainer.points().row(index).to_vec(),
            score: self.explainer.scores()[index],
            label: data.label(index).map(str::to_owned),
            favourable: data.is_favourable(index),
        }
    }
}

/// `m(x)` of the rows. A score that is not a number is an error, since it is neither below nor
/// above the threshold.
pub(super) fn scores(
    model: &dyn Model,
    source: &Path,
    rows: &[Row],
    table_rows: &[usize],
    points: &Points,
) -> Result<Vec<f32>> {
    let scores = model.score_rows(rows).unwrap_or_else(|| model.score(points));
    match scores.iter().position(|score| !score.is_finite()) {
        None => Ok(scores),
        Some(index) => Err(Error::InvalidModel(format!(
            "its score of {}, row {}, is {}, expected a probability",
            source.display(),
            table_rows[index],
            scores[index]
        ))),
    }
}
