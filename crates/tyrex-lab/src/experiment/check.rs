//! Checks of an experiment before hours of training.

use tyrex::calibrate::models_needed;
use tyrex::change::MOST_MEMBERS;
use tyrex::counterfactual::{MethodSpec, Protocol};
use tyrex::error::{Error, Result};

use super::spec::{CalibrationTask, ComparisonTask, Experiment, Task, World};

/// Maximum number of values in a row of a map, and of bins: more could not be distinguished.
const MOST_VALUES: usize = 1000;

impl Experiment {
    /// Checks that the parts fit together.
    pub(super) fn check(&self) -> Result<()> {
        let World { reinitialise, leave_out, calibration, search, tuning, bases, factuals, .. } =
            self.world;
        at_least("factuals", factuals, 1, "")?;
        at_least("bases", bases, 1, "")?;
        at_least("reinitialise", reinitialise, bases - 1, ", since they include the other bases")?;
        for (name, models) in [
            ("reinitialise", reinitialise),
            ("leave-out", leave_out),
            ("calibration", calibration),
            ("search", search),
            ("tuning", tuning),
        ] {
            at_most(name, models, MOST_MEMBERS)?;
        }
        if self.task.methods()?.iter().any(MethodSpec::needs_models) {
            at_least("search", search, 1, ", since a method searches over models")?;
        }
        match &self.task {
            Task::Comparison(task) => {
                task.check()?;
                at_least("reinitialise", reinitialise, 2, ", for the evaluation")?;
                if task.contenders()?.iter().any(|contender| contender.calibrated) {
                    at_least("calibration", calibration, 1, ", to choose thresholds")?;
                }
            }
            Task::Moons(task) => {
                at_least("resolution", task.resolution, 2, "")?;
                at_most("resolution", task.resolution, MOST_VALUES)?;
                at_least("reinitialise", reinitialise, task.shown.max(1), ", to show them")?;
                check_tau(task.tau)?;
            }
            Task::Histograms(task) => {
                at_least("bins", task.bins, 1, "")?;
                at_most("bins", task.bins, MOST_VALUES)?;
            }
            Task::Certificates(task) => {
                at_least("models", task.models, 1, "")?;
                at_least("calibration", calibration, task.models, ", to make certificates of")?;
                at_least("leave-out", leave_out, 2, ", for the evaluation")?;
                at_least("bins", task.bins, 1, "")?;
                at_most("bins", task.bins, MOST_VALUES)?;
                for entrant in &task.entrants {
                    for contender in entrant.contenders(task.protocol)? {
                        if contender.calibrated {
                            let expected = "a number: the calibrating models certify";
                            return Err(Error::param("tau", "calibrated", expected));
                        }
                        contender.tau().map_or(Ok(()), check_tau)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Task {
    /// Every method, with its parameters.
    fn methods(&self) -> Result<Vec<MethodSpec>> {
        let named = |names: &[String], protocol| {
            names.iter().map(|name| MethodSpec::named(name, protocol)).collect()
        };
        match self {
            Self::Comparison(task) => {
                Ok(task.contenders()?.into_iter().map(|contender| contender.method).collect())
            }
            Self::Moons(task) => named(&task.methods, Protocol::Paper),
            Self::Histograms(task) => named(&task.methods, task.protocol),
            Self::Certificates(task) => {
                let mut methods = Vec::new();
                for entrant in &task.entrants {
                    let contenders = entrant.contenders(task.protocol)?;
                    methods.extend(contenders.into_iter().map(|contender| contender.method));
                }
                Ok(methods)
            }
        }
    }
}

impl ComparisonTask {
    fn check(&self) -> Result<()> {
        at_least("norms", self.norms.len(), 1, "")?;
        for (place, norm) in self.norms.iter().enumerate() {
            if self.norms[..place].contains(norm) {
                return Err(Error::param("norms", norm.name(), "every norm once"));
            }
        }
        for contender in self.contenders()? {
            if !contender.calibrated {
                contender.tau().map_or(Ok(()), check_tau)?;
                continue;
            }
            let CalibrationTask { goal, factuals, .. } = &self.calibration;
            models_needed(goal.validity, goal.confidence)?;
            let taus = contender.taus(&self.calibration);
            at_least("taus", taus.len(), 1, "")?;
            at_least("factuals", *factuals, 1, ", to choose thresholds on")?;
            for (place, tau) in taus.iter().enumerate() {
                check_tau(*tau)?;
                if taus[..place].contains(tau) {
                    return Err(Error::param("taus", tau, "every threshold once"));
                }
            }
        }
        Ok(())
    }
}

fn at_least(name: &'static str, value: usize, least: usize, why: &str) -> Result<()> {
    if value >= least {
        return Ok(());
    }
    Err(Error::param(name, value, format!("at least {least}{why}")))
}

fn at_most(name: &'static str, value: usize, most: usize) -> Result<()> {
    if value <= most {
        return Ok(());
    }
    Err(Error::param(name, value, format!("at most {most}")))
}

fn check_tau(tau: f64) -> Result<()> {
    if tau > 0.0 && tau < 1.0 {
        return Ok(());
    }
    Err(Error::param("tau", tau, "a number between 0 and 1"))
}

#[cfg(test)]
mod tests {
    use super::super::spec::Suite;
    use tyrex::seed::Seed;

    const COMPARISON: &str = r#"
        name = "a"
        title = "A"
        [world]
        dataset = "german"
        calibration = 5
        [comparison]
        protocol = "paper"
        norms = ["l1"]
        [[comparison.entrant]]
        method = "trex-i"
        tau = "calibrated"
    "#;
    const MOONS: &str = r#"
        name = "a"
        title = "A"
        [world]
        dataset = "moons"
        [moons]
        resolution = 20
        shown = 4
        sigma = 0.1
        tau = 0.8
        methods = ["min-cost"]
    "#;
    const CERTIFICATES: &str = r#"
        name = "a"
        title = "A"
        [world]
        dataset = "german"
        calibration = 5
        [certificates]
        protocol = "paper"
        norm = "l1"
        models = 5
        bins = 10
        [[certificates.entrant]]
        method = "trex-i"
        tau = 0.8
    "#;

    /// The error for an experiment's text.
    fn said(text: &str) -> Option<String> {
        let experiment = match toml::from_str(text) {
            Ok(experiment) => experiment,
            Err(error) => return Some(error.to_string()),
        };
        let suite = Suite::new("s".to_owned(), "S".to_owned(), Seed(0), vec![experiment]);
        suite.err().map(|error| error.to_string())
    }

    #[test]
    fn what_fits_is_accepted() {
        for text in [COMPARISON, MOONS, CERTIFICATES] {
            assert_eq!(said(text), None);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_before_anything_is_trained() {
        let many = "[world]\nleave-out = 10001";
        for (text, old, new, expected) in [
            (COMPARISON, "[\"l1\"]", "[]", "`norms` is 0"),
            (COMPARISON, "[\"l1\"]", "[\"l1\", \"l2\", \"l1\"]", "every norm once"),
            (COMPARISON, "calibration = 5", "", "`calibration` is 0"),
            (COMPARISON, "[world]", "[world]\nbases = 0", "`bases` is 0"),
            (COMPARISON, "[world]", "[world]\nbases = 52", "`reinitialise` is 50"),
            (COMPARISON, "[world]", "[world]\nfactuals = 0", "`factuals` is 0"),
            (COMPARISON, "[world]", "[world]\nreinitialise = 1", "`reinitialise` is 1"),
            (COMPARISON, "[world]", many, "`leave-out` is 10001"),
            (COMPARISON, "\"calibrated\"", "nan", "`tau` is NaN"),
            (COMPARISON, "\"calibrated\"", "[0.5, 1.0]", "`tau` is 1"),
            (COMPARISON, "\"calibrated\"", "[0.5, 0.5]", "every label once"),
            (COMPARISON, "\"calibrated\"", "\"calibrated\"\ntaus = [0.5, 2]", "`tau` is 2"),
            (
                COMPARISON,
                "\"calibrated\"",
                "\"calibrated\"\ntaus = [0.5, 0.7, 0.5]",
                "every threshold once",
            ),
            (
                COMPARISON,
                "norms",
                "calibration = { factuals = 0 }\nnorms",
                "`factuals` is 0, expected at least 1, to choose",
            ),
            (COMPARISON, "norms", "calibration = { taus = [] }\nnorms", "`taus` is 0"),
            (
                COMPARISON,
                "norms",
                "calibration = { goal = { validity = nan } }\nnorms",
                "`target` is NaN",
            ),
            (MOONS, "20", "1", "`resolution` is 1"),
            (MOONS, "20", "1000000", "`resolution` is 1000000"),
            (MOONS, "tau = 0.8", "tau = inf", "`tau` is inf"),
            (MOONS, "min-cost", "max-cost", "expected one of trex-e"),
            (MOONS, "min-cost", "trex-e", "`search` is 0, expected at least 1"),
            (COMPARISON, "trex-i\"\n        tau = \"calibrated\"", "trex-e\"", "`search` is 0"),
            (CERTIFICATES, "trex-i\"\n        tau = 0.8", "trex-e\"", "`search` is 0"),
            (COMPARISON, "[world]", "[world]\nsearch = 10001", "`search` is 10001"),
            (MOONS, "shown = 4", "shown = 51", "`reinitialise` is 50"),
            (CERTIFICATES, "bins = 10", "bins = 0", "`bins` is 0"),
            (CERTIFICATES, "bins = 10", "bins = 1000000000000", "`bins` is 1000000000000"),
            (CERTIFICATES, "models = 5", "models = 6", "`calibration` is 5"),
            (CERTIFICATES, "tau = 0.8", "tau = \"calibrated\"", "`tau` is calibrated"),
        ] {
            let changed = text.replacen(old, new, 1);
            assert_ne!(changed, text);
            let said = said(&changed).unwrap_or_default();
            assert!(said.contains(expected), "{new}: {said}");
        }
    }
}
