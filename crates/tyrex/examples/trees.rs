//! Advice for a tree ensemble from a file, with the time of each search, as lines of JSON.
//!
//! The folder holds `schema.toml`, `model.onnx`, `train.csv` and `applicants.csv`; `retrained` and
//! `judges`, if they are there, are folders of retrained models to search over, and of others that
//! judge the answers. `bench/trees` makes such folders.
//!
//! `RAYON_NUM_THREADS=1 cargo run --release --example trees -- FOLDER min-cost`
#![allow(clippy::print_stdout)] // an example shows

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use tyrex::Points;
use tyrex::data::{Schema, Table};
use tyrex::explain::{Ask, Explainer, Reference, import};
use tyrex::model::THRESHOLD;
use tyrex::model::onnx::ImportOptions;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().context("which folder?")?);
    let mut fields = Map::new();
    fields.insert("method".to_owned(), arguments.next().context("which method?")?.into());
    // Other fields of the question: `norm=l2`, `params={"score":0.8}`.
    for argument in arguments {
        let (name, value) = argument.split_once('=').context("expected name=value")?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        fields.insert(name.to_owned(), value);
    }
    fields.insert("certify".to_owned(), false.into());
    fields.insert("stability".to_owned(), false.into());
    let ask = Ask::read(&fields, &[])?;

    let schema = Schema::from_toml(&std::fs::read_to_string(folder.join("schema.toml"))?)?;
    let options = ImportOptions::default();
    let model = import(&folder.join("model.onnx"), &schema, &options)?;
    let data = Reference::read(&schema, Table::read(&folder.join("train.csv"))?)?;
    let explainer = Explainer::with_standardised_model(data, model)?;
    let table = Table::read(&folder.join("applicants.csv"))?;
    let applicants = explainer.applicants().read(&table)?;
    let read = |name: &str| {
        let path = folder.join(name);
        path.is_dir().then(|| explainer.retraining().read(&path, &options)).transpose()
    };
    let (given, judges) = (read("retrained")?, read("judges")?);

    let go_on = |_| ControlFlow::Continue(());
    let given =
        given.as_ref().filter(|_| ask.promise.is_some() || ask.method.as_deref() == Some("trex-e"));
    let mut answering = explainer.answering(&applicants, &ask, given, &go_on)?;
    let advice = answering.advise(&applicants, |_| ControlFlow::Continue(()))?;
    for each in &advice {
        let mut line = json!({ "seconds": each.outcome.seconds });
        match each.found() {
            None => line["reason"] = each.outcome.reason().map(|reason| reason.name()).into(),
            Some(found) => {
                line["cost"] = found.cost.into();
                line["score"] = found.score.into();
                line["changed"] = each.changes.len().into();
                line["point"] = json!(found.point);
                let mut point = Points::new(found.point.len());
                point.push(&found.point);
                if let Some(judges) = &judges {
                    let accept =
                        |model: &dyn tyrex::model::Model| model.score(&point)[0] >= THRESHOLD;
                    let members = judges.members();
                    let count = members.iter().filter(|model| accept(&***model)).count();
                    line["accepted"] = (count as f64 / members.len() as f64).into();
                }
            }
        }
        println!("{line}");
    }
    Ok(())
}
