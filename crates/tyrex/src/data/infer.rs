//! A first schema from a table: a draft for a person to correct.

mod hints;
mod names;
mod relations;
mod review;
mod summary;

use std::collections::BTreeSet;

pub use hints::Hints;
pub(crate) use review::{is_drafted, is_drafted_rule};

use crate::data::cell::listed;
use crate::data::schema::{
    Action, Feature, FeatureKind, Label, Missing, MissingPolicy, Note, Rule, Schema,
};
use crate::data::table::{Column, Table};
use crate::data::value::Value;
use crate::error::{Error, Result};
use summary::Summary;

/// More different texts than this are not levels.
const MOST_LEVELS: usize = 60;
/// Whole numbers with at most this many different values may be codes.
const FEW_VALUES: usize = 10;
/// A column with fewer values may have none in the rows that train.
const LEAST_VALUES: usize = 10;
/// Numbers with more decimals than this have no step.
const MOST_DECIMALS: usize = 6;
/// Favourable labels as data sets commonly write them.
const GOOD_WORDS: [&str; 13] = [
    "good",
    "yes",
    "true",
    "approved",
    "accepted",
    "paid",
    "fully paid",
    "retained",
    "pass",
    "passed",
    "graduate",
    ">50k",
    "1",
];

/// Labels that deny the label's name.
const DENYING_WORDS: [&str; 6] = ["no", "false", "0", "n", "f", "none"];

/// A schema inferred from a table, with remarks for a person to check.
#[derive(Debug, Clone, PartialEq)]
pub struct Inferred {
    /// The draft.
    pub schema: Schema,
    /// The remarks.
    pub notes: Vec<Note>,
    /// Rules between features that hold in all rows, to be accepted by a person; the draft has them
    /// as comments.
    pub proposals: Vec<Rule>,
}

impl Inferred {
    /// The draft as TOML, with the remarks and the proposals as comments.
    pub fn to_toml(&self) -> Result<String> {
        self.schema.to_toml_with_notes(&self.notes, &self.proposals)
    }

    fn note(&mut self, feature: Option<&str>, text: String) {
        self.notes.push(Note { feature: feature.map(str::to_owned), text });
    }
}

impl Schema {
    /// A first schema from a table. Columns that identify rows are ignored, features that nobody can
    /// change are fixed, outliers are clipped, some rows test, and remarks point at zeros that may
    /// mean missing, at columns that may give the label away, and at features without a rule.
    /// `favourable` may be empty, and is then guessed with a remark.
    ///
    /// The numbers of the table limit the advice (`action = { within = [..] }`, or a rule if the
    /// feature may only rise) and not the rows: what occurs elsewhere is not known. A `range`, outside
    /// of which a cell is an error, is for a person to add.
    ///
    /// The columns that an existing model takes ([`Hints::features`]) stay features, its input is not
    /// clipped, and no rows are set apart: the remarks alone point at the doubts. Such a model needs
    /// no label. Without one the schema names a column that the table does not have, and the
    /// favourable value is the one given, or else 1: rows read through it have no labels, so they can
    /// be explained and cannot train. Otherwise the label must be named, since it cannot be inferred.
    pub fn draft(
        table: &Table,
        label: Option<&str>,
        favourable: &[Value],
        hints: &Hints,
    ) -> Result<Inferred> {
        if label.is_none() && hints.features.is_none() && table.rows() > 0 {
            return Err(no_label(table));
        }
        let wrong = |problem: &str| Error::Table {
            file: table.source().to_owned(),
            problem: problem.to_owned(),
        };
        if table.rows() == 0 {
            return Err(wrong("no rows below the header"));
        }
        hints.check(table)?;
        let missing = tokens_seen(table);
        let column = label.map(|name| table.column(name)).transpose()?;
        let summary = column.map(|column| Summary::of(column, &missing));
        let label = match &summary {
            Some(summary) => infer_label(table, summary, favourable)?,
            None => absent_label(table, favourable),
        };
        let draft = Schema::new(label, Vec::new());
        let mut inferred = Inferred {
            schema: Schema { missing, ..draft },
            notes: Vec::new(),
            proposals: Vec::new(),
        };
        inferred
            .note(None, format!("Inferred from {}; correct it where necessary.", name_of(table)));
        remark_on_label(&mut inferred, summary.as_ref(), favourable);
        for column in table.columns() {
            if let Some(written) = column.repeats() {
                let name = column.name();
                let text = format!(
                    "The header has `{written}` more than once; a further column is read as `{name}`."
                );
                inferred.note(None, text);
            }
        }
        let names = match &hints.features {
            Some(features) => features.iter().map(String::as_str).collect(),
            None => other_columns(table, &inferred.schema),
        };
        for name in names {
            add_feature(&mut inferred, table, table.column(name)?, hints)?;
        }
        review::ignore_identifiers(&mut inferred, table, hints)?;
        if hints.features.is_some() {
            ignore_others(&mut inferred, table);
        } else if inferred.schema.features.is_empty() {
            return Err(wrong(
                "no column can be a feature: each is constant, an identifier or free text",
            ));
        }
        review::review(&mut inferred, table, hints)?;
        inferred.proposals = relations::proposed(&inferred, table)?;
        remark_on_proposals(&mut inferred);
        Ok(inferred)
    }
}

/// Names the rules that hold in all rows.
fn remark_on_proposals(inferred: &mut Inferred) {
    let words: Vec<String> =
        inferred.proposals.iter().map(|rule| rule.relation.in_words()).collect();
    if !words.is_empty() {
        let text = format!(
            "In all rows {} hold. If advice must obey them, take them as [[rule]] from the end of \
             the draft.",
            listed(&words)
        );
        inferred.note(None, text);
    }
}

/// The columns that are neither features nor the label.
fn other_columns<'a>(table: &'a Table, schema: &Schema) -> Vec<&'a str> {
    let is_other = |name: &&str| *name != schema.label.column && schema.position(name).is_none();
    table.columns().iter().map(Column::name).filter(is_other).collect()
}

fn ignore_others(inferred: &mut Inferred, table: &Table) {
    let others = other_columns(table, &inferred.schema);
    match others.as_slice() {
        [] => return,
        [one] => {
            inferred.note(None, format!("Column `{one}` is ignored: no feature of the model."));
        }
        many => inferred
            .note(None, format!("Columns {} are ignored: no features of the model.", listed(many))),
    }
    inferred.schema.ignore = others.into_iter().map(str::to_owned).collect();
}

fn name_of(table: &Table) -> String {
    let name = table.source().file_name().unwrap_or(table.source().as_os_str());
    name.to_string_lossy().into_owned()
}

fn no_label(table: &Table) -> Error {
    let none = Missing { tokens: Vec::new(), policy: MissingPolicy::Reject };
    let two_valued: Vec<&str> = table
        .columns()
        .iter()
        .filter(|column| Summary::of(column, &none).values.len() == 2)
        .map(Column::name)
        .collect();
    let hint = if two_valued.is_empty() {
        "no column has just two values".to_owned()
    } else {
        format!("columns with two values are {}", listed(&two_valued))
    };
    Error::Table {
        file: table.source().to_owned(),
        problem: format!("the label column must be named; {hint}"),
    }
}

/// The common words for "missing" that occur in the table; all of them if none occurs.
fn tokens_seen(table: &Table) -> Missing {
    let usual = Missing::default();
    let seen: BTreeSet<&str> = table
        .columns()
        .iter()
        .flat_map(Column::cells)
        .filter(|cell| usual.tokens.iter().any(|token| token == cell))
        .collect();
    if seen.is_empty() {
        return usual;
    }
    Missing { tokens: seen.into_iter().map(str::to_owned).collect(), policy: usual.policy }
}

fn infer_label(table: &Table, label: &Summary<'_>, favourable: &[Value]) -> Result<Label> {
    let levels = label.levels();
    let wrong = |problem: String| Error::Table { file: table.source().to_owned(), problem };
    if levels.len() < 2 || levels.len() > MOST_LEVELS {
        return Err(wrong(format!(
            "the label column `{}` has {} different values, expected 2 to {MOST_LEVELS}",
            label.name,
            levels.len()
        )));
    }
    if let Some(unknown) = favourable.iter().find(|value| !levels.contains(value)) {
        return Err(wrong(format!(
            "the label column `{}` has no value `{unknown}`; it has {}",
            label.name,
            listed(&levels)
        )));
    }
    let favourable = if favourable.is_empty() {
        vec![guess(label.name, &levels).0]
    } else {
        favourable.to_vec()
    };
    let unfavourable: Vec<Value> =
        levels.into_iter().filter(|level| !favourable.contains(level)).collect();
    if unfavourable.is_empty() {
        return Err(wrong(format!(
            "all values of the label column `{}` are favourable",
            label.name
        )));
    }
    let missing = if label.missing > 0 { MissingPolicy::DropRow } else { MissingPolicy::Reject };
    Ok(Label { column: label.name.to_owned(), favourable, unfavourable, missing })
}

/// A label for a table without one, with a name that no column has.
fn absent_label(table: &Table, favourable: &[Value]) -> Label {
    let mut column = "label".to_owned();
    while table.columns().iter().any(|own| own.name() == column) {
        column.push('_');
    }
    let favourable =
        if favourable.is_empty() { vec![Value::Number(1.0)] } else { favourable.to_vec() };
    Label { column, favourable, unfavourable: Vec::new(), missing: MissingPolicy::Reject }
}

/// The reason for a guess of the favourable level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ground {
    /// The label's name is that of a bad outcome, and the level denies it.
    Denied,
    /// The level has a good name.
    GoodName,
    /// All other levels name a bad outcome.
    OthersBad,
    /// There is none: the level is the first.
    First,
}

/// The level that is probably favourable, and why.
fn guess(label: &str, levels: &[Value]) -> (Value, Ground) {
    let named = |word: &&str| levels.iter().find(|level| level.to_string().to_lowercase() == *word);
    let denied =
        if names::is_bad_outcome(label) { DENYING_WORDS.iter().find_map(named) } else { None };
    let denied = denied.map(|level| (level, Ground::Denied));
    let good = || GOOD_WORDS.iter().find_map(named).map(|level| (level, Ground::GoodName));
    let rest = || {
        let is_bad = |level: &&Value| names::is_bad_outcome(&level.to_string());
        let (bad, rest): (Vec<&Value>, Vec<&Value>) = levels.iter().partition(is_bad);
        match *rest {
            [only] if !bad.is_empty() => Some((only, Ground::OthersBad)),
            _ => None,
        }
    };
    let (level, ground) = denied.or_else(good).or_else(rest).unwrap_or((&levels[0], Ground::First));
    (level.clone(), ground)
}

fn remark_on_label(inferred: &mut Inferred, label: Option<&Summary<'_>>, favourable: &[Value]) {
    let Some(label) = label else {
        let text = "No column is the label, so the rows can be explained but not trained on. To \
                    train, name the column under [label].";
        inferred.note(None, text.to_owned());
        return;
    };
    if favourable.is_empty() {
        let guessed = listed(&inferred.schema.label.favourable);
        let text = match guess(label.name, &label.levels()).1 {
            Ground::Denied => format!(
                "Check [label]: {guessed} was guessed to be the favourable value, since `{}` names \
                 a bad outcome.",
                label.name
            ),
            Ground::GoodName => {
                format!("Check [label]: {guessed} was guessed to be the favourable value.")
            }
            Ground::OthersBad => format!(
                "Check [label]: {guessed} was guessed to be the favourable value, since the others \
                 name a bad outcome."
            ),
            Ground::First => format!(
                "Correct [label]: {guessed} was taken as the favourable value because it is the \
                 first; no name says which value is good. If another one is, advice leads the wrong \
                 way."
            ),
        };
        inferred.note(None, text);
    }
    if label.missing > 0 {
        let text = format!("{} rows have no label and are dropped.", label.missing);
        inferred.note(None, text);
    }
}

/// Adds the column as a feature, or to the columns to ignore, with the remarks it needs.
fn add_feature(
    inferred: &mut Inferred,
    table: &Table,
    column: &Column,
    hints: &Hints,
) -> Result<()> {
    let name = column.name();
    let needed = hints.need(name);
    let known = hints.kinds.get(name);
    let mut column = Summary::of(column, &inferred.schema.missing);
    if let Some(kind) = known {
        column.missing = hints::missing_cells(&inferred.schema, kind, table, table.column(name)?)?;
    }
    let levels = column.levels();
    if levels.is_empty() && needed && known.is_none() {
        let problem = format!("the model takes the column `{name}`, which has no values");
        return Err(Error::Table { file: table.source().to_owned(), problem });
    }
    let objection = objection(&column, &levels, known.is_some());
    if let Some(reason) = objection.filter(|_| !needed) {
        inferred.note(None, format!("Column `{name}` is ignored: it {reason}."));
        if column.has_few_texts() {
            let count = column.not_numbers;
            inferred.note(None, format!("Only {count} cells of `{name}` are not numbers."));
        }
        inferred.schema.ignore.push(name.to_owned());
        return Ok(());
    }
    let kind = known.cloned().unwrap_or_else(|| guess_kind(&column, &levels));
    let feature = draw_up(&column, kind, objection.is_some() && levels.len() < 2);
    if let Some(reason) = objection {
        let advice = if feature.action == Action::Fixed {
            " Its possible changes are unknown, so it is fixed."
        } else if column.is_identifier() {
            " If it identifies people, make its `action` `fixed`."
        } else {
            ""
        };
        inferred.note(Some(name), format!("It {reason}.{advice}"));
    }
    remark_on_feature(inferred, &feature, &column, &levels, known.is_some());
    inferred.schema.features.push(feature);
    Ok(())
}

/// The reason against the column as a feature, if any.
fn objection(column: &Summary<'_>, levels: &[Value], known: bool) -> Option<&'static str> {
    if column.name.is_empty() {
        Some("has no name")
    } else if levels.is_empty() {
        Some("has no values")
    } else if levels.len() == 1 && column.missing == 0 {
        Some("has one value in all rows")
    } else if column.rows >= review::LEAST_SPLIT && column.rows - column.missing < LEAST_VALUES {
        Some("has a value in fewer than 10 rows")
    } else if column.is_identifier() {
        Some("numbers the rows")
    } else if !known && !column.is_numeric() && levels.len() > MOST_LEVELS {
        Some("is text with too many different values to be levels")
    } else {
        None
    }
}

fn guess_kind(column: &Summary<'_>, levels: &[Value]) -> FeatureKind {
    match <[Value; 2]>::try_from(levels.to_vec()) {
        Ok(values) if column.whole || !column.is_numeric() => FeatureKind::Flag { values },
        _ if column.is_numeric() && column.whole => FeatureKind::Integer,
        _ if column.is_numeric() => FeatureKind::Numeric,
        _ => FeatureKind::Categorical { levels: levels.to_vec() },
    }
}

/// The feature that fits the cells. A constant number (`constant`) has no step; other rows may have
/// other values, but it is never part of advice.
fn draw_up(column: &Summary<'_>, kind: FeatureKind, constant: bool) -> Feature {
    let mut feature = Feature::new(column.name, kind);
    if feature.kind.is_number() {
        let within = column.range.filter(|_| !constant);
        feature.action = within.map_or(Action::Fixed, Action::Within);
    }
    if feature.kind == FeatureKind::Numeric && !constant {
        let decimals = column.decimals.filter(|&decimals| decimals <= MOST_DECIMALS);
        feature.step = decimals.map(|decimals| 1.0 / 10_f64.powi(decimals as i32));
    }
    if column.missing > 0 {
        feature.missing = Some(MissingPolicy::Level);
    }
    feature
}

fn remark_on_feature(
    inferred: &mut Inferred,
    feature: &Feature,
    column: &Summary<'_>,
    levels: &[Value],
    known: bool,
) {
    let name = Some(feature.name.as_str());
    if column.missing > 0 {
        let text = format!(
            "{} of {} cells are missing. They become a level of their own; `drop-row`, `reject` and \
             {{ fill = value }} are the other choices.",
            column.missing, column.rows
        );
        inferred.note(name, text);
    }
    match feature.kind {
        FeatureKind::Integer if (2..=FEW_VALUES).contains(&levels.len()) => {
            let text = format!(
                "Only the values {}. If they are codes, make it `categorical` or `ordinal` with \
                 `levels`.",
                listed(levels)
            );
            inferred.note(name, text);
        }
        FeatureKind::Integer | FeatureKind::Numeric => {
            let negative: Vec<&Value> = levels
                .iter()
                .filter(|level| level.number().is_some_and(|number| number < 0.0))
                .collect();
            if !negative.is_empty() && negative.len() <= 3 && levels.len() > FEW_VALUES {
                let text = format!(
                    "{} may be codes. If so, add `range = [0, inf]` and list them in `special`.",
                    listed(&negative)
                );
                inferred.note(name, text);
            }
        }
        FeatureKind::Categorical { .. } if !known && column.has_few_texts() => {
            let text = format!(
                "Only {} of {} cells are not numbers. If they mean missing, list them in `tokens` \
                 under [missing] and make it `numeric`.",
                column.not_numbers, column.rows
            );
            inferred.note(name, text);
        }
        FeatureKind::Categorical { .. } if !known => {
            let text = "If the levels have an order, list them in it and make it `ordinal`.";
            inferred.note(name, text.to_owned());
        }
        FeatureKind::Categorical { .. }
        | FeatureKind::Ordinal { .. }
        | FeatureKind::Flag { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;
    use crate::data::Dataset;

    /// Twelve rows with one column of each kind.
    fn table() -> Table {
        let mut text = "id,age,rate,job,member,rooms,late,source,note,class\n".to_owned();
        for row in 0..12 {
            let job = ["clerk", "baker", "?", "smith"][row % 4];
            let member = ["no", "yes"][row % 2];
            let late = if row == 3 { "-9".to_owned() } else { row.to_string() };
            let class = ["bad", "good"][row / 6];
            writeln!(
                text,
                "{},{},{:.2},{job},{member},{},{late},web,text {row},{class}",
                row + 1,
                20 + 3 * row,
                row as f64 * 0.25,
                row % 4
            )
            .unwrap();
        }
        Table::from_csv(Path::new("folder/people.csv"), text.as_bytes()).unwrap()
    }

    #[test]
    fn a_guess_without_a_ground_is_no_reason() {
        let levels = |names: [&str; 2]| names.map(Value::from);
        for (label, names, guessed, ground) in [
            ("default", ["no", "yes"], "no", Ground::Denied),
            ("churn", ["Churned", "Retained"], "Retained", Ground::GoodName),
            ("loan_status", ["Charged Off", "Fully Paid"], "Fully Paid", Ground::GoodName),
            ("risk", ["high", "low"], "high", Ground::First),
            ("loan_status", ["Charged Off", "Current"], "Current", Ground::OthersBad),
            ("outcome", ["died", "survived"], "survived", Ground::OthersBad),
            ("bankrupt", ["0", "1"], "0", Ground::Denied),
            ("charged_off", ["0", "1"], "0", Ground::Denied),
            ("SeriousDlqin2yrs", ["0", "1"], "0", Ground::Denied),
            ("paid_late", ["no", "yes"], "no", Ground::Denied),
            ("readmitted", ["f", "t"], "f", Ground::Denied),
            ("bloated", ["0", "1"], "1", Ground::GoodName),
        ] {
            assert_eq!(guess(label, &levels(names)), (Value::from(guessed), ground), "{label}");
        }
    }

    fn draft(label: Option<&str>, favourable: &[Value]) -> Result<Inferred> {
        Schema::draft(&table(), label, favourable, &Hints::default())
    }

    #[test]
    fn a_draft_has_the_kinds_of_the_columns_and_says_where_to_look() {
        let inferred = draft(Some("class"), &[]).unwrap();
        let expected = r#"# Inferred from people.csv; correct it where necessary.
# Check [label]: `good` was guessed to be the favourable value.
# Column `id` is ignored: it numbers the rows.
# Column `source` is ignored: it has one value in all rows.
# Advice may change `rate`, `job`, `member`, `rooms`, `late`, `note` in any way, numbers inside the range of the data. Confirm this, or give them an `action`.
format_version = 1
ignore = ["id", "source"]

[label]
column = "class"
favourable = "good"
unfavourable = "bad"

[scaling]
method = "min-max"
fit = "train"

[missing]
tokens = ["?"]
policy = "reject"

# An age only rises, so its `action` is `only-up`, with a rule up to 53.
[[feature]]
name = "age"
kind = "integer"
action = "only-up"

[[feature]]
name = "rate"
kind = "numeric"
step = 0.01
action = { within = [0, 2.75] }

# 3 of 12 cells are missing. They become a level of their own; `drop-row`, `reject` and { fill = value } are the other choices.
# If the levels have an order, list them in it and make it `ordinal`.
[[feature]]
name = "job"
kind = "categorical"
levels = ["baker", "clerk", "smith"]
missing = "level"

[[feature]]
name = "member"
kind = "flag"
levels = ["no", "yes"]

# Only the values `0`, `1`, `2`, `3`. If they are codes, make it `categorical` or `ordinal` with `levels`.
[[feature]]
name = "rooms"
kind = "integer"
action = { within = [0, 3] }

# `-9` may be codes. If so, add `range = [0, inf]` and list them in `special`.
[[feature]]
name = "late"
kind = "integer"
action = { within = [-9, 11] }
"#;
        let text = inferred.to_toml().unwrap();
        let (before, after) = text.split_once("\n# If the levels have an order, list them in it and make it `ordinal`.\n[[feature]]\nname = \"note\"").unwrap();
        assert_eq!(before, expected);
        assert!(after.starts_with("\nkind = \"categorical\"\nlevels = [\"text 0\", "), "{after}");
        assert_eq!(Schema::from_toml(&text).unwrap(), inferred.schema);
    }

    #[test]
    fn a_draft_reads_the_table_it_was_drawn_from() {
        let inferred = draft(Some("class"), &[]).unwrap();
        let data = Dataset::load(&inferred.schema, table()).unwrap();
        assert_eq!(data.rows().len(), 12);
        for (row, point) in data.rows().iter().zip(data.points().rows()) {
            assert_eq!(data.encoder().decode(point), *row);
        }
    }

    #[test]
    fn what_cannot_be_guessed_is_asked_for() {
        let error = |label, favourable: &[Value]| draft(label, favourable).unwrap_err().to_string();
        assert_eq!(
            error(None, &[]),
            "folder/people.csv: the label column must be named; columns with two values are \
             `member`, `class`"
        );
        assert_eq!(
            error(Some("class"), &[Value::from("fine")]),
            "folder/people.csv: the label column `class` has no value `fine`; it has `bad`, `good`"
        );
        assert_eq!(
            error(Some("source"), &[]),
            "folder/people.csv: the label column `source` has 1 different values, expected 2 to 60"
        );
    }
}
