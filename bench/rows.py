"""The rows every engine trains on, and the file they travel in.

The file is little-endian: two u32 (rows n, columns d), then n*d f32 row by row, then n f32
labels, each 0 or 1.
"""

import csv
import os
import struct
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parent.parent
LABEL = "RiskPerformance"
FAVOURABLE = "Good"
CODED = ("MaxDelq2PublicRecLast12M", "MaxDelqEver")
# The authors' split, beside the data.
SPLIT = "paper_splits/heloc.csv"
HELOC_ROWS, HELOC_TEST_ROWS, HELOC_COLUMNS = 7844, 2615, 39


def heloc_folder():
    """The folder that holds heloc.csv and its split, or None."""
    places = [os.environ.get("TYREX_DATA"), REPOSITORY.parent / "shared" / "data"]
    for place in places:
        folder = Path(place or "")
        if place and all((folder / name).is_file() for name in ("heloc.csv", SPLIT)):
            return folder
    return None


def heloc(folder, part):
    """The reference rows of a part: 21 scaled numbers, then two one-hot groups (10 + 8)."""
    with open(folder / "heloc.csv", newline="") as file:
        table = list(csv.DictReader(file))
    with open(folder / SPLIT, newline="") as file:
        chosen = [int(line["row"]) for line in csv.DictReader(file) if line["split"] == part]
    columns = []
    for name in table[0]:
        if name == LABEL or name in CODED:
            continue
        values = np.array([float(row[name]) for row in table])
        columns.append((values - values.min()) / (values.max() - values.min()))
    for name in CODED:
        codes = np.array([int(row[name]) for row in table])
        columns.extend((codes == level).astype(float) for level in np.unique(codes))
    x = np.stack(columns, axis=1)[chosen]
    y = np.array([row[LABEL] == FAVOURABLE for row in table])[chosen]
    return x.astype("<f4"), y.astype("<f4")


def synthetic(part, seed=0):
    """Seeded rows of HELOC's shape, with labels drawn from a smooth, noisy rule."""
    rows = HELOC_ROWS + HELOC_TEST_ROWS
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(size=(rows, HELOC_COLUMNS - 18))
    groups = [np.eye(levels)[rng.integers(levels, size=rows)] for levels in (10, 8)]
    x = np.concatenate([numbers, *groups], axis=1)
    hidden = np.tanh((x - x.mean(axis=0)) @ rng.normal(size=(HELOC_COLUMNS, 8)))
    chance = 1 / (1 + np.exp(-hidden @ rng.normal(size=8)))
    y = rng.uniform(size=rows) < chance
    chosen = slice(None, HELOC_ROWS) if part == "train" else slice(HELOC_ROWS, None)
    return x[chosen].astype("<f4"), y[chosen].astype("<f4")


def load(limit=None, part="train"):
    """The rows of a part, their labels, and a sentence that says which they are."""
    folder = heloc_folder()
    x, y = heloc(folder, part) if folder else synthetic(part)
    source = (
        f"HELOC reference {'training' if part == 'train' else part} rows"
        if folder
        else "seeded synthetic rows of HELOC's shape (heloc.csv was not found)"
    )
    if limit is not None:
        x, y = x[:limit], y[:limit]
    return x, y, f"{source}, {x.shape[0]} x {x.shape[1]}"


def write(path, x, y):
    with open(path, "wb") as file:
        file.write(struct.pack("<II", *x.shape))
        file.write(np.ascontiguousarray(x, dtype="<f4").tobytes())
        file.write(np.ascontiguousarray(y, dtype="<f4").tobytes())


def read(path):
    with open(path, "rb") as file:
        rows, columns = struct.unpack("<II", file.read(8))
        values = np.fromfile(file, dtype="<f4")
    if values.size != rows * (columns + 1):
        raise ValueError(f"{path}: {values.size} values, expected {rows * (columns + 1)}")
    split = rows * columns
    return values[:split].reshape(rows, columns).copy(), values[split:].copy()
