//! Stated probabilities of certificates, beside the behaviour of unseen models.

use rayon::prelude::*;
use tyrex::certificate::{Certificate, Certifier, Retrained, Terms, Verdict};
use tyrex::error::{Error, Result};
use tyrex::metric::Summary;
use tyrex::model::{Model, THRESHOLD};
use tyrex::points::Points;
use tyrex::seed::Seed;

use super::progress::Share;
use super::result::{Certificates, LEAVE_OUT, StatedBin, StatedTier};
use super::setup::Setup;
use super::spec::CertificatesTask;

/// Certifies the counterfactuals of the first base with models of the calibrating ensemble, and
/// judges them by the models that left rows out: the same family, and none seen before.
pub(super) fn run(
    setup: &Setup,
    task: &CertificatesTask,
    seed: Seed,
    share: &Share<'_>,
) -> Result<Certificates> {
    let rows = setup.factuals(0, usize::MAX);
    let mut points = Points::new(setup.train().dim());
    for entrant in &task.entrants {
        for contender in entrant.contenders(task.protocol)? {
            let outcomes = setup.search(&contender, task.norm, 0, &rows, || share(0.0))?;
            for found in outcomes.iter().filter_map(|outcome| outcome.found()) {
                points.push(&found.point);
            }
        }
    }
    let mut models = setup.calibrators();
    models.truncate(task.models);
    let family = setup.calibrators_family();
    let retrained = Retrained {
        models: &models,
        family: &family,
        steered: false,
        search: None,
        likeness: None,
    };
    let certifier = Certifier::new(setup.base(0), Some(retrained), Terms::default())?;
    let rows: Vec<&[f32]> = points.rows().collect();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let certificates: Vec<Certificate> = rows
        .par_iter()
        .enumerate()
        .map(|(index, point)| {
            let before = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if share(before as f64 / rows.len() as f64).is_break() {
                return Err(Error::Cancelled(
                    "the run was stopped; repeat it to continue".to_owned(),
                ));
            }
            certifier.certify(point, seed.derive("certificates").index(index))
        })
        .collect::<Result<_>>()?;
    let judges = setup.judges(0).into_iter().find(|judges| judges.change == LEAVE_OUT);
    let judges: Vec<&dyn Model> = judges.map(|judges| judges.models).unwrap_or_default();
    // For every model, the points it accepts.
    let accepted: Vec<Vec<bool>> = judges
        .iter()
        .map(|model| model.score(&points).iter().map(|score| *score >= THRESHOLD).collect())
        .collect();
    let theorem = certificates.iter().map(|certificate| {
        certificate.theorem().map(|tier| (tier.verdict, tier.validity.probability))
    });
    let ensemble = certificates
        .iter()
        .map(|certificate| certificate.ensemble().map(|tier| (tier.verdict, tier.probability)));
    Ok(Certificates {
        dataset: setup.dataset().to_owned(),
        models: models.len(),
        judges: judges.len(),
        tiers: vec![
            stated("theorem", &theorem.collect::<Vec<_>>(), &accepted, task.bins)?,
            stated("ensemble", &ensemble.collect::<Vec<_>>(), &accepted, task.bins)?,
        ],
    })
}

/// Bins of equal width by the probability stated.
fn stated(
    tier: &str,
    said: &[Option<(Verdict, f64)>],
    accepted: &[Vec<bool>],
    bins: usize,
) -> Result<StatedTier> {
    let mut verdicts = [0; 3];
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); bins];
    for (index, (verdict, probability)) in
        said.iter().enumerate().filter_map(|(index, said)| Some((index, (*said)?)))
    {
        verdicts[match verdict {
            Verdict::Certified => 0,
            Verdict::Empirical => 1,
            Verdict::Vacuous => 2,
        }] += 1;
        let bin = (probability * bins as f64).floor().max(0.0) as usize;
        members[bin.min(bins - 1)].push(index);
    }
    let mut filled = Vec::new();
    for members in members.iter().filter(|members| !members.is_empty()) {
        let share = |model: &Vec<bool>| {
            members.iter().filter(|&&index| model[index]).count() as f64 / members.len() as f64
        };
        let shares: Vec<f64> = accepted.iter().map(share).collect();
        let stated: f64 = members.iter().filter_map(|&index| said[index]).map(|(_, p)| p).sum();
        if let Some(observed) = Summary::of_shares(&shares)? {
            filled.push(StatedBin {
                stated: stated / members.len() as f64,
                certificates: members.len(),
                observed,
            });
        }
    }
    Ok(StatedTier { tier: tier.to_owned(), verdicts, bins: filled })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_what_was_stated_and_what_was_seen() {
        let said = [
            Some((Verdict::Certified, 0.95)),
            Some((Verdict::Certified, 0.85)),
            Some((Verdict::Vacuous, 0.0)),
            Some((Verdict::Empirical, 1.0)),
            None,
        ];
        let accepted =
            vec![vec![true, true, false, true, true], vec![true, false, false, true, true]];
        let tier = stated("ensemble", &said, &accepted, 10).unwrap();
        assert_eq!(tier.verdicts, [2, 1, 1]);
        let seen: Vec<(f64, usize, f64)> =
            tier.bins.iter().map(|bin| (bin.stated, bin.certificates, bin.observed.mean)).collect();
        assert_eq!(seen, [(0.0, 1, 0.0), (0.85, 1, 0.5), (0.975, 2, 1.0)]);
    }
}
