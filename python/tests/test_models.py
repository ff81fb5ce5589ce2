"""Models of real packages, converted, against their own probabilities."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

# The packages are looked for there, before anything imports them.
from model_cases import (  # isort: skip
    COLUMNS,
    GOOD,
    HOLES,
    NAMED,
    NATIVE,
    PEOPLE,
    TEXTS,
    THREE,
    TOLERANCE,
    TWO,
    XGB,
    Deciding,
    Skipping,
    X,
    booster,
    categories,
    encoder,
    keras_skipping,
    keras_stack,
    light,
    normalised,
    stack,
)

import keras
import lightgbm
import onnx
import onnxruntime
import pandas as pd
import torch
import tyrex
import xgboost
from onnx.reference import ReferenceEvaluator
from sklearn import ensemble, linear_model, naive_bayes, svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from tyrex.data import Frame
from tyrex.errors import DataError, ModelError, ParameterError
from tyrex.models import Function, Onnx, convert

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
]

TYPES: dict[int, Any] = {
    onnx.TensorProto.FLOAT: np.float32,
    onnx.TensorProto.DOUBLE: np.float64,
    onnx.TensorProto.STRING: object,
}


def evaluate(content: bytes, output: str, feed: dict[str, np.ndarray]) -> np.ndarray:
    """onnxruntime's answer, or that of the reference where onnxruntime has no implementation."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(content, options)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        session = ReferenceEvaluator(onnx.load_from_string(content))
    return np.asarray(session.run([output], feed)[0], dtype=np.float64)


def texts_of(column: np.ndarray) -> np.ndarray:
    """Truth values as the native engine has them."""
    return np.where(column, "true", "false") if column.dtype == bool else column


def runtime_scores(converted: Onnx, frame: Frame) -> np.ndarray:
    """The probability of the favourable class, as the ONNX graph has it."""
    graph = onnx.load_from_string(converted.content).graph
    chosen = frame.select(converted.features) if converted.features else frame
    kinds = {entry.name: TYPES[entry.type.tensor_type.elem_type] for entry in graph.input}
    if len(kinds) == 1:
        feed = {name: chosen.matrix().astype(kind) for name, kind in kinds.items()}
    else:
        columns = {name: texts_of(c) for name, c in zip(chosen.names, chosen.columns)}
        feed = {name: columns[name][:, None].astype(kind) for name, kind in kinds.items()}
    outputs = [entry.name for entry in graph.output]
    output = next((name for name in outputs if "prob" in name), outputs[-1])
    answers = evaluate(converted.content, output, feed).reshape(len(frame), -1)
    if converted.logits and answers.shape[1] == 1:
        answers = 1.0 / (1.0 + np.exp(-answers))
    elif converted.logits or (answers < -1e-3).any():  # logits, or logarithms of probabilities
        answers = np.exp(answers) / np.exp(answers).sum(axis=1, keepdims=True)
    if answers.shape[1] == 1:
        answers = np.hstack([1.0 - answers, answers])
    number = 1 if converted.class_number is None else converted.class_number
    return answers[:, number]


#: Boosted models are read from their packages' own files.
CONVERTED = [name for name in NATIVE if not name.startswith(("xgboost", "lightgbm"))]


@pytest.mark.parametrize("name", CONVERTED)
def test_onnx_scores_as_the_original(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    model, data, options = NATIVE[name]()
    frame = Frame.of(data)
    capfd.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="keras")
        converted = convert(model, frame, **options)
    assert capfd.readouterr() == ("", "")
    assert isinstance(converted, Onnx), converted.reason
    scores = converted.scores(frame)
    assert scores.shape == (len(frame),)
    assert scores.std() > 1e-3
    deviation = np.abs(runtime_scores(converted, frame) - scores).max()
    assert deviation < TOLERANCE
    assert converted.fallback is not None
    assert np.array_equal(converted.fallback.scores(frame), scores)


@pytest.mark.parametrize("name", NATIVE)
def test_the_native_engine_scores_as_the_original(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    model, data, options = NATIVE[name]()
    explainer = tyrex.Explainer(model, data, **options)
    if data is HOLES:  # missing values reach the native model
        assert explainer.kind != "function"
        assert len(explainer.score()) == len(HOLES)
    assert explainer.deviation is not None and explainer.deviation < TOLERANCE
    record_property("deviation", explainer.deviation)


@pytest.mark.parametrize("missing", ["other", "car"])
def test_levels_that_the_data_lack(missing: str) -> None:
    coded = make_column_transformer((OneHotEncoder(), ["purpose of loan", "rooms"]))
    model = make_pipeline(coded, linear_model.LogisticRegression()).fit(PEOPLE, GOOD)
    rows = PEOPLE[PEOPLE["purpose of loan"] != missing].reset_index(drop=True)
    explainer = tyrex.Explainer(model, rows)
    assert explainer.deviation is not None and explainer.deviation < TOLERANCE


def test_a_level_that_the_model_does_not_know() -> None:
    known = PEOPLE["purpose of loan"] != "other"
    coded = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), TEXTS))
    model = make_pipeline(coded, linear_model.LogisticRegression()).fit(PEOPLE[known], GOOD[known])
    assert tyrex.Explainer(model, PEOPLE).kind == "function"


def test_levels_of_columns() -> None:
    model, data, options = NATIVE["sklearn columns, imputed"]()
    converted = convert(model, Frame.of(data), **options)
    assert isinstance(converted, Onnx)
    assert converted.levels == {"rooms": [1, 2, 3, 4, 5], "married": ["no", "yes"]}
    model, data, options = NATIVE["torch columns"]()
    converted = convert(model, Frame.of(data), **options)
    assert isinstance(converted, Onnx)
    assert converted.levels["purpose of loan"] == ["car", "house", "other", "school"]


# ------------------------------------------------------------------------------------ black boxes


class Duck:
    """A classifier of no package at all."""

    classes_ = np.array(["a", "b", "c"])

    def predict_proba(self, x: Any) -> np.ndarray:
        shares = np.abs(np.asarray(x)[:, :3]) + 0.1
        return shares / shares.sum(axis=1, keepdims=True)


def sparse_pipeline() -> Any:
    return make_pipeline(
        ColumnTransformer([("texts", OneHotEncoder(), TEXTS)], sparse_threshold=1.0),
        xgboost.XGBClassifier(**XGB),
    ).fit(PEOPLE, (GOOD == "good") * 1)


HIST = ensemble.HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")

#: Name: the model, the data, options of `convert`, part of the reason given.
BLACK_BOXES: dict[str, Callable[[], tuple[Any, Any, dict[str, Any], str]]] = {
    "torch with a loop": lambda: (Deciding(), X, {}, "cannot be exported"),
    "torch, several classes": lambda: (
        stack(torch.nn.Softmax(1), outputs=3),
        X,
        {"favourable": [0, 2]},
        "several classes",
    ),
    "keras skipping": lambda: (keras_skipping(), X, {}, "several inputs"),
    "keras activation": lambda: (
        keras_stack(keras.layers.Dense(4, activation="hard_sigmoid")),
        X,
        {},
        "hard_sigmoid",
    ),
    "keras layer": lambda: (
        keras_stack(keras.layers.LayerNormalization()),
        X,
        {},
        "LayerNormalization",
    ),
    "sklearn, several classes": lambda: (
        linear_model.LogisticRegression().fit(X, THREE),
        X,
        {"favourable": [1, 2]},
        "several classes",
    ),
    "sklearn function": lambda: (
        make_pipeline(FunctionTransformer(np.tanh), linear_model.LogisticRegression()).fit(X, TWO),
        X,
        {},
        "skl2onnx cannot convert",
    ),
    "sklearn discriminant": lambda: (
        LinearDiscriminantAnalysis().fit(X, TWO),
        X,
        {},
        "other probabilities",
    ),
    "sklearn categories": lambda: (HIST.fit(categories(), GOOD), categories(), {}, "categorical"),
    "xgboost missing": lambda: (
        xgboost.XGBClassifier(missing=0.0, **XGB).fit(X.round(), TWO),
        X.round(),
        {},
        "missing=0.0",
    ),
    "xgboost sparse": lambda: (sparse_pipeline(), PEOPLE, {}, "sparse"),
}


@pytest.mark.parametrize("name", BLACK_BOXES)
def test_what_no_file_can_say_is_a_function(name: str) -> None:
    model, data, options, reason = BLACK_BOXES[name]()
    frame = Frame.of(data)
    converted = convert(model, frame, **options)
    assert isinstance(converted, Function)
    assert converted.reason is not None and reason in converted.reason
    scores = converted.scores(frame)
    assert scores.shape == (len(frame),) and scores.std() > 1e-3
    assert (converted.gradients is not None) == name.startswith("torch")


#: Files that the native engine may refuse: the fallback must take them.
FALLBACKS: dict[str, Callable[[], Any]] = {
    "torch skipping": Skipping,
    "calibrated": lambda: CalibratedClassifierCV(naive_bayes.GaussianNB()).fit(X, TWO),
    "kernel": lambda: svm.SVC(probability=True, random_state=0).fit(X, TWO),
    "bayes": lambda: naive_bayes.GaussianNB().fit(X, TWO),
    "xgboost objective": lambda: xgboost.XGBClassifier(objective="binary:hinge", **XGB).fit(X, TWO),
    "lightgbm linear": lambda: light(linear_tree=True).fit(X, TWO),
}


@pytest.mark.parametrize("name", FALLBACKS)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_fallbacks(name: str) -> None:
    frame = Frame.of(X)
    converted = convert(FALLBACKS[name](), frame)
    function = converted.fallback if isinstance(converted, Onnx) else converted
    assert function is not None
    assert function.scores(frame).std() > 1e-3
    assert (function.gradients is not None) == name.startswith("torch")


GRADIENTS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "probability": (Skipping, {}),
    "unfavourable": (Skipping, {"favourable": 0}),
    "logit": (lambda: stack(activation=torch.nn.Tanh()), {"logits": True}),
    "log softmax": (
        lambda: stack(torch.nn.LogSoftmax(1), activation=torch.nn.Tanh(), outputs=3),
        {"favourable": 2},
    ),
    "logits of two classes": (
        lambda: stack(activation=torch.nn.Tanh(), outputs=3),
        {"favourable": [0, 1], "logits": True},
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_exact(name: str) -> None:
    make, options = GRADIENTS[name]
    converted = convert(make().double(), Frame.of(X[:40]), **options)
    function = converted.fallback if isinstance(converted, Onnx) else converted
    assert function is not None and function.gradients is not None
    step = 1e-6
    found = function.gradients(Frame.of(X[:40]))
    for column in range(COLUMNS):
        shift = np.eye(COLUMNS)[column] * step
        above, below = Frame.of(X[:40] + shift), Frame.of(X[:40] - shift)
        slope = (function.scores(above) - function.scores(below)) / (2 * step)
        # A kink of the activation can lie inside the difference.
        assert np.median(np.abs(found[:, column] - slope)) < 1e-8


def test_text_imputers_without_gaps_are_read() -> None:
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    blocks = make_column_transformer((StandardScaler(), ["age"]), (texts, TEXTS))
    model = make_pipeline(blocks, linear_model.LogisticRegression()).fit(PEOPLE, GOOD)
    frame = Frame.of(PEOPLE)
    converted = convert(model, frame)
    assert isinstance(converted, Onnx)
    assert b"Imputer" not in converted.content
    assert np.abs(runtime_scores(converted, frame) - converted.scores(frame)).max() < TOLERANCE
    assert type(model[0].transformers_[1][1][0]) is SimpleImputer


def test_columns_that_are_dropped_are_no_features() -> None:
    blocks = make_column_transformer((StandardScaler(), ["income"]), (OneHotEncoder(), TEXTS))
    model = make_pipeline(blocks, linear_model.LogisticRegression()).fit(PEOPLE, GOOD)
    for table in (PEOPLE, PEOPLE.to_dict("records")):
        frame = Frame.of(table)
        converted = convert(model, frame)
        assert isinstance(converted, Onnx)
        assert converted.features == ["income", *TEXTS]
        scores = converted.scores(frame.select(converted.features))
        assert np.array_equal(scores, model.predict_proba(PEOPLE)[:, 1])


def test_a_module_is_left_as_it_was() -> None:
    model = normalised().train()
    model[2].eval()
    before = [module.training for module in model.modules()]
    convert(model, Frame.of(X))
    assert [module.training for module in model.modules()] == before


def test_a_module_may_be_trained_further() -> None:
    model = stack(torch.nn.Sigmoid())
    frame = Frame.of(X)
    converted = convert(model, frame)
    before = converted.scores(frame)
    with torch.no_grad():
        model[0].weight.add_(1.0)
    assert np.array_equal(converted.scores(frame), before)


@pytest.mark.parametrize("name", ["torch relu", "sklearn columns", "xgboost", "lightgbm"])
def test_scores_can_be_pickled(name: str) -> None:
    model, data, options = NATIVE[name]()
    frame = Frame.of(data)
    scores = convert(model, frame, **options).scores
    assert np.array_equal(pickle.loads(pickle.dumps(scores))(frame), scores(frame))


def test_polars_tables() -> None:
    polars = pytest.importorskip("polars")
    model = make_pipeline(encoder(), linear_model.LogisticRegression()).fit(PEOPLE, GOOD)
    frame = Frame.of(polars.from_pandas(PEOPLE))
    converted = convert(model, frame, favourable="good")
    assert np.allclose(converted.scores(frame), model.predict_proba(PEOPLE)[:, 1])


# -------------------------------------------------------------------------------------- functions


def logistic(x: Any) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-np.asarray(x, dtype=float)[:, 0]))


def slope(x: Any) -> np.ndarray:
    p = logistic(x)
    gradient = np.zeros(np.shape(x))
    gradient[:, 0] = p * (1 - p)
    return gradient


@pytest.mark.parametrize(
    ("function", "options", "expected"),
    [
        (logistic, {}, logistic),
        (logistic, {"favourable": 0}, logistic),
        (lambda x: logistic(x)[:, None], {}, logistic),
        (lambda x: list(logistic(x)), {}, logistic),
        (lambda x: torch.tensor(logistic(x), requires_grad=True), {}, logistic),
        (lambda x: np.c_[1 - logistic(x), logistic(x)], {}, logistic),
        (lambda x: np.c_[logistic(x), 1 - logistic(x)], {"favourable": 0}, logistic),
        (lambda x: logistic(x) + 5e-7, {}, logistic),
        (Duck().predict_proba, {"favourable": "b"}, lambda x: Duck().predict_proba(x)[:, 1]),
        (Duck(), {"favourable": "c"}, lambda x: Duck().predict_proba(x)[:, 2]),
    ],
)
def test_functions(function: Any, options: dict[str, Any], expected: Any) -> None:
    frame = Frame.of(X)
    converted = convert(function, frame, **options)
    assert isinstance(converted, Function)
    assert converted.gradients is None and converted.reason is None
    assert np.allclose(converted.scores(frame), expected(X), atol=1e-6)


def test_a_function_is_called_with_the_users_own_table() -> None:
    seen = []

    def function(table: Any) -> Any:
        seen.append(table)
        return (table["age"] > 40).to_numpy() * 0.5

    convert(function, Frame.of(PEOPLE))
    pd.testing.assert_frame_equal(seen[0], PEOPLE)


def test_a_function_with_its_gradient() -> None:
    converted = convert((logistic, slope), Frame.of(X))
    assert isinstance(converted, Function) and converted.gradients is not None
    assert np.array_equal(converted.gradients(Frame.of(X)), slope(X))


def test_labels_are_warned_about() -> None:
    model = linear_model.LogisticRegression().fit(X, TWO)
    with pytest.warns(UserWarning, match="labels rather than probabilities"):
        convert(model.predict, Frame.of(X))


def test_other_names_for_zero_and_one_are_warned_about() -> None:
    model = linear_model.LogisticRegression().fit(X, TWO)
    with pytest.warns(UserWarning, match="classes are 0 and 1; 1 is taken for 'good'"):
        converted = convert(model, Frame.of(X), favourable="good")
    assert isinstance(converted, Onnx) and converted.class_number == 1


# --------------------------------------------------------------------------------------- bad input


def three() -> Any:
    return linear_model.LogisticRegression().fit(X, np.array(["low", "mid", "top"])[THREE])


def multiple() -> Any:
    return MultiOutputClassifier(linear_model.LogisticRegression()).fit(X, np.c_[TWO, THREE])


class Pair(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x, x


#: The model, the data, options of `convert`, the error and its sentence.
REFUSED: list[tuple[Callable[[], Any], Any, dict[str, Any], type[Exception], str]] = [
    (lambda: stack(), X, {}, ModelError, "not a probability.*logits=True"),
    (lambda: stack(), X * 1e-6, {}, ModelError, "not a probability.*logits=True"),
    (lambda: stack(torch.nn.Sigmoid()), X, {"logits": True}, ModelError, "a probability already"),
    (
        lambda: stack(torch.nn.Softmax(1), outputs=3),
        X,
        {},
        ModelError,
        "3 outputs; .*favourable=0 to favourable=2",
    ),
    (
        lambda: stack(torch.nn.Softmax(1), outputs=3),
        X,
        {"favourable": "good"},
        ModelError,
        "not 'good'",
    ),
    (
        lambda: stack(torch.nn.Sigmoid()),
        X[:, :3],
        {},
        ModelError,
        "the torch model cannot score a matrix of 3 columns",
    ),
    (lambda: stack(torch.nn.Sigmoid()), PEOPLE, {}, DataError, "purpose of loan.*preprocessor="),
    (Pair, X, {}, ModelError, "returns a tuple, expected one tensor"),
    (
        lambda: stack(torch.nn.Sigmoid()),
        X,
        {"preprocessor": StandardScaler()},
        ModelError,
        "StandardScaler is not fitted",
    ),
    (
        lambda: stack(torch.nn.Sigmoid()),
        X,
        {"preprocessor": "standard"},
        TypeError,
        "preprocessor: found str, expected a fitted scikit-learn transformer",
    ),
    (lambda: keras_stack(ending=None), X, {}, ModelError, "not a probability.*logits=True"),
    (lambda: keras_stack(), X[:, :2], {}, ModelError, "cannot score a matrix of 2 columns"),
    (
        lambda: keras.Model([a := keras.Input((2,)), b := keras.Input((3,))], [a, b]),
        X,
        {},
        ModelError,
        "takes 2 inputs, expected one matrix",
    ),
    (three, X, {}, ModelError, "3 classes .'low', 'mid' and 'top'.*favourable='top'"),
    (three, X, {"favourable": "high"}, ModelError, "'high' is not a class.*'low', 'mid' and 'top'"),
    (three, X, {"favourable": ["low", "mid", "top"]}, ModelError, "every class is favourable"),
    (three, X[:, :4], {}, ModelError, "takes 5 columns, without names, and the data have 4"),
    (three, X, {"logits": True}, ParameterError, "logits is for PyTorch and Keras models"),
    (
        three,
        X,
        {"preprocessor": StandardScaler()},
        ParameterError,
        "preprocessor is for PyTorch and Keras models",
    ),
    (
        lambda: linear_model.LogisticRegression().fit(NAMED, TWO),
        NAMED.drop(columns="age"),
        {},
        DataError,
        "age",
    ),
    (
        lambda: linear_model.LinearRegression().fit(X, TWO),
        X,
        {},
        ModelError,
        "LinearRegression is a regressor; expected a classifier",
    ),
    (lambda: KMeans(2).fit(X), X, {}, ModelError, "KMeans is not a classifier"),
    (lambda: svm.LinearSVC().fit(X, TWO), X, {}, ModelError, "gives no probabilities"),
    (
        lambda: linear_model.LogisticRegression(),
        X,
        {},
        ModelError,
        "LogisticRegression is not fitted yet; call fit first",
    ),
    (lambda: make_pipeline(StandardScaler(), MLPClassifier()), X, {}, ModelError, "not fitted"),
    (multiple, X, {}, ModelError, "predicts 2 targets, expected one"),
    (lambda: xgboost.XGBClassifier(), X, {}, ModelError, "XGBClassifier is not fitted"),
    (lambda: xgboost.XGBRegressor().fit(X, TWO), X, {}, ModelError, "not a classifier"),
    (
        lambda: booster(X, TWO, "binary:logitraw"),
        X,
        {},
        ModelError,
        "the output of this Booster is not a probability",
    ),
    (lambda: lightgbm.LGBMClassifier(), X, {}, ModelError, "LGBMClassifier is not fitted"),
    (lambda: lightgbm.LGBMRegressor(), X, {}, ModelError, "not a classifier"),
    (
        lambda: xgboost.XGBClassifier(**XGB).fit(X, TWO),
        X[:, :3],
        {},
        ModelError,
        "takes 5 columns, without names, and the data have 3",
    ),
    (lambda: stack(torch.nn.Sigmoid()), HOLES, {}, ModelError, "row 0 has missing values"),
    (
        lambda: stack(torch.nn.Sigmoid()),
        HOLES,
        {"preprocessor": make_pipeline(FunctionTransformer(np.log, validate=True)).fit(X)},
        ModelError,
        "the preprocessor failed on the data: ValueError",
    ),
    (lambda: (logistic, lambda x: x * np.nan), X, {}, ModelError, "gradient is not a matrix of"),
    (lambda: np.sum, X, {}, ModelError, "has shape"),
    (lambda: lambda x: x[:, 0] * 9, X, {}, ModelError, "`<lambda>` returns is not a probability: "),
    (lambda: lambda x: x[:-1, 0], X, {}, ModelError, "299 rows for 300 rows of data"),
    (lambda: lambda x: np.full(len(x), np.nan), X, {}, ModelError, "not a finite number in row 0"),
    (lambda: lambda x: ["good"] * len(x), X, {}, ModelError, "not a probability.*not numbers"),
    (lambda: lambda x: x["age"], X, {}, ModelError, "`<lambda>` failed on the data: IndexError"),
    (lambda: lambda x: np.full((len(x), 3), 1 / 3), X, {}, ModelError, "3 outputs"),
    (lambda: (logistic, logistic), X, {}, ModelError, "gradient has 1 columns for 5"),
    (lambda: linear_model.LogisticRegression, X, {}, TypeError, "pass a fitted model of it"),
    (lambda: 3, X, {}, TypeError, "cannot read a model of type builtins.int; accepted: an ONNX"),
    (lambda: {"a": 1}, X, {}, TypeError, "scikit-learn, XGBoost or LightGBM"),
]


@pytest.mark.parametrize("case", REFUSED, ids=[case[4][:40] for case in REFUSED])
def test_refusals(
    case: tuple[Callable[[], Any], Any, dict[str, Any], type[Exception], str],
) -> None:
    make, data, options, error, sentence = case
    model = make()
    with pytest.raises(error, match=sentence):
        convert(model, Frame.of(data), **options)


def test_nothing_is_imported_before_it_is_needed() -> None:
    frameworks = ["torch", "keras", "sklearn", "skl2onnx", "onnx", "xgboost", "lightgbm", "pandas"]
    program = f"import sys, tyrex.models; print([m for m in {frameworks} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
