//! The bytes of a file, counted as they are read.

use std::io::{self, ErrorKind, Read};

/// Bytes that are counted as they are read.
pub(super) struct Input<R> {
    reader: R,
    read: u64,
    size: Option<u64>,
}

impl<R> Input<R> {
    /// `size` is the total number of bytes; `None` if unknown, as for a pipe.
    pub(super) fn new(reader: R, size: Option<u64>) -> Self {
        Self { reader, read: 0, size }
    }

    /// The share read so far, 0 to 1.
    pub(super) fn progress(&self) -> Option<f64> {
        self.size.map(|size| share(self.read, size))
    }
}

/// `part / whole`, 0 to 1. All of nothing is 1.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    // A file may grow while it is read.
    if part >= whole { 1.0 } else { part as f64 / whole as f64 }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.reader.read(out) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(count) => {
                    self.read += count as u64;
                    return Ok(count);
                }
            }
        }
    }
}

/// UTF-8 text: whole characters only, and an error at the first byte that is not UTF-8, once
/// all before it was read.
pub(super) struct Utf8<R> {
    input: R,
    /// The start of a character whose end was not read yet, and a byte order mark before it.
    begun: Vec<u8>,
    has_begun: bool,
    line: usize,
    is_bad: bool,
}

impl<R> Utf8<R> {
    /// The text of these bytes.
    pub(super) fn new(input: R) -> Self {
        Self { input, begun: Vec::new(), has_begun: false, line: 1, is_bad: false }
    }

    /// Where the bytes come from.
    pub(super) fn input(&self) -> &R {
        &self.input
    }

    /// The line that is not UTF-8, counted from 1, if reading ended there.
    pub(super) fn bad_line(&self) -> Option<usize> {
        self.is_bad.then_some(self.line)
    }
}

impl<R: Read> Read for Utf8<R> {
    /// Needs a buffer for two whole characters, as buffered readers have it.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.len() < 8 {
            return Err(ErrorKind::InvalidInput.into());
        }
        while !self.is_bad {
            let begun = self.begun.len();
            out[..begun].copy_from_slice(&self.begun);
            let count = self.input.read(&mut out[begun..])?;
            let bytes = &out[..begun + count];
            self.begun.clear();
            let valid = match std::str::from_utf8(bytes) {
                Ok(_) => bytes.len(),
                Err(error) => {
                    let at = error.valid_up_to();
                    if error.error_len().is_some() || count == 0 {
                        self.is_bad = true;
                    } else {
                        self.begun.extend_from_slice(&bytes[at..]);
                    }
                    at
                }
            };
            // The CSV reader would take a byte order mark alone for the end of the file.
            if !self.has_begun && bytes[..valid] == *b"\xEF\xBB\xBF" && (count > 0 || self.is_bad) {
                self.begun = bytes.to_vec();
                continue;
            }
            self.has_begun |= valid > 0;
            self.line += bytes[..valid].split(|&byte| byte == b'\n').skip(1).count();
            if valid > 0 || (count == 0 && !self.is_bad) {
                return Ok(valid);
            }
        }
        Err(ErrorKind::InvalidData.into())
    }
}
