//! The catalogue against the real files, against numpy, and against a server on this machine.
//!
//! A test that needs a data set which has to be fetched is in the module `needs_NAME` and ignored.
//! `./check` runs it where the data set is, and says that it was left out where it is not.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use tyrex::data::catalogue::{Catalogue, ClassCounts, Direction, Place, Variant};
use tyrex::data::fetch::{FetchOptions, FetchProgress};
use tyrex::{Error, Result};

/// The catalogue with the folders of this machine.
fn machine() -> Catalogue {
    Catalogue::new(None)
}

fn empty_catalogue() -> (tempfile::TempDir, Catalogue) {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = Catalogue::with_folders(vec![folder.path().to_owned()]);
    (folder, catalogue)
}

fn catalogue_problem<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Err(Error::Catalogue { problem, .. }) => problem,
        other => panic!("expected a catalogue error, got {other:?}"),
    }
}

#[derive(Deserialize)]
struct Golden {
    rows: usize,
    columns: usize,
    sums: Vec<f64>,
    sampled: Vec<Sampled>,
}

#[derive(Deserialize)]
struct Sampled {
    row: usize,
    point: Vec<f64>,
}

/// `golden/catalogue.py` computes these arrays without the schemas.
fn agrees_with_numpy(name: &str) {
    let mut golden: BTreeMap<String, Golden> =
        serde_json::from_str(include_str!("../golden/catalogue.json")).unwrap();
    assert_eq!(golden.len(), 5);
    let expected = golden.remove(name).unwrap();
    let dataset = machine().load(name, Variant::Reference, Direction::Favourable).unwrap();
    let points = dataset.points();
    assert_eq!((points.len(), points.dim()), (expected.rows, expected.columns), "{name}");
    for Sampled { row, point } in expected.sampled {
        for (column, (&ours, theirs)) in points.row(row).iter().zip(point).enumerate() {
            // A 32-bit float has seven digits; z-scores reach 50.
            let allowed = 1e-6 * theirs.abs().max(1.0);
            let difference = (f64::from(ours) - theirs).abs();
            assert!(difference <= allowed, "{name}, row {row}, column {column}: {difference}");
        }
    }
    for (column, sum) in expected.sums.into_iter().enumerate() {
        let ours: f64 = points.rows().map(|point| f64::from(point[column])).sum();
        let difference = (ours - sum).abs() / expected.rows as f64;
        assert!(difference <= 1e-6, "{name}, mean of column {column}: {difference}");
    }
}

fn views_have_their_rows_columns_and_split(name: &str) {
    use Variant::{Product, Reference};
    // Name, view, encoded columns, training rows, test rows, first training row in the file.
    let expected = [
        ("german", Product, 55, 670, 330, 703),
        ("german", Reference, 61, 670, 330, 703),
        ("heloc", Product, 71, 7844, 2615, 4103),
        ("heloc", Reference, 39, 7844, 2615, 4103),
        ("ctg", Product, 21, 1700, 425, 658),
        ("ctg", Reference, 21, 1700, 425, 658),
        ("adult", Product, 90, 32561, 16281, 0),
        ("adult", Reference, 105, 15081, 15081, 25381),
        ("taiwan", Product, 32, 22500, 7500, 12880),
        ("taiwan", Reference, 32, 22500, 7500, 12880),
        ("moons", Product, 2, 750, 250, 0),
    ];
    let of_name: Vec<_> = expected.into_iter().filter(|view| view.0 == name).collect();
    assert!(!of_name.is_empty(), "{name}");
    for (name, variant, columns, train, test, first) in of_name {
        let dataset = machine().load(name, variant, Direction::Favourable).unwrap();
        let found = (
            dataset.points().dim(),
            dataset.train().len(),
            dataset.test().len(),
            dataset.table_rows()[dataset.train()[0]],
        );
        assert_eq!(found, (columns, train, test, first), "{name} {variant:?}");
    }
}

fn the_list_tells_the_truth(name: &str) {
    let catalogue = machine();
    let listed = catalogue.list().unwrap();
    let listing = listed.iter().find(|listing| listing.name == name).unwrap();
    let dataset = catalogue.load(name, Variant::Product, Direction::Favourable).unwrap();
    assert_eq!(dataset.rows().len(), listing.rows, "{name}");
    assert_eq!(dataset.schema().features.len(), listing.features, "{name}");
    let favourable = dataset.labels().iter().filter(|label| **label).count();
    let share = favourable as f64 / listing.rows as f64;
    assert!((share - listing.favourable_share).abs() < 1e-12, "{name}: {share}");
}

/// Label 1 in the authors' released arrays, counted over both parts.
fn the_authors_direction_is_theirs(name: &str, rows: usize, ones: usize) {
    let count = |direction| {
        let dataset = machine().load(name, Variant::Reference, direction).unwrap();
        dataset.labels().iter().filter(|label| **label).count()
    };
    assert_eq!(count(Direction::Authors), ones, "{name}");
    let favourable = count(Direction::Favourable);
    assert!(favourable == ones || favourable == rows - ones, "{name}: {favourable}");
}

#[test]
fn what_is_in_the_program_is_what_the_catalogue_says() {
    for name in ["german", "moons"] {
        views_have_their_rows_columns_and_split(name);
        the_list_tells_the_truth(name);
    }
    agrees_with_numpy("german");
    the_authors_direction_is_theirs("german", 1000, 300);
    let problem = catalogue_problem(machine().load("moons", Variant::Product, Direction::Authors));
    assert!(problem.contains("direction"), "{problem}");
}

/// The tests of one data set that has to be fetched, and other tests that need it.
macro_rules! needs {
    ($module:ident, $name:literal, $reason:literal $(, $test:ident => $call:expr)*) => {
        mod $module {
            use super::*;

            #[test]
            #[ignore = $reason]
            fn the_reference_schema_agrees_with_numpy() {
                agrees_with_numpy($name);
            }

            #[test]
            #[ignore = $reason]
            fn every_view_has_its_rows_columns_and_split() {
                views_have_their_rows_columns_and_split($name);
            }

            #[test]
            #[ignore = $reason]
            fn the_list_tells_the_truth() {
                super::the_list_tells_the_truth($name);
            }

            $(
                #[test]
                #[ignore = $reason]
                fn $test() {
                    $call;
                }
            )*
        }
    };
}

needs!(needs_heloc, "heloc", "needs the data set heloc",
    the_authors_direction_is_theirs => super::the_authors_direction_is_theirs("heloc", 10459, 5000),
    fetching_converts_checks_and_keeps => fetching_heloc());
needs!(needs_ctg, "ctg", "needs the data set ctg",
    the_authors_direction_is_theirs => super::the_authors_direction_is_theirs("ctg", 2126, 471));
needs!(needs_adult, "adult", "needs the data set adult",
    fetching_converts_checks_and_keeps => fetching_adult());
needs!(needs_taiwan, "taiwan", "needs the data set taiwan",
    the_authors_direction_is_theirs => super::the_authors_direction_is_theirs("taiwan", 30000, 6636));

/// A data set without such tests would never be looked at, and one without a module would not be
/// left out where it is missing.
#[test]
fn every_data_set_that_has_to_be_fetched_has_its_module() {
    let source = include_str!("catalogue.rs");
    for listing in empty_catalogue().1.list().unwrap() {
        let module = format!("\nneeds!(needs_{}, ", listing.name);
        let is_fetched = matches!(listing.place, Place::Missing(_));
        assert_eq!(source.contains(&module), is_fetched, "{}", listing.name);
    }
}

#[test]
fn german_and_moons_need_no_files() {
    let (_folder, catalogue) = empty_catalogue();
    let german = catalogue.show("german", Variant::Product, 2).unwrap();
    assert_eq!(german.listing.place, Place::Embedded);
    assert_eq!(german.header.len(), 21);
    assert_eq!(german.first_rows.len(), 2);
    assert_eq!(german.first_rows[0][..2], ["<0 DM", "6"]);
    assert_eq!(german.files[0].name, "german.csv");
    let ClassCounts { favourable, unfavourable } = german.train;
    assert_eq!(favourable + unfavourable, 670);
    assert_eq!(favourable + german.test.favourable, 700);
    let moons = catalogue.show("moons", Variant::Product, 0).unwrap();
    assert_eq!((moons.listing.place, moons.first_rows.len()), (Place::Generated, 0));
    assert!(
        catalogue_problem(catalogue.show("moons", Variant::Reference, 1)).contains("reference")
    );
}

#[test]
fn the_embedded_file_is_the_one_the_checksum_names() {
    let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/german.csv"));
    let (_folder, catalogue) = empty_catalogue();
    let german = catalogue.show("german", Variant::Product, 0).unwrap();
    assert_eq!(sha256(&bytes.unwrap()), german.files[0].sha256);
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    let digits = sha2::Sha256::digest(bytes);
    digits.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hexadecimal).collect()
}

fn hexadecimal(digit: u8) -> char {
    char::from_digit(digit.into(), 16).unwrap()
}

#[test]
fn what_is_not_there_is_said_with_the_way_to_get_it() {
    let (folder, catalogue) = empty_catalogue();
    let problem =
        catalogue_problem(catalogue.load("heloc", Variant::Product, Direction::Favourable));
    assert!(problem.contains("tyrex data fetch heloc"), "{problem}");
    assert!(problem.contains(&folder.path().display().to_string()), "{problem}");
    let listed = catalogue.list().unwrap();
    let adult = listed.iter().find(|listing| listing.name == "adult").unwrap();
    assert_eq!(adult.place, Place::Missing(vec!["adult_train.csv", "adult_test.csv"]));
    let problem = catalogue_problem(Catalogue::entry("iris"));
    assert!(problem.contains("german, heloc, ctg, adult, taiwan, moons"), "{problem}");
}

#[test]
fn a_file_with_other_bytes_is_refused() {
    let (folder, catalogue) = empty_catalogue();
    fs::write(folder.path().join("ctg.csv"), "LB,NSP\n120,1\n").unwrap();
    let problem = catalogue_problem(catalogue.load("ctg", Variant::Product, Direction::Favourable));
    for part in [&sha256(b"LB,NSP\n120,1\n"), "ecd10c9ecd39271c", "ctg.csv"] {
        assert!(problem.contains(part), "{problem}");
    }
}

/// Serves the given files by the end of their address, until the test ends.
fn serve(files: Vec<(&'static str, Vec<u8>)>) -> FetchOptions {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mirror = format!("http://{}/mirror/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(std::result::Result::ok) {
            let mut lines = BufReader::new(&stream).lines().map_while(std::result::Result::ok);
            let request = lines.next().unwrap_or_default();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let address = request.split(' ').nth(1).unwrap_or_default();
            let found = files.iter().find(|(end, _)| address.ends_with(end));
            let (status, body) = found.map_or((404, &[][..]), |(_, body)| (200, body));
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    let first_wait = Duration::from_millis(1);
    FetchOptions { attempts: 2, first_wait, mirror: Some(mirror), ..FetchOptions::default() }
}

fn go_on(_: FetchProgress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// UCI's form of the Adult files, from ours.
fn as_uci_has_it(csv: &str, comment: &str, end: &str) -> Vec<u8> {
    let lines = csv.lines().skip(1).map(|line| line.replace(',', ", ") + end + "\n");
    format!("{comment}{}\n", lines.collect::<String>()).into_bytes()
}

fn fetching_adult() {
    let [train, test] = files_of("adult").try_into().unwrap();
    let published = vec![
        ("adult/adult.data", as_uci_has_it(&train, "", "")),
        ("adult/adult.test", as_uci_has_it(&test, "|comment\n", ".")),
    ];
    fetching_converts_checks_and_keeps("adult", published);
}

fn fetching_heloc() {
    let [file] = files_of("heloc").try_into().unwrap();
    let published = vec![("data/heloc.csv", file.replace('\n', ",0.5\n").into_bytes())];
    fetching_converts_checks_and_keeps("heloc", published);
}

fn fetching_converts_checks_and_keeps(name: &str, published: Vec<(&'static str, Vec<u8>)>) {
    let files = published.len();
    let options = serve(published);
    let (folder, catalogue) = empty_catalogue();
    let fetched = catalogue.fetch(name, &options, &mut go_on).unwrap();
    assert_eq!(fetched.iter().filter(|file| !file.was_there).count(), files);
    catalogue.load(name, Variant::Product, Direction::Favourable).unwrap();
    let again = catalogue.fetch(name, &options, &mut go_on).unwrap();
    assert!(again.iter().all(|file| file.was_there));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), files, "only the files themselves");
}

/// The text of the files of a data set on this machine.
fn files_of(name: &str) -> Vec<String> {
    let listed = machine().list().unwrap();
    let listing = listed.into_iter().find(|listing| listing.name == name).unwrap();
    let Place::Files(paths) = listing.place else { panic!("{name}: {:?}", listing.place) };
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn nothing_wrong_ever_has_the_files_name() {
    let cases: [(&str, Vec<u8>, &str); 3] = [
        ("data/heloc.csv", b"a,b\n1,2\n".to_vec(), "f66d77f4e4e27c11"),
        ("00193/CTG.xls", b"<html>moved</html>".to_vec(), "workbook"),
        ("elsewhere", Vec::new(), "404"),
    ];
    for ((path, body, said), name) in cases.into_iter().zip(["heloc", "ctg", "taiwan"]) {
        let options = serve(vec![(path, body)]);
        let (folder, catalogue) = empty_catalogue();
        match catalogue.fetch(name, &options, &mut go_on) {
            Err(Error::Download { url, problem }) => {
                assert!(problem.contains(said), "{name}: {problem}");
                assert!(url.contains("/mirror/"), "{url}");
            }
            other => panic!("{name}: expected a download error, got {other:?}"),
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn a_failed_download_leaves_the_old_file() {
    let (folder, catalogue) = empty_catalogue();
    fs::write(folder.path().join("heloc.csv"), "old").unwrap();
    let options = serve(vec![("data/heloc.csv", b"new".to_vec())]);
    assert!(catalogue.fetch("heloc", &options, &mut go_on).is_err());
    assert_eq!(fs::read_to_string(folder.path().join("heloc.csv")).unwrap(), "old");
}

#[test]
fn there_is_nothing_to_fetch_for_what_is_built_in() {
    let (folder, catalogue) = empty_catalogue();
    for name in ["german", "moons"] {
        let fetched = catalogue.fetch(name, &FetchOptions::default(), &mut go_on).unwrap();
        assert!(fetched.is_empty());
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
