"""The generated forms of the instruction set."""

from __future__ import annotations

from pathlib import Path

from vdla.isa.config import load_config
from vdla.isa.manual import manual

MANUAL = Path(__file__).parents[2] / "isa" / "ISA.md"


def test_the_manual_in_the_repository_says_what_the_sources_say():
    assert MANUAL.read_text() == manual(load_config("paper")), "run: vdla isa doc -o isa/ISA.md"
