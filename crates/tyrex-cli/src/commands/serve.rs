//! `tyrex serve`

use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;

use anyhow::Context as _;
use serde::Serialize;
use tokio::runtime::Builder;
use tyrex::model::TrainParams;
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::Ledger;
use tyrex_server::config::{Config, Limits, TlsFiles};
use tyrex_server::engine::{self, Engine, EngineConfig, Loaded, OwnModel};
use tyrex_server::log;
use tyrex_server::serve::{Service, interrupted};
use tyrex_server::{AppState, AppState as State};

use super::summary::{counted, shown};
use super::{Context, ledger, retrain, train};
use crate::args::{LimitArgs, ReachArgs, ServeArgs};
use crate::help::Usage;
use crate::printer::{Page, Report};

/// Bytes of a mebibyte.
const MEBIBYTE: usize = 1 << 20;

pub(crate) fn run(context: &mut Context<'_>, args: &ServeArgs) -> anyhow::Result<()> {
    check(args)?;
    log::start(args.reach.log);
    let runtime =
        Builder::new_multi_thread().enable_all().build().context("cannot start a runtime")?;
    runtime.block_on(async {
        let mut end = pin!(interrupted());
        let starting = start(context, args);
        let (service, state, serving) = tokio::select! {
            started = starting => started?,
            () = &mut end => return Ok(()),
        };
        context.printer.show(&serving)?;
        Ok(service.run(state, end).await?)
    })
}

/// Checks that the parser cannot make.
fn check(args: &ServeArgs) -> Result<(), Usage> {
    let untold = args.data.is_some() && args.schema.is_none() && args.model.model.is_none();
    if untold {
        let file = args.data.as_deref().unwrap_or(Path::new("FILE")).display();
        return Err(Usage {
            problem: format!("there is no schema for the columns of {file}"),
            help: format!(
                "pass --schema FILE, or --model with a model that tyrex wrote; `tyrex schema infer \
                 {file} --label COLUMN` drafts a schema"
            ),
        });
    }
    if args.model.import.model_class_number.is_some() {
        return Err(Usage {
            problem: "the service does not support --model-class-number".to_owned(),
            help: "name the class with --model-class".to_owned(),
        });
    }
    let LimitArgs { max_body, max_upload, max_bodies, .. } = args.limits;
    let largest = max_body.max(max_upload);
    if max_bodies < largest {
        return Err(Usage {
            problem: format!(
                "--max-bodies {max_bodies} leaves no room for a body of {largest} MiB"
            ),
            help: "raise it, or lower --max-body and --max-upload".to_owned(),
        });
    }
    Ok(())
}

/// Starts the service. The address is bound first, so that an address in use is reported before a
/// model is trained.
async fn start(
    context: &Context<'_>,
    args: &ServeArgs,
) -> anyhow::Result<(Service, State, Serving)> {
    let config = config(args);
    let database = Database::open(&address(args.ledger.as_deref())).await?;
    let service = Service::bind(&config, &database).await?;
    let usual = EngineConfig::default();
    let engine = EngineConfig {
        threads: context.global.threads.map_or(usual.threads, usize::from),
        questions: args.limits.queue.get(),
        dataset: args.dataset.clone(),
        data_dir: context.global.data_dir.clone(),
        ensemble: args.models,
        change: retrain::change(&args.change)?,
        training: train::changes(&args.training, &TrainParams::default())?,
        ..usual
    };
    let engine = Engine::start(engine, database.clone(), Ledger::new(database.clone()));
    let engine = engine.await.map_err(cause)?;
    if args.data.is_some() || args.model.model.is_some() {
        let import = &args.model.import;
        let own = OwnModel {
            model: args.model.model.clone(),
            data: args.data.clone(),
            reference: args.reference.clone(),
            schema: args.schema.clone(),
            class: import.model_class.clone(),
            output: import.model_output.clone(),
            logits: import.model_logits,
            ensemble: args.ensemble.clone(),
        };
        engine.open(own).await.map_err(cause)?;
    }
    let serving = Serving {
        url: service.url(),
        model: engine.loaded(),
        ledger: database.address().to_owned(),
        results: args.results.as_deref().map(shown),
        tokens: config.demands_tokens(),
    };
    Ok((service, AppState::new(config, database, engine)?, serving))
}

/// The root error, for which a remedy may be known.
fn cause(error: engine::Error) -> anyhow::Error {
    match error {
        engine::Error::Library(error) => error.into(),
        engine::Error::Database(error) => error.into(),
        engine::Error::Field { field, problem } if field == "ensemble" => Usage {
            problem,
            help: "pass --models 0 to serve the model without retrained models, or --ensemble \
                   FOLDER with models that you retrained"
                .to_owned(),
        }
        .into(),
        other => other.into(),
    }
}

/// The database of the arguments, or the default.
pub(super) fn address(typed: Option<&str>) -> String {
    ledger::address(typed).unwrap_or_else(|| "tyrex.db".to_owned())
}

/// The arguments as a configuration of the service.
fn config(args: &ServeArgs) -> Config {
    let ReachArgs { address, port, require_tokens, tls_cert, tls_key, .. } = &args.reach;
    let address = port.map_or(*address, |port| SocketAddr::new(address.ip(), port));
    let tls = tls_cert.clone().zip(tls_key.clone());
    Config {
        address,
        require_tokens: *require_tokens,
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
        results: args.results.clone(),
        limits: limits(&args.limits),
    }
}

fn limits(args: &LimitArgs) -> Limits {
    Limits {
        body: args.max_body as usize * MEBIBYTE,
        upload: args.max_upload as usize * MEBIBYTE,
        bodies: args.max_bodies as usize * MEBIBYTE,
        rows: args.max_rows.get(),
        rows_at_once: args.max_rows_at_once.get(),
        time: args.timeout,
        connections: args.connections.get(),
        headers: args.header_timeout,
        idle: args.idle_timeout,
        rate: args.rate,
        drain: args.drain,
    }
}

/// The report of `serve` once it answers.
#[derive(Debug, Serialize)]
struct Serving {
    url: String,
    model: Option<Loaded>,
    ledger: String,
    results: Option<String>,
    tokens: bool,
}

impl Report for Serving {
    const COMMAND: &'static str = "serve";

    fn page(&self, page: &mut Page) {
        page.title(&format!("The page is at {}", self.url));
        let model = self.model.as_ref().map_or_else(
            || "none yet: upload one on the page or with POST /v1/models".to_owned(),
            |model| {
                let (rows, rejected) = (counted(model.rows, "row"), model.rejected);
                let again = counted(model.retrained, "retrained model");
                match model.retrained {
                    0 => format!("{}, {rows}, {rejected} rejected", model.name),
                    _ => {
                        format!("{}, {rows}, {rejected} rejected; {again} in a moment", model.name)
                    }
                }
            },
        );
        let callers = if self.tokens {
            "holders of a token"
        } else {
            "anyone on this machine, without a token"
        };
        page.pairs(&[
            ("model", model),
            ("state", format!("kept in {}", self.ledger)),
            ("results", self.results.clone().unwrap_or_else(|| "a small built-in suite".into())),
            ("callers", callers.to_owned()),
            ("API", format!("{}openapi.json", self.url)),
            ("end", "Ctrl-C".to_owned()),
        ]);
    }
}
