"""The rows an explainer speaks about: any table, a file, or a data set of the catalogue."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from . import _native
from .data import Frame
from .errors import DataError

__all__ = ["Source", "as_table", "as_text"]


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
    """Rows, the column to predict if there is one, and what a schema is drawn up from."""

    frame: Frame
    table: _native.Table
    label: str | None
    # Of a data set that brings its schema and its split along.
    data: _native.Data | None = None

    @classmethod
    def of(cls, data: Any, label: Any = None) -> Source:
        """Reads what people have. `label` is the name of a column, or the labels themselves."""
        native = getattr(data, "_native", None)
        if isinstance(native, _native.Data):
            table = native.table()
            return cls(_frame_of(table), table, native.schema.label, native)
        if isinstance(data, (str, os.PathLike)):
            table = _native.Table.read(os.fspath(data))
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
        """The same, with the column of that name as the label, if it is there and none is yet."""
        known = self.label is None and name in self.frame.names
        return replace(self, label=name) if known else self

    @property
    def features(self) -> Frame:
        """All columns but the label."""
        return self.frame.select([name for name in self.frame.names if name != self.label])

    def kinds(
        self, features: Iterable[str], levels: Mapping[str, list[Any]] = MappingProxyType({})
    ) -> list[tuple[str, str, list[str]]]:
        """What the container knows of its columns, and a model of the `levels` of some, as the
        native side wants to be told."""
        known: list[tuple[str, str, list[str]]] = []
        for name in features:
            column = self.frame.columns[self.frame.names.index(name)]
            if name in self.frame.levels:
                own = self.frame.levels[name]
                kind = "ordinal" if own.ordered else "categorical"
                known.append((name, kind, _texts([*own.values, *levels.get(name, [])])))
            elif name in levels:
                seen = {value for value in column.tolist() if value is not None and value == value}
                known.append((name, "categorical", _texts([*levels[name], *sorted(seen)])))
            elif column.dtype == bool:
                known.append((name, "flag", ["false", "true"]))
            elif column.dtype.kind == "f" and not _whole(column):
                known.append((name, "numeric", []))
        return known


def _texts(levels: list[Any]) -> list[str]:
    """Every level once, as the native side writes it."""
    return list(dict.fromkeys(as_text(level) for level in levels))


def _whole(column: np.ndarray[Any, Any]) -> bool:
    present = column[~np.isnan(column)]
    return bool((present == np.floor(present)).all())


def _frame_of(table: _native.Table) -> Frame:
    return Frame.of(dict(zip(table.names, table.columns())))


def _labels(label: Any, frame: Frame) -> tuple[str, Any]:
    """The labels that were given beside the rows, and a name for their column."""
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
