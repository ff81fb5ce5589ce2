"""Converted models: a model file for the native engine, or a function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..data import Frame

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Function:
    """A black box: scores, and gradients if it has them."""

    #: The probability of the favourable class, one per row.
    scores: Callable[[Frame], Floats]
    #: Its gradient, one row of numbers per row; numeric columns only.
    gradients: Callable[[Frame], Floats] | None = None
    #: The columns it takes, in order, where it knows them by name.
    features: list[str] | None = None
    framework: str = "function"
    #: Why the native engine cannot run the model; None for a plain function.
    reason: str | None = None


@dataclass(frozen=True)
class Onnx:
    """A model the native engine may read: ONNX, or a boosting package's own model file."""

    content: bytes
    #: The original model's own probability of the favourable class, to compare with.
    scores: Callable[[Frame], Floats]
    #: The columns it uses, in order, where they have names.
    features: list[str] | None = None
    #: The columns it takes as categories, with the values it knows: texts or whole numbers.
    levels: dict[str, list[Any]] = field(default_factory=dict)
    #: The favourable class, counted from 0; `None` for the one output of a network.
    class_number: int | None = None
    #: Whether the output lacks its sigmoid or softmax.
    logits: bool = False
    framework: str = "onnx"
    #: The same model as a function, for a graph that the native engine rejects.
    fallback: Function | None = None


class NotNative(Exception):
    """A valid model cannot be converted to ONNX; the message says why."""
