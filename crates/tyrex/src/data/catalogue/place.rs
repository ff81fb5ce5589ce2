//! The folders in which data sets may be.

use std::env;
use std::path::{Path, PathBuf};

/// The folder given, `$TYREX_DATA`, the user's data folder, then `shared/data` beside the
/// current folder and beside each of its parents.
pub(super) fn usual_folders(data_dir: Option<&Path>) -> Vec<PathBuf> {
    let given = data_dir.map(Path::to_owned);
    let current = env::current_dir().unwrap_or_default();
    [given, folder_in("TYREX_DATA"), user_folder()]
        .into_iter()
        .flatten()
        .chain(current.ancestors().skip(1).map(|parent| parent.join("shared").join("data")))
        .collect()
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
    fn the_folder_given_comes_first_and_shared_data_last() {
        let folders = usual_folders(Some(Path::new("here")));
        assert_eq!(folders[0], Path::new("here"));
        let parent = env::current_dir().unwrap().parent().unwrap().join("shared/data");
        let beside = folders.iter().position(|folder| *folder == parent).unwrap();
        let user = folders.iter().position(|folder| folder.ends_with("tyrex")).unwrap();
        assert!(0 < user && user < beside, "{folders:?}");
    }
}
