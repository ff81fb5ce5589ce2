"""Converts a model's outputs to the probability of the favourable class."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import ModelError
from .converted import Floats

#: The tolerance for rounding of probabilities outside [0, 1].
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Outputs:
    """The favourable classes among a model's outputs, and the kind of the outputs.

    >>> import numpy as np
    >>> Outputs(classes=(1,)).probability(np.array([[0.25, 0.75]]), rows=1).tolist()
    [0.75]
    >>> Outputs(classes=(0,), kind="logit").probability(np.array([0.0]), rows=1).tolist()
    [0.5]
    """

    #: The favourable classes, counted from 0; a model with one output has the classes 0 and 1.
    classes: tuple[int, ...] = (1,)
    #: "probability", "logit", or "log" for logarithms of probabilities.
    kind: str = "probability"
    #: The name of the model in errors.
    source: str = "the model's output"

    def probability(self, answers: Any, rows: int) -> Floats:
        """The probability of the favourable classes, checked."""
        table = columns(answers, rows, self.source)
        if self.kind == "logit":
            table = _sigmoid(table) if table.shape[1] == 1 else _softmax(table)
        elif self.kind == "log":
            table = np.exp(table)
        if table.shape[1] == 1:
            table = np.hstack([1.0 - table, table])
        if max(self.classes) >= table.shape[1]:
            raise ModelError(
                f"{self.source} has {table.shape[1]} columns; class {max(self.classes)} is wanted"
            )
        return self._checked(table[:, list(self.classes)].sum(axis=1))

    def _checked(self, scores: Floats) -> Floats:
        wrong = ~((scores >= -TOLERANCE) & (scores <= 1.0 + TOLERANCE))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ModelError(
                f"{self.source} is not a probability: {scores[row]:.6g} in row {row}, expected a "
                "number from 0 to 1"
            )
        return np.clip(scores, 0.0, 1.0)

    def of_network(self, answers: Any, rows: int, logits: bool | None) -> Outputs:
        """The same classes, with the kind inferred from a network's answers."""
        table = columns(answers, rows, self.source)
        if logits:
            return replace(self, kind="logit")
        if _are_log_shares(table):
            return replace(self, kind="log")
        try:
            self.probability(table, rows)
        except ModelError as problem:
            message = f"{problem}; pass logits=True if the model gives logits"
            raise ModelError(message) from None
        return self


def columns(answers: Any, rows: int, source: str, what: str = "a probability") -> Floats:
    """Answers as a matrix with one row per row, and numbers only."""
    if isinstance(answers, (tuple, list)) and any(getattr(p, "ndim", 0) for p in answers):
        raise ModelError(f"{source} is {len(answers)} arrays, expected one")
    try:
        table = np.asarray(_in_memory(answers), dtype=np.float64)
    except (TypeError, ValueError):
        kind = type(answers).__name__
        message = f"{source} is not {what}: found {kind} of values that are not numbers"
        raise ModelError(message) from None
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] == 0:
        raise ModelError(f"{source} has shape {table.shape}, expected one row per row of the data")
    if len(table) != rows:
        raise ModelError(f"{source} has {len(table)} rows for {rows} rows of data")
    finite = np.isfinite(table).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ModelError(f"{source} is not {what}: not a finite number in row {row}")
    return table


def failed(what: str, problem: Exception) -> ModelError:
    """The error for a failure of the user's code."""
    text = " ".join(str(problem).split())
    return ModelError(f"{what}: {type(problem).__name__}: {text[:400]}")


def _in_memory(answers: Any) -> Any:
    """Detaches tensors and moves them to the CPU."""
    if hasattr(answers, "detach"):
        answers = answers.detach().cpu()
    return answers


def _sigmoid(logits: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -logits))


def _softmax(logits: Floats) -> Floats:
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    normalised: Floats = shares / shares.sum(axis=1, keepdims=True)
    return normalised


def _are_log_shares(table: Floats) -> bool:
    """Whether every row is the logarithm of shares that sum to one."""
    if table.shape[1] < 2 or (table > TOLERANCE).any():
        return False
    return bool(np.allclose(np.exp(table).sum(axis=1), 1.0, atol=1e-4))


# ------------------------------------------------------------------------------ favourable classes


def by_place(outputs: int, favourable: Any) -> tuple[int, ...]:
    """The favourable classes of a model that has no names for them, only outputs.

    One output is the probability of class 1, and of two classes the second is favourable,
    unless `favourable` is the number of another.

    >>> by_place(1, None), by_place(2, 0), by_place(2, "good"), by_place(3, [0, 2])
    ((1,), (0,), (1,), (0, 2))
    """
    classes = max(outputs, 2)
    wanted = _listed(favourable)
    numbers = sorted({int(w) for w in wanted if _is_number(w) and w in range(classes)})
    if len(numbers) == classes:
        raise ModelError("every class is favourable; leave at least one out")
    if numbers and len(numbers) == len({str(w) for w in wanted}):
        return tuple(numbers)
    if classes == 2:
        return (1,)
    named = "" if favourable is None else f", not {_shown(wanted)}"
    raise ModelError(
        f"the model has {classes} outputs; say which class is favourable by its number, "
        f"favourable=0 to favourable={classes - 1}{named}"
    )


def by_name(classes: Sequence[Any], favourable: Any) -> tuple[int, ...]:
    """The favourable classes of a model that names its classes.

    >>> by_name(["bad", "good"], None), by_name([0, 1], 0), by_name(["a", "b", "c"], ["a", "c"])
    ((1,), (0,), (0, 2))
    """
    known = [_plain(c) for c in classes]
    if len(known) < 2:
        raise ModelError(f"the model knows one class only ({_shown(known)}); nothing can change it")
    wanted = _listed(favourable)
    if not wanted:
        if len(known) == 2:
            return (1,)
        raise ModelError(
            f"the model has {len(known)} classes ({_shown(known)}); say which one is favourable, "
            f"for example favourable={known[-1]!r}"
        )
    found = {w: _position(known, w) for w in wanted}
    absent = [w for w, place in found.items() if place is None]
    if len(absent) == len(found) and known in ([0, 1], [False, True]):
        warnings.warn(
            f"the model's classes are {_shown(known)}; {known[1]} is taken for {_shown(wanted)}",
            UserWarning,
            stacklevel=2,
        )
        return (1,)
    if absent:
        raise ModelError(
            f"{_shown(absent)} is not a class of the model; its classes are {_shown(known)}"
        )
    numbers = sorted({place for place in found.values() if place is not None})
    if len(numbers) == len(known):
        raise ModelError("every class is favourable; leave at least one out")
    return tuple(numbers)


def _position(known: list[Any], wanted: Any) -> int | None:
    """The position of a class: by the same value, or else by the same text."""
    if wanted in known:
        return known.index(wanted)
    texts = [str(own) for own in known]
    return texts.index(str(wanted)) if str(wanted) in texts else None


def _listed(favourable: Any) -> list[Any]:
    if favourable is None:
        return []
    if isinstance(favourable, (list, tuple, set, frozenset, np.ndarray)):
        return [_plain(f) for f in favourable]
    return [_plain(favourable)]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _shown(values: Sequence[Any]) -> str:
    texts = [repr(v) for v in values[:12]]
    if len(values) > 12:
        return ", ".join(texts) + f" and {len(values) - 12} more"
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
