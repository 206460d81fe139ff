"""Fixtures of the report tests."""

import pytest
from browsing import DESK, browser
from builds import build
from places import DATA
from report_pages import manifest
from viewing import served


@pytest.fixture(scope="module")
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
    """One browser per module: its event loop must not outlive the tests that need it."""
    with browser() as launched:
        yield launched


@pytest.fixture
def opened(chromium):
    """Opens an address; then checks that the console is empty and only pages were requested."""
    content, asked, pages = [], [], []

    def visit(address, size=DESK, scheme="light"):
        page = chromium.new_page(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
        )
        page.on("console", lambda message: content.append(message.text))
        page.on("pageerror", lambda error: content.append(str(error)))
        page.on("dialog", lambda dialog: content.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        pages.append(page)
        return page

    yield visit
    assert content == []
    begin = {page.url.partition("#")[0].rpartition("/")[0] for page in pages}
    assert [url for url in asked if url.rpartition("/")[0] not in begin] == []
    assert len([url for url in asked if url.startswith("file:")]) in (0, len(pages))
    for page in pages:
        page.close()
