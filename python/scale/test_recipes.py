"""The Python blocks of docs/scale.md run, and print what the page says. Blocks marked `py` need a
cluster or a store, and are what the other tests call."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from test_docs import BLOCK, PAGES, filled


def test_the_page_shows_what_its_blocks_print() -> None:
    text = (PAGES / "docs" / "scale.md").read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) == 4
    assert filled(text) == text
