"""benchmarks/sparse.py: its two runs differ in the sparsity alone."""

from __future__ import annotations

import numpy as np
import pytest
from scripts import load_script

from vdla.compiler.graph.zero_tiles import zero_share
from vdla.compiler.targets.accelerator.operators import template
from vdla.isa.config import load_config

sparse = load_script("benchmarks/sparse.py")
PAPER = load_config("paper")


@pytest.mark.parametrize(("sizes", "zeros"), [([160, 320], 0.8), ([32, 64, 3, 6], 0.75)])
def test_layers_have_the_share(sizes, zeros):
    graph = sparse.layer(sizes, zeros, PAPER)
    assert zero_share(graph.constants["w"], 16, 16) == zeros
    assert graph.constants["w"].shape[:2] == (sizes[1], sizes[0])


def test_both_ways_compute_the_same_in_different_cycles():
    graph, known = sparse.layer([160, 320], 0.8, PAPER), dict(template.INSTEAD)
    whole, own = sparse.with_all_tiles(graph, PAPER), sparse.measured(graph, PAPER)
    np.testing.assert_array_equal(whole.output, own.output)
    assert whole.cycles > 2 * own.cycles
    assert whole.constants > 2 * own.constants
    assert known == template.INSTEAD
