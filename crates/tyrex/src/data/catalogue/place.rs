//! The folders in which data sets may be.

use std::env;
use std::path::{Path, PathBuf};

/// Folders a user chose or owns, where downloads may go too: the one given, `$TYREX_DATA`, and
/// the user's data folder.
pub(super) fn own_folders(data_dir: Option<&Path>) -> Vec<PathBuf> {
    let given = data_dir.map(Path::to_owned);
    [given, folder_in("TYREX_DATA"), user_folder()].into_iter().flatten().collect()
}

/// `shared/data` beside the current folder and beside each of its parents.
pub(super) fn shared_folders() -> Vec<PathBuf> {
    let current = env::current_dir().unwrap_or_default();
    current.ancestors().skip(1).map(|parent| parent.join("shared").join("data")).collect()
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
        let folders = own_folders(Some(Path::new("here")));
        assert_eq!(folders[0], Path::new("here"));
        assert!(folders.last().is_some_and(|folder| folder.ends_with("tyrex")), "{folders:?}");
    }

    #[test]
    fn shared_data_is_looked_for_beside_the_current_folder_first() {
        let current = env::current_dir().unwrap();
        let beside = current.parent().unwrap().join("shared/data");
        assert_eq!(shared_folders().first(), Some(&beside));
    }
}
