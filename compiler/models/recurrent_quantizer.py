"""LSTM and GRU between QuantizeLinear and DequantizeLinear, which onnxruntime's quantizer leaves in
float.

Weights become int8 with a scale for each row, data and states int8 with a zero point; biases and
initial states stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.graph.numbers import rows_of_int8
from vdla.compiler.graph.types import Array

OPS = ("LSTM", "GRU")
WEIGHTS = (1, 2)  # the operands that are matrices: of the data, of the state
ROWS = 1  # the axis of a weight's rows
LIMITS = np.iinfo(np.int8)


class Range(NamedTuple):
    """The least and the greatest value of a tensor."""

    low: float
    high: float


def has_recurrent(model: onnx.ModelProto) -> bool:
    """Whether a model has such operators."""
    return any(node.op_type in OPS for node in model.graph.node)


def recurrent_ranges(
    model: onnx.ModelProto, samples: Sequence[Mapping[str, Array]]
) -> dict[str, Range]:
    """The ranges of what a float model's recurrent operators read and write, on all samples."""
    import onnxruntime

    nodes = [node for node in model.graph.node if node.op_type in OPS]
    names = {name for node in nodes for name in (node.input[0], *node.output) if name}
    fed = {value.name for value in model.graph.input}
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    outputs = sorted(names - fed)
    known = {value.name for value in probe.graph.output}
    probe.graph.output.extend(onnx.ValueInfoProto(name=n) for n in outputs if n not in known)
    session = onnxruntime.InferenceSession(
        probe.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    ranges: dict[str, Range] = {}
    for sample in samples:
        arrays = dict(zip(outputs, session.run(outputs, dict(sample)), strict=True))
        for name in names:
            array = sample[name] if name in fed else arrays[name]
            low, high = ranges.get(name, Range(0.0, 0.0))
            ranges[name] = Range(min(low, float(array.min())), max(high, float(array.max())))
    return ranges


def quantize_recurrent(model: onnx.ModelProto, ranges: Mapping[str, Range]) -> onnx.ModelProto:
    """The model with its recurrent operators between integers."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph, arrays = result.graph, {each.name: each for each in model.graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if node.op_type not in OPS or any(node.input[n] not in arrays for n in WEIGHTS):
            nodes.append(node)
            continue
        name = node.name or next(filter(None, node.output))
        for place in WEIGHTS:
            array = numpy_helper.to_array(arrays[node.input[place]])
            node.input[place] = _weight(graph, nodes, f"{name}.{place}", array)
        maker = makers.get(node.input[0])
        if maker is None or maker.op_type != "DequantizeLinear":
            data, node.input[0] = node.input[0], f"{name}.data"
            _between(graph, nodes, (data, node.input[0]), ranges[data])
        nodes.append(node)
        for place, output in enumerate(node.output[:2]):
            if output:
                node.output[place] = f"{output}.real"
                _between(graph, nodes, (f"{output}.real", output), ranges[output])
    read = {name for node in nodes for name in node.input}
    kept = [each for each in graph.initializer if each.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    del graph.node[:]
    graph.node.extend(nodes)
    return result


def _weight(graph: onnx.GraphProto, nodes: list[onnx.NodeProto], name: str, array: Array) -> str:
    """Adds a matrix [1, rows, columns] as int8; gives the name of its real numbers."""
    rows, scale = rows_of_int8(np.swapaxes(array, 0, 1).reshape(array.shape[1], -1))
    steps = np.swapaxes(rows.reshape(array.shape[1], array.shape[0], -1), 0, 1)
    zeros = np.zeros(scale.shape, np.int8)
    names = [f"{name}.{part}" for part in ("integers", "scale", "zero")]
    for part, value in zip(names, (steps, scale.astype(np.float32), zeros), strict=True):
        graph.initializer.append(numpy_helper.from_array(value, part))
    nodes.append(helper.make_node("DequantizeLinear", names, [name], f"{name}.real", axis=ROWS))
    return name


def _between(
    graph: onnx.GraphProto, nodes: list[onnx.NodeProto], ends: tuple[str, str], bounds: Range
) -> None:
    """Quantizes the first tensor and makes real numbers of it again, the second one."""
    scale = np.float32(max(bounds.high - bounds.low, 1e-8) / (LIMITS.max - LIMITS.min))
    zero = np.int8(np.clip(np.rint(LIMITS.min - bounds.low / scale), LIMITS.min, LIMITS.max))
    source, target = ends
    names = [f"{target}.scale", f"{target}.zero"]
    for part, value in zip(names, (scale, zero), strict=True):
        graph.initializer.append(numpy_helper.from_array(np.asarray(value), part))
    steps = f"{target}.integers"
    nodes += [
        helper.make_node("QuantizeLinear", [source, *names], [steps], steps),
        helper.make_node("DequantizeLinear", [steps, *names], [target], f"{target}.reals"),
    ]
