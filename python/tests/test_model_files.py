"""The own files of boosting packages, as the models of explainers."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tyrex

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

ROWS = 400


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    draw = np.random.default_rng(8)
    frame = pd.DataFrame(
        {
            "age in years": draw.integers(20, 70, ROWS),
            "income": draw.uniform(0, 10, ROWS).round(2),
            "job": pd.Categorical(draw.choice(["clerk", "cook", "none", "smith"], ROWS)),
            "owner": draw.random(ROWS) < 0.4,
        }
    )
    frame.loc[draw.random(ROWS) < 0.1, "income"] = np.nan
    worth = frame["income"].fillna(5) + 3 * frame["job"].isin(["clerk", "smith"])
    frame["paid"] = (worth + frame["owner"] + draw.normal(0, 1, ROWS) > 6.5).astype(int)
    return frame


def trained(kind: str, rows: pd.DataFrame) -> Any:
    features, label = rows.drop(columns="paid"), rows["paid"]
    if kind == "xgboost":
        model = xgboost.XGBClassifier(
            n_estimators=20, max_depth=4, enable_categorical=True, max_cat_to_onehot=1, n_jobs=1
        )
    else:
        model = lightgbm.LGBMClassifier(
            n_estimators=20, num_leaves=8, min_data_per_group=5, verbose=-1, n_jobs=1
        )
    return model.fit(features, label)


@pytest.mark.parametrize("file", ["m.ubj", "m.json", "m.txt"])
def test_files_score_as_the_package_does(
    file: str, rows: pd.DataFrame, tmp_path: pathlib.Path
) -> None:
    model = trained("lightgbm" if file == "m.txt" else "xgboost", rows)
    path = tmp_path / file
    getattr(model, "booster_", model).save_model(path)
    own = model.predict_proba(rows.drop(columns="paid"))[:, 1]
    for source in [path, path.read_bytes()]:
        explainer = tyrex.Explainer(source, rows, label="paid", favourable=1)
        assert explainer.kind == "trees"
        assert np.abs(explainer.score() - own).max() < 1e-6
    advice = explainer.explain(limit=3, method="nn")
    assert any(each.found for each in advice)


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_models_need_no_converter(
    kind: str, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(name: str, *_: Any) -> Any:
        raise AssertionError(f"{name} was imported")

    model = trained(kind, rows)
    monkeypatch.setattr("tyrex.models.flags.need", refused)
    for given in [model, model.get_booster() if kind == "xgboost" else model.booster_]:
        with monkeypatch.context() as patched:
            patched.setitem(__import__("sys").modules, "onnxmltools", None)
            explainer = tyrex.Explainer(given, rows, label="paid", favourable=1)
        assert explainer.kind == "trees" and explainer.deviation < 1e-6
    assert explainer.schema.features == ["age in years", "income", "job", "owner"]


def test_a_scorecard(rows: pd.DataFrame, tmp_path: pathlib.Path) -> None:
    card = {
        "scorecard": 1,
        "factor": 20.0,
        "offset": 30.0,
        "variables": [
            {
                "name": "income",
                "missing": 10.0,
                "bins": [{"below": 4.5, "points": 5.0}, {"points": 40.0}],
            },
            {
                "name": "job",
                "missing": 0.0,
                "bins": [
                    {"levels": ["none", "cook"], "points": -10.0},
                    {"levels": ["clerk", "smith"], "points": 25.0},
                ],
            },
        ],
    }
    path = tmp_path / "card.json"
    path.write_text(json.dumps(card))
    explainer = tyrex.Explainer(path, rows, label="paid", favourable=1)
    income = np.where(rows["income"].isna(), 10, np.where(rows["income"] < 4.5, 5, 40))
    points = income + np.where(rows["job"].isin(["none", "cook"]), -10, 25)
    expected = 1 / (1 + np.exp(-(points - 30) / 20))
    assert np.abs(explainer.score() - expected).max() < 1e-6


def test_other_files_are_named(rows: pd.DataFrame, tmp_path: pathlib.Path) -> None:
    model = trained("lightgbm", rows)
    for content, words in [
        (json.dumps(model.booster_.dump_model()).encode(), "LightGBM's `dump_model`"),
        (b"\x80\x04\x95", "a pickle of Python"),
        (b"CBM1", "CatBoost's binary format"),
        (b"{}", "tyrex reads ONNX, scorecards"),
    ]:
        with pytest.raises(tyrex.ModelError, match=words):
            tyrex.Explainer(content, rows, label="paid")
