"""Fixtures of the report tests."""

import pytest
from support.pages.browser import DESK, browser
from support.pages.reports import manifest
from support.pages.viewer import served
from support.places import DATA
from support.runs.builds import build


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("report") / "out"
    assert build(out, "--workers", "1", inputs=(DATA / "openai-chat", DATA / "codex")) == 0
    return out


@pytest.fixture(scope="module")
def server(built, tmp_path_factory):
    with served(str(built), manifest(built), tmp_path_factory.mktemp("view")) as running:
        yield running


@pytest.fixture(scope="module")
def chromium():
    """Starts one browser per module: its event loop must not outlive the tests that need it."""
    with browser() as launched:
        yield launched


@pytest.fixture(scope="module")
def tab(chromium):
    """Opens one page per module: each new one takes the browser a second of CPU."""
    page = chromium.new_page()
    yield page
    page.close()


@pytest.fixture
def opened(tab):
    """Opens an address; then checks that the console is empty and only pages were requested.

    All visits share one page, so a visit ends the previous one.
    """
    content, asked, visited = [], [], []
    notes = {
        "console": lambda message: content.append(message.text),
        "pageerror": lambda error: content.append(str(error)),
        "dialog": lambda dialog: content.append(dialog.message),
        "request": lambda request: asked.append(request.url),
    }
    tab.goto("about:blank")
    for event, note in notes.items():
        tab.on(event, note)

    def visit(address, size=DESK, scheme="light"):
        tab.set_viewport_size({"width": size[0], "height": size[1]})
        tab.emulate_media(color_scheme=scheme)
        tab.goto(address)
        visited.append(address)
        return tab

    yield visit
    for event, note in notes.items():
        tab.remove_listener(event, note)
    assert content == []
    begin = {address.rpartition("/")[0] for address in visited}
    assert [url for url in asked if url.rpartition("/")[0] not in begin] == []
    assert len([url for url in asked if url.startswith("file:")]) in (0, len(visited))
