//! Finished pieces of work in a folder, so that an interrupted run continues where it stopped.
//!
//! A piece is a file that is written atomically. Its name contains a digest of all its inputs; a
//! piece of other work, or of another version, is another file.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use tyrex::error::{Error, Result};
use tyrex::file::{Overwrite, hex, write_whole};

/// The layout of pieces and results.
pub(super) const FORMAT_VERSION: u32 = 1;

/// A folder of pieces.
#[derive(Debug, Clone)]
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// A subfolder, created if it does not exist.
    pub(super) fn folder(&self, path: &Path) -> Result<PathBuf> {
        let folder = self.folder.join(path);
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        Ok(folder)
    }

    /// The stored piece for these inputs, or one computed now and stored.
    pub(super) fn piece<T: Serialize + DeserializeOwned>(
        &self,
        experiment: &str,
        name: &str,
        inputs: &impl Serialize,
        compute: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let folder = self.folder(&Path::new("pieces").join(experiment))?;
        let path = folder.join(format!("{}-{}.json", file_name(name), digest(inputs)?));
        // A piece that cannot be read, of another version or damaged, is computed again.
        if let Ok(bytes) = std::fs::read(&path)
            && let Ok(piece) = serde_json::from_slice(&bytes)
        {
            return Ok(piece);
        }
        let piece = compute()?;
        write_json(&path, &piece)?;
        Ok(piece)
    }
}

/// Writes a document atomically, replacing the old one.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value).map_err(|error| unwritable(path, &error))?;
    write_whole(path, Overwrite::Force, |out| writeln!(out, "{text}"))
}

fn unwritable(path: &Path, error: &serde_json::Error) -> Error {
    Error::io("write", path)(std::io::Error::other(error.to_string()))
}

/// A digest of all inputs, sixteen letters.
pub(super) fn digest(inputs: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(&(FORMAT_VERSION, env!("CARGO_PKG_VERSION"), inputs))
        .map_err(|error| unwritable(Path::new("pieces"), &error))?;
    Ok(hex(&Sha256::digest(text.as_bytes())[..8]))
}

/// A name as part of a file name: letters, digits and hyphens.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    name.chars().map(plain).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_computed_once_for_the_same_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let get = |input: u32, value: f64| store.piece("one", "a/b", &input, || Ok(value)).unwrap();
        assert_eq!(get(1, 0.1), 0.1);
        assert_eq!(get(1, 0.2), 0.1);
        assert_eq!(get(2, 0.2), 0.2);
    }

    #[test]
    fn a_damaged_piece_is_computed_again_and_an_error_keeps_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let failed: Result<f64> =
            store.piece("one", "a", &1, || Err(Error::Cancelled("stopped".to_owned())));
        assert!(failed.is_err());
        let pieces = folder.path().join("pieces/one");
        assert_eq!(std::fs::read_dir(&pieces).unwrap().count(), 0);
        store.piece("one", "a", &1, || Ok(0.5)).unwrap();
        let path = std::fs::read_dir(&pieces).unwrap().next().unwrap().unwrap().path();
        std::fs::write(&path, "0.").unwrap();
        assert_eq!(store.piece("one", "a", &1, || Ok(0.7)).unwrap(), 0.7);
    }
}
