"""The authors' encodings of the catalogue's data sets, computed with numpy alone.

    python3 crates/tyrex/tests/golden/catalogue.py $TYREX_DATA

writes catalogue.json beside this file: for each data set the number of rows and columns, the
sum of every column over all rows, and a few encoded rows. `tests/it/catalogue.rs` compares them
with what the `reference` schemas give. Nothing here is read from the schemas. The expected
arrays are built column by column from the description of the authors' released data.
"""

import csv
import json
import sys
from pathlib import Path

import numpy

HERE = Path(__file__).resolve().parent
SAMPLED_ROWS = 4


def read(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def number(table, name):
    return numpy.array([float(cell) for cell in table[name]])


def one_hot(cells, levels):
    assert set(cells) <= set(levels), set(cells) - set(levels)
    return [numpy.array([float(cell == level) for cell in cells]) for level in levels]


def min_max(column):
    return (column - column.min()) / (column.max() - column.min())


def z_score(column):
    return (column - column.mean()) / column.std()


def heloc(folder):
    """21 numeric columns min-max scaled, special values as numbers; then two coded ones."""
    table = read(folder / "heloc.csv")
    coded = ["MaxDelq2PublicRecLast12M", "MaxDelqEver"]
    columns = [
        min_max(number(table, name))
        for name in table
        if name != "RiskPerformance" and name not in coded
    ]
    for name in coded:
        columns += one_hot(table[name], sorted(set(table[name]), key=int))
    return numpy.column_stack(columns)


def german(folder):
    """13 categorical columns one-hot, UCI codes in the order of strings; then 7 numbers."""
    table = read(folder / "german.csv")
    codes = read(folder / "german_codes.csv")
    columns = []
    numbers = []
    for name in table:
        if name == "class":
            continue
        texts = {
            code: text
            for column, code, text in zip(codes["column"], codes["uci_code"], codes["label"])
            if column == name
        }
        if texts:
            seen = set(table[name])
            columns += one_hot(table[name], [texts[c] for c in sorted(texts) if texts[c] in seen])
        else:
            numbers.append(min_max(number(table, name)))
    return numpy.column_stack(columns + numbers)


def ctg(folder):
    """One minimum and one maximum for the whole matrix."""
    table = read(folder / "ctg.csv")
    matrix = numpy.column_stack([number(table, name) for name in table if name != "NSP"])
    return (matrix - matrix.min()) / (matrix.max() - matrix.min())


def taiwan(folder):
    """Numbers z-scored, repayment status not below 0; then zeros and ones, left as they are."""
    table = read(folder / "taiwan.csv")
    months = [0, 2, 3, 4, 5, 6]
    columns = [number(table, "LIMIT_BAL"), number(table, "AGE")]
    columns += [numpy.maximum(number(table, f"PAY_{month}"), 0) for month in months]
    columns += [number(table, f"BILL_AMT{month}") for month in range(1, 7)]
    columns += [number(table, f"PAY_AMT{month}") for month in range(1, 7)]
    columns = [z_score(column) for column in columns]
    columns += one_hot(table["SEX"], ["1", "2"])[:1]
    columns += one_hot(table["EDUCATION"], list("0123456"))
    columns += one_hot(table["MARRIAGE"], list("0123"))
    return numpy.column_stack(columns)


def adult(folder):
    """The training file's rows without `?`: numbers min-max scaled, the rest one-hot."""
    table = read(folder / "adult_train.csv")
    levels = {name: sorted(set(cells) - {"?"}) for name, cells in table.items()}
    whole = [index for index, row in enumerate(zip(*table.values())) if "?" not in row]
    table = {name: [cells[index] for index in whole] for name, cells in table.items()}
    numbers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    columns = []
    for name in table:
        if name in numbers:
            columns.append(min_max(number(table, name)))
        elif name != "income":
            columns += one_hot(table[name], levels[name])
    return numpy.column_stack(columns)


def main():
    folder = Path(sys.argv[1])
    golden = {}
    for encode in (german, heloc, ctg, adult, taiwan):
        matrix = encode(folder)
        rows = [int(row) for row in numpy.linspace(1, len(matrix) - 2, SAMPLED_ROWS)]
        golden[encode.__name__] = {
            "rows": matrix.shape[0],
            "columns": matrix.shape[1],
            "sums": matrix.sum(axis=0).tolist(),
            "sampled": [{"row": row, "point": matrix[row].tolist()} for row in rows],
        }
    lines = [f'"{name}": {json.dumps(content)}' for name, content in golden.items()]
    (HERE / "catalogue.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
