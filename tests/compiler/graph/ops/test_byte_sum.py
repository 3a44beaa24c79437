"""Sums of bytes: the bytes of the sums of 16 bits, in every bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nodes import NAMES, check

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.byte_sum import QByteSum
from vdla.compiler.graph.ops.wide import MOST, QBytes, QWideSum
from vdla.compiler.graph.types import Requant, TensorType

SHAPE = (1, 5, 2, 3)


def split(whole):
    """The bytes of an image of 16 bits."""
    return QBytes(**NAMES, data="x").evaluate([whole], TensorType((2, *SHAPE[1:]), "int8"))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["bytes", "int32", "int8"]), min_size=1, max_size=2),
    st.booleans(), st.booleans(), st.integers(0, 12), st.integers(0, 99),
)  # fmt: skip
def test_bytes_of_the_sum_of_whole_tensors(kinds, narrow, moved, shift, seed):
    rng = np.random.default_rng(seed)
    whole = [
        rng.integers(-128, 128, SHAPE).astype(np.int8)
        if kind == "int8"
        else rng.integers(-MOST, MOST + 1, SHAPE).astype(np.int32)
        for kind in kinds
    ]
    offset = rng.integers(-9000 << shift, (9000 << shift) + 1, SHAPE[1]).astype(np.int32)
    names = tuple(f"t{n}" for n in range(len(kinds)))
    fields = {
        "terms": names, "zeros": tuple(3 if kind == "int8" else 0 for kind in kinds),
        "weights": tuple(int(n) for n in rng.integers(-(1 << 14) + 1, 1 << 14, len(kinds))),
        "shift": shift, "low": -30000, "requant": Requant((1e-4,), 5, -90) if narrow else None,
        "offset": "o" if moved else None,
    }  # fmt: skip
    extra = [offset.reshape(1, -1, 1, 1)] if moved else []
    kind = TensorType(SHAPE, "int8" if narrow else "int32")
    wanted = QWideSum(**NAMES, **fields).evaluate([*whole, *extra], kind)
    both = [split(x) if k == "bytes" else x for x, k in zip(whole, kinds, strict=True)]
    node = QByteSum(**NAMES, **fields, bytes=tuple(kind == "bytes" for kind in kinds))
    result = check(node, *both, *([offset] if moved else []), dtype="int8")
    np.testing.assert_array_equal(result, wanted if narrow else split(wanted))


def test_operands_that_do_not_fit():
    node = QByteSum(
        **NAMES, terms=("a", "b"), bytes=(True, False), zeros=(0, 0), weights=(1, 1), shift=0,
        offset="o",
    )  # fmt: skip
    assert node.result_shape([(2, 5, 2, 3), SHAPE, (5,)]) == (2, 5, 2, 3)
    with pytest.raises(GraphError, match="expected one or two operands of one image"):
        node.result_shape([(2, 5, 2, 3), (1, 5, 2, 4), (5,)])
    with pytest.raises(GraphError, match=r"expected one image \[1, C, H, W\], found \[2, 5"):
        node.result_shape([(4, 5, 2, 3), (2, 5, 2, 3), (5,)])
    with pytest.raises(GraphError, match="expected an offset of 5 channels, found"):
        node.result_shape([(2, 5, 2, 3), SHAPE, (4,)])
