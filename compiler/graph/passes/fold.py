"""Passes that compute, merge or drop what is known before run time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.products import FloatProducts
from vdla.compiler.graph.types import Array, Shape


def fold_scales(graph: Graph) -> Graph:
    """Moves a factor and an offset of each channel into the weights of what they are applied to.

    before: y = BatchNorm(Conv2d(x, w, b), f, o)     after: y = Conv2d(x, w*f, b*f + o)
    before: y = Add(Mul(Conv2d(x, w, b), f), o)      after: y = Conv2d(x, w*f, b*f + o)
    """
    return rewrite(graph, _normalized, _combined)


def _normalized(node: ops.BatchNorm, editor: Editor) -> Made:
    """Products with the factor and the offset of a normalization in their weights."""
    factor, offset = editor.constants[node.factor], editor.constants[node.offset]
    return _scaled(node, node.data, factor, offset, editor)


def _combined(node: ops.Add | ops.Binary, editor: Editor) -> Made:
    """Products with one constant of each channel in their weights, which is a factor or an
    offset."""
    function, shape = getattr(node, "function", "add"), editor.shape(node.output)
    a, b = node.a, node.b
    if a in editor.constants and function in ("add", "mul"):
        a, b = b, a
    value = _by_channel(editor.constants.get(b), shape)
    if value is None or editor.shape(a) != shape:
        return None
    one, none = np.ones_like(value), np.zeros_like(value)
    if function in ("add", "sub"):
        return _scaled(node, a, one, value if function == "add" else -value, editor)
    if function not in ("mul", "div"):
        return None
    with np.errstate(all="ignore"):
        return _scaled(node, a, value if function == "mul" else 1 / value, none, editor)


def _scaled(node: Node, data: str, factor: Array, offset: Array, editor: Editor) -> Made:
    """Products with a factor and an offset in their weights."""
    maker, constants = editor.own_maker(data, FloatProducts), editor.constants
    if maker is None or maker.weight not in constants:
        return None
    if maker.bias is not None and maker.bias not in constants:
        return None
    with np.errstate(all="ignore"):
        folded = maker.scaled(factor, offset, constants)
    if not all(np.isfinite(value).all() for value in folded):
        return None  # a sum of infinities is no number where a sum times infinity is one
    weight, bias = (
        editor.constant(f"{maker.name}.{what}.folded", value)
        for what, value in zip(("weight", "bias"), folded, strict=True)
    )
    editor.erase(maker)
    return replace(maker, output=node.output, weight=weight, bias=bias)


def _by_channel(value: Array | None, shape: Shape) -> Array | None:
    """One value of a constant for every channel of a result; None where it isn't so."""
    if value is None or value.dtype != np.float32 or len(shape) < 2 or value.ndim > len(shape):
        return None
    whole = value.reshape((1,) * (len(shape) - value.ndim) + value.shape)
    if whole.size != whole.shape[1]:
        return None
    return np.ascontiguousarray(np.broadcast_to(whole.reshape(-1), shape[1:2]))


def merge_duplicates(graph: Graph) -> Graph:
    """Keeps the first of several nodes that compute the same thing.

    before: a = Quantize(x, s, z); b = Quantize(x, s, z)     after: a, and a wherever b was read
    """
    return rewrite(graph, _merged)


def _merged(node: Node, editor: Editor) -> Made:
    """Nothing: the first node that computes the same has its readers by then."""
    if isinstance(node, ops.Control) or node.output in editor.outputs or not node.inputs:
        return None
    own = _meaning(node, editor)
    twins = [each for each in editor.readers(node.inputs[0]) if _meaning(each, editor) == own]
    first = min(twins, key=editor.position)
    if first is node:
        return None
    editor.rename(node.output, first.output)
    return ()


def _meaning(node: Node, editor: Editor) -> tuple[object, ...]:
    """All that a node's result follows from, and its type."""
    return type(node), node.inputs, tuple(node.attributes()), editor.tensors[node.output]


def fold_constants(graph: Graph) -> Graph:
    """Computes nodes whose operands are all constants, but for the integers of a product's factor.

    before: w = Dequantize(c)     after: w is a constant
    """
    return rewrite(graph, _computed)


def _computed(node: Node, editor: Editor) -> Made:
    """Nothing: the result is a constant by then."""
    if isinstance(node, ops.Control) or node.output in editor.outputs:
        return None
    if any(name not in editor.constants for name in node.inputs):
        return None
    if node.CONVERTS == "numbers" and editor.readers_of(node.output, ops.MatMul):
        return None
    operands = [editor.constants[name] for name in node.inputs]
    value = node.evaluate(operands, editor.tensors[node.output])
    editor.define(node.output, np.asarray(value))
    return ()


def fold_flatten(graph: Graph) -> Graph:
    """Lets a dense layer read a pooled 1x1 image as it is.

    before: QDense(QReshape(x[N, C, 1, 1]))             after: QDense(x)
    before: QDense(QClip(QReshape(x[N, C, 1, 1])))      after: QDense(QClip(x))
    """
    return rewrite(graph, _clipped_first, _unflattened)


def _clipped_first(node: ops.QClip, editor: Editor) -> Made:
    """The reshape of one pixel behind the change of its scale."""
    reshape = editor.own_maker(node.data, ops.QReshape)
    if reshape is None or editor.shape(reshape.data)[2:] != (1, 1):
        return None
    kind = replace(editor.tensors[node.output], shape=editor.shape(reshape.data))
    early = editor.tensor(f"{node.output}.pixel", kind)
    editor.erase(reshape)
    return (
        replace(node, data=reshape.data, output=early),
        replace(reshape, data=early, output=node.output),
    )


def _unflattened(node: ops.QDense, editor: Editor) -> Made:
    """The layer of an image of one pixel."""
    source = editor.maker(node.data, ops.QReshape)
    shape = editor.shape(source.data) if source else ()
    if source is None or shape[2:] != (1, 1) or editor.shape(node.data) != shape[:2]:
        return None
    return replace(node, data=source.data)
