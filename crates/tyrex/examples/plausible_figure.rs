//! Draws answers with and without the condition that they are usual: two moons, and the first two
//! principal components of HELOC's accepted rows. Lines join both answers of an applicant.
//!
//! `TYREX_DATA=data cargo run --release -p tyrex --example plausible_figure > docs/plausible.svg`

use std::io::Write as _;
use std::ops::ControlFlow;

use anyhow::{Context as _, Result};
use tyrex::Seed;
use tyrex::data::catalogue::{Catalogue, Direction, Variant};
use tyrex::explain::{Advice, Ask, Explainer, Part};
use tyrex::model::TrainParams;
use tyrex::report::scale::Scale;
use tyrex::report::svg::{Chart, Fill, Mark, Style};

/// Accepted rows, applicants, and answers without and with the condition.
const SERIES: [(&str, usize); 4] =
    [("accepted", 0), ("applicant", 7), ("advice", 2), ("usual advice", 3)];
/// Accepted rows and applicants that are shown.
const SHOWN: usize = 400;
const APPLICANTS: usize = 12;

/// The colours and lines of the charts, which a page has in its style sheet.
const STYLE: &str = "text{font:11px sans-serif;fill:#24292f}.t{font-weight:bold}\
    .g{stroke:#eee;fill:none}.a{stroke:#666;fill:none}.k{fill:none;opacity:.7}\
    .d{stroke-dasharray:3 3}.q{opacity:.5}.c0{fill:#9aa3b0;stroke:none}\
    .c2.f{fill:#d55e00}.c3.f{fill:#00845f}.c7.f{fill:#24292f}\
    .c2.k{stroke:#d55e00}.c3.k{stroke:#00845f}";

fn main() -> Result<()> {
    let charts = [
        ("moons", "Two moons, L1, p-value 0.1", None),
        ("heloc", "HELOC, principal components of accepted rows, L1", Some("component")),
    ];
    let mut out =
        String::from("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 780 300\"><style>");
    out += STYLE;
    out += "</style><rect width=\"780\" height=\"300\" fill=\"white\"/>";
    for (index, (name, title, components)) in charts.into_iter().enumerate() {
        let chart = chart(name, title, components.is_some())?.svg();
        let place =
            format!("<svg x=\"{}\" y=\"0\" width=\"380\" height=\"270\" ", 10 + 390 * index);
        out += &chart.replacen("<svg ", &place, 1);
    }
    for (index, (words, colour)) in SERIES.into_iter().enumerate() {
        let x = 60 + 180 * index;
        out += &format!(
            "<circle class=\"c{colour} f\" cx=\"{x}\" cy=\"285\" r=\"4\"/>\
             <text x=\"{}\" y=\"289\">{words}</text>",
            x + 9
        );
    }
    out += "</svg>\n";
    std::io::stdout().write_all(out.as_bytes()).context("cannot write the figure")
}

fn chart(name: &str, title: &str, is_projected: bool) -> Result<Chart> {
    let folder = std::env::var_os("TYREX_DATA").map(std::path::PathBuf::from);
    let data =
        Catalogue::new(folder.as_deref()).load(name, Variant::Product, Direction::Favourable)?;
    let labels = data.labels().to_vec();
    let accepted: Vec<usize> = data.train().iter().copied().filter(|&row| labels[row]).collect();
    let accepted = data.points().select(&accepted);
    let go_on = |_: &_| ControlFlow::Continue(());
    let explainer = Explainer::train(data, &TrainParams::default(), Seed(0), go_on)?;
    let mut applicants = explainer.applicants().rejected(Part::Test);
    applicants.truncate(APPLICANTS);
    let answers = |plausible: Option<f64>| -> Result<Vec<Advice>> {
        let method = Some("trex-o".to_owned());
        let ask = Ask { method, plausible, certify: false, ..Ask::default() };
        let answered = explainer.answer(&applicants, &ask, None, |_| ControlFlow::Continue(()))?;
        Ok(answered.advice)
    };
    let (plain, usual) = (answers(None)?, answers(Some(0.1))?);
    let rows: Vec<&[f32]> = accepted.rows().collect();
    let axes = if is_projected { components(&rows) } else { unit(accepted.dim()) };
    let at = |point: &[f32]| -> (f64, f64) {
        let along = |axis: &[f64]| axis.iter().zip(point).map(|(a, &x)| a * f64::from(x)).sum();
        (along(&axes[0]), along(&axes[1]))
    };
    let style = |series: usize| Style { colour: SERIES[series].1, shape: 0 };
    let dot = |point: &[f32], series: usize, fill: Fill| Mark::Dot {
        at: at(point),
        range: None,
        style: style(series),
        fill,
        tip: SERIES[series].0.to_owned(),
    };
    let mut marks: Vec<Mark> =
        rows.iter().take(SHOWN).map(|row| dot(row, 0, Fill::Faint)).collect();
    for (index, applicant) in applicants.iter().enumerate() {
        marks.push(dot(&applicant.point, 1, Fill::Full));
        for (advice, series) in [(&plain[index], 2), (&usual[index], 3)] {
            let Some(found) = advice.found() else { continue };
            let ends = vec![at(&applicant.point), at(&found.point)];
            marks.push(Mark::Line { points: ends, style: style(series), dashed: series == 2 });
            marks.push(dot(&found.point, series, Fill::Full));
        }
    }
    let places: Vec<(f64, f64)> = marks
        .iter()
        .filter_map(|mark| match mark {
            Mark::Dot { at, .. } => Some(*at),
            _ => None,
        })
        .collect();
    let label = |number: usize| {
        if is_projected { format!("component {number}") } else { format!("x{number}") }
    };
    Ok(Chart {
        title: title.to_owned(),
        description: "Dots are accepted rows, applicants, and their advice with and without the \
                      condition that it is usual"
            .to_owned(),
        x: Scale::around(places.iter().map(|place| place.0)),
        y: Scale::around(places.iter().map(|place| place.1)),
        x_label: label(1),
        y_label: label(2),
        marks,
    })
}

/// The first two columns.
fn unit(dim: usize) -> [Vec<f64>; 2] {
    [0, 1].map(|axis| (0..dim).map(|column| f64::from(u8::from(column == axis))).collect())
}

/// The directions in which standardised rows vary most, by power iteration on their correlations.
fn components(rows: &[&[f32]]) -> [Vec<f64>; 2] {
    const ITERATIONS: usize = 200;
    let dim = rows.first().map_or(0, |row| row.len());
    let count = rows.len() as f64;
    let mean: Vec<f64> = (0..dim)
        .map(|column| rows.iter().map(|row| f64::from(row[column])).sum::<f64>() / count)
        .collect();
    let spread: Vec<f64> = (0..dim)
        .map(|column| {
            let squares = rows.iter().map(|row| (f64::from(row[column]) - mean[column]).powi(2));
            (squares.sum::<f64>() / count).sqrt().max(0.01)
        })
        .collect();
    let mut found: Vec<Vec<f64>> = Vec::new();
    for number in 0..2 {
        let mut axis: Vec<f64> =
            (0..dim).map(|column| 1.0 + (column % (3 + number)) as f64).collect();
        for _ in 0..ITERATIONS {
            let mut next = vec![0.0; dim];
            for row in rows {
                let centred = row.iter().zip(mean.iter().zip(&spread));
                let centred = centred.map(|(&x, (mean, spread))| (f64::from(x) - mean) / spread);
                let along: f64 = centred.clone().zip(&axis).map(|(x, a)| x * a).sum();
                next.iter_mut().zip(centred).for_each(|(to, x)| *to += along * x);
            }
            for other in &found {
                let along: f64 = next.iter().zip(other).map(|(a, b)| a * b).sum();
                next.iter_mut().zip(other).for_each(|(to, b)| *to -= along * b);
            }
            let length = next.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            axis = next.into_iter().map(|x| x / length).collect();
        }
        found.push(axis);
    }
    // Of the columns as they are.
    [0, 1].map(|axis| found[axis].iter().zip(&spread).map(|(a, spread)| a / spread).collect())
}
