"""The tasks that `bench/compare` knows.

A task is a name, a line here, and one file `peers/<engine>_<task>.py` per engine; tyrex's own
side is a subcommand of `crates/tyrex/examples/bench_worker`, or a file like the others'.
"""

from dataclasses import dataclass, field
from math import ceil
from collections.abc import Callable

TYREX = "tyrex"


@dataclass(frozen=True)
class Aim:
    """The target speed-up over the best of `engines`, on one thread."""

    engines: tuple[str, ...]
    ratio: float


@dataclass(frozen=True)
class Forest:
    """The size of a boosted model, and what is explained."""

    trees: int
    depth: int
    columns: int
    factuals: int
    search: int = 0
    """Further models, for a method that searches over them."""


@dataclass(frozen=True)
class Task:
    name: str
    title: str
    unit: str
    """The unit of work; the table gives seconds per unit."""
    subcommand: str | None = None
    """Of tyrex's worker; None where tyrex takes part by files like the others'."""
    baseline: str = TYREX
    """The engine that the others are compared with."""
    flops: Callable[[int, int], float] | None = None
    """Floating-point operations of one unit, from rows and columns; None if engines differ."""
    steps: Callable[[int], int] | None = None
    """Optimiser steps of one round, from rows; compared with each engine's own counter."""
    agree: dict[str, float] = field(default_factory=dict)
    """Reply fields whose mean over the rounds must be within this of the engines' median."""
    same: tuple[str, ...] = ()
    """Reply fields that must be the baseline's, to the letter."""
    columns: tuple[str, ...] = ()
    """Reply fields that the table shows."""
    aims: tuple[Aim, ...] = ()
    most: dict[str, float] = field(default_factory=dict)
    """The limit of an engine's time relative to the baseline, on one thread."""
    peak_share: float | None = None
    """The share of the core's GEMM peak that tyrex wants to reach on one thread."""
    limit: float | None = None
    """The most seconds per unit that tyrex wants to take on one thread."""
    is_search: bool = False
    """Whether it is about a trained network (problem.py) and not about rows."""
    is_explaining: bool = False
    """Whether it is about the command line and the Python package (explaining.py)."""
    forest: Forest | None = None
    """The boosted model that it is about (boosted.py), if it is about trees."""
    on_request: bool = False
    """Whether it is left out unless it is named: its engines need environments of their own, or its
    models take long to train."""
    splits: bool = True
    """Whether two threads may also be two processes with one core each."""
    threads: tuple[int, ...] = (1,)
    rounds: int | None = None
    """The most rounds, where one takes long."""


HIDDEN, BATCH = 128, 32


def training_flops(rows, columns):
    """Three products per weight matrix and row; the gradient of the input is not needed."""
    first, others = columns * HIDDEN, HIDDEN * HIDDEN + HIDDEN
    return 2.0 * rows * (2 * first + 3 * others)


TASKS = {
    task.name: task
    for task in [
        Task(
            name="train",
            title="Training d-128-128-1 (ReLU, sigmoid, Adam, batch 32)",
            unit="epoch of one model",
            subcommand="train",
            flops=training_flops,
            steps=lambda rows: ceil(rows / BATCH),
            agree={"loss": 0.02},
            columns=("loss", "accuracy"),
            aims=(
                Aim(("jax", "jax-vmap"), 1.4),
                Aim(("torch-bmm",), 3.0),
                Aim(("torch",), 10.0),
                Aim(("keras",), 25.0),
            ),
            peak_share=0.55,
            threads=(1, 2),
        ),
        Task(
            name="stability",
            title="Relaxed stability and its gradient, 1000 Monte Carlo neighbours",
            unit="point",
            subcommand="stability",
            agree={"value": 1e-4, "gradient": 1e-3},
            columns=("value", "gradient"),
            aims=(Aim(("jax",), 1.25), Aim(("torch",), 2.5)),
            is_search=True,
        ),
        Task(
            name="trex-i",
            title="T-Rex:I with its base, tau 0.85, L2",
            unit="factual",
            subcommand="trex-i",
            agree={"validity": 0.01},
            columns=("found", "validity", "cost", "stability"),
            aims=(Aim(("jax",), 10.0), Aim(("torch",), 30.0), Aim(("tf",), 200.0)),
            is_search=True,
            rounds=5,
        ),
        Task(
            name="trex-e",
            title="T-Rex:E over 40 models, the lowest tenth of their logits at 0.5 or more, L2",
            unit="factual",
            subcommand="trex-e",
            columns=("found", "validity", "cost"),
            limit=1.5e-3,
            is_search=True,
            rounds=5,
        ),
        Task(
            name="trex-nn",
            title="T-Rex:NN, the 1000 nearest, tau 0.85, L2",
            unit="factual",
            subcommand="trex-nn",
            columns=("found", "validity", "cost", "stability"),
            aims=(Aim(("tf",), 500.0),),
            is_search=True,
            rounds=5,
        ),
        Task(
            name="interval",
            title="The lowest score if every weight moves by up to 0.001 (tyrex alone)",
            unit="point",
            subcommand="interval",
            columns=("lowest",),
            limit=50e-6,
            is_search=True,
        ),
        Task(
            name="explain",
            title="T-Rex:I for every rejected test row of HELOC, tau 0.85, L2, as a user runs it",
            unit="row",
            baseline="cli",
            same=("answers",),
            columns=("found", "cost"),
            most={"python": 1.05},
            is_explaining=True,
            on_request=True,
            splits=False,
            threads=(1, 2),
        ),
        Task(
            name="counterfactual",
            title="A point that the network accepts: tyrex by T-Rex:I (tau 0.85, L2), the others "
            "by their own methods",
            unit="factual",
            subcommand="trex-i",
            columns=("found", "validity", "cost_l1", "cost", "stability"),
            is_search=True,
            on_request=True,
            rounds=3,
        ),
        Task(
            name="plausible",
            title="A point that the network accepts and that looks like accepted rows: tyrex by "
            "margin with a p-value of 0.1, L2, DiCE by its rows",
            unit="factual",
            subcommand="plausible",
            columns=("found", "validity", "cost_l1", "cost", "inliers"),
            is_search=True,
            on_request=True,
            rounds=3,
        ),
        Task(
            name="tree-advice",
            title="A point that 120 boosted trees of depth 4 on 8 columns accept, L1",
            unit="factual",
            subcommand="tree-advice",
            columns=("found", "median_ms", "cost_l1", "changed", "validity", "proved"),
            limit=5e-3,
            forest=Forest(trees=120, depth=4, columns=8, factuals=100),
            on_request=True,
            rounds=3,
        ),
        Task(
            name="tree-proof",
            title="The cheapest point that 30 boosted trees of depth 4 on 8 columns accept, with "
            "its proof, L1",
            unit="factual",
            subcommand="tree-proof",
            agree={"cost_l1": 1e-4},
            columns=("found", "median_ms", "cost_l1", "changed", "proved"),
            limit=50e-3,
            forest=Forest(trees=30, depth=4, columns=8, factuals=50),
            on_request=True,
            rounds=3,
        ),
        Task(
            name="tree-wide",
            title="A point that 300 boosted trees of depth 6 on 39 columns accept, L1",
            unit="factual",
            subcommand="tree-advice",
            columns=("found", "median_ms", "cost_l1", "changed", "validity"),
            limit=30e-3,
            forest=Forest(trees=300, depth=6, columns=39, factuals=50),
            on_request=True,
            rounds=3,
        ),
        Task(
            name="tree-stable",
            title="trex-o on 300 boosted trees of depth 6 on 39 columns, L1 (tyrex alone)",
            unit="factual",
            subcommand="tree-trex-o",
            columns=("found", "median_ms", "cost_l1", "changed", "validity"),
            forest=Forest(trees=300, depth=6, columns=39, factuals=50),
            on_request=True,
            rounds=3,
        ),
        Task(
            name="tree-promise",
            title="trex-e over 20 retrained models, 300 boosted trees of depth 6 on 39 columns, L1 "
            "(tyrex alone)",
            unit="factual",
            subcommand="tree-trex-e",
            columns=("found", "median_ms", "cost_l1", "changed", "validity"),
            forest=Forest(trees=300, depth=6, columns=39, factuals=50, search=20),
            on_request=True,
            rounds=3,
        ),
        Task(
            name="tree-score",
            title="Scores of 300 boosted trees of depth 6 on 39 columns, all training rows",
            unit="row",
            subcommand="tree-score",
            agree={"mean": 1e-6},
            columns=("mean",),
            aims=(Aim(("xgboost", "onnxruntime", "lightgbm"), 1.0),),
            forest=Forest(trees=300, depth=6, columns=39, factuals=0),
            on_request=True,
        ),
    ]
}
