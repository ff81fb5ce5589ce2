"""Trains small models with the real packages, saves them in the packages' own formats, and records
what the packages predict.

    python make_files.py FOLDER

writes one model file per case and FOLDER/cases.json, a list with one entry per case: the model
file, how to import it, 1000 rows of input with missing values, and the package's probability of the
favourable class for each row.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

ROWS = 1000
COLUMNS = 6
PURPOSES = ["car", "house", "school", "other", "boat"]


class Cases:
    """Collects model files with their rows and the packages' predictions."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.cases = []

    def add(self, file, rows, expected, favourable=None, logits=False):
        """`rows`: a matrix or a data frame."""
        rows = pd.DataFrame(rows)
        columns = [[cell(value) for value in rows[name].tolist()] for name in rows]
        assert len(rows) == ROWS and len(expected) == ROWS
        self.cases.append(
            {
                "name": file,
                "file": file,
                "kind": "trees",
                "operators": [],
                "output": None,
                "favourable": favourable,
                "logits": logits,
                "columns": columns,
                "expected": [float(p) for p in expected],
            }
        )

    def path(self, file):
        return str(self.folder / file)

    def write(self):
        (self.folder / "cases.json").write_text(json.dumps(self.cases))


def cell(value):
    return "nan" if value is None or value != value else value


def numbers(seed, rows=ROWS, missing=True):
    """Rows inside and outside the range the models are trained on, exact in 32 bits."""
    random = np.random.default_rng(seed)
    values = random.normal(0.0, 2.0, size=(rows, COLUMNS)).astype(np.float32)
    values[:, 4] = np.round(values[:, 4])  # zeros
    if missing:
        values[random.random(values.shape) < 0.08] = np.nan
    return values


def labels(x, classes=2):
    known = np.nan_to_num(x, nan=0.7)
    score = known[:, 0] - 0.7 * known[:, 1] + 0.3 * known[:, 2] * known[:, 3] + known[:, 4]
    edges = np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1])
    return np.searchsorted(edges, score).astype(np.int64)


def people(seed, rows=ROWS):
    """Numbers, texts and whole numbers that are categories."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, rows).astype(np.float32),
            "purpose": pd.Categorical(random.choice(PURPOSES, rows), categories=PURPOSES),
            "income": random.lognormal(8, 0.6, rows).astype(np.float32),
            "branch": pd.Categorical(random.integers(3, 33, rows), categories=range(3, 33)),
        }
    )
    frame.loc[random.random(rows) < 0.1, "income"] = np.nan
    frame.loc[random.random(rows) < 0.1, "purpose"] = None
    return frame


def repaid(frame):
    wealth = frame["income"].fillna(3000).to_numpy() > 3000
    purpose = frame["purpose"].isin(["car", "school"]).to_numpy()
    branch = np.isin(frame["branch"].astype(int), [3, 7, 8, 12, 19, 20, 31])
    return (wealth ^ purpose ^ branch).astype(np.int64)


# ------------------------------------------------------------------------------------------ XGBoost


def xgboost_models(cases):
    import xgboost

    def both(name, model, rows, expected, **options):
        for end in ["json", "ubj"]:
            model.save_model(cases.path(f"{name}.{end}"))
            cases.add(f"{name}.{end}", rows, expected, **options)

    train, rows = numbers(1), numbers(2)
    two, three = labels(train), labels(train, 3)
    common = {"n_estimators": 40, "max_depth": 5, "n_jobs": 1}
    model = xgboost.XGBClassifier(**common).fit(train, two)
    both("xgboost-binary", model, rows, model.predict_proba(rows)[:, 1])
    both("xgboost-first-class", model, rows, model.predict_proba(rows)[:, 0], favourable=0)
    for objective in ["binary:logistic", "reg:logistic", "binary:logitraw"]:
        params = {"objective": objective, "max_depth": 4, "base_score": 0.2, "nthread": 1}
        booster = xgboost.train(params, xgboost.DMatrix(train, two), 20)
        expected = booster.predict(xgboost.DMatrix(rows)).astype(np.float64)
        if objective == "binary:logitraw":
            expected = 1.0 / (1.0 + np.exp(-expected))
        both(f"xgboost-{objective.replace(':', '-')}", booster, rows, expected)
    model = xgboost.XGBClassifier(**common).fit(train, three)
    both("xgboost-softprob", model, rows, model.predict_proba(rows)[:, 2], favourable=2)
    params = {"objective": "multi:softmax", "num_class": 3, "max_depth": 4, "nthread": 1}
    booster = xgboost.train(params, xgboost.DMatrix(train, three), 15)
    margins = booster.predict(xgboost.DMatrix(rows), output_margin=True).astype(np.float64)
    shares = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    both("xgboost-softmax", booster, rows, shares[:, 0], favourable=0)
    dart = {"booster": "dart", "rate_drop": 0.4, "one_drop": True, "random_state": 1}
    for suffix, target, favourable in [("", two, None), ("-three-classes", three, 1)]:
        model = xgboost.XGBClassifier(**common, **dart).fit(train, target)
        expected = model.predict_proba(rows)[:, 1]
        both(f"xgboost-dart{suffix}", model, rows, expected, favourable=favourable)
    model = xgboost.XGBRFClassifier(n_estimators=30, max_depth=6, n_jobs=1).fit(train, two)
    both("xgboost-forest", model, rows, model.predict_proba(rows)[:, 1])
    # Nodes that are pruned stay in the file's lists.
    model = xgboost.XGBClassifier(**common, tree_method="exact", gamma=4.0).fit(train, two)
    both("xgboost-pruned", model, rows, model.predict_proba(rows)[:, 1])
    fresh = numbers(3)
    for target, suffix, favourable in [(two, "", None), (three, "-three-classes", 2)]:
        model = xgboost.XGBClassifier(
            **common, early_stopping_rounds=4, learning_rate=0.7, num_parallel_tree=2
        )
        watched = [(fresh, labels(fresh, len(set(target))))]
        model.fit(train, target, eval_set=watched, verbose=False)
        assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
        column = 1 if favourable is None else favourable
        expected = model.predict_proba(rows)[:, column]
        both(f"xgboost-stopped{suffix}", model, rows, expected, favourable=favourable)
        booster = model.get_booster()
        expected = booster.predict(xgboost.DMatrix(rows))
        expected = expected if expected.ndim == 1 else expected[:, column]
        both(f"xgboost-stopped-booster{suffix}", booster, rows, expected, favourable=favourable)
    table, fresh = people(4), people(5)
    for name, most in [("sets", 1), ("one-hot", 100)]:
        model = xgboost.XGBClassifier(**common, enable_categorical=True, max_cat_to_onehot=most)
        model.fit(table, repaid(table))
        both(f"xgboost-categories-{name}", model, fresh, model.predict_proba(fresh)[:, 1])
    # Categories as codes: the file has no names for them.
    def codes(frame):
        coded = frame.copy()
        for column in ["purpose", "branch"]:
            coded[column] = frame[column].cat.codes.replace(-1, np.nan).astype(np.float32)
        return coded

    matrix = xgboost.DMatrix(
        codes(table),
        repaid(table),
        feature_types=["q", "c", "q", "c"],
        enable_categorical=True,
    )
    booster = xgboost.train({"objective": "binary:logistic", "max_cat_to_onehot": 1}, matrix, 20)
    rows = codes(fresh)
    scored = booster.predict(
        xgboost.DMatrix(rows, feature_types=["q", "c", "q", "c"], enable_categorical=True)
    )
    both("xgboost-codes", booster, rows, scored)


def main(folder, *wanted):
    warnings.filterwarnings("ignore")
    cases = Cases(folder)
    cases.folder.mkdir(parents=True, exist_ok=True)
    makers = {"xgboost": xgboost_models}
    for name, make in makers.items():
        if not wanted or name in wanted:
            make(cases)
    cases.write()


main(*sys.argv[1:])
