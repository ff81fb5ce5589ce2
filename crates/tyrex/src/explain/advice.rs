//! Advice: for each rejected row, what to change so that the model accepts it.

use serde::{Deserialize, Serialize};

use super::adviser::answers_are_rows;
use super::ask::no_test;
use super::table::check_names;
use super::{
    Applicant, ChangeWords, Explainer, FORMAT_VERSION, Fresh, Meaning, Promise, PromisedPoints,
    QuestionPortfolio, SearchedModels,
};
use crate::action::Overrides;
use crate::counterfactual::{Budget, Counterfactual, MethodSpec, Norm, Outcome, Protocol, Reason};
use crate::data::{Cell, Column, Content, Feature, FeatureKind, Row, Schema, Table, Value};
use crate::error::{Error, Result};
use crate::plausibility::Place;
use crate::seed::Seed;

/// The parameters of a search for advice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SearchRequest))]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The method and its parameters.
    pub method: MethodSpec,
    /// The protocol: whether answers are rows that satisfy the rules, or any points.
    pub protocol: Protocol,
    /// The cost of a change.
    pub norm: Norm,
    /// The limit of the work for one row.
    pub budget: Budget,
    /// Changes to the rules of the schema.
    pub overrides: Overrides,
    /// The seed of the search.
    pub seed: Seed,
    /// The promise that the answers have to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Promise>,
    /// The least p-value of the answers among accepted applicants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plausible: Option<f64>,
    /// Whether answers have a path in steps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub path: bool,
    /// Whether `R^` is computed for the answers of methods that do not test it.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub stability: bool,
}

fn yes() -> bool {
    true
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
            promise: None,
            plausible: None,
            path: false,
            stability: true,
        })
    }
}

impl Request {
    /// Sets the parameters of the method's stability test that are given: the threshold, the number
    /// of neighbours and their standard deviation.
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
        let Some(test) = self.method.robustness_mut() else { return Err(no_test(name)) };
        test.tau = tau.unwrap_or(test.tau);
        test.samples = samples.unwrap_or(test.samples);
        test.sigma = sigma.unwrap_or(test.sigma);
        test.check()
    }
}

/// The answer for one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The current row.
    pub applicant: Applicant,
    /// The answer of the method.
    pub outcome: Outcome,
    /// The advised row. `None` if nothing was found, or if answers are points and not rows.
    pub advised: Option<Row>,
    /// The changes, in the order of the schema.
    pub changes: Vec<FeatureChange>,
    /// The relaxed stability `R^` of the answer, on draws that the search did not use.
    pub stability: Option<f64>,
    /// The distances from the factual.
    pub cost: Option<Costs>,
}

/// The cost of the change in encoded space, by each norm: the distance at the schema's prices.
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
    /// The change in words. Documents of earlier versions do not have it.
    #[serde(default)]
    pub words: ChangeWords,
}

impl Advice {
    /// The counterfactual, if one was found.
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

/// A file of advice: its columns and its lines.
#[derive(Debug, Clone, Copy)]
pub struct AdviceFile<'a> {
    explainer: &'a Explainer,
    request: &'a Request,
}

impl<'a> AdviceFile<'a> {
    /// The file of answers to a request.
    pub fn new(explainer: &'a Explainer, request: &'a Request) -> Self {
        Self { explainer, request }
    }

    /// Advice as a table to write: `row`, `status`, `reason`, the counterfactual's features under
    /// their own names, `score`, `stability`, `usual`, `cost_l1`, `cost_l2`, `changed`, `seconds`, then the
    /// provenance of the answers: `method`, `parameters`, `model`, `seed`, `format_version`. Cells
    /// of rows without a counterfactual are empty. `reason` is the reason for that; for a row with
    /// a counterfactual it is empty, or `budget-spent` if a longer search may find a cheaper one.
    ///
    /// If answers are points and not rows, the encoded columns replace the features. If the request
    /// has a promise, `promise_models`, `promise_accepting` and `promise_shown` follow `changed`:
    /// the number of fresh models, of those that accept, and the probability that they show, which
    /// is empty if an assumption does not hold.
    pub fn table(self, advice: &[Advice], fresh: Option<&Fresh>) -> Result<Table> {
        let columns = self.columns()?;
        let mut columns: Vec<Column> =
            columns.into_iter().map(|(name, _)| Column::new(name)).collect();
        for line in self.lines(advice, fresh)? {
            columns.iter_mut().zip(line).for_each(|(column, cell)| column.push_display(cell));
        }
        Table::new("counterfactuals", columns)
    }

    /// The lines of [`table`](Self::table), with typed cells.
    pub fn lines(
        self,
        advice: &[Advice],
        fresh: Option<&Fresh>,
    ) -> Result<Vec<Vec<Cell<'static>>>> {
        let Self { explainer, request } = self;
        let mut promised = PromisedPoints::new(explainer.encoder().dim());
        promised.add(advice);
        let judged = match request.promise.zip(fresh) {
            Some((promise, fresh)) => promised.judged(fresh, promise)?,
            None => None,
        };
        let mut shown = judged.iter().flat_map(QuestionPortfolio::cells);
        let own = OWN_TAIL.len() + if request.promise.is_some() { PROMISE.len() } else { 0 };
        let all = self.columns()?.len();
        let width = all - HEAD.len() - own;
        let parameters = explainer.parameters(request)?;
        let model = explainer.fingerprint().to_string();
        let schema = explainer.schema();
        let line = |each: &Advice| -> Result<Vec<Cell<'static>>> {
            let mut cells = Vec::with_capacity(all);
            let (status, reason) = match each.outcome.reason() {
                Some(reason) => ("not_found", reason.name()),
                None if each.outcome.is_cut_short() => ("found", Reason::BudgetSpent.name()),
                None => ("found", ""),
            };
            cells.push(Cell::Integer(each.applicant.row as i64));
            cells.extend([Cell::text(status), Cell::text(reason)]);
            match (&each.advised, each.found()) {
                (Some(row), _) => cells.extend(schema.typed_cells_of_row(row)),
                (None, Some(found)) => {
                    cells.extend(found.point.iter().map(|&x| Cell::single(x)));
                }
                (None, None) => cells.extend(vec![Cell::Empty; width]),
            }
            let usual = each.found().and_then(|found| explainer.usual(request, &found.point));
            let usual = usual.map(Place::p_value);
            cells.extend([
                each.found().map_or(Cell::Empty, |found| Cell::single(found.score)),
                Cell::real(each.stability),
                Cell::real(usual),
                Cell::real(each.cost.map(|cost| cost.l1)),
                Cell::real(each.cost.map(|cost| cost.l2)),
                each.changed_count().map_or(Cell::Empty, |count| Cell::Integer(count as i64)),
            ]);
            if request.promise.is_some() {
                let own = each.found().and_then(|_| shown.next()).transpose()?;
                cells.extend(own.unwrap_or([Cell::Empty, Cell::Empty, Cell::Empty]));
            }
            cells.extend([
                Cell::Real(each.outcome.seconds),
                Cell::text(request.method.name()),
                Cell::text(parameters.clone()),
                Cell::text(model.clone()),
                // It may be too large for a signed number.
                Cell::text(request.seed.0.to_string()),
                Cell::Integer(i64::from(FORMAT_VERSION)),
            ]);
            Ok(cells)
        };
        advice.iter().map(line).collect()
    }

    /// The columns of [`table`](Self::table), and the types of their cells.
    pub fn columns(self) -> Result<Vec<(String, Content)>> {
        let Self { explainer, request } = self;
        let schema = explainer.schema();
        let answers: Vec<(String, Content)> = if answers_are_rows(request) {
            check_advice_names(schema)?;
            let column = |feature: &Feature| (feature.name.clone(), content(schema, feature));
            schema.features.iter().map(column).collect()
        } else {
            explainer.encoder().columns().into_iter().map(|name| (name, Content::Real)).collect()
        };
        let own = |(name, content): (&str, Content)| (name.to_owned(), content);
        let mut tail: Vec<(String, Content)> =
            OWN_TAIL.iter().copied().zip(TAIL_CONTENT).map(own).collect();
        if request.promise.is_some() {
            tail.splice(AFTER_CHANGED..AFTER_CHANGED, PROMISE.into_iter().map(own));
        }
        Ok(HEAD.into_iter().map(own).chain(answers).chain(tail).collect())
    }
}

impl Explainer {
    /// The cell `parameters` of a file of advice: the request, the promised outcome, and the retrained
    /// models that took part in the search.
    pub(super) fn parameters(&self, request: &Request) -> Result<String> {
        let meaning = Meaning::of(self.schema());
        serde_json::to_string(&Parameters { request, meaning, searched: self.searched() })
            .map_err(|error| Error::param("parameters", error, "numbers that JSON can hold"))
    }
}

#[derive(Serialize)]
struct Parameters<'a> {
    #[serde(flatten)]
    request: &'a Request,
    meaning: Meaning,
    searched: SearchedModels,
}

/// The type of a feature's cells.
fn content(schema: &Schema, feature: &Feature) -> Content {
    let keeps_missing = schema.missing_policy(feature).keeps_missing();
    let has_words = feature.kind.levels().iter().any(|level| !matches!(level, Value::Number(_)));
    if has_words || (keeps_missing && !schema.cell_of_value(feature, &Value::Missing).is_empty()) {
        return Content::Text;
    }
    let special = feature.special.as_ref().or(schema.special.as_ref());
    let special = special.into_iter().flat_map(|special| special.values.iter().copied());
    let levels = feature.kind.levels().iter().filter_map(|level| match level {
        Value::Number(number) => Some(*number),
        _ => None,
    });
    let is_whole = |number: f64| number.fract() == 0.0;
    if feature.kind != FeatureKind::Numeric && levels.chain(special).all(is_whole) {
        return Content::Integer;
    }
    Content::Real
}

/// The features that differ, in the order of the schema.
pub(super) fn changes(schema: &Schema, before: &Row, after: &Row) -> Vec<FeatureChange> {
    let pairs = before.values().iter().zip(after.values()).zip(&schema.features);
    pairs
        .filter(|((from, to), _)| from != to)
        .map(|((from, to), feature)| FeatureChange::new(feature, from, to))
        .collect()
}

/// The first columns of a file of advice.
const HEAD: [(&str, Content); 3] =
    [("row", Content::Integer), ("status", Content::Text), ("reason", Content::Text)];
/// The last columns of a file of advice.
const OWN_TAIL: [&str; 12] = [
    "score",
    "stability",
    "usual",
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

const TAIL_CONTENT: [Content; 12] = {
    use Content::{Integer, Real, Text};
    [Real, Real, Real, Real, Real, Integer, Real, Text, Text, Text, Real, Integer]
};

/// The columns of a promise, and their place in the last columns.
const PROMISE: [(&str, Content); 3] = [
    ("promise_models", Content::Integer),
    ("promise_accepting", Content::Integer),
    ("promise_shown", Content::Real),
];
const AFTER_CHANGED: usize = 6;

/// Checks that no feature has the name of one of [`AdviceFile::table`]'s own columns. Call
/// this before long work whose result is written at the end.
pub fn check_advice_names(schema: &Schema) -> Result<()> {
    check_names(schema, own_advice_columns())
}

/// The names of all columns of files of advice that are not features.
pub(super) fn own_advice_columns() -> impl Iterator<Item = &'static str> {
    HEAD.iter().chain(&PROMISE).map(|(name, _)| *name).chain(OWN_TAIL)
}
