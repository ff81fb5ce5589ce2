//! Reads the folder of an ensemble in which one file is replaced: the first line names it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;
use tyrex::change::Ensemble;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds/folder");

/// A copy of the folder, and its files.
fn copy() -> &'static (TempDir, Vec<(PathBuf, Vec<u8>)>) {
    static COPY: OnceLock<(TempDir, Vec<(PathBuf, Vec<u8>)>)> = OnceLock::new();
    COPY.get_or_init(|| {
        let folder = crate::ledger::folder();
        let files = fs::read_dir(FOLDER).expect("a folder").map(|file| {
            let file = file.expect("a file");
            let bytes = fs::read(file.path()).expect("its bytes");
            (folder.path().join(file.file_name()), bytes)
        });
        let files: Vec<(PathBuf, Vec<u8>)> = files.collect();
        files.iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("a copy"));
        Ensemble::read(folder.path()).expect("an ensemble");
        (folder, files)
    })
}

pub fn read(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (folder, files) = copy();
    let named = |path: &Path| path.file_name().is_some_and(|name| *name == *as_text(&data[..end]));
    let Some((path, bytes)) = files.iter().find(|(path, _)| named(path)) else { return };
    fs::write(path, &data[end + 1..]).expect("a file");
    let _ = Ensemble::read(folder.path());
    fs::write(path, bytes).expect("a file");
}

fn as_text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
