"""Explanations of many rows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, overload

from . import html
from .errors import DataError, ParameterError, need
from .explanation import Change, Explanation
from .text import aligned, listed, shown

__all__ = ["Change", "Explanation", "Explanations"]

FORMAT_VERSION = 1
# Rows to show on a terminal.
MOST_ROWS = 10
RESULTS = ("score", "stability", "usual", "cost_l1", "cost_l2", "changed", "status", "reason")

Certifier = Callable[["Explanations"], "list[dict[str, Any] | None]"]


class Explanations(Sequence[Explanation]):
    """Explanations of rows, in the order they were given.

    >>> age = {"feature": "age", "from": 25, "to": 27, "unit": "years"}
    >>> advice = {"status": "found", "changes": [age], "score": 0.83, "stability": 0.81,
    ...           "cost": {"l1": 0.2, "l2": 0.1}}
    >>> row = {"row": 0, "score": 0.31, "features": {"age": 25, "owner": "no"}, "advice": advice}
    >>> explanations = Explanations.of([row], request={"method": "trex-i", "norm": "l1"})
    >>> explanations
    1 explanation by trex-i with cost in l1: 1 found
    row  score           stability   cost  what to change
      0  0.310 -> 0.830      0.810  0.200  age: 25 -> 27 years
    >>> explanations.to_pandas()[["age", "owner", "score", "changed", "status"]]
       age owner  score  changed status
    0   27    no   0.83        1  found
    """

    def __init__(
        self,
        explanations: Iterable[Explanation],
        *,
        request: Mapping[str, Any] | None = None,
        fingerprint: str = "",
        index: Any = None,
        interrupted: bool = False,
        kind: str = "pandas",
        certifier: Certifier | None = None,
        answer: Mapping[str, Any] | None = None,
    ) -> None:
        self._items = list(explanations)
        self.certifier = certifier
        """The function that makes certificates, while the explainer exists."""
        own = {"format_version": FORMAT_VERSION, "fingerprint": fingerprint, "request": request}
        self.answer = dict(answer or own)
        """The document of the answer without its rows, as from the command line and the service:
        `ask`, `request`, `fingerprint`, ..."""
        self.labels = index
        """The labels of the given rows, or None if they have none."""
        self.interrupted = interrupted
        """Whether the search was stopped before all rows were explained."""
        self.kind = kind
        """The container of the given rows: pandas, polars, arrow, ..."""

    @classmethod
    def of(
        cls,
        documents: Iterable[Mapping[str, Any]],
        *,
        seconds: Iterable[float | None] = (),
        index: Any = None,
        **others: Any,
    ) -> Explanations:
        """Explanations from the documents of rows and the seconds that each took, where they are
        known; `index[row]` is the label of a row."""
        items = (
            Explanation.of(document, None if index is None else index[document["row"]], took)
            for document, took in zip(documents, chain(seconds, repeat(None)))
        )
        return cls(items, index=index, **others)

    @overload
    def __getitem__(self, place: int) -> Explanation: ...
    @overload
    def __getitem__(self, place: slice) -> Explanations: ...
    def __getitem__(self, place: int | slice) -> Explanation | Explanations:
        if isinstance(place, slice):
            return self._with(self._items[place])
        return self._items[place]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Explanations):
            return NotImplemented
        mine = (self._items, self.request, self.fingerprint, self.interrupted)
        return mine == (other._items, other.request, other.fingerprint, other.interrupted)

    @property
    def request(self) -> dict[str, Any]:
        """The request: method, norm, tau, seed, ..."""
        request, ask = dict(self.answer["request"] or {}), self.answer.get("ask")
        if ask is None:
            return request
        method = request["method"]
        # The test of trex-o is that of its start.
        test = method.get("robustness") or (method.get("start") or {}).get("robustness")
        return {**request, "tau": test and test["tau"], "seed": ask["seed"]}

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model that was explained."""
        return str(self.answer["fingerprint"])

    @property
    def meaning(self) -> dict[str, Any] | None:
        """The promised outcome: the label's column, its favourable values, and the score from which
        a row is accepted. None in files of earlier versions."""
        meaning: dict[str, Any] | None = self.answer.get("meaning")
        return meaning

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the advice, such as a schema without rules."""
        return list(self.answer.get("warnings", ()))

    @property
    def portfolio(self) -> dict[str, Any] | None:
        """All promises at once, if there is a promise: `sentence` states the share that the next
        model keeps, `statements` the same by group and weighted by amount."""
        portfolio: dict[str, Any] | None = self.answer.get("portfolio")
        return portfolio

    __hash__ = None  # type: ignore[assignment]

    def _with(self, items: Iterable[Explanation]) -> Explanations:
        return Explanations(
            items,
            # A portfolio is about all rows.
            answer={name: own for name, own in self.answer.items() if name != "portfolio"},
            index=self.labels,
            interrupted=self.interrupted,
            kind=self.kind,
            certifier=self.certifier,
        )

    def __getstate__(self) -> dict[str, Any]:
        # An explainer is heavy, and its model may not be picklable.
        return {**self.__dict__, "certifier": None}

    @property
    def found(self) -> Explanations:
        """The explanations with advice."""
        return self._with(e for e in self if e.found)

    @property
    def not_found(self) -> Explanations:
        """The explanations without advice; `reason` and `why` give the reason."""
        return self._with(e for e in self if not e.found)

    @property
    def certificates(self) -> list[dict[str, Any] | None]:
        """The certificate of every row, None where nothing was found.

        Made at first use, without retrained models, unless `explain` was called with `certify`.
        After pickling, or from a file, only existing certificates are available.
        """
        if self.certifier is not None and all(each.certificate is None for each in self):
            made = self.certifier(self)
            self._items = [replace(each, certificate=own) for each, own in zip(self, made)]
        return [e.certificate for e in self]

    @property
    def norm(self) -> str:
        """The norm of the cost."""
        return str(self.request.get("norm", "l1"))

    @property
    def summary(self) -> str:
        """A summary in one line: the search, and the number of rows with advice."""
        method, tau = self.request.get("method"), self.request.get("tau")
        if isinstance(method, Mapping):
            method = method.get("method")
        text = f"{len(self)} explanation{'' if len(self) == 1 else 's'}"
        text += f" by {method} with cost in {self.norm}" if method else ""
        text += f", stability at least {shown(tau)}" if tau is not None else ""
        promise = self.request.get("promise")
        text += f", a promise of {shown(promise['probability'])}" if promise else ""
        found = sum(e.found for e in self)
        text += f": {found} found"
        text += f", {len(self) - found} not found" if found < len(self) else ""
        return f"{text}; stopped before the end" if self.interrupted else text

    def to_pandas(self, changes_only: bool = False) -> Any:
        """A DataFrame with a row for every explanation, under the labels of the rows given.

        It holds the counterfactual's features, then score, stability, cost_l1, cost_l2, changed
        (how many features), status and reason. With `changes_only`, unchanged features are
        missing; `styled` keeps and marks cells instead.
        """
        pandas = need("pandas", "for to_pandas()")
        full = {"int": "int64", "bool": "bool", "float": "float64"}
        gaps = {"int": "Int64", "bool": "boolean", "float": "float64"}
        columns = {}
        for name, (kind, cells) in self._columns(changes_only).items():
            types = gaps if None in cells else full
            # pandas chooses the type of texts.
            columns[name] = cells if kind == "text" else pandas.array(cells, dtype=types[kind])
        if hasattr(self.labels, "take"):
            index = self.labels.take([e.row for e in self])
        else:
            index = pandas.Index([e.label for e in self])
        return pandas.DataFrame(columns, index=index)

    def styled(self) -> Any:
        """The DataFrame with the cells that change marked, for notebooks and HTML."""
        need("jinja2", "for styled()")
        table = self.to_pandas()
        marked = [
            [
                "font-weight: 600; background-color: rgba(46, 160, 67, .22)" if on else ""
                for on in line
            ]
            for line in self._changed_cells(list(table.columns))
        ]
        # Row labels may repeat, so cells are marked by place, in copies without labels.
        style = table.reset_index(drop=True).style
        styles = need("pandas", "for styled()").DataFrame(marked, columns=table.columns)
        style = style.apply(lambda _: styles, axis=None).format(shown, escape="html")
        style = style.relabel_index([html.escape(shown(e.label)) for e in self], axis=0)
        return style.format_index(escape="html", axis=1)

    def to_polars(self) -> Any:
        """A polars DataFrame: the row's number, then the columns of `to_pandas`."""
        polars = need("polars", "for to_polars()")
        types = {
            "int": polars.Int64,
            "bool": polars.Boolean,
            "float": polars.Float64,
            "text": polars.String,
        }
        columns = self._columns(rows=True).items()
        return polars.DataFrame(
            [polars.Series(name, cells, dtype=types[kind]) for name, (kind, cells) in columns]
        )

    def to_arrow(self) -> Any:
        """A pyarrow Table: the row's number, then the columns of `to_pandas`."""
        arrow = need("pyarrow", "for to_arrow()")
        types = {
            "int": arrow.int64(),
            "bool": arrow.bool_(),
            "float": arrow.float64(),
            "text": arrow.string(),
        }
        columns = self._columns(rows=True).items()
        return arrow.table(
            {name: arrow.array(cells, type=types[kind]) for name, (kind, cells) in columns}
        )

    def to_frame(self) -> Any:
        """The table in the package of the given rows: pandas, polars or pyarrow."""
        if self.kind == "polars":
            return self.to_polars()
        return self.to_arrow() if self.kind == "arrow" else self.to_pandas()

    def to_json(self, path: Any = None, indent: int | None = None) -> str | None:
        """All of it as JSON: the text, or nothing if it is written to a file.

        It is the document of the command line and the service, and after it `interrupted`, `index`
        and `seconds`.
        """
        document = {
            **self.answer,
            "asked": len(self),
            "found": sum(e.found for e in self),
            **({} if self.portfolio is None else {"portfolio": self.portfolio}),
            "rows": [e.to_dict() for e in self],
            "interrupted": self.interrupted,
            "index": None if self.labels is None else list(self.labels),
            "seconds": [e.seconds for e in self],
        }
        text = json.dumps(document, indent=indent, default=_plain, ensure_ascii=False)
        if path is None:
            return text
        Path(path).write_text(text + "\n", encoding="utf-8")
        return None

    @classmethod
    def from_json(cls, source: Any) -> Explanations:
        """Explanations from a file that `to_json` wrote, or from its text."""
        is_path = isinstance(source, os.PathLike) or (
            isinstance(source, str) and source.endswith(".json")
        )
        text = Path(source).read_text(encoding="utf-8") if is_path else source
        try:
            document = json.loads(text)
            if document["format_version"] != FORMAT_VERSION:
                raise DataError(
                    f"explanations of format version {document['format_version']}; "
                    f"expected version {FORMAT_VERSION}"
                )
            # Files of earlier versions have `explanations`.
            rows = document.pop("rows" if "rows" in document else "explanations")
            return cls.of(
                rows,
                seconds=document.pop("seconds", ()),
                index=document.pop("index"),
                interrupted=document.pop("interrupted"),
                answer={
                    **document,
                    **{name: document[name] for name in ("request", "fingerprint")},
                },
            )
        except json.JSONDecodeError as problem:
            raise DataError(f"the explanations are not JSON: {problem}") from problem
        except (KeyError, TypeError, IndexError, AttributeError) as problem:
            raise DataError(f"the JSON holds no explanations of tyrex: {problem!r}") from problem

    def save(self, path: Any) -> None:
        """Writes a .csv, .parquet or .json file; the command line reads the first two too."""
        suffix = Path(path).suffix.lower()
        if suffix == ".json":
            self.to_json(path)
        elif suffix == ".csv":
            need("pyarrow.csv", "to write .csv files").write_csv(self._written(), path)
        elif suffix == ".parquet":
            need("pyarrow.parquet", "to write .parquet files").write_table(self._written(), path)
        else:
            raise ParameterError(f"'{path}': expected a name that ends in .csv, .parquet or .json")

    def _written(self) -> Any:
        """The table of `to_arrow`, with the promised outcome where an audit of the command line
        reads it."""
        table = self.to_arrow()
        features = {name for each in self for name in each.features}
        if self.meaning is None or "parameters" in features:
            return table
        text = json.dumps({**(self.answer["request"] or {}), "meaning": self.meaning})
        table = table.append_column("parameters", [[text] * len(self)])
        if features.isdisjoint({"row", *RESULTS, "format_version"}):
            # The other columns are then known not to be features.
            table = table.append_column("format_version", [[FORMAT_VERSION] * len(self)])
        return table

    def plot(self, row: Any = None, ax: Any = None) -> Any:
        """Draws the changes of one row, or without a row the cost of all against their stability.

        Returns the matplotlib Axes.
        """
        from . import plot

        if row is None:
            return plot.trade_off(self, ax)
        return plot.changes(self._labelled(row), ax)

    def _labelled(self, row: Any) -> Explanation:
        for explanation in self:
            if explanation.label == row:
                return explanation
        raise ParameterError(
            f"no explanation of row {row!r}; there are {listed(shown(e.label) for e in self)}"
        )

    def __repr__(self) -> str:
        lines: list[list[str]] = []
        for e in self[:MOST_ROWS]:
            first = [shown(e.label), f"{e.score:.3f}", "", ""]
            if e.found and e.new_score is not None:
                first[1] += f" -> {e.new_score:.3f}"
                first[2] = _digits(e.stability)
                first[3] = _digits(e.cost(self.norm))
            for number, change in enumerate(e.what_changes):
                lines.append([*(first if number == 0 else [""] * 4), change])
        heads = ["row", "score", "stability", "cost", "what to change"]
        table = aligned(heads, lines, [True, False, True, True, False])
        more = len(self) - MOST_ROWS
        rest = f"\n... and {more} more" if more > 0 else ""
        return f"{self.summary}\n{table}{rest}" if lines else self.summary

    def _repr_html_(self) -> str:
        return html.advice(self)

    def _columns(
        self, changes_only: bool = False, rows: bool = False
    ) -> dict[str, tuple[str, list[Any]]]:
        """Every column by name: the type of its cells, and the cells, None where there is none."""
        # If answers are points, their columns are not those of the features.
        shown_rows = [e.counterfactual for e in self if e.counterfactual] or [
            e.features for e in self
        ]
        names = list(dict.fromkeys(name for row in shown_rows for name in row))
        columns: dict[str, tuple[str, list[Any]]] = {}
        if rows:
            columns[_apart("row", names)] = ("int", [e.row for e in self])
        changed = self._changed_cells(names)
        for place, name in enumerate(names):
            cells = [(e.counterfactual or {}).get(name) for e in self]
            # The type is the feature's, also where few of its cells are left.
            kind = _kind([*cells, *(e.features.get(name) for e in self)])
            if changes_only:
                cells = [cell if line[place] else None for cell, line in zip(cells, changed)]
            if kind == "text":
                cells = [None if cell is None else shown(cell) for cell in cells]
            columns[name] = (kind, cells)
        results: list[tuple[str, list[Any]]] = [
            ("float", [e.new_score for e in self]),
            ("float", [e.stability for e in self]),
            ("float", [e.usual for e in self]),
            ("float", [e.cost_l1 for e in self]),
            ("float", [e.cost_l2 for e in self]),
            ("int", [len(e.changes) if e.found else None for e in self]),
            ("text", ["found" if e.found else "not_found" for e in self]),
            ("text", [e.reason for e in self]),
        ]
        columns.update((_apart(name, names), result) for name, result in zip(RESULTS, results))
        return columns

    def _changed_cells(self, names: list[str]) -> list[list[bool]]:
        changed = [{change.feature for change in e.changes} for e in self]
        return [[name in features for name in names] for features in changed]


def _apart(name: str, features: list[str]) -> str:
    """The name of a result column, distinct from a feature of the same name."""
    return f"tyrex_{name}" if name in features else name


def _kind(cells: list[Any]) -> str:
    kinds = {type(cell) for cell in cells if cell is not None}
    for kind, types in (("bool", {bool}), ("int", {int}), ("float", {int, float})):
        if kinds and kinds <= types:
            return kind
    return "text" if kinds else "float"


def _digits(number: float | None) -> str:
    return "" if number is None else f"{number:.3f}"


def _plain(value: Any) -> Any:
    """Labels of rows, for JSON: numpy's numbers as numbers, anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)
