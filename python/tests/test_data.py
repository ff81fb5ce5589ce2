"""Tables in, the same tables out; and what is refused."""

from __future__ import annotations

import datetime
import decimal
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tyrex.data import Columns, Frame, Levels
from tyrex.errors import DataError

NAN = float("nan")


def texts(*cells: str | None) -> np.ndarray:
    return np.array(cells, dtype=object)


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


APPLICANTS = {
    "age": [25, 40, 31],
    "income": [1800.5, None, 950.0],
    "housing": ["rent", "own", None],
}
COLUMNS = [np.array([25, 40, 31]), np.array([1800.5, NAN, 950.0]), texts("rent", "own", None)]


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame(APPLICANTS),
        pd.DataFrame(APPLICANTS).convert_dtypes(),
        pd.DataFrame(APPLICANTS, dtype=object),
        pl.DataFrame(APPLICANTS),
        pl.LazyFrame(APPLICANTS),
        pa.table(APPLICANTS),
        pa.RecordBatch.from_pydict(APPLICANTS),
        APPLICANTS,
        [dict(zip(APPLICANTS, row)) for row in zip(*APPLICANTS.values())],
        Frame.of(APPLICANTS),
    ],
    ids=lambda data: type(data).__module__ + "." + type(data).__name__,
)
def test_every_container_gives_the_same_columns(data: Any) -> None:
    frame = Frame.of(data)
    assert frame.names == ["age", "income", "housing"]
    assert len(frame) == 3
    for column, expected in zip(frame.columns, COLUMNS):
        assert same(column, expected)
    assert len(Frame.of(data, names=["housing", "age"]).names) == 2


CATEGORY = pd.CategoricalDtype(["own", "rent", "free"], ordered=True)

PANDAS = {
    "int64": pd.Series([1, 2, 3]),
    "int8": pd.Series([1, 2, 3], dtype="int8"),
    "uint64": pd.Series([1, 2, 3], dtype="uint64"),
    "float32": pd.Series([1.5, NAN, 3], dtype="float32"),
    "bool": pd.Series([True, False, True]),
    "Int64": pd.Series([1, None, 3], dtype="Int64"),
    "Float64": pd.Series([1.5, None, 3], dtype="Float64"),
    "boolean": pd.Series([True, None, False], dtype="boolean"),
    "int64[pyarrow]": pd.Series([1, None, 3], dtype="int64[pyarrow]"),
    "bool[pyarrow]": pd.Series([True, None, False], dtype="bool[pyarrow]"),
    "string[pyarrow]": pd.Series(["a", None, "b"], dtype="string[pyarrow]"),
    "str": pd.Series(["a", None, "b"]),
    "object with None": pd.Series(["a", None, "b"], dtype=object),
    "object with NaN": pd.Series(["a", NAN, "b"], dtype=object),
    "object of numbers": pd.Series([1, None, 3], dtype=object),
    "category": pd.Series(["own", None, "rent"], dtype=CATEGORY),
    "category of numbers": pd.Series([3, 1, None], dtype=pd.CategoricalDtype([3, 1])),
    "category of intervals": pd.cut(pd.Series([1.0, 5.0, 9.0]), [0, 4, 10]),
    "sparse": pd.Series(pd.arrays.SparseArray([0.0, 1.0, 0.0])),
}


@pytest.mark.parametrize("name", PANDAS)
def test_pandas_types_come_back(name: str) -> None:
    data = pd.DataFrame({name: PANDAS[name]}, index=["x", "y", "z"])
    data[name] = PANDAS[name].to_numpy() if name == "str" else PANDAS[name].array
    frame = Frame.of(data)
    pd.testing.assert_frame_equal(frame.container(), data)
    pd.testing.assert_frame_equal(frame.rebuild(frame.columns), data.reset_index(drop=True))
    assert Frame.of(frame.container()).columns[0].dtype == frame.columns[0].dtype


POLARS = {
    "int": pl.Series([1, None, 3], dtype=pl.Int16),
    "float with null": pl.Series([1.5, None, 3.0], dtype=pl.Float32),
    "float with nan": pl.Series([1.5, NAN, 3.0]),
    "bool": pl.Series([True, None, False]),
    "text": pl.Series(["a", None, "b"]),
    "categorical": pl.Series(["own", None, "rent"], dtype=pl.Categorical),
    "enum": pl.Series(["own", None, "rent"], dtype=pl.Enum(["rent", "free", "own"])),
}


@pytest.mark.parametrize("name", POLARS)
def test_polars_types_come_back(name: str) -> None:
    data = pl.DataFrame({name: POLARS[name]})
    assert Frame.of(data).container().equals(data)
    assert Frame.of(data).container().schema == data.schema


ARROW = {
    "int": pa.array([1, None, 3], pa.int16()),
    "uint": pa.array([1, 2, 3], pa.uint8()),
    "float with null": pa.array([1.5, None, 3.0], pa.float32()),
    "float with nan": pa.array([1.5, NAN, 3.0]),
    "bool": pa.array([True, None, False]),
    "text": pa.array(["a", None, "b"], pa.large_string()),
    "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
    "dictionary of numbers": pa.array([7, None, 3]).dictionary_encode(),
}


@pytest.mark.parametrize("name", ARROW)
def test_arrow_types_come_back(name: str) -> None:
    data = pa.table({name: ARROW[name]})
    built = Frame.of(data).container()
    assert built.schema == data.schema
    assert built.column(0).to_pylist() == pytest.approx(data.column(0).to_pylist(), nan_ok=True)


def test_levels_are_known_where_the_container_knows_them() -> None:
    pandas = Frame.of(pd.DataFrame({"c": PANDAS["category"]}))
    assert pandas.levels == {"c": Levels(["own", "rent", "free"], ordered=True)}
    numbers = Frame.of(pd.DataFrame({"c": PANDAS["category of numbers"]}))
    assert numbers.levels == {"c": Levels([3, 1])}
    assert same(numbers.columns[0], np.array([3.0, 1.0, NAN]))
    intervals = Frame.of(pd.DataFrame({"c": PANDAS["category of intervals"]}))
    assert intervals.levels["c"].values == ["(0, 4]", "(4, 10]"]
    assert Frame.of(pl.DataFrame({"c": POLARS["enum"]})).levels["c"].values == [
        "rent",
        "free",
        "own",
    ]
    assert Frame.of(pl.DataFrame({"c": POLARS["categorical"]})).levels["c"].values == [
        "own",
        "rent",
    ]
    # Chunks of one arrow column may each have a dictionary of their own.
    chunks = pa.chunked_array([ARROW["dictionary"], pa.array(["c", "a"]).dictionary_encode()])
    frame = Frame.of(pa.table({"c": chunks}))
    assert frame.levels["c"].values == ["a", "b", "c"]
    assert same(frame.columns[0], texts("a", None, "b", "c", "a"))
    assert frame.select(["c"]).levels == frame.levels


def test_one_row() -> None:
    row = pd.DataFrame(APPLICANTS, index=["x", "y", "z"]).loc["y"]
    frame = Frame.of(row)
    assert [column.tolist() for column in frame.columns[::2]] == [[40], ["own"]]
    assert list(frame.index) == ["y"]
    assert list(frame.container().columns) == list(APPLICANTS)
    single = Frame.of({"age": 25, "housing": "rent", "income": None})
    assert len(single) == 1
    assert single.container()["housing"].tolist() == ["rent"]


def test_arrays() -> None:
    frame = Frame.of(np.arange(6).reshape(2, 3))
    assert frame.names == ["x0", "x1", "x2"]
    assert frame.container().dtype == np.float64
    assert Frame.of([[1, "a"], [2, None]], names=["n", "t"]).columns[1].tolist() == ["a", None]
    assert Frame.of([[1, "a"], [2, None]]).container().tolist() == [[1, "a"], [2, None]]
    masked = np.ma.masked_equal([[1, 2], [3, 9]], 9)
    assert same(Frame.of(masked).columns[1], np.array([2, NAN]))
    assert Frame.of(np.ones((2, 2), dtype=np.float16)).columns[0].dtype == np.float32
    assert Frame.of(np.array([["a", "b"]])).columns[0].tolist() == ["a"]


def test_a_table_that_only_speaks_arrow() -> None:
    class Relation:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return pa.table(APPLICANTS).__arrow_c_stream__(requested_schema)

    assert same(Frame.of(Relation()).columns[0], COLUMNS[0])


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        ([decimal.Decimal("1.5"), None], np.float64),
        ([2**70, 1], np.float64),
        ([np.int32(1), 2], np.int64),
        ([1, 2.5], np.float64),
        ([True, None], np.float64),
        ([pd.NA, "a", pd.NaT], object),
        ([None, None], object),
        ([np.str_("a"), "b"], object),
        (np.array([2**63 + 1, 1], dtype=np.uint64), np.float64),
    ],
)
def test_cells_of_many_types(column: Any, dtype: Any) -> None:
    assert Frame.of({"c": column}).columns[0].dtype == dtype


def test_rebuild_widens_what_does_not_fit() -> None:
    data = pd.DataFrame({"i": pd.Series([1, 2], dtype="int8"), "b": [True, False]})
    frame = Frame.of(data)
    built = frame.rebuild([np.array([1.5, 2.0]), np.array([1.0, 0.0])])
    assert built.dtypes.tolist() == [np.float64, bool]
    built = frame.rebuild([np.array([300, 2]), np.array([0.5, 0.0])])
    assert built.dtypes.tolist() == [np.int64, np.float64]
    for other in (pl.from_pandas(data), pa.Table.from_pandas(data)):
        built = Frame.of(other).rebuild([np.array([1.5, NAN]), np.array([1, 0])])
        assert str(built["i"][0]) == "1.5"
        assert Frame.of(built).columns[1].dtype == bool


def test_rebuild_takes_any_number_of_rows() -> None:
    frame = Frame.of(pd.DataFrame(APPLICANTS, index=[7, 8, 9]))
    assert frame.rebuild([column[:0] for column in frame.columns]).shape == (0, 3)
    assert frame.rebuild([np.tile(column, 4) for column in frame.columns]).shape == (12, 3)


def test_rebuild_refuses_other_shapes() -> None:
    frame = Frame.of(APPLICANTS)
    with pytest.raises(DataError, match="expected 3 columns, got 1"):
        frame.rebuild([np.ones(2)])
    with pytest.raises(DataError, match="same length"):
        frame.rebuild([np.ones(2), np.ones(2), np.ones(3)])
    categories = Frame.of(pd.DataFrame({"c": PANDAS["category"]}))
    with pytest.raises(DataError, match="column 'c', row 0: 'boat' is not one of 'own', 'rent'"):
        categories.rebuild([texts("boat")])


def test_column_labels_that_are_not_texts_come_back() -> None:
    data = pd.DataFrame([[1, 2], [3, 4]], columns=[0, 1])
    frame = Frame.of(data)
    assert frame.names == ["0", "1"]
    pd.testing.assert_frame_equal(frame.select(["1", "0"]).container(), data[[1, 0]])


DATES = pd.to_datetime(["2026-01-01", "2026-02-01"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.array(1.0), "array is 0-D; expected 2-D"),
        (np.ones(3), r"array is 1-D.*reshape\(1, -1\)"),
        (np.ones((2, 2, 2)), "array is 3-D"),
        ([[1, 2], [3]], "array is 1-D|cannot read"),
        (np.ones((0, 3)), "no rows"),
        (np.ones((3, 0)), "no columns"),
        ([], "no rows"),
        ({}, "no columns"),
        (pd.DataFrame(), "no columns"),
        (pd.DataFrame({"a": []}), "no rows"),
        (pl.DataFrame({"a": []}), "no rows"),
        (pa.table({"a": pa.array([], pa.int64())}), "no rows"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "same name: a;"),
        (pd.DataFrame([[1, 2]], columns=["1", 1]), "same name: 1;"),
        (pd.Series([1, 2], index=["a", "a"]), "same name: a;"),
        (np.array([[1.0, 2.0], [3.0, np.inf]]), "column 'x1', row 1: the value is infinite"),
        (pd.DataFrame({"a": [1.0, -np.inf]}), "column 'a', row 1: the value is infinite"),
        (np.ones((1, 1), dtype=complex), "complex numbers"),
        ({"a": [1j]}, r"1j \(complex\); expected cells of one kind"),
        ({"a": [1, "b"]}, r"column 'a' holds 1 \(int\), 'b' \(str\); expected"),
        ({"a": [True, 2]}, r"True \(bool\), 2 \(int\)"),
        ({"a": [[1], [2]]}, "column 'a': expected a sequence of cells"),
        ({"a": [1, 2], "b": [1]}, "different lengths: 1, 2"),
        ({"a": [1, 2], "b": 1}, "column 'b': expected a sequence"),
        ([{"a": [1]}], "expected cells of one kind"),
        ({"a": [b"x"]}, "bytes"),
        (np.array([[b"x"]]), "bytes"),
        (pd.DataFrame({"a": DATES}), "column 'a' holds dates or times; turn it into a number"),
        (pd.DataFrame({"a": DATES.tz_localize("UTC")}), "dates or times"),
        (pd.DataFrame({"a": DATES.astype("category")}), "dates or times"),
        (pd.DataFrame({"a": DATES - DATES[0]}), "dates or times"),
        (pl.DataFrame({"a": [datetime.date(2026, 1, 1)]}), "dates or times"),
        (pl.DataFrame({"a": [datetime.time(1)]}), "dates or times"),
        (pa.table({"a": [datetime.datetime(2026, 1, 1)]}), "dates or times"),
        ({"a": [datetime.date(2026, 1, 1)]}, "dates or times"),
        (pl.DataFrame({"a": [[1, 2]]}), "column 'a'"),
        (pa.table({"a": [{"b": 1}]}), "column 'a'"),
        (pl.Series([1]), "Series is not a table"),
        (pa.array([1]), "Array is not a table"),
        ("credit.csv", "str is not a table; expected a pandas or polars"),
        (Path("credit.csv"), "is not a table"),
        (None, "NoneType is not a table"),
        (42, "int is not a table"),
    ],
)
def test_what_is_not_a_table_of_numbers_and_texts(data: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Frame.of(data)


@pytest.mark.parametrize("build", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_columns_that_are_not_asked_for_may_be_anything(build: Any) -> None:
    data = build({"day": [datetime.date(2026, 1, 1)], "age": [25], "limit": [np.inf]})
    frame = Frame.of(data, names=["age"])
    assert (frame.names, frame.matrix().tolist()) == (["age"], [[25.0]])
    assert Frame.of(frame, names=["age"]).names == ["age"]
    with pytest.raises(DataError, match="no column 'agee'; did you mean 'age'"):
        Frame.of(data, names=["agee"])
    row = {"day": datetime.date(2026, 1, 1), "age": 25}
    for rows in (row, [row], pd.Series(row)):
        assert Frame.of(rows, names=["age"]).matrix().tolist() == [[25.0]]
    twice = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "b"])
    assert Frame.of(twice, names=["a"]).names == ["a"]
    with pytest.raises(DataError, match="same name: b"):
        Frame.of(twice, names=["b"])
    with pytest.raises(DataError, match="same name: a"):
        Frame.of(np.ones((1, 2)), names=["a", "a"])


def test_sparse_matrices_are_told_what_to_do() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(DataError, match=r"turn it into an array with .toarray\(\)"):
        Frame.of(sparse.eye(3))


def test_names() -> None:
    with pytest.raises(DataError, match="the array has 3 columns, but there are 2 names"):
        Frame.of(np.ones((2, 3)), names=["a", "b"])
    frame = Frame.of(APPLICANTS)
    with pytest.raises(DataError, match="no column 'Age'; did you mean 'age'"):
        frame.select(["Age"])
    with pytest.raises(DataError, match="no columns 'zip', 'q'; it has 'age', 'income', 'housing'"):
        frame.select(["zip", "q"])
    with pytest.raises(DataError, match=r"column 'housing' holds texts \('rent'\)"):
        frame.matrix()
    assert frame.select(["income", "age"]).matrix().shape == (3, 2)


def test_frames_are_pickled() -> None:
    for data in (pd.DataFrame(PANDAS), pl.DataFrame(POLARS), pa.table(ARROW), np.ones((2, 2))):
        frame = Frame.of(data)
        again = pickle.loads(pickle.dumps(frame))
        assert all(map(same, again.columns, frame.columns))
        assert type(again.container()) is type(frame.container())


@pytest.mark.parametrize("build", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_reading_is_quick(build: Any) -> None:
    values = np.random.default_rng(0).normal(size=(40, 20_000))
    data = build({f"f{i}": column for i, column in enumerate(values)})
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        Frame.of(data).matrix()
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.1


# Results


def table() -> Columns:
    return Columns(
        {
            "row": np.arange(3),
            "stability": [0.81234, NAN, 0.5],
            "verdict": ["certified", None, "<vacuous>"],
            "valid": [True, False, True],
        }
    )


def test_results_read_as_a_mapping() -> None:
    results = table()
    assert list(results) == ["row", "stability", "verdict", "valid"]
    assert results.shape == (3, 4)
    assert len(results.rows) == 3
    assert results.rows[2]["verdict"] == "<vacuous>"
    assert results.stability is results["stability"]
    assert "stability" in dir(results)
    with pytest.raises(AttributeError, match="no column or attribute 'cost'"):
        _ = results.cost
    with pytest.raises(ValueError, match="read-only"):
        results["row"][0] = 5
    with pytest.raises(TypeError):
        results["row"] = np.arange(3)  # type: ignore[index]


def test_results_are_values() -> None:
    assert pickle.loads(pickle.dumps(table())) == table()
    assert table() != Columns({"row": np.arange(3)})
    assert table() != "table"
    with pytest.raises(DataError, match="same length"):
        Columns({"a": [1], "b": [1, 2]})
    with pytest.raises(DataError, match="2 dimensions"):
        Columns({"a": np.ones((2, 2))})


def test_results_leave_an_array_writable() -> None:
    mine = np.arange(3)
    Columns({"a": mine})
    mine[0] = 7


def test_results_as_other_tables() -> None:
    results = table()
    assert results.to_pandas()["verdict"].tolist()[0] == "certified"
    assert results.to_polars().schema["verdict"] == pl.String
    assert results.to_polars()["valid"].to_list() == [True, False, True]
    assert results.to_arrow().schema.field("stability").type == pa.float64()
    assert results.to_arrow()["verdict"].null_count == 1
    frame = results.to_pandas()
    frame.loc[0, "row"] = 9
    assert results["row"][0] == 0


def test_results_as_text() -> None:
    assert repr(table()).splitlines() == [
        "row  stability  verdict    valid",
        "  0     0.8123  certified  yes",
        "  1                        no",
        "  2        0.5  <vacuous>  yes",
    ]
    assert repr(Columns({"a": range(12)})).endswith("... and 2 more rows")
    assert "&lt;vacuous&gt;" in table()._repr_html_()
    assert repr(Columns({})) == "a table without columns"
