"""A module that all tests of packages share, with inputs and outputs."""

from __future__ import annotations

import pytest
from raw_runs import raw, wanted

import vdla


@pytest.fixture(scope="session")
def digits():
    """The bundled digits for this processor, the bytes of an input, and those of the output."""
    module = vdla.compile("digits", device="cpu")
    inputs = vdla.random_inputs(module, 3)
    return module, raw(module, inputs), wanted(module, inputs)
