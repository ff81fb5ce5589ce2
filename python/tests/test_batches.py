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
    keyed = rows.assign(id=[f"person {number}" for number in range(6)], night=pd.Timestamp(0))
    with pytest.raises(tyrex.DataError, match=r"id person 1, night 1970.*column `age`"):
        list(
            explainer.explain_batches(
                keyed, method="min-cost", on_error="raise", key=["id", "night"]
            )
        )


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


def test_the_memory_of_the_process_does_not_grow_with_the_rows() -> None:
    """An adviser's, which the system counts: the memory of pyarrow is not all of it."""
    program = """
import resource, tyrex, pyarrow as pa
tyrex.set_threads(1)
german = tyrex.datasets.load_german()
explainer = tyrex.Explainer.train(german, hidden=[8], epochs=5, early_stopping=None)
adviser = explainer.adviser(method="min-cost", certify=tyrex.retrain(explainer, 20), promises=True)
rows = pa.Table.from_pandas(german.to_pandas().drop(columns="class"), preserve_index=False)
peaks = []
for round in range(6):
    for batch in adviser.explain_batches(iter([rows] * 2)):
        pass
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(*peaks)
"""
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    peaks = [int(word) for word in said.split()]
    # Kilobytes: 4000 rows, then 8000 more, whose answers and certificates take some ten megabytes.
    assert peaks[-1] - peaks[1] < 4000, peaks


def test_an_explainer_of_files_travels_without_them(
    tmp_path: Any, promising: tyrex.Explainer, people: pa.Table
) -> None:
    german = tyrex.datasets.load_german()
    promising.to_onnx(tmp_path / "model.onnx")
    promising.schema.save(tmp_path / "schema.toml")
    for name in ("rows.csv", "rows.parquet"):
        german.to_pandas().to_csv(tmp_path / "rows.csv", index=False)
        german.to_pandas().to_parquet(tmp_path / "rows.parquet", index=False)
        own = tyrex.Explainer(
            tmp_path / "model.onnx", str(tmp_path / name), tmp_path / "schema.toml", label="class"
        )
        expected = answers(own.adviser(method="trex-nn", tau=0.6), people)
        for file in ("rows.csv", "rows.parquet"):
            (tmp_path / file).unlink()
        other = pickle.loads(pickle.dumps(own))
        assert answers(other.adviser(method="trex-nn", tau=0.6), people).equals(expected)
        assert other.data.names == own.data.names and other.schema == own.schema


def test_a_data_set_that_is_not_in_the_package_travels_with_its_rows() -> None:
    german = tyrex.datasets.load_german()
    native = german._native
    schema, table, split = native.schema, native.table(), native.own_split()
    assert split is not None
    own = tyrex.datasets._restored("own", "product", schema, table, split)
    content = pickle.dumps(own)
    other = pickle.loads(content)
    assert b"A11" in content or b"checking_status" in content
    assert (other.name, other.train, other.test) == ("own", german.train, german.test)
    assert other.to_pandas().equals(german.to_pandas())
    trained = [tyrex.Explainer.train(rows, hidden=[4], epochs=2) for rows in (german, other)]
    assert trained[0].fingerprint == trained[1].fingerprint
    # A data set of the package is a name.
    assert len(pickle.dumps(german)) < 200


def test_a_split_file_cannot_travel(tmp_path: Any, promising: tyrex.Explainer) -> None:
    (tmp_path / "split.csv").write_text("row,split\n0,train\n1,test\n")
    toml = promising.schema.to_toml() + '\n[split]\nfile = "split.csv"\n'
    (tmp_path / "schema.toml").write_text(toml)
    rows = tyrex.datasets.load_german().to_pandas()
    own = tyrex.Explainer(promising.to_onnx(), rows, tmp_path / "schema.toml", label="class")
    with pytest.raises(tyrex.SchemaError, match="split by a column"):
        pickle.dumps(own)


def test_the_columns_are_known_without_retraining(
    promising: tyrex.Explainer, adviser: tyrex.Adviser, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = adviser.answer_schema()
    promised = promising.adviser(method="min-cost", promises=True, norm="l2").answer_schema()

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the question was prepared")

    monkeypatch.setattr(tyrex.Adviser, "__init__", refuse)
    assert promising.answer_schema().equals(expected)
    own = promising.answer_schema(method="min-cost", promises=True, norm="l2", holds=3)
    assert own.equals(promised)


def test_promises_are_the_same_in_every_task(explainer: tyrex.Explainer) -> None:
    with pytest.raises(tyrex.ParameterError, match="max_seconds"):
        explainer.adviser(method="min-cost", promises=True, max_seconds=1.0)
    with pytest.raises(tyrex.ParameterError, match="max_seconds"):
        explainer.answer_schema(method="min-cost", promises=True, max_seconds=1.0)
    assert explainer.adviser(method="min-cost", max_seconds=1.0)


def test_promises_of_an_adviser_that_lives_for_long_begin_when_it_is_renewed(
    explainer: tyrex.Explainer, people: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    adviser = explainer.adviser(method="min-cost", promises=True, holds=2)

    def ends(own: tyrex.Adviser) -> set[str]:
        return set(filter(None, answers(own, people)["holds_until"].to_pylist()))

    first = ends(adviser)
    monkeypatch.setattr(tyrex.batches, "_until", lambda days: f"2040-01-0{days}T00:00:00Z")
    assert ends(adviser) == ends(pickle.loads(pickle.dumps(adviser))) == first
    adviser.renew()
    assert ends(adviser) == ends(pickle.loads(pickle.dumps(adviser))) == {"2040-01-02T00:00:00Z"}
    other = explainer.adviser(method="min-cost")
    other.renew()
    assert "holds_until" not in answers(other, people).schema.names


def test_a_row_that_a_function_cannot_take_is_a_row_with_an_error() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})

    def function(own: pd.DataFrame) -> Any:
        if (own["b"] > 50).any():
            raise ValueError("no such row")
        return 1 / (1 + np.exp(-3 * own["a"]))

    explainer = tyrex.Explainer(function, rows)
    adviser = explainer.adviser(method="nn")
    expected = answers(adviser, pa.Table.from_pandas(rows.assign(id=range(60)))).to_pylist()
    wrong = rows.assign(id=range(60)).copy()
    wrong.loc[[7, 8, 41], "b"] = 99.0
    table = pa.Table.from_pandas(wrong, preserve_index=False)
    found = answers(adviser, table).to_pylist()
    for number, (line, other) in enumerate(zip(found, expected)):
        if number in (7, 8, 41):
            assert (line["status"], line["error"]) == ("error", "ValueError: no such row")
        else:
            assert line == other
    with pytest.raises(tyrex.DataError, match="rows: id 7, ValueError: no such row"):
        answers(adviser, table, on_error="raise")


def test_nothing_is_imported_unasked() -> None:
    others = "pyarrow, pyspark, ray, mlflow, polars, pandas, duckdb"
    program = (
        "import sys, tyrex, tyrex.batches\n"
        f"there = [name for name in '{others}'.split(', ') if name in sys.modules]\n"
        "assert not there, there\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
