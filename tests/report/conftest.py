"""Fixtures of the tests of the report."""

import pytest
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
