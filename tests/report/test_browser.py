"""Report and viewer in a real browser: rendering, interaction, accessibility, inert content.

Needs the extra `browser` (playwright, axe-playwright-python) and the system's Chromium, which is
started once; skipped if one is missing.
"""

import json
import shutil
from pathlib import Path

import pytest
from support.pages.browser import DESK, PHONE
from support.pages.reports import HOSTILE, audit, dataset, manifest, report_page
from support.pages.viewer import served
from support.places import DATA

from builder.dataset.review import read_review

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="the extra `browser`")
sync_api = pytest.importorskip("playwright.sync_api", reason="the extra `browser` is missing")
pytestmark = pytest.mark.slow
expect = sync_api.expect


# -- the report ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(built, verifier, tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "report.html"
    path.write_bytes(report_page(str(built), manifest(built), audit(), verifier.target))
    return path.as_uri()


@pytest.fixture(scope="module")
def hostile(verifier, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    name = dataset(folder / "hostile.jsonl", [*HOSTILE, "y" * 10_000_000, "\u202e" * 9999])
    path = folder / "report.html"
    path.write_bytes(report_page(name, {"config": {"name": HOSTILE[0]}}, None, verifier.target))
    return path.as_uri()


def test_every_chart_is_visible(opened, report):
    page = opened(report)
    page.click("#charts > details > summary")
    assert page.locator("#chart-lengths > svg").bounding_box()["height"] > 60
    bars = page.locator("#table-mix td.bar svg")
    assert [bar.is_visible() for bar in bars.all()] == [True, True]


def test_search_and_filters(opened, report):
    page = opened(report)
    samples = page.locator(".sample")
    total = samples.count()
    seen = page.locator(".sample:visible")
    output = page.locator("#samples form output")
    assert output.text_content() == f"{total} of {total} shown"
    page.select_option("select[name=why]", "near-duplicate pair 1")
    assert seen.count() == 2
    assert output.text_content() == f"2 of {total} shown"
    page.select_option("select[name=why]", "")
    page.select_option("select[name=format]", "codex")
    assert 0 < seen.count() < total
    page.select_option("select[name=format]", "")
    page.fill("#samples input[type=search]", "nosuchword")
    expect(output).to_have_text(f"0 of {total} shown")
    assert seen.count() == 0
    page.fill("#samples input[type=search]", "")
    expect(output).to_have_text(f"{total} of {total} shown")
    page.click("button[data-open=all]")
    assert page.locator(".sample[open]").count() == total
    page.click("button[data-open=none]")
    assert page.locator(".sample[open]").count() == 0


def test_a_finding_leads_to_its_sample(opened, report):
    page = opened(report)
    page.click(".findings summary")
    page.click(".findings a")
    expect(page.locator("#sample-0")).to_have_attribute("open", "")
    assert page.locator("#sample-0 mark").first.is_visible()
    assert page.locator("#sample-0 kbd").first.is_visible()


def test_the_keyboard_reaches_and_opens_everything(opened, report):
    page = opened(report)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator(".sample summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".sample").first.get_attribute("open") == ""
    focusable = page.evaluate(
        "[...document.querySelectorAll('a, button, input, select, summary')]"
        ".filter(item => item.tabIndex < 0).length"
    )
    assert focusable == 0


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_hostile_samples_are_inert(opened, hostile, size):
    page = opened(hostile, size)
    page.click("button[data-open=all]")
    assert page.evaluate("window.owned") is None
    assert page.locator("h1").count() == 1
    assert page.locator("img, iframe, a[href^=javascript], svg[onload]").count() == 0
    text = page.locator("#sample-list").inner_text()
    assert "<script>window.owned = 1</script>" in text
    assert "characters left out" in text
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]


def test_unescaped_content_is_blocked_by_the_policy(chromium, report, tmp_path):
    """The policy itself, with an injected element that was not escaped."""
    text = Path(report.removeprefix("file://")).read_text(encoding="utf-8")
    planted = (
        "<script>window.owned = 1</script>"
        "<img src='http://127.0.0.1:9/x' onerror='window.owned = 1'>"
        "<p id='planted' style='color: rgb(1, 2, 3)'>x</p>"
    )
    path = tmp_path / "planted.html"
    path.write_text(text.replace("<h1", planted + "<h1", 1), encoding="utf-8")
    page = chromium.new_page()
    failed, asked = [], []
    page.on("response", lambda response: asked.append(response.url))
    page.on("requestfailed", lambda request: failed.append((request.url, request.failure)))
    page.goto(path.as_uri())
    assert page.evaluate("window.owned") is None
    assert "rgb(1, 2, 3)" not in page.evaluate("getComputedStyle(planted).color")
    assert [url for url in asked if url.startswith("http")] == []
    assert [reason for url, reason in failed if url.startswith("http")] in ([], ["csp"])
    page.close()


# -- the viewer ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """Returns a dataset of one sample with 30 turns and long results."""
    folder = tmp_path_factory.mktemp("long")
    messages = []
    for number in range(6):
        call = json.dumps({"name": "read_file", "arguments": {"path": f"notes/{number}.md"}})
        found = "\n".join(f"line {line} of file {number}" for line in range(60))
        messages += [
            {"role": "user", "content": f"What does note {number} say about needles?"},
            {"role": "assistant", "content": f"<tool_call>\n{call}\n</tool_call>"},
            {"role": "user", "content": f"<tool_response>\n{found}\n</tool_response>"},
            {"role": "assistant", "content": f"Note {number} says nothing."},
        ]
    path = folder / "long.jsonl"
    path.write_text(json.dumps({"messages": messages, "tools": []}) + "\n")
    with served(path, {}, folder) as server:
        yield server.url


@pytest.fixture
def viewed(built, tmp_path):
    with served(built, manifest(built), tmp_path, DATA / "codex") as server:
        yield server.url


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_from_the_list_to_a_sample_and_on(opened, viewed, size):
    page = opened(viewed, size)
    assert page.locator(".samples tbody tr").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]
    first = page.locator(".samples a.asked").first.inner_text()
    page.locator(".samples a.asked").first.click()
    expect(page.locator("h2.asked-for")).to_have_text(first)
    assert page.locator("#turn-0").bounding_box()["y"] < 250
    bar = page.locator(".sample-bar").bounding_box()
    assert size == PHONE or bar["y"] + bar["height"] <= 100
    page.get_by_role("link", name="Rendered text").click()
    expect(page.locator("pre.rendered mark").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".subtitle")).to_have_text("Sample #1")
    page.get_by_role("link", name="Back to the list").click()
    page.fill("input[name=to]", "0")
    page.keyboard.press("Enter")
    expect(page.locator(".subtitle")).to_have_text("Sample #0")
    page.get_by_role("link", name="Overview").click()
    expect(page.locator("#accounting tbody tr").first).to_be_visible()
    page.get_by_role("link", name="Rejects").click()
    expect(page.locator(".subtitle")).to_have_text("Rejects")


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_a_chosen_tab_is_on_the_first_screen(opened, viewed, size):
    page = opened(f"{viewed}row?at=0.0", size)
    legend = page.locator(".shares p")
    assert legend.evaluate("item => item.scrollWidth <= item.clientWidth")
    talk, beside = page.locator(".talk"), page.locator(".beside")
    for name in ("Rendered text", "Raw records"):
        page.get_by_role("link", name=name).click()
        expect(beside.get_by_role("heading", name=name)).to_be_in_viewport()
        assert talk.is_visible() == (size == DESK)
    page.get_by_role("link", name="Conversation").click()
    expect(beside).to_have_count(0)
    assert talk.is_visible()


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_the_header_is_the_same_on_all_pages(opened, viewed, size):
    """Above the first text of each page: the same name, and links that it does not cover."""
    page = opened(viewed)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    seen = set()
    for name in ("Samples", "Rejects", "Overview"):
        page.get_by_role("link", name=name, exact=True).first.click()
        expect(page.locator(".subtitle")).to_have_text(name)
        heading, first = page.locator("h1"), page.locator("body > nav a").first
        style = heading.evaluate("item => getComputedStyle(item).fontSize")
        seen.add((style, heading.bounding_box()["y"], first.bounding_box()["x"]))
        below = page.locator(".subtitle").bounding_box()
        link = first.bounding_box()
        assert link["x"] > below["x"] + below["width"] or link["y"] > below["y"]
    assert len(seen) == 1, seen


@pytest.mark.parametrize("width", [1280, 1400])
def test_all_columns_of_the_list_are_on_the_screen(opened, tmp_path, width):
    turns = [{"role": "user", "content": "x" * 500}, {"role": "assistant", "content": "y"}]
    source = f"a/folder/{'z' * 200}.jsonl"
    for room, row in (
        ("data", {"messages": turns, "tools": []}),
        ("meta", {"id": "0" * 64, "source": source, "model": "m" * 200}),
    ):
        path = tmp_path / "built" / room / "train-00000-of-00001.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(row) + "\n")
    with served(tmp_path / "built", {}, tmp_path) as server:
        page = opened(server.url, (width, 900))
        wide, seen = page.locator(".scroll").evaluate("box => [box.scrollWidth, box.clientWidth]")
        assert wide <= seen


def test_a_search_marks_what_it_found_and_leads_to_it(opened, long):
    page = opened(long)
    page.fill("input[name=text]", "FILE 4")
    page.keyboard.press("Enter")
    expect(page.locator(".hits")).to_contain_text("1 of 1 samples contains “FILE 4”")
    assert page.locator(".excerpt mark.hit").first.inner_text() == "file 4"
    page.locator(".samples a.asked").click()
    expect(page.locator(".turns mark.hit")).to_have_count(60)
    # The fold that contains it is open, the others are not.
    assert page.locator("details.fold[open]").count() == 1
    expect(page.locator(".turns mark.hit").first).to_be_in_viewport()


def test_the_list_follows_what_is_typed(opened, viewed):
    page = opened(viewed)
    page.fill("input[name=text]", "no sample holds this")
    expect(page.locator(".hits")).to_contain_text("0 of 3 samples contain")
    page.fill("input[name=text]", "")
    expect(page.locator(".hits")).to_contain_text("3 of 3 samples")


def test_the_outline_leads_to_turns_and_long_results_fold(opened, long):
    page = opened(f"{long}row?at=0.0")
    assert page.locator(".outline a").count() == 24
    assert page.locator(".outline a").nth(1).inner_text().split()[:2] == ["assistant", "read_file"]
    page.locator(".outline a").nth(23).click()
    expect(page.locator("#turn-23")).to_be_in_viewport()
    folds = page.locator("details.fold")
    assert folds.count() == 6
    button = page.get_by_role("button", name="long texts")
    assert button.get_attribute("aria-expanded") == "false"
    button.click()
    assert page.locator("details.fold[open]").count() == 6
    assert button.get_attribute("aria-expanded") == "true"
    page.keyboard.press("f")
    assert page.locator("details.fold[open]").count() == 0
    folds.first.locator("summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("details.fold[open]").count() == 1


def test_the_raw_records_are_displayed_at_the_side(opened, viewed):
    page = opened(viewed)
    page.locator(".facets a", has_text="codex").first.click()
    page.locator(".samples a.asked").first.click()
    page.get_by_role("link", name="Raw records").click()
    expect(page.locator(".raw h3")).to_have_text("Raw records")
    turn, record = page.locator(".turns > li").first, page.locator(".raw li").first
    assert turn.bounding_box()["x"] < record.bounding_box()["x"]
    page.locator(".to-record").first.click()
    expect(page.locator(".raw li:target")).to_be_in_viewport()


def test_keys_move_through_the_samples(opened, viewed):
    page = opened(viewed)
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.matches('.samples a.asked')")
    page.keyboard.press("Enter")
    page.wait_for_selector("a[rel=next]")
    first = page.url
    page.keyboard.press("j")
    page.wait_for_url(lambda address: address != first)
    page.wait_for_selector("a[rel=prev]")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(first)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("jar?")
    assert page.evaluate("document.activeElement.value") == "jar?"
    assert page.url == first


def test_a_review_by_keys_and_forms(opened, viewed, tmp_path):
    page = opened(f"{viewed}row?at=0.1")
    path = tmp_path / "r.review.jsonl"
    with page.expect_navigation():
        page.keyboard.press("r")
    assert [item.decision for item in read_review(path).decisions.values()] == ["reject"]
    expect(page.locator(".subtitle")).to_have_text("Sample #2")  # a decision leads to the next
    expect(page.locator(".sample-bar")).to_contain_text("1 reviewed")
    assert page.locator("#turn-0").bounding_box()["y"] < 250  # also below the review's state
    page.get_by_role("link", name="Back to the list").click()
    expect(page.locator(".progress").first).to_contain_text("1 of 3 reviewed")
    expect(page.locator("p.progress", has_text="Kept in")).to_contain_text(f"--review {path}")
    expect(page.locator(".state")).to_have_text("rejected")
    assert page.locator(".state").bounding_box()["height"] < 24  # on one line
    order, search = (
        page.locator(f".tools-bar form[role=search] {name}").bounding_box()
        for name in ("select", "button")
    )
    assert order["x"] + order["width"] <= search["x"]
    page.goto(f"{viewed}row?at=0.1")
    pressed = page.locator("form.review button[aria-pressed=true]")
    expect(pressed).to_have_text("Reject")
    page.keyboard.press("n")
    page.keyboard.type("asks a <i>")
    with page.expect_navigation():
        page.get_by_role("button", name="Save the note").click()
    expect(page.locator("textarea")).to_have_value("asks a <i>")
    expect(pressed).to_have_text("Reject")
    with page.expect_navigation():
        page.keyboard.press("a")
    page.goto(f"{viewed}row?at=0.1")
    expect(pressed).to_have_text("Accept")
    page.get_by_role("link", name="Back to the list").click()
    assert page.locator(".state").all_inner_texts() == ["accepted"]
    [decided] = read_review(path).decisions.values()
    assert (decided.decision, decided.note) == ("accept", "asks a <i>")


# -- accessibility: axe-core finds nothing, in light and dark, at two sizes ------------------------

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
