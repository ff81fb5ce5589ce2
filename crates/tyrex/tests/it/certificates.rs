//! Certificates promise nothing where their assumptions fail, say what they rest on, and cannot be
//! altered unnoticed. That they hold where their assumptions do is shown in `coverage.rs` and
//! `interval_certificates.rs`.

use serde_json::Value;
use tyrex::Seed;
use tyrex::certificate::{
    Certificate, Retrained, ShiftSource, SlopeSource, Standing, Terms, TheoremTerms, Tier, Verdict,
    certify, verify,
};
use tyrex::lipschitz::{LipschitzBound, Region, Soundness};
use tyrex::model::{Activation, Dense, Mlp, Model, Output};

use crate::support::{forest, leaf, theorem_only};

const SIGMOID: Output = Output::Sigmoid { favourable: true };

// ---- changes that break the assumption

/// A network of two inputs that scores `sigmoid(level)` everywhere, but for a dent of the given
/// depth and half-width along the first coordinate around 0.
fn dented(level: f32, depth: f32, width: f32) -> Mlp {
    let slope = depth / width;
    let hidden = Dense {
        weights: vec![1.0, 1.0, 1.0, 0.0, 0.0, 0.0],
        bias: vec![width, 0.0, -width],
        activation: Activation::Relu,
    };
    let last = Dense {
        weights: vec![-slope, 2.0 * slope, -slope],
        bias: vec![level],
        activation: Activation::Identity,
    };
    Mlp::new(2, &[hidden, last], SIGMOID).unwrap()
}

/// Names of tiers and columns stand in files of users.
#[test]
fn the_names_of_tiers_are_pinned() {
    assert_eq!(Tier::NAMES, ["theorem", "interval", "ensemble", "forest"]);
    let numbers = Tier::KINDS.map(|kind| kind.numbers.join(" "));
    let expected = [
        "at_least probability",
        "largest_delta",
        "valid models probability",
        "votes trees probability",
    ];
    assert_eq!(numbers, expected);
}

#[test]
fn a_change_that_breaks_the_assumption_is_never_certified() {
    let x = [0.0, 0.0];
    // Biased: every retrained model is lower around the point.
    let base = dented(2.0, 0.0, 1.0);
    let biased: Vec<Mlp> =
        (0_u8..30).map(|j| dented(-0.5 - 0.01 * f32::from(j), 0.0, 1.0)).collect();
    // Targeted: a dent so narrow that the mean around the point hardly notices.
    let targeted: Vec<Mlp> = (0..30).map(|_| dented(2.0, 4.0, 1e-4)).collect();
    for (name, models) in [("biased", &biased), ("targeted", &targeted)] {
        let models: Vec<&dyn Model> = models.iter().map(|model| model as &dyn Model).collect();
        let retrained = Retrained {
            models: &models,
            family: name,
            steered: false,
            search: None,
            likeness: None,
        };
        for slope in [SlopeSource::Local, SlopeSource::Spectral, SlopeSource::SampledGradients] {
            for sigma in [None, Some(0.1)] {
                let theorem_terms = TheoremTerms { sigma, slope, ..TheoremTerms::default() };
                let terms = theorem_only(0.9, theorem_terms);
                let certificate = certify(&base, &x, Some(retrained), &terms, Seed(3)).unwrap();
                let tier = certificate.theorem().unwrap();
                assert_ne!(tier.verdict, Verdict::Certified, "{name} {slope:?} {sigma:?}");
                assert_eq!(certificate.ensemble().unwrap().verdict, Verdict::Vacuous);
                if slope != SlopeSource::SampledGradients {
                    assert_eq!(tier.verdict, Verdict::Vacuous, "{name} {slope:?}: {tier:?}");
                    assert_eq!(certificate.verdict(), Verdict::Vacuous);
                    let sentence = certificate.sentence();
                    assert!(sentence.starts_with("Nothing is promised"), "{sentence}");
                }
            }
        }
        // Nothing was measured: the paper's formula holds, and the verdict is empirical.
        let theorem_terms = TheoremTerms { shift: ShiftSource::Unknown, ..TheoremTerms::default() };
        let certificate =
            certify(&base, &x, None, &theorem_only(0.9, theorem_terms), Seed(3)).unwrap();
        let tier = certificate.theorem().unwrap();
        assert_eq!(tier.verdict, Verdict::Empirical);
        assert!(tier.assumptions.iter().any(|a| a.standing == Standing::Unknown));
        let claim = Tier::from(tier.clone()).claim();
        assert!(claim.starts_with("Assuming that changed models score"), "{claim}");
    }
    // Models like the base are certified, so the refusals above are not for nothing.
    let alike: Vec<Mlp> = (0_u8..30).map(|j| dented(1.5 + 0.01 * f32::from(j), 0.0, 1.0)).collect();
    let models: Vec<&dyn Model> = alike.iter().map(|model| model as &dyn Model).collect();
    let retrained = Retrained {
        models: &models,
        family: "alike",
        steered: false,
        search: None,
        likeness: None,
    };
    let ask = |steered| {
        let retrained = Retrained { steered, ..retrained };
        certify(&base, &x, Some(retrained), &Terms::default(), Seed(3)).unwrap()
    };
    assert_eq!(ask(false).theorem().unwrap().verdict, Verdict::Certified);
    assert_eq!(ask(false).ensemble().unwrap().verdict, Verdict::Certified);
    // Unless they were used to find the point.
    assert_eq!(ask(true).theorem().unwrap().verdict, Verdict::Empirical);
    assert_eq!(ask(true).ensemble().unwrap().verdict, Verdict::Empirical);
}

#[test]
fn too_few_models_promise_nothing() {
    let base = dented(2.0, 0.0, 1.0);
    let models: Vec<&dyn Model> = vec![&base; 8];
    let retrained = Retrained {
        models: &models,
        family: "alike",
        steered: false,
        search: None,
        likeness: None,
    };
    let certificate =
        certify(&base, &[0.0, 0.0], Some(retrained), &Terms::default(), Seed(0)).unwrap();
    let tier = certificate.theorem().unwrap();
    assert_eq!((tier.verdict, tier.rank, tier.bound.at_least), (Verdict::Vacuous, None, 0.0));
    assert!(Tier::from(tier.clone()).claim().contains("too few"));
}

// ---- verification

/// Every value of a document that is not a list or a table, replaced by another one.
fn altered(document: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let mut paths = vec![String::new()];
    while let Some(path) = paths.pop() {
        let other = match document.pointer(&path).unwrap() {
            Value::Object(fields) => {
                paths.extend(fields.keys().map(|name| format!("{path}/{name}")));
                continue;
            }
            Value::Array(items) if !items.is_empty() => {
                paths.extend((0..items.len()).map(|index| format!("{path}/{index}")));
                continue;
            }
            Value::Array(_) => Value::from(vec![0]),
            Value::Null => Value::from(1),
            Value::Bool(value) => Value::from(!value),
            Value::Number(number) => number.as_u64().map_or_else(
                || Value::from(number.as_f64().unwrap() * 1.01 + 1e-3),
                |whole| Value::from(whole + 1),
            ),
            Value::String(text) => Value::from(match text.as_str() {
                "certified" => "empirical".to_owned(),
                "vacuous" | "empirical" => "certified".to_owned(),
                "declared" => "proved".to_owned(),
                "proved" | "measured" => "declared".to_owned(),
                other => format!("{other}x"),
            }),
        };
        let mut copy = document.clone();
        *copy.pointer_mut(&path).unwrap() = other;
        found.push((path, copy));
    }
    found
}

#[test]
fn a_certificate_is_verified_and_any_other_rejected() {
    let base = dented(2.0, 0.5, 1.0);
    let members: Vec<Mlp> =
        (0_u8..12).map(|j| dented(1.8 + 0.02 * f32::from(j), 0.4, 0.9)).collect();
    let models: Vec<&dyn Model> = members.iter().map(|m| m as &dyn Model).collect();
    let retrained = Some(Retrained {
        models: &models,
        family: "dents",
        steered: false,
        search: None,
        likeness: None,
    });
    let theorem_terms =
        TheoremTerms { samples: 100, epsilon: Some(0.05), ..TheoremTerms::default() };
    let terms = Terms { theorem: Some(theorem_terms), ..Terms::default() };
    let x = [0.4, -0.3];
    let certificate = certify(&base, &x, retrained, &terms, Seed(5)).unwrap();
    assert_eq!((certificate.tiers().len(), certificate.omitted().len()), (3, 0));
    assert_eq!(certificate.point().as_slice(), x);
    assert_eq!(certificate.model(), Some(&base.fingerprint()));

    // Through a file and back.
    let text = serde_json::to_string_pretty(&certificate).unwrap();
    let read: Certificate = serde_json::from_str(&text).unwrap();
    assert_eq!(read, certificate);
    assert_eq!(verify(&read, &base, retrained).unwrap(), []);

    let document = serde_json::to_value(&certificate).unwrap();
    let others = altered(&document);
    assert!(others.len() > 60, "{}", others.len());
    for (path, other) in others {
        let Ok(read) = serde_json::from_value::<Certificate>(other) else { continue };
        let differs = verify(&read, &base, retrained).map_or(true, |found| !found.is_empty());
        assert!(differs, "{path} was altered, and nobody noticed");
    }

    // Another model, other models, another name for how they came about.
    let differences = verify(&certificate, &members[0], retrained).unwrap();
    assert!(differences.iter().any(|difference| difference.field == "model"));
    let fewer = Some(Retrained {
        models: &models[1..],
        family: "dents",
        steered: false,
        search: None,
        likeness: None,
    });
    let renamed = Some(Retrained {
        models: &models,
        family: "dent",
        steered: false,
        search: None,
        likeness: None,
    });
    let steered = Some(Retrained {
        models: &models,
        family: "dents",
        steered: true,
        search: None,
        likeness: None,
    });
    for other in [fewer, renamed, steered, None] {
        assert!(!verify(&certificate, &base, other).unwrap().is_empty());
    }
    // And the same again, with any number of threads.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| verify(&certificate, &base, retrained)).unwrap(), []);
}

// ---- the ensemble tier

#[test]
fn the_ensemble_tier_says_what_the_count_proves() {
    let (good, bad) = (dented(2.0, 0.0, 1.0), dented(-2.0, 0.0, 1.0));
    let ask = |valid: usize, dissents: usize, confidence: f64| {
        let mut models: Vec<&dyn Model> = vec![&good; valid];
        models.extend(vec![&bad as &dyn Model; dissents]);
        let retrained = Retrained {
            models: &models,
            family: "reinitialise",
            steered: false,
            search: None,
            likeness: None,
        };
        let terms = Terms { confidence, theorem: None, delta: None, ..Terms::default() };
        let certificate = certify(&good, &[0.0, 0.0], Some(retrained), &terms, Seed(0)).unwrap();
        certificate.ensemble().unwrap().clone()
    };
    // scipy: beta.ppf(alpha, s, n - s + 1) and beta.ppf(alpha, s + 1/2, n - s + 1/2)
    for (valid, dissents, confidence, probability, posterior) in [
        (32, 0, 0.95, 0.910_631_801, 0.942_185_199),
        (50, 0, 0.95, 0.941_844_921, 0.962_498_865),
        (100, 0, 0.95, 0.970_486_950, 0.981_023_112),
        (31, 1, 0.9, 0.883_804_924, 0.906_233_290),
        (30, 2, 0.9, 0.842_125_102, 0.862_553_121),
        (48, 2, 0.9, 0.897_040_791, 0.910_474_177),
        (0, 20, 0.95, 0.0, 0.000_097_078),
    ] {
        let tier = ask(valid, dissents, confidence);
        assert_eq!((tier.valid, tier.models), (valid, valid + dissents));
        assert!((tier.probability - probability).abs() < 1e-8, "{}", tier.probability);
        assert!((tier.posterior - posterior).abs() < 1e-8, "{}", tier.posterior);
        let expected = if valid == 0 { Verdict::Vacuous } else { Verdict::Certified };
        assert_eq!(tier.verdict, expected);
    }
    // No better than a coin is nothing.
    assert_eq!(ask(6, 4, 0.95).verdict, Verdict::Vacuous);
    assert_eq!(
        Tier::from(ask(50, 0, 0.95)).claim(),
        "50 of 50 retrained models keep this point valid: with confidence 0.95, so does the next \
         one with probability at least 0.941 (certified)."
    );
}

// ---- what cannot be certified

#[test]
fn a_model_without_weights_says_which_tiers_it_has_not() {
    let tree = forest(2, &[vec![leaf(0.8)]]);
    let models: Vec<&dyn Model> = vec![&tree; 50];
    let retrained = Retrained {
        models: &models,
        family: "leave-out",
        steered: false,
        search: None,
        likeness: None,
    };
    let certificate =
        certify(&tree, &[0.0, 0.0], Some(retrained), &Terms::default(), Seed(0)).unwrap();
    let omitted: Vec<&str> = certificate.omitted().iter().map(|o| o.tier.as_str()).collect();
    assert_eq!(omitted, ["theorem", "interval"]);
    assert_eq!(certificate.ensemble().unwrap().verdict, Verdict::Certified);
    assert_eq!(certificate.model(), Some(&tree.fingerprint()));
}

#[test]
fn trees_have_an_interval_tier_for_their_shape() {
    use tyrex::certificate::{About, TreeIntervalCertifier, WrittenCertificate};
    // 0.375 for x0 <= 1, else 0.125; and 0.25.
    let stump = vec![
        crate::support::branch(0, tyrex::model::trees::Comparison::LessOrEqual, 1.0, 1),
        leaf(0.375),
        leaf(0.125),
    ];
    let tree = forest(2, &[stump, vec![leaf(0.25)]]);
    let certifier = TreeIntervalCertifier::new(&tree).unwrap();
    // The sum is 0.625; each of the two leaves may lose 0.0625.
    let x = [0.75, 0.0];
    assert!((certifier.lowest_score(&x, 0.0, 0.125).unwrap() - 0.625).abs() < 1e-12);
    assert!((certifier.largest_delta(&x, 0.125).unwrap() - 0.0625).abs() < 1e-6);
    assert!((certifier.largest_radius(&x, 0.03125).unwrap() - 0.25).abs() < 1e-6);
    assert!((certifier.lowest_score(&x, 0.0625, 0.375).unwrap() - 0.25).abs() < 1e-12);
    assert!(certifier.lowest_score(&x, -1.0, 0.0).is_err());
    assert!(certifier.lowest_score(&x, 0.0, f64::NAN).is_err());
    assert!(certifier.lowest_score(&[0.0], 0.0, 0.0).is_err());

    let terms = Terms { theorem: None, ..Terms::default() }.for_model(&tree);
    assert_eq!(terms.radius, Some(0.01));
    let certificate = certify(&tree, &x, None, &terms, Seed(0)).unwrap();
    let tier = certificate.interval().unwrap();
    assert_eq!(tier.verdict, Verdict::Certified);
    assert!(tier.largest_radius.is_some_and(|radius| (radius - 0.25).abs() < 1e-6));
    assert_eq!(tier.assumptions[0].about, About::TreesWithin { delta: 0.01, radius: 0.01 });
    let said = certificate.sentence();
    assert!(said.contains("scores this point at least 0.60"), "{said}");
    assert!(said.contains("trees of another shape are not covered (declared)"), "{said}");
    assert_eq!(verify(&certificate, &tree, None).unwrap(), []);

    // A network's certificate has no radius, and neither had those of trees before; theirs are
    // made again as they were.
    let network = dented(1.0, 0.0, 1.0);
    assert_eq!(terms.clone().for_model(&network).radius, None);
    let earlier = Terms { radius: None, ..terms };
    let certificate = certify(&tree, &x, None, &earlier, Seed(0)).unwrap();
    let text = serde_json::to_string(&certificate).unwrap();
    assert!(!text.contains("radius") && certificate.interval().is_none());
    assert_eq!(certificate.omitted()[1].reason, "only a network has weights that change by little");
    assert_eq!(WrittenCertificate::all_in(&text).unwrap().len(), 1);
}

#[test]
fn a_point_on_the_wrong_side_is_never_certified() {
    let base = dented(-1.0, 0.0, 1.0);
    let certificate = certify(&base, &[0.0, 0.0], None, &Terms::default(), Seed(0)).unwrap();
    assert_eq!(certificate.interval().unwrap().largest_delta, 0.0);
    assert_eq!(certificate.verdict(), Verdict::Vacuous);
    assert!(certificate.omitted().iter().any(|o| o.reason == "there are no retrained models"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let base = dented(2.0, 0.0, 1.0);
    let other = Mlp::linear(vec![1.0; 3], 0.0).unwrap();
    let local = |value, radius| LipschitzBound {
        value,
        region: Region::Ball { radius },
        soundness: Soundness::Sound,
    };
    let given = |value, radius| TheoremTerms {
        slope: SlopeSource::Given { model: local(value, radius), changed: local(value, radius) },
        ..TheoremTerms::default()
    };
    let asks = |theorem| Terms { theorem: Some(theorem), ..Terms::default() };
    let refusal =
        |x: &[f32], terms: &Terms| certify(&base, x, None, terms, Seed(0)).unwrap_err().to_string();
    let x = [0.0, 0.0];
    for (got, expected) in [
        (
            refusal(&x, &Terms { probability: 1.0, ..Terms::default() }),
            "parameter `probability` is 1, expected a number between 0 and 1",
        ),
        (
            refusal(&x, &Terms { confidence: f64::NAN, ..Terms::default() }),
            "parameter `confidence` is NaN, expected a number between 0 and 1",
        ),
        (
            refusal(&x, &Terms { delta: Some(-0.1), ..Terms::default() }),
            "parameter `delta` is -0.1, expected a number from 0 to 1e6",
        ),
        (refusal(&[0.0], &Terms::default()), "coordinates of the point: expected 2, got 1"),
        (
            refusal(&[0.0, f32::INFINITY], &Terms::default()),
            "parameter `x` is inf, expected finite coordinates",
        ),
        (
            refusal(&x, &asks(TheoremTerms { epsilon: Some(-1.0), ..TheoremTerms::default() })),
            "parameter `epsilon` is -1, expected a number of at least 0",
        ),
        (
            refusal(
                &x,
                &asks(TheoremTerms {
                    shift: ShiftSource::Given { epsilon: f64::NAN },
                    ..TheoremTerms::default()
                }),
            ),
            "parameter `shift` is NaN, expected a number of at least 0",
        ),
        (
            refusal(&x, &asks(given(-1.0, 1.0))),
            "parameter `gamma` is -1, expected a number of at least 0",
        ),
        (
            refusal(&x, &asks(TheoremTerms { samples: 0, ..TheoremTerms::default() })),
            "parameter `k` is 0, expected at least 1 sample",
        ),
        (
            refusal(&x, &asks(TheoremTerms { sigma: Some(0.2), ..given(1.0, 0.5) })),
            "parameter `sigma` is 0.2, expected a width whose draws, cut off at 2 sigma, stay \
             where the slopes hold",
        ),
        (
            refusal(&x, &asks(given(1.0, 1e-9))),
            "parameter `slope` is known in too small a region, expected a region that holds draws \
             of width 0.001, cut off at twice that",
        ),
    ] {
        assert_eq!(got, expected);
    }
    let models: Vec<&dyn Model> = vec![&other];
    let retrained = Some(Retrained {
        models: &models,
        family: "other",
        steered: false,
        search: None,
        likeness: None,
    });
    assert_eq!(
        certify(&base, &x, retrained, &Terms::default(), Seed(0)).unwrap_err().to_string(),
        "coordinates of a retrained model: expected 2, got 3"
    );
}

/// A black box whose score is not a number.
#[derive(Debug)]
struct Broken;

impl Model for Broken {
    fn dim(&self) -> usize {
        1
    }

    fn score_into(&self, _: &tyrex::Points, scores: &mut [f32]) {
        scores.fill(f32::NAN);
    }
}

#[test]
fn a_model_that_cannot_score_the_point_is_refused() {
    let refusal = certify(&Broken, &[0.0], None, &Terms::default(), Seed(0)).unwrap_err();
    assert_eq!(refusal.to_string(), "model: it scores the point NaN, expected a probability");
}
