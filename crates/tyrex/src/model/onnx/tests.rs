//! Round trips, and malicious files.

use std::fs;

use proptest::prelude::*;
use prost::Message;
use prost::bytes::Bytes;

use super::proto::{
    AttributeProto, DimensionProto, EmptyProto, EntryProto, GraphProto, ModelProto, NodeProto,
    ShapeProto, TensorProto, TensorTypeProto, TypeProto, ValueInfoProto, element,
};
use super::{ExportMetadata, write};
use crate::error::Result;
use crate::model::files::{
    Category, Core, Favourable, ImportOptions, InputBlock, InputCell, Inputs, ModelFile,
};
use crate::model::{Activation, Dense, Mlp, Model, Output};

// ------------------------------------------------------------------------------ round trips

fn activations() -> impl Strategy<Value = Activation> {
    prop_oneof![
        Just(Activation::Identity),
        Just(Activation::Relu),
        (0.0_f32..0.5).prop_map(|slope| Activation::LeakyRelu { slope }),
        (0.1_f32..2.0).prop_map(|alpha| Activation::Elu { alpha }),
        Just(Activation::Gelu),
        Just(Activation::GeluTanh),
        Just(Activation::Tanh),
        Just(Activation::Sigmoid),
        Just(Activation::Softplus),
        Just(Activation::Silu),
    ]
}

fn numbers(count: usize) -> impl Strategy<Value = Vec<f32>> {
    // Zeros of both signs and numbers of every size that is still finite.
    let number = prop_oneof![Just(0.0_f32), Just(-0.0), -2.0_f32..2.0, any::<f32>()];
    let finite = number.prop_map(|n| if n.is_finite() { n } else { 1.0 });
    proptest::collection::vec(finite, count)
}

fn networks() -> impl Strategy<Value = Mlp> {
    let widths = proptest::collection::vec((1_usize..5, activations()), 0..4);
    (1_usize..5, widths, 1_usize..4, any::<prop::sample::Index>())
        .prop_flat_map(|(dim, hidden, classes, favourable)| {
            let mut sizes: Vec<(usize, Activation)> = hidden;
            sizes.push((classes, Activation::Identity));
            let mut inputs = dim;
            let mut layers = Vec::new();
            for (outputs, activation) in sizes {
                let parts = (numbers(inputs * outputs), numbers(outputs), Just(activation));
                layers.push(parts);
                inputs = outputs;
            }
            let output = if classes == 1 {
                Output::Sigmoid { favourable: favourable.index(2) == 1 }
            } else {
                Output::Softmax { favourable: favourable.index(classes) }
            };
            (Just(dim), layers, Just(output))
        })
        .prop_map(|(dim, layers, output)| {
            let layers: Vec<Dense> = layers
                .into_iter()
                .map(|(weights, bias, activation)| Dense { weights, bias, activation })
                .collect();
            Mlp::new(dim, &layers, output).unwrap()
        })
}

/// The bits of every weight, so that 0 and -0 differ.
fn bits(network: &Mlp) -> Vec<Vec<u32>> {
    let all =
        |layer: Dense| layer.weights.into_iter().chain(layer.bias).map(f32::to_bits).collect();
    network.layers().into_iter().map(all).collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_bit_for_bit(network in networks()) {
        let bytes = write(&network, &ExportMetadata::default());
        let read = ModelFile::from_bytes(bytes, &ImportOptions::default()).unwrap();
        let Core::Mlp(back) = &read.core else { panic!("a network became trees") };
        prop_assert_eq!(back, &network);
        prop_assert_eq!(bits(back), bits(&network));
        prop_assert_eq!(back.fingerprint(), network.fingerprint());
        prop_assert_eq!(&read.metadata["fingerprint"], &network.fingerprint().to_string());
        prop_assert_eq!(read.inputs, Inputs::Matrix { columns: network.dim() });
    }
}

#[test]
fn notes_travel_with_the_model() {
    let metadata = ExportMetadata {
        schema: Some("[[feature]]\n".into()),
        encoder: Some("{}".into()),
        recipe: Some("{\"seed\":7}".into()),
    };
    let read = ModelFile::from_bytes(write(&logistic(), &metadata), &ImportOptions::default());
    let notes = read.unwrap().metadata;
    assert_eq!(notes["schema"], "[[feature]]\n");
    assert_eq!(notes["encoder"], "{}");
    assert_eq!(notes["recipe"], "{\"seed\":7}");
    assert_eq!(notes["format_version"], "1");
    assert_eq!(notes["tyrex_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(notes["fingerprint"], logistic().fingerprint().as_str());
}

/// A file of this crate whose graph or notes were changed afterwards.
fn changed(change: impl FnOnce(&mut ModelProto)) -> Result<ModelFile> {
    let metadata = ExportMetadata {
        schema: Some("[[feature]]\n".into()),
        encoder: Some("{\"scale\":1}".into()),
        recipe: None,
    };
    let bytes = write(&logistic(), &metadata);
    let mut model = ModelProto::decode(Bytes::from(bytes)).unwrap();
    change(&mut model);
    ModelFile::from_bytes(model.encode_to_vec(), &ImportOptions::default())
}

fn note<'a>(model: &'a mut ModelProto, key: &str) -> &'a mut EntryProto {
    model.metadata_props.iter_mut().find(|note| note.key() == key).unwrap()
}

#[test]
fn a_file_that_was_changed_afterwards_is_refused() {
    changed(|_| {}).unwrap();
    let flipped = changed(|model| {
        let tensor = &mut model.graph.as_mut().unwrap().initializer[0];
        let mut bytes = tensor.raw_data.as_ref().unwrap().to_vec();
        bytes[3] ^= 1;
        tensor.raw_data = Some(bytes.into());
    });
    let scaled = changed(|model| note(model, "encoder").value = Some("{\"scale\":2}".into()));
    let later = changed(|model| note(model, "format_version").value = Some("99".into()));
    for (read, expected) in [
        (flipped, "the weights do not have the fingerprint in the file"),
        (scaled, "schema, encoder and recipe do not have the digest in the file"),
        (later, "`format_version` is 99, expected 1"),
    ] {
        let error = read.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // Files of earlier versions have no digest, and files of others may use the same words.
    changed(|model| model.metadata_props.retain(|note| note.key() != "digest")).unwrap();
    changed(|model| {
        model.metadata_props.retain(|note| note.key() != "tyrex_version");
        note(model, "format_version").value = Some("99".into());
    })
    .unwrap();
}

#[test]
fn operators_of_an_unknown_version_are_refused() {
    for version in [0, -1, 41, 9999] {
        let read = changed(|model| model.opset_import[0].version = Some(version));
        let error = read.unwrap_err().to_string();
        let expected = format!("version {version} of the operators of ai.onnx, expected 1 to 40");
        assert!(error.contains(&expected), "{error}");
    }
}

fn logistic() -> Mlp {
    Mlp::linear(vec![1.0, -2.0], 0.5).unwrap()
}

// --------------------------------------------------------------------------- graphs by hand

fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        dims: dims.to_vec(),
        data_type: Some(element::FLOAT),
        name: Some(name.into()),
        raw_data: Some(values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into()),
        ..TensorProto::default()
    }
}

fn integers(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        dims: vec![values.len() as i64],
        data_type: Some(element::INT64),
        name: Some(name.into()),
        int64_data: values.to_vec(),
        ..TensorProto::default()
    }
}

fn node(operator: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        input: inputs.iter().map(ToString::to_string).collect(),
        output: outputs.iter().map(ToString::to_string).collect(),
        name: Some(format!("the {operator}")),
        op_type: Some(operator.into()),
        attribute: Vec::new(),
        domain: None,
    }
}

fn classic(
    operator: &str,
    inputs: &[&str],
    outputs: &[&str],
    attributes: Vec<AttributeProto>,
) -> NodeProto {
    NodeProto {
        domain: Some("ai.onnx.ml".into()),
        attribute: attributes,
        ..node(operator, inputs, outputs)
    }
}

fn attribute(name: &str) -> AttributeProto {
    AttributeProto { name: Some(name.into()), ..AttributeProto::default() }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto { ints: ints.to_vec(), ..attribute(name) }
}

fn reals(name: &str, floats: &[f32]) -> AttributeProto {
    AttributeProto { floats: floats.to_vec(), ..attribute(name) }
}

fn texts(name: &str, texts: &[&'static str]) -> AttributeProto {
    let strings = texts.iter().map(|t| Bytes::from_static(t.as_bytes())).collect();
    AttributeProto { strings, ..attribute(name) }
}

fn text(name: &str, text: &'static str) -> AttributeProto {
    AttributeProto { s: Some(Bytes::from_static(text.as_bytes())), ..attribute(name) }
}

fn value(name: &str, kind: i32, columns: i64) -> ValueInfoProto {
    let size = |dim_value| DimensionProto { dim_value, dim_param: None };
    let shape = ShapeProto { dim: vec![size(None), size(Some(columns))] };
    let tensor_type = TensorTypeProto { elem_type: Some(kind), shape: Some(shape) };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto { tensor_type: Some(tensor_type) }),
    }
}

/// `sigmoid(x W + b)` of two columns.
fn small() -> GraphProto {
    GraphProto {
        node: vec![node("Gemm", &["x", "w", "b"], &["z"]), node("Sigmoid", &["z"], &["y"])],
        name: None,
        initializer: vec![floats("w", &[2, 1], &[1.0, -2.0]), floats("b", &[1], &[0.5])],
        input: vec![value("x", element::FLOAT, 2)],
        output: vec![value("y", element::FLOAT, 1)],
        sparse_initializer: Vec::new(),
    }
}

fn encoded(graph: GraphProto) -> Vec<u8> {
    let model = ModelProto { ir_version: Some(9), graph: Some(graph), ..ModelProto::default() };
    model.encode_to_vec()
}

fn read(graph: GraphProto) -> crate::Result<ModelFile> {
    ModelFile::from_bytes(encoded(graph), &ImportOptions::default())
}

fn problem(graph: GraphProto) -> String {
    read(graph).expect_err("a hostile graph was read").to_string()
}

#[test]
fn a_graph_by_hand_becomes_the_network_it_is() {
    let read = read(small()).unwrap();
    assert_eq!(read.core, Core::Mlp(logistic()));
    let whole = InputBlock::Number { column: 0, missing: None, scale: 1.0, shift: 0.0 };
    assert_eq!(read.preprocessing[0], whole);
}

#[test]
fn nodes_may_come_in_any_order() {
    let mut graph = small();
    graph.node.reverse();
    assert_eq!(read(graph).unwrap().core, Core::Mlp(logistic()));
}

#[test]
fn a_column_of_texts_is_encoded_and_scored() {
    let mut graph = small();
    graph.input = vec![value("purpose", element::STRING, 1)];
    let categories = vec![texts("cats_strings", &["car", "house"])];
    graph.node.insert(0, classic("OneHotEncoder", &["purpose"], &["deep"], categories));
    graph.node.insert(1, node("Flatten", &["deep"], &["x"]));
    let model = read(graph).unwrap();
    let levels = ["car", "house"].map(|t| Category::Text(t.into())).to_vec();
    assert_eq!(model.preprocessing, [InputBlock::OneHot { column: 0, categories: levels }]);
    let rows = [[InputCell::Text("car")], [InputCell::Text("house")], [InputCell::Text("boat")]];
    let points = model.encode(rows.iter().map(<[InputCell; 1]>::as_slice)).unwrap();
    assert_eq!(points.as_slice(), [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    let expected = [1.5_f32, -1.5, 0.5].map(|z| 1.0 / (1.0 + (-z).exp()));
    for (score, expected) in model.model().score(&points).iter().zip(expected) {
        assert!((score - expected).abs() < 1e-6);
    }
    assert!(model.encode([&[][..]]).is_err());
}

/// Two leaves below one question, as an operator.
fn stump(changes: &[AttributeProto]) -> GraphProto {
    let mut attributes = vec![
        ints("nodes_treeids", &[0, 0, 0]),
        ints("nodes_nodeids", &[0, 1, 2]),
        ints("nodes_featureids", &[0, 0, 0]),
        ints("nodes_truenodeids", &[1, 0, 0]),
        ints("nodes_falsenodeids", &[2, 0, 0]),
        reals("nodes_values", &[0.5, 0.0, 0.0]),
        texts("nodes_modes", &["BRANCH_LEQ", "LEAF", "LEAF"]),
        ints("class_treeids", &[0, 0]),
        ints("class_nodeids", &[1, 2]),
        ints("class_ids", &[0, 0]),
        reals("class_weights", &[0.25, 0.75]),
        ints("classlabels_int64s", &[0, 1]),
    ];
    for change in changes {
        attributes.retain(|a| a.name != change.name);
        attributes.push(change.clone());
    }
    let mut graph = small();
    graph.initializer.clear();
    graph.node = vec![classic("TreeEnsembleClassifier", &["x"], &["label", "y"], attributes)];
    graph
}

#[test]
fn trees_by_hand_score_their_leaves() {
    let model = read(stump(&[])).unwrap();
    let points = crate::Points::from_rows(2, vec![0.5, 0.0, 0.6, 0.0]).unwrap();
    assert_eq!(model.model().score(&points), [0.25, 0.75]);
    let options =
        ImportOptions { favourable: Some(Favourable::Label("0".into())), ..Default::default() };
    let other = ModelFile::from_bytes(encoded(stump(&[])), &options).unwrap();
    assert_eq!(other.model().score(&points), [0.75, 0.25]);
    assert_eq!(model.labels, Some(vec!["0".to_string(), "1".to_string()]));
}

// ----------------------------------------------------------------------------- hostile files

#[test]
fn hostile_trees_are_refused() {
    for (change, expected) in [
        (ints("nodes_truenodeids", &[0, 0, 0]), "2 nodes are not connected to the root"),
        (ints("nodes_truenodeids", &[2, 0, 0]), "a tree with 2 roots, expected one"),
        (ints("nodes_truenodeids", &[7, 0, 0]), "tree 0 has no node 7"),
        (ints("nodes_truenodeids", &[-1, 0, 0]), "tree 0 has no node -1"),
        (ints("nodes_truenodeids", &[1]), "different lengths"),
        (ints("nodes_nodeids", &[0, 1, 1]), "node 1 of tree 0 is listed twice"),
        (ints("nodes_featureids", &[i64::MAX, 0, 0]), "no feature"),
        (ints("nodes_featureids", &[-3, 0, 0]), "feature -3"),
        (reals("nodes_values", &[f32::NAN, 0.0, 0.0]), "the threshold is not a number"),
        (texts("nodes_modes", &["BRANCH_MAYBE", "LEAF", "LEAF"]), "mode `BRANCH_MAYBE`"),
        (texts("nodes_modes", &["LEAF", "LEAF", "LEAF"]), "a tree with 3 roots"),
        (texts("nodes_modes", &["BRANCH_EQ", "BRANCH_EQ", "LEAF"]), "which is not a leaf"),
        (ints("class_nodeids", &[0, 2]), "which is not a leaf"),
        (ints("class_nodeids", &[9, 2]), "which is not a leaf"),
        (reals("class_weights", &[f32::INFINITY, 0.0]), "weight inf of output 0"),
        (reals("class_weights", &[f32::NAN, 0.0]), "weight"),
        (reals("class_weights", &[5.0, 0.0]), "raw scores, not probabilities"),
        (reals("class_weights", &[-0.5, 0.5]), "of weights for one class"),
        (reals("base_values", &[0.0, 0.0]), "2 base values"),
        (ints("classlabels_int64s", &[]), "0 classes"),
        (
            ints("class_ids", &[1, 1_000_000_000_000]),
            "`class_ids` has 1000000000000, expected numbers from 0 to 1",
        ),
        (ints("class_ids", &[0, -1]), "`class_ids` has -1, expected numbers from 0 to 1"),
        (text("post_transform", "PROBIT"), "post_transform `PROBIT`"),
    ] {
        let message = problem(stump(std::slice::from_ref(&change)));
        assert!(message.contains(expected), "{message}, expected {expected}");
    }
}

type Change = fn(&mut GraphProto);

#[test]
fn hostile_graphs_are_refused_with_a_reason() {
    let cases: &[(Change, &str)] = &[
        (|g| g.initializer[0].dims = vec![1 << 40, 1 << 40], "too large"),
        (|g| g.initializer[0].dims = vec![1 << 30, 4], "ask for 4294967296 elements, found 2"),
        (|g| g.initializer[0].dims = vec![-2, 1], "dimension -2 is negative"),
        (|g| g.initializer[0].dims = vec![0, 1], "ask for 0 elements, found 2"),
        (|g| g.initializer[0] = floats("w", &[2, 0], &[]), "do not fit"),
        (|g| g.initializer[0] = floats("w", &[0, 1], &[]), "0 weights do not fit"),
        (|g| g.initializer[0].raw_data = Some(Bytes::from_static(b"abc")), "do not divide by 4"),
        (|g| g.initializer[0].data_type = Some(10), "type float16 is not supported"),
        (|g| g.initializer[0].data_type = Some(99), "element type 99 is not supported"),
        (|g| g.initializer[0].data_type = Some(element::STRING), "found 0"),
        (|g| g.initializer[0].data_type = Some(element::INT64), "found 1"),
        (|g| g.initializer[0] = floats("w", &[2, 1], &[f32::NAN, 0.0]), "not a finite number"),
        (|g| g.initializer[1] = floats("b", &[1], &[f32::INFINITY]), "not a finite number"),
        (|g| g.initializer[0] = floats("w", &[1, 2], &[0.0, 0.0]), "do not fit"),
        (|g| drop(g.initializer.pop()), "input `b` is never defined (node `the Gemm`, number 0"),
        (|g| g.initializer.push(floats("w", &[], &[0.0])), "`w` is defined twice"),
        (|g| g.node.push(node("Relu", &["z"], &["y"])), "`y` is defined twice"),
        (|g| g.node.push(node("Relu", &["z"], &["x"])), "`x` is defined twice"),
        (|g| g.node[0].input[0] = "y".into(), "the graph has a cycle"),
        (|g| g.node[1].input[0] = "y".into(), "cycle (node `the Sigmoid`, number 1"),
        (|g| g.node[1].input.clear(), "input 0 is missing"),
        (|g| g.output[0] = value("nowhere", element::FLOAT, 1), "`nowhere` is never computed"),
        (|g| g.output.clear(), "is a score"),
        (|g| g.output = vec![value("w", element::FLOAT, 1)], "is a score"),
        (|g| g.input[0] = value("x", element::FLOAT, 0), "0 columns"),
        (|g| g.input[0] = value("x", element::FLOAT, -4), "-4 columns"),
        (|g| g.input[0] = value("x", element::FLOAT, 1 << 60), "columns, expected 1 to"),
        (|g| g.input[0] = value("x", element::FLOAT, 3), "do not fit 3 inputs"),
        (|g| g.input[0] = value("x", element::STRING, 2), "a layer cannot take texts"),
        (|g| g.input[0] = value("x", 16, 2), "type bfloat16 is not supported"),
        (|g| g.input[0].r#type = None, "only tensors are supported"),
        (|g| g.sparse_initializer = vec![EmptyProto {}], "sparse initialisers"),
        (
            |g| g.node[1].op_type = Some("Conv".into()),
            "operator `Conv` is not supported (node `the Conv`, number 1); supported: Add, ArgMax",
        ),
        (|g| g.node[1].domain = Some("com.example".into()), "operator `Sigmoid` is not supported"),
        (|g| drop(g.node.pop()), "output `y` is never computed"),
        (|g| g.node[1].op_type = Some("Relu".into()), "does not end in a sigmoid"),
        (|g| g.node[1].op_type = Some("Identity".into()), "these are raw scores"),
        (|g| g.node[1].op_type = Some("ArgMax".into()), "is a score"),
    ];
    for (index, (change, expected)) in cases.iter().enumerate() {
        let mut graph = small();
        change(&mut graph);
        if let Some(name) = &graph.node.get(1).and_then(|n| n.op_type.clone()) {
            graph.node[1].name = Some(format!("the {name}"));
        }
        let message = problem(graph);
        assert!(message.contains(expected), "case {index}: `{message}`, expected `{expected}`");
    }
}

#[test]
fn classes_must_be_named_and_exist() {
    let three = || {
        let mut graph = small();
        graph.initializer =
            vec![floats("w", &[2, 3], &[0.0; 6]), floats("b", &[3], &[0.0, 1.0, 2.0])];
        graph.node[1].op_type = Some("Softmax".into());
        encoded(graph)
    };
    let read = |favourable, logits| {
        let options = ImportOptions { favourable, logits, output: None };
        ModelFile::from_bytes(three(), &options)
    };
    let message = |favourable, logits| read(favourable, logits).unwrap_err().to_string();
    assert!(message(None, false).contains("3 classes []: say which one is favourable"));
    assert!(message(Some(Favourable::Class(3)), false).contains("no class 3; there are 3"));
    assert!(message(Some(Favourable::Label("a".into())), false).contains("no class is called `a`"));
    assert!(message(Some(Favourable::Class(0)), true).contains("probabilities already"));
    let scores = [0, 1, 2].map(|class| {
        let model = read(Some(Favourable::Class(class)), false).unwrap();
        model.model().score(&crate::Points::zeros(1, 2))[0]
    });
    assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-6 && scores[2] > scores[1]);
    let options = ImportOptions { output: Some("q".into()), ..Default::default() };
    let unknown = ModelFile::from_bytes(three(), &options).unwrap_err().to_string();
    assert!(unknown.contains("no output `q`; the model has `y`"), "{unknown}");
}

#[test]
fn every_cut_and_every_flipped_bit_is_survived() {
    let files =
        [write(&logistic(), &ExportMetadata::default()), encoded(stump(&[])), encoded(small())];
    for bytes in files {
        for cut in 0..bytes.len() {
            let _ = ModelFile::from_bytes(bytes[..cut].to_vec(), &ImportOptions::default());
        }
        for sixteenth in 0..16 {
            let part = bytes[..bytes.len() * sixteenth / 16].to_vec();
            assert!(ModelFile::from_bytes(part, &ImportOptions::default()).is_err());
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(model) = ModelFile::from_bytes(flipped, &ImportOptions::default()) {
                let points = crate::Points::zeros(1, model.model().dim());
                assert_eq!(model.model().score(&points).len(), 1);
            }
        }
    }
}

#[test]
fn chains_that_double_are_stopped() {
    // Each Concat doubles the columns: forty of them would make 2^41.
    let mut graph = small();
    graph.node.clear();
    let mut last = "x".to_string();
    for index in 0..40 {
        let next = format!("c{index}");
        let mut concat = node("Concat", &[&last, &last], &[&next]);
        concat.attribute.push(AttributeProto { i: Some(1), ..attribute("axis") });
        graph.node.push(concat);
        last = next;
    }
    graph.output = vec![value(&last, element::FLOAT, 1)];
    assert!(problem(graph).contains("the model is too large"));

    // Each Mul squares the formula; each Concat of shapes doubles a constant.
    let mut graph = small();
    graph.node.truncate(1);
    let mut last = "z".to_string();
    for index in 0..40 {
        let next = format!("m{index}");
        graph.node.push(node("Mul", &[&last, &last], &[&next]));
        last = next;
    }
    graph.output = vec![value(&last, element::FLOAT, 1)];
    assert!(problem(graph).contains("the formula is too large"));

    let mut graph = small();
    graph.initializer.push(integers("s0", &[1; 64]));
    for index in 0..40 {
        let (last, next) = (format!("s{index}"), format!("s{}", index + 1));
        graph.node.push(node("Concat", &[&last, &last], &[&next]));
        graph.node.last_mut().unwrap().attribute =
            vec![AttributeProto { i: Some(0), ..attribute("axis") }];
    }
    assert!(problem(graph).contains("the model is too large"));
}

#[test]
fn long_chains_are_read_without_recursion() {
    let mut graph = small();
    graph.node.clear();
    graph.initializer =
        vec![floats("w", &[2, 2], &[1.0, 0.0, 0.0, 1.0]), floats("v", &[2, 1], &[1.0, 1.0])];
    let mut last = "x".to_string();
    for index in 0..20_000 {
        let (sum, next) = (format!("s{index}"), format!("r{index}"));
        graph.node.push(node("MatMul", &[&last, "w"], &[&sum]));
        graph.node.push(node("Relu", &[&sum], &[&next]));
        last = next;
    }
    graph.node.push(node("MatMul", &[&last, "v"], &["z"]));
    graph.node.push(node("Sigmoid", &["z"], &["y"]));
    let model = read(graph).unwrap();
    let Core::Mlp(network) = &model.core else { panic!("trees") };
    assert_eq!(network.layers().len(), 20_001);
}

#[test]
fn nested_and_repeated_messages_are_bounded() {
    // A million empty nodes, in two bytes each.
    let mut nodes = [0x0a, 0x00].repeat(1_000_000);
    let mut file = vec![0x3a];
    let mut length = nodes.len();
    while length >= 0x80 {
        file.push(length as u8 | 0x80);
        length >>= 7;
    }
    file.push(length as u8);
    file.append(&mut nodes);
    let refused = ModelFile::from_bytes(file, &ImportOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("more than 100000 nodes"));

    // Graphs inside attributes inside graphs, and groups inside groups.
    let mut nested = Vec::new();
    for _ in 0..2_000 {
        let mut outer = vec![0x32]; // attribute g
        let mut length = nested.len();
        while length >= 0x80 {
            outer.push(length as u8 | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.append(&mut nested);
        nested = outer;
    }
    let _ = ModelFile::from_bytes(nested, &ImportOptions::default());
    assert!(ModelFile::from_bytes(vec![0x0b; 1 << 16], &ImportOptions::default()).is_err());
    assert!(ModelFile::from_bytes(vec![0xff; 1 << 16], &ImportOptions::default()).is_err());
    assert!(ModelFile::from_bytes(Vec::new(), &ImportOptions::default()).is_err());
}

// ----------------------------------------------------------------------------- external data

/// The small graph with its weights in another file.
fn external(location: &str, length: u64) -> Vec<u8> {
    let entry = |key: &str, value: String| EntryProto { key: Some(key.into()), value: Some(value) };
    let mut graph = small();
    let weights = &mut graph.initializer[0];
    weights.raw_data = None;
    weights.data_location = Some(1);
    weights.external_data = vec![
        entry("location", location.into()),
        entry("offset", "4".into()),
        entry("length", length.to_string()),
    ];
    encoded(graph)
}

#[test]
fn external_data_stays_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    let data: Vec<u8> = [9.0_f32, 1.0, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    fs::write(home.join("weights.bin"), &data).unwrap();
    fs::write(folder.path().join("secret.bin"), &data).unwrap();
    fs::create_dir(home.join("folder")).unwrap();
    let model = home.join("model.onnx");
    let read = |location: &str, length| {
        fs::write(&model, external(location, length)).unwrap();
        ModelFile::read(&model, &ImportOptions::default())
    };
    assert_eq!(read("weights.bin", 8).unwrap().core, Core::Mlp(logistic()));
    let absolute = folder.path().join("secret.bin");
    let mut refused = vec![
        ("../secret.bin".to_string(), 8, "leaves the model's folder"),
        ("../../../../../../etc/passwd".into(), 8, "leaves the model's folder"),
        ("folder/../../secret.bin".into(), 8, "leaves the model's folder"),
        (absolute.to_str().unwrap().into(), 8, "leaves the model's folder"),
        (String::new(), 8, "leaves the model's folder"),
        ("missing.bin".into(), 8, "external data `missing.bin`"),
        ("folder".into(), 8, "is not a file"),
        ("weights.bin".into(), 9, "9 bytes at 4 requested, 8 are there"),
        ("weights.bin".into(), u64::MAX, "requested, 8 are there"),
        ("weights.bin".into(), 4, "ask for 2 elements, found 1"),
    ];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&absolute, home.join("link.bin")).unwrap();
        std::os::unix::fs::symlink(folder.path(), home.join("way")).unwrap();
        refused.push(("link.bin".into(), 8, "leaves the model's folder"));
        refused.push(("way/secret.bin".into(), 8, "leaves the model's folder"));
    }
    for (location, length, expected) in refused {
        let message = read(&location, length).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}, expected {expected}");
        assert!(message.starts_with(model.to_str().unwrap()), "{message}");
    }
    let memory = ModelFile::from_bytes(external("weights.bin", 8), &ImportOptions::default());
    assert!(memory.unwrap_err().to_string().contains("was not read from a file"));
}

#[test]
fn a_missing_file_is_named() {
    let message = ModelFile::read("no/such.onnx".as_ref(), &ImportOptions::default());
    assert!(message.unwrap_err().to_string().starts_with("cannot read no/such.onnx"));
}
