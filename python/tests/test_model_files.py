"""The own files of boosting packages, as the models of explainers."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tyrex
from conftest import REPOSITORY

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


def test_an_income_may_be_given_and_the_advice_is_proved(tmp_path: pathlib.Path) -> None:
    incomes = [None, *(100.0 + 200 * row for row in range(40))]
    rows = pd.DataFrame({"income": incomes, "debt": [row % 10 for row in range(41)]})
    card = {
        "scorecard": 1,
        "factor": 10.0,
        "offset": 45.0,
        "variables": [
            {
                "name": "income",
                "missing": 20.0,
                "bins": [{"below": 3000, "points": 5.0}, {"points": 40.0}],
            },
            {"name": "debt", "missing": 0.0, "bins": [{"below": 2, "points": 30}, {"points": 6}]},
        ],
    }
    path = tmp_path / "card.json"
    path.write_text(json.dumps(card))
    text = """
format_version = 1
[model]
input = "raw"
[label]
column = "paid"
favourable = "yes"
[[feature]]
name = "income"
kind = "integer"
range = [0, 9000]
missing = "pass"
may_become = "known"
[[feature]]
name = "debt"
kind = "integer"
range = [0, 9]
action = "fixed"
"""
    schema = tyrex.Schema.of(text)
    assert "free, may become known" in repr(schema)
    explainer = tyrex.Explainer(path, rows, schema=schema)
    applicants = pd.DataFrame({"income": [None, 100.0], "debt": [5, 5]})
    found = explainer.explain(applicants, method="min-cost", prove=True, models=0)
    document = json.loads(found.to_json() or "")
    advice = [applicant["advice"] for applicant in document["rows"]]
    clauses = [each["changes"][0]["words"]["clause"] for each in advice]
    assert clauses == ["provide income: 3000", "raise income from 100 to 3000"]
    assert all(each["proof"]["optimal"] for each in advice)


def test_a_scorecard_of_optbinning(rows: pd.DataFrame, tmp_path: pathlib.Path) -> None:
    """The function of docs/model-files.md. The package is large, so `./check` has none."""
    optbinning = pytest.importorskip("optbinning")
    from sklearn.linear_model import LogisticRegression

    page = (REPOSITORY / "docs" / "model-files.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```py\n(def document.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {"np": np}
    exec(compile(block, "docs/model-files.md", "exec"), names)
    features = rows[["income", "job"]].copy()
    # The class 1 is the event that the card's points warn of.
    defaulted = 1 - rows["paid"]
    card = optbinning.Scorecard(
        binning_process=optbinning.BinningProcess(
            list(features.columns), categorical_variables=["job"]
        ),
        estimator=LogisticRegression(),
        scaling_method="pdo_odds",
        scaling_method_params={"pdo": 20, "odds": 50, "scorecard_points": 600},
    )
    card.fit(features, defaulted)
    path = tmp_path / "card.json"
    path.write_text(json.dumps(names["document"](card, features, ["no", "yes"])))
    frame = features.assign(paid=np.where(rows["paid"] == 1, "yes", "no"))
    explainer = tyrex.Explainer(path, frame, label="paid", favourable="yes")
    expected = card.predict_proba(features)[:, 0]
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
