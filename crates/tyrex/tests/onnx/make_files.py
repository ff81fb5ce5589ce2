"""Trains small models with the real packages, saves them in the packages' own formats, and records
what the packages predict.

    python make_files.py FOLDER

writes one model file per case and FOLDER/cases.json, a list with one entry per case: the model
file, how to import it, 1000 rows of input with missing values, and the package's probability of the
favourable class for each row.

    python make_files.py --seeds FOLDER

writes very small models, the seeds of the fuzz targets.
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


# ----------------------------------------------------------------------------------------- LightGBM


def lightgbm_models(cases):
    import lightgbm

    def save(name, model, rows, expected, **options):
        booster = getattr(model, "booster_", model)
        booster.save_model(cases.path(f"{name}.txt"))
        cases.add(f"{name}.txt", rows, expected, **options)

    common = {"n_estimators": 40, "num_leaves": 24, "verbose": -1, "n_jobs": 1}
    rows = numbers(12)
    train = numbers(11)
    two, three = labels(train), labels(train, 3)

    def classifier(**options):
        return lightgbm.LGBMClassifier(**{**common, **options})

    model = classifier().fit(train, two)
    save("lightgbm-binary", model, rows, model.predict_proba(rows)[:, 1])
    save("lightgbm-first-class", model, rows, model.predict_proba(rows)[:, 0], favourable=0)
    model = classifier(sigmoid=0.6).fit(train, two)
    save("lightgbm-sigmoid", model, rows, model.predict_proba(rows)[:, 1])
    # NaN is 0 in a column that had none in training.
    whole = numbers(13, missing=False)
    model = classifier().fit(whole, labels(whole))
    save("lightgbm-missing-none", model, rows, model.predict_proba(rows)[:, 1])
    model = classifier(use_missing=False).fit(train, two)
    save("lightgbm-no-missing", model, rows, model.predict_proba(rows)[:, 1])
    for name, leaves in [("", 24), ("-deep", 6)]:
        model = classifier(zero_as_missing=True, num_leaves=leaves).fit(train, two)
        save(f"lightgbm-missing-zero{name}", model, rows, model.predict_proba(rows)[:, 1])
    # A column of a few whole numbers on both sides of zero.
    few = train.copy()
    few[:, 0] = np.round(few[:, 0])
    fresh = rows.copy()
    fresh[:, 0] = np.round(fresh[:, 0])
    model = classifier(zero_as_missing=True, n_estimators=10, num_leaves=8).fit(few, two)
    save("lightgbm-missing-zero-few", model, fresh, model.predict_proba(fresh)[:, 1])
    forest = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
    model = classifier(**forest).fit(train, two)
    save("lightgbm-forest", model, rows, model.predict_proba(rows)[:, 1])
    for name, options in [
        ("multiclass", {}),
        ("multiclassova", {"objective": "multiclassova", "sigmoid": 0.8}),
        ("forest-three-classes", forest),
    ]:
        model = classifier(**options).fit(train, three)
        scores = model.booster_.predict(rows)
        save(f"lightgbm-{name}", model, rows, scores[:, 2], favourable=2)
    for objective in ["cross_entropy", "xentropy"]:
        params = {"objective": objective, "verbose": -1, "num_threads": 1}
        booster = lightgbm.train(params, lightgbm.Dataset(train, two * 0.8 + 0.1), 20)
        save(f"lightgbm-{objective}", booster, rows, booster.predict(rows))
    model = classifier(boosting_type="dart", drop_rate=0.4).fit(train, two)
    save("lightgbm-dart", model, rows, model.predict_proba(rows)[:, 1])
    watched = [(numbers(14), labels(numbers(14)))]
    model = classifier(n_estimators=200, learning_rate=0.5)
    model.fit(train, two, eval_set=watched, callbacks=[lightgbm.early_stopping(3, verbose=False)])
    save("lightgbm-stopped", model, rows, model.predict_proba(rows)[:, 1])

    # Raw scores of an objective that the file does not have.
    def own(predicted, data):
        shares = 1.0 / (1.0 + np.exp(-predicted))
        return shares - data.get_label(), shares * (1.0 - shares)

    params = {"objective": own, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(params, lightgbm.Dataset(train, two), 20)
    expected = 1.0 / (1.0 + np.exp(-booster.predict(rows)))
    save("lightgbm-own-objective", booster, rows, expected, logits=True)
    # Numbers whose neighbours in 32 bits are on the other side of a threshold.
    # Decimals, which LightGBM's thresholds lie right above.
    grid = (np.arange(4000) % 73 / 10).reshape(-1, 1) + np.zeros((1, 3))
    model = classifier().fit(grid, np.sin(3 * grid[:, 0]) > 0)
    steps = (np.arange(ROWS) % 73 / 10).reshape(-1, 1) + np.zeros((1, 3))
    save("lightgbm-thresholds", model, steps, model.predict_proba(steps)[:, 1])
    model = classifier(min_child_samples=10_000).fit(train, two)
    save("lightgbm-no-splits", model, rows, model.predict_proba(rows)[:, 1])
    table, fresh = people(15), people(16)
    small = {"min_data_per_group": 3, "cat_smooth": 1, "min_child_samples": 5}
    for name, options in [("", {}), ("-small-groups", small)]:
        model = classifier(**options).fit(table, repaid(table))
        expected = model.predict_proba(fresh)[:, 1]
        save(f"lightgbm-categories{name}", model, fresh, expected)
    renamed = table.rename(columns={"purpose": "purpose of loan"})
    model = classifier(**small).fit(renamed, repaid(table))
    again = fresh.rename(columns={"purpose": "purpose of loan"})
    save("lightgbm-spaces", model, fresh, model.predict_proba(again)[:, 1])


# --------------------------------------------------------------------------------------- scorecards


def scorecards(cases):
    """A logistic regression on bins, whose coefficients become points."""
    from sklearn.linear_model import LogisticRegression

    ends = {"age": [25.5, 33.0, 41.1, 60.0], "income": [1500.0, 3000.1, 6000.0]}
    special = {"age": [-9.0, -8.0], "income": [-7.0]}
    levels = {"purpose": [["car"], ["house", "boat"], ["school"], ["other"]]}

    def table(seed, rows=ROWS):
        random = np.random.default_rng(seed)
        frame = people(seed, rows)[["age", "income", "purpose"]]
        for name, values in special.items():
            chosen = random.random(rows) < 0.1
            frame.loc[chosen, name] = random.choice(values, rows)[chosen].astype(np.float32)
        return frame.assign(income=frame["income"].astype(np.float32))

    def bins(frame):
        """The bin of each cell; the first is that of missing ones."""
        made = []
        for name, cuts in ends.items():
            values = frame[name].to_numpy()
            bin = 1 + np.digitize(values.astype(np.float64), cuts)
            for place, value in enumerate(special[name]):
                bin[values == value] = 2 + len(cuts) + place
            bin[np.isnan(values)] = 0
            made.append(bin)
        for name, lists in levels.items():
            known = {level: place for place, list in enumerate(lists, 1) for level in list}
            made.append(np.array([known.get(value, 0) for value in frame[name].astype(object)]))
        return np.column_stack(made)

    def indicators(frame):
        sizes = [2 + len(ends[name]) + len(special[name]) for name in ends]
        sizes += [1 + len(lists) for lists in levels.values()]
        columns = bins(frame).T
        return np.column_stack([np.eye(size)[bin] for size, bin in zip(sizes, columns)]), sizes

    train, fresh = table(31), table(32)
    random = np.random.default_rng(33)
    matrix, sizes = indicators(train)
    target = (matrix @ random.normal(0, 1.2, matrix.shape[1]) + random.normal(0, 1, ROWS)) > 0.3
    model = LogisticRegression().fit(matrix, target)
    parts = np.split(model.coef_[0], np.cumsum(sizes)[:-1])
    for name, factor, offset in [("", 20 / np.log(2), 600.0), ("-risk", -35.0, 0.0)]:
        variables = []
        for (variable, cuts), points in zip(ends.items(), parts):
            points = [float(each) for each in points * factor]
            own = [
                {"values": [value], "points": points[2 + len(cuts) + place]}
                for place, value in enumerate(special[variable])
            ]
            own += [{"below": cut, "points": p} for cut, p in zip(cuts, points[1:])]
            own.append({"points": points[1 + len(cuts)]})
            variables.append({"name": variable, "missing": points[0], "bins": own})
        for (variable, lists), points in zip(levels.items(), parts[len(ends) :]):
            points = [float(each) for each in points * factor]
            own = [{"levels": each, "points": p} for each, p in zip(lists, points[1:])]
            variables.append({"name": variable, "missing": points[0], "bins": own})
        card = {
            "scorecard": 1,
            "factor": float(factor),
            "offset": offset,
            "intercept": offset + float(factor * model.intercept_[0]),
            "classes": ["bad", "good"],
            "variables": variables,
        }
        Path(cases.path(f"scorecard{name}.json")).write_text(json.dumps(card, indent=1))
        expected = model.predict_proba(indicators(fresh)[0])[:, 1]
        cases.add(f"scorecard{name}.json", fresh, expected)


# -------------------------------------------------------------------------------------------- seeds


def seeds(folder):
    """A few trees of each package, with categories, classes and missing values."""
    import lightgbm
    import xgboost

    folder = Path(folder)
    table = people(21, 200)
    target, table["age"] = repaid(table), table["age"].astype(np.float64)
    three = (table["age"] // 25).clip(1, 3).astype(int).to_numpy() - 1
    small = {"n_estimators": 2, "n_jobs": 1}
    for name, options, wanted in [
        ("categories", {"enable_categorical": True, "max_cat_to_onehot": 1}, target),
        ("classes", {"enable_categorical": True}, three),
        ("dart", {"enable_categorical": True, "booster": "dart", "rate_drop": 0.9}, target),
    ]:
        model = xgboost.XGBClassifier(**small, max_depth=2, **options).fit(table, wanted)
        for target_name, end in [("xgboost", "json"), ("ubjson", "ubj")]:
            (folder / target_name).mkdir(parents=True, exist_ok=True)
            model.save_model(folder / target_name / f"{name}.{end}")
    (folder / "lightgbm").mkdir(exist_ok=True)
    for name, options, wanted in [
        ("categories", {"min_data_per_group": 3, "cat_smooth": 1}, target),
        ("classes", {"objective": "multiclassova"}, three),
        ("zeros", {"zero_as_missing": True}, target),
        ("forest", {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}, target),
    ]:
        model = lightgbm.LGBMClassifier(**small, num_leaves=4, verbose=-1, **options)
        text = model.fit(table, wanted).booster_.model_to_string()
        # The parameters are not read, except for the categorical columns.
        kept = [line for line in text.split("\n") if line[:1] != "[" or line[:5] == "[cate"]
        (folder / "lightgbm" / f"{name}.txt").write_text("\n".join(kept))


def main(folder, *wanted):
    warnings.filterwarnings("ignore")
    if folder == "--seeds":
        seeds(*wanted)
        return
    cases = Cases(folder)
    cases.folder.mkdir(parents=True, exist_ok=True)
    makers = {
        "xgboost": xgboost_models,
        "lightgbm": lightgbm_models,
        "scorecard": scorecards,
    }
    for name, make in makers.items():
        if not wanted or name in wanted:
            make(cases)
    cases.write()


main(*sys.argv[1:])
