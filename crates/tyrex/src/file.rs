//! Writing a file without losing anything.
//!
//! The bytes go to a temporary file in the same folder, and only a complete file is
//! renamed to its name. A full disk, a refused folder or a killed process therefore
//! leaves the old file as it was.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// What to do when the output file is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// Leave it alone and return [`Error::Exists`].
    #[default]
    Refuse,
    /// Replace it, once the new file is complete.
    Force,
}

/// Writes a file in one piece: `write` fills it, and it appears under `path` only when
/// `write` has succeeded and the bytes are on the disk.
///
/// A path that names a pipe or a device, such as `/dev/stdout`, is written to directly:
/// there is nothing to replace.
pub fn write_whole<F>(path: &Path, overwrite: Overwrite, write: F) -> Result<()>
where
    F: FnOnce(&mut dyn Write) -> std::io::Result<()>,
{
    let target = existing_target(path)?;
    match target {
        Target::Stream => {
            let mut out = BufWriter::new(
                File::options().write(true).open(path).map_err(Error::io("write", path))?,
            );
            write(&mut out).and_then(|()| out.flush()).map_err(Error::io("write", path))
        }
        Target::File(_) if overwrite == Overwrite::Refuse => {
            Err(Error::Exists { path: path.to_owned() })
        }
        Target::File(path) | Target::Nothing(path) => replace(&path, overwrite, write),
    }
}

enum Target {
    /// A pipe or a device.
    Stream,
    /// A file, with links followed so that a link stays a link.
    File(PathBuf),
    /// Nothing yet.
    Nothing(PathBuf),
}

fn existing_target(path: &Path) -> Result<Target> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {
            fs::canonicalize(path).map(Target::File).map_err(Error::io("write", path))
        }
        Ok(found) if found.is_dir() => {
            Err(Error::io("write", path)(std::io::Error::from(std::io::ErrorKind::IsADirectory)))
        }
        Ok(_) => Ok(Target::Stream),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(Target::Nothing(path.to_owned()))
        }
        Err(error) => Err(Error::io("write", path)(error)),
    }
}

fn replace<F>(path: &Path, overwrite: Overwrite, write: F) -> Result<()>
where
    F: FnOnce(&mut dyn Write) -> std::io::Result<()>,
{
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Dropped on every early return, and removed with it.
    let temporary = temporary_in(folder).map_err(Error::io("write", path))?;
    let mut out = BufWriter::new(temporary.as_file());
    write(&mut out)
        .and_then(|()| out.flush())
        .and_then(|()| temporary.as_file().sync_all())
        .map_err(Error::io("write", path))?;
    drop(out);
    if let Ok(old) = fs::metadata(path) {
        temporary.as_file().set_permissions(old.permissions()).map_err(Error::io("write", path))?;
    }
    let persisted = match overwrite {
        Overwrite::Force => temporary.persist(path),
        Overwrite::Refuse => temporary.persist_noclobber(path),
    };
    match persisted {
        Ok(_) => Ok(()),
        // Another process was quicker.
        Err(lost) if lost.error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Error::Exists { path: path.to_owned() })
        }
        Err(lost) => Err(Error::io("write", path)(lost.error)),
    }
}

fn temporary_in(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tyrex-").suffix(".part");
    // The usual permissions of a new file, not the private ones of a temporary file.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}
