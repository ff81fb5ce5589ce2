//! A report as Markdown: the same text and tables, and a sentence for every figure. Folded parts of
//! the HTML file are omitted.

use std::fmt::Write as _;

use super::document::{Document, Figures, ReportTable, SectionBlock, TableCell, Tone};

/// Writes a report.
pub fn render(document: &Document) -> String {
    let mut out = format!("# {}\n\n{}\n", line(&document.title), line(&document.subtitle));
    if let Some((yes, text)) = &document.answer {
        let _ = writeln!(out, "\n**{}** {}", if *yes { "Yes" } else { "No" }, line(text));
    }
    for section in &document.sections {
        let _ = write!(out, "\n## {}\n", line(&section.title));
        blocks(&mut out, &section.blocks);
    }
    out
}

fn blocks(out: &mut String, all: &[SectionBlock]) {
    for block in all {
        out.push('\n');
        match block {
            SectionBlock::Heading(text) => {
                let _ = writeln!(out, "### {}", line(text));
            }
            SectionBlock::Text(text) => {
                let _ = writeln!(out, "{}", line(text));
            }
            SectionBlock::Facts(facts) => {
                for (name, value) in facts {
                    let _ = writeln!(out, "- {}: {}", line(name), line(value));
                }
            }
            SectionBlock::Table(content) | SectionBlock::Values(_, content) => table(out, content),
            // There are no colours here.
            SectionBlock::Shades(_) => {
                out.pop();
            }
            SectionBlock::Figures(Figures { caption, said, .. }) => {
                let _ = writeln!(out, "Figure: {} {}", line(caption), line(said));
            }
            SectionBlock::Folded { title, .. } => {
                let _ = writeln!(out, "{}: see the HTML report.", line(title));
            }
        }
    }
}

fn table(out: &mut String, table: &ReportTable) {
    let _ = writeln!(out, "{}\n", line(&table.caption));
    let _ = write!(out, "| {} |", line(&table.corner));
    for column in &table.columns {
        let title = [column.group.as_str(), column.title.as_str()];
        let title: Vec<&str> = title.into_iter().filter(|part| !part.is_empty()).collect();
        let _ = write!(out, " {} |", line(&title.join(" ")));
    }
    out.push_str("\n|---|");
    for column in &table.columns {
        out.push_str(if column.is_text { "---|" } else { "---:|" });
    }
    out.push('\n');
    for row in &table.rows {
        let _ = write!(out, "| {} |", line(&row.head));
        for cell in &row.cells {
            let _ = write!(out, " {} |", self::cell(cell, table.beside));
        }
        out.push('\n');
    }
}

fn cell(cell: &TableCell, beside: &str) -> String {
    let mut text = line(&cell.text);
    if cell.tone == Tone::Fails {
        text = format!("**{text}**");
    }
    if !cell.detail.is_empty() {
        let _ = write!(text, " {}", line(&cell.detail));
    }
    if !cell.beside.is_empty() {
        let _ = write!(text, " ({beside} {})", line(&cell.beside));
    }
    text
}

/// The text on one line, with Markdown's special characters escaped.
fn line(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' => {
                safe.push('\\');
                safe.push(c);
            }
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
