//! The recipe of a network in its file, and the comparison of a model with its retrained versions.

use std::ops::ControlFlow;

use tyrex::Seed;
use tyrex::certificate::{
    About, Certificate, Likeness, LikenessTest, RecipeSource, Standing, Terms, Verdict,
    WrittenCertificate,
};
use tyrex::change::{Ensemble, ModelChange};
use tyrex::data::schema::Split;
use tyrex::data::{Column, Dataset, Schema, Table};
use tyrex::explain::{
    Ask, Explainer, Reference, RetrainingTerms, SIBLINGS, UnlabelledRows, embedded_schema,
    verify_certificates,
};
use tyrex::model::files::{ImportOptions, ModelFile};
use tyrex::model::onnx::{ExportMetadata, write};
use tyrex::model::train::{ClassWeights, EarlyStopping, Schedule};
use tyrex::model::{Activation, TrainParams};

use crate::support::german;

fn trained(params: &TrainParams) -> Explainer {
    Explainer::train(german(), params, Seed(5), |_| ControlFlow::Continue(())).unwrap()
}

fn read(bytes: Vec<u8>) -> ModelFile {
    ModelFile::from_bytes(bytes, &ImportOptions::default()).unwrap()
}

fn from_file(bytes: Vec<u8>) -> Explainer {
    Explainer::with_model(Reference::Labelled(german()), read(bytes)).unwrap()
}

/// The file of the same network as it was written before files had recipes.
fn without_recipe(explainer: &Explainer) -> Vec<u8> {
    let metadata = ExportMetadata::of(explainer.schema(), explainer.encoder()).unwrap();
    write(explainer.model().network().unwrap(), &metadata)
}

/// Every parameter differs from its default.
fn unusual() -> TrainParams {
    TrainParams {
        hidden: vec![6, 4],
        activation: Activation::Tanh,
        epochs: 3,
        batch: 50,
        learning_rate: 0.003,
        beta1: 0.8,
        beta2: 0.99,
        epsilon: 1e-6,
        schedule: Schedule::Cosine { floor: 0.1 },
        l2: 0.001,
        dropout: 0.1,
        class_weights: ClassWeights::Given(vec![1.0, 0.7]),
        early_stopping: Some(EarlyStopping { fraction: 0.2, patience: 2, min_delta: 1e-4 }),
        ..TrainParams::paper()
    }
}

#[test]
fn a_file_says_how_its_network_was_trained() {
    let explainer = trained(&unusual());
    assert_eq!(explainer.retraining().source(), RecipeSource::Known);
    let again = from_file(explainer.to_onnx().unwrap());
    assert_eq!(again.fingerprint(), explainer.fingerprint());
    assert_eq!(again.retraining().params().unwrap(), unusual());
    let recipe = again.retraining().recipe().unwrap();
    assert_eq!(Some(recipe), explainer.retraining().recipe());
    assert_eq!((recipe.seed, recipe.rows), (Seed(5), 670));
    assert_eq!(again.retraining().source(), RecipeSource::Known);
    // It stays there if the file is written again.
    assert_eq!(again.to_onnx().unwrap(), explainer.to_onnx().unwrap());
    // Its parameters and its seed repeat the training.
    let params = &recipe.params;
    let repeated = Explainer::train(german(), params, recipe.seed, |_| ControlFlow::Continue(()));
    assert_eq!(repeated.unwrap().fingerprint(), again.fingerprint());
}

#[test]
fn another_reference_is_no_error_but_known() {
    let explainer = trained(&unusual());
    let model = read(explainer.to_onnx().unwrap());
    // The schema in a file has no split, so all 1,000 rows are the reference.
    let schema = embedded_schema(&model).unwrap().unwrap();
    let rows = UnlabelledRows::read(&schema, german().table().clone()).unwrap();
    let other = Explainer::with_model(Reference::Unlabelled(rows), model).unwrap();
    assert_eq!(other.retraining().params().unwrap(), unusual());
    assert_eq!(other.retraining().source(), RecipeSource::OtherRows);
}

#[test]
fn the_training_rows_are_found_in_the_reference_by_the_split_in_the_file() {
    let table = german().table().clone();
    let split = Split::Fraction { train: 0.6, seed: 3 };
    let schema = Schema { split, ..german().schema().clone() };
    let dataset = Dataset::load(&schema, table.clone()).unwrap();
    let train = dataset.train().to_vec();
    let go_on = |_: &_| ControlFlow::Continue(());
    let explainer = Explainer::train(dataset, &unusual(), Seed(5), go_on).unwrap();
    let model = read(explainer.to_onnx().unwrap());
    let own = embedded_schema(&model).unwrap().unwrap();
    assert_eq!(own.split, Split::AllTrain);
    let terms = RetrainingTerms {
        change: ModelChange::default(),
        models: 1,
        params: unusual(),
        seed: Seed(8),
    };
    let retrained = |explainer: &Explainer| {
        let made = explainer.retraining().train(&terms, |_, _| ControlFlow::Continue(())).unwrap();
        made.members()[0].identity()
    };
    let warnings = |explainer: &Explainer| {
        let request = Ask::default().for_model(explainer, None).request().unwrap();
        explainer.warnings(&request, None)
    };
    for reference in [
        Reference::Labelled(Dataset::load(&own, table.clone()).unwrap()),
        Reference::Unlabelled(UnlabelledRows::read(&own, table.clone()).unwrap()),
    ] {
        let again = Explainer::with_model(reference, model.clone()).unwrap();
        assert_eq!(again.reference().training_rows(), train);
        assert_eq!(again.retraining().source(), RecipeSource::Known);
        assert_eq!(retrained(&again), retrained(&explainer));
        assert_eq!(warnings(&again), Vec::<String>::new());
    }
    // Without the last row the split is another one, and all rows are used.
    let columns = table.columns().iter().map(|whole| {
        let mut column = Column::new(whole.name());
        (0..999).for_each(|row| column.push(table.cell(row, whole)));
        column
    });
    let fewer = Table::new("fewer", columns.collect()).unwrap();
    let fewer = Reference::Labelled(Dataset::load(&own, fewer).unwrap());
    let other = Explainer::with_model(fewer, model).unwrap();
    assert_eq!(other.reference().training_rows().len(), 999);
    assert_eq!(other.retraining().source(), RecipeSource::OtherRows);
    let [warning] = <[String; 1]>::try_from(warnings(&other)).unwrap();
    let start = "The model was trained on 600 rows that are not the training rows of the reference, \
                 which are 999";
    assert!(warning.starts_with(start), "{warning}");
}

#[test]
fn without_a_recipe_the_layers_and_the_default_training_are_assumed() {
    let old = from_file(without_recipe(&trained(&unusual())));
    assert_eq!(old.retraining().recipe(), None);
    assert_eq!(old.retraining().source(), RecipeSource::Assumed);
    let assumed =
        TrainParams { hidden: vec![6, 4], activation: Activation::Tanh, ..TrainParams::default() };
    assert_eq!(old.retraining().params().unwrap(), assumed);
    let given = old.retraining().with_params(unusual()).unwrap();
    assert_eq!(given.retraining().source(), RecipeSource::Given);
    assert_eq!(given.retraining().params().unwrap(), unusual());
    // Parameters that repeat the assumption do not make it more certain.
    let repeated = given.retraining().with_params(assumed).unwrap();
    assert_eq!(repeated.retraining().source(), RecipeSource::Assumed);
    let wrong = TrainParams { epochs: 0, ..unusual() };
    assert!(old.retraining().with_params(wrong).unwrap_err().to_string().contains("epochs"));
}

#[test]
fn a_damaged_recipe_is_reported_and_that_of_another_tool_ignored() {
    let explainer = trained(&unusual());
    let plain = ExportMetadata::of(explainer.schema(), explainer.encoder()).unwrap();
    for recipe in ["{", r#"{"params": {"epochs": 0}, "seed": 1, "rows": 1, "digest": ""}"#] {
        let metadata = ExportMetadata { recipe: Some(recipe.to_owned()), ..plain.clone() };
        let model = read(write(explainer.model().network().unwrap(), &metadata));
        let read = Explainer::with_model(Reference::Labelled(german()), model.clone());
        let error = read.unwrap_err().to_string();
        assert!(error.contains("the recipe in its metadata is damaged"), "{error}");
        let mut foreign = model;
        foreign.metadata.remove("tyrex_version");
        let read = Explainer::with_model(Reference::Labelled(german()), foreign).unwrap();
        assert_eq!(read.retraining().source(), RecipeSource::Assumed);
    }
}

#[test]
fn a_training_that_was_ended_early_has_no_recipe() {
    let stop = |_: &_| ControlFlow::Break(());
    let explainer = Explainer::train(german(), &unusual(), Seed(5), stop).unwrap();
    assert_eq!(explainer.retraining().recipe(), None);
    assert_eq!(
        from_file(explainer.to_onnx().unwrap()).retraining().source(),
        RecipeSource::Assumed
    );
}

fn retrained(explainer: &Explainer, change: ModelChange, models: usize) -> Ensemble {
    let params = explainer.retraining().params().unwrap();
    let terms = RetrainingTerms { change, models, params, seed: Seed(1) };
    explainer.retraining().train(&terms, |_, _| ControlFlow::Continue(())).unwrap()
}

fn likeness(explainer: &Explainer, ensemble: &Ensemble) -> Likeness {
    explainer.retraining().likeness(ensemble, &|_| ControlFlow::Continue(())).unwrap()
}

/// Certificates of rows that the model accepts, from retrained models alone.
fn certificates(explainer: &Explainer, ensemble: &Ensemble) -> Vec<Certificate> {
    let scores = explainer.scores();
    let mut rows: Vec<usize> = (0..scores.len()).filter(|&row| scores[row] >= 0.5).collect();
    rows.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    rows.truncate(30);
    let watch = |_| ControlFlow::Continue(());
    let fresh = explainer.retraining().fresh(ensemble.clone(), false, &watch).unwrap();
    let terms = Terms { delta: None, ..Terms::default() };
    let points = explainer.points().select(&rows);
    let on = || ControlFlow::Continue(());
    let made = explainer.certify(&points, Some(&fresh), &terms, Seed(3), on).unwrap();
    // The comparison is taken from the certificate.
    let text = serde_json::to_string(&made).unwrap();
    let written = WrittenCertificate::all_in(&text).unwrap();
    let verified = verify_certificates(explainer.model(), &written, Some(ensemble), on).unwrap();
    assert!(verified.iter().all(|each| each.confirmed), "{verified:?}");
    made
}

/// The standing of the assumption that the next model is produced like the retrained ones.
fn standing(certificate: &Certificate) -> Standing {
    let assumptions = &certificate.ensemble().unwrap().assumptions;
    let about = |about: &About| matches!(about, About::Exchangeable { .. });
    assumptions.iter().find(|each| about(&each.about)).unwrap().standing
}

/// The case that made certificates false: a regularised network, retrained without regularisation.
#[test]
fn retrained_models_that_are_not_like_the_model_certify_nothing() {
    let regularised = TrainParams {
        hidden: vec![32],
        l2: 0.003,
        early_stopping: Some(EarlyStopping::default()),
        ..TrainParams::paper()
    };
    let plain = TrainParams { hidden: vec![32], ..TrainParams::paper() };
    let bytes = trained(&regularised).to_onnx().unwrap();
    let own = from_file(bytes);
    let old = from_file(without_recipe(&own)).retraining().with_params(plain).unwrap();
    for change in ["reinitialise", "leave-out"] {
        let change = ModelChange::named(change).unwrap();
        let ensemble = retrained(&own, change.clone(), 20);
        let LikenessTest::Tested { siblings, rows, differs, .. } = likeness(&own, &ensemble).test
        else {
            panic!("not tested");
        };
        let expected = if change == ModelChange::default() { 20 } else { SIBLINGS };
        assert_eq!((siblings, rows, differs), (expected, 1000, Vec::new()));
        let made = certificates(&own, &ensemble);
        assert!(made.iter().all(|each| standing(each) == Standing::Declared));
        let certified = made.iter().filter(|each| each.verdict() == Verdict::Certified).count();
        assert!(certified >= 20, "{certified} of 30");
        let sentence = made[0].sentence();
        let level = if siblings == 20 { "0.048" } else { "0.017" };
        let tested =
            format!("one of {siblings} retrained ones, tested at level {level} (declared)");
        assert!(sentence.contains(&tested), "{sentence}");

        let ensemble = retrained(&old, change, 20);
        let compared = likeness(&old, &ensemble);
        assert!(compared.is_refuted(), "{compared:?}");
        assert_eq!(compared.recipe, RecipeSource::Given);
        for each in certificates(&old, &ensemble) {
            assert_eq!(standing(&each), Standing::Broken);
            assert!(each.verdict() < Verdict::Certified);
            let assumption = each.ensemble().unwrap().assumptions[0].to_string();
            assert!(assumption.contains("mean cross-entropy"), "{assumption}");
            assert!(assumption.contains("give the parameters it was trained with"));
        }
        // With the parameters that the file lacks it passes.
        let given = old.retraining().with_params(regularised.clone()).unwrap();
        let ensemble = retrained(&given, ModelChange::default(), 20);
        let compared = likeness(&given, &ensemble);
        assert_eq!(compared.recipe, RecipeSource::Given);
        assert!(!compared.is_refuted(), "{compared:?}");
    }
}

#[test]
fn a_comparison_that_is_not_possible_says_why() {
    let params = TrainParams { hidden: vec![4], epochs: 10, ..TrainParams::paper() };
    let explainer = trained(&params);
    let reason =
        |explainer: &Explainer, ensemble: &Ensemble| match likeness(explainer, ensemble).test {
            LikenessTest::NotTested { reason } => reason,
            tested @ LikenessTest::Tested { .. } => panic!("{tested:?}"),
        };
    let few = retrained(&explainer, ModelChange::default(), 9);
    assert_eq!(reason(&explainer, &few), "fewer than 10 models were retrained");
    let moved = retrained(&explainer, ModelChange::named("weight-noise").unwrap(), 12);
    assert_eq!(reason(&explainer, &moved), "this change does not train models");
    let model = read(explainer.to_onnx().unwrap());
    let empty = Reference::none(&embedded_schema(&model).unwrap().unwrap()).unwrap();
    let alone = Explainer::with_model(empty, model).unwrap();
    assert_eq!(reason(&alone, &moved), "the reference has no labelled rows");
    let made = certificates(&explainer, &few);
    assert!(made.iter().all(|each| standing(each) == Standing::Declared));
}
