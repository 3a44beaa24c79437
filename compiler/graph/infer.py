"""The typing rules: the shape a node must write, given the shapes it reads.

``shape_of(node, shapes)`` is the one statement of each rule. The importer uses it to type results,
:func:`verify` to check a graph between passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import mul

import numpy as np

from vdla.compiler.graph import ir
from vdla.compiler.graph.ir import DTYPES, Graph, GraphError, Node

Shape = tuple[int, ...]
Rule = Callable[[Node, Sequence[Shape]], Shape | None]


def window_extent(
    size: int, kernel: int, stride: int, before: int, after: int, dilation: int
) -> int:
    """How many places a window takes along one dimension."""
    return (size + before + after - dilation * (kernel - 1) - 1) // stride + 1


def _fail(node: Node, expected: str, found: object) -> GraphError:
    error = GraphError(f"node {node.name} ({node.op}): expected {expected}, found {found}")
    error.node = node.name
    return error


def _image(node: ir.Window, shape: Shape, kernel: Sequence[int]) -> tuple[int, int]:
    if len(shape) != 4:
        raise _fail(node, "data of shape [N, C, H, W]", list(shape))
    for key, least in (("strides", 1), ("dilations", 1), ("pads", 0)):
        values = getattr(node, key)
        if min(values) < least:
            raise _fail(node, f"{key} of at least {least}", list(values))
    top, left, bottom, right = node.pads
    h = window_extent(shape[2], kernel[0], node.strides[0], top, bottom, node.dilations[0])
    w = window_extent(shape[3], kernel[1], node.strides[1], left, right, node.dilations[1])
    if h < 1 or w < 1:
        padded = [shape[2] + top + bottom, shape[3] + left + right]
        raise _fail(
            node, f"a padded image no smaller than its {kernel[0]}x{kernel[1]} window", padded
        )
    return h, w


def _conv(node: Node, shapes: Sequence[Shape]) -> Shape:
    assert isinstance(node, ir.Conv2d | ir.QConv2d)
    data, weight = shapes[0], shapes[1]
    if len(weight) != 4:
        raise _fail(node, "a weight of shape [O, I, KH, KW]", list(weight))
    h, w = _image(node, data, weight[2:])
    if node.groups < 1:
        raise _fail(node, "at least 1 group", node.groups)
    if data[1] != weight[1] * node.groups:
        raise _fail(node, f"{weight[1] * node.groups} input channels", data[1])
    if weight[0] % node.groups:
        raise _fail(node, f"output channels divisible by {node.groups} groups", weight[0])
    _check_vector(node, shapes, weight[0])
    result = (data[0], weight[0], h, w)
    if isinstance(node, ir.QConv2dAdd) and shapes[3] != result:
        raise _fail(node, f"a residual of shape {list(result)}", list(shapes[3]))
    return result


def _check_vector(node: Node, shapes: Sequence[Shape], channels: int) -> None:
    """The bias and the per-channel scales have one entry per output channel."""
    if len(shapes) > 2 and shapes[2] != (channels,):
        raise _fail(node, f"a bias of shape [{channels}]", list(shapes[2]))
    scale = getattr(node, "scale", None)
    if scale is not None and len(scale) != channels:
        raise _fail(node, f"{channels} scales", len(scale))


def _dense(node: Node, shapes: Sequence[Shape]) -> Shape:
    data, weight = shapes[0], shapes[1]
    flat = len(data) == 2 or (len(data) == 4 and data[2:] == (1, 1))
    if not flat or len(weight) != 2 or data[1] != weight[1]:
        raise _fail(node, f"data of shape [N, {weight[-1]}]", list(data))
    _check_vector(node, shapes, weight[0])
    return (data[0], weight[0])


def _pool(node: Node, shapes: Sequence[Shape]) -> Shape:
    assert isinstance(node, ir.MaxPool | ir.AvgPool | ir.QMaxPool | ir.QAvgPool)
    h, w = _image(node, shapes[0], node.kernel)
    return (*shapes[0][:2], h, w)


def _im2col(node: Node, shapes: Sequence[Shape]) -> Shape:
    assert isinstance(node, ir.Im2col)
    h, w = _image(node, shapes[0], node.kernel)
    return (shapes[0][0], shapes[0][1] * node.kernel[0] * node.kernel[1], h, w)


def _same(node: Node, shapes: Sequence[Shape]) -> Shape:
    return shapes[0]


def _broadcast(node: Node, shapes: Sequence[Shape]) -> Shape:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        found = " and ".join(str(list(s)) for s in shapes)
        raise _fail(node, "operands of one shape", found) from None


def _alike(node: Node, shapes: Sequence[Shape]) -> Shape:
    if shapes[0] != shapes[1]:
        raise _fail(node, f"a second operand of shape {list(shapes[0])}", list(shapes[1]))
    return shapes[0]


def _concat(node: Node, shapes: Sequence[Shape]) -> Shape:
    assert isinstance(node, ir.Concat | ir.QConcat)
    first, axis = shapes[0], node.axis
    if not 0 <= axis < len(first):
        raise _fail(node, f"an axis below {len(first)}", axis)
    for shape in shapes[1:]:
        if (*shape[:axis], *shape[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]):
            raise _fail(
                node, f"parts that differ from {list(first)} only in axis {axis}", list(shape)
            )
    return (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])


def _transpose(node: Node, shapes: Sequence[Shape]) -> Shape:
    assert isinstance(node, ir.Transpose | ir.QTranspose)
    if sorted(node.perm) != list(range(len(shapes[0]))):
        raise _fail(node, f"a permutation of {len(shapes[0])} axes", list(node.perm))
    return tuple(shapes[0][p] for p in node.perm)


def _free(node: Node, shapes: Sequence[Shape]) -> None:
    """A reshape: the output's type says the shape; :func:`verify` compares the element counts."""
    return


def _foreign(node: Node, shapes: Sequence[Shape]) -> Shape:
    assert isinstance(node, ir.Foreign)
    return node.shape


RULES: dict[type[Node], Rule] = {
    ir.External: _foreign,
    ir.Custom: _foreign,
    ir.Conv2d: _conv,
    ir.QConv2d: _conv,
    ir.QConv2dAdd: _conv,
    ir.Dense: _dense,
    ir.QDense: _dense,
    ir.MaxPool: _pool,
    ir.AvgPool: _pool,
    ir.QMaxPool: _pool,
    ir.QAvgPool: _pool,
    ir.Im2col: _im2col,
    ir.Add: _broadcast,
    ir.Binary: _broadcast,
    ir.Unary: _same,
    ir.QAdd: _alike,
    ir.Concat: _concat,
    ir.QConcat: _concat,
    ir.Transpose: _transpose,
    ir.QTranspose: _transpose,
    ir.Reshape: _free,
    ir.QReshape: _free,
    **dict.fromkeys(
        (
            ir.Relu,
            ir.Clip,
            ir.QClip,
            ir.BatchNorm,
            ir.Softmax,
            ir.Quantize,
            ir.Dequantize,
            ir.FlipSign,
            ir.Pack,
            ir.Unpack,
        ),
        _same,
    ),
}


def shape_of(node: Node, shapes: Sequence[Shape]) -> Shape | None:
    """The shape ``node`` writes when it reads ``shapes``; None where the node leaves it open.

    Raises:
        GraphError: the operands don't fit together.
    """
    return RULES[type(node)](node, shapes)


def verify(graph: Graph) -> Graph:
    """Checks every rule of :mod:`vdla.compiler.graph.ir` and returns the graph.

    Raises:
        GraphError: names the node or tensor, what was expected and what was found.
    """
    known = set(graph.inputs) | set(graph.constants)
    names: set[str] = set()
    _verify_tensors(graph)
    for node in graph.nodes:
        if node.name in names:
            raise GraphError(f"expected one node called {node.name}, found two")
        names.add(node.name)
        for name in node.inputs:
            if name not in known:
                raise _fail(node, "operands defined before their use", name)
        if node.output in known:
            raise _fail(node, "a tensor written once", node.output)
        known.add(node.output)
        _verify_type(graph, node)
    for name in graph.outputs:
        if name not in known:
            raise GraphError(f"expected output {name} to be written by a node, found none")
    return graph


def _verify_tensors(graph: Graph) -> None:
    for name, kind in graph.tensors.items():
        if kind.dtype not in DTYPES:
            raise GraphError(
                f"tensor {name}: expected one of {', '.join(DTYPES)}, found {kind.dtype}"
            )
        if any(size < 1 for size in kind.shape):
            raise GraphError(f"tensor {name}: expected positive sizes, found {list(kind.shape)}")
    for name, array in graph.constants.items():
        kind = graph.tensors[name]
        if array.shape != kind.shape or str(array.dtype) != kind.dtype:
            found = f"{array.dtype}{list(array.shape)}"
            raise GraphError(
                f"constant {name}: expected {kind.dtype}{list(kind.shape)}, found {found}"
            )


def _verify_type(graph: Graph, node: Node) -> None:
    kind = graph.tensors[node.output]
    shapes = [graph.tensors[name].shape for name in node.inputs]
    shape = shape_of(node, shapes)
    if shape is None:
        count = reduce(mul, kind.shape, 1)
        if count != reduce(mul, shapes[0], 1):
            raise _fail(
                node, f"an output of {reduce(mul, shapes[0], 1)} elements", list(kind.shape)
            )
    elif shape != kind.shape:
        raise _fail(node, f"an output of shape {list(shape)}", list(kind.shape))
    verify_dtypes(graph.tensors, node)


def _data_dtypes(tensors: Mapping[str, ir.TensorType], node: Node) -> set[str]:
    """The dtypes of the operands that carry data; weights and biases have their own."""
    skip = {getattr(node, key, None) for key in ("weight", "bias")}
    return {tensors[name].dtype for name in node.inputs if name not in skip}


def verify_dtypes(tensors: Mapping[str, ir.TensorType], node: Node) -> None:
    """Checks the element types that ``node`` reads and writes.

    Raises:
        GraphError: one of them isn't for this operator.
    """
    out, found = tensors[node.output].dtype, _data_dtypes(tensors, node)
    wanted = (found, {node.dtype}) if isinstance(node, ir.Foreign) else _dtypes(node)
    if not found <= wanted[0]:
        raise _fail(node, f"{' or '.join(sorted(wanted[0]))} data", ", ".join(sorted(found)))
    if out not in wanted[1]:
        raise _fail(node, f"a {' or '.join(sorted(wanted[1]))} result", out)


def _dtypes(node: Node) -> tuple[set[str], set[str]]:
    """What a node may read as data, and write."""
    pairs = {
        ir.Quantize: ({"float32"}, {"int8", "uint8"}),
        ir.Dequantize: ({"int8", "uint8", "int32"}, {"float32"}),
        ir.FlipSign: ({"int8", "uint8"}, {"int8", "uint8"}),
    }
    if isinstance(node, ir.Pack | ir.Unpack | ir.Im2col) or (
        node.op.startswith("Q") and not isinstance(node, ir.Quantize)
    ):
        return {"int8"}, {"int8"}
    return pairs.get(type(node), ({"float32"}, {"float32"}))
