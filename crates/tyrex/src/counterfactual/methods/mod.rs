//! The catalogue of methods: a method is a file, and its line in the list below.

mod elastic_net;
mod margin;
mod min_cost;
mod nn;
mod params;
mod roar;
mod sns;
mod trex_e;
mod trex_i;
mod trex_o;

use serde::{Deserialize, Serialize};

use super::field::Field;
use super::judge::{Robustness, gave_up};
use super::search::cells::is_searchable;
use super::search::settle::{Finish, settle};
use super::search::{Candidate, Test};
use super::{Answer, Counterfactual, Factual, Meter, Method, Problem, Reason, Stopped, plausible};
use crate::action::FeasibleSet;
use crate::catalogue::{Named, catalogue, listed};
use crate::choice::Choice as _;
use crate::data::catalogue::Variant;
use crate::error::{Error, Result};
use crate::measure::{Neighbourhood, Sampling};
use crate::model::{Model, TrainParams};
use crate::points::Points;
use crate::seed::Seed;

catalogue! {
    /// A method and its parameters.
    MethodSpec tagged "method" by Spec {
        trex_e::TrexE,
        trex_i::TrexI,
        trex_o::TrexO,
        nn::TrexNn,
        min_cost::MinCost,
        margin::Margin,
        nn::Nn,
        sns::Sns,
        roar::Roar,
        elastic_net::ElasticNet,
    }
}

/// The description of a method, implemented in its own file.
trait Spec {
    /// The name in headings and charts.
    fn title(&self) -> &'static str;

    /// A one-sentence description.
    fn sentence(&self) -> &'static str;

    /// The same method with a protocol's parameters.
    fn under(&self, protocol: Protocol) -> MethodSpec;

    /// The models that it searches.
    fn needs(&self) -> ModelNeed {
        ModelNeed::GradientsOrTrees
    }

    /// Its use of the data points of a problem.
    fn reference(&self) -> ReferenceUse;

    /// Whether it searches over retrained models.
    fn needs_models(&self) -> bool {
        false
    }

    /// The robustness test, if it has one.
    fn robustness(&self) -> Option<&Robustness> {
        None
    }

    /// The same, mutable.
    fn robustness_mut(&mut self) -> Option<&mut Robustness> {
        None
    }

    /// Whether it proves that no answer is cheaper, if it can do so.
    fn prove_mut(&mut self) -> Option<&mut bool> {
        None
    }

    /// Checks the parameters and prepares the draws, which are the same for all factuals. The model
    /// has what the method needs.
    fn prepare<'a>(&self, problem: &Problem<'a>, seed: Seed) -> Result<Box<dyn Method + 'a>>;
}

/// The models that a method searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelNeed {
    /// Every model, black boxes too.
    Scores,
    /// Models with gradients, and trees, whose cells are known.
    GradientsOrTrees,
    /// Models with gradients.
    Gradients,
}

impl ModelNeed {
    /// Whether a model has what is needed.
    fn is_met_by(self, model: &dyn Model) -> bool {
        match self {
            Self::Scores => true,
            Self::GradientsOrTrees => is_searchable(model),
            Self::Gradients => model.differentiable().is_some(),
        }
    }
}

/// A method's use of the data points of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferenceUse {
    /// It does not use them.
    Unused,
    /// It finds more or cheaper answers with them.
    Optional,
    /// It returns one of them, and finds nothing without them.
    Required,
}

/// The origin of a method's parameters. Protocols are never combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// For use: answers are rows that satisfy the rules.
    #[default]
    Product,
    /// The paper's text: any point in encoded space.
    Paper,
    /// The authors' released code, to compare numbers.
    Reference,
}

choices! { Protocol "protocol" {
    Product = "product":
        "For use: scaling fitted on training rows only; answers are rows that satisfy the rules",
    Paper = "paper": "As in the paper's text, on the authors' arrays: answers are any points",
    Reference = "reference": "As in the authors' released code, to compare numbers",
} }

impl Protocol {
    /// The feasible set of all factuals, from the training points. `None` for `product`, where it
    /// depends on the row.
    pub fn space(self, train: &Points) -> Result<Option<FeasibleSet>> {
        let dim = train.dim();
        match self {
            Self::Product => Ok(None),
            // The paper: all of encoded space.
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

    /// The schema of a named data set that goes with it.
    pub fn variant(self) -> Variant {
        match self {
            Self::Product => Variant::Product,
            Self::Paper | Self::Reference => Variant::Reference,
        }
    }

    /// How networks are trained.
    pub fn training(self) -> TrainParams {
        match self {
            Self::Product => TrainParams::default(),
            Self::Paper | Self::Reference => TrainParams::paper(),
        }
    }

    /// The name.
    pub fn name(self) -> &'static str {
        self.word()
    }
}

impl MethodSpec {
    /// The method of that name, with a protocol's parameters.
    pub fn named(name: &str, protocol: Protocol) -> Result<Self> {
        let found = Self::all().into_iter().find(|method| method.name() == name);
        found.map(|method| method.kind().under(protocol)).ok_or_else(|| {
            Error::param("method", name, format!("one of {}", Self::NAMES.join(", ")))
        })
    }

    /// The names of the methods that satisfy a predicate, as a list in a sentence.
    pub fn listed(holds: impl Fn(&Self) -> bool) -> String {
        listed(Self::all().iter().filter(|method| holds(method)).map(Self::name))
    }

    /// The name in headings and charts.
    pub fn title(&self) -> &'static str {
        self.kind().title()
    }

    /// A one-sentence description.
    pub fn sentence(&self) -> &'static str {
        self.kind().sentence()
    }

    /// The models that it searches.
    pub fn needs(&self) -> ModelNeed {
        self.kind().needs()
    }

    /// Whether it can search this model.
    pub fn takes(&self, model: &dyn Model) -> bool {
        self.needs().is_met_by(model)
    }

    /// Why it cannot search a model that it does not take: `needs gradients, which trees do not
    /// have`.
    pub fn refusal(&self) -> &'static str {
        match self.needs() {
            ModelNeed::Scores => "takes every model",
            ModelNeed::GradientsOrTrees => "needs gradients or trees, and a black box has neither",
            ModelNeed::Gradients => "needs gradients, which trees and black boxes do not have",
        }
    }

    /// Its use of the data points of a problem.
    pub fn reference(&self) -> ReferenceUse {
        self.kind().reference()
    }

    /// Whether it searches over retrained models.
    pub fn needs_models(&self) -> bool {
        self.kind().needs_models()
    }

    /// Whether it has a robustness test.
    pub fn is_robust(&self) -> bool {
        self.robustness().is_some()
    }

    /// The robustness test, if the method has one.
    pub fn robustness(&self) -> Option<&Robustness> {
        self.kind().robustness()
    }

    /// The same, mutable.
    pub fn robustness_mut(&mut self) -> Option<&mut Robustness> {
        self.kind_mut().robustness_mut()
    }

    /// Asks for a proof that no answer is cheaper; false for a method that cannot give one.
    pub(crate) fn set_prove(&mut self) -> bool {
        self.kind_mut().prove_mut().map(|prove| *prove = true).is_some()
    }

    /// This method if it can search the model, or else the first one that can, with the same
    /// robustness test if there is one.
    pub fn for_model(&self, model: &dyn Model, protocol: Protocol) -> Option<Self> {
        if self.takes(model) {
            return Some(self.clone());
        }
        let fits = |other: &Self| {
            other.takes(model) && !other.needs_models() && other.is_robust() == self.is_robust()
        };
        let mut other = Self::all().into_iter().find(fits)?.kind().under(protocol);
        if let (Some(own), Some(test)) = (other.robustness_mut(), self.robustness()) {
            own.clone_from(test);
        }
        // The protocol's base may need more than the method.
        other.takes(model).then_some(other)
    }

    /// Checks the parameters and prepares the draws, which are the same for all factuals.
    pub fn prepare<'a>(&self, problem: &Problem<'a>, seed: Seed) -> Result<Box<dyn Method + 'a>> {
        if !self.takes(problem.model) {
            let others = Self::listed(|method| method.takes(problem.model));
            let problem = format!("{} {}; use {others}", self.name(), self.refusal());
            return Err(Error::InvalidModel(problem));
        }
        plausible::prepared(problem, |problem| self.kind().prepare(problem, seed))
    }
}

/// The counterfactual that other methods start from.
fn base(protocol: Protocol) -> MethodSpec {
    MinCost::default().under(protocol)
}

/// The answer "found".
fn found(problem: &Problem, factual: &Factual, candidate: Candidate, stopped: Stopped) -> Answer {
    Answer::Found { counterfactual: counterfactual(problem, factual, candidate), stopped }
}

/// The answer "not found", with the best point.
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
    let cost = factual.cost(problem.norm, &point);
    Counterfactual {
        point,
        score: reading.score,
        value: reading.value,
        cost,
        least_cost: None,
        row,
    }
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
    field.aim_at(test.threshold);
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

/// The neighbourhood of a gauge that uses none.
fn unread(model: &dyn Model) -> Result<Neighbourhood> {
    Neighbourhood::draw(Sampling::MonteCarlo, model.dim(), 1, 1.0, Seed(0))
}
