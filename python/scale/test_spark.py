"""tyrex in a real local Spark, with several processes of workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyspark
import pytest
from conftest import Killer, alone, is_sound, same, threads_of, watched, workers
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

import tyrex
import tyrex.spark


def is_worker(command: str) -> bool:
    return "pyspark" in command and "daemon" in command


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    # Two tasks at once, each of which may fail three times.
    session = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def df(spark: SparkSession, people: pd.DataFrame) -> DataFrame:
    return spark.createDataFrame(people)


def answers(df: DataFrame) -> Any:
    return df.toArrow()


@pytest.mark.parametrize("partitions", [1, 7, 64])
def test_the_answers_are_those_of_one_process(
    df: DataFrame, people: pd.DataFrame, explainer: tyrex.Explainer, partitions: int
) -> None:
    adviser = explainer.adviser(method="min-cost")
    found = answers(tyrex.spark.explain(df.repartition(partitions), adviser, key="id"))
    assert found.num_rows == 3000
    assert same(found, alone(adviser, people))
    assert partitions == 1 or len(workers(is_worker)) >= 2


def test_retrained_models_travel(
    spark: SparkSession, people: pd.DataFrame, explainer: tyrex.Explainer
) -> None:
    question = {"method": "min-cost", "certify": True, "models": 12, "promises": True}
    how = {name: value for name, value in question.items() if name != "promises"}
    own = tyrex.Explainer(explainer.to_onnx(), tyrex.datasets.load_german())
    models = tyrex.spark.retrain(spark, own, **how)
    assert [len(each) for each in models[1]] == [12]
    found = own.adviser(with_models=models, holds=None, **question)
    adviser = explainer.adviser(holds=None, **question)
    assert found._native.models()[1] == adviser._native.models()[1] == models[1]
    some = spark.createDataFrame(people.head(200)).repartition(3)
    given = answers(tyrex.spark.explain(some, found, key="id"))
    assert same(given, alone(found, people.head(200)))
    assert '"models":12' in next(filter(None, given["promise"].to_pylist()))


def test_an_ensemble_has_a_model_per_task(spark: SparkSession, explainer: tyrex.Explainer) -> None:
    made = tyrex.spark.retrain_ensemble(spark, explainer, 6, change="bootstrap", seed=3, epochs=2)
    alone = tyrex.retrain(explainer, 6, change="bootstrap", seed=3, epochs=2)
    assert made._native.contents()[1:] == alone._native.contents()[1:]
    assert made._native.plan() == alone._native.plan()


def test_measures_certificates_and_audits(
    df: DataFrame, people: pd.DataFrame, explainer: tyrex.Explainer
) -> None:
    some = df.where("id < 300").repartition(5)
    rows = people.head(300)
    gauge = tyrex.Gauge(explainer, k=20)
    measured = answers(tyrex.spark.stability(some, explainer, key="id", k=20))
    assert same(measured, alone(gauge, rows))
    ensemble = tyrex.retrain(explainer, 11)
    certifier = tyrex.Certifier(explainer, ensemble)
    found = answers(tyrex.spark.certify(some, explainer, ensemble, key="id"))
    assert same(found, alone(certifier, rows))
    adviser = explainer.adviser(method="min-cost", promises=True)
    given = tyrex.spark.explain(some, adviser, key="id")
    german = tyrex.datasets.load_german()
    other = tyrex.Explainer.train(german, hidden=[8], epochs=20, early_stopping=None, seed=1)
    judged = answers(tyrex.spark.audit(given, other, key="id"))
    assert same(judged, alone(tyrex.Auditor(other), alone(adviser, rows)))
    assert {"kept", "broken"} <= set(judged["status"].to_pylist())


def test_a_worker_that_is_killed_costs_no_answer(
    df: DataFrame, people: pd.DataFrame, explainer: tyrex.Explainer
) -> None:
    adviser = explainer.adviser(method="trex-i", tau=0.6, k=2000)
    rows = df.repartition(16)
    with Killer(is_worker) as killer:
        found = answers(tyrex.spark.explain(rows, adviser, key="id"))
    assert killer.killed is not None and killer.killed not in workers(is_worker)
    print(f"killed {killer.killed} of {sorted(killer.seen)}; {found.num_rows} answers")
    assert len(killer.seen - {killer.killed}) >= 2
    assert sorted(found["id"].to_pylist()) == list(range(3000))
    assert same(found, alone(adviser, people))


def test_a_worker_that_is_killed_costs_no_retrained_model(
    spark: SparkSession, explainer: tyrex.Explainer
) -> None:
    question = {"change": "bootstrap", "seed": 3, "epochs": 400}
    with Killer(is_worker) as killer:
        made = tyrex.spark.retrain_ensemble(spark, explainer, 12, **question)
    assert killer.killed is not None and killer.killed not in workers(is_worker)
    print(f"killed {killer.killed} of {sorted(killer.seen)}; {len(made)} models")
    alone = tyrex.retrain(explainer, 12, **question)
    assert made._native.contents()[1:] == alone._native.contents()[1:]


def test_a_worker_unpacks_once_and_has_one_thread(
    df: DataFrame, explainer: tyrex.Explainer, tmp_path: Path
) -> None:
    gauge = watched(explainer, tmp_path / "unpacked", cloudpickle)
    # Spark may end workers that wait, so the answers are made in one job.
    assert answers(tyrex.spark.stability(df.repartition(24), gauge, key="id")).num_rows == 3000
    unpacked = Path(gauge.log).read_text().split()
    assert len(unpacked) == len(set(unpacked)) >= 2, unpacked
    alive = [process for process in workers(is_worker) if str(process) in unpacked]
    assert alive and all(threads_of(process) == 1 for process in alive)


def test_functions_travel(df: DataFrame, by_function: tyrex.Explainer) -> None:
    adviser = by_function.adviser(method="nn")
    some = df.where("id < 100").repartition(3)
    rows = some.toPandas().sort_values("id")
    assert same(answers(tyrex.spark.explain(some, adviser, key="id")), alone(adviser, rows))


def test_answers_that_spark_wrote_are_recorded(
    df: DataFrame, explainer: tyrex.Explainer, tmp_path: Path
) -> None:
    adviser = explainer.adviser(method="min-cost", promises=True)
    rows = df.where("id < 400").withColumn("night", lit("2026-11-19").cast("date"))
    given = tyrex.spark.explain(rows.repartition(5), adviser, key=["id", "night"])
    given.write.partitionBy("night").parquet(str(tmp_path / "answers"))
    found = given.where("status = 'found'").count()
    ledger = tmp_path / "advice.db"
    first = tyrex.ledger.record(ledger, tmp_path / "answers", subject="id")
    assert (first.answers, first.recorded) == (400, found) and found > 20
    # Another run of the same job has the same promises.
    given.repartition(2).write.parquet(str(tmp_path / "again"))
    again = tyrex.ledger.record(ledger, tmp_path / "again", subject="id")
    assert (again.recorded, again.already, again.head) == (0, found, first.head)
    assert is_sound(ledger)


def test_a_bad_row_is_a_row_or_ends_the_job(
    spark: SparkSession, people: pd.DataFrame, explainer: tyrex.Explainer
) -> None:
    rows = people.head(50).assign(housing=lambda own: own["housing"].where(own["id"] != 7, "tent"))
    some = spark.createDataFrame(rows).repartition(3)
    adviser = explainer.adviser(method="min-cost")
    found = answers(tyrex.spark.explain(some, adviser, key="id")).to_pylist()
    wrong = [line for line in found if line["status"] == "error"]
    assert len(found) == 50 and [line["id"] for line in wrong] == [7]
    assert "`tent`" in wrong[0]["error"]
    with pytest.raises(pyspark.errors.PySparkException, match="tent"):
        answers(tyrex.spark.explain(some, adviser, key="id", on_error="raise"))


def test_misuse_is_said_before_the_job(df: DataFrame, explainer: tyrex.Explainer) -> None:
    with pytest.raises(tyrex.ParameterError, match="`name`"):
        tyrex.spark.explain(df, explainer, key="name", method="min-cost")
    with pytest.raises(tyrex.ParameterError, match="a column of the answers"):
        tyrex.spark.explain(df, explainer, key="age", method="min-cost")
    with pytest.raises(tyrex.ParameterError, match=r"tyrex\.Adviser"):
        tyrex.spark.explain(df, "a model", key="id")  # type: ignore[arg-type]
