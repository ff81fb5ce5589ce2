"""Common parts of neural networks of all frameworks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import DataError, ModelError
from . import graph
from .converted import Floats, Function, NotNative, Onnx
from .outputs import Outputs, by_place, columns, failed
from .sklearn import Preprocessor

if TYPE_CHECKING:
    from ..data import Frame


class Network(Protocol):
    """A network of some framework."""

    @property
    def framework(self) -> str:
        """The name of the network in errors."""

    def answers(self, matrix: Floats) -> Any:
        """The output of the network for the rows of a matrix, in its own array type."""

    def gradients(self, matrix: Floats, outputs: Outputs) -> Floats:
        """The gradient of the probability; only where `has_gradients`."""

    @property
    def has_gradients(self) -> bool:
        """Whether there are gradients."""

    def export(self, width: int) -> bytes:
        """The network as ONNX, with one matrix as its input; or `NotNative`."""


@dataclass(frozen=True)
class Scorer:
    """A network behind its preprocessor, if it has one."""

    network: Network
    outputs: Outputs
    preprocessor: Preprocessor | None

    def scores(self, frame: Frame) -> Floats:
        """The probability of the favourable class."""
        matrix = inputs(self.preprocessor, frame)
        return self.outputs.probability(self.network.answers(matrix), len(frame))

    def gradients(self, frame: Frame) -> Floats:
        """Its gradient with respect to the columns."""
        return self.network.gradients(inputs(self.preprocessor, frame), self.outputs)


def inputs(preprocessor: Preprocessor | None, frame: Frame) -> Floats:
    """The input of a network for a table."""
    if preprocessor is not None:
        return preprocessor.transform(frame)
    try:
        matrix: Floats = frame.matrix()
    except DataError as problem:
        raise DataError(
            f"{problem}; a network takes numbers: pass the fitted transformer that makes them as "
            "preprocessor=..."
        ) from None
    return matrix


def convert(
    network: Network, frame: Frame, favourable: Any, logits: bool | None, transformer: Any
) -> Onnx | Function:
    """A network as ONNX, or as a function if a graph cannot represent it."""
    preprocessor = None if transformer is None else Preprocessor.of(transformer, frame)
    matrix = inputs(preprocessor, frame)
    answers = _answers(network, matrix)
    outputs = Outputs(by_place(answers.shape[1], favourable), source=_source(network))
    outputs = outputs.of_network(answers, len(answers), logits)
    scorer = Scorer(network, outputs, preprocessor)
    function = Function(
        scores=scorer.scores,
        gradients=scorer.gradients if network.has_gradients and preprocessor is None else None,
        features=None if preprocessor is None else preprocessor.table.features,
        framework=network.framework,
    )
    if len(outputs.classes) > 1:
        return replace(function, reason="several classes are favourable")
    try:
        content = network.export(matrix.shape[1])
        _check_ending(content, logits, outputs)
        if preprocessor is not None:
            content, features = preprocessor.before(content, frame)
            used = replace(preprocessor, table=preprocessor.table.using(features, frame))
            scores = replace(scorer, preprocessor=used).scores
            function = replace(function, scores=scores, features=features)
    except NotNative as problem:
        return replace(function, reason=str(problem))
    usual = answers.shape[1] == 1 and outputs.classes == (1,)
    return Onnx(
        content=content,
        scores=function.scores,
        features=function.features,
        levels=graph.levels(content),
        class_number=None if usual else outputs.classes[0],
        logits=bool(logits),
        framework=network.framework,
        fallback=function,
    )


def _source(network: Network) -> str:
    return f"the output of the {network.framework} model"


def _answers(network: Network, matrix: Floats) -> Floats:
    """The output of the network for the data."""
    rows, width = matrix.shape
    gaps = np.isnan(matrix).any(axis=1)
    if gaps.any():
        raise ModelError(
            f"row {int(np.argmax(gaps))} has missing values, which a network cannot handle; "
            "fill them in, or pass a preprocessor=... that does"
        )
    try:
        answers = network.answers(matrix)
    except ModelError:
        raise
    except Exception as problem:  # the user's network may raise any error
        what = f"the {network.framework} model cannot score a matrix of {width} columns"
        raise failed(what, problem) from problem
    return columns(answers, rows, _source(network))


def _check_ending(content: bytes, logits: bool | None, outputs: Outputs) -> None:
    """Catches logits that happen to look like probabilities, and the other way round."""
    if logits is None and outputs.kind == "probability" and graph.ends_linear(content):
        raise ModelError(
            f"{outputs.source} is not a probability: the last layer has no sigmoid or softmax; "
            "pass logits=True to add one, or logits=False if it is a probability"
        )
    if logits and graph.ends_in_probabilities(content):
        raise ModelError(f"{outputs.source} is a probability already; leave logits=True out")
