"""The views Playground and Results."""

import re

from playwright.sync_api import expect


def test_two_moons(make_page):
    page = make_page("#playground")
    expect(page.locator(".map")).to_have_count(6, timeout=60_000)
    expect(page.locator(".maps .way").first).to_be_attached(timeout=60_000)
    rows = page.get_by_role("region", name="Methods").locator("tbody tr")
    assert rows.count() >= 5
    before = page.locator("#panel-playground .lead").inner_text()
    assert re.match(r"At \(", before)

    # Each corner once: somewhere the answer is another one.
    square = page.locator(".square").first
    box = square.bounding_box()
    square.click(position={"x": box["width"] * 0.3, "y": box["height"] * 0.15})
    expect(page.locator("#panel-playground .lead")).not_to_have_text(before)
    assert "at=" in page.url
    square.click(position={"x": box["width"] * 0.6, "y": box["height"] * 0.9})
    expect(page.locator("#panel-playground .lead")).to_contain_text("already accepts")


def test_the_keyboard_places_the_applicant(make_page):
    page = make_page("#playground")
    expect(page.locator(".maps .way").first).to_be_attached(timeout=60_000)
    before = page.locator("#panel-playground .lead").inner_text()
    page.locator(".square svg").first.focus()
    for key in ["ArrowUp"] * 12 + ["ArrowLeft"] * 9 + ["Enter"]:
        page.keyboard.press(key)
    expect(page.locator("#panel-playground .lead")).not_to_have_text(before)


def test_terms_change_the_maps(make_page):
    page = make_page("#playground")
    expect(page.locator(".maps .way").first).to_be_attached(timeout=60_000)
    stability = page.locator(".maps:not(.small) canvas").nth(1)
    before = stability.evaluate("canvas => canvas.toDataURL()")
    page.get_by_label("Width sigma").focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".term output").nth(1)).to_have_text("0.22")
    for _ in range(100):
        if stability.evaluate("canvas => canvas.toDataURL()") != before:
            break
        page.wait_for_timeout(50)
    else:
        raise AssertionError("the stability map stays as it is")
    page.get_by_label("Threshold tau").focus()
    page.keyboard.press("Home")
    expect(page.locator(".term output").nth(2)).to_have_text("0.30")


def test_results_in_a_frame(make_page):
    page = make_page("#results")
    frame = page.frame_locator("iframe.report")
    expect(frame.locator("h1")).to_be_visible(timeout=30_000)
    assert page.locator("#report option").count() >= 1
