use proptest::prelude::*;
use rand::Rng;

use super::*;
use crate::certificate::{About, Certificate, certify, verify};
use crate::model::trees::{Aggregate, Comparison, Transform, TreeNode};

// ---- the formulas, beside brute force

/// The votes of one tree: level `k` of `levels` with the probability `shares[k]`.
#[derive(Debug, Clone)]
struct Votes {
    shares: Vec<f64>,
}

impl Votes {
    fn levels(&self) -> usize {
        self.shares.len() - 1
    }

    fn draw(&self, rng: &mut impl Rng) -> f64 {
        let mut rest: f64 = rng.random_range(0.0..1.0);
        let level = self.shares.iter().position(|share| {
            rest -= share;
            rest < 0.0
        });
        level.unwrap_or(self.levels()) as f64 / self.levels() as f64
    }

    fn drawn(&self, count: usize, rng: &mut impl Rng) -> Vec<f64> {
        (0..count).map(|_| self.draw(rng)).collect()
    }

    /// `P( S_N > c )`, by adding up the trees one by one.
    fn kept(&self, trees: usize) -> f64 {
        let mut sums = vec![1.0];
        for _ in 0..trees {
            let mut next = vec![0.0; sums.len() + self.levels()];
            for (sum, p) in sums.iter().enumerate() {
                for (level, share) in self.shares.iter().enumerate() {
                    next[sum + level] += p * share;
                }
            }
            sums = next;
        }
        let needed = MAJORITY * (trees * self.levels()) as f64;
        let kept = sums.iter().enumerate().filter(|(sum, _)| *sum as f64 > needed);
        kept.map(|(_, p)| p).sum()
    }

    fn expected(&self, of: impl Fn(f64) -> f64) -> f64 {
        let levels = self.levels() as f64;
        let each = self.shares.iter().enumerate();
        each.map(|(level, share)| share * of(level as f64 / levels)).sum()
    }
}

/// Shares that sum to 1.
fn normal(weights: &[f64]) -> Votes {
    let total: f64 = weights.iter().sum();
    Votes { shares: weights.iter().map(|weight| weight / total).collect() }
}

#[test]
fn votes_show_more_than_forests() {
    // scipy: p = beta.ppf(.05, 330, 171), and binom.sf(50, 100, p)
    let own = [1.0; 100];
    let fresh: Vec<f64> = (0..500).map(|tree| if tree < 330 { 1.0 } else { 0.0 }).collect();
    let (counted, probability) = bound(&own, &fresh, 0.95).unwrap();
    assert_eq!(counted, Counted::Levels { levels: vec![1.0] });
    assert!((probability - 0.992_133_907).abs() < 1e-8, "{probability}");
    let forests = Proportion::new(5, 5).unwrap().lower(0.05).unwrap();
    assert!(forests < 0.55, "{forests}");
    // Votes against, and none for.
    assert!(bound(&own, &[0.0; 50], 0.95).unwrap().1.abs() < 1e-12);
    // A single tree is its own majority.
    let (_, one) = bound(&[1.0], &[1.0; 20], 0.95).unwrap();
    assert!((one - 0.05_f64.powf(1.0 / 20.0)).abs() < 1e-8, "{one}");
    // No vote of the model in use, or of fresh trees.
    assert!(bound(&[0.0; 9], &[1.0; 50], 0.95).is_ok());
    assert!(bound(&own, &[], 0.95).unwrap().1.abs() < 1e-12);
}

#[test]
fn a_confidence_outside_its_range_is_refused() {
    for confidence in [0.0, 1.0, -0.5, f64::NAN] {
        assert!(bound(&[1.0], &[1.0], confidence).is_err(), "{confidence}");
    }
}

proptest! {
    /// Beside the sum over all ways in which the trees can vote.
    #[test]
    fn the_tail_of_levels_is_that_of_all_votes(
        mut units in prop::collection::vec(1..=64_usize, 1..4), trees in 1..6_usize,
        mut shares in prop::collection::vec(0.0..=1.0_f64, 3),
    ) {
        units.sort_unstable();
        units.dedup();
        shares.truncate(units.len());
        shares.sort_by(|a, b| b.total_cmp(a));
        let levels: Vec<f64> = units.iter().map(|unit| *unit as f64 / 64.0).collect();
        let found = kept(&levels, &shares, trees);
        let kinds = levels.len() + 1;
        let mass = |kind: usize| {
            let reach = |kind: usize| if kind == 0 { 1.0 } else { shares.get(kind - 1).copied().unwrap_or(0.0) };
            reach(kind) - reach(kind + 1)
        };
        let mut expected = 0.0;
        for way in 0..kinds.pow(trees as u32) {
            let kinds: Vec<usize> = (0..trees).map(|tree| way / kinds.pow(tree as u32) % kinds).collect();
            let sum: f64 = kinds.iter().map(|kind| if *kind == 0 { 0.0 } else { levels[kind - 1] }).sum();
            if sum > MAJORITY * trees as f64 {
                expected += kinds.iter().map(|kind| mass(*kind)).product::<f64>();
            }
        }
        prop_assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    }

    /// With many trees the tail is bounded, and not far from the one of fewer that are added up.
    #[test]
    fn the_tail_of_many_trees_is_a_bound(share in 0.5..0.7_f64) {
        let many = kept(&[0.25, 1.0], &[0.9, share], EXACT + 1);
        let exact = kept(&[0.25, 1.0], &[0.9, share], EXACT);
        prop_assert!(many <= exact + 0.02, "{many} {exact}");
        prop_assert!(many >= exact - 0.5);
    }

    /// With the true expectation in place of its bound, the tail is above the true one.
    #[test]
    fn the_tail_of_shares_is_a_bound(
        weights in prop::collection::vec(0.0..1.0_f64, 2..9), trees in 1..40_usize,
        tilt in 0.05..20.0_f64,
    ) {
        prop_assume!(weights.iter().sum::<f64>() > 0.1);
        let votes = normal(&weights);
        let expected = votes.expected(|vote| tilted(vote, tilt));
        let failure = (trees as f64 * log_tail(expected, tilt)).exp();
        prop_assert!(1.0 - votes.kept(trees) <= failure * (1.0 + 1e-9) + 1e-12);
        // Less expectation, more failures.
        prop_assert!(log_tail(0.9 * expected, tilt) >= log_tail(expected, tilt));
    }

    #[test]
    fn the_lower_bound_is_that_of_a_scan(
        values in prop::collection::vec(0.0..=1.0_f64, 1..60), stake in 0.01..0.9_f64,
        alpha in 0.01..0.5_f64,
    ) {
        let found = lower(&values, stake, alpha);
        let capital = |m: f64| values.iter().map(|v| 1.0 + stake * (v - m)).product::<f64>();
        let scanned = (0..=20_000)
            .map(|step| f64::from(step) / 2e4)
            .filter(|m| capital(*m) >= 1.0 / alpha)
            .fold(0.0, f64::max);
        prop_assert!((found - scanned).abs() < 6e-5, "{found} {scanned}");
    }

    #[test]
    fn more_votes_show_more(seed in 0..1000_u64) {
        let mut rng = Seed(seed).rng();
        let votes = normal(&[1.0, 1.0, 2.0, 3.0, 1.0]);
        let (own, mut fresh) = (votes.drawn(50, &mut rng), votes.drawn(200, &mut rng));
        let before = bound(&own, &fresh, 0.95).unwrap();
        fresh[0] = 1.0;
        let after = bound(&own, &fresh, 0.95).unwrap();
        prop_assert!(after.1 >= before.1);
        fresh.reverse();
        let turned = bound(&own, &fresh, 0.95).unwrap();
        prop_assert!((turned.1 - after.1).abs() < 1e-9);
    }
}

// ---- the stated confidence, in simulated worlds where the probability is known

/// In `WORLDS` worlds whose votes are drawn by `world`, the share of bounds that exceed the true
/// probability, and the means of the bounds, of those from whole forests, and of the truth.
fn simulated(world: impl Fn(&mut crate::seed::Rng) -> Votes, seed: u64) -> [f64; 4] {
    const WORLDS: usize = 2000;
    const ALPHA: f64 = 0.1;
    let (trees, forests) = (41, 12);
    let (mut wrong, mut sums) = (0, [0.0; 3]);
    for index in 0..WORLDS {
        let mut rng = Seed(seed).index(index).rng();
        let votes = world(&mut rng);
        let own = votes.drawn(trees, &mut rng);
        let fresh = votes.drawn(trees * forests, &mut rng);
        let (_, found) = bound(&own, &fresh, 1.0 - ALPHA).unwrap();
        let truth = votes.kept(trees);
        wrong += usize::from(found > truth + 1e-9);
        let keeps = |votes: &[f64]| votes.iter().sum::<f64>() > MAJORITY * trees as f64;
        let kept = fresh.chunks(trees).filter(|votes| keeps(votes)).count();
        let whole = Proportion::new(kept, forests).unwrap().lower(ALPHA).unwrap();
        for (sum, value) in sums.iter_mut().zip([found, whole, truth]) {
            *sum += value / WORLDS as f64;
        }
    }
    let share = wrong as f64 / WORLDS as f64;
    // Three standard errors.
    assert!(share <= ALPHA + 3.0 * (ALPHA * (1.0 - ALPHA) / WORLDS as f64).sqrt(), "{share}");
    [share, sums[0], sums[1], sums[2]]
}

#[test]
fn whole_votes_keep_the_stated_confidence() {
    let [share, bound, forests, _] = simulated(
        |rng| {
            let p = rng.random_range(0.5..0.8);
            Votes { shares: vec![1.0 - p, p] }
        },
        1,
    );
    assert!(share > 0.03, "a bound this rarely wrong could be higher: {share}");
    assert!(bound > forests + 0.1, "{bound} {forests}");
}

#[test]
fn shares_keep_the_stated_confidence() {
    // Leaves of several rows: votes around a middle, with a standard deviation of 0.1.
    let [_, bound, forests, _] = simulated(
        |rng| {
            let middle = rng.random_range(0.45..0.75);
            let level = |k: u32| -> f64 { (-(f64::from(k) / 10.0 - middle).powi(2) / 0.02).exp() };
            normal(&(0..=10).map(level).collect::<Vec<_>>())
        },
        2,
    );
    assert!(bound > forests, "{bound} {forests}");
}

#[test]
fn mixtures_of_whole_votes_and_shares_keep_the_stated_confidence() {
    // Most leaves are pure. Few have a share, so the model in use may have none.
    let [_, bound, forests, _] = simulated(
        |rng| {
            let (p, some) = (rng.random_range(0.45..0.8), rng.random_range(0.0..0.1));
            normal(&[1.0 - p, some * 0.3, some * 0.5, some * 0.2, p])
        },
        3,
    );
    assert!(bound > forests, "{bound} {forests}");
}

// ---- forests

/// A tree that asks one of two columns, and votes so.
fn tree(rng: &mut impl Rng, bend: f64, share: f32) -> Vec<TreeNode> {
    let (feature, threshold) = (rng.random_range(0..2), rng.random_range(-1.0..1.0_f64) + bend);
    let leaf = |weight| TreeNode::Leaf { weights: vec![(0, weight)] };
    let (comparison, missing) = (Comparison::LessOrEqual, false);
    let threshold = threshold as f32;
    let branch = TreeNode::Branch { feature, comparison, threshold, missing, yes: 1, no: 2 };
    let low = if rng.random_bool(0.2) { share } else { 0.0 };
    vec![branch, leaf(low), leaf(1.0)]
}

fn forest(rng: &mut impl Rng, trees: usize, bend: f64, share: f32) -> TreeEnsemble {
    let trees: Vec<_> = (0..trees).map(|_| tree(rng, bend, share)).collect();
    TreeEnsemble::new(2, &trees, Aggregate::Average, vec![0.0], Transform::Identity).unwrap()
}

fn retrained<'a>(models: &'a [&'a dyn Model], steered: bool) -> super::super::Retrained<'a> {
    super::super::Retrained { models, family: "a new seed", steered, search: None, likeness: None }
}

fn certified(base: &dyn Model, models: &[TreeEnsemble], x: &[f32], steered: bool) -> Certificate {
    let models: Vec<&dyn Model> = models.iter().map(|model| model as &dyn Model).collect();
    let terms = Terms::default().for_model(base);
    let made = certify(base, x, Some(retrained(&models, steered)), &terms, Seed(1)).unwrap();
    assert_eq!(verify(&made, base, Some(retrained(&models, steered))).unwrap(), []);
    made
}

#[test]
fn forests_are_certified_by_their_trees() {
    for share in [0.0, 0.5] {
        let mut rng = Seed(4).rng();
        let base = forest(&mut rng, 100, 0.0, share);
        let fresh: Vec<TreeEnsemble> = (0..5).map(|_| forest(&mut rng, 100, 0.0, share)).collect();
        let certificate = certified(&base, &fresh, &[0.5, 0.4], false);
        let tier = certificate.forest().unwrap();
        assert_eq!((tier.fresh_trees, tier.forests, tier.trees), (500, 5, 100));
        assert_eq!(tier.verdict, Verdict::Certified, "{tier:?}");
        assert!(tier.probability > 0.9, "{tier:?}");
        assert!(share > 0.0 || tier.counted == Counted::Levels { levels: vec![1.0] });
        let ensemble = certificate.ensemble().unwrap();
        assert!(ensemble.probability < 0.55, "five forests show little: {ensemble:?}");
        assert_eq!(certificate.verdict(), Verdict::Certified);
        let words = Tier::from(tier.clone()).claim();
        assert!(words.contains("500 trees of 5 retrained forests"), "{words}");
        assert!(words.contains("a forest of 100 trees that is grown again on the same rows"));
        let rests_on = tier.assumptions[2].to_string();
        assert!(rests_on.contains("other rows are not covered"), "{rests_on}");
        assert!(rests_on.ends_with("(declared)") && rests_on.contains("p = "), "{rests_on}");
        // By the votes themselves.
        let voters: Vec<Voters<'_>> = fresh.iter().map(|each| each.voters().unwrap()).collect();
        let mut votes = Vec::new();
        voters.iter().for_each(|each| each.vote_into(&[0.5, 0.4], &mut votes));
        assert!((votes.iter().sum::<f64>() - tier.votes).abs() < 1e-9);
        // Where most trees vote against, nothing is promised.
        let low = certified(&base, &fresh, &[-0.9, -0.9], false);
        assert_eq!(low.forest().unwrap().verdict, Verdict::Vacuous);
        // Forests that steered the search are not evidence.
        let steered = certified(&base, &fresh, &[0.5, 0.4], true);
        assert_eq!(steered.forest().unwrap().verdict, Verdict::Empirical);
    }
}

#[test]
fn forests_of_different_rows_are_not_certified() {
    let mut rng = Seed(5).rng();
    let base = forest(&mut rng, 100, 0.0, 0.0);
    // All trees of a forest are bent the same way, as the trees grown on one bootstrap are.
    let fresh: Vec<TreeEnsemble> =
        (0..8).map(|k| forest(&mut rng, 100, 0.1 * f64::from(k % 4) - 0.15, 0.0)).collect();
    let certificate = certified(&base, &fresh, &[0.6, 0.6], false);
    let tier = certificate.forest().unwrap();
    assert_eq!(tier.verdict, Verdict::Empirical);
    let About::IndependentTrees { p_value: Some(p), .. } = tier.assumptions[2].about else {
        panic!("{:?}", tier.assumptions)
    };
    assert!(p <= LEVEL, "{p}");
    assert!(tier.assumptions[2].to_string().contains("differ more than their trees explain"));
}

#[test]
fn the_test_rejects_independent_trees_as_often_as_stated() {
    let worlds = 400;
    let p_values: Vec<f64> = (0..worlds)
        .map(|world| {
            let mut rng = Seed(6).index(world).rng();
            let sizes = [7, 12, 9];
            let votes: Vec<f64> =
                (0..28 * 4).map(|_| f64::from(rng.random_range(0..3_u8))).collect();
            permutation_p_value(&votes, &sizes, 4, Seed(world as u64))
        })
        .collect();
    for q in [0.05, 0.25, 0.5] {
        let share = p_values.iter().filter(|p| **p <= q).count() as f64 / worlds as f64;
        let error = (q * (1.0 - q) / worlds as f64).sqrt();
        assert!((share - q).abs() < 4.0 * error, "{q}: {share}");
    }
    // Votes that never differ show nothing.
    assert!((permutation_p_value(&[0.5; 40], &[5, 5], 4, Seed(0)) - 1.0).abs() < 1e-12);
}

#[test]
fn other_models_say_why_they_have_no_forest_tier() {
    let mut rng = Seed(7).rng();
    let base = forest(&mut rng, 10, 0.0, 0.0);
    let boosted =
        TreeEnsemble::new(2, &base.as_given(), Aggregate::Sum, vec![0.0], Transform::Logistic);
    let boosted = boosted.unwrap();
    let reason = |base: &dyn Model, models: &[&dyn Model]| {
        let terms = Terms::default().for_model(base);
        let retrained = (!models.is_empty()).then(|| retrained(models, false));
        let made = certify(base, &[0.0, 0.0], retrained, &terms, Seed(1)).unwrap();
        made.omitted().iter().find(|tier| tier.tier == "forest").map(|tier| tier.reason.clone())
    };
    assert!(reason(&boosted, &[&boosted]).unwrap().contains("boosted trees depend on each other"));
    assert_eq!(reason(&base, &[]).unwrap(), "there are no retrained forests");
    assert!(reason(&base, &[&base, &boosted]).unwrap().contains("are not forests"));
    // A certificate that was made before the tier is verified as it was made.
    let models: [&dyn Model; 2] = [&base, &base];
    let old = Terms { forest: false, ..Terms::default().for_model(&base) };
    let made = certify(&base, &[0.0, 0.0], Some(retrained(&models, false)), &old, Seed(1)).unwrap();
    assert!(!serde_json::to_string(&made).unwrap().contains("forest"));
    assert_eq!(verify(&made, &base, Some(retrained(&models, false))).unwrap(), []);
}
