"""scikit-learn estimators in a form that skl2onnx and the native engine support."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np


def simplified(estimator: Any, imputed: bool) -> Any:
    """The same estimator with columns listed rather than sliced or masked.

    Imputers of texts are left out unless texts are `imputed`; the native engine has none.
    """
    if hasattr(estimator, "transformers_"):
        parts = [
            (name, simplified(part, imputed), _listed(estimator, name, columns))
            for name, part, columns in estimator.transformers_
        ]
        return _changed(estimator, transformers_=parts)
    if hasattr(estimator, "steps"):
        changed = [(name, simplified(step, imputed)) for name, step in estimator.steps]
        steps = [(name, step) for name, step in changed if not isinstance(step, str)]
        return _changed(estimator, steps=steps) if steps else "passthrough"
    if type(estimator).__name__ == "SimpleImputer" and estimator.statistics_.dtype == object:
        return estimator if imputed or estimator.add_indicator else "passthrough"
    return estimator


def _listed(transformer: Any, name: str, columns: Any) -> Any:
    """Columns given as a slice or a mask, by name or by position."""
    is_mask = len(np.shape(columns)) == 1 and np.asarray(columns).dtype == bool
    if not (is_mask or isinstance(columns, slice)):
        return columns
    places = transformer._transformer_to_input_indices[name]
    names = getattr(transformer, "feature_names_in_", None)
    return list(places) if names is None else [names[place] for place in places]


def with_all_categories(transformer: Any) -> tuple[Any, list[int]]:
    """The transformer without the `drop` of its one-hot encoders, and the places in its old
    output in front of which that puts a new column.

    Encoders with two categories, for which one column suffices, are unchanged.
    """
    if hasattr(transformer, "transformers_"):
        parts, places = [], []
        for name, part, columns in transformer.transformers_:
            changed, within = with_all_categories(part)
            start = transformer.output_indices_[name].start or 0
            parts.append((name, changed, columns))
            places += [start + place for place in within]
        return _changed(transformer, transformers_=parts), sorted(places)
    if getattr(transformer, "steps", None):
        # The step after an encoder would have to know the new columns.
        name, last = transformer.steps[-1]
        changed, places = with_all_categories(last)
        return _changed(transformer, steps=[*transformer.steps[:-1], (name, changed)]), places
    dropped = getattr(transformer, "drop_idx_", None)
    if type(transformer).__name__ != "OneHotEncoder" or dropped is None:
        return transformer, []
    kept, places, start = list(dropped), [], 0
    for feature, categories in enumerate(transformer.categories_):
        if dropped[feature] is not None and len(categories) > 2:
            places.append(start + int(dropped[feature]))
            kept[feature] = None
        start += len(categories) - (dropped[feature] is not None)
    return _changed(transformer, drop_idx_=np.array(kept, dtype=object)), places


def _changed(estimator: Any, **attributes: Any) -> Any:
    """A copy with other attributes; the original is not changed."""
    made = copy.copy(estimator)
    made.__dict__.update(attributes)
    return made
