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
    /// Other networks, to search over.
    pub(crate) search: Vec<Mlp>,
    pub(crate) rows: Points,
    /// Of the rows: 1 for favourable.
    pub(crate) labels: Vec<u32>,
    pub(crate) factuals: Points,
    pub(crate) offsets: Points,
}

impl Problem {
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let points = |name: &str| read_rows(&folder.join(name)).map(|(points, _)| points);
        // The other models of the first file are for the judge.
        let (rows, labels) = read_rows(&folder.join("rows.bin"))?;
        let models = read_networks(&folder.join("models.bin"))?;
        Ok(Self {
            network: models.into_iter().next().context("models.bin has no model")?,
            search: read_networks(&folder.join("search.bin"))?,
            rows,
            labels,
            factuals: points("factuals.bin")?,
            offsets: points("offsets.bin")?,
        })
    }
}

/// The models of a file.
fn read_networks(file: &Path) -> Result<Vec<Mlp>> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let (words, _) = bytes.as_chunks::<4>();
    let [count, columns, values @ ..] = words else {
        bail!("{}: too short for a header", file.display());
    };
    let count = u32::from_le_bytes(*count);
    let columns = u32::from_le_bytes(*columns) as usize;
    let mut values = values.iter().map(|word| f32::from_le_bytes(*word));
    let widths = [columns, HIDDEN[0], HIDDEN[1], 1];
    let network = |_| {
        let layers: Vec<Dense> = widths
            .windows(2)
            .enumerate()
            .map(|(index, pair)| {
                let activation =
                    if index < HIDDEN.len() { Activation::Relu } else { Activation::Identity };
                let weights = values.by_ref().take(pair[0] * pair[1]).collect();
                Dense { weights, bias: values.by_ref().take(pair[1]).collect(), activation }
            })
            .collect();
        Ok(Mlp::new(columns, &layers, Output::Sigmoid { favourable: true })?)
    };
    (0..count).map(network).collect()
}
