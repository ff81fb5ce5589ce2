//! Relaxations: the single rules that prevent a counterfactual.
//!
//! Each constraint is removed alone and the search is repeated. Pairs are not tried: there are too
//! many, and a person can decide about a single rule.

use std::fmt;
use std::ops::ControlFlow;

use serde::Serialize;

use super::{Budget, Counterfactual, Factual, Method, Problem, Reason, Tick, find_all};
use crate::action::{Actions, Constraint, FeasibleSet, Violation};
use crate::data::Row;
use crate::error::{Error, Result};

/// A constraint whose removal leads to a counterfactual.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Relaxation {
    /// The removed constraint.
    pub constraint: Constraint,
    /// The counterfactual without it.
    pub counterfactual: Counterfactual,
    /// The violations of that row: the value it needs, and the allowed values. Empty if it
    /// satisfies every rule and the search had only missed it.
    pub breaks: Vec<Violation>,
}

impl fmt::Display for Relaxation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { constraint, counterfactual, breaks } = self;
        let cost = counterfactual.cost;
        match breaks.first() {
            Some(Violation { found, allowed, .. }) => {
                write!(f, "{constraint}: with {found} among the changes the search finds advice ")?;
                write!(f, "(cost {cost:.3}); allowed is {allowed}")
            }
            None => {
                write!(f, "a second search found a row that satisfies every rule (cost {cost:.3})")
            }
        }
    }
}

/// The results of removing one constraint at a time, for one factual.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Relaxations {
    /// The constraints whose removal leads to a counterfactual, the cheapest first.
    pub helpful: Vec<Relaxation>,
    /// The number of binding constraints that were removed, one at a time.
    pub tried: usize,
    /// The number of binding constraints that were not tried.
    pub untried: usize,
}

impl fmt::Display for Relaxations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { helpful, tried, untried } = self;
        if let Some(best) = helpful.first() {
            return write!(f, "{best}");
        }
        let rest = match untried {
            0 => "two at a time were not tried".to_owned(),
            more => format!("{more} more, and two at a time, were not tried"),
        };
        match tried {
            0 if *untried == 0 => f.write_str("no rule binds it"),
            1 => write!(f, "removing the one rule that was tried does not help; {rest}"),
            _ => write!(f, "removing any one of {tried} rules does not help; {rest}"),
        }
    }
}

/// Removes the factual's constraints one at a time, at most `tries` of them, and returns those that
/// prevent a counterfactual. The result does not depend on the number of threads.
///
/// A constraint whose removal does not change the feasible set is not binding and is skipped; so is
/// a feature that cannot change because it is missing or special.
///
/// `watch` is called for every answer and every evaluation; a `Break` is an error.
pub fn relaxations(
    problem: &Problem,
    method: &dyn Method,
    actions: &Actions,
    factual: &Row,
    budget: Budget,
    tries: usize,
    watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
) -> Result<Relaxations> {
    let bound = actions.for_factual(factual)?;
    let point = actions.encoder().encode(factual)?.into_vec();
    let mut freed: Vec<(Constraint, FeasibleSet)> = Vec::new();
    let mut untried = 0;
    for constraint in actions.constraints() {
        let set = actions.without(&constraint)?.for_factual(factual)?;
        if set.holds_the_same_as(&bound) {
            continue;
        }
        if freed.len() < tries {
            freed.push((constraint, set));
        } else {
            untried += 1;
        }
    }
    let factuals: Vec<Factual> = freed.iter().map(|(_, set)| Factual::new(&point, set)).collect();
    let outcomes = find_all(problem, method, &factuals, budget, watch)?;
    if outcomes.iter().any(|outcome| outcome.reason() == Some(Reason::Cancelled)) {
        return Err(Error::Cancelled("not all rules were tried".to_owned()));
    }
    let tried = freed.len();
    let mut helpful: Vec<Relaxation> = freed
        .into_iter()
        .zip(outcomes)
        .filter_map(|((constraint, _), outcome)| {
            let counterfactual = outcome.found()?.clone();
            let breaks = counterfactual.row.as_ref().map(|row| bound.violations(row));
            let breaks = breaks.unwrap_or_default();
            Some(Relaxation { constraint, counterfactual, breaks })
        })
        .collect();
    helpful.sort_by(|a, b| a.counterfactual.cost.total_cmp(&b.counterfactual.cost));
    Ok(Relaxations { helpful, tried, untried })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relaxation(breaks: Vec<Violation>) -> Relaxation {
        let counterfactual = Counterfactual {
            point: vec![1.0],
            score: 0.7,
            value: 0.7,
            cost: 0.25,
            least_cost: None,
            row: None,
        };
        let constraint = Constraint::Feature("age".to_owned());
        Relaxation { constraint, counterfactual, breaks }
    }

    #[test]
    fn what_would_help_is_said_in_one_sentence() {
        let needs = Violation {
            constraint: Constraint::Feature("age".to_owned()),
            found: "`43`".to_owned(),
            allowed: "`40`, as it is".to_owned(),
        };
        let all = |helpful, tried, untried| Relaxations { helpful, tried, untried }.to_string();
        let cases = [
            (
                all(vec![relaxation(vec![needs]), relaxation(vec![])], 2, 0),
                "feature `age`: with `43` among the changes the search finds advice (cost 0.250); \
                 allowed is `40`, as it is",
            ),
            (
                all(vec![relaxation(vec![])], 1, 0),
                "a second search found a row that satisfies every rule (cost 0.250)",
            ),
            (all(vec![], 0, 0), "no rule binds it"),
            (
                all(vec![], 1, 0),
                "removing the one rule that was tried does not help; two at a time were not \
                 tried",
            ),
            (
                all(vec![], 5, 2),
                "removing any one of 5 rules does not help; 2 more, and two at a time, were \
                 not tried",
            ),
        ];
        for (said, expected) in cases {
            assert_eq!(said, expected);
        }
    }
}
