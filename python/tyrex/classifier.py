"""A multilayer perceptron for scikit-learn. Imported on demand, since it needs scikit-learn."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Union

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.class_weight import compute_class_weight  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from ._native import Network
from .cells import Array
from .errors import ParameterError
from .progress import Progress
from .text import listed

__all__ = ["MLPClassifier"]

# A name, or a name with its numbers: {"exponential": {"factor": 0.9}}.
Choice = Union[str, Mapping[str, Mapping[str, float]]]  # noqa: UP007 (Python 3.9)

# scikit-learn's names, and those with a number, with its default.
ACTIVATIONS: dict[str, Choice] = {
    "logistic": "sigmoid",
    "leaky-relu": {"leaky-relu": {"slope": 0.01}},
    "elu": {"elu": {"alpha": 1.0}},
}

# The engine's parameters, and their names here.
NAMES = {
    "hidden": "hidden_layer_sizes",
    "batch": "batch_size",
    "learning-rate": "learning_rate",
    "l2": "alpha",
    "class-weights": "class_weight",
    "early-stopping fraction": "validation_fraction",
}

# Whole weights up to this many mean copies; more copies would cost too much time.
MOST_COPIES = 10


class MLPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network of dense layers, trained by Adam in single precision.

    Each step lowers `1/|B| sum_i w_i CE(m(x_i), y_i) + alpha sum_l ||W_l||^2`, over a batch `B`
    of rows with weights `w_i`. Two classes share one sigmoid, more have a softmax. Columns should
    be on a common scale: put a `StandardScaler` before it.

    Weights are counts: a row of weight 2 trains the same network as the row twice, to the bit,
    and a row of weight 0 as if it were absent. Where rows repeat, their order does not matter
    either. Weights that are not whole, or above 10, enter the loss, divided by their mean.

    For an integer `random_state` the network has the same bits whatever the number of threads;
    without repeated rows they are those of the command line for the same seed, rows and columns.

    Parameters
    ----------
    hidden_layer_sizes : widths of the hidden layers; an int for one layer, () for none
    activation : "relu", "tanh", "logistic", "identity", "gelu", "gelu-tanh", "silu", "softplus",
        "leaky-relu", "elu", or one with its number: `{"leaky-relu": {"slope": 0.2}}`
    learning_rate : Adam's step size
    batch_size : rows per step
    epochs : passes over the rows
    alpha : penalty on squared weights; biases have none
    dropout : share of hidden units left out of a step
    class_weight : None, "balanced", or a dict from class to weight
    early_stopping : whether to hold rows out and keep the network with the lowest loss on them
    validation_fraction : the share of the rows held out
    patience : epochs without improvement before stopping
    schedule : "constant", `{"exponential": {"factor": f}}`, `{"cosine": {"floor": f}}` or
        `{"step": {"every": n, "factor": f}}`: the learning rate over the epochs
    warm_start : whether `fit` continues from the network of an earlier `fit`
    random_state : an int for the same network every time, a `RandomState`, or None
    verbose : whether to show progress

    Attributes
    ----------
    classes_ : the classes, in the order of the columns of `predict_proba`
    network_ : the network; `network_.to_onnx()` is an ONNX file of it
    n_iter_ : epochs done
    loss_curve_ : the loss of every epoch, without the penalty
    loss_ : the loss of the epoch whose weights were kept
    validation_loss_curve_ : the mean loss of the rows held out, after every epoch, each row
        counting the same; None without early stopping
    n_features_in_, feature_names_in_ : the columns seen by `fit`

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> clf = MLPClassifier(learning_rate=0.01, random_state=0).fit(X, y)
    >>> clf.score(X, y) > 0.95
    True
    >>> clf.predict_proba(X[:2]).shape
    (2, 2)
    >>> clf.set_params(batch_size=0).fit(X, y)
    Traceback (most recent call last):
    tyrex.errors.ParameterError: parameter `batch_size` is 0, expected at least 1
    """

    classes_: Array
    network_: Network

    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] = (128, 128),
        activation: Choice = "relu",
        *,
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        epochs: int = 50,
        alpha: float = 0.0,
        dropout: float = 0.0,
        class_weight: Mapping[Any, float] | str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 5,
        schedule: Choice = "constant",
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.alpha = alpha
        self.dropout = dropout
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.schedule = schedule
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MLPClassifier:
        """Trains the network on rows and their classes, each row with its weight."""
        start = getattr(self, "network_", None) if self.warm_start else None
        X, y = validate_data(self, X, y, dtype=np.float32, reset=start is None)
        check_classification_targets(y)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        rows, weights = _counted(weights, len(X))
        X, y = X[rows], y[rows]
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            got = listed(map(repr, classes.tolist())) or "none"
            raise ValueError(f"the rows that count have one class, {got}; expected at least two")
        if start is not None and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"warm_start goes on with the classes {listed(map(repr, self.classes_.tolist()))}, "
                f"but y has {listed(map(repr, classes.tolist()))}"
            )
        if weights is None:
            order = _order(X, labels)
            X, y, labels = X[order], y[order], labels[order]
        params = self._params(classes, y, weights)
        with Progress(bool(self.verbose), "training", unit="epochs") as progress:
            network, epochs, kept = _train(
                X, labels, weights, params, self._seed(), start, progress
            )
        history = json.loads(epochs)
        self.classes_, self.network_ = classes, network
        self.n_iter_ = len(history)
        self.loss_curve_ = [epoch["loss"] for epoch in history]
        self.loss_ = self.loss_curve_[kept]
        held_out = [epoch["held_out_loss"] for epoch in history]
        self.validation_loss_curve_ = held_out if self.early_stopping else None
        return self

    def predict_proba(self, X: Any) -> Array:
        """The probability of every class: a line per row, in the order of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, reset=False)
        shares: Array = self.network_.probabilities(X)
        return shares

    def predict(self, X: Any) -> Array:
        """The most probable class of every row; of two, the second from 0.5 on."""
        shares = self.predict_proba(X)
        if len(self.classes_) == 2:
            places = (shares[:, 1] >= 0.5).astype(np.intp)
        else:
            places = shares.argmax(axis=1)
        predicted: Array = self.classes_[places]
        return predicted

    def _params(self, classes: Array, y: Array, weights: Array | None) -> str:
        """The engine's parameters, as JSON."""
        sizes: Any = self.hidden_layer_sizes
        sizes = [sizes] if np.ndim(sizes) == 0 else sizes
        count = len(classes)
        softmax = {"softmax": {"classes": count, "favourable": count - 1}}
        params: dict[str, Any] = {
            "hidden": [_whole("hidden_layer_sizes", size) for size in sizes],
            "activation": _choice("activation", self.activation),
            "output": softmax if count > 2 else "sigmoid",
            "epochs": _whole("epochs", self.epochs),
            "batch": _whole("batch_size", self.batch_size),
            "learning-rate": _number("learning_rate", self.learning_rate),
            "l2": _number("alpha", self.alpha),
            "dropout": _number("dropout", self.dropout),
            "schedule": _choice("schedule", self.schedule),
        }
        if self.class_weight is not None:
            # Weights that are copies are there as rows.
            weighted = {} if weights is None else {"sample_weight": weights}
            given = compute_class_weight(self.class_weight, classes=classes, y=y, **weighted)
            params["class-weights"] = {"given": given.tolist()}
        if self.early_stopping:
            params["early-stopping"] = {
                "fraction": _number("validation_fraction", self.validation_fraction),
                "patience": _whole("patience", self.patience),
            }
        return json.dumps(params)

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return _whole("random_state", self.random_state, least=0)
        return int(check_random_state(self.random_state).randint(2**32, dtype=np.uint64))


def _counted(weights: Array | None, count: int) -> tuple[Array, Array | None]:
    """The rows repeated by their weights; and the weights, if they are not counts."""
    rows = np.arange(count)
    if weights is None:
        return rows, None
    if weights.max() <= MOST_COPIES and (weights == np.floor(weights)).all():
        return np.repeat(rows, weights.astype(np.int64)), None
    rows = rows[weights > 0]
    return rows, weights[rows] / weights[rows].mean()


def _order(X: Array, labels: Array) -> Array:
    """The rows unchanged; if some are equal, in an order that depends on the rows only.

    So copies of a row, at any position, give the same bits as its weight.
    """
    # Zero and negative zero are equal.
    cells = np.column_stack([X + np.float32(0), labels.astype(np.float32)])
    order: Array = np.argsort(
        cells.view(f"V{cells.shape[1] * cells.itemsize}")[:, 0], kind="stable"
    )
    cells = cells[order]
    alike = bool((cells[1:] == cells[:-1]).all(axis=1).any())
    return order if alike else np.arange(len(X))


def _train(
    X: Array,
    labels: Array,
    weights: Array | None,
    params: str,
    seed: int,
    start: Network | None,
    progress: Progress,
) -> tuple[Network, str, int]:
    """Trains, with the names of this module in the error."""
    singles = None if weights is None else weights.astype(np.float32)
    examples = (X, labels.astype(np.uint32), singles)
    try:
        return Network.train(examples, params, seed, start, progress)
    except ParameterError as error:
        message = str(error)
        for name, own in NAMES.items():
            message = message.replace(f"`{name}`", f"`{own}`")
        raise ParameterError(message) from None


def _whole(name: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ParameterError(f"parameter `{name}` is {value!r}, expected a whole number")
    whole = int(value)
    if not least <= whole < 2**64:
        expected = f"at least {least}" if whole < least else "less than 2**64"
        raise ParameterError(f"parameter `{name}` is {whole}, expected {expected}")
    return whole


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ParameterError(f"parameter `{name}` is {value!r}, expected a finite number")
    return int(value) if isinstance(value, Integral) else float(value)


def _choice(name: str, value: Any) -> Choice:
    if isinstance(value, str):
        return ACTIVATIONS.get(value, value) if name == "activation" else value
    if isinstance(value, Mapping):
        return {
            kind: {key: _number(f"{name} {key}", number) for key, number in numbers.items()}
            for kind, numbers in value.items()
        }
    raise ParameterError(f"parameter `{name}` is {value!r}, expected a name or a dict")
