"""Robustness of advice to model changes: stability, retrained models, certificates and
calibrated thresholds."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from .columns import Columns
from .data import Frame
from .defaults import CONFIDENCE, DELTA, GAMMA, PROBABILITY, SIGMA, K
from .errors import DataError, ParameterError
from .explainer import Explainer
from .explanations import Explanations
from .parameters import certificate_terms, numbers, real, to_json, training_json, whole
from .progress import Progress, ProgressSetting
from .refit import given_models, refitted_models
from .request import options
from .source import as_table

__all__ = [
    "Calibration",
    "Ensemble",
    "Verified",
    "calibrate",
    "certify",
    "retrain",
    "stability",
    "verify",
]


def stability(
    explainer: Explainer,
    rows: Any = None,
    *,
    k: int = K,
    sigma: float = SIGMA,
    gamma: str = GAMMA,
    seed: int = 0,
    progress: ProgressSetting = None,
) -> Columns:
    """The stability of the model's scores around rows.

    `relaxed_stability` is the paper's `R^`, the measure that methods ask for; `stability` is
    `R = mean - gamma * distance`, with `gamma` a Lipschitz constant: `sampled-slopes`,
    `sampled-gradients` or `sound`. Without rows, the rejected rows of the data are measured.

    >>> import tyrex
    >>> explainer = tyrex.Explainer.train(tyrex.datasets.load_german(), epochs=5)
    >>> table = tyrex.stability(explainer, k=100)
    >>> sorted(table)
    ['gamma', 'mean', 'relaxed_stability', 'row', 'score', 'stability']
    >>> bool((table["relaxed_stability"] <= table["mean"]).all())
    True
    """
    terms = {"samples": whole("k", k, 1), "sigma": real("sigma", sigma), "gamma": gamma}
    table = None if rows is None else explainer._table(rows)[1]
    with Progress(progress, "measuring") as bar:
        columns = explainer._native.stability(
            table, to_json("options", terms), whole("seed", seed), bar
        )
    return Columns(dict(columns))


class Ensemble:
    """A model and many changed versions of it."""

    def __init__(self, explainer: Explainer, native: _native.Ensemble) -> None:
        self._explainer, self._native = explainer, native

    @classmethod
    def load(cls, explainer: Explainer, folder: str | os.PathLike[str]) -> Ensemble:
        """Reads an ensemble of this explainer's model from its folder."""
        return cls(explainer, _native.Ensemble.read(explainer._native, os.fspath(folder)))

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Writes every model as an ONNX file; `tyrex` on the command line reads the folder."""
        self._native.write(self._explainer._native, os.fspath(folder), overwrite)

    @property
    def change(self) -> str:
        """The change of the models, in words."""
        return self._native.change

    def score(self, rows: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The scores of rows: a line per model."""
        scores: np.ndarray[Any, np.dtype[np.float32]] = self._native.score(
            self._explainer._native, self._explainer._table(rows)[1]
        )
        return scores

    def validity(self, advice: Explanations) -> float:
        """The share of models and counterfactuals with a score of at least one half.

        This is not a guarantee: use models that the search did not use.
        """
        table, _ = _counterfactuals(self._explainer, advice)
        if table is None:
            raise DataError("no counterfactual was found, so there is nothing to score")
        return float((self._native.score(self._explainer._native, table) >= 0.5).mean())

    def observed_change(self, rows: Any) -> dict[str, Any]:
        """How far the models moved on rows, as in the paper's Definition 2 and Lemma 1."""
        table = self._explainer._table(rows)[1]
        document: dict[str, Any] = json.loads(
            self._native.observed_change(self._explainer._native, table)
        )
        return document

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        return f"Ensemble of {len(self)} models: {self.change}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_ensemble, (self._explainer, self._native.contents(), self._native.plan()))


def _ensemble(explainer: Explainer, contents: list[bytes], plan: str) -> Ensemble:
    return Ensemble(explainer, _native.Ensemble(contents, plan))


def retrain(
    explainer: Explainer,
    models: int | None = None,
    *,
    change: str | None = None,
    change_params: Mapping[str, Any] | None = None,
    seed: int = 0,
    training: Mapping[str, Any] | None = None,
    retrained: Any = None,
    refit: Callable[..., Any] | None = None,
    jobs: int = 1,
    promise: float | None = None,
    confidence: float | None = None,
    progress: ProgressSetting = None,
    **params: Any,
) -> Ensemble:
    """Retrains the network many times (50 by default), each time with a random change.

    `change` is reinitialise (the default), leave-out, bootstrap, architecture, hyperparameters,
    fine-tune, weight-noise, dropout, adversarial-weights, moved-threshold or mixture; of several,
    separated by commas, each model gets one at random. `change_params` are the parameters of a
    single change. `training`, or `params`, are training parameters that replace the base model's:
    those it was trained with, or the defaults if those are not known. Needs a network and labels.

    For models that tyrex does not train, there are two other ways:

    - `retrained` is a list of models of any kind that `Explainer` accepts, or lists by set:
      `{"search": [...], "tune": [...], "fresh": [...]}`. The search of a promise runs over the
      first and chooses its margin by the second; only the fresh ones certify. Without sets they
      are drawn at random. A fourth set, `sibling`, has models that were trained as the model in
      use was, to compare it with; by default it is compared with the models themselves.
    - `refit` is a function `refit(seed)` that returns a fitted model. If it has a second parameter,
      it is called as `refit(seed, rows)` with the row numbers of a bootstrap of the training rows,
      and some more times with all of them, to compare the model in use with. By default it makes
      as many models as a `promise` (0.9) at a `confidence` (0.95) needs: 161, or 61 for a black
      box without gradients; with `models` it makes that many. `jobs` threads call it; more than one
      only if the function may be called from several threads at once, with a seed of its own in
      each.

    Certificates of such models say that they were retrained elsewhere. No two of them may be equal.

    >>> import tyrex
    >>> explainer = tyrex.Explainer.train(tyrex.datasets.load_german(), epochs=3)
    >>> tyrex.retrain(explainer, 2, change="bootstrap")
    Ensemble of 2 models: trained again on as many rows drawn with replacement, from new weights
    >>> others = [
    ...     tyrex.Explainer.train(tyrex.datasets.load_german(), epochs=3, seed=seed).to_onnx()
    ...     for seed in (1, 2)
    ... ]
    >>> len(tyrex.retrain(explainer, retrained=others))
    2
    """
    own = [
        name for name, given in (("retrained", retrained), ("refit", refit)) if given is not None
    ]
    if own:
        others = {"change": change, "change_params": change_params, "training": training, **params}
        beside = [name for name, given in others.items() if given]
        beside += own[1:] + (["models"] if own[0] == "retrained" and models is not None else [])
        if beside:
            listed = ", ".join(f"`{each}`" for each in beside)
            raise ParameterError(
                f"parameter `{own[0]}` is given beside {listed}, expected one way to make models"
            )
    if retrained is not None:
        return Ensemble(explainer, given_models(explainer, retrained, progress=progress))
    if refit is not None:
        native = refitted_models(
            explainer,
            refit,
            models,
            promise=promise,
            confidence=confidence,
            seed=seed,
            jobs=jobs,
            progress=progress,
        )
        return Ensemble(explainer, native)
    wanted = {**(training or {}), **params}
    with Progress(progress, "training", unit="epochs") as bar:
        native = explainer._native.retrain(
            change,
            notation(change_params),
            None if models is None else whole("models", models, 1),
            training_json(wanted) if wanted else None,
            whole("seed", seed),
            bar,
        )
    return Ensemble(explainer, native)


def notation(params: Mapping[str, Any] | None) -> str:
    """The parameters of a change in the notation of TOML."""
    pairs = ((name.replace("_", "-"), value) for name, value in (params or {}).items())
    return ", ".join(f"{name} = {_notation(name, value)}" for name, value in pairs)


def _notation(name: str, value: Any) -> str:
    """The value of a parameter in the notation of TOML."""
    if isinstance(value, Mapping):
        pairs = (f"{key} = {_notation(name, each)}" for key, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_notation(name, each) for each in value)}]"
    return to_json(name, value)


def certify(
    explainer: Explainer,
    rows: Any,
    ensemble: Ensemble | None = None,
    *,
    steered: bool | None = None,
    probability: float = PROBABILITY,
    confidence: float = CONFIDENCE,
    delta: float | None = DELTA,
    radius: float | None = None,
    seed: int = 0,
    progress: ProgressSetting = None,
) -> list[dict[str, Any] | None]:
    """Certifies rows for a changed model: a certificate for each.

    `rows` are rows in any container, or `Explanations`: then the counterfactuals are certified,
    with None where none was found. The `sentence` of a certificate states its claims and
    assumptions.

    `ensemble` are retrained models. Those that took part in the search for the advice certify
    nothing of it: `Explanations`, and rows with the column `parameters` of a file of advice, say
    which these are. They are left out, with a warning; if the user chose the sets of the ensemble,
    they are an error. Of other rows it is not known, and nothing that rests on the ensemble is
    certified, unless `steered=False` declares that the search did not use its models; with
    `steered=True` it did.

    `delta` is the largest change of any weight for the interval tier. For trees it is that
    of any leaf, and `radius` that of any threshold, 0.01 if it is None.

    >>> import tyrex
    >>> explainer = tyrex.Explainer.train(tyrex.datasets.load_german(), epochs=5)
    >>> advice = explainer.explain(limit=2)
    >>> certificates = tyrex.certify(explainer, advice, tyrex.retrain(explainer, 5))
    >>> all("rests on" in each["sentence"] for each in certificates if each)
    True
    """
    terms = certificate_terms(probability, confidence, delta, radius)
    _check_ensemble(ensemble)
    if isinstance(rows, Explanations):
        table, found = _counterfactuals(explainer, rows)
        if table is None:
            return [None] * len(rows)
        # Explanations of earlier versions do not say.
        searched = to_json("searched", rows.answer.get("searched"))
    else:
        searched = None
        frame, table = explainer._table(rows)
        found = [True] * len(frame)
    places = [place for place, each in enumerate(found) if each]
    native = None if ensemble is None else ensemble._native
    with Progress(progress, "certifying") as bar:
        certified, left_out = explainer._native.certify(
            table,
            native,
            searched,
            declared(steered),
            to_json("options", terms),
            whole("seed", seed),
            bar,
        )
    if left_out:
        warnings.warn(
            f"{left_out} models of the ensemble took part in the search and are left out",
            stacklevel=2,
        )
    # The schema may drop rows with missing values.
    certificates: list[dict[str, Any] | None] = [None] * len(found)
    for row, text in certified:
        certificates[places[row]] = json.loads(text)
    return certificates


def declared(steered: Any) -> bool | None:
    """Whether the search used the models of an ensemble, as the user says."""
    if steered is not None and not isinstance(steered, bool):
        raise ParameterError(f"parameter `steered` is {steered!r}, expected True, False or None")
    return steered


@dataclass(frozen=True)
class Verified:
    """The result of verifying a certificate.

    `place` is its position in the document and `row` its row, if the document has it.
    `differences` has `field`, `stated` and `recomputed` for every field that differs.
    """

    place: str
    row: int | None
    confirmed: bool
    differences: list[dict[str, str]]

    def __bool__(self) -> bool:
        return self.confirmed


def verify(
    explainer: Explainer,
    certificates: Any,
    ensemble: Ensemble | None = None,
    *,
    progress: ProgressSetting = None,
) -> list[Verified]:
    """Recomputes certificates, each from its own point, seed and terms, and compares every field.

    `certificates` are the result of `certify`, one of them, `Explanations` with certificates, or
    the path of a JSON document with certificates: of `certify` or `explain` on the command line, or
    of the service. `ensemble` is the one that they were made with, if any.

    >>> import tyrex
    >>> explainer = tyrex.Explainer.train(tyrex.datasets.load_german(), epochs=5)
    >>> certificates = tyrex.certify(explainer, explainer.explain(limit=2, method="min-cost"))
    >>> all(tyrex.verify(explainer, certificates))
    True
    >>> certificates[0]["score"] = 1.0
    >>> [each["field"] for each in tyrex.verify(explainer, certificates)[0].differences]
    ['score']
    """
    _check_ensemble(ensemble)
    if isinstance(certificates, (str, os.PathLike)):
        text = Path(certificates).read_text(encoding="utf-8")
    elif isinstance(certificates, Explanations):
        text = str(certificates.to_json())
    else:
        text = to_json("certificates", certificates)
    native = None if ensemble is None else ensemble._native
    with Progress(progress, "verifying") as bar:
        verified = explainer._native.verify(text, native, bar)
    return [Verified(**each) for each in json.loads(verified)]


def _check_ensemble(ensemble: Any) -> None:
    if ensemble is not None and not isinstance(ensemble, Ensemble):
        raise ParameterError(
            f"parameter `ensemble` is {ensemble!r}, expected the tyrex.Ensemble of `retrain`"
        )


class Calibration:
    """The smallest threshold that was shown to reach a validity, or why there is none.

    `curve` has every threshold that was tried: coverage, cost and validity.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    @property
    def tau(self) -> float | None:
        """The threshold; None if none was shown to reach the validity."""
        tau: float | None = self._document.get("tau") if self.verdict == "chosen" else None
        return tau

    @property
    def verdict(self) -> str:
        """chosen, too-few-models, too-few-found or not-shown."""
        verdict: str = self._document["verdict"]
        return verdict

    @property
    def best(self) -> dict[str, Any] | None:
        """If no threshold was chosen, the one with the highest validity: `tau`, its `validity`
        under the models that did not choose it, and the number of `models` that would show the
        goal if they judge alike."""
        best: dict[str, Any] | None = self._document.get("best")
        return best

    @property
    def curve(self) -> Columns:
        """Every threshold, the largest first."""
        points = self._document["curve"]
        return Columns({name: [point[name] for point in points] for name in points[0]})

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return self._document

    def plot(self, ax: Any = None) -> Any:
        """Plots the cost and validity of each threshold."""
        from .plot import calibration

        return calibration(self, ax)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Calibration) and self._document == other._document

    def __hash__(self) -> int:
        return hash(json.dumps(self._document, sort_keys=True))

    def __repr__(self) -> str:
        goal = self._document["goal"]
        promise = f"{100 * goal['validity']:g} % valid with confidence {goal['confidence']:g}"
        models = self._document["choosing"] + self._document["reporting"]
        asked = f"{self._document['factuals']} rows and {models} models"
        if self.tau is None:
            best = "" if self.best is None else f"; the best is tau = {self.best['tau']:g}"
            return f"Calibration: no threshold for {promise} on {asked} ({self.verdict}{best})"
        kept = self._document["validity"]
        return (
            f"Calibration: tau = {self.tau:g} for {promise}; on models that did not choose it "
            f"{100 * kept['mean']:.1f} % ({100 * kept['low']:.1f} to {100 * kept['high']:.1f}), "
            f"from {asked}"
        )


def calibrate(
    explainer: Explainer,
    ensemble: Ensemble,
    *,
    validity: float | None = None,
    confidence: float | None = None,
    method: str | None = None,
    norm: Any = None,
    taus: Sequence[float] | None = None,
    rows: int | None = None,
    missing: str | None = None,
    test: str | None = None,
    seed: int | None = None,
    progress: ProgressSetting = None,
    **search: Any,
) -> Calibration:
    """The smallest threshold of stability with which advice reaches a required validity.

    Half of the ensemble chooses, the other half reports. By default 95 % of the advice must stay
    valid with a `confidence` of 0.95. `rows` is the maximum number of rejected rows to search for,
    100 by default. A row without advice is left out (`missing="left-out"`, the default), or counts
    as not valid (`"invalid"`). `test` is `betting` (the default) or `hoeffding-bentkus`. Pass
    `calibration.tau` to `explain`.

    >>> import tyrex
    >>> explainer = tyrex.Explainer.train(tyrex.datasets.load_german(), hidden=[8], epochs=5)
    >>> models = tyrex.retrain(explainer, 4)
    >>> tyrex.calibrate(explainer, models, rows=5, taus=[0.6, 0.8])
    Calibration: no threshold for 95 % valid with confidence 0.95 on 5 rows and 4 models \
(too-few-models; the best is tau = 0.8)
    """
    if not isinstance(ensemble, Ensemble):
        raise ParameterError(
            f"parameter `ensemble` is {ensemble!r}, expected the tyrex.Ensemble of `retrain`"
        )
    goal = {
        "validity": None if validity is None else real("validity", validity),
        "confidence": None if confidence is None else real("confidence", confidence),
        "missing": missing,
        "test": test,
    }
    goal = {name: value for name, value in goal.items() if value is not None}
    asked = options(explainer.schema, method=method, norm=norm, seed=seed, **search)
    with Progress(progress, "searching") as bar:
        text = explainer._native.calibrate(
            to_json("options", goal),
            None if taus is None else numbers("taus", taus),
            None if rows is None else whole("rows", rows, 1),
            asked,
            ensemble._native,
            bar,
        )
    return Calibration(json.loads(text))


def _counterfactuals(
    explainer: Explainer, advice: Explanations
) -> tuple[_native.Table | None, list[bool]]:
    """The advised rows as a table, and which rows have one."""
    if advice.request.get("protocol", "product") != "product":
        raise ParameterError(
            f"the advice is of the protocol `{advice.request['protocol']}`, whose answers are "
            "points and not rows; expected advice of the protocol `product`"
        )
    found = [each.found for each in advice]
    rows = [each.counterfactual for each in advice if each.counterfactual is not None]
    if not rows:
        return None, found
    return as_table(Frame.of(rows, explainer.schema.features), "advice"), found
