"""Converts the keywords of a call to the question for the native side.

Names from DiCE and Alibi either have the same meaning here, or the error gives the name to
use.
"""

from __future__ import annotations

import difflib
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .errors import ParameterError, SchemaError
from .parameters import names, numbers, real, to_json, whole
from .schema import Schema
from .source import as_text

__all__ = ["options"]

# Parameter names of other packages, and their replacements.
ELSEWHERE = {
    "query_instance": "pass the rows as the first argument",
    "query_instances": "pass the rows as the first argument",
    "total_CFs": "tyrex gives one counterfactual per row; call explain once per method for more",
    "desired_class": "the class to reach is `favourable=` of Explainer",
    "target_class": "the class to reach is `favourable=` of Explainer",
    "desired_range": "the model's output is a probability; the threshold of stability is `tau=`",
    "target_proba": "the threshold of stability is `tau=`",
    "stopping_threshold": "the threshold of stability is `tau=`",
    "proximity_weight": "the norm of the cost is `norm=`",
    "diversity_weight": "tyrex gives one counterfactual per row, the cheapest that is stable",
    "sparsity_weight": "norm='l1' favours few changes",
    "distance_fn": "the norm of the cost is `norm=`",
    "feature_range": "the values a feature may take are `permitted_range=`",
    "feature_weights": "the scale of features is set in the schema (`scaling`)",
    "max_iter": "the maximum number of steps is `max_steps=`",
    "max_iterations": "the maximum number of steps is `max_steps=`",
    "maxiterations": "the maximum number of steps is `max_steps=`",
    "random_seed": "the seed is `seed=`",
    "random_state": "the seed is `seed=`",
    "verbose": "the bar is `progress=`",
    "n_samples": "the number of neighbours is `k=`",
    "sample_size": "the number of neighbours is `k=`",
    "learning_rate": "the step of trex-i is chosen by the method; see docs/methods.md",
    "lam_init": "tyrex needs no lambda: it searches for the cheapest change that is stable enough",
}


def options(
    schema: Schema,
    *,
    method: str | None = None,
    protocol: str | None = None,
    norm: Any = None,
    promise: float | None = None,
    confidence: float | None = None,
    plausible: float | None = None,
    path: bool | None = None,
    tau: float | str | None = None,
    k: int | None = None,
    sigma: float | None = None,
    features_to_vary: Iterable[str] | str | None = None,
    features_to_keep: Iterable[str] | None = None,
    permitted_range: Mapping[str, Any] | None = None,
    actions: Mapping[str, Any] | None = None,
    rules: Iterable[Mapping[str, Any]] | None = None,
    max_steps: int | None = None,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    certify: bool | None = None,
    stability: bool | None = None,
    models: int | None = None,
    change: str | Mapping[str, Any] | None = None,
    prove: bool | None = None,
    relax: bool | None = None,
    seed: int | None = None,
    params: Mapping[str, Any] | None = None,
) -> str:
    """The question for the native side: its `Ask`.

    Only given parameters are sent, so every default is the library's.
    """
    params = dict(params or {})
    for name in params:
        if name in ELSEWHERE:
            raise TypeError(f"explain has no parameter `{name}`: {ELSEWHERE[name]}")
        near = difflib.get_close_matches(name, inspect.signature(options).parameters, n=1)
        if near:
            raise TypeError(f"explain has no parameter `{name}`; did you mean `{near[0]}`?")
    if method == "elastic-net" and confidence is not None:
        # Its own parameter has this name.
        params["confidence"], confidence = real("confidence", confidence), None
    own = {
        name: _permitted(schema, name, values)
        for name, values in _by_feature("permitted_range", permitted_range).items()
    }
    own.update(_by_feature("actions", actions))
    budget = {
        "steps": _given(max_steps, lambda: whole("max_steps", max_steps)),
        "evaluations": _given(max_evaluations, lambda: whole("max_evaluations", max_evaluations)),
        "seconds": _given(max_seconds, lambda: real("max_seconds", max_seconds)),
    }
    ask = {
        "method": method,
        "protocol": protocol,
        "norm": _given(norm, lambda: _norm(norm)),
        "promise": _given(promise, lambda: real("promise", promise)),
        "confidence": _given(confidence, lambda: real("confidence", confidence)),
        "plausible": _given(plausible, lambda: real("plausible", plausible)),
        "path": path,
        "tau": tau if tau == "auto" else _given(tau, lambda: real("tau", tau)),
        "k": _given(k, lambda: whole("k", k, 1)),
        "sigma": _given(sigma, lambda: real("sigma", sigma)),
        "params": params or None,
        "keep": names("features_to_keep", features_to_keep or []) or None,
        "vary": None
        if features_to_vary is None or features_to_vary == "all"
        else names("features_to_vary", features_to_vary),
        "actions": own or None,
        "rules": None if rules is None else list(rules) or None,
        "budget": _only_given(budget) or None,
        "seed": _given(seed, lambda: whole("seed", seed)),
        "certify": certify,
        "stability": stability,
        "models": _given(models, lambda: whole("models", models)),
        "change": _change(change) if isinstance(change, str) else change,
        "prove": prove,
        "relax": relax,
    }
    return to_json("options", _only_given(ask))


def _change(change: str) -> dict[str, Any]:
    """The change of a name; several, separated by commas, are a mixture."""
    changes = [{"name": name.strip()} for name in change.split(",")]
    return changes[0] if len(changes) == 1 else {"name": "mixture", "changes": changes}


def _given(value: Any, checked: Callable[[], Any]) -> Any:
    """The checked value, or None if there is none."""
    return None if value is None else checked()


def _only_given(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value is not None}


def _by_feature(name: str, given: Any) -> dict[str, Any]:
    if not isinstance(given or {}, Mapping):
        raise ParameterError(
            f"parameter `{name}` is {given!r}, expected a dict from features to allowed values"
        )
    return dict(given or {})


def _norm(norm: Any) -> str:
    names = {"l1": "l1", "l2": "l2", "1": "l1", "2": "l2", "manhattan": "l1", "euclidean": "l2"}
    found = names.get(str(norm).lower())
    if found is None:
        raise ParameterError(f"parameter `norm` is {norm!r}, expected 'l1' or 'l2'")
    return found


def _permitted(schema: Schema, name: str, values: Any) -> dict[str, Any]:
    """`[low, high]` for a number, the levels for anything else."""
    if name not in schema.features:
        raise SchemaError(
            f"permitted_range names `{name}`, which is not a feature; the features are "
            f"{', '.join(schema.features)}"
        )
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(
            f"permitted_range of `{name}` is {values!r}, expected [lowest, highest] or levels"
        )
    values = list(values)
    levels = schema._native.levels(name)
    if levels:
        wanted = {as_text(value) for value in values}
        unknown = wanted - set(levels)
        if unknown:
            raise ParameterError(
                f"permitted_range of `{name}`: {', '.join(sorted(unknown))} is not a level; "
                f"the levels are {', '.join(levels)}"
            )
        return {"levels": [_level(level) for level in levels if level in wanted]}
    if len(values) != 2:
        raise ParameterError(
            f"permitted_range of `{name}` has {len(values)} values, expected [lowest, highest]"
        )
    ends = [value for value in values if value is not None and not math.isinf(value)]
    numbers("permitted_range", ends)
    return {"within": [value if value in ends else None for value in values]}


def _level(text: str) -> Any:
    try:
        return json.loads(text) if text[:1] in "-0123456789" else text
    except ValueError:
        return text
