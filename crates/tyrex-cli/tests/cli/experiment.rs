//! `tyrex experiment`

use std::process::Stdio;
use std::time::Duration;

use crate::Place;

/// Small enough for a second, with every kind of work in it.
const TABLE: &str = r#"
name = "table"
title = "A table"

[world]
dataset = "german"
training = { epochs = 20, hidden = [8] }
reinitialise = 3
leave-out = 2
calibration = 3
bases = 2
factuals = 6

[comparison]
protocol = "paper"
norms = ["l1", "l2"]
calibration = { taus = [0.7, 0.6, 0.5], factuals = 4 }

[[comparison.entrant]]
method = "min-cost"

[[comparison.entrant]]
method = "trex-o"
tau = "calibrated"

[[comparison.entrant]]
method = "sns"
vary = { radius = [0.1, 0.2] }

[[comparison.entrant]]
method = "nn"
"#;

/// The models of the other two experiments with these data.
const WORLD: &str = r#"
[world]
dataset = "german"
training = { epochs = 20, hidden = [8] }
reinitialise = 3
leave-out = 2
calibration = 3
factuals = 6
"#;

const CERTIFICATES: &str = r#"
name = "certificates"
title = "Certificates"

[certificates]
protocol = "paper"
norm = "l1"
models = 3
bins = 5

[[certificates.entrant]]
method = "trex-i"
tau = 0.6
"#;

const MOONS: &str = r#"
name = "moons"
title = "Moons"

[world]
dataset = "moons"
variant = "product"
training = { epochs = 3, hidden = [8] }
reinitialise = 2
leave-out = 0

[moons]
resolution = 12
shown = 2
sigma = 0.1
tau = 0.5
methods = ["min-cost", "nn"]
"#;

const HISTOGRAMS: &str = r#"
name = "histograms"
title = "Histograms"

[histograms]
bins = 8
sigma = 0.1
protocol = "paper"
methods = ["min-cost", "nn"]
norm = "l2"
"#;

const SUITE: &str = r#"
name = "all"
title = "All of it"
include = ["table.toml", "certificates.toml", "moons.toml", "histograms.toml"]
"#;

/// Files that must not depend on how a run came to its end; times do.
const OUTPUT: [&str; 5] = [
    "results.json",
    "summary.csv",
    "summary.parquet",
    "counterfactuals.csv",
    "counterfactuals.parquet",
];

fn place() -> Place {
    let place = Place::new();
    for (name, text) in [
        ("table.toml", TABLE),
        ("certificates.toml", &format!("{CERTIFICATES} {WORLD}")),
        ("moons.toml", MOONS),
        ("histograms.toml", &format!("{HISTOGRAMS} {WORLD}")),
        ("suite.toml", SUITE),
    ] {
        place.write(name, text);
    }
    place
}

fn bytes(place: &Place, folder: &str, name: &str) -> Vec<u8> {
    std::fs::read(place.path(folder).join(name)).unwrap()
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_with_the_same_bits() {
    let place = place();
    place.done("experiment run suite.toml --out whole --threads 1");
    // Every run is killed a little later than the one before, so each gets further.
    let mut kills = 0;
    loop {
        let mut run = place
            .command("experiment run suite.toml --out killed")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(40 + 35 * kills));
        if let Some(status) = run.try_wait().unwrap() {
            assert!(status.success());
            break;
        }
        run.kill().unwrap();
        run.wait().unwrap();
        kills += 1;
        assert!(kills < 200, "it never came to an end");
    }
    assert!(kills >= 2, "it was killed only {kills} times");
    for name in OUTPUT {
        assert!(bytes(&place, "whole", name) == bytes(&place, "killed", name), "{name}");
    }
}

#[test]
fn a_second_run_does_nothing_again() {
    let place = place();
    place.done("experiment run table.toml --out out");
    let pieces = place.path("out/pieces/table");
    let written = || -> Vec<_> {
        let mut files: Vec<_> = std::fs::read_dir(&pieces)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.file_name(), entry.metadata().unwrap().modified().unwrap())
            })
            .collect();
        files.sort();
        files
    };
    let before = written();
    // Two norms, two bases, five contenders; one of them calibrated for each norm.
    assert_eq!(before.len(), 2 * 2 * 5 + 2);
    place.done("experiment run table.toml --out out");
    assert_eq!(written(), before);
}

#[test]
fn the_tables_say_what_was_found() {
    let place = place();
    let document = place.json("experiment run table.toml --out out");
    assert_eq!(document["experiments"][0]["experiment"], "table");
    let summary = place.read("out/summary.csv");
    // Five contenders and two norms, below the header.
    assert_eq!(summary.lines().count(), 11);
    let header: Vec<&str> = summary.lines().next().unwrap().split(',').collect();
    for name in ["protocol", "tau", "cost", "cost_low", "lof_20", "valid_leave_out_sd"] {
        assert!(header.contains(&name), "{name}");
    }
    let counterfactuals = place.read("out/counterfactuals.csv");
    assert_eq!(counterfactuals.lines().count(), 1 + 5 * 2 * 2 * 6);
    let results: serde_json::Value = serde_json::from_str(&place.read("out/results.json")).unwrap();
    let comparison = &results["experiments"][0]["finding"];
    assert_eq!(comparison["kind"], "comparison");
    assert_eq!(comparison["calibrations"].as_array().unwrap().len(), 2);
    // Three models cannot show 0.95 with confidence 0.95, and that is what is said.
    assert_eq!(comparison["calibrations"][0]["calibration"]["verdict"], "too-few-models");
}

#[test]
fn a_base_that_rejects_nobody_leaves_the_others_their_line() {
    let place = place();
    // After three epochs the first network accepts everyone, the second does not.
    place.write("table.toml", &TABLE.replace("epochs = 20", "epochs = 3"));
    place.done("experiment run table.toml --out out");
    let results: serde_json::Value = serde_json::from_str(&place.read("out/results.json")).unwrap();
    let bases = &results["experiments"][0]["finding"]["data"]["bases"];
    assert_eq!(bases[0]["factuals"], 0);
    assert_ne!(bases[1]["factuals"], 0);
    let summary = place.read("out/summary.csv");
    let lines: Vec<Vec<&str>> = summary.lines().map(|line| line.split(',').collect()).collect();
    let column = lines[0].iter().position(|name| *name == "valid_leave_out").unwrap();
    assert!(lines[1..].iter().all(|line| !line[column].is_empty()), "{summary}");
    place.done("report out");
}

#[test]
fn the_short_run_is_shorter_and_shown_before_it_is_run() {
    let place = place();
    let text = place.done("experiment show suite.toml");
    assert!(text.contains("5 contenders, L1 and L2, paper"), "{text}");
    let document = place.json("experiment show suite.toml --quick");
    assert_eq!(document["suite"]["experiments"][0]["world"]["bases"], 1);
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_done() {
    let place = place();
    let broken = |from: &str, to: &str| {
        assert!(TABLE.contains(from), "{from}");
        TABLE.replace(from, to)
    };
    for (text, expected) in [
        (broken("dataset = \"german\"", "dataset = \"swiss\""), "data set `swiss`"),
        (broken("bases = 2", "bases = 0"), "parameter `bases` is 0"),
        (broken("bases = 2", "bases = 9"), "since they include the other bases"),
        (broken("bases = 2", "base = 2"), "unknown field `base`"),
        (broken("calibration = 3", "calibration = 0"), "to choose thresholds"),
        (broken("method = \"sns\"", "method = \"sms\""), "expected one of trex-e"),
        (broken("radius", "radios"), "expected a parameter of sns"),
        (broken("[\"l1\", \"l2\"]", "[]"), "parameter `norms` is 0"),
        (broken("[\"l1\", \"l2\"]", "[\"l3\"]"), "unknown variant `l3`"),
        (broken("name = \"table\"", "name = \"../table\""), "letters, digits and hyphens"),
        (TABLE.replace("[world]", "[world"), "table.toml"),
        (
            format!(
                "{TABLE}\n[moons]\nresolution = 2\nshown = 1\nsigma = 0.1\ntau = 0.5\nmethods = []"
            ),
            "expected one table of comparison",
        ),
    ] {
        place.write("table.toml", &text);
        place.refused("experiment run table.toml --out out", &[expected]);
    }
    let answer = place.run("experiment run nowhere.toml --out out");
    assert_eq!(answer.code, 2);
    place.write(
        "suite.toml",
        "name = \"a\"\ntitle = \"b\"\ninclude = [\"moons.toml\", \"moons.toml\"]",
    );
    let answer = place.run("experiment run suite.toml --out out");
    assert!(answer.stderr.contains("every experiment once"), "{}", answer.stderr);
}
