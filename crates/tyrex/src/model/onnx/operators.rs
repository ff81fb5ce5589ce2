//! The operators of `ai.onnx` that tabular models are made of.

use std::rc::Rc;

use super::expression::{Atom, Expression, Function};
use super::graph::{Call, Element, Graph, Matrix, Value};
use super::proto::element;
use super::tensor::{Data, External, Tensor};
use crate::model::Activation;

/// Runs one node: values for its outputs, or why it cannot be expressed.
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
];

/// The operator of this name.
pub(super) fn find(name: &str) -> Option<Operator> {
    OPERATORS.iter().find(|(own, _)| *own == name).map(|(_, run)| *run)
}

/// The names of the operators.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|(name, _)| *name)
}

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
            // What multiplying out may cost, in comparisons of terms.
            let work = a.columns.iter().zip(&b.columns).map(|(a, b)| (a.terms.len() + 1) * (b.terms.len() + 1));
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

/// The constant that meets each column.
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
    let columns = columns.ok_or("a constant divided by what depends on the input")?;
    one(graph.columns(columns, matrix.rank, Element::Real)?)
}

/// Arithmetic on two constants, one of which may be a single number.
fn fold(
    graph: &mut Graph,
    a: &Tensor,
    b: &Tensor,
    kind: Arithmetic,
) -> Result<Vec<Value>, String> {
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
    let (scale, bias, mean, variance) = (parameter(1)?, parameter(2)?, parameter(3)?, parameter(4)?);
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
    let weights = if call.integer("transB", 0) == 0 { Tensor::clone(weights) } else { transposed(weights)? };
    let [_, outputs] = weights.shape[..] else {
        return Err(format!("weights of shape {:?}, expected two axes", weights.shape));
    };
    graph.budget.take(outputs, 8)?;
    let bias = match call.optional(2) {
        None => vec![0.0; outputs],
        Some(Value::Constant(bias)) => {
            let row = bias.shape.split_last().is_none_or(|(_, rest)| rest.iter().all(|&d| d == 1));
            let values = bias.reals().filter(|v| row && (v.len() == 1 || v.len() == outputs));
            let values = values
                .ok_or(format!("a bias of shape {:?} for {outputs} outputs", bias.shape))?;
            let at = |i| if values.len() == 1 { values[0] } else { values[i] };
            (0..outputs).map(|i| beta * at(i)).collect()
        }
        Some(_) => return Err("the bias depends on the input".into()),
    };
    let mut weights = weights.reals().ok_or("weights that are texts")?;
    weights.iter_mut().for_each(|w| *w *= alpha);
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

// -------------------------------------------------------------------------------- plumbing

/// Insists that an axis is the columns.
pub(super) fn last_axis(axis: i64, rank: usize) -> Result<(), String> {
    let last = rank as i64 - 1;
    if rank > 1 && (axis == -1 || axis == last) {
        return Ok(());
    }
    Err(format!("axis {axis} of {rank}, expected the last one"))
}

/// An axis counted from the front.
fn axis_of(axis: i64, rank: usize) -> Result<usize, String> {
    let from_front = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    from_front
        .and_then(|a| usize::try_from(a).ok())
        .filter(|&a| a < rank)
        .ok_or_else(|| format!("axis {axis} of {rank}"))
}

fn constant(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let reals = |values: Vec<f64>, shape| Tensor { shape, data: Data::Reals(values) };
    let whole = |values: Vec<i64>, shape| Tensor { shape, data: Data::Integers(values) };
    let [attribute] = call.node.attribute.as_slice() else {
        return Err("a constant without a value".into());
    };
    let tensor = match attribute.name.as_deref().unwrap_or("") {
        "value" => {
            let proto = attribute.t.as_ref().ok_or("a constant without a value")?;
            Tensor::decode(proto, &mut External::new(None), &mut graph.budget)?
        }
        "value_float" => reals(vec![f64::from(attribute.f.unwrap_or(0.0))], vec![]),
        "value_int" => whole(vec![attribute.i.unwrap_or(0)], vec![]),
        "value_floats" => {
            graph.budget.take(attribute.floats.len(), 16)?;
            Tensor::vector(attribute.floats.iter().map(|&v| f64::from(v)).collect())
        }
        "value_ints" => {
            graph.budget.take(attribute.ints.len(), 16)?;
            whole(attribute.ints.clone(), vec![attribute.ints.len()])
        }
        other => return Err(format!("a constant given by `{other}`")),
    };
    one(Value::Constant(Rc::new(tensor)))
}

fn shape(_: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let Value::Matrix(matrix) = call.input(0)? else {
        return Err("the shape of a constant".into());
    };
    if call.attribute("start").is_some() || call.attribute("end").is_some() {
        return Err("a part of a shape".into());
    }
    let width = matrix.columns.len() as i64;
    one(Value::Shape(match matrix.rank {
        1 => vec![None],
        2 => vec![None, Some(width)],
        _ => vec![None, Some(1), Some(width)],
    }))
}

/// A vector of whole numbers; `None` is the number of rows.
fn sizes(value: &Value) -> Result<Vec<Option<i64>>, String> {
    match value {
        Value::Shape(sizes) => Ok(sizes.clone()),
        Value::Constant(tensor) => {
            let sizes = tensor.integers().ok_or("expected whole numbers")?;
            Ok(sizes.iter().map(|&v| Some(v)).collect())
        }
        _ => Err("expected whole numbers".into()),
    }
}

fn reshape(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let target = match call.optional(1) {
        Some(value) => sizes(value)?,
        None => call.integers("shape").iter().map(|&v| Some(v)).collect(),
    };
    let refuse = || format!("a reshape to {target:?} that moves values between rows");
    match call.input(0)? {
        Value::Constant(tensor) => {
            let known: Option<Vec<i64>> = target.iter().copied().collect();
            let known = known.ok_or_else(refuse)?;
            let product = |sizes: &[i64]| {
                sizes.iter().try_fold(1_usize, |p, &s| p.checked_mul(usize::try_from(s).ok()?))
            };
            let rest: Vec<i64> = known.iter().copied().filter(|&s| s != -1).collect();
            let free = product(&rest).and_then(|p| tensor.len().checked_div(p)).unwrap_or(0);
            let shape: Vec<i64> =
                known.iter().map(|&s| if s == -1 { free as i64 } else { s }).collect();
            if product(&shape) != Some(tensor.len()) {
                return Err(format!("a reshape of {:?} to {target:?}", tensor.shape));
            }
            graph.budget.take(tensor.len(), 16)?;
            let shape = shape.into_iter().map(|s| s as usize).collect();
            one(Value::Constant(Rc::new(Tensor { shape, data: tensor.data.clone() })))
        }
        Value::Matrix(matrix) => {
            let width = matrix.columns.len() as i64;
            let rows = |size: Option<i64>| matches!(size, None | Some(-1 | 0));
            let rank = match target[..] {
                [first] if rows(first) && width == 1 => 1,
                [first, Some(columns)]
                    if rows(first) && columns == width
                        || matches!(first, None | Some(0)) && columns == -1
                        || matrix.rank == 2 && rows(first) && columns == 0 =>
                {
                    2
                }
                [first, Some(1), Some(columns)] if rows(first) && columns == width => 3,
                _ => return Err(refuse()),
            };
            one(graph.columns(matrix.columns.clone(), rank, matrix.element)?)
        }
        _ => Err(refuse()),
    }
}

fn flatten(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    match axis_of(call.integer("axis", 1), matrix.rank.max(2))? {
        1 => one(graph.columns(matrix.columns.clone(), 2, matrix.element)?),
        axis => Err(format!("flattening at axis {axis}")),
    }
}

/// The axes a node names, by attribute (old) or input (new).
fn axes(call: &Call) -> Result<Vec<i64>, String> {
    match call.optional(1) {
        None => Ok(call.integers("axes").to_vec()),
        Some(Value::Constant(axes)) => {
            Ok(axes.integers().ok_or("axes that are not whole numbers")?.to_vec())
        }
        Some(_) => Err("axes that are not constant".into()),
    }
}

fn squeeze(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let axes = axes(call)?;
    match call.input(0)? {
        Value::Shape(sizes) if sizes.len() == 1 => one(Value::Shape(sizes.clone())),
        Value::Constant(tensor) => {
            let from_front: Result<Vec<usize>, _> =
                axes.iter().map(|&a| axis_of(a, tensor.shape.len())).collect();
            let from_front = from_front?;
            let gone = |axis: usize| axes.is_empty() || from_front.contains(&axis);
            let kept = tensor.shape.iter().enumerate().filter(|&(i, &s)| s != 1 || !gone(i));
            let shape = kept.map(|(_, &size)| size).collect();
            graph.budget.take(tensor.len(), 16)?;
            one(Value::Constant(Rc::new(Tensor { shape, data: tensor.data.clone() })))
        }
        Value::Matrix(matrix) => {
            let single = matrix.columns.len() == 1;
            let mut rank = matrix.rank;
            let from_front: Result<Vec<usize>, _> =
                axes.iter().map(|&a| axis_of(a, matrix.rank)).collect();
            let mut from_front = from_front?;
            from_front.sort_unstable();
            from_front.dedup();
            if axes.is_empty() {
                rank = if single { 1 } else { 2 };
            }
            for axis in from_front {
                if axis == 0 || (axis + 1 == matrix.rank && !single) {
                    return Err(format!("squeezing axis {axis}"));
                }
                rank -= 1;
            }
            one(graph.columns(matrix.columns.clone(), rank, matrix.element)?)
        }
        _ => Err("squeezing a shape".into()),
    }
}

fn unsqueeze(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let axes = axes(call)?;
    match (call.input(0)?, axes.as_slice()) {
        (Value::Shape(sizes), [0]) if sizes.len() == 1 => one(Value::Shape(sizes.clone())),
        (Value::Constant(tensor), [axis]) => {
            let mut shape = tensor.shape.clone();
            shape.insert(axis_of(*axis, shape.len() + 1)?, 1);
            graph.budget.take(tensor.len(), 16)?;
            one(Value::Constant(Rc::new(Tensor { shape, data: tensor.data.clone() })))
        }
        (Value::Matrix(matrix), [axis]) => {
            let rank = matrix.rank + 1;
            let axis = axis_of(*axis, rank)?;
            let fits = rank <= 3 && axis > 0 && (axis + 1 < rank || matrix.columns.len() == 1);
            if !fits {
                return Err(format!("a new axis {axis} of {rank}"));
            }
            one(graph.columns(matrix.columns.clone(), rank, matrix.element)?)
        }
        _ => Err(format!("new axes {axes:?}")),
    }
}

fn transpose(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let order = call.integers("perm");
    let unchanged = !order.is_empty() && order.iter().enumerate().all(|(i, &p)| i as i64 == p);
    match call.input(0)? {
        value if unchanged => one(value.clone()),
        Value::Constant(tensor) if order.is_empty() || order == [1, 0] => {
            graph.budget.take(tensor.len(), 32)?;
            one(Value::Constant(Rc::new(transposed(tensor)?)))
        }
        _ => Err(format!("a transpose {order:?} of what depends on the input")),
    }
}

fn transposed(tensor: &Tensor) -> Result<Tensor, String> {
    let [rows, columns] = tensor.shape[..] else {
        return Err(format!("a transpose of shape {:?}", tensor.shape));
    };
    let positions: Vec<usize> =
        (0..columns).flat_map(|c| (0..rows).map(move |r| r * columns + c)).collect();
    Ok(tensor.pick(vec![columns, rows], &positions))
}

/// Puts columns side by side.
pub(super) fn concat(graph: &mut Graph, call: &Call, axis: i64) -> Result<Vec<Value>, String> {
    let first = call.input(0)?;
    let count = call.node.input.len();
    if let Value::Matrix(first) = first {
        last_axis(axis, first.rank)?;
        let mut columns = Vec::new();
        let mut element = first.element;
        for index in 0..count {
            let next = call.matrix(index)?;
            if next.rank != first.rank {
                return Err("matrices of different shapes".into());
            }
            match (element, next.element) {
                (a, b) if a == b => {}
                (Element::Text, _) | (_, Element::Text) => {
                    return Err("texts beside numbers".into());
                }
                _ => element = Element::Real,
            }
            graph.pay(&next.columns)?;
            columns.extend(next.columns.iter().cloned());
        }
        return one(graph.columns(columns, first.rank, element)?);
    }
    if axis != 0 && axis != -1 {
        return Err(format!("constants along axis {axis}"));
    }
    let mut all = Vec::new();
    for index in 0..count {
        let part = sizes(call.input(index)?)?;
        graph.budget.take(part.len(), 32)?;
        all.extend(part);
    }
    one(Value::Shape(all))
}

/// The given columns, in that order.
pub(super) fn select(
    graph: &mut Graph,
    matrix: &Matrix,
    indices: &[i64],
    rank: usize,
) -> Result<Vec<Value>, String> {
    let width = matrix.columns.len();
    let chosen: Result<Vec<usize>, _> = indices.iter().map(|&i| axis_of(i, width)).collect();
    let chosen = chosen.map_err(|_| format!("columns {indices:?} of {width}"))?;
    if chosen.is_empty() {
        return Err("no columns".into());
    }
    let cost = chosen.iter().map(|&i| matrix.columns[i].cost()).sum();
    graph.budget.take(cost, 1)?;
    let columns = chosen.iter().map(|&i| matrix.columns[i].clone()).collect();
    one(graph.columns(columns, rank, matrix.element)?)
}

fn gather(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let axis = call.integer("axis", 0);
    let indices = call.constant(1)?;
    let single = indices.shape.is_empty();
    let whole = indices.integers().filter(|_| indices.shape.len() <= 1);
    let whole = whole.ok_or("indices that are not a list of whole numbers")?;
    match call.input(0)? {
        Value::Matrix(matrix) => {
            last_axis(axis, matrix.rank)?;
            select(graph, matrix, whole, matrix.rank - usize::from(single))
        }
        Value::Shape(sizes) if axis == 0 => {
            let chosen: Result<Vec<_>, String> =
                whole.iter().map(|&i| Ok(sizes[axis_of(i, sizes.len())?])).collect();
            one(Value::Shape(chosen?))
        }
        Value::Constant(tensor) if tensor.shape.len() == 1 && axis == 0 => {
            graph.budget.take(whole.len(), 16)?;
            let positions: Result<Vec<usize>, _> =
                whole.iter().map(|&i| axis_of(i, tensor.len())).collect();
            let shape = if single { vec![] } else { vec![whole.len()] };
            one(Value::Constant(Rc::new(tensor.pick(shape, &positions?))))
        }
        _ => Err(format!("gathering along axis {axis}")),
    }
}

fn slice(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let parameter = |index: usize, name: &str| match call.optional(index) {
        Some(Value::Constant(values)) => values.integers().map(<[i64]>::to_vec),
        Some(_) => None,
        None => Some(call.integers(name).to_vec()),
    };
    let parameters = (parameter(1, "starts"), parameter(2, "ends"), parameter(3, "axes"), parameter(4, "steps"));
    let (Some(starts), Some(ends), Some(axes), Some(steps)) = parameters else {
        return Err("a slice that is not constant".into());
    };
    let ([start], [end]) = (starts.as_slice(), ends.as_slice()) else {
        return Err("a slice along several axes".into());
    };
    if steps.first().is_some_and(|&step| step != 1) {
        return Err(format!("a slice with steps {steps:?}"));
    }
    let axis = axes.first().copied().unwrap_or(0);
    let range = |length: usize| {
        let length = length as i64;
        let from_front = |i: i64| if i < 0 { i.saturating_add(length) } else { i }.clamp(0, length);
        from_front(*start)..from_front(*end)
    };
    match call.input(0)? {
        Value::Matrix(matrix) => {
            last_axis(axis, matrix.rank)?;
            let columns: Vec<i64> = range(matrix.columns.len()).collect();
            select(graph, matrix, &columns, matrix.rank)
        }
        Value::Shape(sizes) if axis == 0 => {
            let range = range(sizes.len());
            let chosen = sizes.get(range.start as usize..range.end as usize).unwrap_or_default();
            one(Value::Shape(chosen.to_vec()))
        }
        _ => Err("a slice of a constant".into()),
    }
}

/// The raw input column a formula is, if it is nothing more.
pub(super) fn bare_input(column: &Expression) -> Option<&Expression> {
    let inner = match column.single() {
        Some((1.0, Atom::Apply(Function::Truncate, inner))) if column.constant == 0.0 => inner,
        _ => column,
    };
    match inner.single() {
        Some((1.0, Atom::Variable(super::expression::Variable::Input(_))))
            if inner.constant == 0.0 =>
        {
            Some(inner)
        }
        _ => None,
    }
}
