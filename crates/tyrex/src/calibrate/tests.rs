//! Choosing, case by case.

use super::*;

/// A candidate under models that accept the given numbers of counterfactuals.
fn candidate(tau: f64, costs: &[Option<f64>], accepted: &[usize]) -> TriedThreshold {
    let row = |&count: &usize| (0..costs.len()).map(|factual| factual < count).collect();
    TriedThreshold { tau, costs: costs.to_vec(), valid: accepted.iter().map(row).collect() }
}

const COSTS: [Option<f64>; 4] = [Some(1.0), Some(2.0), Some(3.0), Some(6.0)];

fn goal(validity: f64, confidence: f64) -> Goal {
    Goal { validity, confidence, missing: CalibrationMissing::Invalid, ..Goal::default() }
}

#[test]
fn the_models_needed_are_those_of_a_test_without_failures() {
    for (validity, confidence, models) in
        [(0.95, 0.95, 59), (0.9, 0.95, 29), (0.99, 0.95, 299), (0.5, 0.5, 1), (0.1, 0.2, 1)]
    {
        assert_eq!(models_needed(validity, confidence).unwrap(), models);
        assert!(validity.powi(models as i32) <= 1.0 - confidence + 1e-15);
        assert!(models == 1 || validity.powi(models as i32 - 1) > 1.0 - confidence);
    }
}

#[test]
fn the_sequence_ends_at_the_first_threshold_that_fails() {
    // 10 models choose and 10 report; 0.7^10 = 0.03.
    let all = vec![4; 20];
    let none = vec![0; 20];
    let given = vec![
        candidate(0.6, &COSTS, &all),
        candidate(0.9, &COSTS, &all),
        candidate(0.7, &COSTS, &none),
        candidate(0.8, &COSTS, &all),
    ];
    let answer = choose(&goal(0.7, 0.95), given).unwrap();
    assert_eq!(answer.tau(), Some(0.8), "what passes below a failure does not count");
    assert_eq!(answer.curve.iter().map(|p| p.tau).collect::<Vec<_>>(), [0.9, 0.8, 0.7, 0.6]);
    assert_eq!((answer.choosing, answer.reporting, answer.factuals), (10, 10, 4));
    assert!((answer.curve[0].p_value - 0.7_f64.powi(10)).abs() < 1e-12);
    assert_eq!(answer.curve[2].p_value, 1.0);
    assert_eq!(answer.curve[0].mean_cost, Some(3.0));
}

#[test]
fn one_half_chooses_and_the_other_reports() {
    let half = |first: usize, second: usize| [vec![first; 10], vec![second; 10]].concat();
    let given = vec![candidate(0.9, &COSTS, &half(4, 3)), candidate(0.8, &COSTS, &half(0, 4))];
    let answer = choose(&goal(0.7, 0.95), given).unwrap();
    let CalibrationVerdict::Chosen { tau, validity } = answer.verdict else { panic!("{answer:?}") };
    assert_eq!((tau, validity.mean), (0.9, 0.75));
    assert!(validity.low < 0.75 && validity.high > 0.75);
    // Clopper-Pearson's lower bound for 10 of 10 at 97.5 % is 0.69; a mean of 0.75 is lower.
    assert!(validity.low > 0.3 && validity.low < 0.69 && validity.high < 1.0);
    assert_eq!(answer.curve[1].validity_choosing, Some(0.0));
    assert_eq!(answer.curve[1].validity_reporting, Some(1.0));
}

#[test]
fn what_is_not_found_counts_as_asked() {
    let costs = [Some(1.0), None, Some(2.0), None];
    // Under every model the first two would be valid, but the second was not found.
    let given = || vec![candidate(0.9, &costs, &[2; 20])];
    let answer = choose(&goal(0.2, 0.9), given()).unwrap();
    assert_eq!((answer.curve[0].coverage, answer.curve[0].mean_cost), (0.5, Some(1.5)));
    assert_eq!(answer.curve[0].validity_choosing, Some(0.25));
    let left_out = Goal { missing: CalibrationMissing::LeftOut, ..goal(0.2, 0.9) };
    let answer = choose(&left_out, given()).unwrap();
    assert_eq!(answer.curve[0].validity_choosing, Some(0.5));
}

#[test]
fn thresholds_with_too_few_found_are_passed_over() {
    let few = [Some(1.0), None, None, None];
    let given = || vec![candidate(0.9, &few, &[1; 20]), candidate(0.8, &COSTS, &[4; 20])];
    assert_eq!(choose(&goal(0.7, 0.95), given()).unwrap().tau(), Some(0.8));
    let only = vec![candidate(0.9, &few, &[1; 20])];
    let answer = choose(&goal(0.7, 0.95), only).unwrap();
    assert_eq!(answer.verdict, CalibrationVerdict::TooFewFound { coverage: 0.25 });
}

#[test]
fn tests_differ_in_what_failures_cost() {
    // 40 models choose. Every one fails one of ten; or one of them fails all.
    let costs = [Some(1.0); 10];
    let each = vec![9; 80];
    let ruined: Vec<usize> = (0..80).map(|model| if model == 7 { 0 } else { 10 }).collect();
    let tau = |test, accepted: &[usize]| {
        let goal = Goal { test, ..goal(0.8, 0.95) };
        choose(&goal, vec![candidate(0.9, &costs, accepted)]).unwrap().tau()
    };
    assert_eq!(tau(CalibrationTest::Betting, &each), Some(0.9));
    assert_eq!(tau(CalibrationTest::HoeffdingBentkus, &each), None);
    assert_eq!(tau(CalibrationTest::Betting, &ruined), None);
    assert_eq!(tau(CalibrationTest::HoeffdingBentkus, &ruined), Some(0.9));
}

#[test]
fn a_promise_that_cannot_be_shown_is_answered_and_no_error() {
    let answer = choose(&Goal::default(), vec![candidate(0.9, &COSTS, &[4; 100])]).unwrap();
    assert_eq!(answer.verdict, CalibrationVerdict::TooFewModels { models: 100, needed: 117 });
    assert_eq!(answer.curve.len(), 1);
    // Many models to report do not make up for too few to choose: 59 models must choose.
    let answer = choose_by(&Goal::default(), vec![candidate(0.9, &COSTS, &[4; 150])], 50).unwrap();
    assert_eq!(answer.verdict, CalibrationVerdict::TooFewModels { models: 150, needed: 159 });
    let answer = choose(&Goal::default(), vec![candidate(0.9, &COSTS, &[4; 117])]).unwrap();
    assert_eq!(answer.tau(), Some(0.9));
    let answer = choose(&Goal::default(), vec![candidate(0.9, &COSTS, &[3; 117])]).unwrap();
    assert_eq!(answer.verdict, CalibrationVerdict::NotShown { tau: 0.9, p_value: 1.0 });
}

#[test]
fn without_a_choice_the_best_threshold_is_judged_by_the_models_that_did_not_choose_it() {
    let half = |first: usize, second: usize| [vec![first; 10], vec![second; 10]].concat();
    let given = || {
        vec![
            candidate(0.9, &COSTS, &half(2, 4)),
            candidate(0.8, &COSTS, &half(3, 2)),
            candidate(0.7, &COSTS, &half(3, 1)),
            candidate(0.6, &COSTS, &half(1, 4)),
        ]
    };
    let answer = choose(&goal(0.9, 0.95), given()).unwrap();
    assert_eq!((answer.tau(), answer.usable_tau()), (None, Some(0.7)), "the smallest of equals");
    let best = answer.best.unwrap();
    assert_eq!((best.tau, best.validity.mean, best.models), (0.7, 0.25, None));
    assert!(best.validity.low < 0.25 && best.validity.high > 0.25);
    // A target of at most `low` is shown.
    let shown = choose(&goal(best.validity.low, 0.95), given()).unwrap();
    assert!(shown.tau().is_some() && shown.best.is_none());
    // Nothing found at any threshold: the smallest, without a validity.
    let none = Goal { missing: CalibrationMissing::LeftOut, ..goal(0.9, 0.95) };
    let empty = vec![candidate(0.9, &[None], &[0; 4]), candidate(0.8, &[None], &[0; 4])];
    let answer = choose(&none, empty).unwrap();
    assert_eq!((answer.best, answer.usable_tau()), (None, Some(0.8)));
}

#[test]
fn so_many_models_that_judge_alike_show_the_goal() {
    // Nine of ten under every model: more than the target, with too few models to show it.
    let costs = [Some(1.0); 10];
    for (validity, test) in
        [(0.85, CalibrationTest::Betting), (0.8, CalibrationTest::HoeffdingBentkus)]
    {
        let goal = Goal { test, ..goal(validity, 0.95) };
        let by = |models| choose(&goal, vec![candidate(0.9, &costs, &vec![9; models])]).unwrap();
        let few = by(20);
        let needed = few.best.unwrap().models.unwrap();
        assert!(few.tau().is_none() && needed > 20, "{needed}");
        assert_eq!(by(needed).tau(), Some(0.9));
        assert!(needed == 40 || by(needed / 2).tau().is_none());
        assert!(few.sentence().contains(&format!("about {needed} models")), "{}", few.sentence());
    }
}

#[test]
fn bad_input_is_named() {
    let good = || candidate(0.9, &COSTS, &[4; 4]);
    let cases = [
        (goal(1.0, 0.9), vec![good()], "parameter `target` is 1, expected"),
        (goal(0.9, f64::NAN), vec![good()], "parameter `confidence` is NaN, expected"),
        (goal(0.9, 0.9), vec![], "parameter `tau` is missing, expected at least one"),
        (goal(0.9, 0.9), vec![good(), good()], "parameter `tau` is 0.9, expected every"),
        (
            goal(0.9, 0.9),
            vec![candidate(f64::NAN, &COSTS, &[4; 4])],
            "parameter `tau` is NaN, expected a finite number",
        ),
        (
            goal(0.9, 0.9),
            vec![candidate(0.9, &COSTS, &[4])],
            "parameter `models` is 1, expected at least 2",
        ),
        (
            goal(0.9, 0.9),
            vec![candidate(0.9, &[], &[0; 4])],
            "parameter `factuals` is 0, expected at least 1",
        ),
        (
            goal(0.9, 0.9),
            vec![good(), candidate(0.8, &COSTS, &[4; 3])],
            "models at tau 0.8: expected 4, got 3",
        ),
        (
            goal(0.9, 0.9),
            vec![good(), candidate(0.8, &COSTS[1..], &[3; 4])],
            "factuals at tau 0.8: expected 4, got 3",
        ),
    ];
    for (goal, given, expected) in cases {
        let error = choose(&goal, given).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error} does not say: {expected}");
    }
}
