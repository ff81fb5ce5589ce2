//! Advice: for each rejected row, what to change so that the model accepts it.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::table::check_names;
use super::{Applicant, Explainer, FORMAT_VERSION};
use crate::action::{Actions, FeasibleSet, Overrides};
use crate::counterfactual::{
    Budget, Counterfactual, Factual, Method, MethodSpec, Norm, Outcome, Problem, Protocol, Reason,
    Relaxations, Robustness, Tick, find_all, find_path, relaxations,
};
use crate::data::{Column, Row, Table, Value};
use crate::error::{Error, Result};
use crate::measure::{Gauge, Measure, RelaxedStability};
use crate::neighbourhood::{Neighbourhood, Sampling};
use crate::points::Points;
use crate::seed::Seed;

/// How advice is to be found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SearchRequest))]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The method and its parameters.
    pub method: MethodSpec,
    /// Whether answers are rows that obey the rules, or any points.
    pub protocol: Protocol,
    /// What a change costs.
    pub norm: Norm,
    /// The most work for one row.
    pub budget: Budget,
    /// What may change, beside what the schema says.
    pub overrides: Overrides,
    /// Where the search's randomness comes from.
    pub seed: Seed,
}

impl Request {
    /// A method of the catalogue, with a protocol's parameters.
    pub fn new(method: &str, protocol: Protocol, norm: Norm, seed: Seed) -> Result<Self> {
        Ok(Self {
            method: MethodSpec::named(method, protocol)?,
            protocol,
            norm,
            budget: Budget::default(),
            overrides: Overrides::default(),
            seed,
        })
    }
}

impl Request {
    /// Sets what the method's test of stability asks for, where it is given: the threshold, the
    /// number of neighbours and how far they lie.
    pub fn set_test(
        &mut self,
        tau: Option<f64>,
        samples: Option<usize>,
        sigma: Option<f64>,
    ) -> Result<()> {
        if tau.is_none() && samples.is_none() && sigma.is_none() {
            return Ok(());
        }
        let name = self.method.name();
        let Some(test) = self.method.robustness_mut() else {
            let robust = MethodSpec::listed(MethodSpec::is_robust);
            let expected = format!(
                "{robust} where tau, k or sigma is given: the others have no test of stability"
            );
            return Err(Error::param("method", name, expected));
        };
        test.tau = tau.unwrap_or(test.tau);
        test.samples = samples.unwrap_or(test.samples);
        test.sigma = sigma.unwrap_or(test.sigma);
        Ok(())
    }
}

/// What was found for one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The row as it is.
    pub applicant: Applicant,
    /// The answer of the method.
    pub outcome: Outcome,
    /// The advised row. None if nothing was found, or if
    /// answers are points and not rows.
    pub advised: Option<Row>,
    /// What changes, in the order of the schema.
    pub changes: Vec<FeatureChange>,
    /// The relaxed stability `R^` of the answer, on noise the search did not see.
    pub stability: Option<f64>,
    /// The distances from the factual.
    pub cost: Option<Costs>,
}

/// The distance from the factual in encoded space, by each norm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Costs {
    /// `L1`
    pub l1: f64,
    /// `L2`
    pub l2: f64,
}

/// One feature of a row, before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FeatureChange {
    /// The position of the feature in the schema.
    #[serde(skip)]
    pub position: usize,
    /// The feature.
    pub feature: String,
    /// Its value before.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::data::FeatureValue))]
    pub from: Value,
    /// Its value after.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::data::FeatureValue))]
    pub to: Value,
    /// The unit of its numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl Advice {
    /// The counterfactual, if one was found.
    #[must_use]
    pub fn found(&self) -> Option<&Counterfactual> {
        self.outcome.found()
    }

    /// The number of features that change; of encoded columns, where answers are points.
    pub(super) fn changed_count(&self) -> Option<usize> {
        let found = self.found()?;
        if self.advised.is_some() {
            return Some(self.changes.len());
        }
        let pairs = found.point.iter().zip(&self.applicant.point);
        Some(pairs.filter(|(a, b)| a != b).count())
    }
}

impl Explainer {
    /// Finds advice for rows, in their order; threads change nothing.
    ///
    /// `watch` hears of every answer and of every reading on the way; after a `Break` those not
    /// yet answered are answered with [`Reason::Cancelled`].
    pub fn advise(
        &self,
        applicants: &[Applicant],
        request: &Request,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Advice>> {
        let outcomes = self.search(applicants, request, watch)?;
        let stabilities = self.stabilities(&outcomes, request)?;
        Ok(applicants
            .iter()
            .zip(outcomes)
            .zip(stabilities)
            .map(|((applicant, outcome), stability)| self.advice(applicant, outcome, stability))
            .collect())
    }

    /// The same advice for one row, and the way to it: the points that the method stepped to,
    /// from the row's own to the answer's; see `docs/methods.md` for what that is, method by
    /// method. Where nothing is found it ends where the search gave up.
    pub fn trace(
        &self,
        applicant: &Applicant,
        request: &Request,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<(Advice, Points)> {
        let applicants = std::slice::from_ref(applicant);
        let (outcome, path) =
            self.with_method(applicants, request, |problem, method, factuals| {
                find_path(problem, method, &factuals[0], request.budget, watch)
            })?;
        let outcomes = [outcome];
        let stability = self.stabilities(&outcomes, request)?.into_iter().next().flatten();
        let [outcome] = outcomes;
        Ok((self.advice(applicant, outcome, stability), path))
    }

    /// The outcomes of a method for rows, in their order.
    pub(super) fn search(
        &self,
        applicants: &[Applicant],
        request: &Request,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Outcome>> {
        self.with_method(applicants, request, |problem, method, factuals| {
            find_all(problem, method, factuals, request.budget, watch)
        })
    }

    /// Makes the request's method ready for rows.
    fn with_method<T>(
        &self,
        applicants: &[Applicant],
        request: &Request,
        find: impl FnOnce(&Problem, &dyn Method, &[Factual]) -> Result<T>,
    ) -> Result<T> {
        let sets = self.feasible_sets(applicants, request)?;
        let factuals: Vec<Factual> = applicants
            .iter()
            .zip(&sets)
            .map(|(applicant, set)| Factual::new(&applicant.point, set))
            .collect();
        let data = self.points().select(&self.training_rows());
        let problem = Problem::new(self.model(), request.norm, &data)?;
        let method = request.method.prepare(&problem, request.seed)?;
        find(&problem, &*method, &factuals)
    }

    /// For a row without advice: which single rule stands in the way, after at most `tries`
    /// searches. Only where answers are rows.
    ///
    /// `watch` hears what a search hears; after a `Break` there is no answer.
    pub fn relaxations(
        &self,
        row: &Row,
        request: &Request,
        tries: usize,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Option<Relaxations>> {
        if request.protocol != Protocol::Product {
            return Ok(None);
        }
        let actions = self.actions(request)?;
        let data = self.points().select(&self.training_rows());
        let problem = Problem::new(self.model(), request.norm, &data)?;
        let method = request.method.prepare(&problem, request.seed)?;
        relaxations(&problem, &*method, &actions, row, request.budget, tries, watch).map(Some)
    }

    pub(super) fn actions(&self, request: &Request) -> Result<Actions> {
        Actions::new(self.schema(), self.encoder())?.overridden(&request.overrides)
    }

    /// Where the counterfactuals of rows may lie.
    fn feasible_sets(
        &self,
        applicants: &[Applicant],
        request: &Request,
    ) -> Result<Vec<FeasibleSet>> {
        let train = self.points().select(&self.training_rows());
        let Some(space) = request.protocol.space(&train)? else {
            let actions = self.actions(request)?;
            return applicants.iter().map(|each| actions.for_factual(&each.values)).collect();
        };
        if request.overrides != Overrides::default() {
            return Err(Error::param(
                "protocol",
                request.protocol.name(),
                "product, where rules on features are asked for",
            ));
        }
        Ok(vec![space; applicants.len()])
    }

    /// `R^` of what was found: what the method's own test read, if that was `R^`; else read now.
    fn stabilities(&self, outcomes: &[Outcome], request: &Request) -> Result<Vec<Option<f64>>> {
        let robustness = request.method.robustness();
        if robustness.is_some_and(|robustness| {
            robustness.measure == Measure::RelaxedStability(RelaxedStability {})
        }) {
            return Ok(outcomes.iter().map(|outcome| Some(outcome.found()?.value)).collect());
        }
        let found = outcomes.iter().filter_map(Outcome::found).map(|found| &*found.point);
        let mut values = self.relaxed_stabilities(found, request, "report")?.into_iter();
        let next = |outcome: &Outcome| outcome.found().and_then(|_| values.next());
        Ok(outcomes.iter().map(next).collect())
    }

    /// `R^` of points, on the neighbours that the request's test has, drawn anew for a purpose.
    pub(super) fn relaxed_stabilities<'a>(
        &self,
        points: impl Iterator<Item = &'a [f32]>,
        request: &Request,
        purpose: &str,
    ) -> Result<Vec<f64>> {
        let robustness = request.method.robustness().cloned().unwrap_or_default();
        let Robustness { samples, sigma, .. } = robustness;
        let mut read = Points::new(self.points().dim());
        points.for_each(|point| read.push(point));
        let seed = request.seed.derive(purpose);
        let cloud = Neighbourhood::draw(Sampling::MonteCarlo, read.dim(), samples, sigma, seed)?;
        let gauge = Gauge::new(RelaxedStability {}, self.model(), &cloud)?;
        Ok(gauge.read(&read).into_iter().map(|reading| reading.value).collect())
    }

    pub(super) fn advice(
        &self,
        applicant: &Applicant,
        outcome: Outcome,
        stability: Option<f64>,
    ) -> Advice {
        let Applicant { values, point, .. } = applicant;
        let found = outcome.found();
        let advised = found.and_then(|found| found.row.clone());
        Advice {
            applicant: applicant.clone(),
            changes: advised.as_ref().map(|row| self.changes(values, row)).unwrap_or_default(),
            stability,
            cost: found.map(|found| Costs {
                l1: Norm::L1.distance(&found.point, point),
                l2: Norm::L2.distance(&found.point, point),
            }),
            advised,
            outcome,
        }
    }

    pub(super) fn changes(&self, before: &Row, after: &Row) -> Vec<FeatureChange> {
        let pairs = before.values().iter().zip(after.values()).zip(&self.schema().features);
        pairs
            .enumerate()
            .filter(|(_, ((from, to), _))| from != to)
            .map(|(position, ((from, to), feature))| FeatureChange {
                position,
                feature: feature.name.clone(),
                from: from.clone(),
                to: to.clone(),
                unit: feature.unit.clone(),
            })
            .collect()
    }

    /// Advice as a table to write: `row`, `status`, `reason`, the counterfactual's features
    /// under their own names, `score`, `stability`, `cost_l1`, `cost_l2`, `changed`, `seconds`,
    /// then what the answers rest on: `method`, `parameters`, `model`, `seed`, `format_version`.
    /// Cells of rows without a counterfactual are empty.
    ///
    /// Where answers are points and not rows, the encoded columns stand in for the features.
    pub fn advice_table(&self, advice: &[Advice], request: &Request) -> Result<Table> {
        let rows = request.protocol == Protocol::Product;
        let names: Vec<String> = if rows {
            check_advice_names(self.schema())?;
            self.schema().features.iter().map(|feature| feature.name.clone()).collect()
        } else {
            self.encoder().columns()
        };
        let parameters = serde_json::to_string(&request)
            .map_err(|error| Error::param("parameters", error, "numbers that JSON can hold"))?;
        let model = self.fingerprint().to_string();
        let head = ["row", "status", "reason"].into_iter().map(str::to_owned);
        let mut columns: Vec<Column> =
            head.chain(names).chain(OWN_TAIL.map(str::to_owned)).map(Column::new).collect();
        for each in advice {
            let mut cells = vec![each.applicant.row.to_string()];
            let reason = each.outcome.reason().map_or("", Reason::name);
            let status = if reason.is_empty() { "found" } else { "not_found" };
            cells.extend([status.to_owned(), reason.to_owned()]);
            let width = columns.len() - 3 - OWN_TAIL.len();
            match (&each.advised, each.found()) {
                (Some(row), _) => cells.extend(self.schema().cells_of_row(row)),
                (None, Some(found)) => cells.extend(found.point.iter().map(ToString::to_string)),
                (None, None) => cells.extend(vec![String::new(); width]),
            }
            let number = |number: Option<f64>| number.map(|x| x.to_string()).unwrap_or_default();
            cells.extend([
                each.found().map(|found| found.score.to_string()).unwrap_or_default(),
                number(each.stability),
                number(each.cost.map(|cost| cost.l1)),
                number(each.cost.map(|cost| cost.l2)),
                each.changed_count().map(|count| count.to_string()).unwrap_or_default(),
                each.outcome.seconds.to_string(),
                request.method.name().to_owned(),
                parameters.clone(),
                model.clone(),
                request.seed.0.to_string(),
                FORMAT_VERSION.to_string(),
            ]);
            columns.iter_mut().zip(&cells).for_each(|(column, cell)| column.push(cell));
        }
        Table::new("counterfactuals", columns)
    }
}

/// The last columns of a file of advice.
const OWN_TAIL: [&str; 11] = [
    "score",
    "stability",
    "cost_l1",
    "cost_l2",
    "changed",
    "seconds",
    "method",
    "parameters",
    "model",
    "seed",
    "format_version",
];

/// Whether the features leave the names of [`Explainer::advice_table`]'s own columns free: for
/// the end of long work, asked before it.
pub fn check_advice_names(schema: &crate::data::Schema) -> Result<()> {
    check_names(schema, ["row", "status", "reason"].into_iter().chain(OWN_TAIL))
}
