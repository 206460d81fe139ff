"""Makes the README's screenshots from the quickstart: docs/images/report.png and sample.png.

    python scripts/pictures.py [CHROMIUM]

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

from playwright.sync_api import ViewportSize, sync_playwright

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
WIDE = ViewportSize(width=1280, height=800)
SAMPLE = ViewportSize(width=1280, height=700)


@contextlib.contextmanager
def viewing(folder: Path, dataset: Path) -> Iterator[str]:
    """Runs the viewer meanwhile, and yields its address; `folder` is for its review file."""
    command = [sys.executable, "-m", "builder", "view", str(dataset), "--no-open", "--json"]
    command += ["--review", str(folder / "pictures.review.jsonl")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as viewer:
        assert viewer.stdout is not None
        yield json.loads(viewer.stdout.readline())["url"]
        viewer.terminate()


def main() -> None:
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
        with viewing(Path(scratch), out) as url:
            page.set_viewport_size(SAMPLE)
            page.goto(f"{url}row?at=0.0&side=text")
            page.screenshot(path=IMAGES / "sample.png")
        browser.close()


if __name__ == "__main__":
    main()
