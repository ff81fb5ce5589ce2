//! Contenders: methods of the catalogue with their parameters in an experiment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tyrex::counterfactual::{MethodSpec, Protocol};
use tyrex::error::{Error, Result};
use tyrex::measure::Measure;

use super::spec::CalibrationTask;

/// A method as an experiment names it. Every list stands for one contender per element, and
/// several lists for all combinations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Entrant {
    /// The method's name in the catalogue.
    pub method: String,
    /// Its label, if not the method's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The protocol of its parameters, if not the experiment's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The threshold of stability, for the methods that have one; the score of `margin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tau: Option<Threshold>,
    /// The thresholds a calibration tries, if not the experiment's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taus: Vec<f64>,
    /// The measure that must reach it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Measure>,
    /// The width of its neighbourhood.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sigmas: Vec<f64>,
    /// The samples in it, of the search and of the test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<usize>,
    /// The least p-value of the answers among the favourable training rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plausible: Option<f64>,
    /// Other parameters of the method, under their own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Value>,
    /// Parameters to try several values of.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vary: BTreeMap<String, Vec<Value>>,
}

/// A threshold of stability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Threshold {
    /// One number.
    Given(f64),
    /// Several.
    Each(Vec<f64>),
    /// Chosen for each norm on models that are used for nothing else.
    Chosen(Choice),
}

/// The word for a threshold that is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// By calibration.
    Calibrated,
}

/// A method with all its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// Its label; no two contenders of an experiment have the same label and settings.
    pub label: String,
    /// The settings that distinguish it from others with the same label.
    pub settings: Vec<(String, String)>,
    /// The protocol of its parameters.
    pub protocol: Protocol,
    /// Whether its threshold is chosen by calibration.
    pub calibrated: bool,
    /// The thresholds to try then, if not the experiment's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taus: Vec<f64>,
    /// The least p-value of its answers among the favourable training rows, if they have to be usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plausible: Option<f64>,
    /// The method.
    pub method: MethodSpec,
}

impl Contender {
    /// The threshold, of the methods that have one: the least stability, or the least score.
    pub fn tau(&self) -> Option<f64> {
        match &self.method {
            MethodSpec::Margin(method) => Some(method.score),
            method => method.robustness().map(|robustness| robustness.tau),
        }
    }

    /// The thresholds a calibration tries.
    pub fn taus<'a>(&'a self, task: &'a CalibrationTask) -> &'a [f64] {
        if self.taus.is_empty() { &task.taus } else { &self.taus }
    }

    /// The same with another threshold.
    #[must_use]
    pub fn at(&self, tau: f64) -> Self {
        let mut other = self.clone();
        match &mut other.method {
            MethodSpec::Margin(method) => method.score = tau,
            method => {
                if let Some(robustness) = method.robustness_mut() {
                    robustness.tau = tau;
                }
            }
        }
        other
    }

    /// The label with the settings.
    pub fn full_label(&self) -> String {
        let settings = self.settings.iter().map(|(name, value)| format!(" {name}={value}"));
        std::iter::once(self.label.clone()).chain(settings).collect()
    }
}

impl Entrant {
    /// A method with the parameters of its protocol.
    pub fn plain(method: &str) -> Self {
        Self {
            method: method.to_owned(),
            label: None,
            protocol: None,
            tau: None,
            taus: Vec::new(),
            plausible: None,
            measures: Vec::new(),
            sigmas: Vec::new(),
            samples: Vec::new(),
            set: BTreeMap::new(),
            vary: BTreeMap::new(),
        }
    }

    /// The contenders it stands for.
    pub fn contenders(&self, protocol: Protocol) -> Result<Vec<Contender>> {
        let protocol = self.protocol.unwrap_or(protocol);
        let mut method = MethodSpec::named(&self.method, protocol)?;
        for (name, value) in &self.set {
            method = with(&method, name, value)?;
        }
        let mut contenders = vec![Contender {
            label: self.label.clone().unwrap_or_else(|| self.method.clone()),
            settings: Vec::new(),
            protocol,
            calibrated: matches!(self.tau, Some(Threshold::Chosen(_))),
            taus: self.taus.clone(),
            plausible: self.plausible,
            method,
        }];
        if let Some(least) = self.plausible {
            if !(least > 0.0 && least < 1.0) {
                return Err(Error::param("plausible", least, "a p-value between 0 and 1"));
            }
            contenders[0].settings.push(("plausible".to_owned(), least.to_string()));
        }
        let sets_neighbours =
            !(self.measures.is_empty() && self.sigmas.is_empty() && self.samples.is_empty());
        if self.tau.is_some() && contenders[0].tau().is_none()
            || sets_neighbours && contenders[0].method.robustness().is_none()
        {
            let expected = format!(
                "a method with a test of robustness, since the experiment sets one: {}",
                MethodSpec::listed(MethodSpec::is_robust)
            );
            return Err(Error::param("method", &self.method, expected));
        }
        for (name, values) in &self.vary {
            contenders = each(&contenders, values, name, |contender, value| {
                contender.method = with(&contender.method, name, value)?;
                Ok(match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
            })?;
        }
        let robustness = |contender: &mut Contender, edit: &dyn Fn(&mut _)| {
            contender.method.robustness_mut().map(edit);
        };
        contenders = each(&contenders, &self.measures, "measure", |contender, measure| {
            robustness(contender, &|test: &mut tyrex::counterfactual::Robustness| {
                test.measure = *measure;
            });
            Ok(measure.symbol().to_owned())
        })?;
        contenders = each(&contenders, &self.sigmas, "sigma", |contender, sigma| {
            robustness(contender, &|test| test.sigma = *sigma);
            Ok(sigma.to_string())
        })?;
        contenders = each(&contenders, &self.samples, "k", |contender, samples| {
            robustness(contender, &|test| {
                test.samples = *samples;
                test.search.samples = *samples;
            });
            Ok(samples.to_string())
        })?;
        match &self.tau {
            None | Some(Threshold::Chosen(_)) => Ok(contenders),
            Some(Threshold::Given(tau)) => {
                Ok(contenders.iter().map(|contender| contender.at(*tau)).collect())
            }
            Some(Threshold::Each(taus)) => each(&contenders, taus, "tau", |contender, tau| {
                *contender = contender.at(*tau);
                Ok(tau.to_string())
            }),
        }
    }
}

/// Every contender with every value; unchanged if there are none.
fn each<T>(
    contenders: &[Contender],
    values: &[T],
    name: &str,
    set: impl Fn(&mut Contender, &T) -> Result<String>,
) -> Result<Vec<Contender>> {
    if values.is_empty() {
        return Ok(contenders.to_vec());
    }
    let mut all = Vec::with_capacity(contenders.len() * values.len());
    for contender in contenders {
        for value in values {
            let mut next = contender.clone();
            let text = set(&mut next, value)?;
            if values.len() > 1 {
                next.settings.push((name.to_owned(), text));
            }
            all.push(next);
        }
    }
    Ok(all)
}

/// A method with one parameter changed, by its name in files; a dot leads into a table.
fn with(method: &MethodSpec, name: &str, value: &Value) -> Result<MethodSpec> {
    let wrong = |problem: String| Error::param("set", name, problem);
    let mut all = serde_json::to_value(method).map_err(|error| wrong(error.to_string()))?;
    let mut place = &mut all;
    for part in name.split('.') {
        let Some(table) = place.as_object_mut() else {
            return Err(wrong(format!("a parameter of {}", method.name())));
        };
        place = table.entry(part).or_insert(Value::Null);
    }
    *place = value.clone();
    serde_json::from_value(all)
        .map_err(|error| wrong(format!("a parameter of {}: {error}", method.name())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entrant(text: &str) -> Entrant {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn lists_stand_for_all_combinations() {
        let text = r#"
            method = "trex-i"
            tau = [0.5, 0.6]
            measures = [{ name = "prediction" }, { name = "mean" }, { name = "relaxed-stability" }]
            set = { steps = 50 }
        "#;
        let all = entrant(text).contenders(Protocol::Paper).unwrap();
        let labels: Vec<String> = all.iter().map(Contender::full_label).collect();
        assert_eq!(labels[0], "trex-i measure=m tau=0.5");
        assert_eq!(labels[5], "trex-i measure=R^ tau=0.6");
        assert_eq!(all.len(), 6);
        assert_eq!(all[1].tau(), Some(0.6));
        assert!(all.iter().all(|contender| matches!(
            &contender.method, MethodSpec::TrexI(method) if method.steps == 50
        )));
    }

    #[test]
    fn other_parameters_go_by_their_own_names() {
        let all = entrant("method = \"sns\"\nvary = { radius = [0.1, 0.2] }");
        let all = all.contenders(Protocol::Paper).unwrap();
        assert_eq!(all[1].full_label(), "sns radius=0.2");
        assert!(matches!(&all[1].method, MethodSpec::Sns(method) if method.radius == 0.2));
    }

    #[test]
    fn a_method_may_have_to_answer_with_usual_points() {
        let all = entrant("method = \"trex-o\"\ntau = [0.5, 0.6]\nplausible = 0.1");
        let all = all.contenders(Protocol::Paper).unwrap();
        assert_eq!(all[1].full_label(), "trex-o plausible=0.1 tau=0.6");
        assert!(all.iter().all(|contender| contender.plausible == Some(0.1)));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, expected) in [
            ("method = \"sns\"\nplausible = 1.5", "`plausible` is 1.5, expected a p-value"),
            ("method = \"min-cost\"\ntau = 0.5", "expected a method with a test of robustness"),
            ("method = \"trex-p\"", "expected one of trex-e"),
            (
                "method = \"sns\"\nset = { radus = 1 }",
                "`set` is radus, expected a parameter of sns",
            ),
            ("method = \"sns\"\nset = { radius = \"x\" }", "expected a parameter of sns"),
            ("method = \"sns\"\nset = { \"radius.x\" = 1 }", "expected a parameter of sns"),
        ] {
            let error = entrant(text).contenders(Protocol::Paper).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
