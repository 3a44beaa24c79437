"""Normalizations and softmax that a file has in pieces, with quantizations between them, as one.

A quantizer that doesn't know them quantizes what it knows of their pieces: a sum with epsilon, a
product with a factor. In integers they are one operator, which has the mean, the deviation and the
exponentials in more bits than int8, so that its results are nearer to the floats than the file's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.clusters.matcher import (
    Deviation,
    Shares,
    deviation_of,
    shares_of,
)
from vdla.compiler.graph.editor import Editor, Made
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.types import Array

Whole = Deviation | Shares
COMBINES = (ops.Add, ops.Binary)  # two tensors, element by element


def join_pieces(graph: Graph) -> Graph:
    """Makes one float cluster of each normalization and softmax whose result is quantized.

    before: v = Q(mean((x - mean(x))²)); s = Q(DQ(v) + 0.01); y = Q((x - mean(x)) / √DQ(s))
    after:  y = Q((x - mean(x)) / √(mean((x - mean(x))²) + 0.01))

    Only what stands before the first quantization that ends a whole one is joined: a factor behind
    it is a product of integers.
    """
    editor = Editor(graph)
    return editor.walk(_Pieces(graph, editor).joined)


@dataclass
class _Pieces:
    """``ends`` are quantizations whose result is a whole one, ``plain`` those of them with none
    inside; ``around`` are the file's nodes, and ``through`` those that read what was quantized, but
    for ends, as it was before."""

    graph: Graph
    editor: Editor
    ends: set[str] = field(default_factory=set)
    plain: dict[str, Whole] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.around = Neighbours(self.graph)
        for node in self.graph.of(ops.Quantize):
            whole = self.whole(node, self.around)
            if whole and self.around.maker(whole.data, ops.Dequantize):
                self.plain[node.name] = whole
        self.ends |= self.plain.keys()
        self.look()

    def look(self) -> None:
        """Looks through all quantizations but the ends."""
        self.real: dict[str, str] = {}  # what a Dequantize gives, before it was quantized
        known: dict[str, Array] = {}
        for node in self.graph.of(ops.Dequantize):
            maker = self.around.maker(node.data, ops.Quantize)
            ends = maker is not None and maker.name in self.ends
            if maker is not None and not (ends and not self.meets_floats(node)):
                self.real[node.output] = self.real.get(maker.data, maker.data)
            elif node.data in self.graph.constants and self.is_term(node.output):
                kind = self.graph.tensors[node.output]
                known[node.output] = node.evaluate([self.graph.constants[node.data]], kind)
        nodes = tuple(node.renamed(self.real) for node in self.graph.nodes)
        self.through = Neighbours(self.graph.copy(nodes, constants=known))

    def meets_floats(self, node: ops.Dequantize) -> bool:
        """Whether all that reads what is dequantized combines it with a constant that nothing
        quantizes: there are no integers for that."""
        users = self.around.readers(node.output)
        known = self.graph.constants
        combined = self.around.readers_of(node.output, COMBINES)
        constants = (any(n in known for n in user.inputs) for user in users)
        return len(combined) == len(users) and all(constants)

    def is_term(self, name: str) -> bool:
        """Whether a tensor is an operand of what works by element: no weights of a layer."""
        return bool(self.around.readers_of(name, COMBINES))

    def joined(self, node: ops.Quantize) -> Made:
        """The nodes in the place of a Quantize of pieces."""
        plain = self.plain.get(node.name)
        whole = plain or self.whole(node, self.through)
        source = self.source(node, whole.data) if whole else None
        if whole is None or source is None:
            return None
        if plain is None:
            self.ends.add(node.name)
            self.look()
        if plain and (isinstance(plain, Deviation) or self.is_one(node)):
            return None
        *pieces, last = _pieces(node.name, replace(whole, data=source), self.editor)
        return [*pieces, last, replace(node, data=last.output)]

    def source(self, node: ops.Quantize, real: str) -> str | None:
        """Dequantized form of a tensor, as what a node quantizes reads it; None where that reads
        the tensor before it was quantized."""
        if self.around.maker(real, ops.Dequantize):
            return real
        result, rest, seen = None, [node.data], set[str]()
        while rest:
            if (name := rest.pop()) in seen:
                continue
            seen.add(name)
            maker, real_of = self.around.maker(name, Node), self.around.maker(name, ops.Dequantize)
            if name == real:
                return None
            if self.real.get(name) == real:
                result = name
            elif real_of is not None:
                before = self.around.maker(real_of.data, ops.Quantize)
                rest += before.inputs if name in self.real and before else ()
            elif maker is not None:
                rest += maker.inputs
        return result

    def is_one(self, node: ops.Quantize) -> bool:
        """Whether what a node quantizes is one operator already."""
        return self.around.maker(node.data, ops.Softmax) is not None

    def whole(self, node: ops.Quantize, around: Neighbours) -> Whole | None:
        """Whole that a node quantizes; None where it quantizes none."""
        data = node.data if around is self.around else self.real.get(node.data, node.data)
        return deviation_of(data, around) or shares_of(data, around)


def _pieces(name: str, whole: Whole, editor: Editor) -> Iterator[Node]:
    """The float operators of a whole one."""
    kind = editor.tensors[whole.data]
    if isinstance(whole, Shares):
        shares = editor.tensor(f"{name}.softmax", kind)
        yield ops.Softmax(name=shares, output=shares, data=whole.data, axis=whole.axis)
        return
    rows = tuple(1 if n in whole.axes else size for n, size in enumerate(kind.shape))
    above = whole.data
    if whole.centered:
        mean = editor.tensor(f"{name}.mean", replace(kind, shape=rows))
        yield _mean(mean, above, whole)
        above = editor.tensor(f"{name}.above", kind)
        yield ops.Binary(name=above, output=above, a=whole.data, b=mean, function="sub")
    square = editor.tensor(f"{name}.square", kind)
    yield ops.Binary(name=square, output=square, a=above, b=above, function="mul")
    power = editor.tensor(f"{name}.power", replace(kind, shape=rows))
    yield _mean(power, square, whole)
    small = editor.constant(f"{name}.epsilon", np.array(whole.epsilon, np.float32))
    under = editor.tensor(f"{name}.under", replace(kind, shape=rows))
    yield ops.Add(name=under, output=under, a=power, b=small)
    root = editor.tensor(f"{name}.root", replace(kind, shape=rows))
    yield ops.Unary(name=root, output=root, data=under, function="sqrt")
    result = editor.tensor(f"{name}.quotient", kind)
    yield ops.Binary(name=result, output=result, a=above, b=root, function="div")
    yield from _terms(name, result, whole, editor)


def _terms(name: str, data: str, whole: Deviation, editor: Editor) -> Iterator[Node]:
    """Factors and offsets of what is normalized, where there are some."""
    kind = editor.tensors[data]
    sizes = tuple(size if n in whole.axes else 1 for n, size in enumerate(kind.shape))
    if (whole.gamma != 1).any():
        factor = editor.constant(f"{name}.gamma", whole.gamma.astype(np.float32).reshape(sizes))
        scaled = editor.tensor(f"{name}.scaled", kind)
        yield ops.Binary(name=scaled, output=scaled, a=data, b=factor, function="mul")
        data = scaled
    if whole.beta.any():
        offset = editor.constant(f"{name}.beta", whole.beta.astype(np.float32).reshape(sizes))
        moved = editor.tensor(f"{name}.moved", kind)
        yield ops.Add(name=moved, output=moved, a=data, b=offset)


def _mean(name: str, data: str, whole: Deviation) -> ops.Reduce:
    """The mean along the axes of a normalization."""
    return ops.Reduce(name=name, output=name, data=data, function="mean", axes=whole.axes)
