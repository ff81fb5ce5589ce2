//! Work on record batches: each row of a batch gets a line, whatever batch it is in.

use std::sync::Arc;

use arrow_array::RecordBatch;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tyrex::Error;
use tyrex::data::{Cell, Content};
use tyrex::explain::Applicant;

use crate::adviser::{self, Files, Models, Question};
use crate::arrow::{Batch, Reader, readers, written};
use crate::certify::Certification;
use crate::ensemble::Ensemble;
use crate::error::{self, OrRaise};
use crate::explainer::{Explainer, run_with};
use crate::function::Failure;
use crate::gate::Judgement;
use crate::run::{Ended, Watch};
use crate::stability::Measurement;

/// The column of what is wrong with a row.
const ERROR: &str = "error";

/// The line of a row, or what is wrong with the row.
pub(crate) type Line = Result<Vec<Cell<'static>>, String>;

/// Something that gives every row a line. The line does not depend on the other rows.
pub(crate) trait Work: Send + Sync {
    /// The columns of the input, by name.
    fn inputs(&self) -> Vec<&str>;
    /// Another column of the input, which is read after them if it is there.
    fn further(&self) -> Option<&str> {
        None
    }
    /// The columns of the lines. The first is the number of the row.
    fn columns(&self) -> tyrex::Result<Vec<(String, Content)>>;
    /// The lines of some rows, in their order, after the first cell; `cells` are the inputs.
    fn lines(&self, rows: usize, cells: &[Reader<'_>], watch: &Watch) -> tyrex::Result<Vec<Line>>;
    /// The failures of functions in Python that the work calls.
    fn failures(&self) -> Vec<Arc<Failure>>;
    /// The place of the column that says `error` where a row has one.
    fn status(&self) -> Option<usize> {
        None
    }
    /// The retrained models of the work, if some were made for it.
    fn models(&self) -> Option<&Models> {
        None
    }
    /// The question, as JSON.
    fn question(&self) -> PyResult<String> {
        Ok("null".to_owned())
    }
    /// Sets the end of the promises that lines carry, if they carry some.
    fn renew(&self, _until: &str) -> PyResult<()> {
        Ok(())
    }
}

/// The rows of a batch as applicants, and the lines that `answer` gives those that can be read.
pub(crate) fn by_applicant(
    explainer: &tyrex::Explainer,
    rows: usize,
    cells: &[Reader<'_>],
    answer: impl FnOnce(&[Applicant]) -> tyrex::Result<Vec<Vec<Cell<'static>>>>,
) -> tyrex::Result<Vec<Line>> {
    let cell = |row: usize, feature: usize| cells[feature](row);
    let read = explainer.applicants().read_cells(0, rows, cell);
    let applicants: Vec<Applicant> = read.iter().flatten().cloned().collect();
    let mut answers = answer(&applicants)?.into_iter();
    Ok(read.into_iter().map(|read| read.map(|_| answers.next().unwrap_or_default())).collect())
}

/// The names of the features.
pub(crate) fn features(explainer: &tyrex::Explainer) -> Vec<&str> {
    explainer.schema().features.iter().map(|feature| feature.name.as_str()).collect()
}

/// Work on batches, prepared once.
#[pyclass(frozen, module = "tyrex._native")]
pub(crate) struct Batchwise {
    work: Box<dyn Work>,
    columns: Vec<(String, Content)>,
}

impl Batchwise {
    fn new(work: Box<dyn Work>) -> tyrex::Result<Self> {
        let columns = with_error(work.columns()?)?;
        Ok(Self { work, columns })
    }

    /// The lines of the rows of a batch. An exception of a function in Python, which the work calls
    /// with many rows, is the problem of the rows that it cannot take, so the batch is halved until
    /// each of these is alone. No line depends on the other rows.
    fn lines(&self, py: Python<'_>, batch: &RecordBatch) -> PyResult<Vec<Line>> {
        let rows = batch.num_rows();
        let failures = self.work.failures();
        let is_there = |name: &&str| batch.column_by_name(name).is_some();
        let further = self.work.further().filter(is_there);
        let cells = readers(batch, self.work.inputs().into_iter().chain(further))?;
        let answered = run_with(py, &failures, None, |watch| {
            let lines = self.work.lines(rows, &cells, watch)?;
            // Lines of work that was interrupted are not given out.
            if watch.go_on().is_break() {
                return Err(Error::Cancelled("the rows were not answered".to_owned()));
            }
            Ok(lines)
        });
        let answered = answered.and_then(Ended::whole);
        match answered {
            Err(error) if failures.is_empty() || !error.is_instance_of::<PyException>(py) => {
                Err(error)
            }
            Err(error) if rows == 1 => Ok(vec![Err(error.to_string())]),
            Err(_) if rows > 1 => {
                let mut lines = self.lines(py, &batch.slice(0, rows / 2))?;
                lines.extend(self.lines(py, &batch.slice(rows / 2, rows - rows / 2))?);
                Ok(lines)
            }
            other => other,
        }
    }
}

/// The columns, then that of the error.
fn with_error(mut columns: Vec<(String, Content)>) -> tyrex::Result<Vec<(String, Content)>> {
    columns.push((ERROR.to_owned(), Content::Text));
    for (place, (name, _)) in columns.iter().enumerate() {
        if columns[..place].iter().any(|(other, _)| other == name) {
            let problem = "the answers have a column of this name; rename the feature";
            return Err(Error::Schema { feature: Some(name.clone()), problem: problem.to_owned() });
        }
    }
    Ok(columns)
}

#[pymethods]
impl Batchwise {
    /// A question. `models` are the sets of [`models`](Self::models), with what is known of the
    /// model's likeness to them, in place of models retrained now. `promises` are the end, `for-good`
    /// or a time, and the salt, if answers carry promises.
    #[staticmethod]
    #[pyo3(signature = (explainer, options, training = None, ensemble = None, models = None, promises = None, progress = None))]
    fn adviser(
        py: Python<'_>,
        explainer: &Explainer,
        options: &str,
        training: Option<&str>,
        ensemble: Option<&Ensemble>,
        models: Option<Files<Vec<u8>>>,
        promises: Option<(String, String)>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let question =
            Question::new(py, explainer, options, training, ensemble, models, promises, progress)?;
        Self::new(Box::new(question)).map_err(error::exception)
    }

    /// Measures of stability.
    #[staticmethod]
    fn stability(py: Python<'_>, explainer: &Explainer, terms: &str, seed: u64) -> PyResult<Self> {
        let work = Measurement::new(py, explainer, terms, seed)?;
        Self::new(Box::new(work)).map_err(error::exception)
    }

    /// Certificates of rows. `steered` says whether the search used the models of the ensemble.
    #[staticmethod]
    #[pyo3(signature = (explainer, ensemble, steered, terms, seed))]
    fn certifier(
        py: Python<'_>,
        explainer: &Explainer,
        ensemble: Option<&Ensemble>,
        steered: Option<bool>,
        terms: &str,
        seed: u64,
    ) -> PyResult<Self> {
        let work = Certification::new(py, explainer, ensemble, steered, terms, seed)?;
        Self::new(Box::new(work)).map_err(error::exception)
    }

    /// Judgements of promises under a model.
    #[staticmethod]
    #[pyo3(signature = (explainer, options, ensemble = None))]
    fn auditor(
        py: Python<'_>,
        explainer: &Explainer,
        options: &str,
        ensemble: Option<&Ensemble>,
    ) -> PyResult<Self> {
        let work = Judgement::new(py, explainer, options, ensemble)?;
        Self::new(Box::new(work)).map_err(error::exception)
    }

    /// The models that were retrained for the question, to prepare it elsewhere: what is known of
    /// their likeness, and the files of each set. None if it has none.
    fn models<'py>(&self, py: Python<'py>) -> PyResult<Option<Files<Bound<'py, PyBytes>>>> {
        let Some(models) = self.work.models() else { return Ok(None) };
        let (likeness, sets) = models.written()?;
        let bytes = |set: Vec<Vec<u8>>| set.iter().map(|own| PyBytes::new(py, own)).collect();
        Ok(Some((likeness, sets.into_iter().map(bytes).collect())))
    }

    /// The question, with its promise and its method, as JSON.
    #[getter]
    fn question(&self) -> PyResult<String> {
        self.work.question()
    }

    /// A batch without rows, with the columns of all answers.
    fn schema(&self) -> PyResult<Batch> {
        written(&self.columns, &[])
    }

    /// The columns of the answers to a question: a batch without rows.
    #[staticmethod]
    #[pyo3(signature = (explainer, options, training = None, ensemble = None, promises = false))]
    fn answer_columns(
        explainer: &Explainer,
        options: &str,
        training: Option<&str>,
        ensemble: Option<&Ensemble>,
        promises: bool,
    ) -> PyResult<Batch> {
        let columns = adviser::answer_columns(explainer, options, training, ensemble, promises)?;
        written(&with_error(columns).or_raise()?, &[])
    }

    /// Sets the end of the promises that answers carry from here on: `for-good` or a time.
    fn renew(&self, until: &str) -> PyResult<()> {
        self.work.renew(until)
    }

    /// The lines of the rows of a batch, in their order. `first` is the number of the first row;
    /// without it rows have no numbers. The line of a row that cannot be read says so.
    #[pyo3(signature = (batch, first = None))]
    fn answer(&self, py: Python<'_>, batch: &Batch, first: Option<usize>) -> PyResult<Batch> {
        let width = self.columns.len();
        let line = |(row, line): (usize, Line)| {
            let mut line = line.unwrap_or_else(|problem| {
                let mut line = vec![Cell::Empty; width];
                if let Some(status) = self.work.status() {
                    line[status] = Cell::text(ERROR);
                }
                line[width - 1] = Cell::text(problem);
                line
            });
            line.resize(width, Cell::Empty);
            line[0] = first.map_or(Cell::Empty, |first| Cell::Integer((first + row) as i64));
            line
        };
        let lines = self.lines(py, &batch.0)?;
        written(&self.columns, &lines.into_iter().enumerate().map(line).collect::<Vec<_>>())
    }
}
