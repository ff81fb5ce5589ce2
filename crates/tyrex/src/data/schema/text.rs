//! A schema as TOML: read, and written in a readable form.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    Action, Encoding, Feature, FeatureKind, Interval, MayBecome, MissingPolicy, Price, Rule,
    Scaling, Schema, Special, Split, is_default,
};
use crate::data::value::Value;
use crate::error::{Error, Result, in_short_lines};
use crate::file::{DOCUMENT_BYTES, Overwrite, read_text, write_whole};

/// A feature in TOML: flat, with as many optional keys as possible.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeatureToml {
    name: String,
    kind: KindToml,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    levels: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    range: Option<Interval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    special: Option<Special>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missing: Option<MissingPolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoding: Option<Encoding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scaling: Option<Scaling>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clip: Option<Interval>,
    #[serde(default, skip_serializing_if = "is_default")]
    action: Action,
    #[serde(default, skip_serializing_if = "is_default")]
    may_become: MayBecome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindToml {
    Numeric,
    Integer,
    Ordinal,
    Categorical,
    Flag,
}

impl TryFrom<FeatureToml> for Feature {
    type Error = String;

    fn try_from(toml: FeatureToml) -> Result<Self, String> {
        let name = toml.name;
        let kind = match (toml.kind, toml.levels) {
            (KindToml::Numeric, None) => FeatureKind::Numeric,
            (KindToml::Integer, None) => FeatureKind::Integer,
            (KindToml::Numeric | KindToml::Integer, Some(_)) => {
                return Err(format!(
                    "feature `{name}`: `levels` do not go with numbers; did you mean kind `ordinal` \
                     or `categorical`?"
                ));
            }
            (KindToml::Ordinal, Some(levels)) => FeatureKind::Ordinal { levels },
            (KindToml::Categorical, Some(levels)) => FeatureKind::Categorical { levels },
            (KindToml::Flag, Some(levels)) => match <[Value; 2]>::try_from(levels) {
                Ok(values) => FeatureKind::Flag { values },
                Err(levels) => {
                    return Err(format!(
                        "feature `{name}`: a flag has 2 levels, found {}",
                        levels.len()
                    ));
                }
            },
            (_, None) => {
                return Err(format!("feature `{name}`: this kind needs `levels = [...]`"));
            }
        };
        Ok(Self {
            name,
            kind,
            description: toml.description,
            unit: toml.unit,
            range: toml.range,
            step: toml.step,
            special: toml.special,
            missing: toml.missing,
            encoding: toml.encoding,
            scaling: toml.scaling,
            clip: toml.clip,
            action: toml.action,
            may_become: toml.may_become,
            price: toml.price,
        })
    }
}

impl From<Feature> for FeatureToml {
    fn from(feature: Feature) -> Self {
        let levels = feature.kind.levels();
        Self {
            name: feature.name,
            levels: (!feature.kind.is_number()).then(|| levels.to_vec()),
            kind: match feature.kind {
                FeatureKind::Numeric => KindToml::Numeric,
                FeatureKind::Integer => KindToml::Integer,
                FeatureKind::Ordinal { .. } => KindToml::Ordinal,
                FeatureKind::Categorical { .. } => KindToml::Categorical,
                FeatureKind::Flag { .. } => KindToml::Flag,
            },
            description: feature.description,
            unit: feature.unit,
            range: feature.range,
            step: feature.step,
            special: feature.special,
            missing: feature.missing,
            encoding: feature.encoding,
            scaling: feature.scaling,
            clip: feature.clip,
            action: feature.action,
            may_become: feature.may_become,
            price: feature.price,
        }
    }
}

/// A split in TOML: the keys of one of three forms.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SplitToml {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    train: Vec<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    test: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fraction: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

impl TryFrom<SplitToml> for Split {
    type Error = &'static str;

    fn try_from(toml: SplitToml) -> Result<Self, &'static str> {
        let or_word = |values: Vec<Value>, word: &str| {
            if values.is_empty() { vec![Value::from(word)] } else { values }
        };
        let no_words = toml.train.is_empty() && toml.test.is_empty();
        match (toml.column, toml.file, toml.fraction, toml.seed) {
            (Some(column), None, None, None) => Ok(Self::Column {
                column,
                train: or_word(toml.train, "train"),
                test: or_word(toml.test, "test"),
            }),
            (None, Some(file), None, None) if no_words => Ok(Self::File { file }),
            (None, None, Some(train), seed) if no_words => {
                Ok(Self::Fraction { train, seed: seed.unwrap_or(0) })
            }
            (None, None, None, None) if no_words => Ok(Self::AllTrain),
            _ => Err("a split has `column` (with `train` and `test` values), or `file`, or \
                      `fraction` (with `seed`), and not two of them"),
        }
    }
}

impl From<Split> for SplitToml {
    fn from(split: Split) -> Self {
        let none = Self::default();
        match split {
            Split::AllTrain => none,
            Split::Column { column, train, test } => {
                Self { column: Some(column), train, test, ..none }
            }
            Split::File { file } => Self { file: Some(file), ..none },
            Split::Fraction { train, seed } => {
                Self { fraction: Some(train), seed: Some(seed), ..none }
            }
        }
    }
}

/// Whole numbers without a decimal point.
pub(super) fn plain_numbers<S: serde::Serializer>(
    numbers: &[f64],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.iter().map(|&number| Value::Number(number)))
}

impl Schema {
    /// Reads and checks a schema file. Relative paths in it start from its folder.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read_text(path, DOCUMENT_BYTES)?;
        let mut schema = Self::from_toml(&text).map_err(|error| Error::SchemaFile {
            file: path.to_owned(),
            problem: error.to_string(),
        })?;
        schema.folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(schema)
    }

    /// Reads and checks a schema from TOML text.
    pub fn from_toml(text: &str) -> Result<Self> {
        let schema: Self = toml::from_str(text).map_err(|error| {
            Error::schema(format!("not a schema: {}", in_short_lines(&error.to_string())))
        })?;
        schema.validate()?;
        Ok(schema)
    }

    /// The schema as readable TOML, which [`Schema::from_toml`] reads back.
    pub fn to_toml(&self) -> Result<String> {
        self.to_toml_with_notes(&[], &[])
    }

    /// Writes the schema as TOML.
    pub fn write(&self, path: &Path, overwrite: Overwrite) -> Result<()> {
        let text = self.to_toml()?;
        write_whole(path, overwrite, |out| out.write_all(text.as_bytes()))
    }

    /// The schema as TOML, with a comment above each feature that has one. A note without a feature
    /// is written at the top, and rules that a person may accept at the end, as comments too.
    pub(crate) fn to_toml_with_notes(&self, notes: &[Note], proposals: &[Rule]) -> Result<String> {
        let unwritten =
            |error: toml::ser::Error| Error::schema(format!("cannot be written as TOML: {error}"));
        let table = toml::Table::try_from(self).map_err(unwritten)?;
        let mut text = String::new();
        comments(&mut text, notes, None);
        // Plain keys come first; tables follow, in the order of the struct.
        for (key, value) in table.iter().filter(|(_, value)| !is_section(value)) {
            line(&mut text, key, value);
        }
        for (key, value) in table.iter().filter(|(_, value)| is_section(value)) {
            match value {
                toml::Value::Table(section) => {
                    let _ = writeln!(text, "\n[{key}]");
                    lines(&mut text, section);
                }
                toml::Value::Array(entries) => {
                    for section in entries.iter().filter_map(toml::Value::as_table) {
                        text.push('\n');
                        let name = section.get("name").and_then(toml::Value::as_str);
                        if name.is_some() {
                            comments(&mut text, notes, name);
                        }
                        let _ = writeln!(text, "[[{key}]]");
                        lines(&mut text, section);
                    }
                }
                _ => {}
            }
        }
        if !proposals.is_empty() {
            text += "\n# These rules hold in all rows. Remove the `# ` of those that advice must obey.\n";
        }
        for rule in proposals {
            let mut section = "[[rule]]\n".to_owned();
            lines(&mut section, &toml::Table::try_from(rule).map_err(unwritten)?);
            text.push('\n');
            section.lines().for_each(|line| _ = writeln!(text, "# {line}"));
        }
        Ok(text)
    }
}

/// A remark for the reader of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The feature concerned, where there is one.
    pub feature: Option<String>,
    /// The remark.
    pub text: String,
}

fn is_section(value: &toml::Value) -> bool {
    match value {
        toml::Value::Table(_) => true,
        toml::Value::Array(entries) => entries.iter().any(toml::Value::is_table),
        _ => false,
    }
}

fn lines(text: &mut String, section: &toml::Table) {
    for (key, value) in section {
        line(text, key, value);
    }
}

/// `key = value` on one line; inner tables are written inline.
fn line(text: &mut String, key: &str, value: &toml::Value) {
    let _ = writeln!(text, "{key} = {value}");
}

fn comments(text: &mut String, notes: &[Note], feature: Option<&str>) {
    for note in notes.iter().filter(|note| note.feature.as_deref() == feature) {
        // A line break in a column name must not end the comment.
        let one_line: String =
            note.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(text, "# {one_line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the documentation, each block of TOML.
    fn examples() -> Vec<&'static str> {
        let text = include_str!("../../../../../docs/formats.md");
        text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
    }

    #[test]
    fn the_documented_schema_is_one_and_survives_being_written() {
        let schema = Schema::from_toml(examples()[0]).unwrap();
        assert_eq!(schema.features.len(), 6);
        assert_eq!(Schema::from_toml(&schema.to_toml().unwrap()).unwrap(), schema);
    }

    #[test]
    fn the_documented_sections_are_sections() {
        let base = r#"format_version = 1
label = { column = "y", favourable = 1 }
feature = [
    { name = "instalment", kind = "numeric" },
    { name = "income", kind = "numeric", range = [0, inf] },
    { name = "degree", kind = "ordinal", levels = ["none", "bachelor", "master"] },
    { name = "age", kind = "integer" },
    { name = "employment", kind = "categorical", levels = ["part time", "full time"] },
    { name = "hours", kind = "integer" },
]
"#;
        let sections = &examples()[1..];
        assert_eq!(sections.len(), 5);
        for section in sections {
            let schema = Schema::from_toml(&format!("{base}{section}"));
            assert!(schema.is_ok(), "{section}\n{schema:?}");
        }
    }
}
