//! JSON lines: one object per line, one key per column.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::data::cell::listed;
use crate::data::input::Input;
use crate::data::limits::{MOST_ROW, TableMeter, check_columns, long_row};
use crate::data::reader::Batches;
use crate::data::table::{Column, Content};
use crate::data::writer::Sink;
use crate::error::{Error, Result, shortened};
use crate::file::WholeFile;

/// Reads JSON lines. The first line names the columns; a key that a later line leaves out
/// is an empty cell.
pub(super) struct Reader<R> {
    source: PathBuf,
    bytes: BufReader<Input<R>>,
    line: Vec<u8>,
    /// The lines that were read.
    lines: usize,
    names: Vec<String>,
    /// The place of each name.
    places: BTreeMap<String, usize>,
}

impl<R: Read> Reader<R> {
    /// `size` is the total number of bytes, if known.
    pub(super) fn new(source: &Path, bytes: R, size: Option<u64>) -> Self {
        Self {
            source: source.to_owned(),
            bytes: BufReader::with_capacity(1 << 16, Input::new(bytes, size)),
            line: Vec::new(),
            lines: 0,
            names: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    /// Reads the next line that is not blank, without its end; false if there is none.
    fn read_line(&mut self) -> io::Result<bool> {
        loop {
            self.line.clear();
            if (&mut self.bytes).take(MOST_ROW + 1).read_until(b'\n', &mut self.line)? == 0 {
                return Ok(false);
            }
            if self.line.len() as u64 > MOST_ROW {
                return Err(long_row());
            }
            if self.line.ends_with(b"\n") {
                self.line.pop();
            }
            self.lines += 1;
            // Some programs put a byte order mark before the text.
            if self.lines == 1 && self.line.starts_with(b"\xEF\xBB\xBF") {
                self.line.drain(..3);
            }
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                return Ok(true);
            }
        }
    }
}

impl<R: Read> Batches for Reader<R> {
    fn read(
        &mut self,
        first_row: usize,
        limit: usize,
        meter: &mut TableMeter,
    ) -> Result<(usize, Vec<Column>)> {
        let mut columns: Vec<Column> =
            self.names.iter().map(|name| Column::new(name.as_str())).collect();
        let mut rows = 0;
        while rows < limit && self.read_line().map_err(Error::io("read", &self.source))? {
            let row = first_row + rows;
            let wrong = |problem: String| Error::Table {
                file: self.source.clone(),
                problem: format!("row {row} (line {}){problem}", self.lines),
            };
            let full = |problem| Error::Table { file: self.source.clone(), problem };
            let Object(entries) = serde_json::from_slice(&self.line)
                .map_err(|error| wrong(format!(": {error}, expected one JSON object per line")))?;
            if row == 0 {
                check_columns(entries.len()).map_err(full)?;
                self.names = entries.iter().map(|(key, _)| key.clone()).collect();
                for (place, name) in self.names.iter().enumerate() {
                    self.places.entry(name.clone()).or_insert(place);
                }
                columns = self.names.iter().map(|name| Column::new(name.as_str())).collect();
            }
            for (key, value) in &entries {
                let place = self.places.get(key);
                let Some(column) = place.and_then(|place| columns.get_mut(*place)) else {
                    let names = listed(&self.names);
                    return Err(wrong(format!(
                        " has the key `{key}`, expected those of the first line: {names}"
                    )));
                };
                if column.len() > rows {
                    return Err(wrong(format!(" has the key `{key}` twice")));
                }
                meter.take(rows, value.get().len()).map_err(full)?;
                push(column, value.get()).map_err(|found| Error::Cell {
                    file: self.source.clone(),
                    row,
                    column: key.clone(),
                    value: shortened(&found),
                    expected: "a number, a text, true, false or null".to_owned(),
                })?;
            }
            rows += 1;
            for column in columns.iter_mut().filter(|column| column.len() < rows) {
                meter.take(rows - 1, 0).map_err(full)?;
                column.push("");
            }
        }
        if first_row + rows == 0 {
            return Err(Error::Table {
                file: self.source.clone(),
                problem: "the file is empty, expected one JSON object per line".to_owned(),
            });
        }
        Ok((rows, columns))
    }

    fn progress(&self) -> Option<f64> {
        self.bytes.get_ref().progress()
    }
}

/// Adds a JSON value as a cell: numbers keep their text, strings lose their quotes.
fn push(column: &mut Column, json: &str) -> Result<(), String> {
    match json.as_bytes().first() {
        Some(b'{' | b'[') | None => return Err(json.to_owned()),
        Some(b'"') => {
            let text: String = serde_json::from_str(json).map_err(|error| error.to_string())?;
            column.push(&text);
        }
        Some(b'n') => column.push(""),
        Some(_) => column.push(json),
    }
    Ok(())
}

/// The entries of an object in their order, with the exact text of every value.
struct Object<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry::<String, &RawValue>()? {
                    entries.push(entry);
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Writes JSON lines. A column of numbers is written as numbers, one of `true` and `false`
/// as booleans, any other as text; an empty cell is `null`.
pub(super) struct Writer {
    file: WholeFile,
    /// For each column its key in quotes, and whether its cells have quotes.
    columns: Vec<(String, bool)>,
}

impl Writer {
    /// Nothing is written before the first row.
    pub(super) fn new(file: WholeFile, columns: &[(String, Content)]) -> io::Result<Self> {
        let columns = columns
            .iter()
            .map(|(name, content)| Ok((serde_json::to_string(name)?, *content == Content::Text)))
            .collect::<io::Result<_>>()?;
        Ok(Self { file, columns })
    }
}

impl Sink for Writer {
    fn write(&mut self, columns: &[Column]) -> io::Result<()> {
        let out = &mut self.file;
        for row in 0..columns.first().map_or(0, Column::len) {
            for (position, ((key, quoted), column)) in self.columns.iter().zip(columns).enumerate()
            {
                write!(out, "{}{key}:", if position == 0 { '{' } else { ',' })?;
                match column.cell(row) {
                    "" => out.write_all(b"null")?,
                    text if *quoted => serde_json::to_writer(&mut *out, text)?,
                    plain => out.write_all(plain.as_bytes())?,
                }
            }
            out.write_all(b"}\n")?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<WholeFile> {
        Ok(self.file)
    }
}
