use super::*;
use crate::data::Value;
use crate::data::encode::{Affine, Block};

const SCHEMA: &str = r#"
format_version = 1
[label]
column = "y"
favourable = 1
[[feature]]
name = "age"
kind = "integer"
range = [18, 99]
action = "only-up"
[[feature]]
name = "income"
kind = "numeric"
range = [0, inf]
[[feature]]
name = "instalment"
kind = "numeric"
range = [0, 1000]
step = 2.5
[[feature]]
name = "debt"
kind = "integer"
range = [0, 50]
action = { within = [0, 10] }
special = { values = [-9], as = "level" }
missing = "level"
[[feature]]
name = "grade"
kind = "ordinal"
levels = ["low", "middle", "high"]
encoding = "one-hot"
action = "only-up"
[[feature]]
name = "home"
kind = "categorical"
levels = ["rent", "own", "free"]
action = { levels = ["rent", "own"] }
missing = "level"
[[rule]]
description = "the instalments of a year fit the income"
terms = { instalment = 12, income = -0.3 }
at_most = 0
"#;

fn values(
    age: f64,
    income: f64,
    instalment: f64,
    debt: Value,
    grade: &str,
    home: Value,
) -> Vec<Value> {
    vec![age.into(), income.into(), instalment.into(), debt, grade.into(), home]
}

/// A row that satisfies all rules.
fn ordinary() -> Vec<Value> {
    values(40.0, 10_000.0, 100.0, 5.0.into(), "middle", "rent".into())
}

fn schema() -> Schema {
    Schema::from_toml(SCHEMA).unwrap()
}

fn encoder(schema: &Schema) -> Encoder {
    let row = |values| Row::new(schema, values).unwrap();
    let rows = [
        row(values(20.0, 0.0, 0.0, 0.0.into(), "low", "own".into())),
        row(values(60.0, 50_000.0, 1000.0, 50.0.into(), "high", "free".into())),
    ];
    Encoder::fit(schema, &rows.iter().collect::<Vec<_>>()).unwrap()
}

fn actions() -> Actions {
    let schema = schema();
    Actions::new(&schema, &encoder(&schema)).unwrap()
}

fn row(values: Vec<Value>) -> Row {
    Row::new(&schema(), values).unwrap()
}

fn set(factual: Vec<Value>) -> FeasibleSet {
    actions().for_factual(&row(factual)).unwrap()
}

/// The violations of a row, in words.
fn moved(set: &FeasibleSet, from: &Row) -> Vec<Row> {
    let moves = set.moves(from);
    (0..moves.points().count()).map(|index| moves.row(index)).collect()
}

fn broken(factual: Vec<Value>, found: Vec<Value>) -> Vec<String> {
    let found = Row::from_checked(found);
    set(factual).violations(&found).iter().map(ToString::to_string).collect()
}

/// The factual with one value changed.
fn with(position: usize, value: impl Into<Value>) -> Vec<Value> {
    let mut values = ordinary();
    values[position] = value.into();
    values
}

#[test]
fn a_row_is_told_what_it_breaks() {
    let cases = [
        (with(0, 39.0), "feature `age`: found `39`, allowed is a whole number from 40 to 99"),
        (with(0, 40.5), "feature `age`: found `40.5`, allowed is a whole number from 40 to 99"),
        (with(1, -1.0), "feature `income`: found `-1`, allowed is from 0"),
        (
            with(2, 101.0),
            "feature `instalment`: found `101`, allowed is a multiple of 2.5 from 0 to 1000",
        ),
        (
            with(2, 252.5),
            "rule 0 (the instalments of a year fit the income): found 30, allowed is a sum of 0 \
             or less",
        ),
        (with(3, 11.0), "feature `debt`: found `11`, allowed is a whole number from 0 to 10"),
        (with(3, -9.0), "feature `debt`: found `-9`, allowed is a whole number from 0 to 10"),
        (
            with(3, Value::Missing),
            "feature `debt`: found a missing value, allowed is a whole number from 0 to 10",
        ),
        (with(4, "low"), "feature `grade`: found `low`, allowed is one of `middle`, `high`"),
        (with(5, "free"), "feature `home`: found `free`, allowed is one of `rent`, `own`"),
    ];
    for (found, expected) in cases {
        let mut seen = broken(ordinary(), found);
        // A negative income breaks the rule about instalments as well.
        seen.truncate(1);
        assert_eq!(seen, [expected]);
    }
    assert_eq!(broken(ordinary(), ordinary()), [""; 0]);
    let short = Row::from_checked(ordinary()[..5].to_vec());
    let seen = set(ordinary()).violations(&short);
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].found, "nothing");
}

#[test]
fn missing_and_special_values_stay_as_they_are() {
    for code in [Value::Number(-9.0), Value::Missing] {
        let factual = with(3, code.clone());
        let set = set(factual.clone());
        let columns = 3..6; // debt, debt=-9, debt is missing
        assert_eq!(set.lower()[columns.clone()], set.upper()[columns]);
        assert_eq!(broken(factual.clone(), factual.clone()), [""; 0]);
        let mut other = factual.clone();
        other[3] = 5.0.into();
        assert_eq!(broken(factual.clone(), other).len(), 1);
        assert!(moved(&set, &row(factual)).iter().all(|row| row.values()[3] == code));
    }
    // No other row may become missing: the columns beside the number stay 0.
    let set = set(ordinary());
    assert_eq!((&set.lower()[4..6], &set.upper()[4..6]), (&[0.0; 2][..], &[0.0; 2][..]));
    let missing_home = set.groups().last().unwrap();
    assert_eq!(missing_home.allowed, [true, true, false, false]);
    assert_eq!(missing_home.current, 0);
}

#[test]
fn a_value_that_is_not_allowed_may_stay_or_move_inside() {
    let factual = with(3, 20.0);
    assert_eq!(broken(factual.clone(), factual.clone()), [""; 0]);
    assert_eq!(broken(factual.clone(), with(3, 10.0)), [""; 0]);
    assert_eq!(
        broken(factual.clone(), with(3, 15.0)),
        ["feature `debt`: found `15`, allowed is a whole number from 0 to 10, or `20` as it is"]
    );
    // Between the two, the nearer one is taken.
    let set = set(factual.clone());
    let encoder = encoder(&schema());
    for (asked, settled) in [(14.0, 10.0), (16.0, 20.0)] {
        let point = encoder.encode(&row(with(3, asked))).unwrap();
        let (row, _) = set.settle(point.as_slice()).unwrap();
        assert_eq!(row.values()[3], Value::Number(settled));
    }
    let factual = with(5, "free");
    assert_eq!(broken(factual.clone(), factual.clone()), [""; 0]);
    assert_eq!(broken(factual, with(5, "own")), [""; 0]);
}

#[test]
fn a_rule_that_the_factual_breaks_must_not_get_worse() {
    // 12 * 300 is 600 more than 0.3 * 10000.
    let factual = with(2, 300.0);
    assert_eq!(broken(factual.clone(), factual.clone()), [""; 0]);
    assert_eq!(broken(factual.clone(), with(2, 297.5)), [""; 0]);
    assert_eq!(broken(factual.clone(), with(2, 302.5)).len(), 1);
    let mut other = factual.clone();
    (other[1], other[2]) = (10_100.0.into(), 302.5.into());
    assert_eq!(broken(factual, other), [""; 0]);
}

#[test]
fn a_rule_about_a_code_binds_nobody() {
    let text = SCHEMA.replace("terms = { instalment = 12,", "terms = { debt = 1, instalment = 12,");
    let schema = Schema::from_toml(&text).unwrap();
    let actions = Actions::new(&schema, &encoder(&schema)).unwrap();
    let violations = |debt: f64| {
        let mut factual = with(3, debt);
        let set = actions.for_factual(&row(factual.clone())).unwrap();
        factual[2] = 1000.0.into();
        set.violations(&row(factual)).len()
    };
    assert_eq!((violations(5.0), violations(-9.0)), (1, 0));
}

#[test]
fn rounding_never_breaks_a_rule() {
    let schema = schema();
    let encoder = encoder(&schema);
    let set = set(ordinary());
    // 12 * 251 is above 0.3 * 10020 = 3006; the nearest multiple 250 of 2.5 is not.
    let point = encoder.encode(&row(with(2, 251.0))).unwrap();
    assert_eq!(set.settle(point.as_slice()).unwrap().0, row(with(2, 250.0)));
    // 12 * 252.5 = 3030 = 0.3 * 10100: half a step more would need the next multiple.
    let mut wanted = with(2, 253.0);
    wanted[1] = 10_110.0.into();
    let point = encoder.encode(&row(wanted)).unwrap();
    let (settled, own) = set.settle(point.as_slice()).unwrap();
    assert_eq!(settled.values()[2], Value::Number(252.5));
    assert_eq!(set.violations(&settled), []);
    assert_eq!(encoder.encode(&settled).unwrap().into_vec(), own);
    // Asked for far more than the income allows, income and instalment meet between.
    let point = encoder.encode(&row(with(2, 1000.0))).unwrap();
    let (settled, _) = set.settle(point.as_slice()).unwrap();
    assert_eq!(set.violations(&settled), []);
    let numbers: Vec<f64> = settled.values()[1..3].iter().filter_map(Value::number).collect();
    assert!(numbers[0] > 10_000.0 && numbers[1] > 250.0, "{numbers:?}");
}

/// Whole numbers under `a = 5 b`: neither floor nor ceiling of a point need obey it.
#[test]
fn an_equality_between_whole_numbers_is_met() {
    let text = r#"
format_version = 1
label = { column = "y", favourable = 1 }
feature = [
    { name = "a", kind = "integer", range = [0, 100] },
    { name = "b", kind = "integer", range = [0, 20] },
]
rule = [
    { terms = { a = 1, b = -5 }, at_least = 0, at_most = 0 },
]
"#;
    let schema = Schema::from_toml(text).unwrap();
    let row = |a: f64, b: f64| Row::new(&schema, vec![a.into(), b.into()]).unwrap();
    let (first, last) = (row(0.0, 0.0), row(100.0, 20.0));
    let encoder = Encoder::fit(&schema, &[&first, &last]).unwrap();
    let set = Actions::new(&schema, &encoder).unwrap().for_factual(&first).unwrap();
    assert_eq!(set.settle(&[0.122, 0.122]).unwrap().0, row(10.0, 2.0));
    assert_eq!(set.settle(&[0.99, 0.95]).unwrap().0, row(95.0, 19.0));
    assert_eq!(set.settle(&[7.0, 7.0]).unwrap().0, last);
    // A change to one is followed by the other; the least that can follow comes first.
    let moves = moved(&set, &row(50.0, 10.0));
    assert!(moves.contains(&row(55.0, 11.0)) && moves.contains(&row(0.0, 0.0)), "{moves:?}");
    assert!(moves.iter().all(|row| set.violations(row).is_empty()));
    assert_eq!(
        set.violations(&row(6.0, 1.0))[0].to_string(),
        "rule 0 (0 <= a - 5 * b <= 0): found 1, allowed is a sum from 0 to 0"
    );
}

/// A model with scaled one-hot columns in an order of its own.
#[test]
fn a_scaled_group_projects_onto_its_own_simplex() {
    let schema = schema();
    let mut blocks = encoder(&schema).blocks().to_vec();
    let levels = ["high", "low", "middle"].map(Value::from).to_vec();
    let affines = vec![
        Affine { offset: 0.5, scale: 2.0 },
        Affine { offset: 0.25, scale: 4.0 },
        Affine { offset: 0.1, scale: 1.0 },
    ];
    blocks[4] = Block {
        feature: "grade".to_owned(),
        coding: Coding::OneHot { levels, affines },
        beside: Vec::new(),
        passes: false,
    };
    let names = schema.features.iter().map(|feature| feature.name.clone()).collect();
    let encoder = Encoder::from_blocks(names, blocks).unwrap();
    let set = Actions::new(&schema, &encoder).unwrap().for_factual(&row(ordinary())).unwrap();
    let group = &set.groups()[0];
    assert_eq!((&group.off[..], &group.on[..]), (&[-1.0, -1.0, -0.1][..], &[1.0, 3.0, 0.9][..]));
    // Only up from the middle, by the schema's order of levels and not the model's.
    assert_eq!((&group.allowed[..], group.current), (&[true, false, true][..], 2));
    // The shares are 0.5 and 1 where they should sum to 1: 0.5 too much, divided in the
    // ratio 1/4 to 1 of the inverse squared widths.
    let mut point = encoder.encode(&row(ordinary())).unwrap().into_vec();
    let columns = group.columns.clone();
    point[columns.clone()].copy_from_slice(&[0.0, 2.0, 0.9]);
    set.project(&mut point);
    let expected = [0.5 - 0.1, 0.0, 1.0 - 0.4];
    for ((x, share), (off, on)) in
        point[columns].iter().zip(expected).zip(group.off.iter().zip(&group.on))
    {
        assert!((x - (off + share * (on - off))).abs() < 1e-6, "{point:?}");
    }
}

#[test]
fn requests_override_the_schema() {
    let actions = actions();
    let only_income = Overrides { vary: Some(vec!["income".to_owned()]), ..Overrides::default() };
    let set = actions.overridden(&only_income).unwrap().for_factual(&row(ordinary())).unwrap();
    let changeable = (0..set.dim()).filter(|&column| set.lower()[column] < set.upper()[column]);
    assert_eq!(changeable.collect::<Vec<_>>(), [1]);
    assert!(set.groups().is_empty());

    let json = r#"{"actions": {"age": "free", "debt": {"within": [0, 50]},
                   "home": {"levels": ["free"]}}}"#;
    let overrides: Overrides = serde_json::from_str(json).unwrap();
    let set = actions.overridden(&overrides).unwrap().for_factual(&row(ordinary())).unwrap();
    let younger = values(18.0, 10_000.0, 100.0, 50.0.into(), "middle", "free".into());
    assert_eq!(set.violations(&row(younger)), []);
    assert_eq!(set.violations(&row(with(5, "own"))).len(), 1);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let vary = |name: &str| Overrides { vary: Some(vec![name.to_owned()]), ..Overrides::default() };
    let action = |name: &str, action: Action| Overrides {
        actions: BTreeMap::from([(name.to_owned(), action)]),
        ..Overrides::default()
    };
    let mut fixed = vary("age");
    fixed.actions.insert("age".to_owned(), Action::Fixed);
    let cases = [
        (vary("incom"), "feature `incom`: is not a feature of the schema; did you mean `income`?"),
        (vary("zzz"), "feature `zzz`: is not a feature of the schema"),
        (
            action("ages", Action::Free),
            "feature `ages`: is not a feature of the schema; did you mean",
        ),
        (fixed, "feature `age`: is fixed but listed to vary; give it another action as well"),
        (
            action("home", Action::Levels(vec!["tent".into()])),
            "feature `home`: action lists `tent`, which is not a level of it",
        ),
        (
            action("home", Action::Within([0.0, 1.0].into())),
            "feature `home`: `within` goes with numbers, not with kind `categorical`",
        ),
        (
            action("age", Action::Within([1.0, 2.0].into())),
            "feature `age`: `within` and `range` have no number in common",
        ),
        (action("home", Action::OnlyUp), "feature `home`: levels without an order cannot go"),
    ];
    for (overrides, expected) in cases {
        let error = actions().overridden(&overrides).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n{expected}");
    }
}

#[test]
fn constraints_are_let_go_one_at_a_time() {
    let actions = actions();
    let constraints = actions.constraints();
    let words: Vec<String> = constraints.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "feature `age`",
            "feature `debt`",
            "feature `grade`",
            "feature `home`",
            "rule 0 (the instalments of a year fit the income)"
        ]
    );
    let bad = values(20.0, 10_000.0, 900.0, 30.0.into(), "low", "free".into());
    for constraint in &constraints {
        let set = actions.without(constraint).unwrap().for_factual(&row(ordinary())).unwrap();
        let left = set.violations(&row(bad.clone()));
        assert_eq!(left.len(), 4);
        assert!(left.iter().all(|violation| violation.constraint != *constraint));
    }
    // A feature that a request fixed gets the schema's rule back, and nothing beyond it.
    let vary = Overrides { vary: Some(vec!["income".to_owned()]), ..Overrides::default() };
    let age = Constraint::Feature("age".to_owned());
    let let_go = actions.overridden(&vary).unwrap().without(&age).unwrap();
    assert_eq!(let_go.schema().features[0].action, Action::OnlyUp);
    assert_eq!(let_go.schema().features[4].action, Action::Fixed);
    assert_eq!(let_go.without(&age).unwrap().schema().features[0].action, Action::Free);
    let beyond = Constraint::Rule { index: 1, words: "none".to_owned() };
    let error = actions.without(&beyond).unwrap_err().to_string();
    assert_eq!(error, "schema: rule 1 (none): there is no such rule");
}

#[test]
fn a_schema_and_an_encoder_that_do_not_fit_are_refused() {
    let schema = schema();
    let encoder = encoder(&schema);
    let mut other = schema.clone();
    other.features.swap(0, 1);
    let error = Actions::new(&other, &encoder).unwrap_err().to_string();
    assert_eq!(error, "schema, feature `income`: the encoder has `age` in its place");
    let mut other = schema.clone();
    other.features[4].kind = crate::data::FeatureKind::Integer;
    (other.features[4].encoding, other.features[4].action) = (None, Action::Free);
    let error = Actions::new(&other, &encoder).unwrap_err().to_string();
    assert_eq!(error, "schema, feature `grade`: has kind `integer`, but is encoded as levels");
    let mut other = schema.clone();
    other.features.pop();
    let error = Actions::new(&other, &encoder).unwrap_err().to_string();
    assert_eq!(error, "features of the encoder: expected 5, got 6");
    let mut other = schema;
    let crate::data::schema::Relation::Sum { terms, .. } = &mut other.rules[0].relation else {
        panic!("a sum")
    };
    terms.insert("income".to_owned(), 1e300);
    let error = Actions::new(&other, &encoder).unwrap_err().to_string();
    assert!(error.contains("rule 0: its sum can be as large as"), "{error}");
    let short = Row::from_checked(vec![1.0.into()]);
    let error = actions().for_factual(&short).unwrap_err().to_string();
    assert_eq!(error, "values of a row: expected 6, got 1");
}

#[test]
fn sets_without_rows_take_any_point_of_a_box() {
    let set = FeasibleSet::everywhere(3);
    assert!(set.is_relaxed() && set.contains(&[1e30, -5.0, 0.0]));
    assert!(!set.contains(&[f32::NAN, 0.0, 0.0]));
    assert_eq!(set.settle(&[0.0; 3]), None);
    assert!(moved(&set, &row(ordinary())).is_empty());
    assert!(set.violations(&row(ordinary())).is_empty());
    let set = FeasibleSet::within(vec![0.0, f32::NEG_INFINITY], vec![1.0, 2.0]).unwrap();
    let mut point = [f32::NAN, f32::INFINITY];
    set.project(&mut point);
    assert_eq!(point, [0.0, 2.0]);
    assert!(set.contains(&point) && !set.contains(&[1.1, 0.0]));

    let bad = [
        (vec![0.0], vec![], "upper ends of a box: expected 1, got 0"),
        (
            vec![1.0],
            vec![0.0],
            "parameter `box` is [1, 0] in column 0, expected the smaller number",
        ),
        (vec![f32::NAN], vec![0.0], "parameter `box` is [NaN, 0] in column 0"),
        (vec![f32::INFINITY], vec![f32::INFINITY], "parameter `box` is [inf, inf] in column 0"),
    ];
    for (lower, upper, expected) in bad {
        let error = FeasibleSet::within(lower, upper).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn coordinates_that_are_no_numbers_do_no_harm() {
    let set = set(ordinary());
    assert!(!set.is_relaxed());
    for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN] {
        let mut point = vec![x; set.dim()];
        set.project(&mut point);
        assert!(set.contains(&point), "{x}: {point:?}");
        let (settled, _) = set.settle(&vec![x; set.dim()]).unwrap();
        assert_eq!(set.violations(&settled), []);
    }
}
