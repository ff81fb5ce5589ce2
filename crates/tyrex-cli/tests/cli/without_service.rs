//! `tyrex serve` and `tyrex token` in a build without them.

use crate::Place;

#[test]
fn the_answer_says_how_to_get_them() {
    let place = Place::new();
    for (verb, rest) in [("serve", "--dataset german"), ("token", "list")] {
        let answer = place.run(&format!("{verb} {rest}"));
        assert_eq!(answer.code, 2, "{}", answer.stderr);
        let command = format!("cargo run --release --features service -- {verb}");
        assert!(answer.stderr.contains("has no service"), "{}", answer.stderr);
        assert!(answer.stderr.replace("\n", " ").contains(&command), "{}", answer.stderr);
    }
}
