//! Reads arbitrary bytes as a model and scores a few points with the result.

use tyrex::Points;
use tyrex::model::files::{InputCell, Core, Favourable, ImportOptions, ModelFile};

pub fn read(data: &[u8]) {
    // The first byte chooses how the rest is read.
    let Some((&choice, file)) = data.split_first() else { return };
    let options = ImportOptions {
        output: None,
        favourable: (choice & 1 != 0).then_some(Favourable::Class(usize::from(choice >> 4))),
        logits: choice & 2 != 0,
    };
    let Ok(model) = ModelFile::from_bytes(file.to_vec(), &options) else { return };
    assert!(model.favourable < model.classes);
    let core = model.model();
    // Widths are bounded by the file, but a wide one only slows the search down.
    if core.dim() > 1 << 12 {
        return;
    }
    let rows = [0.0, 1.0, -1e30, f64::NAN];
    let mut points = Points::new(core.dim());
    for value in rows {
        points.push(&vec![value as f32; core.dim()]);
    }
    assert_eq!(core.score(&points).len(), rows.len());
    for value in rows {
        for cell in [InputCell::Number(value), InputCell::Text("a")] {
            let cells = vec![cell; model.inputs.len()];
            if let Ok(points) = model.encode([cells.as_slice()]) {
                assert_eq!(core.score(&points).len(), 1);
            }
        }
    }
    let fingerprint = match &model.core {
        Core::Mlp(network) => network.fingerprint(),
        Core::Trees(trees) => trees.fingerprint(),
    };
    assert_eq!(fingerprint.as_str().len(), 64);
}
