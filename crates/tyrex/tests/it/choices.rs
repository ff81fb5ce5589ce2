//! Enums that people choose from by a word.

use serde::Serialize;
use tyrex::calibrate::{CalibrationMissing, CalibrationTest};
use tyrex::certificate::Verdict;
use tyrex::choice::Choice;
use tyrex::counterfactual::{Norm, Protocol};
use tyrex::measure::Gamma;
use tyrex::model::Activation;

fn words<C: Choice>() -> Vec<&'static str> {
    C::ALL.iter().map(|choice| choice.word()).collect()
}

/// The word of the command line is the word in files.
fn check<C: Choice + Serialize + std::str::FromStr + ToString + PartialEq + std::fmt::Debug>() {
    for &choice in C::ALL {
        assert_eq!(serde_json::to_value(choice).unwrap(), choice.word());
        assert_eq!(choice.to_string(), choice.word());
        assert_eq!(choice.word().parse::<C>().ok(), Some(choice));
        assert!(!choice.help().ends_with('.'), "{}", choice.help());
    }
    assert!("other".parse::<C>().is_err());
}

#[test]
fn words_are_pinned_and_stand_alike_in_files() {
    check::<Norm>();
    check::<Protocol>();
    check::<CalibrationMissing>();
    check::<CalibrationTest>();
    check::<Verdict>();
    assert_eq!(words::<Norm>(), ["l1", "l2"]);
    assert_eq!(words::<Protocol>(), ["product", "paper", "reference"]);
    assert_eq!(words::<CalibrationMissing>(), ["invalid", "left-out"]);
    assert_eq!(words::<CalibrationTest>(), ["betting", "hoeffding-bentkus"]);
    assert_eq!(words::<Verdict>(), ["vacuous", "empirical", "certified"]);
    assert_eq!(words::<Gamma>(), ["slopes", "gradients", "sound"]);
    assert_eq!(
        words::<Activation>(),
        ["relu", "leaky-relu", "elu", "gelu", "gelu-tanh", "tanh", "sigmoid", "softplus", "silu"]
    );
    let error = "l7".parse::<Norm>().unwrap_err().to_string();
    assert_eq!(error, "parameter `norm` is l7, expected one of l1, l2");
}
