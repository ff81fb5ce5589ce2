//! A network without a schema, for the scikit-learn classifier.

use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use tyrex::model::onnx::{ExportMetadata, write};
use tyrex::model::train::{EpochReport, Job};
use tyrex::model::{Dense, Examples, Mlp, Model as _, Output, TrainParams};
use tyrex::{Error, Points, Seed};

use crate::error::{self, OrRaise};
use crate::model::bytes;
use crate::run::run;

/// A stack of dense layers.
#[pyclass(frozen, module = "tyrex._native")]
#[derive(Debug)]
pub(crate) struct Network(Mlp);

/// Rows to learn from: their cells, labels and weights.
type Rows<'py> =
    (PyReadonlyArray2<'py, f32>, PyReadonlyArray1<'py, u32>, Option<PyReadonlyArray1<'py, f32>>);
/// A layer for pickling: its activation as JSON, its weights and its bias as bytes.
type Layer<'py> = (String, Bound<'py, PyBytes>, Bound<'py, PyBytes>);
/// The arguments of [`Network::new`].
type Parts<'py> = (usize, Vec<Layer<'py>>, String);

#[pymethods]
impl Network {
    /// A network from its pickled parts. An ONNX file would not be exact: its reader may merge
    /// equal neurons.
    #[new]
    fn new(width: usize, layers: Vec<Layer<'_>>, output: &str) -> PyResult<Self> {
        let layer = |(activation, weights, bias): Layer<'_>| {
            Ok(Dense {
                weights: numbers(&weights),
                bias: numbers(&bias),
                activation: error::from_json("the activation of a layer", &activation)?,
            })
        };
        let layers: Vec<Dense> = layers.into_iter().map(layer).collect::<PyResult<_>>()?;
        let output = error::from_json("the output of a network", output)?;
        Mlp::new(width, &layers, output).or_raise().map(Self)
    }

    /// Trains a network on encoded rows, their labels and their weights, if they have any. `start`
    /// is a network to continue from. Returns the network, every epoch as JSON, and the epoch whose
    /// weights were kept.
    #[staticmethod]
    #[pyo3(signature = (examples, params, seed, start = None, progress = None))]
    fn train(
        py: Python<'_>,
        examples: Rows<'_>,
        params: &str,
        seed: u64,
        start: Option<&Self>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Self, String, usize)> {
        let params: TrainParams = error::from_json("training parameters", params)?;
        let (points, labels, weights) = examples;
        let points = points_of(points).or_raise()?;
        let labels: Vec<u32> = labels.as_array().iter().copied().collect();
        let weights: Option<Vec<f32>> =
            weights.map(|weights| weights.as_array().iter().copied().collect());
        let trained = run(py, progress, |watch| {
            watch.expect(params.epochs);
            let mut examples = Examples::new(&points, &labels);
            examples.weights = weights.as_deref();
            let job = Job {
                start: start.map(|network| &network.0),
                ..Job::new(examples, &params, Seed(seed))
            };
            job.run(|_: &EpochReport| watch.count())
        })?;
        let trained = trained.whole()?.or_raise()?;
        Ok((Self(trained.network), error::json(&trained.history)?, trained.kept_epoch))
    }

    /// The probability of every class, a line per row. With one logit these are the two classes.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'_, f32>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let points = points_of(points).or_raise()?;
        if points.dim() != self.0.dim() {
            let what = "columns, as many as the network takes".to_owned();
            let (expected, got) = (self.0.dim(), points.dim());
            return Err(error::exception(Error::Dimension { what, expected, got }));
        }
        let rows = points.len();
        let shares = run(py, None, |_| self.0.probabilities(&points))?.whole()?;
        shares.into_pyarray(py).reshape([rows, self.0.classes().max(2)])
    }

    /// The network as an ONNX file for the probability of one class; of the last without a number.
    #[pyo3(signature = (favourable = None))]
    fn to_onnx<'py>(
        &self,
        py: Python<'py>,
        favourable: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let metadata = ExportMetadata::default();
        let Some(favourable) = favourable else { return Ok(bytes(py, &write(&self.0, &metadata))) };
        let classes = self.0.classes().max(2);
        if favourable >= classes {
            return Err(error::parameter(format!(
                "parameter `favourable` is {favourable}, expected a class below {classes}"
            )));
        }
        let output = match self.0.output() {
            Output::Sigmoid { .. } => Output::Sigmoid { favourable: favourable == 1 },
            Output::Softmax { .. } => Output::Softmax { favourable },
        };
        let network = Mlp::new(self.0.dim(), &self.0.layers(), output).or_raise()?;
        Ok(bytes(py, &write(&network, &metadata)))
    }

    /// The number of columns it takes.
    #[getter]
    fn width(&self) -> usize {
        self.0.dim()
    }

    /// The number of weights and biases.
    #[getter]
    fn parameters(&self) -> usize {
        self.0.parameters()
    }

    /// The fingerprint of the network, which depends on its weights.
    #[getter]
    fn fingerprint(&self) -> String {
        self.0.fingerprint().to_string()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, Parts<'py>)> {
        let (py, network) = (slf.py(), &slf.get().0);
        let layer = |layer: &Dense| {
            let numbers = |numbers: &[f32]| {
                let all: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                bytes(py, &all)
            };
            let activation = error::json(&layer.activation)?;
            Ok((activation, numbers(&layer.weights), numbers(&layer.bias)))
        };
        let layers = network.layers().iter().map(layer).collect::<PyResult<_>>()?;
        Ok((slf.get_type(), (network.dim(), layers, error::json(&network.output())?)))
    }
}

fn numbers(bytes: &Bound<'_, PyBytes>) -> Vec<f32> {
    let (numbers, _) = bytes.as_bytes().as_chunks();
    numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

/// A matrix as points, a row each.
#[expect(clippy::needless_pass_by_value, reason = "the borrow of the array ends here")]
pub(crate) fn points_of(matrix: PyReadonlyArray2<'_, f32>) -> tyrex::Result<Points> {
    let matrix = matrix.as_array();
    Points::from_rows(matrix.ncols(), matrix.iter().copied().collect())
}
