"""Builds the parts of an explainer from a model and rows in any form."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _native
from .data import Frame
from .errors import ModelError, ParameterError, SchemaError
from .models import Function, Onnx, convert
from .schema import Schema
from .source import Source, as_text

__all__ = ["Made", "assemble", "retrained", "schema_of"]

# The meaning of a large difference between the scores of a model.
CONVERTED = (
    "the converted model differs from the original; pass its prediction function instead (for "
    "example `model.predict_proba`) to use it as a black box"
)
NOT_A_FUNCTION = (
    "the function is not deterministic, or depends on values that are not in the schema"
)
# A model whose scores differ by more than this from the native side's is rejected.
LARGEST_DEVIATION = 1e-4


@dataclass(frozen=True)
class Made:
    """The parts of an explainer."""

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
    """The schema that was given or that the data bring along, or else a draft of one."""
    if schema is not None:
        return Schema.of(schema)
    if source.data is not None:
        return Schema(source.data.schema)
    return Schema.drafted(source, favourable, features, levels or {})


def assemble(
    model: Any,
    data: Any,
    schema: Any,
    label: Any,
    favourable: Any,
    logits: bool | None,
    preprocessor: Any,
) -> Made:
    """Combines a model and rows in any form."""
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
    given = schema is not None or source.data is not None
    if isinstance(converted, Onnx):
        try:
            native = _native_of(converted, source, made, given)
        except (ModelError, SchemaError) as problem:
            # A model that the native engine does not support becomes a black box. A schema that
            # was given is the user's to correct.
            if converted.fallback is None or (given and isinstance(problem, SchemaError)):
                raise
            converted = replace(converted.fallback, reason=str(problem))
        else:
            return _compared(native, converted, source, made)
    if converted.reason is not None:
        gradients = "" if converted.gradients else ", and without gradients"
        warnings.warn(
            f"the model is used as a black box, which is slower{gradients}: {converted.reason}",
            stacklevel=4,
        )
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
    first, read = _file(model, favourable, logits)
    if schema is not None or source.data is not None:
        made = schema_of(source, schema, favourable)
    elif first.schema is not None:
        made = Schema(first.schema)
    else:
        known = first.columns is not None and set(first.columns) <= set(source.frame.names)
        features = first.columns if known else source.features.names
        made = schema_of(source, None, favourable, features)
        made = Schema(made._native.for_raw_columns(True), made.notes)
    native_model = read(made._native)
    rows = source.data or _native.Data.applicants(source.table, made._native)
    native = _native.Explainer.with_model(rows, native_model)
    return Made(native, source, made, "onnx", None)


def _file(
    model: Any, favourable: Any, logits: bool | None
) -> tuple[_native.Model, Callable[[_native.Schema], _native.Model]]:
    """The model of an ONNX file without a schema, and how to read it with one."""
    file = os.fspath(model) if isinstance(model, (str, os.PathLike)) else bytes(model)

    def read(
        schema: _native.Schema | None, number: int | None = None, class_name: str | None = None
    ) -> _native.Model:
        return _native.Model(
            file, schema, class_number=number, class_name=class_name, logits=bool(logits)
        )

    try:
        first = read(None)
    except ModelError:
        # With three or more classes, one has to be named.
        if favourable is None or isinstance(favourable, (list, tuple, set)):
            raise
        first = read(None, class_name=as_text(favourable))
    number = None if favourable is None else _class_number(first, favourable)
    return first, lambda schema: read(schema, number)


def _class_number(model: _native.Model, favourable: Any) -> int | None:
    """The favourable class of a file that does not name its classes."""
    if model.schema is not None:
        known = model.schema.favourable
        wanted = favourable if isinstance(favourable, (list, tuple, set)) else [favourable]
        if {as_text(value) for value in wanted} != set(known):
            raise SchemaError(
                f"favourable is {favourable!r}, but the model file says {' and '.join(known)}; "
                "leave it out, or pass a schema"
            )
        return None
    if model.class_names is not None:
        return None
    if as_text(favourable) in ("false", "true"):
        return int(as_text(favourable) == "true")
    if as_text(favourable).isdigit():
        return int(as_text(favourable))
    raise ParameterError(
        f"favourable is {favourable!r}, but the model file does not name its classes; expected "
        "the number of one, from 0"
    )


def _model_of(converted: Onnx) -> _native.Model:
    return _native.Model(
        converted.content, class_number=converted.class_number, logits=converted.logits
    )


def _native_of(converted: Onnx, source: Source, schema: Schema, given: bool) -> _native.Explainer:
    """A converted model, on the raw columns it takes. Unless the schema was given, the model gets
    missing numbers as they are."""
    model = _model_of(converted)
    rows = _native.Data.applicants(source.table, schema._native.for_raw_columns(not given))
    return _native.Explainer.with_model(rows, model)


def _compared(native: _native.Explainer, converted: Onnx, source: Source, schema: Schema) -> Made:
    """A converted model, compared with the original on the data."""
    frame = source.frame.select(converted.features or schema.features)
    deviation = _deviation(
        native.own_rows(), native.own_scores(), converted.scores, frame, CONVERTED
    )
    schema = Schema(native.schema, schema.notes)
    return Made(native, source, schema, converted.framework, deviation)


def _deviation(
    kept: list[int], found: Any, scores: Callable[[Frame], Any], frame: Frame, meaning: str
) -> float:
    """The largest difference between a model's own scores on the data and those that the native
    side found for the `kept` rows; refused where it is large."""
    rows = frame if len(kept) == len(frame) else _rows_of(frame, kept)
    own = np.asarray(scores(rows), dtype=np.float64)
    differences = np.abs(own - found)
    deviation = float(differences.max())
    if not deviation <= LARGEST_DEVIATION:
        row = kept[int(np.argmax(np.where(np.isnan(differences), np.inf, differences)))]
        raise ModelError(
            f"on row {row} of the data the scores differ by {deviation:.2g}, more than "
            f"{LARGEST_DEVIATION:g}: {meaning}"
        )
    return deviation


def _rows_of(frame: Frame, rows: list[int]) -> Frame:
    columns = [column[rows] for column in frame.columns]
    return Frame(frame.names, columns, frame.levels, None, frame.kind, frame.origins)


def _with_function(function: Function, source: Source, schema: Schema) -> Made:
    """A black box, called with rows in the container of the data."""
    scores, slopes = _calls(function, source, schema)
    data = source.data or _native.Data.applicants(source.table, schema._native)
    native = _native.Explainer.with_function(data, scores, slopes)
    frame = source.frame.select(schema.features)
    deviation = _deviation(
        native.own_rows(), native.own_scores(), function.scores, frame, NOT_A_FUNCTION
    )
    return Made(native, source, schema, function.framework, deviation)


def _calls(
    function: Function, source: Source, schema: Schema
) -> tuple[Callable[[list[Any], bool], Any], Callable[[list[Any]], Any] | None]:
    """The scores and gradients of a black box, as the native side calls them."""
    frame = source.frame.select(schema.features)
    levels = [_levels(frame, name, schema) for name in frame.names]

    def rows(columns: list[Any]) -> Frame:
        values = [
            column if known is None else known[column] for column, known in zip(columns, levels)
        ]
        return Frame(frame.names, values, frame.levels, None, frame.kind, frame.origins)

    ends = [
        None if known is not None else (np.nanmin(column), np.nanmax(column))
        for column, known in zip(frame.columns, levels)
    ]

    def scores(columns: list[Any], are_neighbours: bool) -> Any:
        try:
            answers = function.scores(rows(columns))
        except Exception:
            if not are_neighbours:
                raise
            # Neighbours may lie outside the data, where logarithms and roots are undefined:
            # they are moved to the edge of the data.
            inside = [
                column if end is None else np.clip(column, *end)
                for column, end in zip(columns, ends)
            ]
            if all(map(np.array_equal, columns, inside)):
                raise
            answers = function.scores(rows(inside))
        return np.ascontiguousarray(answers, dtype=np.float64)

    gradients = function.gradients

    def slopes(columns: list[Any]) -> Any:
        assert gradients is not None
        return np.ascontiguousarray(gradients(rows(columns)), dtype=np.float64)

    return scores, None if gradients is None else slopes


def retrained(
    model: Any, made: Made, favourable: Any, logits: bool | None, preprocessor: Any
) -> _native.Retrained:
    """Another model of the same rows, for certificates and searches of the model in use.

    It is converted and compared as the model in use was.
    """
    native, source, schema = made.native, made.source, made.schema
    if isinstance(model, (str, os.PathLike, bytes, bytearray)):
        _, read = _file(model, favourable, logits)
        return _native.Retrained.of_model(native, read(schema._native), False)
    converted = convert(model, source.features, favourable, logits, preprocessor)
    meaning = NOT_A_FUNCTION
    fitted: _native.Retrained | None = None
    if isinstance(converted, Onnx):
        try:
            fitted = _native.Retrained.of_model(native, _model_of(converted), True)
            meaning = CONVERTED
        except (ModelError, SchemaError):
            if converted.fallback is None:
                raise
            converted = converted.fallback
    if isinstance(converted, Function):
        fitted = _native.Retrained.of_function(native, *_calls(converted, source, schema))
    assert fitted is not None
    frame = source.frame.select(converted.features or schema.features)
    found = fitted.own_scores(native)
    _deviation(native.own_rows(), found, converted.scores, frame, meaning)
    return fitted


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
