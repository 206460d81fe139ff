"""axe-core finds nothing on any page of report and viewer, in light and dark, at two sizes.

Needs the extra `browser` (playwright, axe-playwright-python) and the system's Chromium.
"""

import json
import shutil

import pytest
from support.pages.browser import DESK, PHONE
from support.pages.reports import HOSTILE, audit, dataset, manifest, report_page
from support.pages.viewer import served
from support.places import DATA

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="the extra `browser`")
pytestmark = pytest.mark.slow

PAGES = (
    "", "?text=the&sort=-length", "?format=codex", "?text=nothing+holds+this", "row?at=0.0",
    "row?at=0.1&text=e", "row?at=0.0&side=records", "overview", "rejects", "rejects?code=no_user",
    "reject?line=0", "go?to=no+such",
)  # fmt: skip

LAYOUTS = ("", "row?at=0.0", "row?at=0.0&side=records", "overview", "rejects", "reject?line=0")
"""One page of each layout, for dark mode and the second size: the others differ in contents."""


@pytest.fixture(scope="module")
def folder(built, tmp_path_factory):
    """Returns a built dataset with rejects."""
    copy = tmp_path_factory.mktemp("axe") / "ds"
    shutil.copytree(built, copy)
    places = [{"source": f"{number}.jsonl", "record": "line 1"} for number in range(60)]
    lines = [
        {**place, "format": "codex", "code": ("no_user", "bad_json")[at % 2], "message": "no user"}
        for at, place in enumerate(places)
    ]
    (copy / "rejects.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return copy


@pytest.fixture(scope="module")
def viewer(folder, tmp_path_factory):
    scratch = tmp_path_factory.mktemp("view")
    with served(folder, manifest(folder), scratch, DATA / "codex") as server:
        server.viewer.decide({"at": "0.0", "decision": "accept", "note": "fine"})
        server.viewer.decide({"at": "0.1", "decision": "reject"})
        yield server.url


@pytest.fixture(scope="module")
def reports(folder, verifier, tmp_path_factory):
    made = tmp_path_factory.mktemp("reports")
    name = dataset(made / "hostile.jsonl", HOSTILE)
    for path, source, about in (("report", str(folder), manifest(folder)), ("hostile", name, {})):
        page = report_page(source, about, audit() if about else None, verifier.target)
        (made / f"{path}.html").write_bytes(page)
    return [(made / f"{path}.html").as_uri() for path in ("report", "hostile")]


def violations(page, **chosen):
    """Returns (rule, description, place) of all axe-core findings; `chosen` selects the rules."""
    options = {"resultTypes": ["violations"], **chosen}
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(axe.Axe().axe_script)
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    nodes = [(item["id"], item["help"], node) for item in found for node in item["nodes"]]
    return [(rule, why, node["html"][:160]) for rule, why, node in nodes]


OPEN = """
for (const item of document.querySelectorAll('details')) {
  const others = item.matches('.sample') && item !== document.querySelector('.sample');
  item.open = !others && !item.querySelector('.tokens');
}
"""
"""Opens folded elements: of many samples the first, and not the thousands of tokens."""

COLOURS = ("color-contrast", "link-in-text-block")
"""The rules that depend on the colours. They take half of the time."""

SIZES = pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])


@pytest.fixture
def page(tab, size):
    tab.set_viewport_size({"width": size[0], "height": size[1]})
    return tab


LIGHT = (("light", {}),)
MODES = {
    DESK: (*LIGHT, ("dark", {"runOnly": list(COLOURS)})),
    PHONE: (("light", {"rules": {rule: {"enabled": False} for rule in COLOURS}}),),
}
"""Modes that are checked for each size, with their rules: the colours do not depend on the size."""


def check(page, modes, size):
    """Asserts that the page has no violations in these modes, and that it fits."""
    page.evaluate(OPEN)
    for scheme, rules in modes:
        page.emulate_media(color_scheme=scheme)
        assert violations(page, **rules) == [], (page.url, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == size[0], (page.url, scheme)


@SIZES
def test_the_report(page, reports, size):
    for address in reports:
        page.goto(address)
        check(page, MODES[size], size)


@SIZES
def test_the_viewer(page, viewer, size):
    for path in PAGES if size == DESK else LAYOUTS:
        page.goto(viewer + path)
        check(page, MODES[size] if path in LAYOUTS else LIGHT, size)
    page.goto(viewer)
    page.keyboard.press("?")
    assert page.locator("dialog").is_visible()
    for scheme, rules in MODES[size]:
        page.emulate_media(color_scheme=scheme)
        assert violations(page, **rules) == []


def test_axe_finds_a_planted_violation(tab):
    tab.goto("about:blank")
    tab.set_content("<html><body><img src='data:,'><p style='color:#aaa'>grey</p></body></html>")
    assert {"image-alt", "color-contrast", "html-has-lang"} <= {
        rule for rule, *_ in violations(tab)
    }
