//! The parameters of a training, and their ranges.

use std::fmt;
use std::path::Path;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result, in_short_lines};
use crate::file::{DOCUMENT_BYTES, read_text};
use crate::model::Activation;

/// How a network is built and trained.
///
/// | name | default | paper | meaning | range |
/// |---|---|---|---|---|
/// | `hidden` | `[128, 128]` | | widths of the hidden layers | each at least 1 |
/// | `activation` | ReLU | | of the hidden layers | |
/// | `output` | sigmoid | | one logit, or a softmax over classes | |
/// | `initialisation` | Glorot uniform | | of the weights; biases start at 0 | |
/// | `epochs` | 100 | 50 | passes over the rows, at most | at least 1 |
/// | `batch` | 32 | | rows per step; the last batch may be smaller | at least 1 |
/// | `learning_rate` | 0.001 | | of Adam | positive |
/// | `beta1`, `beta2`, `epsilon` | 0.9, 0.999, 1e-7 | | of Adam | `[0, 1)`, `[0, 1)`, positive |
/// | `schedule` | constant | | the learning rate over the epochs | |
/// | `l2` | 1e-4 | 0 | penalty on squared weights | at least 0 |
/// | `dropout` | 0 | | share of hidden units left out of a step | `[0, 1)` |
/// | `class_weights` | none | | weights of the classes in the loss | |
/// | `early_stopping` | a fifth, 10 epochs | none | stop when held-out rows no longer improve | |
///
/// The default is for use: it was chosen by the loss of validation rows (`docs/training.md`).
/// [`paper`](Self::paper) is the training of the paper, for experiments. A parameter that is absent
/// from a recipe, a plan or an experiment has the value of `paper`, which was the default when the
/// first of them were written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default = "TrainParams::paper", deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrainParams {
    /// Widths of the hidden layers.
    pub hidden: Vec<usize>,
    /// Activation of the hidden layers.
    pub activation: Activation,
    /// One logit, or a softmax over classes.
    pub output: OutputLayer,
    /// How weights start.
    pub initialisation: Initialisation,
    /// Passes over the rows.
    pub epochs: usize,
    /// Rows per step.
    pub batch: usize,
    /// Adam's step size.
    pub learning_rate: f64,
    /// Adam's memory of gradients.
    pub beta1: f64,
    /// Adam's memory of squared gradients.
    pub beta2: f64,
    /// Adam's guard against division by zero.
    pub epsilon: f64,
    /// The learning rate over the epochs.
    pub schedule: Schedule,
    /// Penalty on squared weights.
    pub l2: f64,
    /// Share of hidden units left out of a step; none when the network is used.
    pub dropout: f64,
    /// Weights of the classes in the loss.
    pub class_weights: ClassWeights,
    /// Stop when held-out rows no longer improve.
    #[serde(deserialize_with = "stopping_or_none")]
    pub early_stopping: Option<EarlyStopping>,
}

impl Default for TrainParams {
    fn default() -> Self {
        let stopping = EarlyStopping { fraction: 0.2, patience: 10, min_delta: 0.0 };
        Self { epochs: 100, l2: 1e-4, early_stopping: Some(stopping), ..Self::paper() }
    }
}

impl TrainParams {
    /// The training of the paper: a fixed number of epochs on all rows, without a penalty.
    pub fn paper() -> Self {
        Self {
            hidden: vec![128, 128],
            activation: Activation::Relu,
            output: OutputLayer::Sigmoid,
            initialisation: Initialisation::GlorotUniform,
            epochs: 50,
            batch: 32,
            learning_rate: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-7,
            schedule: Schedule::Constant,
            l2: 0.0,
            dropout: 0.0,
            class_weights: ClassWeights::None,
            early_stopping: None,
        }
    }
}

/// The output of a network to be trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputLayer {
    /// One logit for the favourable class. Labels are 0 (unfavourable) and 1 (favourable).
    Sigmoid,
    /// One logit per class.
    Softmax {
        /// The number of classes.
        classes: usize,
        /// The favourable one.
        favourable: usize,
    },
}

/// How weights start, for a layer with `i` inputs and `o` outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Initialisation {
    /// Uniform in `+- sqrt(6 / (i + o))`: Keras' default.
    GlorotUniform,
    /// Normal with variance `2 / (i + o)`.
    GlorotNormal,
    /// Uniform in `+- sqrt(6 / i)`.
    HeUniform,
    /// Normal with variance `2 / i`.
    HeNormal,
}

/// The learning rate over the epochs, as a factor of the rate given.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Always 1.
    Constant,
    /// `factor^epoch`
    Exponential {
        /// The factor per epoch.
        factor: f64,
    },
    /// `factor^(epoch / every)`, rounded down.
    Step {
        /// Epochs between two drops.
        every: usize,
        /// The factor per drop.
        factor: f64,
    },
    /// Half a cosine from 1 down to `floor` over all epochs.
    Cosine {
        /// The factor at the end.
        floor: f64,
    },
}

impl Schedule {
    pub(super) fn factor(self, epoch: usize, epochs: usize) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Exponential { factor } => factor.powi(epoch as i32),
            Self::Step { every, factor } => factor.powi((epoch / every.max(1)) as i32),
            Self::Cosine { floor } => {
                let done = epoch as f64 / epochs.max(1) as f64;
                floor + (1.0 - floor) * 0.5 * (1.0 + (std::f64::consts::PI * done).cos())
            }
        }
    }
}

/// Weights of the classes in the loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassWeights {
    /// All 1.
    None,
    /// `rows / (classes * rows of the class)`: every class counts the same in total.
    Balanced,
    /// One weight per class, in the order of the labels.
    Given(Vec<f64>),
}

/// When to stop before the last epoch. The network with the lowest held-out loss is kept.
///
/// Copies of a row, as in a bootstrap, are held out together and count once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EarlyStopping {
    /// Share of the rows held out, drawn by seed.
    pub fraction: f64,
    /// Epochs without improvement before stopping.
    pub patience: usize,
    /// The least decrease of the loss that counts.
    pub min_delta: f64,
}

impl Default for EarlyStopping {
    fn default() -> Self {
        Self { fraction: 0.1, patience: 5, min_delta: 0.0 }
    }
}

/// Reads fields, or `none` as a word, since TOML has no null.
fn stopping_or_none<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<EarlyStopping>, D::Error> {
    struct StoppingOrNone;

    impl<'de> Visitor<'de> for StoppingOrNone {
        type Value = Option<EarlyStopping>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("`none`, or fields such as `patience`")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
            match word {
                "none" => Ok(None),
                other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
            }
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            EarlyStopping::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }

    deserializer.deserialize_any(StoppingOrNone)
}

impl TrainParams {
    /// The same parameters with those of a TOML file in their place.
    pub fn with_file(&self, path: &Path) -> Result<Self> {
        let text = read_text(path, DOCUMENT_BYTES)?;
        let wrong = |problem| Error::ParamFile { file: path.to_owned(), problem };
        let unreadable = |error: toml::de::Error| wrong(in_short_lines(&error.to_string()));
        // Read by its type first: these errors name the line.
        toml::from_str::<Self>(&text).map_err(unreadable)?;
        let changes = toml::from_str(&text).map_err(unreadable)?;
        self.with(&changes).map_err(|error| wrong(error.to_string()))
    }

    /// The same parameters with others in their place, by their names in files. Of parameters with
    /// fields, such as `early-stopping`, fields that are absent stay.
    pub fn with(&self, changes: &Map<String, Value>) -> Result<Self> {
        let wrong = |problem: &dyn std::fmt::Display| {
            let expected = format!("training parameters: {problem}");
            Error::param("training", Value::Object(changes.clone()), expected)
        };
        let mut whole = serde_json::to_value(self).map_err(|error| wrong(&error))?;
        for (name, value) in changes {
            match (&mut whole[name], value) {
                // Another choice, such as another schedule, replaces the old one.
                (Value::Object(own), Value::Object(fields))
                    if fields.keys().all(|field| own.contains_key(field)) =>
                {
                    own.extend(fields.clone());
                }
                (own, value) => *own = value.clone(),
            }
        }
        let params: Self = serde_json::from_value(whole).map_err(|error| wrong(&error))?;
        params.check()?;
        Ok(params)
    }

    /// Checks that every parameter is in its range.
    pub(crate) fn check(&self) -> Result<()> {
        let params = self;
        let at_least_one = |name, value: usize| match value {
            0 => Err(Error::param(name, value, "at least 1")),
            _ => Ok(()),
        };
        let within = |name, value: f64, accepted: bool, expected: &str| {
            if accepted { Ok(()) } else { Err(Error::param(name, value, expected)) }
        };
        at_least_one("epochs", params.epochs)?;
        at_least_one("batch", params.batch)?;
        for &width in &params.hidden {
            at_least_one("hidden", width)?;
        }
        let rate = params.learning_rate;
        within("learning-rate", rate, rate > 0.0 && rate.is_finite(), "a positive number")?;
        within("beta1", params.beta1, (0.0..1.0).contains(&params.beta1), "a number in [0, 1)")?;
        within("beta2", params.beta2, (0.0..1.0).contains(&params.beta2), "a number in [0, 1)")?;
        let epsilon = params.epsilon;
        within("epsilon", epsilon, epsilon > 0.0 && epsilon.is_finite(), "a positive number")?;
        within(
            "l2",
            params.l2,
            params.l2 >= 0.0 && params.l2.is_finite(),
            "a number of at least 0",
        )?;
        within(
            "dropout",
            params.dropout,
            (0.0..1.0).contains(&params.dropout),
            "a number in [0, 1)",
        )?;
        match params.schedule {
            Schedule::Constant => {}
            Schedule::Exponential { factor } | Schedule::Step { factor, .. } => {
                within(
                    "schedule factor",
                    factor,
                    factor > 0.0 && factor <= 1.0,
                    "a number in (0, 1]",
                )?;
            }
            Schedule::Cosine { floor } => {
                within(
                    "schedule floor",
                    floor,
                    (0.0..=1.0).contains(&floor),
                    "a number in [0, 1]",
                )?;
            }
        }
        if let Schedule::Step { every, .. } = params.schedule {
            at_least_one("schedule every", every)?;
        }
        if let Some(stopping) = params.early_stopping {
            let fraction = stopping.fraction;
            within(
                "early-stopping fraction",
                fraction,
                fraction > 0.0 && fraction < 1.0,
                "a number between 0 and 1",
            )?;
            let delta = stopping.min_delta;
            within("early-stopping min-delta", delta, delta >= 0.0, "a number of at least 0")?;
        }
        if let OutputLayer::Softmax { classes, favourable } = params.output {
            if classes < 2 {
                return Err(Error::param("classes", classes, "at least 2"));
            }
            if favourable >= classes {
                return Err(Error::param(
                    "favourable",
                    favourable,
                    format!("a class below {classes}"),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_changed_by_name() {
        let changed =
            |params: &TrainParams, text: &str| params.with(&serde_json::from_str(text).unwrap());
        let usual = TrainParams::paper();
        assert_eq!(changed(&usual, "{}").unwrap(), usual);
        let text = r#"{"l2": 0.01, "early-stopping": {"patience": 9}, "hidden": [4]}"#;
        let params = changed(&usual, text).unwrap();
        let patient = EarlyStopping { patience: 9, ..EarlyStopping::default() };
        assert_eq!((params.l2, params.early_stopping), (0.01, Some(patient)));
        assert_eq!((params.hidden.as_slice(), params.epochs), (&[4][..], 50));
        let params = changed(&params, r#"{"early-stopping": {"fraction": 0.3}}"#).unwrap();
        assert_eq!(params.early_stopping, Some(EarlyStopping { fraction: 0.3, ..patient }));
        let params = changed(&params, r#"{"schedule": {"cosine": {"floor": 0.1}}}"#).unwrap();
        let params = changed(&params, r#"{"schedule": {"exponential": {"factor": 0.9}}}"#).unwrap();
        assert_eq!(params.schedule, Schedule::Exponential { factor: 0.9 });
        for none in [r#"{"early-stopping": null}"#, r#"{"early-stopping": "none"}"#] {
            assert_eq!(changed(&params, none).unwrap().early_stopping, None);
        }
        for (wrong, problem) in [
            (r#"{"epoch": 3}"#, "unknown field `epoch`"),
            (r#"{"epochs": "many"}"#, "invalid type"),
            (r#"{"epochs": 0}"#, "parameter `epochs` is 0"),
            (r#"{"early-stopping": {"waits": 1}}"#, "unknown field `waits`"),
            (r#"{"early-stopping": "never"}"#, "expected `none`, or fields such as `patience`"),
            (r#"{"early-stopping": 5}"#, "expected `none`, or fields such as `patience`"),
        ] {
            let error = changed(&usual, wrong).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_parameter_that_a_recipe_lacks_is_the_papers() {
        let read = |text: &str| serde_json::from_str::<TrainParams>(text).unwrap();
        assert_eq!(read("{}"), TrainParams::paper());
        assert_ne!(TrainParams::default(), TrainParams::paper());
        let early = EarlyStopping { fraction: 0.1, patience: 9, min_delta: 0.0 };
        let expected = TrainParams { early_stopping: Some(early), ..TrainParams::paper() };
        assert_eq!(read(r#"{"early-stopping": {"patience": 9}}"#), expected);
        // Written in full, as recipes are.
        for params in [TrainParams::default(), TrainParams::paper()] {
            assert_eq!(read(&serde_json::to_string(&params).unwrap()), params);
        }
        let paper = serde_json::to_value(TrainParams::paper()).unwrap();
        let first = r#"{"hidden":[128,128],"activation":"relu","output":"sigmoid",
            "initialisation":"glorot-uniform","epochs":50,"batch":32,"learning-rate":0.001,
            "beta1":0.9,"beta2":0.999,"epsilon":1e-7,"schedule":"constant","l2":0.0,"dropout":0.0,
            "class-weights":"none","early-stopping":null}"#;
        assert_eq!(paper, serde_json::from_str::<Value>(first).unwrap());
    }

    #[test]
    fn a_file_changes_the_parameters_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.toml");
        let read = |base: &TrainParams, text: &str| {
            std::fs::write(&path, text).unwrap();
            base.with_file(&path)
        };
        for base in [TrainParams::default(), TrainParams::paper()] {
            assert_eq!(read(&base, "").unwrap(), base);
            let none = read(&base, "early-stopping = \"none\"\nbatch = 8").unwrap();
            assert_eq!(none, TrainParams { batch: 8, early_stopping: None, ..base.clone() });
        }
        let patient = read(&TrainParams::default(), "early-stopping = { patience = 3 }").unwrap();
        let expected = EarlyStopping { fraction: 0.2, patience: 3, min_delta: 0.0 };
        assert_eq!(patient.early_stopping, Some(expected));
        for (wrong, problem) in [
            ("epoch = 3", "unknown field `epoch`"),
            ("batch = 8\nepochs = \"many\"", "line 2"),
            ("epochs = 0", "parameter `epochs` is 0"),
        ] {
            let error = read(&TrainParams::default(), wrong).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("train.toml"), "{error}");
        }
    }

    #[test]
    fn schedules_follow_their_formulas() {
        let at = |schedule: Schedule, epoch| schedule.factor(epoch, 10);
        assert_eq!(at(Schedule::Constant, 7), 1.0);
        assert_eq!(at(Schedule::Exponential { factor: 0.5 }, 3), 0.125);
        assert_eq!(at(Schedule::Step { every: 3, factor: 0.1 }, 2), 1.0);
        assert_eq!(at(Schedule::Step { every: 3, factor: 0.1 }, 3), 0.1);
        assert_eq!(at(Schedule::Cosine { floor: 0.2 }, 0), 1.0);
        assert!((at(Schedule::Cosine { floor: 0.2 }, 5) - 0.6).abs() < 1e-12);
    }
}
