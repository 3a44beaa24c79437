"""Frame times of the report's timeline with tens of thousands of instructions, in headless
Chromium.

    python benchmarks/report_speed.py

The layer is ResNet-18's C12 on `tiny` with 8×8 multipliers. Frames are timed while the wheel zooms
in and out, and while the pointer goes over the instructions; 16.7 ms is the screen's own pace.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.table import Table

from vdla.analysis.comparison import compare_models
from vdla.analysis.report import report_page
from vdla.compiler.models import model_paths
from vdla.isa.config import load_config

# Collects the time of every frame, until FRAMES stops it.
START = """() => {
  const frames = window.frames_seen = [];
  const next = time => {
    frames.push(time);
    if (window.frames_seen === frames) requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}"""
FRAMES = """() => {
  const frames = window.frames_seen;
  window.frames_seen = null;
  return frames.slice(1).map((time, i) => time - frames[i]);
}"""


def main() -> int:
    """Prints the table."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("expected chromium, found none; install with: apt-get install chromium")
        return 2
    config = load_config("tiny", ["block_in=8", "block_out=8"])
    result = compare_models({"C12": model_paths("resnet18-convs")["C12"]}, config)
    (layer,) = result.layers
    table = Table("what", "figure")
    table.add_row("instructions shown", f"{len(layer.measured[2].run.instructions):,}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        path.write_text(report_page("C12", result, layer), "utf-8")
        table.add_row("file", f"{path.stat().st_size / 1e6:.1f} MB")
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=root)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(path.as_uri())
        page.wait_for_selector("#placement-table tr")
        table.add_row("until drawn", f"{page.evaluate('performance.now()'):,.0f} ms")
        for what, frames in (("zooming", zoom(page)), ("pointing", point(page))):
            table.add_row(f"{what}: median frame", f"{median(frames):.1f} ms")
            table.add_row(f"{what}: longest frame", f"{max(frames):.1f} ms")
        browser.close()
    Console().print(table)
    return 0


def zoom(page: Page) -> list[float]:
    """Milliseconds of each frame while the wheel turns."""
    x, y = _place(page)
    page.mouse.move(x + 600, y + 80)
    page.evaluate(START)
    for turn in [-30] * 30 + [30] * 30:
        page.mouse.wheel(0, turn)
        page.wait_for_timeout(16)
    return page.evaluate(FRAMES)


def point(page: Page) -> list[float]:
    """Milliseconds of each frame while the pointer moves over the whole layer."""
    x, y = _place(page)
    page.evaluate(START)
    for step in range(60):
        page.mouse.move(x + 200 + 10 * step, y + 66)
        page.wait_for_timeout(16)
    return page.evaluate(FRAMES)


def _place(page: Page) -> tuple[float, float]:
    """Position of the canvas, with the whole layer in view."""
    page.click("#timeline-fit")
    canvas = page.locator("#timeline-canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    return box["x"], box["y"]


if __name__ == "__main__":
    sys.exit(main())
