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

/// The colour and shape of a method, by its place in the catalogue; those of `factual` are the last.
/// Eight colours and seven shapes distinguish 56 methods.
pub(super) fn method_style(method: &str) -> Style {
    match MethodSpec::NAMES.iter().position(|name| *name == method) {
        Some(place) => Style { shape: place % 7, ..Style::of(place) },
        None => Style::of(7),
    }
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

    #[test]
    fn every_method_has_a_style_of_its_own() {
        let names = MethodSpec::NAMES.iter().copied().chain(["factual"]);
        let mut styles: Vec<Style> = names.map(method_style).collect();
        let all = styles.len();
        styles.sort_by_key(|style| (style.colour, style.shape));
        styles.dedup();
        assert_eq!(styles.len(), all);
    }
}
