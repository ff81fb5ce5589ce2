//! A report as data: sections of text, tables and figures. `html` and `markdown` write it down.

use super::svg::{Fill, Style};

/// A report.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The heading of the page.
    pub title: String,
    /// The subtitle.
    pub subtitle: String,
    /// The answer to the question in the title: whether it is yes, and in words.
    pub answer: Option<(bool, String)>,
    /// Its parts, in order.
    pub sections: Vec<Section>,
}

/// A part of a report with a heading of its own.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// The anchor for links.
    pub name: String,
    /// The heading.
    pub title: String,
    /// The content, in order.
    pub blocks: Vec<SectionBlock>,
}

/// The content of a section.
#[derive(Debug, Clone)]
pub enum SectionBlock {
    /// A heading inside a section.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Names with their values.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(ReportTable),
    /// A table of features and their values, words and numbers side by side, with a heading.
    Values(String, ReportTable),
    /// The meaning of the colours in the following tables.
    Shades(Vec<(Tone, String)>),
    /// Charts of the same kind.
    Figures(Figures),
    /// Details: folded in HTML, omitted in Markdown.
    Folded {
        /// The line that is always shown.
        title: String,
        /// The folded content.
        blocks: Vec<SectionBlock>,
    },
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct ReportTable {
    /// A sentence about the table.
    pub caption: String,
    /// The heading of the first column.
    pub corner: String,
    /// The source of the numbers beside the cells; the caption names it too.
    pub beside: &'static str,
    /// All columns but the first.
    pub columns: Vec<TableColumn>,
    /// The rows.
    pub rows: Vec<TableRow>,
}

/// A column of a table.
#[derive(Debug, Clone, Default)]
pub struct TableColumn {
    /// The common heading of several adjacent columns.
    pub group: String,
    /// The heading.
    pub title: String,
    /// Whether it holds sentences, not numbers.
    pub is_text: bool,
}

/// A row of a table.
#[derive(Debug, Clone, Default)]
pub struct TableRow {
    /// The text in the first column.
    pub head: String,
    /// The series of the row, if charts show it too.
    pub style: Option<Style>,
    /// Whether the row is highlighted.
    pub is_ours: bool,
    /// One for each column but the first.
    pub cells: Vec<TableCell>,
}

/// A cell of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableCell {
    /// The number, or the words.
    pub text: String,
    /// Its uncertainty.
    pub detail: String,
    /// The number to compare with.
    pub beside: String,
    /// The difference between the two.
    pub difference: String,
    /// A small picture of it, an SVG element.
    pub picture: String,
    /// Its colour.
    pub tone: Tone,
}

/// The meaning of a cell's colour; its text says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// No colour.
    #[default]
    Plain,
    /// Higher than the number to compare with: slightly (1) to much (3).
    Higher(u8),
    /// Lower.
    Lower(u8),
    /// The claim holds.
    Holds,
    /// It does not.
    Fails,
    /// The claim cannot be decided.
    Open,
}

/// Charts of the same kind, side by side.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// A sentence about the charts.
    pub caption: String,
    /// A description of the charts, generated from the numbers.
    pub said: String,
    /// The series the charts show.
    pub legend: Vec<Key>,
    /// SVG elements.
    pub charts: Vec<String>,
    /// Whether every two of them belong together.
    pub in_pairs: bool,
}

/// An entry of a legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The colour and shape of the series.
    pub style: Style,
    /// How its dots are drawn.
    pub fill: Fill,
    /// Its name.
    pub text: String,
}

impl Section {
    /// An empty section.
    pub fn new(name: &str, title: &str) -> Self {
        Self { name: name.to_owned(), title: title.to_owned(), blocks: Vec::new() }
    }

    /// Adds a paragraph, unless the text is empty.
    pub fn text(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.blocks.push(SectionBlock::Text(text));
        }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(SectionBlock::Heading(text.into()));
    }

    /// Adds charts, if there are any.
    pub fn figures(&mut self, figures: Figures) {
        if !figures.charts.is_empty() {
            self.blocks.push(SectionBlock::Figures(figures));
        }
    }

    /// Adds a table, if it has rows.
    pub fn table(&mut self, table: ReportTable) {
        if !table.rows.is_empty() {
            self.blocks.push(SectionBlock::Table(table));
        }
    }
}

impl TableCell {
    /// A cell with nothing but this text.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl TableColumn {
    /// A column of numbers.
    pub fn number(group: &str, title: &str) -> Self {
        Self { group: group.to_owned(), title: title.to_owned(), is_text: false }
    }

    /// A column of sentences.
    pub fn words(title: &str) -> Self {
        Self { group: String::new(), title: title.to_owned(), is_text: true }
    }
}

/// The text with HTML's special characters escaped.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
