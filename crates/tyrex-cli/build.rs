//! Provides the commit for `--version`. Without git, or outside this project's repository, the
//! commit is unknown and the build continues.
#![allow(clippy::print_stdout)] // build scripts talk to cargo through standard output

use std::path::Path;
use std::process::Command;

fn main() {
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=TYREX_TARGET={target}");
    println!("cargo::rustc-env=TYREX_COMMIT={}", commit().unwrap_or_default());
    // These paths may change the commit or the mark for uncommitted changes.
    for path in ["../../crates", "../../data", "../../Cargo.toml", "../../Cargo.lock"] {
        rerun_if_changed(Path::new(path));
    }
    for name in ["HEAD", "index", "packed-refs"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            rerun_if_changed(Path::new(&path));
        }
    }
    if let Some(branch) = git(&["symbolic-ref", "--quiet", "HEAD"])
        && let Some(path) = git(&["rev-parse", "--git-path", &branch])
    {
        rerun_if_changed(Path::new(&path));
    }
}

/// The commit, with a mark if tracked files have changed since.
fn commit() -> Option<String> {
    // Inside another repository, git would report that repository's commit.
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let hash = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { hash } else { format!("{hash}, modified") })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    Some(text.trim().to_owned())
}

/// A path that does not exist would trigger a rebuild every time.
fn rerun_if_changed(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
