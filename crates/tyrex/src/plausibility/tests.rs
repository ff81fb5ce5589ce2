use rand::RngExt as _;

use super::*;
use crate::data::schema::Schema;
use crate::data::{Row, Value};
use crate::neighbourhood::normal;

/// A standard normal number.
fn gauss(rng: &mut crate::seed::Rng) -> f64 {
    normal::quantile(rng.random_range(1e-12..1.0))
}

/// A mixture of two Gaussians in the plane: 0.3 N((0, 0), [[1, 0.8], [0.8, 1]]) and
/// 0.7 N((5, 1), I / 4).
fn known(count: usize, seed: u64) -> Points {
    let mut rng = Seed(seed).rng();
    let mut points = Points::new(2);
    for _ in 0..count {
        let (a, b) = (gauss(&mut rng), gauss(&mut rng));
        let (x, y) = if rng.random_range(0.0..1.0) < 0.3 {
            (a, 0.8 * a + 0.6 * b)
        } else {
            (5.0 + 0.5 * a, 1.0 + 0.5 * b)
        };
        points.push(&[x as f32, y as f32]);
    }
    points
}

fn known_log_density(x: f64, y: f64) -> f64 {
    let normal = |square: f64, determinant: f64| {
        (-0.5 * square).exp() / (2.0 * std::f64::consts::PI * determinant.sqrt())
    };
    let first = (x * x - 1.6 * x * y + y * y) / 0.36;
    let second = ((x - 5.0).powi(2) + (y - 1.0).powi(2)) / 0.25;
    (0.3 * normal(first, 0.36) + 0.7 * normal(second, 0.0625)).ln()
}

#[test]
fn a_known_mixture_is_recovered() {
    let fitted = Plausibility::fit_numbers(&known(8000, 1), Seed(0)).unwrap();
    assert_eq!(fitted.size().0, 2);
    // The divergence from the truth to the fit: half a nat per free parameter over the rows, 11 of
    // 6000 rows, is .001; the ridge adds to it.
    let fresh = known(4000, 2);
    let excess: Vec<f64> = fresh
        .rows()
        .map(|row| {
            known_log_density(f64::from(row[0]), f64::from(row[1])) - fitted.log_density(row)
        })
        .collect();
    let mean = excess.iter().sum::<f64>() / excess.len() as f64;
    assert!((-0.002..0.01).contains(&mean), "{mean}");
}

#[test]
fn it_integrates_to_one() {
    let fitted = Plausibility::fit_numbers(&known(500, 3), Seed(0)).unwrap();
    let step = 0.05;
    let mut total = 0.0;
    for i in -200..300_i16 {
        for j in -200..200_i16 {
            let point = [f32::from(i) * 0.05, f32::from(j) * 0.05];
            total += fitted.log_density(&point).exp() * step * step;
        }
    }
    assert!((total - 1.0).abs() < 1e-3, "{total}");
}

const SCHEMA: &str = r#"
format_version = 1
[label]
column = "y"
favourable = 1
[[feature]]
name = "age"
kind = "numeric"
[[feature]]
name = "debt"
kind = "numeric"
missing = "level"
[[feature]]
name = "colour"
kind = "categorical"
levels = ["red", "green", "blue"]
[[feature]]
name = "member"
kind = "flag"
levels = ["no", "yes"]
[[feature]]
name = "grade"
kind = "ordinal"
levels = [1, 2, 4]
"#;

/// Rows of all kinds of features, and their encoder.
fn mixed(count: usize) -> (Encoder, Points) {
    let schema = Schema::from_toml(SCHEMA).unwrap();
    let mut rng = Seed(7).rng();
    let rows: Vec<Row> = (0..count)
        .map(|_| {
            let age = 40.0 + 10.0 * gauss(&mut rng);
            let young = age < 40.0;
            let debt = if rng.random_range(0.0..1.0) < 0.3 {
                Value::Missing
            } else {
                Value::Number(2.0 * age + 5.0 * gauss(&mut rng))
            };
            let colour = match rng.random_range(0..10) {
                0..6 if young => "red",
                0..6 => "blue",
                _ => "green",
            };
            let member = if rng.random_range(0.0..1.0) < 0.8 { "yes" } else { "no" };
            let grade = [1.0, 2.0, 4.0][rng.random_range(0..3)];
            Row::from_checked(vec![age.into(), debt, colour.into(), member.into(), grade.into()])
        })
        .collect();
    let all: Vec<&Row> = rows.iter().collect();
    let encoder = Encoder::fit(&schema, &all).unwrap();
    let points = encoder.encode_rows(&rows).unwrap();
    (encoder, points)
}

#[test]
fn the_gradient_is_that_of_finite_differences_at_relaxed_points_too() {
    let (encoder, points) = mixed(600);
    let fitted = Plausibility::fit(&encoder, &points, Seed(0)).unwrap();
    let mut rng = Seed(8).rng();
    let mut gradient = vec![0.0; points.dim()];
    for trial in 0..40 {
        // Between two rows.
        let [a, b] = [0, 1].map(|_| points.row(rng.random_range(0..points.len())));
        let share: f32 = rng.random_range(0.0..1.0);
        let x: Vec<f32> = a.iter().zip(b).map(|(a, b)| a + share * (b - a)).collect();
        let value = fitted.log_density_and_gradient(&x, &mut gradient);
        assert!((value - fitted.log_density(&x)).abs() < 1e-9);
        for column in 0..x.len() {
            let (mut above, mut below) = (x.clone(), x.clone());
            above[column] += 3e-4;
            below[column] -= 3e-4;
            let width = f64::from(above[column]) - f64::from(below[column]);
            let slope = (fitted.log_density(&above) - fitted.log_density(&below)) / width;
            let own = gradient[column];
            assert!(
                (slope - own).abs() < 2e-3 * (1.0 + own.abs()),
                "{trial}, column {column}: {own}, not {slope}"
            );
        }
    }
}

#[test]
fn impossible_combinations_have_low_p_values() {
    let (encoder, points) = mixed(2000);
    let fitted = Plausibility::fit(&encoder, &points, Seed(0)).unwrap();
    let p_value = |age: f64, debt: Value, colour: &str| {
        let row = vec![age.into(), debt, colour.into(), "yes".into(), 2.0.into()];
        fitted.p_value(encoder.encode(&Row::from_checked(row)).unwrap().as_slice())
    };
    // Debts are about twice the age; the young are red, the old blue.
    assert!(p_value(35.0, 70.0.into(), "red") > 0.3);
    assert!(p_value(35.0, Value::Missing, "red") > 0.3);
    assert!(p_value(35.0, 110.0.into(), "red") < 0.02);
    assert!(p_value(30.0, 60.0.into(), "blue") < 0.5 * p_value(30.0, 60.0.into(), "red"));
    assert!(p_value(90.0, 180.0.into(), "blue") < 0.02);
}

#[test]
fn choices_along_lines_have_the_values_of_their_points() {
    let (encoder, points) = mixed(800);
    let fitted = Plausibility::fit(&encoder, &points, Seed(0)).unwrap();
    let lines: Vec<(usize, usize)> =
        encoder.placed().map(|(_, columns, _)| (columns.start, columns.len())).collect();
    let values = |(start, width): (usize, usize)| -> Vec<f32> {
        (0..7).flat_map(|index| points.row(31 * index)[start..start + width].to_vec()).collect()
    };
    for index in 0..20 {
        let x = points.row(17 * index);
        for (place, &first) in lines.iter().enumerate() {
            let own = values(first);
            let line = Line { start: first.0, width: first.1, values: &own };
            let replaced = |x: &[f32], line: Line<'_>, choice: usize| {
                let mut point = x.to_vec();
                point[line.start..line.start + line.width]
                    .copy_from_slice(&line.values[choice * line.width..(choice + 1) * line.width]);
                point
            };
            for (choice, value) in fitted.along(x, line).into_iter().enumerate() {
                let expected = fitted.log_density(&replaced(x, line, choice));
                assert!((value - expected).abs() < 1e-8, "{value}, not {expected}");
            }
            let Some(&second) = lines.get(place + 1) else { continue };
            let of_second = values(second);
            let other = Line { start: second.0, width: second.1, values: &of_second };
            for (index, value) in fitted.over(x, [line, other], |i| i != 3).into_iter().enumerate()
            {
                let point = replaced(&replaced(x, line, index / 7), other, index % 7);
                let expected = (index != 3).then(|| fitted.log_density(&point));
                assert_eq!(value.is_some(), expected.is_some());
                let miss = value.zip(expected).map_or(0.0, |(a, b)| (a - b).abs());
                assert!(miss < 1e-8, "{value:?}, not {expected:?}");
            }
        }
    }
}

#[test]
fn the_level_is_where_the_p_value_is_reached() {
    let fitted = Plausibility::fit_numbers(&known(400, 4), Seed(0)).unwrap();
    assert_eq!(fitted.held_out.len(), 100);
    let fresh = known(300, 5);
    for alpha in [0.01, 0.05, 0.1, 1.0 / 101.0, 2.0 / 101.0, 0.5, 0.99] {
        let level = fitted.level(alpha).unwrap();
        for row in fresh.rows() {
            let passes = fitted.log_density(row) >= level;
            assert_eq!(passes, fitted.p_value(row) >= alpha - 1e-12, "{alpha}");
        }
    }
    for wrong in [0.0, 0.009, 1.0, -1.0, f64::NAN] {
        assert!(fitted.level(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_share_of_refused_rows_is_the_p_value() {
    // Beta(41, 360) for 400 held-out rows, and 4000 rows that are counted: standard deviation .016.
    let fitted = Plausibility::fit_numbers(&known(1600, 6), Seed(0)).unwrap();
    let fresh = known(4000, 7);
    let refused = fresh.rows().filter(|row| fitted.p_value(row) < 0.1).count();
    assert!((0.05..0.15).contains(&(refused as f64 / 4000.0)), "{refused}");
}

/// With about as many parameters as rows, fitted rows are more usual than others. Rows that were held
/// out are not fitted, so the p-values of fresh rows are uniform all the same; had the held-out rows
/// been fitted, fresh rows would be less usual than these.
#[test]
fn held_out_rows_are_not_fitted() {
    let cloud = |count: usize, rng: &mut crate::seed::Rng| {
        let values = (0..count * 30).map(|_| gauss(rng) as f32).collect();
        Points::from_rows(30, values).unwrap()
    };
    let (mut of_fresh, mut of_own, mut as_leaked) = (0.0, 0.0, 0.0);
    let divisions = 30;
    for division in 0..divisions {
        let mut rng = Seed(100 + division).rng();
        let own = cloud(120, &mut rng);
        let fitted = Plausibility::fit_numbers(&own, Seed(division)).unwrap();
        let mean = |rows: &Points| {
            rows.rows().map(|row| fitted.p_value(row)).sum::<f64>() / rows.len() as f64
        };
        let fresh = cloud(500, &mut rng);
        of_fresh += mean(&fresh) / divisions as f64;
        of_own += mean(&own) / divisions as f64;
        // The p-value among all rows, three quarters of which are fitted.
        let all = fitted.log_densities(&own);
        let below = |x: &[f32]| {
            let here = fitted.log_density(x);
            (1 + all.iter().filter(|own| **own <= here).count()) as f64 / (all.len() + 1) as f64
        };
        as_leaked += fresh.rows().map(below).sum::<f64>() / (500 * divisions) as f64;
    }
    // The mean over 30 divisions with 30 held-out rows each has a standard deviation of .01. A
    // p-value of 30 rows is at least 1/31, so its mean is .516.
    assert!((0.48..0.56).contains(&of_fresh), "{of_fresh}");
    assert!(of_own > of_fresh + 0.04, "{of_own} and {of_fresh}");
    // Had the held-out rows been fitted, the band above would not hold.
    assert!(as_leaked < 0.47, "{as_leaked}");
}

/// No coordinates of rows are above the bound, and where all rows are at the mean with one level it
/// is reached.
#[test]
fn the_bound_of_the_density_counts_the_levels() {
    let (encoder, points) = mixed(600);
    let fitted = Plausibility::fit(&encoder, &points, Seed(0)).unwrap();
    let largest = fitted.log_densities(&points).into_iter().fold(f64::NEG_INFINITY, f64::max);
    assert!(largest <= fitted.peak, "{largest} and {}", fitted.peak);
    // Without the levels the bound would be higher by the sum of their most frequent ones.
    let without: Vec<f64> = fitted.mixture.components.iter().map(|own| own.peak(&[])).collect();
    let without = mixture::log_sum_exp(&without) + fitted.coordinates.log_volume();
    assert!(fitted.peak < without - 0.5, "{} and {without}", fitted.peak);
    // The best row of one component: its mean with its most frequent levels.
    let groups = fitted.coordinates.groups();
    for own in &fitted.mixture.components {
        let mut best = own.mean.clone();
        for group in groups {
            let levels = &own.log_levels[group.clone()];
            let most = levels.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            best.extend(levels.iter().map(|&level| f64::from(u8::from(level == most))));
        }
        assert!((own.value(&best) - own.peak(groups)).abs() < 1e-9);
        assert!(fitted.mixture.log_density(&best) + fitted.coordinates.log_volume() <= fitted.peak);
    }
}

#[test]
fn columns_without_spread_and_equal_rows_have_a_density() {
    let equal = Points::from_rows(3, [0.0, 1.0, 2.0].repeat(60)).unwrap();
    let fitted = Plausibility::fit_numbers(&equal, Seed(0)).unwrap();
    assert!((fitted.p_value(&[0.0, 1.0, 2.0]) - 1.0).abs() < 1e-12);
    assert!(fitted.p_value(&[0.5, 1.0, 2.0]) < 0.1);
    assert!(Plausibility::fit_numbers(&known(39, 1), Seed(0)).is_err());
    let wrong = Points::from_rows(1, vec![f32::NAN; 50]).unwrap();
    assert!(Plausibility::fit_numbers(&wrong, Seed(0)).is_err());
}
