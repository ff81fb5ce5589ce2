//! Files as strangers have them: the drafted schema trains a network, and the few corrections that
//! it needs are pointed at.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use tyrex::data::infer::Inferred;
use tyrex::data::schema::{Action, MissingPolicy};
use tyrex::data::{Dataset, Feature, Hints, Schema, Table};
use tyrex::explain::{Explainer, Part};
use tyrex::model::TrainParams;
use tyrex::{Error, Seed};

const ROWS: usize = 160;

/// Whether a row is favourable, from a number that is not in the file in this form.
fn outcome(row: usize) -> bool {
    (row * 37 % 101) + (row * 13 % 53) > 75
}

fn file(header: &str, cells: impl Fn(usize) -> String) -> Table {
    let mut text = format!("{header}\n");
    for row in 0..ROWS {
        writeln!(text, "{}", cells(row)).unwrap();
    }
    Table::from_csv(Path::new("people.csv"), text.as_bytes()).unwrap()
}

/// The draft as it comes back from its file.
fn draft(table: &Table, label: &str) -> Inferred {
    let inferred = Schema::draft(table, Some(label), &[], &Hints::default()).unwrap();
    let schema = Schema::from_toml(&inferred.to_toml().unwrap()).unwrap();
    assert_eq!(schema, inferred.schema);
    inferred
}

/// Trains with the schema and says what a person has to think of: remarks that ask for a correction.
fn trained(schema: &Schema, table: Table) -> Explainer {
    let dataset = Dataset::load(schema, table).unwrap();
    let params = TrainParams { epochs: 3, ..TrainParams::default() };
    let explainer =
        Explainer::train(dataset, &params, Seed(0), |_| ControlFlow::Continue(())).unwrap();
    assert!(!explainer.applicants().part(Part::Test).is_empty());
    explainer
}

fn feature<'a>(inferred: &'a Inferred, name: &str) -> &'a Feature {
    &inferred.schema.features[inferred.schema.position(name).unwrap()]
}

/// The remarks that ask for a correction.
fn corrections(inferred: &Inferred) -> Vec<&str> {
    let asks = |text: &&str| text.contains("If 0 means missing") || text.contains("give the label");
    inferred.notes.iter().map(|note| note.text.as_str()).filter(asks).collect()
}

#[test]
fn many_missing_cells() {
    let table = file("age,income,job,approved", |row| {
        let or_missing = |every: usize, text: String| {
            if row % every == 0 { ["", "NA"][row % 2].to_owned() } else { text }
        };
        format!(
            "{},{},{},{}",
            20 + row * 7 % 45,
            or_missing(2, (1000 + row * 37 % 101).to_string()),
            or_missing(3, ["clerk", "baker"][row * 5 % 2].to_owned()),
            ["no", "yes"][usize::from(outcome(row))]
        )
    });
    let inferred = draft(&table, "approved");
    assert_eq!(corrections(&inferred), [""; 0]);
    assert_eq!(feature(&inferred, "income").missing, Some(MissingPolicy::Level));
    assert_eq!(feature(&inferred, "age").action, Action::OnlyUp);
    trained(&inferred.schema, table);
}

#[test]
fn a_repeated_header_and_leaks() {
    let table = file("income,debt,income,debt,paid_late,paid,paid", |row| {
        let (income, debt) = (row * 37 % 101, row * 13 % 53);
        let paid = usize::from(outcome(row));
        format!("{income},{debt},{income},{},{},{paid},{paid}", debt * 3 % 11, 40 * paid + row % 20)
    });
    let inferred = draft(&table, "paid");
    // Equal copies are ignored; another column of the same name stays, under a name of its own.
    assert_eq!(inferred.schema.ignore, ["income.2", "paid.2"]);
    assert!(inferred.schema.position("debt.2").is_some());
    let text = inferred.to_toml().unwrap();
    for part in [
        "# The header has `debt` more than once; a further column is read as `debt.2`.",
        "# Column `income.2` is ignored: it repeats column `income`.",
        "# Column `paid.2` is ignored: it repeats the label.",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(corrections(&inferred).len(), 1);
    trained(&inferred.schema, table.clone());
    // A schema that does not mention the copy does not say which column it means.
    let mut unaware = inferred.schema;
    unaware.ignore.clear();
    match Dataset::load(&unaware, table) {
        Err(Error::Table { problem, .. }) => assert!(
            problem.starts_with("column `income` appears twice in the header")
                && problem.contains("add `income.2` to `ignore`"),
            "{problem}"
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn zeros_for_missing() {
    let table = file("glucose,pressure,visits,diabetes", |row| {
        let glucose = if row % 5 == 0 { 0 } else { 70 + row * 37 % 101 };
        let pressure = if row % 7 == 0 { 0 } else { 50 + row * 13 % 53 };
        format!("{glucose},{pressure},{},{}", row % 6, usize::from(!outcome(row)))
    });
    let inferred = draft(&table, "diabetes");
    assert_eq!(inferred.schema.label.favourable, [tyrex::data::Value::Number(0.0)]);
    assert_eq!(corrections(&inferred).len(), 2);
    trained(&inferred.schema, table.clone());
    // The remark is the correction.
    let text = inferred.to_toml().unwrap();
    let mut corrected = inferred.schema;
    for name in ["glucose", "pressure"] {
        let position = corrected.position(name).unwrap();
        let least = if name == "glucose" { 70.0 } else { 50.0 };
        let feature = &mut corrected.features[position];
        assert!(text.contains(&format!("`range = [{least}, inf]`")), "{text}");
        feature.range = Some([least, f64::INFINITY].into());
        feature.special = Some(tyrex::data::schema::Special {
            values: vec![0.0],
            treated: tyrex::data::schema::SpecialAs::Level,
        });
    }
    trained(&corrected, table);
}

#[test]
fn identifiers() {
    let table = file("customer_id,name,sex,income,default", |row| {
        let sex = ["f", "m"][row % 2];
        let bad = usize::from(!outcome(row));
        format!("{},person {row},{sex},{},{bad}", 900_000 - 7 * row, row * 37 % 101)
    });
    let inferred = draft(&table, "default");
    let mut ignored = inferred.schema.ignore.clone();
    ignored.sort_unstable();
    assert_eq!(ignored, ["customer_id", "name"]);
    assert_eq!(feature(&inferred, "sex").action, Action::Fixed);
    assert_eq!(corrections(&inferred), [""; 0]);
    trained(&inferred.schema, table);
}

#[test]
fn a_few_words_among_numbers_are_pointed_at() {
    let table = file("income,debt,good", |row| {
        let income = if row == 31 { "inf".to_owned() } else { (900 + row * 37 % 41).to_string() };
        format!("{income},{},{}", row * 13 % 53, usize::from(outcome(row)))
    });
    let text = draft(&table, "good").to_toml().unwrap();
    assert!(text.contains("# Only 1 of 160 cells are not numbers."), "{text}");
}

/// A draft reads the table it was drawn from.
#[test]
fn columns_with_hardly_a_value_and_inexact_integers() {
    let table = file("income,spare,huge,good", |row| {
        let spare = if row < 9 { row.to_string() } else { String::new() };
        let huge = format!("{}000000000000000000000000000000", row * 13 % 53);
        format!("{},{spare},{huge},{}", row * 37 % 101, usize::from(outcome(row)))
    });
    let inferred = draft(&table, "good");
    assert_eq!(inferred.schema.ignore, ["spare"]);
    let text = inferred.to_toml().unwrap();
    assert!(text.contains("Column `spare` is ignored: it has a value in fewer than 10"), "{text}");
    assert_eq!(feature(&inferred, "huge").kind, tyrex::data::FeatureKind::Numeric);
    assert_eq!(corrections(&inferred), [""; 0]);
    trained(&inferred.schema, table);
}

/// A table may have thousands of columns.
#[test]
fn a_wide_table_is_drafted_in_seconds() {
    let columns = 6000;
    let header: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    let mut text = format!("{},good\n", header.join(","));
    for row in 0..60_usize {
        // The last column repeats the first.
        let cell = |column: usize| (row + 1) * (column % (columns - 1) + 7) * 7919 % 1009;
        let cells: Vec<String> = (0..columns).map(|column| cell(column).to_string()).collect();
        writeln!(text, "{},{}", cells.join(","), row % 2).unwrap();
    }
    let table = Table::from_csv(Path::new("wide.csv"), text.as_bytes()).unwrap();
    let started = std::time::Instant::now();
    let inferred = Schema::draft(&table, Some("good"), &[], &Hints::default()).unwrap();
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    assert!(inferred.schema.ignore.contains(&format!("c{}", columns - 1)));
}

#[test]
fn heavy_outliers() {
    let table = file("income,debt,good", |row| {
        let income = if row == 31 { 9_000_000 } else { 900 + row * 37 % 101 };
        format!("{income},{},{}", row * 13 % 53, usize::from(outcome(row)))
    });
    let inferred = draft(&table, "good");
    assert!(feature(&inferred, "income").clip.unwrap().upper < 1001.0);
    assert_eq!(feature(&inferred, "debt").clip, None);
    assert_eq!(corrections(&inferred), [""; 0]);
    trained(&inferred.schema, table);
}
