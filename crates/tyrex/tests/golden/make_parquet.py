"""Writes the Parquet files that crates/tyrex/tests/it/tables.rs reads, with the real packages.

Usage: python make_parquet.py   (needs pandas, pyarrow and polars)

Each file holds the same four rows; the reader must see the same text in all of them.
"""

import pathlib

import pandas
import polars
import pyarrow
import pyarrow.parquet

HERE = pathlib.Path(__file__).parent / "parquet"
HERE.mkdir(exist_ok=True)

DATA = {
    "whole": [1, -2, 3, 9007199254740993],
    "real": [0.006, -1.5, None, 1e-7],
    "text": ["<0 DM", "a,b", None, "Grüße"],
    "flag": [True, False, True, False],
}

frame = pandas.DataFrame(DATA)
for codec in ["snappy", "gzip", "zstd", "lz4", None]:
    frame.to_parquet(HERE / f"pandas_{codec or 'plain'}.parquet", compression=codec)

frame["text"] = frame["text"].astype("category")
frame.to_parquet(HERE / "pandas_categorical.parquet")

polars.DataFrame(DATA).write_parquet(HERE / "polars.parquet")
polars.DataFrame(DATA).with_columns(polars.col("text").cast(polars.Categorical)).write_parquet(
    HERE / "polars_categorical.parquet"
)

table = pyarrow.table(DATA)
pyarrow.parquet.write_table(table, HERE / "pyarrow_groups.parquet", row_group_size=1)
pyarrow.parquet.write_table(
    table, HERE / "pyarrow_v2.parquet", data_page_version="2.0", version="2.6", use_dictionary=False
)

types = pyarrow.table(
    {
        "u8": pyarrow.array([0, 255], pyarrow.uint8()),
        "u64": pyarrow.array([0, 2**64 - 1], pyarrow.uint64()),
        "i8": pyarrow.array([-128, 127], pyarrow.int8()),
        "f32": pyarrow.array([0.1, float("nan")], pyarrow.float32()),
        "none": pyarrow.array([None, None], pyarrow.null()),
        "large": pyarrow.array(["a", "b"], pyarrow.large_string()),
    }
)
pyarrow.parquet.write_table(types, HERE / "pyarrow_types.parquet")
pyarrow.parquet.write_table(
    pyarrow.table({"day": pyarrow.array([0, 1], pyarrow.date32())}), HERE / "pyarrow_date.parquet"
)
pyarrow.parquet.write_table(pyarrow.table({"many": [[1, 2], [3]]}), HERE / "pyarrow_list.parquet")

# A few kilobytes that decompress to 256 MiB, and a page that gzip makes small.
plain = {"use_dictionary": False, "data_page_size": 1 << 30, "write_statistics": False}
for name, codec, cell, rows in [("large", "zstd", 32 << 20, 8), ("gzip", "gzip", 1 << 20, 2)]:
    pyarrow.parquet.write_table(
        pyarrow.table({"job": ["a" * cell] * rows}),
        HERE / f"pyarrow_{name}_page.parquet",
        compression=codec,
        store_schema=False,
        **plain,
    )
