"""Schemas: the meaning of the columns of a table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from . import _native, html
from .errors import SchemaError
from .source import Source, as_text
from .text import aligned

__all__ = ["Schema"]

# Maximum number of characters of a feature's levels in a table.
MOST_LETTERS = 60


class Schema:
    """The meaning of the columns of a table: kinds, levels, ranges, and allowed changes.

    A schema is text in TOML; `docs/formats.md` has every key. One that was inferred is a draft
    to correct:

    >>> schema = Schema.of('''
    ... format_version = 1
    ... [label]
    ... column = "paid"
    ... favourable = "yes"
    ... [[feature]]
    ... name = "income"
    ... kind = "integer"
    ... unit = "EUR"
    ... action = "only-up"
    ... ''')
    >>> schema
    feature  kind     unit  action   values
    income   integer  EUR   only-up
    >>> schema.features
    ['income']
    """

    def __init__(self, native: _native.Schema, notes: Iterable[str] = ()) -> None:
        self._native = native
        self.notes = list(notes)
        """Remarks on an inferred schema, for a person to review."""

    @classmethod
    def infer(cls, data: Any, label: Any, favourable: Any = None) -> Schema:
        """A draft of a schema from rows with labels, as `tyrex schema infer` writes it.

        `data` and `label` are those of an `Explainer`; without `favourable` the favourable value
        is guessed, with a remark.

        >>> rows = {"age": [25, 40, 61], "rate": [3.5, 4.0, 2.5], "defaulted": [0, 1, 0]}
        >>> Schema.infer(rows, "defaulted").to_dict()["feature"][0]["action"]
        'only-up'
        """
        return cls.drafted(Source.of(data, label), favourable)

    @classmethod
    def drafted(
        cls,
        source: Source,
        favourable: Any,
        features: list[str] | None = None,
        levels: Mapping[str, list[Any]] = MappingProxyType({}),
    ) -> Schema:
        """A draft of a schema for a model that takes the `features`, or for one to be trained. The
        columns that the model takes as categories have all the `levels` it knows."""
        values = favourable if isinstance(favourable, (list, tuple, set)) else [favourable]
        wanted = [] if favourable is None else [as_text(value) for value in values]
        kinds = source.kinds(features, levels)
        native, remarks = _native.Schema.infer(source.table, source.label, wanted, kinds, features)
        # Equal remarks on several features are merged.
        about: dict[str, list[str]] = {}
        for feature, remark in remarks:
            about.setdefault(remark, []).extend([] if feature is None else [feature])
        return cls(
            native,
            (f"{', '.join(names)}: {note}" if names else note for note, names in about.items()),
        )

    @classmethod
    def of(cls, schema: Any) -> Schema:
        """A schema from a schema, a TOML file or TOML text."""
        if isinstance(schema, Schema):
            return schema
        if isinstance(schema, _native.Schema):
            return cls(schema)
        if isinstance(schema, str) and ("\n" in schema or "=" in schema):
            return cls(_native.Schema(schema))
        if isinstance(schema, (str, os.PathLike)):
            return cls(_native.Schema.read(os.fspath(schema)))
        raise TypeError(
            f"found a schema of type {type(schema).__name__}; expected a tyrex.Schema, the path "
            "of a TOML file, or TOML text"
        )

    def to_toml(self) -> str:
        """The schema as TOML: save it, correct it, and pass it as `schema=`."""
        return self._native.to_toml()

    def to_dict(self) -> dict[str, Any]:
        """The schema as plain data."""
        document: dict[str, Any] = json.loads(self._native.to_json())
        return document

    def corrected(
        self, features: Mapping[str, Mapping[str, Any]] | None = None, **others: Mapping[str, Any]
    ) -> Schema:
        """The same schema with some features changed; None removes a key.

        The keys are those of docs/formats.md: kind, levels, unit, range, step, action, ... A new
        action replaces the old one. If that was `within`, inferred from the data, a rule keeps its
        ends. A row outside a `range` is an error.

        >>> schema = Schema.of('''
        ... format_version = 1
        ... [label]
        ... column = "paid"
        ... favourable = "yes"
        ... [[feature]]
        ... name = "age"
        ... kind = "integer"
        ... ''')
        >>> schema.corrected(age={"action": "only-up", "unit": "years"})
        feature  kind     unit   action   values
        age      integer  years  only-up
        >>> schema.corrected(aeg={"action": "fixed"})
        Traceback (most recent call last):
        tyrex.errors.SchemaError: no feature `aeg`; there are age
        """
        document = self.to_dict()
        known = {feature["name"]: feature for feature in document["feature"]}
        for name, better in {**(features or {}), **others}.items():
            if name not in known:
                raise SchemaError(f"no feature `{name}`; there are {', '.join(known)}")
            known[name].update(better)
            for key in [key for key, value in better.items() if value is None]:
                del known[name][key]
        return Schema(_native.Schema.from_json(json.dumps(document)), self.notes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the schema as TOML."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_toml())

    @property
    def features(self) -> list[str]:
        """The features, in order."""
        return self._native.features

    @property
    def label(self) -> str:
        """The column to predict."""
        return self._native.label

    def _lines(self) -> tuple[list[str], list[list[str]]]:
        header = ["feature", "kind", "unit", "action", "values"]
        return header, [_line(feature) for feature in self.to_dict()["feature"]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self.to_toml() == other.to_toml()

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __reduce__(self) -> tuple[Any, ...]:
        return (Schema, (self._native, self.notes))

    def __repr__(self) -> str:
        header, rows = self._lines()
        table = aligned(header, rows, [False] * len(header))
        return "\n".join([table, *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        header, rows = self._lines()
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        table = html.table(header, rows, [False] * len(header))
        return html.page(table + (f"<ul>{notes}</ul>" if notes else ""))


def _line(feature: dict[str, Any]) -> list[str]:
    action = feature.get("action", "free")
    levels = feature.get("levels") or feature.get("values") or []
    interval = feature.get("range")
    if not isinstance(action, str):
        # The action with values: within an interval, or some levels.
        ((action, allowed),) = action.items()
        interval = allowed if action == "within" else interval
        levels = allowed if action == "levels" else levels
    if becomes := feature.get("may_become"):
        action += f", may become {becomes}"
    values = " | ".join(str(level) for level in levels)
    if interval:
        values = f"{_end(interval[0])} to {_end(interval[1])}"
    elif len(values) > MOST_LETTERS:
        values = f"{values[:MOST_LETTERS]}... ({len(levels)})"
    return [feature["name"], feature["kind"], feature.get("unit") or "", action, values]


def _end(end: Any) -> str:
    return "any" if end is None else str(end)
