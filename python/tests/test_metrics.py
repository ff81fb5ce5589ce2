"""The local outlier factor beside scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.neighbors import LocalOutlierFactor
from tyrex.errors import DataError, ParameterError
from tyrex.metrics import lof


def reference(data: np.ndarray, X: np.ndarray, neighbours: int) -> np.ndarray:
    return -LocalOutlierFactor(n_neighbors=neighbours, novelty=True).fit(data).score_samples(X)


def normal(rows: int, columns: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32).astype(float)


@pytest.mark.parametrize(("rows", "columns"), [(21, 1), (300, 2), (500, 11), (3000, 39)])
@pytest.mark.parametrize("neighbours", [1, 5, 20])
def test_it_is_scikit_learns(rows: int, columns: int, neighbours: int) -> None:
    data, X = normal(rows, columns, 0), 1.5 * normal(1500, columns, 1)
    X = X.astype(np.float32).astype(float)
    factors = lof(data, X, neighbours)
    assert factors.dtype == np.float64 and factors.shape == (1500,)
    np.testing.assert_allclose(factors, reference(data, X, neighbours), rtol=1e-6)


def test_single_precision_is_enough_for_scaled_columns() -> None:
    draws = np.random.default_rng(2)
    data, X = draws.normal(size=(800, 9)), draws.normal(size=(200, 9))
    np.testing.assert_allclose(lof(data, X), reference(data, X, 20), rtol=1e-6)


def test_tables_are_matched_by_name() -> None:
    data, X = normal(60, 3, 0), normal(10, 3, 1)
    expected = lof(data, X, 7)
    names = ["age", "income", "debt"]
    known, asked = pd.DataFrame(data, columns=names), pd.DataFrame(X, columns=names)
    shuffled = asked[["debt", "age", "income"]].assign(note="unread")
    for given in (asked, shuffled, pl.DataFrame(shuffled), asked.to_dict("list"), X, X.tolist()):
        assert (lof(known, given, 7) == expected).all()
    assert (lof(data, asked, 7) == expected).all()
    assert lof(known, asked.iloc[3], 7) == expected[3]


DATA = normal(30, 2, 0)


@pytest.mark.parametrize(
    ("data", "X", "neighbours", "error", "message"),
    [
        (DATA, np.zeros((2, 3)), 20, DataError, "X has 3 columns, the data 2"),
        (DATA, np.zeros((2, 1)), 20, DataError, "X has 1 column, the data 2"),
        (DATA, np.zeros(2), 20, DataError, "1-D; expected 2-D"),
        (DATA, np.array([[0, np.nan]]), 20, DataError, "X, column 'x1', row 0: the value is miss"),
        (np.where(DATA < -1, np.nan, DATA), DATA, 20, DataError, "the data, column .* is missing"),
        (DATA, np.array([[np.inf, 0]]), 20, DataError, "column 'x0', row 0: the value is infinite"),
        (DATA, np.array([[1e300, 0]]), 20, DataError, "too large for single precision"),
        (DATA, DATA, 30, ParameterError, "`neighbours` is 30, expected 1 to 29: the data has 30"),
        (DATA, DATA, 0, ParameterError, "`neighbours` is 0, expected 1 to 29"),
        (DATA, DATA, 2.5, ParameterError, "`neighbours` is 2.5, expected a whole number"),
        (DATA[:1], DATA, 1, DataError, "the data has one row; expected at least two"),
        (DATA, {"x0": ["a"], "x1": [1]}, 5, DataError, "column 'x0' holds texts"),
        ({"a": [1, 2]}, {"b": [1]}, 1, DataError, "no column 'a'"),
        (DATA[:0], DATA, 5, DataError, "no rows"),
    ],
)
def test_bad_input(data: Any, X: Any, neighbours: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        lof(data, X, neighbours)


def test_neighbours_may_be_any_whole_number() -> None:
    assert (lof(DATA, DATA, np.int64(5)) == lof(DATA, DATA, 5)).all()
