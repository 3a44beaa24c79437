"""Steps that a result goes through before it is stored."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import RNG, check_types

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.epilogue import extended
from vdla.compiler.graph.types import Requant, TensorType


def conv(**changes):
    names = {"name": "c", "data": "x", "weight": "w", "bias": "b", "output": "y"}
    return ops.QConv2d(**{**names, "zeros": (0,), "requant": Requant((0.5,) * 6, 0), **changes})


def test_residual_must_have_the_result_shape():
    addition = ops.AddStep(addend="r", zeros=(0, 0), requant=Requant((1.0, 1.0), 0))
    node = conv(epilogue=(addition,))
    with pytest.raises(GraphError, match=r"expected an addend of shape \[1, 6, 6, 6\], found"):
        node.result_shape([(1, 4, 8, 8), (6, 4, 3, 3), (6,), (1, 6, 5, 6)])


SUM = ops.QAdd(
    name="s", a="y", b="r", output="z", zeros=(5, -4), requant=Requant((0.7, 1.3), 3, -99, 99)
)
LOOKED_UP = ops.QTable(name="t", data="z", output="u", table="t")


def test_steps_are_those_of_nodes_behind_it():
    """By whichever operand the result is; a table comes behind a sum."""
    (addition,) = extended((), SUM, "y")
    assert addition == ops.AddStep(addend="r", zeros=SUM.zeros, requant=SUM.requant)
    (other,) = extended((), SUM, "r")
    assert (other.addend, other.zeros, other.requant.scale) == ("y", (-4, 5), (1.3, 0.7))
    both = extended((addition,), LOOKED_UP, "z")
    assert both == (addition, ops.TableStep(table="t"))
    assert extended(both, SUM, "y") is None
    assert extended((), ops.Relu(name="r", data="y", output="z"), "y") is None


@pytest.mark.parametrize("residual", [(2, 6, 6, 6), (1, 6, 1, 1)])
def test_numbers_are_those_of_nodes_behind_it(residual):
    kind = TensorType((2, 6, 6, 6), "int8")
    plain = conv(requant=Requant((0.01,) * 6, 0))
    table = RNG.integers(-128, 128, 256).astype(np.int8)
    weights = {
        "w": RNG.integers(-128, 128, (6, 4, 3, 3)).astype(np.int8),
        "b": RNG.integers(-900, 900, 6).astype(np.int32),
    }
    x, r = (RNG.integers(-128, 128, s).astype(np.int8) for s in ((2, 4, 8, 8), residual))
    whole = plain.with_step(SUM).with_step(LOOKED_UP)
    assert (whole.output, whole.inputs) == ("u", ("x", "w", "b", "r", "t"))
    spread = np.broadcast_to(r, kind.shape)
    result = SUM.evaluate([plain.evaluate([x, *weights.values()], kind), spread], kind)
    wanted = LOOKED_UP.evaluate([result, table], kind)
    found = whole.evaluate([x, *weights.values(), r, table], kind)
    np.testing.assert_array_equal(found, wanted)
    types = {"x": ("int8", *x.shape), "r": ("int8", *residual), "u": ("int8", *kind.shape)}
    check_types(whole, types, {**weights, "t": table})
