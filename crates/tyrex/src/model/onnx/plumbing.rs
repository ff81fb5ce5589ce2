//! Operators that move values without computing: shapes, slices, constants.

use std::rc::Rc;

use super::graph::{Call, Element, Graph, Matrix, Value};
use super::operators::one;
use super::tensor::{Data, External, Tensor};

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

pub(super) fn constant(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
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

pub(super) fn shape(_: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
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

pub(super) fn reshape(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
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

pub(super) fn flatten(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
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

pub(super) fn squeeze(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
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

pub(super) fn unsqueeze(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
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

pub(super) fn transpose(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let order = call.integers("perm");
    let unchanged = !order.is_empty() && order.iter().enumerate().all(|(i, &p)| i as i64 == p);
    match call.input(0)? {
        value if unchanged => one(value.clone()),
        Value::Constant(tensor) if order.is_empty() || order == [1, 0] => {
            graph.budget.take(tensor.len(), 32)?;
            one(Value::Constant(Rc::new(transposed(tensor)?)))
        }
        _ => Err(format!("a transpose {order:?} of a value that depends on the input")),
    }
}

pub(super) fn transposed(tensor: &Tensor) -> Result<Tensor, String> {
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

pub(super) fn gather(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
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

pub(super) fn slice(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let parameter = |index: usize, name: &str| match call.optional(index) {
        Some(Value::Constant(values)) => values.integers().map(<[i64]>::to_vec),
        Some(_) => None,
        None => Some(call.integers(name).to_vec()),
    };
    let parameters =
        (parameter(1, "starts"), parameter(2, "ends"), parameter(3, "axes"), parameter(4, "steps"));
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
