"""Images in floats between integers: which are rounded to int8, by which range, and how far off."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from qdq import QdqModel

from vdla.compiler.build import Options, placed_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.passes.affine import spell_affine
from vdla.compiler.graph.passes.round_images import round_images
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.placement import report
from vdla.isa.config import load_config

SHAPE = (1, 8, 6, 6)


def op(m, kind, *names, shape=None, **attributes):
    return m.node(kind, list(names), shape or m.shapes[names[0]], **attributes)


def silu(m, x):
    return op(m, "Mul", x, op(m, "Sigmoid", x))


def mean(m, x):
    return op(m, "GlobalAveragePool", x, shape=(*m.shapes[x][:2], 1, 1))


def number(m, value):
    """A constant of one number."""
    return m.constant(f"number{len(m.weights)}", np.array(value, np.float32))


def channels(m, count=8):
    """A constant for each channel."""
    values = m.rng.uniform(0.5, 1.5, (1, count, 1, 1)).astype(np.float32)
    return m.constant(f"channels{len(m.weights)}", values)


def start(m, scale=0.03):
    """Floats of int8 with one scale."""
    return m.conv(m.input("x", SHAPE, scale), 8, 1)


def rounded(m, dtype="int8"):
    """The graph before and after, verified."""
    graph = import_model(m.model())
    return graph, verify(round_images(graph))


def difference(graph, result, steps):
    """The largest difference of the output, in so large steps."""
    rng = np.random.default_rng(1)
    inputs = {n: rng.normal(size=graph.tensors[n].shape).astype(np.float32) for n in graph.inputs}
    name = graph.outputs[-1]
    return np.abs(evaluate(graph, inputs)[name] - evaluate(result, inputs)[name]).max() / steps


def floats_between(graph):
    """Operators on floats between the first Quantize and the last Dequantize."""
    nodes = optimize(spell_affine(graph)).nodes
    names = [node.op for node in nodes if node.output not in graph.outputs]
    return [name for name in names[1:] if not name.startswith("Q")]


def roundings(graph, result):
    return len(result.of(ops.Quantize)) - len(graph.of(ops.Quantize))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_function_that_two_read_is_a_table(dtype):
    m = QdqModel(3, dtype)
    x = start(m)
    s = silu(m, x)
    gate = m.conv(m.quantized(mean(m, s), 0.01), 8, 1)
    m.output(m.quantized(op(m, "Mul", s, op(m, "Sigmoid", gate)), 0.02))
    graph, result = rounded(m)
    assert floats_between(graph)
    assert not floats_between(result)
    assert roundings(graph, result) == 2
    (node,) = [n for n in result.of(ops.Quantize) if n.data == s]
    source = next(n for n in result.of(ops.Dequantize) if n.output == x)
    values = (np.arange(-128, 128) - source.zero_point[0]) * source.scale[0]
    table = values / (1 + np.exp(-values))
    low, high = min(table.min(), 0), table.max()
    assert node.scale[0] == pytest.approx((high - low) / 255, rel=1e-5)
    assert node.zero_point[0] == round(-128 - low / node.scale[0])
    assert difference(graph, result, 0.02) <= 2


def test_sums_have_the_range_of_another_quantization_or_of_their_operands():
    m = QdqModel(3)
    x = start(m)
    a = op(m, "Relu", op(m, "Add", op(m, "Mul", x, channels(m)), op(m, "Add", x, channels(m))))
    m.output(m.quantized(a, 0.07, -128))
    b = op(m, "Sub", silu(m, x), op(m, "Mul", a, channels(m)))
    m.output(m.quantized(op(m, "Max", b, x), 0.03))
    graph, result = rounded(m)
    assert not floats_between(result)
    known = {n.data: n for n in result.of(ops.Quantize)}
    assert known[a].scale == (np.float32(0.07),)
    ends = known[b]
    assert ends.scale[0] * 255 == pytest.approx(
        sum(abs(e) for e in _sub_ends(graph, result, x, a)), rel=1e-4
    )
    assert difference(graph, result, 0.03) <= 5


def _sub_ends(graph, result, x, a):
    """The ends of ``silu(x) - a * c``, by the tables and the constants."""
    source = next(n for n in graph.of(ops.Dequantize) if n.output == x)
    values = (np.arange(-128, 128) - source.zero_point[0]) * source.scale[0]
    table = values / (1 + np.exp(-values))
    (most,) = (graph.constants[n.b].max() for n in graph.nodes if getattr(n, "a", "") == a)
    return min(table.min(), 0) - 255 * np.float32(0.07) * most, max(table.max(), 0)


def test_limits_read_by_two_quantizations():
    """Rounded by each of both, as the file has it: nothing is off."""
    m = QdqModel(3)
    x = op(m, "Relu", start(m))
    pooled = m.quantized(op(m, "MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4), 0.11)
    both = m.quantized(op(m, "Concat", op(m, "Relu", pooled), x, shape=(1, 16, 6, 6), axis=1), 0.13)
    m.output(both)
    graph, result = rounded(m)
    assert not floats_between(result)
    assert difference(graph, result, 0.13) == 0
    assert difference(graph, optimize(result), 0.13) <= 1.01


def test_a_part_whose_range_nothing_says_has_that_of_the_whole():
    m = QdqModel(3)
    x = start(m)
    own = m.weight("own", (8, 8, 1, 1))[0]
    y = op(m, "Conv", silu(m, x), own)
    m.output(m.quantized(op(m, "Concat", y, x, shape=(1, 16, 6, 6), axis=1), 0.05))
    graph, result = rounded(m)
    assert not floats_between(result)
    assert {n.scale for n in result.of(ops.Quantize) if n.data == y} == {(np.float32(0.05),)}
    assert difference(graph, result, 0.05) <= 2


@pytest.mark.parametrize(("mode", "floats"), [("linear", False), ("cubic", True)])
def test_a_resized_image_is_within_its_neighbours_but_for_cubic_ones(mode, floats):
    m = QdqModel(3)
    scales = m.constant("scales", np.array([1, 1, 2, 2], np.float32))
    x = m.node("Resize", [silu(m, start(m)), "", scales], (1, 8, 12, 12), mode=mode)
    m.output(m.quantized(op(m, "Add", x, op(m, "Neg", x)), 0.05))
    _, result = rounded(m)
    assert bool(floats_between(result)) == floats


@pytest.mark.parametrize("limits", [(), ("Relu",)])
def test_a_layer_before_a_sum_has_the_range_that_the_sum_leaves_it(limits):
    """As PyTorch's quantizer for x86 writes residuals: the layer's own result is on floats."""
    m = QdqModel(3)
    x = start(m)
    y = op(m, "Conv", x, m.weight("own", (8, 8, 1, 1))[0])
    total = op(m, "Add", y, x)
    for limit in limits:
        total = op(m, limit, total)
    m.output(m.quantized(total, 0.05, -128 if limits else 3))
    graph, result = rounded(m)
    assert not floats_between(result)
    (node,) = [n for n in result.of(ops.Quantize) if n.data == y]
    source = next(n for n in graph.of(ops.Dequantize) if n.output == x)
    ends = 255 * (np.float32(0.05) + np.float32(source.scale[0]))
    assert node.scale[0] * 255 == pytest.approx(ends, rel=1e-4)
    assert difference(graph, result, 0.05) <= 2


@pytest.mark.parametrize("steps", ["tail", "rows", "unknown", "done", "logarithm"])
def test_what_stays(steps):
    m = QdqModel(3)
    x = start(m)
    if steps == "tail":  # no integers behind it
        m.output(mean(m, silu(m, x)))
    elif steps == "rows":  # no image
        flat = m.node("Reshape", [x, m.constant("size", np.array([1, 8, 36]))], (1, 8, 36))
        y = silu(m, flat)
        m.output(m.quantized(op(m, "Add", y, op(m, "Exp", y)), 0.1))
    elif steps == "unknown":
        y = op(m, "Softmax", m.node("Transpose", [x], SHAPE, perm=[0, 1, 3, 2]), axis=2)
        m.output(m.quantized(op(m, "Add", y, silu(m, x)), 0.1))
    elif steps == "done":
        m.output(m.add(m.quantized(silu(m, x), 0.02), x, "Relu"))
    else:
        y = op(m, "Log", x)  # of negative numbers
        m.output(m.quantized(op(m, "Add", y, silu(m, x)), 0.1))
    graph = import_model(m.model())
    assert round_images(graph) is graph


def test_a_strict_accelerator_leaves_floats():
    m = QdqModel(3)
    s = silu(m, start(m))
    m.output(m.conv(m.quantized(op(m, "Mul", s, mean(m, s)), 0.02), 8, 1))
    graph, config = import_model(m.model()), load_config("paper-full")
    rows = [report(*placed_graph(graph, config, Options(strict=s))) for s in (True, False)]
    left = [{row["op"] for row in each if row["device"] == "cpu"} for each in rows]
    assert "Binary" in left[0]
    assert "Binary" not in left[1]


CANCELLED = 0.05  # of the largest tensor, below which a result is a difference of near ones


def _step(m, draw, known):
    """A float operator of images before it."""
    x, y = (known[draw(st.integers(0, len(known) - 1))] for _ in range(2))
    kinds = ["Relu", "Sigmoid", "HardSwish", "scale", "shift", "Add", "Sub", "Mul", "Max"]
    kind = draw(st.sampled_from([*kinds, "pool", "gate"]))
    if kind in ("Relu", "Sigmoid", "HardSwish"):
        return op(m, kind, x)
    if kind in ("scale", "shift"):
        value = channels(m) if draw(st.booleans()) else number(m, 0.7)
        return op(m, "Mul" if kind == "scale" else "Add", x, value)
    if kind == "pool":
        return op(m, "AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4)
    if kind == "gate":
        return op(m, "Mul", x, op(m, "Sigmoid", mean(m, y)))
    return op(m, kind, x, y)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_floats_between_integers(data):
    """All work on integers; results are those of the floats but for roundings."""
    m = QdqModel(data.draw(st.integers(0, 9)), data.draw(st.sampled_from(["int8", "uint8"])))
    x = start(m)
    known = [x]
    for _ in range(data.draw(st.integers(1, 6))):
        known.append(_step(m, data.draw, known))
    probe = QdqModel(0)
    probe.__dict__.update({**m.__dict__, "outputs": []})
    probe.output(known[-1])
    graph = import_model(probe.model())
    inputs = {"x": np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)}
    every = evaluate(graph, inputs)
    (values,) = (every[n] for n in graph.outputs)
    largest = max(np.abs(each).max() for each in every.values() if each.dtype.kind == "f")
    assume(np.abs(values).max() > CANCELLED * largest)  # else roundings are what is left of it
    step = float(np.abs(values).max() / 100)
    m.outputs = []
    m.output(m.quantized(known[-1], step, 0))
    graph, result = rounded(m)
    assert not floats_between(result)
    assert difference(graph, result, step) <= 8
