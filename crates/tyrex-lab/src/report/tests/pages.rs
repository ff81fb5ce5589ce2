//! Whole pages: well formed, safe, the same every time, whatever the results are.

use tyrex::calibrate::{CalibratedValidity, Calibration, CalibrationVerdict, CurvePoint, Goal};
use tyrex::counterfactual::Norm;
use tyrex::metric::Summary;

use super::super::{html, markdown};
use super::{Made, certificates, comparison, histograms, made, moons, results, stated};
use crate::experiment::Results;
use crate::experiment::result::{Calibrated, ChangeSummary, Finding, Timing};

/// Something of everything.
fn everything() -> Results {
    let table = [
        made("min-cost", 0.4, 0.4, 0.3),
        made("trex-i", 1.0, 0.97, 0.97).calibrated(),
        made("trex-i", 1.5, 0.9, 0.9).of_released_code(),
        made("trex-o", 0.9, 0.97, 0.97).calibrated(),
        made("nn", 2.0, 0.9, 0.9).found(0),
    ];
    let mut main = comparison("german", Some("german"), &table);
    if let Finding::Comparison(found) = &mut main.finding {
        found.changes.push(ChangeSummary {
            change: "reinitialise".to_owned(),
            models: 12,
            mean_change: 0.1,
            lemma_bound: 0.3,
            bias: 0.05,
            flipped: 0.1,
        });
        let validity = CalibratedValidity { mean: 0.97, low: 0.95, high: 0.99 };
        for (verdict, tau) in [
            (CalibrationVerdict::Chosen { tau: 0.8, validity }, 0.8),
            (CalibrationVerdict::NotShown { tau: 0.99, p_value: 0.4 }, 0.99),
            (CalibrationVerdict::TooFewModels { models: 2, needed: 60 }, 0.99),
            (CalibrationVerdict::TooFewFound { coverage: 0.5 }, 0.99),
        ] {
            let point = CurvePoint {
                tau,
                coverage: 1.0,
                mean_cost: Some(1.0),
                validity_choosing: Some(0.97),
                validity_reporting: Some(0.97),
                p_value: 0.01,
            };
            found.calibrations.push(Calibrated {
                contender: "trex-i".to_owned(),
                norm: Norm::L1,
                tau,
                calibration: Calibration {
                    goal: Goal::default(),
                    factuals: 20,
                    choosing: 6,
                    reporting: 6,
                    verdict,
                    best: None,
                    curve: vec![point],
                },
            });
        }
    }
    let curve: Vec<Made> = ["0.5", "0.9"]
        .into_iter()
        .map(|tau| made("trex-o", 0.5 + tau.len() as f64, 0.8, 0.8).set("tau", tau))
        .collect();
    let sensitivity: Vec<Made> = ["10", "100", "1000"]
        .into_iter()
        .map(|k| made("trex-i", 0.5, 0.8, 0.8).set("k", k))
        .collect();
    let ablation: Vec<Made> = ["m", "r_k", "R^"]
        .into_iter()
        .flat_map(|measure| {
            ["0.5", "0.9"]
                .map(|tau| made("trex-i", 1.0, 0.7, 0.7).set("measure", measure).set("tau", tau))
        })
        .collect();
    results(vec![
        main,
        comparison("curve", None, &curve),
        comparison("sensitivity", None, &sensitivity),
        comparison("ablation", Some("ablation"), &ablation),
        certificates(vec![stated(0.8, &[0.9, 0.92]), stated(0.99, &[0.9, 0.91, 0.9])]),
        certificates(vec![stated(0.5, &[0.9, 0.92])]),
        moons(),
        histograms(),
    ])
}

fn timings() -> Vec<Timing> {
    let timing = |what: &str, norm, seconds| Timing {
        experiment: "german".to_owned(),
        what: what.to_owned(),
        norm,
        base: None,
        seconds,
        per_factual: Summary::of(&[0.01, 0.02]).unwrap(),
    };
    vec![
        timing("training", None, 60.0),
        timing("all", None, 90.0),
        timing("trex-o", Some(Norm::L1), 5.0),
    ]
}

/// Every tag that is opened is closed, in the right order.
fn assert_balanced(page: &str) {
    const ALONE: [&str; 2] = ["meta", "!DOCTYPE"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').expect("a tag that ends");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "near {}", &rest[..rest.len().min(80)]);
        } else if !tag.ends_with('/') && !ALONE.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} stay open");
}

#[test]
fn a_page_of_everything_is_well_formed_and_says_it() {
    let page = html(&everything(), &timings()).unwrap();
    assert_balanced(&page);
    for piece in [
        "Made by hand",
        "the short run, seed 7",
        "T-Rex:O (ours)",
        "trex-i (authors&#39; code)".replace("trex-i", "T-Rex:I").as_str(),
        "1.42 \u{b1} 4.16",
        "no threshold shown to reach it",
        "none found",
        "Table 3: experimental results for German Credit",
        "2.5 min",
        "15.0 ms",
        "stability R^",
        "probability stated",
        "states more than observed",
    ] {
        assert!(page.contains(piece), "{piece}");
    }
    // It needs nothing from elsewhere.
    for outside in ["http:", "https:", "<script", "<link", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn the_markdown_has_the_same_tables() {
    let text = markdown(&everything(), &timings()).unwrap();
    for piece in
        ["# Made by hand", "| T-Rex:O (ours) |", "(paper 1.42", "## Claims and aims", "Figure: "]
    {
        assert!(text.contains(piece), "{piece}: {text}");
    }
    // Every row of a table has as many cells as its header.
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.windows(2).filter(|pair| pair[0].starts_with('|') && pair[1].starts_with('|'))
    {
        assert_eq!(cells(pair[0]), cells(pair[1]), "{pair:?}");
    }
}

#[test]
fn the_same_results_give_the_same_pages() {
    let results = everything();
    assert_eq!(html(&results, &timings()).unwrap(), html(&results.clone(), &timings()).unwrap());
    assert_eq!(markdown(&results, &[]).unwrap(), markdown(&results, &[]).unwrap());
}

#[test]
fn no_text_becomes_markup() {
    let evil = "</title><script>alert('x')</script>|`\"&\n# no";
    let mut results = everything();
    results.title = evil.to_owned();
    results.suite = evil.to_owned();
    results.version = evil.to_owned();
    for shown in &mut results.experiments {
        shown.experiment.title = evil.to_owned();
        shown.experiment.about = evil.to_owned();
        shown.experiment.world.dataset = evil.to_owned();
        match &mut shown.finding {
            Finding::Comparison(found) => {
                found.data.dataset = evil.to_owned();
                for cell in &mut found.cells {
                    cell.contender.label = format!("{evil}{}", cell.contender.label);
                    for family in &mut cell.families {
                        family.change = format!("{evil}{}", family.change);
                    }
                }
            }
            Finding::Moons(found) => found.answers[0].label = evil.to_owned(),
            Finding::Histograms(found) => found.histograms[0].title = evil.to_owned(),
            Finding::Certificates(found) => found.dataset = evil.to_owned(),
        }
    }
    let page = html(&results, &timings()).unwrap();
    assert_balanced(&page);
    assert!(!page.contains("<script"));
    let text = markdown(&results, &timings()).unwrap();
    assert!(!text.contains("<script") && !text.contains("\n# no"), "{text}");
}

#[test]
fn nothing_and_nearly_nothing_are_reported_too() {
    let page = html(&results(Vec::new()), &[]).unwrap();
    assert_balanced(&page);
    assert!(page.contains("The suite has no experiments."));
    assert!(markdown(&results(Vec::new()), &[]).unwrap().contains("no experiments"));

    let nothing_found =
        [made("min-cost", 0.4, 0.4, 0.3).found(0), made("trex-o", 1.0, 1.0, 1.0).found(0)];
    let mut hollow = everything();
    for shown in &mut hollow.experiments {
        match &mut shown.finding {
            Finding::Comparison(found) => found.cells.clear(),
            Finding::Moons(found) => {
                found.maps.iter_mut().for_each(|map| map.values.clear());
                found.points.clear();
                found.answers.clear();
                (found.width, found.bounds) = (0, [f64::NAN; 4]);
            }
            Finding::Histograms(found) => found.edges.clear(),
            Finding::Certificates(found) => found.tiers.clear(),
        }
    }
    for results in [
        results(vec![comparison("german", Some("german"), &nothing_found)]),
        results(vec![comparison("german", Some("no such table"), &nothing_found)]),
        results(vec![comparison("german", Some("german"), &[])]),
        hollow,
    ] {
        assert_balanced(&html(&results, &timings()).unwrap());
        assert!(!markdown(&results, &timings()).unwrap().is_empty());
    }
}

#[test]
fn numbers_that_are_none_do_no_harm() {
    for number in [f64::NAN, f64::INFINITY, -1e300, 1e300] {
        let mut results = everything();
        for shown in &mut results.experiments {
            match &mut shown.finding {
                Finding::Comparison(found) => {
                    for answer in found.cells.iter_mut().flat_map(|cell| &mut cell.answers) {
                        if let Some(found) = &mut answer.found {
                            found.survival = vec![number];
                            found.value = number;
                        }
                    }
                    found.changes.iter_mut().for_each(|change| change.bias = number);
                    found.calibrations.iter_mut().for_each(|chosen| chosen.tau = number);
                }
                Finding::Moons(found) => {
                    found.answers[0].at = (number as f32, number as f32);
                    found.maps[0].values = vec![number as f32; 4];
                }
                Finding::Histograms(found) => found.edges = vec![number; 3],
                Finding::Certificates(found) => {
                    for bin in found.tiers.iter_mut().flat_map(|tier| &mut tier.bins) {
                        bin.stated = number;
                    }
                }
            }
        }
        let page = html(&results, &timings()).unwrap();
        assert_balanced(&page);
        assert!(!page.contains("NaN\""), "a place on the page is a number");
        // A cost that is not a number is refused with an error, not a panic.
        if let Finding::Comparison(found) = &mut results.experiments[0].finding {
            for answer in found.cells.iter_mut().flat_map(|cell| &mut cell.answers) {
                if let Some(found) = &mut answer.found {
                    found.metrics.cost_l1 = number;
                }
            }
        }
        assert!(html(&results, &[]).is_err());
    }
}
