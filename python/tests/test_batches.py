"""Rows in batches: Arrow in, Arrow out, the same bits however the rows are cut."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import built, output_of

import tyrex

# Times are not answers.
TIMES = ["seconds"]


@pytest.fixture(scope="module")
def people(features: pd.DataFrame) -> pa.Table:
    """120 people with a key."""
    rows = features.head(120).assign(id=[f"person {number}" for number in range(120)])
    return pa.Table.from_pandas(rows, preserve_index=False)


@pytest.fixture(scope="module")
def promising() -> tyrex.Explainer:
    """An explainer whose models are retrained in a moment."""
    german = tyrex.datasets.load_german()
    return tyrex.Explainer.train(german, hidden=[8], epochs=3, early_stopping=None)


@pytest.fixture(scope="module")
def adviser(promising: tyrex.Explainer) -> tyrex.Adviser:
    """The default question, which has a promise."""
    return promising.adviser()


def parts(table: pa.Table, count: int) -> list[pa.Table]:
    cuts = [table.num_rows * part // count for part in range(count + 1)]
    return [table.slice(start, end - start) for start, end in zip(cuts, cuts[1:])]


def answers(work: tyrex.batches.Batchwise, table: pa.Table, **how: Any) -> pa.Table:
    found = pa.Table.from_batches(list(work.lines(table, key="id", **how)))
    return found.drop_columns([name for name in TIMES if name in found.schema.names])


def test_the_answers_are_those_of_the_file_that_explain_writes(
    tmp_path: Any, explainer: tyrex.Explainer, features: pd.DataFrame
) -> None:
    model = tmp_path / "model.onnx"
    explainer.to_onnx(model)
    rejected = features.head(200)[explainer.score(features.head(200)) < 0.5]
    rejected.to_parquet(tmp_path / "rows.parquet", index=False)
    question = {"method": "trex-i", "tau": 0.7, "norm": "l2"}
    output_of(
        *(built("tyrex"), "explain", "--data", "rows.parquet", "--model", "model.onnx"),
        *("--method", "trex-i", "--tau", "0.7", "--norm", "l2", "--out", "advice.parquet"),
        cwd=tmp_path,
    )
    written = pq.read_table(tmp_path / "advice.parquet")
    # The reference of the command line is empty, as its data are the rows to explain.
    own = tyrex.Explainer(str(model), rejected)
    found = pa.Table.from_batches(list(own.explain_batches(rejected, **question)))
    assert found.schema.names == [*written.schema.names, "error"]
    assert found.schema.types[:-1] == written.schema.types
    assert found["error"].null_count == len(found) == len(written) > 20
    same = [name for name in written.schema.names if name != "seconds"]
    assert found.select(same).equals(written.select(same))


def test_the_answers_are_those_of_explain(
    promising: tyrex.Explainer, adviser: tyrex.Adviser, people: pa.Table
) -> None:
    found = answers(adviser, people).to_pylist()
    expected = promising.explain(people.drop_columns(["id"]))
    assert len(found) == len(expected) == 120
    assert any(each.found for each in expected)
    for line, each in zip(found, expected):
        assert line["status"] == ("found" if each.found else "not_found")
        assert line["cost_l1"] == each.cost_l1 and line["error"] is None
        if each.found:
            assert line["score"] == pytest.approx(each.new_score, rel=1e-6)
            counterfactual = {name: line[name] for name in each.counterfactual}
            assert counterfactual == each.counterfactual
            assert line["promise_models"] == 61
        else:
            assert line["reason"] == each.reason


@pytest.mark.parametrize("count", [1, 7, 64])
def test_the_same_bits_however_the_rows_are_cut(
    adviser: tyrex.Adviser, people: pa.Table, count: int
) -> None:
    whole = answers(adviser, people)
    cut = parts(people, count)
    random.Random(count).shuffle(cut)
    other = pickle.loads(pickle.dumps(adviser))
    mixed = [answers(own, part) for part, own in zip(cut, [adviser, other] * count)]
    assert pa.concat_tables(mixed).sort_by("id").equals(whole.sort_by("id").combine_chunks())


def test_measures_and_certificates_have_the_same_bits_too(
    promising: tyrex.Explainer, people: pa.Table
) -> None:
    ensemble = tyrex.retrain(promising, 12)
    works = [tyrex.Gauge(promising, k=50), tyrex.Certifier(promising, ensemble)]
    for work in works:
        whole = answers(work, people.slice(0, 40))
        assert whole["error"].null_count == 40
        other = pickle.loads(pickle.dumps(work))
        cut = [answers(other, part) for part in reversed(parts(people.slice(0, 40), 7))]
        assert pa.concat_tables(cut).sort_by("id").equals(whole.sort_by("id").combine_chunks())
    measured = answers(works[0], people).to_pydict()
    alone = tyrex.stability(promising, people.drop_columns(["id"]), k=50)
    assert measured["relaxed_stability"] == alone["relaxed_stability"].tolist()
    certified = answers(works[1], people.slice(0, 5))
    sentences = [
        each["sentence"] for each in tyrex.certify(promising, people.slice(0, 5), ensemble)
    ]
    assert certified["sentence"].to_pylist() == sentences


def test_promises_are_judged_as_an_audit_judges_them(
    explainer: tyrex.Explainer, people: pa.Table
) -> None:
    adviser = explainer.adviser(method="min-cost", promises=True)
    given = pa.Table.from_batches(list(adviser.explain_batches(people, key="id")))
    next_model = tyrex.Explainer.train(
        tyrex.datasets.load_german(), hidden=[16], epochs=20, early_stopping=None, seed=1
    )
    judged = answers(tyrex.Auditor(next_model, tau=0.6), given).to_pylist()
    advice = explainer.explain(people.drop_columns(["id"]), method="min-cost")
    audit = tyrex.audit(next_model, advice, tau=0.6)
    found = [line for line, each in zip(judged, advice) if each.found]
    assert [line["status"] for line in found] == [each.status for each in audit]
    assert [line["stability"] for line in found] == [each.stability for each in audit]
    assert {line["status"] for line in judged} == {"kept", "broken", None}
    assert all((line["repairs"] is None) == (line["status"] != "broken") for line in judged)


def test_pandas_polars_and_pyarrow_take_the_same_way(
    explainer: tyrex.Explainer, features: pd.DataFrame
) -> None:
    adviser = explainer.adviser(method="min-cost")
    rows = features.head(60)
    categories = rows.astype({name: "category" for name in rows.select_dtypes("object", "string")})
    ways: list[Any] = [
        rows,
        categories,
        pl.from_pandas(rows),
        pl.from_pandas(categories),
        pa.Table.from_pandas(rows),
        pa.Table.from_pandas(rows).to_batches(max_chunksize=7),
        pa.Table.from_pandas(rows).to_reader(max_chunksize=11),
        iter([rows.iloc[:13], pl.from_pandas(rows.iloc[13:])]),
    ]
    found = [
        pa.Table.from_batches(list(adviser.explain_batches(way))).drop_columns(TIMES)
        for way in ways
    ]
    assert found[0]["row"].to_pylist() == list(range(60))
    for other in found[1:]:
        assert other.combine_chunks().equals(found[0].combine_chunks())


def test_numbers_mean_what_their_text_means(explainer: tyrex.Explainer) -> None:
    rows = tyrex.datasets.load_german().to_pandas().head(30)
    number = "credit_amount"
    adviser = explainer.adviser(method="min-cost")
    whole = list(adviser.explain_batches(rows))[0].drop_columns(TIMES)
    for kind in ["float32", "float64", "int16", "uint32", "Int64", "string"]:
        table = pa.Table.from_pandas(rows.astype({number: kind}))
        assert list(adviser.explain_batches(table))[0].drop_columns(TIMES).equals(whole), kind


def test_missing_numbers_are_missing(explainer: tyrex.Explainer) -> None:
    """A number that the schema calls missing is so as a number too, and one that is not, is not."""
    rows = tyrex.datasets.load_german().to_pandas()
    rows["age"] = rows["age"].mask(rows.index % 7 == 0, -9)
    toml = explainer.schema.to_toml()
    toml += '\n[missing]\ntokens = ["", "-9", "8.0"]\n'
    start = toml.index('name = "age"')
    toml = toml[:start] + "missing = { fill = 35 }\n" + toml[start:]
    own = tyrex.Explainer.train(rows, toml, label="class", hidden=[8], epochs=5)
    people = rows.head(50).drop(columns="class")
    expected = own.explain(people, method="min-cost")
    for kind in ["int64", "float64", "float32", "string"]:
        table = people.astype({"age": kind})
        lines = list(own.explain_batches(table, method="min-cost"))[0].to_pylist()
        assert [line["cost_l1"] for line in lines] == [each.cost_l1 for each in expected], kind
        assert all(line["error"] is None for line in lines)


def test_a_bad_row_is_a_row(explainer: tyrex.Explainer, features: pd.DataFrame) -> None:
    rows = features.head(6).copy()
    rows["age"] = rows["age"].astype("float64")
    rows.loc[1, "age"] = np.nan
    rows.loc[2, "age"] = np.inf
    rows.loc[4, "housing"] = "a castle"
    found = list(explainer.explain_batches(rows, method="min-cost"))[0].to_pylist()
    assert [line["status"] == "error" for line in found] == [
        False,
        True,
        True,
        False,
        True,
        False,
    ]
    assert "column `age`" in found[1]["error"] and "missing" in found[1]["error"]
    assert "`inf`" in found[2]["error"]
    assert "`a castle`" in found[4]["error"] and "own" in found[4]["error"]
    assert [line["row"] for line in found] == list(range(6))
    # The others have the answers that they have without it.
    alone = list(explainer.explain_batches(features.iloc[[3]], method="min-cost"))[0].to_pylist()[0]
    assert {**found[3], "seconds": 0, "row": 0} == {**alone, "seconds": 0}
    with pytest.raises(tyrex.DataError, match="row 1, column `age`"):
        list(explainer.explain_batches(rows, method="min-cost", on_error="raise"))


def test_misuse_is_said_before_the_work(
    explainer: tyrex.Explainer, features: pd.DataFrame, people: pa.Table
) -> None:
    adviser = explainer.adviser(method="min-cost")
    with pytest.raises(tyrex.ParameterError, match="row or raise"):
        adviser.explain_batches(features, on_error="ignore")
    with pytest.raises(tyrex.DataError, match="expected rows that Arrow can read"):
        list(adviser.explain_batches(5))
    with pytest.raises(tyrex.DataError, match="expected rows that Arrow can read"):
        list(adviser.explain_batches([[1, 2]]))
    with pytest.raises(tyrex.DataError, match="no column `age`"):
        list(adviser.explain_batches(features.drop(columns="age")))
    with pytest.raises(tyrex.DataError, match="no column `name` for `key`"):
        list(adviser.explain_batches(people, key="name"))
    with pytest.raises(tyrex.ParameterError, match="a column of the answers"):
        list(adviser.explain_batches(people, key="age"))
    with pytest.raises(tyrex.ParameterError, match=r"tyrex\.calibrate"):
        explainer.adviser(tau="auto")
    with pytest.raises(tyrex.DataError, match="Timestamp"):
        now = pd.Timestamp("2026-01-01")
        list(adviser.explain_batches(features.head(3).assign(age=now)))


def test_the_schema_does_not_depend_on_the_rows(
    explainer: tyrex.Explainer, people: pa.Table
) -> None:
    adviser = explainer.adviser(method="min-cost", promises=True)
    key = people.select(["id"]).schema
    expected = adviser.answer_schema(key)
    assert expected.names[0] == "id"
    assert expected.names[-4:] == ["holds_until", "promise", "salt", "error"]
    for rows in (people, people.slice(0, 0), people.slice(0, 1)):
        for batch in adviser.explain_batches(rows, key="id"):
            assert batch.schema.equals(expected)
    assert explainer.answer_schema(method="min-cost").names[:3] == ["row", "status", "reason"]


def test_memory_does_not_grow_with_the_rows(
    explainer: tyrex.Explainer, features: pd.DataFrame
) -> None:
    gauge = tyrex.Gauge(explainer, k=2)
    rows = pa.Table.from_pandas(pd.concat([features] * 4), preserve_index=False)

    def stream(times: int) -> Iterator[pa.Table]:
        for _ in range(times):
            yield rows

    def peak(times: int) -> int:
        pool, most = pa.default_memory_pool(), 0
        for batch in gauge.lines(stream(times)):
            most = max(most, pool.bytes_allocated(), batch.nbytes)
        return most

    tracemalloc.start()
    short = peak(2)
    before = tracemalloc.get_traced_memory()[1]
    assert peak(12) <= short + 1_000_000
    assert tracemalloc.get_traced_memory()[1] <= before + 1_000_000
    tracemalloc.stop()


def test_nothing_is_imported_unasked() -> None:
    others = "pyarrow, pyspark, ray, mlflow, polars, pandas, duckdb"
    program = (
        "import sys, tyrex, tyrex.batches\n"
        f"there = [name for name in '{others}'.split(', ') if name in sys.modules]\n"
        "assert not there, there\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
