"""Quantized volumes, whose convolutions and pools are those of images."""

from __future__ import annotations

from any_rank import conv, differences, kinds, pool
from hypothesis import given, settings
from hypothesis import strategies as st
from qdq import QdqModel

from vdla.compiler.graph.window import Window


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_convolution_of_a_volume(data):
    """Taps along the depth are brought together by moves of images, and one sum is rounded."""
    draw = data.draw
    groups, each = draw(st.sampled_from([(1, 5), (2, 3), (4, 1)]))
    steps = st.tuples(*[st.integers(1, 2)] * 3)
    kernel = draw(st.tuples(*[st.integers(1, 3)] * 3))
    pads = draw(st.tuples(*[st.integers(0, 2)] * 6))
    window = Window(kernel, draw(steps), pads, draw(steps))
    m = QdqModel(draw(st.integers(0, 9)), draw(st.sampled_from(["int8", "uint8"])))
    x = m.input("x", (draw(st.integers(1, 2)), groups * each, 5, 6, 7))
    m.output(conv(m, x, groups * 2, window, groups, draw(st.sampled_from([None, "Relu"]))))
    graph, steps = differences(m)
    assert "QConv2d" in kinds(graph)
    assert not {"Conv2d", "Take", "Add"} & set(kinds(graph))
    assert steps.max() <= 1
    assert (steps > 0).mean() < 0.02


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_pool_of_a_volume(data):
    draw = data.draw
    kernel = draw(st.tuples(*[st.integers(1, 3)] * 3))
    pads = tuple(draw(st.integers(0, k - 1)) for k in (*kernel, *kernel))
    window = Window(kernel, draw(st.tuples(*[st.integers(1, 3)] * 3)), pads, (1, 1, 1))
    m = QdqModel(draw(st.integers(0, 9)), draw(st.sampled_from(["int8", "uint8"])))
    x = m.input("x", (draw(st.integers(1, 2)), 3, 5, 6, 7))
    op, more = draw(
        st.sampled_from([
            ("MaxPool", {}),
            ("AveragePool", {"count_include_pad": 1}),
            ("AveragePool", {"count_include_pad": 0}),
        ])
    )  # fmt: skip
    m.output(pool(m, op, x, window, **more))
    graph, steps = differences(m)
    whole = op == "MaxPool" or more["count_include_pad"] or not (pads[0] or pads[3])
    if whole:  # else the divisors differ from depth to depth
        assert {"QMaxPool", "QAvgPool"} & set(kinds(graph))
    assert steps.max() <= (1 if op == "AveragePool" else 0)
