//! An ensemble as a folder: the base and every member as ONNX files, and a manifest that says
//! what they are.
//!
//! Every file appears whole or not at all, and the manifest comes last: a folder without one
//! is no ensemble yet, and a folder with one is complete.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use super::{Ensemble, ModelChange};
use crate::error::{Error, Result};
use crate::file::{Overwrite, write_whole};
use crate::model::onnx::{self, Core, ExportMetadata, ImportOptions, OnnxModel};
use crate::model::{Fingerprint, Mlp, Model, TrainParams};
use crate::seed::Seed;

/// The file that makes a folder an ensemble.
pub const MANIFEST: &str = "ensemble.json";

/// The version of the manifest.
const FORMAT_VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format_version: u32,
    change: ModelChange,
    seed: Seed,
    params: TrainParams,
    /// The number of inputs of every model.
    dim: usize,
    base: Entry,
    members: Vec<Entry>,
}

/// One model file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    file: String,
    fingerprint: Fingerprint,
}

/// Looked at before the rest, so that a later format is named instead of misread.
#[derive(Deserialize)]
struct Version {
    format_version: u32,
}

impl Ensemble {
    /// Writes the ensemble into a folder, which is made if it is not there. `metadata` goes
    /// into every model file.
    pub fn write(
        &self,
        folder: &Path,
        metadata: &ExportMetadata,
        overwrite: Overwrite,
    ) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let manifest = folder.join(MANIFEST);
        if manifest.exists() {
            match overwrite {
                Overwrite::Refuse => return Err(Error::Exists { path: manifest }),
                // What it says ends to be true with the first file.
                Overwrite::Force => {
                    std::fs::remove_file(&manifest).map_err(Error::io("write", &manifest))?;
                }
            }
        }
        let write = |file: String, network: &Mlp| {
            let bytes = onnx::write(network, metadata);
            write_whole(&folder.join(&file), overwrite, |out| out.write_all(&bytes))?;
            Ok(Entry { file, fingerprint: network.fingerprint() })
        };
        let base = write("base.onnx".to_owned(), &self.base)?;
        let members = self
            .members
            .iter()
            .enumerate()
            .map(|(index, member)| write(format!("member-{index:04}.onnx"), member))
            .collect::<Result<Vec<Entry>>>()?;
        let text = serde_json::to_string_pretty(&Manifest {
            format_version: FORMAT_VERSION,
            change: self.change,
            seed: self.seed,
            params: self.params.clone(),
            dim: self.base.dim(),
            base,
            members,
        })
        .map_err(|error| Error::io("write", &manifest)(error.into()))?;
        write_whole(&manifest, overwrite, |out| writeln!(out, "{text}"))
    }

    /// Reads an ensemble from its folder. Every model must have the size and the fingerprint
    /// that the manifest gives.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let text = std::fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let wrong = |problem: String| Error::Model { file: path.clone(), problem };
        let not_one = |error: serde_json::Error| wrong(format!("not an ensemble: {error}"));
        let Version { format_version } = serde_json::from_str(&text).map_err(not_one)?;
        if format_version != FORMAT_VERSION {
            return Err(wrong(format!(
                "`format_version` is {format_version}, expected {FORMAT_VERSION}"
            )));
        }
        let manifest: Manifest = serde_json::from_str(&text).map_err(not_one)?;
        if manifest.members.is_empty() {
            return Err(wrong("there are no members, expected at least one".to_owned()));
        }
        let read = |entry: &Entry| {
            let mut parts = Path::new(&entry.file).components();
            if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
                return Err(wrong(format!(
                    "`{}` is not in the folder, expected the name of a file beside the manifest",
                    entry.file
                )));
            }
            network(&folder.join(&entry.file), entry, manifest.dim)
        };
        Ok(Self {
            base: read(&manifest.base)?,
            members: manifest.members.iter().map(read).collect::<Result<_>>()?,
            change: manifest.change,
            seed: manifest.seed,
            params: manifest.params,
        })
    }
}

/// The network in a file, if it is the one the manifest means.
fn network(path: &Path, entry: &Entry, dim: usize) -> Result<Mlp> {
    let wrong = |problem| Error::Model { file: path.to_owned(), problem };
    let Core::Mlp(network) = OnnxModel::read(path, &ImportOptions::default())?.core else {
        return Err(wrong("trees, expected a network".to_owned()));
    };
    if network.dim() != dim {
        let got = network.dim();
        return Err(wrong(format!("the model has {got} inputs, expected {dim} as in {MANIFEST}")));
    }
    let found = network.fingerprint();
    if found != entry.fingerprint {
        return Err(wrong(format!(
            "the model's fingerprint is {found}, expected {} as in {MANIFEST}: the file was \
             changed or belongs to another ensemble",
            entry.fingerprint
        )));
    }
    Ok(network)
}
