//! Rows, points, labels and a split: the input of a training.

use rand::seq::SliceRandom as _;

use crate::data::cell::listed;
use crate::data::encode::Encoder;
use crate::data::rows::{ReadReport, Rows};
use crate::data::schema::{FitOn, Label, MissingPolicy, Schema, Split};
use crate::data::table::{Column, Table};
use crate::data::value::{Row, Value, parse_number};
use crate::error::{Error, Result};
use crate::points::Points;
use crate::seed::Seed;

/// A table read through a schema: rows, points, labels and the split.
#[derive(Debug, Clone)]
pub struct Dataset {
    schema: Schema,
    table: Table,
    encoder: Encoder,
    rows: Vec<Row>,
    table_rows: Vec<usize>,
    points: Points,
    labels: Vec<bool>,
    train: Vec<usize>,
    test: Vec<usize>,
    report: ReadReport,
    has_split_table: bool,
}

impl Dataset {
    /// Reads a table through a schema. A split file that the schema names is read from the
    /// schema's folder.
    pub fn load(schema: &Schema, table: Table) -> Result<Self> {
        Self::assemble(schema, table, None)
    }

    /// Reads a table through a schema, with the split from another table: columns `row`
    /// (0-based data row) and `split` (`train` or `test`). The schema's own split is ignored.
    pub(crate) fn load_with_split(schema: &Schema, table: Table, split: &Table) -> Result<Self> {
        Self::assemble(schema, table, Some(split))
    }

    /// Reads a table through a schema, with these rows of the table to train on and to test on. The
    /// schema's own split is ignored.
    pub fn load_with_rows(
        schema: &Schema,
        table: Table,
        train: &[usize],
        test: &[usize],
    ) -> Result<Self> {
        let (mut rows, mut words) = (Column::new("row"), Column::new("split"));
        for (part, word) in [(train, "train"), (test, "test")] {
            for row in part {
                rows.push_display(row);
                words.push(word);
            }
        }
        let split = Table::new(table.source(), vec![rows, words])?;
        Self::assemble(schema, table, Some(&split))
    }

    /// The same rows with another split of the schema; their encoding stays.
    pub(crate) fn with_split(&self, split: &Split) -> Result<Self> {
        let schema = Schema { split: split.clone(), ..self.schema.clone() };
        let (train, test) = self::split(&schema, &self.table, &self.table_rows)?;
        Ok(Self { schema, train, test, ..self.clone() })
    }

    fn assemble(schema: &Schema, table: Table, split: Option<&Table>) -> Result<Self> {
        let mut kept = Rows::read(schema, &table)?;
        let labels = read_labels(schema, &table, &mut kept)?;
        let Rows { rows, table_rows, report } = kept;
        let (train, test) = match split {
            Some(split) => split_by_table(split, &table, &table_rows)?,
            None => self::split(schema, &table, &table_rows)?,
        };
        let wrong = |problem: String| Error::Table { file: table.source().to_owned(), problem };
        if train.is_empty() {
            return Err(wrong("the split leaves no rows to train on".to_owned()));
        }
        let favourable = train.iter().filter(|&&row| labels[row]).count();
        if favourable == 0 || favourable == train.len() {
            let which = if favourable == 0 { "unfavourable" } else { "favourable" };
            return Err(wrong(format!(
                "all {} training rows are {which} in column `{}`, expected both classes \
                 (favourable is {})",
                train.len(),
                schema.label.column,
                listed(&schema.label.favourable)
            )));
        }
        let fitted_on: Vec<&Row> = match schema.scaling.fit {
            FitOn::Train => train.iter().map(|&row| &rows[row]).collect(),
            FitOn::All => rows.iter().collect(),
        };
        let encoder = Encoder::fit(schema, &fitted_on)?;
        let points = encoder.encode_rows(&rows)?;
        Ok(Self {
            schema: schema.clone(),
            table,
            encoder,
            rows,
            table_rows,
            points,
            labels,
            train,
            test,
            report,
            has_split_table: split.is_some(),
        })
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The table, with every row of the file.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The encoder.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The kept rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// For each kept row, its row in the table.
    pub fn table_rows(&self) -> &[usize] {
        &self.table_rows
    }

    /// The points of the rows.
    pub fn points(&self) -> &Points {
        &self.points
    }

    /// For each row, whether its label is favourable.
    pub fn labels(&self) -> &[bool] {
        &self.labels
    }

    /// The rows to train on, as indices into `rows`, in the order of the split.
    pub fn train(&self) -> &[usize] {
        &self.train
    }

    /// The rows to test on, as indices into `rows`, in the order of the split.
    pub fn test(&self) -> &[usize] {
        &self.test
    }

    /// Whether the split came from a table instead of the schema.
    pub fn has_split_table(&self) -> bool {
        self.has_split_table
    }

    /// The report of dropped rows and filled cells.
    pub fn report(&self) -> &ReadReport {
        &self.report
    }
}

impl Schema {
    /// Whether a cell of the label column is favourable; `None` if it is not a label.
    pub(crate) fn is_favourable(&self, cell: &str) -> Option<bool> {
        let is_one_of = |values: &[Value]| values.iter().any(|value| value.matches(cell));
        let Label { favourable, unfavourable, .. } = &self.label;
        if is_one_of(favourable) {
            return Some(true);
        }
        let is_other = unfavourable.is_empty() && !self.is_missing(cell);
        (is_other || is_one_of(unfavourable)).then_some(false)
    }
}

/// The label of every kept row; rows without a label are dropped if the schema allows it.
fn read_labels(schema: &Schema, table: &Table, kept: &mut Rows) -> Result<Vec<bool>> {
    let label = &schema.label;
    let column = table.column(&label.column)?;
    let mut labels = Vec::with_capacity(kept.rows.len());
    let mut present = Vec::with_capacity(kept.rows.len());
    for &row in &kept.table_rows {
        let cell = table.cell(row, column);
        if let Some(favourable) = schema.is_favourable(cell) {
            labels.push(favourable);
            present.push(true);
            continue;
        }
        let missing = schema.is_missing(cell);
        if missing && label.missing == MissingPolicy::DropRow {
            present.push(false);
            continue;
        }
        let all: Vec<&Value> = label.favourable.iter().chain(&label.unfavourable).collect();
        let expected = match (missing, label.unfavourable.is_empty()) {
            (true, true) => "a label".to_owned(),
            _ => format!("a label: one of {}", listed(&all)),
        };
        return Err(table.cell_error(row, column, expected));
    }
    let dropped = present.iter().filter(|present| !**present).count();
    if dropped > 0 {
        retain(&mut kept.rows, &present);
        retain(&mut kept.table_rows, &present);
        kept.report.rows_dropped += dropped;
        *kept.report.dropped_by.entry(label.column.clone()).or_default() += dropped;
    }
    if labels.is_empty() {
        return Err(Error::Table {
            file: table.source().to_owned(),
            problem: format!("no rows left: none has a label in column `{}`", label.column),
        });
    }
    Ok(labels)
}

fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    items.retain(|_| keep.next().copied().unwrap_or(false));
}

/// The rows to train on and those to test on, as indices into the rows kept.
pub(crate) type Parts = (Vec<usize>, Vec<usize>);

/// The split of the schema.
pub(crate) fn split(schema: &Schema, table: &Table, table_rows: &[usize]) -> Result<Parts> {
    match &schema.split {
        Split::AllTrain => Ok(((0..table_rows.len()).collect(), Vec::new())),
        Split::File { file } => {
            let split = Table::read(&schema.folder.join(file))?;
            split_by_table(&split, table, table_rows)
        }
        Split::Column { column, train, test } => {
            let column = table.column(column)?;
            let mut parts = Parts::default();
            for (index, &row) in table_rows.iter().enumerate() {
                let cell = table.cell(row, column);
                if train.iter().any(|value| value.matches(cell)) {
                    parts.0.push(index);
                } else if test.iter().any(|value| value.matches(cell)) {
                    parts.1.push(index);
                } else {
                    let all: Vec<&Value> = train.iter().chain(test).collect();
                    return Err(table.cell_error(row, column, format!("one of {}", listed(&all))));
                }
            }
            Ok(parts)
        }
        Split::Fraction { train, seed } => {
            let mut order: Vec<usize> = (0..table_rows.len()).collect();
            order.shuffle(&mut Seed(*seed).derive("split").rng());
            let count = (train * order.len() as f64).round() as usize;
            let mut test = order.split_off(count.min(order.len()));
            order.sort_unstable();
            test.sort_unstable();
            Ok((order, test))
        }
    }
}

/// Reads `row,split`. A row that was dropped for a missing cell is in neither part.
fn split_by_table(split: &Table, table: &Table, table_rows: &[usize]) -> Result<Parts> {
    let (rows, words) = (split.column("row")?, split.column("split")?);
    let numbers = table.row_numbers();
    let mut index_of = vec![None; numbers.len()];
    for (index, &row) in table_rows.iter().enumerate() {
        index_of[row - numbers.start] = Some(index);
    }
    let mut seen = vec![false; numbers.len()];
    let mut parts = Parts::default();
    for line in split.row_numbers() {
        let expected = || {
            let last = numbers.end.saturating_sub(1);
            format!("a row of {}, {} to {last}", table.source().display(), numbers.start)
        };
        let row = parse_number(split.cell(line, rows))
            .filter(|row| row.fract() == 0.0 && *row >= 0.0)
            .map(|row| row as usize)
            .filter(|row| numbers.contains(row))
            .ok_or_else(|| split.cell_error(line, rows, expected()))?
            - numbers.start;
        if std::mem::replace(&mut seen[row], true) {
            return Err(split.cell_error(line, rows, "every row at most once".to_owned()));
        }
        let part = match split.cell(line, words) {
            "train" => &mut parts.0,
            "test" => &mut parts.1,
            _ => return Err(split.cell_error(line, words, "`train` or `test`".to_owned())),
        };
        part.extend(index_of[row]);
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const TABLE: &str = "\
id,age,job,late,class,part
1,20,clerk,0,good,a
2,?,clerk,-9,bad,a
3,40,?,2,good,b
4,60,baker,?,bad,b
5,30,baker,1,?,a
6,80,baker,3,good,a
";

    const SCHEMA: &str = r#"
format_version = 1
ignore = ["id"]

[label]
column = "class"
favourable = "good"
unfavourable = ["bad"]
missing = "drop-row"

[split]
column = "part"
train = ["a"]
test = ["b"]

[[feature]]
name = "age"
kind = "numeric"
step = 0.5
missing = { fill = 50 }

[[feature]]
name = "job"
kind = "categorical"
levels = ["baker", "clerk"]
missing = "level"

[[feature]]
name = "late"
kind = "integer"
range = [0, 9]
special = { values = [-9], as = "level" }
missing = "drop-row"
"#;

    fn table() -> Table {
        Table::from_csv(Path::new("data.csv"), TABLE.as_bytes()).unwrap()
    }

    fn loaded(schema: &str) -> Dataset {
        Dataset::load(&Schema::from_toml(schema).unwrap(), table()).unwrap()
    }

    #[test]
    fn nothing_that_reading_does_is_silent() {
        let data = loaded(SCHEMA);
        assert_eq!(data.table_rows(), [0, 1, 2, 5]);
        assert_eq!(data.labels(), [true, false, true, true]);
        assert_eq!((data.train(), data.test()), (&[0, 1, 3][..], &[2][..]));
        let report = data.report();
        assert_eq!((report.rows_read, report.rows_dropped), (6, 2));
        let counts = |map: &std::collections::BTreeMap<String, usize>| {
            map.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(counts(&report.dropped_by), "class 1, late 1");
        assert_eq!(counts(&report.filled), "age 1");
        assert_eq!(counts(&report.kept_missing), "job 1");
    }

    #[test]
    fn special_and_missing_values_have_columns_of_their_own() {
        let data = loaded(SCHEMA);
        let columns = ["age", "job=baker", "job=clerk", "job is missing", "late", "late=-9"]
            .map(str::to_owned);
        assert_eq!(data.encoder().columns(), columns);
        // Training rows have ages 20, 50 (filled) and 80, and 0 and 3 late payments.
        assert_eq!(data.points().row(1), [0.5, 0.0, 1.0, 0.0, 0.0, 1.0]);
        let third = data.points().row(2);
        assert_eq!(third[1..4], [0.0, 0.0, 1.0]);
        assert!((third[4] - 2.0 / 3.0).abs() < 1e-6);
        for (row, point) in data.rows().iter().zip(data.points().rows()) {
            assert_eq!(data.encoder().decode(point), *row);
        }
    }

    #[test]
    fn scaling_is_fitted_on_training_rows_unless_told_otherwise() {
        let test_row_outside = TABLE.replace("3,40,", "3,140,");
        let table = Table::from_csv(Path::new("data.csv"), test_row_outside.as_bytes()).unwrap();
        let mut schema = Schema::from_toml(SCHEMA).unwrap();
        let train = Dataset::load(&schema, table.clone()).unwrap();
        assert_eq!(train.points().row(2)[0].to_bits(), 2.0_f32.to_bits());
        schema.scaling.fit = FitOn::All;
        let all = Dataset::load(&schema, table).unwrap();
        assert_eq!(all.points().row(2)[0].to_bits(), 1.0_f32.to_bits());
    }

    #[test]
    fn a_z_score_has_mean_zero_and_deviation_one_and_clip_comes_first() {
        let mut schema = Schema::from_toml(SCHEMA).unwrap();
        schema.scaling.method = crate::data::schema::Scaling::ZScore;
        schema.features[0].clip = Some([30.0, f64::INFINITY].into());
        let data = Dataset::load(&schema, table()).unwrap();
        // Clipped ages of the training rows: 30, 50, 80; mean 160 / 3, variance 3800 / 9.
        let deviation = (3800.0_f64 / 9.0).sqrt();
        let expected = [30.0, 50.0, 80.0].map(|age| (age - 160.0 / 3.0) / deviation);
        for (&row, expected) in data.train().iter().zip(expected) {
            assert!((f64::from(data.points().row(row)[0]) - expected).abs() < 1e-6);
        }
        // Clipping loses information.
        let first = data.encoder().decode(data.points().row(0));
        assert!((first.values()[0].number().unwrap() - 30.0).abs() < 1e-4);
    }

    #[test]
    fn a_split_by_fraction_is_a_partition_and_repeats_with_its_seed() {
        let with = |seed: u64| {
            let mut schema = Schema::from_toml(SCHEMA).unwrap();
            schema.split = Split::Fraction { train: 0.75, seed };
            let data = Dataset::load(&schema, table()).unwrap();
            let mut all = [data.train(), data.test()].concat();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3]);
            assert_eq!(data.train().len(), 3);
            data.test().to_vec()
        };
        // The test row must not be the only unfavourable one, or training has one class.
        let seeds: Vec<u64> = (0..20).filter(|&seed| split_keeps_both(seed)).collect();
        assert!(seeds.len() > 5);
        assert!(seeds.iter().all(|&seed| with(seed) == with(seed)));
        assert!(seeds.iter().any(|&seed| with(seed) != with(seeds[0])));
    }

    fn split_keeps_both(seed: u64) -> bool {
        let mut schema = Schema::from_toml(SCHEMA).unwrap();
        schema.split = Split::Fraction { train: 0.75, seed };
        Dataset::load(&schema, table()).is_ok()
    }

    #[test]
    fn a_split_table_keeps_its_order_and_may_leave_rows_out() {
        let split = b"row,split\n5,train\n1,train\n4,train\n0,test\n";
        let split = Table::from_csv(Path::new("split.csv"), split).unwrap();
        let schema = Schema::from_toml(SCHEMA).unwrap();
        let data = Dataset::load_with_split(&schema, table(), &split).unwrap();
        // Row 4 was dropped for its missing label.
        assert_eq!((data.train(), data.test()), (&[3, 1][..], &[0][..]));
    }
}
