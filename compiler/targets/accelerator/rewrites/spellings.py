"""Operators in the spelling that the accelerator's other rewrites know, in a file's floats.

Einsum         of two factors with one sum is a product of stacks of matrices
Where          with a mask that is constant is the least and the greatest of two
Add            of a constant that int8 has exactly, such as a mask, is a sum of integers
Dequantize     of a product's constant factor with a scale for each matrix has one for all
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Array, Graph, Node, TensorType
from vdla.compiler.graph.numbers import quantize
from vdla.compiler.targets.accelerator.rewrites.neighbours import Neighbours

MASK_AXES = 2  # a constant of fewer is an offset of each feature
EXACT = 2.0**-8  # steps of a result that a constant may be off
EXTREMES = {"int8": (-128, 127), "uint8": (0, 255)}


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
        """What stands in a node's place."""
        if isinstance(node, ops.Einsum):
            return list(self.product(node)) or [node]
        if isinstance(node, ops.Where):
            return list(self.extremes(node)) or [node]
        if isinstance(node, ops.Add):
            return list(self.masked(node)) or [node]
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
        known, end = self.graph.constants, self.quantization(node.output)
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

    def masked(self, node: ops.Add) -> Iterator[Node]:
        """A sum whose constant is made of integers; nothing where there are none for it, or where
        a layer takes the constant in."""
        known = self.graph.constants
        data, name = (node.a, node.b) if node.b in known else (node.b, node.a)
        end = self.quantization(node.output)
        source = isinstance(self.around.makers.get(data), ops.Dequantize)
        if end is None or not source or name not in known or known[name].ndim < MASK_AXES:
            return
        array = known[name].astype(np.float64)
        low, high = min(0.0, array.min()), max(0.0, array.max())
        step = np.array(max((high - low) / 255, 1e-30), np.float32)
        zero = np.rint(-128 - low / float(step))
        numbers = quantize(array.astype(np.float32), step, zero, "int8")
        error = np.abs((numbers - zero) * float(step) - array).max()
        if error > EXACT * end.scale[0]:
            return
        bits = self.constant(f"{node.name}.addend", numbers)
        real = self.typed(f"{node.name}.addend.real", TensorType(array.shape, "float32"))
        yield _dequantize(real, bits, ((float(step),), (int(zero),)))
        yield node.renamed({name: real})

    def quantization(self, name: str) -> ops.Quantize | None:
        """What quantizes a tensor with one scale, if nothing else reads it."""
        users = self.around.uses[name]
        end = users[0] if len(users) == 1 else None
        return end if isinstance(end, ops.Quantize) and end.axis is None else None

    def with_one_scale(self, node: ops.Dequantize) -> ops.Dequantize:
        """A product's constant factor at the largest of its matrices' scales."""
        array, axis, users = (
            self.graph.constants.get(node.data),
            node.axis,
            self.around.uses[node.output],
        )
        if array is None or axis is None or axis >= array.ndim - 2 or any(node.zero_point):
            return node
        if not all(isinstance(user, ops.MatMul) for user in users) or array.dtype != np.int8:
            return node
        scale = max(node.scale)
        real = node.evaluate([array], self.graph.tensors[node.output])
        whole = quantize(real, np.array(scale, np.float32), np.array(0), "int8")
        data = self.constant(f"{node.data}.whole", whole)
        return replace(node, data=data, scale=(scale,), zero_point=(0,), axis=None)

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
