//! Pages: a document of sections, tables and figures, and what writes it as HTML or Markdown.
//!
//! What the gate says of candidates becomes such a document here; the results of experiments do
//! in `tyrex-lab`.

pub mod document;
mod gate;
pub mod html;
pub mod markdown;
pub mod number;
pub mod scale;
pub mod svg;

use crate::explain::GateReport;

/// What candidates make of promises as one HTML file that needs nothing else.
#[must_use]
pub fn gate_html(gate: &GateReport) -> String {
    html::render(&gate::document(gate))
}
