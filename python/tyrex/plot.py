"""Plots of explanations with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import ParameterError, need
from .text import shown

if TYPE_CHECKING:
    from .explanation import Change, Explanation
    from .explanations import Explanations
    from .robustness import Calibration

__all__ = ["calibration", "changes", "trade_off"]

BEFORE = "#8c959f"
AFTER = "#1f883d"
TEXT = "#57606a"
# The minimum distance of two marks, so that an arrow fits between them.
LEAST_GAP = 0.06


def changes(explanation: Explanation, ax: Any = None) -> Any:
    """An arrow from the old to the new value of every feature that changes.

    Features have their own units, so every line runs from zero to the larger of its two values;
    a category's from one value to the other.
    """
    if not explanation.changes:
        raise ParameterError(
            f"row {explanation.label}: there are no changes to draw; "
            + (explanation.why or explanation.what_changes[0])
        )
    count = len(explanation.changes)
    ax = _axes(ax, (7.5, 0.8 + 0.8 * count))
    for place, change in enumerate(explanation.changes):
        start, end = _ends(change)
        ax.plot([0, 1], [place, place], color=BEFORE, alpha=0.3, lw=1.5, zorder=1)
        arrow = {"arrowstyle": "-|>", "mutation_scale": 16, "color": AFTER, "lw": 2.5}
        ax.annotate(
            "", (end, place), (start, place), arrowprops={**arrow, "shrinkA": 4, "shrinkB": 0}
        )
        ax.plot(start, place, "o", ms=8, mfc="white", mec=BEFORE, mew=2, zorder=3)
        _value(ax, start, place, change.words_before, above=True, color=TEXT)
        _value(ax, end, place, change.words_after, above=False, color=AFTER, fontweight="bold")
    ax.set_yticks(range(count), [_short(change.feature, 30) for change in explanation.changes])
    ax.set_ylim(count - 0.4, -0.6)
    ax.set_xlim(-0.03, 1.03)
    ax.set_xticks([])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    title = f"Row {_short(shown(explanation.label), 30)}: score {explanation.score:.3f}"
    if explanation.new_score is not None:
        title += f" \N{RIGHTWARDS ARROW} {explanation.new_score:.3f}"
    if explanation.stability is not None:
        title += f", stability {explanation.stability:.3f}"
    ax.set_title(title, loc="left")
    return ax


def trade_off(explanations: Explanations, ax: Any = None) -> Any:
    """The cost of every explanation that was found, against its stability."""
    found = [e for e in explanations.found if e.stability is not None]
    if not found:
        raise ParameterError("no explanation was found, so there is nothing to draw")
    ax = _axes(ax, (6.4, 4.4))
    costs = [e.cost(explanations.norm) for e in found]
    ax.scatter(costs, [e.stability for e in found], s=36, color=AFTER, alpha=0.7, lw=0)
    tau = explanations.request.get("tau")
    if isinstance(tau, (int, float)):
        ax.axhline(tau, color=BEFORE, lw=1, ls="--")
        ax.annotate(
            f"asked for: {shown(tau)}",
            (0.995, tau),
            (0, -5),
            xycoords=ax.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="top",
            color=TEXT,
        )
        ax.margins(y=0.12)
    ax.set_xlabel(f"cost ({explanations.norm})")
    ax.set_ylabel("stability")
    ax.grid(alpha=0.25)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(f"{len(found)} of {len(explanations)} found", loc="left")
    return ax


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    if ax is not None:
        return ax
    pyplot = need("matplotlib.pyplot", "to draw plots")
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def _ends(change: Change) -> tuple[float, float]:
    """The ends of an arrow: as shares of the larger value, categories from 0 to 1."""
    before, after = change.before, change.after
    numbers = [isinstance(value, (int, float)) and value == value for value in (before, after)]
    if not all(numbers) or isinstance(before, bool):
        return 0.0, 1.0
    largest = max(abs(before), abs(after)) or 1.0
    start, end = before / largest, after / largest
    low, high = sorted((start, end))
    if low < 0:
        # Values on both sides of zero share the width.
        start, end = (start + 1) / 2, (end + 1) / 2
    if high - low < LEAST_GAP:
        end = start + (LEAST_GAP if after >= before else -LEAST_GAP)
    return start, end


def _value(ax: Any, x: float, y: float, text: str, *, above: bool, **style: Any) -> None:
    # The old value above, the new one below, both towards the middle, without overlap.
    ax.annotate(
        _short(text, 60),
        xy=(x, y),
        xytext=(-5 if x < 0.5 else 5, 8 if above else -8),
        textcoords="offset points",
        ha="left" if x < 0.5 else "right",
        va="bottom" if above else "top",
        **style,
    )


def _short(text: str, most: int) -> str:
    short = text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
    # Matplotlib reads text between two dollar signs as a formula.
    return short.replace("$", r"\$")


def calibration(found: Calibration, ax: Any = None) -> Any:
    """Cost against validity, a mark per threshold; the goal as a line, the chosen one filled."""
    ax = _axes(ax, (6.5, 4.5))
    goal = found.to_dict()["goal"]["validity"]
    points = [
        (point["mean_cost"], point["validity_reporting"], point["tau"])
        for point in found.to_dict()["curve"]
        if point["mean_cost"] is not None and point["validity_reporting"] is not None
    ]
    ax.plot([x for x, _, _ in points], [y for _, y, _ in points], "-", color=BEFORE, lw=1.5)
    for cost, validity, tau in points:
        chosen = tau == found.tau
        face = AFTER if chosen else "white"
        ax.plot(cost, validity, "o", ms=9 if chosen else 7, mfc=face, mec=AFTER, mew=1.5)
        offset = {"textcoords": "offset points", "xytext": (7, -11), "fontsize": 9}
        ax.annotate(f"{tau:g}", (cost, validity), color=TEXT, **offset)
    ax.axhline(goal, color=TEXT, lw=1, ls="--")
    ax.set_xlabel("mean cost of the advice")
    ax.set_ylabel("share that stays valid")
    ax.set_title("Cost and validity of each threshold of stability", loc="left")
    return ax
