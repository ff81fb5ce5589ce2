"""Rows per second and core through Spark and Ray, beside the library on one thread.

    python bench/scale.py --rows 20000 --method min-cost --rounds 3

Needs pyspark, ray, pandas and pyarrow, and an optimised build of the package. The ways take turns,
and the least time of the rounds counts. The start of Spark, Ray and their workers is not counted: a
small job warms them up.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa

import tyrex

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def heloc(count: int) -> pd.DataFrame:
    """That many rows of HELOC, with a key."""
    rows = tyrex.datasets.load_heloc().to_pandas().drop(columns="RiskPerformance")
    rows = pd.concat([rows] * (count // len(rows) + 1), ignore_index=True).head(count)
    return rows.assign(id=range(count))


def spark_way(work: Any, rows: pd.DataFrame, cores: int) -> tuple[Callable[[], int], Callable]:
    from pyspark.sql import SparkSession

    import tyrex.spark

    session = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    session = session.config("spark.ui.showConsoleProgress", "false")
    session = session.config("spark.driver.memory", "4g")
    session = session.config("spark.driver.host", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    df = session.createDataFrame(rows).repartition(4 * cores).cache()
    df.count()

    def run() -> int:
        answers = tyrex.spark.explain(df, work, key="id")
        answers.write.format("noop").mode("overwrite").save()
        return len(rows)

    return run, session.stop


def ray_way(work: Any, rows: pd.DataFrame, cores: int) -> tuple[Callable[[], int], Callable]:
    import ray

    import tyrex.ray

    ray.init(
        num_cpus=cores + 1, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    ds = ray.data.from_pandas(rows).repartition(4 * cores).materialize()

    def run() -> int:
        answers = tyrex.ray.explain(ds, work, key="id", workers=cores)
        return sum(batch.num_rows for batch in answers.iter_batches(batch_format="pyarrow"))

    return run, ray.shutdown


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=20_000)
    arguments.add_argument("--method", help="the default question, with its promise, without it")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--ways", default="library,spark-1,spark-2,ray-1,ray-2,arrow")
    given = arguments.parse_args()
    tyrex.set_threads(1)
    explainer = tyrex.Explainer.train(tyrex.datasets.load_heloc(), progress=False)
    rows = heloc(given.rows)
    table = pa.Table.from_pandas(rows, preserve_index=False)
    question = {"method": given.method} if given.method else {}
    start = time.perf_counter()
    adviser = explainer.adviser(progress=False, **question)
    prepared = time.perf_counter() - start

    def library() -> int:
        return sum(batch.num_rows for batch in adviser.explain_batches(table, key="id"))

    def measured(k: int) -> Callable[[], int]:
        gauge = tyrex.Gauge(explainer, k=k)
        return lambda: sum(batch.num_rows for batch in gauge.lines(table, key="id"))

    found: dict[str, Any] = {"rows": given.rows, "prepared_s": round(prepared, 2)}
    times: dict[str, list[float]] = {}
    for _ in range(given.rounds):
        for way in given.ways.split(","):
            stop: Callable[[], Any] = dict
            if way == "library":
                runs = {way: library}
            elif way == "arrow":
                # What a row costs besides its neighbours: Arrow in and out, encoding, scoring.
                runs = {"k-1": measured(1), "k-100": measured(100)}
            else:
                engine, cores = way.split("-")
                make = {"spark": spark_way, "ray": ray_way}[engine]
                run, stop = make(adviser, rows, int(cores))
                run()
                runs = {way: run}
            for name, run in runs.items():
                start = time.perf_counter()
                assert run() == given.rows
                times.setdefault(name, []).append(time.perf_counter() - start)
            stop()
    for name, all_of_it in times.items():
        found[name] = {
            "s": round(min(all_of_it), 3),
            "rows_per_s": round(given.rows / min(all_of_it), 1),
        }
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
