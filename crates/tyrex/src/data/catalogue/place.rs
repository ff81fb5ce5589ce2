//! The folders in which data sets are searched for.

use std::env;
use std::path::{Path, PathBuf};

/// The folders that the user named or owns: the one given, `$TYREX_DATA`, and the user's data
/// folder.
pub(super) fn folders(data_dir: Option<&Path>) -> Vec<PathBuf> {
    let given = data_dir.map(Path::to_owned);
    [given, folder_in("TYREX_DATA"), user_folder()].into_iter().flatten().collect()
}

/// Where programs keep a user's data on this system.
fn user_folder() -> Option<PathBuf> {
    let base = if cfg!(windows) {
        folder_in("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        env::home_dir().map(|home| home.join("Library").join("Application Support"))
    } else {
        // The specification says that a relative path here is to be ignored.
        folder_in("XDG_DATA_HOME")
            .filter(|folder| folder.is_absolute())
            .or_else(|| env::home_dir().map(|home| home.join(".local").join("share")))
    };
    base.map(|base| base.join("tyrex"))
}

fn folder_in(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_given_comes_first_and_the_users_own_last() {
        let folders = folders(Some(Path::new("here")));
        assert_eq!(folders[0], Path::new("here"));
        assert!(folders.last().is_some_and(|folder| folder.ends_with("tyrex")), "{folders:?}");
    }
}
