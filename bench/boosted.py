"""The input of the tasks about trees: a boosted model, retrained versions of it, rejected rows.

A folder that every engine reads:

- `model.json`: the model to be explained, as XGBoost writes it.
- `retrained-N.json`: models of the same parameters, each from another seed and from rows drawn with
  replacement; only the driver looks at them, to judge.
- `search-N.json`: models made in the same way, for a task whose method searches over models.
- `rows.bin`: the training rows and their labels, `factuals.bin`: test rows that the model rejects
  rightly. Both in the format of rows.py, each column divided by its standard deviation in the
  training rows, so that L1 is a sum of standard deviations.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import rows

RETRAINED, RATE = 20, 0.1
# The columns that are correlated most with the label, where a task takes only some.
NUMBERS = 21


@dataclass
class Boosted:
    x: np.ndarray
    y: np.ndarray
    factuals: np.ndarray
    model: object
    """An `xgboost.XGBClassifier`."""
    path: Path
    """Its file."""
    retrained: list

    def accepts(self, points):
        return score(self.model, points) >= 0.5


def score(model, points):
    """The probability of the favourable class."""
    return model.predict_proba(np.asarray(points, np.float32))[:, 1]


def make(folder, forest, limit, progress):
    """Trains the models of a task, by its `Forest`, and writes the folder."""
    import xgboost

    x, y, _ = rows.load(limit)
    test_x, test_y, _ = rows.load(None, part="test")
    columns = chosen(x, y, forest.columns)
    width = np.where(x.std(axis=0) > 0, x.std(axis=0), 1)[columns]
    x, test_x = ((part[:, columns] / width).astype(np.float32) for part in (x, test_x))
    names = ["model", *(f"retrained-{number + 1}" for number in range(RETRAINED))]
    names += [f"search-{number + 1}" for number in range(forest.search)]
    trained = dict(n_estimators=forest.trees, max_depth=forest.depth, learning_rate=RATE, n_jobs=1)
    rng = np.random.default_rng(0)
    for number, name in enumerate(names):
        progress(f"training boosted model {number + 1} of {len(names)}")
        drawn = slice(None) if number == 0 else rng.integers(len(x), size=len(x))
        model = xgboost.XGBClassifier(random_state=number, **trained).fit(x[drawn], y[drawn])
        model.save_model(folder / f"{name}.json")
        if number == 0:
            rejected = (score(model, test_x) < 0.5) & (test_y < 0.5)
    factuals = test_x[rejected][: forest.factuals]
    rows.write(folder / "rows.bin", x, y)
    rows.write(folder / "factuals.bin", factuals, np.zeros(len(factuals)))
    return read(folder)


def chosen(x, y, count):
    """The columns of a model: all, or the numbers that are correlated most with the label."""
    if count >= x.shape[1]:
        return list(range(x.shape[1]))
    correlations = np.corrcoef(x[:, :NUMBERS], y, rowvar=False)[-1, :-1]
    return sorted(np.argsort(-np.abs(correlations), kind="stable")[:count])


def read(folder):
    import xgboost

    folder = Path(folder)

    def model(path):
        made = xgboost.XGBClassifier()
        made.load_model(path)
        return made

    x, y = rows.read(folder / "rows.bin")
    factuals, _ = rows.read(folder / "factuals.bin")
    retrained = [model(path) for path in sorted(folder.glob("retrained-*.json"))]
    path = folder / "model.json"
    return Boosted(x, y, factuals, model(path), path, retrained)


def judge(reply, problem):
    """The quality of an engine's counterfactuals.

    `validity` is over the retrained models, `cost_l1` a sum of standard deviations, `changed` the
    number of columns. `median_ms` is over the factuals, from the engine's own clock.
    """
    points = reply.pop("points")
    if times := reply.pop("times", None):
        reply["median_ms"] = 1e3 * float(np.median(times))
    chosen = reply.get("sample", range(len(points)))
    found = [i for i, point in enumerate(points) if point is not None]
    share = len(found) / len(points)
    if not found:
        nothing = dict.fromkeys(("validity", "cost_l1", "changed"), float("nan"))
        return {"found": share, **nothing}
    after = np.array([points[i] for i in found], dtype=np.float32)
    before = problem.factuals[[chosen[i] for i in found]]
    valid = [score(model, after) >= 0.5 for model in problem.retrained]
    return {
        "found": share,
        "judged": len(found) * len(valid),
        "validity": float(np.mean(valid)),
        "cost_l1": float(np.abs(after - before).sum(axis=1).mean()),
        "changed": float((after != before).sum(axis=1).mean()),
    }
