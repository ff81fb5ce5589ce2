"""Fragments of HTML that read well in light and dark notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["escape", "page", "table"]

STYLE = ""


def page(body: str) -> str:
    """A fragment with the style it needs, and nothing from outside."""
    return f'<div class="tyrex"><style>{STYLE}</style>{body}</div>'


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], more: int = 0
) -> str:
    """A table of texts; numbers to the right; `more` says how many rows are not shown.

    >>> "&lt;b&gt;" in table(["name"], [["<b>"]], [False])
    True
    """
    marks = [' class="number"' if to_right else "" for to_right in right]

    def line(tag: str, cells: Sequence[str]) -> str:
        inner = (f"<{tag}{mark}>{escape(cell)}</{tag}>" for mark, cell in zip(marks, cells))
        return f"<tr>{''.join(inner)}</tr>"

    body = "".join(line("td", row) for row in rows)
    rest = f"<p>and {more} more rows</p>" if more else ""
    return page(f"<table><thead>{line('th', heads)}</thead><tbody>{body}</tbody></table>{rest}")
