//! Atomic writes of files, and bounded reads.
//!
//! The bytes go to a temporary file in the same folder, and only a complete file is renamed to its
//! name. A full disk, a read-only folder or a killed process therefore leaves the old file
//! unchanged.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The most bytes of a document that people write, such as a schema.
pub const DOCUMENT_BYTES: u64 = 64 << 20;

/// Reads a whole file of at most `most` bytes. Some files, such as `/dev/zero`, have no end.
pub fn read_within(path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_within(path, most)?.read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    Ok(bytes)
}

/// Opens a file of at most `most` bytes, to read it piece by piece.
pub(crate) fn open_within(path: &Path, most: u64) -> Result<Within> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    Ok(Within { file, left: most, most })
}

/// A file that fails to be read when it has more bytes than allowed.
pub(crate) struct Within {
    file: File,
    left: u64,
    most: u64,
}

impl io::Read for Within {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let problem = format!("the file is larger than {} MiB", self.most >> 20);
            io::Error::new(io::ErrorKind::FileTooLarge, problem)
        })?;
        Ok(read)
    }
}

/// The same for text.
pub fn read_text(path: &Path, most: u64) -> Result<String> {
    let bytes = read_within(path, most)?;
    let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(bytes).map_err(wrong).map_err(Error::io("read", path))
}

/// The treatment of an existing output file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// Keep it and return [`Error::Exists`].
    #[default]
    Refuse,
    /// Replace it, once the new file is complete.
    Force,
}

/// Writes a file in one piece: `write` fills it, and it appears under `path` only when
/// `write` has succeeded and the bytes are on the disk.
pub fn write_whole<F>(path: &Path, overwrite: Overwrite, write: F) -> Result<()>
where
    F: FnOnce(&mut dyn Write) -> std::io::Result<()>,
{
    let mut file = WholeFile::create(path, overwrite)?;
    write(&mut file).map_err(Error::io("write", path))?;
    file.finish()
}

/// A file that is written piece by piece and appears under its name when it is finished.
/// Dropped before that, it leaves nothing.
///
/// A path that names a pipe or a device, such as `/dev/stdout`, is written to directly:
/// there is nothing to replace.
#[derive(Debug)]
pub struct WholeFile {
    /// The name as it was given, for errors.
    path: PathBuf,
    overwrite: Overwrite,
    out: BufWriter<File>,
    /// The name until the file is finished and the one it gets then, with links followed;
    /// `None` for a pipe or a device.
    rename: Option<(tempfile::TempPath, PathBuf)>,
}

impl WholeFile {
    /// Opens the file for writing. An existing one stays as it is until
    /// [`finish`](Self::finish).
    pub(crate) fn create(path: &Path, overwrite: Overwrite) -> Result<Self> {
        let (file, rename) = match existing_target(path)? {
            Target::Stream => {
                let file = File::options().write(true).open(path);
                (file.map_err(Error::io("write", path))?, None)
            }
            Target::File(_) if overwrite == Overwrite::Refuse => {
                return Err(Error::Exists { path: path.to_owned() });
            }
            Target::File(target) | Target::Nothing(target) => {
                let temporary =
                    temporary_in(folder_of(&target)).map_err(Error::io("write", path))?;
                let (file, name) = temporary.into_parts();
                (file, Some((name, target)))
            }
        };
        Ok(Self { path: path.to_owned(), overwrite, out: BufWriter::new(file), rename })
    }

    /// Makes the file appear under its name, once its bytes are on the disk.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.out.flush().map_err(Error::io("write", &self.path))?;
        let Some((temporary, target)) = self.rename else { return Ok(()) };
        let file = self.out.get_ref();
        file.sync_all().map_err(Error::io("write", &self.path))?;
        if let Ok(old) = fs::metadata(&target) {
            file.set_permissions(old.permissions()).map_err(Error::io("write", &self.path))?;
        }
        let persisted = match self.overwrite {
            Overwrite::Force => temporary.persist(&target),
            Overwrite::Refuse => temporary.persist_noclobber(&target),
        };
        match persisted {
            Ok(()) => Ok(()),
            // Another process created the file first.
            Err(lost) if lost.error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(Error::Exists { path: self.path })
            }
            Err(lost) => Err(Error::io("write", &self.path)(lost.error)),
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// Checks whether [`write_whole`] would fail now. Call this before long work whose result is
/// written at the end.
pub fn check_writable(path: &Path, overwrite: Overwrite) -> Result<()> {
    match existing_target(path)? {
        Target::Stream => Ok(()),
        Target::File(_) if overwrite == Overwrite::Refuse => {
            Err(Error::Exists { path: path.to_owned() })
        }
        Target::File(target) | Target::Nothing(target) => {
            temporary_in(folder_of(&target)).map(drop).map_err(Error::io("write", path))
        }
    }
}

/// Bytes as text, two letters each.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
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

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn temporary_in(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    // Opened here, so that it has the usual permissions of a new file and not the private ones of a
    // temporary file, and so that an error does not name a temporary path.
    let open = |path: &Path| File::options().read(true).write(true).create_new(true).open(path);
    tempfile::Builder::new().prefix(".tyrex-").suffix(".part").make_in(folder, open)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn an_existing_file_is_refused_without_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        write_whole(&path, Overwrite::Refuse, |out| out.write_all(b"old")).unwrap();
        let refused = write_whole(&path, Overwrite::Refuse, |out| out.write_all(b"new"));
        assert!(matches!(refused, Err(Error::Exists { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        write_whole(&path, Overwrite::Force, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["out.csv"]);
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        let refused = write_whole(&path, Overwrite::Refuse, |out| {
            fs::write(&path, b"of another process")?;
            out.write_all(b"mine")
        });
        assert!(matches!(refused, Err(Error::Exists { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"of another process");
        assert_eq!(names(folder.path()), ["out.csv"]);
    }

    #[test]
    fn a_failure_half_way_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        fs::write(&path, b"old").unwrap();
        let failed = write_whole(&path, Overwrite::Force, |out| {
            out.write_all(&vec![b'x'; 100_000])?;
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
        });
        assert!(failed.unwrap_err().to_string().contains("no storage space"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["out.csv"]);
    }

    #[test]
    fn a_folder_that_is_not_there_and_a_folder_in_the_way_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &Path| write_whole(path, Overwrite::Force, |out| out.write_all(b"x"));
        let missing = write(&folder.path().join("no/such/out.csv")).unwrap_err().to_string();
        assert!(missing.starts_with("cannot write "), "{missing}");
        let in_the_way = write(folder.path()).unwrap_err().to_string();
        assert!(in_the_way.contains("is a directory"), "{in_the_way}");
        assert!(names(folder.path()).is_empty());
    }

    #[cfg(target_os = "linux")]
    mod linux {
        use super::*;
        use std::os::unix::fs::PermissionsExt as _;
        use std::process::Command;

        #[test]
        fn a_full_device_is_an_error() {
            let full = Path::new("/dev/full");
            let failed = write_whole(full, Overwrite::Force, |out| out.write_all(b"x"));
            assert!(failed.unwrap_err().to_string().starts_with("cannot write /dev/full: "));
            assert!(!fs::metadata(full).unwrap().is_file());
        }

        #[test]
        fn a_link_stays_a_link_and_permissions_stay() {
            let folder = tempfile::tempdir().unwrap();
            let (file, link) = (folder.path().join("file.csv"), folder.path().join("link.csv"));
            fs::write(&file, b"old").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            std::os::unix::fs::symlink(&file, &link).unwrap();
            write_whole(&link, Overwrite::Force, |out| out.write_all(b"new")).unwrap();
            assert_eq!(fs::read(&file).unwrap(), b"new");
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        }

        /// The child writes half a file, says so, and waits to be killed.
        #[test]
        fn a_killed_process_leaves_the_old_file() {
            const CHILD: &str = "TYREX_TEST_WRITE_AND_WAIT";
            if let Some(path) = std::env::var_os(CHILD) {
                let path = PathBuf::from(path);
                let _ = write_whole(&path, Overwrite::Force, |out| {
                    out.write_all(&vec![b'x'; 100_000])?;
                    fs::write(path.with_extension("started"), b"")?;
                    std::thread::sleep(std::time::Duration::from_mins(1));
                    Ok(())
                });
                return;
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out.csv");
            fs::write(&path, b"old").unwrap();
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "file::tests::linux::a_killed_process_leaves_the_old_file"])
                .env(CHILD, &path)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            let started = path.with_extension("started");
            for _ in 0..3000 {
                if started.exists() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            assert!(started.exists());
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"old");
        }

        /// No user may create files there, not even root.
        #[test]
        fn a_folder_that_cannot_be_written_to_is_an_error() {
            let path = Path::new("/sys/tyrex-test.csv");
            let failed = write_whole(path, Overwrite::Force, |out| out.write_all(b"new"));
            let message = failed.unwrap_err().to_string();
            assert!(message.starts_with("cannot write /sys/tyrex-test.csv: "), "{message}");
        }

        /// A disk of 64 KiB, where the user may mount one; `/dev/full` stands in elsewhere.
        #[test]
        fn a_full_disk_leaves_the_old_file_and_nothing_else() {
            struct Mounted<'a>(&'a Path);
            impl Drop for Mounted<'_> {
                fn drop(&mut self) {
                    let _ = Command::new("umount").arg(self.0).status();
                }
            }
            let folder = tempfile::tempdir().unwrap();
            let mounted = Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
                .arg(folder.path())
                .stderr(std::process::Stdio::null())
                .status()
                .is_ok_and(|status| status.success());
            if !mounted {
                return a_full_device_is_an_error();
            }
            let disk = Mounted(folder.path());
            let path = disk.0.join("out.csv");
            fs::write(&path, b"old").unwrap();
            let failed =
                write_whole(&path, Overwrite::Force, |out| out.write_all(&vec![b'x'; 1_000_000]));
            let message = failed.unwrap_err().to_string();
            assert!(message.contains("No space left on device"), "{message}");
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert_eq!(names(disk.0), ["out.csv"]);
        }
    }
}
