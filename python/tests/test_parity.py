"""The same factuals give the same counterfactuals through Python, the command line and Rust."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pandas as pd
import pytest
from conftest import built, output_of

import tyrex


def advised(documents: list[dict]) -> list[tuple]:
    """What an answer is, without times and certificates."""
    return [
        (
            each["row"],
            each["score"],
            each["advice"]["status"],
            each["advice"].get("changes"),
            each["advice"].get("counterfactual"),
            each["advice"].get("score"),
            each["advice"].get("stability"),
            each["advice"].get("cost"),
        )
        for each in documents
    ]


def documents(advice: tyrex.Explanations) -> list[dict]:
    return json.loads(advice.to_json())["explanations"]


@pytest.mark.parametrize("method", ["trex-i", "trex-o", "trex-nn", "min-cost", "nn", "sns"])
def test_a_file_of_applicants(
    method: str, explainer: tyrex.Explainer, german: pd.DataFrame, tmp_path: pathlib.Path
) -> None:
    model, rows = tmp_path / "model.onnx", tmp_path / "applicants.csv"
    explainer.to_onnx(model)
    german.drop(columns="class").iloc[:100].to_csv(rows, index=False)
    spoken = output_of(
        *(built("tyrex"), "explain", "--data", str(rows), "--model", str(model), "--json"),
        *("--method", method, "--limit", "100", "--models", "0"),
    )
    by_command_line = json.loads(spoken)["rejected"]
    by_rust = [
        json.loads(line)
        for line in output_of(built("examples/advise"), str(model), str(rows), method).splitlines()
    ]
    by_python = tyrex.Explainer(str(model), pd.read_csv(rows)).explain(method=method)
    assert len(by_python) > 8
    assert advised(by_command_line) == advised(by_rust)
    assert advised(documents(by_python)) == advised(by_rust)


def test_a_data_set_trained_in_either_place() -> None:
    spoken = output_of(
        *(built("tyrex"), "explain", "--dataset", "german", "--method", "trex-i", "--json"),
        *("--limit", "10", "--models", "0", "--norm", "l2", "--tau", "0.7", "--seed", "3"),
    )
    explainer = tyrex.Explainer.train(tyrex.datasets.load_german(), seed=3)
    advice = explainer.explain(method="trex-i", limit=10, norm="l2", tau=0.7, seed=3)
    assert advised(documents(advice)) == advised(json.loads(spoken)["rejected"])
    # The same certificates, too, from the same seed.
    certificates = [each["advice"]["certificate"] for each in json.loads(spoken)["rejected"]]
    for ours, theirs in zip(tyrex.certify(explainer, advice, seed=3), certificates):
        assert {name: ours[name] for name in theirs} == theirs


def test_every_container_gives_the_same_advice(
    explainer: tyrex.Explainer, features: pd.DataFrame
) -> None:
    import polars
    import pyarrow

    rows = features.iloc[:40]
    expected = documents(explainer.explain(rows, method="trex-nn"))
    shuffled = rows[rows.columns[::-1]]
    for other in [
        shuffled,
        rows.assign(extra=1.5),
        polars.from_pandas(rows.reset_index(drop=True)),
        pyarrow.Table.from_pandas(rows),
        rows.to_dict("list"),
        rows.to_dict("records"),
        rows.to_numpy(dtype=object),
    ]:
        assert advised(documents(explainer.explain(other, method="trex-nn"))) == advised(expected)


def test_the_number_of_threads_changes_nothing(explainer: tyrex.Explainer) -> None:
    answers = []
    for threads in (1, 2, 3):
        tyrex.set_threads(threads)
        answers.append(advised(documents(explainer.explain(limit=20))))
    tyrex.set_threads(2)
    assert answers[0] == answers[1] == answers[2]


def test_rows_of_one_kind_or_another(explainer: tyrex.Explainer, features: pd.DataFrame) -> None:
    one = features.iloc[5]
    as_series, as_dict = explainer.score(one), explainer.score(one.to_dict())
    assert np.array_equal(as_series, as_dict)
    assert np.array_equal(as_series, explainer.score(features.iloc[[5]]))
