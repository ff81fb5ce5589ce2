"""What several tests do with the page."""

import re

from playwright.sync_api import expect


def met(page):
    """Waits until an applicant is shown, with their dots."""
    expect(page.locator(".strip .dot").first).to_be_attached()
    expect(page.locator(".verdict")).to_have_text(re.compile("Rejected|Accepted"))


def ask(page):
    """Asks what should change; returns the advice's sentence."""
    page.get_by_role("button", name="What should change?").click()
    return page.locator(".advice .lead").inner_text()


def compared(page):
    """Waits until every method has answered."""
    expect(page.locator(".tradeoff")).to_be_visible()
    expect(page.get_by_text("still searching")).to_have_count(0, timeout=60_000)


def survivors(page):
    """The accepting dots and all dots, once the sentence says the same."""
    dots = page.locator(".strip .dot")
    for _ in range(100):
        accepting, everyone = page.locator(".strip .dot.accepting").count(), dots.count()
        words = {0: f"None of {everyone}", everyone: f"All {everyone}"}
        sentence = page.locator(".survives").inner_text()
        if sentence.startswith(words.get(accepting, f"{accepting} of {everyone}")):
            return accepting, everyone
        page.wait_for_timeout(20)
    raise AssertionError(f"{accepting} of {everyone} dots, but: {sentence}")


def slide(page, label, value):
    """Moves a slider as a hand does."""
    page.get_by_label(f"{label}, slider").evaluate(
        "(slider, value) => { slider.value = value;"
        " slider.dispatchEvent(new Event('input', {bubbles: true})); }",
        str(value),
    )
