//! Advice: for each rejected row, what to change so that the model accepts it.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{Explainer, FORMAT_VERSION, Part};
use crate::action::{Actions, FeasibleSet, Overrides};
use crate::counterfactual::{
    Budget, Counterfactual, Factual, MethodSpec, Norm, Outcome, Problem, Protocol, Reason,
    Relaxations, Robustness, find_all, relaxations,
};
use crate::data::{Column, Row, Table, Value};
use crate::error::{Error, Result};
use crate::measure::{Gauge, Measure};
use crate::model::THRESHOLD;
use crate::neighbourhood::{Neighbourhood, Sampling};
use crate::points::Points;
use crate::seed::Seed;

/// How advice is to be found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// What was found for one rejected row.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The row, as an index into the rows of the explainer.
    pub index: usize,
    /// Its row in the table, counted from 0 without the header.
    pub row: usize,
    /// `m(x)` before.
    pub score_before: f32,
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Costs {
    /// `L1`
    pub l1: f64,
    /// `L2`
    pub l2: f64,
}

/// One feature of a row, before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FeatureChange {
    /// The position of the feature in the schema.
    #[serde(skip)]
    pub position: usize,
    /// The feature.
    pub feature: String,
    /// Its value before.
    pub from: Value,
    /// Its value after.
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
}

impl Explainer {
    /// The rejected rows of a part, as indices into the rows, in the order of the table.
    #[must_use]
    pub fn rejected_rows(&self, part: Part) -> Vec<usize> {
        let mut rows = self.data().part(part);
        rows.sort_unstable();
        rows.retain(|&row| self.scores()[row] < THRESHOLD);
        rows
    }

    /// Finds advice for rows, in their order; threads change nothing.
    ///
    /// `watch` hears whenever one is done; after a `Break` the others are answered with
    /// [`Reason::Cancelled`].
    pub fn advise(
        &self,
        rows: &[usize],
        request: &Request,
        watch: impl Fn() -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Advice>> {
        let outcomes = self.search(rows, request, watch)?;
        let stabilities = self.stabilities(&outcomes, request)?;
        Ok(rows
            .iter()
            .zip(outcomes)
            .zip(stabilities)
            .map(|((&index, outcome), stability)| self.advice(index, outcome, stability))
            .collect())
    }

    /// The outcomes of a method for rows, in their order.
    pub(super) fn search(
        &self,
        rows: &[usize],
        request: &Request,
        watch: impl Fn() -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Outcome>> {
        rows.iter().try_for_each(|&row| self.check_row(row))?;
        let sets = self.feasible_sets(rows, request)?;
        let factuals: Vec<Factual> = rows
            .iter()
            .zip(&sets)
            .map(|(&row, set)| Factual::new(self.points().row(row), set))
            .collect();
        let data = self.points().select(&self.training_rows());
        let problem = Problem::new(self.model(), request.norm, &data)?;
        let method = request.method.prepare(&problem, request.seed)?;
        find_all(&problem, &*method, &factuals, request.budget, watch)
    }

    /// For a row without advice: which single rule stands in the way, after at most `tries`
    /// searches. Only where answers are rows.
    pub fn relaxations(
        &self,
        index: usize,
        request: &Request,
        tries: usize,
    ) -> Result<Option<Relaxations>> {
        self.check_row(index)?;
        if request.protocol != Protocol::Product {
            return Ok(None);
        }
        let actions = self.actions(request)?;
        let data = self.points().select(&self.training_rows());
        let problem = Problem::new(self.model(), request.norm, &data)?;
        let method = request.method.prepare(&problem, request.seed)?;
        let row = &self.data().rows()[index];
        relaxations(&problem, &*method, &actions, row, request.budget, tries).map(Some)
    }

    fn check_row(&self, index: usize) -> Result<()> {
        match self.points().len() {
            rows if index < rows => Ok(()),
            rows => Err(Error::param("row", index, format!("an index below {rows}"))),
        }
    }

    fn actions(&self, request: &Request) -> Result<Actions> {
        Actions::new(self.schema(), self.encoder())?.overridden(&request.overrides)
    }

    /// Where the counterfactuals of rows may lie.
    fn feasible_sets(&self, rows: &[usize], request: &Request) -> Result<Vec<FeasibleSet>> {
        let train = self.points().select(&self.training_rows());
        let Some(space) = request.protocol.space(&train)? else {
            let actions = self.actions(request)?;
            return rows.iter().map(|&row| actions.for_factual(&self.data().rows()[row])).collect();
        };
        if request.overrides != Overrides::default() {
            return Err(Error::param(
                "protocol",
                request.protocol.name(),
                "product, where rules on features are asked for",
            ));
        }
        Ok(vec![space; rows.len()])
    }

    /// `R^` of what was found: what the method's own test read, if that was `R^`; else read now.
    fn stabilities(&self, outcomes: &[Outcome], request: &Request) -> Result<Vec<Option<f64>>> {
        let robustness = request.method.robustness();
        if robustness.is_some_and(|robustness| robustness.measure == Measure::RelaxedStability) {
            return Ok(outcomes.iter().map(|outcome| Some(outcome.found()?.value)).collect());
        }
        let Robustness { samples, sigma, .. } = robustness.cloned().unwrap_or_default();
        let mut points = Points::new(self.points().dim());
        outcomes.iter().filter_map(Outcome::found).for_each(|found| points.push(&found.point));
        let seed = request.seed.derive("report");
        let cloud = Neighbourhood::draw(Sampling::MonteCarlo, points.dim(), samples, sigma, seed)?;
        let gauge = Gauge::new(Measure::RelaxedStability, self.model(), &cloud)?;
        let mut readings = gauge.read(&points).into_iter();
        let next = |outcome: &Outcome| {
            outcome.found().and_then(|_| readings.next()).map(|reading| reading.value)
        };
        Ok(outcomes.iter().map(next).collect())
    }

    fn advice(&self, index: usize, outcome: Outcome, stability: Option<f64>) -> Advice {
        let before = &self.data().rows()[index];
        let point = self.points().row(index);
        let found = outcome.found();
        let advised = found.and_then(|found| found.row.clone());
        Advice {
            index,
            row: self.data().table_rows()[index],
            score_before: self.scores()[index],
            changes: advised.as_ref().map(|row| self.changes(before, row)).unwrap_or_default(),
            stability,
            cost: found.map(|found| Costs {
                l1: Norm::L1.distance(&found.point, point),
                l2: Norm::L2.distance(&found.point, point),
            }),
            advised,
            outcome,
        }
    }

    fn changes(&self, before: &Row, after: &Row) -> Vec<FeatureChange> {
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
            let mut cells = vec![each.row.to_string()];
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
                self.changed_count(each).map(|count| count.to_string()).unwrap_or_default(),
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

    /// The number of features that change; of encoded columns, where answers are points.
    fn changed_count(&self, advice: &Advice) -> Option<usize> {
        let found = advice.found()?;
        if advice.advised.is_some() {
            return Some(advice.changes.len());
        }
        let pairs = found.point.iter().zip(self.points().row(advice.index));
        Some(pairs.filter(|(a, b)| a != b).count())
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
    let own = |name: &str| ["row", "status", "reason"].contains(&name) || OWN_TAIL.contains(&name);
    match schema.features.iter().find(|feature| own(&feature.name)) {
        None => Ok(()),
        Some(feature) => Err(Error::feature(
            &feature.name,
            "the output file has a column of this name; rename the feature",
        )),
    }
}
