//! The scale of numbers of a model that takes raw columns.
//!
//! A step of 0.1 means something else for years than for incomes. The numbers of such a model are
//! brought to one scale, by the schema's `[scaling]`: the encoder scales them, and the model is
//! rewritten to take them so. It stays the same function of a row, up to rounding, and keeps the
//! fingerprint of its file.
//!
//! The scale is fitted on the training rows of the reference. Rows to explain never decide it, since
//! an answer would then depend on other applicants. Without training rows, numbers keep the scale of
//! the model file, and the answer says so.

use std::sync::Arc;

use super::{Explainer, Reference};
use crate::data::encode::{Affine, Block, Coding, Scale};
use crate::data::schema::{ModelInput, Scaling};
use crate::data::{Encoder, listed};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::model::files::Core;

/// A model on raw columns: its core and encoder on the scale of its file, and the scale in use.
#[derive(Debug)]
pub(super) struct RawModel {
    encoder: Encoder,
    core: Core,
    /// `None` if numbers keep the scale of the file.
    scale: Option<Scale>,
}

impl RawModel {
    /// The model on the scale of the reference; `None` for a model that takes encoded columns.
    pub(super) fn of(reference: &Reference, encoder: &Encoder, core: &Core) -> Option<Self> {
        let schema = reference.schema();
        if schema.model.input != ModelInput::Raw {
            return None;
        }
        // A threshold on the model's own scale may equal a value exactly; rounding through another
        // scale would then change the score.
        let plain = core.has_thresholds();
        let scale = encoder.common_scale(schema, &reference.scale_rows(), plain);
        let scale = Some(scale).filter(|scale| !scale.is_empty());
        Some(Self { encoder: encoder.clone(), core: core.clone(), scale })
    }

    /// The model as its file has it.
    pub(super) fn model(&self) -> &dyn Model {
        self.core.model()
    }

    /// The encoder on the scale of the file.
    pub(super) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The encoder and the core on the scale in use.
    pub(super) fn scaled(&self) -> Result<(Encoder, Core)> {
        match &self.scale {
            None => Ok((self.encoder.clone(), self.core.clone())),
            Some(scale) => {
                let (encoder, affines) = self.encoder.on_scale(scale)?;
                Ok((encoder, self.core.clone().standardised(&affines)?))
            }
        }
    }

    /// The core on another scale of the same columns.
    pub(super) fn behind(&self, affines: &[Affine]) -> Result<Core> {
        self.core.clone().standardised(affines)
    }
}

impl Explainer {
    /// The scales of numbers in points, for a model that takes raw columns; `None` if points have
    /// the scale of the model file.
    pub fn scale(&self) -> Option<&Scale> {
        self.raw.as_ref()?.scale.as_ref()
    }

    /// The statement that points have no common scale, if there should be one.
    pub(super) fn scale_doubt(&self) -> Option<String> {
        let (raw, schema) = (self.raw.as_ref()?, self.schema());
        if !self.reference.scale_rows().is_empty() {
            return None;
        }
        let is_plain =
            |block: &Block| matches!(block.coding, Coding::Number { affine: Affine::IDENTITY, .. });
        let would_be_scaled = |block: &&Block| {
            let feature = schema.position(&block.feature).map(|at| &schema.features[at]);
            let own = feature.and_then(|feature| feature.scaling);
            matches!(block.coding, Coding::Number { .. })
                && own.unwrap_or(schema.scaling.method) != Scaling::None
                && (is_plain(block) || !raw.core.has_thresholds())
        };
        let numbers: Vec<&Block> = raw.encoder.blocks().iter().filter(would_be_scaled).collect();
        let plain = numbers.iter().filter(|block| is_plain(block));
        let plain: Vec<&str> = plain.map(|block| &*block.feature).collect();
        let plain = match plain.as_slice() {
            [] => String::new(),
            plain => format!(", which does not scale {}", listed(plain)),
        };
        (!numbers.is_empty()).then(|| {
            format!(
                "There are no training rows to fit the schema's scale on, so `sigma` and costs are \
                 on the scale of the model file{plain}; pass the training rows as the reference."
            )
        })
    }

    /// The same model and reference, with numbers on another scale, to verify what was found on it.
    pub fn on_scale(&self, scale: Option<&Scale>) -> Result<Self> {
        if self.scale() == scale {
            return Ok(self.clone());
        }
        let Some(raw) = &self.raw else {
            return Err(Error::InvalidModel(
                "it takes encoded columns, expected raw columns, which can have another scale"
                    .to_owned(),
            ));
        };
        let scale = scale.cloned();
        let raw = RawModel { encoder: raw.encoder.clone(), core: raw.core.clone(), scale };
        let (encoder, core) = raw.scaled()?;
        let reference = (*self.reference).clone();
        let made = Self::assemble(reference, encoder, None, core.shared(), None, None)?;
        Ok(Self {
            raw: Some(Arc::new(raw)),
            recipe: self.recipe.clone(),
            params: self.params.clone(),
            warnings: Arc::clone(&self.warnings),
            ..made
        })
    }
}
