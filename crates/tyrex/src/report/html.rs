//! A report as one self-contained HTML file: no scripts, no fonts, no network.

use std::fmt::Write as _;

use super::document::{
    Document, Figures, ReportTable, SectionBlock, TableCell, TableRow, Tone, escape,
};
use super::svg;

/// Colours, shapes and spacing.
const STYLE: &str = include_str!("style.css");

/// Writes a report.
pub fn render(document: &Document) -> String {
    let mut out = String::new();
    let title = escape(&document.title);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<p>{}</p>\n",
        escape(&document.subtitle)
    );
    if let Some((yes, text)) = &document.answer {
        let (class, word) = if *yes { ("holds", "Yes") } else { ("fails", "No") };
        let _ = writeln!(
            out,
            "<p class=\"answer {class}\"><strong>{word}</strong> {}</p>",
            escape(text)
        );
    }
    out.push_str("<nav aria-label=\"Contents\"><ol>");
    for section in &document.sections {
        let _ = write!(
            out,
            "<li><a href=\"#{}\">{}</a></li>",
            word(&section.name),
            escape(&section.title)
        );
    }
    out.push_str("</ol></nav>\n</header>\n<main>\n");
    for section in &document.sections {
        let (name, title) = (word(&section.name), escape(&section.title));
        let _ = writeln!(out, "<section id=\"{name}\">\n<h2>{title}</h2>");
        blocks(&mut out, &section.blocks);
        out.push_str("</section>\n");
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// A name that is valid in an address.
fn word(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn blocks(out: &mut String, blocks_to_write: &[SectionBlock]) {
    for block in blocks_to_write {
        match block {
            SectionBlock::Heading(text) => {
                let _ = writeln!(out, "<h3>{}</h3>", escape(text));
            }
            SectionBlock::Text(text) => {
                let _ = writeln!(out, "<p>{}</p>", escape(text));
            }
            SectionBlock::Facts(facts) => {
                out.push_str("<dl>");
                for (name, value) in facts {
                    let _ = write!(
                        out,
                        "<div><dt>{}</dt><dd>{}</dd></div>",
                        escape(name),
                        escape(value)
                    );
                }
                out.push_str("</dl>\n");
            }
            SectionBlock::Table(content) => table(out, content, None),
            SectionBlock::Values(title, content) => table(out, content, Some(title)),
            SectionBlock::Shades(shades) => {
                out.push_str("<ul class=\"shades\">");
                for (tone, text) in shades {
                    let sample = match class(*tone) {
                        "" => String::new(),
                        class => format!("<span class=\"{class}\"></span>"),
                    };
                    let _ = write!(out, "<li>{sample}{}</li>", escape(text));
                }
                out.push_str("</ul>\n");
            }
            SectionBlock::Figures(content) => figures(out, content),
            SectionBlock::Folded { title, blocks: inner } => {
                let _ = writeln!(out, "<details><summary>{}</summary>", escape(title));
                blocks(out, inner);
                out.push_str("</details>\n");
            }
        }
    }
}

/// A table; one of values, if it has a title.
fn table(out: &mut String, table: &ReportTable, title: Option<&str>) {
    let caption = escape(&table.caption);
    let title = title.map(escape);
    let class = if title.is_some() { " class=\"values\"" } else { "" };
    let label = title.as_ref().unwrap_or(&caption);
    let _ = write!(
        out,
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{label}\"><table{class}>\
         <caption><span>"
    );
    if let Some(title) = &title {
        let _ = write!(out, "<strong>{title}</strong> ");
    }
    let _ = write!(out, "{caption}</span></caption><thead>");
    let has_groups = table.columns.iter().any(|column| !column.group.is_empty());
    let span = if has_groups { " rowspan=\"2\"" } else { "" };
    let _ =
        write!(out, "<tr><th scope=\"col\" class=\"words\"{span}>{}</th>", escape(&table.corner));
    if has_groups {
        for columns in table.columns.chunk_by(|a, b| a.group == b.group) {
            let _ = write!(
                out,
                "<th scope=\"colgroup\" class=\"group\" colspan=\"{}\">{}</th>",
                columns.len(),
                escape(&columns[0].group)
            );
        }
        out.push_str("</tr><tr>");
    }
    let mut group = None;
    let mut starts = Vec::with_capacity(table.columns.len());
    for column in &table.columns {
        let is_start = has_groups && group != Some(&column.group);
        group = Some(&column.group);
        starts.push(is_start);
        let class = match (is_start, column.is_text) {
            (true, _) => " class=\"start\"",
            (_, true) => " class=\"words\"",
            _ => "",
        };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(&column.title));
    }
    out.push_str("</tr></thead><tbody>");
    for row in &table.rows {
        self::row(out, table, row, &starts, title.is_some());
    }
    out.push_str("</tbody></table></div>\n");
}

/// A row. Cells of values carry their heading, for pages too narrow for a header.
fn row(out: &mut String, table: &ReportTable, row: &TableRow, starts: &[bool], has_values: bool) {
    let ours = if row.is_ours { " class=\"ours\"" } else { "" };
    let key = row.style.map(|style| svg::key(style, svg::Fill::Full)).unwrap_or_default();
    let _ = write!(out, "<tr{ours}><th scope=\"row\">{key}{}</th>", escape(&row.head));
    for (index, cell) in row.cells.iter().enumerate() {
        let is_text = table.columns.get(index).is_some_and(|column| column.is_text);
        let start = if starts.get(index) == Some(&true) { " start" } else { "" };
        let words = if is_text { " words" } else { "" };
        let none = if has_values && cell.text == "\u{2013}" { " none" } else { "" };
        let classes = format!("{}{start}{words}{none}", class(cell.tone));
        let title = match table.columns.get(index).filter(|_| has_values) {
            Some(column) => format!(" data-title=\"{}\"", escape(&column.title)),
            None => String::new(),
        };
        let _ = write!(out, "<td class=\"{}\"{title}>", classes.trim());
        self::cell(out, cell);
        out.push_str("</td>");
    }
    out.push_str("</tr>");
}

fn cell(out: &mut String, cell: &TableCell) {
    let _ = write!(out, "<b>{}</b>", escape(&cell.text));
    if !cell.detail.is_empty() {
        let _ = write!(out, " <small>{}</small>", escape(&cell.detail));
    }
    out.push_str(&cell.picture);
    if !cell.beside.is_empty() {
        let _ = write!(out, "<span class=\"beside\">{}", escape(&cell.beside));
        if !cell.difference.is_empty() {
            let _ = write!(out, " <i>{}</i>", escape(&cell.difference));
        }
        out.push_str("</span>");
    }
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Higher(0 | 1) => "hi1",
        Tone::Higher(2) => "hi2",
        Tone::Higher(_) => "hi3",
        Tone::Lower(0 | 1) => "lo1",
        Tone::Lower(2) => "lo2",
        Tone::Lower(_) => "lo3",
        Tone::Holds => "holds",
        Tone::Fails => "fails",
        Tone::Open => "open",
    }
}

fn figures(out: &mut String, figures: &Figures) {
    out.push_str("<figure>");
    if !figures.legend.is_empty() {
        out.push_str("<ul class=\"legend\">");
        for key in &figures.legend {
            let _ = write!(out, "<li>{}{}</li>", svg::key(key.style, key.fill), escape(&key.text));
        }
        out.push_str("</ul>");
    }
    let columns = if figures.in_pairs { 2 } else { figures.charts.len().min(3) };
    let _ = write!(out, "<div class=\"charts n{columns}\">");
    for chart in &figures.charts {
        out.push_str(chart);
    }
    let _ = write!(out, "</div><figcaption>{}", escape(&figures.caption));
    if !figures.said.is_empty() {
        let _ = write!(out, " <strong>{}</strong>", escape(&figures.said));
    }
    out.push_str("</figcaption></figure>\n");
}
