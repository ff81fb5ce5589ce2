//! Histograms of the stability.

use super::document::{Figures, ReportTable, Section, TableCell, TableColumn, TableRow};
use super::number::{counted, interval, two_digits};
use super::scale::Scale;
use super::svg::{Chart, Mark, Style};
use crate::experiment::result::{Histogram, Histograms};

/// The part of a report about histograms.
pub(super) fn describe(section: &mut Section, found: &Histograms) {
    let highest = found.histograms.iter().map(highest_share).fold(0.0, f64::max);
    let charts = found.histograms.iter().enumerate();
    let charts = charts.map(|(index, histogram)| chart(found, histogram, index, highest)).collect();
    section.figures(Figures {
        caption: "The distribution of the relaxed stability R^. Values outside the bins are \
                  counted in the first or the last bin."
            .to_owned(),
        said: said(found),
        legend: Vec::new(),
        charts,
        ..Figures::default()
    });
    let rows = found.histograms.iter().map(|histogram| {
        let summary = histogram.summary.as_ref();
        let cells = [
            summary.map_or(0, |summary| summary.count).to_string(),
            summary.map(|summary| two_digits(summary.mean)).unwrap_or_default(),
            summary.and_then(|summary| summary.sd).map(two_digits).unwrap_or_default(),
            summary.map(|summary| interval(summary, two_digits)).unwrap_or_default(),
        ];
        TableRow {
            head: histogram.title.clone(),
            cells: cells.into_iter().map(TableCell::plain).collect(),
            ..TableRow::default()
        }
    });
    section.table(ReportTable {
        caption: "The same in numbers.".to_owned(),
        corner: "points".to_owned(),
        beside: "",
        columns: ["count", "mean", "sd", "95 % interval"]
            .map(|title| TableColumn::number("", title))
            .into(),
        rows: rows.collect(),
    });
}

fn total(histogram: &Histogram) -> f64 {
    histogram.counts.iter().map(|count| *count as f64).sum::<f64>().max(1.0)
}

fn highest_share(histogram: &Histogram) -> f64 {
    histogram.counts.iter().map(|count| *count as f64 / total(histogram)).fold(0.0, f64::max)
}

fn chart(found: &Histograms, histogram: &Histogram, index: usize, highest: f64) -> String {
    let edges = &found.edges;
    let bars = histogram.counts.iter().zip(edges.windows(2)).map(|(count, edge)| {
        let share = *count as f64 / total(histogram);
        Mark::Bar {
            from: edge[0],
            to: edge[1],
            height: 100.0 * share,
            style: Style::of(index),
            tip: format!(
                "{} between {} and {}: {:.1} %",
                counted(*count, "point"),
                two_digits(edge[0]),
                two_digits(edge[1]),
                100.0 * share
            ),
        }
    });
    let ends = (edges.first().copied(), edges.last().copied());
    let chart = Chart {
        title: histogram.title.clone(),
        description: "Share of the points by stability".to_owned(),
        x: Scale::linear(ends.0.unwrap_or(0.0), ends.1.unwrap_or(1.0)),
        // One scale for all, so that they can be compared.
        y: Scale::linear(0.0, 105.0 * highest),
        x_label: "stability R^".to_owned(),
        y_label: "share of the points, %".to_owned(),
        marks: bars.collect(),
    };
    chart.svg()
}

fn said(found: &Histograms) -> String {
    let means = found.histograms.iter().filter_map(|histogram| {
        let summary = histogram.summary.as_ref()?;
        Some(format!("{} for {}", two_digits(summary.mean), histogram.title))
    });
    let means: Vec<String> = means.collect();
    if means.is_empty() { String::new() } else { format!("The mean is {}.", means.join(", ")) }
}
