//! The footer of a Parquet file, checked before the `parquet` crate decodes it.
//!
//! The crate builds the tree of the schema recursively and allocates as many children as an element
//! declares, so a small file with a deep schema overflows the stack. The elements are a list in
//! depth-first order, in the compact protocol of Thrift; their depth follows from their numbers of
//! children.

use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::reader::ChunkReader;
use parquet::schema::types::SchemaDescriptor;

/// The most levels of a schema; a flat table has two.
const MOST_LEVELS: usize = 64;

/// The most levels of a logical type and of fields that are skipped.
const MOST_SKIPPED: usize = 8;

/// The wire types of Thrift.
const STOP: u8 = 0;
const BYTE: u8 = 3;
const I32: u8 = 5;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// The schema in the footer of a file; `None` if the file does not end in a footer, which the crate
/// reports.
pub(super) fn schema(content: &impl ChunkReader) -> Result<Option<Arc<SchemaDescriptor>>, String> {
    let Some(tail_at) = content.len().checked_sub(8) else { return Ok(None) };
    let problem = |error: ParquetError| error.to_string();
    let tail = content.get_bytes(tail_at, 8).map_err(problem)?;
    let Some(&length) = tail.strip_suffix(b"PAR1").and_then(<[u8]>::first_chunk::<4>) else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(length);
    let Some(start) = tail_at.checked_sub(length.into()) else { return Ok(None) };
    let footer = content.get_bytes(start, length as usize).map_err(problem)?;
    Scan(&footer).check_schema()?;
    ParquetMetaDataReader::decode_schema(&footer).map(Some).map_err(problem)
}

/// The bytes of the footer that are left.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    /// Checks the list of schema elements, the second field of the footer.
    fn check_schema(&mut self) -> Result<(), String> {
        let mut id = 0;
        loop {
            match self.field(&mut id)? {
                STOP => return Err("the footer has no schema".to_owned()),
                LIST if id == 2 => return self.check_elements(),
                kind if id != 2 => self.skip(kind, MOST_SKIPPED)?,
                _ => return Err(damaged()),
            }
        }
    }

    /// Follows the elements down the tree: `open` are the children that each level still expects.
    fn check_elements(&mut self) -> Result<(), String> {
        let (kind, size) = self.list()?;
        if kind != STRUCT {
            return Err(damaged());
        }
        let mut open: Vec<u64> = Vec::new();
        for left in (0..size).rev() {
            let children = self.element()?;
            if children > left {
                return Err(format!(
                    "a schema element declares {children} children, {left} follow"
                ));
            }
            if let Some(parent) = open.last_mut() {
                *parent = parent.saturating_sub(1);
            }
            if children > 0 {
                open.push(children);
            }
            if open.len() > MOST_LEVELS {
                return Err(format!(
                    "its columns are nested more than {MOST_LEVELS} levels deep, expected flat \
                     columns"
                ));
            }
            while open.last() == Some(&0) {
                open.pop();
            }
        }
        Ok(())
    }

    /// Reads a schema element; gives its number of children. Its fields have to have the types of
    /// the format, because the crate does not look at the types that the file declares.
    fn element(&mut self) -> Result<u64, String> {
        let (mut id, mut children) = (0, 0);
        loop {
            match (self.field(&mut id)?, id) {
                (STOP, _) => return Ok(children),
                (I32, 5) => match self.varint()? {
                    zigzag if zigzag & 1 == 0 => children = zigzag >> 1,
                    _ => {
                        return Err("a schema element has a negative number of children".to_owned());
                    }
                },
                (I32, 1..=3 | 6..=9) => _ = self.varint()?,
                (BINARY, 4) => self.skip(BINARY, 1)?,
                (STRUCT, 10) => self.logical_type()?,
                (kind, ..=0 | 11..) => self.skip(kind, MOST_SKIPPED)?,
                _ => return Err(damaged()),
            }
        }
    }

    /// A logical type: a union of small structs.
    fn logical_type(&mut self) -> Result<(), String> {
        let mut which = 0;
        loop {
            match self.field(&mut which)? {
                STOP => return Ok(()),
                STRUCT => {}
                _ => return Err(damaged()),
            }
            let mut id = 0;
            loop {
                match (self.field(&mut id)?, which, id) {
                    (STOP, ..) => break,
                    // Decimals, times, integers, variants, and places on earth.
                    (kind @ I32, 5, 1 | 2)
                    | (kind @ (1 | 2), 7 | 8, 1)
                    | (kind @ STRUCT, 7 | 8, 2)
                    | (kind @ BYTE, 10 | 16, 1)
                    | (kind @ (1 | 2), 10, 2)
                    | (kind @ BINARY, 17 | 18, 1)
                    | (kind @ I32, 18, 2) => self.skip(kind, 3)?,
                    _ => return Err(damaged()),
                }
            }
        }
    }

    /// The type of the next field of a struct; `id` is the last one's and becomes its own.
    fn field(&mut self, id: &mut i64) -> Result<u8, String> {
        let header = self.byte()?;
        if header & 0xF == STOP {
            return Ok(STOP);
        }
        *id = match header >> 4 {
            0 => {
                let zigzag = self.varint()?;
                i64::from(((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)) as i16)
            }
            step => *id + i64::from(step),
        };
        Ok(header & 0xF)
    }

    /// The type and the number of the elements of a list.
    fn list(&mut self) -> Result<(u8, u64), String> {
        let header = self.byte()?;
        let size = if header >> 4 == 15 { self.varint()? } else { u64::from(header >> 4) };
        // Every element has at least a byte, except booleans, which no list here has.
        if size > self.0.len() as u64 {
            return Err(damaged());
        }
        Ok((header & 0xF, size))
    }

    fn skip(&mut self, kind: u8, levels: usize) -> Result<(), String> {
        let Some(levels) = levels.checked_sub(1) else { return Err(damaged()) };
        match kind {
            1 | 2 => Ok(()),
            BYTE => self.byte().map(drop),
            4..=6 => self.varint().map(drop),
            DOUBLE => self.bytes(8),
            BINARY => {
                let length = self.varint()?;
                self.bytes(length)
            }
            LIST | SET => match self.list()? {
                (1 | 2, size) if size > 0 => Err(damaged()),
                (kind, size) => (0..size).try_for_each(|_| self.skip(kind, levels)),
            },
            STRUCT => {
                let mut id = 0;
                loop {
                    match self.field(&mut id)? {
                        STOP => return Ok(()),
                        kind => self.skip(kind, levels)?,
                    }
                }
            }
            _ => Err(damaged()),
        }
    }

    fn bytes(&mut self, count: u64) -> Result<(), String> {
        let count = usize::try_from(count).map_err(|_| damaged())?;
        self.0 = self.0.get(count..).ok_or_else(damaged)?;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, String> {
        let (&first, rest) = self.0.split_first().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(first)
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(damaged())
    }
}

fn damaged() -> String {
    "the footer is damaged".to_owned()
}
