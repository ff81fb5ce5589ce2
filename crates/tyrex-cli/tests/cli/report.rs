//! `tyrex report`

use crate::{Place, assert_golden};

/// A small experiment on the data that is in the program.
const SMALL: &str = r#"
name = "german"
title = "A <small> table"
about = "Few models, few factuals."
beside = "german"

[world]
dataset = "german"
training = { hidden = [16], epochs = 20 }
reinitialise = 3
leave-out = 2
factuals = 4

[comparison]
protocol = "paper"
norms = ["l1", "l2"]

[[comparison.entrant]]
method = "min-cost"

[[comparison.entrant]]
method = "nn"
"#;

fn with_results() -> Place {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.done("experiment run small.toml --out results");
    place
}

#[test]
fn the_help_is_as_the_golden_file_says() {
    assert_golden("report_help.txt", &Place::new().done("report --help"));
}

#[test]
fn results_become_a_page_and_markdown() {
    let place = with_results();
    let text = place.done("report results --markdown RESULTS.md");
    assert!(text.contains("Wrote results/report.html and RESULTS.md"), "{text}");
    assert!(text.contains("min-cost is fragile"), "{text}");
    let page = place.read("results/report.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for piece in ["A &lt;small&gt; table", "1.42 ± 4.16", "Table 3", "min-cost"] {
        assert!(page.contains(piece), "{piece}");
    }
    let markdown = place.read("RESULTS.md");
    assert!(markdown.contains("# A &lt;small&gt; table") && markdown.contains("(paper 1.42"));
    // The same results, the same bytes; nothing is overwritten unless asked.
    place.refused("report results", &["report.html exists already"]);
    let document = place.json("report results --force");
    assert_eq!(place.read("results/report.html"), page);
    assert_eq!(document["experiments"], 1);
    let claims = document["claims"].as_array().unwrap();
    assert!(claims.iter().all(|claim| claim["verdict"] == "not-tested"), "{claims:?}");
    assert_eq!(claims[0]["place"], "german L1");
}

#[test]
fn what_is_no_result_is_refused() {
    let place = with_results();
    std::fs::create_dir(place.path("damaged")).unwrap();
    place.write("damaged/results.json", "{\"format_version\": 1");
    std::fs::create_dir(place.path("newer")).unwrap();
    let newer =
        place.read("results/results.json").replace("\"format_version\":1", "\"format_version\":99");
    place.write("newer/results.json", &newer);
    for (arguments, says) in [
        ("report nowhere", "cannot read nowhere/results.json"),
        ("report damaged", "not the results of an experiment"),
        ("report newer", "`format_version` is 99"),
        ("report results --out none/page.html", "cannot write none/page.html"),
        ("report results --out results/results.json --force", "is the input"),
        ("report results --out a.html --markdown a.html", "both a.html"),
    ] {
        place.refused(arguments, &[says]);
    }
    assert!(!place.path("a.html").exists());
}
