//! Maps of a model on two moons, of its retrained versions, and of the stability.
//!
//! A map is drawn as nested areas, one for each level of its values: rows of a level are runs in
//! one path, which is far smaller than a square per value.

use std::fmt::Write as _;

use super::document::{Figures, Key, ReportTable, Section, TableCell, TableColumn, TableRow};
use super::number::{method_name, method_style, percent, two_digits};
use super::svg::{self, Fill, Taken, free_place};
use crate::experiment::result::{Map, Moons, Placed};

/// Colours of a map; the style sheet has as many.
const LEVELS: usize = 12;
/// The widest side of a map, and the room around it.
const SIDE: f64 = 300.0;
const TOP: f64 = 22.0;
const MARGIN: f64 = 8.0;
const SCALE_BAR: f64 = 44.0;

/// The part of a report about the moons.
pub(super) fn describe(section: &mut Section, moons: &Moons) {
    let last = moons.maps.len().saturating_sub(1);
    let charts = moons.maps.iter().enumerate();
    let charts: Vec<String> = charts
        .filter(|(_, map)| !moons.points.is_empty() || !map.values.is_empty())
        .map(|(index, map)| draw(moons, map, index == 0 || index == last))
        .collect();
    let mut legend: Vec<Key> = Vec::new();
    for answer in &moons.answers {
        let key = Key {
            style: method_style(&answer.label),
            fill: Fill::Full,
            text: method_name(&answer.label),
        };
        if !legend.contains(&key) {
            legend.push(key);
        }
    }
    section.figures(Figures {
        caption: "The score of the base model and of retrained ones, and the stability of the \
                  base, from 0 (orange) to 1 (blue); the line is at 0.5. Small dots are the \
                  data: dark if favourable, light if not."
            .to_owned(),
        said: said(moons),
        legend,
        charts,
        ..Figures::default()
    });
    let rows = moons.answers.iter().map(|answer| {
        let place =
            format!("({}, {})", two_digits(answer.at.0.into()), two_digits(answer.at.1.into()));
        let cells = [place, two_digits(answer.stability), percent(answer.survival)];
        TableRow {
            head: method_name(&answer.label),
            style: Some(method_style(&answer.label)),
            is_ours: answer.label == "trex-o",
            cells: cells.into_iter().map(TableCell::plain).collect(),
        }
    });
    section.table(ReportTable {
        caption: "One factual and the answers to it.".to_owned(),
        corner: "point".to_owned(),
        beside: "",
        columns: ["place", "stability", "retrained models that accept it"]
            .map(|title| TableColumn::number("", title))
            .into(),
        rows: rows.collect(),
    });
}

fn said(moons: &Moons) -> String {
    let answers = moons.answers.iter().filter(|answer| answer.label != "factual");
    let told: Vec<String> = answers
        .map(|answer| {
            format!(
                "{} of the retrained models accept the answer of {} (stability {})",
                percent(answer.survival),
                method_name(&answer.label),
                two_digits(answer.stability)
            )
        })
        .collect();
    if told.is_empty() { String::new() } else { format!("{}.", told.join("; ")) }
}

/// The position of the map's coordinates on the page.
struct Frame {
    bounds: [f64; 4],
    width: f64,
    height: f64,
}

impl Frame {
    fn of(moons: &Moons) -> Self {
        let [left, right, bottom, top] = moons.bounds;
        let is_sound =
            moons.bounds.iter().all(|end| end.is_finite()) && right > left && top > bottom;
        let bounds = if is_sound { moons.bounds } else { [0.0, 1.0, 0.0, 1.0] };
        let [left, right, bottom, top] = bounds;
        let aspect = ((top - bottom) / (right - left)).clamp(0.4, 1.2);
        Self { bounds, width: SIDE, height: SIDE * aspect }
    }

    fn place(&self, (x, y): (f32, f32)) -> (f64, f64) {
        let [left, right, bottom, top] = self.bounds;
        let share = |value: f32, low: f64, high: f64| {
            let share = (f64::from(value) - low) / (high - low);
            if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
        };
        (
            MARGIN + share(x, left, right) * self.width,
            TOP + (1.0 - share(y, bottom, top)) * self.height,
        )
    }
}

fn draw(moons: &Moons, map: &Map, with_answers: bool) -> String {
    let frame = Frame::of(moons);
    let mut out = String::new();
    let (width, height) = (frame.width + MARGIN + SCALE_BAR, frame.height + TOP + MARGIN);
    svg::open(&mut out, width, height, &map.title, "Map of values between 0 and 1");
    svg::text(&mut out, MARGIN, 14.0, "start", "t", &map.title);
    areas(&mut out, moons, map, &frame);
    bar(&mut out, &frame);
    data(&mut out, moons, &frame);
    if with_answers {
        answers(&mut out, &moons.answers, &frame);
    }
    out.push_str("</svg>");
    out
}

/// Rows of the map: complete ones only.
fn rows<'a>(moons: &Moons, map: &'a Map) -> impl Iterator<Item = &'a [f32]> + use<'a> {
    map.values.chunks_exact(moons.width.max(1)).take(moons.height)
}

fn areas(out: &mut String, moons: &Moons, map: &Map, frame: &Frame) {
    let count = rows(moons, map).count();
    if moons.width == 0 || count == 0 {
        return;
    }
    // In units of one value; the top row is drawn first.
    let _ = write!(
        out,
        r#"<g transform="translate({MARGIN} {TOP}) scale({:.4} {:.4})" shape-rendering="crispEdges"><path class="m0" d="M0 0h{}v{count}H0z"/>"#,
        frame.width / moons.width as f64,
        frame.height / count as f64,
        moons.width
    );
    for level in 1..LEVELS {
        let least = level as f32 / LEVELS as f32;
        let mut path = String::new();
        for (row, values) in rows(moons, map).enumerate() {
            for (start, length) in runs(values, least) {
                let _ = write!(path, "M{start} {}h{length}v1h-{length}z", count - 1 - row);
            }
        }
        if !path.is_empty() {
            let _ = write!(out, r#"<path class="m{level}" d="{path}"/>"#);
        }
    }
    let _ = write!(out, r#"<path class="mb" d="{}"/></g>"#, boundary(moons, map, count));
}

/// The runs of values of at least `least`: where each starts and how long it is.
fn runs(values: &[f32], least: f32) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut start = None;
    for (index, value) in values.iter().chain([&f32::NEG_INFINITY]).enumerate() {
        match (start, *value >= least) {
            (None, true) => start = Some(index),
            (Some(first), false) => {
                runs.push((first, index - first));
                start = None;
            }
            _ => {}
        }
    }
    runs
}

/// The edges between values below one half and others.
fn boundary(moons: &Moons, map: &Map, count: usize) -> String {
    let mut path = String::new();
    let accepted: Vec<Vec<bool>> =
        rows(moons, map).map(|values| values.iter().map(|value| *value >= 0.5).collect()).collect();
    for (row, values) in accepted.iter().enumerate() {
        for (column, pair) in values.windows(2).enumerate() {
            if pair[0] != pair[1] {
                let _ = write!(path, "M{} {}v1", column + 1, count - 1 - row);
            }
        }
    }
    for (row, pair) in accepted.windows(2).enumerate() {
        let differs: Vec<f32> =
            pair[0].iter().zip(&pair[1]).map(|(a, b)| f32::from(a != b)).collect();
        for (start, length) in runs(&differs, 0.5) {
            let _ = write!(path, "M{start} {}h{length}", count - 1 - row);
        }
    }
    path
}

/// The legend of the colours.
fn bar(out: &mut String, frame: &Frame) {
    let left = MARGIN + frame.width + 6.0;
    let step = frame.height / LEVELS as f64;
    for level in 0..LEVELS {
        let y = TOP + frame.height - (level + 1) as f64 * step;
        let _ = write!(
            out,
            r#"<rect class="m{level}" x="{left:.1}" y="{y:.2}" width="8" height="{:.2}"/>"#,
            step + 0.3
        );
    }
    for (value, share) in [("0", 0.0), ("0.5", 0.5), ("1", 1.0)] {
        let y = TOP + frame.height * (1.0 - share) + 4.0 * share;
        svg::text(out, left + 11.0, y + 2.0, "start", "n", value);
    }
}

fn data(out: &mut String, moons: &Moons, frame: &Frame) {
    for (favourable, class) in [(false, "pu"), (true, "pf")] {
        let mut path = String::new();
        for (x, y, _) in moons.points.iter().filter(|point| point.2 == favourable) {
            let (x, y) = frame.place((*x, *y));
            let _ = write!(path, "M{x:.1} {y:.1}h0");
        }
        if !path.is_empty() {
            let _ = write!(out, r#"<path class="{class}" d="{path}"/>"#);
        }
    }
}

fn answers(out: &mut String, answers: &[Placed], frame: &Frame) {
    let room =
        Taken { left: MARGIN, right: MARGIN + frame.width, top: TOP, bottom: TOP + frame.height };
    let mut taken: Vec<Taken> = Vec::new();
    for answer in answers {
        let (x, y) = frame.place(answer.at);
        let tip = format!(
            "{}: stability {}, accepted by {} of the retrained models",
            method_name(&answer.label),
            two_digits(answer.stability),
            percent(answer.survival)
        );
        svg::dot(out, x, y, method_style(&answer.label), Fill::Full, &tip);
        taken.push(Taken { left: x - 5.0, right: x + 5.0, top: y - 5.0, bottom: y + 5.0 });
    }
    for answer in answers {
        let (x, y) = frame.place(answer.at);
        let name = method_name(&answer.label);
        if let Some(place) = free_place(x, y, &name, &room, &taken) {
            svg::text(out, place.left, place.bottom - 2.5, "start", "w", &name);
            taken.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_where_the_values_are_high() {
        assert_eq!(runs(&[0.9, 0.1, 0.9, 0.9], 0.5), [(0, 1), (2, 2)]);
        assert!(runs(&[0.1, f32::NAN], 0.5).is_empty());
        assert!(runs(&[], 0.5).is_empty());
    }

    #[test]
    fn the_boundary_is_where_the_decision_changes() {
        let moons = Moons {
            bounds: [0.0, 1.0, 0.0, 1.0],
            width: 2,
            height: 2,
            maps: Vec::new(),
            points: Vec::new(),
            answers: Vec::new(),
        };
        // Only the upper right is accepted.
        let map = Map { title: String::new(), values: vec![0.0, 0.0, 0.0, 1.0] };
        assert_eq!(boundary(&moons, &map, 2), "M1 0v1M1 1h1");
    }
}
