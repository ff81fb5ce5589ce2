//! Schemas, and rows read through them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyType;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::data::schema::{Missing, MissingPolicy, ModelInput, Note};
use tyrex::data::{Catalogue, Dataset, Feature, FeatureKind, Hints, Value};
use tyrex::explain::{ChangeWords, FeatureChange, Reference as Rows, UnlabelledRows};

use crate::error::{self, OrRaise};
use crate::table::Table;

/// The feature of a remark, if it has one, and the remark.
type Remark = (Option<String>, String);

/// A schema: the meaning of the columns of a table.
#[pyclass(frozen, module = "tyrex._native")]
#[derive(Debug)]
pub(crate) struct Schema(pub(crate) tyrex::data::Schema);

#[pymethods]
impl Schema {
    /// A schema from its TOML.
    #[new]
    fn new(toml: &str) -> PyResult<Self> {
        tyrex::data::Schema::from_toml(toml).or_raise().map(Self)
    }

    /// A schema from the JSON that `to_json` gives.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let schema: tyrex::data::Schema = serde_json::from_str(text)
            .map_err(|error| error::exception(tyrex::Error::schema(error.to_string())))?;
        schema.validate().or_raise()?;
        Ok(Self(schema))
    }

    /// Reads a schema file.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        tyrex::data::Schema::read(&path).or_raise().map(Self)
    }

    /// A draft of a schema from a table, and remarks for a person to review, as `tyrex schema infer`
    /// writes it. `kinds` has the known kinds of columns: `numeric`, `integer`, `ordinal`,
    /// `categorical`, `flag` or `text`, and the levels; `features` the columns that a model takes.
    #[staticmethod]
    #[pyo3(signature = (table, label, favourable, kinds, features))]
    fn infer(
        table: &Table,
        label: Option<&str>,
        favourable: Vec<String>,
        kinds: Vec<(String, String, Vec<Level>)>,
        features: Option<Vec<String>>,
    ) -> PyResult<(Self, Vec<Remark>)> {
        let favourable: Vec<Value> = favourable.iter().map(|text| Value::of_text(text)).collect();
        let kinds = kinds.into_iter().map(|(name, kind, levels)| Ok((name, known(&kind, levels)?)));
        let kinds: Vec<(String, Option<FeatureKind>)> = kinds.collect::<PyResult<_>>()?;
        let kinds = kinds.into_iter().filter_map(|(name, kind)| Some((name, kind?)));
        let hints = Hints { kinds: kinds.collect(), features };
        let inferred =
            tyrex::data::Schema::draft(&table.0, label, &favourable, &hints).or_raise()?;
        let remark = |note: Note| (note.feature, note.text);
        Ok((Self(inferred.schema), inferred.notes.into_iter().map(remark).collect()))
    }

    /// The same, for a model that takes the raw columns and encodes them itself; if `passes`, also
    /// missing numbers that would be levels.
    fn for_raw_columns(&self, passes: bool) -> Self {
        let mut schema = self.0.clone();
        schema.model.input = ModelInput::Raw;
        for feature in &mut schema.features {
            if passes && feature.kind.is_number() && feature.missing == Some(MissingPolicy::Level) {
                feature.missing = Some(MissingPolicy::Pass);
            }
        }
        Self(schema)
    }

    /// The features, in the order of a row.
    #[getter]
    fn features(&self) -> Vec<&str> {
        self.0.features.iter().map(|feature| feature.name.as_str()).collect()
    }

    /// The levels of a feature as texts; none for numbers.
    fn levels(&self, feature: &str) -> Vec<String> {
        let position = self.0.position(feature);
        let levels = position.map(|position| self.0.features[position].kind.levels());
        levels.unwrap_or_default().iter().map(Value::to_string).collect()
    }

    /// The values of the label that count as favourable, as texts.
    #[getter]
    fn favourable(&self) -> Vec<String> {
        self.0.label.favourable.iter().map(Value::to_string).collect()
    }

    /// The column to predict.
    #[getter]
    fn label(&self) -> &str {
        &self.0.label.column
    }

    /// The schema as TOML.
    fn to_toml(&self) -> PyResult<String> {
        self.0.to_toml().or_raise()
    }

    /// The schema as JSON.
    fn to_json(&self) -> PyResult<String> {
        error::json(&self.0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, (String,))> {
        Ok((slf.get_type(), (slf.get().to_toml()?,)))
    }
}

/// A level as Python has it: a text stays a text, even if it looks like a number.
#[derive(Debug, FromPyObject)]
pub(crate) enum Level {
    Text(String),
    Number(f64),
}

impl From<Level> for Value {
    fn from(level: Level) -> Self {
        match level {
            Level::Text(text) => Self::Text(text),
            Level::Number(number) => Self::Number(number),
        }
    }
}

/// A change in words: `from`, `to` and `clause`.
#[pyfunction]
#[pyo3(signature = (feature, before, after, unit=None))]
pub(crate) fn change_words(
    feature: &str,
    before: Option<Level>,
    after: Option<Level>,
    unit: Option<String>,
) -> BTreeMap<&'static str, String> {
    let feature = Feature { unit, ..Feature::new(feature, FeatureKind::Numeric) };
    let [before, after] = [before, after].map(|level| match level {
        None => Value::Missing,
        Some(Level::Number(number)) if number.is_nan() => Value::Missing,
        Some(level) => level.into(),
    });
    let ChangeWords { from, to, clause } = FeatureChange::new(&feature, &before, &after).words;
    [("from", from), ("to", to), ("clause", clause)].into()
}

/// The kind of a column; `None` for texts that a file would give too: they are judged by the cells.
fn known(kind: &str, levels: Vec<Level>) -> PyResult<Option<FeatureKind>> {
    let count = levels.len();
    let levels: Vec<Value> = levels.into_iter().map(Value::from).collect();
    match (kind, levels.as_slice()) {
        ("numeric", _) => Ok(Some(FeatureKind::Numeric)),
        ("integer", _) => Ok(Some(FeatureKind::Integer)),
        ("ordinal", _) => Ok(Some(FeatureKind::Ordinal { levels })),
        ("categorical", _) => Ok(Some(FeatureKind::Categorical { levels })),
        ("flag", [no, yes]) => Ok(Some(FeatureKind::Flag { values: [no.clone(), yes.clone()] })),
        ("text", _) => {
            let missing = Missing::default().tokens;
            let is_doubtful = |level: &Value| {
                let text = level.to_string();
                missing.contains(&text) || matches!(Value::of_text(&text), Value::Number(_))
            };
            let is_known = levels.iter().any(is_doubtful);
            Ok(is_known.then_some(FeatureKind::Categorical { levels }))
        }
        _ => Err(error::parameter(format!("unknown kind of feature: {kind} with {count} levels"))),
    }
}

/// The rows of an explainer.
#[pyclass(frozen, module = "tyrex._native")]
#[derive(Debug)]
pub(crate) struct Data(pub(crate) Rows);

#[pymethods]
impl Data {
    /// Rows of a table for an existing model: labels are optional.
    #[staticmethod]
    fn applicants(py: Python<'_>, table: &Table, schema: &Schema) -> PyResult<Self> {
        let read = || UnlabelledRows::read(&schema.0, table.0.clone());
        py.detach(read).or_raise().map(|rows| Self(Rows::Unlabelled(rows)))
    }

    /// Rows of a table to train on: every row has a label.
    #[staticmethod]
    fn labelled(py: Python<'_>, table: &Table, schema: &Schema) -> PyResult<Self> {
        let read = || Dataset::load(&schema.0, table.0.clone());
        py.detach(read).or_raise().map(|rows| Self(Rows::Labelled(rows)))
    }

    /// A data set of the catalogue, with its own split: `product` or `reference`.
    #[staticmethod]
    #[pyo3(signature = (name, variant = "product", data_dir = None))]
    fn named(
        py: Python<'_>,
        name: &str,
        variant: &str,
        data_dir: Option<PathBuf>,
    ) -> PyResult<Self> {
        let variant = match variant {
            "product" => Variant::Product,
            "reference" => Variant::Reference,
            other => {
                return Err(error::parameter(format!(
                    "parameter `variant` is {other}, expected product or reference"
                )));
            }
        };
        let catalogue = Catalogue::new(data_dir.as_deref());
        py.detach(|| catalogue.load(name, variant, Direction::Favourable))
            .or_raise()
            .map(|dataset| Self(Rows::Labelled(dataset)))
    }

    /// A data set from its parts: the rows of the table that train and those that test, or the split
    /// of the schema.
    #[staticmethod]
    #[pyo3(signature = (table, schema, split))]
    fn of_parts(
        py: Python<'_>,
        table: &Table,
        schema: &Schema,
        split: Option<(Vec<usize>, Vec<usize>)>,
    ) -> PyResult<Self> {
        let (schema, table) = (&schema.0, table.0.clone());
        let read = || match split {
            Some((train, test)) => Dataset::load_with_rows(schema, table, &train, &test),
            None => Dataset::load(schema, table),
        };
        py.detach(read).or_raise().map(|rows| Self(Rows::Labelled(rows)))
    }

    /// The split for `of_parts`.
    fn own_split(&self) -> Option<(Vec<usize>, Vec<usize>)> {
        match &self.0 {
            Rows::Labelled(dataset) if dataset.has_split_table() => Some(self.split()),
            _ => None,
        }
    }

    /// The schema.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.0.schema().clone())
    }

    /// The rows of the table that train, and those that test.
    fn split(&self) -> (Vec<usize>, Vec<usize>) {
        use tyrex::explain::Part;
        let rows = self.0.table_rows();
        let part = |part| self.0.part(part).into_iter().map(|index| rows[index]).collect();
        (part(Part::Train), part(Part::Test))
    }

    /// The whole table, as read.
    fn table(&self) -> Table {
        Table(self.0.table().clone())
    }

    fn __len__(&self) -> usize {
        self.0.rows().len()
    }
}

/// The names of the data sets.
#[pyfunction]
pub(crate) fn dataset_names() -> Vec<&'static str> {
    Catalogue::entries().iter().map(|entry| entry.name).collect()
}
