"""Audits of earlier advice under a new model."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, overload

from . import _native
from .columns import Columns
from .data import Frame
from .errors import DataError, ParameterError
from .explainer import Explainer
from .explanation import Explanation
from .explanations import Explanations
from .parameters import groupings, real, to_json
from .progress import Progress, ProgressSetting
from .request import options
from .robustness import Ensemble
from .text import shown

__all__ = ["Audit", "Promise", "audit"]

# The name of a candidate without one.
THE_MODEL = "The new model"


@dataclass(frozen=True)
class Promise:
    """The result of an audit for one row.

    `factual` and `promised` are the original row and the advised row. `status` is
    kept, broken, or unreadable if the model takes other features; `reason` says why. A broken
    promise has repairs: from the promised row, and from the original row.
    """

    row: int
    label: Any
    status: str
    factual: dict[str, Any]
    promised: dict[str, Any]
    score: float | None
    stability: float | None
    from_promised: Explanation | None
    from_factual: Explanation | None
    reason: str | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any], advice: Explanation) -> Promise:
        """A promise from the document of an audited promise and its advice."""
        promised = dict(advice.counterfactual or {})
        starts = {
            "from_promised": (promised, document["score"]),
            "from_factual": (advice.features, document["factual_score"]),
        }
        repairs = {}
        for name, (features, score) in starts.items():
            repair = (document.get("repairs") or {}).get(name)
            row = {"row": advice.row, "score": score, "features": features, "advice": repair}
            repairs[name] = repair and Explanation.of(row, advice.label)
        return cls(
            row=advice.row,
            label=advice.label,
            status=document["status"],
            factual=advice.features,
            promised=promised,
            score=document["score"],
            stability=document["stability"],
            reason=document.get("reason"),
            **repairs,
        )

    @property
    def kept(self) -> bool:
        """Whether the new model accepts the advised row."""
        return self.status == "kept"

    def __str__(self) -> str:
        text = f"Row {shown(self.label)}: {self.status}"
        if self.score is None:
            return f"{text}: {self.reason}."
        text += f", score now {self.score:.3g}."
        if self.from_promised is not None:
            text += f" After what was advised: {'; '.join(self.from_promised.what_changes)}."
        return text


class Audit(Sequence[Promise]):
    """The audit of one model's advice under another: a `Promise` for every row with advice.

    With several candidates it is that of the best one; `candidates` lists all, and `under(name)`
    is the audit of another one. `kept` and `broken` are the promises, `share_kept` lies in
    `interval` for all promises that these are drawn from, `groups` has the same for groups, and
    `table` has a line per promise. `passes` says whether no more promises are broken than `allow`.
    """

    def __init__(
        self,
        report: dict[str, Any],
        advice: Iterable[Explanation],
        interrupted: bool = False,
        place: int = 0,
    ) -> None:
        self.report = report
        """The whole report of the gate, as from the command line and the service."""
        self.interrupted = interrupted
        """Whether the search for repairs was stopped."""
        self._advice = list(advice)
        self._candidate: dict[str, Any] = report["candidates"][place]
        pairs = zip(self._candidate["promises"], self._advice)
        self._promises = [Promise.of(document, each) for document, each in pairs]

    @property
    def name(self) -> str:
        """The candidate of this audit."""
        return str(self._candidate["name"])

    @property
    def passes(self) -> bool:
        """Whether the candidate breaks no more promises than allowed."""
        return bool(self._candidate["passes"])

    @property
    def verdict(self) -> str:
        """Whether a candidate may be deployed, in a sentence."""
        return str(self.report["verdict"]["sentence"])

    @property
    def summary(self) -> dict[str, Any]:
        """All numbers of this candidate."""
        whole = ("mean_stability", "from_promised", "from_factual")
        return {
            **self._candidate["tally"],
            "confidence": self.report["confidence"],
            **{name: self._candidate[name] for name in whole},
        }

    @property
    def kept(self) -> list[Promise]:
        """The promises that the new model keeps."""
        return [promise for promise in self if promise.kept]

    @property
    def broken(self) -> list[Promise]:
        """The promises that it breaks, each with its repairs."""
        return [promise for promise in self if not promise.kept]

    @property
    def share_kept(self) -> float:
        """The share of promises that are kept."""
        share: float = self._candidate["tally"]["share_kept"]
        return share

    @property
    def interval(self) -> tuple[float, float]:
        """The Clopper-Pearson confidence interval of that share."""
        low, high = self._candidate["tally"]["interval"]
        return low, high

    @property
    def groups(self) -> Columns:
        """A line per group of `by`: how many promises are kept, the interval of that share, and
        whether the group differs from the other promises (Fisher's exact test, corrected by Holm
        for all groups)."""
        return Columns(
            _columns(
                {
                    "feature": table["feature"],
                    "group": group["name"],
                    **_counts(group["tally"]),
                    "low": group["tally"]["interval"][0],
                    "high": group["tally"]["interval"][1],
                    "p": _number(group["adjusted"]),
                    "differs": group["differs"],
                }
                for table in self._candidate["groups"]
                for group in table["groups"]
            )
        )

    @property
    def stated(self) -> dict[str, Any] | None:
        """The promises that state a probability, with the mean of the promised probabilities beside
        the share kept; None if there are none."""
        stated: dict[str, Any] | None = self._candidate["tally"].get("stated")
        return stated

    @property
    def updates(self) -> dict[str, Any]:
        """The candidates as successive updates, in the order given: the share that each keeps, and
        a lower bound on the expected share that holds after every update."""
        return dict(self.report.get("updates") or {})

    @property
    def candidates(self) -> Columns:
        """A line per candidate, the best first."""
        return Columns(
            _columns(
                {
                    "rank": each["rank"],
                    "name": each["name"],
                    **_counts(each["tally"]),
                    "stability": _number(each["mean_stability"]),
                    "passes": each["passes"],
                }
                for each in self.report["candidates"]
            )
        )

    def under(self, name: str) -> Audit:
        """The audit of another candidate."""
        known = [str(each["name"]) for each in self.report["candidates"]]
        if name not in known:
            raise ParameterError(
                f"there is no candidate {name!r}; the candidates are {', '.join(known)}"
            )
        return Audit(self.report, self._advice, self.interrupted, known.index(name))

    @property
    def table(self) -> Columns:
        """A line per promise: kept or not, its score and stability now, and what repairs cost."""
        return Columns(_columns(map(_line, self)))

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        return self.table.to_pandas()

    def to_json(self, indent: int | None = None) -> str:
        """The report of the gate, as `tyrex audit --out report.json` writes it."""
        return json.dumps(self.report, indent=indent, ensure_ascii=False)

    def to_html(self, path: Any = None) -> str | None:
        """The report as a page of HTML: the text, or nothing if it is written to a file."""
        page = _native.gate_html(self.to_json())
        if path is None:
            return page
        Path(path).write_text(page, encoding="utf-8")
        return None

    @overload
    def __getitem__(self, place: int) -> Promise: ...
    @overload
    def __getitem__(self, place: slice) -> list[Promise]: ...
    def __getitem__(self, place: int | slice) -> Promise | list[Promise]:
        return self._promises[place]

    def __len__(self) -> int:
        return len(self._promises)

    def __repr__(self) -> str:
        low, high = self.interval
        lines = [
            f"Audit of {len(self)} promises: {len(self.kept)} kept, {len(self.broken)} broken",
            f"kept: {100 * self.share_kept:.1f} % ({100 * low:.1f} to {100 * high:.1f} with "
            f"confidence {self.report['confidence']:g})",
        ]
        for name, start in (
            ("from_promised", "after what was advised"),
            ("from_factual", "from the rows as they were"),
        ):
            repairs = self._candidate[name]
            if repairs["found"]:
                lines.append(
                    f"repairs {start}: {repairs['found']} found, mean cost "
                    f"{repairs['mean_l1']:.3f} in L1"
                )
        return "\n".join([*lines, self.verdict])

    def _repr_html_(self) -> str:
        # A page of its own: its style must not reach the notebook.
        page = escape(str(self.to_html()))
        style = "width: 100%; height: 640px; border: 0"
        return f'<iframe sandbox="" style="{style}" srcdoc="{page}"></iframe>'


def _columns(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    found = list(lines)
    return {name: [line[name] for line in found] for name in (found[0] if found else ())}


def _counts(tally: Mapping[str, Any]) -> dict[str, Any]:
    counts = {name: tally[name] for name in ("promises", "kept", "broken", "unreadable")}
    return {**counts, "share_kept": _number(tally["share_kept"])}


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _line(promise: Promise) -> dict[str, Any]:
    line = {
        "row": promise.label,
        "kept": promise.kept,
        "score": _number(promise.score),
        "stability": _number(promise.stability),
    }
    for name in ("from_promised", "from_factual"):
        repair: Explanation | None = getattr(promise, name)
        line[f"repair_{name}"] = None if repair is None else repair.reason or "found"
        line[f"cost_{name}"] = _number(None if repair is None else repair.cost_l1)
    return line


def _restored(explainer: Explainer, candidate: dict[str, Any]) -> None:
    """Values as the data have them, in the order of the features."""
    for promise in candidate["promises"]:
        repairs = promise.get("repairs") or {}
        for name, repair in repairs.items():
            if repair is None or repair["status"] != "found":
                continue
            row = repair["counterfactual"]
            repair["counterfactual"] = {name: row[name] for name in candidate["features"]}
            repairs[name] = explainer._source.restored_advice(repair)


def _people(advice: Sequence[Explanation], rows: Any) -> list[dict[str, Any]]:
    """The original rows, with the other columns of `rows`."""
    if rows is None:
        return [each.features for each in advice]
    frame = Frame.of(rows)
    most = max(each.row for each in advice)
    if most >= len(frame):
        raise DataError(
            f"there is advice for row {most}, but `rows` has {len(frame)} rows; expected the rows "
            "that the advice was given for"
        )
    columns = {name: column.tolist() for name, column in zip(frame.names, frame.columns)}
    return [
        {**{name: _known(cells[each.row]) for name, cells in columns.items()}, **each.features}
        for each in advice
    ]


def _known(value: Any) -> Any:
    # NaN is a gap.
    return None if value != value else value


def audit(
    explainer: Explainer | Mapping[str, Explainer],
    advice: Explanations,
    *,
    by: Any = (),
    allow: float | None = None,
    rows: Any = None,
    method: str | None = None,
    tau: float | None = None,
    norm: Any = None,
    confidence: float | None = None,
    certify: Ensemble | None = None,
    seed: int | None = None,
    progress: ProgressSetting = None,
    **search: Any,
) -> Audit:
    """Audits advice of an old model under a new one.

    `explainer` is that of the new model, or a dict of several candidates by name; the audit ranks
    them. For every row with advice, the audit tells whether the advised row is still
    accepted, and its stability. For each broken promise the cheapest repair that `method` (trex-o
    by default) finds is given twice: from the promised row, for an applicant who followed the
    advice, and from the original row. `search` takes the other keywords of `Explainer.explain`.

    `by` names features whose groups are compared: `"sex"`, `["sex", "age:25,40"]` or
    `{"sex": None, "age": [25, 40]}`. `rows` are the rows that the advice was given for,
    needed for groups by columns that the model does not take. `allow` is the share of promises
    that may be broken, 0 by default; `confidence` that of intervals and of the test of groups,
    0.95 by default. `certify` is an ensemble of the one new model: repairs are searched for over
    its models (trex-e, if there are enough), and each says how many of the fresh ones accept it.

    >>> import tyrex
    >>> german = tyrex.datasets.load_german()
    >>> old = tyrex.Explainer.train(german, epochs=5, seed=0)
    >>> new = tyrex.Explainer.train(german, epochs=5, seed=1)
    >>> found = tyrex.audit(new, old.explain(method="min-cost", limit=20), by="housing")
    >>> len(found.kept) + len(found.broken) == len(found)
    True
    >>> found.groups["group"].tolist()
    ['rent', 'own', 'for free']
    """
    if not isinstance(advice, Explanations):
        raise TypeError(
            f"found advice of type {type(advice).__name__}; expected the Explanations that "
            "`Explainer.explain` gave (Explanations.from_json reads saved ones)"
        )
    named = explainer if isinstance(explainer, Mapping) else {THE_MODEL: explainer}
    candidates = {str(name): each for name, each in named.items()}
    if not candidates or not all(isinstance(each, Explainer) for each in candidates.values()):
        raise TypeError("expected a tyrex.Explainer, or a dict of them by name")
    if not isinstance(certify, (Ensemble, type(None))):
        raise ParameterError(f"parameter `certify` is {certify!r}, expected a tyrex.Ensemble")
    promises = list(advice.found)
    if not promises:
        raise DataError("no counterfactual was found, so there is no promise to audit")
    if advice.request.get("protocol", "product") != "product":
        raise DataError("the advice is points of the paper's protocol, expected rows")
    first = next(iter(candidates.values()))
    asked = options(first.schema, method=method, tau=tau, norm=norm, seed=seed, **search)
    written = [
        {
            "name": f"row {shown(each.label)}",
            "factual": factual,
            "advised": each.counterfactual,
            "meaning": advice.meaning,
            "promised": each.promised,
        }
        for each, factual in zip(promises, _people(promises, rows))
    ]
    with Progress(progress, "auditing") as bar:
        text, interrupted = _native.judge(
            [(str(name), each._native) for name, each in candidates.items()],
            to_json("advice", written),
            asked,
            groupings(by),
            None if allow is None else real("allow", allow),
            None if confidence is None else real("confidence", confidence),
            None if certify is None else certify._native,
            bar,
        )
    report = json.loads(text)
    for candidate in report["candidates"]:
        _restored(candidates[candidate["name"]], candidate)
    if interrupted:
        message = "stopped: not all repairs were searched for"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return Audit(report, promises, interrupted)
