//! Random schemas with rows that fit them.

use proptest::prelude::*;
use tyrex::data::schema::{Encoding, Interval, Label, MissingPolicy, Scaling, Special, SpecialAs};
use tyrex::data::{Encoder, Feature, FeatureKind, Row, Schema, Value};

/// A feature, and a way to draw values it accepts.
fn feature(index: usize) -> impl Strategy<Value = (Feature, BoxedStrategy<Value>)> {
    let name = format!("f{index}");
    (any::<bool>(), scaling(), any::<bool>()).prop_flat_map(move |(missing, scaling, own)| {
        let name = name.clone();
        prop_oneof![numeric(&name), stepped(&name), integer(&name), levels(&name)].prop_map(
            move |(mut feature, values)| {
                let as_is = feature.encoding == Some(Encoding::AsIs);
                feature.scaling = scaling.filter(|_| own && !as_is);
                if missing {
                    feature.missing = Some(MissingPolicy::Level);
                    (feature, prop_oneof![4 => values, 1 => Just(Value::Missing)].boxed())
                } else {
                    (feature, values)
                }
            },
        )
    })
}

fn scaling() -> impl Strategy<Value = Option<Scaling>> {
    prop_oneof![
        Just(None),
        Just(Some(Scaling::MinMax)),
        Just(Some(Scaling::ZScore)),
        Just(Some(Scaling::MatrixMinMax)),
        Just(Some(Scaling::None)),
    ]
}

type Drawn = BoxedStrategy<(Feature, BoxedStrategy<Value>)>;

/// Real numbers, with a range or without.
fn numeric(name: &str) -> Drawn {
    let name = name.to_owned();
    (-1000.0..1000.0, 0.01..1000.0, any::<bool>())
        .prop_map(move |(lower, width, ranged)| {
            let upper = lower + width;
            let mut feature = Feature::new(&name, FeatureKind::Numeric);
            feature.range = ranged.then_some(Interval { lower, upper });
            (feature, (lower..=upper).prop_map(Value::Number).boxed())
        })
        .boxed()
}

/// Multiples of a decimal step.
fn stepped(name: &str) -> Drawn {
    let name = name.to_owned();
    (0..5_usize, -5000..5000_i32, 1..5000_i32)
        .prop_map(move |(which, first, count)| {
            let (step, decimals) = [(0.1, 1), (0.05, 2), (0.25, 2), (0.001, 3), (2.5, 1)][which];
            let multiple = move |n: i32| -> f64 {
                format!("{:.decimals$}", f64::from(n) * step).parse().unwrap()
            };
            let mut feature = Feature::new(&name, FeatureKind::Numeric);
            feature.step = Some(step);
            feature.range =
                Some(Interval { lower: multiple(first), upper: multiple(first + count) });
            let values = (first..=first + count).prop_map(move |n| Value::Number(multiple(n)));
            (feature, values.boxed())
        })
        .boxed()
}

/// Whole numbers, with special values or without.
fn integer(name: &str) -> Drawn {
    let name = name.to_owned();
    (0..1000_i32, 0..100_000_i32, 0..3_u8)
        .prop_map(move |(lower, width, special)| {
            let upper = lower + width;
            let mut feature = Feature::new(&name, FeatureKind::Integer);
            feature.range = Some(Interval { lower: lower.into(), upper: upper.into() });
            let ordinary = (lower..=upper).prop_map(|n| Value::Number(n.into())).boxed();
            let treated = match special {
                0 => return (feature, ordinary),
                1 => SpecialAs::Number,
                _ => SpecialAs::Level,
            };
            feature.special = Some(Special { values: vec![-7.0, -8.0, -9.0], treated });
            let codes = prop_oneof![Just(-7.0), Just(-8.0), Just(-9.0)].prop_map(Value::Number);
            (feature, prop_oneof![3 => ordinary, 1 => codes].boxed())
        })
        .boxed()
}

/// Ordinal, categorical and flag features, in every encoding they have.
fn levels(name: &str) -> Drawn {
    let name = name.to_owned();
    (1..7_usize, any::<bool>(), 0..3_u8, 0..3_u8)
        .prop_map(move |(count, numbers, kind, encoding)| {
            let count = if kind == 2 { 2 } else { count };
            let levels: Vec<Value> = (0..count)
                .map(|i| {
                    if numbers {
                        Value::Number(i as f64 * 3.0 - 4.0)
                    } else {
                        Value::Text(format!("level, \"{i}\""))
                    }
                })
                .collect();
            let kind = match kind {
                0 => FeatureKind::Ordinal { levels: levels.clone() },
                1 => FeatureKind::Categorical { levels: levels.clone() },
                _ => FeatureKind::Flag { values: [levels[0].clone(), levels[1].clone()] },
            };
            let mut feature = Feature::new(&name, kind);
            feature.encoding = match encoding {
                0 => None,
                1 => Some(Encoding::OneHot),
                _ => numbers.then_some(Encoding::AsIs),
            };
            (feature, proptest::sample::select(levels).boxed())
        })
        .boxed()
}

/// A schema, rows that fit it (the encoder is fitted on them), and numbers to make a point of.
pub(crate) fn world() -> impl Strategy<Value = (Schema, Vec<Row>, Vec<f32>)> {
    (1..6_usize, scaling())
        .prop_flat_map(|(count, scaling)| {
            let features: Vec<_> = (0..count).map(feature).collect();
            (features, Just(scaling), any::<bool>())
        })
        .prop_flat_map(|(drawn, scaling, reversed)| {
            let (features, values): (Vec<Feature>, Vec<_>) = drawn.into_iter().unzip();
            let label = Label {
                column: "label".to_owned(),
                favourable: vec![Value::Number(1.0)],
                unfavourable: Vec::new(),
                missing: MissingPolicy::Reject,
            };
            let mut schema = Schema::new(label, features);
            schema.scaling.method = scaling.unwrap_or_default();
            if reversed {
                schema.order = schema.features.iter().rev().map(|f| f.name.clone()).collect();
            }
            let rows = proptest::collection::vec(values, 1..20);
            let coordinates = proptest::collection::vec(-3.0..3.0_f32, 60);
            (Just(schema), rows, coordinates)
        })
        .prop_map(|(schema, values, coordinates)| {
            let rows =
                values.into_iter().map(|values| Row::new(&schema, values).unwrap()).collect();
            (schema, rows, coordinates)
        })
}

/// Every numeric column needs one number to be fitted on, which all-missing columns lack.
pub(crate) fn fitted(schema: &Schema, rows: &[Row]) -> Result<Encoder, TestCaseError> {
    Encoder::fit(schema, &rows.iter().collect::<Vec<_>>()).map_err(|error| {
        assert!(error.to_string().contains("to fit the scaling"), "{error}");
        TestCaseError::reject("a column without numbers")
    })
}

/// Equal, but for real numbers without a step, which may differ by 1e-5 of the range.
pub(crate) fn same(schema: &Schema, rows: &[Row], a: &Row, b: &Row) -> bool {
    schema.features.iter().enumerate().all(|(index, feature)| {
        let (a, b) = (&a.values()[index], &b.values()[index]);
        // One scale for the whole matrix is as coarse as all its columns together.
        let matrix = schema.scaling(feature) == Scaling::MatrixMinMax;
        let numbers = || {
            let of_row = |row: &Row| {
                let all = row.values().iter().enumerate();
                let own = all.filter(|(other, _)| matrix || *other == index);
                own.filter_map(|(_, value)| value.number()).collect::<Vec<f64>>()
            };
            rows.iter().flat_map(of_row)
        };
        match (a, b) {
            (Value::Number(a), Value::Number(b))
                if feature.kind == FeatureKind::Numeric && feature.step.is_none() =>
            {
                let span = match feature.range {
                    Some(range) if !matrix => range.upper - range.lower,
                    _ => numbers().fold(f64::MIN, f64::max) - numbers().fold(f64::MAX, f64::min),
                };
                // Without scaling an f32 holds the number to 1e-7 of its size, not of the range.
                let size = a.abs().max(1.0);
                (a - b).abs() <= 1e-5 * span + 1e-6 * size
            }
            (a, b) => a == b,
        }
    })
}
