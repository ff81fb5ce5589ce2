"""Properties of every view: layout, colours, keyboard, addresses, and a server in trouble."""

import json
import subprocess

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import PROGRAM, german
from helpers import ask, met, slide, survivors
from playwright.sync_api import expect

VIEWS = {
    "applicant": ".strip .dot",
    "update": "#ledger-title",
    "playground": ".maps .way",
    "results": "iframe",
}

# The least contrast of a text with what is behind it, by WCAG's formula, and where it is.
CONTRAST = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => numbers(colour).slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((numbers(colour)[3] ?? 1) === 1) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || !element.checkVisibility({visibilityProperty: true})) continue;
    // Names on maps have a halo instead of a background.
    if (element.closest('.square, title, option, .unseen, :disabled')) continue;
    const style = getComputedStyle(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(colour), light(behind(element))].sort((a, b) => b - a);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) found.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return found;
}"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_fits_and_can_be_read(make_page, width, scheme):
    page = make_page("#applicant?row=5", width=width, color_scheme=scheme)
    met(page)
    ask(page)
    for name, sign in VIEWS.items():
        page.locator(f"#tab-{name}").click()
        expect(page.locator(f"#panel-{name} {sign}").first).to_be_attached(timeout=60_000)
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert page.evaluate(CONTRAST) == [], name
        if (width, scheme) == (1280, "light"):
            assert barriers(page) == [], name


def barriers(page):
    """What keeps people out, as far as axe knows."""
    options = {"iframes": False, "resultTypes": ["violations"]}
    found = Axe().run(page, options=options).response["violations"]
    return [(one["id"], [node["target"] for node in one["nodes"]]) for one in found]


def test_the_main_path_by_keyboard_alone(make_page):
    page = make_page("#applicant?row=5")
    met(page)

    def tab_to(name, most=80):
        for _ in range(most):
            page.keyboard.press("Tab")
            active = page.evaluate(
                "(document.activeElement.ariaLabel ?? document.activeElement.textContent).trim()"
            )
            if active == name:
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"{name} shows no focus"
                return
        raise AssertionError(f"no way to {name}")

    before = survivors(page)
    tab_to("Credit amount, slider")
    for _ in range(12):
        page.keyboard.press("PageDown")
    page.wait_for_timeout(300)
    assert survivors(page) != before or page.locator(".verdict").inner_text() == "Accepted"
    tab_to("Restore the original values")
    page.keyboard.press("Enter")
    tab_to("What should change?")
    page.keyboard.press("Enter")
    expect(page.locator(".advice .lead")).to_be_visible()
    tab_to("Use these values")
    page.keyboard.press("Enter")
    expect(page.locator(".verdict")).to_have_text("Accepted")
    tab_to("Applicant")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-update")).to_be_focused()
    expect(page.locator("#panel-update h1")).to_be_visible()
    page.keyboard.press("End")
    expect(page.locator("#tab-results")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-applicant")).to_be_focused()


def test_addresses_and_the_way_back(make_page):
    page = make_page("#applicant?row=5")
    met(page)
    slide(page, "Duration", 60)
    page.get_by_role("button", name="Next applicant").click()
    expect(page.locator(".who")).not_to_contain_text("Row 5 ")
    page.get_by_role("tab", name="Results").click()
    expect(page.locator("#panel-results h1")).to_be_visible()
    page.go_back()
    expect(page.locator("#panel-applicant")).to_be_visible()
    page.go_back()
    expect(page.locator(".who")).to_contain_text("Row 5")
    assert page.title() == "Applicant · tyrex"


def test_light_and_dark_by_button(make_page):
    page = make_page("#applicant?row=5", color_scheme="light")
    met(page)
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Use dark colours").click()
    dark = page.evaluate(background)
    assert light != dark
    page.reload()
    met(page)
    assert page.evaluate(background) == dark
    page.get_by_role("button", name="Use light colours").click()
    assert page.evaluate(background) == light


def test_motion_can_be_reduced(make_page):
    page = make_page("#applicant?row=5", reduced_motion="reduce")
    met(page)
    duration = "getComputedStyle(document.querySelector('.strip .dot')).transitionDuration"
    assert page.evaluate(duration) == "0s"


def test_the_server_stops_and_comes_back(make_page, tmp_path):
    server = german(tmp_path, models=2)
    server.until_trained()
    page = make_page("#applicant?row=5", server=server)
    met(page)
    page.watch.expect("ERR_CONNECTION")
    server.stop()
    slide(page, "Credit amount", 2000)
    expect(page.get_by_text("The server does not respond.")).to_be_visible()
    slide(page, "Credit amount", 1500)
    server.start()
    expect(page.get_by_text("The server does not respond.")).to_be_hidden(timeout=30_000)
    expect(page.get_by_label("Credit amount", exact=True)).to_have_value("1500")
    survivors(page)
    page.close()
    server.stop()


def test_a_busy_server_is_waited_for(make_page):
    page = make_page("#applicant?row=5")
    met(page)
    page.watch.expect("503")
    left = [1]

    def once(route):
        if left:
            left.pop()
            route.fulfill(status=503, headers={"retry-after": "1"}, body="{}")
        else:
            route.continue_()

    page.route("**/v1/survival", once)
    slide(page, "Credit amount", 2000)
    expect(page.get_by_text("The server is busy.")).to_be_visible()
    expect(page.get_by_text("The server is busy.")).to_be_hidden()
    survivors(page)


def test_dots_come_while_models_are_trained(make_page, trained):
    page = make_page("#update")
    detail = trained.get("/v1/models/german")
    detail["ensemble"] |= {"state": "training", "models": 3}
    left = [1, 2, 3]

    def training(route):
        if left:
            left.pop()
            route.fulfill(body=json.dumps(detail), content_type="application/json")
        else:
            route.continue_()

    page.route("**/v1/models/german", training)
    page.goto(f"{trained.address}/#applicant?row=5")
    page.reload()
    met(page)
    expect(page.locator(".hero progress")).to_be_visible()
    expect(page.locator(".hero progress")).to_be_hidden()
    expect(page.locator("#model")).to_contain_text("12 retrained")


def test_a_server_with_tokens(make_page, tmp_path):
    ledger = tmp_path / "ledger.db"
    create = [PROGRAM, "token", "create", "--role", "explain", "--ledger", ledger, "--json"]
    token = json.loads(subprocess.check_output(create))["secret"]
    server = german(tmp_path, "--require-tokens", models=2)
    page = make_page(server=server)
    page.watch.expect("401")
    page.watch.expect("503")
    field = page.get_by_label("This server requires a token.")
    field.fill("not-a-token")
    page.get_by_role("button", name="Use it").click()
    page.get_by_label("The server rejected this token.").fill(token)
    page.get_by_role("button", name="Use it").click()
    met(page)
    page.reload()
    met(page)
    page.close()
    server.stop()


def test_names_from_outside_stay_text(make_page, tmp_path):
    """A level that would be markup, in an uploaded model."""
    evil = "<img src=x onerror=document.title='caught'>"
    rows = ["amount,purpose,class"]
    for index in range(240):
        amount, label = (index % 7, "yes") if index % 3 else (index % 7 + 9, "no")
        rows.append(f"{100 * amount},{evil if index % 2 else 'car'},{label}")
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    schema = f"""
format_version = 1
[label]
column = "class"
favourable = "yes"
unfavourable = "no"
[[feature]]
name = "amount"
kind = "integer"
unit = "<b>DM</b>"
[[feature]]
name = "purpose"
kind = "categorical"
levels = [{json.dumps(evil)}, "car"]
description = "<script>document.title='caught'</script>"
"""
    (tmp_path / "schema.toml").write_text(schema)
    files = {name: tmp_path / name for name in ("model.onnx", "rows.csv", "schema.toml")}
    train = ["train", "--data", files["rows.csv"], "--schema", files["schema.toml"]]
    subprocess.run([PROGRAM, *train, "--out", files["model.onnx"]], check=True, capture_output=True)
    server = german(tmp_path, models=2)
    server.until_trained()
    parts = [f"model=@{files['model.onnx']}", f"reference=@{files['rows.csv']}"]
    parts += [f"schema=@{files['schema.toml']}", "name=evil", "ensemble=3"]
    form = [word for part in parts for word in ("--form", part)]
    upload = ["curl", "--silent", "--show-error", "--fail-with-body", *form]
    subprocess.run([*upload, f"{server.address}/v1/models"], check=True)
    page = make_page(server=server)
    page.get_by_label("Model", exact=True).select_option("evil")
    expect(page.get_by_label("Purpose", exact=True)).to_be_visible()
    met(page)
    expect(page.get_by_text("<script>document.title")).to_be_visible()
    assert evil in page.get_by_label("Purpose", exact=True).locator("option").all_inner_texts()
    page.get_by_role("button", name="What should change?").click()
    expect(page.locator(".advice .lead")).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
    assert page.title() != "caught"
    page.close()
    server.stop()
