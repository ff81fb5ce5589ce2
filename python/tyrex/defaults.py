"""The defaults of the library, which signatures show."""

from __future__ import annotations

import json
from typing import Any

from . import _native

__all__ = ["CONFIDENCE", "DELTA", "GAMMA", "K", "PROBABILITY", "PROMISE_DAYS", "SIGMA"]

_ALL: dict[str, Any] = json.loads(_native.defaults())

# The measures of rows.
K: int = _ALL["stability"]["samples"]
SIGMA: float = _ALL["stability"]["sigma"]
GAMMA: str = _ALL["stability"]["gamma"]

# Certificates.
PROBABILITY: float = _ALL["certificate"]["probability"]
CONFIDENCE: float = _ALL["certificate"]["confidence"]
DELTA: float = _ALL["certificate"]["delta"]

# The days for which recorded advice is promised to hold.
PROMISE_DAYS: int = _ALL["promise_days"]
