"""Rows of sequences as vectors, which lie one behind another: steps of recurrent networks work on
them.

A tensor [1, T, C], or [T, 1, C], has the bytes of T vectors [T, C], and in channel blocks each
vector is a range of them. So a step takes its row by addresses, and steps write their rows where
the sequence has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, remove_dead, rewrite
from vdla.compiler.graph.ir import Graph, Node, Shape
from vdla.compiler.graph.ops.recurrent import QGates
from vdla.compiler.graph.ops.rows import QImageAsRows, QRowsAsImage
from vdla.compiler.targets.accelerator.operators.template import MIN_FILL
from vdla.compiler.targets.accelerator.refusal import refusal
from vdla.compiler.targets.accelerator.rewrites.layers import (
    BY_ELEMENT,
    convolution,
    operands,
    operands_first,
)
from vdla.compiler.targets.accelerator.rewrites.neighbours import Neighbours
from vdla.isa.config import Config

SEQUENCE = 3  # dimensions of a sequence: batch, steps, features; or steps, batch, features


def sequences_as_rows(graph: Graph, config: Config, min_fill: float = MIN_FILL) -> Graph:
    """Gives steps of sequences vectors to work on.

    before: r = QTake(x): [1, 1, 64], row 5 of x: [1, 50, 64]; v = QReshape(r): [1, 64]
    after:  x.rows = QReshape(x): [50, 64]; v = QTakeView(x.rows)
    before: y = QConcat(QReshape(a), QReshape(b)): [1, 2, 64] of vectors a and b
    after:  y.rows = QConcat(a, b): [2, 64]; y = QReshape(y.rows)

    What works by element on one row, [1, 1, 64], works on the vector; so does what works on rows
    that are all taken one by one, or were joined. Dense layers of such rows are convolutions of an
    image whose pixels they become, so that weights are loaded once for all.
    """
    walk = _Rows(_rows_first(graph.copy()), config, min_fill)
    for node in walk.graph.nodes:
        walk.visit(node.renamed(walk.same))
    return remove_dead(replace(walk.graph, nodes=tuple(walk.nodes)))


@dataclass
class _Rows:
    """One walk over a graph.

    Attributes:
        rows: by the name of a sequence, the tensor that has it as vectors.
        same: by a vector's name, the one that it is.
        stepwise: tensors all of whose rows are taken one by one, and what they are made of; those
            whose rows were joined, and what is made of them by element.
    """

    graph: Graph
    config: Config
    min_fill: float
    nodes: list[Node] = field(default_factory=list)
    rows: dict[str, str] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.around = Neighbours(self.graph)
        self.stepwise = _stepwise(self.graph)

    def visit(self, node: Node) -> None:
        """Keeps a node, or puts one that works on vectors in its place."""
        shape = self.shape(node.output)
        moves = isinstance(node, ops.QReshape) or (
            isinstance(node, ops.QTranspose) and _keeps_order(node, self.shape(node.data))
        )
        if moves and self.follow(node, shape):
            return
        last = node.output in self.graph.outputs
        if last and isinstance(node, ops.Dequantize) and node.data in self.rows:
            self.leave(node, replace(node, data=self.rows[node.data]), ops.Reshape)
            return
        if isinstance(node, ops.QDense) and self.dense(node):
            return
        joins = isinstance(node, ops.QConcat) and node.axis == 0 and len(shape) == 2
        by_element = isinstance(node, BY_ELEMENT) and not self.stepwise.isdisjoint(node.inputs)
        if joins or by_element:
            self.stepwise.add(node.output)
        moved = self.moved(node) if len(shape) == SEQUENCE else None
        if moved is not None:
            self.leave(node, moved, ops.QReshape)
            self.rows[node.output] = self.nodes[-2].output
            if isinstance(node, ops.QConcat) or node.output in self.stepwise:
                self.stepwise |= {node.output, self.rows[node.output]}
        else:
            self.nodes.append(node)

    def leave(self, node: Node, moved: Node, kind: type[ops.QReshape] | type[ops.Reshape]) -> None:
        """Adds a node on vectors, and makes of its result that of the node whose place it takes."""
        shape = self.shape(node.output)
        rows = self.tensor(f"{node.output}.rows", vectors(shape), node.output)
        self.nodes.append(replace(moved, output=rows))
        self.nodes.append(kind(name=f"{node.name}.sequence", output=node.output, data=rows))

    def follow(self, node: Node, shape: Shape) -> bool:
        """Notes whose vectors a reshaped tensor has; whether the node isn't needed."""
        assert isinstance(node, ops.QReshape | ops.QTranspose)
        before = self.shape(node.data)
        if shape[-1:] != before[-1:] or min(len(shape), len(before)) < 2:
            return False
        source = node.data if len(before) == 2 else self.rows.get(node.data)
        quantized = isinstance(self.around.makers.get(node.data), ops.Quantize)
        stepwise = prod(before[:-1]) == 1 or node.output in self.stepwise
        if source is None and quantized and stepwise and len(before) == SEQUENCE:
            source = self.of(node.data)
        if source is None:
            return False
        if len(shape) > 2:
            self.rows[node.output] = source
            return False
        if node.output in self.graph.outputs:
            return False
        self.same[node.output] = source
        return True

    # What works on vectors ----------------------------------------------------------------------

    def moved(self, node: Node) -> Node | None:
        """A node that does on vectors what one does on tensors; None where there is none."""
        if isinstance(node, ops.QTake):
            return self.taken(node)
        if isinstance(node, ops.QConcat):
            return self.joined(node)
        stepwise = prod(self.shape(node.output)[:-1]) == 1 or node.output in self.stepwise
        if not isinstance(node, BY_ELEMENT) or not stepwise:
            return None
        names = operands(node)
        alike = all(self.shape(name) == self.shape(node.output) for name in names)
        if not alike or not any(name in self.rows for name in names):
            return None
        moved = node.renamed({name: self.of(name) for name in names})
        self.graph.tensors[f"{node.output}.rows"] = replace(
            self.graph.tensors[node.output], shape=vectors(self.shape(node.output))
        )
        moved = replace(moved, output=f"{node.output}.rows")
        return moved if refusal(moved, self.graph, self.config, self.min_fill) is None else None

    def taken(self, node: ops.QTake) -> Node | None:
        """Some rows one behind another, or some features of one row."""
        before, shape = self.shape(node.data), node.shape
        start, rows = node.start_of_run(before), prod(before[:-1])
        features = range(shape[-1])
        if rows == 1 and node.data in self.rows:
            places = (0, *node.tables()[-1])
            data = self.rows[node.data]
            return replace(node, data=data, shape=vectors(shape), places=places)
        if start is None or start % before[-1] or shape[-1] != before[-1]:
            return None
        first = start // before[-1]
        places = (*range(first, first + prod(shape[:-1])), *features)
        return ops.QTakeView(
            name=node.name,
            output=node.output,
            data=self.of(node.data),
            shape=vectors(shape),
            places=places,
            fill=node.fill,
        )

    def joined(self, node: ops.QConcat) -> Node | None:
        """Rows one behind another, or features of one row."""
        shape = self.shape(node.output)
        known = all(name in self.rows for name in node.parts)
        if not known or prod(shape[: node.axis]) > 1:
            return None
        axis = 1 if node.axis == len(shape) - 1 else 0
        return replace(node, parts=tuple(map(self.of, node.parts)), axis=axis)

    def dense(self, node: ops.QDense) -> bool:
        """Puts a convolution in the place of a dense layer of many vectors that are rows of steps;
        False where it stays."""
        shape, rows = self.shape(node.output), self.shape(node.data)
        if len(rows) != 2 or rows[0] == 1 or self.stepwise.isdisjoint((node.data, node.output)):
            return False
        image = self.tensor(f"{node.data}.pixels", (1, rows[1], 1, rows[0]), node.data)
        pixels = self.tensor(f"{node.output}.pixels", (1, shape[1], 1, shape[0]), node.output)
        layer = convolution(node, self.graph, image, pixels)
        if refusal(layer, self.graph, self.config, self.min_fill) is not None:
            return False
        if image not in {each.output for each in self.nodes}:
            self.nodes.append(QRowsAsImage(name=image, output=image, data=node.data))
        self.nodes.append(layer)
        self.nodes.append(QImageAsRows(name=f"{node.name}.rows", output=node.output, data=pixels))
        return True

    # Ways there ---------------------------------------------------------------------------------

    def of(self, name: str) -> str:
        """A tensor's vectors."""
        if name in self.rows:
            return self.rows[name]
        rows = self.tensor(f"{name}.rows", vectors(self.shape(name)), name)
        maker = self.around.makers.get(name)
        if name in self.graph.constants:
            self.graph.constants[rows] = self.graph.constants[name].reshape(self.shape(rows))
        elif isinstance(maker, ops.Quantize) and maker.axis is None and self.around.early(maker):
            real = self.tensor(f"{rows}.real", self.shape(rows), maker.data)
            self.nodes.append(ops.Reshape(name=real, output=real, data=maker.data))
            self.nodes.append(replace(maker, name=rows, output=rows, data=real))
        else:
            self.nodes.append(ops.QReshape(name=rows, output=rows, data=name))
        self.rows[name] = rows
        return rows

    def shape(self, name: str) -> Shape:
        """A tensor's shape."""
        return self.graph.tensors[name].shape

    def tensor(self, name: str, shape: Shape, like: str) -> str:
        """A new tensor of the type of another one."""
        self.graph.tensors[name] = replace(self.graph.tensors[like], shape=shape)
        return name


def _keeps_order(node: ops.QTranspose, shape: Shape) -> bool:
    """Whether a transposition moves axes of size 1 alone: it moves no byte."""
    moved = [axis for axis in node.perm if shape[axis] > 1]
    return moved == sorted(moved)


def vectors(shape: Shape) -> Shape:
    """The shape of a tensor's vectors, [N, C]."""
    return prod(shape[:-1]), shape[-1]


def _takes_row(node: ops.QTake, shape: Shape) -> bool:
    """Whether a node takes one whole row of a sequence of some shape."""
    row = len(shape) == SEQUENCE and prod(node.shape[:-1]) == 1 and node.shape[-1] == shape[-1]
    return row and node.start_of_run(shape) is not None


def _rows_first(graph: Graph) -> Graph:
    """Takes a row of operands where the one row of a result is taken.

    before: f = QTable(x): [1, 50, 64]; r = QTake(f): [1, 1, 64]    after: r = QTable(QTake(x))
    """

    def taken(node: ops.QTake, editor: Editor) -> Made:
        maker, whole = editor.own_maker(node.data, BY_ELEMENT), editor.shape(node.data)
        if maker is None or not _takes_row(node, whole):
            return None
        if any(editor.shape(name) != whole for name in operands(maker)):
            return None
        editor.erase(maker)
        return operands_first(node, maker, editor)

    return rewrite(graph, taken)


def _stepwise(graph: Graph) -> set[str]:
    """The tensors all of whose rows are taken one by one or meet the weights of gates, and what
    such are made of."""
    taken: dict[str, set[int]] = {}
    for node in graph.nodes:
        if isinstance(node, ops.QTake) and _takes_row(node, graph.tensors[node.data].shape):
            start = node.start_of_run(graph.tensors[node.data].shape) or 0
            taken.setdefault(node.data, set()).add(start // node.shape[-1])
    result = {
        name for name, rows in taken.items() if len(rows) == prod(graph.tensors[name].shape[:-1])
    }
    result |= {node.data for node in graph.nodes if isinstance(node, QGates)}
    followed = (*BY_ELEMENT, ops.QReshape, ops.QTranspose, ops.QDense)
    for node in reversed(graph.nodes):
        if node.output in result and isinstance(node, followed):
            result.update(operands(node))
    return result
