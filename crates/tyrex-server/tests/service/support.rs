//! A running service, and a client that sends whatever it is told to.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot;
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::Ledger;
use tyrex_server::AppState;
use tyrex_server::access::{NewToken, Role, Tokens};
use tyrex_server::config::Config;
use tyrex_server::engine::{Engine, EngineConfig};
use tyrex_server::serve::{Error, Service};

/// How long a client waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// A service in this process, with a database of its own.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Arc<Engine>,
    _folder: tempfile::TempDir,
    tokens: Tokens,
    runtime: tokio::runtime::Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

/// The settings of a service that differ from the defaults.
#[derive(Default)]
pub(crate) struct Setting {
    pub(crate) config: Config,
    pub(crate) engine: EngineConfig,
    /// A token of each role is made before the start.
    pub(crate) tokens: bool,
}

/// A service without a model and with the usual limits, but for what the function changes.
pub(crate) fn start(change: impl FnOnce(&mut Setting)) -> Server {
    let mut setting = Setting::default();
    setting.config.address.set_port(0);
    setting.engine.threads = 2;
    setting.engine.ensemble = 0;
    change(&mut setting);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tyrex.db").to_str().expect("a name").to_owned();
    let (started, starting) = std::sync::mpsc::channel();
    let (end, ended) = oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let Setting { config, engine, tokens: wanted } = setting;
            let database = Database::open(&file).await.expect("a database");
            let tokens = Tokens::new(database.clone());
            if wanted {
                tokens.create(Role::Admin, "first", None).await.expect("a token");
            }
            let service = Service::bind(&config, &database).await?;
            let ledger = Ledger::new(database.clone());
            let engine = Engine::start(engine, database.clone(), ledger).await.expect("an engine");
            let state = AppState::new(config, database, engine.clone()).expect("a state");
            let handle = tokio::runtime::Handle::current();
            started.send((service.address(), engine, tokens, handle)).expect("somebody waits");
            service.run(state, async { ended.await.unwrap_or_default() }).await
        })
    });
    let (address, engine, tokens, runtime) = starting.recv().expect("the service starts");
    let (end, thread) = (Some(end), Some(thread));
    Server { address, engine, _folder: folder, tokens, runtime, end, thread }
}

/// One service for all tests that need a model and change nothing.
pub(crate) fn german() -> &'static Server {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(|| start(|setting| setting.engine.dataset = Some("german".to_owned())))
}

impl Server {
    /// Tells the service to end.
    pub(crate) fn end(&mut self) {
        if let Some(end) = self.end.take() {
            end.send(()).expect("the service listens");
        }
    }

    /// Waits until it has ended.
    pub(crate) fn wait(mut self) -> Result<(), Error> {
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("no panic")
    }

    /// Makes a token.
    pub(crate) fn token(&self, role: Role, lifetime: Option<Duration>) -> NewToken {
        let made = self.runtime.block_on(self.tokens.create(role, "test", lifetime));
        made.expect("a token")
    }

    /// Revokes a token.
    pub(crate) fn revoke(&self, id: &str) {
        self.runtime.block_on(self.tokens.revoke(id)).expect("it is revoked");
    }

    /// A connection.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time");
        stream
    }

    /// Sends bytes and reads all that is answered, until the service closes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        // The service may refuse before it has read everything.
        let _ = stream.write_all(bytes);
        until_closed(&mut stream)
    }

    /// Sends a request on a connection of its own.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            text += &format!("host: {}\r\n", self.address);
        }
        if !body.is_empty() {
            text += &format!("content-length: {}\r\n", body.len());
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(body);
        Answer::read(&self.raw(&bytes)).unwrap_or_else(|| panic!("{method} {path}: no answer"))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        let json = [("content-type", "application/json")];
        self.send("POST", path, &json, body.to_string().as_bytes())
    }
}

/// All that comes until the other side closes.
pub(crate) fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    // A connection that is reset has ended, too.
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The answer of the service.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Reads the first answer of these bytes, and takes the rest for its body.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let header = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_ascii_lowercase(), value.to_owned()))
        };
        let headers = lines.map(header).collect::<Option<_>>()?;
        Some(Self { status, headers, body: bytes[end + 4..].to_vec() })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Checks that this is a problem of the status, in its own form; what it says.
    pub(crate) fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let document = self.json();
        assert_eq!(document["status"], status);
        assert_eq!(document["type"], "about:blank");
        assert!(document["title"].is_string());
        assert!(self.header("x-request-id").is_some());
        document["detail"].as_str().expect("a detail").to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
