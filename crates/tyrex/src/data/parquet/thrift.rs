//! The compact protocol of Thrift, in which the footer and the headers of pages are written.

/// The most levels of a logical type and of fields that are skipped.
pub(super) const MOST_SKIPPED: usize = 8;

/// The wire types.
pub(super) const STOP: u8 = 0;
pub(super) const FALSE: u8 = 2;
pub(super) const BYTE: u8 = 3;
pub(super) const I32: u8 = 5;
const DOUBLE: u8 = 7;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
const SET: u8 = 10;
pub(super) const STRUCT: u8 = 12;

/// The bytes that are left.
pub(super) struct Scan<'a>(pub(super) &'a [u8]);

impl Scan<'_> {
    /// The type of the next field of a struct; `id` is the last one's and becomes its own.
    pub(super) fn field(&mut self, id: &mut i64) -> Result<u8, String> {
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
    pub(super) fn list(&mut self) -> Result<(u8, u64), String> {
        let header = self.byte()?;
        let size = if header >> 4 == 15 { self.varint()? } else { u64::from(header >> 4) };
        // Every element has at least a byte, except booleans, which no list here has.
        if size > self.0.len() as u64 {
            return Err(damaged());
        }
        Ok((header & 0xF, size))
    }

    pub(super) fn skip(&mut self, kind: u8, levels: usize) -> Result<(), String> {
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

    pub(super) fn varint(&mut self) -> Result<u64, String> {
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

/// The problem of bytes that do not follow the protocol.
pub(super) fn damaged() -> String {
    "the footer or the header of a page is damaged".to_owned()
}
