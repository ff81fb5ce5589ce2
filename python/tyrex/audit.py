"""Do old promises hold under a new model?"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from .columns import Columns
from .data import Frame
from .errors import DataError
from .explainer import Explainer
from .explanations import Explanations
from .progress import Progress, ProgressSetting
from .request import options
from .source import as_table

__all__ = ["Audit", "audit"]


class Audit(Sequence[dict[str, Any]]):
    """What a model makes of advice that another one gave: a document per promise.

    `kept` and `broken` count the promises, `share_kept` lies in `interval` for all promises that
    these are drawn from, and `table` has a line per promise.
    """

    def __init__(
        self, summary: dict[str, Any], promises: list[dict[str, Any]], interrupted: bool
    ) -> None:
        self.summary, self._promises, self.interrupted = summary, promises, interrupted

    @property
    def kept(self) -> int:
        """The promises that the new model keeps."""
        count: int = self.summary["kept"]
        return count

    @property
    def broken(self) -> list[dict[str, Any]]:
        """The promises that it breaks, each with its repairs."""
        return [promise for promise in self._promises if not promise["kept"]]

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
        lines = [_line(promise) for promise in self._promises]
        return Columns({name: [line[name] for line in lines] for name in lines[0]})

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        return self.table.to_pandas()

    def to_json(self, indent: int | None = None) -> str:
        """The summary and every promise."""
        document = {"format_version": 1, "summary": self.summary, "promises": self._promises}
        return json.dumps(document, indent=indent)

    def __getitem__(self, place: Any) -> Any:
        return self._promises[place]

    def __len__(self) -> int:
        return len(self._promises)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._promises)

    def __repr__(self) -> str:
        low, high = self.interval
        lines = [
            f"Audit of {len(self)} promises: {self.kept} kept, {len(self.broken)} broken",
            f"kept: {100 * self.share_kept:.1f} % ({100 * low:.1f} to {100 * high:.1f} with "
            f"confidence {self.summary['confidence']:g})",
        ]
        for name, start in (
            ("from_promised", "for those who have done what was advised"),
            ("from_factual", "for those who have done nothing yet"),
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


def _line(promise: dict[str, Any]) -> dict[str, Any]:
    line = {
        "row": promise["row"],
        "kept": promise["kept"],
        "score": promise["promised"]["score"],
        "stability": promise["promised"]["stability"],
    }
    repairs = promise["repairs"] or {}
    for name in ("from_promised", "from_factual"):
        repair = repairs.get(name) or {}
        found = repair.get("status") == "found"
        line[f"repair_{name}"] = repair.get("reason", repair.get("status"))
        line[f"cost_{name}"] = repair["cost"]["l1"] if found else float("nan")
        line[f"changed_{name}"] = float(len(repair["changes"])) if found else float("nan")
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
    >>> found.kept + len(found.broken) == len(found)
    True
    """
    if not isinstance(advice, Explanations):
        raise TypeError(
            f"found advice of type {type(advice).__name__}; expected the Explanations that "
            "`Explainer.explain` gave (Explanations.from_json reads saved ones)"
        )
    if method is None:
        method = "trex-i" if explainer._native.has_gradients else "trex-nn"
    promises = list(advice.found)
    if not promises:
        raise DataError("no counterfactual was found, so there is no promise to audit")
    if advice.request.get("protocol", "product") != "product":
        raise DataError("the advice is points of the paper's protocol, expected rows")
    asked = options(explainer.schema, method=method, tau=tau, norm=norm, seed=seed, **search)
    features = explainer.schema.features
    factuals = Frame.of([each.features for each in promises], features)
    advised = Frame.of([each.counterfactual for each in promises], features)
    with Progress(progress, "auditing") as bar:
        summary, documents, interrupted = explainer._native.audit(
            as_table(factuals, "factuals"),
            as_table(advised, "advice"),
            [each.row for each in promises],
            asked,
            confidence,
            bar,
        )
    if interrupted:
        message = "stopped: not all repairs were looked for"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return Audit(json.loads(summary), json.loads(documents), interrupted)
