"""Trains small models with CatBoost, saves them as JSON, and records what CatBoost predicts.

    python make_catboost.py FOLDER

writes FOLDER/NAME.json for every model, FOLDER/rows.csv (1000 rows with missing values, which are
empty) and FOLDER/expected.csv (the probability of one class of each model, with its number after
the name). The files in `catboost/` were made with catboost 1.2.10; the test that reads them does
not need the package.
"""

import csv
import json
import sys
from pathlib import Path

import catboost
import numpy as np

ROWS = 1000
NAMES = ["age", "income", "share of debt", "rooms"]


def rows(seed):
    random = np.random.default_rng(seed)
    values = random.normal(0.0, 2.0, size=(ROWS, 4)).round(2)
    values[:, 3] = values[:, 3].round()
    values[random.random(values.shape) < 0.08] = np.nan
    return values.astype(np.float32)


def labels(x, classes=2):
    known = np.nan_to_num(x, nan=0.7)
    score = known[:, 0] - 0.7 * known[:, 1] + 0.3 * known[:, 2] * known[:, 3] + known[:, 3]
    edges = np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1])
    return np.searchsorted(edges, score)


def main(folder):
    folder = Path(folder)
    train, fresh = rows(1), rows(2)
    two, three = labels(train), labels(train, 3)
    words = np.array(["low", "mid", "top"])[three]
    expected = {}

    def add(name, data, target, favourable, **options):
        options = {"iterations": 20, "depth": 4, "random_seed": 1, "thread_count": 1, **options}
        model = catboost.CatBoostClassifier(verbose=0, allow_writing_files=False, **options)
        model.fit(data, target)
        path = folder / f"{name}.json"
        model.save_model(path, format="json")
        # Most of the parameters are not read.
        document = json.loads(path.read_text())
        info = document["model_info"]
        kept = {"loss_function": info["params"]["loss_function"]}
        document["model_info"] = {"params": kept, "class_params": info["class_params"]}
        for tree in document["oblivious_trees"]:
            del tree["leaf_weights"]
        path.write_text(json.dumps(document, separators=(",", ":")) + "\n")
        expected[f"{name},{favourable}"] = model.predict_proba(fresh)[:, favourable]

    add("binary", train, two, 1)
    add("first-class", catboost.Pool(train, two, feature_names=NAMES), None, 0)
    add("missing-above", train, two, 1, nan_mode="Max")
    whole = np.nan_to_num(train, nan=0.5)
    add("missing-unknown", whole, two, 1)
    add("entropy", train, two * 0.8 + 0.1, 1, loss_function="CrossEntropy")
    add("bias", train, two, 1, boost_from_average=True, ignored_features=[1])
    add("three-classes", train, words, 2, loss_function="MultiClass", iterations=10)
    add("one-against-all", train, three, 1, loss_function="MultiClassOneVsAll", iterations=10)
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in fresh:
            writer.writerow(["" if value != value else f"{value:g}" for value in row])
    with (folder / "expected.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for name, shares in expected.items():
            writer.writerow([*name.split(","), *(f"{share:.9f}" for share in shares)])


main(*sys.argv[1:])
