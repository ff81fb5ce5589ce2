//! A small Parquet file with five million equal rows. `TYREX_PYTHON` writes it.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Place;

const WRITE: &str = "
import sys
import pyarrow, pyarrow.parquet
rows = 5_000_000
row = {'income': 10.5, 'age': 30, 'housing': 'rent', 'owner': 'no'}
columns = {
    name: pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0], pyarrow.int32()).take(pyarrow.nulls(rows, pyarrow.int32()).fill_null(0)),
        pyarrow.array([value]),
    )
    for name, value in row.items()
}
pyarrow.parquet.write_table(pyarrow.table(columns), sys.argv[1], compression='zstd')
";

fn python() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python");
    std::env::var_os("TYREX_PYTHON").map_or_else(|| PathBuf::from(beside), PathBuf::from)
}

/// The exit code, and the largest memory that was in use, in bytes.
fn measured(command: &mut Command) -> (i32, u64) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(kib) = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()) {
            most = u64::max(most, kib);
        }
        if let Some(status) = child.try_wait().unwrap() {
            return (status.code().unwrap(), 1024 * most);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn five_million_equal_rows_take_little_memory() {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    let written = Command::new(python())
        .args(["-c", WRITE])
        .arg(place.path("bomb.parquet"))
        .output()
        .unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let size = std::fs::metadata(place.path("bomb.parquet")).unwrap().len();
    assert!(size < 500_000, "{size}");
    let refused = place.run("audit --counterfactuals bomb.parquet --model m.onnx");
    let words = "it has 5000000 rows, expected at most 500000";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    let commands: [(&str, i32); 2] = [
        // Too many promises, which its header says.
        ("audit --counterfactuals bomb.parquet --model m.onnx", 2),
        // Read as a whole: all labels are equal.
        ("schema infer bomb.parquet --label owner", 2),
    ];
    for (arguments, code) in commands {
        let (own, memory) = measured(&mut place.command(arguments));
        let mebibytes = memory >> 20;
        assert_eq!(own, code, "{arguments:?}");
        assert!(memory < 1_000_000_000, "{arguments:?}: {mebibytes} MiB");
    }
}
