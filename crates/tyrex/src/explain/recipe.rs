//! The recipe of a network: how it was trained. Models are retrained by it.
//!
//! A network that this crate trained has its recipe in its file. For other files the recipe is
//! assumed, unless the user gives the parameters.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Explainer, RetrainingView, training_points};
use crate::certificate::RecipeSource;
use crate::data::schema::Split;
use crate::error::{Error, Result};
use crate::model::onnx::RECIPE_KEY;
use crate::model::{Examples, Fingerprint, TrainParams};
use crate::seed::Seed;

/// How a network was trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The parameters.
    pub params: TrainParams,
    /// The seed.
    pub seed: Seed,
    /// The number of training rows.
    pub rows: usize,
    /// SHA-256 of the encoded training rows and their labels, in their order.
    pub digest: Fingerprint,
}

impl Recipe {
    /// The recipe of a training on these rows.
    pub(super) fn of(examples: &Examples<'_>, params: &TrainParams, seed: Seed) -> Self {
        let rows = examples.rows.map_or(examples.points.len(), <[_]>::len);
        let digest = Fingerprint::of_examples(examples);
        Self { params: params.clone(), seed, rows, digest }
    }

    /// The recipe in the metadata of a file, if this crate wrote one.
    pub(super) fn read(metadata: &BTreeMap<String, String>) -> Result<Option<Self>> {
        // Another tool may have written different content under the same key.
        let own = metadata.contains_key("tyrex_version");
        let Some(text) = metadata.get(RECIPE_KEY).filter(|_| own) else { return Ok(None) };
        let damaged = |problem: &dyn std::fmt::Display| {
            Error::InvalidModel(format!("the recipe in its metadata is damaged: {problem}"))
        };
        let recipe: Self = serde_json::from_str(text).map_err(|error| damaged(&error))?;
        recipe.params.check().map_err(|error| damaged(&error))?;
        Ok(Some(recipe))
    }

    /// Its text in a file.
    pub(super) fn text(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Error::InvalidModel(format!("its recipe has no text: {error}")))
    }
}

impl<'a> RetrainingView<'a> {
    /// How the model was trained, if this crate trained it, now or before it was written to a file.
    pub fn recipe(self) -> Option<&'a Recipe> {
        self.explainer.recipe.as_deref()
    }

    /// The same explainer, whose model is retrained with these parameters in place of others, by
    /// their names in files.
    pub fn with(self, changes: &Map<String, Value>) -> Result<Explainer> {
        if changes.is_empty() {
            return Ok(self.explainer.clone());
        }
        self.with_params(self.params()?.with(changes)?)
    }

    /// The same explainer, whose model is retrained with these parameters.
    pub fn with_params(self, params: TrainParams) -> Result<Explainer> {
        params.check()?;
        // Parameters that repeat the model's own do not hide where those come from.
        let params = (params != self.explainer.own_params()?).then(|| Arc::new(params));
        Ok(Explainer { params, ..self.explainer.clone() })
    }

    /// The parameters to retrain the model: those that were given, those it was trained with, or,
    /// for a model file without a recipe, its layers and the default training.
    pub fn params(self) -> Result<TrainParams> {
        match &self.explainer.params {
            Some(params) => Ok((**params).clone()),
            None => self.explainer.own_params(),
        }
    }

    /// The source of [`params`](Self::params).
    pub fn source(self) -> RecipeSource {
        match &self.explainer.params {
            Some(_) => RecipeSource::Given,
            None => self.explainer.own_source(),
        }
    }
}

impl Explainer {
    /// The source of parameters of retrained models: given, unless they are the model's own.
    pub(super) fn source_of(&self, params: &TrainParams) -> RecipeSource {
        match self.own_params() {
            Ok(own) if own == *params => self.own_source(),
            _ => RecipeSource::Given,
        }
    }

    fn own_source(&self) -> RecipeSource {
        match self.retraining().recipe() {
            None if self.training.is_some() => RecipeSource::Known,
            None => RecipeSource::Assumed,
            // Rows without labels, such as counterfactuals, cannot be the training rows.
            Some(_) if !self.reference().has_labels() => RecipeSource::Known,
            Some(recipe) if self.has_own_rows(recipe) => RecipeSource::Known,
            Some(_) => RecipeSource::OtherRows,
        }
    }

    /// The same with this split of the reference, if the model was trained on its training rows and
    /// the reference has no split.
    pub(super) fn with_split_of_training(&self, split: &Split) -> Option<Self> {
        let recipe = self.recipe.as_deref()?;
        if self.schema().split != Split::AllTrain || self.has_own_rows(recipe) {
            return None;
        }
        // A column of the split may be absent: these are other rows.
        let reference = self.reference.with_split(split).ok()?;
        let reference_points = training_points(&reference, &self.points);
        let reference = Arc::new(reference);
        let (has_own_rows, plausibility) = (Arc::default(), Arc::default());
        let made = Self { reference, has_own_rows, reference_points, plausibility, ..self.clone() };
        made.has_own_rows(recipe).then_some(made)
    }

    /// The difference between the training rows of the reference and those of the model, if models
    /// are retrained on the former.
    pub(super) fn rows_doubt(&self) -> Option<String> {
        if self.retraining().source() != RecipeSource::OtherRows {
            return None;
        }
        let (trained, own) = (self.recipe.as_ref()?.rows, self.training_rows().len());
        let differs = if trained == own {
            "whose values, labels or order differ".to_owned()
        } else {
            format!("which are {own}")
        };
        Some(format!(
            "The model was trained on {trained} rows that are not the training rows of the \
             reference, {differs}: retrained models learn from other rows than the model did. Pass \
             the file that it was trained on as the reference."
        ))
    }

    fn has_own_rows(&self, recipe: &Recipe) -> bool {
        *self.has_own_rows.get_or_init(|| self.has_rows_of(recipe))
    }

    /// Whether the model was trained on the training rows of the reference.
    fn has_rows_of(&self, recipe: &Recipe) -> bool {
        let rows = self.training_rows();
        if rows.len() != recipe.rows {
            return false;
        }
        let mut labels = vec![0; self.points().len()];
        for &row in &rows {
            let Some(favourable) = self.reference().is_favourable(row) else { return false };
            labels[row] = u32::from(favourable);
        }
        let examples = Examples::new(self.points(), &labels).with_rows(&rows);
        Fingerprint::of_examples(&examples) == recipe.digest
    }

    /// The parameters to retrain the model, without those that were given: those it was trained
    /// with, or, for a model file without a recipe, its layers and the default training.
    fn own_params(&self) -> Result<TrainParams> {
        if let Some(training) = self.training() {
            return Ok(training.params.clone());
        }
        // Checked first, so that the error for trees does not depend on their file.
        let layers = self.base()?.layers();
        if let Some(recipe) = self.retraining().recipe() {
            return Ok(recipe.params.clone());
        }
        let hidden = &layers[..layers.len().saturating_sub(1)];
        let mut params = TrainParams {
            hidden: hidden.iter().map(|layer| layer.bias.len()).collect(),
            ..TrainParams::default()
        };
        if let Some(first) = hidden.first() {
            params.activation = first.activation;
        }
        Ok(params)
    }
}
