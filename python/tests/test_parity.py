"""The same question has the same answer through Python, the command line, HTTP and Rust."""

from __future__ import annotations

import contextlib
import inspect
import json
import pathlib
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from conftest import built, output_of

import tyrex


def advised(documents: list[dict]) -> list[tuple]:
    """What an answer is, without times and certificates."""
    return [
        (
            each["row"],
            each["score"],
            each["advice"]["status"],
            each["advice"].get("changes"),
            each["advice"].get("counterfactual"),
            each["advice"].get("score"),
            each["advice"].get("stability"),
            each["advice"].get("cost"),
        )
        for each in documents
    ]


def documents(advice: tyrex.Explanations) -> list[dict]:
    return json.loads(advice.to_json())["rows"]


def test_a_data_set_trained_in_either_place() -> None:
    spoken = output_of(
        *(built("tyrex"), "explain", "--dataset", "german", "--method", "trex-i", "--json"),
        *("--limit", "10", "--models", "0", "--norm", "l2", "--tau", "0.7", "--seed", "3"),
    )
    explainer = tyrex.Explainer.train(tyrex.datasets.load_german(), seed=3)
    advice = explainer.explain(method="trex-i", limit=10, norm="l2", tau=0.7, seed=3)
    assert advised(documents(advice)) == advised(json.loads(spoken)["rows"])
    # The same certificates, too, from the same seed.
    certificates = [each["advice"]["certificate"] for each in json.loads(spoken)["rows"]]
    for ours, theirs in zip(tyrex.certify(explainer, advice, seed=3), certificates):
        assert {name: ours[name] for name in theirs} == theirs


def test_every_container_gives_the_same_advice(
    explainer: tyrex.Explainer, features: pd.DataFrame
) -> None:
    import polars
    import pyarrow

    rows = features.iloc[:40]
    expected = documents(explainer.explain(rows, method="trex-nn"))
    shuffled = rows[rows.columns[::-1]]
    for other in [
        shuffled,
        rows.assign(extra=1.5),
        polars.from_pandas(rows.reset_index(drop=True)),
        pyarrow.Table.from_pandas(rows),
        rows.to_dict("list"),
        rows.to_dict("records"),
        rows.to_numpy(dtype=object),
    ]:
        assert advised(documents(explainer.explain(other, method="trex-nn"))) == advised(expected)


def test_the_number_of_threads_changes_nothing(explainer: tyrex.Explainer) -> None:
    answers = []
    for threads in (1, 2, 3):
        tyrex.set_threads(threads)
        answers.append(advised(documents(explainer.explain(limit=20))))
    tyrex.set_threads(2)
    assert answers[0] == answers[1] == answers[2]


def test_rows_of_one_kind_or_another(explainer: tyrex.Explainer, features: pd.DataFrame) -> None:
    one = features.iloc[5]
    as_series, as_dict = explainer.score(one), explainer.score(one.to_dict())
    assert np.array_equal(as_series, as_dict)
    assert np.array_equal(as_series, explainer.score(features.iloc[[5]]))


# The fields that each front end adds to the document of the answer: the model by its name, the
# data and their numbers, files that were written, labels and times.
BESIDE = {
    "by_command_line": "command data model favourable_class seed performances part rejected_rows "
    "out",
    "by_http": "model",
    "by_python": "interrupted index seconds",
}


@dataclass
class FrontEnds:
    """The same model, with the same reference and retrained models, behind every front end."""

    place: pathlib.Path
    python: tyrex.Explainer
    address: str
    ensemble: tyrex.Ensemble | None = None
    # Of a model file that holds none.
    schema: str | None = None

    def by_command_line(
        self, rows: pd.DataFrame, method: str, steps: int | None = None, usual: float | None = None
    ) -> dict:
        rows.to_csv(self.place / "rows.csv", index=False)
        spoken = output_of(
            *(built("tyrex"), "explain", "--json", "--data", "rows.csv", "--model", "model.onnx"),
            *("--reference", "reference.csv", "--method", method, "--limit", "1000"),
            *(("--max-steps", str(steps)) if steps else ()),
            *(("--plausible", str(usual), "--path") if usual else ()),
            *(("--ensemble", "ensemble") if self.ensemble else ()),
            *(("--schema", self.schema) if self.schema else ()),
            cwd=self.place,
            codes=(0, 1),  # 1: there is no advice for any row
        )
        return json.loads(spoken)

    def by_http(
        self, rows: pd.DataFrame, method: str, steps: int | None = None, usual: float | None = None
    ) -> dict:
        records, budget = rows.to_dict("records"), {"steps": steps}
        question = {"rows": records, "method": method, "budget": budget}
        if usual:
            question |= {"plausible": usual, "path": True}
        request = urllib.request.Request(
            f"{self.address}/v1/explain",
            json.dumps(question).encode(),
            {"Content-Type": "application/json"},
        )
        for _ in range(100):
            try:
                with urllib.request.urlopen(request, timeout=300) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as problem:
                if problem.code != 503:  # the models are being read
                    raise
                time.sleep(0.1)
        raise TimeoutError("the retrained models are not ready")

    def by_rust(self, rows: pd.DataFrame, method: str) -> list[dict]:
        rows.to_csv(self.place / "rows.csv", index=False)
        program = built("examples/advise")
        spoken = output_of(
            program, "model.onnx", "rows.csv", "reference.csv", method, cwd=self.place
        )
        return [json.loads(line) for line in spoken.splitlines()]

    def by_python(
        self, rows: pd.DataFrame, method: str, steps: int | None = None, usual: float | None = None
    ) -> dict:
        advice = self.python.explain(
            rows,
            method=method,
            certify=self.ensemble or True,
            max_steps=steps,
            plausible=usual,
            path=True if usual else None,
        )
        return json.loads(advice.to_json())


def answered(front_end: str, document: dict) -> str:
    """The document of the answer, without what the front end adds to it."""
    beside = BESIDE[front_end].split()
    own = {name: value for name, value in document.items() if name not in beside}
    return json.dumps(own, separators=(",", ":"), ensure_ascii=False)


@contextlib.contextmanager
def served(place: pathlib.Path, *how: str) -> Iterator[str]:
    """The address of a service with the model of a folder."""
    service = subprocess.Popen(
        [
            *(built("tyrex"), "serve", "--port", "0", "--ledger", "advice.db", *how),
            *("--data", "reference.csv", "--reference", "reference.csv", "--model", "model.onnx"),
            *("--max-rows-at-once", "1000"),
        ],
        cwd=place,
        text=True,
        stdout=subprocess.PIPE,
        stderr=(place / "service.log").open("w"),
    )
    try:
        assert service.stdout is not None
        first = iter(service.stdout.readline, "")
        address = next((m[0] for line in first if (m := re.search(r"http://\S+:\d+", line))), None)
        assert address, (place / "service.log").read_text()
        yield address
    finally:
        service.terminate()
        service.wait(timeout=30)


@pytest.fixture(scope="module")
def front_ends(
    explainer: tyrex.Explainer, german: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontEnds]:
    place = tmp_path_factory.mktemp("parity")
    explainer.to_onnx(place / "model.onnx")
    german.iloc[:600].to_csv(place / "reference.csv", index=False)
    reference = pd.read_csv(place / "reference.csv")
    with served(place, "--models", "0") as address:
        yield FrontEnds(place, tyrex.Explainer(str(place / "model.onnx"), reference), address)


def compact(documents: list[dict]) -> list[str]:
    return [json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in documents]


@pytest.fixture(scope="module")
def applicants(explainer: tyrex.Explainer, features: pd.DataFrame) -> pd.DataFrame:
    """Rejected people who are not in the reference."""
    others = features.iloc[600:]
    return others[explainer.score(others) < 0.5]


@pytest.mark.parametrize(
    "method", ["trex-o", "trex-i", "trex-nn", "min-cost", "margin", "nn", "sns"]
)
def test_one_question_has_one_document(
    method: str, front_ends: FrontEnds, applicants: pd.DataFrame
) -> None:
    rows = applicants.iloc[:12]
    document = front_ends.by_command_line(rows, method)
    expected = answered("by_command_line", document)
    assert len(document["rows"]) == 12
    assert expected.count('"certificate":{') > 6
    assert answered("by_http", front_ends.by_http(rows, method)) == expected
    assert answered("by_python", front_ends.by_python(rows, method)) == expected
    assert compact(front_ends.by_rust(rows, method)) == compact(document["rows"])


@pytest.mark.parametrize(("method", "usual"), [("min-cost", 0.2), ("trex-o", 0.6)])
def test_usual_advice_and_its_path_have_one_document(
    method: str, usual: float, front_ends: FrontEnds, applicants: pd.DataFrame
) -> None:
    rows = applicants.iloc[:8]
    document = front_ends.by_command_line(rows, method, usual=usual)
    expected = answered("by_command_line", document)
    found = [each["advice"] for each in document["rows"] if each["advice"]["status"] == "found"]
    assert found
    for advice in found:
        assert advice["usual"] >= usual
        assert advice["path"]["steps"][-1]["usual"] == advice["usual"]
    assert answered("by_http", front_ends.by_http(rows, method, usual=usual)) == expected
    assert answered("by_python", front_ends.by_python(rows, method, usual=usual)) == expected


@pytest.fixture(scope="module")
def loans() -> pd.DataFrame:
    """A small table: the favourable label follows the income."""
    draw = np.random.default_rng(0)
    income, age = draw.uniform(10, 90, 400).round(1), draw.integers(20, 70, 400)
    housing = draw.choice(["rent", "own"], 400)
    noise = draw.normal(0, 8, 400)
    paid = np.where(income + 6 * (housing == "own") + noise > 50, "yes", "no")
    return pd.DataFrame({"income": income, "age": age, "housing": housing, "paid": paid})


@pytest.fixture(scope="module")
def tiny(loans: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontEnds]:
    """A tiny model with retrained models for the default promise."""
    place = tmp_path_factory.mktemp("tiny")
    reference = loans.iloc[:150]
    reference.to_csv(place / "reference.csv", index=False)
    trained = tyrex.Explainer.train(
        reference, label="paid", favourable="yes", hidden=[4], epochs=30, early_stopping=None
    )
    trained.to_onnx(place / "model.onnx")
    python = tyrex.Explainer(str(place / "model.onnx"), pd.read_csv(place / "reference.csv"))
    ensemble = tyrex.retrain(python, models=75)
    ensemble.save(place / "ensemble")
    with served(place, "--ensemble", "ensemble") as address:
        yield FrontEnds(place, python, address, ensemble)


@pytest.fixture(scope="module")
def people(tiny: FrontEnds, loans: pd.DataFrame) -> pd.DataFrame:
    """Rejected people who are not in the reference."""
    others = loans.iloc[150:].drop(columns="paid")
    return others[tiny.python.score(others) < 0.5]


@pytest.mark.parametrize("method", tyrex.method_names())
def test_every_method_has_one_document(method: str, tiny: FrontEnds, people: pd.DataFrame) -> None:
    rows = people.iloc[:5]
    document = tiny.by_command_line(rows, method)
    assert len(document["rows"]) == 5
    expected = answered("by_command_line", document)
    assert answered("by_python", tiny.by_python(rows, method)) == expected
    served = tiny.by_http(rows, method)
    if method == "trex-e":
        assert answered("by_http", served) == expected
        assert all(each["unchanged"]["models"] == 61 for each in document["rows"])
    else:
        # A service divides the retrained models once, for all questions: those that other methods
        # do not search over are not among its fresh ones.
        assert advised(served["rows"]) == advised(document["rows"])


@pytest.fixture(scope="module")
def strangers() -> pd.DataFrame:
    """A table as strangers have it: identifiers, ages, outliers, gaps and a bad outcome."""
    draw = np.random.default_rng(7)
    rows = 300
    income, debt = draw.integers(900, 5000, rows), draw.gamma(2.0, 3.0, rows).round(1)
    debt[17] = 900.0
    late = income + 600 * draw.normal(size=rows) < 2600
    return pd.DataFrame(
        {
            "customer_id": 70_000 - 3 * np.arange(rows),
            "name": [f"person {row}" for row in range(rows)],
            "age": draw.integers(20, 66, rows),
            "sex": draw.choice(["f", "m"], rows),
            "income": income,
            "debt": debt,
            "region": draw.choice(["north", "south", "west"], rows),
            "job": draw.choice(["clerk", "baker", None], rows),
            "defaulted": late.astype(int),
        }
    )


def test_a_schema_is_inferred_alike(strangers: pd.DataFrame, tmp_path: pathlib.Path) -> None:
    strangers.to_csv(tmp_path / "data.csv", index=False)
    infer = (built("tyrex"), "schema", "infer", "data.csv", "--label", "defaulted")
    text = output_of(*infer, cwd=tmp_path)
    document = json.loads(output_of(*infer, "--json", cwd=tmp_path))
    schema = tyrex.Schema.infer(strangers, "defaulted")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert [line for line in schema.to_toml().splitlines() if line] == lines
    assert sorted(document["schema"]["ignore"]) == ["customer_id", "name"]
    actions = {each["name"]: each.get("action") for each in schema.to_dict()["feature"]}
    assert (actions["age"], actions["sex"]) == ("only-up", "fixed")
    assert "within" in actions["income"]
    assert schema.to_dict()["label"]["favourable"] == 0
    # The same remarks.
    remarks = {note["text"] for note in document["notes"][1:]}
    assert all(any(note.endswith(text) for note in schema.notes) for text in remarks)
    assert len(remarks) > 6
    # A training without a schema drafts the same one, and so does a file.
    trained = tyrex.Explainer.train(strangers, label="defaulted", epochs=1)
    assert trained.schema == schema
    assert tyrex.Schema.infer(tmp_path / "data.csv", "defaulted") == schema


def test_applicants_beyond_the_data_have_one_document(
    strangers: pd.DataFrame, tmp_path: pathlib.Path
) -> None:
    strangers.to_csv(tmp_path / "reference.csv", index=False)
    program = built("tyrex")
    infer = ("schema", "infer", "reference.csv", "--label", "defaulted", "--out", "s.toml")
    output_of(program, *infer, cwd=tmp_path)
    train = ("train", "--data", "reference.csv", "--schema", "s.toml", "--out", "model.onnx")
    output_of(program, *train, "--epochs", "60", cwd=tmp_path)
    rows = pd.DataFrame(
        {
            "age": [80, 17, 30],
            "sex": ["f", "m", "f"],
            "income": [100, 850, 200],
            "debt": [7.5, 2000.0, -3.0],
            "region": ["north", "south", "west"],
            "job": ["clerk", "baker", "clerk"],
        }
    )
    with served(tmp_path, "--models", "0") as address:
        python = tyrex.Explainer(
            str(tmp_path / "model.onnx"), pd.read_csv(tmp_path / "reference.csv")
        )
        ends = FrontEnds(tmp_path, python, address)
        for method in ("trex-o", "min-cost"):
            document = ends.by_command_line(rows, method)
            expected = answered("by_command_line", document)
            assert answered("by_http", ends.by_http(rows, method)) == expected
            assert answered("by_python", ends.by_python(rows, method)) == expected
            assert [each["row"] for each in document["rows"]] == [0, 1, 2]
            for each, age in zip(document["rows"], rows["age"]):
                assert each["advice"]["status"] == "found", each
                advised = each["advice"]["counterfactual"]
                assert strangers["income"].min() <= advised["income"] <= strangers["income"].max()
                assert advised["age"] == age or age <= advised["age"] <= strangers["age"].max()
        unknown = rows.assign(region=["north", "moon", "west"])
        unknown.to_csv(tmp_path / "rows.csv", index=False)
        refused = subprocess.run(
            [program, "explain", "--data", "rows.csv", "--model", "model.onnx"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert refused.returncode == 2
        assert "rows.csv, row 1, column `region`: found `moon`" in refused.stderr
        with pytest.raises(tyrex.DataError, match="row 1.*moon"):
            python.explain(unknown)
        with pytest.raises(urllib.error.HTTPError) as problem:
            ends.by_http(unknown, "min-cost")
        assert problem.value.code == 422
        assert "rows[1].region" in problem.value.read().decode()


RAW = """
format_version = 1
[label]
column = "paid"
favourable = ["yes"]
[model]
input = "raw"
[[feature]]
name = "income"
kind = "numeric"
step = 0.1
[[feature]]
name = "age"
kind = "integer"
"""


@pytest.fixture(scope="module")
def raw(loans: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontEnds]:
    """A network that takes thousands beside years, as another tool wrote it."""
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn.neural_network import MLPClassifier

    place = tmp_path_factory.mktemp("raw")
    reference = loans.iloc[:150].drop(columns="housing")
    reference["income"] *= 1000
    values = reference[["income", "age"]].to_numpy(np.float32)
    model = MLPClassifier((8,), max_iter=400, random_state=1)
    model.fit(values / (10_000, 10), reference["paid"])
    model.coefs_[0] = model.coefs_[0] / ((10_000,), (10,))  # the same on raw columns
    content = skl2onnx.to_onnx(model, values[:1], options={"zipmap": False}).SerializeToString()
    (place / "model.onnx").write_bytes(content)
    (place / "schema.toml").write_text(RAW)
    reference.to_csv(place / "reference.csv", index=False)
    rows = pd.read_csv(place / "reference.csv")
    python = tyrex.Explainer(str(place / "model.onnx"), rows, schema=place / "schema.toml")
    with served(place, "--models", "0", "--schema", "schema.toml") as address:
        yield FrontEnds(place, python, address, schema="schema.toml")


@pytest.mark.parametrize("method", ["trex-o", "min-cost", "nn"])
def test_a_raw_model_has_one_scale(method: str, raw: FrontEnds, loans: pd.DataFrame) -> None:
    people = loans.iloc[150:].drop(columns=["paid", "housing"])
    people["income"] *= 1000
    rows = people[raw.python.score(people) < 0.5].iloc[:8]
    document = raw.by_command_line(rows, method)
    expected = answered("by_command_line", document)
    assert answered("by_http", raw.by_http(rows, method)) == expected
    assert answered("by_python", raw.by_python(rows, method)) == expected
    # The scale is that of the reference, and the fingerprint that of the file.
    reference = pd.read_csv(raw.place / "reference.csv")["income"]
    span = reference.max() - reference.min()
    answers = [each["advice"] for each in document["rows"]]
    for found in [each for each in answers if each["status"] == "found"]:
        scale = found["certificate"]["scale"]["income"]
        assert scale == {"offset": reference.min(), "scale": 1 / span}
        assert found["cost"]["l1"] < 2
    assert sum(each["status"] == "found" for each in answers) >= 6
    shown = output_of(built("tyrex"), "model", "show", "model.onnx", "--json", cwd=raw.place)
    assert document["fingerprint"] == json.loads(shown)["model"]["fingerprint"]
    # Certificates name their scale, so they are verified without the reference.
    (raw.place / "document.json").write_text(json.dumps(document))
    output_of(
        *(built("tyrex"), "certify", "--verify", "document.json", "--model", "model.onnx"),
        *("--schema", "schema.toml"),
        cwd=raw.place,
    )


def test_applicants_do_not_decide_the_scale(raw: FrontEnds) -> None:
    rows = pd.DataFrame({"income": [20_000.0, 25_000.0], "age": [30, 40]})

    def costs(rows: pd.DataFrame) -> tuple[list, list]:
        rows.to_csv(raw.place / "alone.csv", index=False)
        spoken = output_of(
            *(built("tyrex"), "explain", "--json", "--data", "alone.csv", "--model", "model.onnx"),
            *("--schema", "schema.toml", "--method", "min-cost"),
            cwd=raw.place,
            codes=(0, 1),
        )
        document = json.loads(spoken)
        return document["rows"][0]["advice"].get("cost"), document["warnings"]

    cost, warnings = costs(rows)
    assert costs(rows.iloc[:1])[0] == cost
    assert any("no training rows to fit the schema's scale on" in own for own in warnings)
    assert any("does not scale `income`, `age`" in own for own in warnings)


def answer(document: dict) -> dict:
    """An answer, wherever the row stands. The rule that prevents advice is searched for in small
    batches only, unless the question says otherwise."""
    searched = ("relaxations", "rules")
    advice = {name: own for name, own in document["advice"].items() if name not in searched}
    return {**document, "row": None, "advice": advice}


# Few steps keep the test quick; a search that they end finds nothing, or its best point.
STEPS = 150


@pytest.mark.parametrize("method", tyrex.method_names())
@pytest.mark.parametrize("front_end", list(BESIDE))
def test_other_applicants_change_no_answer(
    front_end: str, method: str, tiny: FrontEnds, people: pd.DataFrame, loans: pd.DataFrame
) -> None:
    def ask(rows: pd.DataFrame) -> list[dict]:
        return getattr(tiny, front_end)(rows, method, STEPS)["rows"]

    one = people.iloc[[3]]
    alone = answer(ask(one)[0])
    others = loans.drop(columns="paid").drop(index=one.index)
    ten, many = others.iloc[150:160], others.iloc[160:360]
    for company in (
        pd.concat([one, ten]),
        pd.concat([ten, one]),
        pd.concat([many.iloc[:77], one, many.iloc[77:]]),
        pd.concat([many.iloc[::-1], one]),
    ):
        answers = [answer(each) for each in ask(company)]
        same = [each for each in answers if each["features"] == alone["features"]]
        assert [json.dumps(each) for each in same] == [json.dumps(alone)]


def test_signatures_show_the_defaults_of_the_library() -> None:
    usual = json.loads(tyrex._native.defaults())
    certificate = usual["certificate"]
    library = {
        "k": usual["stability"]["samples"],
        "sigma": usual["stability"]["sigma"],
        "gamma": usual["stability"]["gamma"],
        "probability": certificate["probability"],
        "confidence": certificate["confidence"],
        "delta": certificate["delta"],
        "holds": usual["promise_days"],
        "validity": usual["goal"]["validity"],
        "models": usual["retrained_models"],
        "seed": 0,
    }
    functions = [getattr(tyrex, name) for name in tyrex.__all__]
    functions += [tyrex.Explainer.explain, tyrex.Explainer.adviser, tyrex.Explainer.train]
    seen = set()
    for function in filter(callable, functions):
        with contextlib.suppress(ValueError, TypeError):
            for name, parameter in inspect.signature(function).parameters.items():
                # `None` is the default of the library as well.
                if name in library and parameter.default not in (None, parameter.empty):
                    assert parameter.default == library[name], f"{function}: {parameter}"
                    seen.add(name)
    assert seen >= {"k", "sigma", "gamma", "probability", "confidence", "delta", "holds", "seed"}
    assert f"({usual['retrained_models']} by default)" in (tyrex.retrain.__doc__ or "")
