"""Every Python block of docs/python.md runs, in order, and prints what the page says.

`TYREX_FILL_DOCS=1 pytest tests/test_docs.py` writes the outputs into the pages.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

import pytest

PAGES = Path(__file__).parent.parent.parent
# A block of Python, and the output below it if there is any.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def run(code: str, names: dict[str, Any]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "<page>", "exec"), names)
    # Tables are padded; a page has no spaces at the end of a line.
    return "".join(f"{line.rstrip()}\n" for line in said.getvalue().splitlines())


def filled(text: str) -> str:
    """The page with the outputs its blocks have now."""
    names: dict[str, Any] = {"__name__": "page"}

    def again(block: re.Match[str]) -> str:
        said = run(block[1], names)
        if block[2] is None:
            assert not said, f"the page does not show what this prints:\n{block[1]}\n{said}"
            return block[0]
        return f"```python\n{block[1]}```\n\n```text\n{said}```\n"

    return BLOCK.sub(again, text)


@pytest.mark.parametrize("page", ["docs/python.md", "python/README.md"])
def test_the_page_shows_what_its_blocks_print(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path))
    for package in ("pandas", "sklearn", "skl2onnx", "torch", "onnx", "xgboost", "onnxmltools"):
        pytest.importorskip(package)
    path = PAGES / page
    text = path.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) >= 1
    now = filled(text)
    if os.environ.get("TYREX_FILL_DOCS"):
        path.write_text(now, encoding="utf-8")
    else:
        assert now == text


def test_the_python_example_of_the_readme_runs() -> None:
    [(code, _)] = BLOCK.findall((PAGES / "README.md").read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "page"}
    advised, certified = run(code, names).splitlines()
    first = names["advice"][0]
    assert advised == f"{first.changes} {first.cost_l1}"
    assert "of 20 retrained models keep this point valid" in certified
    assert "This rests on: " in certified
