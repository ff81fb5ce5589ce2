//! The operators of `ai.onnx` that tabular models are made of.

use std::rc::Rc;

use super::expression::{Atom, Expression, Function};
use super::graph::{Call, Element, Graph, Matrix, Value};
use super::plumbing::{
    concat, constant, flatten, gather, last_axis, reshape, shape, slice, squeeze, transpose,
    transposed, unsqueeze,
};
use super::proto::element;
use super::tensor::{Data, Tensor};
use crate::model::Activation;

/// Runs one node: the values of its outputs, or the reason why it cannot be expressed.
pub(super) type Operator = fn(&mut Graph, &Call) -> Result<Vec<Value>, String>;

const OPERATORS: &[(&str, Operator)] = &[
    ("Add", |graph, call| arithmetic(graph, call, Arithmetic::Add)),
    ("ArgMax", |_, _| one(Value::Label)),
    ("BatchNormalization", batch_normalization),
    ("Cast", cast),
    ("Concat", |graph, call| concat(graph, call, call.integer("axis", 1))),
    ("Constant", constant),
    ("Div", |graph, call| arithmetic(graph, call, Arithmetic::Div)),
    ("Dropout", dropout),
    ("Elu", |graph, call| {
        activation(graph, call, Activation::Elu { alpha: call.real("alpha", 1.0) })
    }),
    ("Erf", |graph, call| function(graph, call, &Function::Erf)),
    ("Exp", |graph, call| function(graph, call, &Function::Exp)),
    ("Flatten", flatten),
    ("Gather", gather),
    ("Gelu", gelu),
    ("Gemm", gemm),
    ("Greater", greater),
    ("Identity", |_, call| one(call.input(0)?.clone())),
    ("LeakyRelu", |graph, call| {
        activation(graph, call, Activation::LeakyRelu { slope: call.real("alpha", 0.01) })
    }),
    ("Log", |graph, call| function(graph, call, &Function::Log)),
    ("LogSoftmax", log_softmax),
    ("MatMul", matmul),
    ("Mul", |graph, call| arithmetic(graph, call, Arithmetic::Mul)),
    ("Neg", |graph, call| affine(graph, call, -1.0, 0.0)),
    ("Pow", pow),
    ("Relu", |graph, call| activation(graph, call, Activation::Relu)),
    ("Reshape", reshape),
    ("Selu", selu),
    ("Shape", shape),
    ("Sigmoid", |graph, call| activation(graph, call, Activation::Sigmoid)),
    ("Slice", slice),
    ("Softmax", softmax),
    ("Softplus", |graph, call| activation(graph, call, Activation::Softplus)),
    ("Squeeze", squeeze),
    ("Sub", |graph, call| arithmetic(graph, call, Arithmetic::Sub)),
    ("Tanh", |graph, call| activation(graph, call, Activation::Tanh)),
    ("Transpose", transpose),
    ("Unsqueeze", unsqueeze),
    ("Where", choose),
];

/// The operator of this name.
pub(super) fn find(name: &str) -> Option<Operator> {
    OPERATORS.iter().find(|(own, _)| *own == name).map(|(_, run)| *run)
}

/// The names of the operators.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|(name, _)| *name)
}

#[expect(clippy::unnecessary_wraps, reason = "the last expression of almost every operator")]
pub(super) fn one(value: Value) -> Result<Vec<Value>, String> {
    Ok(vec![value])
}

const TOO_LARGE: &str = "the formula is too large to be an activation of a layer";

// ---------------------------------------------------------------------- element by element

/// Applies a function to every column.
fn function(graph: &mut Graph, call: &Call, function: &Function) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    if matrix.element == Element::Text {
        return Err("a function of texts".into());
    }
    let apply = |column: &Expression| Rc::new(column.clone()).apply(function.clone());
    let columns: Option<_> = matrix.columns.iter().map(apply).collect();
    one(graph.columns(columns.ok_or(TOO_LARGE)?, matrix.rank, Element::Real)?)
}

fn activation(
    graph: &mut Graph,
    call: &Call,
    activation: Activation,
) -> Result<Vec<Value>, String> {
    function(graph, call, &Function::Activation(activation))
}

fn gelu(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    match call.text("approximate", "none").as_str() {
        "none" => activation(graph, call, Activation::Gelu),
        "tanh" => activation(graph, call, Activation::GeluTanh),
        other => Err(format!("approximate = `{other}`, expected `none` or `tanh`")),
    }
}

/// `gamma * ELU`
fn selu(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let alpha = call.real("alpha", 1.673_263_2);
    let gamma = f64::from(call.real("gamma", 1.050_701));
    let elu = activation(graph, call, Activation::Elu { alpha })?;
    let inner = Call { node: call.node, inputs: elu.into_iter().map(Some).collect() };
    affine(graph, &inner, gamma, 0.0)
}

fn affine(graph: &mut Graph, call: &Call, scale: f64, shift: f64) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    let columns = matrix.columns.iter().map(|c| c.affine(scale, shift)).collect();
    one(graph.columns(columns, matrix.rank, matrix.element)?)
}

/// `x^2` and `x^3`
fn pow(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    let exponent = call.constant(1)?.reals().filter(|e| e.len() == 1);
    let [times] = exponent.ok_or("the exponent is not one number")?[..] else {
        return Err("the exponent is not one number".into());
    };
    if times != 2.0 && times != 3.0 {
        return Err(format!("exponent {times}, expected 2 or 3"));
    }
    graph.budget.take(matrix.columns.len(), 4096)?;
    let power = |c: &Expression| {
        let square = c.times(c)?;
        if times == 2.0 { Some(square) } else { square.times(c) }
    };
    let columns: Option<_> = matrix.columns.iter().map(power).collect();
    one(graph.columns(columns.ok_or(TOO_LARGE)?, matrix.rank, matrix.element)?)
}

/// 1 above a constant, else 0: used by a softplus that switches to the identity.
fn greater(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let threshold = call.constant(1)?.reals().filter(|t| t.len() == 1);
    let threshold = threshold.ok_or("a threshold that is not one number")?[0];
    function(graph, call, &Function::Above(threshold))
}

/// `condition * x + (1 - condition) * y`
fn choose(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let (condition, x, y) = (call.matrix(0)?, call.matrix(1)?, call.matrix(2)?);
    let is_condition = |c: &Expression| {
        matches!(c.single(), Some((1.0, Atom::Apply(Function::Above(_), _)))) && c.constant == 0.0
    };
    let width = condition.columns.len();
    let same = |m: &Matrix| m.columns.len() == width && m.rank == condition.rank;
    if !same(x) || !same(y) || !condition.columns.iter().all(is_condition) {
        return Err("a choice that is not between two columns, above or below a constant".into());
    }
    graph.budget.take(width, 64 << 10)?;
    let pick = |i: usize| {
        let (c, x, y) = (&condition.columns[i], &x.columns[i], &y.columns[i]);
        c.times(x)?.plus(&c.affine(-1.0, 1.0).times(y)?)
    };
    let columns: Option<_> = (0..width).map(pick).collect();
    one(graph.columns(columns.ok_or(TOO_LARGE)?, x.rank, Element::Real)?)
}

#[derive(Clone, Copy)]
enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
}

impl Arithmetic {
    fn numbers(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
            Self::Div => a / b,
        }
    }
}

fn arithmetic(graph: &mut Graph, call: &Call, kind: Arithmetic) -> Result<Vec<Value>, String> {
    match (call.input(0)?, call.input(1)?) {
        (Value::Constant(a), Value::Constant(b)) => fold(graph, a, b, kind),
        (Value::Matrix(a), Value::Constant(b)) => {
            let constants = per_column(b, a)?;
            columns_with(graph, a, &constants, |column, c| match kind {
                Arithmetic::Add => Some(column.affine(1.0, c)),
                Arithmetic::Sub => Some(column.affine(1.0, -c)),
                Arithmetic::Mul => Some(column.affine(c, 0.0)),
                Arithmetic::Div => Some(column.affine(1.0 / c, 0.0)),
            })
        }
        (Value::Constant(a), Value::Matrix(b)) => {
            let constants = per_column(a, b)?;
            columns_with(graph, b, &constants, |column, c| match kind {
                Arithmetic::Add => Some(column.affine(1.0, c)),
                Arithmetic::Sub => Some(column.affine(-1.0, c)),
                Arithmetic::Mul => Some(column.affine(c, 0.0)),
                Arithmetic::Div => None,
            })
        }
        (Value::Matrix(a), Value::Matrix(b)) => {
            if a.columns.len() != b.columns.len() || a.rank != b.rank {
                return Err("two matrices of different shapes".into());
            }
            // The cost of multiplying out, in comparisons of terms.
            let work = a
                .columns
                .iter()
                .zip(&b.columns)
                .map(|(a, b)| (a.terms.len() + 1) * (b.terms.len() + 1));
            graph.budget.take(work.sum(), 1024)?;
            let both = a.columns.iter().zip(&b.columns).map(|(a, b)| match kind {
                Arithmetic::Add => a.plus(b),
                Arithmetic::Sub => a.plus(&b.affine(-1.0, 0.0)),
                Arithmetic::Mul => a.times(b),
                Arithmetic::Div => None,
            });
            let columns: Option<_> = both.collect();
            one(graph.columns(columns.ok_or(TOO_LARGE)?, a.rank, a.element)?)
        }
        _ => Err("arithmetic on shapes".into()),
    }
}

/// The constant for each column.
fn per_column(tensor: &Tensor, matrix: &Matrix) -> Result<Vec<f64>, String> {
    let values = tensor.reals().ok_or("arithmetic on texts")?;
    let (last, before) = tensor.shape.split_last().unwrap_or((&1, &[]));
    let fits = before.iter().all(|&size| size == 1)
        && tensor.shape.len() <= matrix.rank
        && (*last == 1 || (*last == matrix.columns.len() && matrix.rank > 1))
        && matrix.element != Element::Text;
    if !fits {
        return Err(format!(
            "a constant of shape {:?} does not fit {} columns",
            tensor.shape,
            matrix.columns.len()
        ));
    }
    Ok(if *last == 1 { vec![values[0]; matrix.columns.len()] } else { values })
}

fn columns_with(
    graph: &mut Graph,
    matrix: &Matrix,
    constants: &[f64],
    combine: impl Fn(&Expression, f64) -> Option<Expression>,
) -> Result<Vec<Value>, String> {
    let both = matrix.columns.iter().zip(constants);
    let columns: Option<Vec<_>> = both.map(|(column, &c)| combine(column, c)).collect();
    let columns = columns.ok_or("a constant divided by a value that depends on the input")?;
    one(graph.columns(columns, matrix.rank, Element::Real)?)
}

/// Arithmetic on two constants, one of which may be a single number.
fn fold(graph: &mut Graph, a: &Tensor, b: &Tensor, kind: Arithmetic) -> Result<Vec<Value>, String> {
    let shape = if a.len() == 1 && a.shape.len() <= b.shape.len() {
        &b.shape
    } else if (b.len() == 1 && b.shape.len() <= a.shape.len()) || a.shape == b.shape {
        &a.shape
    } else {
        return Err(format!("constants of shapes {:?} and {:?}", a.shape, b.shape));
    };
    let count = a.len().max(b.len());
    graph.budget.take(count, 32)?;
    let whole = a.integers().is_some() && b.integers().is_some();
    if whole && matches!(kind, Arithmetic::Div) {
        return Err("division of whole constants".into());
    }
    let (a, b) = (a.reals().ok_or("texts")?, b.reals().ok_or("texts")?);
    let at = |values: &[f64], i: usize| if values.len() == 1 { values[0] } else { values[i] };
    let results = (0..count).map(|i| kind.numbers(at(&a, i), at(&b, i)));
    let data = if whole {
        Data::Integers(results.map(|v| v as i64).collect())
    } else {
        Data::Reals(results.collect())
    };
    one(Value::Constant(Rc::new(Tensor { shape: shape.clone(), data })))
}

/// A cast that changes nothing tyrex can see, or cuts off fractions.
fn cast(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let to = call.integer("to", 0) as i32;
    let target = match to {
        element::FLOAT | element::DOUBLE => Element::Real,
        element::INT32 | element::INT64 => Element::Integer,
        element::STRING => Element::Text,
        _ => return Err(format!("a cast to {}", element::name(to))),
    };
    match call.input(0)? {
        Value::Shape(sizes) => one(Value::Shape(sizes.clone())),
        Value::Constant(tensor) => {
            graph.budget.take(tensor.len(), 16)?;
            let data = match (target, &tensor.data) {
                (Element::Real, Data::Integers(v)) => {
                    Data::Reals(v.iter().map(|&v| v as f64).collect())
                }
                (Element::Integer, Data::Reals(v)) => {
                    Data::Integers(v.iter().map(|&v| v as i64).collect())
                }
                (Element::Real, data @ Data::Reals(_))
                | (Element::Integer, data @ Data::Integers(_))
                | (Element::Text, data @ Data::Texts(_)) => data.clone(),
                _ => return Err(format!("a cast of constants to {}", element::name(to))),
            };
            one(Value::Constant(Rc::new(Tensor { shape: tensor.shape.clone(), data })))
        }
        Value::Matrix(matrix) => match (matrix.element, target) {
            (Element::Real, Element::Integer) => {
                let columns: Option<Vec<_>> = matrix
                    .columns
                    .iter()
                    .map(|column| Rc::new(column.clone()).apply(Function::Truncate))
                    .collect();
                one(graph.columns(columns.ok_or(TOO_LARGE)?, matrix.rank, Element::Integer)?)
            }
            (from, to) if from == to || from == Element::Integer && to == Element::Real => {
                one(graph.columns(matrix.columns.clone(), matrix.rank, to)?)
            }
            (from, to) => Err(format!("a cast from {from:?} to {to:?}")),
        },
        other => one(other.clone()),
    }
}

fn dropout(_: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    if let Some(Value::Constant(training)) = call.optional(2)
        && training.integers() != Some(&[0])
    {
        return Err("the model was exported in training mode".into());
    }
    one(call.input(0)?.clone())
}

/// `scale * (x - mean) / sqrt(variance + epsilon) + bias`
fn batch_normalization(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    if call.integer("training_mode", 0) != 0 {
        return Err("the model was exported in training mode".into());
    }
    let matrix = call.matrix(0)?;
    let parameter = |index: usize| {
        let values = call.constant(index)?.reals().ok_or("a parameter that is a text")?;
        if values.len() == matrix.columns.len() && matrix.rank == 2 {
            Ok(values)
        } else {
            Err(format!("{} parameters for {} columns", values.len(), matrix.columns.len()))
        }
    };
    let (scale, bias, mean, variance) =
        (parameter(1)?, parameter(2)?, parameter(3)?, parameter(4)?);
    let epsilon = f64::from(call.real("epsilon", 1e-5));
    let columns = matrix.columns.iter().enumerate().map(|(i, column)| {
        let slope = scale[i] / (variance[i] + epsilon).sqrt();
        column.affine(slope, bias[i] - mean[i] * slope)
    });
    one(graph.columns(columns.collect(), 2, Element::Real)?)
}

// ------------------------------------------------------------------------------ row by row

fn gemm(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    let weights = call.constant(1)?;
    if call.integer("transA", 0) != 0 || matrix.rank != 2 {
        return Err("the rows are not the first axis".into());
    }
    let alpha = f64::from(call.real("alpha", 1.0));
    let beta = f64::from(call.real("beta", 1.0));
    graph.budget.take(weights.len(), 32)?;
    let weights =
        if call.integer("transB", 0) == 0 { Tensor::clone(weights) } else { transposed(weights)? };
    let [_, outputs] = weights.shape[..] else {
        return Err(format!("weights of shape {:?}, expected two axes", weights.shape));
    };
    graph.budget.take(outputs, 8)?;
    let bias = match call.optional(2) {
        None => vec![0.0; outputs],
        Some(Value::Constant(bias)) => {
            let row = bias.shape.split_last().is_none_or(|(_, rest)| rest.iter().all(|&d| d == 1));
            let values = bias.reals().filter(|v| row && (v.len() == 1 || v.len() == outputs));
            let values =
                values.ok_or(format!("a bias of shape {:?} for {outputs} outputs", bias.shape))?;
            let at = |i| if values.len() == 1 { values[0] } else { values[i] };
            (0..outputs).map(|i| beta * at(i)).collect()
        }
        Some(_) => return Err("the bias depends on the input".into()),
    };
    let mut weights = weights.reals().ok_or("weights that are texts")?;
    for weight in &mut weights {
        *weight *= alpha;
    }
    let units = graph.layer(matrix, weights, bias)?;
    one(graph.columns(units, 2, Element::Real)?)
}

fn matmul(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    let weights = call.constant(1)?;
    let (outputs, rank) = match weights.shape[..] {
        [_] if matrix.rank == 2 => (1, 1),
        [_, outputs] if matrix.rank > 1 => (outputs, matrix.rank),
        _ => return Err(format!("weights of shape {:?}", weights.shape)),
    };
    graph.budget.take(weights.len() + outputs, 16)?;
    let weights = weights.reals().ok_or("weights that are texts")?;
    let units = graph.layer(matrix, weights, vec![0.0; outputs])?;
    one(graph.columns(units, rank, Element::Real)?)
}

fn softmax(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    last_axis(call.integer("axis", -1), matrix.rank)?;
    let shares = graph.softmax(matrix);
    one(graph.columns(shares, matrix.rank, Element::Real)?)
}

fn log_softmax(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let shares = softmax(graph, call)?;
    let inner = Call { node: call.node, inputs: shares.into_iter().map(Some).collect() };
    function(graph, &inner, &Function::Log)
}
