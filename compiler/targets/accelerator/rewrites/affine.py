"""Sums and products of images with a constant for each channel, which nothing quantizes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Array, Graph, Node, Shape, TensorType
from vdla.compiler.targets.accelerator.rewrites.neighbours import Neighbours

IMAGE = 4  # dimensions of an image


def spell_affine(graph: Graph) -> Graph:
    """Makes them BatchNorms, which have integers of 20 bits and more for their constants.

    before: y = Q(DQ(p) + c), p of [1, 16, 8, 8], c of [16, 1, 1]    after: y = Q(BatchNorm(DQ(p)))
    before: y = Q(DQ(p) * f), f of [16, 1, 1]                        after: y = Q(BatchNorm(DQ(p)))

    Results are the file's, but for ties. A Quantize alone may read them: floats stay as they are
    where nothing quantizes them.
    """
    speller = _Speller(graph.copy())
    nodes = [speller.made(node) for node in graph.nodes]
    return graph if nodes == [*graph.nodes] else replace(speller.graph, nodes=tuple(nodes))


@dataclass
class _Speller:
    graph: Graph

    def __post_init__(self) -> None:
        self.around = Neighbours(self.graph)

    def made(self, node: Node) -> Node:
        """Node in a node's place."""
        if not isinstance(node, ops.Add | ops.Binary) or self.around.end(node) is None:
            return node
        known, shape = self.graph.constants, self.around.shape(node.output)
        data, other = (node.b, node.a) if node.a in known else (node.a, node.b)
        source = self.around.makers.get(data)
        integers = isinstance(source, ops.Dequantize) and source.axis is None
        if not integers or other not in known or self.around.shape(data) != shape:
            return node
        values = channels(known[other], shape)
        terms = None if values is None else affine(node, values, data == node.b)
        if terms is None:
            return node
        factor, offset = (
            self.constant(f"{node.name}.{what}", array)
            for what, array in zip(("factor", "offset"), terms, strict=True)
        )
        return ops.BatchNorm(
            name=node.name, output=node.output, data=data, factor=factor, offset=offset
        )

    def constant(self, name: str, array: Array) -> str:
        """A new constant of float32."""
        self.graph.constants[name] = array.astype(np.float32)
        self.graph.tensors[name] = TensorType(array.shape, "float32")
        return name


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
