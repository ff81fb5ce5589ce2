"""What the tests of other engines share: German credit, and the processes of workers."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tyrex

# Spark starts the Python of the path otherwise.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

# Times are not answers.
TIMES = ["seconds"]


@pytest.fixture(scope="session")
def explainer() -> tyrex.Explainer:
    german = tyrex.datasets.load_german()
    return tyrex.Explainer.train(german, hidden=[8], epochs=20, early_stopping=None)


@pytest.fixture(scope="session")
def by_function() -> tyrex.Explainer:
    """An explainer of a function that only cloudpickle can pickle."""
    rows = tyrex.datasets.load_german().to_pandas()[["duration", "credit_amount", "age"]]
    return tyrex.Explainer(lambda own: 1 / (1 + np.exp((own["duration"] - 20) / 10)), rows)


class Watched(tyrex.Gauge):
    """A gauge that writes down, in a file, every process that unpacks it."""

    log = ""

    def __reduce__(self) -> tuple[Any, ...]:
        return (_watched, (*self._given, self.log))


def _watched(explainer: tyrex.Explainer, terms: dict[str, Any], log: str) -> tyrex.Gauge:
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    return tyrex.Gauge(explainer, **terms)


def is_sound(ledger: pathlib.Path) -> bool:
    """Whether the chain of a ledger is intact, as the command line verifies it."""
    root = pathlib.Path(__file__).parents[2]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    command = [target / "debug" / "tyrex", "ledger", "verify", "--json", "--ledger", ledger]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return bool(json.loads(said)["intact"])


def watched(explainer: tyrex.Explainer, log: pathlib.Path, cloudpickle: Any) -> Watched:
    """A gauge that the engine's own cloudpickle sends with its class: workers have no tests."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    gauge = Watched(explainer, k=10)
    gauge.log = str(log)
    return gauge


def threads_of(process: int) -> int:
    """The threads of tyrex in a process."""
    found = 0
    for task in pathlib.Path(f"/proc/{process}/task").glob("*/comm"):
        found += task.read_text().startswith("tyrex-")
    return found


@pytest.fixture(scope="session")
def people() -> pd.DataFrame:
    """German credit without labels, three times, with a key."""
    rows = tyrex.datasets.load_german().to_pandas().drop(columns="class")
    rows = pd.concat([rows] * 3, ignore_index=True)
    return rows.assign(id=range(len(rows)))


def settled(table: Any) -> pa.Table:
    """Answers in the order of their keys, without times."""
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    there = [name for name in TIMES if name in table.schema.names]
    return table.drop_columns(there).sort_by("id").combine_chunks()


def same(found: Any, expected: Any) -> bool:
    """Whether answers are equal, whatever an engine calls its texts."""
    own, other = settled(found), settled(expected)
    return own.schema.names == other.schema.names and own.to_pylist() == other.to_pylist()


def alone(work: tyrex.batches.Batchwise, rows: Any) -> pa.Table:
    """The answers of this process."""
    if isinstance(rows, pd.DataFrame):
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    return pa.Table.from_batches(list(work.lines(rows, key="id")))


def workers(is_one: Callable[[str], bool]) -> list[int]:
    """The processes below this one that have loaded tyrex, by their command lines."""
    parents, found = {}, []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            maps = (folder / "maps").read_text()
        except OSError:
            continue
        parents[int(folder.name)] = int(stat[1])
        if "_native.abi3" in maps and is_one(command):
            found.append(int(folder.name))

    def is_below(process: int) -> bool:
        while process in parents:
            process = parents[process]
            if process == os.getpid():
                return True
        return False

    return [process for process in found if process != os.getpid() and is_below(process)]


class Killer:
    """Kills one worker of the engine once it works, and only one."""

    def __init__(self, is_one: Callable[[str], bool]) -> None:
        self.seen: set[int] = set()
        self.killed: int | None = None
        self._is_one, self._stop = is_one, threading.Event()
        self._known = set(workers(is_one))
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            there = workers(self._is_one)
            self.seen.update(there)
            if there and self.killed is None:
                time.sleep(0.5)  # It has begun to answer.
                os.kill(there[0], signal.SIGKILL)
                self.killed = there[0]
            time.sleep(0.05)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        self._thread.join()
