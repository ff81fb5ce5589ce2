"""tyrex in a real local Ray cluster, with several processes of workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import ray
from conftest import Killer, alone, is_sound, same, threads_of, watched, workers
from ray import cloudpickle

import tyrex
import tyrex.ray


def is_worker(command: str) -> bool:
    return command.startswith("ray::")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    # Two for the actors, one for the tasks that cut the rows.
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def answers(ds: Any) -> pa.Table:
    return pa.concat_tables(list(ray.get(ds.to_arrow_refs())))


@pytest.mark.parametrize("blocks", [1, 7, 64])
def test_the_answers_are_those_of_one_process(
    people: pd.DataFrame, explainer: tyrex.Explainer, blocks: int
) -> None:
    adviser = explainer.adviser(method="min-cost")
    ds = ray.data.from_pandas(people).repartition(blocks)
    found = answers(tyrex.ray.explain(ds, adviser, key="id", workers=2, batch_size=300))
    assert found.num_rows == 3000
    assert same(found, alone(adviser, people))


def test_a_promise_travels_with_its_models(
    people: pd.DataFrame, explainer: tyrex.Explainer
) -> None:
    own = tyrex.Explainer(explainer.to_onnx(), tyrex.datasets.load_german())
    models = tyrex.ray.retrain(own)
    assert [len(each) for each in models[1]] == [40, 60, 61]
    adviser = explainer.adviser()
    assert adviser._native.models()[1] == models[1]
    ds = ray.data.from_pandas(people.head(100)).repartition(3)
    found = answers(tyrex.ray.explain(ds, own.adviser(with_models=models), key="id", workers=2))
    assert same(found, alone(adviser, people.head(100)))
    assert "promise_shown" in found.schema.names


def test_an_ensemble_has_a_model_per_task(explainer: tyrex.Explainer) -> None:
    made = tyrex.ray.retrain_ensemble(explainer, 6, change="bootstrap", seed=3, epochs=2)
    alone = tyrex.retrain(explainer, 6, change="bootstrap", seed=3, epochs=2)
    assert made._native.contents()[1:] == alone._native.contents()[1:]


def test_measures_certificates_and_audits(people: pd.DataFrame, explainer: tyrex.Explainer) -> None:
    rows = people.head(300)
    ds = ray.data.from_pandas(rows).repartition(5)
    how = {"key": "id", "workers": 2}
    measured = answers(tyrex.ray.stability(ds, explainer, k=20, **how))
    assert same(measured, alone(tyrex.Gauge(explainer, k=20), rows))
    ensemble = tyrex.retrain(explainer, 11)
    certified = answers(tyrex.ray.certify(ds, explainer, ensemble, **how))
    assert same(certified, alone(tyrex.Certifier(explainer, ensemble), rows))
    adviser = explainer.adviser(method="min-cost", promises=True)
    # Two pools of actors at once would need more CPUs than there are.
    given = tyrex.ray.explain(ds, adviser, **how).materialize()
    german = tyrex.datasets.load_german()
    other = tyrex.Explainer.train(german, hidden=[8], epochs=20, early_stopping=None, seed=1)
    judged = answers(tyrex.ray.audit(given, other, **how))
    assert same(judged, alone(tyrex.Auditor(other), alone(adviser, rows)))
    assert {"kept", "broken"} <= set(judged["status"].to_pylist())


def test_a_worker_that_is_killed_costs_no_answer(
    people: pd.DataFrame, explainer: tyrex.Explainer
) -> None:
    adviser = explainer.adviser(method="trex-i", tau=0.6, k=2000)
    ds = ray.data.from_pandas(people).repartition(16)
    with Killer(is_worker) as killer:
        found = answers(tyrex.ray.explain(ds, adviser, key="id", workers=2, batch_size=200))
    print(f"killed {killer.killed} of {sorted(killer.seen)}; {found.num_rows} answers")
    assert killer.killed is not None and len(killer.seen) >= 3
    assert sorted(found["id"].to_pylist()) == list(range(3000))
    assert same(found, alone(adviser, people))


def test_a_worker_that_is_killed_costs_no_retrained_model(explainer: tyrex.Explainer) -> None:
    question = {"change": "bootstrap", "seed": 3, "epochs": 400}
    # Not an idle worker of an earlier test.
    with Killer(lambda command: command.startswith("ray::_made")) as killer:
        made = tyrex.ray.retrain_ensemble(explainer, 12, **question)
    print(f"killed {killer.killed} of {sorted(killer.seen)}; {len(made)} models")
    assert killer.killed is not None
    alone = tyrex.retrain(explainer, 12, **question)
    assert made._native.contents()[1:] == alone._native.contents()[1:]


def test_a_worker_unpacks_once_and_has_one_thread(
    people: pd.DataFrame, explainer: tyrex.Explainer, tmp_path: Path
) -> None:
    gauge = watched(explainer, tmp_path / "unpacked", cloudpickle)
    ds = ray.data.from_pandas(people).repartition(24)
    found = answers(tyrex.ray.stability(ds, gauge, key="id", workers=2, batch_size=100))
    assert found.num_rows == 3000
    unpacked = Path(gauge.log).read_text().split()
    assert len(unpacked) == len(set(unpacked)) == 2, unpacked
    alive = [process for process in workers(is_worker) if str(process) in unpacked]
    assert all(threads_of(process) == 1 for process in alive)


def test_functions_travel(people: pd.DataFrame, by_function: tyrex.Explainer) -> None:
    adviser = by_function.adviser(method="nn")
    ds = ray.data.from_pandas(people.head(100)).repartition(3)
    found = answers(tyrex.ray.explain(ds, adviser, key="id", workers=2))
    assert same(found, alone(adviser, people.head(100)))


def test_answers_that_ray_wrote_are_recorded(
    people: pd.DataFrame, explainer: tyrex.Explainer, tmp_path: Path
) -> None:
    ds = ray.data.from_pandas(people.head(400)).repartition(5)
    adviser = explainer.adviser(method="min-cost", promises=True)
    given = tyrex.ray.explain(ds, adviser, key="id", workers=2).materialize()
    given.write_parquet(str(tmp_path / "answers"))
    found = answers(given)["status"].to_pylist().count("found")
    recorded = tyrex.ledger.record(tmp_path / "a.db", tmp_path / "answers", subject="id")
    assert (recorded.answers, recorded.recorded) == (400, found) and found > 20
    assert is_sound(tmp_path / "a.db")


def test_a_bad_row_is_a_row_or_ends_the_job(
    people: pd.DataFrame, explainer: tyrex.Explainer
) -> None:
    rows = people.head(50).assign(housing=lambda own: own["housing"].where(own["id"] != 7, "tent"))
    ds = ray.data.from_pandas(rows).repartition(3)
    adviser = explainer.adviser(method="min-cost")
    found = answers(tyrex.ray.explain(ds, adviser, key="id", workers=2)).to_pylist()
    wrong = [line for line in found if line["status"] == "error"]
    assert len(found) == 50 and [line["id"] for line in wrong] == [7]
    assert "`tent`" in wrong[0]["error"]
    with pytest.raises(Exception, match="tent"):
        answers(tyrex.ray.explain(ds, adviser, key="id", workers=2, on_error="raise"))
