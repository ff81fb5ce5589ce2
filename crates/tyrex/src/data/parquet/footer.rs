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

use super::thrift::{BINARY, BYTE, I32, LIST, MOST_SKIPPED, STOP, STRUCT, Scan, damaged};

/// The most levels of a schema; a flat table has two.
const MOST_LEVELS: usize = 64;

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
}
