"""
The native half of the package.
"""

from _typeshed import Incomplete, SupportsGetItem
from os import PathLike
from typing import Any, Final, SupportsFloat, SupportsIndex, final

__all__ = ["__version__", "Batch", "Batches", "Batchwise", "Data", "Ensemble", "Explainer", "Model", "Network", "Retrained", "Schema", "Table", "change_words", "dataset_names", "defaults", "gate_html", "judge", "local_outlier_factors", "method_names", "record_answers", "retrained_member", "retraining_terms", "set_threads"]

__version__: Final[str]

@final
class Batch:
    """
    A record batch. Other packages read it by the Arrow `PyCapsule` interface.
    """
    def __arrow_c_array__(self, /, requested_schema: Any | None = None) -> tuple[Any, Any]:
        """
        The rows, for other packages.
        """
    def __arrow_c_schema__(self, /) -> Any:
        """
        The schema, for other packages.
        """
    def __len__(self, /) -> int: ...

@final
class Batches:
    """
    The batches of a table or a stream of another package, one after the other.
    """
    def __iter__(self, /) -> Batches: ...
    def __new__(cls, /, source: Any) -> Batches:
        """
        The batches of an object with `__arrow_c_array__` or `__arrow_c_stream__`.
        """
    def __next__(self, /) -> Batch: ...

@final
class Batchwise:
    """
    Work on batches, prepared once.
    """
    @staticmethod
    def adviser(explainer: Explainer, options: str, training: str | None = None, ensemble: Ensemble | None = None, models: tuple[str | None, SupportsGetItem[int, SupportsGetItem[int, SupportsGetItem[int, SupportsIndex]]]] | None = None, promises: tuple[str, str] | None = None, progress: Any | None = None) -> Batchwise:
        """
        A question. `models` are the sets of [`models`](Self::models), with what is known of the
        model's likeness to them, in place of models retrained now. `promises` are the end, `for-good`
        or a time, and the salt, if answers carry promises.
        """
    def answer(self, /, batch: Batch, first: SupportsIndex | None = None) -> Batch:
        """
        The lines of the rows of a batch, in their order. `first` is the number of the first row;
        without it rows have no numbers. The line of a row that cannot be read says so.
        """
    @staticmethod
    def answer_columns(explainer: Explainer, options: str, training: str | None = None, ensemble: Ensemble | None = None, promises: bool = False) -> Batch:
        """
        The columns of the answers to a question: a batch without rows.
        """
    @staticmethod
    def auditor(explainer: Explainer, options: str, ensemble: Ensemble | None = None) -> Batchwise:
        """
        Judgements of promises under a model.
        """
    @staticmethod
    def certifier(explainer: Explainer, ensemble: Ensemble | None, steered: bool | None, terms: str, seed: SupportsIndex) -> Batchwise:
        """
        Certificates of rows. `steered` says whether the search used the models of the ensemble.
        """
    def models(self, /) -> tuple[str | None, list[list[bytes]]] | None:
        """
        The models that were retrained for the question, to prepare it elsewhere: what is known of
        their likeness, and the files of each set. None if it has none.
        """
    @property
    def question(self, /) -> str:
        """
        The question, with its promise and its method, as JSON.
        """
    def renew(self, /, until: str) -> None:
        """
        Sets the end of the promises that answers carry from here on: `for-good` or a time.
        """
    def schema(self, /) -> Batch:
        """
        A batch without rows, with the columns of all answers.
        """
    @staticmethod
    def stability(explainer: Explainer, terms: str, seed: SupportsIndex) -> Batchwise:
        """
        Measures of stability.
        """

@final
class Data:
    """
    The rows of an explainer.
    """
    def __len__(self, /) -> int: ...
    @staticmethod
    def applicants(table: Table, schema: Schema) -> Data:
        """
        Rows of a table for an existing model: labels are optional.
        """
    @staticmethod
    def labelled(table: Table, schema: Schema) -> Data:
        """
        Rows of a table to train on: every row has a label.
        """
    @staticmethod
    def named(name: str, variant: str = "product", data_dir: str | PathLike[str] | None = None) -> Data:
        """
        A data set of the catalogue, with its own split: `product` or `reference`.
        """
    @staticmethod
    def of_parts(table: Table, schema: Schema, split: tuple[SupportsGetItem[int, SupportsIndex], SupportsGetItem[int, SupportsIndex]] | None) -> Data:
        """
        A data set from its parts: the rows of the table that train and those that test, or the split
        of the schema.
        """
    def own_split(self, /) -> tuple[list[int], list[int]] | None:
        """
        The split for `of_parts`.
        """
    @property
    def schema(self, /) -> Schema:
        """
        The schema.
        """
    def split(self, /) -> tuple[list[int], list[int]]:
        """
        The rows of the table that train, and those that test.
        """
    def table(self, /) -> Table:
        """
        The whole table, as read.
        """

@final
class Ensemble:
    """
    A base model and many changed versions of it.
    """
    def __len__(self, /) -> int: ...
    def __new__(cls, /, contents: SupportsGetItem[int, SupportsGetItem[int, SupportsIndex]], plan: str) -> Ensemble:
        """
        An ensemble from the files of its models, the base first, and its plan.
        """
    @property
    def change(self, /) -> str:
        """
        The change of the models, in words.
        """
    def contents(self, /) -> list[bytes]:
        """
        The files of its models, the base first.
        """
    @staticmethod
    def given(explainer: Explainer, origin: str, models: SupportsGetItem[int, tuple[str, str | None, Retrained]]) -> Ensemble:
        """
        An ensemble of models that were retrained elsewhere: the name, the set and the model of
        each. `origin` says where they come from.
        """
    def observed_change(self, /, explainer: Explainer, rows: Table) -> str:
        """
        How far the models moved on the rows of a table, as JSON.
        """
    def plan(self, /) -> str:
        """
        How its models were made, as JSON.
        """
    @staticmethod
    def read(explainer: Explainer, folder: str | PathLike[str]) -> Ensemble:
        """
        Reads an ensemble of this explainer's model from its folder.
        """
    def score(self, /, explainer: Explainer, rows: Table) -> Incomplete:
        """
        The probability of the favourable class: a line per model, a column per row of the table.
        """
    @property
    def seed(self, /) -> int | None:
        """
        The seed of the models, if they were trained here.
        """
    def write(self, /, explainer: Explainer, folder: str | PathLike[str], overwrite: bool = False) -> None:
        """
        Writes every model into a folder, with the schema and the encoder.
        """

@final
class Explainer:
    """
    A model and its rows.
    """
    def calibrate(self, /, goal: str, taus: SupportsGetItem[int, SupportsFloat | SupportsIndex] | None, factuals: SupportsIndex | None, options: str, ensemble: Ensemble, progress: Any | None = None) -> str:
        """
        Chooses the threshold for a required validity, as JSON.
        """
    def certify(self, /, rows: Table, ensemble: Ensemble | None, searched: str | None, steered: bool | None, terms: str, seed: SupportsIndex, progress: Any | None = None) -> tuple[list[tuple[int, str]], int]:
        """
        A certificate for every row of a table that is not dropped, as JSON, each with its sentence,
        after its row, and the number of models that are left out, since they took part in the search.
        `searched` are those that the advice records, as JSON, or those in the column `parameters`;
        `steered` says whether the search used the models of the ensemble.
        """
    def ensemble_terms(self, /, change: str | None, change_params: str, models: SupportsIndex | None, params: str | None, seed: SupportsIndex) -> str:
        """
        The terms of an ensemble, as JSON, to make its models one by one.
        """
    def explain(self, /, rows: Table | None, options: str, by: SupportsGetItem[int, str], amount: str | None = None, limit: SupportsIndex | None = None, ensemble: Ensemble | None = None, training: str | None = None, progress: Any | None = None) -> tuple[str, list[float], bool]:
        """
        Advice for the rows of a table, or for the first own ones that are rejected: the document of
        the answer, the seconds each row took, and whether Ctrl-C ended the search. The ensemble is
        used for certificates and for `tau = auto`, in place of models trained now. `training` are
        training parameters that replace those of the model's recipe. The portfolio is also stated by
        the groups of `by` and weighted by the column `amount`.
        """
    @property
    def fingerprint(self, /) -> str:
        """
        The fingerprint of the model, which depends on its weights.
        """
    @property
    def is_searchable(self, /) -> bool:
        """
        Whether the model has gradients or is trees, so that searches other than those among data
        rows can run on it.
        """
    @property
    def kind(self, /) -> str:
        """
        `network`, `trees` or `function`.
        """
    def own_rows(self, /) -> list[int]:
        """
        For every own row that was kept, its row in the table.
        """
    def own_scores(self, /) -> Incomplete:
        """
        The probability of the favourable class, for every own row that was kept.
        """
    def performance(self, /) -> str:
        """
        The accuracy of the model, as JSON.
        """
    def rejected(self, /, part: str | None = None) -> list[int]:
        """
        The rows of the table that the model rejects, of a part: `train`, `test`, `all`, or the
        applicants.
        """
    def retrain(self, /, change: str | None, change_params: str, models: SupportsIndex | None, params: str | None, seed: SupportsIndex, progress: Any | None = None) -> Ensemble:
        """
        Retrains the network many times.
        """
    @property
    def schema(self, /) -> Schema:
        """
        The schema.
        """
    def score(self, /, rows: Table) -> tuple[list[int], Incomplete]:
        """
        The probability of the favourable class, for the rows of a table that are not dropped, and
        which rows those are.
        """
    @staticmethod
    def sets_for(promise: SupportsFloat | SupportsIndex | None, confidence: SupportsFloat | SupportsIndex | None) -> list[int]:
        """
        The numbers of models for a promise at a confidence, or for the default ones: to search over,
        to choose the margin, to certify with, and to compare the model in use with.
        """
    def stability(self, /, rows: Table | None, terms: str, seed: SupportsIndex, progress: Any | None = None) -> list[tuple[str, Any]]:
        """
        The measures of the rows of a table, or of the own applicants: a column for each.
        """
    def to_onnx(self, /) -> bytes:
        """
        The network as an ONNX file, with the schema and the encoder in its metadata.
        """
    @staticmethod
    def train(data: Data, params: str, seed: SupportsIndex, progress: Any | None = None) -> Explainer:
        """
        Trains a network on labelled rows.
        """
    def training_params(self, /) -> str:
        """
        How the model was trained or would be retrained, as JSON.
        """
    def training_rows(self, /) -> list[int]:
        """
        The rows of the table that trained the model: those that the schema names, or all.
        """
    @property
    def usual_method(self, /) -> str:
        """
        The default method.
        """
    def verify(self, /, certificates: str, ensemble: Ensemble | None = None, progress: Any | None = None) -> str:
        """
        Recomputes the certificates of a document and compares them, as JSON.
        """
    @staticmethod
    def with_function(data: Data, scores: Any, gradients: Any | None = None) -> Explainer:
        """
        A function of rows, and rows.
        """
    @staticmethod
    def with_model(data: Data, model: Model) -> Explainer:
        """
        An existing model and rows.
        """

@final
class Model:
    """
    An ONNX model.
    """
    def __new__(cls, /, source: SupportsGetItem[int, SupportsIndex] | str | PathLike[str], schema: Schema | None = None, *, class_number: SupportsIndex | None = None, class_name: str | None = None, logits: bool = False) -> Model:
        """
        A model from its file or from the bytes of it. With a schema, its favourable label selects
        the class by default. External data is read from the folder of the file.
        """
    @property
    def class_names(self, /) -> list[str] | None:
        """
        The names of the classes, if the file has them.
        """
    @property
    def columns(self, /) -> list[str] | None:
        """
        The names of its columns; None if they have none.
        """
    @property
    def schema(self, /) -> Schema | None:
        """
        The schema in its metadata, if tyrex wrote it.
        """

@final
class Network:
    """
    A stack of dense layers.
    """
    def __new__(cls, /, width: SupportsIndex, layers: SupportsGetItem[int, tuple[str, bytes, bytes]], output: str) -> Network:
        """
        A network from its pickled parts. An ONNX file would not be exact: its reader may merge
        equal neurons.
        """
    def __reduce__(self, /) -> tuple[type, tuple[int, list[tuple[str, bytes, bytes]], str]]: ...
    @property
    def fingerprint(self, /) -> str:
        """
        The fingerprint of the network, which depends on its weights.
        """
    @property
    def parameters(self, /) -> int:
        """
        The number of weights and biases.
        """
    def probabilities(self, /, points: Incomplete) -> Incomplete:
        """
        The probability of every class, a line per row. With one logit these are the two classes.
        """
    def to_onnx(self, /, favourable: SupportsIndex | None = None) -> bytes:
        """
        The network as an ONNX file for the probability of one class; of the last without a number.
        """
    @staticmethod
    def train(examples: tuple[Incomplete, Incomplete, Incomplete | None], params: str, seed: SupportsIndex, start: Network | None = None, progress: Any | None = None) -> tuple[Network, str, int]:
        """
        Trains a network on encoded rows, their labels and their weights, if they have any. `start`
        is a network to continue from. Returns the network, every epoch as JSON, and the epoch whose
        weights were kept.
        """
    @property
    def width(self, /) -> int:
        """
        The number of columns it takes.
        """

@final
class Retrained:
    """
    A retrained model, as a function of the points of the model in use.
    """
    @staticmethod
    def of_function(explainer: Explainer, scores: Any, gradients: Any | None = None) -> Retrained:
        """
        A function of rows, beside the model in use.
        """
    @staticmethod
    def of_model(explainer: Explainer, model: Model, raw: bool) -> Retrained:
        """
        A model that the native engine runs, beside the model in use. It takes raw columns, or else
        the columns that the explainer's schema names.
        """
    def own_scores(self, /, explainer: Explainer) -> Incomplete:
        """
        The probability of the favourable class, for every row of the explainer that was kept.
        """

@final
class Schema:
    """
    A schema: the meaning of the columns of a table.
    """
    def __new__(cls, /, toml: str) -> Schema:
        """
        A schema from its TOML.
        """
    def __reduce__(self, /) -> tuple[type, tuple[str]]: ...
    @property
    def favourable(self, /) -> list[str]:
        """
        The values of the label that count as favourable, as texts.
        """
    @property
    def features(self, /) -> list[str]:
        """
        The features, in the order of a row.
        """
    def for_raw_columns(self, /, passes: bool) -> Schema:
        """
        The same, for a model that takes the raw columns and encodes them itself; if `passes`, also
        missing numbers that would be levels.
        """
    @staticmethod
    def from_json(text: str) -> Schema:
        """
        A schema from the JSON that `to_json` gives.
        """
    @staticmethod
    def infer(table: Table, label: str | None, favourable: SupportsGetItem[int, str], kinds: SupportsGetItem[int, tuple[str, str, SupportsGetItem[int, str | SupportsFloat | SupportsIndex]]], features: SupportsGetItem[int, str] | None) -> tuple[Schema, list[tuple[str | None, str]]]:
        """
        A draft of a schema from a table, and remarks for a person to review, as `tyrex schema infer`
        writes it. `kinds` has the known kinds of columns: `numeric`, `integer`, `ordinal`,
        `categorical`, `flag` or `text`, and the levels; `features` the columns that a model takes.
        """
    @property
    def label(self, /) -> str:
        """
        The column to predict.
        """
    def levels(self, /, feature: str) -> list[str]:
        """
        The levels of a feature as texts; none for numbers.
        """
    @staticmethod
    def read(path: str | PathLike[str]) -> Schema:
        """
        Reads a schema file.
        """
    def to_json(self, /) -> str:
        """
        The schema as JSON.
        """
    def to_toml(self, /) -> str:
        """
        The schema as TOML.
        """

@final
class Table:
    """
    Named columns of text, as a file has them. An empty cell is a missing one.
    """
    def __len__(self, /) -> int: ...
    def __new__(cls, /, source: str, names: SupportsGetItem[int, str], columns: SupportsGetItem[int, Any]) -> Table:
        """
        A table from columns: numpy arrays of numbers, or lists of texts and None.
        """
    def columns(self, /) -> list[Any]:
        """
        The columns: an array of int64 or float64 where all cells are numbers, with NaN for
        missing ones; else a list of texts and None.
        """
    @property
    def names(self, /) -> list[str]:
        """
        The names of the columns.
        """
    @staticmethod
    def of_csv(source: str | PathLike[str], content: SupportsGetItem[int, SupportsIndex]) -> Table:
        """
        A table from the CSV that `to_csv` gives; `source` names it in errors.
        """
    @staticmethod
    def read(path: str | PathLike[str]) -> Table:
        """
        Reads a file: .csv, .jsonl, .ndjson or .parquet.
        """
    @property
    def source(self, /) -> str:
        """
        The file that it was read from, or another name.
        """
    def to_csv(self, /) -> bytes:
        """
        The cells as they are, as CSV.
        """

def change_words(feature: str, before: str | SupportsFloat | SupportsIndex | None, after: str | SupportsFloat | SupportsIndex | None, unit: str | None = None) -> dict[str, str]:
    """
    A change in words: `from`, `to` and `clause`.
    """

def dataset_names() -> list[str]:
    """
    The names of the data sets.
    """

def defaults() -> str:
    """
    The defaults of the library that signatures of the package show, as JSON.
    """

def gate_html(report: str) -> str:
    """
    The gate's report as a page of HTML.
    """

def judge(candidates: SupportsGetItem[int, tuple[str, Explainer]], promises: str, options: str, by: SupportsGetItem[int, str], allow: SupportsFloat | SupportsIndex | None = None, confidence: SupportsFloat | SupportsIndex | None = None, ensemble: Ensemble | None = None, progress: Any | None = None) -> tuple[str, bool]:
    """
    Audits promises under candidates, the best candidate first: the gate's report as JSON, and
    whether Ctrl-C ended the search for repairs.
    """

def local_outlier_factors(training: Incomplete, points: Incomplete, neighbours: SupportsIndex) -> Incomplete:
    """
    The local outlier factor of every point among the training points.
    """

def method_names() -> list[str]:
    """
    The names of the methods.
    """

def record_answers(ledger: str, files: SupportsGetItem[int, str | PathLike[str]], subject: str, progress: Any | None = None) -> str:
    """
    Records the promises in files of answers: the counts and the head of the ledger, as JSON.
    """

def retrained_member(explainer: Explainer, terms: str, index: SupportsIndex) -> bytes:
    """
    The file of one of the models of these terms, by its index. It has the same bits as the one that
    is made with all others.
    """

def retraining_terms(explainer: Explainer, options: str, training: str | None = None) -> list[tuple[int, str]]:
    """
    The terms of the models that are retrained for a question: for each set the number of models, and
    the terms as JSON.
    """

def set_threads(threads: SupportsIndex) -> None:
    """
    Sets how many threads work; as many as the machine has cores if this is never called. The
    results do not depend on it.
    """
