//! Guards the kernels: one epoch of training, scoring, input gradients, and relaxed stability
//! with its gradient, of the paper's network (39-128-128-1). `cargo bench -p tyrex`; compare with the last run on the same
//! machine, not with figures from elsewhere.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand::RngExt;
use tyrex::measure::{Gauge, Neighbourhood, RelaxedStability, Sampling};
use tyrex::model::train::Trainer;
use tyrex::model::{DifferentiableModel, Examples, Model, TrainParams, train};
use tyrex::{Points, Seed};

const DIM: usize = 39;

/// Rows in the unit cube and labels that a network can learn.
fn rows(count: usize) -> (Points, Vec<u32>) {
    let mut rng = Seed(1).rng();
    let values = (0..count * DIM).map(|_| rng.random::<f32>()).collect();
    let points = Points::from_rows(DIM, values).expect("whole rows");
    let labels = points.rows().map(|x| u32::from(x[0] + x[1] * x[2] > 0.75)).collect();
    (points, labels)
}

fn training(criterion: &mut Criterion) {
    let (points, labels) = rows(2048);
    let params = TrainParams::paper();
    let mut trainer =
        Trainer::new(Examples::new(&points, &labels), &params, Seed(2)).expect("fine parameters");
    let mut group = criterion.benchmark_group("train");
    group.throughput(Throughput::Elements(2048));
    group.bench_function("epoch/2048x39", |bench| bench.iter(|| trainer.epoch().expect("finite")));
    group.finish();
}

fn scoring(criterion: &mut Criterion) {
    let (points, labels) = rows(1000);
    let params = TrainParams { epochs: 2, ..TrainParams::paper() };
    let network = train(Examples::new(&points, &labels), &params, Seed(2)).expect("fine").network;
    // On one thread: more threads would measure the machine's other work.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    let mut group = criterion.benchmark_group("network");
    group.throughput(Throughput::Elements(1000));
    let mut scores = vec![0.0; 1000];
    group.bench_function("score/1000x39", |bench| {
        pool.install(|| bench.iter(|| network.score_into(black_box(&points), &mut scores)));
    });
    let mut gradients = Points::zeros(1000, DIM);
    let ones = vec![1.0; 1000];
    group.bench_function("gradient/1000x39", |bench| {
        pool.install(|| {
            bench.iter(|| {
                network.vjp_into(black_box(&points), &ones, &mut scores, &mut gradients);
            });
        });
    });
    group.finish();
}

/// What every search does at every step.
fn stability(criterion: &mut Criterion) {
    let (points, labels) = rows(1000);
    let params = TrainParams { epochs: 2, ..TrainParams::paper() };
    let network = train(Examples::new(&points, &labels), &params, Seed(2)).expect("fine").network;
    let mut group = criterion.benchmark_group("stability");
    for samples in [256, 1000] {
        let cloud = Neighbourhood::draw(Sampling::MonteCarlo, DIM, samples, 0.1, Seed(3))
            .expect("fine parameters");
        let gauge = Gauge::new(RelaxedStability {}, &network, &cloud).expect("fits");
        let (mut room, mut gradient) = (gauge.room(), vec![0.0; DIM]);
        let mut at = (0..points.len()).cycle();
        group.throughput(Throughput::Elements(samples as u64));
        group.bench_function(format!("relaxed/{samples}"), |bench| {
            bench.iter(|| {
                let x = points.row(at.next().unwrap_or(0));
                gauge.read_with_gradient_in(&mut room, black_box(x), &mut gradient)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, training, scoring, stability);
criterion_main!(benches);
