//! Model files that want to break the reader.

use std::time::{Duration, Instant};

use crate::support::{Answer, Server, german, start};

const BOUNDARY: &str = "tyrex-boundary";

fn upload(server: &Server, parts: &[(&str, &str, &[u8])]) -> Answer {
    let mut body = Vec::new();
    for (name, file, content) in parts {
        let head = format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    server.send("POST", "/v1/models", &[("content-type", &kind)], &body)
}

/// A field of a protobuf message that holds bytes.
fn field(number: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = varint(number << 3 | 2);
    bytes.extend(varint(content.len() as u64));
    bytes.extend_from_slice(content);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A model whose graph holds this.
fn model(graph: &[u8]) -> Vec<u8> {
    [number(1, 8), field(7, graph)].concat()
}

/// A tensor of floats that says it is this large, with as many bytes as are given.
fn tensor(dimensions: &[u64], raw: usize) -> Vec<u8> {
    let dimensions: Vec<u8> = dimensions.iter().flat_map(|size| number(1, *size)).collect();
    [dimensions, number(2, 1), field(8, b"w"), field(9, &vec![0; raw])].concat()
}

fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let huge = 1 << 40;
    let mut nested = Vec::new();
    // An attribute that holds a graph that holds a node that holds an attribute, and so on.
    for _ in 0..20_000 {
        nested = field(1, &field(5, &field(6, &nested)));
        if nested.len() > 1_000_000 {
            break;
        }
    }
    let node = |kind: &str, input: &str, output: &str| {
        field(
            1,
            &[field(1, input.as_bytes()), field(2, output.as_bytes()), field(4, kind.as_bytes())]
                .concat(),
        )
    };
    // Each doubles its input: a hundred of them would need 2^100 columns.
    let doubling: Vec<u8> = (0..100)
        .flat_map(|step| {
            let input = format!("x{step}");
            let inputs = [field(1, input.as_bytes()), field(1, input.as_bytes())].concat();
            let axis = field(5, &[field(1, b"axis"), number(3, 1), number(20, 2)].concat());
            let output = field(2, format!("x{}", step + 1).as_bytes());
            field(1, &[inputs, output, field(4, b"Concat"), axis].concat())
        })
        .collect();
    let chain: Vec<u8> = (0..50_000)
        .flat_map(|step| node("Exp", &format!("x{step}"), &format!("x{}", step + 1)))
        .collect();
    let many: Vec<u8> = (0..100_000).flat_map(|_| field(5, &tensor(&[1], 4))).collect();
    vec![
        ("nothing", Vec::new()),
        ("zeros", vec![0; 100_000]),
        ("a zip file", b"PK\x03\x04\x14\x00\x00\x00\x08\x00".repeat(1000)),
        ("a gzip file", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".repeat(1000)),
        ("text", b"not a model".to_vec()),
        ("a length beyond the end", [varint(7 << 3 | 2), varint(u64::MAX)].concat()),
        ("a tensor of huge dimensions", model(&field(5, &tensor(&[huge, huge], 4)))),
        ("dimensions whose product is zero", model(&field(5, &tensor(&[huge, 0, huge], 0)))),
        ("negative dimensions", model(&field(5, &tensor(&[u64::MAX, 4], 4)))),
        ("a hundred thousand tensors", model(&many)),
        ("deep nesting", model(&nested)),
        (
            "doubling",
            model(&[doubling, field(11, &field(1, b"x0")), field(12, &field(1, b"x100"))].concat()),
        ),
        (
            "a long chain",
            model(&[chain, field(11, &field(1, b"x0")), field(12, &field(1, b"x50000"))].concat()),
        ),
    ]
}

const SCHEMA: &str = r#"
label = { column = "approved", favourable = ["yes"] }
feature = [
    { name = "income", kind = "numeric" },
]
"#;

#[test]
fn bombs_do_not_go_off() {
    let server = start(|_| {});
    for (name, bytes) in bombs() {
        for schema in [Some(SCHEMA), None] {
            let mut parts = vec![("model", "model.onnx", bytes.as_slice())];
            parts.extend(schema.map(|schema| ("schema", "schema.toml", schema.as_bytes())));
            let begin = Instant::now();
            let answer = upload(&server, &parts);
            assert_eq!(answer.status, 422, "{name}: {}", answer.text());
            answer.problem(422);
            assert!(begin.elapsed() < Duration::from_secs(10), "{name}: {:?}", begin.elapsed());
        }
    }
    assert_eq!(server.get("/v1/models").json()["models"], serde_json::json!([]));
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn parts_of_an_upload_are_never_paths() {
    let name = "../../../../tmp/evil";
    let parts: [(&str, &str, &[u8]); 2] =
        [("model", name, b"not a model"), ("data", name, b"income\n1\n")];
    assert_eq!(upload(german(), &parts).status, 422);
    // Nor is a name that is asked for.
    let parts: [(&str, &str, &[u8]); 2] = [("model", "m.onnx", b"x"), ("name", "", b"../../evil")];
    let answer = upload(german(), &parts);
    answer.problem(422);
    assert_eq!(answer.json()["field"], "name");
}

/// A file of a few kilobytes that holds more rows than there is room for.
#[test]
fn a_small_file_of_many_rows_is_refused() {
    use tyrex::Overwrite;
    use tyrex::data::{Column, Table};

    let server = start(|_| {});
    let mut column = Column::new("income");
    (0..2_000_001).for_each(|_| column.push("1"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bomb.parquet");
    let table = Table::new("memory", vec![column]).expect("a table");
    table.write(&path, Overwrite::Refuse).expect("a file");
    let bomb = std::fs::read(&path).expect("a file");
    assert!(bomb.len() < 100_000, "{}", bomb.len());
    let schema = format!("format_version = 1\n{SCHEMA}\n[scaling]\nmethod = \"none\"\n");
    let linear = crate::roles::onnx_of(&schema);
    let parts: [(&str, &str, &[u8]); 3] = [
        ("model", "m.onnx", &linear),
        ("schema", "s.toml", schema.as_bytes()),
        ("data", "bomb.parquet", &bomb),
    ];
    let answer = upload(&server, &parts);
    let detail = answer.problem(422);
    assert!(detail.contains("2000001 rows, expected at most 2000000"), "{detail}");
    assert_eq!(answer.json()["field"], "data");
}
