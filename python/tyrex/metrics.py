"""Plausibility of points."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from ._native import local_outlier_factors
from .cells import Array
from .data import Frame
from .errors import DataError, ParameterError

__all__ = ["lof"]


def lof(data: Any, X: Any, neighbours: int = 20) -> Array:
    """The local outlier factor of each row of `X` among the rows of `data`.

    `LOF(x) = 1/k sum_{x' in L(x)} lrd(x') / lrd(x)`, where `L(x)` are the `k` rows of `data`
    nearest to `x` and `lrd`, the density, is one over the mean distance to them (never shorter
    than their own distance to their `k`-th nearest row). About 1 inside the data, above 1.5 for
    an outlier.

    This is `-LocalOutlierFactor(k, novelty=True).fit(data).score_samples(X)` of scikit-learn, on
    the numbers in single precision. Columns should be on a common scale. Tables with names are
    matched by name.

    >>> line = np.arange(20.0).reshape(-1, 1)
    >>> lof(line, [[7.25], [29.0]], neighbours=1).round(6)
    array([ 1., 10.])
    >>> lof(line, [[1.0, 2.0]])
    Traceback (most recent call last):
    tyrex.errors.DataError: X has 2 columns, the data 1
    """
    known, asked = _read(data), _read(X)
    if known.kind != "array" and asked.kind != "array":
        asked = asked.select(known.names)
    if len(known.names) != len(asked.names):
        columns = "column" if len(asked.names) == 1 else "columns"
        raise DataError(f"X has {len(asked.names)} {columns}, the data {len(known.names)}")
    others = len(known) - 1
    if others == 0:
        raise DataError("the data has one row; expected at least two")
    if isinstance(neighbours, bool) or not isinstance(neighbours, Integral):
        raise ParameterError(f"parameter `neighbours` is {neighbours!r}, expected a whole number")
    if not 1 <= neighbours <= others:
        raise ParameterError(
            f"parameter `neighbours` is {neighbours}, expected 1 to {others}: "
            f"the data has {len(known)} rows"
        )
    factors: Array = local_outlier_factors(
        _singles("the data", known), _singles("X", asked), int(neighbours)
    )
    return factors


def _read(table: Any) -> Frame:
    # A list of lists is read as an array.
    nested = isinstance(table, (list, tuple)) and not any(isinstance(row, dict) for row in table)
    return Frame.of(np.asarray(table) if nested else table)


def _singles(what: str, frame: Frame) -> Array:
    """The numbers in single precision, all finite."""
    with np.errstate(over="ignore"):
        matrix = frame.matrix().astype(np.float32)
    wrong = ~np.isfinite(matrix)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        value = "missing" if np.isnan(matrix[row, column]) else "too large for single precision"
        raise DataError(f"{what}, column '{frame.names[column]}', row {row}: the value is {value}")
    return matrix
