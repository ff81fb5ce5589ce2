//! The folder that `bench/problem.py` writes.

use std::path::Path;

use anyhow::{Context, Result, bail};
use tyrex::Points;
use tyrex::model::{Activation, Dense, Mlp, Output};

use super::read_rows;

const HIDDEN: [usize; 2] = [128, 128];

/// A network and what is to be explained.
pub(crate) struct Problem {
    pub(crate) network: Mlp,
    pub(crate) rows: Points,
    pub(crate) factuals: Points,
    pub(crate) offsets: Points,
}

impl Problem {
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let points = |name: &str| read_rows(&folder.join(name)).map(|(points, _)| points);
        Ok(Self {
            network: read_network(&folder.join("models.bin"))?,
            rows: points("rows.bin")?,
            factuals: points("factuals.bin")?,
            offsets: points("offsets.bin")?,
        })
    }
}

/// The first model of the file: the others are for the judge.
fn read_network(file: &Path) -> Result<Mlp> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let (words, _) = bytes.as_chunks::<4>();
    let [_, columns, values @ ..] = words else {
        bail!("{}: too short for a header", file.display());
    };
    let columns = u32::from_le_bytes(*columns) as usize;
    let mut values = values.iter().map(|word| f32::from_le_bytes(*word));
    let widths = [columns, HIDDEN[0], HIDDEN[1], 1];
    let layers: Vec<Dense> = widths
        .windows(2)
        .enumerate()
        .map(|(index, pair)| Dense {
            weights: values.by_ref().take(pair[0] * pair[1]).collect(),
            bias: values.by_ref().take(pair[1]).collect(),
            activation: if index < HIDDEN.len() { Activation::Relu } else { Activation::Identity },
        })
        .collect();
    Ok(Mlp::new(columns, &layers, Output::Sigmoid { favourable: true })?)
}
