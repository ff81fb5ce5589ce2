//! Tables: what is read is written back, in three formats, and files of the real packages.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tyrex::Overwrite;
use tyrex::data::{Column, Table, TableLimits};

use crate::support::golden;

fn table(columns: &[(&str, &[&str])]) -> Table {
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

fn cells(table: &Table) -> Vec<(&str, Vec<&str>)> {
    table.columns().iter().map(|column| (column.name(), column.cells().collect())).collect()
}

fn through(table: &Table, extension: &str) -> Table {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("table.{extension}"));
    table.write(&path, Overwrite::Refuse).unwrap();
    Table::read(&path).unwrap()
}

#[test]
fn every_format_gives_back_what_it_was_given() {
    let given = table(&[
        ("whole", &["1", "-2", "", "9007199254740993"]),
        ("real", &["0.006", "-1.5", "", "2"]),
        ("text", &["<0 DM", "a,\"b\"\n", "", "Grüße"]),
        ("leading zeros", &["007", "1", "2", "3"]),
        ("flag", &["true", "false", "", "true"]),
        ("nothing", &["", "", "", ""]),
    ]);
    for extension in ["csv", "jsonl", "ndjson", "parquet", "CSV"] {
        assert_eq!(cells(&through(&given, extension)), cells(&given), "{extension}");
    }
}

#[test]
fn csv_and_json_lines_keep_the_text_of_numbers() {
    let given = table(&[("number", &["0.0060", "1e3", "-0.0", "1.50"])]);
    for extension in ["csv", "jsonl"] {
        assert_eq!(cells(&through(&given, extension)), cells(&given), "{extension}");
    }
    // Parquet keeps the value, as a double.
    let expected = ["0.006", "1000", "-0", "1.5"];
    assert_eq!(cells(&through(&given, "parquet")), [("number", expected.to_vec())]);
}

#[test]
fn json_lines_have_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.jsonl");
    let given = table(&[("a", &["1", ""]), ("b", &["x\"y", "2"]), ("c", &["true", "false"])]);
    given.write(&path, Overwrite::Refuse).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        "{\"a\":1,\"b\":\"x\\\"y\",\"c\":true}\n{\"a\":null,\"b\":\"2\",\"c\":false}\n"
    );
}

#[test]
fn a_csv_file_comes_back_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["ctg_excerpt.csv", "heloc_shape.csv"] {
        let copy = folder.path().join(name);
        Table::read(&golden(name)).unwrap().write(&copy, Overwrite::Refuse).unwrap();
        assert_eq!(fs::read(copy).unwrap(), fs::read(golden(name)).unwrap());
    }
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_text() {
    let table = Table::from_csv(Path::new("x.csv"), b"\xef\xbb\xbfa,b\r\n1,2\r\n").unwrap();
    assert_eq!(cells(&table), [("a", vec!["1"]), ("b", vec!["2"])]);
}

#[test]
fn parquet_files_of_other_packages_are_read() {
    let expected = [
        ("whole", vec!["1", "-2", "3", "9007199254740993"]),
        ("real", vec!["0.006", "-1.5", "", "0.0000001"]),
        ("text", vec!["<0 DM", "a,b", "", "Grüße"]),
        ("flag", vec!["true", "false", "true", "false"]),
    ];
    let files = [
        "pandas_snappy",
        "pandas_gzip",
        "pandas_zstd",
        "pandas_lz4",
        "pandas_plain",
        "pandas_categorical",
        "polars",
        "polars_categorical",
        "pyarrow_groups",
        "pyarrow_v2",
    ];
    for name in files {
        let read = Table::read(&golden(&format!("parquet/{name}.parquet")));
        let codec = match name {
            "pandas_gzip" => Some("gzip"),
            "pandas_lz4" => Some("LZ4"),
            "pandas_zstd" | "polars" | "polars_categorical" => Some("Zstandard"),
            _ => None,
        };
        if let Some(codec) = codec.filter(|_| cfg!(not(feature = "parquet-codecs"))) {
            let error = read.unwrap_err().to_string();
            assert!(error.contains(codec) && error.contains("`parquet-codecs`"), "{error}");
            continue;
        }
        let table = read.unwrap();
        let mut found = cells(&table);
        // pandas writes the missing number as a number that is not one.
        for cell in &mut found[1].1 {
            if *cell == "NaN" {
                *cell = "";
            }
        }
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn parquet_has_narrow_and_unsigned_types() {
    let table = Table::read(&golden("parquet/pyarrow_types.parquet")).unwrap();
    let expected = [
        ("u8", vec!["0", "255"]),
        ("u64", vec!["0", "18446744073709551615"]),
        ("i8", vec!["-128", "127"]),
        ("f32", vec!["0.1", "NaN"]),
        ("none", vec!["", ""]),
        ("large", vec!["a", "b"]),
    ];
    assert_eq!(cells(&table), expected);
}

/// Broken files end in an error or in a table, never in a panic.
/// Every limit holds in every format, to the last row, cell and byte.
#[test]
fn a_table_holds_no_more_than_it_may() {
    let given = table(&[("a", &["1", "22", "333"]), ("b", &["x", "", "yz"])]);
    let exact = TableLimits { rows: 3, cells: 6, text: 9 };
    let folder = tempfile::tempdir().unwrap();
    for extension in ["csv", "jsonl", "parquet"] {
        let path = folder.path().join(format!("table.{extension}"));
        given.write(&path, Overwrite::Refuse).unwrap();
        // In JSON lines a text counts with its quotes and an empty cell as `null`.
        let text = if extension == "jsonl" { 9 + 4 + 4 } else { 9 };
        let exact = TableLimits { text, ..exact };
        assert_eq!(cells(&Table::read_within(&path, exact).unwrap()), cells(&given));
        let bytes = fs::read(&path).unwrap();
        for (limits, name) in [
            (TableLimits { rows: 2, ..exact }, "2 rows"),
            (TableLimits { cells: 5, ..exact }, "5 cells"),
            (TableLimits { text: text - 1, ..exact }, "bytes of text"),
        ] {
            for read in [
                Table::read_within(&path, limits),
                Table::from_bytes_within(&path, bytes.clone(), limits),
            ] {
                let error = read.unwrap_err().to_string();
                let limit =
                    error.contains(name) || error.contains(&format!("at most {}", &name[..1]));
                assert!(limit && error.contains("expected"), "{extension} {name}: {error}");
                assert!(error.contains("table."), "{error}");
            }
        }
    }
}

/// Few bytes, many cells.
#[test]
fn a_bomb_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    // Eleven million equal rows.
    let mut column = Column::new("a");
    (0..11_000_000).for_each(|_| column.push("1"));
    let path = folder.path().join("bomb.parquet");
    Table::new("memory", vec![column]).unwrap().write(&path, Overwrite::Refuse).unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
    let error = Table::read(&path).unwrap_err().to_string();
    assert!(error.contains("it has 11000000 rows, expected at most 10000000"), "{error}");
    // One line of many keys, and many lines without any.
    let keys: Vec<String> = (0..1000).map(|key| format!("\"k{key}\":1")).collect();
    let lines = format!("{{{}}}\n{}", keys.join(","), "{}\n".repeat(2000));
    let limits = TableLimits { cells: 1_000_000, ..TableLimits::default() };
    let bomb = Table::from_bytes_within(Path::new("bomb.jsonl"), lines.into_bytes(), limits);
    let error = bomb.unwrap_err().to_string();
    assert!(error.contains("more than 1000000 cells"), "{error}");
}

#[test]
fn no_damage_to_a_file_makes_reading_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut broken = 0;
    for name in ["pandas_snappy", "polars", "pyarrow_v2", "pyarrow_types"] {
        let good = fs::read(golden(&format!("parquet/{name}.parquet"))).unwrap();
        let path = folder.path().join("damaged.parquet");
        let flipped = |at: usize, bits: u8| {
            let mut bytes = good.clone();
            bytes[at] ^= bits;
            bytes
        };
        let cuts = (0..good.len()).step_by(16).map(|at| good[..at].to_vec());
        let flips = (0..good.len()).flat_map(|at| [1, 0x80, 0xff].map(|bits| flipped(at, bits)));
        for bytes in cuts.chain(flips) {
            fs::write(&path, bytes).unwrap();
            broken += usize::from(Table::read(&path).is_err());
        }
    }
    assert!(broken > 5_000, "{broken}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_text_survives_every_format(rows in proptest::collection::vec(any::<[String; 2]>(), 1..8)) {
        let first: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        let second: Vec<&str> = rows.iter().map(|row| row[1].as_str()).collect();
        let given = table(&[("first, \"quoted\"", &first), ("second", &second)]);
        for extension in ["csv", "jsonl", "parquet"] {
            let back = through(&given, extension);
            prop_assert_eq!(cells(&back), cells(&given), "{}", extension);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        for extension in ["csv", "jsonl", "parquet"] {
            let path = folder.path().join(format!("bytes.{extension}"));
            fs::write(&path, &bytes).unwrap();
            let _ = Table::read(&path);
        }
    }
}

/// The names of repeated columns are made in one pass, and there is a limit.
#[test]
fn many_equal_names_are_limited() {
    let csv = |columns: usize| {
        let line = |cell: &str| vec![cell; columns].join(",");
        let text = format!("{}\n{}\n", line("a"), line("1"));
        Table::from_csv(Path::new("wide.csv"), text.as_bytes())
    };
    let wide = csv(10_000).unwrap();
    assert_eq!(wide.columns()[9_999].name(), "a.10000");
    let expected = "wide.csv: it has 10001 columns, expected at most 10000";
    assert_eq!(csv(10_001).unwrap_err().to_string(), expected);
    let keys: Vec<String> = (0..10_001).map(|key| format!("\"k{key}\":1")).collect();
    let line = format!("{{{}}}\n", keys.join(","));
    let error = Table::from_bytes(Path::new("wide.jsonl"), line.into_bytes()).unwrap_err();
    assert_eq!(error.to_string(), expected.replace("csv", "jsonl"));
    let columns = (0..10_001).map(|place| Column::new(place.to_string())).collect();
    assert!(Table::new("wide", columns).unwrap_err().to_string().contains("10001 columns"));
}

/// The file of a text, with another uncompressed size in the header of its first page, which has at
/// least a mebibyte: the size takes four bytes then.
fn with_declared_page(content: &[u8], size: u32) -> Vec<u8> {
    let mut content = content.to_vec();
    // The magic number, the type of the page, then the field of the size.
    assert_eq!((&content[..5], content[6]), (&b"PAR1\x15"[..], 0x15));
    assert_eq!(content[7..11].iter().map(|byte| byte >> 7).collect::<Vec<_>>(), [1, 1, 1, 0]);
    for (place, byte) in content[7..11].iter_mut().enumerate() {
        let more = if place < 3 { 0x80 } else { 0 };
        *byte = ((2 * size) >> (7 * place)) as u8 & 0x7f | more;
    }
    content
}

/// The most memory that this process had, in bytes.
#[cfg(target_os = "linux")]
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    1024 * line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
}

#[test]
#[cfg(all(target_os = "linux", feature = "parquet-codecs"))]
fn pages_that_are_too_large_are_refused_before_memory_is_allocated() {
    let folder = tempfile::tempdir().unwrap();
    let snappy = folder.path().join("snappy.parquet");
    table(&[("job", &[&"a".repeat(2 << 20)])]).write(&snappy, Overwrite::Refuse).unwrap();
    let sound = fs::read(&snappy).unwrap();
    assert_eq!(Table::from_bytes(&snappy, sound.clone()).unwrap().rows(), 1);
    let zstd = fs::read(golden("parquet/pyarrow_large_page.parquet")).unwrap();
    let before = peak();
    for (content, words) in [
        // The page declares 120 MiB and has two.
        (with_declared_page(&sound, 120 << 20), "a page of column `job` has 125829120 bytes"),
        // The page has 256 MiB.
        (zstd, "a page of column `job` has 268435494 bytes"),
    ] {
        let error = Table::from_bytes(&snappy, content).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("at most 64 MiB"), "{error}");
    }
    assert!(peak() - before < 60 << 20, "{before} {}", peak());
}

#[test]
#[cfg(feature = "parquet-codecs")]
fn a_page_in_gzip_has_as_many_bytes_as_it_declares() {
    let gzip = fs::read(golden("parquet/pyarrow_gzip_page.parquet")).unwrap();
    let path = Path::new("page.parquet");
    assert_eq!(Table::from_bytes(path, gzip.clone()).unwrap().rows(), 2);
    for (size, words) in [(1 << 20, "has more bytes"), (4 << 20, "has 2097166 bytes")] {
        let error = Table::from_bytes(path, with_declared_page(&gzip, size)).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_dictionary_has_as_many_values_as_it_declares() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    table(&[("job", &["clerk", "baker"])]).write(&path, Overwrite::Refuse).unwrap();
    let content = fs::read(&path).unwrap();
    // The first page is the dictionary; its header (field 7, a struct) begins with the number of
    // values, 2.
    let at = content.windows(4).position(|own| own == [0x4c, 0x15, 0x04, 0x15]).unwrap();
    let mut many = content;
    many[at + 2] = 0x7e;
    let error = Table::from_bytes(&path, many).unwrap_err().to_string();
    assert!(error.contains("a dictionary has fewer values than it declares"), "{error}");
}
