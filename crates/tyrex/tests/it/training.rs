//! Training: it learns, it follows its parameters, and one seed gives the same bits.

use std::ops::ControlFlow;

use rand::RngExt;
use tyrex::model::train::{
    ClassWeights, EarlyStopping, Initialisation, Job, OutputLayer, Schedule, Trainer,
};
use tyrex::model::{Activation, Examples, Mlp, Model, TrainParams, Trained, train, train_all};
use tyrex::{Points, Seed};

/// Points in the unit square, labelled by the diagonal they are on: no line separates them.
fn exclusive_or(count: usize, seed: u64) -> (Points, Vec<u32>) {
    let mut rng = Seed(seed).rng();
    let mut points = Points::new(2);
    let mut labels = Vec::new();
    for _ in 0..count {
        let (x, y) = (rng.random::<f32>(), rng.random::<f32>());
        points.push(&[x, y]);
        labels.push(u32::from((x > 0.5) != (y > 0.5)));
    }
    (points, labels)
}

fn small() -> TrainParams {
    TrainParams { hidden: vec![16, 16], epochs: 60, learning_rate: 0.01, ..TrainParams::paper() }
}

fn accuracy(trained: &Trained, points: &Points, labels: &[u32]) -> f64 {
    let scores = trained.network.score(points);
    let right = scores.iter().zip(labels).filter(|(s, y)| u32::from(**s >= 0.5) == **y).count();
    right as f64 / labels.len() as f64
}

#[test]
fn every_activation_and_initialisation_learns_what_no_line_can() {
    let (points, labels) = exclusive_or(600, 1);
    let (fresh, truth) = exclusive_or(600, 2);
    // The identity is a line, and plain sigmoids are slow to leave theirs.
    let slow = [Activation::Identity, Activation::Sigmoid];
    for activation in Activation::ALL.into_iter().filter(|a| !slow.contains(a)) {
        let params = TrainParams { activation, ..small() };
        let trained = train(Examples::new(&points, &labels), &params, Seed(7)).unwrap();
        let share = accuracy(&trained, &fresh, &truth);
        assert!(share > 0.93, "{activation:?}: {share}");
    }
    for initialisation in
        [Initialisation::GlorotNormal, Initialisation::HeUniform, Initialisation::HeNormal]
    {
        let params = TrainParams { initialisation, ..small() };
        let trained = train(Examples::new(&points, &labels), &params, Seed(7)).unwrap();
        assert!(accuracy(&trained, &fresh, &truth) > 0.93, "{initialisation:?}");
    }
}

#[test]
fn what_is_trained_is_what_its_layers_say() {
    let (points, labels) = exclusive_or(100, 1);
    for activation in Activation::ALL {
        for hidden in [vec![], vec![1], vec![3], vec![17], vec![5, 3], vec![16, 16]] {
            let params = TrainParams { activation, hidden, epochs: 5, ..small() };
            let network = train(Examples::new(&points, &labels), &params, Seed(7)).unwrap().network;
            // Lanes of a line that belong to no unit must not have learnt anything.
            let again = Mlp::new(2, &network.layers(), network.output()).unwrap();
            assert_eq!(network, again, "{activation:?} {:?}", params.hidden);
        }
    }
}

#[test]
fn a_softmax_learns_three_classes() {
    let mut rng = Seed(4).rng();
    let mut points = Points::new(2);
    let mut labels = Vec::new();
    for index in 0..600 {
        let class = index % 3;
        let angle = class as f32 * 2.1;
        points.push(&[
            angle.cos() + rng.random_range(-0.6..0.6),
            angle.sin() + rng.random_range(-0.6..0.6),
        ]);
        labels.push(class as u32);
    }
    let output = OutputLayer::Softmax { classes: 3, favourable: 2 };
    let params = TrainParams { output, ..small() };
    let trained = train(Examples::new(&points, &labels), &params, Seed(1)).unwrap();
    assert!(trained.history.last().unwrap().accuracy > 0.97);
    let scores = trained.network.score(&points);
    let right = scores.iter().zip(&labels).filter(|(s, y)| (**s >= 0.5) == (**y == 2)).count();
    assert!(right > 580, "{right}");
}

#[test]
fn one_seed_gives_the_same_bits_on_any_number_of_threads() {
    let (points, labels) = exclusive_or(331, 3);
    let params = TrainParams { dropout: 0.1, l2: 1e-4, epochs: 5, ..small() };
    let rows: Vec<usize> = (0..331).filter(|row| row % 7 != 0).collect();
    let jobs: Vec<Job> = (0..7)
        .map(|index| Job {
            examples: match index % 2 {
                0 => Examples::new(&points, &labels),
                _ => Examples::new(&points, &labels).with_rows(&rows),
            },
            params: &params,
            seed: Seed(5).index(index),
            start: None,
        })
        .collect();
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| train_all(&jobs, |_, _| ControlFlow::Continue(())).unwrap())
    };
    let one = on(1);
    assert_eq!(one, on(2));
    assert_eq!(one, on(5));
    assert_ne!(one[0].network, one[2].network, "other seeds give other networks");
}

/// Trains on all rows at once, so that only the loss matters and not the order of rows.
fn in_one_batch(examples: Examples, params: &TrainParams, seed: Seed) -> Trained {
    let params = TrainParams { batch: examples.points.len(), epochs: 30, ..params.clone() };
    train(examples, &params, seed).unwrap()
}

/// The largest difference between the scores of two networks.
fn difference(a: &Trained, b: &Trained, points: &Points) -> f32 {
    let pairs = a.network.score(points).into_iter().zip(b.network.score(points));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn a_row_of_weight_zero_is_a_row_left_out() {
    let (points, labels) = exclusive_or(200, 8);
    let weights: Vec<f32> = (0..200).map(|row| f32::from(u8::from(row % 4 != 0))).collect();
    let rows: Vec<usize> = (0..200).filter(|row| row % 4 != 0).collect();
    let examples = Examples::new(&points, &labels);
    // Adam forgives the constant factor between the two losses, but for its epsilon.
    let weighted = in_one_batch(examples.with_weights(&weights), &small(), Seed(1));
    let left_out = in_one_batch(examples.with_rows(&rows), &small(), Seed(1));
    let all = in_one_batch(examples, &small(), Seed(1));
    assert!(difference(&weighted, &left_out, &points) < 1e-3);
    assert!(difference(&weighted, &all, &points) > 1e-2);
}

#[test]
fn class_weights_move_the_balance() {
    let (points, mut labels) = exclusive_or(400, 9);
    let mut rng = Seed(2).rng();
    for label in &mut labels {
        // Few favourable rows, and noise, so that the balance has something to decide.
        *label = u32::from(*label == 1 && rng.random_bool(0.4));
    }
    let favourable = |class_weights| {
        let params = TrainParams { class_weights, ..small() };
        let trained = train(Examples::new(&points, &labels), &params, Seed(3)).unwrap();
        trained.network.score(&points).iter().filter(|s| **s >= 0.5).count()
    };
    let plain = favourable(ClassWeights::None);
    let balanced = favourable(ClassWeights::Balanced);
    let given = favourable(ClassWeights::Given(vec![1.0, 20.0]));
    assert!(plain < balanced && balanced < given, "{plain} {balanced} {given}");
}

#[test]
fn l2_shrinks_weights_and_dropout_ends_with_training() {
    let (points, labels) = exclusive_or(300, 10);
    let norm = |params: &TrainParams| {
        let trained = train(Examples::new(&points, &labels), params, Seed(1)).unwrap();
        // Used twice, a network gives the same answer: nothing is dropped any more.
        assert_eq!(trained.network.score(&points), trained.network.score(&points));
        let layers = trained.network.layers();
        layers.iter().flat_map(|l| &l.weights).map(|w| f64::from(w * w)).sum::<f64>()
    };
    let plain = norm(&small());
    assert!(norm(&TrainParams { l2: 1e-2, ..small() }) < 0.5 * plain);
    let dropped = TrainParams { hidden: vec![64, 64], dropout: 0.2, ..small() };
    let trained = train(Examples::new(&points, &labels), &dropped, Seed(1)).unwrap();
    assert!(accuracy(&trained, &points, &labels) > 0.9);
}

#[test]
fn early_stopping_keeps_the_best_epoch() {
    let (points, mut labels) = exclusive_or(300, 11);
    let mut rng = Seed(6).rng();
    for label in &mut labels {
        if rng.random_bool(0.3) {
            *label = 1 - *label;
        }
    }
    let stopping = EarlyStopping { fraction: 0.3, patience: 4, min_delta: 0.0 };
    let params = TrainParams {
        hidden: vec![64, 64],
        epochs: 200,
        early_stopping: Some(stopping),
        ..small()
    };
    let trained = train(Examples::new(&points, &labels), &params, Seed(1)).unwrap();
    assert!(trained.history.len() < 200, "noise cannot be learnt for 200 epochs");
    assert_eq!(trained.history.len(), trained.kept_epoch + 1 + 4);
    let losses: Vec<f64> = trained.history.iter().map(|r| r.held_out_loss.unwrap()).collect();
    let lowest = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(losses[trained.kept_epoch], lowest);
}

#[test]
fn schedules_end_where_they_say() {
    let (points, labels) = exclusive_or(64, 12);
    let examples = Examples::new(&points, &labels);
    let with = |schedule| {
        let params = TrainParams { schedule, epochs: 4, ..small() };
        train(examples, &params, Seed(1)).unwrap().network
    };
    let constant = with(Schedule::Constant);
    // A factor of 1 is not a schedule at all.
    assert_eq!(constant, with(Schedule::Exponential { factor: 1.0 }));
    assert_eq!(constant, with(Schedule::Step { every: 2, factor: 1.0 }));
    assert_eq!(constant, with(Schedule::Cosine { floor: 1.0 }));
    // A drop that comes after the last epoch changes nothing; one before it does.
    assert_eq!(constant, with(Schedule::Step { every: 4, factor: 0.1 }));
    assert_ne!(constant, with(Schedule::Step { every: 3, factor: 0.1 }));
    assert_ne!(constant, with(Schedule::Cosine { floor: 0.0 }));
    assert_eq!(
        with(Schedule::Step { every: 1, factor: 0.5 }),
        with(Schedule::Exponential { factor: 0.5 })
    );
}

#[test]
fn a_watcher_can_end_training_early() {
    let (points, labels) = exclusive_or(64, 13);
    let params = small();
    let job = Job::new(Examples::new(&points, &labels), &params, Seed(1));
    let trained = train_all(&[job], |_, report| match report.epoch {
        2 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .unwrap();
    assert_eq!(trained[0].history.len(), 3);
    let three = TrainParams { epochs: 3, ..small() };
    assert_eq!(
        trained[0].network,
        train(job.examples, &three, Seed(1)).unwrap().network,
        "stopping after three epochs is training for three"
    );
}

#[test]
fn training_goes_on_from_the_network_it_is_given() {
    let (points, labels) = exclusive_or(200, 15);
    let examples = Examples::new(&points, &labels);
    for output in [OutputLayer::Sigmoid, OutputLayer::Softmax { classes: 2, favourable: 1 }] {
        let params = TrainParams { output, epochs: 40, ..small() };
        let before = train(examples, &params, Seed(0)).unwrap();
        let few = TrainParams { epochs: 3, ..params };
        let job =
            |seed| Job { start: Some(&before.network), ..Job::new(examples, &few, Seed(seed)) };
        // No step, no change.
        assert_eq!(Trainer::of(&job(1)).unwrap().network(), before.network);
        let run = |seed| job(seed).run(|_| ControlFlow::Continue(())).unwrap();
        let after = run(1);
        assert_eq!(after, run(1));
        assert_ne!(after.network, before.network);
        assert_ne!(after.network, run(2).network, "the order of the rows comes from the seed");
        // It starts where the other ended, far below where new weights start.
        let first = after.history[0].loss;
        let (start, end) = (before.history[0].loss, before.history[39].loss);
        assert!(first < f64::midpoint(start, end), "{first} {start} {end}");
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let jobs: Vec<Job> = (0..5).map(job).collect();
            pool.install(|| train_all(&jobs, |_, _| ControlFlow::Continue(())).unwrap())
        };
        assert_eq!(on(1), on(3));
    }
}

#[test]
fn a_network_that_does_not_fit_is_no_start() {
    let (points, labels) = exclusive_or(40, 16);
    let examples = Examples::new(&points, &labels);
    let params = TrainParams { epochs: 1, ..small() };
    let before = train(examples, &params, Seed(0)).unwrap().network;
    let wider = Points::zeros(40, 3);
    let softmax = OutputLayer::Softmax { classes: 2, favourable: 1 };
    for (examples, params, expected) in [
        (
            Examples::new(&wider, &labels),
            params.clone(),
            "inputs of the network to start from, one for each coordinate of the rows: expected \
             3, got 2",
        ),
        (
            examples,
            TrainParams { hidden: vec![16], ..params.clone() },
            "parameter `hidden` is [16], expected [16, 16], the layers of the network to start from",
        ),
        (
            examples,
            TrainParams { output: softmax, ..params },
            "parameter `output` is Softmax { classes: 2, favourable: 1 }, expected Sigmoid { \
             favourable: true } of the network to start from",
        ),
    ] {
        let job = Job { start: Some(&before), ..Job::new(examples, &params, Seed(0)) };
        assert_eq!(Trainer::of(&job).err().unwrap().to_string(), expected);
    }
}

#[test]
fn what_cannot_be_trained_is_refused_with_a_reason() {
    let (points, labels) = exclusive_or(20, 14);
    let examples = Examples::new(&points, &labels);
    let refusal =
        |examples: Examples, params: TrainParams| match Trainer::new(examples, &params, Seed(0)) {
            Ok(_) => panic!("accepted"),
            Err(error) => error.to_string(),
        };
    let with = |change: fn(&mut TrainParams)| {
        let mut params = small();
        change(&mut params);
        refusal(examples, params)
    };
    assert_eq!(with(|p| p.epochs = 0), "parameter `epochs` is 0, expected at least 1");
    assert_eq!(with(|p| p.batch = 0), "parameter `batch` is 0, expected at least 1");
    assert_eq!(with(|p| p.hidden = vec![3, 0]), "parameter `hidden` is 0, expected at least 1");
    assert_eq!(
        with(|p| p.learning_rate = -1.0),
        "parameter `learning-rate` is -1, expected a positive number"
    );
    assert_eq!(
        with(|p| p.learning_rate = f64::NAN),
        "parameter `learning-rate` is NaN, expected a positive number"
    );
    assert_eq!(with(|p| p.dropout = 1.0), "parameter `dropout` is 1, expected a number in [0, 1)");
    assert_eq!(with(|p| p.beta2 = 1.0), "parameter `beta2` is 1, expected a number in [0, 1)");
    assert_eq!(with(|p| p.l2 = -0.1), "parameter `l2` is -0.1, expected a number of at least 0");
    assert_eq!(
        with(|p| p.schedule = Schedule::Step { every: 0, factor: 0.5 }),
        "parameter `schedule every` is 0, expected at least 1"
    );
    assert_eq!(
        with(|p| p.output = OutputLayer::Softmax { classes: 3, favourable: 3 }),
        "parameter `favourable` is 3, expected a class below 3"
    );
    assert_eq!(
        with(|p| p.class_weights = ClassWeights::Given(vec![1.0])),
        "parameter `class-weights` is [1.0], expected 2 numbers of at least 0, one per class"
    );
    assert_eq!(
        with(|p| p.early_stopping =
            Some(EarlyStopping { fraction: 0.99, ..EarlyStopping::default() })),
        "training: early stopping would hold out 20 of 20 rows; give more rows or a smaller fraction"
    );
    let ones = vec![1; 20];
    assert_eq!(
        refusal(Examples::new(&points, &ones), small()),
        "training: all rows have the same label; expected at least two classes"
    );
    assert_eq!(
        refusal(Examples::new(&points, &labels[..19]), small()),
        "labels, one per row: expected 20, got 19"
    );
    let mut third = labels.clone();
    third[4] = 2;
    assert_eq!(
        refusal(Examples::new(&points, &third), small()),
        "training: the label of row 4 is 2, expected a class below 2"
    );
    assert_eq!(
        refusal(examples.with_rows(&[0, 20]), small()),
        "training: row 20 was requested, but there are 20"
    );
    assert_eq!(
        refusal(examples.with_rows(&[]), small()),
        "training: there are no rows to learn from"
    );
    let mut broken = points.clone();
    broken.row_mut(3)[1] = f32::NAN;
    assert_eq!(
        refusal(Examples::new(&broken, &labels), small()),
        "training: row 3, encoded column 1 is not a finite number"
    );
    let mut weights = vec![1.0; 20];
    weights[2] = -1.0;
    assert_eq!(
        refusal(examples.with_weights(&weights), small()),
        "training: the weight of row 2 is -1, expected a number of at least 0"
    );
    assert_eq!(
        with(|p| p.hidden = vec![1_000_000_000_000]),
        "parameter `hidden` is [1000000000000], expected widths that make at most 100000000 \
         weights in all"
    );
    assert_eq!(
        with(|p| p.hidden = vec![usize::MAX, 3]),
        "parameter `hidden` is [18446744073709551615, 3], expected widths that make at most \
         100000000 weights in all"
    );
    // Whether it shows in a loss or only in the last weights, a network of nonsense is an error.
    for (learning_rate, epochs) in [(1e30, 60), (1e30, 1), (1e300, 1)] {
        let wild = TrainParams { learning_rate, epochs, batch: 20, ..small() };
        let message = train(examples, &wild, Seed(0)).unwrap_err().to_string();
        assert!(message.starts_with("training: the loss is no longer a number after"), "{message}");
    }
}
