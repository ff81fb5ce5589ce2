//! The figure of the two moons: a model, its retrained versions, and its stability.

use tyrex::counterfactual::{Norm, Protocol};
use tyrex::error::{Error, Result};
use tyrex::measure::{Gauge, Neighbourhood, RelaxedStability, Sampling};
use tyrex::model::{Mlp, Model as _, THRESHOLD};
use tyrex::points::Points;
use tyrex::seed::Seed;

use super::contender::Entrant;
use super::progress::Share;
use super::result::{Map, Moons, Placed};
use super::setup::Setup;
use super::spec::MoonsTask;

/// Neighbours of a point; the paper's number.
const SAMPLES: usize = 1000;
/// Data points drawn on the maps, at most.
const MOST_POINTS: usize = 400;

pub(super) fn run(setup: &Setup, task: &MoonsTask, seed: Seed, share: &Share<'_>) -> Result<Moons> {
    if setup.train().dim() != 2 {
        return Err(Error::Dimension {
            what: "coordinates of the points of a map".into(),
            expected: 2,
            got: setup.train().dim(),
        });
    }
    let bounds = bounds(setup.train());
    let grid = grid(bounds, task.resolution);
    let base = setup.base(0);
    let retrained: Vec<&Mlp> = setup.reinitialised(0).collect();
    let cloud =
        Neighbourhood::draw(Sampling::MonteCarlo, 2, SAMPLES, task.sigma, seed.derive("moons"))?;
    let gauge = Gauge::new(RelaxedStability {}, base, &cloud)?;
    let score = |title: String, model: &Mlp| Map { title, values: model.score(&grid) };
    let mut maps = vec![score("base model".to_owned(), base)];
    for (index, model) in retrained.iter().take(task.shown).enumerate() {
        maps.push(score(format!("retrained model {}", index + 1), model));
    }
    let stability = gauge.read(&grid).iter().map(|reading| reading.value as f32).collect();
    maps.push(Map { title: "stability of the base model".to_owned(), values: stability });
    let survival = |at: &[f32]| {
        let point = Points::one(at);
        let kept = retrained.iter().filter(|model| model.score(&point)[0] >= THRESHOLD).count();
        kept as f64 / retrained.len().max(1) as f64
    };
    let placed = |label: &str, at: &[f32]| {
        let point = Points::one(at);
        Placed {
            label: label.to_owned(),
            at: (at[0], at[1]),
            stability: gauge.read(&point)[0].value,
            survival: survival(at),
        }
    };
    let mut answers = Vec::new();
    // The factual with the lowest score shows most.
    let rows = setup.factuals(0, usize::MAX);
    let factuals = setup.points().select(&rows);
    let scores = base.score(&factuals);
    let lowest = (0..rows.len()).min_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    if let Some(lowest) = lowest {
        answers.push(placed("factual", factuals.row(lowest)));
        for method in &task.methods {
            for mut contender in Entrant::plain(method).contenders(Protocol::Paper)? {
                if contender.tau().is_some() {
                    contender = contender.at(task.tau);
                }
                let rows = &rows[lowest..=lowest];
                let outcomes = setup.search(&contender, Norm::L2, 0, rows, || share(0.5))?;
                if let Some(found) = outcomes.first().and_then(|outcome| outcome.found()) {
                    answers.push(placed(method, &found.point));
                }
            }
        }
    }
    let points = (0..setup.points().len())
        .take(MOST_POINTS)
        .map(|row| {
            let point = setup.points().row(row);
            (point[0], point[1], setup.is_favourable(row))
        })
        .collect();
    Ok(Moons { bounds, width: task.resolution, height: task.resolution, maps, points, answers })
}

/// The box of the points with a margin: left, right, bottom, top.
pub fn bounds(points: &Points) -> [f64; 4] {
    let range = |axis: usize| {
        let values = points.rows().map(|row| f64::from(row[axis]));
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        let margin = 0.15 * (high - low);
        (low - margin, high + margin)
    };
    let ((left, right), (bottom, top)) = (range(0), range(1));
    [left, right, bottom, top]
}

/// The points of a map, row by row from the bottom; at least two along each side.
pub fn grid([left, right, bottom, top]: [f64; 4], resolution: usize) -> Points {
    let at = |from: f64, to: f64, index: usize| {
        (from + (to - from) * index as f64 / (resolution - 1) as f64) as f32
    };
    let mut grid = Points::new(2);
    for row in 0..resolution {
        for column in 0..resolution {
            grid.push(&[at(left, right, column), at(bottom, top, row)]);
        }
    }
    grid
}
