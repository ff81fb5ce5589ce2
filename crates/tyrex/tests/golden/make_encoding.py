"""Computes the encodings that crates/tyrex/tests/it/golden_encoding.rs expects, with numpy only.

Usage: python make_encoding.py CTG_CSV

CTG_CSV is the whole table of the UCI data set "Cardiotocography" (Campos and Bernardes,
doi 10.24432/C51S4N, licence CC BY 4.0). Every 250th row goes to ctg_excerpt.csv, unchanged,
under that licence. The scaling is one minimum and maximum over the matrix of those rows.

HELOC may not be redistributed, so heloc_shape.csv holds rows drawn at random with the same
columns, ranges and special values. The scaling is one minimum and maximum per column; the
two coded columns are one-hot, with -9 as a level of its own.
"""

import csv
import pathlib
import sys

import numpy

HERE = pathlib.Path(__file__).parent

HELOC_NUMERIC = [
    ("ExternalRiskEstimate", 33, 94, [-9]),
    ("MSinceOldestTradeOpen", 2, 803, [-9, -8]),
    ("MSinceMostRecentTradeOpen", 0, 383, [-9]),
    ("AverageMInFile", 4, 383, [-9]),
    ("NumSatisfactoryTrades", 0, 79, [-9]),
    ("NumTrades60Ever2DerogPubRec", 0, 19, [-9]),
    ("NumTrades90Ever2DerogPubRec", 0, 19, [-9]),
    ("PercentTradesNeverDelq", 0, 100, [-9]),
    ("MSinceMostRecentDelq", 0, 83, [-9, -8, -7]),
    ("NumTotalTrades", 0, 104, [-9]),
    ("NumTradesOpeninLast12M", 0, 19, [-9]),
    ("PercentInstallTrades", 0, 100, [-9]),
    ("MSinceMostRecentInqexcl7days", 0, 24, [-9, -8, -7]),
    ("NumInqLast6M", 0, 66, [-9]),
    ("NumInqLast6Mexcl7days", 0, 66, [-9]),
    ("NetFractionRevolvingBurden", 0, 232, [-9, -8]),
    ("NetFractionInstallBurden", 0, 471, [-9, -8]),
    ("NumRevolvingTradesWBalance", 0, 32, [-9, -8]),
    ("NumInstallTradesWBalance", 1, 23, [-9, -8]),
    ("NumBank2NatlTradesWHighUtilization", 0, 18, [-9, -8]),
    ("PercentTradesWBalance", 0, 100, [-9, -8]),
]
HELOC_CODED = [
    ("MaxDelq2PublicRecLast12M", [-9, 0, 1, 2, 3, 4, 5, 6, 7, 9]),
    ("MaxDelqEver", [-9, 2, 3, 4, 5, 6, 7, 8]),
]


def write(name, header, rows):
    with open(HERE / name, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_encoding(name, matrix):
    width = matrix.shape[1]
    rows = [[f"{x:.17g}" for x in row] for row in matrix]
    write(name, [f"x{i}" for i in range(width)], rows)


def ctg(path):
    with open(path, newline="") as source:
        header, *rows = list(csv.reader(source))
    rows = rows[::250]
    write("ctg_excerpt.csv", header, rows)
    features = [i for i, column in enumerate(header) if column != "NSP"]
    matrix = numpy.array([[float(row[i]) for i in features] for row in rows])
    matrix = (matrix - matrix.min()) / (matrix.max() - matrix.min())
    write_encoding("ctg_encoded.csv", matrix)


def heloc():
    random = numpy.random.default_rng(20230701)
    columns, names = [], []
    for name, low, high, special in HELOC_NUMERIC:
        column = random.integers(low, high, size=40, endpoint=True)
        coded = random.random(40) < 0.15
        column[coded] = random.choice(special, size=coded.sum())
        columns.append(column)
        names.append(name)
    for name, levels in HELOC_CODED:
        columns.append(random.choice(levels, size=40))
        names.append(name)
    label = random.choice(["Good", "Bad"], size=40)
    # The label comes first in the real file, and the coded columns stand among the others.
    order = [*range(9), 21, 22, *range(9, 21)]
    table = [[label[row], *(columns[i][row] for i in order)] for row in range(40)]
    write("heloc_shape.csv", ["RiskPerformance", *(names[i] for i in order)], table)
    numeric = numpy.array(columns[:21], dtype=float).T
    low, high = numeric.min(axis=0), numeric.max(axis=0)
    parts = [(numeric - low) / (high - low)]
    for (_, levels), column in zip(HELOC_CODED, columns[21:]):
        parts.append((column[:, None] == numpy.array(levels)[None, :]).astype(float))
    matrix = numpy.hstack(parts)
    assert matrix.shape == (40, 39)
    write_encoding("heloc_encoded.csv", matrix)


ctg(sys.argv[1])
heloc()
