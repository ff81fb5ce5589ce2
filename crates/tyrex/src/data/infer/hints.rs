//! Hints about a table.

use std::collections::BTreeMap;

use crate::data::schema::{Feature, FeatureKind, Schema};
use crate::data::table::{Column, Table};
use crate::data::value::Value;
use crate::error::Result;

/// Hints about a table: from the types of its container, and from the model that takes its columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hints {
    /// Columns whose kind is known. If they become features, then of just that kind, with levels
    /// that occur in no row too. A kind for the label column is ignored.
    pub kinds: BTreeMap<String, FeatureKind>,
    /// The columns a model takes, in its order. All of them become features; all others but the
    /// label are ignored.
    pub features: Option<Vec<String>>,
}

impl Hints {
    /// Checks that the table has every column of the hints.
    pub(super) fn check(&self, table: &Table) -> Result<()> {
        let features = self.features.iter().flatten();
        self.kinds.keys().chain(features).try_for_each(|name| table.column(name).map(|_| ()))
    }

    /// Whether the column becomes a feature regardless of its cells.
    pub(super) fn need(&self, name: &str) -> bool {
        self.features.iter().flatten().any(|feature| feature == name)
    }
}

/// The number of missing cells of a column whose kind is known; an error names the first cell
/// that the kind does not have.
pub(super) fn missing_cells(
    schema: &Schema,
    kind: &FeatureKind,
    table: &Table,
    column: &Column,
) -> Result<usize> {
    let feature = Feature::new(column.name(), kind.clone());
    let mut missing = 0;
    for (row, cell) in column.cells().enumerate() {
        let value = schema
            .value_of_cell(&feature, cell)
            .map_err(|expected| table.cell_error(row, column, expected))?;
        missing += usize::from(value == Value::Missing);
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;
    use crate::data::infer::Inferred;
    use crate::data::schema::{Action, Interval, MissingPolicy};
    use crate::data::{Rows, Value};

    /// Twelve rows: a row number, a constant, text that always differs, levels and a class.
    fn table() -> Table {
        let mut text = "id,fee,note,size,empty,class\n".to_owned();
        for row in 0..12 {
            let size = ["s", "m", "", "NA"][row % 4];
            writeln!(text, "{row},5,text {row},{size},,{}", row % 2).unwrap();
        }
        Table::from_csv(Path::new("people.csv"), text.as_bytes()).unwrap()
    }

    fn levels(names: &[&str]) -> Vec<Value> {
        names.iter().map(|&name| Value::from(name)).collect()
    }

    fn sizes(names: &[&str]) -> FeatureKind {
        FeatureKind::Ordinal { levels: levels(names) }
    }

    fn kinds(known: &[(&str, FeatureKind)]) -> Hints {
        let known = known.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone()));
        Hints { kinds: known.collect(), features: None }
    }

    fn model(names: &[&str]) -> Hints {
        let features = names.iter().map(|&name| name.to_owned()).collect();
        Hints { features: Some(features), ..Hints::default() }
    }

    fn draft(label: Option<&str>, favourable: &[Value], hints: &Hints) -> Result<Inferred> {
        Schema::draft(&table(), label, favourable, hints)
    }

    fn notes(inferred: &Inferred, feature: Option<&str>) -> Vec<String> {
        let about = inferred.notes.iter().filter(|note| note.feature.as_deref() == feature);
        about.map(|note| note.text.clone()).collect()
    }

    #[test]
    fn a_known_kind_is_taken_as_it_is() {
        let known = kinds(&[
            ("id", FeatureKind::Integer),
            ("fee", FeatureKind::Numeric),
            ("size", sizes(&["NA", "s", "m", "l"])),
            ("empty", FeatureKind::Categorical { levels: levels(&["a", "b"]) }),
        ]);
        let hints = Hints { kinds: known.kinds, ..model(&["id", "fee", "size", "empty"]) };
        let inferred = draft(Some("class"), &[1.0.into()], &hints).unwrap();
        let feature = |name: &str| {
            let schema = &inferred.schema;
            schema.features[schema.position(name).unwrap()].clone()
        };
        for (name, kind) in &hints.kinds {
            assert_eq!(feature(name).kind, *kind, "{name}");
        }
        let all = Interval { lower: 0.0, upper: 11.0 };
        assert_eq!(feature("id").action, Action::Within(all));
        // `NA` is a level here, so only the empty cells are missing.
        assert_eq!(feature("size").missing, Some(MissingPolicy::Level));
        assert!(notes(&inferred, Some("size"))[0].starts_with("3 of 12 cells are missing"));
        // Other rows may have another fee, but its range is unknown.
        let fee = feature("fee");
        assert_eq!((fee.range, fee.step, fee.action), (None, None, Action::Fixed));
        assert_eq!(
            notes(&inferred, Some("fee")),
            ["It has one value in all rows. Its possible changes are unknown, so it is fixed."]
        );
        assert_eq!(Rows::read(&inferred.schema, &table()).unwrap().rows.len(), 12);
        let text = inferred.to_toml().unwrap();
        assert_eq!(Schema::from_toml(&text).unwrap(), inferred.schema);
    }

    /// The kind of a column is not a reason to make it a feature.
    #[test]
    fn a_known_kind_does_not_make_a_feature() {
        let hints = kinds(&[
            ("fee", FeatureKind::Numeric),
            ("size", sizes(&["NA", "s", "m", "l"])),
            ("empty", FeatureKind::Categorical { levels: levels(&["a", "b"]) }),
        ]);
        let inferred = draft(Some("class"), &[1.0.into()], &hints).unwrap();
        assert_eq!(inferred.schema.ignore, ["id", "fee", "empty"]);
        let size = &inferred.schema.features[inferred.schema.position("size").unwrap()];
        assert_eq!(size.kind, hints.kinds["size"]);
    }

    #[test]
    fn a_model_says_which_columns_are_features_and_in_which_order() {
        let hints = model(&["note", "fee", "id"]);
        let inferred = draft(Some("class"), &[], &hints).unwrap();
        let schema = &inferred.schema;
        let names: Vec<&str> = schema.features.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["note", "fee", "id"]);
        assert_eq!(schema.ignore, ["size", "empty"]);
        let ignored = "Columns `size`, `empty` are ignored: no features of the model.";
        assert!(notes(&inferred, None).iter().any(|text| text == ignored));
        assert_eq!(schema.features[0].kind.levels().len(), 12);
        assert_eq!(schema.features[1].action, Action::Fixed);
        assert_eq!(
            notes(&inferred, Some("id")),
            ["It numbers the rows. If it identifies people, make its `action` `fixed`."]
        );
    }

    #[test]
    fn a_model_that_exists_needs_no_label() {
        let hints = model(&["id", "class"]);
        let inferred = draft(None, &[], &hints).unwrap();
        let label = &inferred.schema.label;
        assert_eq!(
            (label.column.as_str(), label.favourable.as_slice()),
            ("label", &[1.0.into()][..])
        );
        assert!(
            notes(&inferred, None)[1].starts_with("No column is the label, so the rows can be")
        );
        // A name that is taken is not the label's; a favourable value that is given is kept.
        let own = Table::from_csv(Path::new("own.csv"), b"label,x\n1,2\n2,3\n3,4\n").unwrap();
        let hints = model(&["label", "x"]);
        let inferred = Schema::draft(&own, None, &["good".into()], &hints).unwrap();
        assert_eq!(inferred.schema.label.column, "label_");
        assert_eq!(inferred.schema.label.favourable, ["good".into()]);
        assert_eq!(inferred.schema.features.len(), 2);
    }

    #[test]
    fn hints_that_do_not_fit_the_table_are_refused() {
        let twice = FeatureKind::Categorical { levels: levels(&["a", "a"]) };
        for (hints, expected) in [
            (
                kinds(&[("size", sizes(&["m", "l"]))]),
                "people.csv, row 0, column `size`: found `s`, expected one of `m`, `l`",
            ),
            (
                kinds(&[("note", FeatureKind::Numeric)]),
                "people.csv, row 0, column `note`: found `text 0`, expected a number such as 12, \
                     -0.5 or 1e3",
            ),
            (
                Hints { kinds: kinds(&[("empty", twice)]).kinds, ..model(&["empty"]) },
                "schema, feature `empty`: levels: `a` is listed twice",
            ),
            (
                kinds(&[("sizes", FeatureKind::Numeric)]),
                "people.csv: no column `sizes`; the file has `id`, `fee`, `note`, `size`, \
                     `empty`, `class`; did you mean `size`?",
            ),
            (
                model(&["empty"]),
                "people.csv: the model takes the column `empty`, which has no values",
            ),
            (model(&["id", "id"]), "schema, feature `id`: is listed twice"),
            (model(&["class"]), "schema, feature `class`: is also the label column"),
            (model(&[]), "schema: no features, expected at least one [[feature]]"),
        ] {
            let found = draft(Some("class"), &[], &hints);
            assert_eq!(found.unwrap_err().to_string(), expected);
        }
    }
}
