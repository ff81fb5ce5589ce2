//! The rows an explainer speaks about, judged already or not yet.

use std::path::Path;

use super::Part;
use crate::data::{Dataset, ReadReport, Row, Rows, Schema, Table};
use crate::error::Result;

/// The rows an explainer speaks about.
#[derive(Debug, Clone)]
pub enum Data {
    /// With labels and a split.
    Labelled(Dataset),
    /// Without labels: applicants nobody has judged yet. Enough for a model that exists.
    Unlabelled {
        /// What the columns mean.
        schema: Schema,
        /// The table they came from.
        table: Table,
        /// The rows that were kept.
        rows: Rows,
    },
}

impl Data {
    /// Reads a table through a schema, with labels if the label column is there.
    pub fn read(schema: &Schema, table: Table) -> Result<Self> {
        if table.columns().iter().any(|column| column.name() == schema.label.column) {
            return Dataset::load(schema, table).map(Self::Labelled);
        }
        let rows = Rows::read(schema, &table)?;
        Ok(Self::Unlabelled { schema: schema.clone(), table, rows })
    }

    /// What the columns mean.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        match self {
            Self::Labelled(dataset) => dataset.schema(),
            Self::Unlabelled { schema, .. } => schema,
        }
    }

    /// The file the rows came from.
    #[must_use]
    pub fn source(&self) -> &Path {
        match self {
            Self::Labelled(dataset) => dataset.table().source(),
            Self::Unlabelled { table, .. } => table.source(),
        }
    }

    /// The rows that were kept.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        match self {
            Self::Labelled(dataset) => dataset.rows(),
            Self::Unlabelled { rows, .. } => &rows.rows,
        }
    }

    /// For each row kept, its row in the table.
    #[must_use]
    pub fn table_rows(&self) -> &[usize] {
        match self {
            Self::Labelled(dataset) => dataset.table_rows(),
            Self::Unlabelled { rows, .. } => &rows.table_rows,
        }
    }

    /// For each row, whether its label is favourable; `None` without labels.
    #[must_use]
    pub fn labels(&self) -> Option<&[bool]> {
        match self {
            Self::Labelled(dataset) => Some(dataset.labels()),
            Self::Unlabelled { .. } => None,
        }
    }

    /// The label of one row in the table's own word; `None` without labels.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn label(&self, index: usize) -> Option<&str> {
        match self {
            Self::Labelled(dataset) => {
                let column = dataset.table().column(&dataset.schema().label.column).ok()?;
                Some(column.cell(dataset.table_rows()[index]))
            }
            Self::Unlabelled { .. } => None,
        }
    }

    /// What reading left out or made up.
    #[must_use]
    pub fn report(&self) -> &ReadReport {
        match self {
            Self::Labelled(dataset) => dataset.report(),
            Self::Unlabelled { rows, .. } => &rows.report,
        }
    }

    /// The rows of a part, as indices into `rows`.
    #[must_use]
    pub fn part(&self, part: Part) -> Vec<usize> {
        match (self, part) {
            (Self::Labelled(dataset), Part::Train) => dataset.train().to_vec(),
            (Self::Labelled(dataset), Part::Test) => dataset.test().to_vec(),
            (Self::Unlabelled { .. }, Part::Train | Part::Test) => Vec::new(),
            (_, Part::All) => (0..self.rows().len()).collect(),
        }
    }

    /// The rows to explain unless told otherwise: the test rows, or all if there are none.
    #[must_use]
    pub fn applicants(&self) -> Part {
        match self {
            Self::Labelled(dataset) if !dataset.test().is_empty() => Part::Test,
            _ => Part::All,
        }
    }
}
