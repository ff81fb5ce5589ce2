"""XGBoost and LightGBM."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import ModelError, need
from .converted import Floats, Function, NotNative, Onnx
from .outputs import Outputs, by_name, by_place, columns, failed
from .table import Table

if TYPE_CHECKING:
    from ..data import Frame

PACKAGES = ("xgboost", "lightgbm")
#: The operator domain of onnxmltools' trees.
OPSET = 15
#: The objectives of XGBoost that onnxmltools supports.
OBJECTIVES = ("binary:logistic", "multi:softprob")
#: Patterns in LightGBM's model text for features that onnxmltools does not support.
UNWRITTEN = {
    r"^num_cat=[1-9]": "categorical splits",
    r"^is_linear=1": "linear trees",
    r"^average_output": "random forests",
    r"^objective=(?!binary sigmoid:1( |$)|multiclass )": "objectives other than the usual two",
    r"^\[zero_as_missing: 1\]": "zeros that stand for missing values",
}


def framework(model: Any) -> str | None:
    """ "xgboost" or "lightgbm", if the model is of one of them."""
    for kind in type(model).__mro__:
        package = kind.__module__.split(".")[0]
        if package in PACKAGES:
            return package
    return None


def export(model: Any) -> bytes:
    """The trees as ONNX, to stand behind a transformer in a pipeline; or `NotNative`."""
    package = framework(model)
    tools = need("onnxmltools", f"to read {package} models")
    types = need("onnxmltools.convert.common.data_types", f"to read {package} models")
    booster = _xgboost_trees(model) if package == "xgboost" else _lightgbm_trees(model)
    width = booster.num_features() if package == "xgboost" else booster.num_feature()
    inputs = [("x", types.FloatTensorType([None, width]))]
    options: dict[str, Any] = {"initial_types": inputs, "target_opset": OPSET}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if package == "xgboost":
                made = tools.convert_xgboost(booster, **options)
            else:
                made = tools.convert_lightgbm(booster, zipmap=False, **options)
        except Exception as problem:  # converters raise many types of errors
            text = " ".join(str(problem).split())
            raise NotNative(f"onnxmltools cannot convert it: {text[:200]}") from None
    content: bytes = made.SerializeToString()
    return content


def convert(model: Any, frame: Frame, favourable: Any) -> Onnx | Function:
    """A classifier or a booster, as its own model file where the native engine reads that."""
    package = framework(model)
    trees: XGBoost | LightGBM
    if package == "xgboost":
        trees = XGBoost(model, _xgboost_table(model, frame))
    else:
        trees = LightGBM(model, _lightgbm_table(model, frame))
    source = f"the output of this {type(model).__name__}"
    names = getattr(model, "classes_", None)
    if names is None:
        answers = columns(_answers(trees, frame), len(frame), source)
        outputs = Outputs(by_place(answers.shape[1], favourable), source=source)
        outputs.probability(answers, len(frame))
    else:
        outputs = Outputs(by_name(list(names), favourable), source=source)
    scorer = Scorer(trees, outputs)
    function = Function(scorer.scores, features=trees.table.features, framework=str(package))
    if len(outputs.classes) > 1:
        return replace(function, reason="several classes are favourable")
    try:
        content = _xgboost_file(model) if package == "xgboost" else _lightgbm_file(model)
    except NotNative as problem:
        return replace(function, reason=str(problem))
    return Onnx(
        content=content,
        scores=scorer.scores,
        features=trees.table.features,
        class_number=outputs.classes[0],
        framework=str(package),
        fallback=function,
    )


@dataclass(frozen=True)
class Scorer:
    """Trees and the meaning of their outputs."""

    trees: XGBoost | LightGBM
    outputs: Outputs

    def scores(self, frame: Frame) -> Floats:
        """The trees' own probability of the favourable class."""
        return self.outputs.probability(_answers(self.trees, frame), len(frame))


def _answers(trees: XGBoost | LightGBM, frame: Frame) -> Any:
    try:
        return trees.answers(frame)
    except Exception as problem:  # the user's model may raise any error
        kind = type(trees.model).__name__
        raise failed(f"this {kind} cannot score the data", problem) from problem


# -------------------------------------------------------------------------------------- XGBoost


@dataclass(frozen=True)
class XGBoost:
    """An `XGBClassifier` or a `Booster`."""

    model: Any
    table: Table

    def answers(self, frame: Frame) -> Any:
        """The probabilities it gives."""
        rows = self.table.container(frame)
        if hasattr(self.model, "predict_proba"):
            return self.model.predict_proba(rows)
        xgboost = need("xgboost", "to read xgboost models")
        categories = "c" in (self.model.feature_types or [])
        return self.model.predict(xgboost.DMatrix(rows, enable_categorical=categories))


def _xgboost_table(model: Any, frame: Frame) -> Table:
    booster = _xgboost_booster(model)
    return Table.named(booster.feature_names, booster.num_features(), frame)


def _xgboost_booster(model: Any) -> Any:
    if not hasattr(model, "get_booster"):
        return model
    if not hasattr(model, "predict_proba"):
        kind = type(model).__name__
        raise ModelError(f"{kind} is not a classifier; expected one with predict_proba")
    if not model.__sklearn_is_fitted__():
        raise ModelError(f"this {type(model).__name__} is not fitted yet; call fit first")
    return model.get_booster()


def _xgboost_file(model: Any) -> bytes:
    """The trees that the model predicts with, as a file of XGBoost."""
    return bytes(_xgboost_used(model).save_raw("ubj"))


def _xgboost_used(model: Any) -> Any:
    """The booster; of a classifier that stopped early, without the trees after the best one."""
    booster = _xgboost_booster(model)
    missing = getattr(model, "missing", None)
    if missing is not None and missing == missing:
        raise NotNative(f"missing={missing!r}: only NaN can stand for a missing value")
    best = booster.attr("best_iteration") if model is not booster else None
    return booster.copy() if best is None else booster[: int(best) + 1]


def _xgboost_trees(model: Any) -> Any:
    """The used trees, without the names and types that onnxmltools cannot handle."""
    booster = _xgboost_booster(model)
    learner = json.loads(booster.save_config())["learner"]
    kind, objective = learner["gradient_booster"]["name"], learner["objective"]["name"]
    if "c" in (booster.feature_types or []):
        raise NotNative("categorical splits of XGBoost cannot be written as ONNX")
    if kind != "gbtree":
        raise NotNative(f"XGBoost's booster `{kind}` cannot be written as ONNX, only `gbtree`")
    if objective not in OBJECTIVES:
        raise NotNative(f"XGBoost's objective `{objective}` is not one of {', '.join(OBJECTIVES)}")
    trees = _xgboost_used(model)
    trees.feature_names = trees.feature_types = None
    return trees


# ------------------------------------------------------------------------------------- LightGBM


@dataclass(frozen=True)
class LightGBM:
    """An `LGBMClassifier` or a `Booster`."""

    model: Any
    table: Table

    def answers(self, frame: Frame) -> Any:
        """The probabilities it gives."""
        return _lightgbm_booster(self.model).predict(self.table.container(frame))


def _lightgbm_booster(model: Any) -> Any:
    if not hasattr(model, "booster_") and not hasattr(model, "fit"):
        return model
    if not hasattr(model, "predict_proba"):
        kind = type(model).__name__
        raise ModelError(f"{kind} is not a classifier; expected one with predict_proba")
    if not model.__sklearn_is_fitted__():
        raise ModelError(f"this {type(model).__name__} is not fitted yet; call fit first")
    return model.booster_


def _lightgbm_table(model: Any, frame: Frame) -> Table:
    """LightGBM writes `_` for a space, and makes names where there are none."""
    booster = _lightgbm_booster(model)
    own = booster.feature_name()
    if own == [f"Column_{i}" for i in range(len(own))]:
        return Table.named(None, len(own), frame)
    known = {name.replace(" ", "_"): name for name in frame.names}
    return Table.named([known.get(name, name) for name in own], len(own), frame)


def _lightgbm_file(model: Any) -> bytes:
    """The trees that the model predicts with, as a file of LightGBM."""
    text: str = _lightgbm_booster(model).model_to_string()
    return text.encode()


def _lightgbm_trees(model: Any) -> Any:
    """The booster, unless onnxmltools would convert it incorrectly."""
    booster = _lightgbm_booster(model)
    text = booster.model_to_string()
    for pattern, what in UNWRITTEN.items():
        if re.search(pattern, text, re.MULTILINE):
            raise NotNative(f"{what} of LightGBM cannot be written as ONNX")
    return booster
