"""The view Applicant with a served XGBoost model and its retrained versions, as the package wrote
them."""

import re
import tomllib

import numpy as np
import pandas as pd
import pytest
import xgboost
from conftest import ROOT, Server
from helpers import ask, met, slide
from playwright.sync_api import expect

SETS = {"search": 20, "tune": 20, "fresh": 30, "sibling": 10}
TRAINED = 700


def german():
    """The rows, with the levels of the schema as categories, and the text of the schema."""
    text = (ROOT / "data/schemas/german.toml").read_text()
    rows = pd.read_csv(ROOT / "data/german.csv", keep_default_na=False)
    for feature in tomllib.loads(text)["feature"]:
        levels = feature.get("levels", [0])
        if isinstance(levels[0], str):
            rows[feature["name"]] = pd.Categorical(rows[feature["name"]], levels)
    return rows.sample(frac=1.0, random_state=0), text


@pytest.fixture(scope="module")
def boosted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("boosted")
    rows, schema = german()
    train, others = rows[:TRAINED], rows[TRAINED:]
    shape = {"max_depth": 3, "subsample": 0.8, "enable_categorical": True, "n_jobs": 1}

    def save(name, seed, drawn):
        model = xgboost.XGBClassifier(n_estimators=40, random_state=seed, **shape)
        features, good = drawn.drop(columns="class"), (drawn["class"] == "good").astype(int)
        model.fit(features, good).save_model(folder / f"{name}.ubj")
        return model

    (folder / "retrained").mkdir()
    model = save("model", 0, train)
    uses = [use for use, count in SETS.items() for _ in range(count)]
    for number, use in enumerate(uses, start=1):
        drawn = train.sample(frac=1.0, replace=True, random_state=number)
        save(f"retrained/{use}-{number}", number, train if use == "sibling" else drawn)
    train.to_csv(folder / "train.csv", index=False)
    others.to_csv(folder / "others.csv", index=False)
    (folder / "schema.toml").write_text(schema + '\n[model]\ninput = "raw"\n')
    files = ["--data", "others.csv", "--reference", "train.csv", "--schema", "schema.toml"]
    server = Server(folder, *files, "--model", "model.ubj", "--ensemble", "retrained")
    server.until_trained()
    server.scores = model.predict_proba(others.drop(columns="class"))[:, 1]
    yield server
    server.stop()


def accepting(page):
    """How many of the fresh models accept, by the sentence; those that searched do not count."""
    sentence = page.locator(".survives").inner_text()
    word, everyone = re.match(r"(\w+)(?: of)? (\d+) ", sentence).groups()
    assert int(everyone) == SETS["fresh"]
    return {"None": 0, "All": int(everyone)}.get(word) if word.isalpha() else int(word)


def test_a_boosted_model_is_explained_and_certified(boosted, make_page):
    row = int(np.flatnonzero(boosted.scores < 0.35)[0])
    page = make_page(f"#applicant?row={row}", server=boosted)
    met(page)
    expect(page.locator(".verdict")).to_have_text("Rejected")
    # The score is XGBoost's own.
    expect(page.locator(".hero dd").first).to_have_text(f"{boosted.scores[row]:.2f}")
    before = accepting(page)
    slide(page, "Duration", 4)
    page.wait_for_timeout(200)
    page.get_by_role("button", name="Restore the original values").click()
    assert ask(page)
    page.get_by_role("button", name="Use these values").click()
    page.wait_for_timeout(300)
    expect(page.locator(".verdict")).to_have_text("Accepted")
    assert accepting(page) > before
    # Methods that need gradients are not offered; the others answer.
    methods = page.get_by_role("group", name=re.compile("^Methods: cost"))
    expect(methods).to_be_visible(timeout=60_000)
    expect(page.get_by_text("still searching")).to_have_count(0, timeout=60_000)
    for name in ["trex-e", "trex-o", "min-cost", "trex-nn"]:
        expect(methods).to_contain_text(name)
    expect(methods).not_to_contain_text("roar")
