"""tyrex's own classifier, which is native already, alone or at the end of a pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from . import graph
from .converted import Function, NotNative, Onnx
from .outputs import Outputs, by_name
from .sklearn import Classifier, Preprocessor, check_fitted
from .table import Table

if TYPE_CHECKING:
    from ..data import Frame


def is_own(model: Any) -> bool:
    """Whether it is a `tyrex.MLPClassifier`, or a pipeline that ends in one.

    >>> is_own(object())
    False
    """
    steps = getattr(model, "steps", None)
    last = steps[-1][1] if isinstance(steps, list) and steps else model
    ancestors = type(last).__mro__
    return any(
        k.__module__ == "tyrex.classifier" and k.__name__ == "MLPClassifier" for k in ancestors
    )


def convert(model: Any, frame: Frame, favourable: Any) -> Onnx | Function:
    """The network with the steps before it."""
    check_fitted(model)
    table = Table.of(model, frame)
    classes = by_name(list(model.classes_), favourable)
    scorer = Classifier(model, table, Outputs(classes, source="predict_proba of this classifier"))
    function = Function(scorer.scores, features=table.features, framework="tyrex")
    if len(classes) > 1:
        return replace(function, reason="several classes are favourable")
    last = getattr(model, "steps", [(None, model)])[-1][1]
    content: bytes = last.network_.to_onnx(classes[0])
    features = table.features
    if last is not model and len(model.steps) > 1:
        try:
            preprocessor = Preprocessor.of(model[:-1], frame)
            content, features = preprocessor.before(content, frame)
        except NotNative as problem:
            return replace(function, reason=str(problem))
    return Onnx(
        content=content,
        scores=scorer.scores,
        features=features,
        levels=graph.levels(content),
        framework="tyrex",
        fallback=function,
    )
