//! Repairs of broken promises.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{AuditedPromise, RepairPart, Repairs};
use crate::action::Actions;
use crate::counterfactual::{Answer, Counterfactual, Norm, Outcome, Reason, Tick};
use crate::error::Result;
use crate::explain::{Advice, Adviser, Applicant, Explainer, Request};

impl Explainer {
    /// Searches for the repairs of the broken promises, or of those of a part.
    pub(super) fn repair(
        &self,
        audited: &mut [AuditedPromise],
        request: &Request,
        part: Option<RepairPart>,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<()> {
        let stopped = AtomicBool::new(false);
        let watch = |tick| {
            if stopped.load(Ordering::Relaxed) || watch(tick).is_break() {
                stopped.store(true, Ordering::Relaxed);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let mut number = 0;
        let mut is_searched = |each: &AuditedPromise| {
            number += usize::from(!each.is_kept());
            !each.is_kept() && part.is_none_or(|part| part.has(number - 1))
        };
        let searched: Vec<bool> = audited.iter().map(&mut is_searched).collect();
        let broken = || audited.iter().zip(&searched).filter(|own| *own.1).map(|own| own.0);
        let mut starts: Vec<Applicant> = broken().map(|each| each.promised.clone()).collect();
        starts.extend(broken().filter_map(|each| each.factual.clone()));
        for _ in starts.len()..2 * audited.len() {
            // The searches handle a `Break`.
            let _ = watch(Tick::Answered);
        }
        if starts.is_empty() {
            return Ok(());
        }
        let actions = self.actions(request)?;
        let mut from_promised = Adviser::new(self, request.clone())?.advise(&starts, watch)?;
        let mut from_factual = from_promised.split_off(broken().count()).into_iter();
        let broken = audited.iter_mut().zip(&searched).filter(|own| *own.1);
        for ((each, _), from_promised) in broken.zip(from_promised) {
            let from_factual = each.factual.as_ref().and_then(|_| from_factual.next());
            let repairs = Repairs { from_promised, from_factual };
            each.repairs = Some(self.shared(repairs, &actions, request.norm)?);
        }
        Ok(())
    }

    /// The repairs, each also tried from the other start, since a search may miss the result of the
    /// other one.
    fn shared(&self, repairs: Repairs, actions: &Actions, norm: Norm) -> Result<Repairs> {
        let Repairs { from_promised, from_factual: Some(from_factual) } = &repairs else {
            return Ok(repairs);
        };
        let cancelled = |repair: &Advice| repair.outcome.reason() == Some(Reason::Cancelled);
        if cancelled(from_promised) || cancelled(from_factual) {
            return Ok(repairs);
        }
        let promised = self.cheaper(from_promised, from_factual, actions, norm)?;
        let factual = self.cheaper(from_factual, from_promised, actions, norm)?;
        Ok(Repairs {
            from_promised: promised.unwrap_or_else(|| from_promised.clone()),
            from_factual: Some(factual.unwrap_or_else(|| from_factual.clone())),
        })
    }

    /// The row of another repair from the start of this one, if the rules allow it and it costs
    /// less. It has passed the model's test, which does not depend on the start.
    fn cheaper(
        &self,
        own: &Advice,
        other: &Advice,
        actions: &Actions,
        norm: Norm,
    ) -> Result<Option<Advice>> {
        let (Answer::Found { counterfactual, stopped }, Some(row)) =
            (&other.outcome.answer, &other.advised)
        else {
            return Ok(None);
        };
        let set = actions.for_factual(&own.applicant.values)?;
        let cost = norm.priced(&counterfactual.point, &own.applicant.point, set.prices());
        let is_settled = match &own.outcome.answer {
            Answer::Found { counterfactual, .. } => counterfactual.cost <= cost,
            Answer::NotFound { reason, .. } => *reason == Reason::AlreadyFavourable,
        };
        if is_settled || !set.violations(row).is_empty() {
            return Ok(None);
        }
        let counterfactual = Counterfactual { cost, ..counterfactual.clone() };
        let answer = Answer::Found { counterfactual, stopped: *stopped };
        let outcome = Outcome { answer, ..own.outcome.clone() };
        Ok(Some(self.advice(&own.applicant, outcome, other.stability)))
    }
}
