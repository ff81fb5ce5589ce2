"""Work for other processes: how it is packed, and one model per task.

Spark and Ray start the processes; this module has what is the same for both.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from . import _native
from .batches import Batchwise, Models, terms_of
from .errors import ParameterError
from .explainer import Explainer
from .parameters import training_json, whole
from .robustness import Ensemble, notation

__all__ = ["Packed", "Retraining", "work_of"]

# Work that this process has unpacked, by its digest; the last ones.
_unpacked: dict[str, Batchwise] = {}
_KEPT = 4


class Packed:
    """Work as bytes, with their digest. `pickler` is the engine's own cloudpickle, with which
    functions travel too: Spark and Ray each have a copy of it."""

    def __init__(self, work: Batchwise | Retraining, pickler: ModuleType) -> None:
        self.content: bytes = pickler.dumps(work)
        self.digest = hashlib.sha256(self.content).hexdigest()


def unpacked(content: bytes, digest: str) -> Batchwise:
    """Work from its bytes, unpacked once per process. A process is one of many on its machine, so
    it works with one thread."""
    work = _unpacked.pop(digest, None)
    if work is None:
        _native.set_threads(1)
        work = pickle.loads(content)
    _unpacked[digest] = work
    while len(_unpacked) > _KEPT:
        del _unpacked[next(iter(_unpacked))]
    return work


def work_of(work: Any, kind: type[Batchwise], make: Any) -> Batchwise:
    """The work that was given, or that of an explainer."""
    if isinstance(work, kind):
        return work
    if isinstance(work, Explainer):
        made: Batchwise = make(work)
        return made
    raise ParameterError(
        f"found {type(work).__name__}, expected a tyrex.{kind.__name__} or Explainer"
    )


class Retraining:
    """Models to retrain, each one a task: its set and its index."""

    def __init__(self, explainer: Explainer, terms: list[tuple[int, str]]) -> None:
        self.explainer, self.terms = explainer, terms
        self.tasks = [
            (place, index) for place, (count, _) in enumerate(terms) for index in range(count)
        ]

    @classmethod
    def of_question(cls, explainer: Explainer, **question: Any) -> Retraining:
        """The models that `explainer.adviser(**question)` would retrain."""
        text, training = terms_of(explainer, **question)
        return cls(explainer, _native.retraining_terms(explainer._native, text, training))

    @classmethod
    def of_ensemble(
        cls,
        explainer: Explainer,
        models: int,
        *,
        change: str | None = None,
        change_params: Mapping[str, Any] | None = None,
        seed: int = 0,
        **params: Any,
    ) -> Retraining:
        """The models of `tyrex.retrain` with these keywords."""
        terms = explainer._native.ensemble_terms(
            change,
            notation(change_params),
            whole("models", models, 1),
            training_json(params) if params else None,
            whole("seed", seed),
        )
        return cls(explainer, [(models, terms)])

    def made(self, task: int) -> bytes:
        """The file of the model of a task."""
        place, index = self.tasks[task]
        return _native.retrained_member(self.explainer._native, self.terms[place][1], index)

    def models(self, files: Mapping[int, bytes]) -> Models:
        """The models of a question, from the file of each task."""
        sets: list[list[bytes]] = [[] for _ in self.terms]
        for task, (place, _) in enumerate(self.tasks):
            sets[place].append(files[task])
        return None, sets

    def ensemble(self, files: Mapping[int, bytes]) -> Ensemble:
        """The ensemble, from the file of each task."""
        plan = json.loads(self.terms[0][1])
        plan = json.dumps({name: plan[name] for name in ("change", "seed", "params")})
        contents = [self.explainer.to_onnx(), *(files[task] for task in range(len(self.tasks)))]
        return Ensemble(self.explainer, _native.Ensemble(contents, plan))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Retraining, (self.explainer, self.terms))


def retraining(content: bytes, digest: str) -> Retraining:
    """Retraining from its bytes; see `unpacked`."""
    made: Any = unpacked(content, digest)
    own: Retraining = made
    return own
