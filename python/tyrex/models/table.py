"""The table an estimator was fitted with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError, need

if TYPE_CHECKING:
    from ..data import Frame


@dataclass(frozen=True)
class Table:
    """How an estimator takes its rows: as a data frame with these columns, or as a matrix."""

    #: The columns by name, where the estimator was fitted with names.
    names: tuple[str, ...] | None
    #: Whether the data have no names of their own, so that columns are found by place.
    by_place: bool = False

    @classmethod
    def of(cls, estimator: Any, frame: Frame) -> Table:
        """What a scikit-learn estimator remembers of the table it was fitted with."""
        names = getattr(estimator, "feature_names_in_", None)
        count = getattr(estimator, "n_features_in_", None)
        return cls.named(None if names is None else [str(n) for n in names], count, frame)

    @classmethod
    def named(cls, names: Sequence[str] | None, count: int | None, frame: Frame) -> Table:
        """A table of these columns, or of this many; refused if the data do not have them."""
        if names is None:
            if count is not None and count != len(frame.names):
                raise ModelError(
                    f"the model takes {count} columns, without names, and the data have "
                    f"{len(frame.names)}: {', '.join(frame.names[:12])}"
                )
            return cls(None)
        without_names = not set(names) & set(frame.names) and len(names) == len(frame.names)
        if without_names and frame.kind == "array":
            return cls(tuple(names), by_place=True)
        frame.select(list(names))
        return cls(tuple(names))

    @property
    def features(self) -> list[str] | None:
        """The columns by the names the data have for them."""
        return None if self.names is None or self.by_place else list(self.names)

    def select(self, frame: Frame) -> Frame:
        """The columns the estimator takes, in its order."""
        features = self.features
        return frame if features is None else frame.select(features)

    def container(self, frame: Frame) -> Any:
        """The rows as the estimator takes them."""
        chosen = self.select(frame)
        if self.names is None:
            if any(column.dtype == object for column in chosen.columns):
                return np.column_stack([c.astype(object) for c in chosen.columns])
            return chosen.matrix()
        own = None if self.by_place else chosen.container()
        if own is not None and type(own).__module__.split(".")[0] == "pandas":
            return own
        pandas = need("pandas", "for a model that was fitted with a data frame")
        return pandas.DataFrame(dict(zip(self.names, chosen.columns)))
