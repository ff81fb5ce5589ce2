//! Advice from Rust: a model file, a table of applicants and the rows of the reference in, one
//! JSON document per rejected applicant out.
//!
//! `cargo run --release -p tyrex --example advise -- model.onnx applicants.csv reference.csv trex-o`

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use tyrex::data::Table;
use tyrex::explain::{Answered, Applicant, Ask, Explainer, Reference, embedded_schema, import};
use tyrex::model::files::{ImportOptions, ModelFile};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, model, applicants, reference, method] = arguments.as_slice() else {
        anyhow::bail!(
            "expected a model that tyrex wrote, a table of applicants, the table of the reference, \
             and a method"
        );
    };
    let (model, options) = (Path::new(model), ImportOptions::default());
    let schema = embedded_schema(&ModelFile::read(model, &options)?)?;
    let schema = schema.ok_or_else(|| anyhow::anyhow!("the model file holds no schema"))?;
    let data = Reference::read(&schema, Table::read(Path::new(reference))?)?;
    let explainer = Explainer::with_model(data, import(model, &schema, &options)?)?;

    let mut applicants = explainer.applicants().read(&Table::read(Path::new(applicants))?)?;
    applicants.retain(Applicant::is_rejected);
    let ask = Ask { method: Some(method.clone()), ..Ask::default() };
    let Answered { adviser, advice, certificates, fresh, .. } =
        explainer.answer(&applicants, &ask, None, |_| ControlFlow::Continue(()))?;
    let mut out = std::io::stdout().lock();
    for (advice, certificate) in advice.iter().zip(certificates) {
        let tries = ask.tries(applicants.len());
        let go_on = |_| ControlFlow::Continue(());
        let document = adviser.explained(advice, certificate, fresh.as_deref(), tries, go_on)?;
        serde_json::to_writer(&mut out, &document)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
