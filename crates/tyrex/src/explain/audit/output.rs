//! An audit as documents and as a table.

use serde::Serialize;

use super::AuditedPromise;
use crate::counterfactual::Reason;
use crate::data::{Column, Schema, Table};
use crate::error::Result;
use crate::explain::advice::changes;
use crate::explain::table::check_names;
use crate::explain::{Advice, Advised, Explainer, FORMAT_VERSION, FeatureChange, Named, Request};

/// A promise as a document.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditDocument<'a> {
    /// The row of the person.
    pub row: usize,
    /// Whether the model accepts what was advised.
    pub kept: bool,
    /// The person as they were, where that is known.
    pub features: Option<Named<'a>>,
    /// `m(x)` of it.
    pub score: Option<f32>,
    /// What was advised.
    pub promised: PromisedDocument<'a>,
    /// What would repair it, if it is broken.
    pub repairs: Option<RepairsDocument<'a>>,
}

/// What was advised.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PromisedDocument<'a> {
    /// What was to change; nothing where it is not known how the person was.
    pub changes: Vec<FeatureChange>,
    /// The whole row after it.
    pub counterfactual: Named<'a>,
    /// `m(x')`
    pub score: f32,
    /// `R^` there.
    pub stability: f64,
}

/// What would repair a promise.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RepairsDocument<'a> {
    /// For the person who has done what was advised.
    pub from_promised: Advised<'a>,
    /// For the person who has done nothing yet, where it is known how they were.
    pub from_factual: Option<Advised<'a>>,
}

/// The columns before the features, and behind them.
const HEAD: [&str; 3] = ["row", "status", "reason"];
const TAIL: [&str; 21] = [
    "promise",
    "promised_score",
    "promised_stability",
    "score",
    "stability",
    "cost_l1",
    "cost_l2",
    "changed",
    "seconds",
    "factual_score",
    "factual_status",
    "factual_reason",
    "factual_cost_l1",
    "factual_cost_l2",
    "factual_changed",
    "factual_seconds",
    "method",
    "parameters",
    "model",
    "seed",
    "format_version",
];

/// Whether files of advice, or those of audits, have a column of this name beside the features.
pub(super) fn is_own_name(name: &str) -> bool {
    HEAD.contains(&name) || TAIL.contains(&name)
}

/// Whether the features leave the names of [`Explainer::audit_table`]'s own columns free: for
/// the end of long work, asked before it.
pub fn check_audit_names(schema: &Schema) -> Result<()> {
    check_names(schema, HEAD.into_iter().chain(TAIL))
}

impl Explainer {
    /// The document of one promise, without times.
    pub fn audit_document<'a>(&'a self, promise: &'a AuditedPromise) -> Result<AuditDocument<'a>> {
        let AuditedPromise { factual, promised, stability, repairs } = promise;
        let repairs = repairs.as_ref().map(|repairs| RepairsDocument {
            from_promised: self.advised(&repairs.from_promised, None, None),
            from_factual: repairs.from_factual.as_ref().map(|own| self.advised(own, None, None)),
        });
        Ok(AuditDocument {
            row: promised.row,
            kept: promise.is_kept(),
            features: factual.as_ref().map(|own| Named::Row(self.schema(), &own.values)),
            score: factual.as_ref().map(|factual| factual.score),
            promised: PromisedDocument {
                changes: factual
                    .as_ref()
                    .map(|factual| changes(self.schema(), &factual.values, &promised.values))
                    .unwrap_or_default(),
                counterfactual: Named::Row(self.schema(), &promised.values),
                score: promised.score,
                stability: *stability,
            },
            repairs,
        })
    }

    /// An audit as a table to write, one line per promise. It is a file of advice again, such as
    /// [`advice_table`](Self::advice_table) writes and the next audit reads: the features are
    /// those of the row that is good under this model, that is the promised row, or the repair
    /// from it. `promise` says which, `kept` or `broken`. Costs and changes are those from the
    /// promised row, and those of the repair from the factual row behind them.
    pub fn audit_table(&self, promises: &[AuditedPromise], request: &Request) -> Result<Table> {
        check_audit_names(self.schema())?;
        let rests_on = [
            request.method.name().to_owned(),
            self.parameters(request)?,
            self.fingerprint().to_string(),
            request.seed.0.to_string(),
            FORMAT_VERSION.to_string(),
        ];
        let features = self.schema().features.iter().map(|feature| feature.name.as_str());
        let names = HEAD.into_iter().chain(features).chain(TAIL);
        let mut columns: Vec<Column> = names.map(Column::new).collect();
        for promise in promises {
            let cells = self.audit_line(promise).into_iter().chain(rests_on.iter().cloned());
            columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(&cell));
        }
        Table::new("audit", columns)
    }

    /// The cells of one promise, up to what the audit rests on.
    fn audit_line(&self, promise: &AuditedPromise) -> Vec<String> {
        let AuditedPromise { factual, promised, stability, repairs } = promise;
        let repair = repairs.as_ref().map(|repairs| Cells::of(&repairs.from_promised));
        let from_factual = repairs.as_ref().and_then(|repairs| repairs.from_factual.as_ref());
        let row = match repairs {
            None => Some(&promised.values),
            Some(repairs) => repairs.from_promised.advised.as_ref(),
        };
        // A promise that is kept costs nothing more.
        let own = repair.unwrap_or_else(|| Cells {
            status: "found".to_owned(),
            score: promised.score.to_string(),
            stability: stability.to_string(),
            way: [0.0, 0.0, 0.0, 0.0].map(|none| none.to_string()),
            ..Cells::default()
        });
        let later = from_factual.map(Cells::of).unwrap_or_default();
        let mut cells = vec![promised.row.to_string(), own.status, own.reason];
        match row {
            Some(row) => cells.extend(self.schema().cells_of_row(row)),
            None => cells.extend(vec![String::new(); self.schema().features.len()]),
        }
        let word = if promise.is_kept() { "kept" } else { "broken" };
        cells.extend([word.to_owned(), promised.score.to_string(), stability.to_string()]);
        cells.extend([own.score, own.stability]);
        cells.extend(own.way);
        let score = factual.as_ref().map(|factual| factual.score.to_string());
        cells.extend([score.unwrap_or_default(), later.status, later.reason]);
        cells.extend(later.way);
        cells
    }
}

/// The cells of one repair.
#[derive(Default)]
struct Cells {
    status: String,
    reason: String,
    score: String,
    stability: String,
    /// Both costs, the number of changes, and the seconds.
    way: [String; 4],
}

impl Cells {
    fn of(advice: &Advice) -> Self {
        let number = |number: Option<f64>| number.map(|x| x.to_string()).unwrap_or_default();
        let reason = advice.outcome.reason().map_or("", Reason::name);
        Self {
            status: if reason.is_empty() { "found" } else { "not_found" }.to_owned(),
            reason: reason.to_owned(),
            score: advice.found().map(|found| found.score.to_string()).unwrap_or_default(),
            stability: number(advice.stability),
            way: [
                number(advice.cost.map(|cost| cost.l1)),
                number(advice.cost.map(|cost| cost.l2)),
                advice.changed_count().map(|count| count.to_string()).unwrap_or_default(),
                advice.outcome.seconds.to_string(),
            ],
        }
    }
}
