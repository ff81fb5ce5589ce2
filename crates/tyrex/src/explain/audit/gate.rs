//! The gate: decides whether a new model may be deployed, by the earlier advice that it breaks.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use super::group::{Grouping, Partition};
use super::updates::Updates;
use super::verdict::{
    GateReport, GateVerdict, Group, GroupTable, JudgedCandidate, JudgedPromise, PromiseRepairs,
    PromiseStatus, Repair, RepairSearch, Tally,
};
use super::written::{Read, WrittenPromise, ignored};
use super::{AuditedPromise, RepairPart, RepairSummary, Repairs};
use crate::counterfactual::{MethodSpec, Reason, ReferenceUse, Tick};
use crate::data::{Row, Value, listed};
use crate::error::{Error, Result};
use crate::explain::advice::changes;
use crate::explain::{
    Advice, CONFIDENCE, Explainer, FORMAT_VERSION, FeatureChange, Meaning, PromisedProbability,
    Request,
};
use crate::statistics::{Proportion, fisher_exact, holm, mean};

/// A model that may replace the one that gave the promises.
#[derive(Debug, Clone)]
pub struct GateCandidate<'a> {
    /// Its name, unique among the candidates.
    pub name: String,
    /// The model, with its data.
    pub explainer: &'a Explainer,
    /// Whether those data are the promises themselves, because there are no others
    /// ([`Reference::of_promises`](crate::explain::Reference::of_promises)). Repairs are then not
    /// taken from them: they would be another person's row.
    pub has_only_promises: bool,
}

/// The requirements of the gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// How repairs are searched for.
    pub request: Request,
    /// How promises are grouped.
    pub by: Vec<Grouping>,
    /// The share of promises that may be broken.
    pub allow: f64,
    /// The confidence of intervals and of the test of groups.
    pub confidence: f64,
}

impl Gate {
    /// The strict gate: no broken promises, no groups, and the default confidence.
    pub fn new(request: Request) -> Self {
        Self { request, by: Vec::new(), allow: 0.0, confidence: CONFIDENCE }
    }

    /// Whether this number of broken promises is allowed: `broken / promises <= allow`.
    pub fn allows(&self, tally: &Tally) -> bool {
        // Both the quotient and a typed `0.29` are correctly rounded, so 29 of 100 pass.
        tally.share_broken() <= self.allow
    }

    /// Judges candidates by promises, the best candidate first. The result does not depend on the
    /// number of threads.
    ///
    /// `watch` is called for two answers for every promise and candidate, and for every evaluation.
    /// After a `Break` the report still has the kept promises, and the remaining repairs are
    /// answered with [`Reason::Cancelled`](crate::counterfactual::Reason::Cancelled).
    pub fn judge(
        &self,
        candidates: &[GateCandidate<'_>],
        promises: &[WrittenPromise],
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<GateReport> {
        self.judge_part(None, candidates, promises.to_vec(), watch)
    }

    /// The same report with the repairs of one part of the broken promises; [`GateReport::joined`]
    /// makes the whole report of all parts. The report has the promises, so it takes them.
    pub fn judge_part(
        &self,
        part: Option<RepairPart>,
        candidates: &[GateCandidate<'_>],
        promises: Vec<WrittenPromise>,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<GateReport> {
        self.check(candidates)?;
        promises.iter().filter_map(|each| each.promised).try_for_each(|it| it.check())?;
        check_meaning(candidates, &promises)?;
        let schemas = candidates.iter().map(|candidate| candidate.explainer.schema());
        let partitions: Vec<Partition> = self
            .by
            .iter()
            .map(|grouping| Partition::of(grouping, &promises, schemas.clone()))
            .collect::<Result<_>>()?;
        let mut judged: Vec<JudgedCandidate> = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let mut one = self.candidate(candidate, &promises, &partitions, part, &watch)?;
            let same = judged.iter().find(|other| other.is_model_of(&one));
            one.same_as = same.map(|other| other.name.clone());
            judged.push(one);
        }
        let tables = judged.iter_mut().flat_map(|candidate| &mut candidate.groups);
        self.correct(tables.flat_map(|table| &mut table.groups));
        let updates = Updates::of(judged.iter(), self.confidence)?;
        rank(&mut judged);
        Ok(GateReport {
            format_version: FORMAT_VERSION,
            verdict: self.verdict(&judged, promises.len()),
            allow: self.allow,
            confidence: self.confidence,
            request: self.request.clone(),
            candidates: judged,
            updates,
            promises,
            part,
        })
    }

    pub(super) fn check_terms(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.allow) {
            return Err(Error::param("allow", self.allow, "a share between 0 and 1"));
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(Error::param("confidence", self.confidence, "a number between 0 and 1"));
        }
        Ok(())
    }

    fn check(&self, candidates: &[GateCandidate<'_>]) -> Result<()> {
        self.check_terms()?;
        let cannot_search =
            |candidate: &GateCandidate<'_>| candidate.explainer.search_models.is_none();
        if self.request.method.needs_models() && candidates.iter().any(cannot_search) {
            let others = MethodSpec::listed(|method| !method.needs_models());
            return Err(Error::param(
                "method",
                self.request.method.name(),
                format!("{others}, or a candidate with an ensemble of its retrained models"),
            ));
        }
        for (index, grouping) in self.by.iter().enumerate() {
            if self.by[..index].contains(grouping) {
                return Err(Error::param("by", grouping, "each grouping once"));
            }
        }
        let Some((first, others)) = candidates.split_first() else {
            return Err(Error::param("candidates", "nothing", "one model or more"));
        };
        let favourable = |candidate: &GateCandidate<'_>| {
            let label = &candidate.explainer.schema().label;
            let mut words: Vec<String> = label.favourable.iter().map(Value::to_string).collect();
            words.sort_unstable();
            words
        };
        for (index, other) in others.iter().enumerate() {
            if candidates[..=index].iter().any(|earlier| earlier.name == other.name) {
                return Err(Error::param("candidates", &other.name, "names that differ"));
            }
            if favourable(other) != favourable(first) {
                return Err(Error::InvalidModel(format!(
                    "{} calls {} favourable, but {} calls {} so; expected the same of all \
                     candidates",
                    other.name,
                    listed(&favourable(other)),
                    first.name,
                    listed(&favourable(first))
                )));
            }
        }
        Ok(())
    }

    fn candidate(
        &self,
        candidate: &GateCandidate<'_>,
        written: &[WrittenPromise],
        partitions: &[Partition],
        part: Option<RepairPart>,
        watch: &(impl Fn(Tick) -> ControlFlow<()> + Sync),
    ) -> Result<JudgedCandidate> {
        let GateCandidate { name, explainer, .. } = candidate;
        let named = |error: Error| match error {
            Error::InvalidModel(problem) => Error::Model { file: name.into(), problem },
            other => other,
        };
        let schema = explainer.schema();
        let reads: Vec<Result<Read, String>> =
            written.iter().enumerate().map(|(row, each)| each.read(schema, row)).collect();
        let readable: Vec<_> = reads.iter().flatten().map(|read| read.promise.clone()).collect();
        let request = self.search(candidate);
        let own = request.as_ref().unwrap_or(&self.request);
        let mut audited = explainer.judge(&readable, own).map_err(named)?;
        for _ in 0..2 * (written.len() - readable.len()) {
            // The searches handle a `Break`.
            let _ = watch(Tick::Answered);
        }
        if let Some(request) = &request {
            explainer.repair(&mut audited, request, part, watch).map_err(named)?;
        }
        let mut readings = audited.iter();
        let mut promises: Vec<JudgedPromise> = Vec::with_capacity(written.len());
        for (written, read) in written.iter().zip(&reads) {
            let audited = if read.is_ok() { readings.next() } else { None };
            promises.push(judged(explainer, own, written, read, audited)?);
        }
        let statuses: Vec<(PromiseStatus, Option<PromisedProbability>)> = promises
            .iter()
            .zip(written)
            .map(|(judged, written)| (judged.status, written.promised))
            .collect();
        let tally = Tally::of(statuses.iter().copied(), self.confidence)?;
        let groups = partitions.iter().map(|partition| self.groups(partition, &statuses));
        let stabilities: Vec<f64> = audited.iter().map(|each| each.stability).collect();
        let repairs = |from: fn(&Repairs) -> Option<&Advice>| {
            let broken = audited.iter().filter_map(|each| each.repairs.as_ref());
            RepairSummary::of(&broken.filter_map(from).collect::<Vec<_>>())
        };
        Ok(JudgedCandidate {
            rank: 0,
            name: name.clone(),
            fingerprint: explainer.fingerprint().to_string(),
            encoding: explainer.encoding()?.to_string(),
            same_as: None,
            passes: self.allows(&tally),
            tally,
            mean_stability: mean(&stabilities),
            from_promised: repairs(|repairs| Some(&repairs.from_promised)),
            from_factual: repairs(|repairs| repairs.from_factual.as_ref()),
            search: RepairSearch { sentence: self.sentence(explainer, request.as_ref()), request },
            features: schema.features.iter().map(|feature| feature.name.clone()).collect(),
            ignored: ignored(schema, written),
            groups: groups.collect::<Result<_>>()?,
            promises,
        })
    }

    /// How a candidate's repairs are searched for: by the request, or by a method that can search the
    /// candidate; not at all among reference rows if there are none.
    fn search(&self, candidate: &GateCandidate<'_>) -> Option<Request> {
        let mut request = self.request.clone();
        request.method = request.method.for_model(candidate.explainer.model(), request.protocol)?;
        let among_data = request.method.reference() == ReferenceUse::Required;
        let is_possible = !(among_data && candidate.has_only_promises);
        is_possible.then_some(request)
    }

    /// The meaning of "cheapest", or the reason why no repair was searched for.
    fn sentence(&self, explainer: &Explainer, request: Option<&Request>) -> String {
        let Some(Request { method, norm, .. }) = request else {
            return "Repairs were not searched for: the model is a black box, or the method \
                    returns data rows, and no data rows were given."
                .to_owned();
        };
        let test = match method.robustness() {
            Some(test) => format!(
                " with a stability of at least {} ({} neighbours, sigma {})",
                test.tau, test.samples, test.sigma
            ),
            None => String::new(),
        };
        let instead = if method.name() == self.request.method.name() {
            String::new()
        } else {
            let asked = &self.request.method;
            format!(" (instead of {}, which {})", asked.name(), asked.refusal())
        };
        format!(
            "A repair is the cheapest allowed row that {}{instead} found: by {} in encoded \
             columns, accepted by this model{test}.{}",
            method.name(),
            norm.name().to_uppercase(),
            explainer.scale_doubt().map(|doubt| format!(" {doubt}")).unwrap_or_default(),
        )
    }

    fn groups(
        &self,
        partition: &Partition,
        statuses: &[(PromiseStatus, Option<PromisedProbability>)],
    ) -> Result<GroupTable> {
        let mut groups = Vec::with_capacity(partition.names.len());
        for (index, name) in partition.names.iter().enumerate() {
            let of = |inside: bool| {
                let pairs = partition.group_of.iter().zip(statuses);
                pairs.filter(move |(group, _)| (**group == index) == inside).map(|(_, s)| *s)
            };
            let (tally, others) =
                (Tally::of(of(true), self.confidence)?, Tally::of(of(false), self.confidence)?);
            let p_value = against_others(&tally, &others)?;
            groups.push(Group {
                name: name.clone(),
                tally,
                p_value,
                adjusted: None,
                differs: false,
            });
        }
        let (feature, unit) = (partition.feature.clone(), partition.unit.clone());
        Ok(GroupTable { feature, unit, groups })
    }

    /// Corrects the p-values for the number of groups in the whole report.
    pub(super) fn correct<'a>(&self, groups: impl Iterator<Item = &'a mut Group>) {
        let mut tested: Vec<&mut Group> = groups.filter(|group| group.p_value.is_some()).collect();
        let p_values: Vec<f64> = tested.iter().filter_map(|group| group.p_value).collect();
        for (group, adjusted) in tested.iter_mut().zip(holm(&p_values)) {
            group.adjusted = Some(adjusted);
            group.differs = adjusted <= 1.0 - self.confidence;
        }
    }

    pub(super) fn verdict(&self, ranked: &[JudgedCandidate], promises: usize) -> GateVerdict {
        let passing: Vec<String> =
            ranked.iter().filter(|each| each.passes).map(|each| each.name.clone()).collect();
        // There is one; this was checked above.
        let best = ranked.first();
        let sentence = best.map(|best| self.said(best, ranked.len(), &passing, promises));
        GateVerdict {
            passes: !passing.is_empty(),
            best: best.map(|best| best.name.clone()).unwrap_or_default(),
            passing,
            sentence: sentence.unwrap_or_default(),
        }
    }

    fn said(
        &self,
        best: &JudgedCandidate,
        candidates: usize,
        passing: &[String],
        promises: usize,
    ) -> String {
        let name = &best.name;
        if promises == 0 {
            return "There are no open promises, so nothing can be broken.".to_owned();
        }
        let Tally { kept, broken, unreadable, .. } = best.tally;
        let share = percent(best.tally.share_broken());
        let allow = percent(self.allow);
        let unread = match unreadable {
            0 => String::new(),
            some => format!(", {some} of them because it cannot read them"),
        };
        let what = if broken == 0 {
            format!("keeps all {promises} promises")
        } else {
            format!("keeps {kept} of {promises} promises and breaks {broken} ({share}){unread}")
        };
        let bound = if self.allow == 0.0 {
            "none may be broken".to_owned()
        } else {
            // The limit is given as a count, since percentages are rounded.
            let allowed = |broken: &usize| *broken as f64 / promises as f64 <= self.allow;
            let most = (0..=promises).rev().find(allowed).unwrap_or(0);
            format!("{allow} may be broken, at most {most} of {promises}")
        };
        match (candidates, passing.len()) {
            (1, 0) => format!("{name} must not be deployed: it {what}; {bound}."),
            (1, _) => format!("{name} may be deployed: it {what}; {bound}."),
            (all, 0) => format!(
                "None of {all} candidates may be deployed: the best, {name}, {what}; {bound}."
            ),
            (all, some) => format!(
                "{some} of {all} candidates may be deployed: {}. The best, {name}, {what}; \
                 {bound}.",
                passing.join(", ")
            ),
        }
    }
}

/// Rejects candidates whose favourable outcome differs from the promised one: they would keep
/// promises by rejecting people.
fn check_meaning(candidates: &[GateCandidate<'_>], promises: &[WrittenPromise]) -> Result<()> {
    for GateCandidate { name, explainer, .. } in candidates {
        let own = Meaning::of(explainer.schema());
        let other = |promise: &&WrittenPromise| {
            promise.meaning.as_ref().is_some_and(|promised| !promised.is(&own))
        };
        if let Some(promise) = promises.iter().find(other)
            && let Some(promised) = &promise.meaning
        {
            return Err(Error::InvalidModel(format!(
                "{name} calls {own} favourable, but the promise `{}` is {promised}; expected a \
                 candidate whose schema has the promised `[label]`",
                promise.name
            )));
        }
    }
    Ok(())
}

/// The p-value of a group against the other promises; `None` if either is empty.
pub(super) fn against_others(own: &Tally, others: &Tally) -> Result<Option<f64>> {
    if own.promises == 0 || others.promises == 0 {
        return Ok(None);
    }
    let share = |tally: &Tally| Proportion::new(tally.kept, tally.promises);
    Ok(Some(fisher_exact(share(own)?, share(others)?)))
}

/// The better one first: by promises kept, then by mean stability, then by name.
pub(super) fn by_rank(a: &JudgedCandidate, b: &JudgedCandidate) -> Ordering {
    let stability = |each: &JudgedCandidate| each.mean_stability.unwrap_or(f64::NEG_INFINITY);
    let kept = b.tally.kept.cmp(&a.tally.kept);
    kept.then(stability(b).total_cmp(&stability(a))).then(a.name.cmp(&b.name))
}

fn rank(judged: &mut [JudgedCandidate]) {
    judged.sort_by(by_rank);
    for (index, each) in judged.iter_mut().enumerate() {
        each.rank = index + 1;
    }
}

/// A share in per cent, with up to three decimals.
pub(super) fn percent(share: f64) -> String {
    let text = format!("{:.3}", 100.0 * share);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The document of one promise.
fn judged(
    explainer: &Explainer,
    request: &Request,
    written: &WrittenPromise,
    read: &Result<Read, String>,
    audited: Option<&AuditedPromise>,
) -> Result<JudgedPromise> {
    let mut judged = JudgedPromise {
        name: written.name.clone(),
        status: PromiseStatus::Unreadable,
        reason: read.as_ref().map_or_else(|why| Some(why.clone()), |read| read.problem.clone()),
        score: None,
        stability: None,
        factual_score: None,
        sentence: None,
        changes: Vec::new(),
        repairs: None,
    };
    let Some(audited) = audited else { return Ok(judged) };
    judged.score = Some(audited.promised.score);
    judged.stability = Some(audited.stability);
    judged.factual_score = audited.factual.as_ref().map(|factual| factual.score);
    if audited.is_kept() {
        judged.status = PromiseStatus::Kept;
        return Ok(judged);
    }
    judged.status = PromiseStatus::Broken;
    if let Some(factual) = &audited.factual {
        judged.changes = changes(explainer.schema(), &factual.values, &audited.promised.values);
        judged.sentence = Some(FeatureChange::in_words(&judged.changes));
    }
    if let Some(repairs) = &audited.repairs {
        let from_factual = repairs.from_factual.as_ref();
        judged.repairs = Some(PromiseRepairs {
            from_promised: repair(explainer, request, &repairs.from_promised)?,
            from_factual: from_factual.map(|own| repair(explainer, request, own)).transpose()?,
        });
    }
    Ok(judged)
}

fn repair(explainer: &Explainer, request: &Request, advice: &Advice) -> Result<Repair> {
    let names = explainer.schema().features.iter().map(|feature| feature.name.clone());
    let values = |row: &Row| names.zip(row.values().iter().cloned()).collect();
    let (Some(found), Some(row)) = (advice.found(), &advice.advised) else {
        let reason = advice.outcome.reason().unwrap_or(Reason::Stuck);
        return Ok(Repair::NotFound { reason, sentence: reason.to_string() });
    };
    Ok(Repair::Found {
        sentence: advice.sentence(),
        changes: advice.changes.clone(),
        counterfactual: values(row),
        score: found.score,
        stability: advice.stability,
        cost: advice.cost,
        promise: explainer.judged_promise(request, &advice.applicant.point, &found.point)?,
    })
}
