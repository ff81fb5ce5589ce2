//! The promises of a question, all at once: the share that the next model keeps, for all of them,
//! by group, and weighted by an amount.

use serde::{Deserialize, Serialize};

use super::audit::Partition;
use super::{Advice, AdviceRows, Explainer, Fresh, Grouping, Promise};
use crate::certificate::{Portfolio, PortfolioGroup, PortfolioStatement, Retrained, Verdict};
use crate::data::value::parse_number;
use crate::data::{Cell, Schema, Table};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::points::Points;
use crate::statistics::Proportion;

/// How promises are grouped and weighted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PortfolioTerms {
    /// The groups, by columns of the applicants' table.
    pub by: Vec<Grouping>,
    /// The column with the amount of each applicant, such as the credit that is asked for.
    pub amount: Option<String>,
}

/// The promises of a question: rows of applicants, and the points they were advised to become.
///
/// Points that `judge` has scored are not kept: with the 61 models of the default
/// promise a promise then takes 16 bytes.
#[derive(Debug, Clone)]
pub struct PromisedPoints {
    rows: Vec<usize>,
    /// The points that are not judged yet, those of the last rows.
    points: Points,
    judged: Option<Portfolio>,
}

/// The promises of a question, and the fresh models that keep them.
#[derive(Debug, Clone)]
pub struct QuestionPortfolio {
    rows: Vec<usize>,
    portfolio: Portfolio,
    confidence: f64,
    /// The promises that are shown.
    shown: usize,
}

/// The statements about all promises of a question, as a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PortfolioDocument {
    /// `certified`, or `empirical` if an assumption does not hold.
    pub verdict: Verdict,
    /// The number of promises for which the fresh models show the probability that was asked for;
    /// 0 if an assumption does not hold.
    pub shown: usize,
    /// The statement about all promises as a sentence.
    pub sentence: String,
    /// The assumptions, each with its standing.
    pub rests_on: Vec<String>,
    /// The statements: about all promises, then about each group; each first counted, then weighted
    /// by the amount, if there is one. Each holds with its own probability, not all at once.
    pub statements: Vec<PortfolioStatement>,
}

impl PortfolioTerms {
    /// Checks the columns, and the amounts of these rows, before the work.
    pub fn check(&self, table: &Table, rows: impl IntoIterator<Item = usize>) -> Result<()> {
        if !self.needs_table() {
            return Ok(());
        }
        for (index, grouping) in self.by.iter().enumerate() {
            known_column(table, "by", grouping.feature())?;
            if self.by[..index].contains(grouping) {
                return Err(Error::param("by", grouping, "each grouping once"));
            }
        }
        self.amount.as_deref().map(|amount| known_column(table, "amount", amount)).transpose()?;
        for row in rows {
            if !table.row_numbers().contains(&row) {
                let problem = format!("it has no row {row}, expected the rows of all applicants");
                return Err(Error::Table { file: table.source().to_owned(), problem });
            }
            self.amount.as_deref().map(|amount| amount_of(table, amount, row)).transpose()?;
        }
        Ok(())
    }

    /// Whether the applicants' table is needed.
    pub fn needs_table(&self) -> bool {
        !self.by.is_empty() || self.amount.is_some()
    }
}

/// Checks that the table has the column of a parameter.
fn known_column(table: &Table, parameter: &'static str, name: &str) -> Result<()> {
    match table.column(name) {
        Ok(_) => Ok(()),
        Err(Error::Table { problem, .. }) => {
            Err(Error::param(parameter, name, format!("a column of the applicants: {problem}")))
        }
        Err(other) => Err(other),
    }
}

/// The amount of a row.
fn amount_of(table: &Table, name: &str, row: usize) -> Result<f64> {
    let column = table.column(name)?;
    let amount = parse_number(table.cell(row, column)).filter(|amount| *amount >= 0.0);
    amount.ok_or_else(|| table.cell_error(row, column, "an amount, at least 0".to_owned()))
}

impl PromisedPoints {
    /// No promises yet, of points with this many coordinates.
    pub fn new(dim: usize) -> Self {
        Self { rows: Vec::new(), points: Points::new(dim), judged: None }
    }

    /// The promises in a table of advice, as [`AdviceFile::table`](super::AdviceFile::table) writes it.
    pub fn of_table(explainer: &Explainer, table: &Table) -> Result<Self> {
        let AdviceRows { data, factuals, .. } = AdviceRows::read(explainer.schema(), table)?;
        let points = explainer.encoder().encode_rows(data.rows())?;
        Ok(Self { rows: factuals, points, judged: None })
    }

    /// Adds the advice that was found. Applicants without advice have no promise.
    pub fn add(&mut self, advice: &[Advice]) {
        for (each, found) in advice.iter().filter_map(|each| Some((each, each.found()?))) {
            self.rows.push(each.applicant.row);
            self.points.push(&found.point);
        }
    }

    /// Whether there are no promises.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Scores the points that were added since the last call. Every call needs the same models.
    pub(super) fn judge(&mut self, fresh: &Fresh) -> Result<()> {
        let Fresh { ensemble, steered, search, likeness, .. } = fresh;
        let models: Vec<&dyn Model> = ensemble.members().iter().map(|member| &**member).collect();
        let judged = self.judged.get_or_insert_with(|| {
            Portfolio::new(&Retrained {
                models: &models,
                family: &ensemble.origin().description(),
                steered: *steered,
                search: *search,
                likeness: Some(likeness),
            })
        });
        judged.add(&self.points, &models)?;
        self.points = Points::new(self.points.dim());
        Ok(())
    }

    /// The promises, judged by fresh models. `None` if there are no promises, no models, or if the
    /// search used the models.
    pub fn judged(mut self, fresh: &Fresh, promise: Promise) -> Result<Option<QuestionPortfolio>> {
        if fresh.steered || fresh.ensemble.members().is_empty() || self.is_empty() {
            return Ok(None);
        }
        self.judge(fresh)?;
        let Some(portfolio) = self.judged else { return Ok(None) };
        let mut shown = 0;
        if portfolio.verdict() == Verdict::Certified {
            for keeping in portfolio.keeping() {
                shown += usize::from(promise.is_kept(keeping, portfolio.models())?);
            }
        }
        let confidence = promise.confidence();
        Ok(Some(QuestionPortfolio { rows: self.rows, portfolio, confidence, shown }))
    }
}

impl QuestionPortfolio {
    /// For each promise the number of fresh models, of those that keep it, and the probability that
    /// they show; empty if an assumption does not hold.
    pub(super) fn cells(&self) -> impl Iterator<Item = Result<[Cell<'static>; 3]>> {
        let models = self.portfolio.models();
        let is_certified = self.portfolio.verdict() == Verdict::Certified;
        self.portfolio.keeping().map(move |keeping| {
            let bound = Proportion::new(keeping, models)?.lower(1.0 - self.confidence)?;
            let shown = if is_certified { Cell::Real(bound) } else { Cell::Empty };
            Ok([Cell::Integer(models as i64), Cell::Integer(keeping as i64), shown])
        })
    }

    /// The statements. `table` holds the columns of the terms at the rows of the applicants.
    pub fn document(
        &self,
        terms: &PortfolioTerms,
        table: &Table,
        schema: &Schema,
    ) -> Result<PortfolioDocument> {
        terms.check(table, self.rows.iter().copied())?;
        let amounts = terms.amount.as_ref().map(|name| {
            let amounts = self.rows.iter().map(|&row| amount_of(table, name, row));
            Ok((name, amounts.collect::<Result<Vec<f64>>>()?))
        });
        let amounts = amounts.transpose()?;
        let mut statements = Vec::new();
        let mut add = |group: Option<PortfolioGroup>, inside: &dyn Fn(usize) -> bool| {
            let indices = 0..self.rows.len();
            let promises = indices.clone().filter(|&index| inside(index)).count();
            let weights = |amount: &dyn Fn(usize) -> f64| -> Vec<f64> {
                indices.clone().map(|i| if inside(i) { amount(i) } else { 0.0 }).collect()
            };
            let mut state = |amount: Option<&String>, weights: &[f64]| {
                let group = group.clone();
                let amount = amount.cloned();
                statements.extend(self.portfolio.statement(
                    group,
                    amount,
                    promises,
                    weights,
                    self.confidence,
                ));
            };
            state(None, &weights(&|_| 1.0));
            if let Some((name, amounts)) = &amounts {
                state(Some(name), &weights(&|index| amounts[index]));
            }
        };
        add(None, &|_| true);
        for grouping in &terms.by {
            let column = table.column(grouping.feature())?;
            let known = |&row: &usize| {
                Some(table.cell(row, column).to_owned()).filter(|text| !text.is_empty())
            };
            let texts: Vec<Option<String>> = self.rows.iter().map(known).collect();
            let feature = schema.position(grouping.feature()).map(|place| &schema.features[place]);
            let partition = Partition::of_texts(grouping, &texts, feature)?;
            for (number, name) in partition.names.iter().enumerate() {
                let group =
                    PortfolioGroup { column: partition.feature.clone(), name: name.clone() };
                add(Some(group), &|index| partition.group_of[index] == number);
            }
        }
        let verdict = self.portfolio.verdict();
        let whole = statements.first().map(|all| all.sentence.clone()).unwrap_or_default();
        let sentence = match verdict {
            Verdict::Certified => whole,
            _ => format!("{whole} But an assumption of this does not hold."),
        };
        let rests_on = self.portfolio.assumptions().iter().map(ToString::to_string).collect();
        Ok(PortfolioDocument { verdict, shown: self.shown, sentence, rests_on, statements })
    }
}
