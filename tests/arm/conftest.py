"""Emulated boards, and what is compared there and here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from emulated import SYSTEMS, Board, missing

OLDEST = "cortex-a9"
PROCESSORS = [
    name if name == OLDEST else pytest.param(name, marks=pytest.mark.long) for name in SYSTEMS
]


@pytest.fixture(scope="session", params=PROCESSORS)
def board(request, tmp_path_factory):
    """An emulated board's processor."""
    absent = missing(request.param)
    if absent:
        pytest.skip(absent)
    made = Board(request.param, tmp_path_factory.mktemp("board"))
    yield made
    made.close()
