//! The only file that prints.
//!
//! A command answers with a [`Report`]: data for `--json`, and a [`Page`] for people.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};

use anyhow::Context as _;
use console::{Alignment, Style, measure_text_width, pad_str};
use serde::Serialize;

use crate::help;

/// The version of the JSON documents.
const FORMAT_VERSION: u32 = 1;
/// The width of a page when standard output is not a terminal.
const USUAL_WIDTH: usize = 100;

/// The result of a command.
pub(crate) trait Report: Serialize {
    /// The name of the command.
    const COMMAND: &'static str;
    /// The version of its document.
    const FORMAT_VERSION: Option<u32> = Some(FORMAT_VERSION);

    /// The same for people.
    fn page(&self, page: &mut Page);
}

/// Prints reports in the requested format.
#[derive(Debug)]
pub(crate) struct Printer {
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
    Nothing,
}

impl Printer {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let form = match (json, quiet) {
            (true, _) => Form::Json,
            (false, true) => Form::Nothing,
            (false, false) => Form::Text,
        };
        Self { form }
    }

    /// Whether text for people is wanted.
    pub(crate) fn is_for_people(&self) -> bool {
        self.form == Form::Text
    }

    /// Whether a JSON document is wanted.
    pub(crate) fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    /// Prints a report.
    pub(crate) fn show<R: Report>(&mut self, report: &R) -> anyhow::Result<()> {
        match self.form {
            Form::Nothing => Ok(()),
            Form::Text => {
                let mut page = Page::new();
                report.page(&mut page);
                print(&page.text)
            }
            Form::Json => {
                let document =
                    Document { format_version: R::FORMAT_VERSION, command: R::COMMAND, report };
                let mut text = serde_json::to_string_pretty(&document)?;
                text.push('\n');
                print(&text)
            }
        }
    }
}

/// Prints a text that is itself the result.
pub(crate) fn product(text: &str) -> anyhow::Result<()> {
    print(text)
}

/// Prints an error and its remedy.
pub(crate) fn error(error: &anyhow::Error) {
    let style = Style::new().for_stderr().bold();
    let mut lines = format!("{} {}", style.clone().red().apply_to("error:"), message(error));
    if let Some(remedy) = help::remedy(error) {
        let _ = write!(lines, "\n{} {remedy}", style.cyan().apply_to("help:"));
    }
    // If standard error is closed too, the error cannot be reported.
    let _ = writeln!(std::io::stderr(), "{lines}");
}

/// The error and its causes, without those that the text names already.
fn message(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            let _ = write!(text, ": {cause}");
        }
    }
    harmless(&text)
}

/// The text without characters that a terminal would obey: control characters, and those that
/// reverse the order of the letters. They come from files and arguments.
fn harmless(text: &str) -> String {
    let obeyed = |letter: char| {
        letter.is_control() && !matches!(letter, '\n' | '\t')
            || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        if obeyed(letter) {
            safe.extend(letter.escape_default());
        } else {
            safe.push(letter);
        }
    }
    safe
}

/// The same for a text of one line: a value with a line break cannot look like another line.
fn one_line(text: &str) -> String {
    harmless(text).replace('\n', "\\n").replace('\t', " ")
}

#[derive(Serialize)]
struct Document<'a, R> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format_version: Option<u32>,
    command: &'static str,
    #[serde(flatten)]
    report: &'a R,
}

/// Writes to standard output. A closed pipe, as with `head`, is not a failure: the command
/// continues, and its answer decides the exit code.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    Left,
    Right,
}

/// Text for people, built line by line.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    width: usize,
}

impl Page {
    fn new() -> Self {
        let terminal = console::Term::stdout();
        let width = match terminal.size_checked() {
            Some((_, columns)) if terminal.is_term() => usize::from(columns),
            _ => USUAL_WIDTH,
        };
        Self { text: String::new(), width }
    }

    /// A heading, with an empty line above unless it is the first.
    pub(crate) fn title(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.push(&Style::new().bold().apply_to(one_line(text)).to_string());
    }

    /// A line.
    pub(crate) fn line(&mut self, text: &str) {
        self.push(&one_line(text));
    }

    /// A line that is safe already, and may have a style.
    fn push(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// An item of a list, wrapped.
    pub(crate) fn item(&mut self, text: &str) {
        for (index, part) in
            wrapped(&harmless(text), self.width.saturating_sub(4).max(20)).iter().enumerate()
        {
            self.push(&format!("  {} {part}", if index == 0 { "-" } else { " " }));
        }
    }

    /// Names and values, the values aligned. Long values are wrapped.
    pub(crate) fn pairs(&mut self, pairs: &[(&str, String)]) {
        let names = pairs.iter().map(|(name, _)| measure_text_width(name)).max().unwrap_or(0);
        let room = self.width.saturating_sub(names + 4).max(20);
        for (name, value) in pairs {
            for (index, part) in wrapped(&harmless(value), room).iter().enumerate() {
                let name = if index == 0 { name } else { "" };
                let name = dim(&pad_str(name, names, Alignment::Left, None));
                self.push(&format!("  {name}  {part}"));
            }
        }
    }

    /// A table with a header. Only the last column may be truncated to the width of the page.
    pub(crate) fn table(&mut self, header: &[(&str, Stand)], rows: &[Vec<String>]) {
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
        let widths: Vec<usize> = (0..header.len())
            .map(|column| {
                let cells = rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
                cells.chain([header[column].0]).map(measure_text_width).max().unwrap_or(0)
            })
            .collect();
        let stands: Vec<Stand> = header.iter().map(|(_, stand)| *stand).collect();
        let names: Vec<String> = header.iter().map(|(name, _)| one_line(name)).collect();
        let titles = aligned(&names, &widths, &stands, self.width);
        self.push(&dim(titles.trim_end()));
        for row in &rows {
            let line = aligned(row, &widths, &stands, self.width);
            self.push(&line);
        }
    }

    /// Items side by side, one column each, with the names of their properties at the left: as many
    /// as fit the width of the page, the others below. Long values are wrapped.
    pub(crate) fn abreast(&mut self, names: &[String], things: &[Vec<String>]) {
        const WIDEST: usize = 22;
        let names: Vec<String> = names.iter().map(|name| one_line(name)).collect();
        let safe = |thing: &Vec<String>| thing.iter().map(|value| harmless(value)).collect();
        let things: Vec<Vec<String>> = things.iter().map(safe).collect();
        let left = names.iter().map(|name| measure_text_width(name)).max().unwrap_or(0);
        let longest = things.iter().flatten().map(|value| measure_text_width(value)).max();
        let column = longest.unwrap_or(0).clamp(1, WIDEST);
        let abreast = (self.width.saturating_sub(left + 2) / (column + 2)).max(1);
        for (band, things) in things.chunks(abreast).enumerate() {
            if band > 0 {
                self.text.push('\n');
            }
            for (index, name) in names.iter().enumerate() {
                let values: Vec<Vec<String>> = things
                    .iter()
                    .map(|thing| wrapped(thing.get(index).map_or("", String::as_str), column))
                    .collect();
                let height = values.iter().map(Vec::len).max().unwrap_or(1);
                for line in 0..height {
                    let name = if line == 0 { name.as_str() } else { "" };
                    let mut text =
                        format!("  {}", dim(&pad_str(name, left, Alignment::Left, None)));
                    for value in &values {
                        let part = value.get(line).map_or("", String::as_str);
                        let part = pad_str(part, column, Alignment::Left, None);
                        let _ = match index {
                            0 => write!(text, "  {}", Style::new().bold().apply_to(part)),
                            _ => write!(text, "  {part}"),
                        };
                    }
                    self.push(&text);
                }
            }
        }
    }
}

fn dim(text: &str) -> String {
    Style::new().dim().apply_to(text).to_string()
}

/// The cells of one line of a table.
fn aligned(cells: &[String], widths: &[usize], stands: &[Stand], page: usize) -> String {
    let mut line = String::from("  ");
    let mut used = 2;
    for (index, ((cell, &width), stand)) in cells.iter().zip(widths).zip(stands).enumerate() {
        let alignment = match stand {
            Stand::Left => Alignment::Left,
            Stand::Right => Alignment::Right,
        };
        if index + 1 < cells.len() {
            line.push_str(&pad_str(cell, width, alignment, None));
            line.push_str("  ");
            used += width + 2;
        } else {
            let room = page.saturating_sub(used).max(16).min(width);
            line.push_str(&pad_str(cell, room, alignment, Some("…")));
        }
    }
    line
}

/// The text in lines of at most the given width, broken at spaces, and inside a word that is too
/// long for a line of its own: after a slash or a hyphen if it has one.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut push = |word: &str| {
        let line = lines.last_mut().map_or("", |line| line.as_str());
        let gap = usize::from(!line.is_empty());
        if gap > 0 && measure_text_width(line) + gap + measure_text_width(word) > width {
            lines.push(word.to_owned());
        } else if let Some(line) = lines.last_mut() {
            if gap > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    };
    for word in text.split_whitespace() {
        let mut part = String::new();
        for letter in word.chars() {
            part.push(letter);
            if measure_text_width(&part) >= width {
                let end = part.rfind(['/', '-']).map_or(part.len(), |at| at + 1);
                let rest = part.split_off(end);
                push(&part);
                part = rest;
            }
        }
        if !part.is_empty() {
            push(&part);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: usize) -> Page {
        Page { text: String::new(), width }
    }

    #[test]
    fn long_text_is_broken_at_spaces_and_long_words_inside() {
        assert_eq!(wrapped("all paid back duly", 9), ["all paid", "back duly"]);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("a self-employed/qualified", 12), ["a self-", "employed/", "qualified"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn a_cause_is_named_once() {
        let full = || std::io::Error::from(ErrorKind::StorageFull);
        let with_cause = anyhow::Error::new(full()).context("cannot write");
        assert_eq!(message(&with_cause), format!("cannot write: {}", full()));
        let path = std::path::Path::new("x");
        let named = anyhow::Error::new(tyrex::Error::io("write", path)(full()));
        assert_eq!(message(&named), format!("cannot write x: {}", full()));
    }

    #[test]
    fn a_table_aligns_its_columns() {
        let mut page = page(40);
        let rows = [vec!["a".to_owned(), "10".to_owned()], vec!["long".to_owned(), "2".to_owned()]];
        page.table(&[("name", Stand::Left), ("n", Stand::Right)], &rows);
        assert_eq!(console::strip_ansi_codes(&page.text), "  name   n\n  a     10\n  long   2\n");
    }

    #[test]
    fn things_that_do_not_fit_abreast_go_below() {
        let mut page = page(20);
        let things = [["1", "x"], ["2", "y"], ["3", "z"]].map(|t| t.map(str::to_owned).to_vec());
        page.abreast(&["row".to_owned(), "housing".to_owned()], &things);
        let text = console::strip_ansi_codes(&page.text).into_owned();
        assert_eq!(text, "  row      1  2  3\n  housing  x  y  z\n");
        let mut narrow = super::Page { text: String::new(), width: 16 };
        narrow.abreast(&["row".to_owned(), "housing".to_owned()], &things);
        let text = console::strip_ansi_codes(&narrow.text).into_owned();
        assert_eq!(text, "  row      1  2\n  housing  x  y\n\n  row      3\n  housing  z\n");
    }
}
