//! Draws the idea as a picture: five networks that differ only in their seed agree where
//! the data are and disagree elsewhere, and the stability of one of them tells the two apart.
//!
//! `cargo run --release -p tyrex --example moons > docs/moons.svg`

use std::fmt::Write as _;
use std::io::Write as _;

use tyrex::data::moons::moons;
use tyrex::measure::{Gauge, Neighbourhood, RelaxedStability, Sampling};
use tyrex::model::{Examples, Mlp, Model, TrainParams, train};
use tyrex::{Points, Result, Seed};

/// The part of the plane shown, and its size on the page.
const LEFT: f64 = -1.6;
const TOP: f64 = 1.5;
const SPAN: (f64, f64) = (4.2, 2.7);
const SIZE: (f64, f64) = (440.0, 283.0);
/// Cells across and down.
const GRID: (usize, usize) = (110, 71);

fn main() -> Result<()> {
    let sample = moons(300, 0.2, Seed(4))?;
    let mut points = Points::new(2);
    for point in &sample {
        points.push(&[point.x1 as f32, point.x2 as f32]);
    }
    let labels: Vec<u32> = sample.iter().map(|point| u32::from(!point.lower)).collect();
    let params = TrainParams { epochs: 150, learning_rate: 5e-3, ..TrainParams::paper() };
    let models: Vec<Mlp> = (0..5)
        .map(|seed| Ok(train(Examples::new(&points, &labels), &params, Seed(seed))?.network))
        .collect::<Result<_>>()?;

    let corners = corners();
    let cloud = Neighbourhood::draw(Sampling::Sobol, 2, 512, 0.15, Seed(1))?;
    let gauge = Gauge::new(RelaxedStability {}, &models[0], &cloud)?;
    let scores: Vec<Vec<f64>> =
        models.iter().map(|m| m.score(&corners).into_iter().map(f64::from).collect()).collect();
    let stability: Vec<f64> = gauge.read(&corners).iter().map(|reading| reading.value).collect();

    let (width, height) = (2.0 * SIZE.0 + 30.0, SIZE.1 + 40.0);
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' \
         font-family='sans-serif' font-size='13'>\n<rect width='100%' height='100%' fill='white'/>\n"
    );
    panel(&mut svg, 10.0, "score of one network; borders of five that differ in their seed");
    cells(&mut svg, &scores[0]);
    for other in &scores[1..] {
        border(&mut svg, other, 0.5, "stroke='#555' stroke-width='1'");
    }
    border(&mut svg, &scores[0], 0.5, "stroke='black' stroke-width='2.5'");
    dots(&mut svg, &points, &labels);
    svg.push_str("</g>\n");
    panel(&mut svg, SIZE.0 + 20.0, "its stability; inside the line it is at least 0.8");
    cells(&mut svg, &stability);
    border(&mut svg, &scores[0], 0.5, "stroke='black' stroke-width='2.5'");
    border(&mut svg, &stability, 0.8, "stroke='#0b6e4f' stroke-width='2.5'");
    dots(&mut svg, &points, &labels);
    svg.push_str("</g>\n</svg>\n");
    std::io::stdout()
        .write_all(svg.as_bytes())
        .map_err(tyrex::Error::io("write", "stdout".as_ref()))
}

/// The corners of all cells, row by row.
fn corners() -> Points {
    let mut corners = Points::new(2);
    for down in 0..=GRID.1 {
        for across in 0..=GRID.0 {
            corners.push(&[
                (LEFT + SPAN.0 * across as f64 / GRID.0 as f64) as f32,
                (TOP - SPAN.1 * down as f64 / GRID.1 as f64) as f32,
            ]);
        }
    }
    corners
}

fn panel(svg: &mut String, x: f64, title: &str) {
    let _ = writeln!(svg, "<g transform='translate({x},30)'><text y='-10'>{title}</text>");
}

/// One rectangle per run of equal colours in a row.
fn cells(svg: &mut String, values: &[f64]) {
    let (w, h) = (SIZE.0 / GRID.0 as f64, SIZE.1 / GRID.1 as f64);
    for down in 0..GRID.1 {
        let shade = |across: usize| (at(values, across, down).clamp(0.0, 1.0) * 9.99) as usize;
        let mut start = 0;
        while start < GRID.0 {
            let mut end = start + 1;
            while end < GRID.0 && shade(end) == shade(start) {
                end += 1;
            }
            let _ = writeln!(
                svg,
                "<rect x='{:.1}' y='{:.1}' width='{:.1}' height='{:.1}' fill='{}'/>",
                start as f64 * w,
                down as f64 * h,
                (end - start) as f64 * w + 0.3,
                h + 0.3,
                colour(shade(start))
            );
            start = end;
        }
    }
}

/// From a warm colour (rejected) through near white to a cool one (accepted).
fn colour(shade: usize) -> String {
    let t = shade as f64 / 9.0;
    let mix = |low: f64, middle: f64, high: f64| {
        if t < 0.5 {
            low + (middle - low) * 2.0 * t
        } else {
            middle + (high - middle) * (2.0 * t - 1.0)
        }
    };
    format!(
        "#{:02x}{:02x}{:02x}",
        mix(232.0, 247.0, 120.0) as u8,
        mix(150.0, 244.0, 178.0) as u8,
        mix(118.0, 238.0, 214.0) as u8
    )
}

fn at(values: &[f64], across: usize, down: usize) -> f64 {
    values[down * (GRID.0 + 1) + across]
}

/// The line where the values cross a level: in each cell, between the crossings of its edges.
fn border(svg: &mut String, values: &[f64], level: f64, style: &str) {
    let mut path = String::new();
    for down in 0..GRID.1 {
        for across in 0..GRID.0 {
            let ring = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)].map(|(i, j)| {
                let (across, down) = (across + i, down + j);
                (across as f64, down as f64, at(values, across, down) - level)
            });
            let crossings: Vec<(f64, f64)> = ring
                .windows(2)
                .filter(|edge| (edge[0].2 < 0.0) != (edge[1].2 < 0.0))
                .map(|edge| {
                    let share = edge[0].2 / (edge[0].2 - edge[1].2);
                    let x = edge[0].0 + share * (edge[1].0 - edge[0].0);
                    let y = edge[0].1 + share * (edge[1].1 - edge[0].1);
                    (x * SIZE.0 / GRID.0 as f64, y * SIZE.1 / GRID.1 as f64)
                })
                .collect();
            for pair in crossings.chunks_exact(2) {
                let _ = write!(
                    path,
                    "M{:.1} {:.1}L{:.1} {:.1}",
                    pair[0].0, pair[0].1, pair[1].0, pair[1].1
                );
            }
        }
    }
    let _ = writeln!(svg, "<path d='{path}' fill='none' stroke-linecap='round' {style}/>");
}

fn dots(svg: &mut String, points: &Points, labels: &[u32]) {
    for (point, label) in points.rows().zip(labels) {
        let x = (f64::from(point[0]) - LEFT) / SPAN.0 * SIZE.0;
        let y = (TOP - f64::from(point[1])) / SPAN.1 * SIZE.1;
        let fill = if *label == 1 { "#1f5f8b" } else { "#a63c06" };
        let _ = writeln!(svg, "<circle cx='{x:.1}' cy='{y:.1}' r='2' fill='{fill}'/>");
    }
}
