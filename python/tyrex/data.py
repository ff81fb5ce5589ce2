"""Tables of any kind as named columns."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .cells import (
    Array,
    Levels,
    as_category,
    as_column,
    first_missing,
    holds,
    missing_cells,
    with_gaps,
)
from .columns import Columns
from .errors import DataError, need
from .text import listed

__all__ = ["Columns", "Frame", "Levels"]


@dataclass(frozen=True)
class Origin:
    """The type of a column in its original container."""

    label: Any
    dtype: Any = None
    # The numpy type of its numbers, None for texts and for what is not to be restored.
    numbers: np.dtype[Any] | None = None
    # The original marker of missing values.
    missing: Any = None


@dataclass(frozen=True, eq=False)
class Frame:
    """A table in memory: named columns, and how to build the container they came in.

    Columns are 1-D: float64, float32, int64 or bool, or objects that are `str` or None.
    A missing number is NaN, a missing text None.

    >>> frame = Frame.of({"age": [25, 40], "housing": ["rent", None]})
    >>> frame.names, len(frame)
    (['age', 'housing'], 2)
    >>> frame.columns
    [array([25, 40]), array(['rent', None], dtype=object)]
    """

    names: list[str]
    columns: list[Array]
    levels: dict[str, Levels]
    index: Any
    kind: str
    origins: list[Origin]

    @classmethod
    def of(cls, data: Any, names: Sequence[str] | None = None) -> Frame:
        """Reads pandas, polars, pyarrow, numpy, a dict of columns, or one row or a list of rows as
        dicts.

        `names` gives the columns of an array their names (x0, x1, ... without). Of any other table
        only the columns of these names are read, in this order.

        >>> Frame.of(np.eye(2)).names
        ['x0', 'x1']
        """
        frame = _read(data, None if names is None else list(names))
        if not frame.names:
            raise DataError("the table has no columns")
        if len(frame) == 0:
            raise DataError("the table has no rows")
        for name, column in zip(frame.names, frame.columns):
            if column.dtype.kind == "f" and np.isinf(column).any():
                row = int(np.isinf(column).argmax())
                raise DataError(
                    f"column '{name}', row {row}: the value is infinite; "
                    "expected a finite number or a missing value"
                )
        return frame

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def select(self, names: Iterable[str]) -> Frame:
        """The columns of these names, in this order.

        >>> frame = Frame.of({"age": [25], "income": [1800.0]})
        >>> frame.select(["income"]).names
        ['income']
        >>> frame.select(["incone"])
        Traceback (most recent call last):
        tyrex.errors.DataError: the data has no column 'incone'; did you mean 'income'?
        """
        names = list(names)
        chosen = _places(self.names, names)
        return Frame(
            names,
            [self.columns[place] for place in chosen],
            {name: self.levels[name] for name in names if name in self.levels},
            self.index,
            self.kind,
            [self.origins[place] for place in chosen],
        )

    def matrix(self) -> Array:
        """All columns as one float64 matrix, rows by columns.

        >>> Frame.of({"age": [25, 40], "owner": [True, False]}).matrix()
        array([[25.,  1.],
               [40.,  0.]])
        """
        for name, column in zip(self.names, self.columns):
            if column.dtype.kind == "O":
                example = next((value for value in column if value is not None), None)
                raise DataError(
                    f"column '{name}' holds texts ({example!r}); expected numbers in every column"
                )
        matrix = np.empty((len(self), len(self.names)), dtype=np.float64)
        for place, column in enumerate(self.columns):
            matrix[:, place] = column
        return matrix

    def rebuild(self, columns: Sequence[Array]) -> Any:
        """Other rows in the container this table came in, with its names and types.

        Arrays give a float64 matrix. Whole numbers that come as fractions become floats.

        >>> Frame.of([{"age": 25, "housing": "rent"}]).rebuild(
        ...     [np.array([26.5]), np.array(["own"], dtype=object)]
        ... )
        [{'age': 26.5, 'housing': 'own'}]
        """
        columns = [np.asarray(column) for column in columns]
        if len(columns) != len(self.names):
            raise DataError(f"expected {len(self.names)} columns, got {len(columns)}")
        if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
            raise DataError("expected 1-D columns of the same length")
        return _BUILDERS[self.kind](self, columns)

    def container(self) -> Any:
        """The table itself, in the container it came in, with the labels of its rows."""
        built = self.rebuild(self.columns)
        if self.kind == "pandas" and self.index is not None:
            built.index = self.index
        return built


def _places(columns: list[str], names: list[str] | None) -> list[int]:
    """The positions of the columns of these names, or of all; each must exist once."""
    wanted = columns if names is None else names
    places = {name: place for place, name in enumerate(columns)}
    absent = [name for name in wanted if name not in places]
    if absent:
        raise DataError(_absent(absent, columns))
    counts = Counter(columns)
    twice = [name for name in places if counts[name] > 1 and name in wanted]
    if twice:
        raise DataError(f"columns with the same name: {listed(twice)}; names must differ")
    return [places[name] for name in wanted]


def _absent(absent: list[str], names: list[str]) -> str:
    # Similar names are the best hint; without any, all names.
    hints = [difflib.get_close_matches(str(name), names, n=1) for name in absent]
    what = "column" if len(absent) == 1 else "columns"
    wanted = listed(repr(str(name)) for name in absent)
    near = [repr(hint[0]) for hint in hints if hint]
    rest = f"did you mean {listed(near)}?" if near else f"it has {listed(map(repr, names), 12)}"
    return f"the data has no {what} {wanted}; {rest}"


# Reading


def _read(data: Any, names: list[str] | None) -> Frame:
    if isinstance(data, Frame):
        return data if names is None else data.select(names)
    packages = {kind.__module__.partition(".")[0] for kind in type(data).__mro__}
    for package, read in _READERS.items():
        if package in packages:
            return read(data, names)
    if isinstance(data, Mapping):
        return _from_mapping(data, names)
    if isinstance(data, (list, tuple)):
        if data and all(isinstance(row, Mapping) for row in data):
            return _from_records(data, names)
        return _from_array(np.array(data, dtype=object) if data else np.empty((0, 1)), names)
    if hasattr(data, "__arrow_c_stream__"):
        return _from_arrow(need("pyarrow", "to read this table").table(data), names)
    if hasattr(data, "__dataframe__"):
        interchange = need("pyarrow.interchange", "to read this table")
        return _from_arrow(interchange.from_dataframe(data), names)
    if hasattr(data, "__array__"):
        return _from_array(data, names)
    raise _no_table(data)


def _no_table(data: Any) -> DataError:
    hint = "; turn it into an array with .toarray()" if hasattr(data, "toarray") else ""
    return DataError(
        f"{type(data).__name__} is not a table{hint}; expected a pandas or polars DataFrame, "
        "a pyarrow Table, a 2-D numpy array, a dict of columns, or rows as dicts"
    )


def _from_pandas(data: Any, names: list[str] | None) -> Frame:
    pandas = need("pandas", "to read this table")
    if isinstance(data, pandas.Series):
        data = data.iloc[_places([str(label) for label in data.index], names)]
        cells = zip(map(str, data.index), data.to_numpy(dtype=object))
        row = [(name, as_column(name, _cell(value))) for name, value in cells]
        origins = [Origin(label) for label in data.index]
        index = pandas.Index([data.name])
        return Frame([n for n, _ in row], [c for _, c in row], {}, index, "pandas", origins)
    if not isinstance(data, pandas.DataFrame):
        raise _no_table(data)
    data = data.iloc[:, _places([str(label) for label in data.columns], names)]
    names = [str(label) for label in data.columns]
    columns, levels, origins = [], {}, []
    for name, (label, series) in zip(names, data.items()):
        dtype = series.dtype
        if isinstance(dtype, pandas.CategoricalDtype):
            codes = series.cat.codes.to_numpy()
            levels[name], column = as_category(name, list(dtype.categories), dtype.ordered, codes)
            origin = Origin(label, dtype)
        elif isinstance(dtype, np.dtype):
            values = series.to_numpy()
            column = as_column(name, values)
            numeric = dtype if dtype.kind in "biuf" else None
            missing = first_missing(values, column) if dtype.kind == "O" else None
            origin = Origin(label, dtype, numeric, missing)
        elif dtype.kind in "biuf":
            numeric = np.dtype(getattr(dtype, "numpy_dtype", dtype.type))
            if series.isna().any():
                column = series.to_numpy(dtype=np.float64, na_value=np.nan)
            else:
                column = series.to_numpy(dtype=numeric)
            column, origin = as_column(name, column), Origin(label, dtype, numeric)
        else:
            column = as_column(name, series.to_numpy(dtype=object))
            origin = Origin(label, dtype)
        columns.append(column)
        origins.append(origin)
    return Frame(names, columns, levels, data.index, "pandas", origins)


def _from_polars(data: Any, names: list[str] | None) -> Frame:
    polars = need("polars", "to read this table")
    if isinstance(data, polars.LazyFrame):
        data = data.collect()
    if not isinstance(data, polars.DataFrame):
        raise _no_table(data)
    columns, levels, origins = [], {}, []
    names = [data.columns[place] for place in _places(data.columns, names)]
    for series in data.select(names).get_columns():
        name, dtype = series.name, series.dtype
        missing = None if series.null_count() else np.nan
        if isinstance(dtype, (polars.Enum, polars.Categorical)):
            # A Categorical may share its values with other columns; those seen are its levels.
            seen = isinstance(dtype, polars.Categorical)
            words = series.cast(polars.String).unique().drop_nulls().sort() if seen else None
            values = (dtype.categories if words is None else words).to_list()
            places = series.cast(polars.String).cast(polars.Enum(values)).to_physical()
            codes = places.cast(polars.Int64).fill_null(-1).to_numpy()
            levels[name], column = as_category(name, values, False, codes)
            origin = Origin(name, dtype)
        elif dtype == polars.String:
            column = as_column(name, np.array(series.to_list(), dtype=object))
            origin = Origin(name, dtype)
        elif isinstance(dtype, polars.Decimal):
            column, origin = as_column(name, series.cast(polars.Float64).to_numpy()), Origin(name)
        elif dtype.is_numeric() or dtype == polars.Boolean:
            column = as_column(name, series.to_numpy())
            origin = Origin(name, dtype, polars.Series([], dtype=dtype).to_numpy().dtype, missing)
        else:
            column, origin = as_column(name, series.to_numpy()), Origin(name, dtype)
        columns.append(column)
        origins.append(origin)
    return Frame(names, columns, levels, None, "polars", origins)


def _from_arrow(data: Any, names: list[str] | None) -> Frame:
    arrow = need("pyarrow", "to read this table")
    if isinstance(data, arrow.RecordBatch):
        data = arrow.Table.from_batches([data])
    if not isinstance(data, arrow.Table):
        raise _no_table(data)
    data = data.select(_places(data.column_names, names))
    columns, levels, origins = [], {}, []
    for name, cells in zip(data.column_names, data.columns):
        dtype, missing = cells.type, None if cells.null_count else np.nan
        if arrow.types.is_dictionary(dtype):
            whole = cells.unify_dictionaries().combine_chunks()
            codes = whole.indices.fill_null(-1).to_numpy() if len(whole) else np.empty(0, np.int64)
            values = whole.dictionary.to_pylist()
            levels[name], column = as_category(name, values, dtype.ordered, codes)
            origin = Origin(name, dtype)
        elif arrow.types.is_decimal(dtype):
            column, origin = as_column(name, cells.cast(arrow.float64()).to_numpy()), Origin(name)
        else:
            column = as_column(name, cells.to_numpy())
            numeric = None
            if column.dtype.kind != "O" and not arrow.types.is_null(dtype):
                numeric = np.dtype(dtype.to_pandas_dtype())
            origin = Origin(name, dtype, numeric, missing)
        columns.append(column)
        origins.append(origin)
    return Frame(list(data.column_names), columns, levels, None, "arrow", origins)


def _from_array(data: Any, names: list[str] | None) -> Frame:
    try:
        if isinstance(data, np.ma.MaskedArray):
            data = np.ma.filled(data.astype(np.float64), np.nan)
        array = np.asarray(data)
    except (TypeError, ValueError, RuntimeError) as problem:
        raise DataError(f"cannot read the array: {problem}") from problem
    if array.ndim != 2:
        hint = "; for one row, use array.reshape(1, -1)" if array.ndim == 1 else ""
        raise DataError(f"the array is {array.ndim}-D; expected 2-D: rows and columns{hint}")
    names = [f"x{i}" for i in range(array.shape[1])] if names is None else names
    _places(names, None)
    if len(names) != array.shape[1]:
        raise DataError(f"the array has {array.shape[1]} columns, but there are {len(names)} names")
    turned = np.ascontiguousarray(array.T)
    columns = [as_column(name, column) for name, column in zip(names, turned)]
    return Frame(names, columns, {}, None, "array", [Origin(name) for name in names])


def _from_mapping(data: Mapping[Any, Any], names: list[str] | None) -> Frame:
    one_row = all(isinstance(value, str) or np.ndim(value) == 0 for value in data.values())
    labels = list(data)
    labels = [labels[place] for place in _places([str(label) for label in labels], names)]
    names = [str(label) for label in labels]
    cells = [_cell(data[n]) if one_row else _sequence(str(n), data[n]) for n in labels]
    lengths = {len(column) for column in cells}
    if len(lengths) > 1:
        raise DataError(f"columns of different lengths: {listed(map(str, sorted(lengths)))}")
    columns = [as_column(name, column) for name, column in zip(names, cells)]
    return Frame(names, columns, {}, None, "dict", [Origin(label) for label in labels])


def _from_records(data: Sequence[Mapping[Any, Any]], names: list[str] | None) -> Frame:
    labels = list(dict.fromkeys(label for row in data for label in row))
    labels = [labels[place] for place in _places([str(label) for label in labels], names)]
    names = [str(label) for label in labels]
    columns = []
    for name, label in zip(names, labels):
        cells = np.empty(len(data), dtype=object)
        cells[:] = [row.get(label) for row in data]
        columns.append(as_column(name, cells))
    return Frame(names, columns, {}, None, "records", [Origin(label) for label in labels])


def _cell(value: Any) -> Array:
    cell = np.empty(1, dtype=object)
    cell[0] = value
    return cell


def _sequence(name: str, values: Any) -> Array:
    if isinstance(values, str) or np.ndim(values) != 1:
        raise DataError(f"column '{name}': expected a sequence of cells, got {values!r:.40}")
    # A list of its own type would turn 1 beside "a" into "1".
    return np.array(values, dtype=object) if isinstance(values, list) else np.asarray(values)


# Building


def _to_pandas(frame: Frame, columns: list[Array]) -> Any:
    pandas = need("pandas", "to build a DataFrame")

    def built(name: str, column: Array, origin: Origin) -> Any:
        dtype = origin.dtype
        if name in frame.levels:
            codes = frame.levels[name].codes(name, column)
            return pandas.Categorical.from_codes(codes, dtype=dtype)
        if origin.numbers is not None:
            if not holds(origin.numbers, column):
                return column
            if isinstance(dtype, np.dtype):
                whole = dtype.kind == "f" or not missing_cells(column).any()
                return column.astype(dtype) if whole else column
            if dtype.kind != "f" and missing_cells(column).any():
                return pandas.array(with_gaps(column, origin.numbers), dtype=dtype)
            return pandas.array(column.astype(origin.numbers, copy=False), dtype=dtype)
        if isinstance(dtype, np.dtype):
            cells = column.astype(object)
            cells[missing_cells(column)] = origin.missing
            return cells
        texts = dtype is not None and column.dtype.kind == "O"
        return pandas.array(column, dtype=dtype) if texts else column

    arrays = map(built, frame.names, columns, frame.origins)
    table = pandas.DataFrame(dict(enumerate(arrays)))
    table.columns = pandas.Index([origin.label for origin in frame.origins])
    return table


def _to_polars(frame: Frame, columns: list[Array]) -> Any:
    polars = need("polars", "to build a DataFrame")

    def built(name: str, column: Array, origin: Origin) -> Any:
        if column.dtype.kind == "O" or name in frame.levels:
            return polars.Series(name, column.tolist(), dtype=origin.dtype or polars.String)
        if origin.numbers is None or not holds(origin.numbers, column):
            return polars.Series(name, column)
        if origin.numbers.kind != "f" and missing_cells(column).any():
            return polars.Series(name, with_gaps(column, origin.numbers), dtype=origin.dtype)
        values = column.astype(origin.numbers, copy=False)
        return polars.Series(name, values, dtype=origin.dtype, nan_to_null=origin.missing is None)

    return polars.DataFrame(list(map(built, frame.names, columns, frame.origins)))


def _to_arrow(frame: Frame, columns: list[Array]) -> Any:
    arrow = need("pyarrow", "to build a Table")

    def built(name: str, column: Array, origin: Origin) -> Any:
        if name in frame.levels:
            levels, dtype = frame.levels[name], origin.dtype
            codes = levels.codes(name, column)
            places = arrow.array(codes, type=dtype.index_type, mask=codes < 0)
            values = arrow.array(levels.values, type=dtype.value_type)
            return arrow.DictionaryArray.from_arrays(places, values, ordered=dtype.ordered)
        if column.dtype.kind == "O":
            return arrow.array(column.tolist(), type=origin.dtype)
        if origin.numbers is None or not holds(origin.numbers, column):
            return arrow.array(column)
        if origin.numbers.kind != "f" and missing_cells(column).any():
            return arrow.array(with_gaps(column, origin.numbers), type=origin.dtype)
        lost = missing_cells(column) if origin.missing is None else None
        return arrow.array(column.astype(origin.numbers), type=origin.dtype, mask=lost)

    arrays = map(built, frame.names, columns, frame.origins)
    return arrow.table(list(arrays), names=frame.names)


def _to_array(frame: Frame, columns: list[Array]) -> Any:
    texts = any(column.dtype.kind == "O" for column in columns)
    matrix = np.empty((len(columns[0]), len(columns)), dtype=object if texts else np.float64)
    for place, column in enumerate(columns):
        matrix[:, place] = column
    return matrix


def _to_dict(frame: Frame, columns: list[Array]) -> Any:
    return {origin.label: column for origin, column in zip(frame.origins, columns)}


def _to_records(frame: Frame, columns: list[Array]) -> Any:
    labels = [origin.label for origin in frame.origins]
    return [dict(zip(labels, row)) for row in zip(*(column.tolist() for column in columns))]


_READERS = {"pandas": _from_pandas, "polars": _from_polars, "pyarrow": _from_arrow}
_BUILDERS = {
    "pandas": _to_pandas,
    "polars": _to_polars,
    "arrow": _to_arrow,
    "array": _to_array,
    "dict": _to_dict,
    "records": _to_records,
}
