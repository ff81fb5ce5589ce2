//! A report as data: sections of text, tables and figures. `html` and `markdown` write it down.

use super::svg::{Fill, Style};

/// A report.
#[derive(Debug, Clone, Default)]
pub(super) struct Document {
    pub(super) title: String,
    /// What stands under the title.
    pub(super) subtitle: String,
    /// The answer to the question in the title: whether it is yes, and in words.
    pub(super) answer: Option<(bool, String)>,
    pub(super) sections: Vec<Section>,
}

/// A part of a report with a heading of its own.
#[derive(Debug, Clone, Default)]
pub(super) struct Section {
    /// A word to link to it by.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) blocks: Vec<Block>,
}

/// What a section is made of.
#[derive(Debug, Clone)]
pub(super) enum Block {
    /// A heading inside a section.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Names and what they are.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// A table of features and their values, words and numbers side by side, with a heading.
    Values(String, Table),
    /// What the colours of the tables that follow mean.
    Shades(Vec<(Tone, String)>),
    /// Charts of the same kind.
    Figures(Figures),
    /// What only some readers look for: folded in HTML, left out of Markdown.
    Folded { title: String, blocks: Vec<Block> },
}

/// A table.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    pub(super) caption: String,
    /// What the first column names.
    pub(super) corner: String,
    /// Whose numbers the cells stand beside; the caption says so too.
    pub(super) beside: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
}

/// A column of a table.
#[derive(Debug, Clone, Default)]
pub(super) struct Column {
    /// What several columns side by side have in common.
    pub(super) group: String,
    pub(super) title: String,
    /// Whether it holds sentences, not numbers.
    pub(super) is_text: bool,
}

/// A row of a table.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    pub(super) head: String,
    /// The series the row stands for, where charts show it too.
    pub(super) style: Option<Style>,
    /// Whether the row is the one to look at.
    pub(super) is_ours: bool,
    pub(super) cells: Vec<TableCell>,
}

/// A cell of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TableCell {
    /// The number, or the words.
    pub(super) text: String,
    /// How sure it is.
    pub(super) detail: String,
    /// The number it stands beside.
    pub(super) beside: String,
    /// The difference between the two.
    pub(super) difference: String,
    /// A small picture of it, an SVG element.
    pub(super) picture: String,
    pub(super) tone: Tone,
}

/// What the colour of a cell says; its text says so too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Tone {
    #[default]
    Plain,
    /// Higher than what it stands beside: a little (1) to a lot (3).
    Higher(u8),
    /// Lower.
    Lower(u8),
    /// What was claimed holds.
    Holds,
    /// It does not.
    Fails,
    /// Nothing can be said.
    Open,
}

/// Charts of the same kind, side by side.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    pub(super) caption: String,
    /// What they show, in a sentence drawn from the numbers.
    pub(super) said: String,
    pub(super) legend: Vec<Key>,
    /// SVG elements.
    pub(super) charts: Vec<String>,
    /// Whether every two of them belong together.
    pub(super) in_pairs: bool,
}

/// An entry of a legend.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    pub(super) style: Style,
    pub(super) fill: Fill,
    pub(super) text: String,
}

impl Section {
    pub(super) fn new(name: &str, title: &str) -> Self {
        Self { name: name.to_owned(), title: title.to_owned(), blocks: Vec::new() }
    }

    pub(super) fn text(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.blocks.push(Block::Text(text));
        }
    }

    pub(super) fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    /// Adds charts, if there are any.
    pub(super) fn figures(&mut self, figures: Figures) {
        if !figures.charts.is_empty() {
            self.blocks.push(Block::Figures(figures));
        }
    }

    /// Adds a table, if it has rows.
    pub(super) fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }
}

impl TableCell {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl Column {
    pub(super) fn number(group: &str, title: &str) -> Self {
        Self { group: group.to_owned(), title: title.to_owned(), is_text: false }
    }

    pub(super) fn words(title: &str) -> Self {
        Self { group: String::new(), title: title.to_owned(), is_text: true }
    }
}

/// The text with nothing in it that HTML would read as its own.
pub(super) fn escape(text: &str) -> String {
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
