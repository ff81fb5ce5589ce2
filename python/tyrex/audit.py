"""Do old promises hold under a new model?"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from .columns import Columns
from .data import Frame
from .errors import DataError
from .explainer import Explainer
from .explanation import Explanation
from .explanations import Explanations
from .parameters import real
from .progress import Progress, ProgressSetting
from .request import options
from .source import as_table
from .text import shown

__all__ = ["Audit", "Promise", "audit"]


@dataclass(frozen=True)
class Promise:
    """What a new model makes of advice for one row.

    `factual` and `promised` are the row as it was and as it was advised to become. For a broken
    promise there are repairs: from what was promised, and from the row as it was.
    """

    row: int
    label: Any
    kept: bool
    factual: dict[str, Any]
    promised: dict[str, Any]
    score: float
    stability: float
    from_promised: Explanation | None
    from_factual: Explanation | None

    @classmethod
    def of(cls, document: Mapping[str, Any], label: Any) -> Promise:
        """A promise from its document."""
        promised = document["promised"]
        starts = {
            "from_promised": (promised["counterfactual"], promised["score"]),
            "from_factual": (document["features"], document["score"]),
        }
        repairs = {}
        for name, (features, score) in starts.items():
            advice = (document["repairs"] or {}).get(name)
            row = {"row": document["row"], "score": score, "features": features}
            repairs[name] = advice and Explanation.of({**row, "advice": advice}, label)
        return cls(
            row=document["row"],
            label=label,
            kept=document["kept"],
            factual=document["features"],
            promised=promised["counterfactual"],
            score=promised["score"],
            stability=promised["stability"],
            **repairs,
        )

    def __str__(self) -> str:
        verdict = "kept" if self.kept else "broken"
        text = f"Row {shown(self.label)}: {verdict}, score now {self.score:.3g}."
        if self.from_promised is not None:
            text += f" After what was advised: {'; '.join(self.from_promised.what_changes)}."
        return text


class Audit(Sequence[Promise]):
    """What a model makes of advice that another one gave: a `Promise` for every row with advice.

    `kept` and `broken` are the promises, `share_kept` lies in `interval` for all promises that
    these are drawn from, and `table` has a line per promise.
    """

    def __init__(
        self, summary: dict[str, Any], promises: Iterable[Promise], interrupted: bool = False
    ) -> None:
        self.summary = summary
        """All numbers."""
        self.interrupted = interrupted
        """Whether the search for repairs was stopped."""
        self._promises = list(promises)

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
        share: float = self.summary["share_kept"]
        return share

    @property
    def interval(self) -> tuple[float, float]:
        """Where that share lies, by Clopper and Pearson, among all promises like these."""
        low, high = self.summary["interval"]
        return low, high

    @property
    def table(self) -> Columns:
        """A line per promise: kept or not, its score and stability now, and what repairs cost."""
        lines = [_line(promise) for promise in self]
        return Columns({name: [line[name] for line in lines] for name in lines[0]})

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        return self.table.to_pandas()

    def to_json(self, indent: int | None = None) -> str:
        """The summary and every promise."""
        promises = [
            {
                "row": each.row,
                "kept": each.kept,
                "factual": each.factual,
                "promised": each.promised,
                "score": each.score,
                "stability": each.stability,
                "from_promised": each.from_promised and each.from_promised.to_dict()["advice"],
                "from_factual": each.from_factual and each.from_factual.to_dict()["advice"],
            }
            for each in self
        ]
        document = {"format_version": 1, "summary": self.summary, "promises": promises}
        return json.dumps(document, indent=indent)

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
            f"confidence {self.summary['confidence']:g})",
        ]
        for name, start in (
            ("from_promised", "after what was advised"),
            ("from_factual", "from the rows as they were"),
        ):
            repairs = self.summary[name]
            if repairs["found"]:
                lines.append(
                    f"repairs {start}: {repairs['found']} found, mean cost "
                    f"{repairs['mean_l1']:.3f} in L1"
                )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def _restored(explainer: Explainer, document: dict[str, Any]) -> dict[str, Any]:
    """A promise with values as the data have them."""
    source, repairs = explainer._source, document["repairs"] or {}
    promised = document["promised"]
    return {
        **document,
        "features": source.restored(document["features"]),
        "promised": {**promised, "counterfactual": source.restored(promised["counterfactual"])},
        "repairs": {name: source.restored_advice(repair) for name, repair in repairs.items()},
    }


def _line(promise: Promise) -> dict[str, Any]:
    line = {
        "row": promise.label,
        "kept": promise.kept,
        "score": promise.score,
        "stability": promise.stability,
    }
    for name in ("from_promised", "from_factual"):
        repair: Explanation | None = getattr(promise, name)
        found = repair is not None and repair.found
        line[f"repair_{name}"] = None if repair is None else repair.reason or "found"
        line[f"cost_{name}"] = repair.cost_l1 if repair is not None and found else float("nan")
    return line


def audit(
    explainer: Explainer,
    advice: Explanations,
    *,
    method: str | None = None,
    tau: float | None = None,
    norm: Any = "l1",
    confidence: float = 0.95,
    seed: int = 0,
    progress: ProgressSetting = None,
    **search: Any,
) -> Audit:
    """What a new model makes of advice that was given under an old one.

    `explainer` is that of the new model. For every row that was found advice for: is what was
    advised still accepted, and how stable is it now? For each broken promise the cheapest repair
    that `method` finds is given twice: from what was promised, for a person who has done it, and
    from the row as it was. `search` takes the other keywords of `Explainer.explain`.

    >>> import tyrex
    >>> german = tyrex.datasets.load_german()
    >>> old = tyrex.Explainer.train(german, epochs=5, seed=0)
    >>> new = tyrex.Explainer.train(german, epochs=5, seed=1)
    >>> found = tyrex.audit(new, old.explain(method="min-cost", limit=20))
    >>> len(found.kept) + len(found.broken) == len(found)
    True
    """
    if not isinstance(advice, Explanations):
        raise TypeError(
            f"found advice of type {type(advice).__name__}; expected the Explanations that "
            "`Explainer.explain` gave (Explanations.from_json reads saved ones)"
        )
    promises = list(advice.found)
    if not promises:
        raise DataError("no counterfactual was found, so there is no promise to audit")
    if advice.request.get("protocol", "product") != "product":
        raise DataError("the advice is points of the paper's protocol, expected rows")
    method = method or explainer.usual_method
    asked = options(explainer.schema, method=method, tau=tau, norm=norm, seed=seed, **search)
    features = explainer.schema.features
    factuals = Frame.of([each.features for each in promises], features)
    advised = Frame.of([each.counterfactual for each in promises], features)
    with Progress(progress, "auditing") as bar:
        summary, texts, interrupted = explainer._native.audit(
            as_table(factuals, "factuals"),
            as_table(advised, "advice"),
            [each.row for each in promises],
            asked,
            real("confidence", confidence),
            bar,
        )
    if interrupted:
        message = "stopped: not all repairs were looked for"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    pairs = zip(json.loads(texts), promises)
    audited = (Promise.of(_restored(explainer, document), each.label) for document, each in pairs)
    return Audit(json.loads(summary), audited, interrupted)
