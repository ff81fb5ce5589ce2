"""Explanations as a sequence, tables, text, HTML, JSON and pictures."""

from __future__ import annotations

import copy
import dataclasses
import html.parser
import json
import pickle
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from tyrex.errors import DataError, ParameterError
from tyrex.explanations import Change, Explanation, Explanations

matplotlib.use("Agg")

CERTIFICATE = {
    "tiers": [
        {"tier": "theorem", "verdict": "vacuous"},
        {"tier": "ensemble", "verdict": "certified"},
    ],
    "sentence": "18 of 20 retrained models keep this point valid (certified). This rests on: luck.",
}
FOUND = {
    "row": 0,
    "score": 0.31,
    "label": "bad",
    "favourable": False,
    "features": {"age": 25, "income": 1800.0, "housing": "rent", "owner": False},
    "sentence": "Raise age from 25 to 27 years and change housing from `rent` to `own`.",
    "advice": {
        "status": "found",
        "changes": [
            Change("age", 25, 27, "years").to_dict(),
            Change("housing", "rent", "own").to_dict(),
        ],
        "counterfactual": {"age": 27, "income": 1800.0, "housing": "own", "owner": False},
        "score": 0.83,
        "stability": 0.81,
        "usual": 0.34,
        "cost": {"l1": 0.2, "l2": 0.1},
        "stopped": "converged",
        "certificate": CERTIFICATE,
    },
}
NOT_FOUND = {
    "row": 1,
    "score": 0.02,
    "label": None,
    "favourable": None,
    "features": {"age": 60, "income": 12.5, "housing": None, "owner": True},
    "sentence": "No advice: the search found no allowed change.",
    "advice": {
        "status": "not_found",
        "reason": "stuck",
        "sentence": "the search found no allowed change",
        "relaxations": {
            "helpful": [{"constraint": {"feature": "age"}, "breaks": [{"found": "`50`"}]}],
            "tried": 3,
            "untried": 0,
        },
        "rules": "age may not change: with 50 among the changes the search finds advice",
    },
}
THIRD = {
    **FOUND,
    "row": 2,
    "score": 0.4,
    "advice": {
        **FOUND["advice"],
        "changes": [{"feature": "income", "from": 1800.0, "to": 1500.25}],
        "counterfactual": {"age": 25, "income": 1500.25, "housing": "rent", "owner": False},
        "certificate": None,
    },
}
REQUEST = {"method": "trex-i", "tau": 0.8, "norm": "l2", "seed": 7}


def explanations(**others: Any) -> Explanations:
    settings = {"request": REQUEST, "fingerprint": "abc", **others}
    return Explanations.of([FOUND, NOT_FOUND, THIRD], **settings)


def many(count: int) -> Explanations:
    return Explanations.of([{**FOUND, "row": row} for row in range(count)], request=REQUEST)


def test_it_is_a_sequence() -> None:
    all_of_them = explanations()
    assert len(all_of_them) == 3
    assert [e.row for e in all_of_them] == [0, 1, 2]
    assert all_of_them[-1].row == 2
    assert isinstance(all_of_them[1:], Explanations)
    assert [e.row for e in all_of_them[::-1]] == [2, 1, 0]
    assert all_of_them[1:].request == REQUEST
    assert all_of_them[1] in all_of_them
    assert all_of_them.index(all_of_them[2]) == 2
    with pytest.raises(IndexError):
        all_of_them[3]


def test_what_was_found_and_what_not() -> None:
    all_of_them = explanations()
    assert [e.row for e in all_of_them.found] == [0, 2]
    (missing,) = all_of_them.not_found
    assert (missing.reason, missing.why) == ("stuck", "the search found no allowed change")
    assert missing.counterfactual is None
    assert all_of_them.certificates == [CERTIFICATE, None, None]
    assert [e.verdict for e in all_of_them] == ["certified", None, None]


def test_they_are_values() -> None:
    one = explanations(index=["a", "b", "c"])
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other == one
        assert other[0] == one[0]
        assert repr(other) == repr(one)
    assert one != explanations(fingerprint="other")
    assert one != [*one]
    with pytest.raises(dataclasses.FrozenInstanceError):
        one[0].score = 1.0  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        one[0].changes[0].after = 1  # type: ignore[misc]


def test_a_document_without_the_row_itself() -> None:
    advice = {k: v for k, v in FOUND["advice"].items() if k not in ("counterfactual", "seconds")}
    explanation = Explanation.of({**FOUND, "advice": advice})
    assert explanation.counterfactual == FOUND["advice"]["counterfactual"]
    assert explanation.seconds is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (Change("age", 25, 27, "years"), "raise age from 25 to 27 years"),
        (Change("debt", 9055.5, 0.0, "DM"), "lower debt from 9055.5 to 0 DM"),
        (Change("housing", "rent", "own"), "change housing from `rent` to `own`"),
        (Change("owner", False, True), "change owner from `false` to `true`"),
        (Change("income", None, 1800), "provide income: 1800"),
        (Change("income", 1800, None), "leave out income, now 1800"),
        (Change("income", np.nan, np.float32(0.5)), "provide income: 0.5"),
        (Change("grade", 1, "B"), "change grade from 1 to `B`"),
    ],
)
def test_changes_as_words(change: Change, sentence: str) -> None:
    assert str(change) == sentence


def test_advice_as_sentences() -> None:
    found, missing, _ = explanations(index=["Ann", "Bo", "Cy"])
    assert str(found) == (
        "Row Ann (score 0.31): Raise age from 25 to 27 years and change housing from `rent` to "
        "`own`. Then the score is 0.83 and the stability 0.81."
    )
    assert str(missing) == (
        "Row Bo (score 0.02): No advice: the search found no allowed change.\n"
        "age may not change: with 50 among the changes the search finds advice"
    )


def test_what_retrained_models_say_is_the_second_line() -> None:
    said = "9 of 9 retrained models accept the applicant without any change."
    judged = {**FOUND, "unchanged": {"accepting": 9, "models": 9}, "retraining": said}
    assert str(Explanations.of([judged])[0]).splitlines()[1:] == [said]
    assert Explanations.of([judged])[0].to_dict() == judged


def test_text() -> None:
    assert repr(explanations()).splitlines() == [
        "3 explanations by trex-i with cost in l2, stability at least 0.8: 2 found, 1 not found",
        "row  score           stability   cost  what to change",
        "  0  0.310 -> 0.830      0.810  0.100  age: 25 -> 27 years",
        "                                       housing: rent -> own",
        "  1  0.020                             not found: the search found no allowed change",
        "  2  0.400 -> 0.830      0.810  0.100  income: 1800 -> 1500.25",
    ]
    assert repr(many(14)).endswith("... and 4 more")
    assert repr(Explanations([])) == "0 explanations: 0 found"
    assert explanations(interrupted=True).summary.endswith("; stopped before the end")
    nested = explanations(request={"method": {"method": "trex-o", "steps": 60}, "norm": "l1"})
    assert nested.summary.startswith("3 explanations by trex-o with cost in l1: 2 found")
    # Any terminal can print it.
    repr(explanations()).encode("ascii")


def test_long_advice_is_cut() -> None:
    changes = [{"feature": f"f{i}", "from": 0, "to": 1} for i in range(12)]
    advice = {**FOUND["advice"], "changes": changes}
    assert "and 4 more" in repr(Explanations.of([{**FOUND, "advice": advice}]))


POINT = {
    **FOUND,
    "sentence": "The answer is a point, not a row: 2 of 3 encoded columns change.",
    "advice": {
        **FOUND["advice"],
        "changes": [],
        "counterfactual": {"age": 0.3, "housing=own": 1.0},
    },
}


def test_points_in_encoded_columns() -> None:
    points = Explanations.of([POINT])
    assert "a point in encoded columns" in repr(points)
    assert "a point in encoded columns" in points._repr_html_()
    assert list(points.to_pandas().columns)[:2] == ["age", "housing=own"]
    assert str(points[0]).startswith("Row 0 (score 0.31): The answer is a point, not a row: 2 of 3")
    with pytest.raises(ParameterError, match="no changes to draw"):
        points.plot(0)


RESULTS = ["score", "stability", "usual", "cost_l1", "cost_l2", "changed", "status", "reason"]


def test_pandas() -> None:
    table = explanations().to_pandas()
    assert list(table.columns) == ["age", "income", "housing", "owner", *RESULTS]
    assert table.dtypes["age"] == "Int64"
    assert table.dtypes["owner"] == "boolean"
    assert table["housing"].tolist()[::2] == ["own", "rent"]
    assert table["income"].tolist()[::2] == [1800.0, 1500.25]
    assert table.loc[1, ["age", "housing", "score", "changed"]].isna().all()
    assert table["status"].tolist() == ["found", "not_found", "found"]
    assert table["changed"].tolist()[::2] == [2, 1]
    found = explanations().found.to_pandas()
    assert found.dtypes[["age", "owner", "changed"]].tolist() == [np.int64, np.bool_, np.int64]


def test_pandas_with_changes_only() -> None:
    table = explanations().to_pandas(changes_only=True)
    assert table[["age", "income", "housing", "owner"]].notna().to_numpy().tolist() == [
        [True, False, True, False],
        [False, False, False, False],
        [False, True, False, False],
    ]
    assert table["score"].notna().tolist() == [True, False, True]


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(["x", "y", "z"], name="applicant"),
        pd.Index([7, 7, 7]),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["bank", "number"]),
        pd.date_range("2026-01-01", periods=3),
    ],
)
def test_pandas_gives_rows_their_labels_back(index: pd.Index) -> None:
    labelled = explanations(index=index)
    pd.testing.assert_index_equal(labelled.to_pandas().index, index, exact=False)
    pd.testing.assert_index_equal(labelled.found.to_pandas().index, index[::2], exact=False)
    assert labelled[2].label == index[2]
    assert labelled.styled().to_html()
    assert Explanations.from_json(labelled.to_json()).to_pandas().shape == (3, 12)


def test_styled_marks_what_changes() -> None:
    styled = explanations().styled()
    marked = {place for place, css in styled._compute().ctx.items() if any(v for _, v in css)}
    assert marked == {(0, 0), (0, 2), (2, 1)}
    assert "1500" in styled.to_html()


TYPES = {
    "row": (pl.Int64, pa.int64()),
    "age": (pl.Int64, pa.int64()),
    "income": (pl.Float64, pa.float64()),
    "housing": (pl.String, pa.string()),
    "owner": (pl.Boolean, pa.bool_()),
    "score": (pl.Float64, pa.float64()),
    "stability": (pl.Float64, pa.float64()),
    "usual": (pl.Float64, pa.float64()),
    "cost_l1": (pl.Float64, pa.float64()),
    "cost_l2": (pl.Float64, pa.float64()),
    "changed": (pl.Int64, pa.int64()),
    "status": (pl.String, pa.string()),
    "reason": (pl.String, pa.string()),
}


def test_polars_and_arrow() -> None:
    polars, arrow = explanations().to_polars(), explanations().to_arrow()
    assert dict(polars.schema) == {name: kinds[0] for name, kinds in TYPES.items()}
    assert {f.name: f.type for f in arrow.schema} == {n: kinds[1] for n, kinds in TYPES.items()}
    assert polars.to_dicts() == arrow.to_pylist()
    # Types do not depend on what was found.
    nothing = Explanations.of([{**NOT_FOUND, "features": FOUND["features"]}])
    assert nothing.to_arrow().schema == arrow.schema


@pytest.mark.parametrize(
    ("kind", "container"),
    [
        ("pandas", pd.DataFrame),
        ("polars", pl.DataFrame),
        ("arrow", pa.Table),
        ("array", pd.DataFrame),
    ],
)
def test_the_package_the_rows_came_in(kind: str, container: type) -> None:
    assert isinstance(explanations(kind=kind).to_frame(), container)


def test_features_named_like_results() -> None:
    document = copy.deepcopy(FOUND)
    document["features"] = {"score": 1, "row": 2}
    document["advice"]["counterfactual"] = {"score": 3, "row": 2}
    document["advice"]["changes"] = [{"feature": "score", "from": 1, "to": 3}]
    clash = Explanations.of([document])
    assert clash.to_pandas()["score"].tolist() == [3]
    assert clash.to_pandas()["tyrex_score"].tolist() == [0.83]
    assert clash.to_arrow().column_names[0] == "tyrex_row"
    marked = clash.styled()._compute().ctx
    assert {place for place, css in marked.items() if any(v for _, v in css)} == {(0, 0)}


def test_json_goes_round(tmp_path: Path) -> None:
    one = explanations(index=pd.Index(np.array([10, 20, 30])))
    document = json.loads(one.to_json(indent=2))
    assert document["format_version"] == 1
    assert document["request"] == REQUEST
    assert document["rows"][1] == NOT_FOUND
    assert document["rows"][0] == FOUND
    assert Explanations.from_json(one.to_json()) == one
    assert one.to_json(tmp_path / "advice.json") is None
    assert Explanations.from_json(tmp_path / "advice.json") == one
    assert Explanations.from_json(str(tmp_path / "advice.json"))[2].label == 30


def test_json_of_earlier_versions_is_read() -> None:
    document = json.loads(explanations().to_json())
    del document["seconds"]
    document["explanations"] = document.pop("rows")
    for each in document["explanations"]:
        del each["sentence"]
        each["advice"].pop("stopped", None)
        if each["advice"]["status"] == "found":
            each["advice"]["seconds"] = 0.003
        for change in each["advice"].get("changes", []):
            del change["words"]
    found, missing, _ = Explanations.from_json(json.dumps(document))
    assert (found.seconds, found.stopped, found.sentence) == (0.003, None, None)
    assert str(found) == (
        "Row 0 (score 0.31): raise age from 25 to 27 years; change housing from `rent` to `own`. "
        "Then the score is 0.83 and the stability 0.81."
    )
    assert str(missing).startswith("Row 1 (score 0.02): not found: the search found no allowed")
    assert found.what_changes == explanations()[0].what_changes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("{}", "holds no explanations"),
        ('{"format_version": 2}', "format version 2; expected version 1"),
        (explanations().to_json().replace('"advice"', '"advise"'), "holds no explanations"),
        (explanations().to_json().replace("[{", '["a", {', 1), "holds no explanations"),
    ],
)
def test_json_of_something_else(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Explanations.from_json(text)


def test_files(tmp_path: Path) -> None:
    one = explanations()
    for suffix in ("csv", "parquet", "json"):
        one.save(tmp_path / f"advice.{suffix}")
    assert pa.parquet.read_table(tmp_path / "advice.parquet").equals(one.to_arrow())
    assert pa.csv.read_csv(tmp_path / "advice.csv").column_names == list(TYPES)
    assert Explanations.from_json(tmp_path / "advice.json") == one
    with pytest.raises(ParameterError, match="ends in .csv, .parquet or .json"):
        one.save(tmp_path / "advice.xlsx")


class Tags(html.parser.HTMLParser):
    """The texts of a page, and whether its tags close in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not any(value and "http" in value for _, value in attrs)
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)


def test_html() -> None:
    page = Tags(explanations()._repr_html_())
    text = " ".join("".join(page.texts).split())
    assert "age 25 \u2192 27 years" in text
    assert "0.310 \u2192 0.830" in text
    assert "not found" in text and "with 50 among the changes" in text
    assert "18 of 20 retrained models keep this point valid." in text
    assert page.seen.count("tr") == 4
    # Only the features that change are there.
    assert "owner" not in text
    without = explanations()[1:]._repr_html_()
    assert "How sure" not in without and "How sure" in explanations()._repr_html_()
    assert Tags(many(25)._repr_html_()).texts[-1] == "and 5 more"
    Tags(Explanations([])._repr_html_())


def test_html_is_escaped() -> None:
    evil = "<script>alert('&')</script>"
    document = copy.deepcopy(FOUND)
    document["advice"]["changes"] = [{"feature": evil, "from": evil, "to": evil, "unit": evil}]
    document["advice"]["counterfactual"] = {evil: evil}
    document["advice"]["certificate"] = {"sentence": f"{evil}. {evil}", "tiers": []}
    missing = copy.deepcopy(NOT_FOUND)
    missing["advice"]["sentence"] = evil
    missing["advice"]["relaxations"]["helpful"][0]["constraint"] = {"feature": evil}
    bad = Explanations.of([document, missing], index=[evil, evil], request={"method": evil})
    page = bad._repr_html_()
    assert "<script" not in page
    assert "".join(Tags(page).texts).count(evil) >= 9
    assert "<script" not in bad.styled().to_html()


def test_plot_of_one_row() -> None:
    axes = explanations(index=["Ann", "Bo", "Cy"]).plot("Ann")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["age", "housing"]
    texts = [text.get_text() for text in axes.texts if text.get_text()]
    assert texts == ["25", "27 years", "rent", "own"]
    assert axes.get_title("left").startswith("Row Ann: score 0.310")
    axes.figure.canvas.draw()
    with pytest.raises(ParameterError, match="no explanation of row 'Di'; there are Ann, Bo, Cy"):
        explanations(index=["Ann", "Bo", "Cy"]).plot("Di")
    with pytest.raises(ParameterError, match="the search found no allowed change"):
        explanations().plot(1)


@pytest.mark.parametrize(
    "change",
    [
        Change("balance", -50.0, 100.0),
        Change("balance", 0, 0.5),
        Change("balance", -3, -9),
        Change("age", 100, 101),
        Change("owner", False, True),
        Change("income", None, 3),
        Change("cost in $ and \\frac$", "$1^^ - $2" * 20, "a\nb", "$"),
    ],
)
def test_plots_of_odd_changes(change: Change) -> None:
    explanation = Explanation(0, "$x^^$", 0.1, True, changes=[change], new_score=0.9)
    axes = Explanations([explanation]).plot("$x^^$")
    axes.figure.canvas.draw()
    if isinstance(change.before, (int, float)) and not isinstance(change.before, bool):
        arrow = axes.texts[0]
        (end, _), (start, _) = arrow.xy, arrow.xyann
        assert 0 <= min(start, end) and max(start, end) <= 1.1
        assert (end > start) == (change.after > change.before)


def test_plot_of_all() -> None:
    figure, mine = matplotlib.pyplot.subplots()
    axes = explanations().plot(ax=mine)
    assert axes is mine
    assert axes.collections[0].get_offsets().tolist() == [[0.1, 0.81], [0.1, 0.81]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("cost (l2)", "stability")
    assert axes.get_title("left") == "2 of 3 found"
    figure.canvas.draw()
    with pytest.raises(ParameterError, match="no explanation was found"):
        explanations().not_found.plot()
    matplotlib.pyplot.close("all")
