//! The catalogue of methods. A new one is a file and a line in each table below.

mod elastic_net;
mod min_cost;
mod nn;
#[cfg(feature = "openapi")]
mod openapi;
mod params;
mod roar;
mod sns;
mod trex_i;
mod trex_o;

use serde::{Deserialize, Serialize};

pub use elastic_net::ElasticNet;
pub use min_cost::MinCost;
pub use nn::{Nn, TrexNn};
pub use roar::Roar;
pub use sns::Sns;
pub use trex_i::TrexI;
pub use trex_o::TrexO;

use super::field::Field;
use super::judge::{Robustness, gave_up};
use super::search::ascent::Step;
use super::search::settle::{Finish, settle};
use super::search::{Candidate, Test};
use super::{Answer, Counterfactual, Factual, Meter, Method, Problem, Reason, Stopped};
use crate::action::FeasibleSet;
use crate::error::{Error, Result};
use crate::measure::{Neighbourhood, Sampling};
use crate::model::Model;
use crate::points::Points;
use crate::seed::Seed;

/// A method and its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum MethodSpec {
    /// The closest point the model accepts.
    MinCost(MinCost),
    /// The base of the authors' code.
    ElasticNet(ElasticNet),
    /// A base, then up the stability.
    TrexI(TrexI),
    /// The cheapest point that is stable.
    TrexO(TrexO),
    /// The nearest data point that is stable.
    TrexNn(TrexNn),
    /// A base, then up the path integral.
    Sns(Sns),
    /// The closest point that the worst model of a box accepts.
    Roar(Roar),
    /// The nearest data point the model accepts.
    Nn(Nn),
}

/// Whose parameters: never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// For use: answers are rows that obey the rules.
    #[default]
    Product,
    /// The paper's text: any point in encoded space.
    Paper,
    /// The authors' released code, to compare numbers.
    Reference,
}

impl Protocol {
    /// Where any factual's answers may lie, by the training points. None for `product`, where
    /// that depends on the row.
    pub fn space(self, train: &Points) -> Result<Option<FeasibleSet>> {
        let dim = train.dim();
        match self {
            Self::Product => Ok(None),
            // The paper's text: all of encoded space.
            Self::Paper => Ok(Some(FeasibleSet::everywhere(dim))),
            // The released code: from the least to the largest number in the training points.
            Self::Reference if train.is_empty() => Err(Error::param(
                "reference",
                "none",
                "rows whose range bounds the answers of the protocol `reference`",
            )),
            Self::Reference => {
                let least = train.as_slice().iter().copied().fold(f32::INFINITY, f32::min);
                let largest = train.as_slice().iter().copied().fold(f32::NEG_INFINITY, f32::max);
                FeasibleSet::within(vec![least; dim], vec![largest; dim]).map(Some)
            }
        }
    }

    /// The name, the same everywhere.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Product => "product",
            Self::Paper => "paper",
            Self::Reference => "reference",
        }
    }
}

impl MethodSpec {
    /// The names of all methods.
    pub const NAMES: [&'static str; 8] =
        ["min-cost", "elastic-net", "trex-i", "trex-o", "trex-nn", "sns", "roar", "nn"];

    /// The method of that name, with a protocol's parameters.
    pub fn named(name: &str, protocol: Protocol) -> Result<Self> {
        let released = || Box::new(Self::ElasticNet(ElasticNet::reference()));
        let base = || match protocol {
            Protocol::Reference => released(),
            Protocol::Product | Protocol::Paper => Box::new(Self::MinCost(MinCost::default())),
        };
        let robustness = || match protocol {
            Protocol::Product => Robustness::default(),
            Protocol::Paper => Robustness::paper(),
            Protocol::Reference => Robustness { tau: 0.75, sigma: 0.05, ..Robustness::paper() },
        };
        let (step, steps) = match protocol {
            Protocol::Product => (Step::Adaptive, 200),
            Protocol::Paper => (Step::Raw(0.01), 200),
            Protocol::Reference => (Step::Unit(0.01), 20),
        };
        let rescue = protocol == Protocol::Product;
        let trex_i = || TrexI { base: base(), robustness: robustness(), step, steps, rescue };
        Ok(match name {
            "min-cost" => *base(),
            "elastic-net" if protocol == Protocol::Reference => *released(),
            "elastic-net" => Self::ElasticNet(ElasticNet::default()),
            "trex-i" => Self::TrexI(trex_i()),
            // Not the paper's: it gets to its start our way, whatever must be shown in the end.
            "trex-o" => {
                let search = Robustness::default().search;
                let robustness = Robustness { search, ..robustness() };
                let start = TrexI { base: base(), robustness, ..TrexI::default() };
                Self::TrexO(TrexO { start, ..TrexO::default() })
            }
            "trex-nn" => {
                let neighbours = (protocol == Protocol::Paper).then_some(1000);
                Self::TrexNn(TrexNn { neighbours, robustness: robustness() })
            }
            "sns" => Self::Sns(Sns { base: base(), ..Sns::default() }),
            "roar" if protocol == Protocol::Reference => {
                Self::Roar(Roar { delta: 1e-3, ..Roar::default() })
            }
            "roar" => Self::Roar(Roar::default()),
            "nn" => Self::Nn(Nn {}),
            other => {
                return Err(Error::param(
                    "method",
                    other,
                    format!("one of {}", Self::NAMES.join(", ")),
                ));
            }
        })
    }

    /// The name, the same everywhere.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::MinCost(_) => "min-cost",
            Self::ElasticNet(_) => "elastic-net",
            Self::TrexI(_) => "trex-i",
            Self::TrexO(_) => "trex-o",
            Self::TrexNn(_) => "trex-nn",
            Self::Sns(_) => "sns",
            Self::Roar(_) => "roar",
            Self::Nn(_) => "nn",
        }
    }

    /// What it does, for people.
    #[must_use]
    pub fn sentence(&self) -> &'static str {
        match self {
            Self::MinCost(_) => "The smallest change that the model accepts today.",
            Self::ElasticNet(_) => {
                "A small change that the model accepts today, by the search of the authors' code."
            }
            Self::TrexI(_) => {
                "The smallest change first, then further until the answer is stable around it."
            }
            Self::TrexO(_) => "The cheapest change whose answer is stable around it.",
            Self::TrexNn(_) => "The nearest row of the data whose answer is stable around it.",
            Self::Sns(_) => {
                "The smallest change first, then further along the path integral of the score."
            }
            Self::Roar(_) => {
                "The smallest change that every model with slightly other weights accepts."
            }
            Self::Nn(_) => "The nearest row of the data that the model accepts.",
        }
    }

    /// Whether it needs a model with gradients.
    #[must_use]
    pub fn needs_gradients(&self) -> bool {
        !matches!(self, Self::TrexNn(_) | Self::Nn(_))
    }

    /// The test of robustness, of the methods that have one.
    #[must_use]
    pub fn robustness(&self) -> Option<&Robustness> {
        match self {
            Self::TrexI(method) => Some(&method.robustness),
            Self::TrexO(method) => Some(&method.start.robustness),
            Self::TrexNn(method) => Some(&method.robustness),
            Self::MinCost(_) | Self::ElasticNet(_) | Self::Sns(_) | Self::Roar(_) | Self::Nn(_) => {
                None
            }
        }
    }

    /// The same, to change.
    pub fn robustness_mut(&mut self) -> Option<&mut Robustness> {
        match self {
            Self::TrexI(method) => Some(&mut method.robustness),
            Self::TrexO(method) => Some(&mut method.start.robustness),
            Self::TrexNn(method) => Some(&mut method.robustness),
            Self::MinCost(_) | Self::ElasticNet(_) | Self::Sns(_) | Self::Roar(_) | Self::Nn(_) => {
                None
            }
        }
    }

    /// Checks the parameters and draws what is common to all factuals.
    pub fn prepare<'a>(&self, problem: &Problem<'a>, seed: Seed) -> Result<Box<dyn Method + 'a>> {
        match self {
            Self::MinCost(method) => method.prepare(problem),
            Self::ElasticNet(method) => method.prepare(problem),
            Self::TrexI(method) => method.prepare(problem, seed),
            Self::TrexO(method) => method.prepare(problem, seed),
            Self::TrexNn(method) => method.prepare(problem, seed),
            Self::Sns(method) => method.prepare(problem, seed),
            Self::Roar(method) => method.prepare(problem),
            Self::Nn(Nn {}) => Nn::prepare(problem),
        }
    }
}

/// The answer "found".
fn found(problem: &Problem, factual: &Factual, candidate: Candidate, stopped: Stopped) -> Answer {
    Answer::Found { counterfactual: counterfactual(problem, factual, candidate), stopped }
}

/// The answer "not found", with the best there was.
fn not_found(
    problem: &Problem,
    factual: &Factual,
    best: Option<Candidate>,
    reason: Reason,
) -> Answer {
    Answer::NotFound { best: best.map(|best| counterfactual(problem, factual, best)), reason }
}

fn counterfactual(problem: &Problem, factual: &Factual, candidate: Candidate) -> Counterfactual {
    let Candidate { point, reading, row } = candidate;
    let cost = problem.norm.distance(&point, factual.point);
    Counterfactual { point, score: reading.score, value: reading.value, cost, row }
}

/// The answer of a search: a row, if only rows are answers.
fn conclude(
    problem: &Problem,
    factual: &Factual,
    field: &mut dyn Field,
    test: Test,
    best: Option<Candidate>,
    finish: Finish,
    meter: &mut Meter,
) -> Result<Answer> {
    let Some(candidate) = best.clone().filter(|candidate| test.passes(candidate.reading)) else {
        return Ok(not_found(problem, factual, best, gave_up(meter)));
    };
    Ok(match settle(field, factual, problem.norm, test, candidate, finish, meter)? {
        Some(settled) => found(problem, factual, settled, converged(meter)),
        None if meter.is_spent() => not_found(problem, factual, best, Reason::BudgetSpent),
        None => not_found(problem, factual, best, Reason::NoActionableRow),
    })
}

/// Why a search for the cheapest point stopped.
fn converged(meter: &Meter) -> Stopped {
    if meter.is_spent() { Stopped::BudgetSpent } else { Stopped::Converged }
}

/// The neighbourhood of a gauge that looks at none.
fn unread(model: &dyn Model) -> Result<Neighbourhood> {
    Neighbourhood::draw(Sampling::MonteCarlo, model.dim(), 1, 1.0, Seed(0))
}
