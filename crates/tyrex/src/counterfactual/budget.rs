//! The limit of the work for one factual, and the work done.

use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::field::Field;
use super::path::Path;
use crate::error::{Error, Result};
use crate::measure::Reading;
use crate::points::Points;

/// The limits of the work for one factual; an absent limit means no limit.
///
/// With limits on steps or evaluations the result is the same on every machine; with a limit in
/// seconds it is not.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Steps of the search: evaluations with a gradient.
    pub steps: Option<u64>,
    /// Points scored by the model. A measure scores its whole neighbourhood at every evaluation.
    pub evaluations: Option<u64>,
    /// Seconds.
    pub seconds: Option<f64>,
}

impl Budget {
    /// Checks the limits.
    pub fn check(&self) -> Result<()> {
        match self.seconds {
            Some(seconds) if !(seconds > 0.0 && seconds.is_finite()) => {
                Err(Error::param("budget.seconds", seconds, "a number above 0"))
            }
            _ => Ok(()),
        }
    }
}

/// The work done for one factual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Effort {
    /// Evaluations with a gradient.
    pub steps: u64,
    /// Points scored by the model.
    pub evaluations: u64,
}

/// A report to the callback of a search, which may answer with a `Break`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tick {
    /// The model is about to be evaluated for a factual. This report is frequent.
    Reading,
    /// A factual was answered.
    Answered,
}

/// The work done, within a budget.
struct Account {
    budget: Budget,
    deadline: Option<Instant>,
    effort: Effort,
    spent: bool,
}

impl Account {
    /// An account without work; the clock starts now.
    fn open(budget: Budget) -> Self {
        let deadline = budget
            .seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .and_then(|limit| Instant::now().checked_add(limit));
        Self { budget, deadline, effort: Effort::default(), spent: false }
    }

    /// The effort after more work; `None` if the budget does not allow it.
    fn after(&mut self, steps: u64, evaluations: u64) -> Option<Effort> {
        let next = Effort {
            steps: self.effort.steps + steps,
            evaluations: self.effort.evaluations + evaluations,
        };
        let over = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used > limit);
        let is_over = over(self.budget.steps, next.steps)
            || over(self.budget.evaluations, next.evaluations)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.spent |= is_over;
        (!is_over).then_some(next)
    }
}

/// The callback of a search, which may cancel it.
#[derive(Default)]
struct Watch<'a> {
    report: Option<&'a dyn Fn(Tick) -> ControlFlow<()>>,
    cancelled: bool,
}

impl Watch<'_> {
    /// Reports an evaluation; false if the search is to end.
    fn continues(&mut self) -> bool {
        let is_break = self.report.is_some_and(|report| report(Tick::Reading).is_break());
        self.cancelled |= is_break;
        !is_break
    }
}

/// The state of one search beside its points: its account of the work, its callback, and its path.
pub struct Meter<'a> {
    account: Account,
    watch: Watch<'a>,
    /// The path of the search.
    pub(crate) path: Path,
}

impl fmt::Debug for Meter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Account { budget, effort, .. } = &self.account;
        f.debug_struct("Meter").field("budget", budget).field("effort", effort).finish()
    }
}

impl<'a> Meter<'a> {
    /// A meter at zero; the clock starts now.
    pub(crate) fn new(budget: Budget) -> Self {
        let account = Account::open(budget);
        Self { account, watch: Watch::default(), path: Path::default() }
    }

    /// A meter that calls `report` before every evaluation.
    pub(crate) fn watched(
        budget: Budget,
        path: Path,
        report: &'a dyn Fn(Tick) -> ControlFlow<()>,
    ) -> Self {
        let watch = Watch { report: Some(report), cancelled: false };
        Self { watch, path, ..Self::new(budget) }
    }

    /// Whether the search was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.watch.cancelled
    }

    /// The work done so far.
    pub fn effort(&self) -> Effort {
        self.account.effort
    }

    /// Whether work was refused, because the budget was spent or the search was cancelled.
    pub(crate) fn is_spent(&self) -> bool {
        self.account.spent || self.watch.cancelled
    }

    /// Takes work from the budget, if enough is left.
    pub(crate) fn take(&mut self, steps: u64, evaluations: u64) -> bool {
        let next = self.account.after(steps, evaluations).filter(|_| self.watch.continues());
        if let Some(effort) = next {
            self.account.effort = effort;
        }
        next.is_some()
    }

    /// Evaluates a field; `None` if the budget is spent.
    pub(crate) fn read(&mut self, field: &mut dyn Field, x: &[f32]) -> Option<Reading> {
        self.take(0, field.evaluations()).then(|| field.read(x))
    }

    /// Evaluates a field at points, in their order, until the budget is spent.
    pub(crate) fn read_all(&mut self, field: &mut dyn Field, points: &Points) -> Vec<Reading> {
        let affordable = |_: &usize| self.take(0, field.evaluations());
        let paid: Vec<usize> = (0..points.len()).take_while(affordable).collect();
        field.read_all(&points.select(&paid))
    }

    /// Evaluates a field with its gradient; `None` if the budget is spent.
    pub(crate) fn climb(
        &mut self,
        field: &mut dyn Field,
        x: &[f32],
        gradient: &mut [f32],
    ) -> Result<Option<Reading>> {
        if !self.take(1, field.evaluations()) {
            return Ok(None);
        }
        field.read_with_gradient(x, gradient).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_never_exceeded() {
        let budget = Budget { steps: Some(2), evaluations: Some(10), seconds: None };
        let mut meter = Meter::new(budget);
        assert!(meter.take(1, 6));
        assert!(!meter.take(1, 5));
        assert!(meter.is_spent());
        assert!(meter.take(1, 4));
        assert!(!meter.take(1, 0));
        assert_eq!(meter.effort(), Effort { steps: 2, evaluations: 10 });
        let mut late = Meter::new(Budget { seconds: Some(1e-9), ..Budget::default() });
        std::thread::sleep(Duration::from_millis(1));
        assert!(!late.take(0, 1));
    }

    #[test]
    fn seconds_must_be_a_positive_number() {
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Budget { seconds: Some(seconds), ..Budget::default() }.check().is_err());
        }
        assert!(Budget { seconds: Some(0.5), ..Budget::default() }.check().is_ok());
    }
}
