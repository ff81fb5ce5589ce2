//! Certificates: stated probabilities beside the behaviour of unseen models.

use std::fmt::Write as _;

use super::claims::{ClaimVerdict, PaperClaim};
use super::document::{
    Figures, Key, ReportTable, Section, SectionBlock, TableCell, TableColumn, TableRow, Tone,
};
use super::number::{counted, percent, percent_with_interval};
use super::scale::Scale;
use super::svg::{Chart, Fill, Mark, Style};
use crate::experiment::Results;
use crate::experiment::result::{Certificates, Finding, StatedBin, StatedTier};

const CLAIM: &str = "Aim: certificates never claim more than is observed";

/// All certificates of a suite.
fn all(results: &Results) -> Vec<&Certificates> {
    let findings = results.experiments.iter().map(|shown| &shown.finding);
    findings
        .filter_map(|finding| match finding {
            Finding::Certificates(certificates) => Some(certificates),
            _ => None,
        })
        .collect()
}

/// Whether the interval of the observed validity is below the stated probability.
fn claims_too_much(bin: &StatedBin) -> bool {
    bin.observed.high.unwrap_or(bin.observed.mean) < bin.stated
}

/// For every data set and tier: checks whether a bin overstates.
pub(super) fn claims(results: &Results) -> Vec<PaperClaim> {
    let mut claims = Vec::new();
    for certificates in all(results) {
        for tier in &certificates.tiers {
            let (verdict, evidence) = decide(tier);
            let place = format!("{}, {} tier", certificates.dataset, tier.tier);
            claims.push(PaperClaim { title: CLAIM.to_owned(), place, verdict, evidence });
        }
    }
    claims
}

fn decide(tier: &StatedTier) -> (ClaimVerdict, String) {
    if tier.bins.is_empty() {
        return (ClaimVerdict::NotTested, "no certificate states a probability".to_owned());
    }
    let too_much: Vec<&StatedBin> = tier.bins.iter().filter(|bin| claims_too_much(bin)).collect();
    let below = tier.bins.iter().filter(|bin| bin.observed.mean < bin.stated).count();
    let mut evidence = format!(
        "{}: {} with the whole interval below the stated probability, {} with the mean below",
        counted(tier.bins.len(), "bin"),
        too_much.len(),
        below
    );
    if let Some(worst) = too_much
        .iter()
        .max_by(|a, b| (a.stated - a.observed.mean).total_cmp(&(b.stated - b.observed.mean)))
    {
        let _ = write!(
            evidence,
            "; the worst states {}, observed {}",
            percent(worst.stated),
            percent_with_interval(&worst.observed)
        );
    }
    (if too_much.is_empty() { ClaimVerdict::Holds } else { ClaimVerdict::DoesNot }, evidence)
}

/// One plot of all data sets for each tier, if there are several data sets.
pub(super) fn overview(results: &Results) -> Option<Section> {
    let all = all(results);
    if all.len() < 2 {
        return None;
    }
    let mut tiers: Vec<&str> = Vec::new();
    for tier in all.iter().flat_map(|certificates| &certificates.tiers) {
        if !tiers.contains(&tier.tier.as_str()) {
            tiers.push(&tier.tier);
        }
    }
    let charts = tiers.iter().map(|name| {
        let mut marks = vec![Mark::Diagonal];
        for (index, certificates) in all.iter().enumerate() {
            for tier in certificates.tiers.iter().filter(|tier| tier.tier == *name) {
                marks.extend(dots(tier, Style::of(index + 1), &certificates.dataset));
            }
        }
        chart(&format!("{name} tier"), marks)
    });
    let legend = all.iter().enumerate().map(|(index, certificates)| Key {
        style: Style::of(index + 1),
        fill: Fill::Full,
        text: certificates.dataset.clone(),
    });
    let mut section = Section::new("certificates", "Certificates: stated against observed");
    section.figures(Figures {
        caption: "Certificates with similar stated probability, and the share of unseen models \
                  under which their points are valid, with its 95 % interval. Above the dashed \
                  line the observed validity exceeds the stated probability."
            .to_owned(),
        said: said(all.iter().flat_map(|certificates| &certificates.tiers)),
        legend: legend.collect(),
        charts: charts.collect(),
        ..Figures::default()
    });
    Some(section)
}

/// The part of a report about the certificates of one data set.
pub(super) fn describe(section: &mut Section, certificates: &Certificates) {
    section.text(format!(
        "Each certificate is made from {} and evaluated on {} that it has not seen.",
        counted(certificates.models, "retrained model"),
        counted(certificates.judges, "model")
    ));
    let mut table = ReportTable {
        caption: "Stated probability and observed validity of the certificates.".to_owned(),
        corner: "tier".to_owned(),
        beside: "",
        columns: ["certificates", "stated", "observed"]
            .into_iter()
            .map(|title| TableColumn::number("", title))
            .chain([TableColumn::words("")])
            .collect(),
        rows: Vec::new(),
    };
    let mut verdicts = ReportTable {
        caption: "The verdicts of the tiers.".to_owned(),
        corner: "tier".to_owned(),
        beside: "",
        columns: ["certified", "empirical", "vacuous"]
            .map(|title| TableColumn::number("", title))
            .into(),
        rows: Vec::new(),
    };
    let (mut marks, mut legend) = (vec![Mark::Diagonal], Vec::new());
    for (index, tier) in certificates.tiers.iter().enumerate() {
        let style = Style::of(index + 1);
        let cells = tier.verdicts.iter().map(|count| TableCell::plain(count.to_string())).collect();
        let head = tier.tier.clone();
        verdicts.rows.push(TableRow { head, style: Some(style), is_ours: false, cells });
        table.rows.extend(tier.bins.iter().map(|bin| row(tier, style, bin)));
        marks.extend(dots(tier, style, &tier.tier));
        legend.push(Key { style, fill: Fill::Full, text: format!("{} tier", tier.tier) });
    }
    section.table(verdicts);
    section.figures(Figures {
        caption: "Stated probability against observed validity, with its 95 % interval over the \
                  models. Above the dashed line the observed validity exceeds the stated \
                  probability."
            .to_owned(),
        said: said(certificates.tiers.iter()),
        legend,
        charts: vec![chart(&certificates.dataset, marks)],
        ..Figures::default()
    });
    if !table.rows.is_empty() {
        let title = "Every bin in numbers".to_owned();
        section
            .blocks
            .push(SectionBlock::Folded { title, blocks: vec![SectionBlock::Table(table)] });
    }
}

fn row(tier: &StatedTier, style: Style, bin: &StatedBin) -> TableRow {
    let (tone, text) = if claims_too_much(bin) {
        (Tone::Fails, "states more than observed")
    } else if bin.observed.mean < bin.stated {
        (Tone::Open, "the mean is below, the interval includes it")
    } else {
        (Tone::Holds, "consistent")
    };
    let mut cells: Vec<TableCell> = [
        bin.certificates.to_string(),
        percent(bin.stated),
        percent_with_interval(&bin.observed),
        text.to_owned(),
    ]
    .into_iter()
    .map(TableCell::plain)
    .collect();
    if let Some(last) = cells.last_mut() {
        last.tone = tone;
    }
    TableRow { head: tier.tier.clone(), style: Some(style), is_ours: false, cells }
}

fn dots(tier: &StatedTier, style: Style, whose: &str) -> Vec<Mark> {
    let dot = |bin: &StatedBin| Mark::Dot {
        at: (bin.stated, bin.observed.mean),
        range: bin.observed.low.zip(bin.observed.high),
        style,
        fill: Fill::Full,
        tip: format!(
            "{whose}: {} state {}, observed {}",
            counted(bin.certificates, "certificate"),
            percent(bin.stated),
            percent_with_interval(&bin.observed)
        ),
    };
    tier.bins.iter().map(dot).collect()
}

fn chart(title: &str, marks: Vec<Mark>) -> String {
    let chart = Chart {
        title: title.to_owned(),
        description: "Observed validity against stated probability".to_owned(),
        x: Scale::linear(0.0, 1.0),
        y: Scale::linear(0.0, 1.0),
        x_label: "probability stated".to_owned(),
        y_label: "validity observed".to_owned(),
        marks,
    };
    chart.svg()
}

/// The number of consistent bins.
fn said<'a>(tiers: impl Iterator<Item = &'a StatedTier>) -> String {
    let bins: Vec<&StatedBin> = tiers.flat_map(|tier| &tier.bins).collect();
    if bins.is_empty() {
        return "No certificate states a probability.".to_owned();
    }
    let kept = bins.iter().filter(|bin| !claims_too_much(bin)).count();
    format!("{kept} of {} are consistent with the observed validity.", counted(bins.len(), "bin"))
}
