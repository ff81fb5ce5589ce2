"""Stability, retrained models, certificates, calibration and audits, from Python."""

from __future__ import annotations

import json
import pathlib
import pickle
import subprocess

import numpy as np
import pandas as pd
import pytest
from conftest import built, output_of

import tyrex


@pytest.fixture(scope="module")
def ensemble(explainer: tyrex.Explainer) -> tyrex.Ensemble:
    return tyrex.retrain(explainer, 24, change="leave-out", seed=1)


def test_stability_is_that_of_the_command_line(
    explainer: tyrex.Explainer, features: pd.DataFrame, tmp_path: pathlib.Path
) -> None:
    model, rows = tmp_path / "model.onnx", tmp_path / "rows.csv"
    explainer.to_onnx(model)
    features.iloc[:7].to_csv(rows, index=False)
    spoken = output_of(
        *(built("tyrex"), "stability", "--data", str(rows), "--model", str(model), "--json"),
        *("--k", "500", "--sigma", "0.2"),
    )
    table = tyrex.stability(explainer, features.iloc[:7], k=500, sigma=0.2)
    for ours, theirs in zip(table.rows, json.loads(spoken)["rows"]):
        for name, value in theirs.items():
            assert ours[name] == pytest.approx(value, rel=1e-6), name
    with pytest.raises(tyrex.ParameterError, match="sigma"):
        tyrex.stability(explainer, sigma=-1)
    with pytest.raises(tyrex.ParameterError, match="sampled-slopes"):
        tyrex.stability(explainer, gamma="guess")


def test_an_ensemble_scores_saves_and_pickles(
    explainer: tyrex.Explainer,
    ensemble: tyrex.Ensemble,
    features: pd.DataFrame,
    tmp_path: pathlib.Path,
) -> None:
    scores = ensemble.score(features.iloc[:9])
    assert scores.shape == (24, 9) and np.all((scores >= 0) & (scores <= 1))
    assert len(np.unique(scores[:, 0])) > 1
    ensemble.save(tmp_path / "models")
    with pytest.raises(FileExistsError):
        ensemble.save(tmp_path / "models")
    loaded = tyrex.Ensemble.load(explainer, tmp_path / "models")
    pickled = pickle.loads(pickle.dumps(ensemble))
    for other in (loaded, pickled):
        assert np.array_equal(other.score(features.iloc[:9]), scores)
        assert repr(other) == repr(ensemble)
    moved = ensemble.observed_change(features)
    assert moved["models"] == 24 and moved["mean_change"] > 0
    again = tyrex.retrain(explainer, 24, change="leave-out", seed=1)
    assert np.array_equal(again.score(features.iloc[:9]), scores)


def test_one_of_several_changes_is_drawn_for_each_model(
    explainer: tyrex.Explainer, features: pd.DataFrame
) -> None:
    mixed = tyrex.retrain(explainer, 6, change="leave-out, dropout", seed=1)
    assert mixed.change.startswith("one of 2 changes, drawn for each model: trained again without")
    changes = [{"name": "leave-out", "fraction": 0.01}, {"name": "dropout"}]
    params = {"changes": changes}
    same = tyrex.retrain(explainer, 6, change="mixture", change_params=params, seed=1)
    assert np.array_equal(same.score(features.iloc[:9]), mixed.score(features.iloc[:9]))
    with pytest.raises(tyrex.ParameterError, match="none with several changes"):
        tyrex.retrain(explainer, 2, change="leave-out,dropout", change_params={"rate": 0.2})
    for change in ("leave-out,dropout", {"name": "mixture", **params}):
        advice = explainer.explain(
            limit=3, method="trex-i", certify=True, models=3, change=change, training={"epochs": 3}
        )
        assert advice.found
        assert all(mixed.change in str(each.certificate) for each in advice.found)


def test_robust_advice_survives_more_models(
    explainer: tyrex.Explainer, ensemble: tyrex.Ensemble
) -> None:
    cheap = explainer.explain(method="min-cost")
    robust = explainer.explain(method="trex-i", tau=0.85)
    assert ensemble.validity(robust) > ensemble.validity(cheap) + 0.1
    brute = [
        score >= 0.5 for each in robust.found for score in ensemble.score(each.counterfactual)[:, 0]
    ]
    assert ensemble.validity(robust) == pytest.approx(np.mean(brute))


def test_certificates_say_what_they_rest_on(
    explainer: tyrex.Explainer, ensemble: tyrex.Ensemble
) -> None:
    advice = explainer.explain(limit=4, tau=0.8, certify=ensemble)
    for each, certificate in zip(advice, advice.certificates):
        assert (certificate is not None) == each.found
        if certificate is None:
            continue
        assert "rests on" in certificate["sentence"]
        tiers = json.dumps(certificate["tiers"])
        assert "ensemble" in tiers and "24" in tiers
        assert certificate["score"] == pytest.approx(each.new_score, abs=1e-6)
    plain = tyrex.certify(explainer, advice)
    assert [each is None for each in plain] == [not each.found for each in advice]
    by_rows = tyrex.certify(explainer, pd.DataFrame([e.counterfactual for e in advice.found]))
    assert by_rows == [certificate for certificate in plain if certificate is not None]
    points = explainer.explain(limit=1, protocol="paper", method="min-cost")
    with pytest.raises(tyrex.ParameterError, match="points"):
        tyrex.certify(explainer, points)


def test_calibration_chooses_the_threshold_that_the_command_line_does(
    explainer: tyrex.Explainer, tmp_path: pathlib.Path
) -> None:
    models = tyrex.retrain(explainer, 60, change="leave-out", seed=2)
    found = tyrex.calibrate(
        explainer, models, validity=0.8, confidence=0.9, taus=[0.5, 0.6, 0.7, 0.8, 0.9], rows=20
    )
    assert found.verdict == "chosen" and found.tau in (0.5, 0.6, 0.7, 0.8, 0.9)
    assert found.curve["tau"].tolist() == [0.9, 0.8, 0.7, 0.6, 0.5]
    assert "Calibration: tau =" in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found
    few = tyrex.retrain(explainer, 4, seed=3)
    none = tyrex.calibrate(explainer, few, validity=0.99, rows=5)
    assert none.tau is None and none.verdict == "too-few-models"
    with pytest.raises(tyrex.ParameterError, match="trex-nn"):
        tyrex.calibrate(explainer, few, method="nn")
    assert found.plot() is not None


def test_an_audit_counts_what_the_new_model_keeps(german: pd.DataFrame) -> None:
    data = tyrex.datasets.load_german()
    old = tyrex.Explainer.train(data, hidden=[16], epochs=20, seed=0)
    new = tyrex.Explainer.train(data, hidden=[16], epochs=20, seed=5)
    advice = old.explain(method="min-cost", limit=40)
    found = tyrex.audit(new, advice, tau=0.7)
    scores = new.score(pd.DataFrame([each.counterfactual for each in advice.found]))
    assert len(found.kept) == int((scores >= 0.5).sum())
    assert len(found.broken) == int((scores < 0.5).sum()) > 0
    low, high = found.interval
    assert low < found.share_kept < high
    for promise in found.broken:
        repair = promise.from_promised
        assert repair is not None and repair.features == promise.promised
        if repair.found:
            assert new.score(repair.counterfactual)[0] >= 0.5
    assert all(promise.from_promised is None for promise in found.kept)
    table = found.table
    assert table["kept"].sum() == len(found.kept) and len(table["row"]) == len(advice.found)
    # Advice that was saved and read again is the same advice.
    again = tyrex.audit(new, tyrex.Explanations.from_json(advice.to_json()), tau=0.7)
    assert again.summary == found.summary
    assert "kept" in repr(found) and "<iframe" in found._repr_html_()
    with pytest.raises(TypeError, match="Explanations"):
        tyrex.audit(new, [1, 2])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tyrex.Explainer"):
        tyrex.audit({}, advice)


def test_a_candidate_with_another_favourable_label_is_refused(
    german: pd.DataFrame, tmp_path: pathlib.Path
) -> None:
    def trained(label: str, favourable: str, data: pd.DataFrame = german) -> tyrex.Explainer:
        return tyrex.Explainer.train(
            data, label=label, favourable=favourable, hidden=[16], epochs=20, seed=0
        )

    old, new, turned = (trained("class", which) for which in ("good", "good", "bad"))
    renamed = trained("verdict", "good", german.rename(columns={"class": "verdict"}))
    advice = old.explain(method="min-cost", limit=20)
    assert advice.meaning == {"label": "class", "favourable": ["good"], "threshold": 0.5}
    # The turned model accepts what the old one rejects, so it would keep promises by rejecting.
    assert tyrex.audit(new, advice, method="min-cost").passes
    saved = tmp_path / "advice.json"
    advice.save(saved)
    promise = "but the promise `row \\d+` is `good` in column `class` from a score of 0.5 on"
    for given in (
        advice,
        advice.found,
        advice[:7],
        pickle.loads(pickle.dumps(advice)),
        tyrex.Explanations.from_json(saved),
    ):
        for other, own in (
            (turned, "`bad` in column `class` from a score of 0.5 on favourable"),
            (renamed, "`good` in column `verdict` from a score of 0.5 on favourable"),
        ):
            with pytest.raises(tyrex.ModelError, match=f"calls {own}, {promise}"):
                tyrex.audit(other, given, method="min-cost")
            with pytest.raises(tyrex.ModelError, match="favourable"):
                tyrex.audit({"new": new, "other": other}, given, method="min-cost")
    # Advice with another threshold, and advice of earlier versions, which did not say.
    document = json.loads(saved.read_text())
    document["meaning"]["threshold"] = 0.6
    with pytest.raises(tyrex.ModelError, match="from a score of 0.6 on"):
        tyrex.audit(new, tyrex.Explanations.from_json(json.dumps(document)), method="min-cost")
    del document["meaning"]
    earlier = tyrex.Explanations.from_json(json.dumps(document))
    assert earlier.meaning is None and tyrex.audit(new, earlier, method="min-cost").passes
    # The command line says the same.
    turned.to_onnx(tmp_path / "turned.onnx")
    old.to_onnx(tmp_path / "old.onnx")
    german.drop(columns="class").to_csv(tmp_path / "rows.csv", index=False)
    output_of(
        *(built("tyrex"), "explain", "--data", "rows.csv", "--model", "old.onnx"),
        *("--method", "min-cost", "--limit", "20", "--out", "advice.csv"),
        cwd=tmp_path,
    )
    advice.save(tmp_path / "saved.csv")
    advice.save(tmp_path / "saved.parquet")
    for file in ("advice.csv", "saved.csv", "saved.parquet"):
        audit = [built("tyrex"), "audit", "--counterfactuals", file, "--method", "min-cost"]
        done = subprocess.run(
            [*audit, "--model", "turned.onnx"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 2 and "calls `bad` in column `class`" in done.stderr, done.stderr
        report = json.loads(output_of(*audit, "--model", "old.onnx", "--json", cwd=tmp_path))
        assert report["verdict"]["passes"] and report["candidates"][0]["ignored"] == []


def test_an_audit_is_the_gate(german: pd.DataFrame, tmp_path: pathlib.Path) -> None:
    data = tyrex.datasets.load_german()
    old = tyrex.Explainer.train(data, hidden=[16], epochs=20, seed=0)
    new = tyrex.Explainer.train(data, hidden=[16], epochs=20, seed=5)
    advice = old.explain(method="min-cost", limit=40)
    by = {"housing": None, "age": [30, 45]}
    found = tyrex.audit({"new": new, "old": old}, advice, by=by, method="min-cost")
    # The old model keeps its own promises, so it is the best candidate.
    assert found.name == "old" and found.passes and not found.broken
    assert found.candidates["name"].tolist() == ["old", "new"]
    assert found.verdict.startswith("1 of 2 candidates may be deployed: old.")
    other = found.under("new")
    assert other.broken and not other.passes
    groups = other.groups
    assert groups["feature"].tolist() == ["housing"] * 3 + ["age"] * 3
    assert groups["promises"][:3].sum() == groups["promises"][3:].sum() == len(other)
    assert groups["kept"][:3].sum() == len(other.kept)
    with pytest.raises(tyrex.ParameterError, match="the candidates are old, new"):
        found.under("newer")
    # So many broken promises are allowed, and no fewer.
    share = len(other.broken) / len(other)
    assert tyrex.audit(new, advice, allow=share, method="min-cost").passes
    assert not tyrex.audit(new, advice, allow=share - 0.01, method="min-cost").passes
    # Groups of what the model does not take.
    people = german.drop(columns="class").assign(branch=["north", "south"] * 500)
    branches = tyrex.audit(new, advice, by="branch", rows=people, method="min-cost").groups
    assert branches["group"].tolist() == ["north", "south"]
    odd = sum(each.row % 2 for each in advice.found)
    assert branches["promises"].tolist() == [len(other) - odd, odd]
    with pytest.raises(tyrex.DataError, match="has 3 rows"):
        tyrex.audit(new, advice, by="branch", rows=people.iloc[:3])
    with pytest.raises(tyrex.ParameterError, match="`by` is branch"):
        tyrex.audit(new, advice, by="branch")
    # The page and the document are those of the command line.
    page = tmp_path / "audit.html"
    other.to_html(page)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    old.to_onnx(tmp_path / "old.onnx")
    new.to_onnx(tmp_path / "new.onnx")
    advice.save(tmp_path / "advice.csv")
    german.to_csv(tmp_path / "rows.csv", index=False)
    done = subprocess.run(
        [
            *(built("tyrex"), "audit", "--counterfactuals", "advice.csv", "--data", "rows.csv"),
            *("--model", "new.onnx", "--model", "old.onnx", "--method", "min-cost", "--json"),
            *("--by", "housing", "--by", "age:30,45"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    spoken = json.loads(done.stdout)["candidates"]
    for ours, theirs in zip(found.report["candidates"], spoken):
        assert ours["tally"] == theirs["tally"]
        assert ours["groups"] == theirs["groups"]
        for one, another in zip(ours["promises"], theirs["promises"]):
            assert (one["status"], one["score"]) == (another["status"], another["score"])


def test_certificates_are_made_anew_and_compared(
    explainer: tyrex.Explainer, ensemble: tyrex.Ensemble, tmp_path: pathlib.Path
) -> None:
    advice = explainer.explain(limit=3, method="min-cost", certify=ensemble)
    assert all(tyrex.verify(explainer, advice, ensemble))
    certificates = [each for each in advice.certificates if each is not None]
    assert len(tyrex.verify(explainer, certificates, ensemble)) == len(certificates) > 0
    assert all(tyrex.verify(explainer, certificates[0], ensemble))
    # A file, and the command line.
    advice.save(tmp_path / "advice.json")
    assert all(tyrex.verify(explainer, tmp_path / "advice.json", ensemble))
    explainer.to_onnx(tmp_path / "model.onnx")
    ensemble.save(tmp_path / "models")
    output_of(
        *(built("tyrex"), "certify", "--verify", "advice.json", "--model", "model.onnx"),
        *("--ensemble", "models"),
        cwd=tmp_path,
    )
    tampered = json.loads(json.dumps(certificates[0]))
    tampered["tiers"][-1]["valid"] += 1
    (found,) = tyrex.verify(explainer, tampered, ensemble)
    assert not found and found.differences[0]["field"].startswith("tiers.")
    tampered = {**certificates[0], "sentence": "Nothing can go wrong."}
    (found,) = tyrex.verify(explainer, tampered, ensemble)
    assert [each["field"] for each in found.differences] == ["sentence"]
    with pytest.raises(tyrex.ParameterError, match="24 retrained models"):
        tyrex.verify(explainer, certificates)
    for wrong in ({}, [], "no such file.json", {"digest": 1, "tiers": []}):
        with pytest.raises((tyrex.ParameterError, FileNotFoundError)):
            tyrex.verify(explainer, wrong)


def test_the_threshold_can_be_calibrated(explainer: tyrex.Explainer) -> None:
    models = tyrex.retrain(explainer, 120, seed=2, epochs=5)
    chosen = tyrex.calibrate(explainer, models)
    assert chosen.tau is not None
    advice = explainer.explain(tau="auto", certify=models)
    assert advice.request["tau"] == chosen.tau
    # The models had a part in the choice, so they prove nothing.
    certificates = [each for each in advice.certificates if each is not None]
    assert certificates and all(each["retraining"]["steered"] for each in certificates)
    # A folder of few models cannot show that a threshold keeps 95 % of the advice valid.
    few = tyrex.retrain(explainer, 4, seed=2, epochs=5)
    # The best one takes its place.
    best = tyrex.calibrate(explainer, few)
    assert best.tau is None and best.best is not None
    assert explainer.explain(tau="auto", certify=few).request["tau"] == best.best["tau"]
    with pytest.raises(tyrex.ParameterError, match="audit does not calibrate"):
        tyrex.audit(explainer, advice, tau="auto")  # type: ignore[arg-type]


def test_an_ensemble_of_another_model_is_refused(
    features: pd.DataFrame, ensemble: tyrex.Ensemble
) -> None:
    other = tyrex.Explainer.train(tyrex.datasets.load_german(), hidden=[16], epochs=3, seed=9)
    for ask in (
        lambda: tyrex.certify(other, features.iloc[:2], ensemble),
        lambda: tyrex.calibrate(other, ensemble),
    ):
        with pytest.raises(tyrex.ModelError, match="expected one of this model"):
            ask()


def test_only_networks_with_labels_are_trained_again(numbers: pd.DataFrame) -> None:
    opaque = tyrex.Explainer(lambda x: np.full(len(x), 0.4), numbers)
    with pytest.raises(tyrex.ModelError, match="only networks"):
        tyrex.retrain(opaque, 2)
    from sklearn.linear_model import LogisticRegression

    labels = np.arange(len(numbers)) % 2
    model = LogisticRegression(max_iter=300).fit(numbers, labels)
    with pytest.raises(tyrex.DataError, match="label"):
        tyrex.retrain(tyrex.Explainer(model, numbers), 2)
    assert len(tyrex.retrain(tyrex.Explainer(model, numbers, label=labels), 2, epochs=2)) == 2
    with pytest.raises(tyrex.ParameterError, match="leave-out"):
        tyrex.retrain(tyrex.Explainer(model, numbers, label=labels), 2, change="pray")
