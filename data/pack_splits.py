#!/usr/bin/env python3
"""Packs the authors' splits into two bytes per row.

    python3 data/pack_splits.py ../shared/data/paper_splits

reads NAME.csv (columns `row` and `split`, training rows first, in the order of the authors'
arrays) and writes data/splits/NAME.rows: the row numbers as 16-bit unsigned integers, low byte
first, in that same order. How many of them train is in the catalogue's entry. Python 3.11,
standard library only.
"""

import csv
import struct
import sys
from pathlib import Path

OUTPUT = Path(__file__).resolve().parent / "splits"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    OUTPUT.mkdir(exist_ok=True)
    for path in sorted(Path(sys.argv[1]).glob("*.csv")):
        with open(path, newline="") as file:
            lines = list(csv.DictReader(file))
        parts = [line["split"] for line in lines]
        train = parts.count("train")
        if parts != ["train"] * train + ["test"] * (len(parts) - train):
            sys.exit(f"{path.name}: expected all training rows first, then the test rows")
        rows = [int(line["row"]) for line in lines]
        (OUTPUT / f"{path.stem}.rows").write_bytes(struct.pack(f"<{len(rows)}H", *rows))
        print(f"{path.stem}: {train} training rows, {len(rows) - train} test rows")


if __name__ == "__main__":
    main()
