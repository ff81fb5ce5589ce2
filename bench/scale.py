"""Rows per second and core through Spark and Ray, beside the library on one thread.

    python bench/scale.py --rows 20000 --method min-cost --rounds 3

Needs pyspark, ray, pandas and pyarrow, and an optimised build of the package. The ways take turns,
and the least time of the rounds counts. The start of Spark and Ray (`start_s`) and a small job that
starts their workers and unpacks the adviser there (`first_job_s`) are apart. `worker_mb` is the
largest resident memory of a worker. `arrow` measures the rows as batches of Arrow, and `native` as
a table that is in memory on the native side (`Explainer.stability`), each with k 1 and k 100.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
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


def worker_mb() -> int:
    """The largest resident memory of the processes below this one that have loaded tyrex."""
    parents, most = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            parents[int(folder.name)] = int(stat[1])
            if "_native.abi3" in (folder / "maps").read_text():
                peak = re.search(r"VmHWM:\s+(\d+)", (folder / "status").read_text())
                most[int(folder.name)] = int(peak[1]) // 1024 if peak else 0
        except OSError:
            continue

    def is_below(process: int) -> bool:
        while process in parents and process != os.getpid():
            process = parents[process]
        return process == os.getpid()

    return max((mb for own, mb in most.items() if own != os.getpid() and is_below(own)), default=0)


def spark_way(work: Any, rows: pd.DataFrame, cores: int) -> tuple[Callable[[], int], Callable]:
    from pyspark.sql import SparkSession

    import tyrex.spark

    session = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    session = session.config("spark.ui.showConsoleProgress", "false")
    session = session.config("spark.driver.memory", "4g")
    session = session.config("spark.driver.host", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    parts = session.createDataFrame(rows).repartition(4 * cores).cache()
    parts.count()
    few = parts.limit(100 * cores).repartition(cores).cache()
    few.count()

    def run(all_of_it: bool = True) -> int:
        answers = tyrex.spark.explain(parts if all_of_it else few, work, key="id")
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
    parts = ray.data.from_pandas(rows).repartition(4 * cores).materialize()
    few = ray.data.from_pandas(rows.head(100 * cores)).repartition(cores).materialize()

    def run(all_of_it: bool = True) -> int:
        answers = tyrex.ray.explain(parts if all_of_it else few, work, key="id", workers=cores)
        return sum(batch.num_rows for batch in answers.iter_batches(batch_format="pyarrow"))

    return run, ray.shutdown


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=20_000)
    arguments.add_argument("--method", help="the default question, with its promise, without it")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--ways", default="library,spark-1,spark-2,ray-1,ray-2")
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

    def arrow(k: int) -> int:
        return sum(batch.num_rows for batch in tyrex.Gauge(explainer, k=k).lines(table, key="id"))

    def native(k: int) -> int:
        terms = json.dumps({"samples": k, "sigma": 0.1, "gamma": "sampled-slopes"})
        return len(explainer._native.stability(own, terms, 0)[0][1])

    found: dict[str, Any] = {"rows": given.rows, "prepared_s": round(prepared, 2)}
    times: dict[str, list[float]] = {}
    other: dict[str, dict[str, float]] = {}
    for _ in range(given.rounds):
        for way in given.ways.split(","):
            stop: Callable[[], Any] = dict
            runs: dict[str, Callable[[], int]] = {way: library}
            if way in ("arrow", "native"):
                # The difference of k 100 and k 1 is the neighbours; the rest is what a row costs
                # besides them: in and out, encoding, scoring.
                if way == "native":
                    _, own = explainer._table(rows)
                work = arrow if way == "arrow" else native
                runs = {f"{way}-k-{k}": partial(work, k) for k in (1, 100)}
            elif way != "library":
                engine, cores = way.split("-")
                make = {"spark": spark_way, "ray": ray_way}[engine]
                start = time.perf_counter()
                run, stop = make(adviser, rows, int(cores))
                started = time.perf_counter()
                run(False)
                other[way] = {
                    "start_s": round(started - start, 2),
                    "first_job_s": round(time.perf_counter() - started, 2),
                }
                runs = {way: run}
            for name, run in runs.items():
                start = time.perf_counter()
                assert run() == given.rows
                times.setdefault(name, []).append(time.perf_counter() - start)
                if name in other:
                    other[name]["worker_mb"] = worker_mb()
            stop()
    for name, all_of_it in times.items():
        found[name] = {
            "s": round(min(all_of_it), 3),
            "rows_per_s": round(given.rows / min(all_of_it), 1),
            **other.get(name, {}),
        }
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
