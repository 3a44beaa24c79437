"""The README is short, and what it shows and names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def test_it_is_short():
    assert len(README.encode()) <= 12 * 1024


def test_links_and_pictures_are_there():
    links = LINK.findall(README)
    assert len(links) > 15
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_what_newcomers_look_for_is_named():
    for word in ("PyTorch", "FAQ", "CITATION", "isn't listed", "pip install", "notebooks/"):
        assert word in README


def test_install_lines_work_in_a_clone():
    """Nothing is published under the name yet."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    unpublished = re.compile(r"pip install (--\S+ )?'?vdla\b(?!-)")
    assert [page.name for page in pages if unpublished.search(page.read_text())] == []
