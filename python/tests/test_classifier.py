"""The scikit-learn classifier: scikit-learn's own checks, and what they do not look at."""

from __future__ import annotations

import copy
import json
import pickle
import signal
import threading
import time
from typing import Any

import joblib
import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tyrex._native import Network, set_threads
from tyrex.classifier import MLPClassifier
from tyrex.errors import ModelError, ParameterError

SMALL = {"hidden_layer_sizes": (16,), "epochs": 20, "random_state": 0}


def moons(rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_moons(rows, noise=0.15, random_state=1)
    return X.astype(np.float32), y


def three(rows: int = 200) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(
        rows, n_features=6, n_informative=4, n_classes=3, class_sep=2.0, random_state=1
    )
    return X.astype(np.float32), y


def print_of(**params: Any) -> Any:
    """The fingerprint of the network that a small classifier with these parameters becomes."""

    def fitted(X: Any, y: Any, sample_weight: Any = None) -> str:
        clf = MLPClassifier(**{**SMALL, **params}).fit(X, y, sample_weight=sample_weight)
        return clf.network_.fingerprint

    return fitted


# Every check of scikit-learn, and none expected to fail.
@parametrize_with_checks(
    [
        MLPClassifier(),
        MLPClassifier(16, "tanh", learning_rate=0.05, alpha=1e-4),
        MLPClassifier(class_weight="balanced", dropout=0.1, schedule={"cosine": {"floor": 0.1}}),
    ]
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("data", [moons, three])
@pytest.mark.parametrize("params", [{}, {"early_stopping": True}, {"class_weight": "balanced"}])
def test_a_weight_is_a_number_of_copies(data: Any, params: dict[str, Any]) -> None:
    X, y = data()
    draws = np.random.default_rng(0)
    weights = draws.integers(0, 4, len(X))
    fitted = print_of(**params)
    weighted = fitted(X, y, weights)
    assert fitted(X.repeat(weights, axis=0), y.repeat(weights)) == weighted
    order = draws.permutation(len(X))
    assert fitted(X[order], y[order], weights[order].astype(float)) == weighted
    assert fitted(X, y, np.ones(len(X))) == fitted(X, y) != weighted


def test_a_row_of_no_weight_is_absent() -> None:
    X, y = three()
    # Whole weights and others; all rows of one class have none.
    for factor in (1.0, 0.3):
        weights = np.where(y == 2, 0.0, factor)
        clf = MLPClassifier(**SMALL).fit(X, y, sample_weight=weights)
        alone = MLPClassifier(**SMALL).fit(X[y < 2], y[y < 2], sample_weight=weights[y < 2])
        assert clf.classes_.tolist() == [0, 1]
        assert clf.network_.fingerprint == alone.network_.fingerprint


def test_weights_that_are_no_counts_move_the_boundary() -> None:
    X, y = moons()
    share = {}
    for factor in (0.05, 1.0, 20.5):
        weights = np.where(y == 1, factor, 1.0)
        share[factor] = MLPClassifier(**SMALL).fit(X, y, weights).predict(X).mean()
    assert share[0.05] < 0.3 < share[1.0] < 0.7 < share[20.5]
    # Only the proportions matter.
    fitted = print_of(alpha=0.01)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X))
    assert fitted(X, y, weights) == fitted(X, y, weights * 4)


def test_class_weights_are_weights_of_rows() -> None:
    X, y = moons()
    X, y = X[: len(X) - 90], np.sort(y)[: len(X) - 90]
    balanced = print_of(class_weight="balanced")(X, y)
    zeros, ones = np.bincount(y)
    given = {0: len(y) / (2 * zeros), 1: len(y) / (2 * ones)}
    assert print_of(class_weight=given)(X, y) == balanced != print_of()(X, y)
    with pytest.raises(ValueError, match="class_weight"):
        print_of(class_weight={"good": 2.0})(X, y)


def test_the_same_seed_gives_the_same_bits() -> None:
    X, y = moons()
    fitted = print_of()(X, y)
    try:
        for threads in (1, 3):
            set_threads(threads)
            assert print_of()(X, y) == fitted
    finally:
        set_threads(2)
    assert print_of(random_state=1)(X, y) != fitted
    state = print_of(random_state=np.random.RandomState(3))(X, y)
    assert print_of(random_state=np.random.RandomState(3))(X, y) == state
    assert print_of(random_state=None)(X, y) != print_of(random_state=None)(X, y)


def test_a_warm_start_goes_on_from_the_weights() -> None:
    X, y = moons()
    clf = MLPClassifier(**SMALL, warm_start=True).fit(X, y)
    first, loss = clf.network_, clf.loss_
    clf.fit(X, y)
    assert clf.loss_ < loss and clf.n_iter_ == 20
    params = json.dumps({"hidden": [16], "epochs": 20})
    again, _, _ = Network.train((X, y.astype(np.uint32), None), params, 0, first)
    assert again.fingerprint == clf.network_.fingerprint
    # Without, a second fit is a first one.
    clf.set_params(warm_start=False).fit(X, y)
    assert clf.network_.fingerprint == first.fingerprint
    clf.set_params(warm_start=True)
    with pytest.raises(ValueError, match="goes on with the classes 0, 1, but y has 0, 1, 2"):
        clf.fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ParameterError, match="`hidden_layer_sizes` is .8., expected .16."):
        clf.set_params(hidden_layer_sizes=8).fit(X, y)
    with pytest.raises(ValueError, match="2 features"):
        clf.fit(X[:, :1], y)


@pytest.mark.parametrize("activation", ["relu", "identity", "logistic", "elu", "silu"])
@pytest.mark.parametrize("data", [moons, three])
def test_copies_have_the_same_bits(activation: str, data: Any, tmp_path: Any) -> None:
    X, y = data()
    # Neurons without any input that are all alike: nothing may be simplified away.
    clf = MLPClassifier((8, 8), activation, alpha=0.1, epochs=3, random_state=0).fit(X * 0, y)
    clf = clf.set_params(warm_start=True).fit(X, y)
    joblib.dump(clf, tmp_path / "clf")
    copies = [pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf), copy.copy(clf)]
    for other in [*copies, joblib.load(tmp_path / "clf")]:
        assert other.network_.fingerprint == clf.network_.fingerprint
        assert other.predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()
        assert other.loss_curve_ == clf.loss_curve_
    # They train alike.
    assert copies[0].fit(X, y).network_.fingerprint == clf.fit(X, y).network_.fingerprint
    assert not hasattr(clone(clf), "network_")


def test_a_damaged_pickle_is_refused() -> None:
    X, y = moons()
    network = MLPClassifier(**SMALL).fit(X, y).network_
    assert network.parameters == 2 * 16 + 16 + 16 + 1 and network.width == 2
    build, (width, layers, output) = network.__reduce__()
    assert build(width, layers, output).fingerprint == network.fingerprint
    for parts in [
        (width + 1, layers, output),
        (width, layers[1:], output),
        (width, [], output),
        (width, [(layers[0][0], b"", b""), *layers[1:]], output),
        (width, layers, '{"softmax":{"favourable":0}}'),
    ]:
        with pytest.raises((ModelError, ValueError)):
            build(*parts)
    with pytest.raises(ParameterError, match="the activation of a layer: unknown variant"):
        build(width, [('"step"', *layers[0][1:]), *layers[1:]], output)


@pytest.mark.parametrize("data", [moons, three])
def test_the_onnx_file_says_the_same(data: Any) -> None:
    X, y = data()
    clf = MLPClassifier(**SMALL).fit(X, y)
    shares = clf.predict_proba(X)
    last = len(clf.classes_) - 1
    for number in [None, *range(last + 1)]:
        session = onnxruntime.InferenceSession(clf.network_.to_onnx(number))
        score = session.run(["probability"], {"input": X})[0]
        expected = shares[:, last if number is None else number]
        np.testing.assert_allclose(score[:, 0], expected, atol=1e-6)
    with pytest.raises(ParameterError, match="`favourable` is 9, expected a class below"):
        clf.network_.to_onnx(9)


def test_two_threads_train_at_once() -> None:
    X, y = moons(2000)
    make = print_of(epochs=300)
    alone = make(X, y)
    together: list[str] = []
    threads = [threading.Thread(target=lambda: together.append(make(X, y))) for _ in range(2)]
    # This thread goes on meanwhile.
    beats = 0
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.001)
        beats += 1
    assert together == [alone, alone] and beats > 5


def test_ctrl_c_stops_the_training() -> None:
    X, y = moons()
    clf = MLPClassifier(epochs=1_000_000)
    began = time.monotonic()
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert time.monotonic() - began < 1.5
    assert not hasattr(clf, "network_")


@pytest.mark.parametrize("data", [moons, three])
def test_probabilities_are_shares(data: Any) -> None:
    X, y = data()
    names = np.array(["low", "mid", "top"])[y]
    clf = MLPClassifier(**SMALL).fit(X, names)
    shares = clf.predict_proba(X)
    assert shares.shape == (len(X), len(clf.classes_)) and shares.dtype == np.float32
    assert ((shares >= 0) & (shares <= 1)).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    assert (clf.predict(X) == clf.classes_[shares.argmax(axis=1)]).all()
    # The loss of the definition.
    assert log_loss(names, shares) == pytest.approx(clf.loss_, rel=0.2)
    # One row at a time: the same bits.
    assert np.vstack([clf.predict_proba(row[None]) for row in X[:20]]).tobytes() == (
        shares[:20].tobytes()
    )


def test_early_stopping_keeps_the_best_epoch() -> None:
    X, y = moons()
    clf = MLPClassifier(
        epochs=500, learning_rate=0.02, early_stopping=True, validation_fraction=0.3, random_state=0
    ).fit(X, y)
    assert clf.n_iter_ == len(clf.loss_curve_) == len(clf.validation_loss_curve_) < 500
    best = int(np.argmin(clf.validation_loss_curve_))
    assert clf.n_iter_ == best + 1 + clf.patience
    assert clf.loss_ == clf.loss_curve_[best]
    assert MLPClassifier(**SMALL).fit(X, y).validation_loss_curve_ is None


def test_it_learns() -> None:
    X, y = load_iris(return_X_y=True)
    clf = make_pipeline(StandardScaler(), MLPClassifier(random_state=0))
    assert cross_val_score(clf, X, y).mean() > 0.93
    X, y = moons()
    assert MLPClassifier(random_state=0).fit(X, y).score(*moons(500)) > 0.97
    # Without hidden layers it is a logistic regression.
    flat = MLPClassifier((), epochs=200, random_state=0).fit(X, y)
    assert flat.network_.parameters == 3 and 0.8 < flat.score(X, y) < 0.95


def applicants(rows: int = 1000) -> tuple[pd.DataFrame, pd.Series]:
    """Applicants like those of the German credit data: amounts, durations, categories."""
    draws = np.random.default_rng(7)
    table = pd.DataFrame(
        {
            "duration": draws.integers(4, 72, rows),
            "amount": draws.lognormal(7.8, 0.8, rows).round(),
            "age": draws.integers(19, 75, rows),
            "checking": draws.choice(["none", "low", "high"], rows),
            "purpose": draws.choice(["car", "radio", "business"], rows),
        }
    )
    logit = 1.6 - 0.06 * table.duration - table.amount / 9000 + 0.03 * table.age
    logit += table.checking.map({"none": 1.5, "low": -1.0, "high": 0.5})
    good = draws.random(rows) < 1 / (1 + np.exp(-1.5 * logit))
    return table, pd.Series(np.where(good, "good", "bad"))


def test_it_learns_from_a_table_in_a_pipeline() -> None:
    table, label = applicants()
    columns = ["checking", "purpose"]
    before = make_column_transformer(
        (OneHotEncoder(), columns), remainder=StandardScaler(), sparse_threshold=0
    )
    clf = make_pipeline(before, MLPClassifier(epochs=15, alpha=1e-3, random_state=0))
    most = label.value_counts(normalize=True).max()
    assert cross_val_score(clf, table, label, cv=3).mean() > most + 0.1
    numbers = table.drop(columns=columns) / 1000
    clf = MLPClassifier(**SMALL).fit(numbers, label)
    assert clf.feature_names_in_.tolist() == ["duration", "amount", "age"]
    assert clf.n_features_in_ == 3
    assert clf.classes_.tolist() == ["bad", "good"]
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(numbers[["age", "amount", "duration"]])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"hidden_layer_sizes": (8, 0)}, "`hidden_layer_sizes` is 0, expected at least 1"),
        ({"hidden_layer_sizes": (2.5,)}, "`hidden_layer_sizes` is 2.5, expected a whole number"),
        ({"hidden_layer_sizes": 10**9}, "`hidden_layer_sizes` is .1000000000., expected widths"),
        ({"hidden_layer_sizes": None}, "`hidden_layer_sizes` is None, expected a whole number"),
        ({"hidden_layer_sizes": 2**64}, "expected less than 2\\*\\*64"),
        ({"activation": "step"}, "unknown variant `step`, expected one of"),
        ({"activation": None}, "`activation` is None, expected a name or a dict"),
        ({"activation": {"leaky-relu": {"slope": "a"}}}, "`activation slope` is 'a', expected"),
        ({"learning_rate": 0}, "`learning_rate` is 0, expected a positive number"),
        ({"learning_rate": "adaptive"}, "`learning_rate` is 'adaptive', expected a finite number"),
        ({"learning_rate": float("nan")}, "`learning_rate` is nan, expected a finite number"),
        ({"learning_rate": 1e30}, "lower the learning rate"),
        ({"batch_size": "auto"}, "`batch_size` is 'auto', expected a whole number"),
        ({"batch_size": -1}, "`batch_size` is -1, expected at least 1"),
        ({"epochs": 0}, "`epochs` is 0, expected at least 1"),
        ({"epochs": True}, "`epochs` is True, expected a whole number"),
        ({"alpha": -1}, "`alpha` is -1, expected a number of at least 0"),
        ({"dropout": 1.0}, "`dropout` is 1, expected a number in"),
        ({"class_weight": {0: -1, 1: 1}}, "`class_weight` is"),
        ({"class_weight": "even"}, "balanced"),
        ({"early_stopping": True, "validation_fraction": 1.5}, "`validation_fraction` is 1.5"),
        ({"early_stopping": True, "patience": 0}, "`patience` is 0, expected at least 1"),
        ({"schedule": "adaptive"}, "unknown variant `adaptive`"),
        ({"schedule": {"cosine": {"floor": 2}}}, "`schedule floor` is 2, expected"),
        ({"random_state": -1}, "`random_state` is -1, expected at least 0"),
        ({"random_state": "a"}, "cannot be used to seed"),
    ],
    ids=str,
)
def test_parameters_out_of_range(params: dict[str, Any], message: str) -> None:
    X, y = moons(40)
    clf = MLPClassifier(**{"epochs": 2, **params})
    with pytest.raises(ValueError, match=message):
        clf.fit(X, y)


@pytest.mark.parametrize(
    "params",
    [
        {"activation": {"leaky-relu": {"slope": 0.2}}},
        {"activation": "gelu-tanh"},
        {"dropout": 0.2},
        {"schedule": {"exponential": {"factor": 0.97}}},
        {"schedule": {"step": {"every": 10, "factor": 0.5}}},
        {"schedule": {"cosine": {"floor": 0.1}}},
        {"hidden_layer_sizes": np.int64(24)},
        {"hidden_layer_sizes": np.array([16, 8])},
    ],
    ids=str,
)
def test_every_choice_learns(params: dict[str, Any]) -> None:
    X, y = moons()
    usual = {"epochs": 60, "learning_rate": 0.05}
    clf = MLPClassifier(**{**SMALL, **usual, **params})
    assert clf.fit(X, y).score(X, y) > 0.93
    assert clf.network_.fingerprint != print_of(**usual)(X, y)


def test_bad_rows() -> None:
    X, y = moons(40)
    clf = MLPClassifier(**SMALL)
    with pytest.raises(ValueError, match="have one class, 1; expected at least two"):
        clf.fit(X, y * 0 + 1)
    with pytest.raises(ValueError, match="Negative values"):
        clf.fit(X, y, sample_weight=np.where(y == 0, -1, 1))
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="too large for dtype"):
        clf.fit(X.astype(float) * 1e300, y)
    clf.fit(X, y)
    with pytest.raises(
        ValueError, match="columns, as many as the network takes: expected 2, got 3"
    ):
        clf.network_.probabilities(np.zeros((1, 3), np.float32))


def test_progress_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tyrex.progress.PATIENCE", 0.0)
    X, y = moons(2000)
    MLPClassifier(epochs=40, verbose=True).fit(X, y)
    shown = capsys.readouterr().err
    assert "training [" in shown and "40/40" in shown
    MLPClassifier(epochs=40).fit(X, y)
    assert capsys.readouterr().err == ""
