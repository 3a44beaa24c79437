"""Batch normalization at inference."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import IMAGE, NAMES, RNG, check, check_types, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.batch_norm import QBatchNorm
from vdla.compiler.graph.types import Requant

F = "float32"


def test_factors_and_offsets_of_channels():
    real = {"x": (F, *IMAGE), "y": (F, *IMAGE)}
    vectors = {k: RNG.standard_normal(5).astype(np.float32) for k in "fo"}
    node = ops.BatchNorm(name="n", data="x", factor="f", offset="o", output="y")
    check_types(node, real, vectors, exact=False)


SCALES, OFFSETS = (0.5, -0.25, 1.75), (10.0, -3.5, 0.25)


def test_integers():
    """Scales and offsets of few bits are exact in fixed point."""
    requant = Requant(SCALES, -4, -110, 100)
    node = QBatchNorm(**NAMES, data="x", offsets=OFFSETS, zeros=(7,), requant=requant)
    x = numbers("int8", (2, 3, 4, 5), -128, 128)
    scales, offsets = (np.array(each)[:, None, None] for each in (SCALES, OFFSETS))
    wanted = np.clip(np.rint((x.astype(float) - 7) * scales + offsets) - 4, -110, 100)
    np.testing.assert_array_equal(check(node, x), wanted)


def test_one_of_each_for_a_channel():
    node = QBatchNorm(**NAMES, data="x", offsets=OFFSETS, zeros=(0,), requant=Requant(SCALES, 0))
    with pytest.raises(GraphError, match=r"expected \(4,\) scales and offsets, found \[3\]"):
        node.result_shape([(2, 4, 3, 3)])
