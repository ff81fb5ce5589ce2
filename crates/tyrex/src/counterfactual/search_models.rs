//! Models retrained for a search.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::{Committee, Model};

/// Models retrained for a search: some to search over, others to choose the margin.
///
/// The answer depends on both, so no certificate may rest on either: a certificate needs models
/// that are neither.
#[derive(Debug, Clone)]
pub struct SearchModels {
    /// The model in use, then the models to search over.
    pub(crate) search: Committee,
    /// The models that choose the margin, if there are any.
    pub(crate) tune: Option<Committee>,
}

impl SearchModels {
    /// The model in use, the models to search over, and those that choose the margin.
    pub fn new(
        model: Arc<dyn Model>,
        search: Vec<Arc<dyn Model>>,
        tune: Vec<Arc<dyn Model>>,
    ) -> Result<Self> {
        if search.is_empty() {
            return Err(Error::param("search models", 0, "at least 1"));
        }
        let dim = model.dim();
        let search = Committee::new(std::iter::once(model).chain(search).collect())?;
        let tune = if tune.is_empty() { None } else { Some(Committee::new(tune)?) };
        if let Some(tune) = tune.as_ref().filter(|tune| tune.dim() != dim) {
            return Err(Error::Dimension {
                what: "coordinates that a model takes".to_owned(),
                expected: dim,
                got: tune.dim(),
            });
        }
        Ok(Self { search, tune })
    }

    /// The retrained models: those to search over, then those that choose the margin.
    pub(crate) fn retrained(&self) -> Vec<&dyn Model> {
        let tune = self.tune.iter().flat_map(Committee::models);
        // The first is the model in use.
        self.search.models().iter().skip(1).chain(tune).map(|model| &**model).collect()
    }
}
