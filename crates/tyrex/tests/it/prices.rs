//! Changes whose cost depends on their direction.

use std::ops::ControlFlow;
use std::path::Path;

use tyrex::Seed;
use tyrex::counterfactual::Norm;
use tyrex::data::catalogue::{Catalogue, Direction, Variant};
use tyrex::data::schema::Price;
use tyrex::data::{Dataset, Schema, Table};
use tyrex::explain::{Ask, Explainer, Part};
use tyrex::model::TrainParams;

const SCHEMA: &str = r#"
format_version = 1
label = { column = "y", favourable = 1 }
[[feature]]
name = "a"
kind = "integer"
range = [0, 100]
[[feature]]
name = "b"
kind = "integer"
range = [0, 100]
"#;

/// Both columns decide alike: favourable if `a - b` is above 0.
fn data(price: &str) -> Dataset {
    let mut text = "a,b,y\n".to_owned();
    for row in 0..400_usize {
        let (a, b) = (row * 7919 % 101, row * 6007 % 101);
        text += &format!("{a},{b},{}\n", u8::from(a > b));
    }
    let schema = Schema::from_toml(&SCHEMA.replacen(
        "range = [0, 100]",
        &format!("range = [0, 100]\n{price}"),
        1,
    ))
    .unwrap();
    let table = Table::from_csv(Path::new("pairs.csv"), text.as_bytes()).unwrap();
    Dataset::load(&schema, table).unwrap()
}

fn explainer(price: &str) -> Explainer {
    let params = TrainParams::default();
    Explainer::train(data(price), &params, Seed(0), |_: &_| ControlFlow::Continue(())).unwrap()
}

/// With a dear rise of `a` the advice lowers `b`, and with a cheap one it raises `a`, if the method
/// looks for the least cost; with every method the cost is the distance at these prices.
#[test]
fn a_dear_direction_is_avoided() {
    let changes = |price: &str, method: &str, norm: Norm| {
        let explainer = explainer(price);
        let applicants = explainer.applicants().rejected(Part::Train);
        let ask = Ask { method: Some(method.to_owned()), norm, certify: false, ..Ask::default() };
        let go_on = |_| ControlFlow::Continue(());
        let mut answering = explainer.answering(&applicants[..6], &ask, None, &go_on).unwrap();
        let advice = answering.advise(&applicants[..6], |_| ControlFlow::Continue(())).unwrap();
        let mut moved = [0.0, 0.0];
        for own in &advice {
            let Some(found) = own.found() else { continue };
            let [a, b] = [0, 1].map(|at| f64::from(found.point[at] - own.applicant.point[at]));
            let factor = if price.is_empty() { 1.0 } else { price_of(&explainer).up };
            let rise = a.max(0.0) * factor + (-a).max(0.0);
            let expected = match norm {
                Norm::L1 => rise + b.abs(),
                Norm::L2 => rise.hypot(b),
            };
            assert!((found.cost - expected).abs() < 1e-6, "{method}: {} {expected}", found.cost);
            let costs = own.cost.unwrap();
            let shown = if norm == Norm::L1 { costs.l1 } else { costs.l2 };
            assert!((shown - expected).abs() < 1e-6);
            moved = [moved[0] + a, moved[1] - b];
        }
        assert!(moved[0] + moved[1] > 0.0, "{method}");
        moved
    };
    for norm in [Norm::L1, Norm::L2] {
        // Their ways follow the gradient, or lead to a row of the data.
        for method in ["trex-i", "trex-nn"] {
            changes("price = { up = 5 }", method, norm);
        }
        for method in ["min-cost", "trex-o"] {
            let [up, down] = changes("price = { up = 5 }", method, norm);
            assert!(down > 2.0 * up, "{method} {norm:?}: a by {up}, b by {down}");
            let [up, down] = changes("price = { up = 0.2 }", method, norm);
            assert!(up > 2.0 * down, "{method} {norm:?}: a by {up}, b by {down}");
        }
    }
}

fn price_of(explainer: &Explainer) -> Price {
    explainer.schema().features[0].price.unwrap()
}

/// Prices of 1 are not prices, and a price does not depend on the side from which a search comes.
#[test]
fn prices_of_one_change_nothing() {
    let answers = |price: &str| {
        let explainer = explainer(price);
        let applicants = explainer.applicants().rejected(Part::Train);
        let ask = Ask { method: Some("min-cost".to_owned()), certify: false, ..Ask::default() };
        let go_on = |_| ControlFlow::Continue(());
        let mut answering = explainer.answering(&applicants[..8], &ask, None, &go_on).unwrap();
        let advice = answering.advise(&applicants[..8], |_| ControlFlow::Continue(())).unwrap();
        let rows = advice.into_iter().map(|own| own.advised);
        rows.collect::<Vec<_>>()
    };
    assert_eq!(answers("price = { up = 1, down = 1 }"), answers(""));
}

#[test]
fn prices_that_make_no_sense_are_refused() {
    let error = |feature: &str| {
        let text = format!("{SCHEMA}[[feature]]\nname = \"c\"\n{feature}\n");
        Schema::from_toml(&text).unwrap_err().to_string()
    };
    let cases = [
        ("kind = \"integer\"\nprice = { up = 0 }", "`price.up` is 0, expected a number from 0.001"),
        ("kind = \"integer\"\nprice = { down = inf }", "`price.down` is inf, expected a number"),
        ("kind = \"integer\"\nprice = { left = 2 }", "unknown field `left`"),
        (
            "kind = \"categorical\"\nlevels = [\"a\", \"b\"]\nprice = { up = 2 }",
            "`price` goes with features that are one column with an order",
        ),
        (
            "kind = \"ordinal\"\nlevels = [\"a\", \"b\"]\nencoding = \"one-hot\"\nprice = { up = 2 }",
            "`price` goes with features that are one column with an order",
        ),
    ];
    for (feature, expected) in cases {
        let found = error(feature);
        assert!(found.contains(expected), "{found}\n{expected}");
    }
    // The schemas of the catalogue have none.
    let german = Catalogue::new(None).load("german", Variant::Product, Direction::Favourable);
    assert!(german.unwrap().schema().features.iter().all(|own| own.price.is_none()));
}
