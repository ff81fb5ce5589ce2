"""Checks of parameters."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from .errors import ParameterError

__all__ = ["certificate_terms", "groupings", "names", "numbers", "real", "to_json", "whole"]

# The range of the native side's integers.
MOST = 2**63 - 1


def whole(name: str, value: Any, least: int = 0) -> int:
    """A whole number of at least `least`.

    >>> whole("k", 1000, 1)
    1000
    >>> whole("k", 2.5, 1)
    Traceback (most recent call last):
    tyrex.errors.ParameterError: parameter `k` is 2.5, expected a whole number of at least 1
    """
    is_whole = isinstance(value, Integral) and type(value).__name__ not in ("bool", "bool_")
    if not is_whole or not least <= int(value) <= MOST:
        raise ParameterError(
            f"parameter `{name}` is {value!r}, expected a whole number of at least {least}"
        )
    return int(value)


def real(name: str, value: Any) -> float:
    """A finite number; the native side checks its range.

    >>> real("tau", float("nan"))
    Traceback (most recent call last):
    tyrex.errors.ParameterError: parameter `tau` is nan, expected a number
    """
    is_number = isinstance(value, Real) and type(value).__name__ not in ("bool", "bool_")
    if not is_number or not math.isfinite(value):
        raise ParameterError(f"parameter `{name}` is {value!r}, expected a number")
    return float(value)


def numbers(name: str, values: Any) -> list[float]:
    """Finite numbers.

    >>> numbers("taus", 0.5)
    Traceback (most recent call last):
    tyrex.errors.ParameterError: parameter `taus` is 0.5, expected a list of numbers
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(f"parameter `{name}` is {values!r}, expected a list of numbers")
    return [real(name, value) for value in values]


def names(name: str, values: Any) -> list[str]:
    """Names of columns, or one.

    >>> names("features_to_keep", "age")
    ['age']
    """
    if isinstance(values, str):
        return [values]
    found = list(values) if isinstance(values, Iterable) else [values]
    if not all(isinstance(value, str) for value in found):
        raise ParameterError(f"parameter `{name}` is {values!r}, expected names of columns")
    return found


def groupings(by: Any) -> list[str]:
    """`sex`, `["sex", "age:25,40"]` or `{"sex": None, "age": [25, 40]}` as the library reads it.

    >>> groupings({"sex": None, "age": [25, 40]})
    ['sex', 'age:25.0,40.0']
    """
    if not isinstance(by, Mapping):
        return names("by", by)
    return [
        name if edges is None else f"{name}:{','.join(f'{x!r}' for x in numbers('by', edges))}"
        for name, edges in by.items()
    ]


def to_json(what: str, document: Any) -> str:
    """Parameters for the native side.

    >>> to_json("training parameters", {"epochs": float("inf")})
    Traceback (most recent call last):
    tyrex.errors.ParameterError: training parameters: `epochs` is inf, expected a finite number
    """
    try:
        return json.dumps(document, allow_nan=False, default=_plain)
    except ValueError as error:
        raise ParameterError(f"{what}: {_not_finite(document) or error}") from None


def _not_finite(value: Any, place: str = "") -> str | None:
    """Where a number that is not finite stands.

    >>> _not_finite({"actions": {"age": {"within": [18, float("nan")]}}})
    '`actions.age.within.1` is nan, expected a finite number'
    """
    if isinstance(value, Real) and not math.isfinite(value):
        return f"`{place}` is {value}, expected a finite number"
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, (list, tuple)):
        inner = enumerate(value)
    found = (_not_finite(own, f"{place}.{name}".lstrip(".")) for name, own in inner)
    return next(filter(None, found), None)


def certificate_terms(
    probability: Any, confidence: Any, delta: Any, radius: Any
) -> dict[str, float | None]:
    """The terms of certificates for the native side.

    >>> certificate_terms(0.9, 0.95, None, None)
    {'probability': 0.9, 'confidence': 0.95, 'delta': None}
    """
    terms = {
        "probability": real("probability", probability),
        "confidence": real("confidence", confidence),
        "delta": None if delta is None else real("delta", delta),
    }
    return terms if radius is None else {**terms, "radius": real("radius", radius)}


def training_json(params: Mapping[str, Any]) -> str:
    """Training parameters for the native side, whose names have hyphens.

    >>> training_json({"learning_rate": 0.01})
    '{"learning-rate": 0.01}'
    """
    wanted = {name.replace("_", "-"): value for name, value in params.items()}
    return to_json("training parameters", wanted)


def _plain(value: Any) -> Any:
    """Numbers of numpy, which JSON does not know."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ParameterError(f"found a {type(value).__name__}, expected numbers and texts")
