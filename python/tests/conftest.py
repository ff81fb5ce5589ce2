"""What several tests share: German credit, a network, and the command line."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess

import pandas as pd
import pytest

import tyrex

# In a shell's background Ctrl-C is ignored, and Python keeps to that; some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The backend that is installed here.
os.environ.setdefault("KERAS_BACKEND", "torch")

REPOSITORY = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="session")
def german() -> pd.DataFrame:
    return tyrex.datasets.load_german().to_pandas()


@pytest.fixture(scope="session")
def explainer() -> tyrex.Explainer:
    """A small network of tyrex on German credit, trained on all its rows."""
    german = tyrex.datasets.load_german()
    return tyrex.Explainer.train(german, hidden=[16], epochs=20, l2=0.0, early_stopping=None)


@pytest.fixture(scope="session")
def features(german: pd.DataFrame) -> pd.DataFrame:
    return german.drop(columns="class")


@pytest.fixture(scope="session")
def numbers(features: pd.DataFrame) -> pd.DataFrame:
    """The numeric columns of German credit."""
    return features.select_dtypes("number")


def built(name: str) -> str:
    """A program that cargo has built: `./check` builds them before it runs these tests."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    for profile in ("debug", "release"):
        program = target / profile / name
        if program.exists():
            return str(program)
    raise FileNotFoundError(
        f"{name} is not built; run `cargo build --package tyrex-cli --all-features` and "
        "`cargo build --package tyrex --examples` first"
    )


def output_of(*command: str, cwd: object = None, codes: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=str(cwd) if cwd else None)
    assert done.returncode in codes, done.stderr
    return done.stdout
