"""The tasks that `bench/compare` knows.

A task is a name, a line here, and one file `peers/<engine>_<task>.py` per engine; tyrex's own
side is a subcommand of `crates/tyrex/examples/bench_worker.rs`.
"""

from dataclasses import dataclass, field
from math import ceil
from collections.abc import Callable


@dataclass(frozen=True)
class Aim:
    """How many times faster than the best of `engines` tyrex wants to be, on one thread."""

    engines: tuple[str, ...]
    ratio: float


@dataclass(frozen=True)
class Task:
    name: str
    title: str
    unit: str
    """What one unit of work is; the table gives seconds per unit."""
    flops: Callable[[int, int], float]
    """Floating-point operations of one unit, from rows and columns."""
    steps: Callable[[int], int]
    """Optimiser steps of one round, from rows; compared with each engine's own counter."""
    agree: dict[str, float] = field(default_factory=dict)
    """Reply fields whose mean over the rounds must be within this of the engines' median."""
    aims: tuple[Aim, ...] = ()
    peak_share: float = 0.0
    """The share of the core's GEMM peak that tyrex wants to reach on one thread."""


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
            flops=training_flops,
            steps=lambda rows: ceil(rows / BATCH),
            agree={"loss": 0.02},
            aims=(
                Aim(("jax", "jax-vmap"), 1.4),
                Aim(("torch-bmm",), 3.0),
                Aim(("torch",), 10.0),
                Aim(("keras",), 25.0),
            ),
            peak_share=0.55,
        ),
    ]
}
