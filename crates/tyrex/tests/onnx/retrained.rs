//! Models that were retrained with other packages: they score rows as onnxruntime does, and they
//! make and certify promises.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rand::RngExt as _;
use tyrex::Seed;
use tyrex::calibrate::Goal;
use tyrex::certificate::{About, SearchRecord, Verdict, WrittenCertificate};
use tyrex::change::Origin;
use tyrex::data::{Schema, Table};
use tyrex::explain::{
    AdviceRows, Answered, Ask, CalibrationTerms, Explainer, PortfolioTerms, Progress, Reference,
    import, verify_certificates,
};
use tyrex::model::files::ImportOptions;

const SCHEMA: &str = include_str!("../schemas/purposes.toml");

/// The folder of the models, made once for all tests.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("retrained-models");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut random = Seed(9).rng();
    let mut csv = String::from("age,income,purpose\n");
    for _ in 0..200 {
        let purpose = ["car", "house", "school"][random.random_range(0..3)];
        let (age, income) = (random.random_range(18..80), random.random_range(0.0..10.0_f32));
        csv += &format!("{age},{income},{purpose}\n");
    }
    std::fs::write(folder.join("promised.csv"), csv).unwrap();
    super::python("make_retrained.py", &[&folder]);
    folder
});

fn schema(name: &str) -> Schema {
    let input = if name == "pipelines" { "raw" } else { "encoded" };
    Schema::from_toml(&SCHEMA.replace("INPUT", input)).unwrap()
}

/// The model in use of a folder, with the rows that trained it.
fn explainer(name: &str) -> Explainer {
    let schema = schema(name);
    let path = FOLDER.join(format!("{name}.onnx"));
    let model = import(&path, &schema, &ImportOptions::default()).unwrap();
    let rows = Table::read(&FOLDER.join("train.csv")).unwrap();
    let data = Reference::read(&schema, rows).unwrap();
    // Numbers on a common scale, as in Python: the retrained models have to follow.
    Explainer::with_model(data, model).unwrap()
}

fn read(explainer: &Explainer, name: &str) -> tyrex::Result<tyrex::change::Ensemble> {
    explainer.retraining().read(&FOLDER.join(name), &ImportOptions::default())
}

fn quietly(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Answers for the first rejected rows of the data.
fn answer(explainer: &Explainer, name: &str, ask: &Ask) -> tyrex::Result<Answered> {
    let given = read(explainer, name)?;
    let mut applicants = explainer.applicants().rejected(explainer.reference().applicants());
    applicants.truncate(8);
    explainer.answer(&applicants, ask, Some(&given), quietly)
}

fn certified() -> Ask {
    Ask { certify: true, ..Ask::default() }
}

fn scores_are_those_of_onnxruntime() {
    let scores = std::fs::read_to_string(FOLDER.join("scores.json")).unwrap();
    let scores: BTreeMap<String, Vec<f64>> = serde_json::from_str(&scores).unwrap();
    for name in ["pipelines", "networks", "trees"] {
        let explainer = explainer(name);
        let table = Table::read(&FOLDER.join("promised.csv")).unwrap();
        let rows = explainer.applicants().read(&table).unwrap();
        let ensemble = read(&explainer, name).unwrap();
        let survival = explainer.survival(&rows, &ensemble).unwrap();
        // The members are in the order of their names.
        let expected: Vec<&Vec<f64>> = scores
            .iter()
            .filter(|(file, _)| file.starts_with(&format!("{name}/")))
            .map(|(_, scores)| scores)
            .collect();
        assert_eq!(ensemble.members().len(), expected.len(), "{name}");
        assert!(expected.len() >= 12, "{name}: {}", expected.len());
        for (row, survival) in survival.iter().enumerate() {
            for (member, score) in survival.scores.iter().enumerate() {
                let expected = expected[member][row];
                let difference = (f64::from(*score) - expected).abs();
                assert!(difference < 1e-5, "{name} {member}, row {row}: {score}, {expected}");
            }
        }
        // Trees have no gradients; a network with another scale keeps them.
        let gradients = ensemble.members().iter().all(|each| each.differentiable().is_some());
        assert_eq!(gradients, name != "trees", "{name}");
    }
}

fn given_networks_make_and_certify_promises() {
    let explainer = explainer("pipelines");
    let answered = answer(&explainer, "pipelines", &certified()).unwrap();
    // 75 models are enough for the default promise: 61 fresh ones and 14 others.
    let request = answered.adviser.request();
    assert_eq!((request.method.name(), request.promise.is_some()), ("trex-e", true));
    let fresh = answered.fresh.as_deref().unwrap();
    assert_eq!(fresh.ensemble.members().len(), 61);
    assert!(!fresh.steered);
    let certificates: Vec<_> = answered.certificates.iter().flatten().collect();
    assert!(certificates.len() >= 6, "{}", certificates.len());
    let certified = |verdict| verdict == Verdict::Certified;
    let count = certificates.iter().filter(|each| certified(each.ensemble().unwrap().verdict));
    assert!(count.count() >= 5);
    for certificate in &certificates {
        let tier = certificate.ensemble().unwrap();
        assert_eq!(tier.models, 61);
        let words = tier.assumptions[0].to_string();
        let folder = FOLDER.join("pipelines").display().to_string();
        for piece in
            [&*folder, "retrained elsewhere", "on the user's word", "tested at level 0.017"]
        {
            assert!(words.contains(piece), "{words}");
        }
        assert!(matches!(tier.assumptions[0].about, About::Exchangeable { models: 61, .. }));
    }
    // The portfolio rests on the same models.
    let portfolio = answered.portfolio.as_ref().unwrap();
    let table = explainer.reference().table();
    let document =
        portfolio.document(&PortfolioTerms::default(), table, explainer.schema()).unwrap();
    assert_eq!(document.verdict, Verdict::Certified);
    assert!(document.rests_on[0].contains("retrained elsewhere"), "{:?}", document.rests_on);
    // One seed, the same answers, whatever the threads.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let again = pool.install(|| answer(&explainer, "pipelines", &self::certified()).unwrap());
    let points = |answered: &Answered| -> Vec<Option<Vec<f32>>> {
        let found = |each: &tyrex::explain::Advice| each.found().map(|found| found.point.clone());
        answered.advice.iter().map(found).collect()
    };
    assert_eq!(points(&again), points(&answered));
    assert_eq!(again.certificates, answered.certificates);
    // Another seed draws other sets.
    let other = answer(&explainer, "pipelines", &Ask { seed: 1, ..self::certified() }).unwrap();
    assert_ne!(other.fresh.unwrap().ensemble, fresh.ensemble);
}

/// A model has another fingerprint on another scale, so the file of advice names the scale of its
/// search: without the reference, numbers would keep the scale of the model file.
fn models_that_searched_are_known_on_the_scale_of_the_search() {
    let schema = SCHEMA.replace("INPUT", "raw").replace("\"none\"", "\"min-max\"");
    let schema = Schema::from_toml(&schema).unwrap();
    let model = || {
        let path = FOLDER.join("pipelines.onnx");
        import(&path, &schema, &ImportOptions::default()).unwrap()
    };
    let rows = |file: &str| Table::read(&FOLDER.join(file)).unwrap();
    let data = Reference::read(&schema, rows("train.csv")).unwrap();
    let explainer = Explainer::with_model(data, model()).unwrap();
    let answered = answer(&explainer, "pipelines", &certified()).unwrap();
    let searched = answered.adviser.explainer().searched();
    assert!(searched.scale().is_some());
    let alone = Explainer::with_model(Reference::none(&schema).unwrap(), model()).unwrap();
    let advice = AdviceRows::read(&schema, &rows("promised.csv")).unwrap();
    let advice = AdviceRows { searched: Some(searched.clone()), ..advice };
    let left_out = |explainer: &Explainer| {
        let ensemble = read(explainer, "pipelines").unwrap();
        let searched = advice.searched.as_ref();
        let watch = |_| ControlFlow::Continue(());
        let retraining = explainer.retraining();
        let (fresh, left_out) = retraining.unsearched(searched, ensemble, None, &watch).unwrap();
        (left_out, fresh.search)
    };
    let others = Some(SearchRecord::Others { models: 14 });
    assert_eq!(left_out(&alone.on_scale(searched.scale()).unwrap()), (14, others));
    assert_eq!(left_out(&alone), (0, Some(SearchRecord::Unknown)));
}

/// The files of `networks` with names that choose their sets.
fn named(folder: &Path, sets: &[(&str, usize)]) {
    let mut number = 1;
    for &(prefix, count) in sets {
        for index in 0..count {
            let to = folder.join(format!("{prefix}{index}.onnx"));
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            let from = FOLDER.join(format!("networks/network{number:02}.onnx"));
            std::fs::copy(from, to).unwrap();
            number += 1;
        }
    }
}

fn names_choose_the_sets() {
    let explainer = explainer("networks");
    // 9 fresh models show a promise of 0.7 at most.
    let promise = Ask { promise: Some(0.7), ..certified() };
    for sets in [
        [("search-", 4), ("tune_", 3), ("fresh", 9)],
        [("search/", 4), ("tune/m", 3), ("fresh/search", 9)],
    ] {
        let folder = tempfile::tempdir().unwrap();
        named(folder.path(), &sets);
        let options = ImportOptions::default();
        let given = explainer.retraining().read(folder.path(), &options).unwrap();
        let Origin::Given(origin) = given.origin() else { panic!("not given") };
        assert_eq!((origin.sets, given.members().len()), (Some([4, 3]), 16));
        let mut applicants = explainer.applicants().rejected(explainer.reference().applicants());
        applicants.truncate(4);
        let answered = explainer.answer(&applicants, &promise, Some(&given), quietly).unwrap();
        let fresh = answered.fresh.as_deref().unwrap();
        assert!(fresh.ensemble.members().iter().eq(&given.members()[7..]));
        // Other methods do without search models, and the fresh ones certify all the same.
        let trex_o = Ask { method: Some("trex-o".to_owned()), ..certified() };
        let other = explainer.answer(&applicants, &trex_o, Some(&given), quietly).unwrap();
        assert_eq!(other.fresh.unwrap().ensemble.members().len(), 9);
        let certificates: Vec<String> = answered
            .certificates
            .iter()
            .flatten()
            .map(|each| serde_json::to_string(each).unwrap())
            .collect();
        assert!(!certificates.is_empty());
        // Their names choose the same models again, so the certificates can be verified; where the
        // folder is does not matter.
        for text in certificates {
            let written = WrittenCertificate::all_in(&text).unwrap();
            let models = given.clone().fresh();
            let go_on = || ControlFlow::Continue(());
            let verified =
                verify_certificates(explainer.model(), &written, Some(&models), go_on).unwrap();
            assert!(verified[0].confirmed, "{:?}", verified[0].differences);
        }
    }
    let error = |sets: &[(&str, usize)], ask: &Ask| {
        let folder = tempfile::tempdir().unwrap();
        named(folder.path(), sets);
        let options = ImportOptions::default();
        let applicants = explainer.applicants().rejected(explainer.reference().applicants());
        let given = explainer.retraining().read(folder.path(), &options);
        given
            .and_then(|given| explainer.answer(&applicants[..1], ask, Some(&given), quietly))
            .unwrap_err()
            .to_string()
    };
    let nine = Ask { promise: Some(0.9), ..certified() };
    for (sets, ask, expected) in [
        (
            &[("search", 7), ("fresh", 9)][..],
            &nine,
            "a set with 9 fresh models, expected at least 29",
        ),
        (&[("tune", 7), ("fresh", 9)], &promise, "expected models whose names begin with `search`"),
        (&[("search", 7), ("tune", 9)], &promise, "a set with 0 fresh models"),
        (&[("search", 7), ("model", 9)], &promise, "model0.onnx: its name chooses no set"),
        (&[("sibling", 7)], &promise, "no retrained models, expected 1 to 10000"),
    ] {
        let error = error(sets, ask);
        assert!(error.contains(expected), "{error}");
    }
}

fn siblings_are_compared_with_the_model_in_use() {
    let explainer = explainer("networks");
    let folder = tempfile::tempdir().unwrap();
    named(folder.path(), &[("sibling", 12), ("model", 4)]);
    let options = ImportOptions::default();
    let given = explainer.retraining().read(folder.path(), &options).unwrap();
    let likeness = explainer.retraining().likeness(&given, &quietly).unwrap();
    assert!(!likeness.is_refuted(), "{likeness}");
    assert!(likeness.to_string().contains("looks like one of 12"), "{likeness}");
    // A network that was hardly trained is not like them, so nothing is certified.
    let unlike = self::explainer("unlike");
    let likeness =
        unlike.retraining().likeness(&read(&unlike, "networks").unwrap(), &quietly).unwrap();
    assert!(likeness.is_refuted(), "{likeness}");
    let min_cost = Ask { method: Some("min-cost".to_owned()), ..certified() };
    let answered = answer(&unlike, "networks", &min_cost).unwrap();
    let mut tiers = answered.certificates.iter().flatten().filter_map(|each| each.ensemble());
    assert!(tiers.all(|tier| tier.verdict < Verdict::Certified));
}

fn given_trees_are_searched_and_certify() {
    // The model in use is a network of the same columns, or one of the trees.
    for name in ["networks", "trees"] {
        let explainer = explainer(name);
        // 24 models are too few for the default promise.
        let answered = answer(&explainer, "trees", &certified()).unwrap();
        let request = answered.adviser.request();
        assert!(request.promise.is_none());
        assert_eq!(request.method.name(), "trex-o");
        assert_eq!(answered.fresh.as_deref().unwrap().ensemble.members().len(), 24);
        let tiers: Vec<_> = answered.certificates.iter().flatten().collect();
        assert!(!tiers.is_empty());
        assert!(tiers.iter().all(|each| each.ensemble().unwrap().models == 24));
        // A lower promise needs 11 fresh ones; the others are searched and tune.
        let promise = Ask { promise: Some(0.5), ..certified() };
        let answered = answer(&explainer, "trees", &promise).unwrap();
        assert_eq!(answered.adviser.request().method.name(), "trex-e");
        assert_eq!(answered.fresh.as_deref().unwrap().ensemble.members().len(), 11);
        let certificates: Vec<_> = answered.certificates.iter().flatten().collect();
        assert!(certificates.len() >= 4, "{name}: {}", certificates.len());
        let kept = certificates.iter().filter(|each| each.ensemble().unwrap().probability >= 0.5);
        assert!(2 * kept.count() >= certificates.len(), "{name}");
        // One seed, the same answers, whatever the threads.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let again = pool.install(|| answer(&explainer, "trees", &promise).unwrap());
        let points = |answered: &Answered| -> Vec<Option<Vec<f32>>> {
            let each = answered.advice.iter();
            each.map(|own| own.found().map(|found| found.point.clone())).collect()
        };
        assert_eq!(points(&answered), points(&again));
    }
}

fn a_threshold_is_calibrated_with_given_models() {
    let explainer = explainer("pipelines");
    let ensemble = read(&explainer, "pipelines").unwrap();
    let applicants = explainer.applicants().rejected(explainer.reference().applicants());
    let ask = Ask { method: Some("trex-nn".to_owned()), k: Some(50), ..Ask::default() };
    let goal = Goal { validity: 0.8, confidence: 0.8, ..Goal::default() };
    let terms = CalibrationTerms {
        goal,
        taus: vec![0.6, 0.9],
        request: ask.request().unwrap(),
        factuals: 10,
    };
    let calibration =
        explainer.calibrate(&applicants, &terms, &ensemble, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(calibration.choosing + calibration.reporting, 75);
    assert!(calibration.tau().is_some());
}

fn files_that_do_not_fit_are_named() {
    let explainer = explainer("networks");
    let options = ImportOptions::default();
    let error = |prepare: &dyn Fn(&Path)| {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        explainer.retraining().read(folder.path(), &options).unwrap_err().to_string()
    };
    let copy = |from: &str, to: &Path| {
        std::fs::copy(FOLDER.join(from), to).unwrap();
    };
    let none = error(&|_| {});
    assert!(none.contains("no `ensemble.json`, and 0 model files"), "{none}");
    assert!(none.contains("61 fresh ones and 10"), "{none}");
    let other = error(&|folder| copy("pipelines/bootstrap-1.onnx", &folder.join("a.onnx")));
    assert!(other.contains("a.onnx: ") && other.contains("encoded columns"), "{other}");
    let damaged = error(&|folder| std::fs::write(folder.join("b.onnx"), b"no model").unwrap());
    assert!(damaged.contains("b.onnx: ") && damaged.contains("not an ONNX model"), "{damaged}");
    let twice = error(&|folder| {
        copy("networks/network01.onnx", &folder.join("c.onnx"));
        copy("networks/network01.onnx", &folder.join("d.onnx"));
    });
    assert!(twice.contains("d.onnx: it is the same as") && twice.contains("c.onnx"), "{twice}");
    let own = error(&|folder| copy("networks.onnx", &folder.join("e.onnx")));
    assert!(own.contains("e.onnx: it is the same as the model in use"), "{own}");
    // The beginning of an ensemble of `tyrex retrain` is not a folder of given models.
    let begun = error(&|folder| {
        copy("networks/network01.onnx", &folder.join("member-0000.onnx"));
        std::fs::write(folder.join("plan.json"), b"{}").unwrap();
    });
    assert!(begun.contains("ensemble.json"), "{begun}");
}

/// One test, since every test of a process makes the models again.
#[test]
fn models_that_were_retrained_elsewhere() {
    scores_are_those_of_onnxruntime();
    files_that_do_not_fit_are_named();
    siblings_are_compared_with_the_model_in_use();
    given_networks_make_and_certify_promises();
    models_that_searched_are_known_on_the_scale_of_the_search();
    names_choose_the_sets();
    given_trees_are_searched_and_certify();
    a_threshold_is_calibrated_with_given_models();
}
