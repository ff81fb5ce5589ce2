//! Tables, schemas and encoders: from the rows of a file to the points of a model.
//!
//! A file is a [`Table`] of text. A [`Schema`] describes its columns and turns it into [`Row`]s of
//! values in their own units. An [`Encoder`] turns a row into a [`Point`](crate::Point), the input
//! of a model, and back. A [`Dataset`] is all of them together, with labels and a split.

pub mod catalogue;
mod cell;
mod csv;
pub mod dataset;
pub mod encode;
pub mod fetch;
pub mod infer;
mod input;
mod jsonl;
pub mod limits;
pub mod moons;
mod number;
mod parquet;
pub mod reader;
pub mod rows;
pub mod schema;
pub mod table;
pub mod value;
pub mod writer;

pub use catalogue::Catalogue;
pub use cell::Cell;
pub(crate) use cell::listed;
pub use dataset::Dataset;
pub use encode::Encoder;
pub use infer::{Hints, Inferred};
pub(crate) use infer::{is_drafted, is_drafted_rule};
pub use limits::TableLimits;
pub(crate) use number::Step;
pub use reader::TableReader;
pub use rows::{ReadReport, Rows};
pub use schema::{Feature, FeatureKind, Schema};
pub use table::{Column, Content, Table};
#[cfg(feature = "openapi")]
pub use value::FeatureValue;
pub use value::{Row, Value, nearest_name};
pub use writer::{CellFormat, TableWriter};
