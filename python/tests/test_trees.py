"""scikit-learn's trees are native and exact, and fresh trees certify a forest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, tree
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tyrex
from tyrex import refits

pytest.importorskip("onnx")

ROWS = 1000
COLUMNS = ["age", "income", "rent", "debt"]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    draw = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "age": draw.integers(20, 70, ROWS),
            # Numbers with exact 32 bits: scikit-learn has thresholds within one step of a decimal's
            # 32 bits, which the common scale cannot always tell from the decimal.
            "income": (draw.uniform(0, 10, ROWS) * 8).round() / 8,
            "rent": (draw.uniform(0, 3, ROWS) * 64).round() / 64,
            "debt": (draw.normal(0, 1, ROWS) * 256).round() / 256,
        }
    )
    worth = frame["income"] + 0.03 * frame["age"] - frame["rent"] - frame["debt"]
    frame["paid"] = np.digitize(worth + draw.normal(0, 1.0, ROWS), [3.0, 6.0])
    for column in COLUMNS:
        frame.loc[draw.random(ROWS) < 0.1, column] = np.nan
    return frame


FORESTS: dict[str, Any] = {
    "random forest": ensemble.RandomForestClassifier(30),
    "leaves of several rows": ensemble.RandomForestClassifier(30, min_samples_leaf=7),
    "extra trees": ensemble.ExtraTreesClassifier(30),
    "tree": tree.DecisionTreeClassifier(),
    "extra tree": tree.ExtraTreeClassifier(),
    "weighted": ensemble.RandomForestClassifier(30, class_weight="balanced_subsample"),
}
BOOSTED: dict[str, Any] = {
    "boosting": ensemble.GradientBoostingClassifier(n_estimators=30),
    "exponential": ensemble.GradientBoostingClassifier(n_estimators=30, loss="exponential"),
    "from zero": ensemble.GradientBoostingClassifier(n_estimators=30, init="zero"),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("piped", [False, True], ids=["alone", "pipeline"])
@pytest.mark.parametrize("name", [*FORESTS, *BOOSTED])
def test_scores_are_those_of_the_package(
    name: str, piped: bool, classes: int, rows: pd.DataFrame
) -> None:
    if name == "exponential" and classes == 3:
        pytest.skip("scikit-learn has no such loss for three classes")
    x, y = rows[COLUMNS], rows["paid"].clip(3 - classes) - (3 - classes)
    if name in BOOSTED:  # takes no missing values
        x = x.fillna(1.5)
    model = clone({**FORESTS, **BOOSTED}[name])
    model = make_pipeline(StandardScaler(), model) if piped else model
    model.set_params(**{key: 1 for key in model.get_params() if key.endswith("random_state")})
    model.fit(x, y)
    explainer = tyrex.Explainer(model, x, favourable=classes - 1)
    own = model.predict_proba(x)[:, classes - 1]
    assert explainer.kind == "trees"
    assert explainer.deviation <= 1e-6
    assert np.abs(explainer.score() - own).max() <= 1e-6
    # Rows that the model has not seen, with missing values in each column.
    draw = np.random.default_rng(9)
    fresh = pd.DataFrame({name: draw.permutation(x[name].to_numpy()) for name in COLUMNS})
    assert np.abs(explainer.score(fresh) - model.predict_proba(fresh)[:, classes - 1]).max() <= 1e-6


def test_boosting_on_another_model_is_a_black_box(rows: pd.DataFrame) -> None:
    x, y = rows[COLUMNS].fillna(1.5), rows["paid"].clip(upper=1)
    first = ensemble.RandomForestClassifier(5, random_state=0)
    model = ensemble.GradientBoostingClassifier(n_estimators=5, init=first).fit(x, y)
    with pytest.warns(UserWarning, match="another model's scores"):
        assert tyrex.Explainer(model, x, favourable=1).kind == "function"


def forest(certificate: dict[str, Any]) -> dict[str, Any]:
    (tier,) = [tier for tier in certificate["tiers"] if tier["tier"] == "forest"]
    return dict(tier)


@pytest.mark.parametrize("leaf", [1, 9])
def test_fresh_trees_certify_a_forest(leaf: int, rows: pd.DataFrame) -> None:
    x, y = rows[COLUMNS], rows["paid"].clip(upper=1)
    model = ensemble.RandomForestClassifier(40, min_samples_leaf=leaf, random_state=0, max_depth=8)
    if leaf == 1:
        model.set_params(max_depth=None)
    model.fit(x, y)
    explainer = tyrex.Explainer(model, x.assign(paid=y), label="paid", favourable=1)
    refit = refits.new_seed(model, x, y)
    fresh = tyrex.retrain(explainer, 10, refit=refit, seed=5)
    points = x.iloc[:60]
    certificates = tyrex.certify(explainer, points, fresh, steered=False)
    judges = [refit(1000 + seed).predict_proba(points)[:, 1] >= 0.5 for seed in range(100)]
    kept = np.mean(judges, axis=0)
    contradicted = better = 0
    for place, certificate in enumerate(certificates):
        assert certificate is not None
        tier = forest(certificate)
        assert (tier["fresh_trees"], tier["forests"], tier["trees"]) == (400, 10, 40)
        bound, count = tier["probability"], round(100 * kept[place])
        tail = sum(
            math.comb(100, i) * bound**i * (1 - bound) ** (100 - i) for i in range(count + 1)
        )
        contradicted += tail < 0.01
        (whole,) = [each for each in certificate["tiers"] if each["tier"] == "ensemble"]
        better += bound > whole["probability"]
        broken = [each for each in tier["assumptions"] if each["standing"] == "broken"]
        assert not broken, broken
        assert (tier["verdict"] == "certified") == (bound >= 0.5)
    # Each bound is wrong with a probability of at most 0.05; those of one run share their trees.
    assert contradicted <= 6, contradicted
    assert better >= 20, better
    assert all(each.confirmed for each in tyrex.verify(explainer, certificates, fresh))


def test_forests_of_other_rows_certify_nothing_by_their_trees(rows: pd.DataFrame) -> None:
    x, y = rows[COLUMNS], rows["paid"].clip(upper=1)
    model = ensemble.RandomForestClassifier(60, random_state=0).fit(x, y)
    explainer = tyrex.Explainer(model, x.assign(paid=y), label="paid", favourable=1)
    fresh = tyrex.retrain(explainer, 12, refit=refits.bootstrap(model, x, y), seed=5)
    (certificate,) = tyrex.certify(explainer, x.iloc[[3]], fresh)
    assert certificate is not None
    tier = forest(certificate)
    (trees,) = [each for each in tier["assumptions"] if each["assumes"] == "independent-trees"]
    assert trees["standing"] == "broken" and trees["p_value"] <= 0.01
    assert tier["verdict"] in ("empirical", "vacuous")
