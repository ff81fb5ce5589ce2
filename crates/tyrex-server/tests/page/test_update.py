"""The view Model update."""

import base64
import re
import subprocess

import pytest
from conftest import PROGRAM, german
from playwright.sync_api import expect


@pytest.fixture(scope="module")
def candidates(tmp_path_factory):
    """Two models that could come next."""
    folder = tmp_path_factory.mktemp("candidates")
    files = [folder / "next.onnx", folder / "other.onnx"]
    for seed, file in enumerate(files, start=1):
        command = [PROGRAM, "train", "--dataset", "german", "--seed", str(seed), "--out", file]
        subprocess.run(command, check=True, capture_output=True)
    return files


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A server whose ledger is empty."""
    server = german(tmp_path_factory.mktemp("update"))
    server.until_trained()
    yield server
    server.stop()


def test_from_an_empty_ledger_to_repairs(make_page, own, candidates, tmp_path):
    page = make_page("#update", server=own)
    expect(page.get_by_text("There are no promises yet.")).to_be_visible()
    expect(page.get_by_role("button", name="Check the promises")).to_be_disabled()
    page.get_by_role("button", name="Record advice for the first 20").click()
    expect(page.locator("text=/^\\d+ open promises/")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("is intact")).to_be_visible()
    promised = int(page.locator("text=/^\\d+ open promises/").inner_text().split()[0])
    assert promised > 10

    page.set_input_files("#files", candidates)
    page.get_by_text("Compare groups").click()
    page.get_by_label("Personal status").check()
    page.get_by_role("button", name="Check the promises").click()
    ranking = page.get_by_role("region", name="Ranking")
    expect(ranking.locator("tbody tr")).to_have_count(2, timeout=60_000)
    counts = ranking.get_by_text(re.compile(r"^\d+ of \d+$")).all_inner_texts()
    kept = [int(text.split()[0]) for text in counts]
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] < promised, "both models keep everything: nothing to repair"

    last = ranking.get_by_role("button").last
    last.click()
    expect(last).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("columnheader", name="Personal status")).to_be_visible()
    expect(page.locator(".broken > li")).to_have_count(promised - kept[-1])
    expect(page.locator(".broken").get_by_text("If the advice was followed").first).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the report as HTML").click()
    assert "<html" in saved.value.path().read_text()[:200].lower()


def test_files_can_be_dropped_and_taken_back(make_page, own, candidates):
    page = make_page("#update", server=own)
    expect(page.locator("#ledger-title")).to_be_visible()
    text = base64.b64encode(candidates[0].read_bytes()).decode()
    page.locator(".zone").evaluate(
        "(zone, text) => { const data = new DataTransfer();"
        " const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));"
        " data.items.add(new File([bytes], 'dropped.onnx'));"
        " const how = {dataTransfer: data, bubbles: true, cancelable: true};"
        " for (const type of ['dragover', 'drop']) zone.dispatchEvent(new DragEvent(type, how)); }",
        text,
    )
    expect(page.locator(".files li")).to_contain_text("dropped.onnx")
    page.get_by_role("button", name="Remove dropped.onnx").click()
    expect(page.locator(".files li")).to_have_count(0)


def test_a_file_that_is_no_model(make_page, own, tmp_path):
    page = make_page("#update", server=own)
    page.watch.expect("Failed to load resource")
    file = tmp_path / "note.onnx"
    file.write_text("this is not a model")
    expect(page.locator("text=/open promises?/")).to_be_visible()
    page.set_input_files("#files", file)
    page.get_by_role("button", name="Check the promises").click()
    expect(page.locator(".results .failure")).to_contain_text("note.onnx")
