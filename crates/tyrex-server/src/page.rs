//! The web page: the files of `page/`, compiled in.
//!
//! Each file has its own route, so no path of a request is parsed.

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

use tyrex::file::hex;

/// A file of the page.
struct File {
    name: &'static str,
    bytes: &'static [u8],
}

/// Files by name, as they stand in `page/`.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(File { name: $name, bytes: include_bytes!(concat!("../page/", $name)) }),*]
    };
}

const FILES: &[File] = files![
    "index.html",
    "style.css",
    "letter.css",
    "icon.svg",
    "open.svg",
    "closed.svg",
    "main.js",
    "api.js",
    "dom.js",
    "format.js",
    "words.js",
    "charts.js",
    "map.js",
    "applicant.js",
    "advice.js",
    "letter.js",
    "update.js",
    "playground.js",
    "results.js",
];

/// The file of the page itself.
const INDEX: &str = "index.html";

/// The routes of the page.
pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, file| {
        let mark = format!("\"{}\"", hex(&Sha256::digest(file.bytes)[..16]));
        let route = if file.name == INDEX { "/".to_owned() } else { format!("/{}", file.name) };
        router.route(&route, get(async move |request: Request| answer(file, &mark, &request)))
    })
}

/// The file, or status 304 if the browser's copy is current.
fn answer(file: &File, mark: &str, request: &Request) -> Response {
    // A browser keeps the file and asks each time whether it has changed.
    let headers = [(ETAG, mark), (CACHE_CONTROL, "no-cache")];
    let known = request.headers().get_all(IF_NONE_MATCH).iter().any(|known| known == mark);
    if known {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, [(CONTENT_TYPE, kind(file.name))], Bytes::from_static(file.bytes)).into_response()
}

/// The media type of a file, by the end of its name.
fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_served_with_its_type() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let in_folder: BTreeSet<String> = std::fs::read_dir(folder)
            .expect("the folder")
            .map(|entry| entry.expect("a file").file_name().into_string().expect("a name"))
            .collect();
        let listed: BTreeSet<String> = FILES.iter().map(|file| file.name.to_owned()).collect();
        assert_eq!(listed, in_folder);
        for file in FILES {
            assert_ne!(kind(file.name), "application/octet-stream", "{}", file.name);
        }
    }
}
