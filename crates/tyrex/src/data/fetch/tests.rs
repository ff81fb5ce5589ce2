//! Against a real server on this machine's loopback address.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;

/// How the server fails at its next request.
enum Trick {
    /// Closes the connection after so many bytes of the body.
    Cut(usize),
    /// Answers with a status and nothing else.
    Status(u16),
    /// Says nothing until the other side has gone.
    Silence,
    /// Answers a range request whether or not the file is still the same.
    IgnoreIfRange,
    /// Sends the body without saying how long it is.
    NoLength,
}

struct Site {
    content: Vec<u8>,
    tag: &'static str,
    ranges: bool,
    tricks: VecDeque<Trick>,
    /// For every answer its status and the bytes of its body.
    sent: Vec<(u16, usize)>,
}

struct Server {
    address: String,
    site: Arc<Mutex<Site>>,
}

impl Server {
    fn start(content: &[u8], tricks: impl IntoIterator<Item = Trick>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/file", listener.local_addr().unwrap());
        let site = Arc::new(Mutex::new(Site {
            content: content.to_vec(),
            tag: "\"one\"",
            ranges: true,
            tricks: tricks.into_iter().collect(),
            sent: Vec::new(),
        }));
        let shared = Arc::clone(&site);
        thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that has gone away is not the server's problem.
                let _ = stream.and_then(|stream| shared.lock().unwrap().answer(stream));
            }
        });
        Self { address, site }
    }

    fn change(&self, change: impl FnOnce(&mut Site)) {
        change(&mut self.site.lock().unwrap());
    }

    fn sent(&self) -> Vec<(u16, usize)> {
        self.site.lock().unwrap().sent.clone()
    }
}

impl Site {
    fn answer(&mut self, mut stream: TcpStream) -> std::io::Result<()> {
        let head: Vec<String> = BufReader::new(&stream)
            .lines()
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .collect();
        let header = |name: &str| {
            head.iter().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let trick = self.tricks.pop_front();
        if let Some(Trick::Status(status)) = trick {
            self.sent.push((status, 0));
            return write!(
                stream,
                "HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
        if let Some(Trick::Silence) = trick {
            self.sent.push((0, 0));
            return stream.read(&mut [0]).map(|_| ());
        }
        let same = header("If-Range").is_some_and(|tag| tag == self.tag)
            || matches!(trick, Some(Trick::IgnoreIfRange));
        let start = header("Range")
            .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok())
            .filter(|_| self.ranges && same);
        let total = self.content.len();
        if start.is_some_and(|start| start >= total) {
            self.sent.push((416, 0));
            return write!(
                stream,
                "HTTP/1.1 416 No\r\nContent-Range: bytes */{total}\r\nContent-Length: 0\r\n\
                 Connection: close\r\n\r\n"
            );
        }
        let body = &self.content[start.unwrap_or(0)..];
        let status = if start.is_some() { 206 } else { 200 };
        write!(stream, "HTTP/1.1 {status} OK\r\nETag: {}\r\nConnection: close\r\n", self.tag)?;
        if let Some(start) = start {
            write!(stream, "Content-Range: bytes {start}-{}/{total}\r\n", total - 1)?;
        }
        if !matches!(trick, Some(Trick::NoLength)) {
            write!(stream, "Content-Length: {}\r\n", body.len())?;
        }
        write!(stream, "\r\n")?;
        let length = if let Some(Trick::Cut(length)) = trick { length } else { body.len() };
        self.sent.push((status, length));
        stream.write_all(&body[..length])
    }
}

const CONTENT: &[u8] = &[b'x'; 50_000];

fn quick() -> FetchOptions {
    FetchOptions {
        attempts: 3,
        first_wait: Duration::from_millis(1),
        timeout: Duration::from_millis(500),
        limit: 1 << 20,
        mirror: None,
    }
}

fn go_on(_: FetchProgress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A folder with room for one part, and a look into it.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn part(&self) -> PathBuf {
        self.folder.path().join("file.part")
    }

    fn files(&self) -> usize {
        fs::read_dir(self.folder.path()).unwrap().count()
    }

    fn fetch(&self, server: &Server, options: &FetchOptions) -> Result<Vec<u8>> {
        download(&server.address, &self.part(), options, &mut go_on)?.content()
    }
}

fn problem(result: Result<Vec<u8>>) -> String {
    match result {
        Err(Error::Download { problem, .. }) => problem,
        other => panic!("expected a download error, got {other:?}"),
    }
}

#[test]
fn a_file_arrives_and_progress_is_told() {
    let (server, desk) = (Server::start(CONTENT, []), Desk::new());
    let mut told = Vec::new();
    let mut part = download(&server.address, &desk.part(), &quick(), &mut |progress| {
        told.push((progress.received, progress.total));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(part.content().unwrap(), CONTENT);
    assert_eq!(told.last(), Some(&(50_000, Some(50_000))));
    assert!(told.is_sorted());
    part.discard().unwrap();
    assert_eq!(desk.files(), 0);
}

#[test]
fn after_a_cut_only_the_rest_is_transferred() {
    let (server, desk) = (Server::start(CONTENT, [Trick::Cut(30_000)]), Desk::new());
    assert_eq!(desk.fetch(&server, &quick()).unwrap(), CONTENT);
    assert_eq!(server.sent(), [(200, 30_000), (206, 20_000)]);
}

#[test]
fn a_later_run_goes_on_where_an_earlier_one_ended() {
    let (server, desk) = (Server::start(CONTENT, [Trick::Cut(30_000)]), Desk::new());
    let once = FetchOptions { attempts: 1, ..quick() };
    assert!(problem(desk.fetch(&server, &once)).contains("interrupted"));
    assert_eq!(desk.fetch(&server, &once).unwrap(), CONTENT);
    assert_eq!(server.sent(), [(200, 30_000), (206, 20_000)]);
}

#[test]
fn a_server_without_ranges_sends_everything_again() {
    let (server, desk) = (Server::start(CONTENT, [Trick::Cut(30_000)]), Desk::new());
    server.change(|site| site.ranges = false);
    assert_eq!(desk.fetch(&server, &quick()).unwrap(), CONTENT);
    assert_eq!(server.sent(), [(200, 30_000), (200, 50_000)]);
}

#[test]
fn a_changed_file_is_not_glued_to_the_old_one() {
    for ignores in [false, true] {
        let (server, desk) = (Server::start(CONTENT, [Trick::Cut(30_000)]), Desk::new());
        let once = FetchOptions { attempts: 1, ..quick() };
        assert!(desk.fetch(&server, &once).is_err());
        let new = vec![b'y'; 40_000];
        server.change(|site| {
            site.content.clone_from(&new);
            site.tag = "\"two\"";
            site.tricks.extend(ignores.then_some(Trick::IgnoreIfRange));
        });
        assert_eq!(desk.fetch(&server, &quick()).unwrap(), new);
        assert_eq!(server.sent().last(), Some(&(200, 40_000)), "{ignores}");
    }
}

#[test]
fn a_part_from_another_address_is_not_used() {
    let desk = Desk::new();
    let other = Server::start(&vec![b'y'; 60_000], [Trick::Cut(30_000)]);
    assert!(desk.fetch(&other, &FetchOptions { attempts: 1, ..quick() }).is_err());
    let server = Server::start(CONTENT, []);
    assert_eq!(desk.fetch(&server, &quick()).unwrap(), CONTENT);
    assert_eq!(server.sent(), [(200, 50_000)]);
}

#[test]
fn a_missing_file_is_asked_for_once() {
    let (server, desk) = (Server::start(CONTENT, [Trick::Status(404)]), Desk::new());
    assert!(problem(desk.fetch(&server, &quick())).contains("404"));
    assert_eq!((server.sent().len(), desk.files()), (1, 0));
}

#[test]
fn a_server_in_trouble_is_asked_again() {
    let tricks = [Trick::Status(500), Trick::Status(503)];
    let (server, desk) = (Server::start(CONTENT, tricks), Desk::new());
    assert_eq!(desk.fetch(&server, &quick()).unwrap(), CONTENT);
    assert_eq!(server.sent(), [(500, 0), (503, 0), (200, 50_000)]);
}

#[test]
fn a_silent_server_is_not_waited_for_forever() {
    let (server, desk) = (Server::start(CONTENT, [Trick::Silence, Trick::Silence]), Desk::new());
    let options = FetchOptions { attempts: 2, timeout: Duration::from_millis(100), ..quick() };
    let start = Instant::now();
    assert!(problem(desk.fetch(&server, &options)).contains("timeout"));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(desk.files(), 0);
}

#[test]
fn without_a_network_the_error_says_so_and_nothing_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/file", listener.local_addr().unwrap());
    drop(listener);
    let desk = Desk::new();
    let result = download(&address, &desk.part(), &quick(), &mut go_on).map(|_| Vec::new());
    let problem = problem(result);
    assert!(problem.contains("refused") && problem.contains("attempt 3"), "{problem}");
    assert_eq!(desk.files(), 0);
}

#[test]
fn a_file_over_the_limit_is_refused_with_or_without_its_length() {
    for (tricks, most) in [(vec![], 0), (vec![Trick::NoLength], 40_000)] {
        let (server, desk) = (Server::start(CONTENT, tricks), Desk::new());
        let mut largest = 0;
        let options = FetchOptions { limit: 40_000, ..quick() };
        let result = download(&server.address, &desk.part(), &options, &mut |progress| {
            largest = largest.max(progress.received);
            ControlFlow::Continue(())
        });
        assert!(problem(result.map(|_| Vec::new())).contains("40000"));
        assert!(largest <= most, "{largest}");
        assert_eq!(desk.files(), 0);
    }
}

#[test]
fn cancelling_keeps_what_has_arrived() {
    let (server, desk) = (Server::start(CONTENT, []), Desk::new());
    let mut stop = |progress: FetchProgress<'_>| {
        if progress.received == 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let result = download(&server.address, &desk.part(), &quick(), &mut stop);
    assert!(problem(result.map(|_| Vec::new())).contains("cancelled"));
    let kept = fs::metadata(desk.part()).unwrap().len() as usize;
    assert!(0 < kept && kept < CONTENT.len());
    assert_eq!(desk.fetch(&server, &quick()).unwrap(), CONTENT);
    assert_eq!(server.sent()[1], (206, CONTENT.len() - kept));
}

#[test]
fn two_downloads_of_one_file_do_not_mix() {
    let (server, desk) = (Server::start(CONTENT, []), Desk::new());
    let first = download(&server.address, &desk.part(), &quick(), &mut go_on).unwrap();
    assert!(problem(desk.fetch(&server, &quick())).contains("in use"));
    drop(first);
    assert_eq!(desk.fetch(&server, &quick()).unwrap(), CONTENT);
}

#[test]
fn a_complete_part_is_not_transferred_again() {
    let (server, desk) = (Server::start(CONTENT, []), Desk::new());
    drop(download(&server.address, &desk.part(), &quick(), &mut go_on).unwrap());
    assert_eq!(desk.fetch(&server, &quick()).unwrap(), CONTENT);
    assert_eq!(server.sent(), [(200, 50_000), (416, 0)]);
}

#[test]
fn an_address_without_sense_is_an_error() {
    let desk = Desk::new();
    for address in ["", "nowhere", "ftp://127.0.0.1/file", "http://"] {
        let result = download(address, &desk.part(), &quick(), &mut go_on);
        assert!(matches!(result, Err(Error::Download { .. })), "{address}");
        assert_eq!(desk.files(), 0);
    }
}
