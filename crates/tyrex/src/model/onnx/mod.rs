//! ONNX in and out.
//!
//! Dense stacks and linear classifiers become an [`Mlp`](super::Mlp), tree ensembles a
//! [`TreeEnsemble`](super::TreeEnsemble). Preprocessing of raw columns (scaling, one-hot encoding)
//! is kept separately. [`write()`] writes networks.

mod classic;
mod expression;
mod graph;
mod limits;
mod operators;
mod plumbing;
mod proto;
mod resolve;
mod tensor;
#[cfg(test)]
mod tests;
mod tree_ensemble;
mod write;

use std::collections::BTreeMap;
use std::path::Path;

use prost::Message;
use prost::bytes::Bytes;

pub(crate) use write::RECIPE_KEY;
pub use write::{ExportMetadata, write};

use super::files::{Core, ImportOptions, InputKind, Inputs, ModelFile};
use graph::Graph;
use proto::ModelProto;

/// Reads a model; external data is looked for in the folder, and refused without one.
pub(super) fn decode(
    bytes: Vec<u8>,
    folder: Option<&Path>,
    options: &ImportOptions,
) -> Result<ModelFile, String> {
    limits::check(&bytes)?;
    let model = ModelProto::decode(Bytes::from(bytes))
        .map_err(|e| format!("this is not an ONNX model, or it is damaged: {e}"))?;
    let mut graph = Graph::read(&model, folder)?;
    let resolved = resolve::resolve(&mut graph, options)?;
    let numbers = graph.inputs.iter().all(|column| column.kind != InputKind::Text);
    let inputs = if graph.one_input && numbers {
        Inputs::Matrix { columns: graph.inputs.len() }
    } else {
        Inputs::Columns(graph.inputs)
    };
    let metadata: BTreeMap<String, String> = model
        .metadata_props
        .iter()
        .map(|note| (note.key().to_owned(), note.value().to_owned()))
        .collect();
    let network = match &resolved.core {
        Core::Mlp(network) if *options == ImportOptions::default() => Some(network),
        _ => None,
    };
    write::check_notes(&metadata, network)?;
    Ok(ModelFile {
        inputs,
        preprocessing: resolved.blocks,
        core: resolved.core,
        output: resolved.output,
        classes: resolved.classes,
        favourable: resolved.favourable,
        labels: graph.labels.filter(|labels| labels.len() == resolved.classes),
        metadata,
    })
}
