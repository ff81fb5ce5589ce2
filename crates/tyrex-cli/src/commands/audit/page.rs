//! The report of `audit`.

use serde::Serialize;
use tyrex::certificate::at_least;
use tyrex::counterfactual::Reason;
use tyrex::explain::{
    GateVerdict, Group, JudgedCandidate, JudgedPromise, PromiseStatus, Repair, RepairPart, Request,
    Updates, WrittenPromise,
};

use crate::commands::summary::counted;
use crate::printer::{Page, Report, Stand};

/// Broken promises to show.
const SHOWN: usize = 5;

/// The report of `audit`.
#[derive(Debug, Serialize)]
pub(super) struct AuditReport<'a> {
    pub(super) source: String,
    pub(super) verdict: &'a GateVerdict,
    pub(super) allow: f64,
    pub(super) confidence: f64,
    pub(super) request: &'a Request,
    pub(super) candidates: &'a [JudgedCandidate],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) updates: Option<&'a Updates>,
    pub(super) promises: &'a [WrittenPromise],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<RepairPart>,
    pub(super) out: Vec<String>,
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn interval((low, high): (f64, f64)) -> String {
    format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high)
}

impl AuditReport<'_> {
    fn ranking(&self, page: &mut Page) {
        page.title("Candidates, the best first");
        let rows: Vec<Vec<String>> = self
            .candidates
            .iter()
            .map(|candidate| {
                let tally = candidate.tally;
                let stability = candidate.mean_stability;
                vec![
                    candidate.rank.to_string(),
                    candidate.name.clone(),
                    tally.kept.to_string(),
                    tally.broken.to_string(),
                    tally.unreadable.to_string(),
                    tally.share_kept.map(percent).unwrap_or_default(),
                    interval(tally.interval),
                    stability.map(|mean| format!("{mean:.3}")).unwrap_or_default(),
                    if candidate.passes { "passes" } else { "fails" }.to_owned(),
                ]
            })
            .collect();
        let right = |name| (name, Stand::Right);
        let left = |name| (name, Stand::Left);
        let sure = format!("{} % interval", 100.0 * self.confidence);
        page.table(
            &[
                right(""),
                left("model"),
                right("kept"),
                right("broken"),
                right("unreadable"),
                right("share kept"),
                right(&sure),
                right("stability"),
                left("gate"),
            ],
            &rows,
        );
    }

    /// The promised probability beside the share kept, if promises state one.
    fn stated(&self, page: &mut Page) {
        let stated = |each: &JudgedCandidate| {
            let stated = each.tally.stated?;
            Some(vec![
                each.name.clone(),
                stated.promises.to_string(),
                format!("{:.3}", stated.mean_probability),
                format!("{:.3}", stated.mean_predictive),
                format!("{:.3}", stated.share_kept),
            ])
        };
        let rows: Vec<Vec<String>> = self.candidates.iter().filter_map(stated).collect();
        if rows.is_empty() {
            return;
        }
        page.title("Promised and kept");
        let right = |name| (name, Stand::Right);
        page.table(
            &[
                ("model", Stand::Left),
                right("promises with a probability"),
                right("promised, mean"),
                right("predictive, mean"),
                right("share kept"),
            ],
            &rows,
        );
    }

    fn groups(&self, page: &mut Page, candidate: &JudgedCandidate) {
        for table in &candidate.groups {
            let unit = table.unit.as_ref().map(|unit| format!(" ({unit})")).unwrap_or_default();
            page.title(&format!("By {}{unit}, {}", table.feature, candidate.name));
            let rows: Vec<Vec<String>> = table.groups.iter().map(group_cells).collect();
            let right = |name| (name, Stand::Right);
            let sure = format!("{} % interval", 100.0 * self.confidence);
            page.table(
                &[
                    ("group", Stand::Left),
                    right("promises"),
                    right("kept"),
                    right("broken"),
                    right("share kept"),
                    right(&sure),
                    right("p (Holm)"),
                    ("", Stand::Left),
                ],
                &rows,
            );
        }
    }
}

/// The candidates as successive updates.
fn updates_page(page: &mut Page, updates: &Updates) {
    page.title("Update after update, in the order given");
    let rows: Vec<Vec<String>> = updates
        .updates
        .iter()
        .map(|update| {
            let kept = format!("{:.3}", update.share_kept);
            vec![update.name.clone(), kept, at_least(update.at_least)]
        })
        .collect();
    let header = [
        ("model", Stand::Left),
        ("share kept", Stand::Right),
        ("expected share, at least", Stand::Right),
    ];
    page.table(&header, &rows);
    page.pairs(&[("bound", updates.sentence.clone())]);
}

fn group_cells(group: &Group) -> Vec<String> {
    let tally = group.tally;
    vec![
        group.name.clone(),
        tally.promises.to_string(),
        tally.kept.to_string(),
        tally.broken.to_string(),
        tally.share_kept.map(percent).unwrap_or_default(),
        interval(tally.interval),
        group.adjusted.map(|p| format!("{p:.3}")).unwrap_or_default(),
        if group.differs { "differs from the others" } else { "" }.to_owned(),
    ]
}

/// The first broken promises of a candidate.
fn broken_page(page: &mut Page, candidate: &JudgedCandidate) {
    let all = || {
        let broken = |promise: &&JudgedPromise| promise.status != PromiseStatus::Kept;
        candidate.promises.iter().filter(broken)
    };
    let count = all().count();
    for promise in all().take(SHOWN) {
        let judged = match (promise.status, promise.score, promise.stability) {
            (PromiseStatus::Unreadable, ..) => "cannot be read".to_owned(),
            (_, Some(score), Some(stability)) => {
                format!("broken with a score of {score:.3}, stability {stability:.3}")
            }
            _ => "broken".to_owned(),
        };
        page.title(&format!("{}, {}: {judged}", candidate.name, promise.name));
        let mut pairs: Vec<(&str, String)> = Vec::new();
        if let Some(reason) = &promise.reason {
            pairs.push(("reason", reason.clone()));
        }
        if let Some(sentence) = &promise.sentence {
            pairs.push(("promised", sentence.clone()));
        }
        if let Some(repairs) = &promise.repairs {
            pairs.push(("if done", repair(&repairs.from_promised)));
            if let Some(from_factual) = &repairs.from_factual {
                pairs.push(("if not", repair(from_factual)));
            }
        }
        page.pairs(&pairs);
    }
    if count > SHOWN {
        page.line("");
        page.line(&format!("  {} more of {}", count - SHOWN, candidate.name));
    }
}

fn repair(repair: &Repair) -> String {
    match repair {
        Repair::NotFound { reason: Reason::AlreadyFavourable, .. } => {
            "Nothing: the model accepts the original row.".to_owned()
        }
        Repair::NotFound { sentence, .. } => format!("No repair: {sentence}."),
        Repair::Found { sentence, cost, promise, .. } => {
            let cost =
                cost.map(|cost| format!(" Cost {:.3} in L1, {:.3} in L2.", cost.l1, cost.l2));
            let promise = promise.as_ref().map(|promise| format!(" {}", promise.sentence));
            format!("{sentence}{}{}", cost.unwrap_or_default(), promise.unwrap_or_default())
        }
    }
}

impl Report for AuditReport<'_> {
    const COMMAND: &'static str = "audit";

    fn page(&self, page: &mut Page) {
        page.title(&format!("{} of {}", counted(self.promises.len(), "open promise"), self.source));
        if !self.promises.is_empty() {
            let mut sentences: Vec<(&str, String)> = Vec::new();
            for candidate in self.candidates {
                let sentence = &candidate.search.sentence;
                if sentences.iter().all(|(_, other)| other != sentence) {
                    sentences.push(("repairs", sentence.clone()));
                }
                if let Some(other) = &candidate.same_as {
                    sentences
                        .push(("note", format!("{} is the same model as {other}", candidate.name)));
                }
                if !candidate.ignored.is_empty() {
                    let ignored = candidate.ignored.join(", ");
                    sentences.push(("note", format!("{} does not take {ignored}", candidate.name)));
                }
            }
            page.pairs(&sentences);
            self.ranking(page);
            self.stated(page);
            if let Some(updates) = self.updates.filter(|all| all.updates.len() > 1) {
                updates_page(page, updates);
            }
            for candidate in self.candidates {
                self.groups(page, candidate);
            }
            if let Some((best, others)) = self.candidates.split_first() {
                broken_page(page, best);
                if others.iter().any(|other| other.tally.broken > 0) {
                    page.line("");
                    page.line("  --json and --out list the broken promises of all candidates.");
                }
            }
        }
        if !self.out.is_empty() {
            page.title(&format!("Wrote {}", self.out.join(" and ")));
        }
        let word = if self.verdict.passes { "Yes" } else { "No" };
        page.title(&format!("{word}: {}", self.verdict.sentence));
    }
}
