//! The rows of a table, read through a schema.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::data::cell::Cell;
use crate::data::schema::{Feature, MissingPolicy, Schema, Split};
use crate::data::table::{Column, Table};
use crate::data::value::{Row, Value};
use crate::error::{Error, Result, shortened};

/// The kept rows of a table, and a report of the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The rows, in the order of the table.
    pub rows: Vec<Row>,
    /// For each of them its row in the file, counted from 0.
    pub table_rows: Vec<usize>,
    /// The report of dropped rows and filled cells.
    pub report: ReadReport,
}

/// The report of dropped rows and filled cells.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ReadReport {
    /// The rows of the table.
    pub rows_read: usize,
    /// The rows dropped because a cell was missing.
    pub rows_dropped: usize,
    /// Per column, the missing cells that caused a dropped row.
    pub dropped_by: BTreeMap<String, usize>,
    /// Per column, the missing cells that were filled.
    pub filled: BTreeMap<String, usize>,
    /// Per column, the missing cells that were kept as a level of their own.
    pub kept_missing: BTreeMap<String, usize>,
}

impl ReadReport {
    /// Adds the report of another batch.
    pub fn add(&mut self, other: &Self) {
        self.rows_read += other.rows_read;
        self.rows_dropped += other.rows_dropped;
        let maps = [
            (&mut self.dropped_by, &other.dropped_by),
            (&mut self.filled, &other.filled),
            (&mut self.kept_missing, &other.kept_missing),
        ];
        for (counts, others) in maps {
            for (column, count) in others {
                *counts.entry(column.clone()).or_default() += count;
            }
        }
    }

    /// Rejects a file of which no row was kept.
    pub fn require_rows(&self, file: &Path) -> Result<()> {
        let problem = match self.rows_read {
            0 => "no rows below the header".to_owned(),
            all if all == self.rows_dropped => {
                format!("no rows left: all {all} have a missing cell and were dropped")
            }
            _ => return Ok(()),
        };
        Err(Error::Table { file: file.to_owned(), problem })
    }
}

/// Refuses a file with two columns of a name that the schema uses, unless the schema mentions the
/// second one by the name it got.
fn check_repeated(schema: &Schema, table: &Table) -> Result<()> {
    let split = match &schema.split {
        Split::Column { column, .. } => Some(column.as_str()),
        _ => None,
    };
    let is_used = |name: &str| {
        schema.position(name).is_some() || schema.label.column == name || split == Some(name)
    };
    for column in table.columns() {
        let name = column.name();
        let is_known = is_used(name) || schema.ignore.iter().any(|ignored| ignored == name);
        if let Some(written) = column.repeats().filter(|written| is_used(written) && !is_known) {
            return Err(Error::Table {
                file: table.source().to_owned(),
                problem: format!(
                    "column `{written}` appears twice in the header, and the schema does not say \
                     which one it means; the second is read as `{name}`: add `{name}` to `ignore` or \
                     to the features, or remove it from the file"
                ),
            });
        }
    }
    Ok(())
}

impl Schema {
    /// The value in the place of one that was read, and the policy for missing ones if it was
    /// missing. The error says what was expected.
    fn present<'a>(
        &'a self,
        feature: &'a Feature,
        value: Value,
    ) -> Result<(Value, Option<&'a MissingPolicy>), String> {
        if value != Value::Missing {
            return Ok((value, None));
        }
        let policy = self.missing_policy(feature);
        let value = match policy {
            MissingPolicy::Reject => {
                return Err(format!(
                    "{}; if missing cells are usual here, set `missing` in the schema",
                    self.expected(feature)
                ));
            }
            MissingPolicy::DropRow | MissingPolicy::Level | MissingPolicy::Pass => Value::Missing,
            MissingPolicy::Fill(value) => value.clone(),
        };
        Ok((value, Some(policy)))
    }

    /// One row of a source with types, from a cell for each feature. The error says what is wrong
    /// with which column; a row that a table would drop for a missing cell is an error too.
    /// `missing` are the [`missing_numbers`](Self::missing_numbers).
    pub(crate) fn row_of_cells<'a>(
        &self,
        missing: &[f64],
        cells: impl Iterator<Item = Cell<'a>>,
    ) -> Result<Row, String> {
        let mut values = Vec::with_capacity(self.features.len());
        for (feature, cell) in self.features.iter().zip(cells) {
            let name = &feature.name;
            let found = |expected: String| {
                let cell = shortened(&cell.to_string());
                format!("column `{name}`: found `{cell}`, expected {expected}")
            };
            let value = self.value_of(feature, missing, &cell).map_err(found)?;
            let (value, policy) = self.present(feature, value).map_err(found)?;
            if policy == Some(&MissingPolicy::DropRow) {
                return Err(format!(
                    "column `{name}`: it is missing, and the schema drops such rows"
                ));
            }
            values.push(value);
        }
        Ok(Row::from_checked(values))
    }
}

impl Rows {
    /// Reads the features of every row. The table may have more columns than the schema
    /// names; the label is not needed. A batch of a file may have no rows to keep, a whole
    /// table may not.
    pub fn read(schema: &Schema, table: &Table) -> Result<Self> {
        schema.validate()?;
        Self::read_valid(schema, table)
    }

    /// The same for a schema that was validated before.
    pub(crate) fn read_valid(schema: &Schema, table: &Table) -> Result<Self> {
        check_repeated(schema, table)?;
        let columns: Vec<(&Feature, &Column)> = schema
            .features
            .iter()
            .map(|feature| Ok((feature, table.column(&feature.name)?)))
            .collect::<Result<_>>()?;
        let mut read = Self {
            rows: Vec::with_capacity(table.rows()),
            table_rows: Vec::with_capacity(table.rows()),
            report: ReadReport { rows_read: table.rows(), ..ReadReport::default() },
        };
        for row in table.row_numbers() {
            read.add(schema, table, &columns, row)?;
        }
        // A single batch may have no rows.
        if table.is_whole() {
            read.report.require_rows(table.source())?;
        }
        Ok(read)
    }

    /// Reads one row and keeps it, unless the schema says to drop it.
    fn add(
        &mut self,
        schema: &Schema,
        table: &Table,
        columns: &[(&Feature, &Column)],
        row: usize,
    ) -> Result<()> {
        let mut values = Vec::with_capacity(columns.len());
        let mut missing = Vec::new();
        for &(feature, column) in columns {
            let value = schema
                .value_of_cell(feature, table.cell(row, column))
                .map_err(|expected| table.cell_error(row, column, expected))?;
            let (value, policy) = schema
                .present(feature, value)
                .map_err(|expected| table.cell_error(row, column, expected))?;
            values.push(value);
            missing.extend(policy.map(|policy| (policy, &feature.name)));
        }
        let drop = missing.iter().any(|(policy, _)| **policy == MissingPolicy::DropRow);
        for (policy, name) in missing {
            let counts = match policy {
                MissingPolicy::DropRow => &mut self.report.dropped_by,
                // A row that is dropped is neither filled nor kept.
                _ if drop => continue,
                MissingPolicy::Fill(_) => &mut self.report.filled,
                MissingPolicy::Level | MissingPolicy::Pass | MissingPolicy::Reject => {
                    &mut self.report.kept_missing
                }
            };
            *counts.entry(name.clone()).or_default() += 1;
        }
        if drop {
            self.report.rows_dropped += 1;
        } else {
            self.rows.push(Row::from_checked(values));
            self.table_rows.push(row);
        }
        Ok(())
    }
}
