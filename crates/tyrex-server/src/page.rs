//! The web page: the files of `page/`, inside the program.
//!
//! Each file has its own route. There is no path to take apart.

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

/// A file of the page.
struct File {
    route: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";

/// The files, and where each is found.
const FILES: &[File] =
    &[File { route: "/", kind: HTML, bytes: include_bytes!("../page/index.html") }];

/// The routes of the page.
pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, file| {
        let mark = format!("\"{}\"", hex(&Sha256::digest(file.bytes)[..16]));
        router.route(file.route, get(async move |request: Request| answer(file, &mark, &request)))
    })
}

/// The file, or word that the browser's copy is still good.
fn answer(file: &File, mark: &str, request: &Request) -> Response {
    // A browser keeps the file and asks each time whether it has changed.
    let headers = [(ETAG, mark), (CACHE_CONTROL, "no-cache")];
    let known = request.headers().get_all(IF_NONE_MATCH).iter().any(|known| known == mark);
    if known {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, [(CONTENT_TYPE, file.kind)], Bytes::from_static(file.bytes)).into_response()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
