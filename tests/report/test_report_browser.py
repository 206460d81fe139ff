"""The report in a real browser: rendering, interaction, and content security.

Needs the extra `browser` (playwright) and the system's Chromium; skipped if one is missing.
"""

from pathlib import Path

import pytest
from support.pages.browser import DESK, PHONE
from support.pages.reports import HOSTILE, audit, dataset, manifest, report_page

sync_api = pytest.importorskip("playwright.sync_api", reason="the extra `browser` is missing")
pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_every_chart_is_visible_and_nothing_overflows(opened, report, size):
    page = opened(report, size)
    page.click("#charts > details > summary")
    assert page.locator("#chart-lengths > svg").bounding_box()["height"] > 60
    bars = page.locator("#table-mix td.bar svg")
    assert [bar.is_visible() for bar in bars.all()] == [True, True]
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]


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
    sync_api.expect(output).to_have_text(f"0 of {total} shown")
    assert seen.count() == 0
    page.fill("#samples input[type=search]", "")
    sync_api.expect(output).to_have_text(f"{total} of {total} shown")
    page.click("button[data-open=all]")
    assert page.locator(".sample[open]").count() == total
    page.click("button[data-open=none]")
    assert page.locator(".sample[open]").count() == 0


def test_a_finding_leads_to_its_sample(opened, report):
    page = opened(report)
    page.click(".findings summary")
    page.click(".findings a")
    sync_api.expect(page.locator("#sample-0")).to_have_attribute("open", "")
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
