//! Models that the user retrained elsewhere, as an ensemble of the model in use.
//!
//! A folder without a manifest holds them as ONNX files. Names choose their sets: a file in the
//! sub-folder `search`, `tune`, `fresh` or `sibling`, or whose name begins with that word. Without
//! such names the sets are drawn at random.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::promise::LEAST_OWN;
use super::{CONFIDENCE, Explainer, PROMISE, Promise, RetrainingView, import_bytes};
use crate::change::{Ensemble, Given, MANIFEST, MOST_MEMBERS, Origin};
use crate::choice::Choice as _;
use crate::error::{Error, Result};
use crate::file::read_within;
use crate::model::files::{FILE_BYTES, ImportOptions, is_model_text};
use crate::model::{Fingerprint, Model};

/// The least number of different scores of black boxes that are compared: functions that decide, and
/// do no more, may well agree on all rows.
const LEAST_SCORES: usize = 20;

/// The set of a model that was retrained elsewhere, in the order of an ensemble's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GivenSet {
    /// The search runs over it.
    Search,
    /// It helps to choose the margin.
    Tune,
    /// It certifies.
    Fresh,
    /// It was trained as the model in use was, which is compared with it.
    Sibling,
}

choices! { GivenSet "set" {
    Search = "search": "The search runs over these models",
    Tune = "tune": "These models choose the margin of the search",
    Fresh = "fresh": "These models certify the advice",
    Sibling = "sibling": "These models were trained as the model in use was, to compare it with",
} }

/// A model that was retrained elsewhere.
#[derive(Debug, Clone)]
pub struct GivenModel {
    /// Its name in errors: its file, or its place in a list.
    pub name: String,
    /// Its set, if the user chose one.
    pub set: Option<GivenSet>,
    /// The model, as a function of the points of the model in use.
    pub model: Arc<dyn Model>,
}

/// The file of a model that was retrained elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFile {
    /// Its name in errors.
    pub name: String,
    /// Its set, if its name chooses one.
    pub set: Option<GivenSet>,
    /// Its content.
    pub onnx: Vec<u8>,
}

impl GivenFile {
    /// The model files of a folder and of its sub-folders that are named as sets, by name. Other
    /// files are left out.
    pub fn all_in(folder: &Path) -> Result<Vec<Self>> {
        let wrong = |count: usize| Error::Model {
            file: folder.to_owned(),
            problem: format!(
                "it has no `{MANIFEST}`, and {count} model files, expected {}",
                how_many()
            ),
        };
        let mut files = Vec::new();
        for (path, set) in model_files(folder)? {
            let content = read_within(&path, FILE_BYTES)?;
            // The folder may have texts that are not models.
            if ends_in(&path, &MODEL_ENDS) || is_model_text(&content) {
                files.push(Self { name: path.display().to_string(), set, onnx: content });
            }
            if files.len() > MOST_MEMBERS {
                return Err(wrong(files.len()));
            }
        }
        if files.is_empty() { Err(wrong(0)) } else { Ok(files) }
    }
}

/// How the names of model files end.
const MODEL_ENDS: [&str; 2] = ["onnx", "ubj"];
/// How those of model files and of other texts end.
const TEXT_ENDS: [&str; 2] = ["json", "txt"];

fn ends_in(path: &Path, ends: &[&str]) -> bool {
    path.extension().is_some_and(|end| ends.iter().any(|own| end.eq_ignore_ascii_case(own)))
}

impl RetrainingView<'_> {
    /// Reads an ensemble of this model from its folder: one that this crate wrote, or, if there is
    /// no manifest, files of models that were retrained elsewhere. `options` says how to read
    /// those.
    pub fn read(self, folder: &Path, options: &ImportOptions) -> Result<Ensemble> {
        if !Ensemble::is_in(folder) && folder.is_dir() {
            let from = format!("the folder {}", folder.display());
            return self.given_files(from, &GivenFile::all_in(folder)?, options);
        }
        let ensemble = self.on_own_scale(Ensemble::read(folder)?, folder)?;
        self.check(&ensemble).map_err(|error| match error {
            Error::InvalidModel(problem) => Error::Model { file: folder.to_owned(), problem },
            other => other,
        })?;
        Ok(ensemble)
    }

    /// An ensemble of files that were retrained elsewhere. `from` says where, in words.
    pub fn given_files(
        self,
        from: String,
        files: &[GivenFile],
        options: &ImportOptions,
    ) -> Result<Ensemble> {
        let explainer = self.explainer;
        let read = |GivenFile { name, set, onnx }: &GivenFile| -> Result<GivenModel> {
            let fitted = || {
                let model = import_bytes(onnx, explainer.schema(), options)?;
                explainer.retraining().fitted(model, explainer.schema().model.input)
            };
            let model = fitted().map_err(|error| Error::Model {
                file: name.into(),
                problem: match error {
                    Error::InvalidModel(problem) | Error::Model { problem, .. } => problem,
                    other => other.to_string(),
                },
            })?;
            Ok(GivenModel { name: name.clone(), set: *set, model })
        };
        // All of them first, so that the error is that of the first file.
        let read: Vec<Result<GivenModel>> = files.par_iter().map(read).collect();
        self.given(from, read.into_iter().collect::<Result<_>>()?)
    }

    /// An ensemble of models that were retrained elsewhere. `from` says where, in words.
    ///
    /// Either every model has a set, or none has one except siblings. No other model may come twice
    /// or be the model in use: a copy is not another draw. Siblings of a training without randomness
    /// are all equal.
    pub fn given(self, from: String, models: Vec<GivenModel>) -> Result<Ensemble> {
        let (siblings, mut members): (Vec<GivenModel>, Vec<GivenModel>) =
            models.into_iter().partition(|model| model.set == Some(GivenSet::Sibling));
        check_copies(&*self.explainer.model, &members)?;
        check_copied_functions(self.explainer, &members)?;
        let chosen = members.iter().filter(|model| model.set.is_some()).count();
        if let Some(other) = members.iter().find(|model| model.set.is_none() && chosen > 0) {
            let words: Vec<&str> = GivenSet::ALL.iter().map(|set| set.word()).collect();
            return Err(Error::Model {
                file: other.name.clone().into(),
                problem: format!(
                    "its name chooses no set, but those of {chosen} other models do; expected a \
                     name that begins with one of {}, for all models or for none",
                    words.join(", ")
                ),
            });
        }
        if members.is_empty() {
            let expected = how_many();
            return Err(Error::param("ensemble", "no retrained models", expected));
        }
        // The sort is stable: the order in a set stays.
        members.sort_by_key(|model| model.set);
        let count = |set| members.iter().filter(|model| model.set == Some(set)).count();
        let sets = (chosen > 0).then(|| [count(GivenSet::Search), count(GivenSet::Tune)]);
        let models = |given: Vec<GivenModel>| given.into_iter().map(|each| each.model).collect();
        let origin = Origin::Given(Given { from, sets, siblings: models(siblings) });
        Ensemble::new(Arc::clone(&self.explainer.model), models(members), origin)
    }
}

/// The files of a folder and of its sub-folders that are named as sets and that may be models, by
/// name, with the sets that their names choose.
fn model_files(folder: &Path) -> Result<Vec<(PathBuf, Option<GivenSet>)>> {
    let mut found = Vec::new();
    let folders = GivenSet::ALL.iter().map(|&set| (folder.join(set.word()), Some(set)));
    for (folder, set) in std::iter::once((folder.to_owned(), None)).chain(folders) {
        if set.is_some() && !folder.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&folder).map_err(Error::io("read", &folder))? {
            let path = entry.map_err(Error::io("read", &folder))?.path();
            if (ends_in(&path, &MODEL_ENDS) || ends_in(&path, &TEXT_ENDS)) && path.is_file() {
                let set = set.or_else(|| set_of(&path));
                found.push((path, set));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The set that the name of a file begins with.
fn set_of(path: &Path) -> Option<GivenSet> {
    let name = path.file_stem()?.to_str()?;
    GivenSet::ALL.iter().copied().find(|set| {
        let rest = name.strip_prefix(set.word());
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
    })
}

/// Rejects copies of a model, and the model in use.
fn check_copies(own: &dyn Model, models: &[GivenModel]) -> Result<()> {
    let mut known: BTreeMap<Fingerprint, &str> = BTreeMap::new();
    known.extend(own.identity().map(|own| (own, "the model in use")));
    for GivenModel { name, model, .. } in models {
        if let Some(other) = model.identity().and_then(|own| known.insert(own, name)) {
            return Err(Error::Model {
                file: name.into(),
                problem: format!(
                    "it is the same as {other}, expected models that were each retrained, from \
                     another seed or other rows"
                ),
            });
        }
    }
    Ok(())
}

/// Rejects black boxes that score reference rows as another model does. They have no fingerprints;
/// functions that differ somewhere hardly agree in every bit of these scores.
fn check_copied_functions(explainer: &Explainer, models: &[GivenModel]) -> Result<()> {
    let points = explainer.points();
    let is_function = |model: &dyn Model| model.identity().is_none();
    let functions = models.iter().any(|own| is_function(&*own.model));
    if !(functions || is_function(&*explainer.model)) {
        return Ok(());
    }
    let mut known: BTreeMap<Vec<u32>, (&str, bool)> = BTreeMap::new();
    let own = [("the model in use", &*explainer.model)];
    let others = models.iter().map(|own| (own.name.as_str(), &*own.model));
    for (name, model) in own.into_iter().chain(others) {
        let scores: Vec<u32> = model.score(points).into_iter().map(f32::to_bits).collect();
        if scores.iter().collect::<BTreeSet<_>>().len() < LEAST_SCORES {
            continue;
        }
        let is_function = is_function(model);
        // Other models are compared by their fingerprints.
        if let Some((other, _)) = known
            .insert(scores, (name, is_function))
            .filter(|(_, other_is_function)| is_function || *other_is_function)
        {
            return Err(Error::Model {
                file: name.into(),
                problem: format!(
                    "it scores {} reference rows exactly as {other} does, expected models that were \
                     each retrained, from another seed or other rows",
                    points.len()
                ),
            });
        }
    }
    Ok(())
}

/// The number of models that the default promise needs, in words.
fn how_many() -> String {
    let fresh = Promise::new(PROMISE, CONFIDENCE).map_or(0, Promise::fresh_models);
    format!(
        "1 to {MOST_MEMBERS} retrained models; a promise of {PROMISE} at confidence {CONFIDENCE} \
         needs {fresh} fresh ones and {LEAST_OWN} to search over and to choose the margin"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_models_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("a.onnx", "anything"),
            ("b.UBJ", "anything"),
            ("fresh-c.txt", "tree\nversion=v4\n"),
            ("d.json", "{\"learner\": {}}"),
            ("cases.json", "{\"rows\": []}"),
            ("notes.txt", "tree by tree"),
            ("rows.csv", "age,paid"),
        ] {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let files = GivenFile::all_in(folder.path()).unwrap();
        let names: Vec<_> = files
            .iter()
            .map(|file| (Path::new(&file.name).file_name().unwrap().to_str().unwrap(), file.set))
            .collect();
        let fresh = Some(GivenSet::Fresh);
        assert_eq!(
            names,
            [("a.onnx", None), ("b.UBJ", None), ("d.json", None), ("fresh-c.txt", fresh)]
        );
        let none = tempfile::tempdir().unwrap();
        let problem = GivenFile::all_in(none.path()).unwrap_err().to_string();
        assert!(problem.contains("0 model files, expected 1 to"), "{problem}");
    }
}
