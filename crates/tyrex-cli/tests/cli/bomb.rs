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
    let mut most = 0;
    loop {
        most = u64::max(most, memory(child.id(), "VmHWM"));
        if let Some(status) = child.try_wait().unwrap() {
            return (status.code().unwrap(), most);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Writes the file `bomb.parquet`.
fn written(place: &Place) {
    let written = Command::new(python())
        .args(["-c", WRITE])
        .arg(place.path("bomb.parquet"))
        .output()
        .unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let size = std::fs::metadata(place.path("bomb.parquet")).unwrap().len();
    assert!(size < 500_000, "{size}");
}

/// A number of bytes in `/proc/PID/status`.
fn memory(process: u32, what: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    1024 * line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse().unwrap())
}

#[test]
fn five_million_equal_rows_take_little_memory() {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    written(&place);
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

/// The most memory that a service may take that refuses such uploads, in bytes.
#[cfg(feature = "service")]
const SERVICE: u64 = 400 << 20;

#[cfg(feature = "service")]
#[test]
#[expect(clippy::print_stdout, reason = "the memory is read with --nocapture")]
fn a_service_refuses_five_million_equal_rows_in_little_memory() {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    written(&place);
    let service = crate::serve::Running::start(&place, "--ledger tyrex.db");
    let idle = memory(service.id(), "VmHWM");
    assert!(idle > 0);
    let upload = |data: &str| {
        let mut body = Vec::new();
        for (name, file) in [("model", "m.onnx"), (data, "bomb.parquet")] {
            let head = format!(
                "--cut\r\ncontent-disposition: form-data; name=\"{name}\"; \
                 filename=\"{file}\"\r\n\r\n"
            );
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(&place.read_bytes(file));
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--cut--\r\n");
        let form = "content-type: multipart/form-data; boundary=cut\r\n";
        service.send_bytes("POST /v1/models", form, &body)
    };
    // One after the other, and some at once.
    for data in ["data", "reference"] {
        let (status, body) = upload(data);
        assert_eq!(status, 422, "{data}: {body}");
        assert!(body.contains("5000000 rows"), "{data}: {body}");
    }
    std::thread::scope(|scope| {
        let sent: Vec<_> = (0..4).map(|_| scope.spawn(|| upload("data").0)).collect();
        // 503: another upload is being read.
        let statuses: Vec<u16> = sent.into_iter().map(|sent| sent.join().unwrap()).collect();
        assert!(statuses.iter().all(|status| [422, 503].contains(status)), "{statuses:?}");
        assert!(statuses.contains(&422), "{statuses:?}");
    });
    let most = memory(service.id(), "VmHWM");
    let (before, after) = (idle >> 20, most >> 20);
    println!("a service takes {before} MiB at the start and at most {after} MiB with the uploads");
    assert!(most < SERVICE, "{after} MiB");
    assert_eq!(service.send("GET /readyz", "", "").0, 200);
    assert_eq!(service.send("GET /v1/models", "", "").1.matches("\"id\"").count(), 0);
}
