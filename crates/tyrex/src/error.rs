//! The error type of the crate. Every variant says where the error is, what it is, and what was
//! expected.

use std::path::{Path, PathBuf};

/// The result of anything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error, grouped by concept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a file or folder.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted operation, as a verb: "read", "write", "create".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// An output file already exists and overwriting was not requested.
    #[error("{} exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// One cell of a table does not fit its column.
    #[error("{}, row {row}, column `{column}`: found `{value}`, expected {expected}", file.display())]
    Cell {
        /// The file read.
        file: PathBuf,
        /// The data row, counted from 0 without the header.
        row: usize,
        /// The column's name.
        column: String,
        /// The cell's text.
        value: String,
        /// The accepted values.
        expected: String,
    },
    /// A table as a whole is unusable: no rows, a missing column, one class only.
    #[error("{}: {problem}", file.display())]
    Table {
        /// The file read.
        file: PathBuf,
        /// The problem and the expected content.
        problem: String,
    },
    /// A schema contradicts itself, or does not fit the data or the model.
    #[error("schema{}: {problem}", feature.as_ref().map(|f| format!(", feature `{f}`")).unwrap_or_default())]
    Schema {
        /// The feature concerned, where there is one.
        feature: Option<String>,
        /// The problem and the expected content.
        problem: String,
    },
    /// A schema file cannot be read as a schema.
    #[error("{}: {problem}", file.display())]
    SchemaFile {
        /// The schema file.
        file: PathBuf,
        /// The problem and the expected content.
        problem: String,
    },
    /// A parameter is outside its range.
    #[error("parameter `{name}` is {value}, expected {expected}")]
    Param {
        /// The parameter's name, as the user writes it.
        name: &'static str,
        /// The value given.
        value: String,
        /// The values accepted.
        expected: String,
    },
    /// A field of a question is unknown or has an invalid value.
    #[error("parameter `{name}`: {problem}")]
    Field {
        /// The path of the field, as in `budget.seconds` or `keep[2]`.
        name: String,
        /// The problem and the expected content.
        problem: String,
    },
    /// A file of parameters cannot be read as parameters.
    #[error("{}: {problem}", file.display())]
    ParamFile {
        /// The file.
        file: PathBuf,
        /// The problem and the expected content.
        problem: String,
    },
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, got {got}")]
    Dimension {
        /// Which size.
        what: String,
        /// The size it must have.
        expected: usize,
        /// The size it has.
        got: usize,
    },
    /// A model file cannot be read as a model.
    #[error("{}: {problem}", file.display())]
    Model {
        /// The model file.
        file: PathBuf,
        /// The problem, with operator and node if they are known.
        problem: String,
    },
    /// A model is inconsistent, and did not come from a file.
    #[error("model: {0}")]
    InvalidModel(String),
    /// Training cannot start or did not converge.
    #[error("training: {0}")]
    Training(String),
    /// The caller stopped the work before it was done.
    #[error("cancelled: {0}")]
    Cancelled(String),
    /// A named data set is unknown or not on this machine.
    #[error("data set `{name}`: {problem}")]
    Catalogue {
        /// The requested name.
        name: String,
        /// The problem and the remedy.
        problem: String,
    },
    /// A download failed.
    #[error("download of {url}: {problem}")]
    Download {
        /// The address.
        url: String,
        /// The problem.
        problem: String,
    },
}

/// The beginning of a long cell.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A value for a message. Numbers that would take hundreds of digits have an exponent.
pub(crate) fn brief(value: impl std::fmt::Display) -> String {
    let text = value.to_string();
    match text.parse::<f64>() {
        Ok(number) if text.len() > 24 => format!("{number:e}"),
        _ => text,
    }
}

/// The text with long lines cut: an error may quote a very long line of a file.
pub fn in_short_lines(text: &str) -> String {
    let cut = |line: &str| {
        // Lines of the file begin with a bar; the others describe the error.
        let shown = if line.contains(" | ") { 120 } else { 400 };
        match line.char_indices().nth(shown) {
            Some((end, _)) => format!("{}...", &line[..end]),
            None => line.to_owned(),
        }
    };
    text.trim_end().lines().map(cut).collect::<Vec<_>>().join("\n")
}

impl Error {
    /// An [`Error::Io`], for `map_err`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// An [`Error::Param`].
    pub fn param(
        name: &'static str,
        value: impl std::fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Param { name, value: brief(value), expected: expected.into() }
    }

    /// An [`Error::Field`].
    pub fn field(name: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { name: name.into(), problem: problem.into() }
    }

    /// An [`Error::Schema`] about one feature.
    pub(crate) fn feature(feature: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Schema { feature: Some(feature.into()), problem: problem.into() }
    }

    /// An [`Error::Schema`] about the schema as a whole.
    pub fn schema(problem: impl Into<String>) -> Self {
        Self::Schema { feature: None, problem: problem.into() }
    }
}
