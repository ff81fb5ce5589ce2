//! Models and schemas that do not fit each other: errors and warnings in place of useless advice.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use tyrex::data::schema::{Action, ModelRule};
use tyrex::data::{Hints, Schema, Table, Value};
use tyrex::explain::{Ask, Explainer, PerformanceTally, Reference, UnlabelledRows, import_bytes};
use tyrex::model::files::{
    Core, Favourable, ImportOptions, InputBlock, InputColumn, InputKind, Inputs, ModelFile,
};
use tyrex::model::onnx::{ExportMetadata, write};
use tyrex::model::trees::{Aggregate, Comparison, Transform, TreeEnsemble, TreeNode};
use tyrex::model::{Mlp, TrainParams};
use tyrex::{Result, Seed};

const SCHEMA: &str = r#"
format_version = 1
[label]
column = "class"
favourable = "good"
[split]
column = "part"
[model]
[[feature]]
name = "income"
kind = "integer"
[[feature]]
name = "debt"
kind = "integer"
"#;

/// People whose class depends on their income and debt.
fn people(rows: usize) -> Table {
    let mut text = "income,debt,class,part\n".to_owned();
    for row in 0..rows {
        let (income, debt) = (30_000 + 997 * (row * 37 % 41), 500 * (row * 29 % 31));
        let class = if income > 3 * debt + 30_000 { "good" } else { "bad" };
        let part = ["train", "test"][usize::from(row % 4 == 0)];
        writeln!(text, "{income},{debt},{class},{part}").unwrap();
    }
    Table::from_csv(Path::new("people.csv"), text.as_bytes()).unwrap()
}

fn schema(with: &[(&str, &str)]) -> Schema {
    let text = with.iter().fold(SCHEMA.to_owned(), |text, (from, to)| text.replacen(from, to, 1));
    Schema::from_toml(&text).unwrap()
}

fn linear(weights: [f32; 2], bias: f32) -> Mlp {
    Mlp::linear(weights.into(), bias).unwrap()
}

fn model(core: Core, preprocessing: Vec<InputBlock>) -> ModelFile {
    ModelFile {
        inputs: Inputs::Matrix { columns: 2 },
        preprocessing,
        core,
        output: "probability".to_owned(),
        classes: 2,
        favourable: 1,
        labels: None,
        metadata: BTreeMap::new(),
    }
}

fn number(column: usize, missing: Option<f64>, mean: f64, deviation: f64) -> InputBlock {
    InputBlock::Number { column, missing, scale: 1.0 / deviation, shift: -mean / deviation }
}

fn explainer(schema: &Schema, rows: usize, model: ModelFile) -> Result<Explainer> {
    Explainer::with_model(Reference::read(schema, people(rows))?, model)
}

fn warnings(explainer: &Explainer, ask: &Ask) -> Vec<String> {
    let ask = ask.for_model(explainer, None);
    explainer.warnings(&ask.request().unwrap(), None)
}

/// A network that knows the classes, on the columns of the schema.
fn right() -> Mlp {
    linear([40.0, -45.0], 0.0)
}

#[test]
fn a_model_that_ranks_the_wrong_way_round_is_refused_with_the_remedy() {
    let bytes = write(&right(), &ExportMetadata::default());
    let read = |schema: &Schema, rows: usize| {
        let model = import_bytes(&bytes, schema, &ImportOptions::default())?;
        explainer(schema, rows, model)
    };
    let good = read(&schema(&[]), 200).unwrap();
    assert!(good.performances()[0].auc.unwrap() > 0.9);
    // The same file beside a schema that calls the other value favourable.
    let other = ("favourable = \"good\"", "favourable = \"bad\"");
    let error = read(&schema(&[other]), 200).unwrap_err().to_string();
    for part in [
        "it ranks the 200 labelled rows the wrong way round (AUC 0.",
        "with a confidence of 99.9 %",
        "the probability of class number 1",
        "`favourable_class` under `[model]`",
        "`accept_reversed = true`",
    ] {
        assert!(error.contains(part), "{error}");
    }
    // Few rows show nothing.
    assert!(read(&schema(&[other]), 12).is_ok());
    let class = ("[model]", "[model]\nfavourable_class = 0");
    let mended = read(&schema(&[other, class]), 200).unwrap();
    assert!(mended.performances()[0].auc.unwrap() > 0.9);
    assert!(warnings(&mended, &Ask::default()).iter().all(|own| !own.contains("wrong way")));
    let accept = ("[model]", "[model]\naccept_reversed = true");
    let kept = read(&schema(&[other, accept]), 200).unwrap();
    assert!(warnings(&kept, &Ask::default())[0].contains("the wrong way round"));
    let none = Schema::from_toml(&SCHEMA.replace("[model]", "[model]\nfavourable_class = 0.5"));
    assert!(
        none.unwrap_err().to_string().contains("`favourable_class` is `0.5`, expected the number")
    );
}

/// The class that a schema names is that of the file of another tool, not that of a file that tyrex
/// wrote of it later.
#[test]
fn a_class_of_the_schema_does_not_invert_what_tyrex_wrote() {
    let class = ("[model]", "[model]\nfavourable_class = 0");
    let schema = schema(&[class]);
    let original = write(&right(), &ExportMetadata::default());
    let first = import_bytes(&original, &schema, &ImportOptions::default()).unwrap();
    assert_eq!(first.favourable, 0);
    let text = schema.to_toml().unwrap();
    let written =
        write(&right(), &ExportMetadata { schema: Some(text), encoder: None, recipe: None });
    let read = |favourable| {
        let options = ImportOptions { favourable, ..ImportOptions::default() };
        import_bytes(&written, &schema, &options)
    };
    assert_eq!(read(None).unwrap().favourable, 1);
    assert_eq!(read(Some(Favourable::Class(1))).unwrap().favourable, 1);
    let error = read(Some(Favourable::Class(0))).unwrap_err().to_string();
    assert!(error.contains("class number 0 would invert every answer"), "{error}");
    // Nor does the file name the class again.
    let encoder = explainer(&schema, 12, first).unwrap().encoder().clone();
    let metadata = ExportMetadata::of(&schema, &encoder).unwrap();
    assert!(!metadata.schema.unwrap().contains("favourable_class"));
}

#[test]
fn labelled_applicants_without_a_reference_refuse_the_model_too() {
    let mut schema = schema(&[("[split]\ncolumn = \"part\"\n", "")]);
    for feature in &mut schema.features {
        feature.encoding = Some(tyrex::data::schema::Encoding::AsIs);
    }
    let of = |schema: &Schema| {
        let plain = vec![number(0, None, 0.0, 1.0), number(1, None, 0.0, 1.0)];
        let reversed = Core::Mlp(linear([-1e-3, 3e-3], 30.0));
        let reference = Reference::none(schema).unwrap();
        Explainer::with_model(reference, model(reversed, plain)).unwrap()
    };
    let explainer = of(&schema);
    let mut tally = PerformanceTally::default();
    for applicant in explainer.applicants().read(&people(200)).unwrap() {
        tally.add(applicant.score, applicant.favourable);
    }
    let error = explainer.check_applicants(&tally).unwrap_err().to_string();
    for part in ["ranks the 200 labelled rows the wrong way", "`accept_reversed = true`"] {
        assert!(error.contains(part), "{error}");
    }
    // A user who says so gets the model as it is, and the doubt.
    schema.model.accept_reversed = true;
    let explainer = of(&schema);
    explainer.check_applicants(&tally).unwrap();
    let request = Ask::default().for_model(&explainer, None).request().unwrap();
    let found = explainer.warnings(&request, Some(&tally));
    assert!(found.iter().any(|own| own.contains("ranks the 200 labelled rows the wrong way")));
}

/// Columns with other names than the features are not taken in the order of the schema: it may be
/// another one than that of the training.
#[test]
fn a_model_whose_columns_are_all_unknown_is_refused() {
    let raw = schema(&[("[model]", "[model]\ninput = \"raw\"")]);
    let plain = || vec![number(0, None, 0.0, 1.0), number(1, None, 0.0, 1.0)];
    let of = |names: [&str; 2]| {
        let column = |name: &str| InputColumn { name: name.to_owned(), kind: InputKind::Number };
        let inputs = Inputs::Columns(names.map(column).into());
        let classes = Core::Mlp(linear([1e-3, -3e-3], -30.0));
        explainer(&raw, 200, ModelFile { inputs, ..model(classes, plain()) })
    };
    for names in [["Gehalt", "Schulden"], ["f0", "f2"], ["f1", "g0"], ["x1", "x0"]] {
        let error = of(names).unwrap_err().to_string();
        for part in [names[0], "no feature has one of these names", "`income`, `debt`", "rename"] {
            assert!(error.contains(part), "{names:?}: {error}");
        }
    }
    // Numbered columns have an order and no names.
    for names in [["f0", "f1"], ["0", "1"], ["Column_1", "Column_2"], ["income", "debt"]] {
        let read = of(names).unwrap();
        assert!(read.performances()[0].auc.unwrap() > 0.9, "{names:?}");
    }
    let error = of(["debt", "Gehalt"]).unwrap_err().to_string();
    assert!(error.contains("`Gehalt`: is an input of the model but no feature"), "{error}");
}

#[test]
fn a_forgotten_raw_input_is_named_as_the_cause() {
    // The model file scales by the means and deviations of the raw columns.
    let scaler = vec![number(0, None, 50_000.0, 12_000.0), number(1, None, 7_500.0, 4_500.0)];
    let core = Core::Mlp(linear([12.0, -13.5], -2.5));
    let raw = schema(&[("[model]", "[model]\ninput = \"raw\"")]);
    let sound = explainer(&raw, 200, model(core.clone(), scaler.clone())).unwrap();
    assert!(sound.performances()[0].accuracy.unwrap() > 0.9);
    let found = warnings(&sound, &Ask::default());
    assert!(found.iter().all(|own| !own.contains("model")), "{found:?}");
    let forgotten = explainer(&schema(&[]), 200, model(core, scaler)).unwrap();
    let found = warnings(&forgotten, &Ask::default());
    assert!(found[0].contains("2 of 2 columns are not on the scale"), "{found:?}");
    let about = found.iter().find(|own| own.contains("scores are 0 or 1")).unwrap();
    assert!(about.contains("The model's loss on 200 labelled rows is"), "{about}");
    assert!(
        found
            .iter()
            .all(|own| own.contains("`input = \"raw\"`") || own.contains("Advice is not limited"))
    );
    // One score for all rows.
    let constant = model(
        Core::Mlp(linear([0.0, 0.0], 1.0)),
        vec![number(0, None, 0.0, 1.0), number(1, None, 0.0, 1.0)],
    );
    let found = warnings(&explainer(&schema(&[]), 200, constant).unwrap(), &Ask::default());
    assert!(found[0].contains("gives all 200 rows the score 0.731"), "{found:?}");
}

#[test]
fn advice_without_rules_says_so() {
    let plain = vec![number(0, None, 0.0, 1.0), number(1, None, 0.0, 1.0)];
    let of =
        |schema: &Schema| explainer(schema, 200, model(Core::Mlp(right()), plain.clone())).unwrap();
    let found = warnings(&of(&schema(&[])), &Ask::default());
    assert_eq!(
        found,
        [
            "Advice is not limited to changes that people can make: the schema has neither an `action` nor a \
          `[[rule]]`, so advice may change `income`, `debt` in any way."
        ]
    );
    let ruled = ("name = \"income\"", "name = \"income\"\naction = \"only-up\"");
    assert_eq!(warnings(&of(&schema(&[ruled])), &Ask::default()), Vec::<String>::new());
    // An interval around all data is not a rule of a person.
    let inferred = ("name = \"income\"", "name = \"income\"\naction = { within = [0, 100000] }");
    assert_eq!(warnings(&of(&schema(&[inferred])), &Ask::default()).len(), 1);
    let narrow = ("name = \"income\"", "name = \"income\"\naction = { within = [0, 40000] }");
    assert_eq!(warnings(&of(&schema(&[narrow])), &Ask::default()), Vec::<String>::new());
    let asked = Ask { keep: vec!["income".to_owned()], ..Ask::default() };
    assert_eq!(warnings(&of(&schema(&[])), &asked), Vec::<String>::new());
}

/// A draft fixes sex and lets an age only rise. That is no reason to be silent about the others.
#[test]
fn advice_by_the_rules_of_a_draft_says_that_nobody_confirmed_them() {
    let mut text = "income,age_years,sex,class\n".to_owned();
    for row in 0..200 {
        let (income, age) = (30_000 + 997 * (row * 37 % 41), 20 + row * 29 % 31);
        let class = if income > 50_000 { "good" } else { "bad" };
        writeln!(text, "{income},{age},{},{class}", ["f", "m"][row % 2]).unwrap();
    }
    let table = Table::from_csv(Path::new("people.csv"), text.as_bytes()).unwrap();
    let drafted = |table: &Table| {
        Schema::draft(table, Some("class"), &[Value::from("good")], &Hints::default())
            .unwrap()
            .schema
    };
    let found = |schema: &Schema| {
        let Reference::Labelled(dataset) = Reference::read(schema, table.clone()).unwrap() else {
            panic!("the rows have labels");
        };
        let params = TrainParams { hidden: vec![4], epochs: 2, ..TrainParams::default() };
        let go_on = |_: &_| ControlFlow::Continue(());
        let explainer = Explainer::train(dataset, &params, Seed(0), go_on).unwrap();
        warnings(&explainer, &Ask { models: Some(0), ..Ask::default() })
    };
    let draft = drafted(&table);
    let of = |name: &str| draft.features.iter().find(|feature| feature.name == name).unwrap();
    assert_eq!((&of("age_years").action, draft.rules.len()), (&Action::OnlyUp, 1));
    assert_eq!(of("sex").action, Action::Fixed);
    assert_eq!(
        found(&draft),
        ["Advice is not limited to changes that people can make: the schema has neither an \
             `action` nor a `[[rule]]` but those that a draft writes for names such as `age`, which \
             nobody confirmed, so advice may change `income` in any way."]
    );
    // A rule that only a person can have written.
    let mut ruled = draft.clone();
    let income = ruled.features.iter_mut().find(|feature| feature.name == "income").unwrap();
    income.action = Action::OnlyUp;
    assert_eq!(found(&ruled), Vec::<String>::new());
}

/// One tree: an income below 45,000 is rejected; a missing one follows `missing`, and then a debt
/// of more than 5,000 is rejected.
fn tree(missing: bool) -> Core {
    let leaf = |weight| TreeNode::Leaf { weights: vec![(0, weight)] };
    let branch = |feature, threshold, missing, yes, no| TreeNode::Branch {
        feature,
        comparison: Comparison::LessOrEqual,
        threshold,
        missing,
        yes,
        no,
    };
    let nodes = vec![
        branch(0, 45_000.0, missing, 1, 2),
        leaf(0.125),
        branch(1, 5_000.0, false, 3, 4),
        leaf(0.875),
        leaf(0.25),
    ];
    let transform = Transform::Identity;
    Core::Trees(TreeEnsemble::new(2, &[nodes], Aggregate::Sum, vec![0.0], transform).unwrap())
}

/// Where every rule leaves one value, the searches over trees have nothing to choose from.
#[test]
fn a_row_that_cannot_change_has_no_advice() {
    let raw = ("[model]", "[model]\ninput = \"raw\"");
    let one = |name: &str, action: &str| {
        (format!("name = \"{name}\""), format!("name = \"{name}\"\naction = {action}"))
    };
    for (income, debt) in [
        ("\"fixed\"", "\"fixed\""),
        ("\"fixed\"", "{ within = [9000, 9000] }"),
        ("{ within = [40000, 40000] }", "{ within = [9000, 9000] }"),
    ] {
        let (income, debt) = (one("income", income), one("debt", debt));
        let schema = schema(&[raw, (&income.0, &income.1), (&debt.0, &debt.1)]);
        let plain = vec![number(0, None, 0.0, 1.0), number(1, None, 0.0, 1.0)];
        let explainer = explainer(&schema, 200, model(tree(false), plain)).unwrap();
        let rejected: Vec<usize> =
            (0..200).filter(|&row| explainer.scores()[row] < 0.5).take(10).collect();
        let applicants: Vec<_> =
            rejected.iter().map(|&row| explainer.applicants().at(row).unwrap()).collect();
        for method in ["min-cost", "trex-i", "trex-o", "sns"] {
            for plausible in [None, Some(0.1)] {
                let method = Some(method.to_owned());
                let ask = Ask { method, plausible, models: Some(0), ..Ask::default() };
                let on = |_| ControlFlow::Continue(());
                let answered = explainer.answer(&applicants, &ask, None, on).unwrap();
                assert!(answered.advice.iter().all(|own| own.advised.is_none()), "{ask:?}");
            }
        }
    }
}

const HOLES: &str = "income,debt\n50000,1000\n,1000\n,9000\n40000,1000\n60000,\n";

fn with_holes(schema: &Schema, model: ModelFile) -> Result<Explainer> {
    let table = Table::from_csv(Path::new("holes.csv"), HOLES.as_bytes()).unwrap();
    let rows = UnlabelledRows::read(schema, table)?.without_scale();
    Explainer::with_model(Reference::Unlabelled(rows), model)
}

#[test]
fn missing_values_reach_models_that_take_them_and_stay_missing() {
    let plain = || vec![number(0, None, 0.0, 1.0), number(1, None, 0.0, 1.0)];
    let pass = "[missing]\npolicy = \"pass\"\n[model]\ninput = \"raw\"";
    let schema = schema(&[("[model]", pass), ("[split]\ncolumn = \"part\"\n", "")]);
    let down = with_holes(&schema, model(tree(false), plain())).unwrap();
    assert_eq!(down.scores(), [0.875, 0.875, 0.25, 0.125, 0.25]);
    let up = with_holes(&schema, model(tree(true), plain())).unwrap();
    assert_eq!(up.scores(), [0.875, 0.125, 0.125, 0.125, 0.25]);
    assert_ne!(up.fingerprint(), down.fingerprint());
    assert!(down.points().as_slice().iter().all(|x| x.is_finite()));
    for (row, point) in down.reference().rows().iter().zip(down.points().rows()) {
        assert_eq!(down.encoder().decode(point), *row);
    }
    // The same function of rows on a common scale.
    let rows = Reference::Unlabelled(
        UnlabelledRows::read(
            &schema,
            Table::from_csv(Path::new("h.csv"), HOLES.as_bytes()).unwrap(),
        )
        .unwrap(),
    );
    let scaled = Explainer::with_model(rows, model(tree(false), plain())).unwrap();
    assert_eq!(scaled.scores(), down.scores());
    // The missing income of row 2 stays; its debt is advised to fall.
    let on = |_| ControlFlow::Continue(());
    let applicant = scaled.applicants().at(2).unwrap();
    let ask = Ask { method: Some("nn".to_owned()), ..Ask::default() };
    let answered = scaled.answer(&[applicant], &ask, None, on).unwrap();
    let advised = answered.advice[0].advised.as_ref().unwrap();
    assert_eq!(advised.values()[0], Value::Missing);
    assert!(advised.values()[1].number().unwrap() <= 5_000.0);
    let cost = answered.advice[0].cost.unwrap();
    assert!(cost.l1.is_finite() && cost.l1 > 0.0 && cost.l2.is_finite());
}

#[test]
fn a_network_takes_missing_values_only_with_an_imputer() {
    let pass = "[missing]\npolicy = \"pass\"\n[model]\ninput = \"raw\"";
    let schema = schema(&[("[model]", pass), ("[split]\ncolumn = \"part\"\n", "")]);
    let scaler = |imputed: Option<f64>| {
        vec![number(0, imputed, 45_000.0, 10_000.0), number(1, imputed, 5_000.0, 4_000.0)]
    };
    let network = || Core::Mlp(linear([1.0, -2.0], 0.25));
    let error = with_holes(&schema, model(network(), scaler(None))).unwrap_err().to_string();
    assert!(error.contains("a network without an imputer, which cannot take them"), "{error}");
    let imputing = with_holes(&schema, model(network(), scaler(Some(20_000.0)))).unwrap();
    assert!(imputing.model().network().is_some());
    // The same rows with the imputed values written out.
    let mut filled = schema.clone();
    filled.missing.policy = tyrex::data::schema::MissingPolicy::Fill(Value::Number(20_000.0));
    let expected = with_holes(&filled, model(network(), scaler(None))).unwrap();
    for (own, expected) in imputing.scores().iter().zip(expected.scores()) {
        assert!((own - expected).abs() < 1e-6, "{own} {expected}");
    }
    // A file of the rewritten network has columns for missing values of its own.
    let bytes = imputing.to_onnx().unwrap();
    let again = import_bytes(&bytes, &schema, &ImportOptions::default());
    let mut encoded = schema.clone();
    encoded.model = ModelRule::default();
    let again = with_holes(&encoded, again.unwrap()).unwrap();
    assert_eq!(again.scores(), imputing.scores());
}

#[test]
fn pass_is_for_models_of_other_tools() {
    let pass = ("[model]", "[missing]\npolicy = \"pass\"\n[model]");
    let Reference::Labelled(dataset) = Reference::read(&schema(&[pass]), people(60)).unwrap()
    else {
        panic!("the rows have labels");
    };
    let go_on = |_: &_| ControlFlow::Continue(());
    let trained = Explainer::train(dataset, &TrainParams::default(), Seed(0), go_on);
    let error = trained.unwrap_err().to_string();
    assert!(error.contains("`missing = \"pass\"` is for models of other tools"), "{error}");
}
