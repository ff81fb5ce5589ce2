"""The usual ways to retrain a model of scikit-learn's interface, for `refit=`.

Each makes a function for `tyrex.retrain` and `Explainer.explain`, from an estimator and the rows
that it was trained on: XGBoost's and LightGBM's classifiers, scikit-learn's forests and gradient
boosting, pipelines with them. The estimator is cloned, so its parameters are kept and it is not
changed.

| | another model is trained |
|---|---|
| `new_seed` | on the same rows, with another `random_state` |
| `bootstrap` | on a bootstrap of the rows, with another `random_state` |
| `another_period` | on the rows of another period, such as a month, with another `random_state` |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .errors import DataError, ParameterError, need
from .parameters import whole

__all__ = ["another_period", "bootstrap", "new_seed"]

# Seeds of LightGBM are whole numbers below this.
SEEDS = 2**31 - 1


def new_seed(model: Any, rows: Any, label: Any, **fit: Any) -> NewSeed:
    """A `refit(seed)` that trains on the same rows with another `random_state`.

    A boosted model that samples neither rows nor columns is trained the same with every seed;
    `bootstrap` changes such a model.

    Parameters
    ----------
    model
        A fitted or unfitted estimator, or a pipeline.
    rows
        The rows the model is trained on, in a container that it takes.
    label
        Their labels, or the name of a column of `rows`, which is then left out of them.
    fit
        Further arguments of the estimator's `fit`. A `sample_weight` has one number per row.

    Examples
    --------
    >>> import tyrex
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> draw = np.random.default_rng(0)
    >>> x = draw.normal(size=(80, 2))
    >>> refit = tyrex.refits.new_seed(RandomForestClassifier(5), x, x[:, 0] > 0)
    >>> refit(3).random_state, len(refit(3).estimators_)
    (3, 5)
    """
    training = Training.of(model, rows, label, fit)
    if not training.seeds:
        raise ParameterError(
            f"{type(model).__name__} has no `random_state`, so it is trained the same with every "
            "seed; expected another model, or tyrex.refits.bootstrap"
        )
    return NewSeed(training)


def bootstrap(model: Any, rows: Any, label: Any, **fit: Any) -> Bootstrap:
    """A `refit(seed, rows)` that trains on a bootstrap of the rows, with another `random_state`.

    The parameters are those of `new_seed`; `rows` are those of the explainer's data, in their
    order, since `tyrex.retrain` draws their numbers.
    """
    return Bootstrap(Training.of(model, rows, label, fit))


def another_period(
    model: Any, rows: Any, label: Any, period: Any, *, width: int = 1, **fit: Any
) -> AnotherPeriod:
    """A `refit(seed)` that trains on the rows of another period, with another `random_state`.

    A window of `width` consecutive periods is drawn, each with the same probability, and then as
    many of its rows as it has, with replacement: two models of the same window have other rows.

    The parameters are those of `new_seed`, and:

    period
        The period of each row, such as its month, or the name of a column of `rows`, which is
        then left out of them. Periods are sorted.
    width
        The number of periods of a window.
    """
    periods, rows = _apart(rows, period)
    known, numbers = np.unique(np.asarray(periods), return_inverse=True)
    width = whole("width", width, 1)
    if len(known) <= width:
        raise ParameterError(
            f"parameter `period` has {len(known)} periods, expected more than the {width} of a "
            "window"
        )
    training = Training.of(model, rows, label, fit)
    if len(numbers) != training.count:
        raise DataError(f"{len(numbers)} periods for {training.count} rows")
    return AnotherPeriod(training, numbers, len(known), width)


@dataclass(frozen=True)
class Training:
    """An estimator and its rows."""

    model: Any
    rows: Any
    labels: Any
    count: int
    #: The names of the parameters that are seeds.
    seeds: tuple[str, ...]
    fit: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Any, rows: Any, label: Any, fit: Mapping[str, Any]) -> Training:
        """Checks what is given."""
        if not callable(getattr(model, "fit", None)) or not hasattr(model, "get_params"):
            raise ParameterError(
                f"parameter `model` is a {type(model).__name__}, expected an estimator with `fit` "
                "and `get_params`, such as an XGBClassifier or a RandomForestClassifier; a booster "
                "does not have the parameters of its training"
            )
        labels, rows = _apart(rows, label)
        count = len(rows) if hasattr(rows, "__len__") else rows.shape[0]
        weights = fit.get("sample_weight")
        for what, given in [("labels", labels), ("sample_weight", weights)]:
            if given is not None and len(given) != count:
                raise DataError(f"{len(given)} {what} for {count} rows")
        names = model.get_params(deep=True)
        seeds = [name for name in names if name.split("__")[-1] == "random_state"]
        return cls(model, rows, labels, count, tuple(seeds), fit)

    def trained(self, seed: int, numbers: Any = None) -> Any:
        """A clone, fitted on all rows or on those of these numbers."""
        clone = need("sklearn.base", "to clone an estimator").clone
        made = clone(self.model)
        made.set_params(**dict.fromkeys(self.seeds, int(seed) % SEEDS))
        if numbers is None:
            return made.fit(self.rows, self.labels, **self.fit)
        numbers = np.asarray(numbers)
        fit = dict(self.fit)
        if fit.get("sample_weight") is not None:
            fit["sample_weight"] = np.asarray(fit["sample_weight"])[numbers]
        return made.fit(_taken(self.rows, numbers), _taken(self.labels, numbers), **fit)


@dataclass(frozen=True)
class NewSeed:
    """Trains on the same rows."""

    training: Training

    def __call__(self, seed: int) -> Any:
        return self.training.trained(seed)


@dataclass(frozen=True)
class Bootstrap:
    """Trains on rows that `tyrex.retrain` draws."""

    training: Training

    def __call__(self, seed: int, rows: Any) -> Any:
        return self.training.trained(seed, rows)


@dataclass(frozen=True)
class AnotherPeriod:
    """Trains on rows of a window of periods."""

    training: Training
    numbers: Any
    periods: int
    width: int

    def __call__(self, seed: int) -> Any:
        return self.training.trained(seed, self.drawn(seed))

    def drawn(self, seed: int) -> Any:
        """The numbers of the rows for a seed."""
        draw = np.random.default_rng(seed)
        first = draw.integers(0, self.periods - self.width + 1)
        inside = (self.numbers >= first) & (self.numbers < first + self.width)
        own = np.flatnonzero(inside)
        return own[draw.integers(0, len(own), len(own))]


def _apart(rows: Any, column: Any) -> tuple[Any, Any]:
    """A column and the other ones; or values that are given beside the rows."""
    if not isinstance(column, str):
        return column, rows
    names = list(getattr(rows, "columns", []))
    if column not in names:
        raise DataError(f"the rows have no column '{column}'")
    others = [name for name in names if name != column]
    return rows[column], rows[others]


def _taken(values: Any, numbers: Any) -> Any:
    """Rows of any container, by their numbers."""
    if hasattr(values, "iloc"):
        return values.iloc[numbers]
    is_array = hasattr(values, "__getitem__") and hasattr(values, "shape")
    return values[numbers] if is_array else np.asarray(values)[numbers]
