//! Reads a graph as formulas: every value becomes a constant or columns of [`Expression`]s.
//!
//! Nodes run once, in an order in which inputs come before their users. An operator tyrex does not
//! know yields [`Value::Unknown`], which matters only if the chosen output depends on it: a
//! classifier may compute its label with any operator.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use super::expression::{Expression, Variable};
use super::limits::ReadBudget;
use super::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto, element};
use super::tensor::{External, Tensor};
use super::{classic, operators};
use crate::model::files::{InputColumn, InputKind};
use crate::model::trees::{Aggregate, TreeNode};

/// The type of a matrix' elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Real,
    Integer,
    Text,
}

/// One formula per column. The first axis is the rows; rank 1 has one column, rank 3 a middle
/// axis of size one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    pub(super) columns: Vec<Expression>,
    pub(super) rank: usize,
    pub(super) element: Element,
}

/// The value of a name in the graph.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Constant(Rc<Tensor>),
    /// The sizes of a value's axes; `None` is the number of rows.
    Shape(Vec<Option<i64>>),
    Matrix(Rc<Matrix>),
    /// The predicted class.
    Label,
    /// A value that tyrex cannot express, and the reason.
    Unknown(Rc<str>),
}

/// `x W + b`, the weights row by row.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) inputs: Rc<Matrix>,
    pub(super) weights: Vec<f64>,
    pub(super) bias: Vec<f64>,
}

/// The trees of one node, before any transform.
#[derive(Debug)]
pub(super) struct Ensemble {
    pub(super) inputs: Rc<Matrix>,
    pub(super) trees: Vec<Vec<TreeNode>>,
    pub(super) aggregate: Aggregate,
    pub(super) base: Vec<f64>,
}

/// A graph that has been read: its outputs, and the values in their formulas.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    pub(super) inputs: Vec<InputColumn>,
    /// Whether there is one input only.
    pub(super) one_input: bool,
    pub(super) outputs: Vec<(&'a str, Value)>,
    pub(super) layers: Vec<Layer>,
    pub(super) softmaxes: Vec<Rc<Matrix>>,
    pub(super) ensembles: Vec<Ensemble>,
    /// The names of the classes, where an operator gives them.
    pub(super) labels: Option<Vec<String>>,
    pub(super) budget: ReadBudget,
}

/// A call of one node: its inputs, and its attributes by name.
pub(super) struct Call<'a> {
    pub(super) node: &'a NodeProto,
    pub(super) inputs: Vec<Option<Value>>,
}

impl Call<'_> {
    pub(super) fn input(&self, index: usize) -> Result<&Value, String> {
        self.inputs.get(index).and_then(Option::as_ref).ok_or(format!("input {index} is missing"))
    }

    pub(super) fn optional(&self, index: usize) -> Option<&Value> {
        self.inputs.get(index).and_then(Option::as_ref)
    }

    /// The input as columns.
    pub(super) fn matrix(&self, index: usize) -> Result<&Rc<Matrix>, String> {
        match self.input(index)? {
            Value::Matrix(matrix) => Ok(matrix),
            _ => Err(format!("input {index} does not depend on the model's input")),
        }
    }

    /// The input as a constant.
    pub(super) fn constant(&self, index: usize) -> Result<&Rc<Tensor>, String> {
        match self.input(index)? {
            Value::Constant(tensor) => Ok(tensor),
            _ => Err(format!("input {index} is not a constant")),
        }
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node.attribute.iter().find(|a| a.name.as_deref() == Some(name))
    }

    pub(super) fn integer(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).and_then(|a| a.i).unwrap_or(default)
    }

    pub(super) fn real(&self, name: &str, default: f32) -> f32 {
        self.attribute(name).and_then(|a| a.f).unwrap_or(default)
    }

    pub(super) fn text(&self, name: &str, default: &str) -> String {
        self.attribute(name)
            .and_then(|a| a.s.as_ref())
            .map_or_else(|| default.to_string(), |s| String::from_utf8_lossy(s).into_owned())
    }

    pub(super) fn integers(&self, name: &str) -> &[i64] {
        self.attribute(name).map_or(&[], |a| &a.ints)
    }

    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let strings = self.attribute(name).map(|a| a.strings.as_slice()).unwrap_or_default();
        strings.iter().map(|s| String::from_utf8_lossy(s).into_owned()).collect()
    }
}

/// The latest version of operators that is accepted. The operators that are read here have kept
/// their meaning for years; of a much later version nothing is known.
const LATEST_OPERATORS: i64 = 40;

impl<'a> Graph<'a> {
    /// Reads a whole model.
    pub(super) fn read(model: &'a ModelProto, folder: Option<&Path>) -> Result<Self, String> {
        let graph = model.graph.as_ref().ok_or("there is no graph: is this an ONNX model?")?;
        for set in &model.opset_import {
            let (domain, version) = (set.domain(), set.version());
            if !(1..=LATEST_OPERATORS).contains(&version) {
                let domain = if domain.is_empty() { "ai.onnx" } else { domain };
                return Err(format!(
                    "version {version} of the operators of {domain}, expected 1 to \
                     {LATEST_OPERATORS}"
                ));
            }
        }
        if !graph.sparse_initializer.is_empty() {
            return Err("sparse initialisers are not supported".into());
        }
        let mut read = Self {
            inputs: Vec::new(),
            one_input: false,
            outputs: Vec::new(),
            layers: Vec::new(),
            softmaxes: Vec::new(),
            ensembles: Vec::new(),
            labels: None,
            budget: ReadBudget::new(),
        };
        let mut values = Values::new();
        let mut external = External::new(folder);
        for tensor in &graph.initializer {
            let name = tensor.name.as_deref().unwrap_or("");
            let tensor = Tensor::decode(tensor, &mut external, &mut read.budget)?;
            define(&mut values, name, Value::Constant(Rc::new(tensor)))?;
        }
        // Old files list constants among the inputs as well.
        let inputs: Vec<_> =
            graph.input.iter().filter(|i| !values.contains_key(i.name())).collect();
        read.one_input = inputs.len() == 1;
        for input in inputs {
            let matrix = read.input(input).map_err(|e| format!("input `{}`: {e}", input.name()))?;
            define(&mut values, input.name(), Value::Matrix(Rc::new(matrix)))?;
        }
        for index in order(graph, &values)? {
            let node = &graph.node[index];
            let results = read.run(node, index, &values)?;
            for (name, value) in node.output.iter().zip(results) {
                if !name.is_empty() {
                    define(&mut values, name, value)?;
                }
            }
        }
        for output in &graph.output {
            let name = output.name();
            let value = values.get(name).ok_or(format!("output `{name}` is never computed"))?;
            read.outputs.push((name, value.clone()));
        }
        Ok(read)
    }

    /// The columns of an input.
    fn input(&mut self, input: &ValueInfoProto) -> Result<Matrix, String> {
        const WIDEST: i64 = 1_000_000;
        let kind = input.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
        let kind = kind.ok_or("only tensors are supported")?;
        let (element, column_kind) = match kind.elem_type.unwrap_or(0) {
            element::FLOAT | element::DOUBLE => (Element::Real, InputKind::Number),
            element::INT32 | element::INT64 | element::BOOL => {
                (Element::Integer, InputKind::Integer)
            }
            element::STRING => (Element::Text, InputKind::Text),
            other => return Err(format!("type {} is not supported", element::name(other))),
        };
        let dims = kind.shape.as_ref().ok_or("the shape is not given")?.dim.as_slice();
        let width = match dims {
            [_] => 1,
            [_, columns] => columns.dim_value.ok_or("the number of columns is not given")?,
            _ => return Err(format!("{} axes, expected rows and columns", dims.len())),
        };
        if !(1..=WIDEST).contains(&width) {
            return Err(format!("{width} columns, expected 1 to {WIDEST}"));
        }
        let first = self.inputs.len();
        for column in 0..width as usize {
            let name = if width == 1 {
                input.name().to_string()
            } else {
                format!("{}[{column}]", input.name())
            };
            self.inputs.push(InputColumn { name, kind: column_kind });
        }
        let columns = (first..self.inputs.len()).map(|i| Expression::variable(Variable::Input(i)));
        let columns: Vec<_> = columns.collect();
        self.pay(&columns)?;
        Ok(Matrix { columns, rank: dims.len(), element })
    }

    /// Runs one node.
    fn run(
        &mut self,
        node: &NodeProto,
        index: usize,
        values: &Values,
    ) -> Result<Vec<Value>, String> {
        let operator = node.op_type.as_deref().unwrap_or("");
        let name = node.name.as_deref().unwrap_or("");
        let inputs = node.input.iter().map(|input| values.get(input.as_str()).cloned());
        let call = Call { node, inputs: inputs.collect() };
        let everywhere = |value: Value| vec![value; node.output.len()];
        let run = match node.domain.as_deref().unwrap_or("") {
            "" | "ai.onnx" => operators::find(operator),
            "ai.onnx.ml" => classic::find(operator),
            _ => None,
        };
        let Some(run) = run else {
            let supported: Vec<&str> = operators::names().chain(classic::names()).collect();
            let message = format!(
                "operator `{operator}` is not supported (node `{name}`, number {index}); supported: {}",
                supported.join(", ")
            );
            return Ok(everywhere(Value::Unknown(message.into())));
        };
        let unknown = call.inputs.iter().flatten().find(|v| matches!(v, Value::Unknown(_)));
        if let Some(unknown) = unknown {
            return Ok(everywhere(unknown.clone()));
        }
        if call.inputs.iter().flatten().any(|v| matches!(v, Value::Label)) {
            self.learn_labels(&call);
            return Ok(everywhere(Value::Label));
        }
        let outcome = run(self, &call);
        if self.budget.is_spent() {
            return Err(outcome.err().unwrap_or_default());
        }
        Ok(outcome.unwrap_or_else(|problem| {
            let message =
                format!("operator `{operator}` (node `{name}`, number {index}): {problem}");
            everywhere(Value::Unknown(message.into()))
        }))
    }

    /// A label that is looked up in a list gives the names of the classes.
    fn learn_labels(&mut self, call: &Call) {
        if let ([Some(Value::Constant(names)), ..], Some("ArrayFeatureExtractor")) =
            (call.inputs.as_slice(), call.node.op_type.as_deref())
        {
            self.labels = Some(classic::label_names(names));
        }
    }

    /// Takes new columns from the budget.
    pub(super) fn pay(&mut self, columns: &[Expression]) -> Result<(), String> {
        self.budget.take(columns.iter().map(Expression::cost).sum(), 1)
    }

    /// A value with these columns, taken from the budget.
    pub(super) fn columns(
        &mut self,
        columns: Vec<Expression>,
        rank: usize,
        element: Element,
    ) -> Result<Value, String> {
        self.pay(&columns)?;
        Ok(Value::Matrix(Rc::new(Matrix { columns, rank, element })))
    }

    /// A dense layer on top of a matrix; `weights` row by row, one row per input.
    pub(super) fn layer(
        &mut self,
        inputs: &Rc<Matrix>,
        weights: Vec<f64>,
        bias: Vec<f64>,
    ) -> Result<Vec<Expression>, String> {
        if inputs.element == Element::Text {
            return Err("a layer cannot take texts".into());
        }
        let (rows, outputs) = (inputs.columns.len(), bias.len());
        if outputs == 0 || rows.checked_mul(outputs) != Some(weights.len()) {
            return Err(format!(
                "{} weights do not fit {rows} inputs and {outputs} outputs",
                weights.len()
            ));
        }
        self.budget.take(weights.len() + outputs, 16)?;
        let layer = self.layers.len();
        self.layers.push(Layer { inputs: Rc::clone(inputs), weights, bias });
        Ok((0..outputs)
            .map(|index| Expression::variable(Variable::Unit { layer, index }))
            .collect())
    }

    /// The softmax over the columns of a matrix.
    pub(super) fn softmax(&mut self, inputs: &Rc<Matrix>) -> Vec<Expression> {
        let softmax = self.softmaxes.len();
        self.softmaxes.push(Rc::clone(inputs));
        (0..inputs.columns.len())
            .map(|index| Expression::variable(Variable::Share { softmax, index }))
            .collect()
    }
}

type Values<'a> = HashMap<&'a str, Value>;

fn define<'a>(values: &mut Values<'a>, name: &'a str, value: Value) -> Result<(), String> {
    match values.insert(name, value) {
        None => Ok(()),
        Some(_) => Err(format!("`{name}` is defined twice")),
    }
}

/// The nodes in an order in which every input is defined before it is used.
fn order(graph: &GraphProto, known: &Values) -> Result<Vec<usize>, String> {
    let describe = |index: usize| {
        let node: &NodeProto = &graph.node[index];
        let text = |t: &Option<String>| t.clone().unwrap_or_default();
        format!("node `{}`, number {index}, operator `{}`", text(&node.name), text(&node.op_type))
    };
    let mut makers = HashMap::new();
    for (index, node) in graph.node.iter().enumerate() {
        for output in node.output.iter().filter(|o| !o.is_empty()) {
            if known.contains_key(output.as_str())
                || makers.insert(output.as_str(), index).is_some()
            {
                return Err(format!("`{output}` is defined twice ({})", describe(index)));
            }
        }
    }
    let mut waiting = vec![0_usize; graph.node.len()];
    let mut users = vec![Vec::new(); graph.node.len()];
    for (index, node) in graph.node.iter().enumerate() {
        for input in node.input.iter().filter(|i| !i.is_empty()) {
            if let Some(&maker) = makers.get(input.as_str()) {
                waiting[index] += 1;
                users[maker].push(index);
            } else if !known.contains_key(input.as_str()) {
                return Err(format!("input `{input}` is never defined ({})", describe(index)));
            }
        }
    }
    let mut ready: Vec<usize> = (0..graph.node.len()).filter(|&i| waiting[i] == 0).collect();
    let mut next = 0;
    while let Some(&index) = ready.get(next) {
        next += 1;
        for &user in &users[index] {
            waiting[user] -= 1;
            if waiting[user] == 0 {
                ready.push(user);
            }
        }
    }
    match waiting.iter().position(|&inputs| inputs > 0) {
        None => Ok(ready),
        Some(stuck) => Err(format!("the graph has a cycle ({})", describe(stuck))),
    }
}
