"""The README's figures are what its commands print."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_readme_figures_are_current():
    done = subprocess.run(
        [sys.executable, "docs/readme_figures.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_readme_images_exist():
    text = (ROOT / "README.md").read_text()
    assert "docs/images/resnet18-convs-paper-utilization.png" in text
    assert (ROOT / "docs/images/resnet18-convs-paper-utilization.png").stat().st_size > 10_000
