"""Bars on terminals, in notebooks, and none elsewhere."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from typing import Any

import pytest
from tyrex.progress import Progress


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def steps(progress: Progress, clock: Clock, seconds: float, count: int, total: int) -> None:
    with progress:
        for done in range(1, count + 1):
            clock.now += seconds
            progress(done, total)


def test_a_terminal_shows_a_bar_with_rate_and_time_left() -> None:
    primary, secondary = pty.openpty()
    clock = Clock()
    with os.fdopen(secondary, "w") as stream:
        steps(Progress(None, stream=stream, clock=clock), clock, 1.0, 4, 8)
        # A terminal hands over what it has so far, not all there will be.
        written = ""
        while not written.endswith("\n"):
            written += os.read(primary, 10_000).decode()
    os.close(primary)
    lines = written.strip().split("\r")
    assert (
        lines[-1] == "explaining [###############...............] 4/8 (00:04, 00:04 left, 1 rows/s)"
    )
    assert len(lines) == 4


def always(clock: Clock) -> tuple[Progress, io.StringIO]:
    stream = io.StringIO()
    return Progress(True, stream=stream, clock=clock), stream


def test_a_quick_search_shows_nothing() -> None:
    clock = Clock()
    progress, stream = always(clock)
    steps(progress, clock, 0.1, 4, 4)
    assert stream.getvalue() == ""


def test_ten_times_a_second_at_most() -> None:
    clock = Clock()
    progress, stream = always(clock)
    steps(progress, clock, 0.001, 2000, 2000)
    assert 10 <= stream.getvalue().count("\r") <= 17
    # The last state is always there.
    assert "2000/2000 (00:02, 1000 rows/s)" in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "count", "total", "end"),
    [
        (3600.0, 1, 3, "1/3 (1:00:00, 2:00:00 left, 3600 s each)"),
        (2.0, 2, 2, "2/2 (00:04, 2 s each)"),
        (1.0, 1, 0, "1/0 (00:01, 1 rows/s)"),
    ],
)
def test_times(seconds: float, count: int, total: int, end: str) -> None:
    clock = Clock()
    progress, stream = always(clock)
    steps(progress, clock, seconds, count, total)
    assert stream.getvalue().rstrip().endswith(end)


def test_nothing_is_done_yet() -> None:
    clock = Clock()
    progress, stream = always(clock)
    clock.now += 1
    progress(0, 5)
    assert stream.getvalue().endswith("0/5 (00:01)")


def test_a_shorter_line_covers_the_longer_one() -> None:
    clock = Clock()
    progress, stream = always(clock)
    steps(progress, clock, 40.0, 2, 2)
    first, second = stream.getvalue().rstrip("\n").split("\r")[1:]
    assert len(second) >= len(first)


def test_an_error_ends_the_line() -> None:
    clock = Clock()
    progress, stream = always(clock)
    with pytest.raises(KeyboardInterrupt), progress:
        clock.now += 1
        progress(1, 9)
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\n")


@pytest.mark.parametrize("setting", [None, False])
def test_no_terminal_no_bar(setting: Any) -> None:
    clock, stream = Clock(), io.StringIO()
    steps(Progress(setting, stream=stream, clock=clock), clock, 1.0, 3, 3)
    assert stream.getvalue() == ""


def test_without_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    clock = Clock()
    steps(Progress(None, clock=clock), clock, 1.0, 3, 3)
    steps(Progress(True, clock=clock), clock, 1.0, 3, 3)


def test_a_function_is_called_every_time() -> None:
    seen: list[tuple[int, int]] = []
    clock = Clock()
    steps(Progress(lambda *state: seen.append(state), clock=clock), clock, 0.001, 3, 3)
    assert seen == [(1, 3), (2, 3), (3, 3)]


NOTEBOOK = """
import json, sys
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
from tyrex.progress import Progress

shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
shell.kernel = object()
shell.display_pub = publisher = CapturingDisplayPublisher(parent=shell)
now = [0.0]
with Progress(clock=lambda: now[0]) as progress:
    for done in range(1, 4):
        now[0] += 1
        progress(done, 3)
shown = [[o["data"]["text/html"], o["transient"], o["update"]] for o in publisher.outputs]
print(json.dumps(shown))
"""


def test_a_notebook_shows_one_bar_that_moves() -> None:
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    outputs = json.loads(done.stdout)
    assert [update for _, _, update in outputs] == [False, True, True]
    assert len({transient["display_id"] for _, transient, _ in outputs}) == 1
    assert "width: 33.3%" in outputs[0][0]
    assert "3/3" in outputs[2][0] and "width: 100.0%" in outputs[2][0]
