"""Operators and their converters have a test file each, of the same name."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("room", ["compiler/graph/ops", "compiler/frontend/ops"])
def test_each_source_has_its_tests(room):
    sources = {path.stem for path in (ROOT / room).glob("*.py")} - {"__init__"}
    tests = {path.stem for path in (ROOT / "tests" / room).glob("test_*.py")}
    assert {f"test_{name}" for name in sources} == tests
