"""tyrex's own classifier, which is native already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ModelError
from .converted import Onnx
from .outputs import Outputs, by_name
from .sklearn import Classifier, check_fitted
from .table import Table

if TYPE_CHECKING:
    from ..data import Frame


def convert(model: Any, frame: Frame, favourable: Any) -> Onnx:
    """The network of a fitted `tyrex.MLPClassifier`."""
    check_fitted(model)
    table = Table.of(model, frame)
    classes = by_name(list(model.classes_), favourable)
    if len(classes) > 1:
        raise ModelError("several classes of a tyrex.MLPClassifier are favourable; name one")
    scorer = Classifier(model, table, Outputs(classes, source="predict_proba of this classifier"))
    return Onnx(
        content=model.network_.to_onnx(classes[0]),
        scores=scorer.scores,
        features=table.features,
        framework="tyrex",
    )
