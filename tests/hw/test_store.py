"""STORE, beside what lockstep and its formal proof say of it."""

import pytest
from amaranth.back import rtlil

from vdla.hw.store import Store
from vdla.isa.config import load_config


@pytest.mark.parametrize("lanes", [4, 8, 12])
def test_a_vector_has_one_beat_two_or_three(lanes):
    """Behind a port of four lanes; three are no power of two."""
    config = load_config("tiny", [f"block_out={lanes}", f"acc_bytes={lanes * 512}"])
    assert "module" in rtlil.convert(Store(config))
