"""A program of its own: where its tensors lie, and that they can."""

from __future__ import annotations

import pytest

from vdla.compiler.targets.accelerator import standalone as module
from vdla.compiler.targets.accelerator.codegen.allocate import AllocationError
from vdla.compiler.targets.accelerator.lower import Linker
from vdla.compiler.targets.accelerator.standalone import standalone
from vdla.isa.config import load_config


def test_tensors_beyond_32_bits_are_refused_before_anything_is_allocated(monkeypatch):
    monkeypatch.setattr(module, "memory_bytes", lambda: 1 << 40)
    message = (
        "config tiny: expected tensors of at most 4,294,967,296 bytes in DRAM, "
        "found 5,368,709,184; the largest, B, has 4,294,967,296"
    )
    with pytest.raises(AllocationError, match=message):
        standalone(Linker(load_config("tiny")), {"A": 1 << 30, "B": 1 << 32}, {})


def test_tensors_beyond_this_machine_are_refused(monkeypatch):
    monkeypatch.setattr(module, "memory_bytes", lambda: 1 << 20)
    with pytest.raises(AllocationError, match="of at most 1,048,576 bytes in DRAM, found 2,0"):
        standalone(Linker(load_config("tiny")), {"A": 2_000_000}, {})


def test_what_fits_lies_one_behind_the_other():
    alone = standalone(Linker(load_config("tiny")), {"A": 100, "B": 64}, {})
    assert (alone.addresses["A"], alone.ends["A"], alone.addresses["B"]) == (0, 100, 128)
