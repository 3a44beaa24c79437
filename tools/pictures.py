"""Takes docs/images/explore-report.png: the page of a search for designs, as a browser shows it.

    python tools/pictures.py [PAGE.html]    # without a page, searches first: some minutes

The search is the one of ``SEARCH``; its baseline lies in its space, and designs of its front are
faster. Needs chromium and the extra ``dev``.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SEARCH = "explore digits --space small --baseline tiny --trials 0 --budget 480 --report"
WIDTH, HEIGHT = 1100, 1010  # pixels


def take(page: Path, picture: Path, drawn: str = "#front-chart circle") -> None:
    """Writes a picture of the top of a page, once ``drawn`` is on it."""
    from playwright.sync_api import sync_playwright

    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser_path is None:
        raise SystemExit("expected chromium, found none; install with: apt-get install chromium")
    with sync_playwright() as playwright:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=browser_path, args=root)
        shown = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        shown.goto(page.absolute().as_uri())
        shown.wait_for_selector(drawn)
        shown.screenshot(path=picture)
        browser.close()


def main() -> None:
    """Searches unless a page is given, and takes the picture."""
    with TemporaryDirectory() as folder:
        page = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "designs.html"
        if len(sys.argv) == 1:
            command = [str(Path(sys.executable).with_name("vdla")), *SEARCH.split(), str(page)]
            run(command, check=True)
        take(page, IMAGES / "explore-report.png")


if __name__ == "__main__":
    main()
