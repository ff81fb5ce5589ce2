"""The explainer: a model and its rows."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from .assembly import Made, assemble, schema_of
from .data import Frame
from .defaults import PROMISE_DAYS
from .errors import DataError, ModelError, ParameterError, SchemaError
from .explanations import Explanations
from .parameters import groupings, training_json, whole
from .progress import Progress, ProgressSetting
from .request import options
from .schema import Schema
from .source import Source, as_table

if TYPE_CHECKING:
    from .batches import Adviser

__all__ = ["Explainer"]


class Explainer:
    """A model and its rows, ready for questions.

    Parameters
    ----------
    model
        An ONNX file (path or bytes), a `torch.nn.Module`, a Keras model, a fitted scikit-learn
        classifier or pipeline, an XGBoost or LightGBM model, a `tyrex.MLPClassifier`, a function
        `f(X) -> p`, or a pair of such a function and its gradient.
    data
        The rows the model was trained on: pandas, polars, pyarrow, numpy, a dict of columns, the
        path of a CSV, JSON lines or Parquet file, or a data set of `tyrex.datasets`. Searches use
        these rows, and ranges and scales are taken from them.
    schema
        The meaning of the columns: a `tyrex.Schema`, a TOML file or its text. Inferred from the
        data if absent; `explainer.schema` shows it.
    label
        The name of the label's column in `data`, or the labels themselves. Only retraining
        needs labels.
    favourable
        The favourable value of the label (or a list of values), and the model's class.
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
        data, schema = _content(data), None if schema is None else Schema.of(schema)
        made = assemble(model, data, schema, label, favourable, logits, preprocessor)
        if isinstance(model, (str, os.PathLike)):
            with open(model, "rb") as file:
                model = file.read()
        self._given = {
            "model": model,
            "data": data,
            "schema": schema,
            "label": label,
            "favourable": favourable,
            "logits": logits,
            "preprocessor": preprocessor,
        }
        self._set(made)

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

        `params` are those of `tyrex train --params`: `hidden=[128, 128]`, `epochs=100`,
        `learning_rate=1e-3`, `l2=1e-4`, `dropout=0.0`, ... A fifth of the training rows is held
        out for early stopping; `early_stopping=None` trains all epochs on all training rows.

        >>> import tyrex
        >>> explainer = tyrex.Explainer.train(tyrex.datasets.load_german(), epochs=5)
        >>> explainer
        Explainer: network of tyrex (native), 20 features, 1000 rows, 71 of 330 test rows rejected
        """
        data, schema = _content(data), None if schema is None else Schema.of(schema)
        source = Source.of(data, label)
        made = schema_of(source, schema, favourable)
        rows = source.data or _native.Data.labelled(source.table, made._native)
        training, seed = training_json(params), whole("seed", seed)
        with Progress(progress, "training", unit="epochs") as bar:
            native = _native.Explainer.train(rows, training, seed, bar)
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
        """The meaning of the columns; inferred from the data if it was not given."""
        self.framework = made.framework
        """The framework of the model: onnx, torch, keras, scikit-learn, xgboost, ..."""
        self.deviation = made.deviation
        """The largest difference on the data between the scores of the original model and of
        the native one; None for ONNX files."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model, which depends on its weights."""
        return self._native.fingerprint

    @property
    def kind(self) -> str:
        """`network` (native, with gradients), `trees` (native) or `function` (a black box)."""
        return self._native.kind

    @property
    def usual_method(self) -> str:
        """The default method: trex-o, or trex-nn for a black box without gradients."""
        return self._native.usual_method

    @property
    def data(self) -> Frame:
        """The rows that were given."""
        return self._source.frame

    def score(self, rows: Any = None) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The probability of the favourable class, for rows or for the data."""
        if rows is None:
            own: np.ndarray[Any, np.dtype[np.float32]] = self._native.own_scores()
            return own
        frame, table = self._table(rows)
        # NaN where the schema drops a row for a missing value.
        scores = np.full(len(frame), np.nan, dtype=np.float32)
        places, known = self._native.score(table)
        scores[places] = known
        return scores

    def rejected(self, part: str | None = None) -> list[int]:
        """The rows of the data that the model rejects: of the test rows if there are any, or of
        `part`: train, test or all."""
        return self._native.rejected(part)

    def performance(self) -> list[dict[str, Any]]:
        """For each part: `accuracy`, `auc` (ties count half), `calibration_error` (the expected
        one, over ten bins of equal mass), `loss` and `rejected` rows; needs labels."""
        parts: list[dict[str, Any]] = json.loads(self._native.performance())
        return parts

    def explain(
        self,
        rows: Any = None,
        *,
        method: str | None = None,
        promise: float | None = None,
        confidence: float | None = None,
        by: Any = (),
        amount: str | None = None,
        plausible: float | None = None,
        path: bool | None = None,
        tau: float | str | None = None,
        norm: Any = None,
        k: int | None = None,
        sigma: float | None = None,
        features_to_vary: Iterable[str] | str | None = None,
        features_to_keep: Iterable[str] | None = None,
        permitted_range: Mapping[str, Any] | None = None,
        actions: Mapping[str, Any] | None = None,
        rules: Iterable[Mapping[str, Any]] | None = None,
        protocol: str | None = None,
        limit: int | None = None,
        max_steps: int | None = None,
        max_evaluations: int | None = None,
        max_seconds: float | None = None,
        certify: Any = False,
        stability: bool | None = None,
        models: int | None = None,
        change: str | Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
        retrained: Any = None,
        refit: Callable[..., Any] | None = None,
        jobs: int = 1,
        prove: bool | None = None,
        relax: bool | None = None,
        seed: int | None = None,
        progress: ProgressSetting = None,
        **params: Any,
    ) -> Explanations:
        """Finds changes so that the model accepts each row.

        Parameters
        ----------
        rows
            The rows to explain, in any container; columns are found by name. Without any, the
            rejected rows of the data.
        method
            One of `tyrex.method_names()`; trex-o by default, trex-nn for a black box without
            gradients. A method that cannot search the model raises an error that names the
            others.
        promise
            The least probability that the next model accepts the advice, such as 0.9. The search
            (trex-e) then runs over models retrained for it, and others certify the advice; those
            of `certify` if it is an ensemble. It takes the place of `tau`, `k` and `sigma`.
        confidence
            The confidence of certificates and of the promise; 0.95 by default. With elastic-net,
            that method's parameter.
        by, amount
            With a promise: columns of the rows whose groups, and whose amounts, `portfolio` of the
            result also states the kept share for: `"sex"`, `["sex", "age:25,40"]` or
            `{"sex": None, "age": [25, 40]}`, and one name.
        plausible
            The least p-value of the advised row among accepted applicants of the data: at 0.1,
            about one accepted applicant of ten is less usual. Such advice costs more, takes
            longer, and is found for fewer rows. None asks for none; `usual` and `plausibility` of
            an explanation say it in any case.
        path
            Whether each explanation has a `path`: the steps from the row to the advised row, each
            to a row with at least half of the p-value `plausible`, or with 0.05.
        tau, k, sigma
            The required stability, the number of neighbours and their standard deviation; the
            protocol's by default. `tau="auto"` uses the lowest threshold that keeps 95 % of the
            advice valid under retrained models; it trains them, or uses those of `certify`.
        norm
            The norm that measures the cost of a change: l1 (the default) or l2.
        features_to_vary, features_to_keep, permitted_range, actions
            Limits on changes in addition to the schema: names, names, `{"age": [30, 40],
            "housing": ["own", "rent"]}`, `{"age": "only-up"}`.
        rules
            Rules between features in addition to the schema's, with its keys:
            `[{"if": {"degree": "up"}, "then": {"age": {"by": [2, None]}}}]`.
        protocol
            `product` (the default): answers are rows that obey the schema. `paper`, `reference`:
            points, as in the paper's experiments.
        limit
            The most rows.
        max_steps, max_evaluations, max_seconds
            The most work for one row.
        certify
            True to certify the advice, or a `tyrex.Ensemble` to certify it with. With False
            (the default) certificates are made at the first use of `certificates`, or now if
            there is a promise.
        stability
            Whether R^ is computed for the answers of methods that do not test it, such as
            min-cost, which takes half the time without it. True by default.
        models
            Models to retrain for `certify=True`. By default 20 if the model was trained by
            `Explainer.train`, and none for another model.
        change
            How models that are retrained now differ from the model, as in `tyrex.retrain`:
            "reinitialise" (the default), "reinitialise,bootstrap" to draw one of several for each
            model, or `{"name": "leave-out", "fraction": 0.05}`. A promise is for this change.
        training
            Training parameters of models that are retrained now, such as `{"l2": 0.001}`. They
            replace those that the model was trained with, or the defaults if those are not known.
        retrained, refit, jobs
            Models that you retrained, or a function `refit(seed)` or `refit(seed, rows)` that does,
            in place of models that tyrex retrains; see `tyrex.retrain`, whose ensemble can be used
            again as `certify`. A promise needs models with gradients, or trees.
        prove
            Whether to prove that no advice is cheaper, or else to state how much cheaper it could
            be (`proof` of each explanation); min-cost and margin can, on trees.
        relax
            Whether to search, for rows without advice, for a single rule that prevents it
            (`relaxations`). That takes many searches per row; None does it for up to 20 rows.
        seed
            The same seed gives the same advice, here and from the command line. 0 by default.
        progress
            None: a bar on a terminal or in a notebook. True, False, or a function of (done, total).
        params
            Other parameters of the method, by their names in docs/methods.md.

        Ctrl-C ends the search; the advice found so far is returned, with `interrupted` set.

        Examples
        --------
        >>> import tyrex
        >>> explainer = tyrex.Explainer.train(tyrex.datasets.load_german())
        >>> kept = ["credit_amount"]
        >>> advice = explainer.explain(limit=1, tau=0.7, norm="l2", features_to_keep=kept)
        >>> [str(change) for change in advice[0].changes]
        ['change checking_status from `0<=X<200 DM` to `>=200 DM or salary assigned >=1 year`']
        """
        if certify is not True and certify is not False and not isinstance(certify, _ensembles()):
            raise ParameterError(
                f"parameter `certify` is {certify!r}, expected True, False or a tyrex.Ensemble"
            )
        limit = None if limit is None else whole("limit", limit)
        groups = groupings(by)
        if retrained is not None or refit is not None:
            if certify not in (True, False):
                raise ParameterError(
                    "parameter `certify` is an ensemble, expected none with `retrained` or `refit`"
                )
            if training is not None or (retrained is not None and (refit is not None or models)):
                raise ParameterError(
                    "`retrained` and `refit` are given beside each other, `training` or `models`, "
                    "expected one way to make models"
                )
            certify = self._own_models(
                retrained,
                refit,
                models,
                promise=promise,
                confidence=confidence,
                search=method in (None, "trex-e") and (tau, k, sigma) == (None, None, None),
                seed=0 if seed is None else seed,
                jobs=jobs,
                progress=progress,
            )
            models = None
        asked = options(
            self.schema,
            method=method,
            norm=norm,
            promise=promise,
            confidence=confidence,
            plausible=plausible,
            path=path,
            tau=tau,
            k=k,
            sigma=sigma,
            features_to_vary=features_to_vary,
            features_to_keep=features_to_keep,
            permitted_range=permitted_range,
            actions=actions,
            rules=rules,
            protocol=protocol,
            max_steps=max_steps,
            max_evaluations=max_evaluations,
            max_seconds=max_seconds,
            certify=certify is not False,
            stability=stability,
            models=models,
            change=change,
            prove=prove,
            relax=relax,
            seed=seed,
            params=params,
        )
        given: Any = certify
        ensemble = None if isinstance(given, bool) else given._native
        frame, table = (self.data, None) if rows is None else self._table(rows)
        recipe = None if training is None else training_json(training)
        with Progress(progress, "explaining") as bar:
            text, seconds, interrupted = self._native.explain(
                table, asked, groups, amount, limit, ensemble, recipe, bar
            )
        answer = json.loads(text)
        documents = answer.pop("rows")
        for document in documents:
            document["features"] = self._source.restored(document["features"])
            document["advice"] = self._source.restored_advice(document["advice"])
        own = answer["ask"]["seed"]
        advice = Explanations.of(
            documents,
            answer=answer,
            seconds=seconds,
            index=frame.index,
            interrupted=interrupted,
            kind=frame.kind,
            certifier=lambda advice: _certify(self, advice, own),
        )
        for doubt in advice.warnings:
            warnings.warn(doubt, stacklevel=2)
        if interrupted:
            done = sum(each.reason != "cancelled" for each in advice)
            warnings.warn(
                f"stopped: {done} of {len(advice)} rows were explained",
                RuntimeWarning,
                stacklevel=2,
            )
        return advice

    def adviser(
        self,
        *,
        certify: Any = False,
        training: Mapping[str, Any] | None = None,
        promises: bool = False,
        holds: int | None = PROMISE_DAYS,
        with_models: Any = None,
        progress: ProgressSetting = None,
        **question: Any,
    ) -> Adviser:
        """Prepares a question for rows in batches: `tyrex.Adviser`.

        Parameters
        ----------
        question
            The keywords of `explain`, except those about its rows. `tau="auto"` depends on all
            rows, so it is not among them.
        certify, training
            As in `explain`. The default question has a promise, whose models are retrained now,
            and an adviser that is pickled carries them.
        promises
            Whether answers carry promises for a ledger: `tyrex ledger record` reads them.
        holds
            The days that these promises hold; None for no end. They begin when the adviser is
            made, so that an answer that is made twice is the same promise.
        with_models
            Retrained models that were made elsewhere, as `tyrex.spark.retrain` returns them.

        >>> import tyrex
        >>> explainer = tyrex.Explainer.train(tyrex.datasets.load_german(), epochs=5)
        >>> adviser = explainer.adviser(method="min-cost", norm="l2")
        >>> adviser.answer_schema().names[-1]
        'error'
        """
        from .batches import adviser

        return adviser(
            self,
            certify=certify,
            training=training,
            promises=promises,
            holds=holds,
            with_models=with_models,
            progress=progress,
            **question,
        )

    def explain_batches(
        self,
        batches: Any,
        *,
        key: str | Iterable[str] | None = None,
        on_error: str = "row",
        **question: Any,
    ) -> Iterator[Any]:
        """Answers to rows in batches, from Arrow to Arrow: `adviser(**question)`, and its
        `explain_batches`."""
        return self.adviser(**question).explain_batches(batches, key=key, on_error=on_error)

    def answer_schema(self, **question: Any) -> Any:
        """The Arrow schema of the answers to a question, the keywords of `adviser`; see
        `Adviser.answer_schema`. Nothing is retrained for it."""
        from .batches import answer_schema

        return answer_schema(self, **question)

    def _own_models(self, retrained: Any, refit: Any, models: int | None, **how: Any) -> Any:
        """The ensemble of models that the user retrained, or retrains now."""
        from .refit import given_models, refitted_models

        if retrained is None:
            native = refitted_models(self, refit, models, purpose="explain", **how)
        else:
            native = given_models(self, retrained, progress=how["progress"])
        return _ensembles()(self, native)

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """The network as an ONNX file that the command line and other tools read, with the schema
        and the encoder in its metadata. The file takes encoded columns."""
        content: bytes = self._native.to_onnx()
        if path is not None:
            with open(path, "wb") as file:
                file.write(content)
        return content

    def _table(self, rows: Any) -> tuple[Frame, _native.Table]:
        """Rows in any container, converted for the native side; columns are found by name."""
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
        # The last part is the one that is explained by default.
        part = self.performance()[-1]
        which = "rows" if part["part"] == "all" else f"{part['part']} rows"
        if self.framework == "function":
            what = "a function"
        elif self.kind == "function":
            what = f"model of {self.framework} as a black box"
        else:
            what = f"{self.kind} of {self.framework} (native)"
        return (
            f"Explainer: {what}, {len(self.schema.features)} features, {len(self.data)} rows, "
            f"{part['rejected']} of {part['rows']} {which} rejected"
        )

    def __copy__(self) -> Explainer:
        # An explainer is immutable.
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Explainer:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        model, schema = self._given["model"], self._given["schema"]
        if isinstance(model, bytes) and b"location" in model:
            try:
                _native.Model(model, logits=bool(self._given["logits"]))
            except ModelError as problem:
                if "external data" in str(problem):
                    raise ModelError(
                        f"{problem}; to pickle the explainer, save the model as a single file"
                    ) from None
        if schema is not None and "file" in schema.to_dict().get("split", {}):
            raise SchemaError(
                "the schema takes its split from another file, which cannot be pickled; expected "
                "a split by a column of the data"
            )
        return (_remade, (type(self), self._given, self.framework, self.fingerprint))


def _content(data: Any) -> Any:
    """Rows, with the content of a file in place of its path: another process, on another machine,
    makes the explainer from it."""
    return _native.Table.read(os.fspath(data)) if isinstance(data, (str, os.PathLike)) else data


def _ensembles() -> type:
    from .robustness import Ensemble

    return Ensemble


def _certify(explainer: Explainer, advice: Explanations, seed: int) -> list[dict[str, Any] | None]:
    from .robustness import certify

    return certify(explainer, advice, seed=seed, progress=False)


def _remade(
    kind: type[Explainer], given: dict[str, Any], framework: str, fingerprint: str
) -> Explainer:
    explainer = kind(**given)
    explainer.framework = framework
    if explainer.fingerprint != fingerprint:
        raise ModelError(
            "the model or the data have changed since the explainer was created, so it cannot be "
            "restored; pickle it before they change"
        )
    return explainer


def _has_names(rows: Any) -> bool:
    return isinstance(rows, (list, tuple)) and bool(rows) and isinstance(rows[0], Mapping)
