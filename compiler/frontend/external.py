"""Operators that vdla lacks, kept as they stand in the file for onnxruntime to run.

onnxruntime itself says whether it can, and with which shape and element type. A tensor whose size
depends on data has no place in the graph: what makes it is an :class:`Island`, which grows by all
that reads it until a static shape follows. What is still open at the end of the file is an output
of the size that onnxruntime gives it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.frontend.bodies import renamed
from vdla.compiler.frontend.draft import DEFAULT_DOMAINS, Draft, Island, graphs_of, reads_of
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.sizes import inferred_kinds
from vdla.compiler.graph import ops
from vdla.compiler.graph.types import DTYPES, TensorType
from vdla.runtime.dtypes import dtype_of
from vdla.runtime.external import Session

IR_VERSION = 10  # newer ones mean the same here, and onnxruntime learns of them late
CODES = re.compile(r".*\[ONNXRuntimeError\] : \d+ : \w+ : ")
RANDOM = (
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
)  # fmt: skip
Sizes = tuple[int | str | None, ...]


def is_random(proto: onnx.NodeProto) -> bool:
    """Whether a node, or one inside it, draws random numbers."""
    if proto.op_type in RANDOM and proto.domain in DEFAULT_DOMAINS:
        return True
    return any(is_random(inner) for graph in graphs_of(proto) for inner in graph.node)


def reads_open(view: OnnxNode) -> bool:
    """Whether a node, or one inside it, reads a tensor whose size depends on data."""
    draft = view.draft
    return any(draft.alias.get(name, name) in draft.open for name in reads_of(view.proto))


def add_external(view: OnnxNode, reason: str) -> None:
    """Adds an :class:`ops.External` for each output of a node that is read, together with what it
    reads of open size; or leaves an output open.

    Args:
        view: the node.
        reason: why none of vdla's own operators does it, for the placement report.

    Raises:
        ModelError: onnxruntime can't run it either.
    """
    proto, draft = view.proto, view.draft
    island, kinds = _island(view, reason), inferred_kinds(view)
    for index, output in enumerate(map(str, proto.output)):
        if output not in draft.read or not output:
            continue
        kind = kinds.get(output)
        if len(island.nodes) > 1 and kind is not None and _is_open(kind):
            draft.open[output] = replace(island, kind=kind)
            continue
        model, operands = _model(draft, island, [output])
        shape, dtype = typed = _typed(view, model)
        if shape is not None:
            name = view.name if index == 0 else draft.fresh(f"{view.name}.{index}")
            draft.emit(_external(island, name, (output, *operands), model, typed), dtype)
        elif not operands and dtype in DTYPES:
            draft.add_constant(output, Session(model.SerializeToString()).run([]))
        else:
            draft.open[output] = replace(island, kind=kind)


def close(draft: Draft, name: str, kind: TensorType) -> None:
    """Gives a tensor whose size depends on data a type that it has to have, as onnxruntime's node.

    The run stops where it has another shape.
    """
    island = draft.open.pop(name)
    model, operands = _model(draft, island, [name])
    own = draft.fresh(f"{island.name}.closed")
    node = _external(island, own, (name, *operands), model, (kind.shape, kind.dtype))
    draft.emit(node, kind.dtype)


def add_open(draft: Draft, names: Sequence[str], outputs: Sequence[str]) -> str:
    """Adds what makes the open ones among the file's outputs; gives the tensor that stands for
    them.

    Args:
        draft: what has been read.
        names: the open outputs.
        outputs: all of them, in order.

    Raises:
        ModelError: one of them is no tensor, or onnxruntime can't run all that makes them.
    """
    islands = [draft.open[name] for name in names]
    nodes = {place: node for island in islands for place, node in island.nodes.items()}
    first = min(islands, key=lambda island: min(island.nodes))
    island = replace(first, nodes=nodes, loose=any(each.loose for each in islands))
    model, operands = _model(draft, island, names)
    try:
        session = Session(model.SerializeToString())
    except ValueError as error:
        expected = "operators that vdla or onnxruntime can run"
        raise ModelError(island.where, expected, _said(error)) from None
    for name, (_, dtype) in zip(names, session.results, strict=True):
        if dtype not in DTYPES:  # string, seq(tensor(float)), optional(…)
            where = f"{island.where}: output {name}"
            raise ModelError(where, f"a tensor of {', '.join(DTYPES)}", f"one of type {dtype}")
    node = ops.Open(
        name=draft.fresh(f"{island.name}.open"),
        output=names[0],
        operands=operands,
        model=model.SerializeToString(),
        kinds=_kinds(island),
        shape=(1,),
        dtype="uint8",
        reason=island.reason,
        results=tuple(names),
        order=tuple(outputs),
    )
    return draft.emit(node, "uint8")


def open_rows(view: OnnxNode, output: str, rows: str, count: str) -> None:
    """Makes a result the first rows of another tensor, as many as ``count``, int64[1], says."""
    draft = view.draft
    if output not in draft.read:
        return
    if count in draft.constants and rows in draft.constants:
        draft.add_constant(output, draft.constants[rows][: int(draft.constants[count][0])])
        return
    zero = draft.add_constant(f"{output}.zero", np.zeros(1, np.int64))
    node = helper.make_node("Slice", [rows, zero, count, zero], [output])
    kind = draft.tensors[rows]
    code = helper.np_dtype_to_tensor_dtype(dtype_of(kind.dtype))
    proto = helper.make_tensor_type_proto(code, (None, *kind.shape[1:]))
    reason = "only a run knows how many rows there are"
    draft.prefixes[output] = rows, count
    draft.open[output] = Island(
        {next(draft.places): node}, view.name, view.where, reason, draft.opset, kind=proto
    )


# Islands ----------------------------------------------------------------------------------------


def _island(view: OnnxNode, reason: str) -> Island:
    """A node and what makes the tensors of open size that it reads."""
    proto, draft = view.proto, view.draft
    if is_random(proto):
        raise view.error("a result that follows from the inputs", "random numbers")
    if proto.op_type == "MaxUnpool" and view.optional(2) is not None:
        expected = "no output_shape, which onnxruntime reads otherwise than ONNX defines it"
        raise view.error(expected, view.optional(2))
    read = {name: draft.alias.get(name, name) for name in reads_of(proto)}
    for name in read.values():
        if name in draft.values:
            raise view.error("tensors, which onnxruntime can be given", f"{name}, which is none")
        if name not in draft.tensors and name not in draft.open:
            raise view.error("operands defined before their use", name)
    node = renamed(proto, read)
    sources = [draft.open[name] for name in read.values() if name in draft.open]
    nodes = {place: each for source in sources for place, each in source.nodes.items()}
    own = Island(
        {next(draft.places): node},
        view.name,
        view.where,
        reason,
        draft.opset,
        loose=proto.op_type == "If",  # a branch that isn't taken need not fit the sizes here
    )
    if any(source.opset != draft.opset for source in sources):
        expected = f"operators of opset {draft.opset} around tensors of open size"
        raise view.error(expected, sorted({source.opset for source in sources}))
    first = min(sources, key=lambda source: min(source.nodes), default=own)
    loose = any(each.loose for each in (own, *sources))
    return replace(first, nodes={**dict(sorted(nodes.items())), **own.nodes}, loose=loose)


def _model(
    draft: Draft, island: Island, outputs: Sequence[str]
) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """An island as a model; what is known now is part of it, the rest its inputs."""
    nodes = [_unnamed(node) for node in island.nodes.values()]
    made = {name for node in nodes for name in node.output}
    names = dict.fromkeys(name for node in nodes for name in reads_of(node) if name not in made)
    known = {name: draft.known(name) for name in names}
    operands = tuple(name for name, value in known.items() if value is None)
    kinds = ((n, draft.tensors[n]) for n in operands)
    inputs = [
        _value_info(n, kind.dtype, (None,) * len(kind.shape) if island.loose else kind.shape)
        for n, kind in kinds
    ]
    weights = [numpy_helper.from_array(v, n) for n, v in known.items() if v is not None]
    results = [onnx.ValueInfoProto(name=output) for output in outputs]  # onnxruntime finds its type
    graph = helper.make_graph(nodes, island.name, inputs, results, weights)
    proto = draft.proto
    others = [o for o in proto.opset_import if o.domain not in DEFAULT_DOMAINS]
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", island.opset), *others],
        ir_version=min(proto.ir_version, IR_VERSION),
        functions=proto.functions,
    )
    return model, operands


def _unnamed(node: onnx.NodeProto) -> onnx.NodeProto:
    """A node without a name: nodes of a model that have one need names of their own."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.ClearField("name")
    return copy


def _typed(view: OnnxNode, model: onnx.ModelProto) -> tuple[tuple[int, ...] | None, str]:
    """The shape, None if it is open, and the element type that onnxruntime gives the result; the
    model then has them too."""
    try:
        session = Session(model.SerializeToString())
    except ValueError as error:
        proto = view.proto
        operator = f"{proto.domain}.{proto.op_type}" if proto.domain else proto.op_type
        expected = "an operator that vdla or onnxruntime can run"
        raise view.error(expected, f"{operator}: {_said(error)}") from None
    ((shape, dtype),) = session.results
    known = tuple(size for size in shape if isinstance(size, int) and size > 0)
    scalar = shape == () and not _is_scalar(model)
    if len(known) < len(shape) or scalar or dtype not in DTYPES:
        return None, dtype
    output = model.graph.output[0]
    output.CopyFrom(_value_info(output.name, dtype, known))
    return known, dtype


def _external(
    island: Island,
    name: str,
    tensors: Sequence[str],
    model: onnx.ModelProto,
    typed: tuple[tuple[int, ...] | None, str],
) -> ops.External:
    """The node of an island with a static result; ``tensors`` are that and its operands."""
    output, *operands = tensors
    shape, dtype = typed
    assert shape is not None
    return ops.External(
        name=name,
        output=output,
        operands=tuple(operands),
        model=model.SerializeToString(),
        kinds=_kinds(island),
        shape=shape,
        dtype=dtype,
        reason=island.reason,
    )


def _kinds(island: Island) -> tuple[str, ...]:
    """The names of its operators."""
    return tuple(str(node.op_type) for node in island.nodes.values())


# Names and types --------------------------------------------------------------------------------


def _is_open(kind: onnx.TypeProto) -> bool:
    """Whether a type is one of tensors, and leaves sizes open."""
    if not kind.HasField("tensor_type"):
        return False
    tensor = kind.tensor_type
    sizes = tensor.shape.dim
    return not (tensor.HasField("shape") and all(size.HasField("dim_value") for size in sizes))


def _is_scalar(model: onnx.ModelProto) -> bool:
    """Whether a result has no dimensions; onnxruntime says the same of one it doesn't know."""
    try:
        (output,) = onnx.shape_inference.infer_shapes(model).graph.output
    except Exception:  # inference of a graph inside
        return False
    return bool(output.type.tensor_type.HasField("shape"))


def _value_info(name: str, dtype: str, shape: Sequence[int | None]) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(dtype_of(dtype))
    return helper.make_tensor_value_info(name, kind, shape)


def _said(error: Exception) -> str:
    """onnxruntime's message without its codes."""
    return CODES.sub("", str(error))
