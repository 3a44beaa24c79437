"""Decisions say when they were made and whether they stand."""

import re
from pathlib import Path

import pytest

DECISIONS = sorted((Path(__file__).parents[2] / "docs" / "decisions").glob("*.md"))


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_date_and_status(path):
    title, _, status = path.read_text().splitlines()[:3]
    assert title.startswith(f"# {int(path.stem[:4])}. ")
    assert re.match(r"\d{4}-\d\d-\d\d, (accepted|superseded|rejected)", status)
