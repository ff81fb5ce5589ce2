//! The claims of the paper and the aims of the project, decided from the results for each cell.
//!
//! A cell is a data set and a norm. "At the same validity" means no more than half a point below
//! under either family of retrained models; if several thresholds were tried, the cheapest with the
//! same validity is compared. Costs are compared factual by factual and validities model by model;
//! a claim holds if the 95 % interval of the differences is on its side of zero.

mod measures;

use serde::Serialize;
use tyrex::calibrate::CalibrationVerdict;
use tyrex::counterfactual::{Norm, Protocol};
use tyrex::error::Result;
use tyrex::metric::Summary;

use super::certified;
use super::compare::{Entry, Pair, SAME_VALIDITY, entries};
use super::number::{
    amount, contender_name, counted, family, interval, method_name, percent, percent_with_interval,
    signed,
};
use super::printed;
use crate::experiment::Results;

/// The verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// It holds.
    Holds,
    /// It does not.
    DoesNot,
    /// The interval contains zero.
    Undecided,
    /// The results do not contain it.
    NotTested,
}

impl ClaimVerdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNot => "does not",
            Self::Undecided => "undecided",
            Self::NotTested => "not tested",
        }
    }
}

/// A claim about one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PaperClaim {
    /// The claim.
    pub title: String,
    /// The data set and norm.
    pub place: String,
    /// The verdict.
    pub verdict: ClaimVerdict,
    /// The evidence.
    pub evidence: String,
}

/// A claim that is decided in the same way for every cell.
struct Rule {
    title: &'static str,
    decide: fn(&Place<'_>) -> Decision,
}

type Decision = (ClaimVerdict, String);

const RULES: [Rule; 11] = [
    Rule { title: "min-cost is fragile: fewer survive than of T-Rex:I", decide: is_fragile },
    Rule {
        title: "T-Rex:I reaches the validity of SNS at a lower cost",
        decide: |place| is_cheaper_at_same_validity(place, "trex-i", "sns"),
    },
    Rule { title: "T-Rex:NN is valid more often than NN", decide: beats_nn },
    Rule {
        title: "Aim: calibrated T-Rex:I is valid as often as promised, WI and LO",
        decide: |place| keeps_the_promise(place, "trex-i"),
    },
    Rule {
        title: "Aim: calibrated T-Rex:O is valid as often as promised, WI and LO",
        decide: |place| keeps_the_promise(place, "trex-o"),
    },
    Rule {
        title: "Aim: T-Rex:O costs less than T-Rex:I at the same validity",
        decide: |place| is_cheaper_at_same_validity(place, "trex-o", "trex-i"),
    },
    Rule { title: "Aim: T-Rex:O costs less than T-Rex:NN", decide: is_cheaper_than_neighbours },
    Rule {
        title: "Aim: T-Rex:O costs less than the authors' code at the same validity",
        decide: is_cheaper_than_released,
    },
    Rule {
        title: "Aim: T-Rex:O costs less than others measured for the authors' code, at the \
                same validity",
        decide: is_cheaper_than_measured,
    },
    Rule {
        title: "Aim: T-Rex:E costs less than T-Rex:O at the same validity",
        decide: |place| is_cheaper_at_same_validity(place, "trex-e", "trex-o"),
    },
    Rule {
        title: "Aim: T-Rex:E costs less than margin at the same validity",
        decide: |place| is_cheaper_at_same_validity(place, "trex-e", "margin"),
    },
];

/// All claims, in the order of the report: rule by rule, cell by cell.
pub fn claims(results: &Results) -> Result<Vec<PaperClaim>> {
    let all = entries(results)?;
    let places = places(&all);
    let mut claims = Vec::new();
    for Rule { title, decide } in RULES {
        for place in &places {
            let (verdict, evidence) = decide(place);
            let (title, place) = (title.to_owned(), place.title.clone());
            claims.push(PaperClaim { title, place, verdict, evidence });
        }
    }
    claims.extend(measures::ablation(&all));
    claims.extend(measures::estimated_gamma(&all));
    claims.extend(certified::claims(results));
    Ok(claims)
}

/// A data set and a norm of the paper's tables, with all results for it.
struct Place<'a> {
    title: String,
    beside: &'a str,
    norm: Norm,
    /// The lines of the table itself.
    table: Vec<&'a Entry<'a>>,
    /// Every line of this data set and norm, of any experiment.
    all: Vec<&'a Entry<'a>>,
}

fn places<'a>(entries: &'a [Entry<'a>]) -> Vec<Place<'a>> {
    let mut places: Vec<Place<'a>> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.is_main) {
        let title = place_title(entry);
        if let Some(place) = places.iter_mut().find(|place| place.title == title) {
            place.table.push(entry);
            continue;
        }
        let (world, norm) = (&entry.experiment.world, entry.line.norm);
        let is_same = |other: &&Entry<'_>| {
            let theirs = &other.experiment.world;
            other.line.norm == norm
                && theirs.dataset == world.dataset
                && theirs.variant == world.variant
                && theirs.direction == world.direction
                && theirs.training == world.training
        };
        places.push(Place {
            title,
            beside: entry.experiment.beside.as_deref().unwrap_or_default(),
            norm,
            table: vec![entry],
            all: entries.iter().filter(is_same).collect(),
        });
    }
    places
}

fn place_title(entry: &Entry<'_>) -> String {
    format!("{} {}", entry.experiment.world.dataset, entry.line.norm.name())
}

impl<'a> Place<'a> {
    /// The table's line of a method, as its protocol has it.
    fn line(&self, method: &str) -> Option<&'a Entry<'a>> {
        self.table.iter().copied().find(|entry| is_plain(entry, method))
    }

    /// The lines of a method with any threshold, all else as its protocol has it.
    fn with_any_threshold(&self, method: &str) -> impl Iterator<Item = &'a Entry<'a>> {
        self.all.iter().copied().filter(move |entry| {
            let settings = &entry.line.contender.settings;
            is_of(entry, method)
                && settings.iter().all(|(name, _)| name == "tau" || name == "margin")
        })
    }
}

/// Whether a line is a method's own, not a variant's.
fn is_of(entry: &Entry<'_>, method: &str) -> bool {
    entry.line.contender.label == method && entry.line.contender.protocol != Protocol::Reference
}

fn is_plain(entry: &Entry<'_>, method: &str) -> bool {
    is_of(entry, method) && entry.line.contender.settings.is_empty()
}

fn missing(place: &Place<'_>, methods: &[&str]) -> Decision {
    let absent: Vec<&str> =
        methods.iter().copied().filter(|method| place.line(method).is_none()).collect();
    (ClaimVerdict::NotTested, format!("the table has no line for {}", absent.join(" or of ")))
}

fn is_fragile(place: &Place<'_>) -> Decision {
    let (Some(cheap), Some(robust)) = (place.line("min-cost"), place.line("trex-i")) else {
        return missing(place, &["min-cost", "trex-i"]);
    };
    let mut verdicts = Vec::new();
    let mut evidence = Vec::new();
    for change in cheap.shared_families(robust) {
        let (Some(weak), Some(strong)) = (cheap.validity(change), robust.validity(change)) else {
            continue;
        };
        verdicts.push(match (weak.high, strong.low) {
            _ if weak.mean >= strong.mean => ClaimVerdict::DoesNot,
            (Some(high), Some(low)) if high < low => ClaimVerdict::Holds,
            _ => ClaimVerdict::Undecided,
        });
        evidence.push(format!(
            "{} {} against {}",
            family(change),
            percent_with_interval(&weak),
            percent_with_interval(&strong)
        ));
    }
    (all_of(&verdicts), evidence.join("; "))
}

fn beats_nn(place: &Place<'_>) -> Decision {
    let (Some(robust), Some(plain)) = (place.line("trex-nn"), place.line("nn")) else {
        return missing(place, &["trex-nn", "nn"]);
    };
    let (mut verdicts, mut evidence) = (Vec::new(), Vec::new());
    for change in robust.shared_families(plain) {
        let Some(difference) = robust.validity_difference(plain, change) else { continue };
        verdicts.push(above_zero(&difference));
        evidence.push(format!("{} {}", family(change), points(&difference)));
    }
    let found = [robust, plain].map(|entry| percent(entry.line.coverage.mean));
    evidence.push(format!("found for {} against {}", found[0], found[1]));
    (all_of(&verdicts), evidence.join("; "))
}

fn keeps_the_promise(place: &Place<'_>, method: &str) -> Decision {
    let Some(entry) = place.line(method).filter(|entry| entry.line.contender.calibrated) else {
        return (ClaimVerdict::NotTested, format!("the table has no calibrated line for {method}"));
    };
    let comparison = entry.comparison;
    let chosen = comparison.calibrations.iter().find(|chosen| {
        chosen.contender == entry.line.contender.full_label() && chosen.norm == place.norm
    });
    let promise = chosen.map_or(0.95, |chosen| chosen.calibration.goal.validity);
    let (mut verdicts, mut evidence) = (Vec::new(), Vec::new());
    for (change, validity) in &entry.line.validity {
        let is_kept = validity.mean >= promise;
        verdicts.push(if is_kept { ClaimVerdict::Holds } else { ClaimVerdict::DoesNot });
        evidence.push(format!("{} {}", family(change), percent_with_interval(validity)));
    }
    let is_shown = chosen.is_some_and(|chosen| {
        matches!(chosen.calibration.verdict, CalibrationVerdict::Chosen { .. })
    });
    let how = if is_shown { "" } else { ", not shown to reach it" };
    let evidence =
        format!("promised {}{}{how}: {}", percent(promise), at_tau(entry), evidence.join(", "));
    (all_of(&verdicts), evidence)
}

/// Whether a method's cheapest line that is as valid as the other's costs less than it.
fn is_cheaper_at_same_validity(place: &Place<'_>, method: &str, other: &str) -> Decision {
    let Some(target) = place.line(other) else { return missing(place, &[other]) };
    at_same_validity(place, method, target)
}

fn is_cheaper_than_released(place: &Place<'_>) -> Decision {
    let is_released = |entry: &&&Entry<'_>| {
        let contender = &entry.line.contender;
        contender.protocol == Protocol::Reference && contender.method.name() == "trex-i"
    };
    let mut released: Vec<&Entry<'_>> = place.table.iter().filter(is_released).copied().collect();
    if released.is_empty() {
        released = place.all.iter().filter(is_released).copied().collect();
    }
    if released.is_empty() {
        return (ClaimVerdict::NotTested, "the authors' code has no line here".to_owned());
    }
    let (verdicts, evidence): (Vec<_>, Vec<_>) =
        released.iter().map(|target| at_same_validity(place, "trex-o", target)).unzip();
    (all_of(&verdicts), evidence.join("; "))
}

fn at_same_validity(place: &Place<'_>, method: &str, target: &Entry<'_>) -> Decision {
    let name = method_name(method);
    let other = contender_name(&target.line.contender);
    let pairs = || {
        let candidates = place.with_any_threshold(method);
        candidates.filter_map(|entry| Some((entry, Pair::of(entry, target)?)))
    };
    if pairs().next().is_none() {
        return (ClaimVerdict::NotTested, format!("no line of {name} on the factuals of {other}"));
    }
    let cheapest = pairs()
        .filter(|(_, pair)| pair.is_as_valid())
        .filter_map(|(entry, pair)| pair.difference.map(|difference| (entry, pair, difference)))
        .min_by(|a, b| a.2.mean.total_cmp(&b.2.mean));
    let Some((entry, pair, difference)) = cheapest else {
        let lowest = |(_, pair): &(&Entry<'_>, Pair)| {
            pair.validities.iter().map(|(_, own, other)| own - other).fold(f64::INFINITY, f64::min)
        };
        let nearest = pairs().max_by(|a, b| lowest(a).total_cmp(&lowest(b)));
        let evidence = nearest.map_or_else(String::new, |(entry, pair)| {
            format!("at best, {}{}: {}", name, at_tau(entry), against(&pair, &other))
        });
        return (ClaimVerdict::DoesNot, evidence);
    };
    let evidence = format!(
        "{name}{}: {}; cost {}",
        at_tau(entry),
        against(&pair, &other),
        difference_of_costs(&pair, &difference)
    );
    (above_zero(&negated(&difference)), evidence)
}

/// " at tau 0.9"
fn at_tau(entry: &Entry<'_>) -> String {
    entry.line.contender.tau().map(|tau| format!(" at tau {tau}")).unwrap_or_default()
}

/// "WI 96.0 %, LO 95.8 %, cost 0.61 against WI 95.2 %, LO 95.0 %, cost 0.73 of SNS on 300 factuals"
fn against(pair: &Pair, other: &str) -> String {
    let side = |validity: fn(&(String, f64, f64)) -> f64, cost: Option<f64>| {
        let mut parts: Vec<String> = pair
            .validities
            .iter()
            .map(|both| format!("{} {}", family(&both.0), percent(validity(both))))
            .collect();
        parts.extend(cost.map(|cost| format!("cost {}", amount(cost))));
        parts.join(", ")
    };
    format!(
        "{} against {} of {other} on {}",
        side(|both| both.1, pair.costs.map(|costs| costs.0)),
        side(|both| both.2, pair.costs.map(|costs| costs.1)),
        counted(pair.factuals, "factual")
    )
}

fn is_cheaper_than_neighbours(place: &Place<'_>) -> Decision {
    let (Some(ours), Some(theirs)) = (place.line("trex-o"), place.line("trex-nn")) else {
        return missing(place, &["trex-o", "trex-nn"]);
    };
    let pair = Pair::of(ours, theirs);
    let Some((pair, difference)) = pair.and_then(|pair| pair.difference.map(|d| (pair.clone(), d)))
    else {
        return (ClaimVerdict::NotTested, "no factual was answered by both".to_owned());
    };
    let evidence = format!(
        "{}; cost {}",
        against(&pair, &method_name("trex-nn")),
        difference_of_costs(&pair, &difference)
    );
    (above_zero(&negated(&difference)), evidence)
}

fn is_cheaper_than_measured(place: &Place<'_>) -> Decision {
    let anchors: Vec<_> = printed::anchors(place.beside)
        .filter(|anchor| anchor.method == "trex-i" && anchor.norm == place.norm.name())
        .filter(|anchor| anchor.is_of_released_code())
        .collect();
    if anchors.is_empty() {
        return (ClaimVerdict::NotTested, "no measurement by others is known".to_owned());
    }
    if place.with_any_threshold("trex-o").next().is_none() {
        return missing(place, &["trex-o"]);
    }
    let (mut verdicts, mut evidence) = (Vec::new(), Vec::new());
    for anchor in anchors {
        let theirs =
            format!("WI {} %, LO {} %, cost {}", anchor.wi, anchor.lo, amount(anchor.cost));
        let reaches = |entry: &&Entry<'_>| {
            let is_least = |name: &str, least: f64| {
                let validity =
                    entry.line.validity.iter().find(|(change, _)| family(change) == name);
                validity.is_some_and(|(_, v)| v.mean >= least / 100.0 - SAME_VALIDITY)
            };
            is_least("WI", anchor.wi) && is_least("LO", anchor.lo)
        };
        let best = place
            .with_any_threshold("trex-o")
            .filter(reaches)
            .filter_map(|entry| entry.cost().map(|cost| (entry, cost)))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((entry, cost)) = best {
            verdicts.push(by_means(Some(cost), Some(anchor.cost)));
            evidence.push(format!("{}, cost {} against {theirs}", validities(entry), amount(cost)));
        } else {
            verdicts.push(ClaimVerdict::DoesNot);
            evidence.push(format!("no line of T-Rex:O is as valid as {theirs}"));
        }
    }
    (all_of(&verdicts), evidence.join("; "))
}

/// Combines verdicts: all hold; one does not; nothing was tested; or undecided.
fn all_of(verdicts: &[ClaimVerdict]) -> ClaimVerdict {
    match verdicts {
        [] => ClaimVerdict::NotTested,
        all if all.contains(&ClaimVerdict::DoesNot) => ClaimVerdict::DoesNot,
        all if all.iter().all(|verdict| *verdict == ClaimVerdict::Holds) => ClaimVerdict::Holds,
        all if all.contains(&ClaimVerdict::Undecided) => ClaimVerdict::Undecided,
        _ => ClaimVerdict::NotTested,
    }
}

/// Whether the interval of a mean is above zero.
fn above_zero(difference: &Summary) -> ClaimVerdict {
    match (difference.low, difference.high) {
        (Some(low), _) if low > 0.0 => ClaimVerdict::Holds,
        (_, Some(high)) if high <= 0.0 => ClaimVerdict::DoesNot,
        (None, None) if difference.mean <= 0.0 => ClaimVerdict::DoesNot,
        _ => ClaimVerdict::Undecided,
    }
}

fn by_means(own: Option<f64>, other: Option<f64>) -> ClaimVerdict {
    match (own, other) {
        (Some(own), Some(other)) if own < other => ClaimVerdict::Holds,
        (Some(_), Some(_)) => ClaimVerdict::DoesNot,
        _ => ClaimVerdict::NotTested,
    }
}

fn negated(summary: &Summary) -> Summary {
    let negative = |end: Option<f64>| end.map(|end| -end);
    Summary {
        mean: -summary.mean,
        low: negative(summary.high),
        high: negative(summary.low),
        ..*summary
    }
}

/// "WI 98.2 %, LO 97.9 %"
fn validities(entry: &Entry<'_>) -> String {
    let all: Vec<String> = entry
        .line
        .validity
        .iter()
        .map(|(change, validity)| format!("{} {}", family(change), percent(validity.mean)))
        .collect();
    all.join(", ")
}

/// "+4.2 points [3.9, 4.5]"
fn points(difference: &Summary) -> String {
    let text = |share: f64| format!("{:.1}", 100.0 * share);
    format!("{} points {}", signed(&text(difference.mean)), interval(difference, text))
}

/// "−0.12 [-0.14, -0.10], lower on 290 of 300"
fn difference_of_costs(pair: &Pair, difference: &Summary) -> String {
    let text = format!("{} {}", signed(&amount(difference.mean)), interval(difference, amount));
    format!("{}, lower on {} of {}", text.trim_end(), pair.cheaper, difference.count)
}
