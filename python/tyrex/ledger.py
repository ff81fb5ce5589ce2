"""The ledger of promises: answers of other processes are recorded in one chain."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass

from . import _native
from .errors import DataError
from .progress import Progress, ProgressSetting

__all__ = ["Recorded", "record"]


@dataclass(frozen=True)
class Recorded:
    """What was recorded: of `answers`, the promises `recorded` now, those that the ledger had
    `already`, and the answers `without` advice. `head` is the hash of the last of its `entries`;
    kept elsewhere, it shows later that nothing before it was changed."""

    answers: int
    recorded: int
    already: int
    without: int
    entries: int
    head: str


def record(
    ledger: str | os.PathLike[str],
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    subject: str,
    progress: ProgressSetting = None,
) -> Recorded:
    """Records the promises in files of answers, as `tyrex ledger record` does.

    `ledger` is a file, created if there is none, or the URL of a PostgreSQL database. `files` are
    Parquet, CSV or JSON lines: one, several, a folder that Spark or Ray wrote, with the folders of
    its partitions, or a pattern such as `"answers/*.parquet"`. The answers are those of an adviser
    with `promises=True`, and `subject` is the column that names the subject of each. In any order
    and any number of times, every promise is recorded once.
    """
    given = [files] if isinstance(files, (str, os.PathLike)) else files
    paths = [path for each in given for path in _found(os.fspath(each))]
    with Progress(progress, "recording") as bar:
        document = json.loads(_native.record_answers(os.fspath(ledger), paths, subject, bar))
    head = document.pop("head")
    return Recorded(**document, entries=head["count"], head=head["hash"])


def _found(path: str) -> list[str]:
    """The files of a pattern; other paths as they are."""
    if not any(sign in path for sign in "*?[") or os.path.exists(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise DataError(f"{path}: found no file, expected Parquet files of answers")
    return found
