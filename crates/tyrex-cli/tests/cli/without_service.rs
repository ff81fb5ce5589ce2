//! `tyrex serve` and `tyrex token` in a build without them.

use crate::Place;

#[test]
fn the_answer_says_how_to_get_them() {
    let place = Place::new();
    for arguments in [&["serve", "--dataset", "german"][..], &["token", "list"]] {
        let answer = place.run(arguments);
        assert_eq!(answer.code, 2, "{}", answer.stderr);
        let command = format!("cargo run --release --features service -- {}", arguments[0]);
        assert!(answer.stderr.contains("has no service"), "{}", answer.stderr);
        assert!(answer.stderr.replace("\n", " ").contains(&command), "{}", answer.stderr);
    }
}
