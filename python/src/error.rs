//! From the library's errors to Python's: one class per kind.

use std::io::ErrorKind;

use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyKeyboardInterrupt, PyOSError, PyPermissionError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use tyrex::Error;

/// The classes of `tyrex.errors`, which Python defines.
fn raise(class: &'static PyClassCell, name: &str, message: String) -> PyErr {
    Python::attach(|py| match class.import(py, "tyrex.errors", name) {
        Ok(class) => PyErr::from_type(class.clone(), message),
        Err(error) => error,
    })
}

type PyClassCell = PyOnceLock<Py<PyType>>;

static DATA: PyClassCell = PyOnceLock::new();
static SCHEMA: PyClassCell = PyOnceLock::new();
static PARAMETER: PyClassCell = PyOnceLock::new();
static MODEL: PyClassCell = PyOnceLock::new();

/// The exception for an error of the library.
pub(crate) fn exception(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Io { source, .. } => match source.kind() {
            ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
            ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
            _ => PyOSError::new_err(message),
        },
        Error::Download { .. } => PyOSError::new_err(message),
        Error::Exists { .. } => PyFileExistsError::new_err(message),
        Error::Cancelled(_) => PyKeyboardInterrupt::new_err(message),
        Error::Schema { .. } | Error::SchemaFile { .. } => raise(&SCHEMA, "SchemaError", message),
        Error::Param { .. } | Error::Field { .. } | Error::ParamFile { .. } => {
            raise(&PARAMETER, "ParameterError", message)
        }
        Error::Model { .. } | Error::InvalidModel(_) => raise(&MODEL, "ModelError", message),
        _ => raise(&DATA, "DataError", message),
    }
}

/// A [`ParameterError`](exception) of the binding's own.
pub(crate) fn parameter(message: impl Into<String>) -> PyErr {
    raise(&PARAMETER, "ParameterError", message.into())
}

/// `?` from the library's results to Python's.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for tyrex::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(exception)
    }
}

/// A JSON document for Python, which parses it with `json`.
pub(crate) fn json(document: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(document)
        .map_err(|error| parameter(format!("numbers that JSON cannot hold: {error}")))
}

/// Parameters from Python, as JSON.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| {
        // A position in a generated text is meaningless to the user.
        let problem = error.to_string();
        let problem = problem.split(" at line ").next().unwrap_or_default();
        parameter(format!("{what}: {problem}"))
    })
}
