"""Operators in the spelling that the accelerator's other rewrites know, in a file's floats.

Einsum         of two factors with one sum is a product of stacks of matrices
Where          with a mask that is constant is the least and the greatest of two
Add            of a constant that int8 has exactly, such as a mask, is a sum of integers; so are
               sums and products with a constant of each feature, within a step of the result
Dequantize     of a product's constant factor with a scale for each matrix has one for all
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Array, Graph, Node, TensorType
from vdla.compiler.graph.numbers import quantize
from vdla.compiler.targets.accelerator.rewrites.neighbours import EXTREMES, Neighbours

FUNCTIONS = ("add", "sub", "mul")  # that have integers for a constant
EXACT = 2.0**-8  # steps of a result that a constant may be off, such as a mask
HALF = 0.5  # steps by which a constant of each feature may move a result, so that it is off by one


def respell(graph: Graph) -> Graph:
    """Replaces such operators.

    before: y = Einsum(a, b), bihd,bjhd->bhij
    after:  y = MatMul(Transpose(a), Transpose(b))
    before: y = Q(Where(mask, x, -1e4)), the mask constant
    after:  y = Q(min(x, DQ(most))), most -1e4 behind the mask and the largest integer before it
    """
    speller = _Speller(graph.copy())
    nodes = [made for node in graph.nodes for made in speller.made(node)]
    return graph if nodes == [*graph.nodes] else replace(speller.graph, nodes=tuple(nodes))


@dataclass
class _Speller:
    graph: Graph

    def __post_init__(self) -> None:
        self.around = Neighbours(self.graph)

    def made(self, node: Node) -> Sequence[Node]:
        """Nodes in a node's place."""
        if isinstance(node, ops.Einsum):
            return list(self.product(node)) or [node]
        if isinstance(node, ops.Where):
            return list(self.extremes(node)) or [node]
        if isinstance(node, ops.Add | ops.Binary):
            return list(self.with_integers(node)) or [node]
        if isinstance(node, ops.Dequantize):
            return [self.with_one_scale(node)]
        return [node]

    def product(self, node: ops.Einsum) -> Iterator[Node]:
        """The product that an Einsum is; nothing where it is more than one sum."""
        terms, right = node.terms
        if len(terms) != 2 or any(len({*term}) < len(term) for term in (*terms, right)):
            return
        a, b = ({*term} for term in terms)
        stack = [letter for letter in right if letter in a and letter in b]
        rows = [letter for letter in right if letter in a - b]
        columns = [letter for letter in right if letter in b - a]
        sums = [letter for letter in terms[0] if letter in b and letter not in right]
        if {len(rows), len(columns), len(sums)} != {1} or a | b != {*stack, *rows, *columns, *sums}:
            return
        wanted = [*stack, *rows, *sums], [*stack, *sums, *columns]
        names = []
        for number, (part, term, order) in enumerate(zip(node.parts, terms, wanted, strict=True)):
            name = self.tensor(f"{node.name}.part{number}", part, map(term.index, order))
            perm = tuple(term.index(letter) for letter in order)
            yield ops.Transpose(name=name, output=name, data=part, perm=perm)
            names.append(name)
        letters = [*stack, *rows, *columns]
        turned = f"{node.name}.product"
        self.tensor(turned, node.output, (right.index(letter) for letter in letters))
        yield ops.MatMul(name=turned, output=turned, a=names[0], b=names[1])
        perm = tuple(letters.index(letter) for letter in right)
        yield ops.Transpose(name=node.name, output=node.output, data=turned, perm=perm)

    def extremes(self, node: ops.Where) -> Iterator[Node]:
        """The least and the greatest of two that a choice by a constant is; nothing where none of
        both is constant, or nothing quantizes the result."""
        known, end = self.graph.constants, self.around.end(node)
        if end is None or node.condition not in known:
            return
        mask, data, other = known[node.condition].astype(bool), node.a, node.b
        if data in known:
            mask, data, other = ~mask, other, data
        if (
            other not in known
            or data in known
            or self.around.shape(data) != self.around.shape(node.output)
        ):
            return
        dtype = self.graph.tensors[end.output].dtype
        low, high = EXTREMES[dtype]
        numbers = np.array(end.scale[0], np.float32), np.array(end.zero_point[0])
        value = quantize(np.broadcast_to(known[other], mask.shape), *numbers, dtype)
        steps = [("min", high)] if (value[~mask] == low).all() else [("min", high), ("max", low)]
        for number, (function, neutral) in enumerate(steps):
            name = f"{node.name}.{function}"
            limit = np.where(mask, neutral, value).astype(dtype)
            bound = self.constant(f"{name}.bound", limit)
            real = self.typed(f"{name}.real", TensorType(limit.shape, "float32"))
            quant = end.scale, end.zero_point
            yield _dequantize(real, bound, quant)
            last = number == len(steps) - 1
            result = (
                node.output
                if last
                else self.typed(f"{name}.result", self.graph.tensors[node.output])
            )
            yield ops.Binary(name=name, output=result, a=data, b=real, function=function)
            if not last:
                bits = self.typed(f"{name}.bits", self.graph.tensors[end.output])
                yield replace(end, name=bits, output=bits, data=result)
                data = self.typed(f"{name}.again", self.graph.tensors[node.output])
                yield _dequantize(data, bits, quant)

    def with_integers(self, node: ops.Add | ops.Binary) -> Iterator[Node]:
        """A sum or a product whose constant is made of integers; nothing where int8 is too coarse
        for it, or nothing quantizes the operands."""
        known = self.graph.constants
        data, name = (node.a, node.b) if node.b in known else (node.b, node.a)
        end, source = self.around.end(node), self.around.makers.get(data)
        if end is None or not isinstance(source, ops.Dequantize) or name not in known:
            return
        array, function = known[name].astype(np.float64), getattr(node, "function", "add")
        feature = array.size == array.shape[-1] if array.ndim else False
        if function not in FUNCTIONS or array.size < 2 or (function != "add" and not feature):
            return
        low, high = min(0.0, array.min()), max(0.0, array.max())
        step = np.array(max((high - low) / 255, 1e-30), np.float32)
        zero = np.rint(-128 - low / float(step))
        numbers = quantize(array.astype(np.float32), step, zero, "int8")
        error = np.abs((numbers - zero) * float(step) - array).max()
        if function == "mul":
            error *= self.largest(source)
        if not error <= (HALF if feature else EXACT) * end.scale[0]:
            return
        bits = self.constant(f"{node.name}.constant", numbers)
        real = self.typed(f"{node.name}.constant.real", TensorType(array.shape, "float32"))
        yield _dequantize(real, bits, ((float(step),), (int(zero),)))
        yield node.renamed({name: real})

    def largest(self, node: ops.Dequantize) -> float:
        """The largest number that a node can give; infinity where its integers are others."""
        ends = EXTREMES.get(self.graph.tensors[node.data].dtype, ())
        sizes = (
            abs(n - z) * s for n in ends for z, s in zip(node.zero_point, node.scale, strict=True)
        )
        return max(sizes, default=float("inf"))

    def with_one_scale(self, node: ops.Dequantize) -> ops.Dequantize:
        """A product's constant factor at the largest of its matrices' scales."""
        array, axis, users = (
            self.graph.constants.get(node.data),
            node.axis,
            self.around.uses[node.output],
        )
        if array is None or axis is None or axis >= array.ndim - 2 or any(node.zero_point):
            return node
        if array.dtype != np.int8 or not all(self.in_integers(user, node) for user in users):
            return node
        scale = max(node.scale)
        real = node.evaluate([array], self.graph.tensors[node.output])
        whole = quantize(real, np.array(scale, np.float32), np.array(0), "int8")
        data = self.constant(f"{node.data}.whole", whole)
        return replace(node, data=data, scale=(scale,), zero_point=(0,), axis=None)

    def in_integers(self, user: Node, factor: ops.Dequantize) -> bool:
        """Whether a node is a product of a factor and int8 that one scale quantizes."""
        if not isinstance(user, ops.MatMul) or self.around.end(user) is None:
            return False
        other = user.b if user.a == factor.output else user.a
        return isinstance(self.around.makers.get(other), ops.Dequantize)

    def tensor(self, name: str, like: str, axes: Iterable[int]) -> str:
        """A new tensor with the axes of another one in some order."""
        kind = self.graph.tensors[like]
        return self.typed(name, replace(kind, shape=tuple(kind.shape[axis] for axis in axes)))

    def typed(self, name: str, kind: TensorType) -> str:
        """A new tensor of a type."""
        self.graph.tensors[name] = kind
        return name

    def constant(self, name: str, array: Array) -> str:
        """A new constant."""
        self.graph.constants[name] = array
        return self.typed(name, TensorType(array.shape, str(array.dtype)))


def _dequantize(
    name: str, data: str, quant: tuple[tuple[float, ...], tuple[int, ...]]
) -> ops.Dequantize:
    """The real numbers of integers, a tensor of the node's name."""
    scale, zero = quant
    return ops.Dequantize(name=name, output=name, data=data, scale=scale, zero_point=zero)
