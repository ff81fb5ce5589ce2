//! The numbers in a sheet of an old Excel workbook (`.xls`, BIFF 8).
//!
//! UCI publishes two of the data sets this way. Below their headers they hold only numbers,
//! so only numbers are read: no text, formats or dates. (The crate calamine would do, with 18
//! crates that are not here yet, very roughly 30 s of processor time in a cold release build,
//! and 340 KB of binary.)
//!
//! A workbook is a small file system, a "compound file": sectors of 512 bytes, chained by a
//! table that names for each sector the next one. Its stream `Workbook` is a list of records.

use std::collections::BTreeMap;

/// The numeric cells of a sheet, by row and column from 0.
pub(super) type Numbers = BTreeMap<(u16, u16), f64>;

const FORMULA: u16 = 0x0006;
const END: u16 = 0x000A;
const SHEET: u16 = 0x0085;
const PACKED_RUN: u16 = 0x00BD;
const NUMBER: u16 = 0x0203;
const PACKED: u16 = 0x027E;

/// Every numeric cell of the named sheet; the error says what is wrong with the file.
pub(super) fn numbers(file: &[u8], sheet: &str) -> Result<Numbers, String> {
    let stream = stream(file, "Workbook").ok_or("not an Excel 97 workbook")?;
    let start = sheet_start(&stream, sheet).ok_or_else(|| format!("no sheet `{sheet}`"))?;
    let mut cells = Numbers::new();
    for (kind, body) in Records(stream.get(start..).unwrap_or_default()) {
        match kind {
            END => break,
            NUMBER => insert(&mut cells, body, f64_at(body, 6)),
            // A formula carries its last result; 0xFFFF at its end marks one that is not a number.
            FORMULA if u16_at(body, 12) != Some(0xFFFF) => {
                insert(&mut cells, body, f64_at(body, 6));
            }
            PACKED => insert(&mut cells, body, u32_at(body, 6).map(unpack)),
            PACKED_RUN => insert_run(&mut cells, body),
            _ => {}
        }
    }
    Ok(cells)
}

fn insert(cells: &mut Numbers, body: &[u8], value: Option<f64>) {
    if let (Some(row), Some(column), Some(value)) = (u16_at(body, 0), u16_at(body, 2), value) {
        cells.insert((row, column), value);
    }
}

/// Neighbouring cells of one row: row, first column, then pairs of format and number.
fn insert_run(cells: &mut Numbers, body: &[u8]) {
    let (Some(row), Some(first)) = (u16_at(body, 0), u16_at(body, 2)) else { return };
    // The two bytes after the pairs repeat the last column; they are not a pair.
    let pairs = body.get(4..).unwrap_or_default().chunks_exact(6);
    for (column, pair) in (first..=u16::MAX).zip(pairs) {
        if let Some(packed) = u32_at(pair, 2) {
            cells.insert((row, column), unpack(packed));
        }
    }
}

/// Thirty bits of a number, and two flags: in hundredths; an integer, not the top of a double.
fn unpack(packed: u32) -> f64 {
    let value = if packed & 2 == 0 {
        f64::from_bits(u64::from(packed & !3) << 32)
    } else {
        f64::from(packed.cast_signed() >> 2)
    };
    if packed & 1 == 0 { value } else { value / 100.0 }
}

/// Where in the stream the records of the named sheet begin.
fn sheet_start(stream: &[u8], sheet: &str) -> Option<usize> {
    Records(stream)
        .take_while(|&(kind, _)| kind != END)
        .filter(|&(kind, _)| kind == SHEET)
        .find(|(_, body)| {
            // The sheets wanted here have plain ASCII names, which Excel stores one byte each.
            body.get(6).copied().map(usize::from) == Some(sheet.len())
                && body.get(8..) == Some(sheet.as_bytes())
        })
        .and_then(|(_, body)| u32_at(body, 0))
        .map(|start| start as usize)
}

/// The records of a stream: kind and content, up to the first that is cut off.
struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let kind = u16_at(self.0, 0)?;
        let end = 4 + usize::from(u16_at(self.0, 2)?);
        let body = self.0.get(4..end)?;
        self.0 = &self.0[end..];
        Some((kind, body))
    }
}

const MAGIC: &[u8] = &[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];
const SECTOR: usize = 512;
const DIRECTORY_ENTRY: usize = 128;
/// Sectors of the allocation table that the file's header names; the others are chained.
const TABLE_SECTORS_IN_HEADER: usize = 109;
/// Shorter streams live elsewhere; a workbook is never so short.
const SHORTEST_STREAM: usize = 4096;

/// One named stream of a compound file, if the file is one and has it.
fn stream(file: &[u8], name: &str) -> Option<Vec<u8>> {
    if !file.starts_with(MAGIC) || u16_at(file, 30)? != 9 {
        return None;
    }
    let table = allocation_table(file)?;
    let directory = chain(file, &table, u32_at(file, 48)?)?;
    let wide_name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let entry = directory.chunks_exact(DIRECTORY_ENTRY).find(|entry| {
        // A name is followed by a zero, which its length counts.
        u16_at(entry, 64).map(usize::from) == Some(wide_name.len() + 2)
            && entry.starts_with(&wide_name)
    })?;
    let length = u32_at(entry, 120)? as usize;
    if length < SHORTEST_STREAM {
        return None;
    }
    let mut content = chain(file, &table, u32_at(entry, 116)?)?;
    (content.len() >= length).then(|| content.truncate(length))?;
    Some(content)
}

/// For each sector the number of the next one.
fn allocation_table(file: &[u8]) -> Option<Vec<u32>> {
    let count = u32_at(file, 44)? as usize;
    if count > file.len() / SECTOR {
        return None;
    }
    let mut sectors: Vec<u32> =
        (0..TABLE_SECTORS_IN_HEADER.min(count)).map_while(|i| u32_at(file, 76 + 4 * i)).collect();
    let mut next = u32_at(file, 68)?;
    while sectors.len() < count {
        // A sector of further entries ends with the number of the sector after it.
        let more = sector(file, next)?;
        sectors.extend((0..SECTOR / 4 - 1).map_while(|i| u32_at(more, 4 * i)));
        next = u32_at(more, SECTOR - 4)?;
    }
    sectors.truncate(count);
    let mut table = Vec::new();
    for number in sectors {
        let entries = sector(file, number)?;
        table.extend((0..SECTOR / 4).map_while(|i| u32_at(entries, 4 * i)));
    }
    Some(table)
}

/// The sectors of a chain, joined. A chain longer than the file runs in a circle.
fn chain(file: &[u8], table: &[u32], first: u32) -> Option<Vec<u8>> {
    const END_OF_CHAIN: u32 = 0xFFFF_FFFE;
    let mut content = Vec::new();
    let mut number = first;
    for _ in 0..=file.len() / SECTOR {
        if number == END_OF_CHAIN {
            return Some(content);
        }
        content.extend_from_slice(sector(file, number)?);
        number = *table.get(number as usize)?;
    }
    None
}

fn sector(file: &[u8], number: u32) -> Option<&[u8]> {
    let start = (number as usize).checked_add(1)?.checked_mul(SECTOR)?;
    file.get(start..start.checked_add(SECTOR)?)
}

fn bytes_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes_at(bytes, offset).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes_at(bytes, offset).map(u32::from_le_bytes)
}

fn f64_at(bytes: &[u8], offset: usize) -> Option<f64> {
    bytes_at(bytes, offset).map(f64::from_le_bytes)
}
