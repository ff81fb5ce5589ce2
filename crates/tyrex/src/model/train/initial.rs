//! The network before its first step.

use rand_distr::{Distribution, Normal, Uniform};

use super::params::{Initialisation, OutputLayer, TrainParams};
use crate::error::{Error, Result};
use crate::model::{Activation, Dense, Mlp, Model as _, Output};
use crate::seed::Seed;

/// Training keeps about five times the weights in memory: 2 GB at this number.
const MOST_WEIGHTS: usize = 100_000_000;

/// A network with random initial weights.
pub(super) fn initial(dim: usize, params: &TrainParams, seed: Seed) -> Result<Mlp> {
    let (classes, output) = logits(params.output);
    let widths = || [dim].into_iter().chain(params.hidden.iter().copied()).chain([classes]);
    let weights = widths().zip(widths().skip(1)).try_fold(0_usize, |sum, (inputs, outputs)| {
        inputs.checked_mul(outputs).and_then(|weights| sum.checked_add(weights))
    });
    if weights.is_none_or(|weights| weights > MOST_WEIGHTS) {
        return Err(Error::param(
            "hidden",
            format!("{:?}", params.hidden),
            format!("widths that make at most {MOST_WEIGHTS} weights in all"),
        ));
    }
    let mut inputs = dim;
    let mut layers = Vec::with_capacity(params.hidden.len() + 1);
    for (index, &outputs) in params.hidden.iter().chain([&classes]).enumerate() {
        let is_last = index == params.hidden.len();
        layers.push(Dense {
            weights: draw(params.initialisation, inputs, outputs, seed.index(index))?,
            bias: vec![0.0; outputs],
            activation: if is_last { Activation::Identity } else { params.activation },
        });
        inputs = outputs;
    }
    Mlp::new(dim, &layers, output)
}

/// A network that was trained before, if it is one that the parameters describe. Its
/// activations are its own.
pub(super) fn started(start: &Mlp, dim: usize, params: &TrainParams) -> Result<Mlp> {
    if start.dim() != dim {
        let what = "inputs of the network to start from, one for each coordinate of the rows";
        return Err(Error::Dimension { what: what.into(), expected: dim, got: start.dim() });
    }
    let hidden: Vec<usize> = start.hidden.iter().map(|layer| layer.outputs).collect();
    if hidden != params.hidden {
        return Err(Error::param(
            "hidden",
            format!("{:?}", params.hidden),
            format!("{hidden:?}, the layers of the network to start from"),
        ));
    }
    let (classes, output) = logits(params.output);
    if (start.classes(), start.output()) != (classes, output) {
        return Err(Error::param(
            "output",
            format!("{:?}", params.output),
            format!("{:?} of the network to start from", start.output()),
        ));
    }
    Ok(start.clone())
}

/// The number of logits, and the output function.
fn logits(output: OutputLayer) -> (usize, Output) {
    match output {
        OutputLayer::Sigmoid => (1, Output::Sigmoid { favourable: true }),
        OutputLayer::Softmax { classes, favourable } => (classes, Output::Softmax { favourable }),
    }
}

fn no_width() -> Error {
    Error::Training("a layer of no width".into())
}

fn draw(how: Initialisation, inputs: usize, outputs: usize, seed: Seed) -> Result<Vec<f32>> {
    let mut rng = seed.rng();
    let count = inputs * outputs;
    let fan = match how {
        Initialisation::GlorotUniform | Initialisation::GlorotNormal => {
            (inputs + outputs) as f32 / 2.0
        }
        Initialisation::HeUniform | Initialisation::HeNormal => inputs as f32,
    };
    let (scale, uniform) = match how {
        Initialisation::GlorotUniform => (3.0, true),
        Initialisation::GlorotNormal => (1.0, false),
        Initialisation::HeUniform => (6.0, true),
        Initialisation::HeNormal => (2.0, false),
    };
    let width = (scale / fan).sqrt();
    if uniform {
        let distribution = Uniform::new_inclusive(-width, width).map_err(|_| no_width())?;
        Ok((0..count).map(|_| distribution.sample(&mut rng)).collect())
    } else {
        let distribution = Normal::new(0.0, width).map_err(|_| no_width())?;
        Ok((0..count).map(|_| distribution.sample(&mut rng)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_start_within_their_bounds_and_with_their_variance() {
        for (how, variance) in [
            (Initialisation::GlorotUniform, 2.0 / 500.0),
            (Initialisation::GlorotNormal, 2.0 / 500.0),
            (Initialisation::HeUniform, 2.0 / 200.0),
            (Initialisation::HeNormal, 2.0 / 200.0),
        ] {
            let weights = draw(how, 200, 300, Seed(1)).unwrap();
            let mean = weights.iter().map(|&w| f64::from(w)).sum::<f64>() / 60_000.0;
            let got = weights.iter().map(|&w| f64::from(w).powi(2)).sum::<f64>() / 60_000.0;
            // The standard error of a variance over 60,000 draws is below 0.6 %.
            assert!((got / variance - 1.0).abs() < 0.03, "{how:?}: {got} {variance}");
            assert!(mean.abs() < 4.0 * (variance / 60_000.0_f64).sqrt());
        }
    }
}
