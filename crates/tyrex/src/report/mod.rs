//! Reports.
mod document;
mod html;
mod markdown;
pub mod printed;
mod scale;
mod svg;
