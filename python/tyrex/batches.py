"""Rows in batches: Arrow in, Arrow out, wherever the batches come from.

A row has the same answer in any batch, in any order, in any process, so tables can be cut as
Spark, Ray or anything else cuts them. pyarrow is imported at the first use.
"""

from __future__ import annotations

import datetime
import inspect
import secrets
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from .defaults import CONFIDENCE, DELTA, GAMMA, PROBABILITY, PROMISE_DAYS, SIGMA, K
from .errors import DataError, ParameterError
from .parameters import certificate_terms, names, real, to_json, training_json, whole
from .progress import Progress, ProgressSetting
from .request import options

if TYPE_CHECKING:
    from typing import TypeAlias

    import pyarrow

    from .explainer import Explainer
    from .robustness import Ensemble


class Promises(NamedTuple):
    """The terms of recorded promises: the days that they hold (None for no end), until when, and
    the salt of their ids. docs/scale.md says what the salt is for."""

    holds: int | None
    until: str
    salt: str

    @classmethod
    def from_now(cls, holds: int | None) -> Promises:
        """Promises that begin now, with a new salt."""
        return cls(holds, _until(holds), secrets.token_hex(32))


# The models of a question that were retrained elsewhere: what is known of the model's likeness to
# them, and the files of each set.
Models: TypeAlias = "tuple[str | None, list[list[bytes]]]"

__all__ = ["Adviser", "Auditor", "Batchwise", "Certifier", "Gauge"]


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
            lines = arrow.record_batch(self._native.answer(batch, None if key else row))
            if key:
                lines = _with_key(arrow.record_batch(batch), key, lines)
            if strict:
                _check(lines, key or ["row"])
            row += len(batch)
            yield lines


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
        promises: Promises | None = None,
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
                None if promises is None else (promises.until, promises.salt),
                bar,
            )

    @property
    def explainer(self) -> Explainer:
        """The explainer."""
        return self._given[0]

    def renew(self) -> None:
        """From here on, answers carry promises that begin now: an adviser that lives for long
        would promise a time that is over."""
        explainer, question, training, ensemble, promises = self._given
        if promises is not None:
            promises = promises._replace(until=_until(promises.holds))
            self._native.renew(promises.until)
            self._given = (explainer, question, training, ensemble, promises)

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
        k: int = K,
        sigma: float = SIGMA,
        gamma: str = GAMMA,
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
        probability: float = PROBABILITY,
        confidence: float = CONFIDENCE,
        delta: float | None = DELTA,
        radius: float | None = None,
        seed: int = 0,
    ) -> None:
        from .robustness import declared

        terms = certificate_terms(probability, confidence, delta, radius)
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
        promises=Promises.from_now(holds) if promises else None,
        models=with_models,
        progress=progress,
    )


def terms_of(
    explainer: Explainer, *, certify: Any = False, training: Any = None, **question: Any
) -> tuple[str, str | None]:
    """The question and the training parameters, for the native side."""
    text = _question(explainer, {**question, "certify": certify is not False})
    return text, None if training is None else training_json(training)


def answer_schema(
    explainer: Explainer,
    *,
    certify: Any = False,
    training: Any = None,
    promises: bool = False,
    holds: int | None = PROMISE_DAYS,
    with_models: Models | None = None,
    progress: ProgressSetting = None,
    **question: Any,
) -> pyarrow.Schema:
    """The columns of the answers to a question, which are known before it is prepared."""
    text, recipe = terms_of(explainer, certify=certify, training=training, **question)
    given = None if isinstance(certify, bool) else certify._native
    batch = _native.Batchwise.answer_columns(explainer._native, text, recipe, given, promises)
    return _pyarrow().record_batch(batch).schema


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


def _check(lines: Any, key: list[str]) -> None:
    """Raises the error of the first line that has one."""
    problems = lines.column(lines.num_columns - 1)
    if problems.null_count == len(problems):
        return
    place = problems.is_valid().index(True).as_py()
    names = ", ".join(f"{name} {lines.column(name)[place].as_py()}" for name in key)
    raise DataError(f"rows: {names}, {problems[place].as_py()}")


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
    promises: Promises | None,
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
