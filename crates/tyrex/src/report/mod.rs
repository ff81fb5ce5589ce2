//! Reports: a document of sections, tables and figures, written as HTML or Markdown.
//!
//! This module makes the report of the gate; `tyrex-lab` makes the reports of experiments.

pub mod document;
mod gate;
pub mod html;
pub mod markdown;
pub mod number;
pub mod scale;
pub mod svg;

use crate::explain::GateReport;

/// The report of the gate as one self-contained HTML file.
pub fn gate_html(gate: &GateReport) -> String {
    html::render(&gate::document(gate))
}
