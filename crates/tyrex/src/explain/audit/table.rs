//! The report of the gate as a table: a line for each candidate and promise.

use super::verdict::{GateReport, JudgedCandidate, Repair};
use super::written::Values;
use crate::counterfactual::Reason;
use crate::data::{Column, Table};
use crate::error::{Error, Result};

/// The columns before the features.
const OWN: [&str; 10] = [
    "candidate",
    "rank",
    "passes",
    "promise",
    "status",
    "reason",
    "score",
    "stability",
    "factual_score",
    "model",
];
/// The columns of each of the two repairs.
const REPAIR: [&str; 7] =
    ["status", "reason", "score", "stability", "cost_l1", "cost_l2", "changed"];
/// The rows whose features the table has, as prefixes of their names.
const ROWS: [&str; 4] = ["factual", "promised", "repair", "factual_repair"];
/// The provenance of the answers.
const TAIL: [&str; 5] = ["method", "parameters", "seed", "allow", "format_version"];

impl GateReport {
    /// The report as a table to write, a line for each candidate and promise, the best candidate
    /// first: `candidate`, `rank`, `passes`, `promise`, `status` (`kept`, `broken`, `unreadable`),
    /// `reason`, `score`, `stability`, `factual_score`, `model`; the repair from the advised row
    /// (`repair_status`, `repair_score`, `repair_cost_l1`, ...) and from the original row
    /// (`factual_repair_...`); the provenance; then the features of all four rows, as
    /// `factual.NAME`, `promised.NAME`, `repair.NAME` and `factual_repair.NAME`. Cells without a
    /// value are empty.
    pub fn table(&self) -> Result<Table> {
        let mut features: Vec<&str> = Vec::new();
        for name in self.candidates.iter().flat_map(|candidate| &candidate.features) {
            if !features.contains(&name.as_str()) {
                features.push(name);
            }
        }
        let own = OWN.into_iter().map(str::to_owned);
        let repairs =
            ROWS[2..].iter().flat_map(|prefix| REPAIR.map(|name| format!("{prefix}_{name}")));
        let tail = TAIL.into_iter().map(str::to_owned);
        let rows =
            ROWS.iter().flat_map(|row| features.iter().map(move |name| format!("{row}.{name}")));
        let mut columns: Vec<Column> =
            own.chain(repairs).chain(tail).chain(rows).map(Column::new).collect();
        for candidate in &self.candidates {
            let rests_on = self.rests_on(candidate)?;
            for (judged, written) in candidate.promises.iter().zip(&self.promises) {
                let number =
                    |number: Option<f64>| number.map(|x| x.to_string()).unwrap_or_default();
                let score = |score: Option<f32>| score.map(|x| x.to_string()).unwrap_or_default();
                let mut cells = vec![
                    candidate.name.clone(),
                    candidate.rank.to_string(),
                    candidate.passes.to_string(),
                    judged.name.clone(),
                    judged.status.name().to_owned(),
                    judged.reason.clone().unwrap_or_default(),
                    score(judged.score),
                    number(judged.stability),
                    score(judged.factual_score),
                    candidate.fingerprint.clone(),
                ];
                let repairs = judged.repairs.as_ref();
                let from_promised = repairs.map(|repairs| &repairs.from_promised);
                let from_factual = repairs.and_then(|repairs| repairs.from_factual.as_ref());
                cells.extend(repair_cells(from_promised));
                cells.extend(repair_cells(from_factual));
                cells.extend(rests_on.iter().cloned());
                let written = [written.factual.as_ref(), Some(&written.advised)];
                for row in written.into_iter().chain([from_promised, from_factual].map(after)) {
                    let cell =
                        |name: &&str| row.and_then(|row| row.get(*name)).map(ToString::to_string);
                    cells.extend(features.iter().map(|name| cell(name).unwrap_or_default()));
                }
                columns.iter_mut().zip(&cells).for_each(|(column, cell)| column.push(cell));
            }
        }
        Table::new("audit", columns)
    }

    fn rests_on(&self, candidate: &JudgedCandidate) -> Result<[String; TAIL.len()]> {
        let request = candidate.search.request.as_ref();
        let parameters = request.map(serde_json::to_string).transpose();
        let parameters = parameters
            .map_err(|error| Error::param("parameters", error, "numbers that JSON can hold"))?;
        Ok([
            request.map(|request| request.method.name()).unwrap_or_default().to_owned(),
            parameters.unwrap_or_default(),
            self.request.seed.0.to_string(),
            self.allow.to_string(),
            self.format_version.to_string(),
        ])
    }
}

/// The row after a repair.
fn after(repair: Option<&Repair>) -> Option<&Values> {
    match repair? {
        Repair::Found { counterfactual, .. } => Some(counterfactual),
        Repair::NotFound { .. } => None,
    }
}

fn repair_cells(repair: Option<&Repair>) -> [String; REPAIR.len()] {
    let number = |number: Option<f64>| number.map(|x| x.to_string()).unwrap_or_default();
    match repair {
        None => Default::default(),
        Some(Repair::NotFound { reason, .. }) => {
            let words = ["not_found", Reason::name(*reason), "", "", "", "", ""];
            words.map(str::to_owned)
        }
        Some(Repair::Found { changes, score, stability, cost, .. }) => [
            "found".to_owned(),
            String::new(),
            score.to_string(),
            number(*stability),
            number(cost.map(|cost| cost.l1)),
            number(cost.map(|cost| cost.l2)),
            changes.len().to_string(),
        ],
    }
}
