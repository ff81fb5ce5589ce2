//! Running a suite.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use tyrex::data::catalogue::Catalogue;
use tyrex::error::{Error, Result};
use tyrex::metric::Summary;

use super::comparison::{self, Run};
use super::progress::{Tracker, Watch};
use super::result::{Finding, Results, Shown, Timing};
use super::setup::Setup;
use super::spec::{Experiment, Suite, Task};
use super::store::{FORMAT_VERSION, Store, digest, write_json};
use super::{certificates, histograms, moons, tables};

/// The file of all results, in the folder of a run.
pub const RESULTS: &str = "results.json";
/// The file of all times.
pub const TIMINGS: &str = "timings.json";

/// Runs the missing parts of a suite into a folder, and writes the results: `results.json`, tables
/// as CSV and Parquet, and separately the times.
pub fn run(
    suite: &Suite,
    catalogue: &Catalogue,
    folder: &Path,
    watch: &Watch<'_>,
) -> Result<(Results, Vec<Timing>)> {
    let store = Store::new(folder);
    store.folder(Path::new(""))?;
    let tracker = Tracker::new(steps(suite)?, watch);
    let mut setups: BTreeMap<String, Setup> = BTreeMap::new();
    let (mut shown, mut timings) = (Vec::new(), Vec::new());
    let last_use = last_uses(suite)?;
    for (index, experiment) in suite.experiments.iter().enumerate() {
        let key = Setup::key(&experiment.world, suite.seed)?;
        let started = Instant::now();
        if !setups.contains_key(&key) {
            let setup = Setup::new(&experiment.world, catalogue, suite.seed, &store, &tracker)?;
            timings.push(Timing::of(experiment, "training", started));
            setups.insert(key.clone(), setup);
        }
        let Some(setup) = setups.get(&key).map(|setup| setup.of(&experiment.world)) else {
            continue;
        };
        let started = Instant::now();
        let (finding, more) = find(suite, experiment, &setup, &store, &tracker)?;
        // Pieces of an earlier run count with their original time.
        let pieces: f64 = more.iter().map(|timing| timing.seconds).sum();
        timings.extend(more);
        let all = Timing::of(experiment, "all", started);
        timings.push(Timing { seconds: all.seconds.max(pieces), ..all });
        shown.push(Shown { experiment: experiment.clone(), finding });
        // Hundreds of models are dropped as soon as they are not needed.
        if last_use.get(&key) == Some(&index) {
            setups.remove(&key);
        }
    }
    let results = Results {
        format_version: FORMAT_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        suite: suite.name.clone(),
        title: suite.title.clone(),
        seed: suite.seed,
        quick: suite.quick,
        experiments: shown,
    };
    tables::write(&results, &timings, folder)?;
    write_json(&folder.join(TIMINGS), &timings)?;
    // The results are written last: if they exist, the rest is complete.
    write_json(&folder.join(RESULTS), &results)?;
    Ok((results, timings))
}

impl Timing {
    fn of(experiment: &Experiment, what: &str, started: Instant) -> Self {
        Self {
            experiment: experiment.name.clone(),
            what: what.to_owned(),
            norm: None,
            base: None,
            seconds: started.elapsed().as_secs_f64(),
            per_factual: None::<Summary>,
        }
    }
}

impl Results {
    /// Reads the results of a run from its folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(RESULTS);
        let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
        let wrong = |problem: String| Error::ParamFile { file: path.clone(), problem };
        let results: Self = serde_json::from_slice(&bytes)
            .map_err(|error| wrong(format!("not the results of an experiment: {error}")))?;
        if results.format_version != FORMAT_VERSION {
            return Err(wrong(format!(
                "`format_version` is {}, expected {FORMAT_VERSION}",
                results.format_version
            )));
        }
        Ok(results)
    }
}

/// The times of a run from its folder; none if there is no such file.
pub fn read_timings(folder: &Path) -> Vec<Timing> {
    let bytes = std::fs::read(folder.join(TIMINGS)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// For every setup, the last experiment that needs it.
fn last_uses(suite: &Suite) -> Result<BTreeMap<String, usize>> {
    let mut last = BTreeMap::new();
    for (index, experiment) in suite.experiments.iter().enumerate() {
        last.insert(Setup::key(&experiment.world, suite.seed)?, index);
    }
    Ok(last)
}

/// The steps of a suite: the training of each set of models, and the steps of every experiment.
fn steps(suite: &Suite) -> Result<usize> {
    let mut steps = last_uses(suite)?.len();
    for experiment in &suite.experiments {
        steps += match &experiment.task {
            Task::Comparison(task) => comparison::steps(&experiment.world, task)?,
            Task::Certificates(_) | Task::Moons(_) | Task::Histograms(_) => 1,
        };
    }
    Ok(steps)
}

fn find(
    suite: &Suite,
    experiment: &Experiment,
    setup: &Setup,
    store: &Store,
    tracker: &Tracker<'_>,
) -> Result<(Finding, Vec<Timing>)> {
    let Experiment { name, world, task, .. } = experiment;
    let key = digest(&(suite.seed, Setup::key(world, suite.seed)?))?;
    let inputs = (&key, world, task);
    Ok(match task {
        Task::Comparison(task) => {
            let run = Run { name, world, task, setup, store, key: &key };
            let (comparison, timings) = run.run(tracker)?;
            (Finding::Comparison(comparison), timings)
        }
        Task::Certificates(task) => {
            let found = tracker.step(&format!("{name}: certificates"), |share| {
                store.piece(name, "certificates", &inputs, || {
                    certificates::run(setup, task, suite.seed, share)
                })
            })?;
            (Finding::Certificates(found), Vec::new())
        }
        Task::Histograms(task) => {
            let found = tracker.step(&format!("{name}: histograms"), |share| {
                store.piece(name, "histograms", &inputs, || {
                    histograms::run(setup, task, suite.seed, share)
                })
            })?;
            (Finding::Histograms(found), Vec::new())
        }
        Task::Moons(task) => {
            let found = tracker.step(&format!("{name}: maps"), |share| {
                store.piece(name, "moons", &inputs, || moons::run(setup, task, suite.seed, share))
            })?;
            (Finding::Moons(found), Vec::new())
        }
    })
}
