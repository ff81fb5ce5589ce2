use std::fs;
use std::io::Read;

use proptest::prelude::*;

use super::*;
use crate::file::Overwrite;

const SIZES: [usize; 4] = [1, 2, 7, 1000];

/// The names and cells of a table that was read, or the error.
type Outcome = Result<Vec<(String, Vec<String>)>, String>;

fn cells(table: &Table) -> Vec<(String, Vec<String>)> {
    let texts = |column: &Column| column.cells().map(str::to_owned).collect();
    table.columns().iter().map(|column| (column.name().to_owned(), texts(column))).collect()
}

fn at_once(path: &Path) -> Outcome {
    Table::read(path).map(|table| cells(&table)).map_err(|error| error.to_string())
}

/// All batches one after the other, with what every batch promises checked.
fn in_batches(path: &Path, size: usize) -> Outcome {
    let mut joined: Vec<(String, Vec<String>)> = Vec::new();
    let (mut rows, mut batches) = (0, 0);
    let mut reader = TableReader::open(path, size).map_err(|error| error.to_string())?;
    let mut progress = 0.0;
    while let Some(batch) = reader.next() {
        let batch = batch.map_err(|error| {
            assert!(reader.next().is_none(), "nothing comes after an error");
            error.to_string()
        })?;
        assert!(batch.rows() <= size);
        // A table without columns has no row count.
        if !batch.columns().is_empty() {
            assert!(batch.rows() > 0 || batches == 0);
            assert_eq!(batch.row_numbers(), rows..rows + batch.rows());
            assert_eq!(rows, batches * size, "only the last batch is short");
        }
        rows += batch.rows();
        batches += 1;
        assert!(reader.progress().unwrap() >= progress);
        progress = reader.progress().unwrap();
        if joined.is_empty() {
            joined = cells(&batch);
        } else {
            for ((name, all), (own, more)) in joined.iter_mut().zip(cells(&batch)) {
                assert_eq!(*name, own);
                all.extend(more);
            }
        }
    }
    assert!(reader.next().is_none());
    assert!((reader.progress().unwrap() - 1.0).abs() < 1e-12);
    Ok(joined)
}

fn assert_same(name: &str, bytes: &[u8]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let whole = at_once(&path);
    for size in SIZES {
        assert_eq!(in_batches(&path, size), whole, "batches of {size}");
    }
    let prefix = format!("{}/", folder.path().display());
    whole.map_err(|error| error.replace(&prefix, ""))
}

fn table(rows: &[(Option<i64>, String, bool, f64)]) -> Table {
    let mut columns = ["whole", "any, \"text\"", "flag", "real"].map(Column::new);
    for (whole, text, flag, real) in rows {
        columns[0].push(&whole.map(|whole| whole.to_string()).unwrap_or_default());
        columns[1].push(text);
        columns[2].push_display(flag);
        columns[3].push_display(real);
    }
    Table::new("memory", columns.into()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn batches_one_after_the_other_are_the_whole(
        rows in proptest::collection::vec((any::<Option<i64>>(), any::<String>(), any::<bool>(), -1e6..1e6), 0..40)
    ) {
        let folder = tempfile::tempdir().unwrap();
        for extension in ["csv", "jsonl", "parquet"] {
            let path = folder.path().join(format!("table.{extension}"));
            table(&rows).write(&path, Overwrite::Refuse).unwrap();
            let whole = at_once(&path);
            for size in SIZES {
                prop_assert_eq!(in_batches(&path, size), whole.clone(), "{} {}", extension, size);
            }
            if !rows.is_empty() {
                prop_assert_eq!(whole.unwrap()[0].1.len(), rows.len());
            }
        }
    }

    /// Good and bad files alike: the same cells, or the same error.
    #[test]
    fn batches_of_any_csv_end_as_the_whole_does(
        pieces in proptest::collection::vec(
            prop_oneof![
                8 => Just("1,2\n"), 2 => Just("\"x\ny\",3\r\n"), 2 => Just("\n"), 1 => Just("4,5,6\n"),
                1 => Just("7\n"), 1 => Just("é"), 1 => Just("\u{feff}"), 1 => Just("\""), 1 => Just("\u{0}")
            ],
            0..30,
        ),
        bad in proptest::option::of(0_usize..150),
    ) {
        let mut bytes = format!("a,b\n{}", pieces.concat()).into_bytes();
        if let Some(bad) = bad.filter(|bad| *bad < bytes.len()) {
            bytes[bad] = 0xE2;
        }
        let _ = assert_same("any.csv", &bytes);
    }

    #[test]
    fn batches_of_any_json_lines_end_as_the_whole_does(
        pieces in proptest::collection::vec(
            prop_oneof![
                8 => Just("{\"a\":1,\"b\":\"x\"}\n"), 2 => Just("{\"b\":null}\r\n"), 2 => Just(" \n"),
                1 => Just("{\"c\":1}\n"), 1 => Just("{\"a\":1,\"a\":2}\n"), 1 => Just("{\"a\":[1]}\n"),
                1 => Just("{}\n"), 1 => Just("\u{feff}"), 1 => Just("{\"a\":"), 1 => Just("é")
            ],
            0..30,
        ),
        bad in proptest::option::of(0_usize..400),
    ) {
        let mut bytes = pieces.concat().into_bytes();
        if let Some(bad) = bad.filter(|bad| *bad < bytes.len()) {
            bytes[bad] = 0xE2;
        }
        let _ = assert_same("any.jsonl", &bytes);
    }
}

#[test]
fn errors_in_later_batches_name_the_row_and_line_of_the_file() {
    // Row 4 is on line 7: one row has a line break, one line is blank.
    let csv = "a,b\n1,2\n\"x\ny\",2\n\n3,4\n5,6\n";
    let refused = |name: &str, bytes: &[u8], expected: &str| {
        assert_eq!(assert_same(name, bytes).unwrap_err(), expected);
    };
    let line_8 = format!("{csv}7\n8,9\n");
    refused("t.csv", line_8.as_bytes(), "t.csv: row 4 (line 8) has 1 cells, expected 2");
    let bad = [csv.as_bytes(), b"7,\xff\n"].concat();
    refused("t.csv", &bad, "t.csv: line 8 is not UTF-8 text, expected a file saved as UTF-8");
    let cut = [csv.as_bytes(), b"7,8\n\xe2\x82"].concat();
    refused("t.csv", &cut, "t.csv: line 9 is not UTF-8 text, expected a file saved as UTF-8");
    refused("t.csv", b"", "t.csv: the file is empty, expected a header line");

    let lines = "{\"a\":1}\n{\"a\":2}\n\n{\"a\":3}\n";
    let json = |line: &str, expected: &str| {
        refused("t.jsonl", format!("{lines}{line}\n{{\"a\":5}}\n").as_bytes(), expected);
    };
    json(
        "{\"b\":4}",
        "t.jsonl: row 3 (line 5) has the key `b`, expected those of the first line: `a`",
    );
    json("{\"a\":4,\"a\":4}", "t.jsonl: row 3 (line 5) has the key `a` twice");
    json(
        "{\"a\":4",
        "t.jsonl: row 3 (line 5): EOF while parsing an object at line 1 column 6, expected one \
         JSON object per line",
    );
    json(
        "{\"a\":[4]}",
        "t.jsonl, row 3, column `a`: found `[4]`, expected a number, a text, true, false or null",
    );
    refused("t.jsonl", b"\n", "t.jsonl: the file is empty, expected one JSON object per line");
    refused(
        "t.txt",
        b"a\n",
        "t.txt: unknown format, expected a file name that ends in .csv, .jsonl, .ndjson or .parquet",
    );
}

#[test]
fn a_folder_is_an_error_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["t.csv", "t.jsonl"] {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        let error = in_batches(&path, 2).unwrap_err();
        assert_eq!(error, at_once(&path).unwrap_err());
        assert!(error.starts_with("cannot read "), "{error}");
    }
}

#[test]
fn errors_quote_the_beginning_of_a_long_cell() {
    let deep = format!("{{\"a\":{}{}}}\n", "[".repeat(5000), "]".repeat(5000));
    let error = assert_same("t.jsonl", deep.as_bytes()).unwrap_err();
    assert!(error.len() < 300 && error.contains("[[[...`, expected a number"), "{error}");
}

#[test]
fn a_repeated_name_in_a_header_gets_a_number() {
    let names = |name: &str, bytes: &[u8]| -> Vec<String> {
        assert_same(name, bytes).unwrap().into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names("t.csv", b"a,b,a,a.2,a\n1,2,3,4,5\n"), ["a", "b", "a.3", "a.2", "a.4"]);
    assert_eq!(names("t.parquet", &parquet_of(&[3, 0, 0, 0])), ["a", "a.2", "a.3"]);
    // A key of a JSON object has one value.
    let error = assert_same("t.jsonl", b"{\"a\":1,\"a\":2}\n").unwrap_err();
    assert_eq!(error, "t.jsonl: row 0 (line 1) has the key `a` twice");
}

/// A Parquet file without rows whose footer has these schema elements, each with a number of
/// children.
fn parquet_of(elements: &[u8]) -> Vec<u8> {
    let mut footer = vec![0x15, 2, 0x19, 0xFC];
    footer.extend([elements.len() as u8 | 0x80, (elements.len() >> 7) as u8]);
    for &children in elements {
        // Type and repetition, the name `a`, the number of children.
        footer.extend([0x15, 2, 0x25, 0, 0x18, 1, b'a', 0x15, 2 * children, 0]);
    }
    // No rows and no row groups.
    footer.extend([0x16, 0, 0x19, 0x0C, 0]);
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    [b"PAR1", &*footer, &length, b"PAR1"].concat()
}

#[test]
fn the_schema_of_a_parquet_file_has_bounds() {
    let table = assert_same("t.parquet", &parquet_of(&[1, 0])).unwrap();
    assert_eq!(table, [("a".to_owned(), Vec::new())]);
    let mut deep = vec![1; 2000];
    deep.push(0);
    let refused = |elements: &[u8], problem: &str| {
        let expected = format!("t.parquet: not a readable Parquet file: {problem}");
        assert_eq!(assert_same("t.parquet", &parquet_of(elements)).unwrap_err(), expected);
    };
    refused(&deep, "its columns are nested more than 64 levels deep, expected flat columns");
    refused(&[60, 0], "a schema element declares 60 children, 1 follow");
    // A footer that ends early.
    let mut cut = parquet_of(&[1, 0]);
    let length = u32::try_from(12).unwrap().to_le_bytes();
    let end = cut.len();
    cut[end - 8..end - 4].copy_from_slice(&length);
    assert!(assert_same("t.parquet", &cut).is_err());
}

#[test]
fn a_parquet_text_that_is_not_utf_8_is_an_error_with_its_row() {
    use ::parquet::data_type::{ByteArray, ByteArrayType};
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;
    let schema = parse_message_type("message table { required binary name (STRING); }").unwrap();
    let mut bytes = Vec::new();
    let mut file =
        SerializedFileWriter::new(&mut bytes, schema.into(), std::sync::Arc::default()).unwrap();
    // Two row groups of three rows; the last cell is bad.
    for last in [&b"c"[..], b"\xff"] {
        let mut group = file.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let cells = [&b"a"[..], b"b", last].map(|cell| ByteArray::from(cell.to_vec()));
        column.typed::<ByteArrayType>().write_batch(&cells, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    file.close().unwrap();
    let expected = "t.parquet, row 5, column `name`: found `bytes`, expected UTF-8 text";
    assert_eq!(assert_same("t.parquet", &bytes).unwrap_err(), expected);
}

/// The decoder panics at some pages that are not what the footer says.
#[test]
fn a_flipped_bit_of_a_parquet_file_is_no_panic() {
    use ::parquet::data_type::{ByteArray, ByteArrayType};
    use ::parquet::file::properties::WriterProperties;
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;
    let schema = "message table { optional binary name (STRING); }";
    let read = |bytes| Table::from_bytes(Path::new("t.parquet"), bytes);
    for with_dictionary in [true, false] {
        let schema = parse_message_type(schema).unwrap();
        let properties = WriterProperties::builder().set_dictionary_enabled(with_dictionary);
        let mut bytes = Vec::new();
        let mut file =
            SerializedFileWriter::new(&mut bytes, schema.into(), properties.build().into())
                .unwrap();
        let mut group = file.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let cells = ["north", "south", "north"].map(ByteArray::from);
        let levels = Some(&[1, 1, 0, 1][..]);
        column.typed::<ByteArrayType>().write_batch(&cells, levels, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        file.close().unwrap();
        let table = read(bytes.clone()).unwrap();
        assert_eq!(table.rows(), 4);
        let mut refused = 0;
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            refused += usize::from(read(flipped).is_err());
        }
        assert!(refused > bytes.len(), "{refused} of {} bits", 8 * bytes.len());
    }
}

#[test]
fn a_header_alone_is_one_batch_without_rows() {
    let expected = ["a", "b"].map(|name| (name.to_owned(), Vec::new()));
    assert_eq!(assert_same("t.csv", b"\xef\xbb\xbfa,b\r\n").unwrap(), expected);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    Table::new("memory", ["a", "b"].map(Column::new).into())
        .unwrap()
        .write(&path, Overwrite::Refuse)
        .unwrap();
    assert_eq!(in_batches(&path, 2).unwrap(), expected);
}

#[test]
fn lines_without_columns_are_checked_to_the_end() {
    let expected = "t.jsonl: row 3 (line 4) has the key `a`, expected those of the first line: ";
    assert_eq!(assert_same("t.jsonl", b"{}\n{}\n{}\n{\"a\":1}\n").unwrap_err(), expected);
    assert_eq!(assert_same("t.jsonl", b"{}\n{}\n{}\n").unwrap(), []);
}

#[test]
fn parquet_batches_cross_row_groups() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/parquet");
    for name in ["pyarrow_groups", "pyarrow_v2", "pandas_categorical", "pyarrow_types", "polars"] {
        let path = golden.join(format!("{name}.parquet"));
        for size in [1, 2, 3, 7] {
            assert_eq!(in_batches(&path, size), at_once(&path), "{name} {size}");
        }
    }
}

/// Bytes that come one at a time.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = out.len().min(1);
        self.0.read(&mut out[..count])
    }
}

#[test]
fn bytes_may_come_one_at_a_time() {
    let source = Path::new("t");
    let read = |batches: &mut dyn Batches| {
        whole(source, batches, TableLimits::default())
            .map(|table| cells(&table))
            .map_err(|error| error.to_string())
    };
    let quoted = "\u{feff}a,ü\r\n\"x\ny\",€\r\n".as_bytes();
    for csv in [
        quoted,
        b"a\n\xe2\x82",
        b"a\n\xe2\x82x",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf\xff",
        b"\xef\xbb\xbf\xc3",
        b"\xef\xbb",
    ] {
        let one = csv::Reader::new(source, Slow(csv), None).and_then(|mut one| {
            let table = whole(source, &mut one, TableLimits::default())?;
            Ok(cells(&table))
        });
        let all = Table::from_csv(source, csv).map(|table| cells(&table));
        assert_eq!(one.map_err(|error| error.to_string()), all.map_err(|error| error.to_string()));
    }
    let json = "\u{feff}{\"a\":\"ü\"}\r\n\n{\"a\":\"€\"}".as_bytes();
    let slow = read(&mut jsonl::Reader::new(source, Slow(json), None));
    assert_eq!(slow, read(&mut jsonl::Reader::new(source, json, None)));
    assert_eq!(slow.unwrap(), [("a".to_owned(), vec!["ü".to_owned(), "€".to_owned()])]);
}

#[test]
fn a_quote_that_is_never_closed_is_an_error_with_its_row() {
    let read = |text: &str| Table::from_csv(Path::new("t"), text.as_bytes());
    let rest = "5,x\n".repeat(1000);
    for (text, place) in [
        (format!("a,b\n1,x\n2,\"y\n{rest}"), "row 1 (line 3)"),
        (format!("a,b\n1,x\n\"2,y\n{rest}"), "row 1 (line 3)"),
        (format!("a,b\n1,\"\"\"y\n{rest}"), "row 0 (line 2)"),
        ("a,b\n1,\"".to_owned(), "row 0 (line 2)"),
        (format!("a,\"b\n{rest}"), "the header line"),
        ("\u{feff}a\n\"".to_owned(), "row 0 (line 2)"),
    ] {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains("never closed"), "{error}");
    }
    // Quotes within a cell that has none around it are text; so is a row that looks like an end.
    let end = "\u{4}end of file\u{4}";
    for bom in ["", "\u{feff}"] {
        let table = read(&format!("{bom}a\n5\" tall\n{end}\nx\n\"y\n\"\"z\"")).unwrap();
        let column: Vec<String> = table.columns()[0].cells().map(str::to_owned).collect();
        assert_eq!(column, ["5\" tall", end, "x", "y\n\"z"]);
        let table = read(&format!("{bom}a\nx\n{end}")).unwrap();
        assert_eq!(table.rows(), 2);
    }
    assert!(read("").unwrap_err().to_string().contains("the file is empty"));
}

#[test]
fn a_row_without_an_end_is_refused() {
    let source = Path::new("t");
    let endless = |start: &'static str| start.as_bytes().chain(std::io::repeat(b'x'));
    let read = |batches: &mut dyn Batches| {
        let read = batches.read(0, 10, &mut TableMeter::new(TableLimits::default()));
        read.map(|_| ()).unwrap_err().to_string()
    };
    let header = csv::Reader::new(source, endless(""), None).map(|_| ()).unwrap_err().to_string();
    let csv = |start| read(&mut csv::Reader::new(source, endless(start), None).unwrap());
    let json = |start| read(&mut jsonl::Reader::new(source, endless(start), None));
    for error in
        [header, csv("a,b\n1,2\n3,"), csv("a\n\"1"), json(""), json("{\"a\":1}\n{\"a\":\"")]
    {
        assert!(error.contains("cannot read t: a row is longer than 64 MiB"), "{error}");
    }
}

/// 200,000 rows that are made when they are asked for, in pieces of 4 KiB.
struct Rows<'a> {
    row: fn(usize) -> String,
    made: usize,
    piece: Vec<u8>,
    taken: &'a std::cell::Cell<usize>,
}

impl Read for Rows<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.piece.len() < 4096 && self.made < 200_000 {
            self.piece.extend((self.row)(self.made).bytes());
            self.made += 1;
        }
        let count = self.piece.len().min(out.len());
        out[..count].copy_from_slice(&self.piece[..count]);
        self.piece.drain(..count);
        self.taken.set(self.taken.get() + count);
        Ok(count)
    }
}

#[test]
fn no_more_is_read_than_a_batch_and_a_buffer() {
    const BATCH: usize = 1000;
    let check = |batches: &mut dyn Batches, taken: &std::cell::Cell<usize>, width: usize| {
        let mut rows = 0;
        loop {
            let (count, columns) =
                batches.read(rows, BATCH, &mut TableMeter::new(TableLimits::default())).unwrap();
            if count == 0 {
                break;
            }
            assert!(
                columns[0]
                    .cells()
                    .enumerate()
                    .all(|(row, cell)| cell == format!("{:06}", rows + row))
            );
            rows += count;
            let needed = 100 + rows * width;
            assert!(taken.get() <= needed + (1 << 16), "{} of {needed}", taken.get());
        }
        assert_eq!(rows, 200_000);
    };
    let taken = std::cell::Cell::new(0);
    let row = |row| format!("{row:06},x\n");
    let csv = Rows { row, made: 0, piece: b"row,b\n".to_vec(), taken: &taken };
    check(&mut csv::Reader::new(Path::new("t"), csv, None).unwrap(), &taken, 9);
    taken.set(0);
    let row = |row| format!("{{\"row\":\"{row:06}\"}}\n");
    let json = Rows { row, made: 0, piece: Vec::new(), taken: &taken };
    check(&mut jsonl::Reader::new(Path::new("t"), json, None), &taken, 17);
}

/// The pipe gets its second half only after the first was answered.
#[cfg(unix)]
#[test]
fn a_pipe_is_read_as_it_is_filled() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    for (name, first, second) in [
        ("t.csv", "a\n1\n2\n3\n", "4\n5\n"),
        ("t.jsonl", "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", "{\"a\":4}\n{\"a\":5}\n"),
    ] {
        let path = folder.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (answered, wait) = std::sync::mpsc::channel::<()>();
        let filled = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut pipe = File::options().write(true).open(path).unwrap();
                pipe.write_all(first.as_bytes()).unwrap();
                wait.recv().unwrap();
                pipe.write_all(second.as_bytes()).unwrap();
            }
        });
        let mut reader = TableReader::open(&path, 3).unwrap();
        assert!(reader.progress().is_none());
        let values = |table: Table| table.columns()[0].cells().map(str::to_owned).collect();
        let batch: Vec<String> = values(reader.next().unwrap().unwrap());
        assert_eq!(batch, ["1", "2", "3"]);
        answered.send(()).unwrap();
        let batch: Vec<String> = values(reader.next().unwrap().unwrap());
        assert_eq!(batch, ["4", "5"]);
        assert!(reader.next().is_none());
        filled.join().unwrap();
    }
}

const SCHEMA: &str = r#"
format_version = 1
label = { column = "class", favourable = "good" }
feature = [
    { name = "age", kind = "integer", range = [0, 99], missing = "drop-row" },
    { name = "job", kind = "categorical", levels = ["baker", "clerk"], missing = "level" },
]
"#;

#[test]
fn rows_of_batches_are_the_rows_of_the_file() {
    use crate::data::{ReadReport, Rows, Schema};
    let schema = Schema::from_toml(SCHEMA).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let good =
        "age,job,class\n1,baker,good\n,clerk,good\n3,,bad\n,baker,good\n,,good\n6,clerk,bad\n";
    fs::write(&path, good).unwrap();
    let whole = Rows::read(&schema, &Table::read(&path).unwrap()).unwrap();
    assert_eq!(whole.table_rows, [0, 2, 5]);
    for size in SIZES {
        let (mut rows, mut table_rows) = (Vec::new(), Vec::new());
        let mut report = ReadReport::default();
        for batch in TableReader::open(&path, size).unwrap() {
            let batch = Rows::read(&schema, &batch.unwrap()).unwrap();
            rows.extend(batch.rows);
            table_rows.extend(batch.table_rows);
            report.add(&batch.report);
        }
        assert_eq!(Rows { rows, table_rows, report }, whole, "batches of {size}");
    }

    let last = |csv: &str, size: usize| {
        fs::write(&path, csv).unwrap();
        let read = |batch: Result<Table>| Rows::read(&schema, &batch?).map(|rows| rows.report);
        let mut all = ReadReport::default();
        for batch in TableReader::open(&path, size).unwrap().map(read) {
            all.add(&batch.map_err(|error| error.to_string())?);
        }
        all.require_rows(&path).map_err(|error| error.to_string())
    };
    for bad in [good.replace("6,", "600,"), "age,job\n,\n,\n,\n".to_owned(), "age,job\n".to_owned()]
    {
        fs::write(&path, &bad).unwrap();
        let whole = Table::read(&path).and_then(|table| Rows::read(&schema, &table)).unwrap_err();
        for size in SIZES {
            assert_eq!(last(&bad, size).unwrap_err(), whole.to_string(), "batches of {size}");
        }
    }
}
