"""Sums and products of images with a constant for each channel, which nothing quantizes."""

from __future__ import annotations

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import quantizing
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.passes.fuse_qdq import float_chain
from vdla.compiler.graph.types import Array, Shape

IMAGE = 4  # dimensions of an image


def spell_affine(graph: Graph) -> Graph:
    """Makes them BatchNorms, which have integers of 20 bits and more for their constants.

    before: y = Q(DQ(p) + c), p of [1, 16, 8, 8], c of [16, 1, 1]    after: y = Q(BatchNorm(DQ(p)))
    before: y = Q(DQ(p) * f), f of [16, 1, 1]                        after: y = Q(BatchNorm(DQ(p)))

    Results are the file's, but for ties. A Quantize alone may read them, or what limits them for
    one: floats stay as they are where nothing quantizes them.
    """
    return rewrite(graph, _scaled)


def _scaled(node: ops.Add | ops.Binary, editor: Editor) -> Made:
    """The BatchNorm that a sum or a product with a constant is."""
    known, shape = editor.constants, editor.shape(node.output)
    data, other = (node.b, node.a) if node.a in known else (node.a, node.b)
    source, last = editor.maker(data, ops.Dequantize), float_chain(node, editor)[0][-1]
    if source is None or source.axis is not None or quantizing(last, editor) is None:
        return None
    if other not in known or editor.shape(data) != shape:
        return None
    values = channels(known[other], shape)
    terms = None if values is None else affine(node, values, data == node.b)
    if terms is None:
        return None
    factor, offset = (
        editor.constant(f"{node.name}.{what}", array.astype(np.float32))
        for what, array in zip(("factor", "offset"), terms, strict=True)
    )
    return ops.BatchNorm(
        name=node.name, output=node.output, data=data, factor=factor, offset=offset
    )


def affine(
    node: ops.Add | ops.Binary, values: Array, subtracted: bool
) -> tuple[Array, Array] | None:
    """The factor and the offset that a node's constant is; ``subtracted``: the data stand behind
    it. None for other functions."""
    one, zero = np.ones_like(values), np.zeros_like(values)
    if isinstance(node, ops.Add):
        return one, values
    if node.function == "sub":
        return (-one, values) if subtracted else (one, -values)
    return (values, zero) if node.function == "mul" else None


def channels(array: Array, shape: Shape) -> Array | None:
    """A constant's one value for each channel of an image; None where it has others, or is one
    number, which a table looks up."""
    lay = (1,) * (IMAGE - array.ndim) + array.shape
    fits = len(shape) == IMAGE and lay == (1, shape[1], 1, 1) and array.size > 1
    return array.reshape(-1) if fits else None
