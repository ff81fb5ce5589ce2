//! `tyrex certify --verify`

use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use tyrex::certificate::{Verified, WrittenCertificate};
use tyrex::change::Ensemble;
use tyrex::data::Schema;
use tyrex::data::encode::Scale;
use tyrex::data::schema::ModelInput;
use tyrex::explain::{Explainer, Reference, verify_certificates};
use tyrex::file::read_text;
use tyrex::model::files::ModelFile;

use crate::args::CertifyArgs;
use crate::commands::summary::{ModelSummary, counted, shown};
use crate::commands::{Answer, Context, source};
use crate::help::Usage;
use crate::printer::{Page, Report};

/// Certificates that differ to show, and fields of each.
const SHOWN: usize = 10;
/// The most bytes of a document with certificates.
const MOST_BYTES: u64 = 256 << 20;
/// Characters of a value to show.
const WIDTH: usize = 60;

/// Computes the certificates of a document again and compares them.
pub(super) fn run(
    context: &mut Context<'_>,
    args: &CertifyArgs,
    file: &Path,
) -> anyhow::Result<Answer> {
    let text = read_text(file, MOST_BYTES)?;
    let written = WrittenCertificate::all_in(&text).with_context(|| shown(file))?;
    // No row is read: the schema only names the favourable class.
    let (model, schema) =
        source::model_and_schema(&args.model, args.schema.as_deref(), &args.import)?;
    let explainer = on_scale(args, &model, schema, WrittenCertificate::scale(&written)?)?;
    let ensemble = args.ensemble.as_deref().map(|folder| match &explainer {
        Some(explainer) => {
            let read = explainer.retraining().read(folder, &source::import_options(&args.import));
            Ok(read?.fresh())
        }
        None => Ensemble::read(folder),
    });
    let ensemble = ensemble.transpose()?;
    let subject = explainer.as_ref().map_or(model.model(), Explainer::model);
    let verified = context.counted("verifying", written.len() as u64, |count| {
        verify_certificates(subject, &written, ensemble.as_ref(), count)
    })?;
    let confirmed = verified.iter().filter(|each| each.confirmed).count();
    let all = confirmed == verified.len();
    context.printer.show(&VerifyReport {
        file: shown(file),
        model: ModelSummary::of(model.model()),
        confirmed,
        shown: args.limit.unwrap_or(SHOWN),
        certificates: verified,
    })?;
    Ok(if all { Answer::Yes } else { Answer::No })
}

/// The model on the scale of the certificates; `None` if that is the model as it is: it takes encoded
/// columns, or there is no schema.
fn on_scale(
    args: &CertifyArgs,
    model: &ModelFile,
    schema: Option<Schema>,
    scale: Option<&Scale>,
) -> anyhow::Result<Option<Explainer>> {
    let Some(schema) = schema else {
        return match scale {
            None => Ok(None),
            Some(_) => Err(Usage {
                problem: "there is no schema for the scales in the certificates".to_owned(),
                help: "pass --schema FILE, the one the counterfactuals were found with".to_owned(),
            }
            .into()),
        };
    };
    let is_given = args.ensemble.as_ref().is_some_and(|folder| !Ensemble::is_in(folder));
    if schema.model.input == ModelInput::Encoded && !is_given {
        return Ok(None);
    }
    let explainer = Explainer::with_model(Reference::none(&schema)?, model.clone())?;
    Ok(Some(explainer.on_scale(scale)?))
}

/// The report of `certify --verify`.
#[derive(Debug, Serialize)]
struct VerifyReport {
    file: String,
    model: ModelSummary,
    confirmed: usize,
    certificates: Vec<Verified>,
    #[serde(skip)]
    shown: usize,
}

/// The beginning of a long value.
fn short(value: &str) -> String {
    if value.chars().count() <= WIDTH {
        return value.to_owned();
    }
    value.chars().take(WIDTH).chain("...".chars()).collect()
}

impl Report for VerifyReport {
    const COMMAND: &'static str = "certify";

    fn page(&self, page: &mut Page) {
        page.title(&self.file);
        let all = self.certificates.len();
        let mut pairs = vec![("certificates", all.to_string())];
        pairs.extend(self.model.pairs());
        if let Some(all) = self.certificates.iter().find_map(|each| each.of_models) {
            let text =
                format!("some of the {all} in the folder; how they were chosen is not verified");
            pairs.push(("ensemble", text));
        }
        page.pairs(&pairs);
        let differing = self.certificates.iter().filter(|each| !each.confirmed);
        for each in differing.take(self.shown) {
            let row = each.row.map(|row| format!(", row {row}")).unwrap_or_default();
            page.title(&format!("{}{row}", each.place));
            for difference in each.differences.iter().take(SHOWN) {
                let (stated, anew) = (short(&difference.stated), short(&difference.recomputed));
                page.item(&format!("{}: {stated}, recomputed {anew}", difference.field));
            }
            if each.differences.len() > SHOWN {
                page.item(&format!("{} more", each.differences.len() - SHOWN));
            }
        }
        let differ = all - self.confirmed;
        page.title(&if differ == 0 {
            format!("Yes: {} confirmed", counted(all, "certificate"))
        } else {
            format!("No: {differ} of {} not confirmed", counted(all, "certificate"))
        });
    }
}
