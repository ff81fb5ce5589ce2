//! The contents of files beside their trees, and malicious files.

use serde_json::{Value, json};

use super::{Category, Favourable, ImportOptions, InputBlock, InputKind, Inputs, ModelFile};
use crate::error::Result;
use crate::points::Points;

fn read(file: &[u8]) -> Result<ModelFile> {
    ModelFile::from_bytes(file.to_vec(), &ImportOptions::default())
}

fn read_json(document: &Value) -> Result<ModelFile> {
    read(document.to_string().as_bytes())
}

fn of_class(document: &Value, favourable: Favourable) -> Result<ModelFile> {
    let options = ImportOptions { favourable: Some(favourable), ..ImportOptions::default() };
    ModelFile::from_bytes(document.to_string().into_bytes(), &options)
}

fn score(model: &ModelFile, rows: &[&[f32]]) -> Vec<f32> {
    let points = Points::from_rows(rows[0].len(), rows.concat()).unwrap();
    model.model().score(&points)
}

fn sigmoid(logit: f64) -> f32 {
    (1.0 / (1.0 + (-logit).exp())) as f32
}

/// Each document, changed at a place, and words of the error.
fn refused(good: &Value, changes: &[(&str, Value, &str)]) {
    assert!(read_json(good).is_ok(), "{:?}", read_json(good));
    for (place, value, words) in changes {
        let mut bad = good.clone();
        *bad.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")) = value.clone();
        let problem = read_json(&bad).expect_err(place).to_string();
        assert!(problem.contains(words), "{place}: {problem}");
    }
}

// -------------------------------------------------------------------------------------- XGBoost

/// A number in column 0, and a category in column 1.
fn xgboost() -> Value {
    json!({"version": [3, 2, 0], "learner": {
        "attributes": {}, "feature_names": ["age", "job"], "feature_types": ["float", "c"],
        "learner_model_param":
            {"base_score": "[5E-1]", "num_class": "0", "num_feature": "2", "num_target": "1"},
        "objective": {"name": "binary:logistic"},
        "gradient_booster": {"name": "gbtree", "model": {
            "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": "1"},
            "cats": {"enc": [
                {"offsets": [], "values": []},
                {"offsets": [0, 1, 3, 4], "values": [97, -61, -92, 99]}]},
            "iteration_indptr": [0, 1], "tree_info": [0],
            "trees": [{
                "left_children": [1, -1, 3, -1, -1], "right_children": [2, -1, 4, -1, -1],
                "split_indices": [0, 0, 1, 0, 0], "split_conditions": [30.0, -1.0, 0.0, 0.5, 2.0],
                "default_left": [1, 0, 0, 0, 0], "split_type": [0, 0, 1, 0, 0],
                "categories": [0, 2], "categories_nodes": [2], "categories_segments": [0],
                "categories_sizes": [2], "tree_param": {"num_nodes": "5", "size_leaf_vector": "1"}}]}}}})
}

#[test]
fn xgboost_names_and_categories() {
    let model = read_json(&xgboost()).unwrap();
    let Inputs::Columns(columns) = &model.inputs else { panic!("expected names") };
    assert_eq!((&*columns[0].name, columns[0].kind), ("age", InputKind::Number));
    assert_eq!((&*columns[1].name, columns[1].kind), ("job", InputKind::Text));
    let categories = ["a", "ä", "c"].map(|text| Category::Text(text.into())).to_vec();
    assert_eq!(model.preprocessing[1], InputBlock::Code { column: 1, categories });
    assert_eq!((model.classes, model.favourable, &*model.output), (2, 1, "binary:logistic"));
    let nan = f32::NAN;
    let rows: [&[f32]; 6] =
        [&[29.0, 0.0], &[30.0, 0.0], &[30.0, 1.0], &[nan, 0.0], &[40.0, nan], &[40.0, 7.0]];
    let expected = [-1.0, 2.0, 0.5, -1.0, 2.0, 0.5].map(sigmoid);
    assert_eq!(score(&model, &rows), expected);
    let other = of_class(&xgboost(), Favourable::Class(0)).unwrap();
    assert_eq!(score(&other, &rows), [1.0, -2.0, -0.5, 1.0, -2.0, -0.5].map(sigmoid));
    let mut old = xgboost();
    old["learner"]["learner_model_param"]["base_score"] = json!("2E-1");
    let shifted = score(&read_json(&old).unwrap(), &rows[..1])[0];
    assert!((shifted - sigmoid(-1.0 + 0.25_f64.ln())).abs() < 1e-7);
}

#[test]
fn xgboost_refusals() {
    const TREE: &str = "/learner/gradient_booster/model/trees/0";
    let at = |place: &str| format!("{TREE}/{place}");
    let learner = |place: &str| format!("/learner/{place}");
    let changes: Vec<(String, Value, &str)> = vec![
        (learner("objective/name"), json!("count:poisson"), "objective `count:poisson`, expected"),
        (learner("gradient_booster/name"), json!("gblinear"), "booster `gblinear`, expected"),
        (learner("learner_model_param/base_score"), json!("[0E0]"), "between 0 and 1"),
        (learner("learner_model_param/base_score"), json!("[1E-1,2E-1]"), "expected one number"),
        (learner("learner_model_param/num_feature"), json!("4000000000"), "4000000000 columns"),
        (learner("learner_model_param/num_feature"), json!("3"), "2 names for 3 columns"),
        (learner("learner_model_param/num_target"), json!("2"), "2 targets"),
        (learner("feature_names"), json!(["age", "age"]), "two columns have the name `age`"),
        (learner("feature_names"), json!("age"), "learner.feature_names: invalid type"),
        (learner("gradient_booster/model/tree_info"), json!([1]), "its group 1 of 1"),
        (learner("gradient_booster/model/tree_info"), json!([0, 0]), "`tree_info` for 2"),
        (at("left_children"), json!([1, -1, 3, -1]), "different lengths"),
        (at("left_children"), json!([1, -1, 9, -1, -1]), "no node 9"),
        (at("left_children"), json!([1, -1, 0, -1, -1]), "a cycle, or too many"),
        // A split that lost a child is not a leaf, and a file that lost a part is not a model.
        (at("left_children"), json!([-1, -1, 3, -1, -1]), "node 0: no node -1"),
        (at("left_children"), json!([-5, -1, 3, -1, -1]), "node 0: no node -5"),
        (at("right_children"), json!([-1, -1, 4, -1, -1]), "node 0: no node -1"),
        (at("right_children"), json!([2, 4, 4, -1, -1]), "node 1: no node -1"),
        (at("tree_param/num_nodes"), json!("7"), "`num_nodes` is 7, but there are 5"),
        (
            learner("gradient_booster/model/gbtree_model_param/num_trees"),
            json!("2"),
            "`num_trees` is 2, but there are 1",
        ),
        (at("split_indices"), json!([5, 0, 1, 0, 0]), "no feature 5"),
        (at("split_indices"), json!([-1, 0, 1, 0, 0]), "column -1"),
        (at("split_type"), json!([2, 0, 1, 0, 0]), "a split of type 2"),
        (at("categories_sizes"), json!([5]), "overlap"),
        (at("categories_segments"), json!([1]), "its set of categories"),
        (at("categories_nodes"), json!([4]), "no set"),
        (at("categories"), json!([0, 4_294_967_296_i64]), "its set of categories"),
        (at("tree_param/size_leaf_vector"), json!("3"), "multi_output_tree"),
        (at("split_conditions"), json!([30.0, 1e39, 0.0, 0.5, 2.0]), "out of range"),
    ];
    let changes: Vec<_> = changes.iter().map(|(p, v, w)| (&**p, v.clone(), *w)).collect();
    refused(&xgboost(), &changes);
    let mut empty = xgboost();
    let model = &mut empty["learner"]["gradient_booster"]["model"];
    (model["trees"], model["tree_info"]) = (json!([]), json!([]));
    model["gbtree_model_param"]["num_trees"] = json!("0");
    assert!(read_json(&empty).unwrap_err().to_string().contains("there are no trees"));
    // Deep lists are refused, or passed over, without a deep stack.
    let lists = "[".repeat(100_000) + &"]".repeat(100_000);
    for deep in [lists.clone(), format!("{{\"unknown\": {lists}}}"), "[".repeat(100_000)] {
        assert!(read(format!("{{\"learner\": {deep}}}").as_bytes()).is_err());
    }
    let mut nested = b"{i\x07learner".to_vec();
    nested.resize(100_000, b'[');
    let problem = read(&nested).unwrap_err().to_string();
    assert!(problem.contains("not a model of XGBoost"), "{problem}");
    for options in [
        ImportOptions { logits: true, ..ImportOptions::default() },
        ImportOptions { output: Some("y".into()), ..ImportOptions::default() },
    ] {
        let bytes = xgboost().to_string().into_bytes();
        assert!(ModelFile::from_bytes(bytes, &options).is_err(), "{options:?}");
    }
}

#[test]
fn xgboost_stops_where_its_classifier_does() {
    let mut document = xgboost();
    let trees = document["learner"]["gradient_booster"]["model"]["trees"].clone();
    let model = &mut document["learner"]["gradient_booster"]["model"];
    model["trees"] = json!([trees[0], trees[0], trees[0]]);
    model["tree_info"] = json!([0, 0, 0]);
    model["gbtree_model_param"]["num_trees"] = json!("3");
    model["iteration_indptr"] = json!([0, 1, 3]);
    let row: [&[f32]; 1] = [&[0.0, 0.0]];
    let scored = |document: &Value| score(&read_json(document).unwrap(), &row)[0];
    document["learner"]["attributes"] = json!({"best_iteration": "0"});
    assert_eq!(scored(&document), sigmoid(-3.0));
    document["learner"]["attributes"]["scikit_learn"] = json!("{}");
    assert_eq!(scored(&document), sigmoid(-1.0));
    document["learner"]["attributes"]["best_iteration"] = json!("7");
    assert!(read_json(&document).unwrap_err().to_string().contains("has only 3 trees"));
}

// ------------------------------------------------------------------------------------- LightGBM

const LIGHTGBM: &str = "tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=1
objective=binary sigmoid:2
feature_names=age job_title
feature_infos=[18:80] 2:0:1
tree_sizes=100

Tree=0
num_leaves=3
num_cat=1
split_feature=0 1
threshold=0.1 0
decision_type=8 1
left_child=-1 -2
right_child=1 -3
leaf_value=-0.5 0.25 1
cat_boundaries=0 1
cat_threshold=5
is_linear=0


end of trees

parameters:
[categorical_feature: 1]
end of parameters

pandas_categorical:[[\"x\", \"y\", \"z\"]]
";

#[test]
fn lightgbm_compares_numbers_as_rows_have_them() {
    let model = read(LIGHTGBM.as_bytes()).unwrap();
    let categories = ["x", "y", "z"].map(|text| Category::Text(text.into())).to_vec();
    assert_eq!(model.preprocessing[1], InputBlock::Code { column: 1, categories });
    // A row's 0.1 is at the threshold, and becomes the `f32` next to it, which is larger.
    let near = 0.1_f32.next_up();
    let rows: [&[f32]; 6] = [
        &[near.next_down(), 0.0],
        &[near, 0.0],
        &[near, 1.0],
        &[near, 2.0],
        &[near, f32::NAN],
        &[f32::NAN, 1.0],
    ];
    assert_eq!(score(&model, &rows), [-1.0, 0.5, 2.0, 0.5, 2.0, 2.0].map(sigmoid));
}

/// Each missing type and default direction, at numbers around zero and the threshold.
#[test]
fn lightgbm_zeros_and_missing_values() {
    const ZERO: f32 = 1e-35;
    let points = [
        f32::NEG_INFINITY,
        -2.0,
        -1.0,
        (-ZERO).next_down(),
        -ZERO,
        -1e-40,
        0.0,
        1e-40,
        ZERO,
        ZERO.next_up(),
        1.0,
        2.0,
        f32::INFINITY,
        f32::NAN,
    ];
    for threshold in
        ["-1.5", "-1.0000000180025095e-35", "-1e-36", "0", "1.0000000180025095e-35", "1.5", "1e300"]
    {
        for decision in [0_u8, 2, 4, 6, 8, 10] {
            let text = LIGHTGBM
                .replace("threshold=0.1 0", &format!("threshold={threshold} 0"))
                .replace("decision_type=8 1", &format!("decision_type={decision} 1"));
            let model = read(text.as_bytes()).unwrap();
            let exact: f64 = threshold.parse().unwrap();
            for x in points {
                // LightGBM's own rule.
                let value = if x.is_nan() && decision >> 2 != 2 { 0.0 } else { f64::from(x) };
                let is_missing = match decision >> 2 {
                    1 => value.abs() <= f64::from(ZERO),
                    2 => value.is_nan(),
                    _ => false,
                };
                let lower = if is_missing { decision & 2 != 0 } else { value <= exact };
                let found = score(&model, &[&[x, 1.0]])[0];
                let expected = sigmoid(if lower { -1.0 } else { 2.0 });
                assert_eq!(found, expected, "{x:e} at {threshold}, decision {decision}");
            }
        }
    }
}

#[test]
fn lightgbm_refusals() {
    for (from, to, words) in [
        ("binary sigmoid:2", "poisson", "objective `poisson`"),
        ("binary sigmoid:2", "binary sigmoid:0", "`sigmoid` is 0"),
        ("binary sigmoid:2", "multiclass num_class:3", "with 1 outputs"),
        ("objective=binary sigmoid:2\n", "", "no objective, so its scores are raw"),
        ("num_class=1", "num_class=3", "3 classes and 1 trees"),
        ("max_feature_idx=1", "max_feature_idx=9", "2 `feature_names`"),
        ("num_leaves=3", "num_leaves=4", "a tree of 4 leaves with 2 splits"),
        ("num_leaves=3", "num_leaves=x", "`num_leaves` has `x`, expected a number"),
        ("split_feature=0 1", "split_feature=0 7", "no feature 7"),
        ("left_child=-1 -2", "left_child=0 -2", "a cycle, or too many"),
        ("left_child=-1 -2", "left_child=-9 -2", "no leaf 8"),
        ("left_child=-1 -2", "left_child=5 -2", "a child that is not a node"),
        ("threshold=0.1 0", "threshold=nan 0", "the threshold is not a number"),
        ("threshold=0.1 0", "threshold=0.1 3", "its set of categories"),
        ("cat_boundaries=0 1", "cat_boundaries=0 9", "its set of categories"),
        ("decision_type=8 1", "decision_type=12 1", "missing type 3"),
        ("is_linear=0", "is_linear=1", "linear trees"),
        ("leaf_value=-0.5", "leaf_value=inf", "weight inf"),
        ("end of trees", "trees", "found `trees`, expected `Tree=1`"),
        ("Tree=0", "Tree=1", "found `Tree=1`, expected `Tree=0`"),
        ("tree_sizes=100", "tree_sizes=100 100", "1 trees, but `tree_sizes` has 2"),
        ("is_linear=0", "leaf_value=1 2 3", "tree 0 has `leaf_value` twice"),
        ("[[\"x\", \"y\", \"z\"]]", "[[\"x\"], [\"y\"]]", "2 columns, but 1 are categorical"),
        ("[[\"x\", \"y\", \"z\"]]", "[[1.5]]", "the category 1.5"),
        ("[[\"x\", \"y\", \"z\"]]", "[[", "`pandas_categorical`"),
    ] {
        assert!(LIGHTGBM.contains(from), "{from}");
        let problem = read(LIGHTGBM.replacen(from, to, 1).as_bytes()).expect_err(to).to_string();
        assert!(problem.contains(words), "{to}: {problem}");
    }
    for end in (10..LIGHTGBM.len() - 140).step_by(7) {
        assert!(read(&LIGHTGBM.as_bytes()[..end]).is_err(), "{end}");
    }
}

// ---------------------------------------------------------------------------- CatBoost, scorecards

fn catboost() -> Value {
    let column = |index: usize, missing: &str| {
        json!({"borders": [0.5], "feature_index": index, "flat_feature_index": 1 - index,
               "feature_name": format!("x{index}"), "nan_value_treatment": missing})
    };
    let split = |index: usize| json!({"border": 0.5, "float_feature_index": index, "split_type": "FloatFeature"});
    json!({
        "features_info": {"float_features": [column(0, "AsTrue"), column(1, "AsFalse")]},
        "model_info": {"params": {"loss_function": {"type": "Logloss"}},
                       "class_params": {"class_names": ["no", "yes"]}},
        "oblivious_trees": [
            {"leaf_values": [0.0, 1.0, 2.0, 3.0], "splits": [split(0), split(1)]},
            {"leaf_values": [0.25], "splits": null}],
        "scale_and_bias": [0.5, [0.125]]})
}

#[test]
fn catboost_bits() {
    let model = read_json(&catboost()).unwrap();
    assert_eq!(model.labels, Some(vec!["no".to_owned(), "yes".to_owned()]));
    let Inputs::Columns(columns) = &model.inputs else { panic!("expected names") };
    // Feature 0 is the second column.
    assert_eq!((&*columns[0].name, &*columns[1].name), ("x1", "x0"));
    let rows: [&[f32]; 4] = [&[0.5, 0.5], &[0.0, 1.0], &[1.0, 0.0], &[f32::NAN, f32::NAN]];
    let logit = |leaf: f64| sigmoid(0.5 * (leaf + 0.25) + 0.125);
    assert_eq!(score(&model, &rows), [0.0, 1.0, 2.0, 1.0].map(logit));
    refused(
        &catboost(),
        &[
            ("/model_info/params/loss_function/type", json!("RMSE"), "objective `RMSE`"),
            ("/scale_and_bias", json!([1.0, [0.0, 0.0]]), "with 2 outputs"),
            ("/oblivious_trees", json!(null), "trees that are not symmetric"),
            ("/oblivious_trees/0/leaf_values", json!([1.0]), "1 values for 2 splits"),
            ("/oblivious_trees/0/splits/0/float_feature_index", json!(9), "no column 9"),
            (
                "/oblivious_trees/0/splits/0",
                json!({"split_type": "OnlineCtr", "border": 7.0, "split_index": 2}),
                "the type `OnlineCtr`",
            ),
            ("/oblivious_trees/0/splits/0/split_type", json!("OneHotFeature"), "`OneHotFeature`"),
            ("/oblivious_trees/0/splits/1/border", json!(null), "split 1 has no `border`"),
            (
                "/features_info/float_features/0/flat_feature_index",
                json!(7),
                "`flat_feature_index` is 7, expected each number from 0 to 1 once",
            ),
            ("/features_info/float_features/0/flat_feature_index", json!(0), "from 0 to 1 once"),
            ("/features_info/float_features/0/feature_name", json!("x1"), "the name `x1`"),
            (
                "/features_info",
                json!({"float_features": [], "categorical_features": [{}]}),
                "1 categorical features of CatBoost",
            ),
        ],
    );
}

fn scorecard() -> Value {
    json!({
        "scorecard": 1, "factor": 20.0, "offset": 600.0, "intercept": 610.0,
        "classes": ["bad", "good"],
        "variables": [
            {"name": "age", "missing": 1.0, "bins": [
                {"values": [-9, 99], "points": 3.0}, {"below": 25.1, "points": -8.0},
                {"below": 40, "points": 5.0}, {"points": 35.0}]},
            {"name": "housing", "missing": -2.0, "bins": [
                {"levels": ["own"], "points": 30.0},
                {"levels": ["rent", "free"], "points": -10.0}]}]})
}

#[test]
fn scorecards_add_points() {
    let model = read_json(&scorecard()).unwrap();
    assert_eq!(model.labels, Some(vec!["bad".to_owned(), "good".to_owned()]));
    let rows: [&[f32]; 8] = [
        &[-9.0, 0.0],
        &[-10.0, 0.0],
        &[25.0, 1.0],
        &[25.1, 1.0],
        &[25.1_f32.next_up(), 2.0],
        &[40.0, 2.0],
        &[99.0, 2.0],
        &[f32::NAN, f32::NAN],
    ];
    // The `f32` nearest to 25.1 is larger than it.
    let points = [33.0, 22.0, -18.0, -5.0, -5.0, 25.0, -7.0, -1.0];
    let expected = points.map(|points| sigmoid((10.0 + points) / 20.0));
    for (found, expected) in score(&model, &rows).into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-7, "{found} {expected}");
    }
    let bins = |value: Value| ("/variables/0/bins", value);
    let levels = |value: Value| ("/variables/1/bins", value);
    let changes = [
        (("/scorecard", json!(2)), "`scorecard` is 2, expected the version 1"),
        (("/factor", json!(0.0)), "`factor` is 0"),
        (("/variables", json!([])), "there are no variables"),
        (("/variables/1/name", json!("age")), "variable `age` is listed twice"),
        (("/variables/0", json!({"name": "a", "bins": []})), "missing field `missing`"),
        (("/classes", json!(["bad"])), "classes"),
        (bins(json!([{"below": 3, "points": 1}])), "no bin without `below`"),
        (bins(json!([{"points": 1}, {"below": 3, "points": 1}])), "which is the last"),
        (bins(json!([{"below": 3, "points": 1}, {"below": 3, "points": 1}])), "more than 3"),
        (
            bins(json!([{"values": [0.1], "points": 1}, {"points": 1}])),
            "0.1 is not a number of 32 bits",
        ),
        (bins(json!([{"values": [], "points": 1}, {"points": 1}])), "bin 0: no values"),
        (
            bins(
                json!([{"values": [1, 2], "points": 1}, {"values": [2], "points": 3}, {"points": 1}]),
            ),
            "bin 1: the value 2 is listed twice",
        ),
        (
            bins(json!([{"values": [0.0, -0.0], "points": 1}, {"points": 1}])),
            "the value -0 is listed twice",
        ),
        // Two ends that are one number of 32 bits would leave a bin that no number is in.
        (
            bins(
                json!([{"below": 5.000_000_01, "points": 1}, {"below": 5.000_000_02, "points": 2}, {"points": 1}]),
            ),
            "also as a number of 32 bits",
        ),
        (
            bins(json!([{"below": 1e300, "points": 1}, {"points": 1}])),
            "`below` is 1e300, expected a number of 32 bits",
        ),
        (("/factor", json!(1e-320)), "`factor` is 1e-320, expected"),
        (bins(json!([{"points": 1, "weight": 2}])), "unknown field `weight`"),
        (levels(json!([{"levels": ["a"], "points": 1}, {"points": 1}])), "expected `levels`"),
        (levels(json!([{"levels": [], "points": 1}])), "no levels"),
        (levels(json!([{"levels": ["a", "a"], "points": 1}])), "`a` is listed twice"),
    ];
    let changes: Vec<_> =
        changes.iter().map(|((place, value), words)| (*place, value.clone(), *words)).collect();
    refused(&scorecard(), &changes);
}

#[test]
fn damaged_files_are_errors() {
    let documents = [xgboost(), catboost(), scorecard()].map(|document| document.to_string());
    for document in documents {
        for end in (1..document.len()).step_by(11) {
            assert!(read(&document.as_bytes()[..end]).is_err(), "{end} of {document}");
        }
    }
}
