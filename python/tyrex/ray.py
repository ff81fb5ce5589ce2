"""tyrex in Ray: advice, measures, certificates and audits of data sets.

Every call is a `map_batches` over a pool of actors; an actor unpacks the work once and uses one
thread. The package has to be importable on the workers; docs/scale.md says how it gets there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .batches import Adviser, Auditor, Batchwise, Certifier, Gauge, Models
from .errors import need
from .explainer import Explainer
from .robustness import Ensemble
from .tasks import Packed, Retraining, retraining, unpacked, work_of

if TYPE_CHECKING:
    import pyarrow
    from ray.data import Dataset

need("ray", "for tyrex.ray", install="tyrex[ray]")

__all__ = ["Actor", "audit", "certify", "explain", "retrain", "retrain_ensemble", "stability"]

# Rows that an actor answers at once.
BATCH = 1024


class Actor:
    """The class for `map_batches`, if the calls of this module do not fit:

    `ds.map_batches(Actor, fn_constructor_kwargs=tyrex.ray.Actor.packed(adviser, key="id"),
    batch_format="pyarrow", compute=ray.data.ActorPoolStrategy(size=8), num_cpus=1)`
    """

    def __init__(self, content: Any, digest: str, key: Any, on_error: str) -> None:
        import ray

        own = ray.get(content) if isinstance(content, ray.ObjectRef) else content
        self._work = unpacked(own, digest)
        self._how: dict[str, Any] = {"key": key, "on_error": on_error}

    @staticmethod
    def packed(
        work: Batchwise, *, key: str | Iterable[str], on_error: str = "row"
    ) -> dict[str, Any]:
        """The arguments of the constructor; the work is put into the object store once."""
        import ray
        from ray import cloudpickle

        own = Packed(work, cloudpickle)
        kept = [key] if isinstance(key, str) else list(key)
        return {
            "content": ray.put(own.content),
            "digest": own.digest,
            "key": kept,
            "on_error": on_error,
        }

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        import pyarrow

        lines = list(self._work.lines(batch, **self._how))
        key = batch.select(self._how["key"]).schema
        return pyarrow.Table.from_batches(lines, schema=self._work.schema(key))


def explain(
    ds: Dataset,
    work: Adviser | Explainer,
    *,
    key: str | Iterable[str],
    workers: int | tuple[int, int] | None = None,
    on_error: str = "row",
    batch_size: int = BATCH,
    **question: Any,
) -> Dataset:
    """Answers to the rows of a data set, a row for every row.

    `work` is an adviser, or an explainer with a `question`: the keywords of `Explainer.adviser`.
    `key` are the columns that identify a row; they come first in the answers. `workers` is the
    number of actors, or the least and the most; by default one for each CPU of the cluster but one.
    The tasks that make the rows need a CPU too. With `on_error="raise"` a row that cannot be read
    ends the job.
    """
    own = work_of(work, Adviser, lambda explainer: explainer.adviser(**question))
    return _mapped(ds, own, key, workers, on_error, batch_size)


def stability(
    ds: Dataset,
    work: Gauge | Explainer,
    *,
    key: str | Iterable[str],
    workers: int | tuple[int, int] | None = None,
    on_error: str = "row",
    batch_size: int = BATCH,
    **terms: Any,
) -> Dataset:
    """The stability of the rows of a data set; `terms` are the keywords of `tyrex.Gauge`."""
    own = work_of(work, Gauge, lambda explainer: Gauge(explainer, **terms))
    return _mapped(ds, own, key, workers, on_error, batch_size)


def certify(
    ds: Dataset,
    work: Certifier | Explainer,
    ensemble: Ensemble | None = None,
    *,
    key: str | Iterable[str],
    workers: int | tuple[int, int] | None = None,
    on_error: str = "row",
    batch_size: int = BATCH,
    **terms: Any,
) -> Dataset:
    """Certificates of the rows of a data set; `terms` are the keywords of `tyrex.Certifier`."""
    own = work_of(work, Certifier, lambda explainer: Certifier(explainer, ensemble, **terms))
    return _mapped(ds, own, key, workers, on_error, batch_size)


def audit(
    ds: Dataset,
    work: Auditor | Explainer,
    *,
    key: str | Iterable[str],
    workers: int | tuple[int, int] | None = None,
    on_error: str = "row",
    batch_size: int = BATCH,
    **question: Any,
) -> Dataset:
    """Judges the promises of a data set, in its column `promise`, by a new model. `question` are
    the keywords of `tyrex.Auditor`."""
    own = work_of(work, Auditor, lambda explainer: Auditor(explainer, **question))
    return _mapped(ds, own, key, workers, on_error, batch_size)


def retrain(explainer: Explainer, **question: Any) -> Models:
    """Retrains the models that a question needs, one per task. They are the ones that
    `explainer.adviser(**question)` retrains, which takes them as `with_models=`."""
    own = Retraining.of_question(explainer, **question)
    return own.models(_retrained(own))


def retrain_ensemble(
    explainer: Explainer,
    models: int,
    *,
    change: str | None = None,
    change_params: Mapping[str, Any] | None = None,
    seed: int = 0,
    **params: Any,
) -> Ensemble:
    """The ensemble of `tyrex.retrain` with these keywords, one model per task."""
    own = Retraining.of_ensemble(
        explainer, models, change=change, change_params=change_params, seed=seed, **params
    )
    return own.ensemble(_retrained(own))


def _mapped(
    ds: Dataset,
    work: Batchwise,
    key: str | Iterable[str],
    workers: int | tuple[int, int] | None,
    on_error: str,
    batch_size: int,
) -> Dataset:
    import ray

    if workers is None:
        # One is left for the tasks that read and write; without them actors wait forever.
        workers = max(1, int(ray.cluster_resources().get("CPU", 1)) - 1)
    if isinstance(workers, int):
        pool = ray.data.ActorPoolStrategy(size=workers)
    else:
        least, most = workers
        pool = ray.data.ActorPoolStrategy(min_size=least, max_size=most)
    mapped: Dataset = ds.map_batches(
        Actor,
        fn_constructor_kwargs=Actor.packed(work, key=key, on_error=on_error),
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=pool,
        num_cpus=1,
    )
    return mapped


def _retrained(own: Retraining) -> dict[int, bytes]:
    import ray
    from ray import cloudpickle

    packed = Packed(own, cloudpickle)
    content = ray.put(packed.content)
    made: Callable[..., Any] = ray.remote(num_cpus=1)(_made).remote
    tasks = range(len(own.tasks))
    return dict(zip(tasks, ray.get([made(content, packed.digest, task) for task in tasks])))


def _made(content: bytes, digest: str, task: int) -> bytes:
    return retraining(content, digest).made(task)
