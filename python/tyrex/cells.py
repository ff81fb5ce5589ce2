"""Cells of any type, as columns of a few types."""

from __future__ import annotations

import datetime
import decimal
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import DataError
from .text import listed

__all__ = [
    "Array",
    "Levels",
    "as_category",
    "as_column",
    "first_missing",
    "holds",
    "missing_cells",
    "with_gaps",
]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Levels:
    """The values of a category, and whether they are ordered."""

    values: list[Any]
    ordered: bool = False

    def codes(self, name: str, column: Array) -> Array:
        """The position of every cell among the values; -1 if it is missing."""
        places = {value: place for place, value in enumerate(self.values)}
        places[None] = -1
        cells = column.tolist()
        codes = np.fromiter((places.get(cell, -2) for cell in cells), np.int64, len(cells))
        for row in np.flatnonzero(codes == -2):
            if not is_missing(cells[row]):
                known = listed(map(repr, self.values))
                raise DataError(f"column '{name}', row {row}: {cells[row]!r} is not one of {known}")
            codes[row] = -1
        return codes


def as_column(name: str, values: Array) -> Array:
    """Converts any array of cells to one of the types of a column."""
    kind = values.dtype.kind
    if kind == "O":
        values = _objects(name, values)
    elif kind in "UT":
        values = values.astype(object)
    elif kind in "iu":
        fits = kind == "i" or not len(values) or values.max() <= np.iinfo(np.int64).max
        values = values.astype(np.int64 if fits else np.float64, copy=False)
    elif kind == "f":
        narrow = values.dtype.itemsize <= 4
        values = values.astype(np.float32 if narrow else np.float64, copy=False)
    elif kind in "mM":
        raise _dates(name)
    elif kind != "b":
        what = {"c": "complex numbers", "S": "bytes"}.get(kind, str(values.dtype))
        raise DataError(f"column '{name}' holds {what}; expected numbers or texts")
    return np.ascontiguousarray(values)


def _objects(name: str, values: Array) -> Array:
    """Python objects: texts, numbers or booleans, some of them missing."""
    kinds = set(map(type, values))
    if kinds <= {str}:
        return values
    lost = np.fromiter(map(is_missing, values), dtype=bool, count=len(values))
    present = values[~lost] if lost.any() else values
    kinds = set(map(type, present))

    def all_are(*types: type) -> bool:
        return all(issubclass(kind, types) for kind in kinds)

    if all_are(str):
        texts = np.empty(len(values), dtype=object)
        texts[~lost] = [str(text) for text in present]
        return texts
    if all_are(bool, np.bool_):
        return _with_missing(present.astype(bool), lost)
    if any(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        raise _mixed(name, present)
    if all_are(numbers.Integral):
        try:
            return _with_missing(present.astype(np.int64), lost)
        except OverflowError:
            return _with_missing(present.astype(np.float64), lost)
    if all_are(numbers.Real, decimal.Decimal):
        return _with_missing(present.astype(np.float64), lost)
    if all_are(datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64):
        raise _dates(name)
    raise _mixed(name, present)


def _with_missing(present: Array, lost: Array) -> Array:
    if not lost.any():
        return present
    column = np.full(len(lost), np.nan)
    column[~lost] = present
    return column


def is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, decimal.Decimal)) and value != value


def first_missing(values: Array, column: Array) -> Any:
    """The marker of missing values: some models distinguish NaN and None."""
    lost = missing_cells(column)
    return values[int(np.argmax(lost))] if lost.any() else None


def _dates(name: str) -> DataError:
    return DataError(
        f"column '{name}' holds dates or times; turn it into a number first, such as days since "
        "a fixed date"
    )


def _mixed(name: str, present: Array) -> DataError:
    examples: dict[str, Any] = {}
    for value in present.tolist():
        examples.setdefault(type(value).__name__, value)
    seen = listed((f"{value!r:.40} ({kind})" for kind, value in examples.items()), 3)
    return DataError(f"column '{name}' holds {seen}; expected cells of one kind: numbers or texts")


def as_category(name: str, values: list[Any], ordered: Any, codes: Array) -> tuple[Levels, Array]:
    """A column of categories, from their values and the place of every cell among them."""
    if not all(isinstance(value, (str, numbers.Real, np.bool_)) for value in values):
        if any(isinstance(value, (datetime.date, np.datetime64)) for value in values):
            raise _dates(name)
        values = [str(value) for value in values]
    cells = np.empty(len(values) + 1, dtype=object)
    cells[:-1] = values
    kinds = as_column(name, cells[:-1])
    return Levels(kinds.tolist(), bool(ordered)), as_column(name, cells[codes])


def holds(dtype: np.dtype[Any], column: Array) -> bool:
    """Whether numbers fit a type of numbers without loss, missing ones aside."""
    if column.dtype.kind not in "biuf":
        return False
    present = column[~np.isnan(column)] if column.dtype.kind == "f" else column
    if dtype.kind == "b":
        return bool(((present == 0) | (present == 1)).all())
    if dtype.kind in "iu" and len(present):
        bounds = np.iinfo(dtype)
        whole = present.dtype.kind in "biu" or bool((present == np.floor(present)).all())
        return whole and bool(present.min() >= bounds.min and present.max() <= bounds.max)
    return True


def missing_cells(column: Array) -> Array:
    if column.dtype.kind == "O":
        return np.fromiter(map(is_missing, column), dtype=bool, count=len(column))
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)


def with_gaps(column: Array, dtype: np.dtype[Any]) -> list[Any]:
    """Whole numbers or booleans, with None for missing ones."""
    lost = missing_cells(column)
    cells = np.where(lost, 0, column).astype(dtype).astype(object)
    cells[lost] = None
    return cells.tolist()  # type: ignore[no-any-return]
