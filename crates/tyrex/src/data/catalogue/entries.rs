//! The data sets themselves, as data.

use super::convert::{Recipe, Sheet};
use super::{DataFile, DatasetEntry, Home, Source, View, ViewSplit};

/// A file of the repository's `data` folder.
macro_rules! data {
    (text $file:literal) => {
        include_str!(concat!("../../../../../data/", $file))
    };
    (bytes $file:literal) => {
        include_bytes!(concat!("../../../../../data/", $file))
    };
}

const UCI: &str = "https://archive.ics.uci.edu/ml/machine-learning-databases/";
const CC_BY: &str = "CC BY 4.0";

const ADULT_HEADER: &str = "age,workclass,fnlwgt,education,education-num,marital-status,\
                            occupation,relationship,race,sex,capital-gain,capital-loss,\
                            hours-per-week,native-country,income";

/// The encoding of one file whose training rows are listed.
const fn split(schema: &'static str, packed: &'static [u8], train: usize) -> View {
    View { schema, files: 1, split: ViewSplit::Rows { packed, train } }
}

/// Every data set, in the order in which they are listed.
pub(super) static ENTRIES: [DatasetEntry; 6] = [
    DatasetEntry {
        name: "german",
        title: "German Credit (Statlog)",
        origin: "UCI, Hofmann 1994",
        licence: CC_BY,
        doi: Some("10.24432/C5NC77"),
        rows: 1000,
        favourable_rows: 700,
        source: Source::Embedded {
            file: "german.csv",
            sha256: "30d1750cf2eba9300e7817ab60205f1762c77286b94a924e9818acbdcfd28436",
            content: data!(bytes "german.csv"),
        },
        product: split(data!(text "schemas/german.toml"), data!(bytes "splits/german.rows"), 670),
        reference: Some(split(
            data!(text "schemas/german.reference.toml"),
            data!(bytes "splits/german.rows"),
            670,
        )),
        authors_target: &["bad"],
    },
    DatasetEntry {
        name: "heloc",
        title: "FICO Home Equity Line of Credit",
        origin: "FICO Explainable Machine Learning Challenge 2018",
        licence: "FICO's own terms: for research, not an open licence",
        doi: None,
        rows: 10459,
        favourable_rows: 5000,
        source: Source::Files(&[DataFile {
            name: "heloc.csv",
            sha256: "f66d77f4e4e27c11205ba6258008f5e071f1f09724f4893e9ff2840a4e99f259",
            home: Home {
                // FICO gives the file out by a form; this copy has one column more at its right.
                base: "https://raw.githubusercontent.com/",
                path: "IBM/rulebenchmark/501a6171b852e77d83b9af5a66a7cf1a656a1505/data/heloc.csv",
                recipe: Recipe::FirstColumns(24),
            },
        }]),
        product: split(data!(text "schemas/heloc.toml"), data!(bytes "splits/heloc.rows"), 7844),
        reference: Some(split(
            data!(text "schemas/heloc.reference.toml"),
            data!(bytes "splits/heloc.rows"),
            7844,
        )),
        authors_target: &["Good"],
    },
    DatasetEntry {
        name: "ctg",
        title: "Cardiotocography",
        origin: "UCI, Campos and Bernardes 2000",
        licence: CC_BY,
        doi: Some("10.24432/C51S4N"),
        rows: 2126,
        favourable_rows: 1655,
        source: Source::Files(&[DataFile {
            name: "ctg.csv",
            sha256: "ecd10c9ecd39271cbc4f2ba52917200d49d1262e23cbb3af9e9cfd1def81cda9",
            home: Home {
                base: UCI,
                path: "00193/CTG.xls",
                recipe: Recipe::Sheet(Sheet {
                    name: "Data",
                    first_row: 2,
                    rows: 2126,
                    columns: &[(10, 30), (45, 45)],
                    header: "LB,AC,FM,UC,DL,DS,DP,ASTV,MSTV,ALTV,MLTV,Width,Min,Max,Nmax,Nzeros,\
                             Mode,Mean,Median,Variance,Tendency,NSP",
                    three_decimals: &[11, 12, 13, 14, 15, 16],
                }),
            },
        }]),
        product: split(data!(text "schemas/ctg.toml"), data!(bytes "splits/ctg.rows"), 1700),
        reference: Some(split(
            data!(text "schemas/ctg.reference.toml"),
            data!(bytes "splits/ctg.rows"),
            1700,
        )),
        authors_target: &["2", "3"],
    },
    DatasetEntry {
        name: "adult",
        title: "Adult (census income)",
        origin: "UCI, Becker and Kohavi 1996",
        licence: CC_BY,
        doi: Some("10.24432/C5XW20"),
        rows: 48842,
        favourable_rows: 11687,
        source: Source::Files(&[
            DataFile {
                name: "adult_train.csv",
                sha256: "f2c62076f19504d99a38b22badf445a7f42530ade6b827acf78dd143fbce38bb",
                home: Home {
                    base: UCI,
                    path: "adult/adult.data",
                    recipe: Recipe::Adult { header: ADULT_HEADER },
                },
            },
            DataFile {
                name: "adult_test.csv",
                sha256: "f6b1801c5d231515ea5ff04d4444997bacd57e04876e94710cb9b9bd5549c033",
                home: Home {
                    base: UCI,
                    path: "adult/adult.test",
                    recipe: Recipe::Adult { header: ADULT_HEADER },
                },
            },
        ]),
        product: View {
            schema: data!(text "schemas/adult.toml"),
            files: 2,
            split: ViewSplit::Files,
        },
        reference: Some(split(
            data!(text "schemas/adult.reference.toml"),
            data!(bytes "splits/adult.rows"),
            15081,
        )),
        authors_target: &[">50K"],
    },
    DatasetEntry {
        name: "taiwan",
        title: "Default of Credit Card Clients",
        origin: "UCI, Yeh and Lien 2009",
        licence: CC_BY,
        doi: Some("10.24432/C55S3H"),
        rows: 30000,
        favourable_rows: 23364,
        source: Source::Files(&[DataFile {
            name: "taiwan.csv",
            sha256: "f7b7d22d1f8dd27dadb25d4b78d8a4ae7c441ab6cc12d1ea58c0efc54d4d1788",
            home: Home {
                base: UCI,
                path: "00350/default%20of%20credit%20card%20clients.xls",
                recipe: Recipe::Sheet(Sheet {
                    name: "Data",
                    first_row: 2,
                    rows: 30000,
                    columns: &[(0, 24)],
                    header: "ID,LIMIT_BAL,SEX,EDUCATION,MARRIAGE,AGE,PAY_0,PAY_2,PAY_3,PAY_4,\
                             PAY_5,PAY_6,BILL_AMT1,BILL_AMT2,BILL_AMT3,BILL_AMT4,BILL_AMT5,\
                             BILL_AMT6,PAY_AMT1,PAY_AMT2,PAY_AMT3,PAY_AMT4,PAY_AMT5,PAY_AMT6,\
                             default.payment.next.month",
                    three_decimals: &[],
                }),
            },
        }]),
        product: split(data!(text "schemas/taiwan.toml"), data!(bytes "splits/taiwan.rows"), 22500),
        reference: Some(split(
            data!(text "schemas/taiwan.reference.toml"),
            data!(bytes "splits/taiwan.rows"),
            22500,
        )),
        authors_target: &["1"],
    },
    DatasetEntry {
        name: "moons",
        title: "Two moons",
        origin: "generated from a seed",
        licence: "none needed",
        doi: None,
        rows: 1000,
        favourable_rows: 500,
        source: Source::Generated,
        product: View {
            schema: data!(text "schemas/moons.toml"),
            files: 0,
            split: ViewSplit::Schema,
        },
        reference: None,
        authors_target: &[],
    },
];
