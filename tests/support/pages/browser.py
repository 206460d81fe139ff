"""The system's Chromium, for tests of rendered pages."""

import contextlib
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)

PHONE, DESK = (390, 844), (1280, 900)


@contextlib.contextmanager
def browser():
    """Yields a browser; skips the test if there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the extra `browser` is missing")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()
