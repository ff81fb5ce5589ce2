//! JSON lines: one object per line, one key per column.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::data::cell::listed;
use crate::data::limits::{Room, TableLimits};
use crate::data::table::{Column, Content, Table};
use crate::error::{Error, Result};

/// Reads JSON lines. The first line names the columns; a key that a later line leaves out
/// is an empty cell.
pub(super) fn parse(source: &Path, bytes: &[u8], limits: TableLimits) -> Result<Table> {
    let wrong = |problem: String| Error::Table { file: source.to_owned(), problem };
    // Some programs put a byte order mark before the text.
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut columns: Vec<Column> = Vec::new();
    let mut room = Room::new(limits);
    let mut row = 0;
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let at = format!("row {row} (line {})", index + 1);
        let Object(entries) = serde_json::from_slice(line)
            .map_err(|error| wrong(format!("{at}: {error}, expected one JSON object per line")))?;
        if row == 0 {
            columns = entries.iter().map(|(key, _)| Column::new(key.as_str())).collect();
        }
        for (key, value) in &entries {
            let Some(column) = columns.iter_mut().find(|column| column.name() == key) else {
                let names: Vec<&str> = columns.iter().map(Column::name).collect();
                return Err(wrong(format!(
                    "{at} has the key `{key}`, expected those of the first line: {}",
                    listed(&names)
                )));
            };
            if column.len() > row {
                return Err(wrong(format!("{at} has the key `{key}` twice")));
            }
            room.take(row, value.get().len()).map_err(wrong)?;
            push(column, value.get()).map_err(|found| Error::Cell {
                file: source.to_owned(),
                row,
                column: key.clone(),
                value: found,
                expected: "a number, a text, true, false or null".to_owned(),
            })?;
        }
        row += 1;
        for column in columns.iter_mut().filter(|column| column.len() < row) {
            room.take(row - 1, 0).map_err(wrong)?;
            column.push("");
        }
    }
    if row == 0 {
        return Err(wrong("the file is empty, expected one JSON object per line".to_owned()));
    }
    Table::new(source, columns)
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
pub(super) fn write(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let columns: Vec<(String, bool, &Column)> = table
        .columns()
        .iter()
        .map(|column| {
            let quoted = Content::of(column) == Content::Text;
            serde_json::to_string(column.name()).map(|key| (key, quoted, column))
        })
        .collect::<Result<_, _>>()?;
    for row in 0..table.rows() {
        for (position, (key, quoted, column)) in columns.iter().enumerate() {
            let cell = column.cell(row);
            write!(out, "{}{key}:", if position == 0 { '{' } else { ',' })?;
            match cell {
                "" => out.write_all(b"null")?,
                text if *quoted => serde_json::to_writer(&mut *out, text)?,
                plain => out.write_all(plain.as_bytes())?,
            }
        }
        out.write_all(b"}\n")?;
    }
    Ok(())
}
