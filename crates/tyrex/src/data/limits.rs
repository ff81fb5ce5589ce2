//! The limits of a table.

use std::io;

/// The most columns of a table: some work takes time with the square of their number.
pub(crate) const MOST_COLUMNS: usize = 10_000;

/// The most bytes of a row of text, which is in memory before its cells are counted.
pub(crate) const MOST_ROW: u64 = 64 << 20;

/// The most bytes of a page of a Parquet file, compressed or not. Writers make pages of a megabyte.
pub(crate) const MOST_PAGE: u64 = 64 << 20;

/// The most bytes of the pages that are in memory together: for each column its dictionary and one
/// page.
pub(crate) const MOST_OPEN_PAGES: u64 = 1 << 30;

/// The error for a row that is longer.
pub(crate) fn long_row() -> io::Error {
    let problem = format!(
        "a row is longer than {} MiB; expected a line break after each row, and closed quotes",
        MOST_ROW >> 20
    );
    io::Error::new(io::ErrorKind::FileTooLarge, problem)
}

/// Rejects too many columns.
pub(crate) fn check_columns(columns: usize) -> Result<(), String> {
    if columns > MOST_COLUMNS {
        return Err(format!("it has {columns} columns, expected at most {MOST_COLUMNS}"));
    }
    Ok(())
}

/// The maximum size of a table. The size of a file does not limit it: a Parquet file of a few
/// hundred kilobytes can hold five million equal rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableLimits {
    /// Rows.
    pub rows: usize,
    /// Cells: rows times columns.
    pub cells: usize,
    /// Bytes of text in all cells.
    pub text: usize,
}

impl Default for TableLimits {
    /// Ten million rows, a hundred million cells, a gibibyte of text: a table of them takes less
    /// than two gibibytes.
    fn default() -> Self {
        Self { rows: 10_000_000, cells: 100_000_000, text: 1 << 30 }
    }
}

impl TableLimits {
    /// Rejects too many rows or cells, as declared in a file, before it is decoded.
    pub fn check(&self, rows: usize, columns: usize) -> Result<(), String> {
        if rows > self.rows {
            return Err(format!("it has {rows} rows, expected at most {}", self.rows));
        }
        let cells = rows.saturating_mul(columns);
        if cells > self.cells {
            return Err(format!(
                "it has {cells} cells in {columns} columns, expected at most {} cells",
                self.cells
            ));
        }
        Ok(())
    }
}

/// The remaining size while a table is read, cell by cell, since the declared sizes of a file may
/// be wrong.
#[derive(Debug)]
pub(crate) struct TableMeter {
    limits: TableLimits,
    cells: usize,
    text: usize,
}

impl TableMeter {
    pub(crate) fn new(limits: TableLimits) -> Self {
        Self { limits, cells: 0, text: 0 }
    }

    /// Counts a cell of this many bytes in this row.
    pub(crate) fn take(&mut self, row: usize, bytes: usize) -> Result<(), String> {
        let TableLimits { rows, cells, text } = self.limits;
        self.cells += 1;
        self.text = self.text.saturating_add(bytes);
        if row >= rows {
            return Err(format!("it has more than {rows} rows, expected at most that many"));
        }
        if self.cells > cells {
            return Err(format!("it has more than {cells} cells, expected at most that many"));
        }
        if self.text > text {
            return Err(format!("its cells hold more than {text} bytes of text, expected less"));
        }
        Ok(())
    }
}
