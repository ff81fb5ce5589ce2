"""The data sets of the paper and more, with their schemas and splits.

German credit and the two moons are part of the package. The others are read from the folder
`data_dir`, in `$TYREX_DATA` and in the user's data folder; `tyrex data fetch NAME` of the command
line downloads them.

>>> from tyrex import datasets
>>> german = datasets.load_german()
>>> german
Dataset german: 1000 rows, 20 features, 670 train, 330 test; label `class`
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _native
from .columns import Columns
from .schema import Schema

__all__ = [
    "Dataset",
    "load",
    "load_adult",
    "load_ctg",
    "load_german",
    "load_heloc",
    "load_moons",
    "load_taiwanese",
    "names",
]

# The data sets that are part of the package.
_EMBEDDED = ("german", "moons")


class Dataset:
    """Rows with their schema and their split into training and test rows.

    An `Explainer` takes it as `data`.
    """

    def __init__(
        self,
        name: str,
        variant: str = "product",
        data_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self.name, self.variant = name, variant
        folder = None if data_dir is None else os.fspath(data_dir)
        self._native = _native.Data.named(name, variant, folder)

    @property
    def schema(self) -> Schema:
        """The meaning of the columns."""
        return Schema(self._native.schema)

    @property
    def columns(self) -> Columns:
        """The table, column by column."""
        table = self._native.table()
        cells = (
            np.array(column, dtype=object) if isinstance(column, list) else column
            for column in table.columns()
        )
        return Columns(dict(zip(table.names, cells)))

    @property
    def train(self) -> list[int]:
        """The rows of the table that train."""
        return self._native.split()[0]

    @property
    def test(self) -> list[int]:
        """The rows of the table that test."""
        return self._native.split()[1]

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        return self.columns.to_pandas()

    def to_polars(self) -> Any:
        """The table as a polars DataFrame."""
        return self.columns.to_polars()

    def to_arrow(self) -> Any:
        """The table as a pyarrow Table."""
        return self.columns.to_arrow()

    def __len__(self) -> int:
        return len(self._native)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.name in _EMBEDDED:
            return (Dataset, (self.name, self.variant))
        # Another machine may not have its files.
        native = self._native
        return (
            _restored,
            (self.name, self.variant, native.schema, native.table(), native.own_split()),
        )

    def __repr__(self) -> str:
        return (
            f"Dataset {self.name}: {len(self)} rows, {len(self.schema.features)} features, "
            f"{len(self.train)} train, {len(self.test)} test; label `{self.schema.label}`"
        )


def _restored(
    name: str,
    variant: str,
    schema: _native.Schema,
    table: _native.Table,
    split: tuple[list[int], list[int]] | None,
) -> Dataset:
    own = Dataset.__new__(Dataset)
    own.name, own.variant = name, variant
    own._native = _native.Data.of_parts(table, schema, split)
    return own


def names() -> list[str]:
    """The names of all data sets.

    >>> "german" in names()
    True
    """
    return _native.dataset_names()


def load(
    name: str,
    variant: str = "product",
    data_dir: str | os.PathLike[str] | None = None,
) -> Dataset:
    """A data set by its name. `variant="reference"` has the encoding of the paper's authors."""
    return Dataset(name, variant, data_dir)


def load_german(variant: str = "product") -> Dataset:
    """German credit: 1,000 applicants, good or bad risks."""
    return load("german", variant)


def load_heloc(variant: str = "product", data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """HELOC: home equity lines of credit, FICO's challenge of 2018."""
    return load("heloc", variant, data_dir)


def load_adult(variant: str = "product", data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Adult: incomes above and below 50,000 dollars."""
    return load("adult", variant, data_dir)


def load_ctg(variant: str = "product", data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Cardiotocography: measurements of foetal heart rates."""
    return load("ctg", variant, data_dir)


def load_taiwanese(
    variant: str = "product", data_dir: str | os.PathLike[str] | None = None
) -> Dataset:
    """Taiwanese credit cards: default in the next month."""
    return load("taiwan", variant, data_dir)


def load_moons() -> Dataset:
    """Two moons: two interleaved half circles with noise."""
    return load("moons")
