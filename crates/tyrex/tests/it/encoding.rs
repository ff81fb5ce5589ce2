//! The laws of the encoder, over random schemas, rows and points.

use proptest::prelude::*;
use tyrex::data::schema::Action;
use tyrex::data::{Encoder, Row, Schema};

use crate::support::schemas::{fitted, same, world};

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn decoding_an_encoded_row_gives_the_row((schema, rows, _) in world()) {
        let encoder = fitted(&schema, &rows)?;
        for row in &rows {
            let back = encoder.decode(encoder.encode(row)?.as_slice());
            prop_assert!(same(&schema, &rows, row, &back), "{row:?}\n{back:?}\n{encoder:?}");
        }
    }

    #[test]
    fn a_snapped_point_is_the_point_of_its_row((schema, rows, coordinates) in world()) {
        let encoder = fitted(&schema, &rows)?;
        let mut point: Vec<f32> = coordinates.iter().copied().cycle().take(encoder.dim()).collect();
        encoder.snap(&mut point);
        let row = encoder.decode(&point);
        // Decoding gives a row of the schema.
        prop_assert!(Row::new(&schema, row.values().to_vec()).is_ok(), "{row:?}");
        let back = encoder.encode(&row)?;
        for (x, y) in point.iter().zip(back.as_slice()) {
            prop_assert!((x - y).abs() <= 1e-6 * x.abs().max(1.0), "{point:?}\n{back:?}");
        }
    }

    #[test]
    fn snapping_twice_is_snapping_once((schema, rows, coordinates) in world()) {
        let encoder = fitted(&schema, &rows)?;
        let mut once: Vec<f32> = coordinates.iter().copied().cycle().take(encoder.dim()).collect();
        encoder.snap(&mut once);
        let mut twice = once.clone();
        encoder.snap(&mut twice);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn no_row_is_nearer_than_the_snapped_point((schema, rows, coordinates) in world()) {
        let encoder = fitted(&schema, &rows)?;
        let point: Vec<f32> = coordinates.iter().copied().cycle().take(encoder.dim()).collect();
        let mut snapped = point.clone();
        encoder.snap(&mut snapped);
        let distance = |other: &[f32]| -> f64 {
            point.iter().zip(other).map(|(a, b)| f64::from(a - b).powi(2)).sum()
        };
        for row in &rows {
            let other = encoder.encode(row)?;
            prop_assert!(distance(&snapped) <= distance(other.as_slice()) * (1.0 + 1e-6) + 1e-9);
        }
    }

    #[test]
    fn columns_agree_with_the_dimension((schema, rows, _) in world()) {
        let encoder = fitted(&schema, &rows)?;
        let columns = encoder.columns();
        prop_assert_eq!(columns.len(), encoder.dim());
        let different: std::collections::BTreeSet<&String> = columns.iter().collect();
        prop_assert_eq!(different.len(), columns.len());
        let placed: usize = encoder.placed().map(|(block, range, _)| {
            assert_eq!(block.width(), range.len());
            range.len()
        }).sum();
        prop_assert_eq!(placed, encoder.dim());
    }

    #[test]
    fn an_encoder_survives_json((schema, rows, _) in world()) {
        let encoder = fitted(&schema, &rows)?;
        let json = serde_json::to_string(&encoder).unwrap();
        prop_assert_eq!(serde_json::from_str::<Encoder>(&json).unwrap(), encoder);
    }

    #[test]
    fn a_schema_survives_toml((mut schema, _, _) in world(), fixed in any::<bool>()) {
        if fixed {
            schema.features[0].action = Action::Fixed;
        }
        let text = schema.to_toml().unwrap();
        let back = Schema::from_toml(&text);
        prop_assert!(back.is_ok(), "{:?}\n{text}", back);
        prop_assert_eq!(back.unwrap(), schema, "{}", text);
    }
}
