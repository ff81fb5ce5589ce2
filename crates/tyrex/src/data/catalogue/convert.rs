//! Converts the published file of a data set to the file of the catalogue, byte for byte.

use super::workbook;

/// How a published file is converted.
#[derive(Debug)]
pub(super) enum Recipe {
    /// UCI's Adult: a header on top, no spaces after commas, no comment line at the start and
    /// no full stops after the labels (the test file has both).
    Adult {
        /// The header to add.
        header: &'static str,
    },
    /// A CSV file with extra columns at its right.
    FirstColumns(usize),
    /// A sheet of an Excel workbook.
    Sheet(Sheet),
}

/// Where in a workbook the table is, and how its numbers are written.
#[derive(Debug)]
pub(super) struct Sheet {
    /// The sheet's name.
    pub name: &'static str,
    /// The first row below its headers, from 0.
    pub first_row: u16,
    /// The number of rows.
    pub rows: u16,
    /// The columns, as ranges with both ends, from 0.
    pub columns: &'static [(u16, u16)],
    /// The header to write.
    pub header: &'static str,
    /// The columns written with three decimals, rounded half up; the others as they are.
    pub three_decimals: &'static [u16],
}

impl Recipe {
    /// The converted file; the error describes a problem of the published file.
    pub(super) fn apply(&self, raw: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::Adult { header } => Ok(adult(text(raw)?, header).into_bytes()),
            Self::FirstColumns(count) => Ok(first_columns(text(raw)?, *count).into_bytes()),
            Self::Sheet(sheet) => Ok(sheet.read(raw)?.into_bytes()),
        }
    }
}

fn text(raw: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(raw).map_err(|_| "the file is not text".to_owned())
}

fn adult(raw: &str, header: &str) -> String {
    let mut lines = vec![header.to_owned()];
    let data = raw.lines().filter(|line| !line.is_empty() && !line.starts_with('|'));
    lines.extend(data.map(|line| line.trim_end_matches('.').replace(", ", ",")));
    joined(&lines)
}

fn first_columns(raw: &str, count: usize) -> String {
    let cut = |line: &str| line.split(',').take(count).collect::<Vec<_>>().join(",");
    joined(&raw.lines().map(cut).collect::<Vec<_>>())
}

fn joined(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

impl Sheet {
    fn read(&self, raw: &[u8]) -> Result<String, String> {
        let numbers = workbook::numbers(raw, self.name)?;
        let mut lines = vec![self.header.to_owned()];
        for row in (self.first_row..).take(usize::from(self.rows)) {
            let columns = self.columns.iter().flat_map(|&(first, last)| first..=last);
            let cells = columns.map(|column| {
                let value = numbers.get(&(row, column)).ok_or_else(|| {
                    format!("sheet `{}` has no number in row {row}, column {column}", self.name)
                })?;
                // `{}` writes whole numbers without a decimal point, as the CSV files do.
                Ok(if self.three_decimals.contains(&column) {
                    format!("{:.3}", (value * 1000.0).round() / 1000.0)
                } else {
                    format!("{value}")
                })
            });
            lines.push(cells.collect::<Result<Vec<_>, String>>()?.join(","));
        }
        Ok(joined(&lines))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adult_loses_its_comment_its_spaces_and_its_full_stops() {
        let raw = b"|1x3 Cross validator\n25, Private, <=50K.\n38, ?, >50K.\n\n";
        let csv = Recipe::Adult { header: "age,workclass,income" }.apply(raw).unwrap();
        assert_eq!(csv, b"age,workclass,income\n25,Private,<=50K\n38,?,>50K\n");
    }

    #[test]
    fn columns_too_many_are_cut_off() {
        assert_eq!(Recipe::FirstColumns(2).apply(b"a,b,c\n1,2,3\n").unwrap(), b"a,b\n1,2\n");
    }

    /// Written by `tests/golden/workbook.py` with the Python package xlwt: sheets `Other` and
    /// `Data`, the latter with numbers in every form, and a text and an unsolved formula.
    const WORKBOOK: &[u8] = include_bytes!("../../../tests/golden/workbook.xls");

    const SHEET: Sheet = Sheet {
        name: "Data",
        first_row: 1,
        rows: 3,
        columns: &[(0, 1), (3, 4)],
        header: "a,b,d,e",
        three_decimals: &[1],
    };

    #[test]
    fn a_sheet_becomes_csv() {
        let csv = Recipe::Sheet(SHEET).apply(WORKBOOK).unwrap();
        let expected = "a,b,d,e\n1,0.008,-7,2.5\n2,0.003,123456789.25,0.1\n-3,0.000,0.25,1e-7\n";
        assert_eq!(String::from_utf8(csv).unwrap(), expected.replace("1e-7", "0.0000001"));
    }

    #[test]
    fn what_is_not_such_a_sheet_is_refused() {
        let refused = |recipe: Recipe, raw: &[u8]| recipe.apply(raw).unwrap_err();
        assert!(refused(Recipe::Sheet(SHEET), b"<html>not found</html>").contains("workbook"));
        let other = Sheet { name: "Nothing", ..SHEET };
        assert_eq!(refused(Recipe::Sheet(other), WORKBOOK), "no sheet `Nothing`");
        let longer = Sheet { rows: 4, ..SHEET };
        assert!(refused(Recipe::Sheet(longer), WORKBOOK).contains("row 4, column 0"));
        assert_eq!(refused(Recipe::FirstColumns(1), &[0xFF]), "the file is not text");
    }

    #[test]
    fn a_damaged_workbook_is_an_error_and_never_a_panic() {
        for length in (0..WORKBOOK.len()).step_by(37) {
            let _ = Recipe::Sheet(SHEET).apply(&WORKBOOK[..length]);
        }
        for position in 0..WORKBOOK.len() {
            for value in [0x00, 0x7F, 0xFF] {
                let mut damaged = WORKBOOK.to_vec();
                damaged[position] = value;
                let _ = Recipe::Sheet(SHEET).apply(&damaged);
            }
        }
    }
}
