//! Networks as ONNX files that any runtime reads.

use std::collections::BTreeMap;

use prost::Message;
use prost::bytes::Bytes;

use super::proto::{
    AttributeProto, DimensionProto, EntryProto, GraphProto, ModelProto, NodeProto,
    OperatorSetProto, ShapeProto, TensorProto, TensorTypeProto, TypeProto, ValueInfoProto,
    attribute, element,
};
use crate::data::schema::ModelInput;
use crate::data::{Encoder, Schema};
use crate::error::{Error, Result};
use crate::model::{Activation, Fingerprint, Mlp, Model, Output};

/// The version of the metadata in a model file.
const FORMAT_VERSION: &str = "1";
/// The digest of schema, encoder and recipe.
const DIGEST_KEY: &str = "digest";
/// `Gelu` is an operator from here on.
const OPERATOR_SET: i64 = 20;
/// The file format that belongs to the operator set.
const FILE_FORMAT: i64 = 9;

/// The name of the recipe in the metadata.
pub(crate) const RECIPE_KEY: &str = "recipe";

/// The metadata of a model file, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportMetadata {
    /// The schema of the rows, as TOML.
    pub schema: Option<String>,
    /// The encoder from rows to points, as JSON.
    pub encoder: Option<String>,
    /// How the network was trained, as JSON.
    pub recipe: Option<String>,
}

impl ExportMetadata {
    /// The schema and the encoder of the rows a model was trained on.
    pub fn of(schema: &Schema, encoder: &Encoder) -> Result<Self> {
        // The written file takes this crate's encoding, even if the original model did not.
        let mut schema = schema.clone();
        schema.model.input = ModelInput::Encoded;
        // Its output is the probability of the favourable outcome, whatever class that was.
        schema.model.favourable_class = None;
        let encoder = serde_json::to_string(encoder)
            .map_err(|error| Error::InvalidModel(format!("its encoder has no text: {error}")))?;
        Ok(Self { schema: Some(schema.to_toml()?), encoder: Some(encoder), recipe: None })
    }
}

/// The bytes of an ONNX file: `input` (float, rows by coordinates) to `probability` of the
/// favourable class (rows by one) and `logits` (rows by classes).
///
/// The metadata of the file are `tyrex_version`, `format_version`, `fingerprint`, and what
/// `metadata` holds as `schema`, `encoder` and `recipe`, with their SHA-256 as `digest`.
pub fn write(network: &Mlp, metadata: &ExportMetadata) -> Vec<u8> {
    let mut graph = GraphProto { name: Some("tyrex".into()), ..GraphProto::default() };
    graph.input.push(value("input", network.dim()));
    graph.output.push(value("probability", 1));
    graph.output.push(value("logits", network.classes()));

    let layers = network.layers();
    let mut dim = network.dim();
    let mut previous = "input".to_string();
    for (index, layer) in layers.iter().enumerate() {
        let (weights, bias) = (format!("layer_{index}.weights"), format!("layer_{index}.bias"));
        let outputs = layer.bias.len();
        graph.initializer.push(floats(&weights, &[dim, outputs], &layer.weights));
        graph.initializer.push(floats(&bias, &[outputs], &layer.bias));
        let last = index + 1 == layers.len();
        let sums = if last { "logits".into() } else { format!("layer_{index}.sums") };
        graph.node.push(node("Gemm", &[&previous, &weights, &bias], &sums, vec![]));
        previous = activate(&mut graph, layer.activation, sums, index);
        dim = outputs;
    }
    end(&mut graph, network.output());

    let digest = metadata.digest();
    let notes = [
        ("tyrex_version", Some(env!("CARGO_PKG_VERSION"))),
        ("format_version", Some(FORMAT_VERSION)),
        ("fingerprint", Some(network.fingerprint().as_str())),
        ("schema", metadata.schema.as_deref()),
        ("encoder", metadata.encoder.as_deref()),
        (RECIPE_KEY, metadata.recipe.as_deref()),
        (DIGEST_KEY, Some(digest.as_str())),
    ]
    .into_iter()
    .filter_map(|(key, value)| {
        Some(EntryProto { key: Some(key.into()), value: Some(value?.into()) })
    })
    .collect();
    let model = ModelProto {
        ir_version: Some(FILE_FORMAT),
        producer_name: Some("tyrex".into()),
        producer_version: Some(env!("CARGO_PKG_VERSION").into()),
        graph: Some(graph),
        opset_import: vec![OperatorSetProto {
            domain: Some(String::new()),
            version: Some(OPERATOR_SET),
        }],
        metadata_props: notes,
    };
    model.encode_to_vec()
}

impl ExportMetadata {
    fn digest(&self) -> String {
        Fingerprint::of_texts([&self.schema, &self.encoder, &self.recipe]).to_string()
    }
}

/// Checks the notes of a file that this crate wrote: the version of the format, the digest of
/// schema, encoder and recipe, and the fingerprint of the network. `network` is absent if the file
/// is read with options, which change its output. Files of others and of earlier versions lack some
/// of the notes.
pub(super) fn check_notes(
    notes: &BTreeMap<String, String>,
    network: Option<&Mlp>,
) -> Result<(), String> {
    if !notes.contains_key("tyrex_version") {
        return Ok(());
    }
    if let Some(version) = notes.get("format_version").filter(|version| *version != FORMAT_VERSION)
    {
        return Err(format!(
            "`format_version` is {version}, expected {FORMAT_VERSION}: a later version of tyrex \
             wrote this file"
        ));
    }
    let differs = |what: &str| {
        format!("{what} in the file, which was changed or damaged; write the model again")
    };
    let part = |key: &str| notes.get(key).cloned();
    let parts = ExportMetadata {
        schema: part("schema"),
        encoder: part("encoder"),
        recipe: part(RECIPE_KEY),
    };
    if notes.get(DIGEST_KEY).is_some_and(|digest| *digest != parts.digest()) {
        return Err(differs("schema, encoder and recipe do not have the digest"));
    }
    let own = network.map(|network| network.fingerprint().to_string());
    match (notes.get("fingerprint"), own) {
        (Some(written), Some(own)) if *written != own => {
            Err(differs("the weights do not have the fingerprint"))
        }
        _ => Ok(()),
    }
}

/// Adds an activation; returns the name of its output.
fn activate(graph: &mut GraphProto, activation: Activation, sums: String, index: usize) -> String {
    let output = format!("layer_{index}.output");
    let (operator, attributes) = match activation {
        Activation::Identity => return sums,
        Activation::Relu => ("Relu", vec![]),
        Activation::LeakyRelu { slope } => ("LeakyRelu", vec![real("alpha", slope)]),
        Activation::Elu { alpha } => ("Elu", vec![real("alpha", alpha)]),
        Activation::Gelu => ("Gelu", vec![text("approximate", "none")]),
        Activation::GeluTanh => ("Gelu", vec![text("approximate", "tanh")]),
        Activation::Tanh => ("Tanh", vec![]),
        Activation::Sigmoid => ("Sigmoid", vec![]),
        Activation::Softplus => ("Softplus", vec![]),
        Activation::Silu => {
            let gate = format!("layer_{index}.gate");
            graph.node.push(node("Sigmoid", &[&sums], &gate, vec![]));
            graph.node.push(node("Mul", &[&sums, &gate], &output, vec![]));
            return output;
        }
    };
    graph.node.push(node(operator, &[&sums], &output, attributes));
    output
}

/// From `logits` to `probability`.
fn end(graph: &mut GraphProto, output: Output) {
    match output {
        Output::Sigmoid { favourable: true } => {
            graph.node.push(node("Sigmoid", &["logits"], "probability", vec![]));
        }
        Output::Sigmoid { favourable: false } => {
            graph.initializer.push(floats("one", &[], &[1.0]));
            graph.node.push(node("Sigmoid", &["logits"], "against", vec![]));
            graph.node.push(node("Sub", &["one", "against"], "probability", vec![]));
        }
        Output::Softmax { favourable } => {
            graph.initializer.push(TensorProto {
                dims: vec![1],
                data_type: Some(element::INT64),
                name: Some("favourable".into()),
                raw_data: Some(Bytes::from((favourable as i64).to_le_bytes().to_vec())),
                ..TensorProto::default()
            });
            graph.node.push(node("Softmax", &["logits"], "shares", vec![integer("axis", 1)]));
            graph.node.push(node(
                "Gather",
                &["shares", "favourable"],
                "probability",
                vec![integer("axis", 1)],
            ));
        }
    }
}

fn node(
    operator: &str,
    inputs: &[&str],
    output: &str,
    attributes: Vec<AttributeProto>,
) -> NodeProto {
    NodeProto {
        input: inputs.iter().map(ToString::to_string).collect(),
        output: vec![output.into()],
        name: Some(format!("{operator}:{output}")),
        op_type: Some(operator.into()),
        attribute: attributes,
        domain: None,
    }
}

fn real(name: &str, value: f32) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        f: Some(value),
        kind: Some(attribute::FLOAT),
        ..AttributeProto::default()
    }
}

fn integer(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        i: Some(value),
        kind: Some(attribute::INT),
        ..AttributeProto::default()
    }
}

fn text(name: &str, value: &'static str) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        s: Some(Bytes::from_static(value.as_bytes())),
        kind: Some(attribute::STRING),
        ..AttributeProto::default()
    }
}

fn floats(name: &str, shape: &[usize], values: &[f32]) -> TensorProto {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    TensorProto {
        dims: shape.iter().map(|&size| size as i64).collect(),
        data_type: Some(element::FLOAT),
        name: Some(name.into()),
        raw_data: Some(Bytes::from(bytes)),
        ..TensorProto::default()
    }
}

/// A matrix of floats with any number of rows.
fn value(name: &str, columns: usize) -> ValueInfoProto {
    let rows = DimensionProto { dim_value: None, dim_param: Some("batch".into()) };
    let columns = DimensionProto { dim_value: Some(columns as i64), dim_param: None };
    let shape = ShapeProto { dim: vec![rows, columns] };
    let tensor = TensorTypeProto { elem_type: Some(element::FLOAT), shape: Some(shape) };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto { tensor_type: Some(tensor) }),
    }
}
