//! The cost of a required validity, read from the curves of the methods.
//!
//! A method's own parameter trades cost for validity. Between two neighbouring values of it, cost
//! and validity are taken to lie on a straight line; the cost of a validity `v` is the least cost
//! of a point of these lines, or of a value itself, whose validity is at least `v`.

use std::ptr;

use tyrex::counterfactual::Norm;
use tyrex::model::TrainParams;
use tyrex::statistics::mean;

use super::compare::{Entry, weakest};
use super::document::{ReportTable, Section, TableCell, TableColumn, TableRow};
use super::number::{amount, counted, method_name, percent, signed};
use super::tradeoff::{Series, norms, series, sweeps};

/// The validities whose cost is read.
const LEVELS: [f64; 2] = [0.95, 0.99];
/// The fewest values of a curve.
const LEAST_VALUES: usize = 3;
/// The method that is compared with the others.
const OWN: &str = "trex-e";
/// The method that it is compared with alone, too.
const OTHER: &str = "trex-o";

/// The curves of one experiment with one norm.
struct Place {
    title: String,
    /// Whether its networks are trained as the paper's.
    is_papers: bool,
    curves: Vec<Curve>,
}

/// The curve of one method.
struct Curve {
    /// The name of the method or of its variant.
    name: String,
    /// Whether it is the method that is compared with the others, or a variant of it.
    is_own: bool,
    /// Validity and cost, by the method's parameter.
    points: Vec<(f64, f64)>,
}

/// The cost of each validity, for every experiment with the curves of several methods.
pub(super) fn overview(entries: &[Entry<'_>]) -> Option<Section> {
    let places = places(entries);
    let mut methods: Vec<&str> = Vec::new();
    for curve in places.iter().flat_map(|place| &place.curves) {
        if !methods.contains(&curve.name.as_str()) {
            methods.push(&curve.name);
        }
    }
    if methods.len() < 2 {
        return None;
    }
    let mut section = Section::new("frontier", "The cost of a required validity");
    section.text(
        "Read from the curves below: validity is the lower of WI and LO over all factuals, and \
         between two neighbouring values of a method's own parameter, cost and validity lie on a \
         straight line. The judging models chose nothing.",
    );
    for level in LEVELS {
        section.table(table(&places, &methods, level));
        for is_papers in [true, false] {
            section.text(said(&places, is_papers, level));
        }
    }
    Some(section)
}

fn places(entries: &[Entry<'_>]) -> Vec<Place> {
    let mut places = Vec::new();
    for group in entries.chunk_by(|a, b| ptr::eq(a.experiment, b.experiment)) {
        if group[0].experiment.beside.is_some() {
            continue;
        }
        for norm in norms(group) {
            let here: Vec<&Entry<'_>> = group
                .iter()
                .filter(|entry| entry.line.norm == norm && sweeps(&entry.line))
                .collect();
            let all = series(&here, None);
            let mut curves: Vec<Curve> = all.iter().map(curve).collect();
            curves.retain(|curve| curve.points.len() >= LEAST_VALUES);
            if curves.len() > 1 {
                let is_papers = group[0].experiment.world.training == TrainParams::paper();
                places.push(Place { title: title(&group[0], norm), is_papers, curves });
            }
        }
    }
    places
}

fn title(entry: &Entry<'_>, norm: Norm) -> String {
    format!("{}, {}", entry.experiment.name, norm.name())
}

fn curve(series: &Series<'_, '_>) -> Curve {
    let is_own = series.entries.iter().any(|entry| entry.line.contender.method.name() == OWN);
    let point = |entry: &&Entry<'_>| Some((weakest(&entry.line)?.mean, entry.cost()?));
    let points = series.entries.iter().filter_map(point).collect();
    Curve { name: series.name.clone(), is_own, points }
}

/// The least cost on a curve at a validity of at least `level`.
fn cost_at(points: &[(f64, f64)], level: f64) -> Option<f64> {
    let reached = points.iter().filter(|(validity, _)| *validity >= level).map(|(_, cost)| *cost);
    let crossed = points.windows(2).filter_map(|pair| {
        let [(before, from), (after, to)] = [pair[0], pair[1]];
        let is_crossed = (before < level) != (after < level);
        is_crossed.then(|| from + (to - from) * (level - before) / (after - before))
    });
    reached.chain(crossed).min_by(f64::total_cmp)
}

impl Place {
    fn cost(&self, method: &str, level: f64) -> Option<f64> {
        let curve = self.curves.iter().find(|curve| curve.name == method)?;
        cost_at(&curve.points, level)
    }

    /// The cheapest of the other methods, and its cost.
    fn cheapest_other(&self, level: f64) -> Option<(&str, f64)> {
        let others = self.curves.iter().filter(|curve| !curve.is_own);
        others
            .filter_map(|curve| Some((curve.name.as_str(), cost_at(&curve.points, level)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The own cost relative to the cheapest other's, less 1.
    fn against_cheapest(&self, level: f64) -> Option<f64> {
        Some(self.cost(&method_name(OWN), level)? / self.cheapest_other(level)?.1 - 1.0)
    }
}

fn table(places: &[Place], methods: &[&str], level: f64) -> ReportTable {
    let cell =
        |text: Option<String>| TableCell::plain(text.unwrap_or_else(|| "\u{2013}".to_owned()));
    let change =
        |ratio: Option<f64>| cell(ratio.map(|ratio| signed(&format!("{:.0} %", 100.0 * ratio))));
    let rows = places.iter().map(|place| {
        let own = place.cost(&method_name(OWN), level);
        let mut cells: Vec<TableCell> =
            methods.iter().map(|method| cell(place.cost(method, level).map(amount))).collect();
        let against = |other: Option<f64>| own.zip(other).map(|(own, other)| own / other - 1.0);
        cells.push(change(against(place.cost(&method_name(OTHER), level))));
        cells.push(change(place.against_cheapest(level)));
        cells.push(cell(place.cheapest_other(level).map(|(name, _)| name.to_owned())));
        TableRow { head: place.title.clone(), cells, ..TableRow::default() }
    });
    let own = method_name(OWN);
    let mut columns: Vec<TableColumn> =
        methods.iter().map(|name| TableColumn::number("", name)).collect();
    columns.push(TableColumn::number("", &format!("{own} against {}", method_name(OTHER))));
    columns.push(TableColumn::number("", &format!("{own} against the cheapest other")));
    columns.push(TableColumn::number("", "the cheapest other"));
    ReportTable {
        caption: format!("The mean cost at a validity of {}; a dash: not reached.", percent(level)),
        corner: "curves".to_owned(),
        beside: "",
        columns,
        rows: rows.collect(),
    }
}

/// The mean over the plots of one training, and in how many the own cost is higher.
fn said(places: &[Place], is_papers: bool, level: f64) -> String {
    let of_training = places.iter().filter(|place| place.is_papers == is_papers);
    let ratios: Vec<f64> = of_training.filter_map(|place| place.against_cheapest(level)).collect();
    let Some(average) = mean(&ratios) else { return String::new() };
    let dearer = ratios.iter().filter(|ratio| **ratio > 0.0).count();
    let networks = if is_papers { "the paper's networks" } else { "other networks" };
    format!(
        "At {} on {networks}, {} costs {} less than the cheapest other method in the mean over {}, \
         and more in {dearer} of them.",
        percent(level),
        method_name(OWN),
        percent(-average),
        counted(ratios.len(), "plot"),
    )
}

#[cfg(test)]
mod tests {
    use super::cost_at;

    #[test]
    fn the_cost_of_a_validity_lies_between_the_neighbouring_values() {
        let curve = [(0.5, 1.0), (0.9, 2.0), (1.0, 4.0)];
        let near = |level: f64, cost: f64| {
            let read = cost_at(&curve, level).unwrap();
            assert!((read - cost).abs() < 1e-9, "{level}: {read}");
        };
        near(0.4, 1.0);
        near(0.7, 1.5);
        near(0.9, 2.0);
        near(0.95, 3.0);
        near(1.0, 4.0);
        assert_eq!(cost_at(&curve[..2], 0.95), None);
        assert_eq!(cost_at(&[], 0.5), None);
    }

    #[test]
    fn a_cheaper_value_that_is_more_valid_counts() {
        assert_eq!(cost_at(&[(0.9, 3.0), (0.99, 2.0), (0.8, 5.0)], 0.95), Some(2.0));
    }
}
