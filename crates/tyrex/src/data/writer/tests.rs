use std::fs;

use proptest::prelude::*;

use super::*;

const FORMATS: [&str; 3] = ["csv", "jsonl", "parquet"];

fn table(columns: &[(&str, Vec<String>)]) -> Table {
    let columns = columns
        .iter()
        .map(|(name, cells)| {
            let mut column = Column::new(*name);
            cells.iter().for_each(|cell| column.push(cell));
            column
        })
        .collect();
    Table::new("memory", columns).unwrap()
}

fn contents(table: &Table) -> Vec<(&str, Content)> {
    table.columns().iter().map(|column| (column.name(), Content::of(column))).collect()
}

fn batches(table: &Table, size: usize) -> Vec<Table> {
    (0..table.rows())
        .step_by(size)
        .map(|start| {
            let part = |column: &Column| {
                let mut part = Column::new(column.name());
                column.cells().skip(start).take(size).for_each(|cell| part.push(cell));
                part
            };
            Table::new("memory", table.columns().iter().map(part).collect()).unwrap()
        })
        .collect()
}

fn columns(path: &Path) -> Vec<Column> {
    Table::read(path).unwrap().columns().to_vec()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

type Cells = (Option<i64>, String, bool, f64);

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn batches_make_the_file_that_the_whole_makes(
        rows in proptest::collection::vec((any::<Option<i64>>(), any::<String>(), any::<bool>(), -1e6..1e6), 1..40)
    ) {
        let cells = |cell: &dyn Fn(&Cells) -> String| {
            rows.iter().map(cell).collect::<Vec<_>>()
        };
        let given = table(&[
            ("whole", cells(&|row| row.0.map(|whole| whole.to_string()).unwrap_or_default())),
            ("any, \"text\"", cells(&|row| row.1.clone())),
            ("flag", cells(&|row| row.2.to_string())),
            ("real", cells(&|row| row.3.to_string())),
        ]);
        let folder = tempfile::tempdir().unwrap();
        for format in FORMATS {
            let whole = folder.path().join(format!("whole.{format}"));
            given.write(&whole, Overwrite::Force).unwrap();
            for size in [1, 2, 7, 1000] {
                let path = folder.path().join(format!("batches.{format}"));
                let mut writer =
                    TableWriter::create(&path, Overwrite::Force, &contents(&given)).unwrap();
                for batch in batches(&given, size) {
                    writer.write(&batch).unwrap();
                }
                writer.finish().unwrap();
                if format == "parquet" {
                    prop_assert_eq!(columns(&path), columns(&whole));
                } else {
                    prop_assert_eq!(fs::read(&path).unwrap(), fs::read(&whole).unwrap());
                }
            }
        }
    }
}

#[test]
fn a_writer_without_rows_makes_the_file_of_an_empty_table() {
    let empty = table(&[("a", Vec::new()), ("b", Vec::new())]);
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let whole = folder.path().join(format!("whole.{format}"));
        let path = folder.path().join(format!("none.{format}"));
        empty.write(&whole, Overwrite::Refuse).unwrap();
        let columns = [("a", Content::Text), ("b", Content::Text)];
        TableWriter::create(&path, Overwrite::Refuse, &columns).unwrap().finish().unwrap();
        assert_eq!(fs::read(path).unwrap(), fs::read(whole).unwrap(), "{format}");
    }
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("out.{format}"));
        let many = table(&[("a", vec!["1".to_owned(); 30_000])]);
        let written = |overwrite| {
            let mut writer =
                TableWriter::create(&path, overwrite, &[("a", Content::Integer)]).unwrap();
            writer.write(&many).unwrap();
            writer
        };
        drop(written(Overwrite::Refuse));
        assert!(names(folder.path()).is_empty(), "{format}");
        fs::write(&path, b"old").unwrap();
        let refused = TableWriter::create(&path, Overwrite::Refuse, &[("a", Content::Integer)]);
        assert!(matches!(refused, Err(Error::Exists { .. })));
        drop(written(Overwrite::Force));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let writer = written(Overwrite::Force);
        assert_eq!(fs::read(&path).unwrap(), b"old", "until it is finished");
        writer.finish().unwrap();
        assert_eq!(columns(&path), many.columns());
        assert_eq!(names(folder.path()), [format!("out.{format}")]);
    }
}

#[test]
fn a_cell_that_does_not_fit_is_an_error_with_its_row_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = format!("{}/", folder.path().display());
    let row = |cells: [&str; 4]| {
        let cells = cells.map(|cell| vec![String::new(), cell.to_owned()]);
        let [a, b, c, d] = cells;
        table(&[("a", a), ("b", b), ("c", c), ("d", d)])
    };
    let good = row(["true", "-3", "1.50", "x"]);
    let cases = [
        (["TRUE", "1", "1", ""], "row 3, column `a`: found `TRUE`, expected `true` or `false`"),
        (["", "01", "1", ""], "row 3, column `b`: found `01`, expected a whole number of 64 bits"),
        (
            ["", "1", "NaN", ""],
            "row 3, column `c`: found `NaN`, expected a number such as 12, -0.5 or 1e3",
        ),
    ];
    for format in FORMATS {
        let path = folder.path().join(format!("out.{format}"));
        let mut writer = TableWriter::create(&path, Overwrite::Refuse, &contents(&good)).unwrap();
        writer.write(&good).unwrap();
        for (cells, expected) in cases {
            let error = writer.write(&row(cells)).unwrap_err().to_string();
            assert_eq!(error.replace(&prefix, ""), format!("out.{format}, {expected}"));
        }
        let other = table(&[("a", Vec::new()), ("c", Vec::new())]);
        let error = writer.write(&other).unwrap_err().to_string();
        let expected = "a batch has the columns `a`, `c`, expected `a`, `b`, `c`, `d`";
        assert_eq!(error.replace(&prefix, ""), format!("out.{format}: {expected}"));
        // A batch that was refused leaves no rows behind.
        writer.write(&good).unwrap();
        writer.finish().unwrap();
        assert_eq!(Table::read(&path).unwrap().rows(), 4);
    }
    let twice = [("a", Content::Text), ("a", Content::Text)];
    let error = TableWriter::create(&folder.path().join("twice.csv"), Overwrite::Refuse, &twice);
    assert!(error.unwrap_err().to_string().contains("column `a` appears twice"));
}

#[test]
fn small_batches_share_a_row_group() {
    use ::parquet::file::metadata::RowGroupMetaData;
    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.parquet");
    let groups = || {
        let file = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
        file.metadata().row_groups().iter().map(RowGroupMetaData::num_rows).collect::<Vec<_>>()
    };
    let all = table(&[("a", (0..40_000).map(|row| row.to_string()).collect())]);
    all.write(&path, Overwrite::Force).unwrap();
    assert_eq!(groups(), [40_000]);
    let mut writer = TableWriter::create(&path, Overwrite::Force, &contents(&all)).unwrap();
    for batch in batches(&all, 1000) {
        writer.write(&batch).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(groups(), [17_000, 17_000, 6_000]);
    assert_eq!(columns(&path), all.columns());
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_is_written_to_directly_and_a_full_one_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let many = table(&[("a", vec!["1".to_owned(); 100_000])]);
    for format in FORMATS {
        let link = folder.path().join(format!("full.{format}"));
        std::os::unix::fs::symlink("/dev/full", &link).unwrap();
        let written = TableWriter::create(&link, Overwrite::Refuse, &[("a", Content::Integer)])
            .and_then(|mut writer| {
                writer.write(&many)?;
                writer.finish()
            });
        let error = written.unwrap_err().to_string();
        let expected = format!("cannot write {}: No space left on device", link.display());
        assert!(error.starts_with(&expected), "{error}");
    }
}

/// The rule of a safe file: text that a spreadsheet would run gets an apostrophe, numbers do not.
#[test]
fn a_spreadsheet_runs_no_cell() {
    let cells = [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n=1", "'\n=1"),
        ("\u{ff1d}1", "'\u{ff1d}1"),
        ("-inf", "'-inf"),
        ("-", "'-"),
        ("-5", "-5"),
        ("+5.5e-3", "+5.5e-3"),
        ("a=b", "a=b"),
        ("'=1", "'=1"),
        ("", ""),
    ];
    let folder = tempfile::tempdir().unwrap();
    let (given, safe): (Vec<String>, Vec<String>) =
        cells.iter().map(|(cell, safe)| ((*cell).to_owned(), (*safe).to_owned())).unzip();
    let given = table(&[("=name", given)]);
    for format in FORMATS {
        let path = folder.path().join("safe").with_extension(format);
        given.write_with(&path, Overwrite::Refuse, super::CellFormat::SpreadsheetSafe).unwrap();
        let read = Table::read(&path).unwrap();
        let column = &read.columns()[0];
        if format == "csv" {
            assert_eq!(column.name(), "'=name");
            assert_eq!(column.cells().collect::<Vec<_>>(), safe);
        } else {
            assert_eq!(read.columns(), given.columns(), "{format}");
        }
    }
}
