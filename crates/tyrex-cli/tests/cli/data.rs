//! `tyrex data`

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::{Answer, Place};

#[test]
fn the_list_has_every_data_set_and_says_where_it_is() {
    let place = Place::new();
    let text = place.done("data list");
    for name in ["german", "heloc", "ctg", "adult", "taiwan", "moons"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(text.contains("in the program") && text.contains("tyrex data fetch heloc"), "{text}");
    let document = place.json("data list");
    assert_eq!(document["datasets"][0]["name"], "german");
    assert_eq!(document["datasets"][0]["rows"], 1000);
}

#[test]
fn a_data_set_is_shown_with_labels_features_and_rows() {
    let place = Place::new();
    let text = place.done("data show german");
    for piece in ["German Credit", "CC BY 4.0", "credit_amount", "favourable is good", "First rows"]
    {
        assert!(text.contains(piece), "{piece}: {text}");
    }
    let document = place.json("data show german --rows 2");
    assert_eq!(document["first_rows"].as_array().unwrap().len(), 2);
    assert_eq!(
        document["train"]["favourable"].as_u64().unwrap()
            + document["train"]["unfavourable"].as_u64().unwrap(),
        670
    );
    let reference = place.json("data show german --protocol reference");
    assert_eq!(reference["encoded_columns"], 61);
}

#[test]
fn what_is_in_the_program_needs_no_download() {
    let text = Place::new().done("data fetch german moons");
    assert!(text.contains("german needs no files"), "{text}");
}

#[test]
fn a_file_the_server_does_not_have_is_an_error_that_names_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let length = stream.read(&mut request).unwrap();
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let place = Place::new();
    let mut command = place.command("data fetch heloc --data-dir data");
    command.env("TYREX_DATA_MIRROR", format!("http://{address}"));
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert!(answer.stderr.contains(&format!("http://{address}/")), "{}", answer.stderr);
    assert!(answer.stderr.contains("404") && answer.stderr.contains("help:"), "{}", answer.stderr);
    assert!(server.join().unwrap().starts_with("GET /"));
    assert!(!place.path("data/heloc.csv").exists());
}
