//! Thresholds, chosen on models that are used for nothing else.

use tyrex::calibrate::{Calibration, CurvePoint, TriedThreshold, choose_by, judged};
use tyrex::counterfactual::Norm;
use tyrex::error::{Error, Result};
use tyrex::model::Model;

use super::contender::Contender;
use super::progress::Share;
use super::result::Calibrated;
use super::setup::Setup;
use super::spec::CalibrationTask;

/// The p-value of the fallback if nothing was shown.
const WEAK: f64 = 0.5;

/// Chooses the threshold of a contender for all bases together: the validity is the mean over the
/// bases. The calibrating models choose; the models of the table only report.
///
/// Thresholds are tried from the largest down, until one is below the goal.
pub(super) fn threshold(
    setup: &Setup,
    task: &CalibrationTask,
    contender: &Contender,
    norm: Norm,
    share: &Share<'_>,
) -> Result<Calibrated> {
    let mut taus = contender.taus(task).to_vec();
    taus.sort_by(|a, b| b.total_cmp(a));
    if (0..setup.bases()).all(|base| setup.factuals(base, 1).is_empty()) {
        return Err(Error::Catalogue {
            name: setup.dataset().to_owned(),
            problem: "no base model rejects a test row with an unfavourable label, expected some \
                      to choose a threshold on"
                .to_owned(),
        });
    }
    let choosing = setup.calibrators().len();
    let mut candidates: Vec<TriedThreshold> = Vec::new();
    let mut calibration = None;
    for (index, &tau) in taus.iter().enumerate() {
        candidates.push(tried(setup, task, &contender.at(tau), norm, |within| {
            share((index as f64 + within) / taus.len() as f64)
        })?);
        let answer = choose_by(&task.goal, candidates.clone(), choosing)?;
        let goes_on = answer.curve.last().is_none_or(|point| {
            let mean = point.validity_choosing.unwrap_or(0.0);
            // If too few are found, a lower threshold finds more.
            point.coverage < task.goal.validity || mean >= task.goal.validity
        });
        calibration = Some(answer);
        if !goes_on {
            break;
        }
    }
    // There is at least one threshold: the experiment was checked.
    let calibration =
        calibration.map_or_else(|| choose_by(&task.goal, Vec::new(), choosing), Ok)?;
    let tau = calibration.tau().unwrap_or_else(|| next_best(&calibration));
    Ok(Calibrated { contender: contender.full_label(), norm, tau, calibration })
}

/// The fallback: the smallest threshold whose p-value is at most one half, which proves nothing but
/// excludes thresholds that are clearly too low, or else the one with the highest validity.
fn next_best(calibration: &Calibration) -> f64 {
    let by_tau = |a: &&CurvePoint, b: &&CurvePoint| a.tau.total_cmp(&b.tau);
    let likely = calibration.curve.iter().filter(|point| point.p_value <= WEAK).min_by(by_tau);
    let validity = |point: &CurvePoint| point.validity_choosing.unwrap_or(0.0);
    let best = || {
        let by_validity = |a: &&CurvePoint, b: &&CurvePoint| validity(a).total_cmp(&validity(b));
        calibration.curve.iter().max_by(by_validity)
    };
    likely.or_else(best).map_or(0.5, |point| point.tau)
}

/// The results of the models for one threshold, the factuals of all bases in one row.
fn tried(
    setup: &Setup,
    task: &CalibrationTask,
    contender: &Contender,
    norm: Norm,
    share: impl Fn(f64) -> std::ops::ControlFlow<()> + Sync,
) -> Result<TriedThreshold> {
    let tau = contender.tau().unwrap_or(0.5);
    let mut all = TriedThreshold { tau, costs: Vec::new(), valid: Vec::new() };
    for base in 0..setup.bases() {
        let rows = setup.factuals(base, task.factuals);
        let within = (base as f64 + 0.5) / setup.bases() as f64;
        let outcomes = setup.search(contender, norm, base, &rows, || share(within))?;
        let mut models: Vec<&dyn Model> = setup.calibrators();
        models.extend(setup.judges(base).into_iter().flat_map(|judges| judges.models));
        let candidate = judged(tau, &outcomes, &models)?;
        all.costs.extend(candidate.costs);
        all.valid.resize(candidate.valid.len(), Vec::new());
        for (all, more) in all.valid.iter_mut().zip(candidate.valid) {
            all.extend(more);
        }
    }
    Ok(all)
}
