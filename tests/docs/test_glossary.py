"""The glossary names files that are there, and words once."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| (.+?) \| (.+) \| `([^`]+)` \|$", (ROOT / "docs/glossary.md").read_text(), re.M
)


def test_every_word_has_a_home():
    assert len(ROWS) > 30
    assert [home for _, _, home in ROWS if not (ROOT / home).exists()] == []


def test_no_word_stands_twice():
    words = [word for word, _, _ in ROWS]
    assert len(words) == len(set(words))


def test_a_word_in_code_is_found_in_its_home():
    """Where the word is a name, its file has it."""
    for word, _, home in ROWS:
        path = ROOT / home
        if path.suffix == ".py" and re.fullmatch(r"[a-z]+", word):
            assert re.search(rf"(?i)\b{word}", path.read_text()), (word, home)
