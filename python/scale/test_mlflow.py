"""tyrex in MLflow, with a real store, a served model and Spark."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import mlflow
import pandas as pd
import pyarrow as pa
import pytest
from conftest import alone

import tyrex
import tyrex.mlflow


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    folder = tmp_path_factory.mktemp("mlflow")
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    mlflow.set_tracking_uri((folder / "runs").as_uri())
    mlflow.set_experiment("scale")
    yield folder


@pytest.fixture(scope="module")
def adviser(explainer: tyrex.Explainer) -> tyrex.Adviser:
    return explainer.adviser(method="min-cost", certify=True, models=12)


@pytest.fixture(scope="module")
def uri(store: pathlib.Path, adviser: tyrex.Adviser) -> str:
    with mlflow.start_run():
        return str(tyrex.mlflow.log_model(adviser, "advice", key={"id": "long"}).model_uri)


def same(found: pd.DataFrame, expected: pa.Table) -> bool:
    """Whether answers are equal as JSON has them, without times."""

    def plain(frame: pd.DataFrame) -> Any:
        return json.loads(frame.drop(columns=["seconds"]).to_json(orient="records"))

    return bool(plain(found) == plain(expected.to_pandas()))


def test_a_logged_model_answers_as_the_library(
    uri: str, adviser: tyrex.Adviser, people: pd.DataFrame
) -> None:
    rows = people.head(40)
    expected = alone(adviser, rows)
    loaded = tyrex.mlflow.load_model(uri)
    assert alone(loaded, rows).drop_columns("seconds").equals(expected.drop_columns("seconds"))
    assert loaded._native.models() == adviser._native.models()
    function = mlflow.pyfunc.load_model(uri)
    assert same(function.predict(rows, params={"on_error": "raise"}), expected)
    numbered = function.predict(rows.drop(columns="id"))
    assert list(numbered["row"]) == list(range(40))
    names = [param.name for param in function.metadata.signature.params]
    assert names == ["on_error"]
    inputs = function.metadata.signature.inputs.input_names()
    assert inputs == [*adviser.explainer.schema.features, "id"]


def test_the_artifacts_are_those_of_the_question(
    tmp_path: pathlib.Path, explainer: tyrex.Explainer
) -> None:
    folder = tmp_path / "model"
    tyrex.mlflow.save_model(explainer, folder, method="min-cost", certify=True, models=11)
    data = folder / "data"
    assert (data / "schema.toml").read_text() == explainer.schema.to_toml()
    assert json.loads((data / "question.json").read_text())["settled"]["method"] == "min-cost"
    assert len(list((data / "models").glob("*.onnx"))) == 11
    # The reference, as the command line reads it, and the model's own file.
    reference = pd.read_csv(data / "reference.csv", keep_default_na=False)
    assert len(reference) == 1000 and set(explainer.schema.features) < set(reference)
    assert (data / "model.onnx").read_bytes() == explainer.to_onnx()
    promise = json.loads((data / "promise.json").read_text())
    assert promise["recorded"] is False and promise["holds"] is None
    assert (folder / "requirements.txt").read_text().startswith("tyrex[mlflow]==")
    with pytest.raises(FileExistsError, match="exists already"):
        tyrex.mlflow.save_model(explainer, folder, method="min-cost")
    with pytest.raises(tyrex.ParameterError, match=r"tyrex\.Adviser"):
        tyrex.mlflow.save_model("model", tmp_path / "other")  # type: ignore[arg-type]
    assert not (tmp_path / "other").exists()
    given = tyrex.retrain(explainer, 12)
    tyrex.mlflow.save_model(explainer, tmp_path / "given", method="min-cost", certify=given)
    assert len(tyrex.mlflow.load_model(str(tmp_path / "given"))._given[3]) == 12


def test_a_model_of_files_needs_none_of_them(
    tmp_path: pathlib.Path, explainer: tyrex.Explainer, people: pd.DataFrame
) -> None:
    explainer.to_onnx(tmp_path / "model.onnx")
    tyrex.datasets.load_german().to_pandas().to_csv(tmp_path / "rows.csv", index=False)
    own = tyrex.Explainer(tmp_path / "model.onnx", tmp_path / "rows.csv", label="class")
    certified = {"method": "min-cost", "certify": tyrex.retrain(own, 12)}
    expected = alone(own.adviser(**certified), people.head(40))
    tyrex.mlflow.save_model(own, tmp_path / "saved", **certified)
    (tmp_path / "model.onnx").unlink()
    (tmp_path / "rows.csv").unlink()
    shutil.move(tmp_path / "saved", tmp_path / "other")
    data = tmp_path / "other" / "data"
    assert len(list((data / "ensemble").glob("*.onnx"))) == 13
    # The weights and the rows are in files of their own, and only there.
    assert (data / "explainer.pickle").stat().st_size < 20_000
    loaded = tyrex.mlflow.load_model(str(tmp_path / "other"))
    found = alone(loaded, people.head(40))
    assert found.drop_columns("seconds").equals(expected.drop_columns("seconds"))


def test_the_promises_of_a_saved_model_begin_when_it_answers(
    tmp_path: pathlib.Path,
    explainer: tyrex.Explainer,
    people: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = explainer.adviser(method="min-cost", promises=True, holds=5)
    tyrex.mlflow.save_model(own, tmp_path / "saved")
    text = (tmp_path / "saved" / "data" / "promise.json").read_text()
    assert json.loads(text)["holds"] == 5

    def columns(frame: pd.DataFrame, name: str) -> set[str]:
        return set(frame[name].dropna())

    before = alone(own, people.head(40)).to_pandas()
    one, other = (mlflow.pyfunc.load_model(str(tmp_path / "saved")) for _ in range(2))
    salts = [columns(each.predict(people.head(40)), "salt") for each in (one, other)]
    assert len(salts[0] | salts[1] | columns(before, "salt")) == 3
    monkeypatch.setattr(tyrex.batches, "_until", lambda days: f"2040-01-0{days}T00:00:00Z")
    assert columns(one.predict(people.head(40)), "holds_until") == {"2040-01-05T00:00:00Z"}


def test_a_served_model_answers_as_the_library(
    uri: str, adviser: tyrex.Adviser, people: pd.DataFrame
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", uri]
    command += ["--env-manager", "local", "--host", "127.0.0.1", "--port", str(port)]
    bin_folder = str(pathlib.Path(sys.executable).parent)
    path = os.pathsep.join([bin_folder, os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "MLFLOW_TRACKING_URI": mlflow.get_tracking_uri()}
    server = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{address}/ping", timeout=5)
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.2)
        rows = people.head(10)
        body = {"dataframe_split": json.loads(rows.to_json(orient="split", index=False))}
        request = urllib.request.Request(
            f"{address}/invocations",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            found = pd.DataFrame(json.load(response)["predictions"])
        assert same(found, alone(adviser, rows))
    finally:
        # The server starts processes of its own, in its group.
        os.killpg(server.pid, 15)
        server.wait(30)


def test_spark_uses_a_model_as_a_function(
    uri: str, adviser: tyrex.Adviser, people: pd.DataFrame
) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import struct

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = session.config("spark.driver.bindAddress", "127.0.0.1")
    spark = session.config("spark.driver.host", "127.0.0.1").getOrCreate()
    try:
        rows = people.head(60)
        # MLflow has no whole numbers that are empty.
        kind = "status string, score double, cost_l1 double, changed double"
        names = adviser.explainer.schema.features
        function = mlflow.pyfunc.spark_udf(spark, uri, result_type=kind, env_manager="local")
        df = spark.createDataFrame(rows).repartition(3)
        found = df.select("id", function(struct(*names)).alias("own")).select("id", "own.*")
        columns = ["id", "status", "score", "cost_l1", "changed"]
        expected = alone(adviser, rows).select(columns).to_pylist()
        lines = found.toArrow().sort_by("id").select(columns).to_pylist()
        numbers = {"score", "cost_l1", "changed"}
        for line in lines:
            line.update({name: None for name in numbers if line[name] != line[name]})
        assert lines == expected and {line["status"] for line in lines} == {"found", "not_found"}
    finally:
        spark.stop()
