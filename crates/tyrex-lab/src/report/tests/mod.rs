//! Reports of results that were made by hand.

mod claims;
mod pages;

use tyrex::counterfactual::{MethodSpec, Norm, Protocol, Reason};
use tyrex::metric::{PointMetrics, Summary};
use tyrex::seed::Seed;

use crate::experiment::result::{
    Answered, BaseSummary, Cell, Certificates, Comparison, DataSummary, Family, Finding, Found,
    Histogram, Histograms, Map, Moons, Placed, Shown, StatedBin, StatedTier,
};
use crate::experiment::{Contender, Experiment, Results};

/// Factuals of every line, and models of every family.
const FACTUALS: usize = 20;
const MODELS: usize = 12;

/// One contender as a test describes it.
#[derive(Clone)]
struct Made {
    contender: Contender,
    norm: Norm,
    cost: f64,
    wi: f64,
    lo: f64,
    found: usize,
}

fn made(method: &str, cost: f64, wi: f64, lo: f64) -> Made {
    let contender = Contender {
        label: method.to_owned(),
        settings: Vec::new(),
        protocol: Protocol::Paper,
        calibrated: false,
        taus: Vec::new(),
        plausible: None,
        method: MethodSpec::named(method, Protocol::Paper).unwrap(),
    };
    Made { contender, norm: Norm::L1, cost, wi, lo, found: FACTUALS }
}

impl Made {
    fn calibrated(mut self) -> Self {
        self.contender.calibrated = true;
        self
    }

    fn labelled(mut self, label: &str) -> Self {
        label.clone_into(&mut self.contender.label);
        self
    }

    fn of_released_code(mut self) -> Self {
        self.contender.protocol = Protocol::Reference;
        self.labelled("trex-i (authors' code)")
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        if let ("tau", Some(robustness)) = (name, self.contender.method.robustness_mut()) {
            robustness.tau = value.parse().unwrap();
        }
        self.contender.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    fn found(mut self, found: usize) -> Self {
        self.found = found;
        self
    }

    fn cell(&self) -> Cell {
        let answers = (0..FACTUALS).map(|row| {
            // Costs differ from factual to factual, but by the same for every method.
            let cost = self.cost + 0.1 * (row % 5) as f64;
            let metrics = PointMetrics {
                cost_l1: cost,
                cost_l2: cost,
                cost_mad: cost,
                changed_columns: 3,
                changed_features: None,
                outlier_factors: vec![1.0, 1.1, 1.2],
                inlier: vec![row % 2 == 0, true, true],
                neighbour_distance: 0.2,
                isolation: Some(0.4),
                mahalanobis: 3.0,
                outside: 0.0,
                log_density: -4.0,
            };
            let survival = vec![self.wi, self.lo];
            let is_favourable_inlier = Some(row % 4 != 0);
            let found = Found { score: 0.7, value: 0.8, metrics, is_favourable_inlier, survival };
            let found = (row < self.found).then_some(found);
            let reason = found.is_none().then_some(Reason::Stuck);
            Answered { row, reason, found }
        });
        let share = self.found as f64 / FACTUALS as f64;
        let family = |change: &str, validity: f64| Family {
            change: change.to_owned(),
            validities: (0..MODELS)
                .map(|model| {
                    (share * validity + 0.002 * ((model % 3) as f64 - 1.0)).clamp(0.0, 1.0)
                })
                .collect(),
            agreement: Some(validity),
        };
        Cell {
            norm: self.norm,
            base: 0,
            contender: self.contender.clone(),
            answers: answers.collect(),
            families: vec![family("reinitialise", self.wi), family("leave-out", self.lo)],
        }
    }
}

fn experiment(name: &str, beside: Option<&str>, task: &str) -> Experiment {
    let beside = beside.map(|beside| format!("beside = '{beside}'\n")).unwrap_or_default();
    let text = format!(
        "name = '{name}'\ntitle = 'Experiment {name}'\nabout = 'What it shows.'\n{beside}\
         [world]\ndataset = 'german'\n{task}"
    );
    toml::from_str(&text).unwrap()
}

fn comparison(name: &str, beside: Option<&str>, lines: &[Made]) -> Shown {
    let task =
        "[comparison]\nprotocol = 'paper'\nnorms = ['l1']\n[[comparison.entrant]]\nmethod = 'nn'";
    let base = BaseSummary {
        model: "0123456789abcdef".into(),
        accuracy: 0.8,
        rejected: 50,
        factuals: FACTUALS,
    };
    Shown {
        experiment: experiment(name, beside, task),
        finding: Finding::Comparison(Comparison {
            data: DataSummary {
                dataset: "german".to_owned(),
                columns: 61,
                train: 700,
                test: 300,
                bases: vec![base],
            },
            changes: Vec::new(),
            calibrations: Vec::new(),
            cells: lines.iter().map(Made::cell).collect(),
        }),
    }
}

fn results(experiments: Vec<Shown>) -> Results {
    Results {
        format_version: 1,
        version: "0.0.0".to_owned(),
        suite: "hand".to_owned(),
        title: "Made by hand".to_owned(),
        seed: Seed(7),
        quick: true,
        experiments,
    }
}

fn stated(stated: f64, observed: &[f64]) -> StatedBin {
    let observed = Summary::of_shares(observed).unwrap().unwrap();
    StatedBin { stated, certificates: 9, observed }
}

fn certificates(bins: Vec<StatedBin>) -> Shown {
    let task = "[certificates]\nprotocol = 'paper'\nnorm = 'l2'\nmodels = 5\nbins = 10\n\
                [[certificates.entrant]]\nmethod = 'nn'";
    Shown {
        experiment: experiment("certificates", None, task),
        finding: Finding::Certificates(Certificates {
            dataset: "german".to_owned(),
            models: 5,
            judges: 10,
            tiers: vec![StatedTier { tier: "ensemble".to_owned(), verdicts: [9, 0, 0], bins }],
        }),
    }
}

fn moons() -> Shown {
    let task = "[moons]\nresolution = 2\nshown = 1\nsigma = 0.1\ntau = 0.8\nmethods = ['nn']";
    let map = |title: &str| Map { title: title.to_owned(), values: vec![0.1, 0.4, 0.6, 1.0] };
    Shown {
        experiment: experiment("moons", None, task),
        finding: Finding::Moons(Moons {
            bounds: [-1.0, 1.0, 0.0, 1.0],
            width: 2,
            height: 2,
            maps: vec![map("base model"), map("stability")],
            points: vec![(0.0, 0.5, true), (0.5, 0.1, false)],
            answers: vec![
                Placed { label: "factual".into(), at: (0.0, 0.2), stability: 0.1, survival: 0.0 },
                Placed { label: "trex-o".into(), at: (0.1, 0.9), stability: 0.9, survival: 1.0 },
            ],
        }),
    }
}

fn histograms() -> Shown {
    let task =
        "[histograms]\nbins = 2\nsigma = 0.1\nprotocol = 'paper'\nmethods = ['nn']\nnorm = 'l2'";
    let histogram = |title: &str, counts: Vec<usize>, values: &[f64]| Histogram {
        title: title.to_owned(),
        counts,
        summary: Summary::of(values).unwrap(),
    };
    Shown {
        experiment: experiment("histograms", None, task),
        finding: Finding::Histograms(Histograms {
            edges: vec![0.0, 0.5, 1.0],
            histograms: vec![
                histogram("training rows", vec![1, 2], &[0.1, 0.7, 0.8]),
                histogram("nothing", vec![0, 0], &[]),
            ],
        }),
    }
}
