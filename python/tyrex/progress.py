"""The progress of a long search."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO, Union

from . import html
from .errors import ParameterError, need
from .text import shown

__all__ = ["Progress", "ProgressSetting"]

# None: on a terminal or in a notebook; True: always; False: never; or a function (done, total).
ProgressSetting = Union[bool, None, Callable[[int, int], None]]  # noqa: UP007 (Python 3.9)

# Seconds before a bar is shown, and between two updates.
PATIENCE = 0.5
BETWEEN = 0.1
WIDTH = 30


class Progress:
    """A bar on a terminal or in a notebook, a function of the user's, or nothing.

    >>> seen = []
    >>> with Progress(lambda done, total: seen.append((done, total))) as progress:
    ...     progress(1, 2)
    ...     progress(2, 2)
    >>> seen
    [(1, 2), (2, 2)]
    """

    def __init__(
        self,
        setting: ProgressSetting = None,
        what: str = "explaining",
        *,
        unit: str = "rows",
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if setting not in (None, True, False) and not callable(setting):
            raise ParameterError(
                f"parameter `progress` is {setting!r}, expected None, True, False or a function of "
                "(done, total)"
            )
        self._what, self._unit, self._clock = what, unit, clock
        self._callback = setting if callable(setting) else None
        # Under some graphical shells there is no stderr at all.
        self._stream = stream or sys.stderr or io.StringIO()
        notebook = setting in (None, True) and stream is None and _in_notebook()
        terminal = setting is True or (setting is None and self._stream.isatty())
        self._show = self._on_page if notebook else self._on_line if terminal else None
        self._handle: Any = None
        self._length = 0
        self._start = clock()
        self._next = self._start + PATIENCE
        self._state = self._shown = (0, 0)

    def __enter__(self) -> Progress:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Reports that `done` of `total` are done."""
        if self._callback is not None:
            self._callback(done, total)
        self._state = (done, total)
        if self._show is not None and self._clock() >= self._next:
            self._update()

    def __exit__(self, *problem: object) -> None:
        # The final state stays on its own line.
        if self._shown == (0, 0):
            return
        if self._shown != self._state:
            self._update()
        if self._length:
            self._stream.write("\n")
            self._stream.flush()

    def _update(self) -> None:
        if self._show is not None:
            now = self._clock()
            self._next, self._shown = now + BETWEEN, self._state
            self._show(*self._state, self._times(*self._state, now - self._start))

    def _times(self, done: int, total: int, seconds: float) -> str:
        if done == 0 or seconds <= 0:
            return _clock_time(seconds)
        rate = done / seconds
        speed = f"{shown(rate)} {self._unit}/s" if rate >= 1 else f"{shown(1 / rate)} s each"
        left = f"{_clock_time((total - done) / rate)} left, " if done < total else ""
        return f"{_clock_time(seconds)}, {left}{speed}"

    def _on_line(self, done: int, total: int, times: str) -> None:
        filled = min(WIDTH, WIDTH * done // max(total, 1))
        bar = "#" * filled + "." * (WIDTH - filled)
        line = f"{self._what} [{bar}] {done}/{total} ({times})"
        self._stream.write("\r" + line.ljust(self._length))
        self._stream.flush()
        self._length = len(line)

    def _on_page(self, done: int, total: int, times: str) -> None:
        notebook = need("IPython.display", "to show progress in a notebook", install="ipython")
        bar = notebook.HTML(html.progress(self._what, done, total, times))
        if self._handle is None:
            self._handle = notebook.display(bar, display_id=True)
        else:
            self._handle.update(bar)


def _clock_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
