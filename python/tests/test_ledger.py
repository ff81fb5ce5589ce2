"""Answers of several processes become promises in one ledger."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import built, output_of

import tyrex


@pytest.fixture
def parts(tmp_path: Path, explainer: tyrex.Explainer, features: pd.DataFrame) -> list[Path]:
    """Answers to 90 people in three files, each of another process; two overlap."""
    rows = features.head(90).assign(customer=[f"customer {number}" for number in range(90)])
    adviser = explainer.adviser(method="min-cost", promises=True, holds=30)
    (tmp_path / "answers").mkdir()
    files = []
    for number, (start, end) in enumerate([(0, 60), (10, 80), (60, 90)]):
        own = pickle.loads(pickle.dumps(adviser))
        answers = list(own.explain_batches(rows.iloc[start:end], key="customer"))
        files.append(tmp_path / "answers" / f"part-{number}.parquet")
        pq.write_table(pa.Table.from_batches(answers), files[-1])
    return files


def test_parts_are_recorded_once_in_any_order(tmp_path: Path, parts: list[Path]) -> None:
    tables = [pq.read_table(part) for part in parts]
    found = {
        line["customer"]
        for table in tables
        for line in table.to_pylist()
        if line["status"] == "found"
    }
    ledger = tmp_path / "advice.db"
    first = tyrex.ledger.record(ledger, reversed(parts), subject="customer")
    assert first.answers == 160 and first.recorded == first.entries == len(found) > 10
    assert first.recorded + first.already + first.without == 160 and first.already > 0
    # A folder as engines write it, and a pattern.
    (tmp_path / "answers" / "_SUCCESS").touch()
    for again in (tmp_path / "answers", str(tmp_path / "answers" / "part-*.parquet")):
        second = tyrex.ledger.record(ledger, again, subject="customer")
        assert (second.recorded, second.head) == (0, first.head)
    said = output_of(built("tyrex"), "ledger", "verify", "--json", "--ledger", str(ledger))
    assert json.loads(said)["intact"] and json.loads(said)["promises"] == first.recorded
    said = output_of(
        *(built("tyrex"), "ledger", "record", *map(str, parts)),
        *("--subject-column", "customer", "--ledger", str(ledger), "--json"),
    )
    assert json.loads(said)["recorded"] == 0 and json.loads(said)["already"] > len(found)


def test_recorded_promises_are_audited(
    tmp_path: Path, explainer: tyrex.Explainer, parts: list[Path]
) -> None:
    ledger = tmp_path / "advice.db"
    recorded = tyrex.ledger.record(ledger, parts, subject="customer")
    model = tmp_path / "model.onnx"
    explainer.to_onnx(model)
    out = tmp_path / "audit.json"
    output_of(
        *(built("tyrex"), "audit", "--ledger", str(ledger), "--model", str(model)),
        *("--out", str(out)),
    )
    report = json.loads(out.read_text())
    # The model that made the promises keeps them.
    assert report["candidates"][0]["tally"]["kept"] == recorded.recorded


def test_what_cannot_be_recorded_is_refused(
    tmp_path: Path, explainer: tyrex.Explainer, features: pd.DataFrame, parts: list[Path]
) -> None:
    ledger = tmp_path / "advice.db"
    with pytest.raises(tyrex.DataError, match="no column `client`"):
        tyrex.ledger.record(ledger, parts, subject="client")
    with pytest.raises(tyrex.DataError, match="found no file"):
        tyrex.ledger.record(ledger, str(tmp_path / "nothing-*.parquet"), subject="customer")
    with pytest.raises(FileNotFoundError):
        tyrex.ledger.record(ledger, tmp_path / "nothing.parquet", subject="customer")
    rows = features.head(5).assign(customer="somebody")
    plain = list(explainer.explain_batches(rows, key="customer", method="min-cost"))
    pq.write_table(pa.Table.from_batches(plain), tmp_path / "plain.parquet")
    with pytest.raises(tyrex.DataError, match="promises=True"):
        tyrex.ledger.record(ledger, tmp_path / "plain.parquet", subject="customer")
    with pytest.raises(tyrex.ParameterError, match="protocol"):
        explainer.adviser(method="min-cost", protocol="paper", promises=True)


def test_partitions_with_columns_of_other_types_are_recorded(
    tmp_path: Path, explainer: tyrex.Explainer, features: pd.DataFrame
) -> None:
    """Folders as `partitionBy` of Spark makes them; dates, times, decimals and lists beside the
    columns that a promise needs."""
    when = pd.Timestamp("2026-11-19 03:00")
    customers = [f"customer {number}" for number in range(60)]
    rows = features.head(60).assign(customer=customers, at=when, night=when.date())
    adviser = explainer.adviser(method="min-cost", promises=True)
    key = ["customer", "night", "at"]
    table = pa.Table.from_batches(list(adviser.explain_batches(rows, key=key)))
    assert str(table.schema.field("night").type) == "date32[day]"
    table = table.append_column("many", pa.array([[1, 2]] * 60))
    table = table.append_column("amount", pa.array([1] * 60, pa.decimal128(9, 2)))
    for number, night in enumerate(["2026-11-18", "2026-11-19"]):
        folder = tmp_path / "answers" / f"night={night}"
        folder.mkdir(parents=True)
        pq.write_table(table.slice(30 * number, 30), folder / "part-0.snappy.parquet")
    found = sum(status == "found" for status in table["status"].to_pylist())
    recorded = tyrex.ledger.record(tmp_path / "a.db", tmp_path / "answers", subject="customer")
    assert (recorded.answers, recorded.recorded) == (60, found) and found > 5
    said = output_of(
        *(built("tyrex"), "ledger", "record", str(tmp_path / "answers")),
        *("--subject-column", "customer", "--ledger", str(tmp_path / "a.db"), "--json"),
    )
    assert json.loads(said)["already"] == found


def test_no_ledger_is_made_for_files_that_cannot_be_recorded(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("customer\n1\n")
    with pytest.raises(tyrex.DataError, match="promises=True"):
        tyrex.ledger.record(tmp_path / "a.db", tmp_path / "other.csv", subject="customer")
    assert not (tmp_path / "a.db").exists()
