//! Black boxes: Python functions of rows as models of points.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyList;
use tyrex::Points;
use tyrex::data::encode::Coding;
use tyrex::data::{Encoder, Row, Value};
use tyrex::model::{DifferentiableModel, Model};

use crate::error;

/// The first exception that a function raised. A model cannot return an error, so the caller checks
/// this.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    happened: AtomicBool,
    exception: Mutex<Option<PyErr>>,
    /// Held by the call that owns the failure: calls take turns.
    turn: Mutex<()>,
}

impl Failure {
    /// Waits for the turn of this call; Ctrl-C ends the wait.
    pub(crate) fn turn(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, ()>> {
        loop {
            match self.turn.try_lock() {
                Ok(turn) => return Ok(turn),
                Err(TryLockError::Poisoned(turn)) => return Ok(turn.into_inner()),
                Err(TryLockError::WouldBlock) => {
                    py.detach(|| std::thread::sleep(Duration::from_millis(2)));
                    py.check_signals()?;
                }
            }
        }
    }

    pub(crate) fn happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }

    /// Takes the exception, if there was one.
    pub(crate) fn take(&self) -> Option<PyErr> {
        let exception = self.exception.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.happened.store(false, Ordering::Relaxed);
        exception
    }

    fn keep(&self, exception: PyErr) {
        let mut kept = self.exception.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(exception);
        self.happened.store(true, Ordering::Relaxed);
    }
}

/// `scores(columns) -> array` and `gradients(columns) -> matrix`, as models of encoded points.
///
/// `columns` has one array per feature: the numbers, or the positions of the levels in the schema,
/// -1 for a missing one. `scores` also gets a flag for points of a search, which may be far from
/// any row.
pub(crate) struct Function {
    scores: Py<PyAny>,
    gradients: Option<Py<PyAny>>,
    encoder: Encoder,
    failure: Arc<Failure>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("features", &self.encoder.features())
            .finish_non_exhaustive()
    }
}

impl Function {
    /// The model. Gradients are only useful if every feature is a number.
    pub(crate) fn new(
        scores: Py<PyAny>,
        gradients: Option<Py<PyAny>>,
        encoder: &Encoder,
        failure: Arc<Failure>,
    ) -> tyrex::Result<Self> {
        let level = encoder.blocks().iter().find(|block| {
            !matches!(block.coding, Coding::Number { .. }) || !block.beside.is_empty()
        });
        if let (Some(block), Some(_)) = (level, &gradients) {
            return Err(tyrex::Error::InvalidModel(format!(
                "a gradient needs numeric features only, but `{}` is not numeric; pass the \
                 function alone",
                block.feature
            )));
        }
        Ok(Self { scores, gradients, encoder: encoder.clone(), failure })
    }

    /// The columns of rows, as the functions take them.
    fn columns<'py>(&self, py: Python<'py>, rows: &[&[Value]]) -> PyResult<Bound<'py, PyList>> {
        let mut columns: Vec<Option<Bound<'py, PyAny>>> = vec![None; self.encoder.features().len()];
        for (block, _, feature) in self.encoder.placed() {
            let cells = rows.iter().map(|row| &row[feature]);
            let column = match &block.coding {
                Coding::Number { .. } => {
                    let numbers: Vec<f64> =
                        cells.map(|value| value.number().unwrap_or(f64::NAN)).collect();
                    numbers.into_pyarray(py).into_any()
                }
                Coding::Code { levels, .. } | Coding::OneHot { levels, .. } => {
                    let place = |value: &Value| levels.iter().position(|level| level == value);
                    let places: Vec<i64> =
                        cells.map(|value| place(value).map_or(-1, |place| place as i64)).collect();
                    places.into_pyarray(py).into_any()
                }
            };
            columns[feature] = Some(column);
        }
        PyList::new(py, columns)
    }

    /// The columns of decoded points.
    fn columns_of<'py>(&self, py: Python<'py>, points: &Points) -> PyResult<Bound<'py, PyList>> {
        let rows: Vec<Vec<Value>> =
            points.rows().map(|point| self.encoder.decode_freely(point)).collect();
        self.columns(py, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Calls Python. After a failure no more calls are made until the failure is taken.
    fn ask(&self, work: impl FnOnce(Python<'_>) -> PyResult<()>) {
        if self.failure.happened() {
            return;
        }
        if let Err(exception) = Python::attach(work) {
            self.failure.keep(exception);
        }
    }

    fn read_scores(
        &self,
        py: Python<'_>,
        columns: Bound<'_, PyList>,
        are_neighbours: bool,
        scores: &mut [f32],
    ) -> PyResult<()> {
        let answer = self.scores.bind(py).call1((columns, are_neighbours))?;
        let answer: PyReadonlyArray1<'_, f64> = answer.extract()?;
        let answer = answer.as_array();
        check_length(answer.len(), scores.len())?;
        scores.iter_mut().zip(answer).for_each(|(score, &own)| *score = own as f32);
        Ok(())
    }

    fn read_gradients(
        &self,
        py: Python<'_>,
        points: &Points,
        cotangents: &[f32],
        gradients: &mut Points,
    ) -> PyResult<()> {
        let Some(function) = &self.gradients else { return Ok(()) };
        let answer = function.bind(py).call1((self.columns_of(py, points)?,))?;
        let answer: PyReadonlyArray2<'_, f64> = answer.extract()?;
        let answer = answer.as_array();
        check_length(answer.nrows(), points.len())?;
        check_length(answer.ncols(), self.encoder.features().len())?;
        for (block, columns, feature) in self.encoder.placed() {
            // z = (x - offset) scale, so dm/dz = dm/dx / scale.
            let Coding::Number { affine, .. } = &block.coding else { continue };
            for row in 0..points.len() {
                let slope = answer[[row, feature]] / affine.scale;
                gradients.row_mut(row)[columns.start] = cotangents[row] * slope as f32;
            }
        }
        Ok(())
    }
}

fn check_length(got: usize, expected: usize) -> PyResult<()> {
    if got == expected {
        return Ok(());
    }
    Err(error::exception(tyrex::Error::InvalidModel(format!(
        "the function returned {got} numbers, expected {expected}"
    ))))
}

impl Model for Function {
    fn dim(&self) -> usize {
        self.encoder.dim()
    }

    fn score_into(&self, points: &Points, scores: &mut [f32]) {
        scores.fill(0.0);
        self.ask(|py| self.read_scores(py, self.columns_of(py, points)?, true, scores));
    }

    fn score_rows(&self, rows: &[Row]) -> Option<Vec<f32>> {
        let mut scores = vec![0.0; rows.len()];
        let rows: Vec<&[Value]> = rows.iter().map(Row::values).collect();
        self.ask(|py| self.read_scores(py, self.columns(py, &rows)?, false, &mut scores));
        Some(scores)
    }

    fn differentiable(&self) -> Option<&dyn DifferentiableModel> {
        self.gradients.as_ref().map(|_| self as &dyn DifferentiableModel)
    }
}

impl DifferentiableModel for Function {
    fn vjp_into(
        &self,
        points: &Points,
        cotangents: &[f32],
        scores: &mut [f32],
        gradients: &mut Points,
    ) {
        scores.fill(0.0);
        gradients.as_mut_slice().fill(0.0);
        self.ask(|py| {
            self.read_scores(py, self.columns_of(py, points)?, true, scores)?;
            self.read_gradients(py, points, cotangents, gradients)
        });
    }
}
