//! Rules about changes on grids that are small enough to look at every row.

use std::ops::ControlFlow;
use std::path::Path;

use tyrex::action::{Actions, Constraint, FeasibleSet};
use tyrex::data::{Dataset, Encoder, Row, Schema, Table, Value};
use tyrex::explain::{Answered, Ask, Explainer, Part};
use tyrex::model::TrainParams;
use tyrex::{Points, Seed};

const SCHEMA: &str = r#"
format_version = 1
label = { column = "y", favourable = 1 }
feature = [
    { name = "degree", kind = "ordinal", levels = ["none", "first", "second"] },
    { name = "age", kind = "integer", range = [20, 26] },
    { name = "work", kind = "categorical", levels = ["none", "part", "full"] },
    { name = "hours", kind = "integer", range = [0, 6] },
    { name = "pay", kind = "numeric", step = 0.5, range = [0, 3] },
]
"#;

/// Every kind of rule, alone and with others.
const RULES: [&str; 8] = [
    "rule = [{ monotone = [\"degree\", \"age\"] }]",
    "rule = [{ if = { degree = \"up\" }, then = { age = { by = [2, inf] } } }]",
    "rule = [{ if = { work = { levels = [\"full\"] } }, then = { hours = { within = [4, 6] }, \
     pay = \"up\" } }]",
    "rule = [{ if = { hours = { by = [2, 4] }, work = \"any\" }, then = { pay = \"any\" } }]",
    "rule = [{ if = { pay = { within = [2, 3] } }, then = { work = \"none\", age = \"not-up\" } }]",
    "rule = [{ ratio = [\"pay\", \"hours\"], at_least = 0.25, at_most = 0.5 }]",
    "rule = [{ monotone = [\"degree\", \"age\"] }, { if = { age = \"up\" }, then = { hours = \
     \"down\" } }, { if = { hours = \"down\" }, then = { work = { levels = [\"part\", \"none\"] } } \
     }, { if = { work = \"any\" }, then = { pay = \"not-down\" } }]",
    "rule = [{ ratio = [\"pay\", \"hours\"], at_most = 0.5 }, { if = { pay = \"up\" }, then = { \
     age = \"up\", degree = \"not-down\" } }, { terms = { age = 1, hours = 1 }, at_most = 28 }]",
];

struct World {
    rule: &'static str,
    schema: Schema,
    encoder: Encoder,
    rows: Vec<Row>,
    points: Points,
}

fn worlds() -> impl Iterator<Item = World> {
    RULES.iter().map(|rule| {
        let schema = Schema::from_toml(&format!("{rule}\n{SCHEMA}")).unwrap();
        let mut rows = Vec::new();
        for degree in ["none", "first", "second"] {
            for age in 20..=26 {
                for work in ["none", "part", "full"] {
                    for hours in 0..=6 {
                        for pay in 0..=6 {
                            let values: Vec<Value> = vec![
                                degree.into(),
                                f64::from(age).into(),
                                work.into(),
                                f64::from(hours).into(),
                                (f64::from(pay) / 2.0).into(),
                            ];
                            rows.push(Row::new(&schema, values).unwrap());
                        }
                    }
                }
            }
        }
        let encoder = Encoder::fit(&schema, &rows.iter().collect::<Vec<_>>()).unwrap();
        let mut points = Points::new(encoder.dim());
        rows.iter().for_each(|row| points.push(encoder.encode(row).unwrap().as_slice()));
        World { rule, schema, encoder, rows, points }
    })
}

impl World {
    fn set(&self, factual: usize) -> FeasibleSet {
        Actions::new(&self.schema, &self.encoder).unwrap().for_factual(&self.rows[factual]).unwrap()
    }
}

/// The rules of the list above once more, as code.
fn holds(rule: &str, from: &Row, to: &Row) -> bool {
    let degree = |row: &Row| {
        let levels = ["none", "first", "second"];
        levels.iter().position(|level| row.values()[0] == Value::from(*level)).unwrap()
    };
    let number = |row: &Row, position: usize| row.values()[position].number().unwrap();
    let change = |position: usize| number(to, position) - number(from, position);
    let (age, hours, pay) = (change(1), change(3), change(4));
    let up = degree(to) > degree(from);
    let down = degree(to) < degree(from);
    let work_changes = from.values()[2] != to.values()[2];
    let works = |level: &str| to.values()[2] == Value::from(level);
    let monotone = (!up || age > 0.0) && (!down || age < 0.0);
    // A ratio of halves, so that products are exact: pay <= hours / 2.
    let excess = |row: &Row| number(row, 4) - 0.5 * number(row, 3);
    let upper = {
        let own = number(from, 4) / number(from, 3);
        if number(from, 3) == 0.0 {
            excess(to) <= excess(from).max(0.0)
        } else {
            number(to, 4) <= own.max(0.5) * number(to, 3) + 1e-9
        }
    };
    let lower = {
        let own = number(from, 4) / number(from, 3);
        let deficit = |row: &Row| 0.25 * number(row, 3) - number(row, 4);
        if number(from, 3) == 0.0 {
            deficit(to) <= deficit(from).max(0.0)
        } else {
            number(to, 4) >= own.min(0.25) * number(to, 3) - 1e-9
        }
    };
    match RULES.iter().position(|own| *own == rule).unwrap() {
        0 => monotone,
        1 => !up || age >= 2.0,
        2 => !(work_changes && works("full")) || (number(to, 3) >= 4.0 && pay > 0.0),
        3 => !((2.0..=4.0).contains(&hours) && work_changes) || pay != 0.0,
        4 => pay == 0.0 || number(to, 4) < 2.0 || (!work_changes && age <= 0.0),
        5 => upper && lower,
        6 => {
            monotone
                && (age <= 0.0 || hours < 0.0)
                && (hours >= 0.0 || works("part") || works("none"))
                && (!work_changes || pay >= 0.0)
        }
        _ => {
            let sum = |row: &Row| number(row, 1) + number(row, 3);
            upper && (pay <= 0.0 || (age > 0.0 && !down)) && sum(to) <= sum(from).max(28.0)
        }
    }
}

/// Some of the rows, spread over the grid.
fn some(count: usize, rows: usize, skip: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |index| (index * 7919 + skip) % rows)
}

#[test]
fn the_feasible_set_is_exact_about_every_row() {
    for world in worlds() {
        let mut both = [0, 0];
        for factual in some(40, world.rows.len(), 5) {
            let (from, set) = (&world.rows[factual], world.set(factual));
            for row in &world.rows {
                let expected = holds(world.rule, from, row);
                let found = set.violations(row);
                assert_eq!(found.is_empty(), expected, "{}: {from:?} {row:?}", world.rule);
                both[usize::from(expected)] += 1;
            }
        }
        assert!(both.iter().all(|count| *count > 100), "{}: {both:?}", world.rule);
    }
}

/// Without sums between stepped numbers, whose search is not exhaustive, no allowed row is nearer.
#[test]
fn a_settled_row_is_the_nearest_that_obeys() {
    for world in worlds() {
        let is_exact = !world.rule.contains("ratio");
        for factual in some(12, world.rows.len(), 5) {
            let set = world.set(factual);
            let allowed: Vec<usize> = (0..world.rows.len())
                .filter(|&row| holds(world.rule, &world.rows[factual], &world.rows[row]))
                .collect();
            for (index, wish) in some(25, world.rows.len(), 3).enumerate() {
                // Between the rows of the grid, too.
                let mut wish = world.points.row(wish).to_vec();
                wish.iter_mut().for_each(|x| *x += 0.013 * (index % 5) as f32);
                let (row, point) = set.settle(&wish).expect("the factual is allowed");
                assert!(holds(world.rule, &world.rows[factual], &row), "{}", world.rule);
                let distance = |point: &[f32]| -> f64 {
                    point.iter().zip(&wish).map(|(a, b)| f64::from(a - b).powi(2)).sum()
                };
                let least = allowed.iter().map(|&row| distance(world.points.row(row)));
                let least = least.fold(f64::INFINITY, f64::min);
                let found = distance(&point);
                assert!(found >= least - 1e-6);
                assert!(!is_exact || found <= least + 1e-6, "{}: {found} {least}", world.rule);
            }
        }
    }
}

/// A change that needs others takes them along.
#[test]
fn moves_take_along_what_must_follow() {
    for world in worlds() {
        let mut followed = 0;
        for factual in some(30, world.rows.len(), 11) {
            let (from, set) = (&world.rows[factual], world.set(factual));
            let moves = set.moves(from);
            for (index, point) in moves.points().enumerate() {
                let row = moves.row(index);
                assert!(holds(world.rule, from, &row), "{}: {from:?} {row:?}", world.rule);
                assert_eq!(world.encoder.encode(&row).unwrap().as_slice(), point);
                let pairs = from.values().iter().zip(row.values());
                followed += usize::from(pairs.filter(|(a, b)| a != b).count() > 1);
            }
        }
        // One change alone does not meet two conditions, and one that must be alone takes nothing
        // along.
        let is_single = [RULES[3], RULES[4]].contains(&world.rule);
        assert!(followed > 0 || is_single, "{}", world.rule);
    }
}

#[test]
fn rules_about_changes_are_told_in_words() {
    let world = worlds().nth(2).unwrap();
    let row = |work: &str, hours: f64, pay: f64| {
        let values = vec!["none".into(), 20.0.into(), work.into(), hours.into(), pay.into()];
        Row::new(&world.schema, values).unwrap()
    };
    let actions = Actions::new(&world.schema, &world.encoder).unwrap();
    let set = actions.for_factual(&row("part", 3.0, 1.0)).unwrap();
    let found = set.violations(&row("full", 3.0, 1.5));
    let expected = "rule 0 (if work one of `full` then hours at 4 to 6 and pay up): found work \
                    `full` with hours `3`, allowed is hours at 4 to 6 (from `3`)";
    assert_eq!(found[0].to_string(), expected);
    let ratio = worlds().nth(5).unwrap();
    let actions = Actions::new(&ratio.schema, &ratio.encoder).unwrap();
    let set = actions.for_factual(&row("part", 4.0, 1.5)).unwrap();
    let found = set.violations(&row("part", 2.0, 1.5));
    let expected = "rule 0 (0.25 <= pay / hours <= 0.5): found 0.75, allowed is a ratio of 0.5 or \
                    less";
    assert_eq!(found[0].to_string(), expected);
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    let cases = [
        ("{ monotone = [\"age\", \"age\"] }", "rule 0: `monotone` names `age` twice"),
        ("{ monotone = [\"work\", \"age\"] }", "the levels of `work` have no order"),
        ("{ monotone = [\"age\", \"ages\"] }", "rule 0: `ages` is not a feature"),
        ("{ monotone = [\"age\"] }", "`monotone` has 2 features, found 1"),
        (
            "{ ratio = [\"pay\", \"hours\", \"age\"], at_most = 1 }",
            "`ratio` has 2 features, found 3",
        ),
        ("{ ratio = [\"pay\", \"work\"], at_most = 1 }", "rule 0: `work` is not a number"),
        ("{ ratio = [\"pay\", \"pay\"], at_most = 1 }", "`ratio` divides `pay` by itself"),
        ("{ ratio = [\"pay\", \"hours\"] }", "expected `at_least`, `at_most` or both"),
        ("{ ratio = [\"pay\", \"hours\"], at_least = 2, at_most = 1 }", "`at_least` 2 is above"),
        ("{ if = { age = \"up\" } }", "or `if` and `then`; and not two of them"),
        (
            "{ if = { age = \"up\" }, then = { hours = \"up\" }, at_most = 1 }",
            "or `if` and `then`; and not two of them",
        ),
        ("{ if = {}, then = { hours = \"up\" } }", "expected at least one feature in `if`"),
        (
            "{ if = { age = \"up\" }, then = { age = \"up\" } }",
            "rule 0: `age` is both in `if` and in `then`",
        ),
        (
            "{ if = { age = \"not-up\" }, then = { hours = \"up\" } }",
            "`age` not up holds for the applicant's own row, expected a change in `if`",
        ),
        (
            "{ if = { age = { by = [-1, 1] } }, then = { hours = \"up\" } }",
            "`age` changed by -1 to 1 holds for the applicant's own row",
        ),
        (
            "{ if = { age = \"up\" }, then = { work = { levels = [\"fuller\"] } } }",
            "rule 0: `work` has no level `fuller`",
        ),
        (
            "{ if = { age = \"up\" }, then = { work = { within = [1, 2] } } }",
            "`work`: `within` goes with numbers, not with kind `categorical`",
        ),
        (
            "{ if = { age = \"up\" }, then = { pay = { by = [2, 1] } } }",
            "`pay`: `by` is [2, 1], expected the smaller number first",
        ),
        ("{ if = { age = \"upp\" }, then = { pay = \"up\" } }", "unknown variant `upp`"),
    ];
    for (rule, expected) in cases {
        let error = Schema::from_toml(&format!("rule = [{rule}]\n{SCHEMA}")).unwrap_err();
        assert!(error.to_string().contains(expected), "{rule}\n{error}\n{expected}");
    }
    let real = SCHEMA.replace("step = 0.5, ", "").replace("range = [0, 6] }", "range = [-1, 6] }");
    let rule = "{ if = { age = \"up\" }, then = { pay = \"up\" } }";
    let error = Schema::from_toml(&format!("rule = [{rule}]\n{real}")).unwrap_err().to_string();
    assert!(error.contains("`pay` has no smallest change"), "{error}");
    let rule = "{ ratio = [\"pay\", \"hours\"], at_most = 1 }";
    let error = Schema::from_toml(&format!("rule = [{rule}]\n{real}")).unwrap_err().to_string();
    assert!(error.contains("`hours` divides, so it needs a `range` without negative"), "{error}");
}

#[test]
fn rules_survive_being_written() {
    for world in worlds() {
        let text = world.schema.to_toml().unwrap();
        assert_eq!(Schema::from_toml(&text).unwrap(), world.schema, "{text}");
        let json = serde_json::to_string(&world.schema.rules).unwrap();
        let again: Vec<tyrex::data::schema::Rule> = serde_json::from_str(&json).unwrap();
        assert_eq!(again, world.schema.rules, "{json}");
    }
}

/// A model that likes a large `a` and a small `b`.
fn explainer() -> Explainer {
    let mut text = "a,b,y\n".to_owned();
    for row in 0..400_usize {
        let (a, b) = (row * 7919 % 101, row * 6007 % 101);
        text += &format!("{a},{b},{}\n", u8::from(a > b));
    }
    let schema = Schema::from_toml(
        "format_version = 1\nlabel = { column = \"y\", favourable = 1 }\nfeature = [\
         { name = \"a\", kind = \"integer\", range = [0, 100] },\
         { name = \"b\", kind = \"integer\", range = [0, 100] },\
         ]\n",
    )
    .unwrap();
    let table = Table::from_csv(Path::new("pairs.csv"), text.as_bytes()).unwrap();
    let data = Dataset::load(&schema, table).unwrap();
    let params = TrainParams::default();
    Explainer::train(data, &params, Seed(0), |_: &_| ControlFlow::Continue(())).unwrap()
}

/// A question as the front ends write it.
fn asked(explainer: &Explainer, question: &serde_json::Value) -> Answered {
    let ask = Ask::read(question.as_object().unwrap(), &[]).unwrap();
    let applicants = explainer.applicants().rejected(Part::Train);
    let go_on = |_| ControlFlow::Continue(());
    explainer.answer(&applicants[..6], &ask, None, go_on).unwrap()
}

/// Rules of a question are obeyed by every method, and named where they prevent advice.
#[test]
fn a_question_may_have_rules() {
    let explainer = explainer();
    for method in ["min-cost", "trex-o", "trex-i", "trex-nn", "nn", "sns"] {
        let rules = serde_json::json!([
            { "if": { "a": "up" }, "then": { "b": { "by": [3, null] } } },
            { "monotone": ["b", "a"] },
        ]);
        let question = serde_json::json!({ "method": method, "certify": false, "rules": rules });
        let answered = asked(&explainer, &question);
        let mut found = 0;
        for advice in &answered.advice {
            let Some(row) = &advice.advised else { continue };
            let [a, b] = [0, 1].map(|at| {
                let number = |row: &Row| row.values()[at].number().unwrap();
                number(row) - number(&advice.applicant.values)
            });
            assert!((a <= 0.0 || b >= 3.0) && (b <= 0.0 || a > 0.0) && (b >= 0.0 || a < 0.0));
            found += 1;
        }
        assert!(found > 0, "{method}");
    }
    // Every change of `a` needs one of `b`, which must stay, and `b` itself is not enough.
    let rule = serde_json::json!([{ "if": { "a": "any" }, "then": { "b": "any" } }]);
    let question = serde_json::json!({ "method": "min-cost", "certify": false, "keep": ["b"],
        "rules": rule });
    let answered = asked(&explainer, &question);
    let rows = answered.rows(6, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(answered.found, 0);
    let mut named = 0;
    for row in serde_json::to_value(&rows).unwrap().as_array().unwrap() {
        for helpful in row["advice"]["relaxations"]["helpful"].as_array().unwrap() {
            named += usize::from(helpful["constraint"].get("rule").is_some());
        }
    }
    let first = answered.advice.first().unwrap();
    let actions = Actions::new(explainer.schema(), explainer.encoder()).unwrap();
    assert!(actions.constraints().iter().all(|own| !matches!(own, Constraint::Rule { .. })));
    assert!(first.advised.is_none() && named > 0, "{named}");
}

#[test]
fn rules_of_a_question_are_checked() {
    let explainer = explainer();
    let error = |rules: serde_json::Value| {
        let question = serde_json::json!({ "rules": rules });
        let ask = Ask::read(question.as_object().unwrap(), &[]);
        let checked = ask.and_then(|ask| ask.check_features(explainer.schema()));
        checked.unwrap_err().to_string()
    };
    let cases = [
        (serde_json::json!([{ "monotone": ["a", "c"] }]), "rules[0]", "`c` is not a feature"),
        (serde_json::json!([{ "monotone": ["a", "b"], "terms": {} }]), "rules[0]", "not two of"),
        (serde_json::json!([{ "if": { "a": "sideways" }, "then": {} }]), "rules[0]", "sideways"),
        (serde_json::json!({ "a": 1 }), "rules", "list"),
    ];
    for (rules, place, problem) in cases {
        let found = error(rules);
        assert!(found.contains(place) && found.contains(problem), "{found}\n{place} {problem}");
    }
}
