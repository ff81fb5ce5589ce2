//! Named data sets: their descriptions, their files on this machine, and their downloads.
//!
//! [`Catalogue::load`] gives a [`Dataset`], checked against its sha256. Each data set has a
//! *product* schema, for use, and most have a *reference* schema that repeats the encoding of
//! the authors' released arrays, to compare numbers.

mod convert;
mod entries;
mod place;
mod workbook;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::data::fetch::{FetchOptions, OnProgress, download};
use crate::data::moons::moons;
use crate::data::{Column, Dataset, Schema, Table, Value};
use crate::error::{Error, Result};
use crate::file::{Overwrite, hex, write_whole};
use crate::seed::Seed;

use convert::Recipe;

/// A data set that has a name.
#[derive(Debug)]
#[non_exhaustive]
pub struct DatasetEntry {
    /// The name that a user types.
    pub name: &'static str,
    /// The title.
    pub title: &'static str,
    /// The publisher, and the year.
    pub origin: &'static str,
    /// The terms it comes under.
    pub licence: &'static str,
    /// Its digital object identifier.
    pub doi: Option<&'static str>,
    /// The rows of the product view.
    pub rows: usize,
    /// The number of rows with the favourable label.
    pub favourable_rows: usize,
    /// The label values that the authors' released data call 1. Their experiments move points
    /// from 0 to 1, which for some data sets is from good to bad.
    pub authors_target: &'static [&'static str],
    source: Source,
    product: View,
    reference: Option<View>,
}

/// Where the bytes come from.
#[derive(Debug)]
enum Source {
    /// Embedded in the binary.
    Embedded { file: &'static str, sha256: &'static str, content: &'static [u8] },
    /// Files on this machine, once fetched.
    Files(&'static [DataFile]),
    /// Two moons, from a seed.
    Generated,
}

#[derive(Debug)]
struct DataFile {
    name: &'static str,
    sha256: &'static str,
    home: Home,
}

/// Where a file is published, and how it is converted.
#[derive(Debug)]
struct Home {
    base: &'static str,
    path: &'static str,
    recipe: Recipe,
}

/// One way to read a data set.
#[derive(Debug)]
struct View {
    schema: &'static str,
    /// How many of the source's files it reads.
    files: usize,
    split: ViewSplit,
}

#[derive(Debug)]
enum ViewSplit {
    /// Row numbers of two bytes each, low byte first; the first `train` of them train. Rows
    /// that are not among them belong to neither part.
    Rows { packed: &'static [u8], train: usize },
    /// The first file trains, the second tests.
    Files,
    /// As the schema says.
    Schema,
}

/// A schema of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// For use: scaled on training rows, special values apart, with rules for actions.
    #[default]
    Product,
    /// The encoding of the authors' released arrays.
    Reference,
}

/// The label that counts as favourable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The favourable one.
    #[default]
    Favourable,
    /// The label that the authors' data call 1, only to compare results with theirs.
    Authors,
}

impl DatasetEntry {
    /// The schema, checked.
    pub fn schema(&self, variant: Variant, direction: Direction) -> Result<Schema> {
        let mut schema = Schema::from_toml(self.view(variant)?.schema)?;
        let label = &mut schema.label;
        if direction == Direction::Authors {
            let all: Vec<Value> =
                label.favourable.iter().chain(&label.unfavourable).cloned().collect();
            let is_target =
                |value: &Value| self.authors_target.iter().any(|target| value.matches(target));
            (label.favourable, label.unfavourable) = all.into_iter().partition(is_target);
            if label.favourable.is_empty() {
                return Err(
                    self.error("the authors did not use it, so it has no direction of theirs")
                );
            }
        }
        Ok(schema)
    }

    fn view(&self, variant: Variant) -> Result<&View> {
        match variant {
            Variant::Product => Ok(&self.product),
            Variant::Reference => {
                self.reference.as_ref().ok_or_else(|| self.error("it has no reference schema"))
            }
        }
    }

    fn files(&self) -> &'static [DataFile] {
        match self.source {
            Source::Files(files) => files,
            Source::Embedded { .. } | Source::Generated => &[],
        }
    }

    fn error(&self, problem: impl Into<String>) -> Error {
        Error::Catalogue { name: self.name.to_owned(), problem: problem.into() }
    }
}

/// The data sets, and the folders of this machine they may be in.
#[derive(Debug, Clone)]
pub struct Catalogue {
    /// In the order in which they are searched; downloads go to the first.
    folders: Vec<PathBuf>,
}

/// A line of the list of data sets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listing {
    /// The name that a user types.
    pub name: &'static str,
    /// The title.
    pub title: &'static str,
    /// Rows.
    pub rows: usize,
    /// Features of the product schema.
    pub features: usize,
    /// The part of the rows with the favourable label.
    pub favourable_share: f64,
    /// The terms it comes under.
    pub licence: &'static str,
    /// Where it is.
    pub place: Place,
}

/// Where a data set is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "files")]
pub enum Place {
    /// In the binary.
    Embedded,
    /// Generated from a seed on demand.
    Generated,
    /// In these files.
    Files(Vec<PathBuf>),
    /// Not on this machine; these files are missing.
    Missing(Vec<&'static str>),
}

/// The full description of a data set that is on this machine.
#[derive(Debug, Clone, Serialize)]
pub struct Description {
    /// Its line in the list.
    #[serde(flatten)]
    pub listing: Listing,
    /// The publisher, and the year.
    pub origin: &'static str,
    /// Its digital object identifier.
    pub doi: Option<&'static str>,
    /// Its files: name, sha256, and the address it can be fetched from.
    pub files: Vec<FileRecord>,
    /// The schema.
    pub schema: Schema,
    /// Columns of the encoded points.
    pub encoded_columns: usize,
    /// The file's header.
    pub header: Vec<String>,
    /// The first rows of the file.
    pub first_rows: Vec<Vec<String>>,
    /// Training rows by class.
    pub train: ClassCounts,
    /// Test rows by class.
    pub test: ClassCounts,
    /// Rows left out because a cell is missing.
    pub rows_dropped: usize,
    /// The label values that the authors' released data call 1.
    pub authors_target: &'static [&'static str],
}

/// A file of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileRecord {
    /// Its name.
    pub name: &'static str,
    /// Its checksum, in hexadecimal.
    pub sha256: &'static str,
    /// Where it is published, perhaps in another form.
    pub address: Option<String>,
}

/// The number of rows by label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClassCounts {
    /// Rows with the favourable label.
    pub favourable: usize,
    /// The other rows.
    pub unfavourable: usize,
}

/// A file that is now on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fetched {
    /// The file.
    pub path: PathBuf,
    /// Whether the file existed already.
    pub was_there: bool,
}

/// The rows `load` gives of the two moons, and their noise and seed.
const MOONS: (usize, f64, Seed) = (1000, 0.2, Seed(0));

impl Catalogue {
    /// The catalogue with the usual folders: the one given, `$TYREX_DATA`, and the user's data
    /// folder. Downloads go to the first.
    pub fn new(data_dir: Option<&Path>) -> Self {
        Self::with_folders(place::folders(data_dir))
    }

    /// The catalogue with these folders and no others. Downloads go to the first.
    pub fn with_folders(folders: Vec<PathBuf>) -> Self {
        Self { folders }
    }

    /// Every data set.
    pub fn entries() -> &'static [DatasetEntry] {
        &entries::ENTRIES
    }

    /// The data set of that name.
    pub fn entry(name: &str) -> Result<&'static DatasetEntry> {
        Self::entries().iter().find(|entry| entry.name == name).ok_or_else(|| {
            let names: Vec<_> = Self::entries().iter().map(|entry| entry.name).collect();
            Error::Catalogue {
                name: name.to_owned(),
                problem: format!("unknown; there are {}", names.join(", ")),
            }
        })
    }

    /// Every data set, and where it is.
    pub fn list(&self) -> Result<Vec<Listing>> {
        Self::entries().iter().map(|entry| self.listing(entry)).collect()
    }

    /// The full description of a data set, with the first rows of its file.
    pub fn show(&self, name: &str, variant: Variant, first_rows: usize) -> Result<Description> {
        let entry = Self::entry(name)?;
        let dataset = self.load(name, variant, Direction::Favourable)?;
        let table = dataset.table();
        let row = |row| table.columns().iter().map(|column| column.cell(row).to_owned()).collect();
        let count = |rows: &[usize]| {
            let favourable = rows.iter().filter(|&&row| dataset.labels()[row]).count();
            ClassCounts { favourable, unfavourable: rows.len() - favourable }
        };
        Ok(Description {
            listing: self.listing(entry)?,
            origin: entry.origin,
            doi: entry.doi,
            files: file_records(entry),
            schema: dataset.schema().clone(),
            encoded_columns: dataset.points().dim(),
            header: table.columns().iter().map(|column| column.name().to_owned()).collect(),
            first_rows: (0..table.rows().min(first_rows)).map(row).collect(),
            train: count(dataset.train()),
            test: count(dataset.test()),
            rows_dropped: dataset.report().rows_dropped,
            authors_target: entry.authors_target,
        })
    }

    /// The data set, its checksums verified.
    pub fn load(&self, name: &str, variant: Variant, direction: Direction) -> Result<Dataset> {
        let entry = Self::entry(name)?;
        let schema = entry.schema(variant, direction)?;
        let view = entry.view(variant)?;
        let tables = self.tables(entry, view)?;
        let split = match view.split {
            ViewSplit::Rows { packed, train } => Some(split_table(rows_of(packed), train)?),
            ViewSplit::Files => {
                let rows: usize = tables.iter().map(Table::rows).sum();
                Some(split_table(0..rows, tables.first().map_or(0, Table::rows))?)
            }
            ViewSplit::Schema => None,
        };
        let table = concatenate(tables)?;
        match split {
            Some(split) => Dataset::load_with_split(&schema, table, &split),
            None => Dataset::load(&schema, table),
        }
    }

    /// Downloads the files of a data set that are not in the folder for downloads yet, and converts
    /// them. A file appears under its name only if its bytes match the checksum. A data set that is
    /// embedded or generated has no files to fetch.
    pub fn fetch(
        &self,
        name: &str,
        options: &FetchOptions,
        on_progress: OnProgress<'_>,
    ) -> Result<Vec<Fetched>> {
        let entry = Self::entry(name)?;
        let folder = self.folders.first().ok_or_else(|| {
            entry.error("no folder to put its files in; name one with --data-dir or $TYREX_DATA")
        })?;
        entry
            .files()
            .iter()
            .map(|file| {
                let path = folder.join(file.name);
                let was_there = std::fs::read(&path).is_ok_and(|it| sha256(&it) == file.sha256);
                if !was_there {
                    fetch_file(file, &path, options, on_progress)?;
                }
                Ok(Fetched { path, was_there })
            })
            .collect()
    }

    fn listing(&self, entry: &DatasetEntry) -> Result<Listing> {
        let schema = entry.schema(Variant::Product, Direction::Favourable)?;
        Ok(Listing {
            name: entry.name,
            title: entry.title,
            rows: entry.rows,
            features: schema.features.len(),
            favourable_share: entry.favourable_rows as f64 / entry.rows as f64,
            licence: entry.licence,
            place: self.place(entry),
        })
    }

    fn place(&self, entry: &DatasetEntry) -> Place {
        match entry.source {
            Source::Embedded { .. } => Place::Embedded,
            Source::Generated => Place::Generated,
            Source::Files(files) => {
                let missing: Vec<_> = files
                    .iter()
                    .filter(|file| self.locate(file).is_none())
                    .map(|file| file.name)
                    .collect();
                if missing.is_empty() {
                    Place::Files(files.iter().filter_map(|file| self.locate(file)).collect())
                } else {
                    Place::Missing(missing)
                }
            }
        }
    }

    fn locate(&self, file: &DataFile) -> Option<PathBuf> {
        self.folders.iter().map(|folder| folder.join(file.name)).find(|path| path.is_file())
    }

    fn tables(&self, entry: &DatasetEntry, view: &View) -> Result<Vec<Table>> {
        match entry.source {
            Source::Embedded { file, content, .. } => {
                Ok(vec![Table::from_csv(Path::new(file), content)?])
            }
            Source::Generated => Ok(vec![moons_table()?]),
            Source::Files(files) => files
                .iter()
                .take(view.files)
                .map(|file| {
                    let path = self.locate(file).ok_or_else(|| self.missing(entry, file))?;
                    let content = std::fs::read(&path).map_err(Error::io("read", &path))?;
                    let got = sha256(&content);
                    if got != file.sha256 {
                        return Err(entry.error(format!(
                            "{} has sha256 {got}, expected {}; delete it and run \
                             `tyrex data fetch {}`",
                            path.display(),
                            file.sha256,
                            entry.name
                        )));
                    }
                    Table::from_csv(&path, &content)
                })
                .collect(),
        }
    }

    fn missing(&self, entry: &DatasetEntry, file: &DataFile) -> Error {
        let folders: Vec<_> = self.folders.iter().map(|it| it.display().to_string()).collect();
        entry.error(format!(
            "no file {} in {}; run `tyrex data fetch {}`",
            file.name,
            folders.join(", "),
            entry.name
        ))
    }
}

fn fetch_file(
    file: &DataFile,
    path: &Path,
    options: &FetchOptions,
    on_progress: OnProgress<'_>,
) -> Result<()> {
    let url = options.address(file.home.base, file.home.path);
    let mut part = download(&url, &path.with_extension("part"), options, on_progress)?;
    let wrong = |problem| Error::Download { url: url.clone(), problem };
    let converted = file.home.recipe.apply(&part.content()?);
    let checked = converted.map_err(&wrong).and_then(|content| {
        let got = sha256(&content);
        if got == file.sha256 {
            Ok(content)
        } else {
            let expected = file.sha256;
            Err(wrong(format!("{} would have sha256 {got}, expected {expected}", file.name)))
        }
    });
    // The part is removed in either case, since resuming from wrong bytes cannot succeed.
    part.discard()?;
    let content = checked?;
    write_whole(path, Overwrite::Force, |out| out.write_all(&content))
}

fn file_records(entry: &DatasetEntry) -> Vec<FileRecord> {
    let record = |name, sha256, address| FileRecord { name, sha256, address };
    match entry.source {
        Source::Embedded { file, sha256, .. } => vec![record(file, sha256, None)],
        Source::Generated => Vec::new(),
        Source::Files(files) => files
            .iter()
            .map(|file| {
                let address = format!("{}{}", file.home.base, file.home.path);
                record(file.name, file.sha256, Some(address))
            })
            .collect(),
    }
}

fn sha256(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

fn rows_of(packed: &[u8]) -> impl Iterator<Item = usize> {
    packed.chunks_exact(2).map(|pair| usize::from(u16::from_le_bytes([pair[0], pair[1]])))
}

/// The table `row,split`, with the first `train` rows to train on.
fn split_table(rows: impl Iterator<Item = usize>, train: usize) -> Result<Table> {
    let (mut row_column, mut split_column) = (Column::new("row"), Column::new("split"));
    for (position, row) in rows.enumerate() {
        row_column.push_display(row);
        split_column.push(if position < train { "train" } else { "test" });
    }
    Table::new("split", vec![row_column, split_column])
}

/// The rows of all tables, one table after the other.
fn concatenate(tables: Vec<Table>) -> Result<Table> {
    let mut tables = tables.into_iter();
    let first = tables.next().ok_or_else(|| Error::schema("a data set without a table"))?;
    let rest: Vec<Table> = tables.collect();
    if rest.is_empty() {
        return Ok(first);
    }
    let mut columns = first.columns().to_vec();
    for column in &mut columns {
        for table in &rest {
            let more = table.column(column.name())?;
            more.cells().for_each(|cell| column.push(cell));
        }
    }
    Table::new(first.source(), columns)
}

fn moons_table() -> Result<Table> {
    let (n, noise, seed) = MOONS;
    let mut columns = ["x1", "x2", "moon"].map(Column::new);
    for point in moons(n, noise, seed)? {
        columns[0].push_display(point.x1);
        columns[1].push_display(point.x2);
        columns[2].push(if point.lower { "lower" } else { "upper" });
    }
    Table::new("moons", columns.into())
}
