"""Products whose scales are measured as they run, in other operators."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import vdla
from vdla.compiler.graph.ops.dynamic_matmul import DynamicMatMul
from vdla.compiler.graph.passes.dynamic import spell_dynamic
from vdla.compiler.graph.reference import evaluate

BITS = st.sampled_from([8, 16])


@given(data=st.data())
def test_what_is_written_out_is_the_product_bit_for_bit(data):
    rows, inner, columns = (data.draw(st.integers(1, 6)) for _ in range(3))
    stacks = data.draw(st.sampled_from([((), ()), ((2,), ()), ((), (3,)), ((2, 1), (1, 3))]))
    bits = data.draw(BITS), data.draw(BITS)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a = rng.standard_normal((*stacks[0], rows, inner)).astype(np.float32)
    b = rng.standard_normal((*stacks[1], inner, columns)).astype(np.float32)

    def product(a, b):
        return vdla.dynamic_matmul(a, b, bits)

    graph = spell_dynamic(vdla.fn(product).graph(a, b))
    assert not graph.of(DynamicMatMul)
    (name,) = graph.outputs
    result = evaluate(graph, dict(zip(graph.inputs, (a, b), strict=True)))[name]
    np.testing.assert_array_equal(result, product(a, b))
