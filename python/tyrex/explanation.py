"""The advice for one row."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _native
from .source import as_text

__all__ = ["Change", "Explanation"]

# Maximum number of changes to show for one row.
MOST_CHANGES = 8
VERDICTS = ("vacuous", "empirical", "certified")


@dataclass(frozen=True)
class Change:
    """A change of one feature.

    >>> print(Change("age", 25, 27, "years"))
    raise age from 25 to 27 years
    >>> print(Change("rate", 0.12345, 0.12346))  # as many digits as tell them apart
    raise rate from 0.12345 to 0.12346
    """

    feature: str
    before: Any
    after: Any
    unit: str | None = None
    # From the document; otherwise the native side puts the change into words.
    words: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.words:
            before, after = map(_plain, (self.before, self.after))
            words = _native.change_words(self.feature, before, after, self.unit)
            object.__setattr__(self, "words", words)

    def to_dict(self) -> dict[str, Any]:
        """The change as in the documents."""
        unit = {} if self.unit is None else {"unit": self.unit}
        document = {"feature": self.feature, "from": self.before, "to": self.after}
        return {**document, **unit, "words": dict(self.words)}

    @property
    def words_before(self) -> str:
        """The old value as text."""
        return self.words["from"]

    @property
    def words_after(self) -> str:
        """The new value as text, with its unit."""
        return self.words["to"]

    def __str__(self) -> str:
        return self.words["clause"]


@dataclass(frozen=True)
class Explanation:
    """The advice for one row, or the reason why there is none.

    >>> print(Explanation(3, 3, 0.31, True, changes=[Change("age", 25, 27)],
    ...                   new_score=0.83, stability=0.81))
    Row 3 (score 0.31): raise age from 25 to 27. Then the score is 0.83 and the stability 0.81.
    """

    row: int
    """Its position among the given rows, from 0."""
    label: Any
    """Its label; its position if rows have no labels."""
    score: float
    found: bool
    features: dict[str, Any] = field(default_factory=dict)
    counterfactual: dict[str, Any] | None = None
    """The row with the changes made. Under the protocols `paper` and `reference` the point in
    encoded columns."""
    changes: list[Change] = field(default_factory=list)
    new_score: float | None = None
    stability: float | None = None
    usual: float | None = None
    """The p-value of the advised row among accepted applicants: the share that is no more usual,
    the row itself counted."""
    path: dict[str, Any] | None = None
    """The `steps` to the advised row through usual rows, and their `sentence`, if asked for."""
    cost_l1: float | None = None
    cost_l2: float | None = None
    # The time of the search: the only part that differs between runs.
    seconds: float | None = field(default=None, compare=False)
    promise: dict[str, Any] | None = None
    """The promise that was asked for, and the fresh models that judged it: `shown` is a bound at
    `confidence`, `predictive` a probability without a confidence."""
    certificate: dict[str, Any] | None = None
    stopped: str | None = None
    """Why the search ended. After `budget-spent` cheaper advice may exist."""
    proof: dict[str, Any] | None = None
    """Whether no advice is cheaper, or the least cost that any has, if a proof was asked for."""
    reason: str | None = None
    why: str | None = None
    """Why nothing was found, in words."""
    sentence: str | None = None
    """The advice, or the reason why there is none, in a sentence."""
    retraining: str | None = None
    """What retrained models say about it, in a sentence."""
    plausibility: str | None = None
    """How usual the advised row is, in a sentence; or what can be had of the conditions."""
    apart: dict[str, Any] | None = None
    """What each condition costs alone, where usual advice was asked for and not found."""
    relaxations: dict[str, Any] | None = None
    """The constraints without which advice is found."""
    rules: str | None = None
    """The most helpful of them in a sentence."""
    highest: dict[str, Any] | None = None
    """Where the promise is out of reach, the change with the highest promise that was found."""
    unchanged: dict[str, int] | None = None
    """The number of fresh models that accept the row without any change."""
    outcome: str | None = None
    """The label of this row in the data, if it has one."""
    favourable: bool | None = None
    """Whether that label is the favourable one."""

    @classmethod
    def of(
        cls, document: Mapping[str, Any], label: Any = None, seconds: float | None = None
    ) -> Explanation:
        """Reads the document of one row, as `to_dict` and the command line write it."""
        row, advice = document["row"], document["advice"]
        features = dict(document["features"])
        changes = [
            Change(c["feature"], c["from"], c["to"], c.get("unit"), c.get("words") or {})
            for c in advice.get("changes", ())
        ]
        found = advice["status"] == "found"
        counterfactual = advice.get("counterfactual")
        if found and counterfactual is None:
            counterfactual = {**features, **{c.feature: c.after for c in changes}}
        cost = advice.get("cost") or {}
        return cls(
            row=row,
            label=row if label is None else label,
            score=document["score"],
            found=found,
            features=features,
            counterfactual=counterfactual,
            changes=changes,
            new_score=advice.get("score"),
            stability=advice.get("stability"),
            usual=advice.get("usual"),
            path=advice.get("path"),
            cost_l1=cost.get("l1"),
            cost_l2=cost.get("l2"),
            # Files of earlier versions have them here.
            seconds=advice.get("seconds") if seconds is None else seconds,
            promise=advice.get("promise"),
            certificate=advice.get("certificate"),
            stopped=advice.get("stopped"),
            proof=advice.get("proof"),
            reason=advice.get("reason"),
            why=advice.get("sentence"),
            sentence=document.get("sentence"),
            retraining=document.get("retraining"),
            plausibility=document.get("plausibility"),
            apart=advice.get("apart"),
            relaxations=advice.get("relaxations"),
            rules=advice.get("rules"),
            highest=advice.get("highest"),
            unchanged=document.get("unchanged"),
            outcome=document.get("label"),
            favourable=document.get("favourable"),
        )

    def to_dict(self) -> dict[str, Any]:
        """The document of this row, as from the command line and the service."""
        advice: dict[str, Any]
        if self.found:
            advice = {
                "status": "found",
                "changes": [change.to_dict() for change in self.changes],
                "counterfactual": self.counterfactual,
                "score": self.new_score,
                "stability": self.stability,
                "usual": self.usual,
                **({} if self.path is None else {"path": self.path}),
                "cost": {"l1": self.cost_l1, "l2": self.cost_l2},
                "stopped": self.stopped,
                **({} if self.proof is None else {"proof": self.proof}),
                **({} if self.promise is None else {"promise": self.promise}),
                "certificate": self.certificate,
            }
        else:
            advice = {
                "status": "not_found",
                "reason": self.reason,
                "sentence": self.why,
                **({} if self.highest is None else {"highest": self.highest}),
                **({} if self.apart is None else {"apart": self.apart}),
                "relaxations": self.relaxations,
                **({} if self.rules is None else {"rules": self.rules}),
            }
        return {
            "row": self.row,
            "score": self.score,
            "label": self.outcome,
            "favourable": self.favourable,
            "features": self.features,
            **({} if self.unchanged is None else {"unchanged": self.unchanged}),
            "sentence": self.sentence,
            **({} if self.retraining is None else {"retraining": self.retraining}),
            **({} if self.plausibility is None else {"plausibility": self.plausibility}),
            "advice": advice,
        }

    def cost(self, norm: str) -> float | None:
        """The cost of the changes in a norm, `l1` or `l2`."""
        return self.cost_l2 if norm == "l2" else self.cost_l1

    @property
    def promised(self) -> dict[str, float] | None:
        """The probability that was promised, if there is a promise and it is certified."""
        tiers = (self.certificate or {}).get("tiers", ())
        certified = [tier["verdict"] for tier in tiers if tier["tier"] == "ensemble"]
        if self.promise is None or certified != ["certified"]:
            return None
        names = {"probability": "shown", "confidence": "confidence", "predictive": "predictive"}
        return {name: self.promise[field] for name, field in names.items()}

    @property
    def verdict(self) -> str | None:
        """The best verdict of the certificate: `certified`, `empirical` or `vacuous`."""
        if self.certificate is None:
            return None
        verdicts = {tier.get("verdict") for tier in self.certificate.get("tiers", ())}
        return next((v for v in reversed(VERDICTS) if v in verdicts), VERDICTS[0])

    @property
    def certificate_sentence(self) -> str:
        """The certificate and its assumptions in words; empty without one."""
        return str((self.certificate or {}).get("sentence") or "")

    @property
    def hint(self) -> str | None:
        """What helps where nothing was found: the best change, or the rule that prevents advice."""
        apart = self.plausibility if self.apart else None
        return (self.highest or {}).get("sentence") or apart or self.rules

    @property
    def what_changes(self) -> list[str]:
        """A line for every change, or one with the reason why there is none."""
        if not self.found:
            return [f"not found: {self.why or self.reason}"]
        lines = [f"{c.feature}: {c.words_before} -> {c.words_after}" for c in self.changes]
        if len(lines) > MOST_CHANGES:
            lines[MOST_CHANGES:] = [f"and {len(lines) - MOST_CHANGES} more"]
        return lines or ["a point in encoded columns"]

    def __str__(self) -> str:
        own = f"{'; '.join(map(str, self.changes)) or self.what_changes[0]}."
        text = f"Row {self.label} (score {self.score:.3g}): {self.sentence or own}"
        measured = self.retraining if self.unchanged or self.promise else None
        if self.new_score is None:
            second = self.hint or measured
        else:
            stability = "" if self.stability is None else f" and the stability {self.stability:.3g}"
            text += f" Then the score is {self.new_score:.3g}{stability}."
            second = measured
        return f"{text}\n{second}" if second else text


def _plain(value: Any) -> str | numbers.Real | None:
    """A value as the native side takes it."""
    if value is None or (isinstance(value, numbers.Real) and not isinstance(value, bool)):
        return value
    return as_text(value)
