"""Counterfactual explanations that still hold after the model is retrained.

>>> import tyrex
>>> german = tyrex.datasets.load_german()
>>> explainer = tyrex.Explainer.train(german)
>>> advice = explainer.explain(limit=2)
>>> print(advice[0])  # doctest: +ELLIPSIS
Row 9 (score 0.408): Change checking_status from `0<=X<200 DM` to ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import datasets, ledger, refits
from ._native import __version__, method_names, set_threads
from .audit import Audit, Promise, audit
from .batches import Adviser, Auditor, Certifier, Gauge
from .columns import Columns
from .errors import DataError, ModelError, ParameterError, SchemaError, TyrexError, need
from .explainer import Explainer
from .explanation import Change, Explanation
from .explanations import Explanations
from .metrics import lof
from .robustness import (
    Calibration,
    Ensemble,
    Verified,
    calibrate,
    certify,
    retrain,
    stability,
    verify,
)
from .schema import Schema

if TYPE_CHECKING:
    from .classifier import MLPClassifier

__all__ = [
    "Adviser",
    "Audit",
    "Auditor",
    "Calibration",
    "Certifier",
    "Change",
    "Columns",
    "DataError",
    "Ensemble",
    "Explainer",
    "Explanation",
    "Explanations",
    "Gauge",
    "MLPClassifier",
    "ModelError",
    "ParameterError",
    "Promise",
    "Schema",
    "SchemaError",
    "TyrexError",
    "Verified",
    "__version__",
    "audit",
    "calibrate",
    "certify",
    "datasets",
    "ledger",
    "lof",
    "method_names",
    "refits",
    "retrain",
    "set_threads",
    "stability",
    "verify",
]


def __getattr__(name: str) -> Any:
    # The only name that needs scikit-learn, an optional dependency.
    if name == "MLPClassifier":
        need("sklearn", "for MLPClassifier", install="scikit-learn")
        from .classifier import MLPClassifier

        return MLPClassifier
    raise AttributeError(f"module 'tyrex' has no attribute '{name}'")
