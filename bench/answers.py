"""Many answers that carry promises, from a few: what `tyrex ledger record` is measured with.

    python bench/answers.py sample.parquet answers --count 1000000 --parts 16

The sample has answers of an adviser with `promises=True`; if there is none, one is made, of German
credit and min-cost. Every found answer is repeated for other customers, so every promise is another
one. The parts are Parquet, as Spark and Ray write them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# The rows of a part that are in memory.
ROWS = 65_536


def sample(path: Path) -> None:
    """Answers with promises, and with a certificate each, as the default question has them."""
    import tyrex

    german = tyrex.datasets.load_german()
    explainer = tyrex.Explainer.train(german, progress=False)
    adviser = explainer.adviser(method="min-cost", certify=True, models=20, promises=True)
    rows = pa.Table.from_pandas(german.to_pandas().drop(columns="class"), preserve_index=False)
    pq.write_table(pa.Table.from_batches(list(adviser.explain_batches(rows))), path)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("sample", type=Path)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--count", type=int, default=1_000_000)
    arguments.add_argument("--parts", type=int, default=16)
    given = arguments.parse_args()
    if not given.sample.exists():
        sample(given.sample)
    answers = pq.read_table(given.sample)
    found = answers.filter(pc.equal(answers["status"], "found")).drop_columns(["row"])
    given.folder.mkdir()
    for part in range(given.parts):
        numbers = range(part, given.count, given.parts)
        path = given.folder / f"part-{part:03}.snappy.parquet"
        schema = pa.schema([pa.field("customer", pa.string()), *found.schema])
        with pq.ParquetWriter(path, schema) as out:
            for start in range(0, len(numbers), ROWS):
                some = numbers[start : start + ROWS]
                rows = found.take([number % len(found) for number in some])
                customers = pa.array([f"customer {number}" for number in some])
                out.write_table(rows.add_column(0, schema.field("customer"), customers))


if __name__ == "__main__":
    main()
