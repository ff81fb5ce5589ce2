//! Downloads that resume after an interrupted connection.
//!
//! The body is written to a `.part` file, with the server's validator (`ETag` or `Last-Modified`)
//! beside it. The next attempt, in this run or a later one, requests only the rest (`Range`), on
//! condition that the file has not changed (`If-Range`). If the server ignores ranges or the file
//! has changed, the server sends the whole file and the part is rewritten.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ureq::http::{HeaderMap, Response, header};
use ureq::{Agent, Body};

use crate::error::{Error, Result};

/// The options of a download.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// The total number of attempts; at least 1.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles each time.
    pub first_wait: Duration,
    /// The timeout while connecting, waiting for the answer or receiving.
    pub timeout: Duration,
    /// The most bytes a file may have.
    pub limit: u64,
    /// The address of a mirror with the same paths, used instead of every home's.
    pub mirror: Option<String>,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_wait: Duration::from_millis(500),
            timeout: Duration::from_secs(30),
            limit: 64 << 20,
            mirror: None,
        }
    }
}

impl FetchOptions {
    /// The default options, with the mirror in `$TYREX_DATA_MIRROR` if it is set.
    pub fn from_environment() -> Self {
        let mirror = std::env::var("TYREX_DATA_MIRROR").ok().filter(|mirror| !mirror.is_empty());
        Self { mirror, ..Self::default() }
    }

    /// Where to find the file `path` of a home.
    pub(super) fn address(&self, home: &str, path: &str) -> String {
        format!("{}/{path}", self.mirror.as_deref().unwrap_or(home).trim_end_matches('/'))
    }
}

/// The progress of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchProgress<'a> {
    /// The address.
    pub url: &'a str,
    /// Bytes on disk, those of earlier attempts included.
    pub received: u64,
    /// Bytes of the whole file, if the server reports it.
    pub total: Option<u64>,
}

/// Called as bytes arrive and while waiting; `Break` cancels, and the received bytes are kept.
pub(crate) type OnProgress<'a> = &'a mut dyn FnMut(FetchProgress<'_>) -> ControlFlow<()>;

/// Downloads `url` into `part`. If that fails, the received bytes are kept for the next call.
pub(super) fn download(
    url: &str,
    part: &Path,
    options: &FetchOptions,
    on_progress: OnProgress<'_>,
) -> Result<Part> {
    let agent = agent(url, options);
    let part = Part::open(part, url)?;
    let mut transfer = Transfer { url, part, total: None, options, on_progress, agent };
    match transfer.run() {
        Ok(()) => Ok(transfer.part),
        Err(error) => {
            if transfer.part.length == 0 {
                transfer.part.discard()?;
            }
            Err(error)
        }
    }
}

fn agent(url: &str, options: &FetchOptions) -> Agent {
    Agent::config_builder()
        .https_only(url.starts_with("https://"))
        .http_status_as_error(false)
        .accept_encoding("identity")
        .user_agent(concat!("tyrex/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(options.timeout))
        .timeout_recv_response(Some(options.timeout))
        .timeout_per_read(Some(options.timeout))
        .build()
        .into()
}

enum Failure {
    /// Another attempt may succeed.
    Passing(String),
    /// Another attempt would fail in the same way.
    Final(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

struct Transfer<'a> {
    url: &'a str,
    part: Part,
    total: Option<u64>,
    options: &'a FetchOptions,
    on_progress: OnProgress<'a>,
    agent: Agent,
}

impl Transfer<'_> {
    fn run(&mut self) -> Result<()> {
        let mut wait = self.options.first_wait;
        let mut attempt = 1;
        loop {
            match self.attempt() {
                Ok(()) => return Ok(()),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing(problem)) if attempt >= self.options.attempts => {
                    return Err(self.error(format!("{problem} (attempt {attempt}, the last)")));
                }
                Err(Failure::Passing(_)) => self.pause(wait)?,
            }
            attempt += 1;
            wait = wait.saturating_mul(2);
        }
    }

    fn attempt(&mut self) -> Result<(), Failure> {
        let mut request = self.agent.get(self.url);
        if let Some(validator) = self.part.validator.as_ref().filter(|_| self.part.length > 0) {
            request = request
                .header(header::RANGE, format!("bytes={}-", self.part.length))
                .header(header::IF_RANGE, validator);
        }
        let response = request.call().map_err(|error| self.judge(&error))?;
        match response.status().as_u16() {
            200 => {
                self.total = response.body().content_length();
                self.part.restart(self.url, validator(response.headers()))?;
            }
            206 if self.continues(response.headers()) => {}
            416 if whole_length(response.headers()) == Some(self.part.length) => return Ok(()),
            // The server sent or refused a range that does not fit the bytes on disk.
            206 | 416 => {
                self.part.restart(self.url, None)?;
                return Err(Failure::Passing("the file on the server has changed".into()));
            }
            status @ (408 | 429 | 500..=599) => {
                return Err(Failure::Passing(format!("the server answered {status}")));
            }
            status => {
                return Err(Failure::Final(self.error(format!("the server answered {status}"))));
            }
        }
        self.receive(response)
    }

    /// Whether a partial answer starts where the part ends, and is of the same file.
    fn continues(&mut self, headers: &HeaderMap) -> bool {
        let same_file = validator(headers).is_none_or(|now| Some(now) == self.part.validator);
        self.total = whole_length(headers);
        first_byte(headers) == Some(self.part.length) && same_file
    }

    fn receive(&mut self, response: Response<Body>) -> Result<(), Failure> {
        self.check_limit(self.total.unwrap_or_default())?;
        let mut reader = response.into_body().into_with_config().limit(u64::MAX).reader();
        let mut buffer = [0; 1 << 14];
        loop {
            self.report()?;
            let count = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(Failure::Passing(format!("connection interrupted: {error}")));
                }
            };
            self.check_limit(self.part.length + count as u64)?;
            self.part.append(&buffer[..count])?;
        }
        match self.total {
            Some(total) if total != self.part.length => Err(Failure::Passing(format!(
                "connection interrupted after {} of {total} bytes",
                self.part.length
            ))),
            _ => Ok(()),
        }
    }

    fn check_limit(&mut self, length: u64) -> Result<()> {
        if length <= self.options.limit {
            return Ok(());
        }
        self.part.discard()?;
        Err(self.error(format!("the file is larger than {} bytes, the limit", self.options.limit)))
    }

    fn report(&mut self) -> Result<()> {
        let progress =
            FetchProgress { url: self.url, received: self.part.length, total: self.total };
        match (self.on_progress)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(self.error("cancelled; run it again to continue".into())),
        }
    }

    /// Waits, and checks for cancellation.
    fn pause(&mut self, wait: Duration) -> Result<()> {
        const SLICE: Duration = Duration::from_millis(100);
        let start = Instant::now();
        loop {
            self.report()?;
            match wait.saturating_sub(start.elapsed()) {
                Duration::ZERO => return Ok(()),
                left => thread::sleep(left.min(SLICE)),
            }
        }
    }

    fn judge(&self, error: &ureq::Error) -> Failure {
        use ureq::Error as E;
        match error {
            E::Io(_) | E::Timeout(_) | E::ConnectionFailed | E::HostNotFound | E::Protocol(_) => {
                Failure::Passing(error.to_string())
            }
            _ => Failure::Final(self.error(error.to_string())),
        }
    }

    fn error(&self, problem: String) -> Error {
        Error::Download { url: self.url.to_owned(), problem }
    }
}

/// The validator of this version of the file, for `If-Range`: a strong `ETag`, or else the date.
fn validator(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    text(header::ETAG).filter(|tag| !tag.starts_with("W/")).or_else(|| text(header::LAST_MODIFIED))
}

/// The first byte, 10, from `Content-Range: bytes 10-99/100`.
fn first_byte(headers: &HeaderMap) -> Option<u64> {
    content_range(headers)?.0.split_once('-')?.0.trim().parse().ok()
}

/// The length, 100, from `Content-Range: bytes 10-99/100`, or `bytes */100` for a bad range.
fn whole_length(headers: &HeaderMap) -> Option<u64> {
    content_range(headers)?.1.trim().parse().ok()
}

fn content_range(headers: &HeaderMap) -> Option<(&str, &str)> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    text.strip_prefix("bytes ")?.split_once('/')
}

/// A partial file: the received bytes, and the version they belong to.
#[derive(Debug)]
pub(super) struct Part {
    path: PathBuf,
    file: File,
    length: u64,
    validator: Option<String>,
}

impl Part {
    /// Opens the part, or starts it. An earlier part is kept only if it came from the same address
    /// and its version is known. The part is locked.
    fn open(path: &Path, url: &str) -> Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(Error::io("open", path))?;
        file.try_lock().map_err(|_| Error::Download {
            url: url.to_owned(),
            problem: format!("{} is in use by another download", path.display()),
        })?;
        let validator = fs::read_to_string(Self::version_path(path)).ok().and_then(|text| {
            text.split_once('\n').filter(|(from, _)| *from == url).map(|(_, tag)| tag.to_owned())
        });
        let length = file.seek(SeekFrom::End(0)).map_err(Error::io("read", path))?;
        let mut part = Self { path: path.to_owned(), file, length, validator };
        if part.validator.is_none() {
            part.restart(url, None)?;
        }
        Ok(part)
    }

    fn version_path(path: &Path) -> PathBuf {
        path.with_extension("version.part")
    }

    fn restart(&mut self, url: &str, validator: Option<String>) -> Result<()> {
        let version = Self::version_path(&self.path);
        remove(&version)?;
        self.file.set_len(0).map_err(Error::io("write", &self.path))?;
        self.file.rewind().map_err(Error::io("write", &self.path))?;
        self.length = 0;
        self.validator = validator;
        if let Some(tag) = &self.validator {
            fs::write(&version, format!("{url}\n{tag}")).map_err(Error::io("write", &version))?;
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(Error::io("write", &self.path))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// All received bytes.
    pub(super) fn content(&mut self) -> Result<Vec<u8>> {
        let mut content = Vec::with_capacity(self.length as usize);
        self.file.rewind().map_err(Error::io("read", &self.path))?;
        self.file.read_to_end(&mut content).map_err(Error::io("read", &self.path))?;
        Ok(content)
    }

    /// Removes the part.
    pub(super) fn discard(&mut self) -> Result<()> {
        remove(&Self::version_path(&self.path))?;
        remove(&self.path)
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
