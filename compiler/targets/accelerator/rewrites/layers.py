"""Layers of vectors and of images: what they read, and where it lies."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import get_args

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor
from vdla.compiler.graph.form import Order
from vdla.compiler.graph.ir import Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.minimum import QMinimum
from vdla.compiler.graph.ops.multiply import QMultiply
from vdla.compiler.graph.types import Array, Shape
from vdla.compiler.targets.accelerator.options.reciprocals import no_reciprocals
from vdla.isa.config import Config

# A maximum is a minimum of another choice.
ByElement = ops.QAdd | ops.QClip | ops.QTable | QMinimum | QMultiply
BY_ELEMENT = get_args(ByElement)
PLACES = (0, 1, 3)  # the axes of an image that have a batch, channels and pixels


def normalizes(config: Config) -> bool:
    """Whether a config has integers for normalizations and softmax."""
    return no_reciprocals(config) is None


def convolution(node: ops.QDense, editor: Editor, data: str, output: str) -> ops.QConv2d:
    """The convolution by one pixel that a dense layer of vectors is; its weights are a new
    constant."""
    weight = editor.constants[node.weight]
    kernel = editor.constant(f"{node.name}.kernel", weight.reshape(*weight.shape, 1, 1))
    fields = {**node.values(), "data": data, "weight": kernel, "output": output}
    return ops.QConv2d(**fields, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), groups=1)


def gives_back(table: Array | None) -> bool:
    """Whether a function gives back each int8, as a product with a constant does whose result has a
    scale of its own."""
    return table is not None and np.array_equal(table, np.arange(-128, 128))


def operands(node: Node) -> list[str]:
    """Names of the tensors that a node reads and that aren't its own, each once."""
    return list(dict.fromkeys(name for name in node.inputs if name not in node.parameters))


def operands_first(node: ops.QTake, layer: Node, editor: Editor) -> list[Node]:
    """Parts of what a layer reads, which works by element, and the layer of them."""
    parts: dict[str, str] = {}
    takes: list[Node] = []
    for name in operands(layer):
        kind, hint = replace(editor.tensors[name], shape=node.shape), f"{node.output}.of.{name}"
        if name in editor.constants:
            parts[name] = editor.constant(hint, node.evaluate([editor.constants[name]], kind))
        else:
            parts[name] = editor.tensor(hint, kind)
            takes.append(replace(node, name=hint, output=parts[name], data=name))
    return [*takes, replace(layer.renamed(parts), name=node.name, output=node.output)]


def joined(node: ops.QConcat, around: Neighbours) -> ops.QTake | None:
    """The one QTake that a concatenation of parts of a tensor is, as one that rolls it; None where
    parts are of several, or along another axis."""
    plain = all(map(node.is_copy, range(len(node.parts))))
    takes = [around.maker(part, ops.QTake) for part in node.parts]
    parts = [take for take in takes if take is not None]
    if not plain or len(parts) < len(takes):
        return None
    tables = [take.tables() for take in parts]
    alike = all(
        len({tuple(table[axis]) for table in tables}) == 1
        for axis in range(len(tables[0]))
        if axis != node.axis
    )
    if len({take.data for take in parts}) > 1 or not alike:
        return None
    whole = [*tables[0]]
    whole[node.axis] = tuple(place for table in tables for place in table[node.axis])
    return ops.QTake(
        name=node.name,
        output=node.output,
        data=parts[0].data,
        shape=tuple(map(len, whole)),
        places=tuple(place for table in whole for place in table),
    )


def image_axis(order: Order, axis: int) -> int | None:
    """The axis of an image along which a tensor's outermost axis of a place lies."""
    places = zip(order, PLACES, strict=True)
    return next((of_image for place, of_image in places if place[:1] == (axis,)), None)


def image_shape(shape: Shape, order: Order) -> Shape:
    """The shape [N, C, 1, W] of an image whose places have axes of a tensor."""
    batch, channels, pixels = (prod(shape[axis] for axis in axes) for axes in order)
    return batch, channels, 1, pixels
