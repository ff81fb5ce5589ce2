//! Helps state the defaults of the library.

use std::collections::BTreeMap;

use tyrex::choice::Choice as _;
use tyrex::explain::{Ask, Defaults, Gate, Promise};

use crate::Place;

/// The defaults that a help states, by flag: `--k <N>  Text [default: 1000]`.
fn stated_defaults(help: &str) -> BTreeMap<String, String> {
    // A flag begins a line; its description may name others.
    let lines = help.lines().map(str::trim).map(|text| {
        match text.strip_prefix("--").or_else(|| Some(text.split_once(", --")?.1)) {
            Some(flag) if text.starts_with('-') => format!("\n{flag}"),
            _ => text.to_owned(),
        }
    });
    let flags = lines.collect::<Vec<_>>().join(" ");
    flags
        .lines()
        .filter_map(|flag| {
            let name = flag.split([' ', '.']).next()?;
            let (_, stated) = flag.split_once("[default: ")?;
            Some((name.to_owned(), stated.split(']').next()?.to_owned()))
        })
        .collect()
}

#[test]
fn every_help_states_the_defaults_of_the_library() {
    let Defaults { confidence, promise, promise_days, robustness, stability, .. } =
        Defaults::default();
    let Defaults { certificate, radius, models, retrained_models, change, goal, taus, .. } =
        Defaults::default();
    let Defaults { served_models, calibrated_rows, method, .. } = Defaults::default();
    let text = |number: f64| number.to_string();
    let test = [
        ("k", format!("the protocol's; {}", robustness.samples)),
        ("sigma", format!("the protocol's; {}", robustness.sigma)),
    ];
    let question = Ask::default();
    let norm = question.norm.word().to_owned();
    let fresh = Promise::new(promise, confidence).unwrap().fresh_models();
    let taus: Vec<String> = taus.map(text).into();
    let mut explain = vec![
        ("method", format!("trex-e with a promise; else {method}, or trex-nn for a black box")),
        ("norm", norm.clone()),
        ("tau", format!("the protocol's; {}", robustness.tau)),
        ("confidence", text(question.confidence)),
        ("seed", question.seed.to_string()),
        (
            "promise",
            format!("{promise} where models can be retrained and no other method is chosen"),
        ),
        (
            "models",
            format!(
                "{fresh} for a promise of {promise}; without a promise {models}, or none for a \
                 model file"
            ),
        ),
        ("holds", format!("{promise_days}d")),
        ("change", change.to_owned()),
    ];
    explain.extend(test.clone());
    let mut calibrate = vec![
        ("target", text(goal.validity)),
        ("confidence", text(goal.confidence)),
        ("missing", goal.missing.word().to_owned()),
        ("test", goal.test.word().to_owned()),
        ("method", method.to_owned()),
        ("norm", norm),
        ("tau", taus.join(" ")),
        ("limit", calibrated_rows.to_string()),
        ("change", change.to_owned()),
    ];
    calibrate.extend(test);
    let certify = vec![
        ("delta", text(certificate.delta.unwrap())),
        ("radius", text(radius)),
        ("probability", text(certificate.probability)),
        ("confidence", text(certificate.confidence)),
        ("k", certificate.theorem.unwrap().samples.to_string()),
        ("seed", question.seed.to_string()),
        ("change", change.to_owned()),
    ];
    let measure = vec![
        ("k", stability.samples.to_string()),
        ("sigma", text(stability.sigma)),
        ("gamma", stability.gamma.word().to_owned()),
        ("seed", stability.seed.0.to_string()),
    ];
    let retrain = vec![
        ("models", retrained_models.to_string()),
        ("change", change.to_owned()),
        ("seed", question.seed.to_string()),
    ];
    let gate = Gate::new(question.request().unwrap());
    let audit = vec![("allow", text(gate.allow)), ("confidence", text(gate.confidence))];
    let serve = vec![("models", served_models.to_string()), ("change", change.to_owned())];
    let place = Place::new();
    let mut commands = vec![
        ("explain", explain),
        ("calibrate", calibrate),
        ("certify", certify),
        ("stability", measure),
        ("retrain", retrain),
        ("audit", audit),
    ];
    if cfg!(feature = "service") {
        commands.push(("serve", serve));
    }
    for (command, expected) in commands {
        let stated = stated_defaults(&place.done(&format!("{command} --help")));
        for (flag, default) in expected {
            let own = stated.get(flag);
            assert_eq!(own, Some(&default), "tyrex {command} --{flag}: {stated:?}");
        }
    }
}
