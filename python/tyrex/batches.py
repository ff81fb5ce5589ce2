"""Rows in batches: Arrow in, Arrow out, wherever the batches come from.

A row has the same answer in any batch, in any order, in any process, so tables can be cut as
Spark, Ray or anything else cuts them. pyarrow is imported at the first use.
"""

from __future__ import annotations

import datetime
import inspect
import secrets
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from . import _native
from .errors import DataError, ParameterError
from .parameters import names, real, to_json, training_json, whole
from .progress import Progress, ProgressSetting
from .request import options

if TYPE_CHECKING:
    from typing import TypeAlias

    import pyarrow

    from .explainer import Explainer
    from .robustness import Ensemble

# The models of a question that were retrained elsewhere: what is known of the model's likeness to
# them, and the files of each set.
Models: TypeAlias = "tuple[str | None, list[list[bytes]]]"

__all__ = ["Adviser", "Auditor", "Batchwise", "Certifier", "Gauge"]

# How long a promise holds, in days, as `tyrex explain --ledger` has it.
PROMISE_DAYS = 90


class Batchwise:
    """Something that gives every row of a batch a line. It is prepared once; pickled, it carries
    what it was prepared with, so that another process need not prepare it again."""

    _native: _native.Batchwise

    def schema(self, key: pyarrow.Schema | None = None) -> pyarrow.Schema:
        """The columns of all lines, after those of `key`, the columns of the input that are kept.

        They depend on the question and the model's features, and not on the rows.
        """
        own = _pyarrow().record_batch(self._native.schema()).schema
        return own if key is None else _joined(key, own)

    def lines(
        self, batches: Any, *, key: str | Iterable[str] | None = None, on_error: str = "row"
    ) -> Iterator[pyarrow.RecordBatch]:
        """A line for every row, batch by batch, in the order of the rows.

        `batches` is a table of pyarrow, pandas or polars, or anything else with the Arrow PyCapsule
        interface, or an iterator of such; it is read as the lines are taken, so memory does not
        grow with it. `key` are columns of the input that come first in the lines. Without any,
        `row` is the number of the row, from 0; with some, it is empty, since a part of a table
        does not know where it begins.

        A row that cannot be read has a line with the reason in `error`; with `on_error="raise"`
        it ends the work.
        """
        kept = [] if key is None else names("key", [key] if isinstance(key, str) else key)
        if on_error not in ("row", "raise"):
            raise ParameterError(f"parameter `on_error` is {on_error!r}, expected row or raise")
        return self._lines(batches, kept, on_error == "raise")

    def _lines(self, batches: Any, key: list[str], strict: bool) -> Iterator[pyarrow.RecordBatch]:
        arrow = _pyarrow()
        row = 0
        for batch in _native_batches(batches):
            lines = arrow.record_batch(self._native.answer(batch, None if key else row, strict))
            row += len(batch)
            yield _with_key(arrow.record_batch(batch), key, lines) if key else lines


class Adviser(Batchwise):
    """An explainer and a question, prepared once: advice for any number of batches.

    `Explainer.adviser` makes one. The retrained models of a promise are made then, and pickled
    with it.
    """

    def __init__(
        self,
        explainer: Explainer,
        question: str,
        *,
        training: str | None = None,
        ensemble: Ensemble | None = None,
        promises: tuple[str, str] | None = None,
        models: Models | None = None,
        progress: ProgressSetting = None,
    ) -> None:
        self._given = (explainer, question, training, ensemble, promises)
        with Progress(progress, "retraining", unit="epochs") as bar:
            self._native = _native.Batchwise.adviser(
                explainer._native,
                question,
                training,
                None if ensemble is None else ensemble._native,
                models,
                promises,
                bar,
            )

    @property
    def explainer(self) -> Explainer:
        """The explainer."""
        return self._given[0]

    def answer_schema(self, key: pyarrow.Schema | None = None) -> pyarrow.Schema:
        """The columns of the answers: those of the file that `tyrex explain --out` writes, then
        `error`; before it `holds_until`, `promise` and `salt`, if the answers carry promises. `key`
        is the schema of the columns that come first."""
        return self.schema(key)

    def explain_batches(
        self, batches: Any, *, key: str | Iterable[str] | None = None, on_error: str = "row"
    ) -> Iterator[pyarrow.RecordBatch]:
        """Answers, a row for every row; see `Batchwise.lines`.

        `status` is `found`, `not_found` with its `reason`, or `error`. Rows that the model accepts
        have the reason `already-favourable`.

        >>> import tyrex
        >>> data = tyrex.datasets.load_german()
        >>> explainer = tyrex.Explainer.train(data, epochs=5)
        >>> adviser = explainer.adviser(method="min-cost")
        >>> adviser.answer_schema().names[:3]
        ['row', 'status', 'reason']
        """
        return self.lines(batches, key=key, on_error=on_error)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_adviser, (*self._given, self._native.models()))


class Gauge(Batchwise):
    """The stability of rows in batches: the columns of `tyrex stability --out`, then `error`."""

    def __init__(
        self,
        explainer: Explainer,
        *,
        k: int = 1000,
        sigma: float = 0.1,
        gamma: str = "sampled-slopes",
        seed: int = 0,
    ) -> None:
        self._given = (explainer, {"k": k, "sigma": sigma, "gamma": gamma, "seed": seed})
        terms = {"samples": whole("k", k, 1), "sigma": real("sigma", sigma), "gamma": gamma}
        self._native = _native.Batchwise.stability(
            explainer._native, to_json("options", terms), whole("seed", seed)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_made, (Gauge, *self._given))


class Certifier(Batchwise):
    """Certificates of rows in batches: `verdict`, the `probability` that the next model accepts,
    the `sentence`, the `certificate` as JSON, and `error`.

    The column `parameters` of answers says which models took part in the search; they certify
    nothing of it. For rows without it, `steered` is as in `tyrex.certify`."""

    def __init__(
        self,
        explainer: Explainer,
        ensemble: Ensemble | None = None,
        *,
        steered: bool | None = None,
        probability: float = 0.9,
        confidence: float = 0.95,
        delta: float | None = 0.01,
        radius: float | None = None,
        seed: int = 0,
    ) -> None:
        from .robustness import declared

        terms = {
            "probability": real("probability", probability),
            "confidence": real("confidence", confidence),
            "delta": None if delta is None else real("delta", delta),
            **({} if radius is None else {"radius": real("radius", radius)}),
        }
        self._given = (
            explainer,
            {
                "ensemble": ensemble,
                "steered": steered,
                **terms,
                "delta": delta,
                "radius": radius,
                "seed": seed,
            },
        )
        self._native = _native.Batchwise.certifier(
            explainer._native,
            None if ensemble is None else ensemble._native,
            declared(steered),
            to_json("options", terms),
            whole("seed", seed),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_made, (Certifier, *self._given))


class Auditor(Batchwise):
    """Judges promises in batches by a new model: for each the `status` (kept, broken or
    unreadable), the scores, and the `repairs` of a broken one as JSON. The input has a column
    `promise`, as answers with promises have it. `question` has the keywords of a search for
    repairs, as in `tyrex.audit`."""

    def __init__(
        self, explainer: Explainer, ensemble: Ensemble | None = None, **question: Any
    ) -> None:
        self._given = (explainer, {"ensemble": ensemble, **question})
        self._native = _native.Batchwise.auditor(
            explainer._native,
            _question(explainer, question),
            None if ensemble is None else ensemble._native,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_made, (Auditor, *self._given))


def adviser(
    explainer: Explainer,
    *,
    certify: Any = False,
    training: Any = None,
    promises: bool = False,
    holds: int | None = PROMISE_DAYS,
    with_models: Models | None = None,
    progress: ProgressSetting = None,
    **question: Any,
) -> Adviser:
    """The adviser of a question; `Explainer.adviser` describes the keywords."""
    from .robustness import Ensemble

    if certify not in (True, False) and not isinstance(certify, Ensemble):
        raise ParameterError(
            f"parameter `certify` is {certify!r}, expected True, False or a tyrex.Ensemble"
        )
    text, recipe = terms_of(explainer, certify=certify, training=training, **question)
    return Adviser(
        explainer,
        text,
        training=recipe,
        ensemble=certify if isinstance(certify, Ensemble) else None,
        # The salt of the promises' ids; docs/scale.md says what it is for.
        promises=(_until(holds), secrets.token_hex(32)) if promises else None,
        models=with_models,
        progress=progress,
    )


def terms_of(
    explainer: Explainer, *, certify: Any = False, training: Any = None, **question: Any
) -> tuple[str, str | None]:
    """The question and the training parameters, for the native side."""
    text = _question(explainer, {**question, "certify": certify is not False})
    return text, None if training is None else training_json(training)


def _question(explainer: Explainer, question: dict[str, Any]) -> str:
    known = inspect.signature(options).parameters
    params = {name: value for name, value in question.items() if name not in known}
    given = {name: value for name, value in question.items() if name in known}
    return options(explainer.schema, params=params, **given)


def _until(days: int | None) -> str:
    """When a promise that is made now ends."""
    if days is None:
        return "for-good"
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    return (now + datetime.timedelta(days=whole("holds", days, 1))).isoformat()


def _native_batches(batches: Any) -> Iterator[_native.Batch]:
    if _is_arrow(batches):
        batches = [batches]
    elif not isinstance(batches, Iterable) or isinstance(batches, (str, bytes, dict)):
        raise DataError(
            f"found {type(batches).__name__}, expected rows that Arrow can read, such as a table "
            "of pyarrow, pandas or polars, or an iterator of such"
        )
    for each in batches:
        yield from _native.Batches(each)


def _is_arrow(rows: Any) -> bool:
    return hasattr(rows, "__arrow_c_array__") or hasattr(rows, "__arrow_c_stream__")


def _with_key(batch: Any, key: list[str], lines: Any) -> Any:
    known = batch.schema.names
    for name in key:
        if known.count(name) != 1:
            raise DataError(f"the rows have no column `{name}` for `key`; they have {known[:12]}")
    schema = _joined(batch.select(key).schema, lines.schema)
    arrays = [*batch.select(key).columns, *lines.columns]
    return _pyarrow().RecordBatch.from_arrays(arrays, schema=schema)


def _joined(key: Any, own: Any) -> Any:
    for name in key.names:
        if name in own.names:
            raise ParameterError(
                f"parameter `key` has `{name}`, a column of the answers; expected another name"
            )
    fields = [key.field(place).remove_metadata() for place in range(len(key))]
    return _pyarrow().schema([*fields, *own])


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as missing:
        raise ImportError("batches need pyarrow: pip install pyarrow") from missing
    return pyarrow


def _made(kind: Any, explainer: Explainer, given: dict[str, Any]) -> Batchwise:
    work: Batchwise = kind(explainer, **given)
    return work


def _adviser(
    explainer: Explainer,
    question: str,
    training: str | None,
    ensemble: Ensemble | None,
    promises: tuple[str, str] | None,
    models: Any,
) -> Adviser:
    return Adviser(
        explainer,
        question,
        training=training,
        ensemble=ensemble,
        promises=promises,
        models=models,
        progress=False,
    )
