"""Operators that vdla lacks, kept as they stand in the file for onnxruntime to run.

onnxruntime itself says whether it can, and with which shape and element type: a node it can't load,
or whose result has no static shape, is refused.
"""

from __future__ import annotations

import re

import onnx
from onnx import helper, numpy_helper

from vdla.compiler.frontend.draft import DEFAULT_DOMAINS
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import DTYPES
from vdla.runtime.dtypes import dtype_of
from vdla.runtime.external import Session

IR_VERSION = 10  # newer ones mean the same here, and onnxruntime learns of them late
GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
CODES = re.compile(r".*\[ONNXRuntimeError\] : \d+ : \w+ : ")


def has_graphs(proto: onnx.NodeProto) -> bool:
    """Whether a node holds graphs of its own: control flow."""
    return any(attribute.type in GRAPHS for attribute in proto.attribute)


def add_external(view: OnnxNode, reason: str) -> None:
    """Adds an :class:`ops.External` for each output of a node that is read.

    Args:
        view: the node.
        reason: why none of vdla's own operators does it, for the placement report.

    Raises:
        ModelError: onnxruntime can't run it either, or only with control flow, sequences or shapes
            that depend on data.
    """
    proto, draft = view.proto, view.draft
    operator = f"{proto.domain}.{proto.op_type}" if proto.domain else proto.op_type
    if has_graphs(proto):
        raise view.error(
            "an operator without subgraphs", f"{operator}: control flow has no place yet"
        )
    for index, output in enumerate(proto.output):
        if output not in draft.read:
            continue
        model, operands = _one_node(view, str(output))
        shape, dtype = _typed(view, model, operator)
        name = view.name if index == 0 else draft.fresh(f"{view.name}.{index}")
        node = ops.External(
            name=name,
            output=str(output),
            operands=operands,
            model=model.SerializeToString(),
            kinds=(str(proto.op_type),),
            shape=shape,
            dtype=dtype,
            reason=reason,
        )
        draft.emit(node, dtype)


def _one_node(view: OnnxNode, output: str) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """A model of one node and one output; what is known now is part of it, the rest its inputs."""
    draft = view.draft
    node = onnx.NodeProto()
    node.CopyFrom(view.proto)
    names = [view.optional(i) or "" for i in range(len(node.input))]
    node.input[:] = names
    known = {n: draft.known(n) for n in dict.fromkeys(names) if n}
    operands = tuple(n for n, value in known.items() if value is None)
    kinds = ((n, draft.tensors[n]) for n in operands)
    inputs = [_value_info(n, kind.dtype, kind.shape) for n, kind in kinds]
    weights = [numpy_helper.from_array(v, n) for n, v in known.items() if v is not None]
    result = onnx.ValueInfoProto(name=output)  # onnxruntime finds its type
    graph = helper.make_graph([node], view.name, inputs, [result], weights)
    proto = draft.proto
    others = [o for o in proto.opset_import if o.domain not in DEFAULT_DOMAINS]
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", draft.opset), *others],
        ir_version=min(proto.ir_version, IR_VERSION),
        functions=proto.functions,
    )
    return model, operands


def _typed(view: OnnxNode, model: onnx.ModelProto, operator: str) -> tuple[tuple[int, ...], str]:
    """The shape and element type that onnxruntime gives the result; the model then has them too."""
    try:
        session = Session(model.SerializeToString())
    except ValueError as error:
        expected = "an operator that vdla or onnxruntime can run"
        raise view.error(expected, f"{operator}: {_said(error)}") from None
    shape, dtype = session.result
    if dtype not in DTYPES:
        raise view.error(f"a tensor of {', '.join(DTYPES)}", f"{operator} with a result of {dtype}")
    if shape == () and not _is_scalar(model):
        raise view.error("a result of static shape", f"{operator} with any number of dimensions")
    known = tuple(size for size in shape if isinstance(size, int) and size > 0)
    if len(known) < len(shape):
        sizes = ", ".join("?" if size is None else str(size) for size in shape)
        raise view.error("a result of static shape", f"{operator} with [{sizes}]")
    output = model.graph.output[0]
    output.CopyFrom(_value_info(output.name, dtype, known))
    return known, dtype


def _is_scalar(model: onnx.ModelProto) -> bool:
    """Whether a result has no dimensions; onnxruntime says the same of one it doesn't know."""
    (output,) = onnx.shape_inference.infer_shapes(model).graph.output
    return bool(output.type.tensor_type.HasField("shape"))


def _value_info(name: str, dtype: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(dtype_of(dtype))
    return helper.make_tensor_value_info(name, kind, shape)


def _said(error: Exception) -> str:
    """onnxruntime's message without its codes."""
    return CODES.sub("", str(error))
