use super::*;

/// Rows of two numbers and one group of two levels.
fn rows(seed: u64, count: usize) -> Vec<f64> {
    let mut rng = Seed(seed).rng();
    let mut flat = Vec::new();
    for index in 0..count {
        let far = if index % 3 == 0 { 4.0 } else { 0.0 };
        let u: f64 = rng.random_range(-1.0..1.0);
        let v: f64 = rng.random_range(-1.0..1.0);
        let level = f64::from(u8::from(rng.random_range(0.0..1.0) < 0.2 + far / 8.0));
        flat.extend([far + u, u + 0.2 * v, level, 1.0 - level]);
    }
    flat
}

#[expect(clippy::single_range_in_vec_init, reason = "one group: the columns 0 and 1")]
fn sample(flat: &[f64]) -> Sample<'_> {
    Sample { coordinates: flat, numbers: 2, width: 4, groups: &[0..2] }
}

#[test]
fn a_step_never_lowers_the_objective() {
    let flat = rows(1, 600);
    let sample = sample(&flat);
    let frequencies = sample.frequencies();
    for (count, rank) in [(1, 0), (1, 1), (3, 2), (5, 1)] {
        let mut mixture = sample.start(count, rank, Seed(2));
        let mut last = f64::NEG_INFINITY;
        for step in 0..60 {
            let (sums, likelihood) = sample.expect(&mixture);
            let objective = likelihood + prior(&mixture, &frequencies);
            assert!(objective >= last - 1e-7, "{count} {rank}, step {step}: {objective} {last}");
            last = objective;
            mixture = sample.maximise(&mixture, &sums, &frequencies);
        }
    }
}

#[test]
fn the_weights_and_the_levels_sum_to_one() {
    let flat = rows(3, 300);
    let mixture = fit(&sample(&flat), Seed(0));
    let weights: f64 = mixture.components.iter().map(|own| own.log_weight().exp()).sum();
    assert!((weights - 1.0).abs() < 1e-12, "{weights}");
    for own in &mixture.components {
        let total: f64 = own.log_levels.iter().map(|log| log.exp()).sum();
        assert!((total - 1.0).abs() < 1e-12, "{total}");
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let flat = rows(4, 1000);
    let fit_on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mixture = pool.install(|| fit(&sample(&flat), Seed(5)));
        mixture.log_density(&[0.3, 0.1, 1.0, 0.0]).to_bits()
    };
    assert_eq!(fit_on(1), fit_on(4));
}

#[test]
fn more_components_are_found_where_there_are_more_clusters() {
    let mut rng = Seed(9).rng();
    let mut cluster = |centre: f64| -> Vec<f64> {
        (0..400)
            .flat_map(|_| {
                let mut near =
                    || centre + rng.random_range(-0.2..0.2) + rng.random_range(-0.2..0.2);
                [near(), near(), 1.0, 0.0]
            })
            .collect()
    };
    let one = cluster(0.0);
    let four: Vec<f64> = [-6.0, -2.0, 2.0, 6.0].into_iter().flat_map(&mut cluster).collect();
    assert_eq!(fit(&sample(&one), Seed(0)).components.len(), 1);
    assert_eq!(fit(&sample(&four), Seed(0)).components.len(), 4);
}
