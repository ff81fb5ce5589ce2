//! The distribution of the relaxed stability over the data and over counterfactuals.

use tyrex::error::Result;
use tyrex::measure::{Gauge, Neighbourhood, RelaxedStability, Sampling};
use tyrex::metric::Summary;
use tyrex::model::{Model as _, THRESHOLD};
use tyrex::points::Points;
use tyrex::seed::Seed;

use super::contender::Entrant;
use super::progress::Share;
use super::result::{Histogram, Histograms};
use super::setup::Setup;
use super::spec::HistogramsTask;

/// Neighbours of a point; the paper's number.
const SAMPLES: usize = 1000;
/// Maximum number of training points of each kind.
const MOST_POINTS: usize = 2000;

pub(super) fn run(
    setup: &Setup,
    task: &HistogramsTask,
    seed: Seed,
    share: &Share<'_>,
) -> Result<Histograms> {
    let model = setup.base(0);
    let dim = setup.train().dim();
    let cloud = Neighbourhood::draw(
        Sampling::MonteCarlo,
        dim,
        SAMPLES,
        task.sigma,
        seed.derive("histograms"),
    )?;
    let gauge = Gauge::new(RelaxedStability {}, model, &cloud)?;
    let scores = model.score(setup.train());
    let first = |accepted: bool| {
        let rows: Vec<usize> = (0..setup.train().len())
            .filter(|&row| (scores[row] >= THRESHOLD) == accepted)
            .take(MOST_POINTS)
            .collect();
        setup.train().select(&rows)
    };
    let mut groups = vec![
        ("training rows the model accepts".to_owned(), first(true)),
        ("training rows it rejects".to_owned(), first(false)),
    ];
    let rows = setup.factuals(0, usize::MAX);
    for method in &task.methods {
        let entrant = Entrant::plain(method);
        for contender in entrant.contenders(task.protocol)? {
            let mut points = Points::new(dim);
            let outcomes = setup.search(&contender, task.norm, 0, &rows, || share(0.5))?;
            for found in outcomes.iter().filter_map(|outcome| outcome.found()) {
                points.push(&found.point);
            }
            let tau = contender.tau().map(|tau| format!(", tau {tau}")).unwrap_or_default();
            groups.push((format!("counterfactuals of {method}{tau}"), points));
        }
    }
    // R^ is at least -1; below 0 there is little.
    let (low, high) = (-0.2, 1.0);
    let edges: Vec<f64> =
        (0..=task.bins).map(|edge| low + (high - low) * edge as f64 / task.bins as f64).collect();
    let histograms = groups
        .into_iter()
        .map(|(title, points)| {
            let values: Vec<f64> =
                gauge.read(&points).iter().map(|reading| reading.value).collect();
            let mut counts = vec![0; task.bins];
            for value in &values {
                let bin = ((value - low) / (high - low) * task.bins as f64).floor().max(0.0);
                counts[(bin as usize).min(task.bins - 1)] += 1;
            }
            Ok(Histogram { title, counts, summary: Summary::of(&values)? })
        })
        .collect::<Result<_>>()?;
    Ok(Histograms { edges, histograms })
}
