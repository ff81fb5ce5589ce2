//! JSON Schema, as far as the schemas of documents use it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A schema and those it refers to.
pub(crate) struct Schemas {
    root: Value,
    named: BTreeMap<String, Value>,
}

/// The supported keywords; another one would go unchecked.
const KNOWN: [&str; 17] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "minItems",
    "minimum",
    "oneOf",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "type",
];

impl Schemas {
    /// The schema of a type. Names must be unique and every reference must lead somewhere.
    pub(crate) fn of<T: ToSchema>() -> Self {
        let mut all = Vec::new();
        T::schemas(&mut all);
        let mut named: BTreeMap<String, Value> = BTreeMap::new();
        for (name, schema) in all {
            let schema = serde_json::to_value(schema).unwrap();
            if let Some(other) = named.get(&name) {
                assert_eq!(*other, schema, "two schemas are called {name}");
            }
            named.insert(name, schema);
        }
        let root = serde_json::to_value(T::schema()).unwrap();
        named.entry(T::name().into_owned()).or_insert_with(|| root.clone());
        Self { root, named }
    }

    /// The problems of a document.
    pub(crate) fn problems(&self, value: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        self.check("", &self.root, value, &mut problems);
        problems
    }

    fn check(&self, place: &str, schema: &Value, value: &Value, problems: &mut Vec<String>) {
        let empty = Map::new();
        let schema = schema.as_object().unwrap_or(&empty);
        for keyword in schema.keys() {
            assert!(KNOWN.contains(&keyword.as_str()), "{place}: keyword {keyword}");
        }
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let name = reference.trim_start_matches("#/components/schemas/");
            let named = self.named.get(name).unwrap_or_else(|| panic!("no schema {reference}"));
            self.check(place, named, value, problems);
        }
        let mut wrong = |what: String| problems.push(format!("{place}: {value} is not {what}"));
        match schema.get("type") {
            Some(Value::String(one)) if !is(value, one) => wrong(one.clone()),
            Some(Value::Array(some)) if !some.iter().any(|one| is(value, text(one))) => {
                wrong(format!("one of {some:?}"));
            }
            _ => {}
        }
        if let Some(Value::Array(values)) = schema.get("enum")
            && !values.contains(value)
        {
            wrong(format!("one of {values:?}"));
        }
        if let (Some(least), Some(number)) =
            (schema.get("minimum").and_then(Value::as_f64), value.as_f64())
            && number < least
        {
            wrong(format!("at least {least}"));
        }
        if let Value::Object(object) = value {
            self.check_object(place, schema, object, problems);
        }
        if let Value::Array(items) = value {
            self.check_array(place, schema, items, problems);
        }
        for each in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.check(place, each, value, problems);
        }
        if let Some(Value::Array(each)) = schema.get("oneOf") {
            let tried: Vec<Vec<String>> = each
                .iter()
                .map(|schema| {
                    let mut problems = Vec::new();
                    self.check(place, schema, value, &mut problems);
                    problems
                })
                .collect();
            let fitting = tried.iter().filter(|problems| problems.is_empty()).count();
            if fitting != 1 {
                problems.push(format!("{place}: {fitting} of one-of fit {value}"));
                if fitting == 0 {
                    problems.extend(tried.into_iter().min_by_key(Vec::len).unwrap_or_default());
                }
            }
        }
    }

    fn check_object(
        &self,
        place: &str,
        schema: &Map<String, Value>,
        object: &Map<String, Value>,
        problems: &mut Vec<String>,
    ) {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if !object.contains_key(text(name)) {
                problems.push(format!("{place}: no {name}"));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in object {
            let place = format!("{place}.{name}");
            match (properties.and_then(|own| own.get(name)), schema.get("additionalProperties")) {
                (None, None | Some(Value::Bool(true))) => {}
                (None, Some(Value::Bool(false))) => problems.push(format!("{place}: not known")),
                (Some(schema), _) | (None, Some(schema)) => {
                    self.check(&place, schema, value, problems);
                }
            }
        }
    }

    fn check_array(
        &self,
        place: &str,
        schema: &Map<String, Value>,
        items: &[Value],
        problems: &mut Vec<String>,
    ) {
        let count = |name: &str| schema.get(name).and_then(Value::as_u64);
        if count("minItems").is_some_and(|least| items.len() < least as usize)
            || count("maxItems").is_some_and(|most| items.len() > most as usize)
        {
            problems.push(format!("{place}: {} items", items.len()));
        }
        let first = schema.get("prefixItems").and_then(Value::as_array);
        for (index, item) in items.iter().enumerate() {
            let place = format!("{place}[{index}]");
            match (first.and_then(|first| first.get(index)), schema.get("items")) {
                (None, None) => {}
                (None, Some(Value::Bool(false))) => problems.push(format!("{place}: too many")),
                (Some(schema), _) | (None, Some(schema)) => {
                    self.check(&place, schema, item, problems);
                }
            }
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("a type {other}"),
    }
}
