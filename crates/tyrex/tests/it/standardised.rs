//! Models on raw columns, rewritten for columns on a common scale: the same function of a row.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use proptest::prelude::*;
use tyrex::certificate::{Terms, WrittenCertificate};
use tyrex::change::{Ensemble, ModelChange};
use tyrex::data::encode::{Affine, Coding};
use tyrex::data::{Schema, Table};
use tyrex::explain::{Ask, Explainer, Reference, UnlabelledRows};
use tyrex::model::files::{Core, ImportOptions, InputBlock, Inputs, ModelFile};
use tyrex::model::trees::{Comparison, TreeNode};
use tyrex::model::{Activation, Dense, Mlp, Model as _, Output, TrainParams};
use tyrex::{Overwrite, Points, Seed};

use crate::support::{branch, leaf};

/// The scores of a model on raw numbers, and of the same model rewritten.
fn both(core: &Core, affines: &[Affine], rows: &[Vec<f64>]) -> (Vec<f32>, Vec<f32>) {
    let dim = affines.len();
    let raw = rows.iter().flatten().map(|&v| v as f32).collect();
    let scaled = rows.iter().flatten().zip(affines.iter().cycle()).map(|(&v, a)| a.coordinate(v));
    let score = |core: &Core, values: Vec<f32>| {
        let points = Points::from_rows(dim, values).unwrap();
        core.model().score(&points)
    };
    let rewritten = core.clone().standardised(affines).unwrap();
    (score(core, raw), score(&rewritten, scaled.collect()))
}

// -------------------------------------------------------------------------------- networks

fn affines() -> impl Strategy<Value = Affine> {
    let spread = prop_oneof![Just(1.0), 0.01_f64..1.0, 1.0_f64..1e6];
    (-40.0_f64..40.0, spread)
        .prop_map(|(place, spread)| Affine { offset: place * spread, scale: 1.0 / spread })
}

/// A network of three inputs whose first weights suit the scales, and rows in their range.
fn networks() -> impl Strategy<Value = (Core, Vec<Affine>, Vec<Vec<f64>>)> {
    let weights = |count| prop::collection::vec(-2.0_f32..2.0, count);
    let rows = prop::collection::vec(prop::collection::vec(-1.0_f64..2.0, 3), 1..20);
    let activation = prop_oneof![Just(Activation::Relu), Just(Activation::Tanh)];
    (prop::collection::vec(affines(), 3), weights(12), weights(4), weights(4), activation, rows)
        .prop_map(|(affines, first, bias, last, activation, rows)| {
            let mut first = first;
            let mut bias = bias;
            for (row, affine) in first.chunks_exact_mut(4).zip(&affines) {
                for (weight, bias) in row.iter_mut().zip(&mut bias) {
                    *weight = (f64::from(*weight) * affine.scale) as f32;
                    *bias -= (f64::from(*weight) * affine.offset) as f32;
                }
            }
            let hidden = Dense { weights: first, bias, activation };
            let head = Dense { weights: last, bias: vec![0.1], activation: Activation::Identity };
            let network =
                Mlp::new(3, &[hidden, head], Output::Sigmoid { favourable: true }).unwrap();
            let rows = rows
                .into_iter()
                .map(|row| row.iter().zip(&affines).map(|(&z, a)| a.invert(z)).collect())
                .collect();
            (Core::Mlp(network), affines, rows)
        })
}

proptest! {
    #[test]
    fn a_network_scores_rows_as_before((core, affines, rows) in networks()) {
        let (before, after) = both(&core, &affines, &rows);
        for (before, after) in before.iter().zip(&after) {
            prop_assert!((before - after).abs() <= 1e-5, "{before} {after}");
        }
    }
}

// ----------------------------------------------------------------------------------- trees

/// The numbers a column holds: multiples of a step, as people write them.
#[derive(Debug, Clone, Copy)]
struct Grid {
    first: i64,
    last: i64,
    /// Steps in one unit: 1 for whole numbers, 100 for cents.
    parts: f64,
}

impl Grid {
    fn number(self, place: prop::sample::Index) -> f64 {
        let count = usize::try_from(self.last - self.first).unwrap() + 1;
        (self.first + place.index(count) as i64) as f64 / self.parts
    }

    /// As min-max scaling would have it.
    fn affine(self) -> Affine {
        let width = (self.last - self.first) as f64 / self.parts;
        Affine { offset: self.first as f64 / self.parts, scale: 1.0 / width }
    }
}

fn grids() -> impl Strategy<Value = Grid> {
    let width = prop_oneof![2_i64..12, 12_i64..1000, 1000_i64..100_000];
    let parts = prop_oneof![Just(1.0), Just(10.0), Just(100.0)];
    (-2000_i64..2000, width, parts).prop_map(|(first, width, parts)| Grid {
        first,
        last: first + width,
        parts,
    })
}

const COMPARISONS: [Comparison; 4] =
    [Comparison::LessOrEqual, Comparison::Less, Comparison::GreaterOrEqual, Comparison::Greater];

/// A question about one column, with a threshold on its grid or between two of its numbers.
type Question = (usize, usize, prop::sample::Index, bool);

fn tree(questions: &[Question], grids: &[Grid]) -> Vec<TreeNode> {
    let mut nodes = Vec::new();
    for (depth, &(column, comparison, place, between)) in questions.iter().enumerate() {
        let grid = grids[column];
        let middle = if between { 0.5 / grid.parts } else { 0.0 };
        let threshold = (grid.number(place) + middle) as f32;
        nodes.push(branch(column, COMPARISONS[comparison], threshold, 2 * depth + 1));
        // The leaf of "yes" says which question it was; "no" asks the next one.
        nodes.push(leaf((depth + 1) as f32));
    }
    nodes.push(leaf(0.0));
    nodes
}

fn forest(trees: &[Vec<TreeNode>], dim: usize) -> Core {
    Core::Trees(crate::support::forest(dim, trees))
}

proptest! {
    #[test]
    fn trees_score_rows_on_their_thresholds_as_before(
        grids in prop::collection::vec(grids(), 2),
        questions in prop::collection::vec(
            prop::collection::vec(
                (0_usize..2, 0_usize..4, any::<prop::sample::Index>(), any::<bool>()),
                1..6,
            ),
            1..6,
        ),
        places in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 1..20),
    ) {
        let trees: Vec<_> = questions.iter().map(|each| tree(each, &grids)).collect();
        let mut rows: Vec<Vec<f64>> = places
            .iter()
            .map(|row| row.iter().zip(&grids).map(|(&place, grid)| grid.number(place)).collect())
            .collect();
        // And rows that stand on the thresholds, in one column after the other.
        for &(column, _, place, _) in questions.iter().flatten() {
            let mut row = rows[0].clone();
            row[column] = grids[column].number(place);
            rows.push(row);
        }
        let affines: Vec<Affine> = grids.iter().map(|grid| grid.affine()).collect();
        let (before, after) = both(&forest(&trees, 2), &affines, &rows);
        prop_assert_eq!(before, after);
    }

    #[test]
    fn large_whole_numbers_are_told_apart_as_before(
        threshold in 8_388_608_i64..12_000_000,
        largest in 12_000_001_i64..16_000_000,
        comparison in 0_usize..4,
    ) {
        let root = branch(0, COMPARISONS[comparison], threshold as f32, 1);
        let core = forest(&[vec![root, leaf(1.0), leaf(0.0)]], 1);
        let affine = Affine { offset: 0.0, scale: 1.0 / largest as f64 };
        let rows: Vec<Vec<f64>> = (-2..=2).map(|by| vec![(threshold + by) as f64]).collect();
        let (before, after) = both(&core, &[affine], &rows);
        prop_assert_eq!(before, after);
    }

    #[test]
    fn trees_score_any_number_off_their_thresholds_as_before(
        affine in affines(),
        (threshold, number) in (-3.0_f64..3.0, -3.0_f64..3.0),
        comparison in 0_usize..4,
    ) {
        let (threshold, number) = (affine.invert(threshold) as f32, affine.invert(number));
        // A coordinate of size 3 is rounded by 2^-23 at most, and the number itself by 2^-24 of it.
        let rounding = 2.4e-7 / affine.scale + 1.2e-7 * number.abs();
        prop_assume!((number - f64::from(threshold)).abs() > rounding);
        let root = branch(0, COMPARISONS[comparison], threshold, 1);
        let core = forest(&[vec![root, leaf(1.0), leaf(0.0)]], 1);
        let (before, after) = both(&core, &[affine], &[vec![number]]);
        prop_assert_eq!(before, after);
    }
}

#[test]
fn codes_are_equal_as_before_and_unreachable_thresholds_stay() {
    let affine = Affine { offset: 3.0, scale: 1.0 / 7.0 };
    let rows: Vec<Vec<f64>> = (-10..20).map(|code| vec![f64::from(code)]).collect();
    for comparison in [Comparison::Equal, Comparison::NotEqual] {
        for code in -5_i8..15 {
            let tree = vec![branch(0, comparison, f32::from(code), 1), leaf(1.0), leaf(0.0)];
            let (before, after) = both(&forest(&[tree], 1), &[affine], &rows);
            assert_eq!(before, after);
            assert_eq!(before.iter().filter(|&&score| score == before[0]).count(), 29);
        }
    }
    for threshold in [f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0] {
        for comparison in COMPARISONS {
            let tree = vec![branch(0, comparison, threshold, 1), leaf(1.0), leaf(0.0)];
            let (before, after) = both(&forest(&[tree], 1), &[affine], &rows);
            assert_eq!(before, after, "{comparison:?} {threshold}");
        }
    }
}

#[test]
fn scales_that_lose_something_are_refused() {
    let core = forest(&[vec![leaf(0.5)]], 1);
    for (affines, expected) in [
        (vec![], "scales, one for each coordinate of the model: expected 1, got 0"),
        (
            vec![Affine { offset: 1.0, scale: 0.0 }],
            "model: coordinate 0 is to be scaled by 0 after subtracting 1, expected a scale above 0 \
             and finite numbers",
        ),
        (
            vec![Affine { offset: f64::NAN, scale: 1.0 }],
            "model: coordinate 0 is to be scaled by 1 after subtracting NaN, expected a scale above \
             0 and finite numbers",
        ),
    ] {
        assert_eq!(core.clone().standardised(&affines).unwrap_err().to_string(), expected);
    }
}

// ------------------------------------------------------------------------------- explainers

const SCHEMA: &str = include_str!("../schemas/standardised.toml");

/// Ten rows without labels. The model scales `score` itself, or `score` is not scaled.
fn rows(schema: &str) -> UnlabelledRows {
    let mut csv = "income,rate,owner,fee,score\n".to_owned();
    for row in 0..10 {
        let (income, rate) = (20_000 + 3_000 * row, f64::from(row * 7 % 10) / 10.0);
        let score = f64::from(row) * 0.3 - 1.0;
        writeln!(csv, "{income},{rate},{},7,{score}", row % 2).unwrap();
    }
    let table = Table::from_csv(Path::new("rows.csv"), csv.as_bytes()).unwrap();
    UnlabelledRows::read(&Schema::from_toml(schema).unwrap(), table).unwrap()
}

/// The model on the scale of its file, and on the scale that is fitted on the rows.
fn plain_and_common(schema: &str, model: &ModelFile) -> [Explainer; 2] {
    [rows(schema).without_scale(), rows(schema)]
        .map(|rows| Explainer::with_model(Reference::Unlabelled(rows), model.clone()).unwrap())
}

fn model(core: Core, score: (f64, f64)) -> ModelFile {
    let step = |column, (scale, shift)| InputBlock::Number { column, missing: None, scale, shift };
    let plain = (1.0, 0.0);
    ModelFile {
        inputs: Inputs::Matrix { columns: 5 },
        preprocessing: vec![
            step(0, plain),
            step(1, plain),
            step(2, plain),
            step(3, plain),
            step(4, score),
        ],
        core,
        output: "p".to_owned(),
        classes: 2,
        favourable: 1,
        labels: None,
        metadata: BTreeMap::new(),
    }
}

fn network() -> Core {
    let weights = vec![1e-4, -2.0, 0.5, 0.1, 0.7];
    Core::Mlp(Mlp::linear(weights, -3.5).unwrap())
}

/// Yes from an income of 32,000 on, if the rate is below 0.5.
fn trees() -> Core {
    let tree = vec![
        branch(0, Comparison::GreaterOrEqual, 32_000.0, 1),
        branch(1, Comparison::Less, 0.5, 3),
        leaf(0.1),
        leaf(0.9),
        leaf(0.2),
    ];
    forest(&[tree], 5)
}

#[test]
fn an_explainer_scales_what_the_model_leaves_as_it_is() {
    for scaling in ["min-max", "z-score", "matrix-min-max", "none"] {
        let schema = format!("{SCHEMA}[scaling]\nmethod = \"{scaling}\"\n");
        for core in [network(), trees()] {
            let [plain, common] = plain_and_common(&schema, &model(core, (1.0, 0.0)));
            for (before, after) in plain.scores().iter().zip(common.scores()) {
                assert!((before - after).abs() <= 1e-6, "{scaling}: {before} {after}");
            }
            for (row, point) in common.reference().rows().iter().zip(common.points().rows()) {
                // `score` has no step, so it comes back with the digits of a 32-bit float.
                assert_eq!(common.encoder().decode(point).values()[..4], row.values()[..4]);
            }
            for point in common.points().rows() {
                match scaling {
                    "min-max" => assert!((0.0..=1.0).contains(&point[0])),
                    "z-score" => assert!(point[0].abs() < 2.0),
                    "matrix-min-max" => assert!((0.4..=1.0).contains(&point[0])),
                    _ => assert!(point[0] >= 20_000.0),
                }
                assert!(point[2] == 0.0 || point[2] == 1.0, "a flag stays");
                match scaling {
                    "min-max" | "z-score" => assert_eq!(point[3], 0.0, "a constant is shifted"),
                    "none" => assert_eq!(point[3], 7.0),
                    _ => {}
                }
            }
            let score = |explainer: &Explainer| -> Vec<f32> {
                explainer.points().rows().map(|point| point[4]).collect()
            };
            assert_eq!(score(&plain), score(&common), "scaling `none` of a feature counts");
            // The fingerprint is that of the file; the scale can be taken back, bit by bit.
            assert_eq!(plain.fingerprint(), common.fingerprint());
            assert_eq!(plain.scale(), None);
            assert_eq!(common.scale().is_none(), scaling == "none");
            let back = common.on_scale(None).unwrap();
            assert_eq!((back.points(), back.scores()), (plain.points(), plain.scores()));
            let again = plain.on_scale(common.scale()).unwrap();
            assert_eq!((again.points(), again.scores()), (common.points(), common.scores()));
        }
    }
}

#[test]
fn what_a_network_scales_itself_is_brought_to_the_common_scale_and_trees_keep_theirs() {
    let free = SCHEMA.replace("scaling = \"none\"\n", "");
    for (core, is_network) in [(network(), true), (trees(), false)] {
        let model = model(core, (2.0, -1.0));
        let [plain, common] = plain_and_common(&free, &model);
        let codings = |explainer: &Explainer| -> Vec<Coding> {
            explainer.encoder().blocks().iter().map(|block| block.coding.clone()).collect()
        };
        assert_eq!(codings(&common)[4] != codings(&plain)[4], is_network);
        assert_ne!(codings(&common)[0], codings(&plain)[0]);
        assert_eq!(codings(&common)[2], codings(&plain)[2], "a flag");
        for (before, after) in plain.scores().iter().zip(common.scores()) {
            assert!((before - after).abs() <= 1e-6, "{before} {after}");
        }
        if is_network {
            for point in common.points().rows() {
                assert!((0.0..=1.0).contains(&point[4]), "{}", point[4]);
            }
        }
    }
}

#[test]
fn without_training_rows_numbers_keep_their_scale_and_the_answer_says_so() {
    let model = model(network(), (1.0, 0.0));
    let warnings = |explainer: &Explainer| {
        let request = Ask::default().for_model(explainer, None).request().unwrap();
        let all = explainer.warnings(&request, None);
        all.into_iter().filter(|own| own.contains("scale of the model file")).collect::<Vec<_>>()
    };
    let schema = Schema::from_toml(SCHEMA).unwrap();
    let none = Reference::none(&schema).unwrap();
    let alone = Explainer::with_model(none, model.clone()).unwrap();
    assert_eq!(alone.scale(), None);
    let [warning] = <[String; 1]>::try_from(warnings(&alone)).unwrap();
    assert!(warning.contains("does not scale `income`, `rate`, `fee`;"), "{warning}");
    // A split that names no row of the file leaves none that trained the model.
    let split = "[split]\ncolumn = \"part\"\ntrain = [\"train\"]\ntest = [\"test\"]\n";
    let apart = Reference::Unlabelled(rows(&format!("{SCHEMA}{split}")));
    let apart = Explainer::with_model(apart, model.clone()).unwrap();
    assert_eq!((apart.scale(), warnings(&apart).len()), (None, 1));
    let common = Explainer::with_model(Reference::Unlabelled(rows(SCHEMA)), model).unwrap();
    assert_eq!(warnings(&common), Vec::<String>::new());
}

#[test]
fn a_certificate_names_its_scale_and_is_verified_without_the_reference() {
    let model = model(network(), (1.0, 0.0));
    let [plain, common] = plain_and_common(SCHEMA, &model);
    let schema = Schema::from_toml(SCHEMA).unwrap();
    let verifier = Explainer::with_model(Reference::none(&schema).unwrap(), model).unwrap();
    let go_on = || ControlFlow::Continue(());
    for explainer in [&plain, &common] {
        let terms = Terms::default();
        let made = explainer.certify(explainer.points(), None, &terms, Seed(4), go_on).unwrap();
        assert_eq!(made[0].scale(), explainer.scale());
        let text = serde_json::to_string(&made).unwrap();
        // Certificates of earlier versions have no scale.
        assert_eq!(text.contains("\"scale\""), explainer.scale().is_some());
        let written = WrittenCertificate::all_in(&text).unwrap();
        for by in [&verifier, &plain, &common] {
            let verified = by.verify(&written, None, go_on).unwrap();
            assert!(verified.iter().all(|each| each.confirmed), "{:?}", verified[0]);
        }
    }
    // Another scale is another statement.
    let made = common.certify(common.points(), None, &Terms::default(), Seed(4), go_on).unwrap();
    let text =
        serde_json::to_string(&made).unwrap().replace("\"offset\":20000.0", "\"offset\":2.0");
    let verified = verifier.verify(&WrittenCertificate::all_in(&text).unwrap(), None, go_on);
    assert!(verified.unwrap().iter().all(|each| !each.confirmed));
}

#[test]
fn retrained_models_of_another_reference_or_version_are_moved_to_the_scale_in_use() {
    let [plain, common] = plain_and_common(SCHEMA, &model(network(), (1.0, 0.0)));
    let member = Mlp::linear(vec![2e-4, -1.0, 0.25, 0.2, 0.5], -5.0).unwrap();
    let change = ModelChange::default();
    let base = plain.model().network().unwrap().clone();
    let params = TrainParams { hidden: Vec::new(), ..TrainParams::default() };
    let old = Ensemble::of_networks(base, vec![member.clone()], change, Seed(0), params).unwrap();
    let folder = tempfile::tempdir().unwrap();
    plain.retraining().write(&old, folder.path(), Overwrite::Force).unwrap();
    let read = |explainer: &Explainer| {
        explainer.retraining().read(folder.path(), &ImportOptions::default()).unwrap()
    };
    assert_eq!(*read(&plain).members()[0], *old.members()[0]);
    let moved = read(&common);
    assert!(common.retraining().check(&moved).is_ok() && common.retraining().has_file_scale(&old));
    let before = member.score(plain.points());
    for (before, after) in before.iter().zip(moved.members()[0].score(common.points())) {
        assert!((before - after).abs() <= 1e-6, "{before} {after}");
    }
    let rescaled = common.retraining().rescaled(member).unwrap();
    assert_eq!(Some(&rescaled), moved.members()[0].network());
    // And back: a folder on the common scale, beside a model without a reference.
    let folder = tempfile::tempdir().unwrap();
    common.retraining().write(&moved, folder.path(), Overwrite::Force).unwrap();
    let back = plain.retraining().read(folder.path(), &ImportOptions::default()).unwrap();
    for (before, after) in before.iter().zip(back.members()[0].score(plain.points())) {
        assert!((before - after).abs() <= 1e-5, "{before} {after}");
    }
}
