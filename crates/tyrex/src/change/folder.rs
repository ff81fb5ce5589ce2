//! An ensemble as a folder: the base and every member as ONNX files, and a manifest that lists
//! them.
//!
//! Every file appears whole or not at all, and the manifest comes last: a folder without a manifest
//! is incomplete, and a folder with one is complete. [`Ensemble::train_into`] fills one member by
//! member.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use super::resume::PLAN;
use super::{Ensemble, MOST_MEMBERS, ModelChange, Origin};
use crate::error::{Error, Result};
use crate::file::{DOCUMENT_BYTES, Overwrite, read_text, write_whole};
use crate::model::files::{ImportOptions, ModelFile};
use crate::model::onnx::{self, ExportMetadata};
use crate::model::{Fingerprint, Mlp, Model, TrainParams};
use crate::seed::Seed;

/// The file that makes a folder an ensemble.
pub const MANIFEST: &str = "ensemble.json";

/// The base's file.
pub(crate) const BASE: &str = "base.onnx";

/// A member's file.
pub(super) fn member_file(index: usize) -> String {
    format!("member-{index:04}.onnx")
}

/// The version of the manifest, and of the plan beside it.
pub(super) const FORMAT_VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format_version: u32,
    change: ModelChange,
    seed: Seed,
    params: TrainParams,
    /// The number of inputs of every model.
    dim: usize,
    base: ManifestEntry,
    members: Vec<ManifestEntry>,
}

/// One model file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestEntry {
    file: String,
    fingerprint: Fingerprint,
}

/// Read first, so that a later format is reported instead of misread.
#[derive(Deserialize)]
struct Version {
    format_version: u32,
}

impl Ensemble {
    /// Writes the ensemble into a folder, which is created if it does not exist. `metadata` is
    /// written into every model file. Models that are not networks of this crate's training
    /// cannot be written.
    pub fn write(
        &self,
        folder: &Path,
        metadata: &ExportMetadata,
        overwrite: Overwrite,
    ) -> Result<()> {
        let text = self.manifest()?;
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let manifest = folder.join(MANIFEST);
        // These are removed first: once a file is replaced they no longer describe the folder.
        for path in [&manifest, &folder.join(PLAN)] {
            match overwrite {
                _ if !path.exists() => {}
                Overwrite::Refuse => return Err(Error::Exists { path: path.clone() }),
                Overwrite::Force => std::fs::remove_file(path).map_err(Error::io("write", path))?,
            }
        }
        write_network(folder, BASE, network(&*self.base)?, metadata, overwrite)?;
        for (index, member) in self.members.iter().enumerate() {
            write_network(folder, &member_file(index), network(&**member)?, metadata, overwrite)?;
        }
        write_whole(&manifest, overwrite, |out| out.write_all(text.as_bytes()))
    }

    /// The text of the manifest.
    pub(super) fn manifest(&self) -> Result<String> {
        let Origin::Trained { change, seed, params } = self.origin.clone() else {
            return Err(Error::InvalidModel(
                "models that were retrained elsewhere are not written; keep their own files"
                    .to_owned(),
            ));
        };
        let entry = |file: String, model: &dyn Model| -> Result<ManifestEntry> {
            Ok(ManifestEntry { file, fingerprint: network(model)?.fingerprint() })
        };
        let members = self.members.iter().enumerate();
        let members = members.map(|(index, member)| entry(member_file(index), &**member));
        let text = serde_json::to_string_pretty(&Manifest {
            format_version: FORMAT_VERSION,
            change,
            seed,
            params,
            dim: self.base.dim(),
            base: entry(BASE.to_owned(), &*self.base)?,
            members: members.collect::<Result<_>>()?,
        });
        let text = text.map_err(|error| {
            Error::InvalidModel(format!("its parameters have no text: {error}"))
        })?;
        Ok(text + "\n")
    }

    /// Whether a folder holds an ensemble that this crate wrote, or the beginning of one.
    pub fn is_in(folder: &Path) -> bool {
        [MANIFEST, PLAN].iter().any(|file| folder.join(file).exists())
    }

    /// Reads an ensemble from its folder. Every model must have the size and the fingerprint
    /// that the manifest gives.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let text = read_text(&path, DOCUMENT_BYTES)?;
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
        if manifest.members.len() > MOST_MEMBERS {
            let count = manifest.members.len();
            return Err(wrong(format!("{count} members, expected at most {MOST_MEMBERS}")));
        }
        // A copy that counts twice would make a certificate surer than its models are.
        let repeats = manifest.change.repeats();
        let (mut files, mut models) = (BTreeSet::new(), BTreeMap::new());
        for ManifestEntry { file, fingerprint } in &manifest.members {
            if !files.insert(file) {
                return Err(wrong(format!("`{file}` is listed twice, expected each member once")));
            }
            if let Some(other) = models.insert(fingerprint, file).filter(|_| !repeats) {
                return Err(wrong(format!(
                    "`{file}` is the same model as `{other}`, expected models that were each \
                     retrained"
                )));
            }
        }
        let read = |entry: &ManifestEntry| {
            let mut parts = Path::new(&entry.file).components();
            if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
                return Err(wrong(format!(
                    "`{}` is not in the folder, expected the name of a file beside the manifest",
                    entry.file
                )));
            }
            let path = folder.join(&entry.file);
            let network = read_network(&path, manifest.dim)?;
            let found = network.fingerprint();
            if found == entry.fingerprint {
                return Ok(network);
            }
            let expected = &entry.fingerprint;
            let problem = format!(
                "the model's fingerprint is {found}, expected {expected} as in {MANIFEST}: the \
                 file was changed or belongs to another ensemble"
            );
            Err(Error::Model { file: path, problem })
        };
        let base = read(&manifest.base)?;
        let members = manifest.members.iter().map(read).collect::<Result<_>>()?;
        Self::of_networks(base, members, manifest.change, manifest.seed, manifest.params)
    }
}

/// The network of a model that is written.
fn network(model: &dyn Model) -> Result<&Mlp> {
    model.network().ok_or_else(|| Error::InvalidModel("only networks can be written".to_owned()))
}

/// The fingerprints in a folder's manifest, by file; empty if there is no readable manifest.
pub(super) fn fingerprints(folder: &Path) -> BTreeMap<String, Fingerprint> {
    let text = read_text(&folder.join(MANIFEST), DOCUMENT_BYTES).unwrap_or_default();
    let Ok(manifest) = serde_json::from_str::<Manifest>(&text) else { return BTreeMap::new() };
    let entries = manifest.members.into_iter().chain([manifest.base]);
    entries.map(|entry| (entry.file, entry.fingerprint)).collect()
}

/// Writes one model file.
pub(super) fn write_network(
    folder: &Path,
    file: &str,
    network: &Mlp,
    metadata: &ExportMetadata,
    overwrite: Overwrite,
) -> Result<()> {
    let bytes = onnx::write(network, metadata);
    write_whole(&folder.join(file), overwrite, |out| out.write_all(&bytes))
}

/// The network in a file, if it has this number of inputs.
pub(super) fn read_network(path: &Path, dim: usize) -> Result<Mlp> {
    let wrong = |problem| Error::Model { file: path.to_owned(), problem };
    let core = ModelFile::read(path, &ImportOptions::default())?.core;
    let network = core.into_network().map_err(|error| wrong(error.to_string()))?;
    if network.dim() != dim {
        let got = network.dim();
        return Err(wrong(format!("the model has {got} inputs, expected {dim} as in {MANIFEST}")));
    }
    Ok(network)
}
