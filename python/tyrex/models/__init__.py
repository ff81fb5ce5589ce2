"""Conversion of models of any framework for the native engine.

Nothing here imports a framework before a model of that framework is seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ParameterError
from . import boosting, function, keras, own, sklearn, torch
from .converted import Function, Onnx
from .flags import with_flags

if TYPE_CHECKING:
    from ..data import Frame

__all__ = ["Function", "Onnx", "convert"]


def convert(
    model: Any,
    frame: Frame,
    favourable: Any = None,
    logits: bool | None = None,
    preprocessor: Any = None,
) -> Onnx | Function:
    """A model as the bytes of a model file, or as a function if no such file can represent it.

    `frame` holds the feature columns. `favourable` is the class, or the classes, whose
    probability is meant. `logits` says that a network lacks its sigmoid or softmax;
    `preprocessor` is the fitted scikit-learn transformer that makes a network's inputs.
    """
    converted = _converted(model, frame, favourable, logits, preprocessor)
    # The native engine gives 0 and 1 to trees that take booleans.
    if isinstance(converted, Onnx) and converted.framework not in ("tyrex", *boosting.PACKAGES):
        return with_flags(converted, frame)
    return converted


def _converted(
    model: Any, frame: Frame, favourable: Any, logits: bool | None, preprocessor: Any
) -> Onnx | Function:
    if isinstance(model, type):
        raise TypeError(f"found the class {model.__name__}; pass a fitted model of it")
    family = _family(model)
    if family in ("keras", "torch"):
        read = keras.convert if family == "keras" else torch.convert
        return read(model, frame, favourable, logits, preprocessor)
    for name, given in (("logits", logits), ("preprocessor", preprocessor)):
        if given:
            raise ParameterError(
                f"{name} is for PyTorch and Keras models; found a {type(model).__name__}"
            )
    if family == "boosting":
        return boosting.convert(model, frame, favourable)
    if family == "tyrex":
        return own.convert(model, frame, favourable)
    if family == "scikit-learn":
        return sklearn.convert(model, frame, favourable)
    if callable(getattr(model, "predict_proba", None)):
        return function.convert(model.predict_proba, None, frame, favourable)
    if isinstance(model, tuple) and len(model) == 2 and all(callable(part) for part in model):
        return function.convert(model[0], model[1], frame, favourable)
    if callable(model):
        return function.convert(model, None, frame, favourable)
    raise TypeError(
        f"cannot read a model of type {type(model).__module__}.{type(model).__qualname__}; "
        "accepted: an ONNX file or its bytes, a torch.nn.Module, a Keras model, a fitted "
        "scikit-learn, XGBoost or LightGBM classifier or pipeline, a tyrex model, a function "
        "f(X) -> p, or a pair of such a function and its gradient"
    )


def _family(model: Any) -> str | None:
    """The framework of a model, by its base classes."""
    ancestors = {(kind.__module__.split(".")[0], kind.__name__) for kind in type(model).__mro__}
    # A Keras model is a torch module as well where torch is the backend.
    if ancestors & {("keras", "Model"), ("tf_keras", "Model"), ("tensorflow", "Model")}:
        return "keras"
    if ("torch", "Module") in ancestors:
        return "torch"
    if own.is_own(model):
        return "tyrex"
    if boosting.framework(model):
        return "boosting"
    if ("sklearn", "BaseEstimator") in ancestors:
        return "scikit-learn"
    return None
