"""Additions of two tensors."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import IMAGE, NAMES, check, check_types, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.types import Requant

F, I8 = "float32", "int8"


def test_additions():
    image = {"x": (I8, *IMAGE), "y": (I8, *IMAGE)}
    add = ops.QAdd(
        name="n", a="x", b="z", output="y", zeros=(3, -8), requant=Requant((0.31, 1.7), 1, high=99)
    )
    check_types(add, {**image, "z": (I8, *IMAGE)})
    real = {"x": (F, *IMAGE), "y": (F, *IMAGE)}
    check_types(ops.Add(name="n", a="x", b="z", output="y"), {**real, "z": (F, 5, 1, 1)})


@pytest.mark.parametrize("scales", [(0.5, 1.25), (0.75, -0.375)])
def test_sums_of_integers(scales):
    """Of scales that are few bits, and so exact in fixed point."""
    a, b = (numbers("int8", (2, 5, 3, 4), -128, 128) for _ in range(2))
    requant = Requant(scales, 1, -100, 99)
    node = ops.QAdd(**NAMES, a="a", b="b", zeros=(3, -8), requant=requant)
    real = (a.astype(float) - 3) * scales[0] + (b.astype(float) + 8) * scales[1]
    wanted = np.clip(np.rint(real) + 1, -100, 99)
    np.testing.assert_array_equal(check(node, a, b), wanted)


def test_shapes_that_do_not_fit():
    node = ops.QAdd(**NAMES, a="a", b="b", zeros=(0, 0), requant=Requant((1.0, 1.0), 0))
    expected = r"n \(QAdd\): expected a second operand of shape \[2, 3\], found \[3\]"
    with pytest.raises(GraphError, match=expected):
        node.result_shape([(2, 3), (3,)])
    expected = r"n \(Add\): expected operands of one shape, found \[2, 3\] and \[2\]"
    with pytest.raises(GraphError, match=expected):
        ops.Add(**NAMES, a="a", b="b").result_shape([(2, 3), (2,)])


def test_a_clip_behind_it_is_its_own():
    """Narrower bounds are; wider ones change nothing."""
    requant = Requant((0.5, 1.25), -9, -100, 90)
    node = ops.QAdd(**NAMES, a="a", b="b", zeros=(4, 0), requant=requant)
    assert node.clipped(-20, 120).requant == Requant((0.5, 1.25), -9, -20, 90)
    assert node.clipped(-128, 127) == node
