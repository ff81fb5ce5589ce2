//! Rows in and documents out, as JSON and as Arrow.
//!
//! All formats of rows become the library's table of text, so that JSON, Arrow, files and Python
//! are read alike. An error in a row names its place: `rows[3].age`.

mod arrow;
mod asked;
mod json;

pub(crate) use arrow::{ARROW, read_arrow, write_arrow};
pub(crate) use asked::{Asked, wants_arrow};
pub(crate) use json::JsonRows;

use tyrex::data::schema::Split;
use tyrex::data::{Schema, Table, TableLimits};
use tyrex::explain::Applicant;

use crate::access::{Caller, Role};
use crate::config::Limits;
use crate::engine::Served;
use crate::engine::jobs::KeptRows;
use crate::problem::Problem;

/// Limits of an uploaded file's contents, independent of its size: in memory it takes at most two
/// gibibytes.
pub(crate) const UPLOADED: TableLimits =
    TableLimits { rows: 2_000_000, cells: 20_000_000, text: 256 << 20 };

/// The rows of a question: sent by the client, or the model's own.
#[derive(Debug, Clone)]
pub(crate) enum Rows {
    /// Rows sent by the client.
    Sent(Table),
    /// Rows of the model's own table.
    Own(Vec<usize>),
}

impl Rows {
    /// The rows of a question in either form. An answer about rows of the model's own data can
    /// reveal their values, so it needs the role that may see them.
    pub(crate) fn of(
        served: &Served,
        limits: &Limits,
        caller: &Caller,
        rows: Option<JsonRows>,
        indices: Option<Vec<usize>>,
        sent: Option<Table>,
    ) -> Result<Self, Problem> {
        let asked = match (rows, indices, sent) {
            (Some(rows), None, None) => {
                limits.check_rows("rows", rows.len())?;
                Self::Sent(rows.table(served.explainer().schema())?)
            }
            (None, Some(indices), None) => {
                caller.demand(Role::Explain).map_err(|problem| problem.at("indices"))?;
                limits.check_rows("indices", indices.len())?;
                Self::Own(indices)
            }
            (None, None, Some(table)) => {
                check_columns(served.explainer().schema(), &table)?;
                Self::Sent(table)
            }
            (None, None, None) => {
                let problem = "missing, expected rows of values or `indices` of the model's rows";
                return Err(Problem::field("rows", problem));
            }
            _ => {
                let problem = "found both, expected `rows` or `indices`";
                return Err(Problem::field("indices", problem));
            }
        };
        if asked.len() == 0 {
            return Err(Problem::field(asked.field(), "expected at least one row"));
        }
        Ok(asked)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Sent(table) => table.rows(),
            Self::Own(indices) => indices.len(),
        }
    }

    fn field(&self) -> &'static str {
        match self {
            Self::Sent(_) => "rows",
            Self::Own(_) => "indices",
        }
    }

    /// The rows as applicants.
    pub(crate) fn applicants(&self, served: &Served) -> Result<Vec<Applicant>, Problem> {
        match self {
            Self::Own(indices) => indices
                .iter()
                .enumerate()
                .map(|(place, &row)| {
                    served.applicant(row).ok_or_else(|| {
                        let problem = format!("the model has no row {row}");
                        Problem::field(format!("indices[{place}]"), problem)
                    })
                })
                .collect(),
            Self::Sent(table) => {
                let applicants = served.explainer().applicants().read(table)?;
                // The position of an answer is that of its row.
                let whole = |(place, applicant): (usize, &Applicant)| applicant.row == place;
                let kept = applicants.iter().enumerate().take_while(|each| whole(*each)).count();
                if kept == table.rows() {
                    return Ok(applicants);
                }
                let problem = "a value is missing, and the schema drops such rows";
                Err(Problem::field(format!("rows[{kept}]"), problem))
            }
        }
    }

    /// The same for a job to keep.
    pub(crate) fn kept(&self) -> KeptRows {
        match self {
            Self::Own(indices) => KeptRows::Indices(indices.clone()),
            Self::Sent(table) => KeptRows::of(table),
        }
    }
}

/// Whether a column that is not a feature is accepted: the label, and columns that the schema
/// ignores.
fn is_known(schema: &Schema, name: &str) -> bool {
    let split = matches!(&schema.split, Split::Column { column, .. } if column == name);
    split || schema.label.column == name || schema.ignore.iter().any(|ignored| ignored == name)
}

/// Rejects a table that lacks a feature or has an unknown column.
fn check_columns(schema: &Schema, table: &Table) -> Result<(), Problem> {
    let names = || table.columns().iter().map(tyrex::data::Column::name);
    for name in names() {
        if schema.position(name).is_none() && !is_known(schema, name) {
            return Err(unknown(schema, name).at(format!("rows.{name}")));
        }
    }
    for feature in &schema.features {
        if !names().any(|name| name == feature.name) {
            let problem = format!("missing, expected {}", schema.expected(feature));
            return Err(Problem::field(format!("rows.{}", feature.name), problem));
        }
    }
    Ok(())
}

/// The problem for a name that is not a feature.
fn unknown(schema: &Schema, name: &str) -> Problem {
    let known = schema.features.iter().map(|feature| feature.name.as_str());
    let nearest = tyrex::data::nearest_name(name, known);
    let hint = nearest.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Problem::unprocessable(format!("the model has no such feature{hint}"))
}
