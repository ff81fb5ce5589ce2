//! From formulas to a model: finds the layers or trees behind a score, and their inputs.

mod features;

use std::collections::BTreeMap;
use std::rc::Rc;

use self::features::{blocks, features};
use super::expression::{Activated, Atom, Expression, Function, Linear, Variable};
use super::graph::{Ensemble, Graph, Layer, Matrix, Value};
use crate::model::files::{Core, ImportOptions, InputBlock, choose_class};
use crate::model::trees::{Aggregate, Transform, TreeEnsemble, TreeNode};
use crate::model::{Activation, Dense, Mlp, Output};

/// A model and its preprocessing.
pub(super) struct Resolved {
    pub(super) core: Core,
    pub(super) blocks: Vec<InputBlock>,
    pub(super) output: String,
    pub(super) classes: usize,
    pub(super) favourable: usize,
}

/// How the scores in front of the last function become a probability.
enum Ending {
    /// The score itself.
    Plain(Expression),
    /// The sigmoid of it, or one minus that.
    Sigmoid {
        logit: Expression,
        favourable: bool,
    },
    Softmax {
        logits: Rc<Matrix>,
        favourable: usize,
    },
}

/// The model behind the chosen output.
pub(super) fn resolve(graph: &mut Graph, options: &ImportOptions) -> Result<Resolved, String> {
    let (name, matrix) = choose_output(graph, options.output.as_deref())?;
    let within = |problem: String| format!("output `{name}`: {problem}");
    let classes = matrix.columns.len().max(2);
    let labels = graph.labels.as_deref().unwrap_or_default();
    let favourable = choose_class(labels, classes, options.favourable.as_ref()).map_err(within)?;
    let ending = if options.logits {
        raw_ending(&matrix, favourable)
    } else {
        ending(graph, &matrix, favourable)
    };
    let ending = ending.map_err(within)?;
    // One column may be a share of many.
    let (classes, favourable) = match &ending {
        Ending::Softmax { logits, favourable } => (logits.columns.len(), *favourable),
        _ => (classes, favourable),
    };
    let (core, blocks) = model(graph, ending).map_err(within)?;
    Ok(Resolved { core, blocks, output: name.to_string(), classes, favourable })
}

/// The output that holds the scores.
fn choose_output<'a>(
    graph: &Graph<'a>,
    wanted: Option<&str>,
) -> Result<(&'a str, Rc<Matrix>), String> {
    let names = || {
        let names: Vec<String> = graph.outputs.iter().map(|(n, _)| format!("`{n}`")).collect();
        names.join(", ")
    };
    if let Some(wanted) = wanted {
        let found = graph.outputs.iter().find(|(name, _)| *name == wanted);
        let (name, value) =
            found.ok_or_else(|| format!("no output `{wanted}`; the model has {}", names()))?;
        return match value {
            Value::Matrix(matrix) => Ok((name, Rc::clone(matrix))),
            Value::Unknown(why) => Err(why.to_string()),
            Value::Label => Err(format!("output `{wanted}` is the class, not its probability")),
            _ => Err(format!("output `{wanted}` does not depend on the input")),
        };
    }
    let scores: Vec<_> = graph
        .outputs
        .iter()
        .filter_map(|(name, value)| match value {
            Value::Matrix(matrix) => Some((*name, matrix)),
            _ => None,
        })
        .collect();
    let probabilities: Vec<_> =
        scores.iter().filter(|(name, _)| name.to_lowercase().contains("prob")).collect();
    match (scores.as_slice(), probabilities.as_slice()) {
        ([(name, matrix)], _) | (_, [(name, matrix)]) => Ok((name, Rc::clone(matrix))),
        ([], _) => {
            let unknown = graph.outputs.iter().find_map(|(_, value)| match value {
                Value::Unknown(why) => Some(why.to_string()),
                _ => None,
            });
            Err(unknown.unwrap_or_else(|| format!("none of the outputs {} is a score", names())))
        }
        _ => Err(format!("several outputs hold scores; name one of {}", names())),
    }
}

/// The caller says that the output holds logits.
fn raw_ending(matrix: &Rc<Matrix>, favourable: usize) -> Result<Ending, String> {
    let variables = |e: &Expression| e.linear().map(|l| l.weights);
    let linear = matrix.columns.iter().all(|column| {
        variables(column).is_some_and(|weights| {
            weights.iter().all(|(v, _)| matches!(v, Variable::Unit { .. } | Variable::Trees { .. }))
        })
    });
    if !linear {
        return Err("these are probabilities already, not logits".into());
    }
    Ok(match matrix.columns.as_slice() {
        [logit] => Ending::Sigmoid { logit: logit.clone(), favourable: favourable == 1 },
        _ => Ending::Softmax { logits: Rc::clone(matrix), favourable },
    })
}

/// The last function of the favourable column.
fn ending(graph: &Graph, matrix: &Rc<Matrix>, favourable: usize) -> Result<Ending, String> {
    let alone;
    let column = match matrix.columns.as_slice() {
        [single] if favourable == 1 => single,
        [single] => {
            alone = single.affine(-1.0, 1.0);
            &alone
        }
        columns => &columns[favourable],
    };
    if let Some((scale, Atom::Apply(Function::Log, inner))) = column.single()
        && let (1.0, 0.0) = (scale, column.constant)
        && let Some((1.0, Atom::Variable(Variable::Share { softmax, index }))) = inner.single()
        && inner.constant == 0.0
    {
        let logits = Rc::clone(&graph.softmaxes[*softmax]);
        return Ok(Ending::Softmax { logits, favourable: *index });
    }
    let Some((scale, atom)) = column.single() else {
        return Err(strange_ending(column));
    };
    let direct = (scale, column.constant) == (1.0, 0.0);
    let inverse = (scale, column.constant) == (-1.0, 1.0);
    match atom {
        Atom::Apply(Function::Activation(Activation::Sigmoid), logit) if direct || inverse => {
            Ok(Ending::Sigmoid { logit: Expression::clone(logit), favourable: direct })
        }
        Atom::Variable(Variable::Share { softmax, index }) if direct || inverse => {
            let logits = Rc::clone(&graph.softmaxes[*softmax]);
            match (direct, logits.columns.len()) {
                (true, _) => Ok(Ending::Softmax { logits, favourable: *index }),
                (false, 2) => Ok(Ending::Softmax { logits, favourable: 1 - index }),
                (false, classes) => Err(format!("one minus a share of {classes}")),
            }
        }
        Atom::Variable(Variable::Trees { .. }) => Ok(Ending::Plain(column.clone())),
        _ => Err(strange_ending(column)),
    }
}

fn strange_ending(column: &Expression) -> String {
    if column.linear().is_some() {
        "these are raw scores, not probabilities; say that they are logits if they are".into()
    } else {
        "the score does not end in a sigmoid, a softmax or trees".into()
    }
}

/// The model with this ending.
fn model(graph: &mut Graph, ending: Ending) -> Result<(Core, Vec<InputBlock>), String> {
    let (formulas, output, transform) = match ending {
        Ending::Plain(score) => (vec![score], None, Transform::Identity),
        Ending::Sigmoid { logit, favourable: true } => {
            (vec![logit], Some(Output::Sigmoid { favourable: true }), Transform::Logistic)
        }
        // One minus the sigmoid is the sigmoid of minus the logit.
        Ending::Sigmoid { logit, favourable: false } => {
            let trees = logit.terms.iter().flat_map(|t| &t.atoms);
            let trees =
                trees.into_iter().any(|a| matches!(a, Atom::Variable(Variable::Trees { .. })));
            let logit = if trees { logit.affine(-1.0, 0.0) } else { logit };
            (vec![logit], Some(Output::Sigmoid { favourable: false }), Transform::Logistic)
        }
        Ending::Softmax { logits, favourable } => (
            logits.columns.clone(),
            Some(Output::Softmax { favourable }),
            Transform::Softmax { favourable },
        ),
    };
    let logits: Option<Vec<Linear>> = formulas.iter().map(Expression::linear).collect();
    let logits = logits.ok_or("the last layer's sums pass through one more function")?;
    match common_source(&logits)? {
        Source::Layer(layer) => {
            let output = output.ok_or("the score is not a probability")?;
            dense(graph, layer, logits, output)
        }
        Source::Trees(ensemble) => trees(graph, ensemble, &logits, transform),
    }
}

enum Source {
    Layer(usize),
    Trees(usize),
}

/// The one layer or ensemble that all the sums come from.
fn common_source(sums: &[Linear]) -> Result<Source, String> {
    let mut source = None;
    for (variable, _) in sums.iter().flat_map(|sum| &sum.weights) {
        let own = match variable {
            Variable::Unit { layer, .. } => (0, *layer),
            Variable::Trees { ensemble, .. } => (1, *ensemble),
            Variable::Share { .. } => return Err("a softmax feeds a later layer".into()),
            Variable::Input(_) => {
                return Err("the input meets a function without a layer in between".into());
            }
        };
        if *source.get_or_insert(own) != own {
            return Err(
                "sums of several layers meet (a skip connection); only plain stacks are supported"
                    .into(),
            );
        }
    }
    match source {
        Some((0, layer)) => Ok(Source::Layer(layer)),
        Some((_, ensemble)) => Ok(Source::Trees(ensemble)),
        None => Err("the score does not depend on the input".into()),
    }
}

// ------------------------------------------------------------------------------ dense stacks

/// A dense layer on its way to [`Dense`].
struct Wide {
    inputs: usize,
    weights: Vec<f64>,
    bias: Vec<f64>,
    activation: Activation,
}

impl Wide {
    /// The sums of a layer, recombined: column `j` is `sums[j]`.
    fn new(layer: &Layer, sums: &[Linear], activation: Activation) -> Self {
        let (inputs, units) = (layer.inputs.columns.len(), layer.bias.len());
        let unchanged = sums.len() == units
            && sums.iter().enumerate().all(|(j, sum)| {
                matches!(sum.weights[..], [(Variable::Unit { index, .. }, 1.0)] if index == j)
            });
        if unchanged {
            // Adding zero would turn -0 into 0, and the fingerprint with it.
            let add = |(b, sum): (&f64, &Linear)| {
                if sum.constant == 0.0 { *b } else { b + sum.constant }
            };
            let bias = layer.bias.iter().zip(sums).map(add).collect();
            return Self { inputs, weights: layer.weights.clone(), bias, activation };
        }
        let mut weights = vec![0.0; inputs * sums.len()];
        let mut bias: Vec<f64> = sums.iter().map(|sum| sum.constant).collect();
        for (j, sum) in sums.iter().enumerate() {
            for &(variable, c) in &sum.weights {
                let Variable::Unit { index, .. } = variable else { continue };
                bias[j] += c * layer.bias[index];
                for i in 0..inputs {
                    weights[i * sums.len() + j] += c * layer.weights[i * units + index];
                }
            }
        }
        Self { inputs, weights, bias, activation }
    }

    /// Input `i` was `scale * new_i + shift`; takes `new_i` instead, several of which may be
    /// the same.
    fn fold(&mut self, inputs: usize, places: &[(Option<usize>, f64, f64)]) {
        let outputs = self.bias.len();
        let unchanged = places.len() == inputs
            && places.iter().enumerate().all(|(i, p)| *p == (Some(i), 1.0, 0.0));
        if unchanged {
            return;
        }
        let mut weights = vec![0.0; inputs * outputs];
        for (row, &(place, scale, shift)) in self.weights.chunks_exact(outputs).zip(places) {
            for (j, w) in row.iter().enumerate() {
                self.bias[j] += shift * w;
                if let Some(place) = place {
                    weights[place * outputs + j] += scale * w;
                }
            }
        }
        self.inputs = inputs;
        self.weights = weights;
    }

    fn finish(self) -> Result<Dense, String> {
        let narrow = |values: Vec<f64>| -> Result<Vec<f32>, String> {
            let narrow: Vec<f32> = values.into_iter().map(|v| v as f32).collect();
            if narrow.iter().all(|v| v.is_finite()) {
                Ok(narrow)
            } else {
                Err("a weight that is not a finite number".into())
            }
        };
        Ok(Dense {
            weights: narrow(self.weights)?,
            bias: narrow(self.bias)?,
            activation: self.activation,
        })
    }
}

/// Walks from the logits back to the features.
fn dense(
    graph: &mut Graph,
    last: usize,
    logits: Vec<Linear>,
    output: Output,
) -> Result<(Core, Vec<InputBlock>), String> {
    let mut stack: Vec<Wide> = Vec::new();
    let (mut layer, mut sums, mut activation) = (last, logits, Activation::Identity);
    let blocks = loop {
        let source = &graph.layers[layer];
        let recombining: usize = sums.iter().map(|sum| sum.weights.len() + 1).sum();
        let inputs = &source.inputs.columns;
        graph.budget.take(inputs.len().saturating_mul(recombining), 16)?;
        let mut wide = Wide::new(source, &sums, activation);
        if let Some(features) = features(inputs)? {
            let places: Vec<_> =
                features.iter().enumerate().map(|(i, f)| (Some(i), f.scale, f.shift)).collect();
            wide.fold(features.len(), &places);
            stack.push(wide);
            break blocks(&features);
        }
        let neurons = neurons(inputs)?;
        graph.budget.take(neurons.sums.len().saturating_mul(sums.len()), 16)?;
        wide.fold(neurons.sums.len(), &neurons.places);
        stack.push(wide);
        match common_source(&neurons.sums)? {
            Source::Layer(before) => layer = before,
            Source::Trees(_) => return Err("trees feed a dense layer".into()),
        }
        (sums, activation) = (neurons.sums, neurons.activation);
    };
    let dim = stack.last().map_or(0, |first| first.inputs);
    let layers: Result<Vec<Dense>, String> = stack.into_iter().rev().map(Wide::finish).collect();
    let mlp = Mlp::new(dim, &layers?, output).map_err(|e| e.to_string())?;
    Ok((Core::Mlp(mlp), blocks))
}

/// The inputs of a layer: activations of sums of the layer before.
struct Neurons {
    activation: Activation,
    sums: Vec<Linear>,
    /// For each input: which neuron, scaled and shifted how.
    places: Vec<(Option<usize>, f64, f64)>,
}

fn neurons(inputs: &[Expression]) -> Result<Neurons, String> {
    let mut activation = None;
    let mut sums: Vec<Linear> = Vec::new();
    let mut known: BTreeMap<Vec<(usize, u64)>, usize> = BTreeMap::new();
    let mut places = Vec::with_capacity(inputs.len());
    for input in inputs {
        let Some(Activated { scale, shift, activation: own, argument }) = input.activated() else {
            return Err(
                "a layer takes something that is not an activation of the layer before".into()
            );
        };
        if argument.weights.is_empty() {
            if own != Activation::Identity {
                return Err("an activation of a constant".into());
            }
            places.push((None, 0.0, argument.constant));
            continue;
        }
        if *activation.get_or_insert(own) != own {
            return Err("one layer has several activations".into());
        }
        let mut key: Vec<(usize, u64)> = Vec::with_capacity(argument.weights.len() + 1);
        for (variable, c) in &argument.weights {
            match variable {
                Variable::Unit { index, .. } => key.push((*index, c.to_bits())),
                // Trees, softmaxes and inputs are refused by `common_source`, with a reason.
                _ => key.push((usize::MAX - sums.len(), 0)),
            }
        }
        key.sort_unstable();
        key.push((usize::MAX, argument.constant.to_bits()));
        let place = *known.entry(key).or_insert_with(|| {
            sums.push(argument);
            sums.len() - 1
        });
        places.push((Some(place), scale, shift));
    }
    let activation = activation.ok_or("a layer takes only constants")?;
    Ok(Neurons { activation, sums, places })
}

// -------------------------------------------------------------------------------------- trees

fn trees(
    graph: &mut Graph,
    id: usize,
    logits: &[Linear],
    transform: Transform,
) -> Result<(Core, Vec<InputBlock>), String> {
    let ensemble = &mut graph.ensembles[id];
    let features = features(&ensemble.inputs.columns)?
        .ok_or("trees on top of something that is not a raw column")?;
    let mut trees = std::mem::take(&mut ensemble.trees);
    let base = rescale_outputs(&mut trees, ensemble, logits)?;
    for node in trees.iter_mut().flatten() {
        if let Some(feature) = node.feature_mut() {
            let feature = features.get(*feature).ok_or_else(|| format!("no feature {feature}"))?;
            node.ask_before_scaling(feature.scale, feature.shift);
        }
    }
    let aggregate = ensemble.aggregate;
    let made = TreeEnsemble::new(features.len(), &trees, aggregate, base, transform);
    let made = made.map_err(|e| e.to_string())?;
    if transform == Transform::Identity {
        check_probabilities(&made)?;
    }
    Ok((Core::Trees(made), blocks(&features)))
}

/// Output `j` becomes `logits[j]`, a scaled and shifted output of the ensemble.
fn rescale_outputs(
    trees: &mut [Vec<TreeNode>],
    ensemble: &Ensemble,
    logits: &[Linear],
) -> Result<Vec<f32>, String> {
    let mut base = Vec::with_capacity(logits.len());
    let mut targets: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
    for (j, logit) in logits.iter().enumerate() {
        let [(Variable::Trees { index, .. }, scale)] = logit.weights[..] else {
            return Err("a score that mixes several outputs of an ensemble".into());
        };
        let flips =
            scale < 0.0 && matches!(ensemble.aggregate, Aggregate::Minimum | Aggregate::Maximum);
        if flips || targets.insert(index, (j, scale)).is_some() {
            return Err("a score that changes an ensemble's output in an unusual way".into());
        }
        base.push((ensemble.base[index] * scale + logit.constant) as f32);
    }
    for node in trees.iter_mut().flatten() {
        if let TreeNode::Leaf { weights } = node {
            weights.retain_mut(|(output, weight)| match targets.get(output) {
                None => false,
                Some(&(target, scale)) => {
                    *output = target;
                    *weight = (f64::from(*weight) * scale) as f32;
                    true
                }
            });
        }
    }
    Ok(base)
}

/// Rejects trees whose scores can leave `[0, 1]`.
fn check_probabilities(ensemble: &TreeEnsemble) -> Result<(), String> {
    const SLACK: f64 = 1e-3;
    let base = f64::from(ensemble.base()[0]);
    let (mut low, mut high) = (0.0, 0.0);
    let trees = ensemble.as_given();
    for tree in &trees {
        let leaf = |node: &TreeNode| match node {
            TreeNode::Leaf { weights } => {
                Some(weights.iter().map(|(_, w)| f64::from(*w)).sum::<f64>())
            }
            TreeNode::Branch { .. } | TreeNode::Member { .. } => None,
        };
        let leaves: Vec<f64> = tree.iter().filter_map(leaf).collect();
        let least = leaves.iter().copied().fold(f64::INFINITY, f64::min);
        let most = leaves.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (low, high) = match ensemble.aggregate() {
            Aggregate::Sum | Aggregate::Average => (low + least, high + most),
            Aggregate::Minimum | Aggregate::Maximum => (least.min(low), most.max(high)),
        };
    }
    if ensemble.aggregate() == Aggregate::Average {
        low /= trees.len().max(1) as f64;
        high /= trees.len().max(1) as f64;
    }
    if low + base < -SLACK || high + base > 1.0 + SLACK {
        return Err(format!(
            "these scores reach from {:.3} to {:.3}: raw scores, not probabilities; say that they are logits if they are",
            low + base,
            high + base
        ));
    }
    Ok(())
}
