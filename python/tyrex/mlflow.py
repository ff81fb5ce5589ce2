"""tyrex in MLflow: advisers are kept, loaded, served and used in Spark as models.

A model of this flavour is a folder with these artifacts, if the adviser has them:

| file | content |
|---|---|
| `model.onnx` (`.json`, `.ubj`, `.txt`) | the model's file |
| `reference.csv` | the rows that were given with the model |
| `schema.toml` | the schema |
| `question.json` | the question, with its method and its seed |
| `promise.json` | the promise, and whether and for how long answers carry promises to record |
| `models/SET-NUMBER.onnx`, `likeness.json` | the models that were retrained for the promise |
| `ensemble/` | the ensemble that was given, as `Ensemble.save` writes it |
| `explainer.pickle` | how the parts make the explainer, and models and tables of other packages |

Its function takes rows and returns the answers, as `Adviser.explain_batches` does. Promises that
answers carry begin when the function answers.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from . import _native
from .batches import Adviser, Promises
from .errors import ParameterError, need
from .explainer import Explainer
from .robustness import Ensemble

if TYPE_CHECKING:
    import mlflow
    import pandas as pd
    from mlflow.models import ModelSignature

need("mlflow", "for tyrex.mlflow", install="tyrex[mlflow]")
# MLflow brings it.
cloudpickle: Any = need("cloudpickle", "for tyrex.mlflow", install="tyrex[mlflow]")

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

        # A function that is served may be older than the promises hold.
        self.adviser.renew()
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
    explainer, question, training, ensemble, promises = own._given
    (folder / "models").mkdir(parents=True)
    (folder / "reference.csv").write_bytes(explainer._source.table.to_csv())
    model = explainer._given["model"]
    if not isinstance(model, bytes) and explainer.kind == "network":
        (folder / "model.onnx").write_bytes(explainer.to_onnx())
    with (folder / "explainer.pickle").open("wb") as file:
        _Pickler(file, folder, model).dump(explainer)
    (folder / "schema.toml").write_text(explainer.schema.to_toml(), encoding="utf-8")
    settled = json.loads(own._native.question)
    _dump(
        folder / "question.json",
        {
            "question": json.loads(question),
            "settled": settled,
            "training": None if training is None else json.loads(training),
            "key": key,
        },
    )
    _dump(
        folder / "promise.json",
        {
            "probability": settled.get("promise"),
            "confidence": settled.get("confidence"),
            "recorded": promises is not None,
            "holds": None if promises is None else promises.holds,
        },
    )
    if ensemble is not None:
        ensemble.save(folder / "ensemble")
    likeness, sets = own._native.models() or (None, [])
    if likeness is not None:
        (folder / "likeness.json").write_text(likeness, encoding="utf-8")
    for place, files in enumerate(sets):
        for number, content in enumerate(files):
            (folder / "models" / f"{place}-{number:04}.onnx").write_bytes(content)


def _read(folder: Path) -> tuple[Adviser, list[str]]:
    document = json.loads((folder / "question.json").read_text(encoding="utf-8"))
    promise = json.loads((folder / "promise.json").read_text(encoding="utf-8"))
    with (folder / "explainer.pickle").open("rb") as pickled:
        explainer = _Unpickler(pickled, folder).load()
    given = folder / "ensemble"
    ensemble = Ensemble.load(explainer, given) if given.exists() else None
    sets: dict[str, list[bytes]] = {}
    for file in sorted((folder / "models").glob("*.onnx")):
        sets.setdefault(file.name.split("-")[0], []).append(file.read_bytes())
    likeness = folder / "likeness.json"
    known = likeness.read_text(encoding="utf-8") if likeness.exists() else None
    training = document["training"]
    own = Adviser(
        explainer,
        json.dumps(document["question"]),
        training=None if training is None else json.dumps(training),
        ensemble=ensemble,
        promises=Promises.from_now(promise["holds"]) if promise["recorded"] else None,
        models=(known, list(sets.values())) if sets else None,
        progress=False,
    )
    return own, document["key"]


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles an explainer, with the file of its model and its rows as files beside the pickle."""

    def __init__(self, file: BinaryIO, folder: Path, model: Any) -> None:
        super().__init__(file)
        self._folder, self._model = folder, model

    def persistent_id(self, part: Any) -> str | None:
        if isinstance(part, _native.Table):
            name, content = "reference.csv", part.to_csv()
        elif part is self._model and isinstance(part, bytes):
            name, content = f"model.{_ending(part)}", part
        else:
            return None
        (self._folder / name).write_bytes(content)
        return name


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` writes."""

    def __init__(self, file: BinaryIO, folder: Path) -> None:
        super().__init__(file)
        self._folder = folder

    def persistent_load(self, name: str) -> Any:
        content = (self._folder / name).read_bytes()
        return _native.Table.of_csv(name, content) if name.endswith(".csv") else content


def _ending(model: bytes) -> str:
    """The end of the name that a model's file has in its own package."""
    start = model[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{"):
        return "txt" if start.startswith(b"tree") else "onnx"
    return "ubj" if start[1:2] in (b"L", b"l", b"I", b"U", b"i") else "json"


def _dump(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _version() -> str:
    from . import __version__

    return __version__
