//! The same model at points with a column for each missing value.
//!
//! A point has finite coordinates, so that distances are numbers: a missing value is 0 in the column
//! of its feature and 1 in a column beside it. Here the core is rewritten for such points.

use super::Core;
use super::preprocessing::{fold_network, fold_trees};
use crate::error::{Error, Result};
use crate::model::trees::Substitute;
use crate::model::{Mlp, Model as _};

impl Core {
    /// The core whose column `j` is column `columns[j]` of `dim`, with other values where columns
    /// beside it say that a value is missing. A network cannot take NaN.
    ///
    /// For a network `x_j = z_j + value * indicator`, since `z_j` is 0 where the indicator is 1.
    pub(crate) fn with_substitutes(
        self,
        dim: usize,
        columns: &[usize],
        substitutes: &[Substitute],
    ) -> Result<Self> {
        let places: Vec<_> = columns.iter().map(|&column| (column, 1.0, 0.0)).collect();
        match self {
            Self::Trees(trees) => {
                Ok(Self::Trees(fold_trees(&trees, dim, &places)?.with_substitutes(substitutes)))
            }
            Self::Mlp(network) => {
                let network = fold_network(&network, dim, &places)?;
                let mut layers = network.layers();
                let Some(first) = layers.first_mut() else {
                    return Err(Error::InvalidModel("a network without layers".into()));
                };
                let outputs = first.bias.len();
                for &Substitute { column, indicator, value } in substitutes {
                    for output in 0..outputs {
                        let weight = first.weights[column * outputs + output];
                        first.weights[indicator * outputs + output] = weight * value;
                    }
                }
                Mlp::new(network.dim(), &layers, network.output()).map(Self::Mlp)
            }
        }
    }
}
