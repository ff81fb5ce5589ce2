//! How models change: trained again in another way, moved a little, or against one point on
//! purpose.
//!
//! A [`ModelChange`] is a random way to make another model; an [`Ensemble`] is a base model
//! and what such a change made of it, many times. Every statement about changed models speaks
//! about one change, by name. [`Targeted`] stands apart: it is not random, so no ensemble can
//! be made of it and no certificate covers it.

mod architecture;
mod bootstrap;
mod ensemble;
mod fine_tune;
mod folder;
mod hyperparameters;
mod leave_out;
mod member;
mod observed;
mod reinitialise;
mod resume;
mod targeted;
mod weight_noise;

pub use architecture::Architecture;
pub use bootstrap::Bootstrap;
pub use ensemble::{Ensemble, Plan};
pub use fine_tune::FineTune;
pub use folder::MANIFEST;
pub use hyperparameters::Hyperparameters;
pub use leave_out::LeaveOut;
pub use observed::ObservedChange;
pub use reinitialise::Reinitialise;
pub use resume::PLAN;
pub use targeted::Targeted;
pub use weight_noise::WeightNoise;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, in_short_lines};
use crate::model::TrainParams;
use member::Change;

/// The catalogue: a change is a file and a line here.
macro_rules! catalogue {
    ($($(#[$what:meta])+ $kind:ident,)+) => {
        /// A random way in which a model changes.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "name", rename_all = "kebab-case")]
        pub enum ModelChange {
            $($(#[$what])+ $kind($kind),)+
        }

        impl ModelChange {
            /// One of each, with its usual parameters.
            #[must_use]
            pub fn all() -> Vec<Self> {
                vec![$(Self::$kind($kind::default()),)+]
            }

            fn change(&self) -> &dyn Change {
                match self {
                    $(Self::$kind(change) => change,)+
                }
            }
        }
    };
}

catalogue! {
    /// New weights and another order of the rows.
    Reinitialise,
    /// The same, without some of the rows.
    LeaveOut,
    /// The same, on as many rows drawn with replacement.
    Bootstrap,
    /// The same, with other hidden layers.
    Architecture,
    /// The same, with other epochs, batches and learning rate.
    Hyperparameters,
    /// Trained on from the base's weights, with some rows replaced by new ones.
    FineTune,
    /// Every weight and bias moved a little, without training.
    WeightNoise,
}

impl ModelChange {
    /// The change of that name, with its usual parameters.
    pub fn named(name: &str) -> Result<Self> {
        let all = Self::all();
        let names: Vec<&str> = all.iter().map(Self::name).collect();
        let mut expected = format!("one of {}", names.join(", "));
        if name == Targeted::NAME {
            expected.push_str(Targeted::WHY_NOT);
        }
        let found = all.into_iter().find(|change| change.name() == name);
        found.ok_or_else(|| Error::param("change", name, expected))
    }

    /// The change of that name, with parameters as people type them: pairs in the notation of
    /// TOML, such as `epochs = 3, learning-rate = 1e-4`. What is not named keeps its usual value.
    pub fn with_params(name: &str, params: &str) -> Result<Self> {
        // Refused by name before anything is said about parameters.
        let usual = Self::named(name)?;
        let wrong = |problem: &str| {
            let usual = usual.params().unwrap_or_default();
            let known = match usual.as_str() {
                "" => "none, since this change has no parameters".to_owned(),
                usual => format!("pairs such as {usual}"),
            };
            let problem = in_short_lines(problem);
            let expected = format!("those of {name}: {known} ({problem})");
            Error::param("change-params", params, expected)
        };
        // Read on its own first, so that no other text can become part of the document.
        let read = toml::from_str::<toml::Table>(&format!("params = {{ {params} }}"));
        let mut document = read.map_err(|error| wrong(error.message()))?;
        let Some(toml::Value::Table(mut pairs)) = document.remove("params") else {
            return Err(wrong("not a table"));
        };
        if !document.is_empty() || pairs.contains_key("name") {
            return Err(wrong("more than parameters"));
        }
        pairs.insert("name".to_owned(), name.into());
        Self::deserialize(toml::Value::Table(pairs)).map_err(|error| wrong(error.message()))
    }

    /// The parameters as [`ModelChange::with_params`] reads them.
    fn params(&self) -> Option<String> {
        let mut pairs = toml::Table::try_from(self).ok()?;
        pairs.remove("name");
        let pairs: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        Some(pairs.join(", "))
    }

    /// The name that people type, as it stands in files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.change().name()
    }

    /// The change with its parameters, for people.
    #[must_use]
    pub fn description(&self) -> String {
        self.change().description()
    }

    /// The epochs that a model takes on average, if its base was trained with `params`.
    #[must_use]
    pub fn epochs(&self, params: &TrainParams) -> f64 {
        self.change().epochs(params)
    }
}
