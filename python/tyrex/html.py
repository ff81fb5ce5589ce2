"""Fragments of HTML that read well in light and in dark notebooks.

Colours are the notebook's own, or thin layers over its background; nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from .text import shown

if TYPE_CHECKING:
    from .explanation import Change, Explanation
    from .explanations import Explanations

__all__ = ["advice", "escape", "page", "progress", "table"]

# Rows of advice that a notebook shows.
MOST_ROWS = 20

STYLE = """
.tyrex { font-size: 13px; line-height: 1.45; color: inherit; }
.tyrex p { margin: 0 0 6px 0; }
.tyrex .dim { opacity: .65; }
.tyrex table.tyrex-table { border-collapse: collapse; border: 0; margin: 0; font-size: inherit; }
.tyrex table.tyrex-table th, .tyrex table.tyrex-table td {
  text-align: left; vertical-align: top; padding: 7px 14px 7px 0; border: 0;
  border-bottom: 1px solid rgba(128, 128, 128, .28); background: transparent;
  max-width: none; white-space: normal; font-variant-numeric: tabular-nums; }
.tyrex table.tyrex-table th { font-weight: 600; opacity: .7; white-space: nowrap;
  border-bottom: 1px solid rgba(128, 128, 128, .6); }
.tyrex table.tyrex-table .number { text-align: right; white-space: nowrap; }
.tyrex .change { margin: 0 0 3px 0; }
.tyrex .feature { white-space: nowrap; margin-right: 4px; }
.tyrex .score { white-space: nowrap; }
.tyrex .before { opacity: .65; text-decoration: line-through; text-decoration-thickness: 1px; }
.tyrex .after { font-weight: 600; padding: 1px 6px; border-radius: 4px;
  background: rgba(46, 160, 67, .22);
  -webkit-box-decoration-break: clone; box-decoration-break: clone; }
.tyrex .track { position: relative; width: 96px; height: 10px; margin: 5px 0 1px 0; }
.tyrex .track i { position: absolute; top: 4px; height: 2px; left: 0; right: 0;
  background: rgba(128, 128, 128, .35); }
.tyrex .track .gain { right: auto; background: #2da44e; }
.tyrex .track .half { top: 0; height: 10px; width: 1px; left: 50%; right: auto;
  background: rgba(128, 128, 128, .8); }
.tyrex .track b { position: absolute; top: 1px; width: 8px; height: 8px; margin-left: -4px;
  border-radius: 50%; box-sizing: border-box; }
.tyrex .track .from { border: 2px solid #8c959f; }
.tyrex .track .to { background: #2da44e; }
.tyrex .verdict { font-size: 11px; font-weight: 600; padding: 1px 7px; border-radius: 9px;
  margin-right: 6px; white-space: nowrap; background: rgba(128, 128, 128, .22); }
.tyrex .certified { background: rgba(46, 160, 67, .25); }
.tyrex .empirical, .tyrex .none { background: rgba(210, 153, 34, .28); }
.tyrex details { display: inline; }
.tyrex summary { cursor: pointer; display: inline; }
.tyrex summary::after { content: " \\25BE"; opacity: .6; }
.tyrex .sure { max-width: 340px; }
.tyrex .bar { display: inline-block; width: 220px; height: 8px; border-radius: 4px;
  overflow: hidden; vertical-align: middle; margin: 0 8px; background: rgba(128, 128, 128, .28); }
.tyrex .bar b { display: block; height: 100%; background: #2da44e; }
"""


def page(body: str) -> str:
    """A fragment with the style it needs."""
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

    return page(_table(line("th", heads), [line("td", row) for row in rows], more))


def progress(what: str, done: int, total: int, times: str) -> str:
    """A bar with the progress and the times."""
    share = 100 * done / total if total else 100.0
    bar = f'<span class="bar"><b style="width: {share:.1f}%"></b></span>'
    return page(f'{escape(what)}{bar}{done}/{total} <span class="dim">{escape(times)}</span>')


def advice(explanations: Explanations) -> str:
    """Explanations as one table: the changed cells, the scores, the cost, the certificate."""
    first = explanations[:MOST_ROWS]
    sure = any(e.certificate is not None for e in explanations)
    heads = ["Row", "Score", "Stability", f"Cost ({explanations.norm})", "What to change"]
    line = "".join(f"<th>{escape(head)}</th>" for head in heads + ["How sure"] * sure)
    rows = [_row(e, explanations.norm, sure) for e in first]
    summary = f"<p>{escape(explanations.summary)}</p>"
    return page(summary + _table(f"<tr>{line}</tr>", rows, len(explanations) - len(first)))


def _table(head: str, rows: Sequence[str], more: int) -> str:
    rest = f'<p class="dim">and {more} more</p>' if more > 0 else ""
    body = f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody>"
    return f'<table class="tyrex-table">{body}</table>{rest}'


def _row(explanation: Explanation, norm: str, sure: bool) -> str:
    e = explanation
    cells = [escape(shown(e.label))]
    if e.found and e.new_score is not None:
        cells += [
            f'<span class="score">{e.score:.3f} &rarr; <b>{e.new_score:.3f}</b></span>'
            + _track(e.score, e.new_score),
            *("" if n is None else f"{n:.3f}" for n in (e.stability, e.cost(norm))),
            "".join(map(_change, e.changes)) or escape(e.what_changes[0]),
        ]
    else:
        why = escape(e.why or e.reason or "")
        hint = f'<div class="dim">{escape(e.hint)}</div>' if e.hint else ""
        none = f'<span class="verdict none">not found</span>{why}{hint}'
        body = "".join(f"<td>{cell}</td>" for cell in [*cells, f"{e.score:.3f}", "", ""])
        return f'<tr>{body}<td colspan="{1 + sure}">{none}</td></tr>'
    body = "".join(f"<td>{cell}</td>" for cell in cells + [_sure(e)] * sure)
    return f"<tr>{body}</tr>"


def _track(before: float, after: float) -> str:
    low, high = sorted((100 * before, 100 * after))
    gain = f'<i class="gain" style="left: {low:.0f}%; width: {high - low:.0f}%"></i>'
    marks = f'<b class="from" style="left: {100 * before:.0f}%"></b>'
    marks += f'<b class="to" style="left: {100 * after:.0f}%"></b>'
    return f'<div class="track"><i></i>{gain}<i class="half"></i>{marks}</div>'


def _change(change: Change) -> str:
    before, after = change.words_before, change.words_after
    return (
        f'<div class="change"><span class="feature">{escape(change.feature)}</span> '
        f'<span class="before">{escape(before)}</span> &rarr; '
        f'<span class="after">{escape(after)}</span></div>'
    )


def _sure(explanation: Explanation) -> str:
    verdict = explanation.verdict
    if verdict is None:
        return ""
    # The verdict is beside the sentence, so the sentence need not end with it.
    text = explanation.certificate_sentence.replace(f" ({verdict})", "")
    first, _, rest = text.partition(". ")
    badge = f'<span class="verdict {escape(verdict)}">{escape(verdict)}</span>'
    first = escape(first if not rest else f"{first}.")
    if rest:
        first = f"<details><summary>{first}</summary> {escape(rest)}</details>"
    return f'<div class="sure">{badge}{first}</div>'
