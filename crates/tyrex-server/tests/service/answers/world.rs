//! A service to ask: the German data, a model and six retrained ones.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::Ledger;
use tyrex_server::config::Config;
use tyrex_server::engine::{Engine, EngineConfig};
use tyrex_server::{AppState, app};

/// Retrained models of every world.
pub(crate) const MODELS: usize = 6;

/// A database in which all models are trained, to begin from.
static TRAINED: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("trained.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let world = World::open(&file, config()).await;
        world.trained().await;
        world.close().await;
    });
    (folder, file)
});

pub(crate) fn config() -> EngineConfig {
    EngineConfig {
        threads: 2,
        dataset: Some("german".to_owned()),
        ensemble: MODELS,
        ..EngineConfig::default()
    }
}

/// The service, and where it lives.
pub(crate) struct World {
    pub(crate) app: Router,
    pub(crate) engine: Arc<Engine>,
    pub(crate) ledger: Ledger,
    database: Database,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The document of an answer that is a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text());
        self.json()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A folder with a copy of the trained database.
pub(crate) fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("tyrex.db");
    let (_, trained) = &*TRAINED;
    std::fs::copy(trained, &file).unwrap();
    (folder, file)
}

/// A trained service of its own, and the folder it lives in.
pub(crate) async fn world() -> (TempDir, World) {
    world_with(config()).await
}

pub(crate) async fn world_with(config: EngineConfig) -> (TempDir, World) {
    let (folder, file) = tokio::task::spawn_blocking(folder).await.unwrap();
    let world = World::open(&file, config).await;
    world.trained().await;
    (folder, world)
}

impl World {
    pub(crate) async fn open(file: &Path, config: EngineConfig) -> Self {
        Self::open_database(&file.display().to_string(), config).await
    }

    pub(crate) async fn open_database(address: &str, config: EngineConfig) -> Self {
        let database = Database::open(address).await.unwrap();
        let ledger = Ledger::new(database.clone());
        let engine = Engine::start(config, database.clone(), ledger.clone()).await.unwrap();
        let state =
            AppState::new(Config::default(), database.clone(), Arc::clone(&engine)).unwrap();
        Self { app: app(state), engine, ledger, database }
    }

    /// Waits until the retrained models are there.
    pub(crate) async fn trained(&self) {
        let ready = async || {
            let models = self.get("/v1/models").await.ok();
            models["models"][0]["ensemble"]["state"] == "ready"
        };
        let started = Instant::now();
        while !ready().await {
            assert!(started.elapsed() < Duration::from_mins(2), "not trained in time");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends the service as a signal would.
    pub(crate) async fn close(self) {
        self.engine.park().await;
        self.database.close().await;
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        Answer { status, headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(request("GET", path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(request("DELETE", path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, &body.to_string()).await
    }

    pub(crate) async fn post_text(&self, path: &str, body: &str) -> Answer {
        let request = request("POST", path).header("content-type", "application/json");
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    /// Sends parts of a form: name, file name, bytes.
    pub(crate) async fn post_form(
        &self,
        path: &str,
        parts: &[(&str, Option<&str>, &[u8])],
        accept: &str,
    ) -> Answer {
        let mut body = Vec::new();
        for (name, file, bytes) in parts {
            let file = file.map(|file| format!("; filename=\"{file}\"")).unwrap_or_default();
            body.extend_from_slice(
                format!("--cut\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n")
                    .as_bytes(),
            );
            body.extend_from_slice(bytes);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--cut--\r\n");
        let request = request("POST", path)
            .header("content-type", "multipart/form-data; boundary=cut")
            .header("accept", accept);
        self.send(request.body(Body::from(body)).unwrap()).await
    }

    /// The rows that the model rejects, as they are sent back.
    pub(crate) async fn rejected(&self, count: usize) -> Vec<(usize, Value)> {
        let list = self.get(&format!("/v1/models/german/applicants?limit={count}")).await.ok();
        let row = |each: &Value| {
            let number = usize::try_from(each["row"].as_u64().unwrap()).unwrap();
            (number, each["features"].clone())
        };
        list["applicants"].as_array().unwrap().iter().map(row).collect()
    }

    /// Waits for the end of a job.
    pub(crate) async fn finished(&self, id: &str) -> Value {
        let started = Instant::now();
        loop {
            let job = self.get(&format!("/v1/jobs/{id}")).await.ok();
            if ["done", "failed", "cancelled", "parked"].contains(&job["state"].as_str().unwrap()) {
                return job;
            }
            assert!(started.elapsed() < Duration::from_mins(2), "{job}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn request(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path).header("host", "localhost:8080")
}

/// The row of the paper's example, in words.
pub(crate) fn indices(rows: &[(usize, Value)]) -> Value {
    json!(rows.iter().map(|(row, _)| row).collect::<Vec<_>>())
}
