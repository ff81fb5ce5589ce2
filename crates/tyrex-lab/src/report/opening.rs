//! The opening and the end of a report: the runs, the claims, the times.

use tyrex::counterfactual::Protocol;

use super::claims::{ClaimVerdict, PaperClaim};
use super::document::{ReportTable, Section, SectionBlock, TableCell, TableColumn, TableRow, Tone};
use super::number::{counted, seconds};
use crate::experiment::result::Timing;
use crate::experiment::{Experiment, Results, Task, World};

/// Times of whole parts, as experiments call them.
const TRAINING: &str = "training";
const WHOLE: &str = "all";

/// The subtitle.
pub(super) fn subtitle(results: &Results) -> String {
    let how = if results.quick { "the short run" } else { "the full run" };
    format!("tyrex {}, {how}, seed {}", results.version, results.seed.0)
}

/// The section about the run.
pub(super) fn run(results: &Results, timings: &[Timing]) -> Section {
    let mut section = Section::new("run", "What was run");
    let mut datasets: Vec<&str> = Vec::new();
    let mut protocols: Vec<&str> = Vec::new();
    for experiment in results.experiments.iter().map(|shown| &shown.experiment) {
        let dataset = experiment.world.dataset.as_str();
        if !datasets.contains(&dataset) {
            datasets.push(dataset);
        }
        for protocol in all_protocols(&experiment.task) {
            if !protocols.contains(&protocol) {
                protocols.push(protocol);
            }
        }
    }
    let mut facts = vec![
        ("suite", results.suite.clone()),
        ("version", format!("tyrex {}", results.version)),
        ("seed", results.seed.0.to_string()),
        ("run", if results.quick { "short" } else { "full" }.to_owned()),
        ("experiments", results.experiments.len().to_string()),
        ("data", datasets.join(", ")),
        ("protocols", protocols.join(", ")),
    ];
    let total: f64 = timings.iter().filter(|timing| is_whole(timing)).map(|t| t.seconds).sum();
    if total > 0.0 {
        facts.push(("wall time", seconds(total)));
    }
    let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    section.blocks.push(SectionBlock::Facts(facts));
    if results.quick {
        section.text(
            "This is the short run: few models, few factuals, one base model. It shows that \
             everything works; its numbers are imprecise.",
        );
    }
    if results.experiments.is_empty() {
        section.text("The suite has no experiments.");
    }
    section
}

fn protocol(task: &Task) -> Option<&'static str> {
    match task {
        Task::Comparison(task) => Some(task.protocol.name()),
        Task::Histograms(task) => Some(task.protocol.name()),
        Task::Certificates(task) => Some(task.protocol.name()),
        Task::Moons(_) => None,
    }
}

/// The experiment's protocol, and those of its entrants that have another.
fn all_protocols(task: &Task) -> Vec<&'static str> {
    let entrants = match task {
        Task::Comparison(task) => task.entrants.as_slice(),
        Task::Certificates(task) => task.entrants.as_slice(),
        Task::Moons(_) | Task::Histograms(_) => &[],
    };
    let others = entrants.iter().filter_map(|entrant| entrant.protocol);
    protocol(task).into_iter().chain(others.map(Protocol::name)).collect()
}

fn is_whole(timing: &Timing) -> bool {
    timing.what == TRAINING || timing.what == WHOLE
}

/// The data, the models and the protocol of an experiment, in a sentence.
pub(super) fn terms(experiment: &Experiment) -> String {
    let World {
        dataset,
        reinitialise,
        leave_out,
        calibration,
        search,
        tuning,
        bases,
        factuals,
        ..
    } = &experiment.world;
    let mut parts = vec![format!("Data: {dataset}")];
    if let Some(protocol) = protocol(&experiment.task) {
        parts.push(format!("protocol: {protocol}"));
    }
    parts.push(format!("{reinitialise} models with new weights (WI)"));
    parts.push(format!("{leave_out} without 1 % of the rows (LO)"));
    if *calibration > 0 {
        parts.push(format!("{calibration} for calibration and certificates only"));
    }
    if *search > 0 {
        parts.push(format!("{search} to search over and {tuning} to choose margins only"));
    }
    parts.push(counted(*bases, "base model"));
    parts.push(format!("at most {} each", counted(*factuals, "factual")));
    format!("{}.", parts.join("; "))
}

/// The claims that are decided for several cells, and the cells.
fn places_of<'a>(claims: &[&'a PaperClaim]) -> Vec<&'a str> {
    let mut places = Vec::new();
    for claim in claims {
        if !places.contains(&claim.place.as_str()) {
            places.push(claim.place.as_str());
        }
    }
    places
}

/// An overview of the claims: a row for each, a column for each cell.
pub(super) fn claims(claims: &[PaperClaim]) -> Option<Section> {
    if claims.is_empty() {
        return None;
    }
    let mut section = Section::new("claims", "Claims and aims");
    section.text(
        "Each claim of the paper and each aim of the project, decided from the results. Costs are \
         compared on the same factuals and validities under the same models; a claim holds if the \
         95 % interval of the differences lies on its side of zero, and is undecided if the \
         interval contains zero. The evidence is at the end.",
    );
    section.blocks.push(SectionBlock::Shades(vec![
        (Tone::Holds, "\u{2713} holds".to_owned()),
        (Tone::Fails, "\u{2717} does not".to_owned()),
        (Tone::Open, "? undecided, \u{2013} not tested".to_owned()),
    ]));
    let mut titles: Vec<&str> = Vec::new();
    for claim in claims {
        if !titles.contains(&claim.title.as_str()) {
            titles.push(&claim.title);
        }
    }
    // Claims about the same cells share a table.
    let of_title = |title: &str| -> Vec<&PaperClaim> {
        claims.iter().filter(|claim| claim.title == title).collect()
    };
    for group in titles.chunk_by(|a, b| places_of(&of_title(a)) == places_of(&of_title(b))) {
        let places = places_of(&of_title(group[0]));
        let rows = group.iter().map(|title| {
            let of_title = of_title(title);
            let holds =
                of_title.iter().filter(|claim| claim.verdict == ClaimVerdict::Holds).count();
            let tested =
                of_title.iter().filter(|claim| claim.verdict != ClaimVerdict::NotTested).count();
            let mut cells = vec![TableCell::plain(format!("{holds} of {tested}"))];
            cells.extend(places.iter().map(|place| {
                let claim = of_title.iter().find(|claim| claim.place == *place);
                claim.map(|claim| sign(claim.verdict)).unwrap_or_default()
            }));
            TableRow { head: (*title).to_owned(), cells, ..TableRow::default() }
        });
        let mut columns = vec![TableColumn::number("", "holds")];
        columns.extend(places.iter().map(|place| TableColumn::number("", place)));
        section.table(ReportTable {
            caption: "Where each holds.".to_owned(),
            corner: "claim".to_owned(),
            beside: "",
            columns,
            rows: rows.collect(),
        });
    }
    Some(section)
}

fn tone(verdict: ClaimVerdict) -> Tone {
    match verdict {
        ClaimVerdict::Holds => Tone::Holds,
        ClaimVerdict::DoesNot => Tone::Fails,
        ClaimVerdict::Undecided | ClaimVerdict::NotTested => Tone::Open,
    }
}

fn sign(verdict: ClaimVerdict) -> TableCell {
    let text = match verdict {
        ClaimVerdict::Holds => "\u{2713}",
        ClaimVerdict::DoesNot => "\u{2717}",
        ClaimVerdict::Undecided => "?",
        ClaimVerdict::NotTested => "\u{2013}",
    };
    TableCell { tone: tone(verdict), ..TableCell::plain(text) }
}

/// Every claim with its evidence.
pub(super) fn evidence(claims: &[PaperClaim]) -> Option<Section> {
    if claims.is_empty() {
        return None;
    }
    let mut section = Section::new("evidence", "The evidence for each claim");
    let rows = claims.iter().map(|claim| TableRow {
        head: claim.place.clone(),
        cells: vec![
            TableCell::plain(claim.title.clone()),
            TableCell { tone: tone(claim.verdict), ..TableCell::plain(claim.verdict.name()) },
            TableCell::plain(claim.evidence.clone()),
        ],
        ..TableRow::default()
    });
    section.table(ReportTable {
        caption: "The evidence for each claim and cell.".to_owned(),
        corner: "where".to_owned(),
        beside: "",
        columns: vec![
            TableColumn::words("claim"),
            TableColumn::number("", "verdict"),
            TableColumn::words("evidence"),
        ],
        rows: rows.collect(),
    });
    Some(section)
}

/// The times.
pub(super) fn times(results: &Results, timings: &[Timing]) -> Option<Section> {
    let mut section = Section::new("times", "Time");
    let of = |name: &str, what: &str| -> f64 {
        let own = timings.iter().filter(|timing| timing.experiment == name && timing.what == what);
        own.map(|timing| timing.seconds).fold(0.0, |sum, seconds| sum + seconds)
    };
    let row = |head: String, training: f64, rest: f64| TableRow {
        head,
        cells: [training, rest, training + rest].map(|t| TableCell::plain(seconds(t))).into(),
        ..TableRow::default()
    };
    let columns = || {
        ["training", "everything else", "together"]
            .map(|title| TableColumn::number("", title))
            .into()
    };
    let mut by_dataset: Vec<(&str, f64, f64)> = Vec::new();
    let mut rows = Vec::new();
    for experiment in results.experiments.iter().map(|shown| &shown.experiment) {
        let (training, rest) = (of(&experiment.name, TRAINING), of(&experiment.name, WHOLE));
        if training + rest <= 0.0 {
            continue;
        }
        rows.push(row(experiment.name.clone(), training, rest));
        let dataset = experiment.world.dataset.as_str();
        match by_dataset.iter_mut().find(|(known, ..)| *known == dataset) {
            Some((_, a, b)) => (*a, *b) = (*a + training, *b + rest),
            None => by_dataset.push((dataset, training, rest)),
        }
    }
    if rows.is_empty() {
        return None;
    }
    let total = by_dataset.iter().fold((0.0, 0.0), |(a, b), (_, c, d)| (a + c, b + d));
    let mut of_datasets: Vec<TableRow> =
        by_dataset.into_iter().map(|(name, a, b)| row(name.to_owned(), a, b)).collect();
    of_datasets.push(row("all".to_owned(), total.0, total.1));
    section.table(ReportTable {
        caption: "Wall time for each data set.".to_owned(),
        corner: "data".to_owned(),
        beside: "",
        columns: columns(),
        rows: of_datasets,
    });
    section.table(ReportTable {
        caption: "Wall time for each experiment. Models are trained in the first experiment that \
                  needs them."
            .to_owned(),
        corner: "experiment".to_owned(),
        beside: "",
        columns: columns(),
        rows,
    });
    Some(section)
}
