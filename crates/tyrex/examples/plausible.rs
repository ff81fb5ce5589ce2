//! Advice with and without the condition that it is usual, by measures that the search does not
//! optimise: local outlier factor, distance to the nearest favourable rows, acceptance by retrained
//! models, cost and time.
//!
//! `TYREX_DATA=data cargo run --release -p tyrex --example plausible -- german heloc --rows 60`
//!
//! `--methods trex-e,trex-o,trex-nn`, `--norms l1,l2` and `--levels 0.05,0.1` choose what is compared.
//! Every search is timed in turn with the others, `--rounds` times; the least time counts.
//! `--residuals yes` says of how many answers the largest conditional residual is unusual.
#![allow(clippy::print_stdout)] // an example shows

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tyrex::counterfactual::Norm;
use tyrex::data::catalogue::{Catalogue, Direction, Variant};
use tyrex::explain::{Advice, Applicant, Ask, Explainer, Fresh, Part};
use tyrex::metric::{IsolationForest, LocalOutlierFactor, MetricParams, Metrics, NeighbourIndex};
use tyrex::model::{THRESHOLD, TrainParams};
use tyrex::plausibility::Plausibility;
use tyrex::{Points, Seed};

/// A local outlier factor above this is an outlier's.
const INLIER: f64 = 1.5;
const NEIGHBOURS: usize = 20;

struct Arguments {
    data: Vec<String>,
    rows: usize,
    rounds: usize,
    methods: Vec<String>,
    norms: Vec<Norm>,
    levels: Vec<f64>,
    residuals: bool,
}

fn arguments() -> Result<Arguments> {
    let mut own = Arguments {
        data: Vec::new(),
        rows: 60,
        rounds: 1,
        methods: vec!["trex-e".to_owned()],
        norms: vec![Norm::L1],
        levels: vec![0.05, 0.1],
        residuals: false,
    };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut value = || given.next().with_context(|| format!("a value of {argument}"));
        match argument.as_str() {
            "--rows" => own.rows = value()?.parse()?,
            "--rounds" => own.rounds = value()?.parse()?,
            "--methods" => own.methods = value()?.split(',').map(str::to_owned).collect(),
            "--levels" => {
                own.levels = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--norms" => {
                let norm = |name: &str| match name {
                    "l1" => Ok(Norm::L1),
                    "l2" => Ok(Norm::L2),
                    other => bail!("unknown norm `{other}`, expected l1 or l2"),
                };
                own.norms = value()?.split(',').map(norm).collect::<Result<_>>()?;
            }
            "--residuals" => own.residuals = value()? == "yes",
            name if name.starts_with("--") => bail!("unknown option {name}"),
            name => own.data.push(name.to_owned()),
        }
    }
    if own.data.is_empty() {
        own.data.push("german".to_owned());
    }
    Ok(own)
}

fn main() -> Result<()> {
    let arguments = arguments()?;
    for name in &arguments.data {
        compare(name, &arguments)?;
    }
    Ok(())
}

/// The measures that judge answers; no search optimises them.
struct Judges {
    index: NeighbourIndex,
    distances: Metrics,
    forest: IsolationForest,
    fresh: Arc<Fresh>,
    /// Nine tenths of favourable test rows have a smaller [`residual`].
    usual_residual: f64,
}

impl Judges {
    fn outliers(&self, points: &Points) -> Result<Vec<f64>> {
        Ok(LocalOutlierFactor::new(&self.index, NEIGHBOURS)?.of(points)?)
    }

    fn inliers(&self, points: &Points) -> Result<f64> {
        let factors = self.outliers(points)?;
        Ok(share(factors.iter().filter(|factor| **factor <= INLIER).count(), factors.len()))
    }
}

fn compare(name: &str, arguments: &Arguments) -> Result<()> {
    let folder = std::env::var_os("TYREX_DATA").map(std::path::PathBuf::from);
    let data =
        Catalogue::new(folder.as_deref()).load(name, Variant::Product, Direction::Favourable)?;
    let labels = data.labels().to_vec();
    let favourable = |rows: &[usize]| -> Vec<usize> {
        rows.iter().copied().filter(|&row| labels[row]).collect()
    };
    let accepted = data.points().select(&favourable(data.train()));
    let others = data.points().select(&favourable(data.test()));
    let go_on = |_: &_| ControlFlow::Continue(());
    let explainer = Explainer::train(data, &TrainParams::default(), Seed(0), go_on)?;
    let mut applicants = explainer.applicants().rejected(Part::Test);
    applicants.truncate(arguments.rows);
    let started = Instant::now();
    let density = explainer.plausibility()?;
    let seconds = started.elapsed().as_secs_f64();
    let judges = Judges {
        index: NeighbourIndex::fit(&accepted, NEIGHBOURS)?,
        distances: Metrics::fit(&accepted, &MetricParams::default())?,
        forest: IsolationForest::fit(&accepted, Seed(3))?,
        // The default promise, so that every method is judged by the same models.
        fresh: explainer
            .fresh(&Ask::default().for_model(&explainer, None), None, &|_| {
                ControlFlow::Continue(())
            })?
            .context("retrained models")?,
        usual_residual: {
            let mut all: Vec<f64> = others.rows().map(|row| residual(density, row)).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() * 9 / 10]
        },
    };

    let (components, rank) = density.size();
    let refused = |least: f64| {
        let count = others.rows().filter(|row| density.p_value(row) < least).count();
        share(count, others.len())
    };
    let mut own = Points::new(accepted.dim());
    applicants.iter().for_each(|applicant| own.push(&applicant.point));
    println!("## {name}: {} rejected applicants", applicants.len());
    println!(
        "density of {} rows: {components} components of rank {rank}, {seconds:.2} s; of {} \
         favourable test rows it refuses {:.3} at 0.05 and {:.3} at 0.1; LOF {NEIGHBOURS} inliers: \
         {:.3} of these rows, {:.3} of the applicants",
        accepted.len(),
        others.len(),
        refused(0.05),
        refused(0.1),
        judges.inliers(&others)?,
        judges.inliers(&own)?,
    );
    println!();
    println!(
        "| method | norm | p-value | found | LOF {NEIGHBOURS} inliers | isolation | kNN distance | \
         median p-value | valid | cost | cost ratio | to T-Rex:NN | time ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let go_on = |_| ControlFlow::Continue(());
    for &norm in &arguments.norms {
        let nearest = Ask { method: Some("trex-nn".to_owned()), norm, ..Ask::default() };
        let mut answering = explainer.answering(&applicants, &nearest, None, &go_on)?;
        let nearest = answering.advise(&applicants, |_| ControlFlow::Continue(()))?;
        for method in &arguments.methods {
            rows(&explainer, &applicants, &judges, arguments, (method, norm, &nearest))?;
        }
    }
    println!();
    Ok(())
}

/// A search, its best time, and its answers.
struct Contender {
    least: Option<f64>,
    shows_residuals: bool,
    seconds: f64,
    advice: Vec<Advice>,
}

fn rows(
    explainer: &Explainer,
    applicants: &[Applicant],
    judges: &Judges,
    arguments: &Arguments,
    (method, norm, nearest): (&str, Norm, &[Advice]),
) -> Result<()> {
    let go_on = |_| ControlFlow::Continue(());
    let ask = |plausible: Option<f64>| Ask {
        method: Some(method.to_owned()),
        norm,
        plausible,
        ..Ask::default()
    };
    let levels = std::iter::once(None).chain(arguments.levels.iter().copied().map(Some));
    let mut contenders: Vec<Contender> = levels
        .map(|least| Contender {
            least,
            shows_residuals: arguments.residuals,
            seconds: f64::INFINITY,
            advice: Vec::new(),
        })
        .collect();
    for _ in 0..arguments.rounds {
        for own in &mut contenders {
            let mut answering = explainer.answering(applicants, &ask(own.least), None, &go_on)?;
            let started = Instant::now();
            own.advice = answering.advise(applicants, |_| ControlFlow::Continue(()))?;
            own.seconds = own.seconds.min(started.elapsed().as_secs_f64());
        }
    }
    let base = &contenders[0];
    for own in &contenders {
        line(explainer, judges, (method, norm), (own, base, nearest))?;
    }
    Ok(())
}

fn line(
    explainer: &Explainer,
    judges: &Judges,
    (method, norm): (&str, Norm),
    (own, base, nearest): (&Contender, &Contender, &[Advice]),
) -> Result<()> {
    let mut points = Points::new(explainer.encoder().dim());
    let found = own.advice.iter().filter_map(Advice::found);
    found.clone().for_each(|found| points.push(&found.point));
    let count = points.len();
    if count == 0 {
        println!("| {method} | {} | {:?} | 0 |", norm.name(), own.least);
        return Ok(());
    }
    let members = judges.fresh.ensemble.members();
    let accepting: usize = members
        .iter()
        .map(|model| model.score(&points).iter().filter(|score| **score >= THRESHOLD).count())
        .sum();
    let density = explainer.plausibility()?;
    let mut p_values: Vec<f64> = points.rows().map(|row| density.p_value(row)).collect();
    p_values.sort_by(f64::total_cmp);
    let mut starts = Points::new(points.dim());
    let with = own.advice.iter().filter(|advice| advice.found().is_some());
    with.for_each(|advice| starts.push(&advice.applicant.point));
    let metrics = judges.distances.of(&starts, &points)?;
    let distance = metrics.iter().map(|each| each.neighbour_distance).sum::<f64>() / count as f64;
    // Costs of the applicants that both advise.
    let ratio = |others: &[Advice]| {
        let both = own.advice.iter().zip(others).filter_map(|(a, b)| a.found().zip(b.found()));
        let (dear, cheap) = both.fold((0.0, 0.0), |sum, (a, b)| (sum.0 + a.cost, sum.1 + b.cost));
        dear / cheap
    };
    let isolation = judges.forest.of(&points)?.iter().sum::<f64>() / count as f64;
    let cost = found.map(|found| found.cost).sum::<f64>() / count as f64;
    println!(
        "| {method} | {} | {} | {:.3} | {:.3} | {isolation:.3} | {distance:.3} | {:.3} | {:.4} | {cost:.3} | {:.3} \
         | {:.3} | {:.2} |",
        norm.name(),
        own.least.map_or("none".to_owned(), |least| least.to_string()),
        share(count, own.advice.len()),
        judges.inliers(&points)?,
        p_values[count / 2],
        share(accepting, members.len() * count),
        ratio(&base.advice),
        ratio(nearest),
        own.seconds / base.seconds,
    );
    if own.shows_residuals {
        println!("residual above the usual: {}", residuals(density, judges, &points)?);
    }
    Ok(())
}

/// The largest conditional residual, `max_j |P (y - mu)|_j / sqrt(P_jj)`: how far a column is from its
/// mean given all others, in standard deviations. By the gradient of `ln p` and its differences.
fn residual(density: &Plausibility, x: &[f32]) -> f64 {
    const STEP: f32 = 1e-3;
    let (mut here, mut ahead) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    density.log_density_and_gradient(x, &mut here);
    let mut point = x.to_vec();
    let each = (0..x.len()).map(|column| {
        point[column] = x[column] + STEP;
        density.log_density_and_gradient(&point, &mut ahead);
        let width = f64::from(point[column]) - f64::from(x[column]);
        point[column] = x[column];
        let curvature = (here[column] - ahead[column]) / width;
        // Indicators of levels have no curvature.
        if curvature > 1e-3 { here[column].abs() / curvature.sqrt() } else { 0.0 }
    });
    each.fold(0.0, f64::max)
}

/// The shares of outliers, and of inliers, whose largest residual is above that of nine tenths of
/// favourable rows: what a second condition on it would refuse.
fn residuals(density: &Plausibility, judges: &Judges, points: &Points) -> Result<String> {
    let factors = judges.outliers(points)?;
    let refused = |is_outlier: bool| {
        let all = factors.iter().zip(points.rows());
        let of: Vec<&[f32]> =
            all.filter(|(f, _)| (**f > INLIER) == is_outlier).map(|(_, x)| x).collect();
        let large = of.iter().filter(|x| residual(density, x) > judges.usual_residual);
        format!("{} of {}", large.count(), of.len())
    };
    Ok(format!("{} outliers, {} inliers", refused(true), refused(false)))
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
