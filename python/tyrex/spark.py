"""tyrex in Spark: advice, measures, certificates and audits of DataFrames.

The package has to be importable on the executors; docs/scale.md says how it gets there. Every call
makes a DataFrame by `mapInArrow`, so nothing runs before Spark is asked for rows. An executor's
Python process unpacks the work once and uses one thread per task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .batches import Adviser, Auditor, Batchwise, Certifier, Gauge, Models
from .errors import ParameterError, need
from .explainer import Explainer
from .parameters import names
from .robustness import Ensemble
from .tasks import Packed, Retraining, retraining, unpacked, work_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

need("pyspark", "for tyrex.spark", install="tyrex[spark]")

__all__ = ["audit", "certify", "explain", "retrain", "retrain_ensemble", "stability"]


def explain(
    df: DataFrame,
    work: Adviser | Explainer,
    *,
    key: str | Iterable[str],
    on_error: str = "row",
    **question: Any,
) -> DataFrame:
    """Answers to the rows of a DataFrame, a row for every row.

    `work` is an adviser, or an explainer with a `question`: the keywords of `Explainer.adviser`.
    `key` are the columns that identify a row; they come first in the answers, whose other columns
    are those of `Adviser.answer_schema`. With `on_error="raise"` a row that cannot be read ends the
    job; without it, it is a row with an `error`.
    """
    adviser = work_of(work, Adviser, lambda explainer: explainer.adviser(**question))
    return _mapped(df, adviser, key, on_error)


def stability(
    df: DataFrame,
    work: Gauge | Explainer,
    *,
    key: str | Iterable[str],
    on_error: str = "row",
    **terms: Any,
) -> DataFrame:
    """The stability of the rows of a DataFrame; `terms` are the keywords of `tyrex.Gauge`."""
    gauge = work_of(work, Gauge, lambda explainer: Gauge(explainer, **terms))
    return _mapped(df, gauge, key, on_error)


def certify(
    df: DataFrame,
    work: Certifier | Explainer,
    ensemble: Ensemble | None = None,
    *,
    key: str | Iterable[str],
    on_error: str = "row",
    **terms: Any,
) -> DataFrame:
    """Certificates of the rows of a DataFrame, such as advised ones: `terms` are the keywords of
    `tyrex.Certifier`."""
    certifier = work_of(work, Certifier, lambda explainer: Certifier(explainer, ensemble, **terms))
    return _mapped(df, certifier, key, on_error)


def audit(
    df: DataFrame,
    work: Auditor | Explainer,
    *,
    key: str | Iterable[str],
    on_error: str = "row",
    **question: Any,
) -> DataFrame:
    """Judges the promises of a DataFrame, in its column `promise`, by a new model. `question` are
    the keywords of `tyrex.Auditor`."""
    auditor = work_of(work, Auditor, lambda explainer: Auditor(explainer, **question))
    return _mapped(df, auditor, key, on_error)


def retrain(spark: SparkSession, explainer: Explainer, **question: Any) -> Models:
    """Retrains the models that a question needs, one per task. They are the ones that
    `explainer.adviser(**question)` retrains, which takes them as `with_models=`."""
    own = Retraining.of_question(explainer, **question)
    return own.models(_retrained(spark, own))


def retrain_ensemble(
    spark: SparkSession,
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
    return own.ensemble(_retrained(spark, own))


def _mapped(df: DataFrame, work: Batchwise, key: str | Iterable[str], on_error: str) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    kept = names("key", [key] if isinstance(key, str) else key)
    own = from_arrow_schema(work.schema())
    for name in kept:
        if name not in df.columns:
            raise ParameterError(f"parameter `key` has `{name}`, expected one of {df.columns}")
        if name in own.names:
            raise ParameterError(
                f"parameter `key` has `{name}`, a column of the answers; expected another name"
            )
    if on_error not in ("row", "raise"):
        raise ParameterError(f"parameter `on_error` is {on_error!r}, expected row or raise")
    # Spark releases it itself when no DataFrame needs it: they are lazy, and made of each other.
    digest, content, _ = _sent(df.sparkSession, work)

    def answered(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        yield from unpacked(content(), digest).lines(batches, key=kept, on_error=on_error)

    schema = StructType([*(df.schema[name] for name in kept), *own.fields])
    return df.mapInArrow(answered, schema)


def _retrained(spark: SparkSession, own: Retraining) -> dict[int, bytes]:
    import pyarrow

    tasks = len(own.tasks)
    if not tasks:
        return {}
    digest, content, release = _sent(spark, own)

    def made(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            ids = batch.column("id").to_pylist()
            files = [retraining(content(), digest).made(task) for task in ids]
            yield pyarrow.record_batch({"id": ids, "model": pyarrow.array(files, pyarrow.binary())})

    try:
        rows = spark.range(0, tasks, 1, tasks).mapInArrow(made, "id long, model binary").collect()
    finally:
        release()
    return {row["id"]: bytes(row["model"]) for row in rows}


class _Sent(NamedTuple):
    """Work on its way to executors: its digest, how they get it, and how it is released."""

    digest: str
    content: Callable[[], bytes]
    release: Callable[[], None]


def _sent(spark: SparkSession, work: Any) -> _Sent:
    """How executors get the work: broadcast once to each, or with every task where the session is a
    remote one, which cannot broadcast."""
    from pyspark import cloudpickle

    packed = Packed(work, cloudpickle)
    content = packed.content
    # The class itself cannot be asked: PySpark chooses it by how it was started.
    if "connect" in type(spark).__module__:
        return _Sent(packed.digest, lambda: content, lambda: None)
    sent = spark.sparkContext.broadcast(content)
    return _Sent(packed.digest, lambda: sent.value, sent.destroy)
