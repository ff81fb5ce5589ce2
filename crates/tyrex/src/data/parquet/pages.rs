//! The pages of a column, checked before the `parquet` crate decompresses them.
//!
//! The crate allocates as many bytes as the header of a page declares, up to two gibibytes, before it
//! looks at the content, and decompresses gzip whatever the header declares. So the headers are read
//! here first, and pages in gzip are decompressed once into nothing.

#[cfg(feature = "parquet-codecs")]
use std::io::{self, Read};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use prost::bytes::Bytes;

use super::thrift::{FALSE, I32, MOST_SKIPPED, STOP, STRUCT, Scan, damaged};
use crate::data::limits::{MOST_OPEN_PAGES, MOST_PAGE};

/// The bytes of a header that are read at first. Statistics can make it longer.
const HEADER: u64 = 1 << 10;

/// The file, which the pages are read from apart from the crate.
pub(super) struct Shared<R>(pub(super) Arc<R>);

impl<R> Clone for Shared<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Length> Length for Shared<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Shared<R> {
    type T = R::T;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.0.get_bytes(start, length)
    }
}

/// The fields of a page's header that count, in bytes.
#[derive(Debug, Default, Clone, Copy)]
struct Header {
    is_dictionary: bool,
    uncompressed: u64,
    compressed: u64,
    /// The levels at the start of a page of the second version, which are not compressed.
    levels: u64,
    /// Whether the rest of a page of the second version is not compressed either.
    is_plain: bool,
    /// The length of the header itself.
    length: u64,
}

/// Checks the pages of some columns of a row group. A reader has a page of each column in memory.
pub(super) fn check<'a>(
    content: &impl ChunkReader,
    chunks: impl Iterator<Item = &'a ColumnChunkMetaData>,
) -> Result<(), String> {
    let mut open = 0_u64;
    for chunk in chunks {
        open += check_chunk(content, chunk)?;
        if open > MOST_OPEN_PAGES {
            return Err(format!(
                "the pages of its columns take more than {} MiB together, expected smaller pages",
                MOST_OPEN_PAGES >> 20
            ));
        }
    }
    Ok(())
}

/// Checks the pages of a column; returns the bytes of its dictionary and its largest page.
fn check_chunk(content: &impl ChunkReader, chunk: &ColumnChunkMetaData) -> Result<u64, String> {
    let (mut at, length) = chunk.byte_range();
    let end = at.checked_add(length).filter(|end| *end <= content.len()).ok_or_else(damaged)?;
    let (mut dictionary, mut largest) = (0, 0);
    while at < end {
        let header = header(content, at, end - at)?;
        at += header.length;
        let size = header.uncompressed.max(header.compressed);
        if size > MOST_PAGE {
            return Err(format!(
                "a page of column `{}` has {size} bytes, expected at most {} MiB",
                chunk.column_path().string(),
                MOST_PAGE >> 20
            ));
        }
        if header.compressed > end - at {
            return Err(damaged());
        }
        if let Compression::GZIP(_) = chunk.compression() {
            #[cfg(feature = "parquet-codecs")]
            check_gzip(content, at, &header)?;
        }
        let kept = if header.is_dictionary { &mut dictionary } else { &mut largest };
        *kept = size.max(*kept);
        at += header.compressed;
    }
    Ok(dictionary + largest)
}

/// The header of the page at a place, of at most `left` bytes.
fn header(content: &impl ChunkReader, at: u64, left: u64) -> Result<Header, String> {
    let mut length = left.min(HEADER);
    loop {
        let bytes = content.get_bytes(at, length as usize).map_err(|error| error.to_string())?;
        match read_header(&bytes) {
            Err(_) if length < left && length < MOST_PAGE => length = left.min(8 * length),
            read => return read,
        }
    }
}

fn read_header(bytes: &[u8]) -> Result<Header, String> {
    const DICTIONARY: u64 = 2;
    let mut scan = Scan(bytes);
    let (mut id, mut header) = (0, Header::default());
    let mut sizes = 0;
    loop {
        match (scan.field(&mut id)?, id) {
            (STOP, _) if sizes == 2 => {
                header.length = (bytes.len() - scan.0.len()) as u64;
                return Ok(header);
            }
            (I32, 1) => header.is_dictionary = natural(&mut scan)? == DICTIONARY,
            (I32, 2) => (header.uncompressed, sizes) = (natural(&mut scan)?, sizes + 1),
            (I32, 3) => (header.compressed, sizes) = (natural(&mut scan)?, sizes + 1),
            (STRUCT, 8) => second_version(&mut scan, &mut header)?,
            (STOP, _) | (_, 1..=3 | 8) => return Err(damaged()),
            (kind, _) => scan.skip(kind, MOST_SKIPPED)?,
        }
    }
}

/// The header of a data page of the second version.
fn second_version(scan: &mut Scan<'_>, header: &mut Header) -> Result<(), String> {
    let mut id = 0;
    loop {
        match (scan.field(&mut id)?, id) {
            (STOP, _) => return Ok(()),
            (I32, 5 | 6) => header.levels += natural(scan)?,
            (kind, 7) => header.is_plain = kind == FALSE,
            (kind, _) => scan.skip(kind, MOST_SKIPPED)?,
        }
    }
}

/// A number that may not be negative.
fn natural(scan: &mut Scan<'_>) -> Result<u64, String> {
    match scan.varint()? {
        zigzag if zigzag & 1 == 0 && zigzag >> 1 <= u64::from(i32::MAX.unsigned_abs()) => {
            Ok(zigzag >> 1)
        }
        _ => Err(damaged()),
    }
}

/// Compares the bytes of a page in gzip with those that its header declares.
#[cfg(feature = "parquet-codecs")]
fn check_gzip(content: &impl ChunkReader, at: u64, header: &Header) -> Result<(), String> {
    let levels = header.levels.min(header.compressed);
    if header.is_plain || header.uncompressed == levels {
        return Ok(());
    }
    let problem = |error: ParquetError| error.to_string();
    let read = content.get_read(at + levels).map_err(problem)?;
    let declared = header.uncompressed.saturating_sub(levels);
    let inside = flate2::read::MultiGzDecoder::new(read.take(header.compressed - levels));
    let found = io::copy(&mut inside.take(declared + 1), &mut io::sink())
        .map_err(|error| format!("a page in gzip cannot be decompressed: {error}"))?;
    if found != declared {
        return Err(format!(
            "a page in gzip has {} bytes, and its header declares {declared}",
            if found > declared { "more".to_owned() } else { found.to_string() }
        ));
    }
    Ok(())
}
