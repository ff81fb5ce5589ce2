//! Claims about measures: the ablation, and the stability with an estimated `gamma`.

use tyrex::counterfactual::Norm;
use tyrex::measure::{Measure, RelaxedStability};

use super::{ClaimVerdict, Decision, PaperClaim, above_zero, all_of, place_title, points};
use crate::report::compare::Entry;
use crate::report::number::{amount, family, method_name, percent};
use crate::report::printed::ABLATION;

/// The ablation: at the same threshold, and at the same cost.
pub(super) fn ablation(entries: &[Entry<'_>]) -> Vec<PaperClaim> {
    let of_ablation: Vec<&Entry<'_>> = entries
        .iter()
        .filter(|entry| entry.experiment.beside.as_deref() == Some(ABLATION))
        .collect();
    let mut claims = Vec::new();
    for norm in [Norm::L1, Norm::L2] {
        for (better, worse) in [("R^", "r_k"), ("r_k", "m")] {
            let curve = |measure: &str| -> Vec<&Entry<'_>> {
                of_ablation
                    .iter()
                    .copied()
                    .filter(|entry| {
                        entry.line.norm == norm && setting(entry, "measure") == Some(measure)
                    })
                    .collect()
            };
            let (better_curve, worse_curve) = (curve(better), curve(worse));
            let Some(place) = better_curve.first().map(|entry| place_title(entry)) else {
                continue;
            };
            let mut claim = |how: &str, (verdict, evidence): Decision| {
                let title = format!("Ablation: {better} beats {worse} at the same {how}");
                claims.push(PaperClaim { title, place: place.clone(), verdict, evidence });
            };
            claim("threshold", at_same_threshold(&better_curve, &worse_curve));
            claim("cost", at_same_cost(&better_curve, &worse_curve));
        }
    }
    claims
}

fn setting<'b>(entry: &'b Entry<'_>, name: &str) -> Option<&'b str> {
    let settings = &entry.line.contender.settings;
    settings.iter().find(|(setting, _)| setting == name).map(|(_, value)| value.as_str())
}

fn at_same_threshold(better: &[&Entry<'_>], worse: &[&Entry<'_>]) -> Decision {
    let (mut verdicts, mut evidence) = (Vec::new(), Vec::new());
    for entry in better {
        let tau = entry.line.contender.tau();
        let Some(other) = worse.iter().find(|other| other.line.contender.tau() == tau) else {
            continue;
        };
        for change in entry.shared_families(other).into_iter().take(1) {
            let Some(difference) = entry.validity_difference(other, change) else { continue };
            verdicts.push(above_zero(&difference));
            let tau = tau.map(|tau| tau.to_string()).unwrap_or_default();
            evidence.push(format!("tau {tau}: {} {}", family(change), points(&difference)));
        }
    }
    (all_of(&verdicts), evidence.join("; "))
}

fn at_same_cost(better: &[&Entry<'_>], worse: &[&Entry<'_>]) -> Decision {
    let worse = curve(worse);
    let (mut verdicts, mut evidence) = (Vec::new(), Vec::new());
    for (cost, validity) in curve(better) {
        let Some(other) = between(&worse, cost) else { continue };
        verdicts.push(if validity > other { ClaimVerdict::Holds } else { ClaimVerdict::DoesNot });
        evidence.push(format!(
            "cost {}: {} against {}",
            amount(cost),
            percent(validity),
            percent(other)
        ));
    }
    if verdicts.is_empty() {
        return (ClaimVerdict::NotTested, "the two have no common range of costs".to_owned());
    }
    let holds = verdicts.iter().filter(|verdict| **verdict == ClaimVerdict::Holds).count();
    let verdict = match holds {
        0 => ClaimVerdict::DoesNot,
        all if all == verdicts.len() => ClaimVerdict::Holds,
        _ => ClaimVerdict::Undecided,
    };
    (verdict, format!("{}; the other curve is interpolated", evidence.join("; ")))
}

/// The height of a curve at `x`, on straight lines between its points.
fn between(curve: &[(f64, f64)], x: f64) -> Option<f64> {
    curve.windows(2).find_map(|pair| {
        let ((left, low), (right, high)) = (pair[0], pair[1]);
        let share = if right > left { (x - left) / (right - left) } else { 0.0 };
        (left..=right).contains(&x).then_some(low + share * (high - low))
    })
}

/// The largest difference of validities at the same cost that counts as the same ballpark.
const BALLPARK: f64 = 0.05;

/// The paper's remark that an estimated `gamma` gives results "in the same ballpark": the curve of
/// validity over cost is nearly the same, independent of the thresholds.
pub(super) fn estimated_gamma(entries: &[Entry<'_>]) -> Vec<PaperClaim> {
    let measure = |entry: &Entry<'_>| {
        entry.line.contender.method.robustness().map(|robustness| robustness.measure)
    };
    let mut seen: Vec<(&str, Norm, &str)> = Vec::new();
    let mut claims = Vec::new();
    for entry in entries.iter().filter(|e| matches!(measure(e), Some(Measure::Stability(_)))) {
        let label = entry.line.contender.label.as_str();
        let key = (entry.experiment.name.as_str(), entry.line.norm, label);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let here = || {
            entries.iter().filter(|other| {
                std::ptr::eq(other.experiment, entry.experiment)
                    && other.line.norm == entry.line.norm
                    && other.line.contender.method.name() == entry.line.contender.method.name()
            })
        };
        let relaxed: Vec<&Entry<'_>> = here()
            .filter(|other| measure(other) == Some(Measure::RelaxedStability(RelaxedStability {})))
            .collect();
        let estimated: Vec<&Entry<'_>> =
            here().filter(|other| other.line.contender.label == label).collect();
        let (verdict, evidence) = is_same_ballpark(&estimated, &relaxed);
        claims.push(PaperClaim {
            title: "An estimated gamma gives results in the same ballpark as R^: at the same \
                    cost, validity within 5 points"
                .to_owned(),
            place: format!("{}, {}", place_title(entry), method_name(label)),
            verdict,
            evidence,
        });
    }
    claims
}

fn is_same_ballpark(estimated: &[&Entry<'_>], relaxed: &[&Entry<'_>]) -> Decision {
    let relaxed = curve(relaxed);
    let (mut largest, mut evidence) = (None::<f64>, Vec::new());
    for (cost, validity) in curve(estimated) {
        let Some(other) = between(&relaxed, cost) else { continue };
        let distance = (validity - other).abs();
        largest = Some(largest.map_or(distance, |largest| largest.max(distance)));
        evidence.push(format!(
            "cost {}: {} against {}",
            amount(cost),
            percent(validity),
            percent(other)
        ));
    }
    match largest {
        None => (ClaimVerdict::NotTested, "the two have no common range of costs".to_owned()),
        Some(largest) if largest <= BALLPARK => (ClaimVerdict::Holds, evidence.join("; ")),
        Some(_) => (ClaimVerdict::DoesNot, evidence.join("; ")),
    }
}

/// Validity over cost, by rising cost.
fn curve(entries: &[&Entry<'_>]) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = entries
        .iter()
        .filter_map(|entry| Some((entry.cost()?, entry.line.validity.first()?.1.mean)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}
