//! The paper's printed numbers and measurements by others, to compare with our numbers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use tyrex::counterfactual::Norm;

/// All printed numbers.
static PRINTED: LazyLock<Printed> = LazyLock::new(|| {
    // The file is compiled in, and a test parses it, so this cannot fail.
    toml::from_str(include_str!("printed.toml")).unwrap_or_default()
});

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    tables: BTreeMap<String, PrintedTable>,
    ablation: PrintedAblation,
    anchors: Vec<Anchor>,
    sources: BTreeMap<String, String>,
}

/// A table of the paper: methods under two norms.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrintedTable {
    /// Which table.
    pub title: String,
    /// Remarks.
    pub note: Option<String>,
    #[serde(rename = "L1")]
    l1: BTreeMap<String, PrintedLine>,
    #[serde(rename = "L2")]
    l2: BTreeMap<String, PrintedLine>,
}

/// One method with one norm, as printed.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(from = "[f64; 8]")]
pub struct PrintedLine {
    /// The cost by the line's norm.
    pub cost: PrintedNumber,
    /// The mean of +1 for inliers and -1 for outliers.
    pub lof: PrintedNumber,
    /// Validity with new weights, from 0 to 1.
    pub wi: PrintedNumber,
    /// Validity without 1 % of the rows, from 0 to 1.
    pub lo: PrintedNumber,
}

/// A mean and a standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrintedNumber {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub sd: Option<f64>,
}

impl From<[f64; 8]> for PrintedLine {
    fn from([cost, cost_sd, lof, lof_sd, wi, wi_sd, lo, lo_sd]: [f64; 8]) -> Self {
        let number = |mean, sd| PrintedNumber { mean, sd: Some(sd) };
        let share = |mean: f64, sd: f64| number(mean / 100.0, sd / 100.0);
        Self {
            cost: number(cost, cost_sd),
            lof: number(lof, lof_sd),
            wi: share(wi, wi_sd),
            lo: share(lo, lo_sd),
        }
    }
}

impl PrintedTable {
    /// The line of a method, where the table has one.
    pub fn line(&self, norm: Norm, method: &str) -> Option<PrintedLine> {
        match norm {
            Norm::L1 => self.l1.get(method).copied(),
            Norm::L2 => self.l2.get(method).copied(),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PrintedAblation {
    title: String,
    lines: Vec<AblationLine>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AblationLine {
    tau: f64,
    measure: String,
    #[serde(rename = "L1")]
    l1: [f64; 3],
    #[serde(rename = "L2")]
    l2: [f64; 3],
}

/// One threshold and measure of the ablation, as printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrintedAblationLine {
    /// The threshold.
    pub tau: f64,
    /// The cost by the norm.
    pub cost: f64,
    /// The mean of +1 for inliers and -1 for outliers.
    pub lof: f64,
    /// Validity with new weights, from 0 to 1.
    pub wi: f64,
}

/// A measurement by others.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    beside: String,
    /// `L1` or `L2`.
    pub norm: String,
    /// The method.
    pub method: String,
    source: String,
    /// The threshold, where the method has one.
    pub tau: Option<f64>,
    /// The cost by the norm.
    pub cost: f64,
    /// The mean of +1 for inliers and -1 for outliers.
    pub lof: Option<f64>,
    /// Validity with new weights, in per cent.
    pub wi: f64,
    /// Validity without 1 % of the rows, in per cent.
    pub lo: f64,
}

impl Anchor {
    /// Whether it was measured with the authors' released code.
    pub fn is_of_released_code(&self) -> bool {
        self.source == "authors-code"
    }

    /// Its source and method.
    pub fn source(&self) -> &str {
        PRINTED.sources.get(&self.source).map_or(self.source.as_str(), String::as_str)
    }
}

/// The name of the ablation in experiment files.
pub const ABLATION: &str = "ablation";

/// The table to compare an experiment with, if the paper has one of that name.
pub fn table(beside: &str) -> Option<&'static PrintedTable> {
    PRINTED.tables.get(beside)
}

/// The title of the table or ablation to compare an experiment with.
pub fn title(beside: &str) -> Option<&'static str> {
    if beside == ABLATION {
        return Some(&PRINTED.ablation.title);
    }
    table(beside).map(|table| table.title.as_str())
}

/// The paper's ablation of one measure, by rising threshold.
pub fn ablation(norm: Norm, measure: &str) -> Vec<PrintedAblationLine> {
    let lines = PRINTED.ablation.lines.iter().filter(|line| line.measure == measure);
    lines
        .map(|line| {
            let [cost, lof, wi] = match norm {
                Norm::L1 => line.l1,
                Norm::L2 => line.l2,
            };
            PrintedAblationLine { tau: line.tau, cost, lof, wi: wi / 100.0 }
        })
        .collect()
}

/// Measurements by others of the same table.
pub fn anchors(beside: &str) -> impl Iterator<Item = &'static Anchor> {
    PRINTED.anchors.iter().filter(move |anchor| anchor.beside == beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_whole() {
        let printed: Printed = toml::from_str(include_str!("printed.toml")).unwrap();
        let lines = |name: &str| {
            let table = &printed.tables[name];
            (table.l1.len(), table.l2.len())
        };
        for (name, methods) in
            [("heloc", 6), ("german", 6), ("ctg", 6), ("taiwan", 5), ("adult", 5)]
        {
            assert_eq!(lines(name), (methods, methods), "{name}");
        }
        assert_eq!(printed.tables.len(), 5);
        assert_eq!(printed.ablation.lines.len(), 15);
        assert_eq!(printed.anchors.len(), 16);
        for anchor in &printed.anchors {
            assert!(printed.sources.contains_key(&anchor.source), "{anchor:?}");
            assert!(printed.tables.contains_key(&anchor.beside), "{anchor:?}");
        }
    }

    #[test]
    fn cells_are_as_printed() {
        // Read off the paper's pages by hand: one or two cells of every table.
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        let line = |name, norm, method| table(name).unwrap().line(norm, method).unwrap();
        close(line("heloc", Norm::L1, "trex-i").cost.mean, 1.02);
        close(line("heloc", Norm::L2, "trex-nn").wi.mean, 0.84);
        close(line("german", Norm::L1, "trex-nn").cost.sd.unwrap(), 4.10);
        close(line("german", Norm::L2, "min-cost").wi.sd.unwrap(), 0.15);
        close(line("ctg", Norm::L1, "sns").lof.mean, -1.0);
        close(line("ctg", Norm::L2, "roar").wi.mean, 0.988);
        close(line("taiwan", Norm::L1, "min-cost").lof.mean, -0.37);
        close(line("taiwan", Norm::L2, "trex-i").lo.mean, 0.964);
        close(line("adult", Norm::L2, "sns").lof.mean, -0.22);
        close(line("adult", Norm::L1, "nn").lo.mean, 0.81);
        assert!(table("adult").unwrap().line(Norm::L1, "roar").is_none());
        assert!(table("moons").is_none());

        let wi = |norm, measure: &str| -> Vec<f64> {
            ablation(norm, measure).iter().map(|line| (line.wi * 1000.0).round() / 10.0).collect()
        };
        assert_eq!(wi(Norm::L1, "R^"), [66.9, 72.9, 72.6, 86.0, 89.6]);
        assert_eq!(wi(Norm::L2, "m"), [32.6, 38.9, 42.8, 61.0, 71.0]);
        assert_eq!(wi(Norm::L2, "r_k"), [37.3, 43.0, 51.8, 73.3, 82.7]);
        assert!(ablation(Norm::L1, "R").is_empty());
        assert_eq!(anchors("german").count(), 5);
        assert!(title(ABLATION).unwrap().starts_with("Table 7"));
    }
}
