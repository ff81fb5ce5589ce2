//! Display names of the paper's methods, and formats of numbers.

use std::fmt::Write as _;

use tyrex::counterfactual::{MethodSpec, Protocol};
pub(super) use tyrex::report::number::{
    amount, counted, interval, percent, percent_with_interval, seconds, signed, two_digits,
};

use super::svg::Style;
use crate::experiment::Contender;

/// The letters of a family of retrained models in the paper, or its own name.
pub(super) fn family(change: &str) -> &str {
    match change {
        change if change.starts_with("reinit") => "WI",
        change if change.starts_with("leave") => "LO",
        other => other,
    }
}

/// The methods of this project.
pub(super) const OURS: [&str; 2] = ["trex-o", "trex-e"];

/// The display name of a method, or of a variant such as `trex-i (paper's step)`.
pub(super) fn method_name(label: &str) -> String {
    let (method, variant) = label.split_once(' ').unwrap_or((label, ""));
    let known = MethodSpec::all().into_iter().find(|known| known.name() == method);
    let title = known.map_or(method, |known| known.title());
    // The others are the paper's.
    let whose = if OURS.contains(&method) { " (ours)" } else { "" };
    format!("{title}{whose} {variant}").trim_end().to_owned()
}

/// The display name of a contender: its label, and the settings that distinguish it.
pub(super) fn contender_name(contender: &Contender) -> String {
    let mut name = method_name(&contender.label);
    for (setting, value) in &contender.settings {
        let _ = write!(name, ", {setting} {value}");
    }
    name
}

/// The colour and shape of a method. Methods that the paper does not compare look like their base.
pub(super) fn method_style(method: &str) -> Style {
    match method {
        "margin" => return Style { shape: 7, ..Style::of(0) },
        "trex-e" => return Style { shape: 2, ..Style::of(7) },
        _ => {}
    }
    Style::of(match method {
        "trex-i" => 1,
        "trex-o" => 2,
        "sns" => 3,
        "roar" => 4,
        "nn" => 5,
        "trex-nn" => 6,
        "factual" => 7,
        _ => 0,
    })
}

/// The colour of a contender's method; its shape too, unless it is a variant of it.
pub(super) fn style(contender: &Contender) -> Style {
    let style = method_style(contender.method.name());
    match contender.protocol {
        Protocol::Reference => Style { shape: 8, ..style },
        _ if contender.label != contender.method.name() => Style { shape: 9, ..style },
        _ => style,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_the_papers_letters() {
        assert_eq!(
            ["reinitialise", "leave-out", "bootstrap"].map(family),
            ["WI", "LO", "bootstrap"]
        );
    }
}
