//! Certificates for the counterfactuals of a file, or for any points.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::retrain::check_base;
use super::table::table;
use super::{Explainer, FORMAT_VERSION, Fresh, Reference, UnlabelledRows};
use crate::certificate::{
    Certificate, Certifier, Retrained, Retraining, Terms, Tier, Verified, WrittenCertificate,
};
use crate::change::{Ensemble, ModelChange, Origin};
use crate::data::{Column, Schema, Table};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::points::Points;
use crate::seed::Seed;

/// The counterfactuals of a file of advice.
#[derive(Debug, Clone)]
pub struct AdviceRows {
    /// The counterfactuals that were found.
    pub data: Reference,
    /// For each of them, the row of the factual in the file it came from.
    pub factuals: Vec<usize>,
    /// The number of factuals for which none was found.
    pub not_found: usize,
    /// The fingerprint of the model they were found for, if the file has it.
    pub model: Option<String>,
}

impl AdviceRows {
    /// Reads a table with the features under their own names. If it has a column `status`, only
    /// lines with `found` are counterfactuals, and the others must have `not_found`. If it has a
    /// column `row`, that is the row of the factual.
    pub fn read(schema: &Schema, table: &Table) -> Result<Self> {
        let column = |name: &str| table.columns().iter().find(|column| column.name() == name);
        check_rows(table)?;
        let lines = found_lines(table)?;
        let factuals: Vec<usize> = match column("row") {
            None => lines.clone(),
            Some(rows) => lines
                .iter()
                .map(|&line| {
                    let expected = || "the number of a row, from 0".to_owned();
                    let row = table.cell(line, rows).parse();
                    row.map_err(|_| table.cell_error(line, rows, expected()))
                })
                .collect::<Result<_>>()?,
        };
        let model = column("model").map(|model| table.cell(lines[0], model).to_owned());
        let applicants =
            UnlabelledRows::read(schema, selected(table, &lines)?).map_err(|error| {
                match error {
                    // The line in the whole file.
                    Error::Cell { file, row, column, value, expected } => {
                        Error::Cell { file, row: lines[row], column, value, expected }
                    }
                    other => other,
                }
            })?;
        let data = Reference::Unlabelled(applicants);
        // The schema may have dropped rows.
        let factuals = data.table_rows().iter().map(|&line| factuals[line]).collect();
        Ok(Self { data, factuals, not_found: table.rows() - lines.len(), model })
    }
}

/// The lines of a file of advice that hold a counterfactual: those with `found` in column `status`,
/// or all if there is no such column. A status other than `found` and `not_found` is an error,
/// since its line would be dropped silently; so is a file without a counterfactual.
pub(super) fn found_lines(table: &Table) -> Result<Vec<usize>> {
    let status = table.columns().iter().find(|column| column.name() == "status");
    let mut lines = Vec::new();
    for line in 0..table.rows() {
        match status.map_or("found", |status| status.cell(line)) {
            "found" => lines.push(line),
            "not_found" => {}
            other => {
                return Err(Error::Cell {
                    file: table.source().to_owned(),
                    row: line,
                    column: "status".to_owned(),
                    value: other.to_owned(),
                    expected: "`found` or `not_found`".to_owned(),
                });
            }
        }
    }
    if lines.is_empty() {
        let problem = match table.rows() {
            0 => "it has no lines, expected counterfactuals",
            _ => "no line has a counterfactual, expected `found` in column `status`",
        };
        return Err(Error::Table { file: table.source().to_owned(), problem: problem.to_owned() });
    }
    Ok(lines)
}

/// Rejects tables that [`AdviceFile`](super::AdviceFile) writes if answers are points: their encoded
/// columns may have the names of features, and would be encoded twice.
pub(super) fn check_rows(table: &Table) -> Result<()> {
    let Some(parameters) = table.columns().iter().find(|column| column.name() == "parameters")
    else {
        return Ok(());
    };
    for line in table.row_numbers() {
        let request: serde_json::Value =
            serde_json::from_str(table.cell(line, parameters)).unwrap_or_default();
        if let Some(protocol) = request["protocol"].as_str().filter(|name| *name != "product") {
            return Err(Error::Table {
                file: table.source().to_owned(),
                problem: format!(
                    "row {line} is a point of the protocol `{protocol}`, expected rows of the \
                     protocol `product`"
                ),
            });
        }
    }
    Ok(())
}

/// Some lines of a table.
fn selected(table: &Table, lines: &[usize]) -> Result<Table> {
    let columns = table.columns().iter().map(|whole| {
        let mut column = Column::new(whole.name());
        for &line in lines {
            column.push(table.cell(line, whole));
        }
        column
    });
    Table::new(table.source(), columns.collect())
}

impl Explainer {
    /// A certificate for every point, in their order. It depends neither on the number of threads
    /// nor on the other points. The points should be those that are returned to the user, and the
    /// seed one that no search has used; each point's draws depend on the seed and the point.
    ///
    /// `watch` is called after each certificate.
    pub fn certify(
        &self,
        points: &Points,
        fresh: Option<&Fresh>,
        terms: &Terms,
        seed: Seed,
        watch: impl Fn() -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Certificate>> {
        fresh.map(|fresh| self.retraining().check(&fresh.ensemble)).transpose()?;
        let members: Vec<&dyn Model> = fresh
            .iter()
            .flat_map(|fresh| fresh.ensemble.members())
            .map(|member| &**member)
            .collect();
        let family = fresh.map(|fresh| fresh.ensemble.origin().description()).unwrap_or_default();
        let retrained = fresh.map(|Fresh { steered, likeness, .. }| Retrained {
            models: &members,
            family: &family,
            steered: *steered,
            likeness: Some(likeness),
        });
        let certifier =
            Certifier::new(self.model(), retrained, terms.clone().for_model(self.model()))?;
        let cancelled = AtomicBool::new(false);
        (0..points.len())
            .into_par_iter()
            .with_max_len(1)
            .map(|index| {
                if cancelled.load(Ordering::Relaxed) {
                    return Err(Error::Cancelled("not all points were certified".to_owned()));
                }
                let point = points.row(index);
                let certificate = certifier.certify(point, seed.point(point))?;
                if watch().is_break() {
                    cancelled.store(true, Ordering::Relaxed);
                }
                Ok(certificate)
            })
            .collect()
    }

    /// Certificates as a table to write: `row` and `score`, then the overall verdict, the verdict
    /// and numbers of each tier, and the provenance. Cells of omitted tiers are empty.
    pub fn certificate_table(
        &self,
        factuals: &[usize],
        certificates: &[Certificate],
        seed: Seed,
    ) -> Result<Table> {
        let columns = Tier::KINDS.iter().flat_map(|kind| {
            let numbers = kind.numbers.iter().map(|number| format!("{}_{number}", kind.name));
            std::iter::once(kind.name.to_owned()).chain(numbers)
        });
        let names: Vec<String> = ["row", "score", "verdict"]
            .map(str::to_owned)
            .into_iter()
            .chain(columns)
            .chain(["model", "seed", "format_version"].map(str::to_owned))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let model = self.fingerprint().to_string();
        let lines = factuals.iter().zip(certificates).map(|(factual, certificate)| {
            let mut cells = vec![
                factual.to_string(),
                certificate.score().to_string(),
                certificate.verdict().to_string(),
            ];
            for kind in &Tier::KINDS {
                match certificate.tiers().iter().find(|tier| tier.name() == kind.name) {
                    Some(tier) => {
                        cells.push(tier.verdict().to_string());
                        cells.extend(tier.numbers());
                    }
                    None => cells.extend(vec![String::new(); 1 + kind.numbers.len()]),
                }
            }
            cells.extend([model.clone(), seed.0.to_string(), FORMAT_VERSION.to_string()]);
            cells
        });
        table("certificates", &names, lines)
    }
}

/// Recomputes certificates, each from its own point, seed and terms, and compares them, in their
/// order. The ensemble is the one they were made with, if any.
///
/// Whether the search used the retrained models cannot be computed, nor where models that were
/// retrained elsewhere come from, and the comparison of the model with them needs the reference; the
/// values in the certificate are used. `watch` is called after each certificate.
pub fn verify_certificates(
    model: &dyn Model,
    written: &[WrittenCertificate],
    ensemble: Option<&Ensemble>,
    watch: impl Fn() -> ControlFlow<()> + Sync,
) -> Result<Vec<Verified>> {
    if let Some(ensemble) = ensemble {
        check_base(model, ensemble)?;
    }
    let members: Vec<&dyn Model> =
        ensemble.iter().flat_map(|ensemble| ensemble.members()).map(|member| &**member).collect();
    let origin = ensemble.map(Ensemble::origin);
    let change = origin.and_then(Origin::change).map(ModelChange::description);
    let cancelled = AtomicBool::new(false);
    written
        .par_iter()
        .with_max_len(1)
        .map(|each| {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled("not all certificates were checked".to_owned()));
            }
            let retrained = match each.certificate.retraining() {
                None => None,
                Some(retraining) if ensemble.is_none() => {
                    return Err(Error::param(
                        "ensemble",
                        "missing",
                        format!(
                            "the {} retrained models that the certificates were made with",
                            retraining.models.len()
                        ),
                    ));
                }
                Some(Retraining { family, steered, likeness, .. }) => Some(Retrained {
                    models: &members,
                    family: change.as_ref().unwrap_or(family),
                    steered: *steered,
                    likeness: likeness.as_ref(),
                }),
            };
            let verified = each.verified(model, retrained)?;
            if watch().is_break() {
                cancelled.store(true, Ordering::Relaxed);
            }
            Ok(verified)
        })
        .collect()
}
