//! `tyrex data list|show|fetch`

use std::ops::ControlFlow;

use serde::Serialize;
use tyrex::data::Catalogue;
use tyrex::data::catalogue::{Description, Fetched, Listing, Place};
use tyrex::data::fetch::FetchOptions;

use super::Context;
use super::summary::feature_table;
use crate::args::{FetchDataArgs, ShowDataArgs};
use crate::interrupt;
use crate::printer::{Page, Report, Stand};
use crate::progress::Unit;

fn catalogue(context: &Context<'_>) -> Catalogue {
    Catalogue::new(context.global.data_dir.as_deref())
}

pub(crate) fn list(context: &mut Context<'_>) -> anyhow::Result<()> {
    let report = ListReport { datasets: catalogue(context).list()? };
    context.printer.show(&report)
}

pub(crate) fn show(context: &mut Context<'_>, args: &ShowDataArgs) -> anyhow::Result<()> {
    let description = catalogue(context).show(&args.name, args.protocol.variant(), args.rows)?;
    context.printer.show(&ShowReport { description })
}

pub(crate) fn fetch(context: &mut Context<'_>, args: &FetchDataArgs) -> anyhow::Result<()> {
    let catalogue = catalogue(context);
    let options = FetchOptions::from_environment();
    let mut datasets = Vec::with_capacity(args.names.len());
    for name in &args.names {
        let progress = context.progress("download", Unit::Bytes);
        // Received data is kept, so an interrupt may end the download but not a write.
        let files = interrupt::whole(|| {
            catalogue.fetch(name, &options, &mut |at| {
                progress.at(
                    at.received,
                    at.total.unwrap_or(at.received),
                    at.url.rsplit('/').next().unwrap_or("").to_owned(),
                );
                if interrupt::requested() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
        });
        progress.finish();
        datasets.push(FetchedDataset { name: name.clone(), files: files? });
    }
    context.printer.show(&FetchReport { datasets })
}

/// The report of `data list`.
#[derive(Debug, Serialize)]
struct ListReport {
    datasets: Vec<Listing>,
}

impl Report for ListReport {
    const COMMAND: &'static str = "data list";

    fn page(&self, page: &mut Page) {
        let rows: Vec<Vec<String>> = self
            .datasets
            .iter()
            .map(|listing| {
                vec![
                    listing.name.to_owned(),
                    listing.title.to_owned(),
                    listing.rows.to_string(),
                    listing.features.to_string(),
                    format!("{:.0} %", 100.0 * listing.favourable_share),
                    place(listing),
                ]
            })
            .collect();
        let left = |name| (name, Stand::Left);
        let right = |name| (name, Stand::Right);
        let header = [
            left("name"),
            left("title"),
            right("rows"),
            right("features"),
            right("favourable"),
            left("where, or how to get it"),
        ];
        page.table(&header, &rows);
    }
}

/// The location of a data set, or the command that fetches it.
fn place(listing: &Listing) -> String {
    match &listing.place {
        Place::Embedded => "in the program".to_owned(),
        Place::Generated => "made from a seed".to_owned(),
        Place::Files(files) => {
            let folder = files.first().and_then(|file| file.parent());
            folder.map_or_else(String::new, |folder| folder.display().to_string())
        }
        Place::Missing(_) => format!("tyrex data fetch {}", listing.name),
    }
}

/// The report of `data show`.
#[derive(Debug, Serialize)]
struct ShowReport {
    #[serde(flatten)]
    description: Description,
}

impl Report for ShowReport {
    const COMMAND: &'static str = "data show";

    fn page(&self, page: &mut Page) {
        let it = &self.description;
        page.title(it.listing.title);
        let label = &it.schema.label;
        let favourable: Vec<String> = label.favourable.iter().map(ToString::to_string).collect();
        let mut pairs = vec![
            ("origin", it.origin.to_owned()),
            ("licence", it.listing.licence.to_owned()),
            ("where", place(&it.listing)),
            ("label", format!("{}; favourable is {}", label.column, favourable.join(", "))),
            (
                "encoded",
                format!("{} features as {} columns", it.listing.features, it.encoded_columns),
            ),
        ];
        if let Some(doi) = it.doi {
            pairs.insert(2, ("doi", doi.to_owned()));
        }
        if it.rows_dropped > 0 {
            pairs.push(("dropped", format!("{} rows with missing cells", it.rows_dropped)));
        }
        page.pairs(&pairs);
        page.title("Rows");
        let rows: Vec<Vec<String>> = [("train", it.train), ("test", it.test)]
            .iter()
            .map(|(name, counts)| {
                let all = counts.favourable + counts.unfavourable;
                let numbers = [all, counts.favourable, counts.unfavourable];
                let cells = numbers.iter().map(ToString::to_string);
                std::iter::once((*name).to_owned()).chain(cells).collect()
            })
            .collect();
        let right = |name| (name, Stand::Right);
        let header =
            [("part", Stand::Left), right("rows"), right("favourable"), right("unfavourable")];
        page.table(&header, &rows);
        page.title("Features");
        feature_table(page, &it.schema);
        if !it.first_rows.is_empty() {
            page.title("First rows");
            page.abreast(&it.header, &it.first_rows);
        }
    }
}

/// The report of `data fetch`.
#[derive(Debug, Serialize)]
struct FetchReport {
    datasets: Vec<FetchedDataset>,
}

#[derive(Debug, Serialize)]
struct FetchedDataset {
    name: String,
    files: Vec<Fetched>,
}

impl Report for FetchReport {
    const COMMAND: &'static str = "data fetch";

    fn page(&self, page: &mut Page) {
        for dataset in &self.datasets {
            if dataset.files.is_empty() {
                page.line(&format!("{} needs no files: it is built in", dataset.name));
            }
            for file in &dataset.files {
                let how = if file.was_there { "already present" } else { "fetched and checked" };
                page.line(&format!("{} {how}", file.path.display()));
            }
        }
    }
}
