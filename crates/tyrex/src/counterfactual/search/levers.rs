//! The cheapest step to a plane.
//!
//! At a point `y` a field `f` with gradient `g` is nearly `f(y) + g (z - y)`. Over a box this
//! solves, exactly,
//!
//! `min ||z - x||  subject to  f(y) + g (z - y) >= aim,  z feasible,  |z_j - y_j| <= radius`
//!
//! It is the proximal step of `||z - x|| - t f`, with the trade-off `t` that just reaches the
//! aim: for `L1` a knapsack, whose greedy solution is exact and moves few columns; for `L2`
//! `s_j = clip(t g_j)`, with `t` by bisection.
//!
//! The variables are called *levers*: a column, or a one-hot group that moves from the factual's
//! level to the most promising other one. Mixtures of several other levels and rules between
//! features are not modelled; the step is then approximate, and the search tests it like any other.

use crate::action::FeasibleSet;
use crate::counterfactual::Norm;

use super::Slope;
use crate::counterfactual::field::Plane;

/// One variable: a shift `low <= s <= high` away from the factual.
struct Lever {
    /// The increase of the field per unit of shift, by its gradient.
    gain: f64,
    /// The cost per unit of shift.
    weight: f64,
    low: f64,
    high: f64,
    moves: Moves,
}

enum Moves {
    Column(usize),
    /// From the factual's level to another one; each by the distance between off and on.
    Switch {
        from: usize,
        by_from: f64,
        to: usize,
        by_to: f64,
    },
}

/// Halvings of the interval that holds the trade-off.
const HALVINGS: usize = 60;

/// Halvings of the interval that holds the share of the first of two planes.
const SHARES: usize = 12;

/// The point of the step. If the aim cannot be reached within the radius, the point that comes
/// nearest to it.
pub(crate) fn cheapest_step(
    norm: Norm,
    factual: &[f32],
    set: &FeasibleSet,
    slope: &Slope,
    aim: f64,
    radius: f64,
) -> Vec<f32> {
    let here = &slope.at.point;
    let step = |value: f64, gradient: &[f32]| {
        to_plane((norm, factual, set), (here, value, gradient), aim, radius)
    };
    match &slope.planes {
        None => step(slope.at.reading.value, &slope.gradient),
        Some(planes) => to_both(planes, here, aim, step),
    }
}

/// The step to two planes. By duality it is the step to a mixture of both, with the share at which
/// neither is short of the aim: if the first alone needs more, its share has to rise. Under `L1` two
/// steps with that share are cheapest, and the answer lies between them.
fn to_both(
    planes: &[Plane; 2],
    here: &[f32],
    aim: f64,
    step: impl Fn(f64, &[f32]) -> Vec<f32>,
) -> Vec<f32> {
    // In units of distance, so that neither outweighs the other.
    let scales = planes.each_ref().map(|plane| {
        let square: f64 = plane.gradient.iter().map(|&g| f64::from(g).powi(2)).sum();
        if square > 0.0 && square.is_finite() { 1.0 / square.sqrt() } else { 1.0 }
    });
    let missing = |point: &[f32]| -> [f64; 2] {
        std::array::from_fn(|index| {
            let Plane { value, gradient } = &planes[index];
            let steps = gradient.iter().zip(point.iter().zip(here));
            let gain: f64 =
                steps.map(|(&g, (&z, &y))| f64::from(g) * (f64::from(z) - f64::from(y))).sum();
            (aim - value - gain) * scales[index]
        })
    };
    let alone = |index: usize| step(planes[index].value, &planes[index].gradient);
    let mut first = alone(0);
    if missing(&first)[1] <= 0.0 {
        return first;
    }
    let mut second = alone(1);
    if missing(&second)[0] <= 0.0 {
        return second;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..SHARES {
        let share = 0.5 * (low + high);
        let [a, b] = [share * scales[0], (1.0 - share) * scales[1]];
        let pairs = planes[0].gradient.iter().zip(&planes[1].gradient);
        let gradient: Vec<f32> =
            pairs.map(|(&g, &h)| (a * f64::from(g) + b * f64::from(h)) as f32).collect();
        // The aim of the mixture is that of both.
        let value = a * (planes[0].value - aim) + b * (planes[1].value - aim) + aim;
        let point = step(value, &gradient);
        let [of_first, of_second] = missing(&point);
        if of_first > of_second {
            (low, second) = (share, point);
        } else {
            (high, first) = (share, point);
        }
    }
    // Where both miss the same, by the linear models.
    let gap = |point: &[f32]| {
        let [of_first, of_second] = missing(point);
        of_first - of_second
    };
    let (at_first, at_second) = (gap(&first), gap(&second));
    let share = (at_second / (at_second - at_first)).clamp(0.0, 1.0);
    if share.is_nan() {
        return first;
    }
    let between =
        |(&a, &b): (&f32, &f32)| (share * f64::from(a) + (1.0 - share) * f64::from(b)) as f32;
    first.iter().zip(&second).map(between).collect()
}

/// The step to one plane, with its value and its gradient at a point.
fn to_plane(
    (norm, factual, set): (Norm, &[f32], &FeasibleSet),
    (here, value, gradient): (&[f32], f64, &[f32]),
    aim: f64,
    radius: f64,
) -> Vec<f32> {
    let levers = levers(norm, factual, set, (here, gradient), radius);
    // The field at the factual, by the linear model at `here`; levers add to it.
    let at_factual: f64 = value
        + gradient
            .iter()
            .zip(factual.iter().zip(here))
            .map(|(&g, (&x, &y))| f64::from(g) * (f64::from(x) - f64::from(y)))
            .sum::<f64>();
    let shifts = match norm {
        Norm::L1 => knapsack(&levers, aim - at_factual),
        Norm::L2 => clipped(&levers, aim - at_factual),
    };
    let mut point = factual.to_vec();
    for (lever, shift) in levers.iter().zip(shifts) {
        match lever.moves {
            Moves::Column(column) => {
                point[column] = (f64::from(factual[column]) + shift) as f32;
            }
            Moves::Switch { from, by_from, to, by_to } => {
                point[from] = (f64::from(factual[from]) - shift * by_from) as f32;
                point[to] = (f64::from(factual[to]) + shift * by_to) as f32;
            }
        }
    }
    // Levers ignore rules between features, and rounding may leave the box slightly.
    set.project(&mut point);
    point
}

fn levers(
    norm: Norm,
    factual: &[f32],
    set: &FeasibleSet,
    (here, gradient): (&[f32], &[f32]),
    radius: f64,
) -> Vec<Lever> {
    let mut in_group = vec![false; factual.len()];
    let mut levers = Vec::new();
    for group in set.groups() {
        in_group[group.columns.clone()].fill(true);
        let step = |level: usize| f64::from(group.on[level]) - f64::from(group.off[level]);
        let partial = |level: usize| f64::from(gradient[group.columns.start + level]);
        let from = group.current;
        let others = (0..group.columns.len()).filter(|&l| l != from && group.allowed[l]);
        let gain = |level: usize| partial(level) * step(level) - partial(from) * step(from);
        let best = others.reduce(|a, b| if gain(b) > gain(a) { b } else { a });
        if let Some(to) = best.filter(|&to| gain(to).is_finite()) {
            let column = group.columns.start + from;
            // How far the group has left the factual's level.
            let left = (f64::from(factual[column]) - f64::from(here[column])) / step(from);
            levers.push(Lever {
                gain: gain(to),
                weight: norm.of_switch(step(from), step(to)),
                low: (left - radius).clamp(0.0, 1.0),
                high: (left + radius).clamp(0.0, 1.0),
                moves: Moves::Switch {
                    from: column,
                    by_from: step(from),
                    to: group.columns.start + to,
                    by_to: step(to),
                },
            });
        }
    }
    for column in (0..factual.len()).filter(|&column| !in_group[column]) {
        let (x, y) = (f64::from(factual[column]), f64::from(here[column]));
        let low = f64::from(set.lower()[column]).max(y - radius) - x;
        let high = f64::from(set.upper()[column]).min(y + radius) - x;
        let gain = f64::from(gradient[column]);
        if low < high && gain.is_finite() {
            // A lever that gains leaves the factual in the direction of its gain.
            let price = |prices: &[[f64; 2]]| prices[column][usize::from(gain > 0.0)];
            let weight = set.prices().map_or(1.0, price);
            levers.push(Lever { gain, weight, low, high, moves: Moves::Column(column) });
        }
    }
    levers
}

/// The shifts of least `sum weight |s|` that add `missing`: from the cheapest position, the
/// levers with the best gain per cost first.
fn knapsack(levers: &[Lever], missing: f64) -> Vec<f64> {
    let mut shifts: Vec<f64> = levers.iter().map(|l| 0.0_f64.clamp(l.low, l.high)).collect();
    let mut missing = missing - levers.iter().zip(&shifts).map(|(l, s)| l.gain * s).sum::<f64>();
    let mut order: Vec<usize> = (0..levers.len()).collect();
    let worth = |index: &usize| levers[*index].gain.abs() / levers[*index].weight;
    order.sort_by(|a, b| worth(b).total_cmp(&worth(a)).then(a.cmp(b)));
    for index in order {
        let lever = &levers[index];
        if missing <= 0.0 || lever.gain == 0.0 {
            break;
        }
        let end = if lever.gain > 0.0 { lever.high } else { lever.low };
        let all = lever.gain * (end - shifts[index]);
        if all <= missing {
            shifts[index] = end;
        } else {
            shifts[index] += missing / lever.gain;
        }
        missing -= all;
    }
    shifts
}

/// The shifts of least `sum (weight s)^2` that add `missing`: `s = clip(t gain / weight^2)`.
fn clipped(levers: &[Lever], missing: f64) -> Vec<f64> {
    let at = |t: f64| {
        levers.iter().map(move |l| (t * l.gain / (l.weight * l.weight)).clamp(l.low, l.high))
    };
    let added = |t: f64| levers.iter().zip(at(t)).map(|(l, s)| l.gain * s).sum::<f64>();
    if added(0.0) >= missing {
        return at(0.0).collect();
    }
    // The value at which every lever is at its end.
    let ends = levers.iter().filter(|l| l.gain != 0.0).map(|l| {
        let end = if l.gain > 0.0 { l.high } else { l.low };
        (end * l.weight * l.weight / l.gain).abs()
    });
    let end = ends.filter(|t| t.is_finite()).fold(0.0, f64::max);
    // With no lever clipped; from there up, since the end of a lever with almost no gain may be so
    // far that halving would not converge.
    let slope: f64 = levers.iter().map(|l| (l.gain / l.weight).powi(2)).sum();
    let free = (missing - added(0.0)) / slope;
    // With an infinite slope, doubling would not end.
    let (mut low, mut high) = (0.0, if free > 0.0 { free.min(end) } else { end });
    while high < end && added(high) < missing {
        (low, high) = (high, (2.0 * high).min(end));
    }
    if added(high) > missing {
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if added(middle) < missing { low = middle } else { high = middle }
        }
    }
    at(high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counterfactual::search::Candidate;
    use crate::measure::Reading;
    use proptest::prelude::*;

    fn slope(point: Vec<f32>, value: f64, gradient: Vec<f32>) -> Slope {
        let at = Candidate::new(point, Reading { score: 0.0, value });
        Slope { at, gradient, planes: None }
    }

    #[test]
    fn in_l1_the_steepest_column_moves_and_in_l2_all_do() {
        let set = FeasibleSet::everywhere(3);
        let x = [0.0; 3];
        let plane = slope(x.to_vec(), 0.0, vec![3.0, 4.0, 0.0]);
        let sparse = cheapest_step(Norm::L1, &x, &set, &plane, 2.0, 10.0);
        assert_eq!(sparse, [0.0, 0.5, 0.0]);
        let dense = cheapest_step(Norm::L2, &x, &set, &plane, 2.0, 10.0);
        // The foot of the perpendicular: 2 g / |g|^2.
        for (got, want) in dense.iter().zip([6.0 / 25.0, 8.0 / 25.0, 0.0]) {
            assert!((got - want).abs() < 1e-6);
        }
    }

    /// A lever with a negligible gain has a far end, which must not affect the others.
    #[test]
    fn in_l2_a_column_that_hardly_matters_leaves_the_others_alone() {
        let set = FeasibleSet::everywhere(2);
        let x = [0.0; 2];
        for small in [1e-12, 1e-20, 1e-30, 1e-40] {
            let plane = slope(x.to_vec(), 0.0, vec![1.0, small]);
            let step = cheapest_step(Norm::L2, &x, &set, &plane, 0.1, 0.25);
            assert!((step[0] - 0.1).abs() < 1e-6 && step[1].abs() < 1e-6, "{small}: {step:?}");
        }
    }

    #[test]
    fn a_slope_beyond_all_numbers_still_gives_a_step() {
        let set = FeasibleSet::everywhere(2);
        let plane = slope(vec![0.0; 2], 0.0, vec![3e38, 1e-30]);
        for norm in [Norm::L1, Norm::L2] {
            let step = cheapest_step(norm, &[0.0; 2], &set, &plane, 1.0, 0.5);
            assert!(step.iter().all(|x| x.abs() <= 0.5), "{norm:?} {step:?}");
        }
    }

    proptest! {
        /// No random point within the box that reaches both planes is cheaper, if both can be
        /// reached.
        #[test]
        fn no_other_point_of_both_planes_is_cheaper(
            gradients in prop::collection::vec(prop::collection::vec(-2.0..2.0_f32, 4), 2),
            x in prop::collection::vec(-1.0..1.0_f32, 4),
            others in prop::collection::vec(prop::collection::vec(0.0..1.0_f32, 4), 200),
            goal in prop::collection::vec(0.0..1.0_f32, 4), l1: bool,
        ) {
            let norm = if l1 { Norm::L1 } else { Norm::L2 };
            let (set, radius) = (FeasibleSet::everywhere(4), 1.0);
            let in_box = |u: &[f32]| -> Vec<f32> {
                x.iter().zip(u).map(|(x, u)| x + 2.0 * u - 1.0).collect()
            };
            let gain = |g: &[f32], z: &[f32]| -> f64 {
                g.iter().zip(z.iter().zip(&x)).map(|(&g, (&z, &y))| f64::from(g * (z - y))).sum()
            };
            // Both planes pass through a point of the box.
            let reached = in_box(&goal);
            let planes = [0, 1].map(|index| Plane {
                value: 1.0 - gain(&gradients[index], &reached),
                gradient: gradients[index].clone(),
            });
            let holds = |z: &[f32], slack: f64| {
                planes.iter().all(|p| p.value + gain(&p.gradient, z) >= 1.0 - slack)
            };
            let mut slope = slope(x.clone(), 0.0, gradients[0].clone());
            slope.planes = Some(planes.clone());
            let z = cheapest_step(norm, &x, &set, &slope, 1.0, radius);
            prop_assert!(holds(&z, 1e-2), "{:?}", z);
            for point in others.iter().map(|u| in_box(u)).chain([reached]) {
                if holds(&point, 0.0) {
                    prop_assert!(norm.distance(&z, &x) <= norm.distance(&point, &x) + 1e-2);
                }
            }
        }

        /// No random point within the box that reaches the aim is cheaper.
        #[test]
        fn no_other_point_is_cheaper(
            gradient in prop::collection::vec(-2.0..2.0_f32, 4),
            x in prop::collection::vec(-1.0..1.0_f32, 4),
            y in prop::collection::vec(-1.0..1.0_f32, 4),
            others in prop::collection::vec(prop::collection::vec(0.0..1.0_f32, 4), 50),
            share in 0.0..0.99_f64, radius in 0.1..1.0_f64, l1: bool,
        ) {
            let norm = if l1 { Norm::L1 } else { Norm::L2 };
            let set = FeasibleSet::everywhere(4);
            let plane = slope(y.clone(), 0.0, gradient.clone());
            let gain = |z: &[f32]| -> f64 {
                gradient.iter().zip(z.iter().zip(&y)).map(|(&g, (&z, &y))| f64::from(g * (z - y))).sum()
            };
            let most: f64 = gradient.iter().map(|g| f64::from(g.abs()) * radius).sum();
            let aim = share * most;
            let z = cheapest_step(norm, &x, &set, &plane, aim, radius);
            prop_assert!(gain(&z) >= aim - 1e-4, "{} {}", gain(&z), aim);
            for other in others {
                let point: Vec<f32> = y.iter().zip(&other)
                    .map(|(y, u)| y + radius as f32 * (2.0 * u - 1.0)).collect();
                if gain(&point) >= aim {
                    prop_assert!(norm.distance(&z, &x) <= norm.distance(&point, &x) + 1e-4);
                }
            }
        }
    }
}
