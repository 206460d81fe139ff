"""Makes the README's screenshots from the quickstart: docs/images/report.png and sample.png.

    python scripts/pictures.py [CHROMIUM]
    python scripts/pictures.py --pages FOLDER DATASET [LOGS]   every page at desktop and phone size,
                                                               light and dark, for review

Needs the extra `browser` and a system Chromium. Text is drawn with the fonts of the machine, so the
bytes differ between machines; look at the screenshots before you commit them.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import FloatRect, ViewportSize, sync_playwright

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
WIDE = ViewportSize(width=1280, height=800)
SAMPLE = ViewportSize(width=1280, height=700)


PAGES = {
    "list": "",
    "search": "?text=the&sort=-length",
    "sample": "row?at=0.{middle}",
    "records": "row?side=records&at=0.{middle}",
    "rejects": "rejects",
    "reject": "reject?line=0",
    "overview": "overview",
}
LOOKS = {"desk": (1400, 900), "phone": (390, 844)}


def pages(folder: Path, dataset: Path, logs: Path | None) -> None:
    """Writes a screenshot of the first screens of every page."""
    folder.mkdir(parents=True, exist_ok=True)
    with viewing(folder, dataset, logs) as url, sync_playwright() as playwright:
        addresses = {name: url + path.format(middle=7) for name, path in PAGES.items()}
        if (dataset / "report.html").is_file():
            addresses["report"] = (dataset / "report.html").absolute().as_uri()
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for look, (width, height) in LOOKS.items():
            for scheme in ("light", "dark"):
                page = browser.new_page(
                    viewport=ViewportSize(width=width, height=height), color_scheme=scheme
                )
                for name, address in addresses.items():
                    page.goto(address)
                    tall = page.evaluate("document.documentElement.scrollHeight")
                    clip = FloatRect(x=0, y=0, width=width, height=min(tall, 2 * height))
                    path = folder / f"{name}-{look}-{scheme}.png"
                    page.screenshot(path=path, clip=clip, full_page=True)
                page.close()
        browser.close()


@contextlib.contextmanager
def viewing(folder: Path, dataset: Path, logs: Path | None) -> Iterator[str]:
    """Runs the viewer meanwhile, and yields its address; `folder` is for its review file."""
    command = [sys.executable, "-m", "builder", "view", str(dataset), "--no-open", "--json"]
    command += ["--review", str(folder / "pictures.review.jsonl")]
    command += ["--logs", str(logs)] if logs is not None else []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as viewer:
        assert viewer.stdout is not None
        yield json.loads(viewer.stdout.readline())["url"]
        viewer.terminate()


def main() -> None:
    if sys.argv[1:2] == ["--pages"]:
        folder, dataset, *logs = map(Path, sys.argv[2:])
        pages(folder, dataset, logs[0] if logs else None)
        return
    chromium = sys.argv[1] if len(sys.argv) > 1 else shutil.which("chromium")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        out = Path(scratch) / "quickstart"
        build = [sys.executable, "-m", "builder", "build", "data", "-o", str(out), "--quiet"]
        subprocess.run(build, check=True, cwd=ROOT)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=WIDE)
        page.goto((out / "report.html").as_uri())
        IMAGES.mkdir(exist_ok=True)
        page.screenshot(path=IMAGES / "report.png")
        with viewing(Path(scratch), out, None) as url:
            page.set_viewport_size(SAMPLE)
            page.goto(f"{url}row?at=0.0&side=text")
            page.screenshot(path=IMAGES / "sample.png")
        browser.close()


if __name__ == "__main__":
    main()
