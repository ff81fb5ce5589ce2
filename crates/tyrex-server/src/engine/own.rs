//! The model that the service is started with, from files on this machine.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tyrex::change::ModelChange;
use tyrex::data::schema::Split;
use tyrex::data::{Dataset, Schema, Table};
use tyrex::explain::Ask;
use tyrex::file::hex;
use tyrex::model::TrainParams;
use tyrex::{Explainer, Seed};

use super::error::Result;
use super::given::GivenUpload;
use super::import::{Reading, Upload};
use super::{Engine, Error};

/// Bytes of the digest that a model's name ends with.
const DIGEST: usize = 4;
/// Maximum length of the part of a name that comes from a file name.
const LONGEST_STEM: usize = 24;

/// A model, or the rows to train one on, in files of this machine.
#[derive(Debug, Clone, Default)]
pub struct OwnModel {
    /// The ONNX file; without one a network is trained.
    pub model: Option<PathBuf>,
    /// The rows to explain; without them only rows in requests can be explained. If a network is
    /// trained and there is no reference, also the rows to train on.
    pub data: Option<PathBuf>,
    /// The rows the model was trained on.
    pub reference: Option<PathBuf>,
    /// The schema; without it the one in the model file.
    pub schema: Option<PathBuf>,
    /// The favourable class, by the model's name for it.
    pub class: Option<String>,
    /// The output that holds the scores, if there are several.
    pub output: Option<String>,
    /// Whether the output holds logits.
    pub logits: bool,
    /// The folder of models that were retrained already; without one they are retrained.
    pub ensemble: Option<PathBuf>,
}

impl Engine {
    /// Imports the model of these files and activates it. Files that were imported before are
    /// recognised.
    pub async fn open(self: &Arc<Self>, own: OwnModel) -> Result<()> {
        let ensemble = self.config.ensemble;
        let (training, change) = (self.config.training.clone(), self.config.change.clone());
        let read = move || Files::read(own, training, &change);
        let (name, files) = self.pool.run_in_background(read).await?;
        if self.model(Some(&name)).is_err() {
            let upload_name = name.clone();
            let upload =
                self.pool.run_in_background(move || files.upload(upload_name, ensemble)).await?;
            self.upload(upload).await?;
        }
        self.activate(&name).await.map(|_| ())
    }
}

/// A summary of the active model.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Loaded {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: usize,
    /// The rows that it rejects.
    pub rejected: usize,
    /// The number of models to retrain in the background.
    pub retrained: usize,
}

impl Engine {
    /// A summary of the active model.
    #[must_use]
    pub fn loaded(&self) -> Option<Loaded> {
        let served = self.active()?;
        Some(Loaded {
            name: served.id().to_owned(),
            rows: served.rows(),
            rejected: served.rejected(),
            retrained: served.ensemble_summary().wanted,
        })
    }
}

/// The contents of the files.
#[derive(Debug)]
struct Files {
    model: Option<Vec<u8>>,
    data: Option<(PathBuf, Vec<u8>)>,
    reference: Option<(PathBuf, Vec<u8>)>,
    schema: Option<String>,
    reading: Reading,
    training: Map<String, Value>,
    given: Option<GivenUpload>,
}

impl Files {
    /// Reads them; also returns the name of the model, which contains a digest of the files.
    fn read(
        own: OwnModel,
        training: Map<String, Value>,
        change: &ModelChange,
    ) -> Result<(String, Self)> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(tyrex::Error::io("read", path)).map_err(Error::from)
        };
        let schema = match &own.schema {
            None => None,
            // Parsed as a schema first, so that an error names the file.
            Some(path) => {
                Schema::read(path)?;
                Some(String::from_utf8_lossy(&read(path)?).into_owned())
            }
        };
        let named = own.model.as_deref().or(own.data.as_deref());
        let stem = stem(named.unwrap_or(Path::new("model")));
        let files = Self {
            model: own.model.as_ref().map(read).transpose()?,
            data: own.data.map(|path| read(&path).map(|bytes| (path, bytes))).transpose()?,
            reference: own
                .reference
                .map(|path| read(&path).map(|bytes| (path, bytes)))
                .transpose()?,
            schema,
            reading: Reading {
                model_class: own.class,
                model_output: own.output,
                model_logits: own.logits,
            },
            training,
            given: own.ensemble.as_deref().map(GivenUpload::read).transpose()?,
        };
        Ok((format!("{stem}-{}", files.digest(change)), files))
    }

    /// A digest of everything in them, and of the change of the retrained models.
    fn digest(&self, change: &ModelChange) -> String {
        let mut digest = Sha256::new();
        let data = self.data.as_ref().map(|(_, bytes)| bytes.as_slice());
        let schema = self.schema.as_deref().map(str::as_bytes);
        for part in [self.model.as_deref(), data, schema] {
            digest.update(part.map_or(0, |part| part.len() as u64 + 1).to_le_bytes());
            digest.update(part.unwrap_or_default());
        }
        if let Some((_, reference)) = &self.reference {
            digest.update((reference.len() as u64).to_le_bytes());
            digest.update(reference);
        }
        digest.update(format!("{:?}", self.reading));
        // Without training parameters or another change the name is that of earlier versions.
        if !self.training.is_empty() {
            digest.update(Value::Object(self.training.clone()).to_string());
        }
        if *change != ModelChange::default() {
            digest.update(format!("{change:?}"));
        }
        for file in self.given.iter().flat_map(|given| &given.files) {
            digest.update(format!("{:?} {}", file.set, file.onnx.len()));
            digest.update(&file.onnx);
        }
        hex(&digest.finalize()[..DIGEST])
    }

    /// The model to import, trained now if there is none.
    fn upload(mut self, name: String, ensemble: usize) -> Result<Upload> {
        if self.model.is_none() && self.reference.is_none() {
            // The network is trained on them, so they are its reference.
            self.reference = self.data.take();
        }
        let has_split = match &self.schema {
            Some(schema) => Schema::from_toml(schema)?.split != Split::AllTrain,
            None => false,
        };
        let trains = self.given.is_none() && (self.reference.is_some() || has_split);
        let ensemble = if trains { ensemble } else { 0 };
        let onnx = match (self.model, &self.reference, &self.schema) {
            (Some(onnx), _, _) => onnx,
            (None, Some((path, bytes)), Some(schema)) => {
                let table = Table::from_bytes(path, bytes.clone())?;
                let dataset = Dataset::load(&Schema::from_toml(schema)?, table)?;
                let go_on = |_: &_| ControlFlow::Continue(());
                let params = TrainParams::default().with(&self.training)?;
                Explainer::train(dataset, &params, Seed(Ask::default().seed), go_on)?.to_onnx()?
            }
            (None, _, _) => {
                let problem = "expected a model file, or rows and a schema to train one on";
                return Err(Error::field("model", problem));
            }
        };
        let format =
            |path: &Path| path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
        let named = |(path, bytes): (PathBuf, Vec<u8>)| (format(&path).unwrap_or_default(), bytes);
        Ok(Upload {
            name: Some(name),
            onnx,
            schema: self.schema,
            data: self.data.map(named),
            reference: self.reference.map(named),
            reading: self.reading,
            ensemble,
            given: self.given,
            training: self.training,
            data_trains: false,
            accept_reversed: false,
        })
    }
}

/// A file name as the prefix of a model's name: lower-case letters, digits and hyphens.
fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let plain: String = stem
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .take(LONGEST_STEM)
        .collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() { "model".to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_files() {
        let cases = [
            ("loans.onnx", "loans"),
            ("a/b/My Loans (2024).onnx", "my-loans--2024"),
            ("../../etc/passwd", "passwd"),
            ("äöü.onnx", "model"),
            ("", "model"),
        ];
        for (path, expected) in cases {
            assert_eq!(stem(Path::new(path)), expected, "{path}");
        }
        assert!(stem(Path::new(&"x".repeat(300))).len() <= LONGEST_STEM);
    }
}
