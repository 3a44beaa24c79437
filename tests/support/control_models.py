"""Small ONNX models with control flow, and whether vdla runs one as onnxruntime does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from fuzz_loops import differs
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.ir import Graph
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module

KINDS = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}
TURN = ("i i", []), ("b go", [])  # what a Loop's body gets first


def value(text: str, shape: Sequence[int | None] | None) -> onnx.ValueInfoProto:
    """The type of "f y": floats called y; of "l y": a list of such tensors."""
    if text[0] == "l":
        return helper.make_tensor_sequence_value_info(text[2:], TensorProto.FLOAT, shape)
    return helper.make_tensor_value_info(text[2:], KINDS[text[0]], shape)


def op(operator: str, inputs: str, outputs: str, **attributes) -> onnx.NodeProto:
    """A node; "-" is an operand that isn't there."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(operator, names, outputs.split(), outputs, **attributes)


def body(nodes, inputs, outputs, **constants) -> onnx.GraphProto:
    """A graph inside a node."""
    ends = [[value(*each) for each in group] for group in (inputs, outputs)]
    weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    return helper.make_graph(nodes, "body", *ends, weights)


def model(nodes, inputs: Mapping, outputs, opset: int = 18, **constants) -> onnx.ModelProto:
    """A model with inputs like some arrays, or lists of these."""
    ends = []
    for name, array in inputs.items():
        if isinstance(array, list):
            ends.append(value(f"l {name}", None))
        else:
            code = helper.np_dtype_to_tensor_dtype(array.dtype)
            ends.append(helper.make_tensor_value_info(name, code, array.shape))
    weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    results = [value(text, None) for text in outputs]
    graph = helper.make_graph(nodes, "g", ends, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def imported(proto: onnx.ModelProto, shapes=None) -> Graph:
    """The model's graph."""
    return import_model(proto, "m", shapes)


def kinds(graph: Graph) -> list[str]:
    """The operators of a graph's nodes."""
    return [type(node).__name__ for node in graph.nodes]


def results(graph: Graph, inputs: Mapping) -> Mapping:
    """What a module that went through its file gives."""
    options = Options("cpu", processor=Processor(quick=True))
    module = compile_graph(graph, load_config("tiny"), options)
    return Executor(Module.from_bytes(module.to_bytes())).run(inputs).outputs


def checked(proto: onnx.ModelProto, *samples: Mapping, shapes=None) -> Graph:
    """The model's graph, which gives what onnxruntime gives for each of some inputs."""
    graph = imported(proto, shapes)
    for inputs in samples:
        outputs = results(graph, inputs)
        for name, wanted in ort_run(proto, inputs, fuse=False).items():
            assert not differs(name, outputs[name], wanted)
    return graph
