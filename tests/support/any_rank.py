"""Quantized networks of signals, of images and of volumes."""

from __future__ import annotations

from math import prod

import numpy as np

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.passes.images import as_images
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.window import Window

ENDS = {"Quantize", "Dequantize", "QReshape", "QTranspose"}


def window_of(kernel, stride=1, pad=0, dilation=1):
    """One alike along all axes but for its taps."""
    rank = len(kernel)
    return Window(tuple(kernel), (stride,) * rank, (pad,) * (2 * rank), (dilation,) * rank)


def fields(window):
    return {
        "kernel_shape": window.kernel,
        "strides": window.strides,
        "pads": window.pads,
        "dilations": window.dilations,
    }


def conv(m, x, channels, window, groups=1, activation=None):
    """A convolution of any rank, with its quantization."""
    n, c, *image = m.shapes[x]
    name = f"conv{len(m.nodes)}"
    weight, scales = m.weight(f"{name}.weight", (channels, c // groups, *window.kernel))
    bias = m.bias(f"{name}.bias", channels, scales * np.float32(m.scales[x]))
    shape = n, channels, *window.places(tuple(image))
    y = m.node("Conv", [x, weight, bias], shape, group=groups, **fields(window))
    spread = float(np.sqrt(prod(window.kernel) * c // groups)) * 50
    scale = m.scales[x] * float(scales.mean()) * spread
    return m.finished(y, float(np.float32(scale)), activation)


def pool(m, op, x, window, **attributes):
    n, c, *image = m.shapes[x]
    shape = n, c, *window.places(tuple(image))
    steps = fields(window)
    if op == "AveragePool":  # of opset 17
        del steps["dilations"]
    y = m.node(op, [x], shape, **steps, **attributes)
    return m.same_quant(x, y) if op == "MaxPool" else m.quantized(y, m.scales[x] * 0.7)


def global_pool(m, op, x):
    y = m.node(op, [x], (*m.shapes[x][:2], *[1] * (len(m.shapes[x]) - 2)))
    return m.same_quant(x, y) if "Max" in op else m.quantized(y, m.scales[x] * 0.4)


def differences(m, seed=5):
    """The optimized graph of a model, and how many steps its outputs differ from onnxruntime's."""
    model, rng = m.model(), np.random.default_rng(seed)
    before = import_model(model)
    after = optimize(before)
    data = {
        n: rng.standard_normal(before.tensors[n].shape).astype(np.float32) for n in after.inputs
    }
    moved = verify(as_images(before))
    for name in before.outputs:
        np.testing.assert_array_equal(evaluate(before, data)[name], evaluate(moved, data)[name])
    ours, theirs = evaluate(after, data), ort_run(model, data, fuse=False)
    steps = [np.rint((ours[n] - want) / m.scales[n]) for n, want in theirs.items()]
    return after, np.concatenate([np.abs(each).ravel() for each in steps])


def kinds(graph):
    return [node.op for node in graph.nodes if node.op not in ENDS]


def middle(graph):
    """Reshapes and transpositions that stand between two integer operators."""
    integers = [n for n in graph.nodes if n.op.startswith("Q") and n.op not in ENDS]
    read = {name for node in integers for name in node.inputs}
    moves = [n for n in graph.nodes if n.op in ("QReshape", "QTranspose")]
    written = {node.output for node in integers}
    return [n.name for n in moves if n.output in read and n.data in written]
