"""Passes that compute, merge or drop what is known before run time."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import get_args

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.products import FloatProducts
from vdla.compiler.graph.types import Array, Shape

IMAGE, VECTOR = 4, 2  # axes


def fold_scales(graph: Graph) -> Graph:
    """Moves a factor and an offset of each channel into the weights of what they are applied to.

    before: y = BatchNorm(Conv2d(x, w, b), f, o)     after: y = Conv2d(x, w*f, b*f + o)
    before: y = Add(Mul(Conv2d(x, w, b), f), o)      after: y = Conv2d(x, w*f, b*f + o)

    Of an image that no product makes, several in a row become one:

    before: y = Add(Mul(Sub(x, m), f), o)            after: y = BatchNorm(x, f, o - m*f)
    """
    return rewrite(graph, _combined, _joined)


Affine = ops.Add | ops.Binary | ops.BatchNorm


def _combined(node: Affine, editor: Editor) -> Made:
    """Products with a factor and an offset of each channel in their weights."""
    terms = affine_terms(node, editor)
    return None if terms is None else _scaled(node, *terms, editor)


def _joined(node: Affine, editor: Editor) -> Made:
    """The normalization that two nodes are, where a factor or an offset is one of each channel."""
    last = affine_terms(node, editor)
    maker = editor.own_maker(last[0], get_args(Affine)) if last else None
    first = affine_terms(maker, editor) if maker else None
    if last is None or first is None or maker is None or len(editor.shape(node.output)) != IMAGE:
        return None
    (data, factor, offset), (_, by, plus) = first, last
    with np.errstate(all="ignore"):
        values = factor * by, offset * by + plus
    if all(np.ptp(each) == 0 for each in values) or not all(np.isfinite(values).ravel()):
        return None  # one number for all channels is a function of each element
    names = (
        editor.constant(f"{node.name}.{what}", value)
        for what, value in zip(("factor", "offset"), values, strict=True)
    )
    editor.erase(maker)
    by_name, plus_name = names
    return ops.BatchNorm(
        name=node.name, output=node.output, data=data, factor=by_name, offset=plus_name
    )


def affine_terms(node: Node, editor: Editor) -> tuple[str, Array, Array] | None:
    """The data of a node, and the factor and the offset of each channel that it applies; None for
    one that does something else."""
    known = editor.constants
    if isinstance(node, ops.BatchNorm):
        return node.data, known[node.factor], known[node.offset]
    if not isinstance(node, ops.Add | ops.Binary):
        return None
    function, shape = getattr(node, "function", "add"), editor.shape(node.output)
    turned = node.a in known
    data, other = (node.b, node.a) if turned else (node.a, node.b)
    value = _by_channel(known.get(other), shape)
    if value is None or editor.shape(data) != shape:
        return None
    one, none = np.ones_like(value), np.zeros_like(value)
    if function in ("add", "mul"):
        return (data, one, value) if function == "add" else (data, value, none)
    if function == "sub":
        return (data, -one, value) if turned else (data, one, -value)
    if function != "div" or turned:
        return None
    with np.errstate(all="ignore"):
        return data, 1 / value, none


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
    before: a = Relu(x); b = Relu(a)                         after: a, and a wherever b was read
    """
    editor, first = Editor(graph), dict[Hashable, str]()

    def limited_once(node: ops.Relu) -> Made:
        """Nothing in the place of a Relu of a Relu."""
        limited = editor.maker(node.data, ops.Relu) and node.output not in editor.outputs
        return _dropped(node, node.data, editor) if limited else None

    def merged(node: Node) -> Made:
        """Nothing in the place of a node whose result another one has by then."""
        if isinstance(node, ops.Control) or not node.inputs:
            return None
        meaning = type(node), node.inputs, node.attributes, editor.tensors[node.output]
        same = first.setdefault(meaning, node.output)
        known = same != node.output and node.output not in editor.outputs
        return _dropped(node, same, editor) if known else None

    return editor.walk(limited_once, merged)


def _dropped(node: Node, same: str, editor: Editor) -> Made:
    """Nothing in a node's place: its readers read another tensor, which is the same."""
    editor.rename(node.output, same)
    return ()


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
    """Lets a dense layer read a pooled 1x1 image as it is, and write one.

    before: QDense(QReshape(x[N, C, 1, 1]))             after: QDense(x)
    before: QDense(QClip(QReshape(x[N, C, 1, 1])))      after: QDense(QClip(x))
    before: QReshape(QDense(x)): [N, O, 1, 1]           after: QConv2d(QReshape(x))
    """
    return rewrite(graph, _clipped_first, _unflattened, _pixel_first)


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


def _pixel_first(node: ops.QReshape, editor: Editor) -> Made:
    """The reshape of a vector to a pixel before what makes the vector; nothing where that is a
    pixel's."""
    vector, pixel = editor.shape(node.data), editor.shape(node.output)
    if len(vector) != VECTOR or pixel != (*vector, 1, 1):
        return None
    back = editor.maker(node.data, ops.QReshape)
    if back is not None and editor.shape(back.data) == pixel and node.output not in editor.outputs:
        editor.rename(node.output, back.data)
        return ()
    maker = editor.own_maker(node.data, (ops.QDense, ops.QTable, ops.QClip))
    if maker is None:
        return None
    data, first = maker.inputs[0], list[Node]()
    shape = editor.shape(data)
    if shape == shape[:2]:
        early = editor.like(f"{data}.pixel", (*shape, 1, 1), data)
        first.append(replace(node, data=data, output=early))
        data = early
    elif shape != (*shape[:2], 1, 1):
        return None
    editor.erase(maker)
    if not isinstance(maker, ops.QDense):
        return *first, maker.renamed({maker.inputs[0]: data}).writing(node.output)
    array = editor.constants[maker.weight]
    weight = editor.constant(f"{maker.weight}.pixel", array.reshape(*array.shape, 1, 1))
    fields = {**maker.values(), "data": data, "weight": weight, "output": node.output}
    return *first, ops.QConv2d(**fields)
