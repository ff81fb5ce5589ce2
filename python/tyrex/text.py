"""Values and tables as plain text."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["aligned", "listed", "shown"]


def shown(value: Any) -> str:
    """A value as text: four significant digits, whole numbers in full, empty if missing.

    >>> [shown(value) for value in (0.123456, 27.0, 123456.7, 1.5e-7, True, "own", None)]
    ['0.1235', '27', '123457', '1.5e-07', 'yes', 'own', '']
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if type(value).__name__ in ("bool", "bool_"):
        return "yes" if value else "no"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        if math.isnan(number):
            return ""
        if math.isfinite(number) and 1000 <= abs(number) < 1e15:
            return f"{number:.0f}"
        return f"{number:.4g}"
    return str(value)


def listed(words: Iterable[str], most: int = 8) -> str:
    """Words separated by commas, up to a maximum number.

    >>> listed(["age", "housing", "income"], most=2)
    'age, housing and 1 more'
    """
    words = list(words)
    if len(words) <= most:
        return ", ".join(words)
    return f"{', '.join(words[:most])} and {len(words) - most} more"


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """A table of texts with its columns aligned, those marked `right` to the right.

    >>> print(aligned(["row", "advice"], [["3", "raise age"], ["12", "-"]], [True, False]))
    row  advice
      3  raise age
     12  -
    """
    lines = [heads, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    padded = (
        [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right)
        ]
        for line in lines
    )
    return "\n".join("  ".join(cells).rstrip() for cells in padded)
