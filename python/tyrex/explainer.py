"""The explainer: a model, and the rows it speaks about."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _native
from .data import Frame
from .errors import DataError, ModelError, ParameterError, SchemaError
from .explanations import Explanations
from .models import Function, Onnx, convert
from .progress import Progress, ProgressSetting
from .request import options
from .schema import Schema
from .source import Source, as_table, as_text

__all__ = ["Explainer"]

# A converted model whose scores differ by more than this from the original's is refused.
LARGEST_DEVIATION = 1e-4
# The most rules that are let go one at a time for a row without advice.
RULES = 24


class Explainer:
    """A model and the rows it speaks about, ready for questions.

    Parameters
    ----------
    model
        An ONNX file (path or bytes), a `torch.nn.Module`, a Keras model, a fitted scikit-learn
        classifier or pipeline, an XGBoost or LightGBM model, a `tyrex.MLPClassifier`, a function
        `f(X) -> p`, or a pair of such a function and its gradient.
    data
        The rows the model was trained on: pandas, polars, pyarrow, numpy, a dict of columns, the
        path of a CSV, JSON lines or Parquet file, or a data set of `tyrex.datasets`. Answers look
        like these rows, and ranges and scales are taken from them.
    schema
        What the columns mean: a `tyrex.Schema`, a TOML file or its text. Drawn up from the data
        if absent; `explainer.schema` shows it.
    label
        The name of the label's column in `data`, or the labels themselves. Only retraining
        needs labels.
    favourable
        The label's value that a person wants (or a list of them), and the model's class.
    logits
        Whether a PyTorch or Keras model ends before its sigmoid or softmax.
    preprocessor
        The fitted scikit-learn transformer that makes the inputs of a PyTorch or Keras model.

    Examples
    --------
    >>> import numpy as np, tyrex
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> explainer = tyrex.Explainer(lambda x: 1 / (1 + np.exp(-3 * x[:, 0])), rows)
    >>> explainer.score([[1.0, 0.0]]).round(3)
    array([0.953], dtype=float32)
    >>> advice = explainer.explain([[-1.0, 0.5]], method="trex-nn", tau=0.6)
    >>> advice[0].found, bool(advice[0].new_score > 0.5)
    (True, True)
    """

    def __init__(
        self,
        model: Any,
        data: Any,
        schema: Any = None,
        *,
        label: Any = None,
        favourable: Any = None,
        logits: bool | None = None,
        preprocessor: Any = None,
    ) -> None:
        self._given = {
            "model": model,
            "data": data,
            "schema": schema,
            "label": label,
            "favourable": favourable,
            "logits": logits,
            "preprocessor": preprocessor,
        }
        self._set(_assemble(**self._given))

    @classmethod
    def train(
        cls,
        data: Any,
        schema: Any = None,
        *,
        label: Any = None,
        favourable: Any = None,
        seed: int = 0,
        progress: ProgressSetting = None,
        **params: Any,
    ) -> Explainer:
        """Trains a network of tyrex on labelled rows, as `tyrex train` does.

        `params` are those of `tyrex train --params`: `hidden=[128, 128]`, `epochs=50`,
        `learning_rate=1e-3`, `l2=0.0`, `dropout=0.0`, ...

        >>> import tyrex
        >>> explainer = tyrex.Explainer.train(tyrex.datasets.load_german(), epochs=5)
        >>> explainer
        Explainer: network of tyrex, 20 features, 1000 rows, 83 of 330 test rows rejected
        """
        source = Source.of(data, label)
        made = schema_of(source, schema, favourable)
        rows = source.data or _native.Data.labelled(source.table, made._native)
        wanted = {name.replace("_", "-"): value for name, value in params.items()}
        with Progress(progress, "training", unit="epochs") as bar:
            native = _native.Explainer.train(rows, json.dumps(wanted), seed, bar)
        explainer = cls.__new__(cls)
        explainer._given = {
            "model": native.to_onnx(),
            "data": data,
            "schema": schema,
            "label": label,
            "favourable": favourable,
            "logits": None,
            "preprocessor": None,
        }
        explainer._set(Made(native, source, made, "tyrex", None))
        return explainer

    def _set(self, made: Made) -> None:
        self._native = made.native
        self._source = made.source
        self.schema = made.schema
        """What the columns mean; drawn up from the data if it was not given."""
        self.framework = made.framework
        """Where the model came from: onnx, torch, keras, scikit-learn, xgboost, ..."""
        self.deviation = made.deviation
        """The largest difference between the model's own scores on the data and the native
        engine's; None where the model itself is asked."""

    @property
    def fingerprint(self) -> str:
        """The name of the model that changes with its weights."""
        return self._native.fingerprint

    @property
    def kind(self) -> str:
        """`network` (native, with gradients), `trees` (native) or `function` (a black box)."""
        return self._native.kind

    @property
    def data(self) -> Frame:
        """The rows that were given."""
        return self._source.frame

    def score(self, rows: Any = None) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The probability of the favourable class, for rows or for the data themselves."""
        if rows is None:
            scores = self._native.own_scores()
        else:
            scores = self._native.score(self._table(rows)[1])
        found: np.ndarray[Any, np.dtype[np.float32]] = scores
        return found

    def rejected(self, part: str | None = None) -> list[int]:
        """The rows of the data that the model rejects: of the test rows where the data have any,
        or of `part`: train, test or all."""
        return self._native.rejected(part)

    def performance(self) -> list[dict[str, Any]]:
        """Accuracy, loss and rejected rows, part by part; needs labels."""
        parts: list[dict[str, Any]] = json.loads(self._native.performance())
        return parts

    def explain(
        self,
        rows: Any = None,
        *,
        method: str | None = None,
        tau: float | None = None,
        norm: Any = "l1",
        k: int | None = None,
        sigma: float | None = None,
        features_to_vary: Iterable[str] | str | None = None,
        features_to_keep: Iterable[str] | None = None,
        permitted_range: Mapping[str, Any] | None = None,
        actions: Mapping[str, Any] | None = None,
        protocol: str = "product",
        limit: int | None = None,
        max_steps: int | None = None,
        max_evaluations: int | None = None,
        max_seconds: float | None = None,
        certify: Any = False,
        relax: bool | None = None,
        seed: int = 0,
        progress: ProgressSetting = None,
        **params: Any,
    ) -> Explanations:
        """What to change so that the model accepts, row by row.

        Parameters
        ----------
        rows
            The rows to explain, in any container; columns are found by name. Without any, the
            rejected rows of the data.
        method
            trex-i (the usual one), trex-o, trex-nn, min-cost, nn, sns, roar or elastic-net.
            Without gradients, trex-nn or nn.
        tau, k, sigma
            The stability that is asked for, on how many neighbours, how far away.
        norm
            What a change costs: l1 or l2.
        features_to_vary, features_to_keep, permitted_range, actions
            What may change, beside what the schema says: names, names, `{"age": [30, 40],
            "housing": ["own", "rent"]}`, `{"age": "only-up"}`.
        protocol
            `product`: answers are rows that obey the schema. `paper`, `reference`: points, as in
            the paper's experiments.
        limit
            The most rows.
        max_steps, max_evaluations, max_seconds
            The most work for one row.
        certify
            True to certify what is found, or a `tyrex.Ensemble` to certify it with.
        relax
            Whether to look, for rows without advice, for the one rule that stands in the way
            (`relaxations`). That takes many searches per row; None does it for up to 20 rows.
        seed
            The same seed gives the same advice, here and from the command line.
        progress
            None: a bar where somebody watches. True, False, or a function of (done, total).
        params
            Other parameters of the method, by their names in docs/methods.md.

        Ctrl-C ends the search; what was found until then is returned, with `interrupted` set.
        """
        if method is None:
            method = "trex-i" if self._native.has_gradients else "trex-nn"
        asked = options(
            self.schema,
            method=method,
            norm=norm,
            tau=tau,
            k=k,
            sigma=sigma,
            features_to_vary=features_to_vary,
            features_to_keep=features_to_keep,
            permitted_range=permitted_range,
            actions=actions,
            protocol=protocol,
            max_steps=max_steps,
            max_evaluations=max_evaluations,
            max_seconds=max_seconds,
            seed=seed,
            params=params,
        )
        frame, table = (self.data, None) if rows is None else self._table(rows)
        tries = None if relax is None else RULES if relax else 0
        with Progress(progress, "searching") as bar:
            texts, seconds, request, interrupted = self._native.explain(
                table, asked, limit, tries, bar
            )
        documents = json.loads(texts)
        for document, took in zip(documents, seconds):
            document["advice"]["seconds"] = took
        advice = Explanations.of(
            documents,
            request={**json.loads(request), "seed": seed},
            fingerprint=self.fingerprint,
            index=frame.index,
            interrupted=interrupted,
            kind=frame.kind,
            certifier=lambda advice: _certify(self, advice, None, seed, False),
        )
        if interrupted:
            done = sum(each.reason != "cancelled" for each in advice)
            warnings.warn(
                f"stopped: {done} of {len(advice)} rows were explained",
                RuntimeWarning,
                stacklevel=2,
            )
        elif certify is not False:
            ensemble = None if certify is True else certify
            made = _certify(self, advice, ensemble, seed, progress)
            items = [replace(each, certificate=own) for each, own in zip(advice, made)]
            return advice._with(items)
        return advice

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """The network as an ONNX file that the command line and other tools read, with the schema
        and the encoder in its metadata. The file takes encoded columns."""
        content: bytes = self._native.to_onnx()
        if path is not None:
            with open(path, "wb") as file:
                file.write(content)
        return content

    def _table(self, rows: Any) -> tuple[Frame, _native.Table]:
        """Rows in any container, as the native side takes them; columns are found by name."""
        if isinstance(rows, (str, os.PathLike)):
            source = Source.of(rows)
            return source.frame, source.table
        features = self.schema.features
        if isinstance(rows, (np.ndarray, list, tuple)) and not _has_names(rows):
            array = np.asarray(rows)
            if array.ndim == 1 and array.dtype != object:
                raise DataError(
                    f"found an array of the shape {array.shape}; expected a matrix with "
                    f"{len(features)} columns, one row per applicant"
                )
            if array.ndim == 2 and array.shape[1] != len(features):
                raise DataError(
                    f"found {array.shape[1]} columns, expected {len(features)}: "
                    f"{', '.join(features[:12])}"
                )
            frame = Frame.of(array, features)
        else:
            frame = Frame.of(rows)
            frame.select(features)
        return frame, as_table(frame, "rows")

    def __repr__(self) -> str:
        rows, features = len(self.data), len(self.schema.features)
        rejected = len(self.rejected())
        applicants = len(self._source.data.split()[1]) if self._source.data else rows
        which = "test rows" if self._source.data else "rows"
        where = self.framework if self.deviation is None else f"{self.framework} (native)"
        return (
            f"Explainer: {self.kind} of {where}, {features} features, {rows} rows, "
            f"{rejected} of {applicants} {which} rejected"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_remade, (type(self), self._given, self.framework))


def _certify(
    explainer: Explainer,
    advice: Explanations,
    ensemble: Any,
    seed: int,
    progress: ProgressSetting,
) -> list[dict[str, Any] | None]:
    from .robustness import certify

    return certify(explainer, advice, ensemble, seed=seed, progress=progress)


def _remade(kind: type[Explainer], given: dict[str, Any], framework: str) -> Explainer:
    explainer = kind(**given)
    explainer.framework = framework
    return explainer


def _has_names(rows: Any) -> bool:
    return isinstance(rows, (list, tuple)) and bool(rows) and isinstance(rows[0], Mapping)


@dataclass(frozen=True)
class Made:
    """What an explainer consists of."""

    native: _native.Explainer
    source: Source
    schema: Schema
    framework: str
    deviation: float | None


def schema_of(
    source: Source,
    schema: Any,
    favourable: Any,
    features: list[str] | None = None,
    levels: dict[str, list[Any]] | None = None,
) -> Schema:
    """The schema that was given or that the data bring along, or else a first one, in which the
    columns that the model takes as categories have all the `levels` it knows."""
    if schema is not None:
        return Schema.of(schema)
    if source.data is not None:
        return Schema(source.data.schema)
    values = favourable if isinstance(favourable, (list, tuple, set)) else [favourable]
    wanted = [] if favourable is None else [as_text(value) for value in values]
    candidates = features or source.features.names
    return Schema.inferred(
        source.table, source.label, wanted, source.kinds(candidates, levels or {}), features
    )


def _assemble(
    model: Any,
    data: Any,
    schema: Any,
    label: Any,
    favourable: Any,
    logits: bool | None,
    preprocessor: Any,
) -> Made:
    source = Source.of(data, label)
    if schema is not None:
        schema = Schema.of(schema)
        source = source.labelled(schema.label)
    if isinstance(model, (str, os.PathLike, bytes, bytearray)):
        return _with_file(model, source, schema, favourable, logits, preprocessor)
    converted = convert(model, source.features, favourable, logits, preprocessor)
    features = converted.features or source.features.names
    levels = converted.levels if isinstance(converted, Onnx) else {}
    made = schema_of(source, schema, favourable, features, levels)
    if isinstance(converted, Onnx):
        try:
            native = _native_of(converted, source, made)
        except (ModelError, SchemaError) as problem:
            # What the native engine does not understand is asked as a black box. A schema that
            # was given is the user's to correct.
            given = schema is not None or source.data is not None
            if converted.fallback is None or (given and isinstance(problem, SchemaError)):
                raise
            converted = converted.fallback
        else:
            return _compared(native, converted, source, made)
    return _with_function(converted, source, made)


def _with_file(
    model: Any,
    source: Source,
    schema: Any,
    favourable: Any,
    logits: bool | None,
    preprocessor: Any,
) -> Made:
    """An ONNX file: its own schema, if tyrex wrote it; else it takes the columns of the data."""
    if preprocessor is not None:
        raise ParameterError("preprocessor is for PyTorch and Keras models, not for ONNX files")
    file = os.fspath(model) if isinstance(model, (str, os.PathLike)) else bytes(model)

    def read(schema: _native.Schema | None, class_name: str | None = None) -> _native.Model:
        return _native.Model(file, schema, class_name=class_name, logits=bool(logits))

    try:
        first = read(None)
    except ModelError:
        # Of three classes and more one has to be named.
        if favourable is None or isinstance(favourable, (list, tuple, set)):
            raise
        first = read(None, as_text(favourable))
    if schema is not None or source.data is not None:
        made = schema_of(source, schema, favourable)
    elif first.schema is not None:
        made = Schema(first.schema)
    else:
        known = first.columns is not None and set(first.columns) <= set(source.frame.names)
        features = first.columns if known else source.features.names
        made = schema_of(source, None, favourable, features)
        made = Schema(made._native.for_raw_columns(), made.notes)
    native_model = read(made._native)
    rows = source.data or _native.Data.applicants(source.table, made._native)
    native = _native.Explainer.with_model(rows, native_model, made._native.takes_raw_columns)
    return Made(native, source, made, "onnx", None)


def _native_of(converted: Onnx, source: Source, schema: Schema) -> _native.Explainer:
    """A converted model, on the raw columns it takes."""
    model = _native.Model(
        converted.content, class_number=converted.class_number, logits=converted.logits
    )
    rows = _native.Data.applicants(source.table, schema._native.for_raw_columns())
    return _native.Explainer.with_model(rows, model, True)


def _compared(native: _native.Explainer, converted: Onnx, source: Source, schema: Schema) -> Made:
    """A converted model, compared with the original on the data."""
    kept = native.own_rows()
    frame = source.frame.select(converted.features or schema.features)
    if len(kept) < len(frame):
        frame = _rows_of(frame, kept)
    own = np.asarray(converted.scores(frame), dtype=np.float64)
    differences = np.abs(own - native.own_scores())
    deviation = float(differences.max())
    if not deviation <= LARGEST_DEVIATION:
        row = kept[int(np.argmax(np.where(np.isnan(differences), np.inf, differences)))]
        raise ModelError(
            f"the converted model is not the original: on row {row} of the data their scores "
            f"differ by {deviation:.2g}, more than {LARGEST_DEVIATION:g}; pass its prediction "
            "function instead (for example `model.predict_proba`) to have it asked as a black box"
        )
    schema = Schema(native.schema, schema.notes)
    return Made(native, source, schema, converted.framework, deviation)


def _rows_of(frame: Frame, rows: list[int]) -> Frame:
    columns = [column[rows] for column in frame.columns]
    return Frame(frame.names, columns, frame.levels, None, frame.kind, frame.origins)


def _with_function(function: Function, source: Source, schema: Schema) -> Made:
    """A black box, asked about rows in the container of the data."""
    frame = source.frame.select(schema.features)
    levels = [_levels(frame, name, schema) for name in frame.names]

    def rows(columns: list[Any]) -> Frame:
        values = [
            column if known is None else known[column] for column, known in zip(columns, levels)
        ]
        return Frame(frame.names, values, frame.levels, None, frame.kind, frame.origins)

    def scores(columns: list[Any]) -> Any:
        return np.ascontiguousarray(function.scores(rows(columns)), dtype=np.float64)

    gradients = function.gradients

    def slopes(columns: list[Any]) -> Any:
        assert gradients is not None
        return np.ascontiguousarray(gradients(rows(columns)), dtype=np.float64)

    data = source.data or _native.Data.applicants(source.table, schema._native)
    native = _native.Explainer.with_function(data, scores, None if gradients is None else slopes)
    return Made(native, source, schema, function.framework, None)


def _levels(frame: Frame, name: str, schema: Schema) -> Any:
    """The levels of a feature as the data have them, then what stands for a missing one: the
    native side counts them, with -1 for missing. None for numbers."""
    texts = schema._native.levels(name)
    if not texts:
        return None
    column = frame.columns[frame.names.index(name)]
    if column.dtype == object:
        return np.array([*texts, None], dtype=object)
    if column.dtype == bool:
        return np.array([text == "true" for text in texts] + [False])
    numbers = [float(text) for text in texts]
    if column.dtype.kind == "f":
        return np.array([*numbers, np.nan], dtype=column.dtype)
    return np.array([*numbers, 0], dtype=column.dtype)
