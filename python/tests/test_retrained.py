"""Models that the user retrained, or a function that retrains them."""

from __future__ import annotations

import json
import pathlib
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import tyrex

ROWS = 400


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"age": draw.integers(20, 70, ROWS), "income": draw.uniform(0, 10, ROWS).round(2)}
    )
    worth = frame["income"] + 0.03 * frame["age"] + draw.normal(0, 1.5, ROWS)
    frame["paid"] = (worth > 6).astype(int)
    return frame


def features(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["age", "income"]]


def pipeline(frame: pd.DataFrame) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(features(frame), frame["paid"])


@pytest.fixture(scope="module")
def logistic(rows: pd.DataFrame) -> tyrex.Explainer:
    return tyrex.Explainer(pipeline(rows), rows, label="paid")


def bootstrap(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    return rows.iloc[np.random.default_rng(seed).integers(0, len(rows), len(rows))]


def network(rows: pd.DataFrame, seed: int) -> nn.Module:
    draw = torch.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1), nn.Sigmoid())
    scale = torch.tensor([1 / 20, 1 / 3])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draw) * 0.5)
        model[0].weight *= scale
    x = torch.tensor(features(rows).to_numpy(), dtype=torch.float32)
    y = torch.tensor(rows["paid"].to_numpy(), dtype=torch.float32)[:, None]
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimiser.zero_grad()
        nn.functional.binary_cross_entropy(model(x), y).backward()
        optimiser.step()
    return model.eval()


def ensemble_tier(certificate: dict[str, Any]) -> dict[str, Any]:
    return next(tier for tier in certificate["tiers"] if tier["tier"] == "ensemble")


def test_retrained_pipelines_score_as_they_do_themselves(
    rows: pd.DataFrame, logistic: tyrex.Explainer
) -> None:
    models = [pipeline(bootstrap(rows, seed)) for seed in range(12)]
    ensemble = tyrex.retrain(logistic, retrained=models)
    assert len(ensemble) == 12 and "retrained elsewhere, from `retrained`" in repr(ensemble)
    own = np.array([model.predict_proba(features(rows))[:, 1] for model in models])
    assert np.abs(ensemble.score(features(rows)) - own).max() < 1e-4
    # Each keeps its own scales; the explainer has others.
    advice = logistic.explain(limit=3, tau=0.7, certify=ensemble)
    tiers = [ensemble_tier(each) for each in advice.certificates if each]
    assert tiers and all(tier["models"] == 12 for tier in tiers)
    words = json.dumps(tiers[0]["assumptions"])
    assert "user's word" in words and "likeness" in words
    certificates = tyrex.certify(logistic, advice, ensemble)
    assert all(tyrex.verify(logistic, certificates, ensemble))
    calibration = tyrex.calibrate(
        logistic, ensemble, rows=5, taus=[0.6], validity=0.5, confidence=0.5, k=50
    )
    assert calibration.to_dict()["choosing"] == 6
    for refused in (lambda: pickle.dumps(ensemble), lambda: ensemble.save("nowhere")):
        with pytest.raises(tyrex.ModelError, match="retrained elsewhere are not written"):
            refused()


def test_refit_makes_the_models_of_a_promise(rows: pd.DataFrame, logistic: tyrex.Explainer) -> None:
    calls: list[tuple[int, int]] = []

    def refit(seed: int, numbers: Any) -> Any:
        calls.append((seed, len(set(numbers))))
        return pipeline(rows.iloc[numbers])

    seen: list[tuple[int, int]] = []
    advice = logistic.explain(
        limit=6, promise=0.5, confidence=0.9, refit=refit, progress=lambda *at: seen.append(at)
    )
    # 40 to search over, 60 that choose the margin, 9 fresh ones, and 60 to compare with.
    assert len(calls) == 169 and (169, 169) in seen
    assert len({seed for seed, _ in calls}) == 169
    assert sum(different == ROWS for _, different in calls) == 60
    assert advice.request["method"]["method"] == "trex-e"
    promises = [each.promise for each in advice if each.found]
    assert promises and all(promise["models"] == 9 for promise in promises)
    assert any(promise["kept"] for promise in promises)
    assert "retrained elsewhere, from `refit`" in json.dumps(advice.portfolio)
    # Another model is audited against what was promised.
    new = tyrex.Explainer(pipeline(bootstrap(rows, 999)), rows, label="paid")
    audit = tyrex.audit(new, advice)
    assert len(audit) == len(promises)


def test_refit_in_threads_gives_the_same_models(rows: pd.DataFrame) -> None:
    explainer = tyrex.Explainer(network(rows, 0), features(rows))
    one, four = (
        tyrex.retrain(explainer, 6, refit=lambda seed: network(rows, seed), jobs=jobs)
        for jobs in (1, 4)
    )
    scores = one.score(features(rows))
    assert np.array_equal(scores, four.score(features(rows)))
    assert len(np.unique(scores[:, 0])) == 6
    # A search over given networks of torch.
    advice = explainer.explain(
        limit=2,
        method="trex-e",
        certify=False,
        retrained=[network(rows, seed) for seed in range(1, 16)],
    )
    assert all(each.found for each in advice)


def test_forests_are_searched_and_certify(rows: pd.DataFrame) -> None:
    # skl2onnx rounds thresholds to 32 bits, and a number right at one may change its side.
    rows = rows.assign(income=(rows["income"] * 64).round() / 64)

    def forest(seed: int) -> Any:
        return RandomForestClassifier(8, max_depth=4, random_state=seed).fit(
            features(rows), rows["paid"]
        )

    explainer = tyrex.Explainer(forest(0), rows, label="paid")
    advice = explainer.explain(limit=2, refit=forest, models=12)
    assert advice.request["method"]["method"] == "trex-o"
    tiers = [ensemble_tier(each) for each in advice.certificates if each]
    assert tiers and all(tier["models"] == 12 for tier in tiers)
    # 11 of 24 certify a promise of 0.5; the others are searched and choose the margin.
    advice = explainer.explain(limit=2, promise=0.5, refit=forest, models=24)
    assert advice.request["method"]["method"] == "trex-e"
    tiers = [ensemble_tier(each) for each in advice.certificates if each]
    assert tiers and all(tier["models"] == 11 for tier in tiers)


def test_black_boxes_certify_and_raise_their_errors(
    rows: pd.DataFrame, logistic: tyrex.Explainer
) -> None:
    class Broken(Exception):
        pass

    broken = [False]

    def function(shift: float) -> Any:
        def scores(x: Any) -> Any:
            if broken[0]:
                raise Broken("no answer")
            z = x["income"] + 0.03 * x["age"] - 6 + shift
            return 1 / (1 + np.exp(-np.asarray(z, dtype=float)))

        return scores

    ensemble = tyrex.retrain(logistic, retrained=[function(0.1 * i) for i in range(5)])
    assert len(tyrex.certify(logistic, features(rows).iloc[:2], ensemble)) == 2
    with pytest.raises(tyrex.ModelError, match=r"retrained\[1\]: it scores 400 reference rows"):
        tyrex.retrain(logistic, retrained=[function(0.1), function(0.1)])
    broken[0] = True
    with pytest.raises(Broken):
        tyrex.certify(logistic, features(rows).iloc[:2], ensemble)
    with pytest.raises(Broken):
        ensemble.score(features(rows).iloc[:2])


def test_sets_are_chosen_by_name(
    rows: pd.DataFrame, logistic: tyrex.Explainer, tmp_path: pathlib.Path
) -> None:
    def models(first: int, count: int) -> list[Any]:
        return [pipeline(bootstrap(rows, seed)) for seed in range(first, first + count)]

    sets = {"search": models(0, 6), "tune": models(6, 4), "fresh": models(10, 12)}
    advice = logistic.explain(limit=2, promise=0.5, confidence=0.9, retrained=sets)
    found = [each for each in advice if each.found]
    assert found and all(each.promise["models"] == 12 for each in found)


def test_models_that_searched_do_not_certify(rows: pd.DataFrame, logistic: tyrex.Explainer) -> None:
    models = [pipeline(bootstrap(rows, seed)) for seed in range(40)]
    question: dict[str, Any] = {"limit": 4, "promise": 0.5, "confidence": 0.9}
    advice = logistic.explain(retrained=models, **question)
    searched = advice.answer["searched"]
    fresh = next(each.promise for each in advice if each.found)["models"]
    assert searched["models"] == len(searched["fingerprints"]) == 40 - fresh > 0

    # The search took these at random: they are left out, and the others are known to be others.
    ensemble = tyrex.retrain(logistic, retrained=models)
    with pytest.warns(UserWarning, match=f"{40 - fresh} models of the ensemble took part"):
        certificates = tyrex.certify(logistic, advice, ensemble)
    tiers = [ensemble_tier(each) for each in certificates if each]
    assert tiers and all(tier["models"] == fresh for tier in tiers)
    words = [each["sentence"] for each in certificates if each]
    assert all(f"none of them is among the {40 - fresh} that searched" in each for each in words)
    # They are the certificates of `explain`.
    own = [each["retraining"] for each in advice.certificates if each]
    of = lambda each: (each["search"], sorted(each["models"]))  # noqa: E731
    again = [each["retraining"] for each in certificates if each]
    assert [of(each) for each in again] == [of(each) for each in own]

    # Models that the user chose to certify are refused, and so are models that all searched.
    chosen = tyrex.retrain(logistic, retrained={"fresh": models})
    with pytest.raises(tyrex.ParameterError, match=f"{40 - fresh} models that took part"):
        tyrex.certify(logistic, advice, chosen)
    steered = tyrex.certify(logistic, advice, ensemble, steered=True)
    assert all(ensemble_tier(each)["verdict"] != "certified" for each in steered if each)
    # Nothing of it is lost in a file.
    restored = tyrex.Explanations.from_json(str(advice.to_json()))
    with pytest.warns(UserWarning, match="took part"):
        assert tyrex.certify(logistic, restored, ensemble) == certificates


def test_rows_without_a_record_are_certified_by_declared_models(
    rows: pd.DataFrame, logistic: tyrex.Explainer
) -> None:
    others = [pipeline(bootstrap(rows, 1000 + seed)) for seed in range(60)]
    ensemble = tyrex.retrain(logistic, retrained=others)
    best = pd.DataFrame({"age": [60], "income": [9.5]})
    (unknown,) = tyrex.certify(logistic, best, ensemble)
    (declared,) = tyrex.certify(logistic, best, ensemble, steered=False)
    assert unknown is not None and declared is not None
    assert ensemble_tier(unknown)["verdict"] == "empirical"
    assert "which is not recorded (not known)" in unknown["sentence"]
    assert ensemble_tier(declared)["verdict"] == "certified"
    assert "which is not recorded (declared)" in declared["sentence"]
    assert all(tyrex.verify(logistic, [unknown, declared], ensemble))
    with pytest.raises(tyrex.ParameterError, match="`steered` is 'no'"):
        tyrex.certify(logistic, best, ensemble, steered="no")  # type: ignore[arg-type]

    # Batches: the answers of a search over some of these models name them.
    question: dict[str, Any] = {"promise": 0.5, "confidence": 0.9, "certify": ensemble}
    applicants = features(rows).iloc[:60]
    answers = pa.Table.from_batches(
        logistic.explain_batches(pa.Table.from_pandas(applicants), **question)
    )
    found = answers.filter(pc.equal(answers["status"], "found"))
    assert len(found) > 2
    certifier = tyrex.Certifier(logistic, ensemble)
    lines = pa.Table.from_batches(certifier.lines(found)).to_pylist()
    searched = json.loads(found["parameters"][0].as_py())["searched"]["models"]
    for line in lines:
        tier = ensemble_tier(json.loads(line["certificate"]))
        assert tier["models"] == 60 - searched < 60
        assert f"none of them is among the {searched} that searched (declared)" in line["sentence"]
    without = pa.Table.from_batches(certifier.lines(found.drop_columns("parameters")))
    for line in without.to_pylist():
        tier = ensemble_tier(json.loads(line["certificate"]))
        assert tier["models"] == 60 and tier["verdict"] == "empirical"
        assert "(not known)" in line["sentence"]


def test_models_for_a_certificate_are_others_than_those_of_a_search(
    rows: pd.DataFrame, logistic: tyrex.Explainer
) -> None:
    # Without any randomness of its own, a model depends on its rows alone.
    def refit(seed: int, numbers: Any) -> Any:
        return pipeline(rows.iloc[numbers])

    question: dict[str, Any] = {"limit": 2, "promise": 0.5, "confidence": 0.9}
    advice = logistic.explain(refit=refit, **question)
    ensemble = tyrex.retrain(logistic, 30, refit=refit)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certificates = tyrex.certify(logistic, advice, ensemble)
    tiers = [ensemble_tier(each) for each in certificates if each]
    assert tiers and all(tier["models"] == 30 for tier in tiers)
    # The same call makes the same models.
    again = tyrex.retrain(logistic, 30, refit=refit)
    assert np.array_equal(again.score(features(rows)), ensemble.score(features(rows)))

    seeds: dict[str, list[int]] = {"explain": [], "retrain": []}

    def seeded(purpose: str) -> Any:
        def refit(seed: int) -> Any:
            seeds[purpose].append(seed)
            return pipeline(bootstrap(rows, seed))

        return refit

    logistic.explain(refit=seeded("explain"), **question)
    tyrex.retrain(logistic, 30, refit=seeded("retrain"))
    assert not set(seeds["explain"]) & set(seeds["retrain"]) and len(seeds["retrain"]) == 30


def test_models_that_do_not_fit_are_named(rows: pd.DataFrame, logistic: tyrex.Explainer) -> None:
    own = pipeline(rows)
    for models, message in [
        ([own], r"retrained\[0\]: it is the same as the model in use"),
        ([pipeline(bootstrap(rows, 1))] * 2, r"retrained\[1\]: it is the same as retrained\[0\]"),
        ([b"no model"], r"retrained\[0\]: .*not an ONNX model"),
        ([3], r"retrained\[0\]: cannot read a model of type builtins.int"),
        ([], "no retrained models, expected 1 to 10000"),
        ({"judge": []}, "'judge', expected search, tune, fresh, sibling"),
        (own, "expected a list of models"),
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(tyrex.TyrexError, match=message):
                tyrex.retrain(logistic, retrained=models)
    with pytest.raises(tyrex.ModelError, match=r"`refit` failed for the seed \d+: KeyError"):
        tyrex.retrain(logistic, 3, refit=lambda seed: {}[seed])
    with pytest.raises(tyrex.ModelError, match="is the same as"):
        tyrex.retrain(logistic, 3, refit=lambda seed: own)
    with pytest.raises(tyrex.ParameterError, match="one way to make models"):
        tyrex.retrain(logistic, 3, refit=lambda seed: own, change="bootstrap")
    with pytest.raises(tyrex.ParameterError, match="one way to make models"):
        logistic.explain(retrained=[own], models=3)
    with pytest.raises(tyrex.ParameterError, match="expected a function of a seed"):
        tyrex.retrain(logistic, 3, refit=7)
