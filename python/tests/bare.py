"""A user who has nothing but numpy: what works, and what is said about the rest.

Run by `./check` in an environment of its own; not a test for pytest, which needs more.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util

import numpy as np

import tyrex

OPTIONAL = ("pandas", "polars", "pyarrow", "sklearn", "torch", "keras", "matplotlib", "onnx")


def main() -> None:
    there = [name for name in OPTIONAL if importlib.util.find_spec(name)]
    assert not there, f"expected an environment with numpy alone, found {there}"
    needs = [need for need in importlib.metadata.requires("tyrex") or [] if "extra" not in need]
    assert [need.split(">")[0] for need in needs] == ["numpy"], needs

    explainer = tyrex.Explainer.train(tyrex.datasets.load_german(), epochs=5)
    advice = explainer.explain(limit=3)
    assert len(advice.found) == 3 and "<table" in advice._repr_html_() and str(advice[0])
    assert tyrex.Explanations.from_json(advice.to_json()) == advice
    rows = np.random.default_rng(0).normal(size=(50, 2))
    opaque = tyrex.Explainer(lambda x: 1 / (1 + np.exp(-x[:, 0])), rows)
    assert opaque.explain(rows[:2], tau=0.5, k=50)
    assert tyrex.lof(rows, rows[:3], neighbours=5).shape == (3,)

    class Module:
        """What a scikit-learn model looks like from outside."""

    for work, package in [
        (advice.to_pandas, "pandas"),
        (advice.to_polars, "polars"),
        (advice.to_arrow, "pyarrow"),
        (advice.plot, "matplotlib"),
        (lambda: tyrex.MLPClassifier, "scikit-learn"),
        (explainer.adviser(method="min-cost").answer_schema, "pyarrow"),
        (lambda: importlib.import_module("tyrex.spark"), "tyrex[spark]"),
        (lambda: importlib.import_module("tyrex.ray"), "tyrex[ray]"),
        (lambda: importlib.import_module("tyrex.mlflow"), "tyrex[mlflow]"),
    ]:
        try:
            work()
        except ImportError as error:
            assert f"pip install {package}" in str(error), error
        else:
            raise AssertionError(f"{package} is not there, and nothing was said")


if __name__ == "__main__":
    main()
