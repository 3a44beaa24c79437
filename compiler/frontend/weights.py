"""Weights of a model: the floats that it computes with, and those among its inputs for once.

A float that says a size, a limit or a quantization's scale is none: operators are made with its
value. Statistics of batches are none either: they aren't learned by gradients.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx
from onnx import helper, numpy_helper

from vdla.compiler.frontend.draft import all_nodes, reads_of
from vdla.compiler.frontend.integers import INTEGER_OPERATORS
from vdla.compiler.frontend.shapes import input_values
from vdla.compiler.graph.types import Array

SETTINGS = {  # by operators, the first operand with which it is made, and the one behind the last
    "QuantizeLinear": (1, 3), "DequantizeLinear": (1, 3), "BatchNormalization": (3, 5),
    "Clip": (1, 3), "Resize": (1, 4), "Upsample": (1, 2), "Reshape": (1, 2), "Expand": (1, 2),
    "Tile": (1, 2), "Slice": (1, 5), "Pad": (1, 4), "ConstantOfShape": (0, 1), "Range": (0, 3),
    "TopK": (1, 2), "OneHot": (1, 3), "Dropout": (1, 3), "Loop": (0, 2),
}  # fmt: skip
SHAPES = ("Shape", "Size")  # what follows from them doesn't follow from values


def weights_of(model: onnx.ModelProto) -> dict[str, Array]:
    """The weights of a model, by their names."""
    read = {name for node in model.graph.node for name in reads_of(node)}
    wanted = read - _settings(model.graph)
    arrays = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if tensor.name in wanted
    }
    return {name: array for name, array in arrays.items() if array.dtype.kind == "f"}


def _settings(graph: onnx.GraphProto) -> set[str]:
    """The tensors from which settings of operators follow, unless they follow from inputs, too."""
    writers = {name: node for node in graph.node for name in node.output}
    given, result = {value.name for value in input_values(graph)}, set[str]()
    for setting in _operands(graph):
        seen, waiting = set[str](), [setting]
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            node = writers.get(name)
            if node is not None and node.op_type not in SHAPES:
                waiting += reads_of(node)
        if given.isdisjoint(seen):
            result |= seen
    return result


def _operands(graph: onnx.GraphProto) -> Iterator[str]:
    """The operands with which operators are made."""
    for node in all_nodes(graph.node):
        first, end = SETTINGS.get(node.op_type, (0, 0))
        if node.op_type in INTEGER_OPERATORS:
            first, end = 0, len(node.input)
        yield from filter(None, node.input[first:end])


def with_inputs(model: onnx.ModelProto, names: Collection[str]) -> onnx.ModelProto:
    """A copy of a model in which some of its weights are inputs."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    kinds = {t.name: (t.data_type, tuple(t.dims)) for t in graph.initializer if t.name in names}
    kept = [tensor for tensor in model.graph.initializer if tensor.name not in names]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    listed = {value.name for value in graph.input}
    graph.input.extend(
        helper.make_tensor_value_info(name, *kind)
        for name, kind in kinds.items()
        if name not in listed
    )
    return result
