//! Charts of cost against validity.

use std::fmt::Write as _;

use tyrex::counterfactual::{Norm, Protocol};

use super::compare::{Entry, weakest};
use super::document::{Figures, Key, Section};
use super::number::{
    amount, contender_name, counted, family, method_name, percent, percent_with_interval, style,
};
use super::printed::{self, ABLATION};
use super::scale::Scale;
use super::sensitivity;
use super::svg::{Chart, Fill, Mark, Style};
use crate::experiment::result::ResultLine;

/// The default target validity.
const AIM: f64 = 0.95;
/// Parameters that trade cost for validity.
const KNOBS: [&str; 6] = ["tau", "radius", "delta", "score", "aim", "margin"];

/// One chart for every data set and norm of the paper's tables.
pub(super) fn overview(entries: &[Entry<'_>]) -> Option<Section> {
    let mut places: Vec<(&str, Norm)> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.is_main) {
        let place = (entry.experiment.world.dataset.as_str(), entry.line.norm);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    if places.is_empty() {
        return None;
    }
    let (mut legend, mut charts, mut cheapest) = (Vec::new(), Vec::new(), Vec::new());
    for (dataset, norm) in places {
        let here: Vec<&Entry<'_>> = entries
            .iter()
            .filter(|entry| entry.experiment.world.dataset == dataset && entry.line.norm == norm)
            .collect();
        let table: Vec<&Entry<'_>> = here.iter().copied().filter(|entry| entry.is_main).collect();
        let mut marks = vec![Mark::Level { y: 100.0 * AIM }];
        marks.extend(curves(&here, &mut legend));
        for entry in &table {
            marks.extend(printed_dot(entry));
            marks.extend(dots(entry, &mut legend));
        }
        cheapest.extend(cheapest_method(&table));
        charts.push(cost_chart(&format!("{dataset}, {}", norm.name()), norm, marks, true));
    }
    legend.extend([
        Key { style: Style::of(0), fill: Fill::Hollow, text: "hollow: the paper's number".into() },
        Key { style: Style::of(0), fill: Fill::Ringed, text: "ringed: calibrated".into() },
        Key { style: Style::of(0), fill: Fill::Faint, text: "small: one base model".into() },
    ]);
    let mut section = Section::new("cost-validity", "Cost against validity");
    let count = charts.len();
    section.figures(Figures {
        caption: format!(
            "Up and to the left is better. Validity is the lower of WI and LO, with its 95 % \
             interval; lines join the values of a method's own parameter; the dashed line is {}.",
            percent(AIM)
        ),
        said: said_of_cheapest(&cheapest, count),
        legend,
        charts,
        in_pairs: true,
    });
    Some(section)
}

/// The method of the cheapest line that reaches the target validity.
fn cheapest_method(table: &[&Entry<'_>]) -> Option<String> {
    table
        .iter()
        .filter(|entry| weakest(&entry.line).is_some_and(|validity| validity.mean >= AIM))
        .filter_map(|entry| Some((entry.cost()?, &entry.line.contender)))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, contender)| method_name(&contender.label))
}

fn said_of_cheapest(cheapest: &[String], charts: usize) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in cheapest {
        match counts.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if counts.is_empty() {
        return format!("No line of the tables reaches {} in any of the plots.", percent(AIM));
    }
    let told: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name} in {count}")).collect();
    format!(
        "Of the tables' lines that reach {} the cheapest is {} of {}.",
        percent(AIM),
        told.join(", "),
        counted(charts, "plot")
    )
}

/// The charts of a comparison without a table in the paper.
pub(super) fn describe(section: &mut Section, entries: &[Entry<'_>]) {
    for parameter in ["k", "sigma"] {
        let mut values: Vec<f64> =
            entries.iter().filter_map(|entry| number(&entry.line, parameter)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        if values.len() > 2 {
            section.figures(sensitivity::figures(entries, parameter));
        }
    }
    let is_ablation =
        entries.iter().any(|entry| entry.experiment.beside.as_deref() == Some(ABLATION));
    let (mut legend, mut charts) = (Vec::new(), Vec::new());
    for norm in norms(entries) {
        let here: Vec<&Entry<'_>> =
            entries.iter().filter(|entry| entry.line.norm == norm).collect();
        let mut marks = Vec::new();
        let all = series(&here, None);
        for (series, style) in all.iter().zip(series_styles(&all)) {
            let key = Key { style, fill: Fill::Full, text: series.name.clone() };
            if !legend.contains(&key) {
                legend.push(key);
            }
            let height = |entry: &Entry<'_>| height(&entry.line, is_ablation);
            let points =
                series.entries.iter().filter_map(|entry| Some((entry.cost()?, height(entry)?)));
            marks.push(Mark::Line { points: points.collect(), style, dashed: false });
            for entry in &series.entries {
                marks.extend(dot(entry, style, Fill::Full, is_ablation));
            }
            marks.extend(ends(series, is_ablation));
            if is_ablation {
                marks.extend(printed_curve(norm, &series.measure, style));
            }
        }
        charts.push(cost_chart(norm.name(), norm, marks, false));
    }
    if is_ablation {
        legend.push(Key {
            style: Style::of(0),
            fill: Fill::Hollow,
            text: "the paper's numbers".into(),
        });
    }
    let what = if is_ablation { "WI validity" } else { "Validity (the lower of WI and LO)" };
    section.figures(Figures {
        caption: format!("{what} against cost; up and to the left is better."),
        said: said_of_ends(entries),
        legend,
        charts,
        ..Figures::default()
    });
}

pub(super) fn norms(entries: &[Entry<'_>]) -> Vec<Norm> {
    let mut norms = Vec::new();
    for entry in entries {
        if !norms.contains(&entry.line.norm) {
            norms.push(entry.line.norm);
        }
    }
    norms
}

/// Lines that differ in one number only, sorted by it.
pub(super) struct Series<'b, 'a> {
    pub(super) name: String,
    measure: String,
    pub(super) entries: Vec<&'b Entry<'a>>,
}

/// The series of these lines along a parameter, or along the knob of each.
pub(super) fn series<'b, 'a>(
    entries: &[&'b Entry<'a>],
    along: Option<&str>,
) -> Vec<Series<'b, 'a>> {
    let mut all: Vec<Series<'b, 'a>> = Vec::new();
    for entry in entries {
        let contender = &entry.line.contender;
        let swept = along.or_else(|| swept(&entry.line));
        let mut name = method_name(&contender.label);
        let mut measure = String::new();
        for (setting, value) in &contender.settings {
            if Some(setting.as_str()) != swept {
                name = if setting == "measure" {
                    value.clone()
                } else {
                    format!("{name}, {setting} {value}")
                };
            }
            if setting == "measure" {
                measure.clone_from(value);
            }
        }
        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => series.entries.push(entry),
            None => all.push(Series { name, measure, entries: vec![entry] }),
        }
    }
    for Series { entries, .. } in &mut all {
        let place = |entry: &Entry<'_>| {
            along.or_else(|| swept(&entry.line)).and_then(|name| number(&entry.line, name))
        };
        entries
            .sort_by(|a, b| place(a).partial_cmp(&place(b)).unwrap_or(std::cmp::Ordering::Equal));
    }
    all
}

/// The setting that a curve runs over: a knob, else the last one that is a number.
fn swept(line: &ResultLine) -> Option<&str> {
    let settings = &line.contender.settings;
    let names = || settings.iter().map(|(name, _)| name.as_str());
    names()
        .find(|name| KNOBS.contains(name))
        .or_else(|| names().rev().find(|name| number(line, name).is_some()))
}

/// Whether a line is one of several for values of a parameter that trades cost for validity.
pub(super) fn sweeps(line: &ResultLine) -> bool {
    swept(line).is_some_and(|name| KNOBS.contains(&name))
}

pub(super) fn number(line: &ResultLine, setting: &str) -> Option<f64> {
    let settings = &line.contender.settings;
    settings.iter().find(|(name, _)| name == setting).and_then(|(_, value)| value.parse().ok())
}

/// A style for each series, no two the same as long as there are enough.
pub(super) fn series_styles(all: &[Series<'_, '_>]) -> Vec<Style> {
    let mut styles: Vec<Style> = Vec::new();
    for series in all {
        let usual = match series.measure.as_str() {
            "m" => Style::of(0),
            "r_k" => Style::of(3),
            "R^" => Style::of(1),
            "R" => Style::of(2),
            _ => series.entries.first().map_or(Style::of(0), |entry| style(&entry.line.contender)),
        };
        let unused = std::iter::once(usual)
            .chain((0..8).map(Style::of))
            .find(|style| !styles.contains(style));
        styles.push(unused.unwrap_or(usual));
    }
    styles
}

/// Curves over the parameters of methods, from the experiments that vary them.
fn curves(here: &[&Entry<'_>], legend: &mut Vec<Key>) -> Vec<Mark> {
    let turned: Vec<&Entry<'_>> = here
        .iter()
        .copied()
        .filter(|entry| {
            let settings = &entry.line.contender.settings;
            !entry.is_main
                && entry.experiment.beside.is_none()
                && entry.line.contender.label == entry.line.contender.method.name()
                && matches!(settings.as_slice(), [(name, _)] if KNOBS.contains(&name.as_str()))
        })
        .collect();
    let mut marks = Vec::new();
    for series in series(&turned, None) {
        let Some(first) = series.entries.first() else { continue };
        let style = style(&first.line.contender);
        let points = series
            .entries
            .iter()
            .filter_map(|entry| Some((entry.cost()?, height(&entry.line, false)?)));
        marks.push(Mark::Line { points: points.collect(), style, dashed: false });
        for entry in &series.entries {
            marks.extend(dot(entry, style, Fill::Faint, false));
        }
        add_key(legend, first);
    }
    marks
}

fn add_key(legend: &mut Vec<Key>, entry: &Entry<'_>) {
    let contender = &entry.line.contender;
    let key =
        Key { style: style(contender), fill: Fill::Full, text: method_name(&contender.label) };
    if !legend.contains(&key) {
        legend.push(key);
    }
}

/// The numbers at which a curve begins and ends.
fn ends(series: &Series<'_, '_>, is_ablation: bool) -> Vec<Mark> {
    let [first, .., last] = series.entries.as_slice() else { return Vec::new() };
    let word = |entry: &&Entry<'_>| {
        let text = number(&entry.line, swept(&entry.line)?)?.to_string();
        Some(Mark::Word { at: (entry.cost()?, height(&entry.line, is_ablation)?), text })
    };
    [first, last].into_iter().filter_map(word).collect()
}

/// A line of a table: the mean, and every base model.
fn dots(entry: &Entry<'_>, legend: &mut Vec<Key>) -> Vec<Mark> {
    add_key(legend, entry);
    let contender = &entry.line.contender;
    let mut marks = Vec::new();
    if entry.line.bases.len() > 1 {
        marks.extend(entry.line.bases.iter().filter_map(|base| {
            let validity = base.validity.iter().copied().reduce(f64::min)?;
            Some(Mark::Dot {
                at: (base.cost?, 100.0 * validity),
                range: None,
                style: style(contender),
                fill: Fill::Faint,
                tip: format!("{}, base model {}", contender_name(contender), base.base + 1),
            })
        }));
    }
    let fill = if contender.calibrated { Fill::Ringed } else { Fill::Full };
    marks.extend(dot(entry, style(contender), fill, false));
    marks
}

fn height(line: &ResultLine, is_ablation: bool) -> Option<f64> {
    let summary = if is_ablation { line.validity.first().map(|(_, v)| *v) } else { weakest(line) };
    summary.map(|summary| 100.0 * summary.mean)
}

fn dot(entry: &Entry<'_>, style: Style, fill: Fill, is_ablation: bool) -> Option<Mark> {
    let line = &entry.line;
    let validity =
        if is_ablation { line.validity.first().map(|(_, v)| *v) } else { weakest(line) }?;
    let range = validity.low.zip(validity.high).map(|(low, high)| (100.0 * low, 100.0 * high));
    Some(Mark::Dot {
        at: (entry.cost()?, 100.0 * validity.mean),
        range: range.filter(|_| fill != Fill::Faint),
        style,
        fill,
        tip: tip(line),
    })
}

pub(super) fn tip(line: &ResultLine) -> String {
    let mut tip = contender_name(&line.contender);
    if line.contender.calibrated
        && let Some(tau) = line.contender.tau()
    {
        let _ = write!(tip, ", calibrated tau {tau}");
    }
    if let Some(cost) = &line.cost {
        let _ = write!(tip, ": cost {}", amount(cost.mean));
    }
    for (change, validity) in &line.validity {
        let _ = write!(tip, ", {} {}", family(change), percent_with_interval(validity));
    }
    format!("{tip}; {} found", percent(line.coverage.mean))
}

/// The paper's line of a contender that follows the paper.
pub(super) fn printed_line(entry: &Entry<'_>) -> Option<printed::PrintedLine> {
    let contender = &entry.line.contender;
    if !contender.settings.is_empty() {
        return None;
    }
    let table = printed::table(entry.experiment.beside.as_deref()?)?;
    let method = match contender.method.name() {
        // The authors' code calls this min-cost.
        "elastic-net" if contender.protocol == Protocol::Reference => "min-cost",
        method => method,
    };
    table.line(entry.line.norm, method)
}

fn printed_dot(entry: &Entry<'_>) -> Option<Mark> {
    let contender = &entry.line.contender;
    if contender.label != contender.method.name() {
        return None;
    }
    let printed = printed_line(entry)?;
    let validity = printed.wi.mean.min(printed.lo.mean);
    Some(Mark::Dot {
        at: (printed.cost.mean, 100.0 * validity),
        range: None,
        style: style(contender),
        fill: Fill::Hollow,
        tip: format!(
            "{} in the paper: cost {}, WI {}, LO {}",
            method_name(&contender.label),
            amount(printed.cost.mean),
            percent(printed.wi.mean),
            percent(printed.lo.mean)
        ),
    })
}

fn printed_curve(norm: Norm, measure: &str, style: Style) -> Vec<Mark> {
    let lines = printed::ablation(norm, measure);
    let points = lines.iter().map(|line| (line.cost, 100.0 * line.wi)).collect();
    let mut marks = vec![Mark::Line { points, style, dashed: true }];
    marks.extend(lines.iter().map(|line| Mark::Dot {
        at: (line.cost, 100.0 * line.wi),
        range: None,
        style,
        fill: Fill::Hollow,
        tip: format!(
            "{measure} in the paper, tau {}: cost {}, WI {}",
            line.tau,
            amount(line.cost),
            percent(line.wi)
        ),
    }));
    marks
}

/// A chart of validity against cost; from 0 to 100 %, or as much of that as is needed.
fn cost_chart(title: &str, norm: Norm, marks: Vec<Mark>, is_whole: bool) -> String {
    let places = || marks.iter().flat_map(places_of);
    let y = if is_whole {
        Scale::linear(0.0, 102.0)
    } else {
        let ranges = marks.iter().filter_map(|mark| match mark {
            Mark::Dot { range, .. } => *range,
            _ => None,
        });
        Scale::around(places().map(|(_, y)| y).chain(ranges.flat_map(|(low, high)| [low, high])))
    };
    let chart = Chart {
        title: title.to_owned(),
        description: "Validity against cost, method by method".to_owned(),
        x: Scale::of_amounts(places().map(|(x, _)| x)),
        y,
        x_label: format!("mean cost, {}", norm.name()),
        y_label: "validity, %".to_owned(),
        marks,
    };
    chart.svg()
}

pub(super) fn places_of(mark: &Mark) -> Vec<(f64, f64)> {
    match mark {
        Mark::Line { points, .. } => points.clone(),
        Mark::Dot { at, .. } => vec![*at],
        _ => Vec::new(),
    }
}

/// The cheapest and the most valid line.
fn said_of_ends(entries: &[Entry<'_>]) -> String {
    let known =
        || entries.iter().filter_map(|entry| Some((entry, entry.cost()?, weakest(&entry.line)?)));
    let cheapest = known().min_by(|a, b| a.1.total_cmp(&b.1));
    let firmest = known().max_by(|a, b| a.2.mean.total_cmp(&b.2.mean));
    let (Some(cheapest), Some(firmest)) = (cheapest, firmest) else { return String::new() };
    let told = |(entry, cost, validity): (&Entry<'_>, f64, tyrex::metric::Summary)| {
        format!(
            "{} with {}: cost {}, validity {}",
            contender_name(&entry.line.contender),
            entry.line.norm.name(),
            amount(cost),
            percent(validity.mean)
        )
    };
    format!("The cheapest is {}. The most valid is {}.", told(cheapest), told(firmest))
}
