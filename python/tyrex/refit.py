"""Models that the user retrains: given as a list, or made by a function."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from .assembly import Made, retrained
from .errors import ModelError, ParameterError, TyrexError
from .models.outputs import failed
from .parameters import whole
from .progress import Progress, ProgressSetting

if TYPE_CHECKING:
    from .explainer import Explainer

__all__ = ["SETS", "given_models", "refitted_models"]

SETS = ("search", "tune", "fresh", "sibling")

# What models are made for. Models of one purpose have other seeds and rows than those of the other,
# so that no search runs over models that are made later to certify.
PURPOSES = {"retrain": 0, "explain": 1}

# The name of a model in errors, its set, and how to get it.
Job = tuple[str, "str | None", Callable[[], Any]]


def given_models(
    explainer: Explainer, models: Any, *, progress: ProgressSetting = None
) -> _native.Ensemble:
    """An ensemble of models in a list, or in lists by the names of their sets."""
    sets: Mapping[str | None, Any] = models if isinstance(models, Mapping) else {None: models}
    jobs: list[Job] = []
    for name, each in sets.items():
        if name is not None and name not in SETS:
            raise ParameterError(
                f"parameter `retrained` has the set {name!r}, expected {', '.join(SETS)}"
            )
        if isinstance(each, (str, bytes, os.PathLike)) or not isinstance(each, Iterable):
            raise ParameterError(
                f"parameter `retrained` is {each!r}, expected a list of models, or lists by the "
                f"names of their sets: {', '.join(SETS)}"
            )
        where = "retrained" if name is None else f"retrained[{name!r}]"
        jobs += [(f"{where}[{i}]", name, partial(_same, one)) for i, one in enumerate(each)]
    return _made(explainer, "`retrained`", jobs, 1, "reading", progress)


def refitted_models(
    explainer: Explainer,
    refit: Callable[..., Any],
    models: int | None,
    *,
    promise: float | None = None,
    confidence: float | None = None,
    purpose: str = "retrain",
    search: bool = True,
    seed: int = 0,
    jobs: int = 1,
    progress: ProgressSetting = None,
) -> _native.Ensemble:
    """An ensemble of models that `refit` makes.

    `models` is their number; by default there are as many as a promise needs, by sets: to search
    over and to choose the margin if `search`, and fresh ones. `purpose` is one of `PURPOSES`.
    """
    if not callable(refit):
        raise ParameterError(
            f"parameter `refit` is {refit!r}, expected a function of a seed, or of a seed and row "
            "numbers, that returns a model"
        )
    bootstraps = _takes_rows(refit)
    to_search, to_tune, fresh, siblings = _native.Explainer.sets_for(promise, confidence)
    if models is not None:
        sets: list[tuple[str | None, int]] = [(None, whole("models", models, 1))]
    elif search and explainer._native.is_searchable:
        sets = [("search", to_search), ("tune", to_tune), ("fresh", fresh)]
    else:
        sets = [("fresh", fresh)]
    # The model in use was trained on all rows: it is compared with models that were, too.
    if bootstraps:
        sets.append(("sibling", siblings))
    names = [name for name, count in sets for _ in range(count)]
    rows = np.asarray(explainer._native.training_rows())
    origin = [whole("seed", seed), PURPOSES[purpose]]

    def make(number: int, own: int) -> Callable[[], Any]:
        def fit() -> Any:
            arguments: tuple[Any, ...] = (own,)
            if bootstraps and names[number] == "sibling":
                arguments += (rows.copy(),)
            elif bootstraps:
                draw = np.random.default_rng([*origin, number])
                arguments += (rows[draw.integers(0, len(rows), len(rows))],)
            try:
                return refit(*arguments)
            except Exception as problem:  # the user's function may raise any error
                raise failed(f"`refit` failed for the seed {own}", problem) from problem

        return fit

    numbered = enumerate(_seeds(origin, len(names)))
    work = [(f"refit({own})", names[number], make(number, own)) for number, own in numbered]
    return _made(explainer, "`refit`", work, whole("jobs", jobs, 1), "training", progress)


def _same(model: Any) -> Any:
    return model


def _seeds(origin: list[int], count: int) -> list[int]:
    """Different seeds of 32 bits."""
    drawn = np.random.SeedSequence(origin).generate_state(2 * count + 8)
    return list(dict.fromkeys(int(each) for each in drawn))[:count]


def _takes_rows(refit: Callable[..., Any]) -> bool:
    """Whether the function has a second parameter for row numbers.

    >>> _takes_rows(lambda seed: None), _takes_rows(lambda seed, rows: None)
    (False, True)
    >>> _takes_rows(lambda seed, epochs=3: None)
    False
    """
    try:
        parameters = list(inspect.signature(refit).parameters.values())
    except (TypeError, ValueError):
        return False
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(placed) > 1 and (placed[1].default is placed[1].empty or placed[1].name == "rows")


def _made(
    explainer: Explainer,
    origin: str,
    work: list[Job],
    jobs: int,
    what: str,
    progress: ProgressSetting,
) -> _native.Ensemble:
    given = explainer._given
    made = Made(explainer._native, explainer._source, explainer.schema, explainer.framework, None)
    options = {name: given[name] for name in ("logits", "preprocessor")}
    by_file = isinstance(given["model"], (str, os.PathLike, bytes, bytearray))
    favourable = given["favourable"]

    def converted(name: str, model: Any) -> _native.Retrained:
        is_file = isinstance(model, (str, os.PathLike, bytes, bytearray))
        # A file says itself which class it means; the schema says it for other models.
        unnamed = favourable is None and by_file and not is_file
        meant = explainer.schema._native.favourable if unnamed else favourable
        try:
            return retrained(model, made, meant, **options)
        except TypeError as problem:
            raise ModelError(f"{name}: {problem}") from problem
        except TyrexError as problem:
            raise type(problem)(f"{name}: {problem}") from problem

    total = len(work)
    models = []
    with Progress(progress, what, unit="models") as bar:
        for done, (name, chosen, model) in enumerate(_carried_out(work, jobs), 1):
            models.append((name, chosen, converted(name, model)))
            bar(done, total)
    return _native.Ensemble.given(explainer._native, origin, models)


def _carried_out(work: list[Job], jobs: int) -> Iterator[tuple[str, str | None, Any]]:
    """The models, in their order, made by one thread or by several."""
    if jobs == 1:
        for name, chosen, make in work:
            yield name, chosen, make()
        return
    pool = ThreadPoolExecutor(jobs)
    try:
        futures = [(name, chosen, pool.submit(make)) for name, chosen, make in work]
        for name, chosen, future in futures:
            yield name, chosen, future.result()
    finally:
        # After an error or Ctrl-C no other model is begun.
        pool.shutdown(wait=True, cancel_futures=True)
