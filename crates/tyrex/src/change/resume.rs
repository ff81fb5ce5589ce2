//! Training into a folder, for long trainings that may be interrupted.
//!
//! The plan is written first, every member as soon as it is made, the manifest last. A member
//! depends only on the plan and on its own index, so a second run with the same plan makes the
//! missing members and gives the same bits as an uninterrupted run.

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::folder::{
    BASE, FORMAT_VERSION, MANIFEST, fingerprints, member_file, read_network, write_network,
};
use super::{Ensemble, ModelChange, Plan};
use crate::error::{Error, Result};
use crate::file::{Overwrite, write_whole};
use crate::model::onnx::ExportMetadata;
use crate::model::train::EpochReport;
use crate::model::{Examples, Fingerprint, Mlp, Model, TrainParams};
use crate::seed::Seed;

/// The file with the plan of a folder.
pub const PLAN: &str = "plan.json";

/// Everything that a member depends on, except its index.
#[derive(Serialize)]
struct Written<'a> {
    format_version: u32,
    /// Another version may give different bits.
    tyrex: &'static str,
    base: Fingerprint,
    change: &'a ModelChange,
    seed: Seed,
    params: &'a TrainParams,
    /// SHA-256 of the rows and of the metadata of the files.
    data: String,
}

impl Ensemble {
    /// Makes the members and writes each into the folder as soon as it is finished; the folder is
    /// created if necessary. `metadata` is written into every model file.
    ///
    /// Existing members are read if the folder has the same plan; only the number of members may
    /// differ. So an interrupted call continues when it is repeated, and gives the same bits as an
    /// uninterrupted one. A folder with another plan is an error, or is replaced if `overwrite`
    /// allows it.
    ///
    /// `watch` is called after every epoch of every new member, from any thread. After a `Break`
    /// the finished members stay in the folder.
    pub fn train_into(
        folder: &Path,
        base: Mlp,
        plan: &Plan<'_>,
        metadata: &ExportMetadata,
        overwrite: Overwrite,
        watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Self> {
        plan.check(&base)?;
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        claim(folder, &base, plan, metadata, overwrite)?;
        // A file that is unreadable or does not match the manifest counts as missing: its member is
        // made again.
        let known = fingerprints(folder);
        let read = |file: &str| {
            let network = read_network(&folder.join(file), base.dim()).ok()?;
            known.get(file).is_none_or(|print| *print == network.fingerprint()).then_some(network)
        };
        if read(BASE).as_ref() != Some(&base) {
            write_network(folder, BASE, &base, metadata, Overwrite::Force)?;
        }
        let mut members: Vec<Option<Mlp>> =
            (0..plan.members).into_par_iter().map(|index| read(&member_file(index))).collect();
        let missing: Vec<usize> =
            (0..plan.members).filter(|&index| members[index].is_none()).collect();
        let made = plan.carry_out(&base, &missing, watch, |index, network| {
            write_network(folder, &member_file(index), &network, metadata, Overwrite::Force)?;
            Ok(network)
        });
        let made = made.map_err(|error| match error {
            Error::Cancelled(what) => Error::Cancelled(what + "; those that were are kept"),
            other => other,
        })?;
        for (index, network) in missing.into_iter().zip(made) {
            members[index] = Some(network);
        }
        let ensemble = Self::of(base, members.into_iter().flatten().collect(), plan);
        let path = folder.join(MANIFEST);
        let text = ensemble.manifest()?;
        if !std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            write_whole(&path, Overwrite::Force, |out| out.write_all(text.as_bytes()))?;
        }
        Ok(ensemble)
    }
}

/// Prepares the folder for this plan: it has the plan already, is empty, or may be emptied.
fn claim(
    folder: &Path,
    base: &Mlp,
    plan: &Plan<'_>,
    metadata: &ExportMetadata,
    overwrite: Overwrite,
) -> Result<()> {
    let path = folder.join(PLAN);
    let text = serde_json::to_string_pretty(&Written {
        format_version: FORMAT_VERSION,
        tyrex: env!("CARGO_PKG_VERSION"),
        base: base.fingerprint(),
        change: plan.change,
        seed: plan.seed,
        params: plan.params,
        data: digest(plan, metadata),
    })
    .map_err(|error| Error::io("write", &path)(error.into()))?;
    let there = match std::fs::read_to_string(&path) {
        Ok(there) => Some(there),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io("read", &path)(error)),
    };
    if there.as_deref() == Some(&text) {
        return Ok(());
    }
    // A plan without members may be replaced.
    let others = model_files(folder)?;
    if let (Overwrite::Refuse, Some(first)) = (overwrite, others.first()) {
        return Err(match there {
            Some(there) => Error::Model { file: path, problem: difference(&there, &text) },
            None => Error::Exists { path: first.clone() },
        });
    }
    // The manifest is removed first, since it is wrong once a file is gone. The plan is removed
    // last, since members must never be beside another plan.
    for path in others {
        std::fs::remove_file(&path).map_err(Error::io("write", &path))?;
    }
    write_whole(&path, Overwrite::Force, |out| out.write_all(text.as_bytes()))
}

/// The manifest and the members in the folder, in this order.
fn model_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let name = entry.map_err(Error::io("read", folder))?.file_name();
        let is_ours = name.to_str().is_some_and(|name| {
            let number = name.strip_prefix("member-").and_then(|rest| rest.strip_suffix(".onnx"));
            name == MANIFEST || number.is_some_and(|number| number.parse::<usize>().is_ok())
        });
        if is_ours {
            found.push(folder.join(name));
        }
    }
    // "ensemble" comes before "member".
    found.sort_unstable();
    Ok(found)
}

/// The differences between the existing plan and this one, in words.
fn difference(there: &str, own: &str) -> String {
    type Fields = serde_json::Map<String, serde_json::Value>;
    let (Ok(there), Ok(own)) =
        (serde_json::from_str::<Fields>(there), serde_json::from_str::<Fields>(own))
    else {
        return format!("not a plan, expected one as `{PLAN}` of an ensemble");
    };
    let differ: Vec<String> = own
        .iter()
        .filter(|(name, value)| there.get(*name) != Some(value))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    let differ = differ.join(", ");
    format!("the models in this folder are of another plan, which differs in {differ}")
}

/// SHA-256 of the training data and of the metadata of the files.
fn digest(plan: &Plan<'_>, metadata: &ExportMetadata) -> String {
    let Examples { points, labels, weights, rows } = plan.examples;
    let mut parts = Parts(Sha256::new());
    let row = |row: &usize| (*row as u64).to_le_bytes();
    parts.add("dim", [points.dim()].iter().map(row));
    parts.add("points", points.as_slice().iter().map(|value| value.to_le_bytes()));
    parts.add("labels", labels.iter().map(|label| label.to_le_bytes()));
    if let Some(weights) = weights {
        parts.add("weights", weights.iter().map(|weight| weight.to_le_bytes()));
    }
    if let Some(rows) = rows {
        parts.add("rows", rows.iter().map(row));
    }
    parts.add("fresh", plan.fresh.iter().map(row));
    for (name, text) in [("schema", &metadata.schema), ("encoder", &metadata.encoder)] {
        if let Some(text) = text {
            parts.add(name, text.as_bytes().iter().map(|&byte| [byte]));
        }
    }
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    let bytes = parts.0.finalize();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Named parts with their sizes, so that different inputs give different bytes.
struct Parts(Sha256);

impl Parts {
    fn add<const N: usize>(&mut self, name: &str, values: impl ExactSizeIterator<Item = [u8; N]>) {
        self.0.update(name);
        self.0.update((values.len() as u64).to_le_bytes());
        values.for_each(|value| self.0.update(value));
    }
}
