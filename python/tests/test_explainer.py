"""Every kind of model, explained; and what is refused, with what sentence."""

from __future__ import annotations

import copy
import pathlib
import pickle
import re
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tyrex


def favourable(german: pd.DataFrame) -> np.ndarray:
    return (german["class"] == "good").to_numpy().astype(np.int64)


def scaled(numbers: pd.DataFrame) -> np.ndarray:
    values = numbers.to_numpy(dtype=np.float64)
    return ((values - values.mean(axis=0)) / values.std(axis=0)).astype(np.float32)


def torch_network(width: int, outputs: int, last: Any = None) -> Any:
    import torch

    torch.manual_seed(0)
    layers = [torch.nn.Linear(width, 8), torch.nn.ReLU(), torch.nn.Linear(8, outputs)]
    return torch.nn.Sequential(*layers, *([last] if last else []))


def fitted(name: str, german: pd.DataFrame, numbers: pd.DataFrame) -> tuple[Any, Any, dict]:
    """A model by its name, the rows it takes, and how to hand it over."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    y = favourable(german)
    features = german.drop(columns="class")
    texts = [name for name in features if name not in numbers]
    encoder = ColumnTransformer(
        [("numbers", StandardScaler(), list(numbers)), ("texts", OneHotEncoder(), texts)]
    )
    label = {"label": "class", "favourable": "good"}
    if name == "pipeline with a network":
        model = make_pipeline(encoder, MLPClassifier((8,), max_iter=60, random_state=0))
        return model.fit(features, german["class"]), german, label
    if name == "pipeline with a forest":
        model = make_pipeline(encoder, RandomForestClassifier(10, random_state=0))
        return model.fit(features, german["class"]), german, label
    if name == "logistic regression on raw columns":
        return LogisticRegression(max_iter=1000).fit(numbers, y), numbers, {"label": y}
    if name == "gradient boosting on raw columns":
        model = GradientBoostingClassifier(n_estimators=10, random_state=0)
        return model.fit(numbers, y), numbers, {"label": y}
    if name == "tyrex.MLPClassifier":
        rows = pd.DataFrame(scaled(numbers), columns=numbers.columns)
        model = tyrex.MLPClassifier((16,), epochs=10, random_state=0)
        return model.fit(rows, y), rows, {"label": y}
    if name == "tyrex.MLPClassifier in a pipeline":
        model = make_pipeline(encoder, tyrex.MLPClassifier((16,), epochs=10, random_state=0))
        return model.fit(features, german["class"]), german, label
    if name == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=8).fit(numbers, y), numbers, {"label": y}
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=8, verbose=-1).fit(numbers, y), numbers, {"label": y}
    import torch

    rows = scaled(numbers)
    if name == "torch with a sigmoid":
        return torch_network(rows.shape[1], 1, torch.nn.Sigmoid()), rows, {}
    if name == "torch logits":
        return torch_network(rows.shape[1], 2), rows, {"logits": True}
    if name == "torch behind a scaler":
        scaler = StandardScaler().fit(numbers)
        model = torch_network(rows.shape[1], 1, torch.nn.Sigmoid())
        return model, numbers, {"preprocessor": scaler}
    if name == "keras":
        import keras

        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [
                keras.layers.Input((rows.shape[1],)),
                keras.layers.Dense(8, activation="relu"),
                keras.layers.Dense(1, activation="sigmoid"),
            ]
        )
        return model, rows, {}
    raise KeyError(name)


NATIVE = {
    "pipeline with a network": "network",
    "pipeline with a forest": "trees",
    "logistic regression on raw columns": "network",
    "gradient boosting on raw columns": "trees",
    "tyrex.MLPClassifier": "network",
    "tyrex.MLPClassifier in a pipeline": "network",
    "xgboost": "trees",
    "lightgbm": "trees",
    "torch with a sigmoid": "network",
    "torch logits": "network",
    "torch behind a scaler": "network",
    "keras": "network",
}


@pytest.mark.parametrize("name", NATIVE)
def test_models_of_every_framework(name: str, german: pd.DataFrame, numbers: pd.DataFrame) -> None:
    model, rows, how = fitted(name, german, numbers)
    explainer = tyrex.Explainer(model, rows, **how)
    assert explainer.kind == NATIVE[name]
    assert explainer.deviation is not None and explainer.deviation < 1e-5
    rejected = explainer.rejected()
    if not rejected:
        # An untrained network may accept everybody: then its score is what is compared.
        assert explainer.score().min() >= 0.5
        return
    advice = explainer.explain(method=None, tau=0.5, limit=5)
    assert len(advice) == min(5, len(rejected))
    for each in advice.found:
        assert each.new_score >= 0.5 and each.stability >= 0.5
        # In the columns of the data, and nothing but the changes differs.
        changed = {change.feature: change.after for change in each.changes}
        assert each.counterfactual == {**each.features, **changed}
        score = explainer.score(each.counterfactual)
        assert score[0] == pytest.approx(each.new_score, abs=1e-6)
    # A model that was pickled answers alike.
    again = pickle.loads(pickle.dumps(explainer))
    assert np.array_equal(again.score(), explainer.score())
    assert again.fingerprint == explainer.fingerprint


def test_a_function_and_its_gradient(numbers: pd.DataFrame) -> None:
    rows = scaled(numbers).astype(np.float64)
    weights = np.linspace(-2, 2, rows.shape[1])

    def score(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-(x @ weights)))

    def gradient(x: np.ndarray) -> np.ndarray:
        p = score(x)
        return (p * (1 - p))[:, None] * weights

    alone = tyrex.Explainer(score, rows)
    pair = tyrex.Explainer((score, gradient), rows)
    assert alone.kind == pair.kind == "function"
    assert np.abs(alone.score() - score(rows)).max() < 1e-6
    with pytest.raises(tyrex.ModelError, match="trex-i needs gradients"):
        alone.explain(method="trex-i", limit=1)
    by_data = alone.explain(limit=4, tau=0.6)
    climbed = pair.explain(limit=4, tau=0.6, method="trex-o")
    assert len(by_data.found) == len(climbed.found) == 4
    for near, best in zip(by_data, climbed):
        assert best.cost_l1 <= near.cost_l1 + 1e-9
        assert score(np.array([list(best.counterfactual.values())]))[0] >= 0.5


def test_a_network_as_a_function_is_explained_like_the_network(numbers: pd.DataFrame) -> None:
    import torch

    rows = scaled(numbers)
    network = torch_network(rows.shape[1], 1, torch.nn.Sigmoid())

    def score(x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return network(torch.tensor(x, dtype=torch.float32)).numpy()[:, 0]

    def gradient(x: np.ndarray) -> np.ndarray:
        leaf = torch.tensor(x, dtype=torch.float32, requires_grad=True)
        network(leaf).sum().backward()
        return leaf.grad.numpy()

    native, opaque = tyrex.Explainer(network, rows), tyrex.Explainer((score, gradient), rows)
    assert np.abs(native.score() - opaque.score()).max() < 1e-6
    ours = native.explain(method="trex-nn", tau=0.5, limit=3)
    theirs = opaque.explain(method="trex-nn", tau=0.5, limit=3)
    assert len(ours.found) == 3
    for one, other in zip(ours, theirs):
        assert one.counterfactual == other.counterfactual
    # A climb takes other steps where the native network has its shortcut.
    for explainer in (native, opaque):
        climbed = explainer.explain(method="trex-i", tau=0.5, limit=3)
        assert all(each.stability >= 0.5 for each in climbed) and len(climbed.found) == 3


def test_a_function_of_a_frame_sees_the_columns_it_knows(
    german: pd.DataFrame, features: pd.DataFrame
) -> None:
    seen = []

    def score(frame: pd.DataFrame) -> np.ndarray:
        assert list(frame.columns) == list(features.columns)
        assert set(frame["housing"]) <= set(features["housing"])
        seen.append(len(frame))
        return np.where(frame["housing"] == "own", 0.9, 0.2) * np.where(frame["age"] > 25, 1, 0.5)

    explainer = tyrex.Explainer(score, features)
    assert np.abs(explainer.score() - score(features)).max() < 1e-6
    advice = explainer.explain(limit=3, k=50, tau=0.5)
    assert all(each.counterfactual["housing"] == "own" for each in advice.found)
    assert sum(seen) > len(features)


def test_a_model_that_the_engine_does_not_know_is_a_black_box_and_says_why(
    numbers: pd.DataFrame, german: pd.DataFrame
) -> None:
    import torch
    from sklearn.neighbors import KNeighborsClassifier

    class Skipping(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(7, 7)
            self.last = torch.nn.Linear(7, 1)

        def forward(self, x: Any) -> Any:
            return torch.sigmoid(self.last(torch.relu(self.layer(x)) + x))

    with pytest.warns(UserWarning, match="black box, which is slower:"):
        explainer = tyrex.Explainer(Skipping(), scaled(numbers))
    assert explainer.kind == "function" and explainer.explain(limit=2, tau=0.5, k=100).found
    model = KNeighborsClassifier(5).fit(numbers, favourable(german))
    with pytest.warns(UserWarning, match="without gradients"):
        assert "as a black box" in repr(tyrex.Explainer(model, numbers))


def test_what_a_function_raises_reaches_the_caller(numbers: pd.DataFrame) -> None:
    calls = {"count": 0}

    def score(x: Any) -> Any:
        calls["count"] += 1
        if calls["count"] > 4:
            raise ZeroDivisionError("no more")
        return np.full(len(x), 0.2)

    explainer = tyrex.Explainer(score, numbers)
    with pytest.raises(ZeroDivisionError, match="no more"):
        explainer.explain(limit=50, method="trex-nn")


def test_copies_and_pickles(explainer: tyrex.Explainer) -> None:
    advice = explainer.explain(limit=3)
    for other in (pickle.loads(pickle.dumps(explainer)), copy.deepcopy(explainer)):
        assert other.explain(limit=3).to_pandas().equals(advice.to_pandas())
        assert repr(other) == repr(explainer)
    again = pickle.loads(pickle.dumps(advice))
    assert again == advice
    assert all(certificate["sentence"] for certificate in advice.certificates)


def test_onnx_files_of_others(
    numbers: pd.DataFrame, german: pd.DataFrame, tmp_path: pathlib.Path
) -> None:
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression

    y = favourable(german)
    rows = scaled(numbers)
    content = to_onnx(LogisticRegression().fit(rows, y), rows[:1]).SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    frame = pd.DataFrame(rows, columns=numbers.columns)
    from_bytes, from_path = tyrex.Explainer(content, frame), tyrex.Explainer(path, frame)
    assert np.array_equal(from_bytes.score(), from_path.score())
    own = LogisticRegression().fit(rows, y).predict_proba(rows)[:, 1]
    assert np.abs(from_bytes.score() - own).max() < 1e-5


def test_the_schema_is_inferred_from_types_and_can_be_corrected(
    german: pd.DataFrame, tmp_path: pathlib.Path
) -> None:
    frame = pd.DataFrame(
        {
            "age": [20, 30, 40, 50],
            "grade": pd.Categorical(
                ["low", "high", "low", "mid"], ["low", "mid", "high", "top"], ordered=True
            ),
            "home": pd.Categorical(["own", "rent", "own", "own"], ["own", "rent", "other"]),
            "married": [True, False, True, False],
            "rate": [0.5, 0.25, 0.125, 1.0],
        }
    )
    explainer = tyrex.Explainer(lambda x: x["rate"].to_numpy() * 0.9, frame)
    kinds = {each["name"]: each["kind"] for each in explainer.schema.to_dict()["feature"]}
    assert kinds == {
        "age": "integer",
        "grade": "ordinal",
        "home": "categorical",
        "married": "flag",
        "rate": "numeric",
    }
    assert explainer.schema._native.levels("home") == ["own", "rent", "other"]
    # Corrected, saved, and used.
    path = tmp_path / "schema.toml"
    explainer.schema.save(path)
    assert tyrex.Schema.of(path) == explainer.schema
    better = tyrex.Schema.of(path).corrected(age={"action": "fixed", "unit": "years"})
    again = tyrex.Explainer(lambda x: x["rate"].to_numpy() * 0.9, frame, schema=better)
    assert "fixed" in repr(again.schema) and "years" in repr(again.schema)
    with pytest.raises(tyrex.SchemaError, match="sideways"):
        better.corrected(age={"action": "sideways"})
    assert pickle.loads(pickle.dumps(again.schema)) == again.schema


def test_texts_stay_texts_and_truth_values_truth_values() -> None:
    frame = pd.DataFrame(
        {
            "region": ["NA", "EU", "AS", "NA", "EU", "AS"],
            "code": ["01", "02", "10", "01", "02", "10"],
            "grade": pd.Categorical(["03", "10", "2", "03", "10", "2"]),
            "owner": [True, False, True, False, True, False],
            "income": [1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
        }
    )

    def score(rows: pd.DataFrame) -> np.ndarray:
        for name in ("region", "code", "grade"):
            assert set(rows[name].astype(object)) <= set(frame[name].astype(object))
        assert rows["owner"].dtype == bool
        points = rows["region"].eq("NA") * 0.3 + rows["code"].eq("10") * 0.2
        return (0.1 + points + rows["owner"] * 0.2 + rows["grade"].eq("2") * 0.15).to_numpy()

    explainer = tyrex.Explainer(score, frame)
    assert explainer.deviation < 1e-6
    advice = explainer.explain(frame, tau=0.5, k=50)
    table = advice.to_pandas()
    found = table[table["status"] == "found"]
    assert len(found) and found["owner"].map(type).eq(bool).all()
    again = score(found[frame.columns].astype({"owner": bool}))
    assert np.allclose(again, found["score"])


def test_what_is_advised_is_scored_as_the_row_that_is_handed_out() -> None:
    rows = pd.DataFrame({"x": np.random.default_rng(1).normal(size=120), "y": np.arange(120.0)})
    for threshold in rows["x"].iloc[:30]:

        def score(frame: pd.DataFrame, threshold: float = threshold) -> np.ndarray:
            return np.where(frame["x"] >= threshold, 0.9, 0.1)

        for each in tyrex.Explainer(score, rows).explain(method="nn", limit=5).found:
            assert score(pd.DataFrame([each.counterfactual]))[0] == pytest.approx(each.new_score)


def test_a_function_may_itself_ask_tyrex(numbers: pd.DataFrame, german: pd.DataFrame) -> None:
    rows = scaled(numbers)
    model = tyrex.MLPClassifier((8,), epochs=5, random_state=0).fit(rows, favourable(german))
    explainer = tyrex.Explainer(lambda x: model.predict_proba(x)[:, 1], rows)
    advice = explainer.explain(limit=6, tau=0.5, k=50)
    assert len(advice) == min(6, len(explainer.rejected()))


def test_a_function_that_ends_where_the_data_end(numbers: pd.DataFrame) -> None:
    def score(frame: pd.DataFrame) -> np.ndarray:
        if (frame["age"] < 0).any():
            raise ValueError("no logarithm of that")
        return 1 / (1 + np.exp(-(np.log1p(frame["age"]) - 3.5)))

    explainer = tyrex.Explainer(score, numbers)
    young = numbers[numbers["age"] < 25].head(3)
    advice = explainer.explain(young, sigma=0.5, k=200, tau=0.5)
    assert len(advice.found) == 3


def test_all_numbers_of_a_model_are_on_one_scale(
    numbers: pd.DataFrame, german: pd.DataFrame
) -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    columns = numbers[["age", "duration"]]
    some = make_column_transformer((StandardScaler(), ["age"]), remainder="passthrough")
    model = make_pipeline(some, LogisticRegression(max_iter=2000))
    explainer = tyrex.Explainer(model.fit(columns, favourable(german)), columns)
    span = columns.max() - columns.min()
    for each in explainer.explain(limit=10, method="min-cost").found:
        moved = sum(abs(c.after - c.before) / span[c.feature] for c in each.changes)
        assert each.cost_l1 == pytest.approx(moved, rel=1e-4)


def test_rows_that_the_schema_drops_leave_a_gap(numbers: pd.DataFrame) -> None:
    first = tyrex.Explainer(lambda x: np.full(len(x), 0.6), numbers)
    schema = first.schema.corrected(age={"missing": "drop-row"})
    explainer = tyrex.Explainer(lambda x: np.full(len(x), 0.6), numbers, schema)
    rows = numbers.iloc[:4].astype({"age": float})
    rows.iloc[1, list(rows).index("age")] = np.nan
    assert np.isnan(explainer.score(rows)).tolist() == [False, True, False, False]
    certificates = tyrex.certify(explainer, rows)
    assert [each is None for each in certificates] == [False, True, False, False]


def test_the_class_of_a_file_can_be_named(numbers: pd.DataFrame) -> None:
    import torch

    rows = scaled(numbers)
    network = torch_network(rows.shape[1], 1, torch.nn.Sigmoid())
    content = tyrex.models.convert(network, tyrex.data.Frame.of(rows)).content
    usual = tyrex.Explainer(content, rows).score()
    assert np.allclose(tyrex.Explainer(content, rows, favourable=1).score(), usual)
    assert np.allclose(tyrex.Explainer(content, rows, favourable=0).score(), 1 - usual, atol=1e-6)
    with pytest.raises(tyrex.ParameterError, match="does not name its classes"):
        tyrex.Explainer(content, rows, favourable="good")
    own = tyrex.Explainer.train(tyrex.datasets.load_german(), epochs=2)
    with pytest.raises(tyrex.SchemaError, match="the model file says good"):
        tyrex.Explainer(own.to_onnx(), tyrex.datasets.load_german().to_pandas(), favourable="bad")


def test_labels_are_matched_by_their_index(numbers: pd.DataFrame, german: pd.DataFrame) -> None:
    labels = german["class"]
    given = {"favourable": "good", "schema": None}
    ours = [
        tyrex.Explainer(lambda x: (x["age"] / 80).to_numpy(), numbers, label=label, **given)
        for label in (labels, labels.sample(frac=1, random_state=0), labels.to_numpy())
    ]
    assert ours[0].performance() == ours[1].performance() == ours[2].performance()
    with pytest.raises(tyrex.DataError, match="another index"):
        tyrex.Explainer(
            lambda x: (x["age"] / 80).to_numpy(), numbers, label=labels.set_axis(range(5, 1005))
        )


def test_auc_and_calibration_error_are_scikit_learns() -> None:
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import roc_auc_score

    draws = np.random.default_rng(3)
    truth = draws.integers(2, size=1000)
    distinct = draws.permutation(np.linspace(0.01, 0.7, 1000)) + 0.2 * truth
    frame = pd.DataFrame({"row": np.arange(1000)})

    def explained(given: np.ndarray) -> tuple[np.ndarray, tyrex.Explainer]:
        scores = np.asarray(given, dtype=np.float32)
        model = lambda x: scores[x["row"].round().astype(int)]  # noqa: E731
        return scores, tyrex.Explainer(model, frame, label=truth, favourable=1)

    with pytest.raises(tyrex.ModelError, match=r"the wrong way round \(AUC 0\.000"):
        explained(1 - truth)
    for given in (distinct, distinct.round(1), np.full(1000, 0.25), truth):
        scores, explainer = explained(given)
        (part,) = explainer.performance()
        assert part["auc"] == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)
        if given is distinct:
            # All scores differ, so the bins are scikit-learn's, with 100 rows each.
            assert len(np.unique(scores)) == 1000
            shares, means = calibration_curve(
                truth, scores.astype(float), n_bins=10, strategy="quantile"
            )
            expected = np.abs(shares - means).mean()
            assert part["calibration_error"] == pytest.approx(expected, abs=1e-12)
    assert part["auc"] == 1.0 and part["calibration_error"] == 0.0


def test_floats_are_numbers_and_large_ones_too() -> None:
    frame = pd.DataFrame({"price": np.arange(100.0) * 10, "mass": np.linspace(1, 2, 100) * 1e30})
    explainer = tyrex.Explainer(lambda x: (x["price"] / 1000).to_numpy(), frame)
    assert explainer.score(pd.DataFrame({"price": [30.5], "mass": [1e30]}))[0] == pytest.approx(
        0.0305
    )


def test_a_model_that_has_changed_is_not_pickled_in_silence(numbers: pd.DataFrame) -> None:
    import torch

    network = torch_network(numbers.shape[1], 1, torch.nn.Sigmoid())
    explainer = tyrex.Explainer(network, scaled(numbers))
    assert copy.copy(explainer) is explainer and copy.deepcopy(explainer) is explainer
    with torch.no_grad():
        network[0].bias += 1.0
    with pytest.raises(tyrex.ModelError, match="have changed"):
        pickle.loads(pickle.dumps(explainer))


def test_a_function_is_asked_about_the_very_rows(numbers: pd.DataFrame) -> None:
    rows = pd.DataFrame({"x": np.random.default_rng(0).normal(size=200), "y": np.arange(200.0)})
    for threshold in rows["x"].iloc[:40]:
        explainer = tyrex.Explainer(lambda d, t=threshold: np.where(d["x"] >= t, 0.9, 0.1), rows)
        assert explainer.deviation < 1e-6
        others = pd.DataFrame({"x": [threshold, np.nextafter(threshold, -9)], "y": [1.0, 2.0]})
        assert explainer.score(others.iloc[:1])[0] == pytest.approx(0.9)


def test_calls_of_one_function_hear_of_their_own_failures() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2))

    def score(x: np.ndarray) -> np.ndarray:
        time.sleep(0.001)
        if (x[:, 0] > 50).any():
            raise RuntimeError("too rich")
        return np.full(len(x), 0.7)

    explainer = tyrex.Explainer(score, rows)
    good, bad = [[0.0, 0.0]], [[100.0, 0.0]]

    def ask(number: int) -> object:
        try:
            return float(explainer.score(bad if number % 2 else good)[0])
        except RuntimeError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(60)))
    assert answers[::2] == [pytest.approx(0.7)] * 30 and set(answers[1::2]) == {"too rich"}


def test_applicants_may_lie_outside_the_data_but_not_the_advice(numbers: pd.DataFrame) -> None:
    explainer = tyrex.Explainer(lambda x: 1 / (1 + np.exp((x["age"] - 40) / 10)), numbers)
    outside = numbers.iloc[:5].assign(age=110, duration=999)
    for each in explainer.explain(outside, tau=0.5).found:
        assert each.features["age"] == 110
        assert each.counterfactual["age"] <= 75
        assert each.counterfactual["duration"] == 999 or each.counterfactual["duration"] <= 72


def test_what_may_change(explainer: tyrex.Explainer) -> None:
    advice = explainer.explain(
        limit=10,
        features_to_vary=["duration", "credit_amount"],
        permitted_range={"duration": [4, 24]},
        method="min-cost",
    )
    for each in advice.found:
        assert {change.feature for change in each.changes} <= {"duration", "credit_amount"}
        for change in each.changes:
            assert change.feature != "duration" or 4 <= change.after <= 24
    kept = explainer.explain(limit=10, features_to_keep=["credit_amount"], method="min-cost")
    assert all(c.feature != "credit_amount" for each in kept.found for c in each.changes)
    levels = explainer.explain(
        limit=10, permitted_range={"housing": ["own", "rent"]}, method="min-cost"
    )
    assert all(
        change.after in ("own", "rent")
        for each in levels.found
        for change in each.changes
        if change.feature == "housing"
    )
    assert explainer.explain(limit=2, features_to_vary="all") == explainer.explain(limit=2)
    rule = {"if": {"duration": "any"}, "then": {"credit_amount": {"by": [None, -100]}}}
    tied = explainer.explain(limit=10, rules=[rule], method="min-cost")
    assert tied.found
    for each in tied.found:
        changes = {change.feature: change for change in each.changes}
        if "duration" in changes:
            amount = changes["credit_amount"]
            assert amount.after <= amount.before - 100


SEARCH_ERRORS = [
    ({"total_CFs": 4}, TypeError, "one counterfactual per row"),
    ({"desired_class": 1}, TypeError, "`favourable=` of Explainer"),
    ({"target_proba": 0.9}, TypeError, "`tau=`"),
    ({"feature_range": (0, 1)}, TypeError, "`permitted_range=`"),
    ({"max_iter": 10}, TypeError, "`max_steps=`"),
    ({"random_seed": 1}, TypeError, "`seed=`"),
    ({"methd": "nn"}, TypeError, "did you mean `method`?"),
    ({"no_such_thing": 1}, TypeError, "explain has no parameter `no_such_thing`; trex-o has"),
    ({"method": "trex"}, tyrex.ParameterError, "method"),
    ({"norm": "l7"}, tyrex.ParameterError, "'l1' or 'l2'"),
    ({"tau": 1.5}, tyrex.ParameterError, "tau"),
    ({"tau": float("nan")}, tyrex.ParameterError, "`tau` is nan"),
    ({"k": 0}, tyrex.ParameterError, "`k` is 0"),
    ({"sigma": -1.0}, tyrex.ParameterError, "sigma"),
    ({"method": "nn", "tau": 0.8}, tyrex.ParameterError, "test of stability"),
    ({"features_to_vary": ["agee"]}, tyrex.ParameterError, "agee"),
    ({"permitted_range": {"agee": [1, 2]}}, tyrex.SchemaError, "agee"),
    ({"permitted_range": {"age": [1, 2, 3]}}, tyrex.ParameterError, "lowest, highest"),
    ({"permitted_range": {"housing": ["boat"]}}, tyrex.ParameterError, "boat"),
    ({"protocol": "papper"}, tyrex.ParameterError, "papper"),
    ({"max_seconds": 0.0}, tyrex.ParameterError, "seconds"),
    ({"seed": -1}, tyrex.ParameterError, "`seed` is -1"),
    ({"k": 2.5}, tyrex.ParameterError, "`k` is 2.5, expected a whole number"),
    ({"k": True}, tyrex.ParameterError, "`k` is True"),
    ({"permitted_range": {"age": 60}}, tyrex.ParameterError, "[lowest, highest]"),
    ({"permitted_range": ["age"]}, tyrex.ParameterError, "expected a dict"),
    ({"features_to_vary": 5}, tyrex.ParameterError, "names of columns"),
    ({"certify": "yes"}, tyrex.ParameterError, "tyrex.Ensemble"),
    ({"progress": 5}, tyrex.ParameterError, "progress"),
]


@pytest.mark.parametrize(("keywords", "kind", "says"), SEARCH_ERRORS)
def test_wrong_keywords(keywords: dict, kind: Any, says: str, explainer: tyrex.Explainer) -> None:
    with pytest.raises(kind) as error:
        explainer.explain(limit=1, **keywords)
    assert says in str(error.value)


def wrong_rows(features: pd.DataFrame) -> list[tuple[Any, Any, str]]:
    rows = features.iloc[:3]
    return [
        (rows.drop(columns=["age", "job"]), tyrex.DataError, "age"),
        (rows.rename(columns={"age": "Age"}), tyrex.DataError, "did you mean 'Age'"),
        (rows.assign(age=["old", "young", "7"]), tyrex.DataError, "found `old`"),
        (rows.assign(age=np.nan), tyrex.DataError, "age"),
        (rows.assign(housing="castle"), tyrex.DataError, "found `castle`"),
        (rows.assign(age=np.inf), tyrex.DataError, "infinite"),
        (rows.assign(age=pd.Timestamp("2020-01-01")), tyrex.DataError, "age"),
        (rows.assign(age=1 + 2j), tyrex.DataError, "age"),
        (rows.iloc[:0], tyrex.DataError, "no rows"),
        (np.zeros(20), tyrex.DataError, "shape (20,)"),
        (np.zeros((2, 3)), tyrex.DataError, "3 columns, expected 20"),
        (np.zeros((2, 3, 4)), tyrex.DataError, ""),
        ("no_such_file.csv", FileNotFoundError, "no_such_file.csv"),
        (3.5, (tyrex.DataError, TypeError), ""),
    ]


def test_wrong_rows(explainer: tyrex.Explainer, features: pd.DataFrame) -> None:
    for rows, kind, says in wrong_rows(features):
        with pytest.raises(kind) as error:
            explainer.explain(rows)
        assert says in str(error.value), error.value


def wrong_models(numbers: pd.DataFrame, german: pd.DataFrame) -> list[tuple[Any, Any, dict, Any]]:
    from sklearn.linear_model import LinearRegression, LogisticRegression

    y = favourable(german)
    three = np.arange(len(y)) % 3
    return [
        (LogisticRegression(), tyrex.ModelError, {}, "fitted"),
        (LinearRegression().fit(numbers, y), tyrex.ModelError, {}, "classif"),
        (LogisticRegression(max_iter=500).fit(numbers, three), tyrex.ModelError, {}, "classes"),
        (lambda x: np.full(len(x), 3.0), tyrex.ModelError, {}, "not a probability"),
        (lambda x: np.full(len(x), np.nan), tyrex.ModelError, {}, "not a probability"),
        (lambda x: np.zeros(3), tyrex.ModelError, {}, ""),
        (lambda x: 1 / 0, (tyrex.ModelError, ZeroDivisionError), {}, ""),
        (torch_network(7, 1), tyrex.ModelError, {}, "logits=True"),
        (torch_network(5, 1), tyrex.ModelError, {}, ""),
        (b"not a model", tyrex.ModelError, {}, "not an ONNX model"),
        ("no_such_model.onnx", FileNotFoundError, {}, "no_such_model.onnx"),
        (object(), TypeError, {}, "accepted"),
        (None, TypeError, {}, "accepted"),
        (lambda x: np.full(len(x), 0.4), tyrex.DataError, {"label": "paid"}, "paid"),
        (lambda x: np.full(len(x), 0.4), tyrex.DataError, {"label": y[:5]}, "label"),
        (lambda x: np.full(len(x), 0.4), TypeError, {"schema": 7}, "schema"),
        (lambda x: np.full(len(x), 0.4), tyrex.SchemaError, {"schema": "a = 1\n"}, ""),
    ]


def test_wrong_models(numbers: pd.DataFrame, german: pd.DataFrame) -> None:
    for model, kind, how, says in wrong_models(numbers, german):
        with pytest.raises(kind) as error, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tyrex.Explainer(model, numbers, **how)
        assert says in str(error.value), error.value


def test_three_classes_with_one_named(numbers: pd.DataFrame, german: pd.DataFrame) -> None:
    from sklearn.linear_model import LogisticRegression

    three = np.array(["low", "mid", "high"])[np.arange(len(german)) % 3]
    model = LogisticRegression(max_iter=2000).fit(numbers, three)
    explainer = tyrex.Explainer(model, numbers, favourable="high")
    own = model.predict_proba(numbers)[:, list(model.classes_).index("high")]
    assert np.abs(explainer.score() - own).max() < 1e-5


def test_a_model_that_is_not_what_it_was_converted_to_is_refused(
    numbers: pd.DataFrame, german: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=500).fit(numbers, favourable(german))
    honest = model.predict_proba
    monkeypatch.setattr(model, "predict_proba", lambda x: honest(x) * [[0.9, 0.9]] + 0.05)
    with pytest.raises(tyrex.ModelError, match="differs from the original"):
        tyrex.Explainer(model, numbers)


def test_a_promise_is_certified_by_models_that_did_not_choose_the_advice(
    explainer: tyrex.Explainer,
) -> None:
    models = tyrex.retrain(explainer, 30, seed=5)
    advice = explainer.explain(limit=4, promise=0.5, confidence=0.9, certify=models)
    assert advice.request["method"]["method"] == "trex-e"
    assert advice.request["method"]["tail"] == 0.5
    assert advice.found
    for each in advice.found:
        # 9 models certify 0.5 at 0.9 with 2 that reject; the other 21 chose the advice.
        (tier,) = [one for one in each.certificate["tiers"] if one["tier"] == "ensemble"]
        assert (tier["models"], tier["confidence"]) == (9, 0.9)
        # 7 of 9 models or more: the bound is a statement at 0.9, the predictive share is not.
        assert each.promise["predictive"] == each.promise["accepting"] / 10
        assert each.promise["shown"] < each.promise["predictive"]
        assert tier["probability"] == each.promise["shown"]
    whole = advice.portfolio["statements"][0]
    assert whole["promises"] == len(advice.found)
    assert (whole["probability"], whole["rank"], len(whole["shares"])) == (0.9, 1, 9)
    assert whole["at_least"] == min(whole["shares"])
    assert tyrex.Explanations.from_json(advice.to_json()).portfolio == advice.portfolio
    again = explainer.explain(limit=4, promise=0.5, confidence=0.9, certify=models)
    assert [each.to_dict() for each in again] == [each.to_dict() for each in advice]


def test_the_portfolio_has_groups_and_amounts_of_any_column(
    explainer: tyrex.Explainer, features: pd.DataFrame
) -> None:
    models = tyrex.retrain(explainer, 30, seed=5)
    rows = features.iloc[:40].assign(branch=["a", "b"] * 20, loan=range(40))
    asked = {"promise": 0.5, "confidence": 0.9, "certify": models}
    advice = explainer.explain(rows, by={"branch": None, "age": [30]}, amount="loan", **asked)
    statements = advice.portfolio["statements"]
    counted = [each for each in statements if "amount" not in each]
    groups = [(each["group"]["column"], each["group"]["name"]) for each in counted[1:]]
    expected = [("branch", "a"), ("branch", "b"), ("age", "below 30"), ("age", "30 and above")]
    assert groups == expected
    assert sum(each["promises"] for each in counted[1:3]) == len(advice.found)
    weighted = [each for each in statements if each.get("amount") == "loan"]
    assert len(weighted) == len(counted)
    assert weighted[0]["shares"] != counted[0]["shares"]
    judged = tyrex.audit(explainer, advice)
    assert judged.stated["promises"] == sum(e.promised is not None for e in advice.found)
    assert judged.updates["updates"][0]["share_kept"] == judged.share_kept
    for wrong, says in (
        ({"amount": "branch"}, "expected an amount, at least 0"),
        ({"amount": "lone"}, "did you mean `loan`"),
        ({"by": "bench"}, "no column `bench`"),
    ):
        with pytest.raises(tyrex.TyrexError, match=re.escape(says)):
            explainer.explain(rows, **wrong, **asked)
    with pytest.raises(tyrex.ParameterError, match="are about promises"):
        explainer.explain(rows, by="age", method="min-cost")


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"promise": 0}, "`promise` is 0, expected a probability from 0.5 to 0.999"),
        ({"promise": 1}, "`promise` is 1, expected a probability"),
        ({"promise": float("nan")}, "`promise` is nan, expected a number"),
        ({"promise": "high"}, "`promise` is 'high', expected a number"),
        ({"promise": 0.9, "confidence": 1}, "`confidence` is 1, expected a number between 0 and 1"),
        ({"promise": 0.9, "method": "trex-o"}, "expected trex-e if a promise is given"),
        ({"promise": 0.9, "tau": 0.8}, "expected no `tau`, `k` or `sigma` beside it"),
        ({"promise": 0.9, "tau": "auto"}, "expected no `tau`, `k` or `sigma` beside it"),
    ],
)
def test_a_promise_that_cannot_be_asked_for(
    explainer: tyrex.Explainer, keywords: dict[str, Any], says: str
) -> None:
    with pytest.raises(tyrex.TyrexError, match=re.escape(says)):
        explainer.explain(limit=1, **keywords)


@pytest.mark.parametrize("kind", ["trees", "a black box"])
def test_a_promise_needs_a_network(kind: str, german: pd.DataFrame, numbers: pd.DataFrame) -> None:
    if kind == "trees":
        model, rows, how = fitted("gradient boosting on raw columns", german, numbers)
        explainer = tyrex.Explainer(model, rows, **how)
    else:
        explainer = tyrex.Explainer(lambda frame: 1 / (1 + np.exp(30 - frame["age"])), numbers)
    with pytest.raises(tyrex.TyrexError, match="only networks can be trained again.*trex-nn"):
        explainer.explain(limit=1, promise=0.9)


def test_the_score_of_margin_and_the_confidence_of_elastic_net(explainer: tyrex.Explainer) -> None:
    advice = explainer.explain(limit=5, method="margin", score=0.9)
    assert advice.found
    assert all(each.new_score >= 0.9 for each in advice.found)
    own = explainer.explain(limit=1, method="elastic-net", confidence=0.25)
    assert own.request["method"]["confidence"] == 0.25
