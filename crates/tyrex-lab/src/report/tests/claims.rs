//! Every claim in both directions.

use super::super::claims::{ClaimVerdict, PaperClaim, claims};
use super::{Made, certificates, comparison, made, results, stated};

/// The verdict on the claim whose title has these words, for a table with these lines.
fn verdict(words: &str, lines: &[Made]) -> ClaimVerdict {
    one(words, &claims(&results(vec![comparison("german", Some("german"), lines)])).unwrap())
        .verdict
}

fn one(words: &str, claims: &[PaperClaim]) -> PaperClaim {
    let found: Vec<&PaperClaim> =
        claims.iter().filter(|claim| claim.title.contains(words)).collect();
    assert_eq!(found.len(), 1, "{words}: {found:?}");
    found[0].clone()
}

#[test]
fn claims_about_tables() {
    let robust = || made("trex-i", 1.0, 0.97, 0.97);
    let cases: [(&str, &[Made], ClaimVerdict); 22] = [
        ("fragile", &[made("min-cost", 0.4, 0.4, 0.3), robust()], ClaimVerdict::Holds),
        ("fragile", &[made("min-cost", 0.4, 0.98, 0.3), robust()], ClaimVerdict::DoesNot),
        ("fragile", &[made("min-cost", 0.4, 0.9699, 0.3), robust()], ClaimVerdict::Undecided),
        ("fragile", &[robust()], ClaimVerdict::NotTested),
        ("validity of SNS", &[made("sns", 1.2, 0.97, 0.97), robust()], ClaimVerdict::Holds),
        ("validity of SNS", &[made("sns", 0.8, 0.97, 0.97), robust()], ClaimVerdict::DoesNot),
        // Half a point is the same, a whole one is not.
        ("validity of SNS", &[made("sns", 1.2, 0.975, 0.97), robust()], ClaimVerdict::Holds),
        ("validity of SNS", &[made("sns", 1.2, 0.97, 0.98), robust()], ClaimVerdict::DoesNot),
        ("validity of SNS", &[robust()], ClaimVerdict::NotTested),
        (
            "more often than NN",
            &[made("nn", 1.0, 0.5, 0.5), made("trex-nn", 2.0, 0.9, 0.9)],
            ClaimVerdict::Holds,
        ),
        (
            "more often than NN",
            &[made("nn", 1.0, 0.9, 0.9), made("trex-nn", 2.0, 0.9, 0.9)],
            ClaimVerdict::DoesNot,
        ),
        (
            "more often than NN",
            &[made("nn", 1.0, 0.5, 0.9), made("trex-nn", 2.0, 0.9, 0.5)],
            ClaimVerdict::DoesNot,
        ),
        ("T-Rex:I is valid as often", &[robust().calibrated()], ClaimVerdict::Holds),
        (
            "T-Rex:I is valid as often",
            &[made("trex-i", 1.0, 0.97, 0.9).calibrated()],
            ClaimVerdict::DoesNot,
        ),
        ("T-Rex:I is valid as often", &[robust()], ClaimVerdict::NotTested),
        // Factuals without an answer count as not valid.
        (
            "T-Rex:O is valid as often",
            &[made("trex-o", 1.0, 1.0, 1.0).found(18).calibrated()],
            ClaimVerdict::DoesNot,
        ),
        ("less than T-Rex:I at", &[robust(), made("trex-o", 0.9, 0.97, 0.97)], ClaimVerdict::Holds),
        ("less than T-Rex:I at", &[robust(), made("trex-o", 0.9, 0.9, 0.9)], ClaimVerdict::DoesNot),
        (
            "less than T-Rex:NN",
            &[made("trex-nn", 2.0, 1.0, 1.0), made("trex-o", 0.9, 0.9, 0.9)],
            ClaimVerdict::Holds,
        ),
        (
            "less than T-Rex:NN",
            &[made("trex-nn", 0.5, 1.0, 1.0), made("trex-o", 0.9, 0.9, 0.9)],
            ClaimVerdict::DoesNot,
        ),
        (
            "less than the authors' code",
            &[made("trex-i", 1.5, 0.9, 0.9).of_released_code(), made("trex-o", 0.9, 0.9, 0.9)],
            ClaimVerdict::Holds,
        ),
        ("less than the authors' code", &[made("trex-o", 0.9, 0.9, 0.9)], ClaimVerdict::NotTested),
    ];
    for (index, (words, lines, expected)) in cases.into_iter().enumerate() {
        assert_eq!(verdict(words, lines), expected, "case {index}: {words}");
    }
}

#[test]
fn other_thresholds_take_part_on_the_same_factuals() {
    let table = [made("sns", 1.2, 0.97, 0.97), made("trex-i", 1.0, 0.9, 0.9)];
    let firmer = [made("trex-i", 1.1, 0.98, 0.98).set("tau", "0.9")];
    let dearer = [made("trex-i", 1.4, 0.98, 0.98).set("tau", "0.9")];
    let with = |curve: &[Made]| {
        let experiments =
            vec![comparison("german", Some("german"), &table), comparison("curve", None, curve)];
        one("validity of SNS", &claims(&results(experiments)).unwrap())
    };
    assert_eq!(with(&[]).verdict, ClaimVerdict::DoesNot);
    assert_eq!(with(&dearer).verdict, ClaimVerdict::DoesNot);
    let held = with(&firmer);
    assert_eq!(held.verdict, ClaimVerdict::Holds);
    assert!(held.evidence.contains("at tau 0.9"), "{}", held.evidence);
    assert!(held.evidence.contains("on 20 factuals"), "{}", held.evidence);
    // Another measure or width is another method.
    let wider = [made("trex-i", 1.1, 0.98, 0.98).set("sigma", "0.2")];
    assert_eq!(with(&wider).verdict, ClaimVerdict::DoesNot);
}

#[test]
fn measurements_of_others_take_part() {
    // Of the authors' code on German Credit, L2: cost 1.07, WI 78 %, LO 82 %.
    let mut line = made("trex-o", 0.5, 0.9, 0.9);
    line.norm = tyrex::counterfactual::Norm::L2;
    let claim = |line: &Made| verdict("others measured", std::slice::from_ref(line));
    assert_eq!(claim(&line), ClaimVerdict::Holds);
    line.cost = 1.5;
    assert_eq!(claim(&line), ClaimVerdict::DoesNot);
    (line.cost, line.wi) = (0.5, 0.7);
    assert_eq!(claim(&line), ClaimVerdict::DoesNot);
    assert_eq!(
        verdict("others measured", &[made("trex-o", 0.5, 0.9, 0.9)]),
        ClaimVerdict::NotTested
    );
    let mut other = made("nn", 0.5, 0.9, 0.9);
    other.norm = tyrex::counterfactual::Norm::L2;
    assert_eq!(claim(&other), ClaimVerdict::NotTested);
}

#[test]
fn the_ablation_is_decided_at_the_same_threshold_and_at_the_same_cost() {
    let line = |measure: &str, tau: &str, cost: f64, wi: f64| {
        made("trex-i", cost, wi, wi).set("measure", measure).set("tau", tau)
    };
    let lines = |cost: f64| {
        vec![
            line("m", "0.5", 1.0, 0.5),
            line("m", "0.9", 2.0, 0.7),
            line("r_k", "0.5", 1.1, 0.6),
            line("r_k", "0.9", 1.9, 0.8),
            line("R^", "0.5", cost, 0.65),
            line("R^", "0.9", cost + 0.1, 0.85),
        ]
    };
    let decided = |cost: f64| {
        let shown = comparison("ablation", Some("ablation"), &lines(cost));
        let claims = claims(&results(vec![shown])).unwrap();
        [
            "r_k beats m at the same threshold",
            "R^ beats r_k at the same threshold",
            "R^ beats r_k at the same cost",
        ]
        .map(|words| one(words, &claims).verdict)
    };
    assert_eq!(decided(1.2), [ClaimVerdict::Holds, ClaimVerdict::Holds, ClaimVerdict::Holds]);
    // More valid only because it goes further: the same threshold does not tell, the cost does.
    assert_eq!(decided(1.6), [ClaimVerdict::Holds, ClaimVerdict::Holds, ClaimVerdict::Undecided]);
    assert_eq!(decided(9.0), [ClaimVerdict::Holds, ClaimVerdict::Holds, ClaimVerdict::NotTested]);
}

#[test]
fn an_estimated_gamma_is_compared_at_the_same_cost() {
    use tyrex::measure::{Gamma, Measure, Stability};
    let estimated = |cost: f64, wi: f64| {
        let mut line = made("trex-i", cost, wi, wi).labelled("trex-i on R").set("tau", "0.4");
        if let Some(robustness) = line.contender.method.robustness_mut() {
            robustness.measure = Measure::Stability(Stability { gamma: Gamma::SampledSlopes });
        }
        line
    };
    let relaxed = [
        made("trex-i", 1.0, 0.7, 0.7).set("tau", "0.6"),
        made("trex-i", 2.0, 0.9, 0.9).set("tau", "0.8"),
    ];
    let decided = |line: Made| {
        let lines = [&relaxed[..], &[line]].concat();
        one("ballpark", &claims(&results(vec![comparison("gamma", None, &lines)])).unwrap()).verdict
    };
    assert_eq!(decided(estimated(1.5, 0.82)), ClaimVerdict::Holds);
    assert_eq!(decided(estimated(1.5, 0.7)), ClaimVerdict::DoesNot);
    assert_eq!(decided(estimated(5.0, 0.82)), ClaimVerdict::NotTested);
}

#[test]
fn certificates_may_not_claim_more_than_is_seen() {
    let decided =
        |bins| one("certificates never", &claims(&results(vec![certificates(bins)])).unwrap());
    let seen = [0.88, 0.9, 0.92, 0.9];
    assert_eq!(decided(vec![stated(0.8, &seen), stated(0.85, &seen)]).verdict, ClaimVerdict::Holds);
    // The mean is below, the interval is not.
    let close = decided(vec![stated(0.91, &seen)]);
    assert_eq!(close.verdict, ClaimVerdict::Holds);
    assert!(close.evidence.contains("1 with the mean below"), "{}", close.evidence);
    let over = decided(vec![stated(0.8, &seen), stated(0.99, &seen)]);
    assert_eq!(over.verdict, ClaimVerdict::DoesNot);
    assert!(over.evidence.contains("states 99.0 %"), "{}", over.evidence);
    assert_eq!(decided(Vec::new()).verdict, ClaimVerdict::NotTested);
}
