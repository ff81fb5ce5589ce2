//! The reports of experiments: those of a folder, or the built-in one.

use std::path::Path;

use axum::body::Bytes;
use tyrex::{Error, Result};
use tyrex_lab::experiment::{RESULTS, Results, read_timings};
use tyrex_lab::report;

/// The output of `scripts/shipped-results`.
const SHIPPED: &[u8] = include_bytes!("../results/results.json");
const SHIPPED_TIMINGS: &[u8] = include_bytes!("../results/timings.json");

/// Reports by name. They are listed when the service starts: a name in a request is only compared,
/// and never becomes a path.
#[derive(Debug)]
pub(crate) struct Reports {
    reports: Vec<Report>,
}

/// One report.
#[derive(Debug)]
pub(crate) struct Report {
    /// Its name in requests.
    pub(crate) name: String,
    /// Its display name.
    pub(crate) title: String,
    /// The number of experiments in it.
    pub(crate) experiments: usize,
    /// Whether it is built in.
    pub(crate) shipped: bool,
    /// The page.
    pub(crate) html: Bytes,
}

impl Reports {
    /// The reports of a folder that `tyrex experiment run` wrote, or of the folders in it; without
    /// one, the built-in report.
    pub(crate) fn load(folder: Option<&Path>) -> Result<Self> {
        let Some(folder) = folder else {
            return Ok(Self { reports: vec![shipped()?] });
        };
        if folder.join(RESULTS).is_file() {
            return Ok(Self { reports: vec![read(folder)?] });
        }
        let entries = std::fs::read_dir(folder).map_err(Error::io("read", folder))?;
        let mut folders = Vec::new();
        for entry in entries {
            let path = entry.map_err(Error::io("read", folder))?.path();
            if path.join(RESULTS).is_file() {
                folders.push(path);
            }
        }
        folders.sort();
        if folders.is_empty() {
            let problem =
                format!("no {RESULTS} in it, expected a folder of `tyrex experiment run`");
            return Err(Error::ParamFile { file: folder.to_owned(), problem });
        }
        let reports = folders.iter().map(|folder| read(folder)).collect::<Result<_>>()?;
        Ok(Self { reports })
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Report] {
        &self.reports
    }

    /// The one of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Report> {
        self.reports.iter().find(|report| report.name == name)
    }
}

fn shipped() -> Result<Report> {
    let unreadable = |error: serde_json::Error| Error::ParamFile {
        file: RESULTS.into(),
        problem: format!("the built-in results cannot be read: {error}"),
    };
    let results: Results = serde_json::from_slice(SHIPPED).map_err(unreadable)?;
    let timings: Vec<_> = serde_json::from_slice(SHIPPED_TIMINGS).map_err(unreadable)?;
    let html = report::html(&results, &timings)?;
    Ok(Report::new(results.suite.clone(), &results, html, true))
}

fn read(folder: &Path) -> Result<Report> {
    let results = Results::read(folder)?;
    let html = report::html(&results, &read_timings(folder))?;
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Report::new(name.unwrap_or_else(|| results.suite.clone()), &results, html, false))
}

impl Report {
    fn new(name: String, results: &Results, html: String, shipped: bool) -> Self {
        let (title, experiments) = (results.title.clone(), results.experiments.len());
        Self { name, title, experiments, shipped, html: html.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_report_shows_its_experiments() {
        let reports = Reports::load(None).expect("it can be read");
        let [report] = reports.all() else { panic!("one report ships") };
        assert!(report.shipped);
        let html = std::str::from_utf8(&report.html).expect("text");
        for shown in ["German Credit", "Two moons", "T-Rex:O", "<svg"] {
            assert!(html.contains(shown), "{shown}");
        }
        // The policy it is served with forbids all of these.
        for forbidden in ["<script", "onclick", "http://", "https://", "src=\"/"] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn a_folder_of_folders_is_a_listing() {
        let folder = tempfile::tempdir().expect("a folder");
        let empty = Reports::load(Some(folder.path())).unwrap_err().to_string();
        assert!(empty.contains("tyrex experiment run"), "{empty}");
        for name in ["b", "a"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
            std::fs::write(folder.path().join(name).join(RESULTS), SHIPPED).expect("a file");
        }
        std::fs::create_dir(folder.path().join("other")).expect("a folder");
        let reports = Reports::load(Some(folder.path())).expect("two reports");
        let names: Vec<&str> = reports.all().iter().map(|report| report.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(reports.named("a").is_some() && reports.named("../a").is_none());
        let one = Reports::load(Some(&folder.path().join("a"))).expect("one report");
        assert_eq!(one.all().len(), 1);
    }
}
