//! Certificates for the counterfactuals of a file, or for any points.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use serde::Deserialize;

use super::retrain::check_base;
use super::table::table;
use super::{Explainer, FORMAT_VERSION, Fresh, Reference, SearchedModels, UnlabelledRows};
use crate::certificate::{
    Certificate, Certifier, Retrained, Retraining, Terms, Tier, Verified, WrittenCertificate,
};
use crate::change::{Ensemble, ModelChange, Origin};
use crate::data::{Column, Schema, Table};
use crate::error::{Error, Result};
use crate::model::{Fingerprint, Model};
use crate::points::Points;
use crate::seed::Seed;

/// Repeated names that an error lists.
const REPEATS: usize = 5;

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
    /// The retrained models that took part in the search; `None` if a line does not record them.
    pub searched: Option<SearchedModels>,
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
        let data = Reference::Unlabelled(applicants.without_scale());
        // The schema may have dropped rows.
        let factuals = data.table_rows().iter().map(|&line| factuals[line]).collect();
        let searched = SearchedModels::in_lines(table, &lines)?;
        Ok(Self { data, factuals, not_found: table.rows() - lines.len(), model, searched })
    }
}

/// The part of the column `parameters` that is read here.
#[derive(Deserialize)]
struct SearchOf {
    searched: Option<SearchedModels>,
}

impl SearchedModels {
    /// The retrained models that took part in the search for the rows of a table, by its column
    /// `parameters`; `None` if a row does not say.
    pub fn in_table(table: &Table) -> Result<Option<Self>> {
        Self::in_lines(table, &(0..table.rows()).collect::<Vec<_>>())
    }

    /// The same for some lines. Earlier versions did not write them.
    fn in_lines(table: &Table, lines: &[usize]) -> Result<Option<Self>> {
        let Some(parameters) = table.columns().iter().find(|column| column.name() == "parameters")
        else {
            return Ok(None);
        };
        let mut all = Self::default();
        let mut last = None;
        for &line in lines {
            let cell = table.cell(line, parameters);
            // Nearly all lines have the same.
            if last == Some(cell) {
                continue;
            }
            last = Some(cell);
            match Self::in_parameters(cell) {
                Ok(Some(searched)) => all.add(&searched),
                Ok(None) => return Ok(None),
                Err(error) => {
                    let expected = format!("a JSON document, or nothing: {error}");
                    return Err(table.cell_error(line, parameters, expected));
                }
            }
        }
        Ok(Some(all))
    }

    /// The same for one cell of that column.
    pub fn in_parameters(cell: &str) -> serde_json::Result<Option<Self>> {
        if cell.is_empty() {
            return Ok(None);
        }
        serde_json::from_str(cell).map(|record: SearchOf| record.searched)
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

/// Rejects tables with repeated columns, of which one would be taken silently, and those that
/// [`AdviceFile`](super::AdviceFile) writes if answers are points: their encoded columns may have the
/// names of features, and would be encoded twice.
pub(super) fn check_rows(table: &Table) -> Result<()> {
    check_repeats(table)?;
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

/// Rejects a table whose header repeats names.
fn check_repeats(table: &Table) -> Result<()> {
    let written = |column: &Column| column.repeats().unwrap_or(column.name()).to_owned();
    let mut repeated: Vec<&str> = table.columns().iter().filter_map(Column::repeats).collect();
    repeated.sort_unstable();
    repeated.dedup();
    if repeated.is_empty() {
        return Ok(());
    }
    let more = repeated.len().saturating_sub(REPEATS);
    let places = |name: &&str| {
        let places = table.columns().iter().enumerate().filter(|(_, own)| written(own) == **name);
        let places: Vec<String> = places.map(|(place, _)| (place + 1).to_string()).collect();
        let (last, first) = places.split_last()?;
        Some(format!("`{name}` is in columns {} and {last}", first.join(", ")))
    };
    let mut shown: Vec<String> = repeated.iter().take(REPEATS).filter_map(places).collect();
    if more > 0 {
        shown.push(format!("{more} more names are repeated"));
    }
    Err(Error::Table {
        file: table.source().to_owned(),
        problem: format!(
            "the header repeats names ({}), expected each name of a file of advice once",
            shown.join("; ")
        ),
    })
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
        let retrained = fresh.map(|Fresh { ensemble, steered, search, likeness, .. }| Retrained {
            models: &members,
            family: &family,
            steered: *steered,
            search: search.or_else(|| self.search_record(ensemble)),
            likeness: Some(likeness),
        });
        let confidence = fresh.map_or(terms.confidence, |own| own.confidence(terms.confidence));
        let terms = Terms { confidence, ..terms.clone() }.for_model(self.model());
        let certifier = Certifier::new(self.model(), retrained, terms)?.on_scale(self.scale());
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

    /// Recomputes certificates of this model and compares them ([`verify_certificates`]), on the
    /// scale of numbers that they name.
    pub fn verify(
        &self,
        written: &[WrittenCertificate],
        ensemble: Option<&Ensemble>,
        watch: impl Fn() -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Verified>> {
        let explainer = self.on_scale(WrittenCertificate::scale(written)?)?;
        verify_certificates(explainer.model(), written, ensemble, watch)
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
/// order. The model takes points on their scale ([`Explainer::verify`] takes care of that); the
/// ensemble is the one they were made with, if any.
///
/// A certificate may rest on some of the models, since a search takes others at random; the result
/// then says of how many. Whether the search used the retrained models cannot be computed, nor where
/// models that were retrained elsewhere come from, and the comparison of the model with them needs
/// the reference; the values in the certificate are used. `watch` is called after each certificate.
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
    let identities: BTreeMap<Fingerprint, &dyn Model> =
        members.iter().filter_map(|member| Some((member.identity()?, *member))).collect();
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
            // The models that a search took at random are not among those of the certificate.
            let own = each.certificate.retraining().and_then(|retraining| {
                let model = |own: &Option<Fingerprint>| identities.get(own.as_ref()?).copied();
                retraining.models.iter().map(model).collect::<Option<Vec<&dyn Model>>>()
            });
            let models = own.as_deref().unwrap_or(&members);
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
                Some(Retraining { family, steered, search, likeness, .. }) => Some(Retrained {
                    models,
                    family: change.as_ref().unwrap_or(family),
                    steered: *steered,
                    search: *search,
                    likeness: likeness.as_ref(),
                }),
            };
            let some = retrained.map(|retrained| retrained.models.len()) < Some(members.len());
            let of_models = (retrained.is_some() && some).then_some(members.len());
            let verified = Verified { of_models, ..each.verified(model, retrained)? };
            if watch().is_break() {
                cancelled.store(true, Ordering::Relaxed);
            }
            Ok(verified)
        })
        .collect()
}
