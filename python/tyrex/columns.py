"""Results as a table of named columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from . import html
from .cells import Array
from .errors import DataError, need
from .text import aligned, shown

__all__ = ["Columns"]

# Rows to show of a table on a terminal and in a notebook.
FIRST_ROWS = 10


class Columns(Mapping[str, Array]):
    """A table of results: named numpy columns of one length, read-only.

    >>> table = Columns({"row": [0, 1], "stability": [0.81234, 0.5]})
    >>> table
    row  stability
      0     0.8123
      1        0.5
    >>> table["stability"].max(), table.shape
    (np.float64(0.81234), (2, 2))
    >>> table.rows[1]
    {'row': 1, 'stability': 0.5}
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns: dict[str, Array] = {}
        for name, values in columns.items():
            column = _as_array(values)
            if column.ndim != 1:
                raise DataError(f"column '{name}' has {column.ndim} dimensions; expected 1")
            column.flags.writeable = False
            self._columns[name] = column
        if len({len(column) for column in self._columns.values()}) > 1:
            raise DataError("expected columns of the same length")

    def __getitem__(self, name: str) -> Array:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __getattr__(self, name: str) -> Array:
        # The columns as attributes, for `table.stability`; pickle asks before there are any.
        if not name.startswith("_") and name in self._columns:
            return self._columns[name]
        raise AttributeError(f"'{type(self).__name__}' has no column or attribute '{name}'")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._columns]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Columns):
            return NotImplemented
        return list(self) == list(other) and all(_same(self[name], other[name]) for name in self)

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Array]:
        return dict(self._columns)

    def __setstate__(self, columns: dict[str, Array]) -> None:
        Columns.__init__(self, columns)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return (next((len(column) for column in self.values()), 0), len(self))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows, each a dict of Python values."""
        cells = [column.tolist() for column in self.values()]
        return [dict(zip(self, row)) for row in zip(*cells)]

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        return need("pandas", "for to_pandas()").DataFrame(self._copies())

    def to_polars(self) -> Any:
        """The table as a polars DataFrame."""
        return need("polars", "for to_polars()").DataFrame(self._lists())

    def to_arrow(self) -> Any:
        """The table as a pyarrow Table."""
        return need("pyarrow", "for to_arrow()").table(self._lists())

    def _copies(self) -> dict[str, Array]:
        return {name: column.copy() for name, column in self.items()}

    def _lists(self) -> dict[str, Any]:
        # Objects are passed as Python values: these packages infer the type and missing values.
        return {
            name: column.tolist() if column.dtype.kind == "O" else column.copy()
            for name, column in self.items()
        }

    def __repr__(self) -> str:
        if not self:
            return "a table without columns"
        texts, right = self._texts()
        more = self.shape[0] - len(texts)
        table = aligned(list(self), texts, right)
        return f"{table}\n... and {more} more rows" if more else table

    def _repr_html_(self) -> str:
        texts, right = self._texts()
        return html.table(list(self), texts, right, self.shape[0] - len(texts))

    def _texts(self) -> tuple[list[list[str]], list[bool]]:
        first = [[shown(cell) for cell in column[:FIRST_ROWS].tolist()] for column in self.values()]
        right = [column.dtype.kind in "iuf" for column in self.values()]
        return [list(row) for row in zip(*first)], right


def _as_array(values: Any) -> Array:
    if isinstance(values, np.ndarray):
        return values.view()
    values = list(values)
    array = np.array(values)
    if array.dtype.kind in "USTO" or array.ndim != 1:
        array = np.empty(len(values), dtype=object)
        array[:] = values
    return array


def _same(one: Array, other: Array) -> bool:
    numeric = one.dtype.kind == "f" and other.dtype.kind == "f"
    return bool(np.array_equal(one, other, equal_nan=numeric))
