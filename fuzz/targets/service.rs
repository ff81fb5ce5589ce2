//! Sends arbitrary requests to the service. The first line is the method, the path with its query,
//! and the type of the body; the rest is the body.

use std::fs;
use std::panic;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::Ledger;
use tyrex_server::config::Config;
use tyrex_server::engine::{Engine, EngineConfig, OwnModel};
use tyrex_server::{AppState, app};

use crate::loans;

/// Time of a request: most of what can be asked takes longer, and is cancelled.
const TIME: Duration = Duration::from_millis(300);

struct Service {
    app: Router,
    runtime: Runtime,
    _folder: TempDir,
}

static PANIC: Mutex<String> = Mutex::new(String::new());

fn service() -> &'static Service {
    static SERVICE: OnceLock<Service> = OnceLock::new();
    SERVICE.get_or_init(|| {
        let folder = crate::ledger::folder();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let app = runtime.block_on(start(&folder));
        // The readers of Arrow may panic on bad input; the service answers all the same. A panic
        // that it does not expect becomes the status 500.
        panic::set_hook(Box::new(|said| {
            *PANIC.lock().unwrap_or_else(|lock| lock.into_inner()) = said.to_string();
        }));
        Service { app, runtime, _folder: folder }
    })
}

async fn start(folder: &TempDir) -> Router {
    let path = |name: &str| folder.path().join(name);
    fs::write(path("loans.csv"), loans::ROWS).expect("rows");
    fs::write(path("loans.toml"), loans::SCHEMA).expect("a schema");
    let database = Database::open(&path("tyrex.db").display().to_string()).await;
    let database = database.expect("a database");
    let mut config = Config::default();
    config.limits.time = TIME;
    let training = serde_json::json!({"hidden": [4], "epochs": 20, "early-stopping": null});
    let engine = EngineConfig {
        threads: 1,
        ensemble: 0,
        jobs: 0,
        training: training.as_object().cloned().unwrap_or_default(),
        ..EngineConfig::default()
    };
    let ledger = Ledger::new(database.clone());
    let engine = Engine::start(engine, database.clone(), ledger).await.expect("an engine");
    let (data, schema) = (Some(path("loans.csv")), Some(path("loans.toml")));
    let own = OwnModel { data, schema, ..OwnModel::default() };
    engine.open(own).await.expect("a model");
    app(AppState::new(config, database, engine).expect("a state"))
}

pub fn answer(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let Ok(head) = std::str::from_utf8(&data[..end]) else { return };
    let mut words = head.split(' ');
    let [Some(method), Some(path), Some(kind)] = [words.next(), words.next(), words.next()] else {
        return;
    };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.header("host", "127.0.0.1:8080").header("accept", kind);
    let Ok(request) = request.body(Body::from(data[end + 1..].to_vec())) else { return };
    let Service { app, runtime, .. } = service();
    let status = runtime.block_on(async {
        let response = app.clone().oneshot(request).await.expect("an answer");
        let status = response.status();
        // Events of a job have no end.
        if !path.contains("/events") {
            let _ = axum::body::to_bytes(response.into_body(), 1 << 24).await;
        }
        status
    });
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        eprintln!("{head}: {status}, {}", PANIC.lock().expect("a text"));
        std::process::abort();
    }
}
