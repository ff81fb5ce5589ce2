"""tyrex in MLflow: advisers are kept, loaded, served and used in Spark as models.

A model of this flavour is a folder with these artifacts:

| file | content |
|---|---|
| `explainer.pickle` | the model, its reference and its schema, as they were given |
| `schema.toml` | the schema, to read |
| `question.json` | the question, with its promise |
| `models/SET-NUMBER.onnx`, `likeness.json` | the models that were retrained for the promise |
| `ensemble.pickle` | the ensemble, if one was given |

Its function takes rows and returns the answers, as `Adviser.explain_batches` does.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .batches import Adviser
from .errors import ParameterError, need
from .explainer import Explainer

if TYPE_CHECKING:
    import mlflow
    import pandas as pd
    from mlflow.models import ModelSignature

need("mlflow", "for tyrex.mlflow", install="tyrex[mlflow]")

__all__ = ["load_model", "log_model", "save_model"]

FLAVOR_NAME = "tyrex"
# The folder of the artifacts in that of the model.
_DATA = "data"


def save_model(
    model: Adviser | Explainer,
    path: str | os.PathLike[str],
    *,
    mlflow_model: mlflow.models.Model | None = None,
    signature: ModelSignature | None = None,
    pip_requirements: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
    key: Mapping[str, str] | None = None,
    **question: Any,
) -> None:
    """Saves an adviser, or an explainer with a `question` (the keywords of `Explainer.adviser`), in
    a folder that must not exist.

    The signature has the features as inputs, the columns of the answers as outputs, and the
    parameter `on_error` (`row` or `raise`). `key` are columns that identify a row, with their types
    in MLflow, such as `{"customer": "string"}`: optional inputs, which come first in the answers.
    MLflow leaves out all other columns. `pip_requirements` are those of a process that loads the
    model.
    """
    from mlflow import pyfunc
    from mlflow.models import Model
    from mlflow.utils.environment import _PythonEnv

    if isinstance(model, Explainer):
        model = model.adviser(**question)
    elif not isinstance(model, Adviser) or question:
        raise ParameterError(
            f"found {type(model).__name__} and {sorted(question) or 'no question'}, expected a "
            "tyrex.Adviser, or a tyrex.Explainer with a question"
        )
    folder = Path(path)
    if folder.exists():
        raise FileExistsError(f"{folder} exists already")
    own = mlflow_model or Model()
    own.signature = signature or _signature(model, dict(key or {}))
    if metadata is not None:
        own.metadata = metadata
    try:
        _write(model, folder / _DATA, list(key or {}))
        own.add_flavor(FLAVOR_NAME, tyrex_version=_version(), data=_DATA)
        env = "python_env.yaml"
        pyfunc.add_to_model(own, loader_module="tyrex.mlflow", data=_DATA, python_env=env)
        _PythonEnv.current().to_yaml(str(folder / env))
        wanted = pip_requirements or [f"tyrex[mlflow]=={_version()}"]
        (folder / "requirements.txt").write_text("\n".join(wanted) + "\n", encoding="utf-8")
        own.save(str(folder / "MLmodel"))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def log_model(
    model: Adviser | Explainer,
    name: str,
    *,
    registered_model_name: str | None = None,
    signature: ModelSignature | None = None,
    pip_requirements: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
    key: Mapping[str, str] | None = None,
    **question: Any,
) -> Any:
    """Saves an adviser as a model of the current run; see `save_model`. Returns MLflow's
    `ModelInfo`, whose `model_uri` loads it."""
    import sys

    from mlflow.models import Model

    return Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        registered_model_name=registered_model_name,
        metadata=metadata,
        model=model,
        signature=signature,
        pip_requirements=pip_requirements,
        key=key,
        **question,
    )


def load_model(model_uri: str, dst_path: str | None = None) -> Adviser:
    """The adviser of a model; `mlflow.pyfunc.load_model` loads its function instead."""
    from mlflow.tracking.artifact_utils import _download_artifact_from_uri

    folder = Path(_download_artifact_from_uri(artifact_uri=model_uri, output_path=dst_path))
    return _read(folder / _DATA)[0]


def _load_pyfunc(path: str) -> _Function:
    """What `mlflow.pyfunc.load_model` calls."""
    return _Function(*_read(Path(path)))


class _Function:
    """An adviser as MLflow's function of rows."""

    def __init__(self, adviser: Adviser, key: list[str]) -> None:
        self.adviser, self.key = adviser, key

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """The answers to rows, in their order."""
        import pandas as pd
        import pyarrow as pa

        on_error = str((params or {}).get("on_error") or "row")
        rows = pd.DataFrame(model_input).reset_index(drop=True)
        table = pa.Table.from_pandas(rows, preserve_index=False)
        key = [name for name in self.key if name in table.schema.names]
        schema = self.adviser.answer_schema(table.select(key).schema if key else None)
        lines = self.adviser.explain_batches(table, key=key or None, on_error=on_error)
        answers: pd.DataFrame = pa.Table.from_batches(list(lines), schema=schema).to_pandas()
        return answers


def _signature(own: Adviser, key: dict[str, str]) -> ModelSignature:
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

    kinds = {"int64": "long", "double": "double", "bool": "boolean"}
    answers = [
        ColSpec(kinds.get(str(field.type), "string"), field.name, required=False)
        for field in own.answer_schema()
    ]
    params = [ParamSpec("on_error", "string", "row")]
    rows = own.explainer.data.select(own.explainer.schema.features)
    types = {"i": "long", "f": "double", "b": "boolean"}
    inputs = [
        ColSpec(types.get(column.dtype.kind, "string"), name)
        for name, column in zip(rows.names, rows.columns)
    ]
    inputs += [ColSpec(kind, name, required=False) for name, kind in key.items()]
    return ModelSignature(Schema(inputs), Schema(answers), ParamSchema(params))


def _write(own: Adviser, folder: Path, key: list[str]) -> None:
    import cloudpickle

    explainer, question, training, ensemble, promises = own._given
    (folder / "models").mkdir(parents=True)
    (folder / "explainer.pickle").write_bytes(cloudpickle.dumps(explainer))
    (folder / "schema.toml").write_text(explainer.schema.to_toml(), encoding="utf-8")
    document = {
        "question": json.loads(question),
        "settled": json.loads(own._native.question),
        "training": None if training is None else json.loads(training),
        "promises": promises,
        "key": key,
    }
    (folder / "question.json").write_text(json.dumps(document, indent=2), encoding="utf-8")
    if ensemble is not None:
        (folder / "ensemble.pickle").write_bytes(cloudpickle.dumps(ensemble))
    likeness, sets = own._native.models() or (None, [])
    if likeness is not None:
        (folder / "likeness.json").write_text(likeness, encoding="utf-8")
    for place, files in enumerate(sets):
        for number, content in enumerate(files):
            (folder / "models" / f"{place}-{number:04}.onnx").write_bytes(content)


def _read(folder: Path) -> tuple[Adviser, list[str]]:
    document = json.loads((folder / "question.json").read_text(encoding="utf-8"))
    explainer = pickle.loads((folder / "explainer.pickle").read_bytes())
    ensemble, given = None, folder / "ensemble.pickle"
    if given.exists():
        ensemble = pickle.loads(given.read_bytes())
    sets: dict[str, list[bytes]] = {}
    for file in sorted((folder / "models").glob("*.onnx")):
        sets.setdefault(file.name.split("-")[0], []).append(file.read_bytes())
    likeness = folder / "likeness.json"
    known = likeness.read_text(encoding="utf-8") if likeness.exists() else None
    training, promises = document["training"], document["promises"]
    own = Adviser(
        explainer,
        json.dumps(document["question"]),
        training=None if training is None else json.dumps(training),
        ensemble=ensemble,
        promises=promises and (promises[0], promises[1]),
        models=(known, list(sets.values())) if sets else None,
        progress=False,
    )
    return own, document["key"]


def _version() -> str:
    from . import __version__

    return __version__
