//! The reference of an explainer: the rows that its model was trained on or is compared with.
//!
//! Methods return rows of the reference and restart from them; models are retrained on it. Rows to
//! explain are [`Applicant`](super::Applicant)s and never part of the reference, so that an answer
//! does not depend on other applicants. A data set with a split provides both: its training rows
//! are the reference, its test rows can be explained.

use std::path::Path;

use super::Part;
use crate::data::dataset::{Parts, split};
use crate::data::schema::{FitOn, Split};
use crate::data::{Column, Dataset, Encoder, ReadReport, Row, Rows, Schema, Table};
use crate::error::Result;
use crate::points::Points;

/// The rows that a model was trained on or is compared with, and those held out from training. It
/// may be empty.
#[derive(Debug, Clone)]
pub enum Reference {
    /// Every row has a label.
    Labelled(Dataset),
    /// Rows may have labels.
    Unlabelled(UnlabelledRows),
}

/// Rows of a reference for an existing model, with or without labels.
#[derive(Debug, Clone)]
pub struct UnlabelledRows {
    schema: Schema,
    table: Table,
    rows: Rows,
    favourable: Vec<Option<bool>>,
    train: Vec<usize>,
    test: Vec<usize>,
    /// Whether the scale of a model may be fitted on the rows.
    scales: bool,
}

impl UnlabelledRows {
    /// Reads a table through a schema. An absent, empty or unknown label counts as no label. Rows
    /// of a single class are accepted.
    pub fn read(schema: &Schema, table: Table) -> Result<Self> {
        let rows = Rows::read(schema, &table)?;
        let label = table.columns().iter().find(|column| column.name() == schema.label.column);
        let favourable: Vec<Option<bool>> = rows
            .table_rows
            .iter()
            .map(|&row| label.and_then(|column| schema.is_favourable(table.cell(row, column))))
            .collect();
        let (train, test) = parts(schema, &table, &rows.table_rows, &favourable)?;
        Ok(Self { schema: schema.clone(), table, rows, favourable, train, test, scales: true })
    }

    /// Rows without labels. The list may be empty, for a model whose file has its encoder.
    pub(crate) fn of_rows(schema: &Schema, rows: Vec<Row>) -> Result<Self> {
        schema.validate()?;
        let names = schema.features.iter().map(|feature| feature.name.as_str());
        let mut columns: Vec<Column> = names.map(Column::new).collect();
        for row in &rows {
            let cells = schema.cells_of_row(row);
            columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(&cell));
        }
        let count = rows.len();
        let report = ReadReport { rows_read: count, ..ReadReport::default() };
        Ok(Self {
            schema: schema.clone(),
            table: Table::new("rows", columns)?,
            rows: Rows { rows, table_rows: (0..count).collect(), report },
            favourable: vec![None; count],
            train: Vec::new(),
            test: Vec::new(),
            scales: true,
        })
    }

    /// The same rows, none of which decides the scale of a model: promises, counterfactuals, or
    /// applicants.
    #[must_use]
    pub fn without_scale(self) -> Self {
        Self { scales: false, ..self }
    }
}

/// The split, if the schema has one for these rows; otherwise all rows are in neither part.
fn parts(
    schema: &Schema,
    table: &Table,
    table_rows: &[usize],
    favourable: &[Option<bool>],
) -> Result<Parts> {
    match &schema.split {
        Split::AllTrain => Ok(Parts::default()),
        Split::Column { column, .. } => {
            if table.columns().iter().any(|own| own.name() == column) {
                split(schema, table, table_rows)
            } else {
                Ok(Parts::default())
            }
        }
        Split::File { .. } => split(schema, table, table_rows),
        // The split was drawn from the rows with a label; the others cannot have trained a model.
        Split::Fraction { .. } => {
            let (labelled, others): (Vec<usize>, Vec<usize>) =
                (0..table_rows.len()).partition(|&index| favourable[index].is_some());
            if labelled.is_empty() {
                return Ok(Parts::default());
            }
            let drawn_from: Vec<usize> = labelled.iter().map(|&index| table_rows[index]).collect();
            let (train, test) = split(schema, table, &drawn_from)?;
            let test = test.into_iter().map(|index| labelled[index]).chain(others);
            Ok((train.into_iter().map(|index| labelled[index]).collect(), test.collect()))
        }
    }
}

impl Reference {
    /// An empty reference, for a model whose file has its encoder.
    pub fn none(schema: &Schema) -> Result<Self> {
        UnlabelledRows::of_rows(schema, Vec::new()).map(Self::Unlabelled)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows().is_empty()
    }

    /// Reads a table through a schema: as a labelled data set if it has the label column, otherwise
    /// as unlabelled rows.
    pub fn read(schema: &Schema, table: Table) -> Result<Self> {
        if table.columns().iter().any(|column| column.name() == schema.label.column) {
            return Dataset::load(schema, table).map(Self::Labelled);
        }
        UnlabelledRows::read(schema, table).map(Self::Unlabelled)
    }

    /// The same rows with another split of the schema.
    pub(super) fn with_split(&self, split: &Split) -> Result<Self> {
        match self {
            Self::Labelled(dataset) => dataset.with_split(split).map(Self::Labelled),
            Self::Unlabelled(own) => {
                let schema = Schema { split: split.clone(), ..own.schema.clone() };
                let (train, test) =
                    parts(&schema, &own.table, &own.rows.table_rows, &own.favourable)?;
                Ok(Self::Unlabelled(UnlabelledRows { schema, train, test, ..own.clone() }))
            }
        }
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        match self {
            Self::Labelled(dataset) => dataset.schema(),
            Self::Unlabelled(applicants) => &applicants.schema,
        }
    }

    /// The table of the rows.
    pub fn table(&self) -> &Table {
        match self {
            Self::Labelled(dataset) => dataset.table(),
            Self::Unlabelled(applicants) => &applicants.table,
        }
    }

    /// The file of the rows.
    pub(crate) fn source(&self) -> &Path {
        self.table().source()
    }

    /// The kept rows.
    pub fn rows(&self) -> &[Row] {
        match self {
            Self::Labelled(dataset) => dataset.rows(),
            Self::Unlabelled(applicants) => &applicants.rows.rows,
        }
    }

    /// For each kept row, its row in the table.
    pub fn table_rows(&self) -> &[usize] {
        match self {
            Self::Labelled(dataset) => dataset.table_rows(),
            Self::Unlabelled(applicants) => &applicants.rows.table_rows,
        }
    }

    /// Whether the label of one row is favourable; `None` if it has no label.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn is_favourable(&self, index: usize) -> Option<bool> {
        match self {
            Self::Labelled(dataset) => Some(dataset.labels()[index]),
            Self::Unlabelled(applicants) => applicants.favourable[index],
        }
    }

    /// Whether any row has a label.
    pub fn has_labels(&self) -> bool {
        (0..self.rows().len()).any(|index| self.is_favourable(index).is_some())
    }

    /// The label of one row as written in the table; `None` if it has no label.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn label(&self, index: usize) -> Option<&str> {
        self.is_favourable(index)?;
        let column = self.table().column(&self.schema().label.column).ok()?;
        Some(self.table().cell(self.table_rows()[index], column))
    }

    /// The report of dropped rows and filled cells.
    pub fn report(&self) -> &ReadReport {
        match self {
            Self::Labelled(dataset) => dataset.report(),
            Self::Unlabelled(applicants) => &applicants.rows.report,
        }
    }

    /// The rows of a part, as indices into `rows`.
    pub fn part(&self, part: Part) -> Vec<usize> {
        match (self, part) {
            (Self::Labelled(dataset), Part::Train) => dataset.train().to_vec(),
            (Self::Labelled(dataset), Part::Test) => dataset.test().to_vec(),
            (Self::Unlabelled(applicants), Part::Train) => applicants.train.clone(),
            (Self::Unlabelled(applicants), Part::Test) => applicants.test.clone(),
            (_, Part::All) => (0..self.rows().len()).collect(),
        }
    }

    /// The training rows; all rows if the schema has no split. A split without training rows
    /// leaves none: the rows are applicants. Without training rows, searches start from the
    /// applicant only, and methods that return a reference row find nothing.
    pub fn training_rows(&self) -> Vec<usize> {
        match self.part(Part::Train) {
            none if none.is_empty() && self.schema().split == Split::AllTrain => {
                self.part(Part::All)
            }
            rows => rows,
        }
    }

    /// The rows that the encoding of a black box is fitted on: those that train, or all if there are
    /// none.
    pub(super) fn fitting_rows(&self) -> Vec<&Row> {
        let rows = match self.part(Part::Train) {
            none if none.is_empty() => self.part(Part::All),
            rows => rows,
        };
        rows.into_iter().map(|row| &self.rows()[row]).collect()
    }

    /// The rows that the scale of a model on raw columns is fitted on: the training rows, and rows
    /// held out from training only if the schema says so (`fit = "all"`).
    pub(super) fn scale_rows(&self) -> Vec<&Row> {
        let train = match self {
            Self::Unlabelled(own) if !own.scales => Vec::new(),
            _ => self.training_rows(),
        };
        match self.schema().scaling.fit {
            FitOn::All if !train.is_empty() => self.rows().iter().collect(),
            _ => train.into_iter().map(|row| &self.rows()[row]).collect(),
        }
    }

    /// The rows to explain by default: the test rows, or all rows if there are none.
    pub fn applicants(&self) -> Part {
        if self.part(Part::Test).is_empty() { Part::All } else { Part::Test }
    }

    /// The points of the rows, if this encoder has already encoded them.
    pub(super) fn points_of(&self, encoder: &Encoder) -> Option<Points> {
        match self {
            Self::Labelled(dataset) if dataset.encoder() == encoder => {
                Some(dataset.points().clone())
            }
            _ => None,
        }
    }

    /// The encoder with scaling fitted on the training rows; `None` if the training rows are
    /// unknown. A random fraction drawn here does not apply to a model trained elsewhere.
    pub(super) fn fitted_encoder(&self) -> Result<Option<Encoder>> {
        let schema = self.schema();
        let is_given = matches!(schema.split, Split::Column { .. } | Split::File { .. });
        match self {
            Self::Labelled(dataset) => {
                let is_given = is_given || dataset.has_split_table();
                Ok(is_given.then(|| dataset.encoder().clone()))
            }
            Self::Unlabelled(UnlabelledRows { train, .. }) if !is_given || train.is_empty() => {
                Ok(None)
            }
            Self::Unlabelled(UnlabelledRows { train, rows: Rows { rows, .. }, .. }) => {
                let fitted_on: Vec<&Row> = match schema.scaling.fit {
                    FitOn::Train => train.iter().map(|&row| &rows[row]).collect(),
                    FitOn::All => rows.iter().collect(),
                };
                Encoder::fit(schema, &fitted_on).map(Some)
            }
        }
    }
}
