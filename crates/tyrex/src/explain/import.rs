//! Reads a model file for a schema, and determines the favourable class.

use std::cell::Cell;
use std::path::Path;

use super::Meaning;
use crate::data::schema::Split;
use crate::data::{Schema, Value, listed};
use crate::error::{Error, Result};
use crate::model::files::{Favourable, ImportOptions, ModelFile};

/// Reads a model file. If the options name no class, `favourable_class` of the schema does; without
/// it the schema's favourable label, provided that the file has names for its classes.
pub fn import(path: &Path, schema: &Schema, options: &ImportOptions) -> Result<ModelFile> {
    import_with(|options| ModelFile::read(path, options), schema, options).map_err(|error| {
        match error {
            Error::InvalidModel(problem) => Error::Model { file: path.to_owned(), problem },
            other => other,
        }
    })
}

/// The same for a model that is in memory.
pub fn import_bytes(bytes: &[u8], schema: &Schema, options: &ImportOptions) -> Result<ModelFile> {
    import_with(|options| ModelFile::from_bytes(bytes.to_vec(), options), schema, options)
}

/// Reads a model file once, with the schema in it; without one the model as it is.
pub fn import_embedded(
    path: &Path,
    options: &ImportOptions,
) -> Result<(ModelFile, Option<Schema>)> {
    let model = ModelFile::read(path, options)?;
    let wrong = |error| match error {
        Error::InvalidModel(problem) => Error::Model { file: path.to_owned(), problem },
        other => other,
    };
    let Some(schema) = embedded_schema(&model).map_err(wrong)? else {
        return Ok((model, None));
    };
    let first = Cell::new(Some(model));
    let read = |asked: &ImportOptions| match first.take().filter(|_| asked == options) {
        Some(model) => Ok(model),
        None => ModelFile::read(path, asked),
    };
    let model = import_with(read, &schema, options).map_err(wrong)?;
    Ok((model, Some(schema)))
}

fn import_with(
    read: impl Fn(&ImportOptions) -> Result<ModelFile>,
    schema: &Schema,
    options: &ImportOptions,
) -> Result<ModelFile> {
    let model = match written_here(&read, schema, options) {
        Some(own) => {
            check_class(&own, &read, options)?;
            own
        }
        None => with_class_of(read, schema, options)?,
    };
    check_meaning(&model, schema)?;
    Ok(model)
}

/// A model that this crate wrote, although a class is named. Its output is the probability of the
/// favourable outcome: the class that the schema names is that of the original model.
fn written_here(
    read: &impl Fn(&ImportOptions) -> Result<ModelFile>,
    schema: &Schema,
    options: &ImportOptions,
) -> Option<ModelFile> {
    if options.favourable.is_none() && schema.model.favourable_class.is_none() {
        return None;
    }
    let model = read(&ImportOptions { favourable: None, ..options.clone() }).ok()?;
    embedded_schema(&model).ok().flatten().map(|_| model)
}

/// Rejects options that invert a model that this crate wrote.
fn check_class(
    own: &ModelFile,
    read: &impl Fn(&ImportOptions) -> Result<ModelFile>,
    options: &ImportOptions,
) -> Result<()> {
    if options.favourable.is_none() {
        return Ok(());
    }
    let other = read(options)?;
    if other.favourable == own.favourable {
        return Ok(());
    }
    Err(Error::InvalidModel(format!(
        "tyrex wrote it, and its output is the probability of the favourable outcome; class number \
         {} would invert every answer. Expected no class",
        other.favourable
    )))
}

/// Rejects a schema whose favourable label differs from that of the schema in the model file: every
/// answer would be inverted.
pub(super) fn check_meaning(model: &ModelFile, schema: &Schema) -> Result<()> {
    // Another tool may have written different content under the same key.
    let Ok(Some(own)) = embedded_schema(model) else {
        return Ok(());
    };
    let (own, given) = (Meaning::of(&own), Meaning::of(schema));
    if own.is(&given) {
        return Ok(());
    }
    Err(Error::InvalidModel(format!(
        "its own schema calls {own} favourable, but the given schema calls {given} favourable; \
         expected the same `[label]`"
    )))
}

fn with_class_of(
    read: impl Fn(&ImportOptions) -> Result<ModelFile>,
    schema: &Schema,
    options: &ImportOptions,
) -> Result<ModelFile> {
    let given = match &schema.model.favourable_class {
        Some(Value::Number(number)) => Some(Favourable::Class(*number as usize)),
        Some(name) => Some(Favourable::Label(name.to_string())),
        None => None,
    };
    if let Some(class) = options.favourable.clone().or(given) {
        let model = read(&ImportOptions { favourable: Some(class.clone()), ..options.clone() })?;
        check_number(&model, &class, schema)?;
        return Ok(model);
    }
    let with_class =
        |class: Favourable| read(&ImportOptions { favourable: Some(class), ..options.clone() });
    let favourable = &schema.label.favourable;
    let model = match read(options) {
        Ok(model) => model,
        // With three or more classes the reader requires a name.
        Err(error) => match favourable.as_slice() {
            [only] => return with_class(Favourable::Label(only.to_string())).map_err(|_| error),
            _ => return Err(error),
        },
    };
    let Some(labels) = &model.labels else {
        return Ok(model);
    };
    let named = named(labels, favourable);
    match named.as_slice() {
        [class] if *class == model.favourable => Ok(model),
        [class] => with_class(Favourable::Class(*class)),
        [] if is_zero_and_one(labels) => Ok(model),
        [] => Err(wrong(labels, favourable, "none of which is")),
        _ => Err(wrong(labels, favourable, "several of which are")),
    }
}

/// The classes with the name of a favourable value.
fn named(labels: &[String], favourable: &[Value]) -> Vec<usize> {
    let is_one = |&class: &usize| favourable.iter().any(|value| value.matches(&labels[class]));
    (0..labels.len()).filter(is_one).collect()
}

/// Rejects a class by its number if the classes have names, and another one has the name of the
/// favourable value.
fn check_number(model: &ModelFile, class: &Favourable, schema: &Schema) -> Result<()> {
    let (Favourable::Class(_), Some(labels)) = (class, &model.labels) else { return Ok(()) };
    let favourable = &schema.label.favourable;
    match *named(labels, favourable) {
        [only] if only != model.favourable && !is_zero_and_one(labels) => {
            Err(Error::InvalidModel(format!(
                "class number {} is `{}`, but the schema calls {} favourable; expected class number \
                 {only}, or the name of the class if it is meant",
                model.favourable,
                labels.get(model.favourable).map_or("", String::as_str),
                listed(favourable)
            )))
        }
        _ => Ok(()),
    }
}

/// Labels that were converted to numbers before training; 1 is the favourable one.
fn is_zero_and_one(labels: &[String]) -> bool {
    let words: Vec<String> = labels.iter().map(|label| label.to_lowercase()).collect();
    words == ["0", "1"] || words == ["false", "true"]
}

fn wrong(labels: &[String], favourable: &[Value], which: &str) -> Error {
    Error::InvalidModel(format!(
        "the model's classes are {}, {which} favourable in the schema ({})",
        listed(labels),
        listed(favourable)
    ))
}

/// The schema in a model file that this crate wrote, without its split, which names the rows that
/// trained the model and does not apply to new rows.
pub fn embedded_schema(model: &ModelFile) -> Result<Option<Schema>> {
    let stored = stored_schema(model)?;
    Ok(stored.map(|schema| Schema { split: Split::AllTrain, ..schema }))
}

/// The same with its split.
pub(super) fn stored_schema(model: &ModelFile) -> Result<Option<Schema>> {
    let Some(text) = model.metadata.get("schema") else { return Ok(None) };
    Schema::from_toml(text).map(Some).map_err(|error| {
        Error::InvalidModel(format!("the schema in its metadata is damaged: {error}"))
    })
}
