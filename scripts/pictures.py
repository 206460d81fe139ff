"""Makes the pictures of the README from the quickstart: docs/images/report.png and sample.png.

    python scripts/pictures.py [CHROMIUM]

Needs the extra `browser` and a Chromium of the system. Text is drawn by the fonts of the machine,
so the bytes differ from machine to machine; look at the pictures before you commit them.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
WIDE = {"width": 1180, "height": 760}


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
        sample = page.locator("details.sample").first
        sample.evaluate("item => { item.open = true; }")
        top = sample.evaluate("item => item.getBoundingClientRect().top + window.scrollY")
        tall = min(sample.evaluate("item => item.getBoundingClientRect().height"), 760)
        clip = {"x": 0, "y": top, "width": WIDE["width"], "height": tall}
        page.screenshot(path=IMAGES / "sample.png", clip=clip, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
