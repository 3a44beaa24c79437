"""Layers whose scales are powers of two, so that integers and onnxruntime agree in every bit."""

from __future__ import annotations

import numpy as np

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate

F = np.float32
IMAGE, ROWS = (1, 16, 6, 6), (1, 5, 16)
CONVERSIONS = ("Quantize", "Dequantize")
RNG = np.random.default_rng(3)
X = {shape: (RNG.standard_normal(shape) * 2).astype(F) for shape in (IMAGE, ROWS)}


def weights(m, shape, scale=2.0**-6, zero=0, integers=None):
    """Dequantized int8 weights; a scale or a zero point may be one for each output channel."""
    integers = RNG.integers(-60, 60, shape) if integers is None else integers
    scale, zero = np.asarray(scale, F), np.asarray(zero, np.asarray(integers).dtype)
    zero = np.broadcast_to(zero, scale.shape).astype(
        np.int8 if integers.dtype.kind == "i" else "u1"
    )
    name = f"w{len(m.nodes)}"
    parts = [
        m.constant(name, integers.astype(zero.dtype)),
        m.constant(f"{name}.scale", scale),
        m.constant(f"{name}.zero", zero),
    ]
    return m.node("DequantizeLinear", parts, shape, axis=0)


def integers_of(m, x=None, left=()):
    """The integer nodes of a model, whose outputs are onnxruntime's; ``left`` are floats."""
    proto = m.model()
    graph = optimize(import_model(proto))
    x = {"x": X[m.shapes["x"]] if x is None else x}
    wanted, values = ort_run(proto, x, fuse=False), evaluate(graph, x)
    for name, want in wanted.items():
        np.testing.assert_array_equal(values[name], want)
        assert len(np.unique(want)) > 5  # no result that is at a limit everywhere
    kinds = [node.op for node in graph.nodes if node.op not in CONVERSIONS]
    assert [kind for kind in kinds if not kind.startswith("Q")] == [*left]
    return graph


def floats(m, size, step=2.0**-9):
    """A constant whose elements are exact in the units of any sum here."""
    return m.constant(f"c{len(m.nodes)}", (RNG.integers(-900, 900, size) * step).astype(F))
