"""The rows of an explainer: any table, a file, or a data set of the catalogue."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from . import _native
from .data import Frame
from .errors import DataError

__all__ = ["Source", "as_table", "as_text"]

# A column with more different texts than this has no levels.
MOST_LEVELS = 200
# Below it every whole number is a float.
EXACT = 2.0**53


def as_text(value: Any) -> str:
    """A label or a level as the native side writes it.

    >>> as_text(True), as_text(1.0), as_text("good")
    ('true', '1', 'good')
    """
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def as_table(frame: Frame, source: str = "data") -> _native.Table:
    """The native table of a frame."""
    columns = [
        column.tolist() if column.dtype == object else np.ascontiguousarray(column)
        for column in frame.columns
    ]
    return _native.Table(source, frame.names, columns)


@dataclass(frozen=True)
class Source:
    """Rows, the column to predict if there is one, and the input for inferring a schema."""

    frame: Frame
    table: _native.Table
    label: str | None
    # For a data set with its own schema and split.
    data: _native.Data | None = None

    @classmethod
    def of(cls, data: Any, label: Any = None) -> Source:
        """Reads rows in any form. `label` is the name of a column, or the labels themselves."""
        native = getattr(data, "_native", None)
        if isinstance(native, _native.Data):
            table = native.table()
            return cls(_frame_of(table), table, native.schema.label, native)
        if isinstance(data, (str, os.PathLike)):
            data = _native.Table.read(os.fspath(data))
        if isinstance(data, _native.Table):
            table = data
            frame = _frame_of(table)
        else:
            frame = Frame.of(data)
            table = as_table(frame)
        if label is None:
            return cls(frame, table, None)
        if isinstance(label, str):
            # The error names the columns that are there.
            frame.select([label])
            return cls(frame, table, label)
        frame = _with_column(frame, *_labels(label, frame))
        return cls(frame, as_table(frame), frame.names[-1])

    def labelled(self, name: str) -> Source:
        """The same, with the column of that name as the label, if it exists and no label is set."""
        known = self.label is None and name in self.frame.names
        return replace(self, label=name) if known else self

    @property
    def features(self) -> Frame:
        """All columns but the label."""
        return self.frame.select([name for name in self.frame.names if name != self.label])

    def kinds(
        self,
        features: Iterable[str] | None,
        levels: Mapping[str, list[Any]] = MappingProxyType({}),
    ) -> list[tuple[str, str, list[Any]]]:
        """The known kinds of the container's columns, and a model's `levels` of some, as the
        native side takes them. A text stays a text, even one that looks like a number. `features`
        are the columns that a model takes; None if there is no model."""
        known: list[tuple[str, str, list[Any]]] = []
        for name in self.features.names if features is None else features:
            column = self.frame.columns[self.frame.names.index(name)]
            if name in self.frame.levels:
                own = self.frame.levels[name]
                kind = "ordinal" if own.ordered else "categorical"
                known.append((name, kind, _each([*own.values, *levels.get(name, [])])))
            elif name in levels:
                known.append((name, "categorical", _each([*levels[name], *_seen(column)])))
            elif column.dtype == bool:
                known.append((name, "flag", ["false", "true"]))
            elif column.dtype == object:
                texts = _seen(column)
                if 1 < len(texts) <= MOST_LEVELS:
                    known.append((name, "text", texts))
                elif features and len(texts) > MOST_LEVELS and all(map(_is_a_number, texts)):
                    raise DataError(
                        f"column '{name}' holds {len(texts)} different texts that look like "
                        "numbers; turn them into numbers, or leave the column out"
                    )
            elif column.dtype.kind == "f" and not self._counts(column):
                known.append((name, "numeric", []))
            elif column.dtype.kind == "i" and np.abs(column).max() >= EXACT:
                known.append((name, "numeric", []))
        return known

    def _counts(self, column: np.ndarray[Any, Any]) -> bool:
        """Whether floats are whole numbers by nature: in an array, where all numbers are floats,
        or in a column with gaps, which made floats of them."""
        present = column[~np.isnan(column)]
        could_be = self.frame.kind in ("array", "dict", "records") or len(present) < len(column)
        whole = (present == np.floor(present)) & (np.abs(present) < EXACT)
        return could_be and bool(whole.all())

    def restored(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Values as in the data: the native side returns booleans as texts."""
        truth = {"true": True, "false": False}
        return {
            name: truth.get(value, value) if name in self.flags else value
            for name, value in row.items()
        }

    @cached_property
    def flags(self) -> frozenset[str]:
        """The boolean columns."""
        pairs = zip(self.frame.names, self.frame.columns)
        return frozenset(name for name, column in pairs if column.dtype == bool)

    def restored_advice(self, advice: dict[str, Any]) -> dict[str, Any]:
        """The same for advised values."""
        if not self.flags or advice["status"] != "found":
            return advice
        changes = [{**change, **self._restored_change(change)} for change in advice["changes"]]
        whole = self.restored(advice["counterfactual"])
        return {**advice, "changes": changes, "counterfactual": whole}

    def _restored_change(self, change: Mapping[str, Any]) -> dict[str, Any]:
        return {
            end: self.restored({change["feature"]: change[end]})[change["feature"]]
            for end in ("from", "to")
        }


def table_of(source: str, content: bytes) -> _native.Table:
    """A table from its CSV; what a pickled table calls."""
    return _native.Table.of_csv(source, content)


def _parts(table: _native.Table) -> tuple[Any, ...]:
    return (table_of, (table.source, table.to_csv()))


copyreg.pickle(_native.Table, _parts)


def _each(levels: Iterable[Any]) -> list[Any]:
    """Every level once, as the native side takes it: a text or a number."""
    plain = (
        level
        if isinstance(level, str)
        else as_text(level)
        if isinstance(level, (bool, np.bool_))
        else float(level)
        for level in levels
    )
    return list(dict.fromkeys(plain))


def _seen(column: np.ndarray[Any, Any]) -> list[Any]:
    return sorted({value for value in column.tolist() if value is not None and value == value})


def _is_a_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _frame_of(table: _native.Table) -> Frame:
    return Frame.of(dict(zip(table.names, table.columns())))


def _labels(label: Any, frame: Frame) -> tuple[str, Any]:
    """The labels given beside the rows, and a name for their column."""
    index: Any = getattr(label, "index", None)
    if frame.kind == "pandas" and hasattr(label, "reindex") and not index.equals(frame.index):
        if not index.is_unique or len(index) != len(frame) or not frame.index.isin(index).all():
            raise DataError(
                "label has another index than the data; expected the same rows, or an array"
            )
        label = label.reindex(frame.index)
    values = np.asarray(label)
    if values.ndim != 1 or len(values) != len(frame):
        raise DataError(
            f"label has the shape {values.shape}; expected the name of a column, or one label "
            f"for each of the {len(frame)} rows"
        )
    name = str(getattr(label, "name", None) or "label")
    while name in frame.names:
        name += "_"
    return name, values


def _with_column(frame: Frame, name: str, values: Any) -> Frame:
    extra = Frame.of({name: values})
    return Frame(
        [*frame.names, name],
        [*frame.columns, *extra.columns],
        {**frame.levels, **extra.levels},
        frame.index,
        frame.kind,
        [*frame.origins, *extra.origins],
    )
