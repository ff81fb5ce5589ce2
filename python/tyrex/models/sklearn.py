"""scikit-learn classifiers, pipelines and transformers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any


import numpy as np

from ..errors import ModelError, need
from . import boosting, graph, trees
from .converted import Floats, Function, NotNative, Onnx
from .outputs import Outputs, by_name, by_place, columns, failed
from .simplify import simplified, with_all_categories
from .table import Table

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..data import Frame

    #: Columns by name, and whether they hold texts; or the width of a matrix of numbers.
    Inputs: TypeAlias = "list[tuple[str, bool]] | int"

PURPOSE = "to read scikit-learn models"


@dataclass(frozen=True)
class Classifier:
    """A fitted classifier and the table it takes."""

    model: Any
    table: Table
    outputs: Outputs

    def scores(self, frame: Frame) -> Floats:
        """The classifier's own probability of the favourable class."""
        return self.outputs.probability(_shares(self.model, self.table, frame), len(frame))


@dataclass(frozen=True)
class Preprocessor:
    """A fitted transformer in front of a network."""

    transformer: Any
    table: Table

    @classmethod
    def of(cls, transformer: Any, frame: Frame) -> Preprocessor:
        """The transformer, after a check that it is one and is fitted."""
        if not hasattr(transformer, "transform"):
            raise TypeError(
                f"preprocessor: found {_kind(transformer)}, expected a fitted scikit-learn "
                "transformer such as a StandardScaler or a ColumnTransformer"
            )
        check_fitted(transformer)
        return cls(transformer, Table.of(transformer, frame))

    def transform(self, frame: Frame) -> Floats:
        """The input of the network after it."""
        try:
            made = self.transformer.transform(self.table.container(frame))
        except Exception as problem:  # the user's transformer may raise any error
            raise failed("the preprocessor failed on the data", problem) from problem
        made = made.toarray() if hasattr(made, "toarray") else made
        return columns(made, len(frame), "the preprocessor's output", "a matrix of numbers")

    def before(self, network: bytes, frame: Frame) -> tuple[bytes, list[str] | None]:
        """The transformer and the network after it as ONNX, and the columns they use."""
        return export(self.transformer, self.table, frame, network)


def _shares(model: Any, table: Table, frame: Frame) -> Any:
    try:
        return model.predict_proba(table.container(frame))
    except Exception as problem:  # the user's model may raise any error
        raise failed(f"this {_kind(model)} cannot score the data", problem) from problem


def convert(model: Any, frame: Frame, favourable: Any) -> Onnx | Function:
    """A classifier or a pipeline that ends in one, as ONNX if skl2onnx supports it."""
    check_classifier(model)
    table = Table.of(model, frame)
    source = f"predict_proba of this {_kind(model)}"
    names = getattr(model, "classes_", None)
    if isinstance(names, list) and any(hasattr(part, "shape") for part in names):
        raise ModelError(f"this {_kind(model)} predicts {len(names)} targets, expected one")
    if names is None:
        answers = columns(_shares(model, table, frame), len(frame), source)
        classes = by_place(answers.shape[1], favourable)
    else:
        classes = by_name(list(names), favourable)
    scorer = Classifier(model, table, Outputs(classes, source=source))
    function = Function(scorer.scores, features=table.features, framework="scikit-learn")
    if len(classes) > 1:
        return replace(function, reason="several classes are favourable")
    try:
        content, features = export(model, table, frame)
    except NotNative as problem:
        return replace(function, reason=str(problem))
    scores = replace(scorer, table=table.using(features, frame)).scores
    return Onnx(
        content=content,
        scores=scores,
        features=features,
        levels=graph.levels(content),
        class_number=classes[0],
        framework=function.framework,
        fallback=replace(function, scores=scores, features=features),
    )


# ------------------------------------------------------------------------------------- refusals


def check_classifier(model: Any) -> None:
    """Rejects estimators that are not fitted or have no probabilities."""
    kind = _kind(model)
    base = need("sklearn.base", PURPOSE, install="scikit-learn")
    if base.is_regressor(model):
        raise ModelError(f"{kind} is a regressor; expected a classifier with predict_proba")
    check_fitted(model)
    if hasattr(model, "predict_proba"):
        return
    if base.is_classifier(model):
        raise ModelError(
            f"this {kind} gives no probabilities (it has no predict_proba); choose a loss or an "
            "option that gives them, or wrap it in CalibratedClassifierCV"
        )
    raise ModelError(f"{kind} is not a classifier; expected one with predict_proba")


def check_fitted(estimator: Any) -> None:
    """Rejects an estimator that is not fitted."""
    validation = need("sklearn.utils.validation", PURPOSE, install="scikit-learn")
    exceptions = need("sklearn.exceptions", PURPOSE, install="scikit-learn")
    try:
        validation.check_is_fitted(estimator)
    except exceptions.NotFittedError:
        message = f"this {_kind(estimator)} is not fitted yet; call fit first"
        raise ModelError(message) from None
    except TypeError:  # not an estimator in scikit-learn's sense
        return


def _kind(model: Any) -> str:
    return type(model).__name__


# --------------------------------------------------------------------------------------- export


def export(
    estimator: Any, table: Table, frame: Frame, network: bytes | None = None
) -> tuple[bytes, list[str] | None]:
    """A classifier, or a transformer with a network behind it, as ONNX, and the columns it takes,
    where they have names.

    Its inputs are columns if it treats them differently, else one matrix of numbers.
    """
    estimator = getattr(estimator, "best_estimator_", estimator)  # of a search over parameters
    chosen = frame.select(table.columns)
    _check_sparse(estimator, table, frame)
    gaps = any(None in column for column in chosen.columns if column.dtype == object)
    estimator = simplified(estimator, imputed=gaps)
    texts = [column.dtype == object for column in chosen.columns]
    apart = any(texts) or _tells_columns_apart(estimator)
    inputs: Inputs = list(zip(table.names or chosen.names, texts)) if apart else len(texts)
    if network is None:
        content = _export(estimator, inputs)
    else:
        content = _behind(estimator, inputs, network)
    return graph.with_columns(content, chosen.names) if apart else (content, table.features)


def _export(estimator: Any, inputs: Inputs) -> bytes:
    """Classifiers work in single precision, as their ONNX operators do; what comes before one
    in double precision, since a rounded scaler can carry a value across a tree's threshold.
    """
    if boosting.framework(estimator):
        return boosting.export(estimator)
    if isinstance(inputs, int) and trees.is_trees(estimator):
        return trees.export(estimator)
    if not hasattr(estimator, "predict_proba"):
        return _translate(estimator, inputs, "DoubleTensorType")
    steps = getattr(estimator, "steps", None)
    if steps is None or len(steps) == 1:
        return _translate(estimator, inputs, "FloatTensorType")
    last = steps[-1][1]
    width = getattr(last, "n_features_in_", None)
    if width is None:
        raise NotNative(f"{_kind(last)} does not say how many columns it takes")
    return _behind(estimator[:-1], inputs, _export(last, int(width)))


def _behind(transformer: Any, inputs: Inputs, model: bytes) -> bytes:
    """A model after a transformer with a column for every category, if possible."""
    complete, places = with_all_categories(transformer)
    try:
        return graph.join(_export(complete, inputs), graph.widened(model, places))
    except NotNative:
        return graph.join(_export(transformer, inputs), model)


def _check_sparse(estimator: Any, table: Table, frame: Frame) -> None:
    """XGBoost reads the zeros of a sparse matrix as missing values; graphs do not."""
    steps = getattr(estimator, "steps", None) or []
    if len(steps) < 2 or boosting.framework(steps[-1][1]) != "xgboost":
        return
    if hasattr(estimator[:-1].transform(table.container(frame)), "toarray"):
        raise NotNative(
            "XGBoost reads the zeros of a sparse matrix as missing values; make the encoder dense "
            "with sparse_output=False, or sparse_threshold=0 in a ColumnTransformer"
        )


def _translate(estimator: Any, inputs: Inputs, real: str) -> bytes:
    skl2onnx = need("skl2onnx", PURPOSE)
    types = need("skl2onnx.common.data_types", PURPOSE)
    if np.any(getattr(estimator, "is_categorical_", False)):
        raise NotNative("categorical splits cannot be written as ONNX")
    if _kind(estimator) == "LinearDiscriminantAnalysis":
        raise NotNative("skl2onnx gives other probabilities than scikit-learn for it")
    number, text = getattr(types, real), types.StringTensorType
    if isinstance(inputs, int):
        initial = [("x", number([None, inputs]))]
    else:
        initial = [(name, (text if is_text else number)([None, 1])) for name, is_text in inputs]
    options = {id(estimator): {"zipmap": False}} if hasattr(estimator, "predict_proba") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = skl2onnx.to_onnx(
                estimator, initial_types=initial, options=options, target_opset=graph.OPSETS
            )
        except Exception as problem:  # converters raise many types of errors
            message = " ".join(str(problem).split())
            raise NotNative(f"skl2onnx cannot convert it: {message[:200]}") from None
    content: bytes = model.SerializeToString()
    return content


def _tells_columns_apart(estimator: Any) -> bool:
    """Whether the estimator treats columns differently."""
    if hasattr(estimator, "steps"):
        return any(_tells_columns_apart(step) for _, step in estimator.steps)
    if hasattr(estimator, "transformer_list"):
        return any(_tells_columns_apart(part) for _, part in estimator.transformer_list)
    return type(estimator).__name__ in ("ColumnTransformer", "OneHotEncoder")
