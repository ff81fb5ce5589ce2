//! Bad input gets a clear error: the whole message of every case.

use std::fs;
use std::path::Path;

use tyrex::change::Ensemble;
use tyrex::data::{Dataset, Schema, Table};
use tyrex::model::TrainParams;
use tyrex::model::files::{ImportOptions, ModelFile};
use tyrex::{Error, Overwrite};

const SCHEMA: &str = include_str!("../schemas/loans.toml");

/// Two good rows, to be spoilt.
const GOOD: &str = "age,income,purpose,class\n30,1000,repairs,good\n40,2000.5,car (new),bad\n";

/// The error, with the folder of the test taken out of its paths.
fn message(folder: &Path, error: &Error) -> String {
    error.to_string().replace(&format!("{}/", folder.display()), "")
}

fn load(schema: &str, path: &Path) -> Result<Dataset, Error> {
    let mut schema = Schema::from_toml(schema)?;
    path.parent().unwrap().clone_into(&mut schema.folder);
    Dataset::load(&schema, Table::read(path)?)
}

#[track_caller]
fn refused(schema: &str, name: &str, bytes: &[u8], expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    match load(schema, &path) {
        Ok(_) => panic!("accepted, expected: {expected}"),
        Err(error) => assert_eq!(message(folder.path(), &error), expected),
    }
}

#[test]
fn the_good_rows_are_good() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    fs::write(&path, GOOD).unwrap();
    let data = load(SCHEMA, &path).unwrap();
    assert_eq!(data.labels(), [true, false]);
    assert_eq!(data.encoder().dim(), 5);
}

#[test]
fn cells() {
    let cases = [
        (
            "non-numeric",
            ("2000.5", "2k"),
            "data.csv, row 1, column `income`: found `2k`, expected a number such as 12, -0.5 or 1e3",
        ),
        (
            "a thousands separator",
            ("2000.5", "\"2,000\""),
            "data.csv, row 1, column `income`: found `2,000`, expected a number such as 12, -0.5 or \
             1e3",
        ),
        (
            "infinite",
            ("2000.5", "inf"),
            "data.csv, row 1, column `income`: found `inf`, expected a number such as 12, -0.5 or 1e3",
        ),
        (
            "too large for an f64",
            ("2000.5", "1e999"),
            "data.csv, row 1, column `income`: found `1e999`, expected a number such as 12, -0.5 or \
             1e3",
        ),
        (
            "too large for an f32",
            ("2000.5", "-1e39"),
            "data.csv, row 1, column `income`: found `-1e39`, expected a number such as 12, -0.5 or \
             1e3 that fits a 32-bit float",
        ),
        (
            "NaN",
            ("2000.5", "NaN"),
            "data.csv, row 1, column `income`: found `NaN`, expected a number such as 12, -0.5 or 1e3; \
             if missing cells are usual here, set `missing` in the schema",
        ),
        (
            "missing",
            ("30,", ","),
            "data.csv, row 0, column `age`: found ``, expected a whole number from 18 to 99; if \
             missing cells are usual here, set `missing` in the schema",
        ),
        (
            "not whole",
            ("30,", "30.5,"),
            "data.csv, row 0, column `age`: found `30.5`, expected a whole number from 18 to 99",
        ),
        (
            "outside the range",
            ("30,", "17,"),
            "data.csv, row 0, column `age`: found `17`, expected a whole number from 18 to 99",
        ),
        (
            "an unknown level with a neighbour",
            ("car (new)", "Car(new)"),
            "data.csv, row 1, column `purpose`: found `Car(new)`, expected one of `car (new)`, `car \
             (used)`, `repairs`; did you mean `car (new)`?",
        ),
        (
            "an unknown level without a neighbour",
            ("car (new)", "yoga"),
            "data.csv, row 1, column `purpose`: found `yoga`, expected one of `car (new)`, `car \
             (used)`, `repairs`",
        ),
        (
            "an unknown label",
            ("good", "ok"),
            "data.csv, row 0, column `class`: found `ok`, expected a label: one of `good`, `bad`",
        ),
        (
            "no label",
            ("good", ""),
            "data.csv, row 0, column `class`: found ``, expected a label: one of `good`, `bad`",
        ),
    ];
    for (name, (from, to), expected) in cases {
        let spoilt = GOOD.replacen(from, to, 1);
        assert_ne!(spoilt, GOOD, "{name}");
        refused(SCHEMA, "data.csv", spoilt.as_bytes(), expected);
    }
}

#[test]
fn files() {
    let cases: [(&str, &[u8], &str); 20] = [
        ("data.csv", b"", "data.csv: the file is empty, expected a header line"),
        ("data.csv", b"age,income,purpose,class\n", "data.csv: no rows below the header"),
        (
            "data.csv",
            b"age,incme,purpose,class\n30,1000,repairs,good\n",
            "data.csv: no column `income`; the file has `age`, `incme`, `purpose`, `class`; did you \
             mean `incme`?",
        ),
        (
            "data.csv",
            b"age,income,purpose\n30,1000,repairs\n",
            "data.csv: no column `class`; the file has `age`, `income`, `purpose`",
        ),
        (
            "data.csv",
            b"age,income,purpose,class\n30,1000,repairs,good\n31,1,repairs,good\n",
            "data.csv: all 2 training rows are favourable in column `class`, expected both classes \
             (favourable is `good`)",
        ),
        (
            "data.csv",
            b"age,income,purpose,class\n30,1000,repairs,bad\n",
            "data.csv: all 1 training rows are unfavourable in column `class`, expected both classes \
             (favourable is `good`)",
        ),
        (
            "data.csv",
            b"age,income,purpose,class\n30,1000,repairs,bad\n30,1000,repairs\n",
            "data.csv: row 1 (line 3) has 3 cells, expected 4",
        ),
        (
            "data.csv",
            b"age,income,purpose,class\n30,1,000,repairs,bad\n",
            "data.csv: row 0 (line 2) has 5 cells, expected 4",
        ),
        (
            "data.csv",
            b"age,income,age,class\n30,1000,repairs,bad\n",
            "data.csv: column `age` appears twice in the header, and the schema does not say which \
             one it means; the second is read as `age.2`: add `age.2` to `ignore` or to the features, \
             or remove it from the file",
        ),
        (
            "data.csv",
            b"age,income,purpose,class\n30,1000,caf\xe9,bad\n",
            "data.csv: line 2 is not UTF-8 text, expected a file saved as UTF-8",
        ),
        (
            "data.csv",
            b"age;income;purpose;class\n30;1000;repairs;bad\n",
            "data.csv: the header is separated by semicolons, expected commas between columns",
        ),
        (
            "data.xlsx",
            b"PK",
            "data.xlsx: unknown format, expected a file name that ends in .csv, .jsonl, .ndjson or \
             .parquet",
        ),
        ("data.jsonl", b"\n", "data.jsonl: the file is empty, expected one JSON object per line"),
        (
            "data.jsonl",
            b"{\"age\": 30, \"income\": }\n",
            "data.jsonl: row 0 (line 1): expected value at line 1 column 23, expected one JSON object \
             per line",
        ),
        (
            "data.jsonl",
            b"{\"age\": 30}\n{\"age\": [31]}\n",
            "data.jsonl, row 1, column `age`: found `[31]`, expected a number, a text, true, false or \
             null",
        ),
        (
            "data.jsonl",
            b"{\"age\": 30}\n\n{\"Age\": 31}\n",
            "data.jsonl: row 1 (line 3) has the key `Age`, expected those of the first line: `age`",
        ),
        (
            "data.jsonl",
            b"{\"age\": 30, \"age\": 31}\n",
            "data.jsonl: row 0 (line 1) has the key `age` twice",
        ),
        (
            "data.parquet",
            b"age,income\n30,1000\n",
            "data.parquet: not a readable Parquet file: Parquet error: Invalid Parquet file. Corrupt \
             footer",
        ),
        (
            "data.parquet",
            include_bytes!("../golden/parquet/pyarrow_date.parquet"),
            "data.parquet: column `day` holds dates, expected numbers, text or booleans; convert it to \
             text or leave it out",
        ),
        (
            "data.parquet",
            include_bytes!("../golden/parquet/pyarrow_list.parquet"),
            "data.parquet: column `many.list.element` holds lists or records, expected numbers, text \
             or booleans; convert it to text or leave it out",
        ),
    ];
    for (name, bytes, expected) in cases {
        refused(SCHEMA, name, bytes, expected);
    }
}

#[test]
fn a_file_that_is_not_there() {
    let error = load(SCHEMA, Path::new("no-such-file.csv")).unwrap_err();
    let expected = "cannot read no-such-file.csv: No such file or directory (os error 2)";
    assert_eq!(error.to_string(), expected);
}

/// Some files have no end; reading them whole would fill the memory.
#[cfg(unix)]
#[test]
fn a_document_without_an_end() {
    let zeros = Path::new("/dev/zero");
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(zeros, folder.path().join("ensemble.json")).unwrap();
    let errors = [
        Schema::read(zeros).unwrap_err(),
        TrainParams::default().with_file(zeros).unwrap_err(),
        Ensemble::read(folder.path()).unwrap_err(),
        ModelFile::read(zeros, &ImportOptions::default()).unwrap_err(),
    ];
    for error in errors.map(|error| error.to_string()) {
        assert!(error.contains("the file is larger than"), "{error}");
    }
}

#[test]
fn every_row_dropped() {
    let schema = SCHEMA.replace("kind = \"numeric\"", "kind = \"numeric\"\nmissing = \"drop-row\"");
    let spoilt = GOOD.replace("1000", "?").replace("2000.5", "");
    let expected = "data.csv: no rows left: all 2 have a missing cell and were dropped";
    refused(&schema, "data.csv", spoilt.as_bytes(), expected);
}

#[test]
fn splits() {
    let data = "age,income,purpose,class,part\n30,1,repairs,good,train\n40,2,repairs,bad,tset\n";
    let by_column = format!("{SCHEMA}\n[split]\ncolumn = \"part\"\n");
    refused(
        &by_column,
        "data.csv",
        data.as_bytes(),
        "data.csv, row 1, column `part`: found `tset`, expected one of `train`, `test`",
    );
    let only_test = data.replace("train", "test").replace("tset", "test");
    refused(
        &by_column,
        "data.csv",
        only_test.as_bytes(),
        "data.csv: the split leaves no rows to train on",
    );

    let by_file = format!("{SCHEMA}\n[split]\nfile = \"split.csv\"\n");
    let cases = [
        (
            "row,split\n0,train\n2,test\n",
            "split.csv, row 1, column `row`: found `2`, expected a row of data.csv, 0 to 1",
        ),
        (
            "row,split\n0,train\n-1,test\n",
            "split.csv, row 1, column `row`: found `-1`, expected a row of data.csv, 0 to 1",
        ),
        (
            "row,split\n0,train\n0,test\n",
            "split.csv, row 1, column `row`: found `0`, expected every row at most once",
        ),
        (
            "row,split\n0,train\n1,tset\n",
            "split.csv, row 1, column `split`: found `tset`, expected `train` or `test`",
        ),
        ("row,part\n0,train\n", "split.csv: no column `split`; the file has `row`, `part`"),
        (
            "row,split\n0,train\n",
            "data.csv: all 1 training rows are favourable in column `class`, expected both classes (favourable is `good`)",
        ),
    ];
    for (split, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.csv");
        fs::write(&path, GOOD).unwrap();
        fs::write(folder.path().join("split.csv"), split).unwrap();
        let error = load(&by_file, &path).unwrap_err();
        assert_eq!(message(folder.path(), &error), expected);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    fs::write(&path, GOOD).unwrap();
    let error = load(&by_file, &path).unwrap_err();
    let expected = "cannot read split.csv: No such file or directory (os error 2)";
    assert_eq!(message(folder.path(), &error), expected);
}

#[test]
fn outputs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.csv");
    let table = Table::from_csv(Path::new("data.csv"), GOOD.as_bytes()).unwrap();
    table.write(&path, Overwrite::Refuse).unwrap();
    let error = table.write(&path, Overwrite::Refuse).unwrap_err();
    let expected = "out.csv exists already";
    assert_eq!(message(folder.path(), &error), expected);
    let error = table.write(&folder.path().join("out.txt"), Overwrite::Force).unwrap_err();
    let expected = "out.txt: unknown format, expected a file name that ends in .csv, .jsonl, .ndjson \
                    or .parquet";
    assert_eq!(message(folder.path(), &error), expected);
    assert_eq!(fs::read_to_string(&path).unwrap(), GOOD);
}

#[test]
fn schemas() {
    let age = "name = \"age\"\nkind = \"integer\"\nrange = [18, 99]\n";
    let numeric = "kind = \"numeric\"";
    let levels = "levels = [\"car (new)\", \"car (used)\", \"repairs\"]";
    let cases = [
        ("format_version = 1", "format_version = 2", "schema: format_version is 2, expected 1"),
        ("\"income\"", "\"age\"", "schema, feature `age`: is listed twice"),
        ("\"income\"", "\"\"", "schema: a feature has an empty name"),
        ("\"income\"", "\"class\"", "schema, feature `class`: is also the label column"),
        (
            "format_version = 1",
            "format_version = 1\nignore = [\"age\"]",
            "schema, feature `age`: is also listed in `ignore`",
        ),
        (
            "favourable = \"good\"",
            "favourable = []",
            "schema: label: `favourable` is empty, expected at least one value",
        ),
        ("\"bad\"", "\"good\"", "schema: label: `good` is listed twice"),
        (
            "unfavourable = \"bad\"",
            "missing = \"level\"",
            "schema: label: `missing` must be `reject` or `drop-row`",
        ),
        (
            "range = [18, 99]",
            "range = [99, 18]",
            "schema, feature `age`: `range` is [99, 18], expected the smaller number first",
        ),
        (
            "range = [18, 99]",
            "range = [18.2, 18.8]",
            "schema, feature `age`: no multiple of 1 lies in the range",
        ),
        (
            "range = [18, 99]",
            "range = [18, 99]\nspecial = { values = [-9, 20], as = \"number\" }",
            "schema, feature `age`: special value 20 lies inside the range, so it is not special",
        ),
        (
            "range = [18, 99]",
            "special = { values = [-9], as = \"level\" }",
            "schema, feature `age`: special values as levels need a `range` that leaves them out",
        ),
        (
            "range = [18, 99]",
            "range = [18, 99]\nspecial = { values = [-9, -9], as = \"level\" }",
            "schema, feature `age`: special values: `-9` is listed twice",
        ),
        (
            "range = [18, 99]",
            "range = [18, 99]\nmissing = { fill = 17 }",
            "schema, feature `age`: missing cells are filled with `17`, expected a whole number from \
             18 to 99",
        ),
        (
            "range = [18, 99]",
            "range = [18, 99]\nclip = [0, 10]",
            "schema, feature `age`: `range` and `clip` have no number in common",
        ),
        (
            "range = [18, 99]",
            "step = 2",
            "schema, feature `age`: `step` goes with kind `numeric`, not with kind `integer`",
        ),
        (
            "range = [18, 99]",
            "encoding = \"one-hot\"",
            "schema, feature `age`: this encoding does not go with kind `integer`, expected `scaled` or \
             `as-is`",
        ),
        (
            "range = [18, 99]",
            "action = { levels = [1] }",
            "schema, feature `age`: action `levels` goes with levels, not with kind `integer`",
        ),
        (
            "range = [18, 99]",
            "range = [18, 99]\naction = { within = [100, 120] }",
            "schema, feature `age`: `within` and `range` have no number in common",
        ),
        (
            numeric,
            "kind = \"numeric\"\nstep = 0",
            "schema, feature `income`: `step` is 0, expected a number above 0",
        ),
        (
            levels,
            "levels = []",
            "schema, feature `purpose`: `levels` is empty, expected at least one",
        ),
        (levels, "levels = [1, \"1\"]", "schema, feature `purpose`: levels: `1` is listed twice"),
        (
            levels,
            "levels = [\"a\", \"b\"]\nencoding = \"as-is\"",
            "schema, feature `purpose`: encoding `as-is` needs levels that are numbers",
        ),
        (
            levels,
            "levels = [\"a\", \"b\"]\naction = \"only-up\"",
            "schema, feature `purpose`: levels without an order cannot go only up or only down",
        ),
        (
            levels,
            "levels = [\"a\", \"b\"]\naction = { levels = [\"c\"] }",
            "schema, feature `purpose`: action lists `c`, which is not a level of it",
        ),
        (
            levels,
            "levels = [\"a\"]\nrange = [0, 1]",
            "schema, feature `purpose`: `range` goes with numbers, not with kind `categorical`",
        ),
        (
            "format_version = 1",
            "format_version = 1\norder = [\"age\", \"income\"]",
            "schema, feature `purpose`: is not listed in `order`",
        ),
        (
            "format_version = 1",
            "format_version = 1\nsplit = { fraction = 1.5 }",
            "schema: split: `fraction` is 1.5, expected a number between 0 and 1",
        ),
        (
            "format_version = 1",
            "format_version = 1\nrule = [{ terms = { purpose = 1 }, at_most = 1 }]",
            "schema: rule 0: `purpose` is not a number",
        ),
        (
            "format_version = 1",
            "format_version = 1\nrule = [{ terms = { age = 1 } }]",
            "schema: rule 0: expected `at_least`, `at_most` or both",
        ),
        (
            age,
            "name = \"age\"\nkind = \"flag\"\nlevels = [1, 2, 3]\n",
            "schema: not a schema: TOML parse error at line 9, column 1\n  |\n9 | [[feature]]\n  | \
             ^^^^^^^^^^^\nfeature `age`: a flag has 2 levels, found 3",
        ),
        (
            "range = [18, 99]",
            "rnage = [18, 99]",
            "schema: not a schema: TOML parse error at line 12, column 1\n   |\n12 | rnage = [18, 99]\n   \
             | ^^^^^\nunknown field `rnage`, expected one of `name`, `kind`, `levels`, `description`, \
             `unit`, `range`, `step`, `special`, `missing`, `encoding`, `scaling`, `clip`, `action`, \
             `may_become`, `price`",
        ),
        (
            "kind = \"numeric\"",
            "kind = \"number\"",
            "schema: not a schema: TOML parse error at line 16, column 8\n   |\n16 | kind = \
             \"number\"\n   |        ^^^^^^^^\nunknown variant `number`, expected one of `numeric`, \
             `integer`, `ordinal`, `categorical`, `flag`",
        ),
    ];
    let mut different = Vec::new();
    for (from, to, expected) in cases {
        assert!(SCHEMA.contains(from), "{from}");
        match Schema::from_toml(&SCHEMA.replacen(from, to, 1)) {
            Ok(_) => different.push(format!("accepted, expected: {expected}")),
            Err(error) if error.to_string() != expected => {
                different.push(format!("expected: {expected}\nfound:    {error}"));
            }
            Err(_) => {}
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n\n"));
}

#[test]
fn a_schema_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("schema.toml");
    fs::write(&path, SCHEMA.replace("range = [18, 99]", "range = [99, 18]")).unwrap();
    let error = Schema::read(&path).unwrap_err();
    let expected = "schema.toml: schema, feature `age`: `range` is [99, 18], expected the smaller \
                    number first";
    assert_eq!(message(folder.path(), &error), expected);
}

#[test]
fn a_whole_number_is_exact_or_refused() {
    let schema = SCHEMA.replace("range = [18, 99]\n", "");
    let csv = GOOD.replace("40,", "9007199254740993,");
    let expected = "data.csv, row 1, column `age`: found `9007199254740993`, expected a whole \
                    number between -2^53 and 2^53";
    refused(&schema, "data.csv", csv.as_bytes(), expected);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    fs::write(&path, GOOD.replace("40,", "-9007199254740991,")).unwrap();
    assert!(load(&schema, &path).is_ok());
}

#[test]
fn a_long_line_of_toml_is_not_repeated() {
    let error = Schema::from_toml(&format!("x = {}", "é".repeat(100_000))).unwrap_err().to_string();
    assert!(error.contains("not a schema") && error.len() < 1000, "{} bytes", error.len());
}

#[test]
fn json_lines_may_begin_with_a_byte_order_mark() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.jsonl");
    fs::write(&path, "\u{feff}{\"a\":1}\n{\"a\":2}\n").unwrap();
    let table = Table::read(&path).unwrap();
    assert_eq!(table.column("a").unwrap().cell(1), "2");
}
