"""The usual retrains, with the real packages."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tyrex
from tyrex import refits

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

ROWS = 300


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    draw = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "age": draw.integers(20, 70, ROWS),
            "income": draw.uniform(0, 10, ROWS).round(2),
            "rent": draw.uniform(0, 3, ROWS).round(2),
        }
    )
    frame.loc[draw.random(ROWS) < 0.1, "income"] = np.nan
    worth = frame["income"].fillna(5) + 0.03 * frame["age"] - frame["rent"]
    frame["paid"] = (worth + draw.normal(0, 1.0, ROWS) > 5).astype(int)
    return frame


SAMPLING = {"subsample": 0.7, "n_estimators": 12, "n_jobs": 1}

#: Estimators whose training depends on their seed.
MODELS: dict[str, Any] = {
    "xgboost": xgboost.XGBClassifier(max_depth=3, **SAMPLING),
    "lightgbm": lightgbm.LGBMClassifier(subsample_freq=1, num_leaves=6, verbose=-1, **SAMPLING),
    "forest": RandomForestClassifier(12, max_depth=4),
    "boosting": GradientBoostingClassifier(n_estimators=12, subsample=0.7),
    "hist boosting": HistGradientBoostingClassifier(max_iter=12, max_features=0.5),
    "pipeline": make_pipeline(StandardScaler(), RandomForestClassifier(12, max_depth=4)),
}


def inputs(name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The features; `GradientBoostingClassifier` takes no missing values."""
    features = rows[["age", "income", "rent"]]
    return features.fillna(5.0) if name == "boosting" else features


@pytest.mark.parametrize("name", MODELS)
def test_a_new_seed_is_another_training_on_the_same_rows(name: str, rows: pd.DataFrame) -> None:
    x, y = inputs(name, rows), rows["paid"]
    refit = refits.new_seed(MODELS[name], x, y)
    first, again, other = refit(7), refit(7), refit(2**32 - 9)
    assert np.array_equal(first.predict_proba(x), again.predict_proba(x))
    assert not np.array_equal(first.predict_proba(x), other.predict_proba(x))
    last = MODELS[name].steps[-1][1] if name == "pipeline" else MODELS[name]
    assert last.random_state is None and not hasattr(last, "classes_"), "the model was changed"


@pytest.mark.parametrize("name", MODELS)
def test_a_bootstrap_trains_on_the_drawn_rows(name: str, rows: pd.DataFrame) -> None:
    x, y = inputs(name, rows), rows["paid"]
    weights = np.linspace(1, 2, ROWS)
    drawn = np.random.default_rng(1).integers(0, ROWS, ROWS)
    fit = {} if name == "pipeline" else {"sample_weight": weights}
    found = refits.bootstrap(MODELS[name], x, y, **fit)(11, drawn)
    own = clone(MODELS[name])
    own.set_params(**{key: 11 for key in own.get_params() if key.endswith("random_state")})
    fit = {key: value[drawn] for key, value in fit.items()}
    own.fit(x.iloc[drawn], y.iloc[drawn], **fit)
    assert np.array_equal(found.predict_proba(x), own.predict_proba(x))


def test_another_period_draws_a_window(rows: pd.DataFrame) -> None:
    months = np.repeat(["2025-10", "2025-11", "2025-12", "2026-01", "2026-02"], ROWS // 5)
    frame = rows.assign(month=np.random.default_rng(2).permutation(months))
    refit = refits.another_period(MODELS["forest"], frame, "paid", "month", width=2)
    first = set()
    for seed in range(60):
        drawn = refit.drawn(seed)
        found = sorted(set(frame["month"].iloc[drawn]))
        assert len(found) == 2 and len(drawn) == 2 * ROWS // 5
        assert sorted(set(months)).index(found[1]) - sorted(set(months)).index(found[0]) == 1
        first.add(found[0])
    assert len(first) == 4, "every window is drawn"
    model = refit(3)
    assert list(model.feature_names_in_) == ["age", "income", "rent"]
    assert np.array_equal(
        model.predict_proba(rows[["age", "income", "rent"]]),
        refit(3).predict_proba(rows[["age", "income", "rent"]]),
    )


def test_matrices_and_pickles(rows: pd.DataFrame) -> None:
    x, y = rows[["age", "rent"]].to_numpy(), rows["paid"].to_numpy()
    refit = refits.bootstrap(RandomForestClassifier(5), x, y)
    again = pickle.loads(pickle.dumps(refit))
    drawn = np.arange(0, ROWS, 2)
    assert np.array_equal(refit(1, drawn).predict_proba(x), again(1, list(drawn)).predict_proba(x))


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "forest"])
def test_retrained_models_are_native(name: str, rows: pd.DataFrame) -> None:
    if name == "forest":
        # scikit-learn has thresholds within one step of a decimal's 32 bits, which the common scale
        # cannot always tell from the decimal.
        grid = (rows[["income", "rent"]] * 64).round() / 64
        rows = rows.assign(income=grid["income"], rent=grid["rent"])
    x, y = inputs(name, rows), rows["paid"]
    model = refits.new_seed(MODELS[name], x, y)(0)
    explainer = tyrex.Explainer(model, rows, label="paid")
    assert explainer.kind == "trees"
    for refit in [
        refits.new_seed(model, x, y),
        refits.bootstrap(model, x, y),
        refits.another_period(model, x, y, rows["age"] // 10),
    ]:
        seen: list[tuple[int, int]] = []

        def progress(done: int, total: int, seen: list[tuple[int, int]] = seen) -> None:
            seen.append((done, total))

        ensemble = tyrex.retrain(explainer, 4, refit=refit, jobs=2, progress=progress)
        assert len(ensemble) == 4 and seen[-1][0] == seen[-1][1] >= 4
        scores = ensemble.score(x)
        assert all(not np.array_equal(scores[0], other) for other in scores[1:])


def test_refusals(rows: pd.DataFrame) -> None:
    x, y = rows[["age", "rent"]], rows["paid"]
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(x, y), 2)
    for make, error, words in [
        (lambda: refits.new_seed(booster, x, y), tyrex.ParameterError, "Booster, expected an est"),
        (lambda: refits.bootstrap(None, x, y), tyrex.ParameterError, "NoneType, expected an est"),
        (
            lambda: refits.new_seed(make_pipeline(StandardScaler()), x, y),
            tyrex.ParameterError,
            "has no `random_state`",
        ),
        (lambda: refits.bootstrap(MODELS["forest"], x, y[:9]), tyrex.DataError, "9 labels for 300"),
        (
            lambda: refits.bootstrap(MODELS["forest"], x, "paid"),
            tyrex.DataError,
            "no column 'paid'",
        ),
        (
            lambda: refits.another_period(MODELS["forest"], x, y, np.zeros(ROWS)),
            tyrex.ParameterError,
            "has 1 periods, expected more than the 1",
        ),
        (
            lambda: refits.another_period(MODELS["forest"], x, y, [1, 2, 3]),
            tyrex.DataError,
            "3 periods for 300 rows",
        ),
    ]:
        with pytest.raises(error, match=words):
            make()
    assert refits.new_seed(LogisticRegression(), x, y).training.seeds == ("random_state",)
