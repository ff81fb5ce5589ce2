//! A scorecard: proofs, and values that may become known.

use std::fmt::Write as _;

use serde_json::Value;

use crate::Place;

/// The second class from 45 points on.
const CARD: &str = r#"{"scorecard": 1, "factor": 10, "offset": 45, "variables": [
    {"name": "income", "missing": 20, "bins": [{"below": 1200, "points": 5},
        {"below": 3000, "points": 20}, {"points": 40}]},
    {"name": "debt", "missing": 0, "bins": [{"below": 2, "points": 30}, {"below": 5, "points": 10},
        {"points": 6}]}]}"#;

const SCHEMA: &str = r#"
format_version = 1
[model]
input = "raw"
[label]
column = "paid"
favourable = "yes"
unfavourable = "no"
[[feature]]
name = "income"
kind = "integer"
range = [0, 9000]
missing = "pass"
MAY
[[feature]]
name = "debt"
kind = "integer"
range = [0, 9]
DEBT
"#;

/// Rows with all debts, and incomes of which every fourth is missing.
fn place(may: &str, debt: &str) -> Place {
    let place = Place::new();
    let mut rows = "income,debt,paid\n".to_owned();
    for row in 0..40_i32 {
        let (income, debt) = (100 + 200 * row, row % 10);
        let paid = if income > 3000 && debt < 5 { "yes" } else { "no" };
        match row % 4 {
            0 => writeln!(rows, ",{debt},{paid}").unwrap(),
            _ => writeln!(rows, "{income},{debt},{paid}").unwrap(),
        }
    }
    place.write("rows.csv", &rows);
    place.write("card.json", CARD);
    place.write("card.toml", &SCHEMA.replace("MAY", may).replace("DEBT", debt));
    place
}

const EXPLAIN: &str = "explain --data rows.csv --schema card.toml --model card.json --models 0 \
                       --method min-cost --prove --limit 40";

#[test]
fn advice_on_a_scorecard_is_proved() {
    let document = place("", "").json(EXPLAIN);
    let found = document["found"].as_u64().unwrap();
    assert!(found > 5, "{document}");
    let mut proved = 0;
    for applicant in document["rows"].as_array().unwrap() {
        let advice = &applicant["advice"];
        if advice["status"] == "found" {
            assert_eq!(advice["proof"]["optimal"], true, "{advice}");
            assert!(advice["proof"]["sentence"].as_str().is_some());
            assert_eq!(advice["proof"]["least_cost"], advice["cost"]["l1"], "{advice}");
            proved += 1;
            // What is missing stays so.
            let changes = advice["changes"].as_array().unwrap();
            assert!(changes.iter().all(|change| !change["from"].is_null()), "{advice}");
        }
    }
    assert_eq!(proved, found);
}

#[test]
fn an_income_may_be_given() {
    let place = place("may_become = \"known\"", "action = \"fixed\"");
    let document = place.json(&format!("{EXPLAIN} --out advice.csv"));
    let given: Vec<&Value> = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|applicant| &applicant["advice"])
        .filter(|advice| advice["status"] == "found")
        .filter(|advice| advice["changes"][0]["from"].is_null())
        .collect();
    assert!(!given.is_empty(), "{document}");
    for advice in given {
        let change = &advice["changes"][0];
        // The least income of the only bin that is enough.
        assert_eq!(change["to"].as_f64(), Some(3000.0), "{change}");
        assert_eq!(change["words"]["clause"], "provide income: 3000", "{change}");
        assert_eq!(advice["proof"]["optimal"], true);
    }
    let text = place.done(EXPLAIN);
    assert!(text.contains("Provide income: 3000."), "{text}");
    assert!(place.done("schema check card.toml").contains("free, may become known"));
    // The same model keeps all of it.
    let audit = "audit --counterfactuals advice.csv --data rows.csv --schema card.toml";
    place.done(&format!("{audit} --model card.json --reference rows.csv"));
}
