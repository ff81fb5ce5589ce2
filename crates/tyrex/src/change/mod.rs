//! Model changes: retraining in another way, small random moves of the weights, or a change aimed
//! at one point.
//!
//! A [`ModelChange`] is a random way to make another model; an [`Ensemble`] is a base model with
//! many models made by such a change. Every statement about changed models names the change.
//! [`Targeted`] is separate: it is not random, so it makes no ensembles and no certificate covers
//! it.

mod adversarial_weights;
mod architecture;
mod bootstrap;
mod dropout;
mod ensemble;
mod fine_tune;
mod folder;
mod hyperparameters;
mod leave_out;
mod member;
mod mixture;
mod moved_threshold;
mod observed;
mod origin;
mod reinitialise;
mod resume;
mod targeted;
mod weight_noise;

pub use ensemble::MOST_MEMBERS;
pub use ensemble::{Ensemble, Plan};
pub(crate) use folder::BASE;
pub use folder::MANIFEST;
pub use observed::ObservedChange;
pub use origin::{Given, Origin};
pub use resume::PLAN;
pub use targeted::Targeted;

use serde::Deserialize as _;

use crate::catalogue::catalogue;
use crate::error::{Error, Result, in_short_lines};
use crate::model::TrainParams;
use member::Change;

catalogue! {
    /// A random change of a model. Each change has a file and a line here.
    ModelChange tagged "name" by Change {
        reinitialise::Reinitialise,
        leave_out::LeaveOut,
        bootstrap::Bootstrap,
        architecture::Architecture,
        hyperparameters::Hyperparameters,
        fine_tune::FineTune,
        weight_noise::WeightNoise,
        dropout::Dropout,
        adversarial_weights::AdversarialWeights,
        moved_threshold::MovedThreshold,
        mixture::Mixture,
    }
}

impl Default for ModelChange {
    /// The paper's first change.
    fn default() -> Self {
        Self::Reinitialise(Reinitialise::default())
    }
}

impl ModelChange {
    /// The change of that name, with its default parameters. Several names, separated by commas,
    /// make a [`Mixture`] of these changes.
    pub fn named(name: &str) -> Result<Self> {
        if name.contains(',') {
            let changes = name.split(',').map(|name| Self::named(name.trim()));
            return Ok(Mixture::new(changes.collect::<Result<_>>()?)?.into());
        }
        let mut expected = format!("one of {}", Self::NAMES.join(", "));
        if name == Targeted::NAME {
            expected.push_str(Targeted::WHY_NOT);
        }
        let found = Self::all().into_iter().find(|change| change.name() == name);
        found.ok_or_else(|| Error::param("change", name, expected))
    }

    /// The change of that name, with typed parameters: pairs in TOML notation, such as
    /// `epochs = 3, learning-rate = 1e-4`. Parameters that are not named keep their defaults.
    ///
    /// Several names have no parameters; those of a mixture's changes are in its `changes`.
    pub fn with_params(name: &str, params: &str) -> Result<Self> {
        // An unknown name is reported before any problem with parameters.
        let usual = Self::named(name)?;
        if name.contains(',') {
            if params.trim().is_empty() {
                return Ok(usual);
            }
            let pairs = usual.params().unwrap_or_default();
            let expected = format!(
                "none with several changes; give the change `{}` with parameters such as {pairs}",
                usual.name()
            );
            return Err(Error::param("change-params", params, expected));
        }
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
        // Parsed alone first, so that no other text can become part of the document.
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

    /// The change and its parameters in words.
    pub fn description(&self) -> String {
        self.kind().description()
    }

    /// Whether two models may be equal by chance.
    fn repeats(&self) -> bool {
        self.kind().repeats()
    }

    /// The epochs that a model takes on average, if its base was trained with `params`.
    pub fn epochs(&self, params: &TrainParams) -> f64 {
        self.kind().epochs(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_named_alike_in_files_and_by_people() {
        for change in ModelChange::all() {
            assert_eq!(ModelChange::named(change.name()).unwrap(), change);
            let text = serde_json::to_value(&change).unwrap();
            assert_eq!(text["name"], change.name());
            assert_eq!(serde_json::from_value::<ModelChange>(text).unwrap(), change);
        }
    }

    /// Names and parameters stand in files of users.
    #[test]
    fn the_names_are_pinned() {
        let text = |change: &ModelChange| serde_json::to_string(change).unwrap();
        let all: Vec<String> = ModelChange::all().iter().map(text).collect();
        assert_eq!(
            all,
            [
                r#"{"name":"reinitialise"}"#,
                r#"{"name":"leave-out","fraction":0.01}"#,
                r#"{"name":"bootstrap"}"#,
                r#"{"name":"architecture","hidden":[[64],[128],[256],[64,64],[128,128],[256,256],[64,64,64],[128,128,128],[256,256,256]]}"#,
                r#"{"name":"hyperparameters","epochs":2.0,"batch":2.0,"learning-rate":2.0}"#,
                r#"{"name":"fine-tune","fraction":0.1,"epochs":5,"learning-rate":0.001}"#,
                r#"{"name":"weight-noise","delta":0.01}"#,
                r#"{"name":"dropout","rate":0.1}"#,
                r#"{"name":"adversarial-weights","slack":0.1,"targets":1}"#,
                r#"{"name":"moved-threshold","from":0.4,"to":0.6}"#,
                r#"{"name":"mixture","changes":[{"name":"reinitialise"},{"name":"bootstrap"}]}"#,
            ]
        );
    }

    #[test]
    fn parameters_may_be_left_out_but_not_misspelt() {
        let read = |text: &str| serde_json::from_str::<ModelChange>(text);
        for change in ModelChange::all() {
            assert_eq!(read(&format!(r#"{{"name": "{}"}}"#, change.name())).unwrap(), change);
            let misspelt = format!(r#"{{"name": "{}", "share": 0.1}}"#, change.name());
            assert!(read(&misspelt).is_err(), "{misspelt}");
        }
        for wrong in [r#"{"name": "targeted"}"#, r"{}"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = ModelChange::named("retrain").unwrap_err().to_string();
        assert_eq!(
            error,
            "parameter `change` is retrain, expected one of reinitialise, leave-out, bootstrap, \
             architecture, hyperparameters, fine-tune, weight-noise, dropout, \
             adversarial-weights, moved-threshold, mixture"
        );
        let error = ModelChange::named("targeted").unwrap_err().to_string();
        assert!(
            error.contains("a targeted change is aimed at one point and not random"),
            "{error}"
        );
    }

    #[test]
    fn several_names_are_a_mixture() {
        let named = |name: &str| ModelChange::named(name).unwrap();
        let three = [named("leave-out"), named("bootstrap"), named("dropout")];
        let mixture: ModelChange = Mixture::new(three.to_vec()).unwrap().into();
        assert_eq!(named("leave-out,bootstrap, dropout"), mixture);
        assert_eq!(ModelChange::with_params("leave-out,bootstrap,dropout", " ").unwrap(), mixture);
        assert_eq!(named("reinitialise,bootstrap"), Mixture::default().into());
        for (wrong, expected) in [
            ("leave-out,", "`change` is , expected one of"),
            ("leave-out,retrain", "`change` is retrain, expected one of"),
            ("leave-out,targeted", "not random"),
            ("leave-out,mixture", "expected changes that are not mixtures"),
        ] {
            let error = ModelChange::named(wrong).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn parameters_are_read_as_people_type_them() {
        let read = |name: &str, params: &str| ModelChange::with_params(name, params).unwrap();
        for change in ModelChange::all() {
            assert_eq!(read(change.name(), ""), change);
            assert_eq!(read(change.name(), &change.params().unwrap()), change);
        }
        assert_eq!(
            read("leave-out", "fraction=0.05"),
            ModelChange::LeaveOut(LeaveOut { fraction: 0.05 })
        );
        assert_eq!(
            read("fine-tune", "learning-rate = 1e-4, epochs = 2"),
            ModelChange::FineTune(FineTune { fraction: 0.1, epochs: 2, learning_rate: 1e-4 })
        );
        assert_eq!(
            read("architecture", "hidden = [[8], [], [4, 4]]"),
            ModelChange::Architecture(Architecture { hidden: vec![vec![8], vec![], vec![4, 4]] })
        );
        assert_eq!(
            read(
                "mixture",
                "changes = [{name = 'leave-out', fraction = 0.05}, {name = 'dropout'}]"
            ),
            Mixture::new(vec![LeaveOut { fraction: 0.05 }.into(), Dropout::default().into()])
                .unwrap()
                .into()
        );
    }

    #[test]
    fn parameters_that_are_none_are_answered_with_the_known_ones() {
        for (name, params, expected) in [
            ("leave-out", "delta = 0.1", "those of leave-out: pairs such as fraction = 0.01 ("),
            ("reinitialise", "fraction = 0.1", "none, since this change has no parameters"),
            ("leave-out", "fraction", "those of leave-out"),
            ("leave-out", "fraction = many", "those of leave-out"),
            ("leave-out", "fraction = 'many'", "those of leave-out"),
            ("leave-out", "name = 'bootstrap'", "more than parameters"),
            ("leave-out", "fraction = 0.1 }\nother = { a = 1", "those of leave-out"),
            ("targeted", "delta = 0.1", "not random"),
            (
                "bootstrap,reinitialise",
                "fraction = 0.1",
                "none with several changes; give the change `mixture` with parameters such as \
                 changes = [{ name = \"bootstrap\" }, { name = \"reinitialise\" }]",
            ),
            ("mixture", "changes = []", "expected at least two changes"),
        ] {
            let error = ModelChange::with_params(name, params).unwrap_err().to_string();
            assert!(error.contains(expected), "{error} does not say: {expected}");
        }
    }
}
