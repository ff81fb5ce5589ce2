//! A model file beside the model in use: the same rows, as the points of the model in use.
//!
//! A model that was retrained elsewhere may scale its columns by its own training rows, or encode
//! them in another way. Searches and certificates have points of the model in use, so every other
//! model must be a function of these points.

use std::path::Path;
use std::sync::Arc;

use super::{RetrainingView, input};
use crate::change::{BASE, Ensemble};
use crate::data::encode::{Affine, Block, Coding};
use crate::data::schema::ModelInput;
use crate::data::{Encoder, Row};
use crate::error::{Error, Result};
use crate::model::files::{Core, ImportOptions, ModelFile};
use crate::model::{Fingerprint, Mlp, Model, ModelSummary};
use crate::points::Points;

impl RetrainingView<'_> {
    /// Another model of the same rows, as a function of this explainer's points.
    ///
    /// `takes` are the columns that the file takes, those of the schema (`[model] input`) as a rule.
    /// Encoded columns of a file without an encoder are those of the model in use.
    pub fn fitted(self, model: ModelFile, takes: ModelInput) -> Result<Arc<dyn Model>> {
        let Self { explainer } = self;
        let beside = explainer.columns.as_deref();
        let columns = input::columns(explainer.reference(), &model, takes, beside)?;
        let own = input::encoder(explainer.schema(), &model, columns.as_ref())?;
        let core = input::core(&own, model)?;
        recoded(core, own, &explainer.encoder)
    }

    /// Whether an ensemble was retrained from the model file on its own scale of numbers, which is not
    /// that of this explainer.
    pub fn has_file_scale(self, ensemble: &Ensemble) -> bool {
        let Self { explainer } = self;
        let is_base = |model: &dyn Model| *model == **ensemble.base();
        explainer.raw.as_ref().is_some_and(|raw| is_base(raw.model()))
            && !is_base(explainer.model())
    }

    /// A network on the scale of the model file, as a function of this explainer's points: models
    /// that earlier versions retrained have that scale.
    pub fn rescaled(self, network: Mlp) -> Result<Mlp> {
        let Self { explainer } = self;
        let Some(raw) = &explainer.raw else { return Ok(network) };
        match affines(raw.encoder(), &explainer.encoder) {
            Some(affines) => Core::Mlp(network).standardised(&affines)?.into_network(),
            None => Err(other_scale()),
        }
    }

    /// The ensemble of a folder as functions of this explainer's points, if it was retrained from
    /// the same model file on another scale of numbers; otherwise as it is.
    pub(super) fn on_own_scale(self, ensemble: Ensemble, folder: &Path) -> Result<Ensemble> {
        let Self { explainer } = self;
        let Some(raw) = &explainer.raw else { return Ok(ensemble) };
        if *explainer.model == **ensemble.base() {
            return Ok(ensemble);
        }
        let base = ModelFile::read(&folder.join(BASE), &ImportOptions::default())?;
        let Some(theirs) = input::stored_encoder(&base, explainer.schema())? else {
            return Ok(ensemble);
        };
        let Some((behind, ahead)) =
            affines(raw.encoder(), &theirs).zip(affines(&theirs, &explainer.encoder))
        else {
            return Ok(ensemble);
        };
        if *raw.behind(&behind)?.model() != **ensemble.base() {
            return Ok(ensemble);
        }
        let moved = |member: &Arc<dyn Model>| -> Result<Arc<dyn Model>> {
            let network = member.network().cloned().ok_or_else(other_scale)?;
            Ok(Core::Mlp(network).standardised(&ahead)?.shared())
        };
        let members = ensemble.members().iter().map(moved).collect::<Result<_>>()?;
        Ensemble::new(Arc::clone(&explainer.model), members, ensemble.origin().clone())
    }
}

fn other_scale() -> Error {
    Error::InvalidModel("the retrained models are on another scale of numbers".to_owned())
}

/// The model that gives at points of `encoder` the scores of the core at points of its own encoder.
fn recoded(core: Core, own: Encoder, encoder: &Arc<Encoder>) -> Result<Arc<dyn Model>> {
    if own == **encoder {
        return Ok(core.shared());
    }
    // Rewriting keeps the gradients of a network.
    if let Some(affines) = affines(&own, encoder) {
        return Ok(core.standardised(&affines)?.shared());
    }
    for (theirs, block) in own.blocks().iter().filter_map(|theirs| {
        Some((theirs, encoder.blocks().iter().find(|block| block.feature == theirs.feature)?))
    }) {
        let levels = match &block.coding {
            Coding::Number { .. } => [].as_slice(),
            Coding::Code { levels, .. } | Coding::OneHot { levels, .. } => levels,
        };
        let mut columns = vec![0.0; theirs.width()];
        let mut levels = levels.iter().chain(&block.beside);
        levels.try_for_each(|level| theirs.encode(level, &mut columns))?;
    }
    Ok(Arc::new(Recoded { core: core.shared(), own, encoder: Arc::clone(encoder) }))
}

/// The affine from each column of an encoder to that of another, if nothing else differs.
fn affines(from: &Encoder, to: &Encoder) -> Option<Vec<Affine>> {
    let (ours, theirs) = (from.blocks(), to.blocks());
    if from.features() != to.features() || ours.len() != theirs.len() {
        return None;
    }
    let mut all = Vec::with_capacity(to.dim());
    for (from, to) in ours.iter().zip(theirs) {
        all.extend(block_affines(from, to)?);
    }
    // Only such columns can be rewritten.
    all.iter().all(|affine| affine.scale > 0.0 && affine.scale.is_normal()).then_some(all)
}

fn block_affines(from: &Block, to: &Block) -> Option<Vec<Affine>> {
    if from.feature != to.feature || from.beside != to.beside {
        return None;
    }
    let mut affines = match (&from.coding, &to.coding) {
        (
            Coding::Number { affine: from, clip, .. },
            Coding::Number { affine: to, clip: other, .. },
        ) if clip == other => vec![from.to(*to)],
        (
            Coding::Code { levels, codes, affine: from },
            Coding::Code { levels: other, codes: others, affine: to },
        ) if (levels, codes) == (other, others) => vec![from.to(*to)],
        (
            Coding::OneHot { levels, affines: from },
            Coding::OneHot { levels: other, affines: to },
        ) if levels == other => from.iter().zip(to).map(|(from, to)| from.to(*to)).collect(),
        _ => return None,
    };
    // A value with a column of its own has 0 in the first column, on any scale.
    if !from.beside.is_empty() && affines[0].offset != 0.0 {
        return None;
    }
    affines.resize(from.width(), Affine::IDENTITY);
    Some(affines)
}

/// A model with another encoding of the same rows: points are decoded and encoded again.
#[derive(Debug)]
struct Recoded {
    core: Arc<dyn Model>,
    own: Encoder,
    encoder: Arc<Encoder>,
}

impl Model for Recoded {
    fn dim(&self) -> usize {
        self.encoder.dim()
    }

    fn score_into(&self, points: &Points, scores: &mut [f32]) {
        let row = |point| Row::from_checked(self.encoder.decode_freely(point));
        let rows: Vec<Row> = points.rows().map(row).collect();
        match self.own.encode_rows(&rows) {
            Ok(points) => self.core.score_into(&points, scores),
            // The levels were checked, and a coordinate of a point is a number.
            Err(_) => scores.fill(f32::NAN),
        }
    }

    fn summary(&self) -> ModelSummary {
        self.core.summary()
    }

    fn identity(&self) -> Option<Fingerprint> {
        Some(Fingerprint::of_recoded(&self.core.identity()?, [&self.own, &self.encoder]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Value;
    use crate::model::{Activation, Dense, Mlp, Output};
    use crate::seed::Seed;
    use rand::RngExt;

    const NUMBER: &str = "age";
    const LEVEL: &str = "job";

    fn encoder(affine: Affine, levels: &[&str]) -> Encoder {
        let levels = levels.iter().map(|&level| Value::from(level)).collect();
        let blocks = vec![Block::number(NUMBER, affine), Block::one_hot(LEVEL, levels)];
        Encoder::from_blocks(vec![NUMBER.to_owned(), LEVEL.to_owned()], blocks).unwrap()
    }

    fn network() -> Mlp {
        let mut rng = Seed(3).rng();
        let mut draw = |count: usize| (0..count).map(|_| rng.random_range(-1.0..1.0)).collect();
        let layers = [
            Dense { weights: draw(12), bias: draw(4), activation: Activation::Tanh },
            Dense { weights: draw(4), bias: draw(1), activation: Activation::Identity },
        ];
        Mlp::new(3, &layers, Output::Sigmoid { favourable: true }).unwrap()
    }

    /// The scores of the same rows by the core and by the recoded model.
    fn compared(own: &Encoder, other: &Arc<Encoder>) -> (Arc<dyn Model>, f32) {
        let model = recoded(Core::Mlp(network()), own.clone(), other).unwrap();
        let row = |age: f64, job: &str| Row::from_checked(vec![Value::Number(age), job.into()]);
        let rows = [row(20.0, "a"), row(33.3, "b"), row(61.0, "a")];
        let expected = network().score(&own.encode_rows(&rows).unwrap());
        let scores = model.score(&other.encode_rows(&rows).unwrap());
        let difference =
            scores.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        (model, difference)
    }

    #[test]
    fn another_scale_is_rewritten_and_keeps_its_gradients() {
        let own = encoder(Affine { offset: 35.0, scale: 0.1 }, &["a", "b"]);
        let other = Arc::new(encoder(Affine { offset: 20.0, scale: 0.02 }, &["a", "b"]));
        let (model, difference) = compared(&own, &other);
        assert!(difference < 1e-6, "{difference}");
        assert!(model.network().is_some());
    }

    #[test]
    fn other_columns_are_encoded_again() {
        let own = encoder(Affine { offset: 35.0, scale: 0.1 }, &["a", "b"]);
        for other in [
            encoder(Affine { offset: 20.0, scale: 0.02 }, &["b", "a"]),
            encoder(Affine { offset: 20.0, scale: -0.02 }, &["a", "b"]),
        ] {
            let (model, difference) = compared(&own, &Arc::new(other));
            assert_eq!(difference, 0.0);
            assert!(model.network().is_none() && model.identity().is_some());
            assert_ne!(model.identity(), network().identity());
        }
    }

    #[test]
    fn the_same_columns_are_the_same_model() {
        let own = encoder(Affine::IDENTITY, &["a", "b"]);
        let model = recoded(Core::Mlp(network()), own.clone(), &Arc::new(own)).unwrap();
        assert_eq!(model.network(), Some(&network()));
    }

    #[test]
    fn a_level_that_the_file_does_not_know_is_an_error() {
        let own = encoder(Affine::IDENTITY, &["a", "b"]);
        let other = Arc::new(encoder(Affine::IDENTITY, &["a", "b", "c"]));
        let error = recoded(Core::Mlp(network()), own, &other).unwrap_err().to_string();
        assert_eq!(error, "schema, feature `job`: found `c`, expected one of `a`, `b`");
    }
}
