//! Metrics of points, without a model.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use tyrex::metric::{LocalOutlierFactor, NeighbourIndex};

use crate::error::OrRaise;
use crate::network::points_of;
use crate::run::run;

/// Rows between two checks for Ctrl-C.
const ROWS: usize = 1024;

/// The local outlier factor of every point among the training points.
#[pyfunction]
pub(crate) fn local_outlier_factors<'py>(
    py: Python<'py>,
    training: PyReadonlyArray2<'_, f32>,
    points: PyReadonlyArray2<'_, f32>,
    neighbours: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let training = points_of(training).or_raise()?;
    let points = points_of(points).or_raise()?;
    let factors = run(py, None, |watch| {
        let index = NeighbourIndex::fit(&training, neighbours)?;
        let factor = LocalOutlierFactor::new(&index, neighbours)?;
        let mut factors = Vec::with_capacity(points.len());
        let rows: Vec<usize> = (0..points.len()).collect();
        for some in rows.chunks(ROWS) {
            if watch.go_on().is_break() {
                break;
            }
            factors.extend(factor.of(&points.select(some))?);
        }
        Ok(factors)
    })?;
    Ok(factors.whole()?.or_raise()?.into_pyarray(py))
}
