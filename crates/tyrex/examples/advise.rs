//! Advice from Rust: a model file and a table of applicants in, one JSON document per applicant
//! out.
//!
//! `cargo run --release --example advise -- model.onnx applicants.csv trex-i`

use std::ops::ControlFlow;
use std::path::Path;

use tyrex::Seed;
use tyrex::counterfactual::{Norm, Protocol};
use tyrex::data::Table;
use tyrex::explain::{Explainer, Reference, Request, UnlabelledRows, embedded_schema, import};
use tyrex::model::onnx::{ImportOptions, OnnxModel};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, model, applicants, method] = arguments.as_slice() else {
        anyhow::bail!("expected a model that tyrex wrote, a table of applicants, and a method");
    };
    let (model, options) = (Path::new(model), ImportOptions::default());
    let schema = embedded_schema(&OnnxModel::read(model, &options)?)?;
    let schema = schema.ok_or_else(|| anyhow::anyhow!("the model file holds no schema"))?;
    let rows = UnlabelledRows::read(&schema, Table::read(Path::new(applicants))?)?;
    let explainer =
        Explainer::with_model(Reference::Unlabelled(rows), import(model, &schema, &options)?)?;

    let rejected = explainer.rejected(explainer.reference().applicants());
    let seed = Seed(0).derive("search");
    let request = Request::new(method, Protocol::Product, Norm::L1, seed)?;
    let advice = explainer.advise(&rejected, &request, |_| ControlFlow::Continue(()))?;
    let mut out = std::io::stdout().lock();
    for each in &advice {
        serde_json::to_writer(&mut out, &explainer.explained(each, None, &request, 0)?)?;
        std::io::Write::write_all(&mut out, b"\n")?;
    }
    Ok(())
}
