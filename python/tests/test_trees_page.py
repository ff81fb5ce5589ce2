"""docs/trees.md: its blocks and commands run in order, and print what stands there.

A command exits with 0, or with the code in the comment behind it. Of what it prints the page may
leave out lines, but those that it shows occur in that order.
`TYREX_SHOW_DOCS=1 pytest -s tests/test_trees_page.py` prints all of it.
"""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
from typing import Any

import pytest

from conftest import REPOSITORY, built

pytest.importorskip("pandas")
pytest.importorskip("sklearn")
pytest.importorskip("xgboost")

PAGE = (REPOSITORY / "docs" / "trees.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
#: The part of the page that needs data that are not in the repository.
HELOC = PAGE.index("## HELOC")
SHOW = bool(os.environ.get("TYREX_SHOW_DOCS"))


def commands(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a block, each with the lines below it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.strip():
            found[-1][1].append(line.rstrip())
    return found


def run(text: str, folder: pathlib.Path) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for kind, block in BLOCK.findall(text):
        if kind == "python":
            exec(compile(block, "docs/trees.md", "exec"), names)
            continue
        for command, shown in commands(block):
            program, *arguments = shlex.split(command, comments=True)
            said = re.search(r"# exit code (\d+)$", command)
            code = int(said[1]) if said else 0
            assert program == "tyrex", command
            done = subprocess.run([built("tyrex"), *arguments], capture_output=True, text=True)
            assert done.returncode == code, f"{command}\n{done.returncode}\n{done.stderr}"
            if SHOW:
                print(f"$ {command}\n{done.stdout}", flush=True)
                continue
            printed = iter([line.rstrip() for line in done.stdout.splitlines()])
            for line in shown:
                assert line in printed, (
                    f"{command}\ndoes not print, in this place:\n{line}\n{done.stdout}"
                )


def test_german(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(PAGE[:HELOC], tmp_path)


def test_heloc(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pathlib.Path(os.environ.get("TYREX_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (data / "heloc.csv").exists():
        pytest.skip("HELOC is not here: tyrex data fetch heloc")
    monkeypatch.setenv("TYREX_DATA", os.fspath(data))
    monkeypatch.chdir(tmp_path)
    first = BLOCK.search(PAGE)
    assert first is not None
    # The function of the first block, without its call.
    define = first[2][: first[2].index("\n\n\nprepare(")]
    run(f"```python\n{define}\n```\n{PAGE[HELOC:]}", tmp_path)
