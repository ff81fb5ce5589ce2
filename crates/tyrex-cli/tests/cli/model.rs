//! `tyrex model`

use crate::Place;

#[test]
fn a_model_file_is_shown_with_layers_classes_and_metadata() {
    let place = Place::with_loans();
    place.done("train --out m.onnx --hidden 8,4 --epochs 1 LOANS");
    let text = place.done("model show m.onnx");
    // income, age, three levels of housing, owner.
    for piece in ["network 6-8-4-1, relu and sigmoid", "fingerprint", "tyrex_version", "schema"] {
        assert!(text.contains(piece), "{piece}: {text}");
    }
    let document = place.json("model show m.onnx");
    assert_eq!(document["inputs"].as_array().unwrap().len(), 6);
    assert_eq!(document["classes"], 2);
    assert!(document["metadata"]["schema"].as_str().unwrap().contains("[[feature]]"));
}
