"""Writes workbook.xls, a small Excel 97 workbook, with the package xlwt 1.3.0.

python3 crates/tyrex/tests/golden/workbook.py
"""

import struct
from pathlib import Path

import xlwt

book = xlwt.Workbook()
other = book.add_sheet("Other")
other.write(1, 0, 99)
data = book.add_sheet("Data")
rows = [
    ["a", "b", "c", "d", "e"],
    [1, 0.0075, "text", -7, 2.5],
    [2, 0.0025, xlwt.Formula("1+1"), 123456789.25, 0.1],
    [-3, 0.0, None, xlwt.Formula("1/4"), 1e-7],
]
for row, cells in enumerate(rows):
    for column, cell in enumerate(cells):
        if cell is not None:
            data.write(row, column, cell)
path = Path(__file__).resolve().parent / "workbook.xls"
book.save(path)

# xlwt leaves the results of formulas out ("a text, elsewhere"); Excel writes them. Give the second
# formula its result.
before, between, after = path.read_bytes().split(struct.pack("<Q", 0xFFFF000000000003))
no_number, number = struct.pack("<Q", 0xFFFF000000000003), struct.pack("<d", 0.25)
path.write_bytes(before + no_number + between + number + after)
