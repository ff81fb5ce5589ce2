"""The table an estimator was fitted with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError, need

if TYPE_CHECKING:
    from ..data import Frame


@dataclass(frozen=True)
class Table:
    """The input format of an estimator: a data frame with its own names, or a matrix."""

    #: The estimator's columns, by their names in the data.
    columns: tuple[str, ...]
    #: The estimator's own names, if it was fitted with names.
    names: tuple[str, ...] | None
    #: Values for unused columns, for rows without them.
    unused: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, estimator: Any, frame: Frame) -> Table:
        """The table that a scikit-learn estimator was fitted with."""
        names = getattr(estimator, "feature_names_in_", None)
        count = getattr(estimator, "n_features_in_", None)
        return cls.named(None if names is None else [str(n) for n in names], count, frame)

    @classmethod
    def named(cls, names: Sequence[str] | None, count: int | None, frame: Frame) -> Table:
        """A table of these columns, or of this many; an error if the data do not have them."""
        if names is None:
            if count is not None and count != len(frame.names):
                raise ModelError(
                    f"the model takes {count} columns, without names, and the data have "
                    f"{len(frame.names)}: {', '.join(frame.names[:12])}"
                )
            return cls(tuple(frame.names), None)
        strangers = not set(names) & set(frame.names) and len(names) == len(frame.names)
        if strangers and frame.kind == "array":  # its columns have no names
            return cls(tuple(frame.names), tuple(names))
        return cls(tuple(frame.select(names).names), tuple(names))

    def using(self, features: Sequence[str] | None, frame: Frame) -> Table:
        """The same, with only these columns used."""
        if features is None:
            return self
        chosen = frame.select(self.columns)
        cells = {name: column[0] for name, column in zip(chosen.names, chosen.columns)}
        return replace(self, unused={n: cell for n, cell in cells.items() if n not in features})

    @property
    def features(self) -> list[str] | None:
        """The columns, if the estimator and the data agree on their names."""
        return list(self.columns) if self.columns == self.names else None

    def container(self, frame: Frame) -> Any:
        """The rows in the format of the estimator."""
        absent = [name for name in self.unused if name not in frame.names]
        chosen = frame.select([name for name in self.columns if name not in absent])
        if self.names is not None and chosen.kind == "pandas":
            made = chosen.container()
            for name in absent:
                made[name] = self.unused[name]
            made = made[list(self.columns)]
            made.columns = list(self.names)
            return made
        cells = dict(zip(chosen.names, chosen.columns))
        cells.update({name: np.array([self.unused[name]] * len(frame)) for name in absent})
        columns = [cells[name] for name in self.columns]
        if self.names is not None:
            pandas = need("pandas", "for a model that was fitted with a data frame")
            return pandas.DataFrame(dict(zip(self.names, columns)))
        if any(column.dtype.kind in "OU" for column in columns):
            return np.column_stack([column.astype(object) for column in columns])
        return np.column_stack(columns).astype(np.float64)
