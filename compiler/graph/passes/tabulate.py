"""Functions of one int8 tensor become tables: any chain of operators between two quantizations.

A **chain** is what leads from one int8 tensor, its **root**, to another, element by element and
with no other operand but numbers known at compile time. Between the two may be any operators by
elements, other roundings to int8, and branches that meet again, as in ``x * sigmoid(x)``. The last
tensor then has at most 256 different values, one for each of the root's, and a table says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.table import LEAST, RESULTS
from vdla.compiler.graph.types import Array, Quant

RANGE = np.arange(LEAST, LEAST + RESULTS).astype(np.int8)  # all values that a root can have


def tabulate(graph: Graph) -> Graph:
    """Looks functions of one int8 tensor up in tables.

    before: s = Quantize(Sigmoid(Dequantize(x))); y = Quantize(Dequantize(x) * Dequantize(s))
    after:  y = QTable(x, table)

    A table has what the chain's operators make of all 256 values, every rounding included. What is
    arithmetic of integers alone (changes of scale, limits, sums) stays as it is.
    """
    chains = _Chains(graph)
    for node in graph.nodes:
        chains.follow(node)
    ends, editor = set(chains.ends()), Editor(graph)

    def tabulated(node: ops.Quantize) -> Made:
        """The table of the last node of a chain."""
        if node.output not in ends:
            return None
        name, quant = node.output, Quant(node.scale[0], node.zero_point[0])
        table = editor.constant(f"{name}.table", chains.table(name))
        editor.retype(name, replace(editor.tensors[name], quant=quant))
        return ops.QTable(name=node.name, output=name, data=chains.roots[name], table=table)

    return editor.walk(tabulated)


@dataclass
class _Chains:
    """Which tensors are functions of one int8 tensor.

    Attributes:
        roots: by such a tensor's name, the int8 tensor that it is a function of; of an int8 tensor
            that is none, itself.
        numbers: tensors of one element that are known at compile time, as arrays without axes.
        plain: those that arithmetic of integers alone leads to.
    """

    graph: Graph
    roots: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, Array] = field(default_factory=dict)
    plain: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.makers = self.graph.producers
        for name, array in self.graph.constants.items():
            if array.size == 1:
                self.numbers[name] = array.reshape(())
        for name in self.graph.inputs:
            self.begin(name)

    def begin(self, name: str) -> None:
        """Makes an int8 tensor the root of what follows."""
        if self.graph.tensors[name].dtype == "int8":
            self.roots[name] = name
            self.plain.add(name)

    def follow(self, node: Node) -> None:
        """Notes what a node's result is a function of; its operands are noted already."""
        name, tensors = node.output, self.graph.tensors
        operands = [each for each in node.inputs if each not in self.numbers]
        if not node.by_element:
            self.begin(name)
        elif not operands:
            if tensors[name].elements == 1:
                self.numbers[name] = self.value(node, self.numbers, ())
        else:
            roots = {self.roots.get(each) for each in operands}
            root = roots.pop() if len(roots) == 1 else None
            if root is None or tensors[root].shape != tensors[name].shape:
                self.begin(name)
                return
            self.roots[name] = root
            if self.is_plain(node, operands):
                self.plain.add(name)

    def is_plain(self, node: Node, operands: Sequence[str]) -> bool:
        """Whether an operator of integers alone gives a node's result."""
        if not _is_plain(node) or not set(operands) <= self.plain:
            return False
        if any(each in self.graph.constants for each in node.inputs):
            return False  # a number that nothing quantizes
        makers = [self.makers.get(each) for each in operands]
        return len(makers) == 1 or all(isinstance(each, ops.Dequantize) for each in makers)

    def ends(self) -> list[str]:
        """The int8 tensors that a table is to be made of."""
        return [
            name
            for name, root in self.roots.items()
            if name != root
            and name not in self.plain
            and self.graph.tensors[name].dtype == "int8"
            and isinstance(self.makers[name], ops.Quantize)
        ]

    def table(self, name: str) -> Array:
        """The results of all 256 values of a tensor's root: int8 [256]."""
        values = {**self.numbers, self.roots[name]: RANGE}
        left = [self.makers[name]]
        while left:
            node = left[-1]
            missing = [each for each in node.inputs if each not in values]
            if missing:
                left += [self.makers[each] for each in missing]
            else:
                values[node.output] = self.value(left.pop(), values, RANGE.shape)
        return values[name]

    def value(self, node: Node, values: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
        """A node's result for operands of one element or of 256."""
        kind = replace(self.graph.tensors[node.output], shape=shape)
        return np.asarray(node.evaluate([values[name] for name in node.inputs], kind))


def _is_plain(node: Node) -> bool:
    """Whether a node has an integer form that needs no table, or none of its own."""
    if isinstance(node, ops.Binary):
        return node.function in ("min", "max")
    return isinstance(node, ops.Quantize | ops.Dequantize | ops.Relu | ops.Clip | ops.Add)
