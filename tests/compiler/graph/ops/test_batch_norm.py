"""Batch normalization at inference."""

from __future__ import annotations

import numpy as np
from nodes import IMAGE, RNG, check_types

from vdla.compiler.graph import ops

F = "float32"


def test_factors_and_offsets_of_channels():
    real = {"x": (F, *IMAGE), "y": (F, *IMAGE)}
    vectors = {k: RNG.standard_normal(5).astype(np.float32) for k in "fo"}
    node = ops.BatchNorm(name="n", data="x", factor="f", offset="o", output="y")
    check_types(node, real, vectors, exact=False)
