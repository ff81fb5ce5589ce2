//! Reports: the results of a suite as one HTML file, and as Markdown.
//!
//! The results become a document first: sections of text, tables and figures. It is the same for
//! both forms. Every table is shown with the numbers of the paper, and every claim is decided from
//! the results.

mod certified;
mod claims;
mod compare;
mod comparison;
mod details;
mod frontier;
mod histogram;
mod moons;
mod number;
mod opening;
pub mod printed;
mod sensitivity;
mod tradeoff;

pub use claims::{ClaimVerdict, PaperClaim, claims};

use tyrex::error::Result;
use tyrex::report::document::{Document, Section};
use tyrex::report::{document, html, markdown, scale, svg};

use crate::experiment::Results;
use crate::experiment::result::{Finding, Shown, Timing};

/// The report as one self-contained HTML file.
pub fn html(results: &Results, timings: &[Timing]) -> Result<String> {
    Ok(html::render(&document(results, timings)?))
}

/// The same tables and sentences as Markdown, without the figures.
pub fn markdown(results: &Results, timings: &[Timing]) -> Result<String> {
    Ok(markdown::render(&document(results, timings)?))
}

fn document(results: &Results, timings: &[Timing]) -> Result<Document> {
    let entries = compare::entries(results)?;
    let claims = claims(results)?;
    let mut sections = vec![opening::run(results, timings)];
    sections.extend(opening::claims(&claims));
    sections.extend(tradeoff::overview(&entries));
    sections.extend(frontier::overview(&entries));
    sections.extend(certified::overview(results));
    for shown in &results.experiments {
        sections.push(section(shown, &entries, timings));
    }
    sections.extend(opening::times(results, timings));
    sections.extend(opening::evidence(&claims));
    let (title, subtitle) = (results.title.clone(), opening::subtitle(results));
    Ok(Document { title, subtitle, answer: None, sections })
}

fn section(shown: &Shown, entries: &[compare::Entry<'_>], timings: &[Timing]) -> Section {
    let experiment = &shown.experiment;
    let mut section = Section::new(&format!("experiment-{}", experiment.name), &experiment.title);
    section.text(&experiment.about);
    section.text(opening::terms(experiment));
    match &shown.finding {
        Finding::Comparison(_) => {
            let own: Vec<compare::Entry<'_>> = entries
                .iter()
                .filter(|entry| std::ptr::eq(entry.experiment, experiment))
                .cloned()
                .collect();
            comparison::describe(&mut section, &own, timings);
        }
        Finding::Moons(found) => moons::describe(&mut section, found),
        Finding::Histograms(found) => histogram::describe(&mut section, found),
        Finding::Certificates(found) => certified::describe(&mut section, found),
    }
    section
}

#[cfg(test)]
mod tests;
