"""Functions: any callable that returns a probability, with or without a gradient."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError
from .converted import Floats, Function
from .outputs import Outputs, by_name, by_place, columns, failed

if TYPE_CHECKING:
    from ..data import Frame


@dataclass(frozen=True)
class Caller:
    """A function of the table, and its gradient."""

    function: Callable[[Any], Any]
    gradient: Callable[[Any], Any] | None
    outputs: Outputs

    def scores(self, frame: Frame) -> Floats:
        """The probability of the favourable class, checked."""
        return self.outputs.probability(self.function(frame.container()), len(frame))

    def gradients(self, frame: Frame) -> Floats:
        """Its gradient, checked."""
        assert self.gradient is not None
        answers = self.gradient(frame.container())
        table = columns(answers, len(frame), "the gradient", "a matrix of numbers")
        if table.shape[1] != len(frame.names):
            raise ModelError(
                f"the gradient has {table.shape[1]} columns for {len(frame.names)} columns of data"
            )
        return table


def convert(
    function: Callable[[Any], Any],
    gradient: Callable[[Any], Any] | None,
    frame: Frame,
    favourable: Any,
) -> Function:
    """A callable, after a check that its answers on the data are probabilities."""
    name = getattr(function, "__name__", type(function).__name__)
    source = f"what `{name}` returns"
    answers = columns(_call(function, name, frame), len(frame), source)
    owner = getattr(function, "__self__", None)
    names = getattr(owner, "classes_", None)
    if answers.shape[1] == 1:
        classes: tuple[int, ...] = (1,)  # p is the probability of the favourable class
    elif names is not None and len(names) == answers.shape[1]:
        classes = by_name(list(names), favourable)
    else:
        classes = by_place(answers.shape[1], favourable)
    caller = Caller(function, gradient, Outputs(classes, source=source))
    scores = caller.outputs.probability(answers, len(frame))
    if np.isin(scores, (0.0, 1.0)).all() and len(scores) > 1:
        warnings.warn(
            f"{source} is 0 or 1 in every row: labels rather than probabilities? A function that "
            "gives probabilities, such as predict_proba, gives better advice",
            UserWarning,
            stacklevel=2,
        )
    if gradient is not None:
        caller.gradients(frame)
    return Function(caller.scores, None if gradient is None else caller.gradients)


def _call(function: Callable[[Any], Any], name: str, frame: Frame) -> Any:
    try:
        return function(frame.container())
    except Exception as problem:  # the user's function may raise any error
        raise failed(f"`{name}` failed on the data", problem) from problem
