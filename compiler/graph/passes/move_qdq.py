"""Operators without arithmetic move into the integers: :func:`move_qdq`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import int8_source, quantizing
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.island import Quantizable
from vdla.compiler.graph.ops.quantize import Scaled
from vdla.compiler.graph.types import Quant, Requant, TensorType


def move_qdq(graph: Graph) -> Graph:
    """Moves pools without arithmetic, and what only moves elements, into the integers.

    before: Dequantize → MaxPool               after: QMaxPool → Dequantize
    before: MaxPool → Quantize                 after: Quantize → QMaxPool
    before: Quantize → Dequantize → Clip → Quantize    after: Clip → Quantize
    before: Dequantize, Dequantize → Concat    after: QConcat → Dequantize
    before: Dequantize → Relu, twice quantized    after: Dequantize → Relu → Quantize, each
    All are exact: rounding is monotone, and the largest stays the largest. A Quantize directly
    behind a Dequantize with the same parameters is dropped.
    """
    return rewrite(graph, _sunk, _joined, _hoisted, _limited, _apart, _cancelled)


def _sunk(node: Node, editor: Editor) -> Made:
    """The operator on integers, and their Dequantize behind it."""
    source = int8_source(node.inputs[0], editor) if node.integer else None
    if source is None:
        return None
    shape, quant = editor.shape(node.output), quant_of(source)
    integers = editor.tensor(f"{node.output}.integer", TensorType(shape, "int8", quant))
    integer = _on_integers(node, integers, source.data, quant)
    name = f"{node.name}.dequantize"
    return integer, replace(source, name=name, output=node.output, data=integers)


def _joined(node: ops.Concat, editor: Editor) -> Made:
    """Integers of one scale one behind another, and their Dequantize behind them; what quantizes
    the result changes the scales of its parts instead."""
    sources = [source for name in node.parts if (source := int8_source(name, editor))]
    quants = {quant_of(source) for source in sources}
    if len(sources) < len(node.parts) or len(quants) > 1 or quantizing(node, editor):
        return None
    (quant,) = quants
    kind = TensorType(editor.shape(node.output), "int8", quant)
    integers = editor.tensor(f"{node.output}.integer", kind)
    joined = joined_integers(integers, [source.data for source in sources], node.axis, quant)
    name = f"{node.name}.dequantize"
    return (
        replace(joined, name=node.name),
        replace(sources[0], name=name, output=node.output, data=integers),
    )


def joined_integers(name: str, parts: Sequence[str], axis: int, quant: Quant) -> ops.QConcat:
    """Integers of one scale and zero point one behind another, a tensor of the node's name."""
    zeros, requant = (
        (quant.zero_point,) * len(parts),
        Requant((1.0,) * len(parts), quant.zero_point),
    )
    return ops.QConcat(
        name=name, output=name, parts=tuple(parts), axis=axis, zeros=zeros, requant=requant
    )


def _hoisted(node: ops.Quantize, editor: Editor) -> Made:
    """Nothing: the operator that makes its data works on integers by then."""
    op = editor.own_maker(node.data, Node)
    if node.axis is not None or op is None or op.integer is None:
        return None
    source = op.inputs[0]
    if isinstance(op, ops.Take) and editor.is_input(source) and len(editor.readers(source)) > 1:
        return None  # a part of an input: to quantize all of it for each part takes longer
    kind = replace(editor.tensors[node.output], shape=editor.shape(source))
    early = editor.tensor(f"{op.output}.quantized", kind)
    after = _on_integers(op, node.output, early, quant_of(node))
    editor.replace(op, replace(node, data=source, output=early), after)
    return ()


def _limited(node: ops.Relu | ops.Clip, editor: Editor) -> Made:
    """Limits before the first of two quantizations alike, with which they are one: rounding is
    monotone. Behind what has limits of its own, once it is one of integers, they stay for it."""
    end, source = quantizing(node, editor), int8_source(node.data, editor)
    first = editor.own_maker(source.data, ops.Quantize) if source else None
    if end is None or source is None or first is None or not editor.is_alone(source.output):
        return None
    alike = first.axis is None and quant_of(end) == quant_of(source) == quant_of(first)
    maker = editor.maker(first.data, Quantizable)
    if not alike or (maker and maker.has_integers(editor.shape(maker.inputs[0]))):
        return None
    editor.erase(first)
    editor.erase(source)
    limited = replace(node, data=first.data)
    editor.replace(end, replace(end, name=first.name))
    return limited


def _apart(node: ops.Quantize, editor: Editor) -> Made:
    """Limits of its own for one of several quantizations of an int8 with limits."""
    limits = editor.maker(node.data, (ops.Relu, ops.Clip))
    if limits is None or editor.is_alone(node.data) or not int8_source(limits.inputs[0], editor):
        return None
    own = editor.like(f"{node.data}.limited", editor.shape(node.data), node.data)
    return replace(limits, name=own, output=own), replace(node, data=own)


def _cancelled(node: ops.Quantize, editor: Editor) -> Made:
    """Nothing: its result is the integers that it repeats."""
    source = int8_source(node.data, editor)
    if source is None or node.axis is not None:
        return None
    if (source.scale, source.zero_point) != (node.scale, node.zero_point):
        return None
    maker = editor.maker(source.data, Node)
    if maker is None or not editor.is_new(source.data) or editor.is_new(node.output):
        if node.output in editor.outputs:
            return None
        editor.rename(node.output, source.data)
        return ()
    editor.retype(node.output, editor.tensors[source.data])
    editor.rename(source.data, node.output)  # the file's name for them
    editor.replace(maker, maker.writing(node.output))
    return ()


def _on_integers(node: Node, output: str, data: str, quant: Quant) -> Node:
    """A node on integers of a scale and zero point."""
    values = dict(node.attributes)
    if "fill" in values:
        values["fill"] = float(quant.zero_point)  # the fill of reals is 0, or isn't used
    kind = cast("Callable[..., Node]", node.integer)
    return kind(name=node.name, output=output, data=data, **values)


def quant_of(node: Scaled) -> Quant:
    """The one scale and zero point of a node."""
    return Quant(node.scale[0], node.zero_point[0])
