//! How much a table may hold.

/// The most that a table may hold. The size of a file says little about it: Parquet keeps five
/// million equal rows in a few hundred kilobytes.
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
    /// Refuses more rows and cells than are allowed: what a file declares, before it is decoded.
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

/// The room that is left while a table is read, cell by cell: what a file declares may be wrong.
#[derive(Debug)]
pub(crate) struct TableRoom {
    limits: TableLimits,
    cells: usize,
    text: usize,
}

impl TableRoom {
    pub(crate) fn new(limits: TableLimits) -> Self {
        Self { limits, cells: 0, text: 0 }
    }

    /// Takes room for a cell of so many bytes in this row.
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
