//! Charts of validity, cost and the test's reading against a parameter.

use super::compare::{Entry, weakest};
use super::document::{Figures, Key};
use super::scale::Scale;
use super::svg::{Chart, Fill, Mark};
use super::tradeoff::{Series, norms, number, places_of, series, series_styles, tip};

/// The quantity on the vertical axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    /// The lower of WI and LO.
    Validity,
    /// The mean cost.
    Cost,
    /// The mean reading of the method's test.
    Reading,
}

impl Quantity {
    const ALL: [Self; 3] = [Self::Validity, Self::Cost, Self::Reading];

    fn name(self) -> &'static str {
        match self {
            Self::Validity => "validity",
            Self::Cost => "mean cost",
            Self::Reading => "mean reading of the test",
        }
    }

    fn label(self) -> &'static str {
        if self == Self::Validity { "validity, %" } else { self.name() }
    }

    /// The quantity of a line, and its interval where there is one.
    fn of(self, entry: &Entry<'_>) -> Option<(f64, Option<(f64, f64)>)> {
        match self {
            Self::Validity => {
                let validity = weakest(&entry.line)?;
                let range = validity.low.zip(validity.high);
                Some((100.0 * validity.mean, range.map(|(low, high)| (100.0 * low, 100.0 * high))))
            }
            Self::Cost => {
                let cost = entry.line.cost?;
                Some((cost.mean, cost.low.zip(cost.high)))
            }
            Self::Reading => {
                let values: Vec<f64> = entry
                    .cells()
                    .flat_map(|cell| &cell.answers)
                    .filter_map(|answer| Some(answer.found.as_ref()?.value))
                    .collect();
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                (!values.is_empty()).then_some((mean, None))
            }
        }
    }
}

/// All charts of one parameter.
pub(super) fn figures(entries: &[Entry<'_>], parameter: &str) -> Figures {
    let (mut legend, mut charts, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for norm in norms(entries) {
        let here: Vec<&Entry<'_>> = entries
            .iter()
            .filter(|entry| entry.line.norm == norm && number(&entry.line, parameter).is_some())
            .collect();
        let all = series(&here, Some(parameter));
        for (series, style) in all.iter().zip(series_styles(&all)) {
            let key = Key { style, fill: Fill::Full, text: series.name.clone() };
            if !legend.contains(&key) {
                legend.push(key);
            }
            said.extend(sentence(series, parameter).map(|text| format!("{}: {text}", norm.name())));
        }
        for quantity in Quantity::ALL {
            let title = format!("{} against {parameter}, {}", quantity.name(), norm.name());
            charts.push(chart(title, &all, parameter, quantity));
        }
    }
    let caption = format!("The effect of {parameter}. Validity is the lower of WI and LO.");
    Figures { caption, said: said.join(" "), legend, charts, in_pairs: false }
}

/// A line's value of the parameter, and the quantity there.
fn read(entry: &Entry<'_>, parameter: &str, quantity: Quantity) -> Option<(f64, f64)> {
    Some((number(&entry.line, parameter)?, quantity.of(entry)?.0))
}

fn sentence(series: &Series<'_, '_>, parameter: &str) -> Option<String> {
    let validity = |entry: &&Entry<'_>| read(entry, parameter, Quantity::Validity);
    let (first, last) = (series.entries.first()?, series.entries.last()?);
    let ((from, before), (to, after)) = (validity(first)?, validity(last)?);
    Some(format!(
        "{} is valid in {before:.1} % at {parameter} {from} and in {after:.1} % at {to}.",
        series.name
    ))
}

fn chart(title: String, all: &[Series<'_, '_>], parameter: &str, quantity: Quantity) -> String {
    let mut marks = Vec::new();
    for (series, style) in all.iter().zip(series_styles(all)) {
        let points = series.entries.iter().filter_map(|entry| read(entry, parameter, quantity));
        marks.push(Mark::Line { points: points.collect(), style, dashed: false });
        marks.extend(series.entries.iter().filter_map(|entry| {
            let at = read(entry, parameter, quantity)?;
            let (_, range) = quantity.of(entry)?;
            Some(Mark::Dot { at, range, style, fill: Fill::Full, tip: tip(&entry.line) })
        }));
    }
    let places = || marks.iter().flat_map(places_of);
    let ranges = marks.iter().filter_map(|mark| match mark {
        Mark::Dot { range, .. } => *range,
        _ => None,
    });
    let heights = places().map(|(_, y)| y).chain(ranges.flat_map(|(low, high)| [low, high]));
    let y = match quantity {
        Quantity::Cost => Scale::of_amounts(heights),
        Quantity::Validity | Quantity::Reading => Scale::around(heights),
    };
    let chart = Chart {
        title,
        description: format!("{} for every {parameter}", quantity.name()),
        x: Scale::of_amounts(places().map(|(x, _)| x)),
        y,
        x_label: parameter.to_owned(),
        y_label: quantity.label().to_owned(),
        marks,
    };
    chart.svg()
}
