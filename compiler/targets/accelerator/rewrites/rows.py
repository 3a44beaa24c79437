"""Rows of sequences as vectors, which lie one behind another: steps of recurrent networks work on
them.

A tensor [1, T, C], or [T, 1, C], has the bytes of T vectors [T, C], and in channel blocks each
vector is a range of them. So a step takes its row by addresses, and steps write their rows where
the sequence has them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from math import prod

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import is_early
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.exchange import QExchange
from vdla.compiler.graph.ops.recurrent import QGates
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.compiler.graph.types import Shape
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.layers import (
    BY_ELEMENT,
    ByElement,
    convolution,
    operands,
    operands_first,
)

SEQUENCE = 3  # dimensions of a sequence: batch, steps, features; or steps, batch, features


def sequences_as_rows(graph: Graph, accelerator: Capability) -> Graph:
    """Gives steps of sequences vectors to work on.

    before: r = QTake(x): [1, 1, 64], row 5 of x: [1, 50, 64]; v = QReshape(r): [1, 64]
    after:  x.rows = QReshape(x): [50, 64]; v = QTakeView(x.rows)
    before: y = QConcat(QReshape(a), QReshape(b)): [1, 2, 64] of vectors a and b
    after:  y.rows = QConcat(a, b): [2, 64]; y = QReshape(y.rows)

    What works by element on one row, [1, 1, 64], works on the vector; so does what works on rows
    that are all taken one by one, or were joined. Dense layers of such rows are convolutions of an
    image whose pixels they become, so that weights are loaded once for all.
    """
    walk = _Rows(_rows_first(graph), accelerator)
    return walk.editor.walk(
        walk.transposed, walk.reshaped, walk.end, walk.dense, walk.take, walk.join, walk.by_element
    )


class _Rows:
    """One walk over a graph.

    Attributes:
        rows: by the name of a sequence, the tensor that has it as vectors.
        stepwise: tensors all of whose rows are taken one by one, and what they are made of; those
            whose rows were joined, and what is made of them by element.
    """

    def __init__(self, graph: Graph, accelerator: Capability) -> None:
        self.editor, self.accelerator = Editor(graph), accelerator
        self.around, self.stepwise = Neighbours(graph), _stepwise(graph)
        self.rows: dict[str, str] = {}
        self.shape = self.editor.shape

    def reshaped(self, node: ops.QReshape) -> Made:
        """Nothing where a reshaped tensor is its vectors."""
        return self.moved(node.data, node.output)

    def transposed(self, node: ops.QTranspose) -> Made:
        """Nothing where axes of size 1 alone have moved."""
        moved = [axis for axis in node.perm if self.shape(node.data)[axis] > 1]
        return self.moved(node.data, node.output) if moved == sorted(moved) else None

    def moved(self, data: str, name: str) -> Made:
        """Nothing, with others reading the vectors, where a tensor of the same bytes is these."""
        source = self.follow(data, name)
        if source is None:
            return None
        self.editor.rename(name, source)
        return ()

    def end(self, node: ops.Dequantize) -> Made:
        """The last Dequantize, of vectors."""
        if node.output not in self.editor.outputs or node.data not in self.rows:
            return None
        return self.left(node, replace(node, data=self.rows[node.data]))

    def left(self, node: Node, moved: Node) -> tuple[Node, Node]:
        """A node on vectors, and what makes of its result that of the node whose place it takes."""
        rows = self.vectors_of(node.output)
        kind = ops.QReshape if self.editor.tensors[rows].dtype == "int8" else ops.Reshape
        back = kind(name=f"{node.name}.sequence", output=node.output, data=rows)
        return replace(moved, output=rows), back

    def follow(self, data: str, name: str) -> str | None:
        """Notes whose vectors a reshaped tensor has; these, where they are the tensor itself."""
        before, shape = self.shape(data), self.shape(name)
        if shape[-1:] != before[-1:] or min(len(shape), len(before)) < 2:
            return None
        source = data if len(before) == 2 else self.rows.get(data)
        quantized = self.editor.maker(data, ops.Quantize) is not None
        stepwise = prod(before[:-1]) == 1 or name in self.stepwise
        if source is None and quantized and stepwise and len(before) == SEQUENCE:
            source = self.of(data)
        if source is not None and len(shape) > 2:
            self.rows[name] = source
            return None
        return None if name in self.editor.outputs else source

    # What works on vectors ----------------------------------------------------------------------

    def on_vectors(self, node: Node, moved: Node | None) -> Made:
        """A node on vectors in the place of one, and what makes the sequence of its result."""
        if moved is None:
            return None
        vectors, sequence = self.left(node, moved)
        self.rows[node.output] = vectors.output
        if node.output in self.stepwise:
            self.stepwise.add(vectors.output)
        return vectors, sequence

    def by_element(self, node: ByElement) -> Made:
        """A node by element on one row, or on rows that are taken one by one or were joined."""
        if not self.stepwise.isdisjoint(node.inputs):
            self.stepwise.add(node.output)
        names, shape = operands(node), self.shape(node.output)
        stepwise = prod(shape[:-1]) == 1 or node.output in self.stepwise
        alike = all(self.shape(name) == shape for name in names)
        if len(shape) != SEQUENCE or not (stepwise and alike and self.rows.keys() & {*names}):
            return None
        moved = node.renamed({name: self.of(name) for name in names})
        fits = self.fits(moved.writing(self.vectors_of(node.output)))
        return self.on_vectors(node, moved if fits else None)

    def fits(self, node: Node) -> bool:
        """Whether the accelerator takes a node."""
        return self.accelerator.takes(node, self.editor)

    def take(self, node: ops.QTake) -> Made:
        """Some rows one behind another, or some features of one row."""
        sequence = len(node.shape) == SEQUENCE
        return self.on_vectors(node, self.taken(node)) if sequence else None

    def taken(self, node: ops.QTake) -> Node | None:
        """A node that takes vectors; None where others are taken."""
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

    def join(self, node: ops.QConcat) -> Made:
        """Rows one behind another, or features of one row."""
        shape = self.shape(node.output)
        known = all(name in self.rows for name in node.parts)
        vectors = len(shape) == 2 and node.axis == 0
        joins = len(shape) == SEQUENCE and known and prod(shape[: node.axis]) == 1
        if vectors or joins:
            self.stepwise.add(node.output)
        if not joins:
            return None
        axis = 1 if node.axis == len(shape) - 1 else 0
        moved = replace(node, parts=tuple(map(self.of, node.parts)), axis=axis)
        return self.on_vectors(node, moved)

    def dense(self, node: ops.QDense) -> Made:
        """A convolution in the place of a dense layer of many vectors that are rows of steps."""
        shape, rows = self.shape(node.output), self.shape(node.data)
        if len(rows) != 2 or rows[0] == 1 or self.stepwise.isdisjoint((node.data, node.output)):
            return None
        mark = self.editor.mark()
        image = self.editor.once(("pixels", node.data), lambda: self.pixels(node.data))
        pixels = self.editor.like(f"{node.output}.pixels", (1, shape[1], 1, shape[0]), node.output)
        layer = convolution(node, self.editor, image, pixels)
        if not self.fits(layer):
            self.editor.take_back(mark)
            return None
        return layer, QExchange(name=f"{node.name}.rows", output=node.output, data=pixels)

    # Ways there ---------------------------------------------------------------------------------

    def of(self, name: str) -> str:
        """A tensor's vectors, made if there are none yet."""
        if name in self.rows:
            return self.rows[name]
        rows, editor = self.vectors_of(name), self.editor
        maker = self.around.maker(name, ops.Quantize)
        if name in editor.constants:
            editor.define(rows, editor.constants[name].reshape(self.shape(rows)))
        elif maker is not None and maker.axis is None and is_early(maker, self.around):
            real = self.editor.like(f"{rows}.real", self.shape(rows), maker.data)
            editor.insert(
                ops.Reshape(name=real, output=real, data=maker.data),
                replace(maker, name=rows, output=rows, data=real),
            )
        else:
            editor.insert(ops.QReshape(name=rows, output=rows, data=name))
        self.rows[name] = rows
        return rows

    def pixels(self, name: str) -> str:
        """Rows as an image, whose pixels they are."""
        rows, features = self.shape(name)
        image = self.editor.like(f"{name}.pixels", (1, features, 1, rows), name)
        self.editor.insert(QExchange(name=image, output=image, data=name))
        return image

    def vectors_of(self, name: str) -> str:
        """A tensor for a tensor's vectors [N, C]."""
        shape = vectors(self.shape(name))
        return self.editor.once(
            ("rows", name), lambda: self.editor.like(f"{name}.rows", shape, name)
        )


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

    return rewrite(graph, _same_again, taken, _gates_first, _one_take, _parts_in_order)


def _same_again(node: ops.QReshape, editor: Editor) -> Made:
    """Nothing where reshapes give back a tensor that they were made of."""
    chain = [maker for maker in [editor.maker(node.data, ops.QReshape)] if maker is not None]
    while chain and editor.shape(chain[-1].data) != editor.shape(node.output):
        before = editor.maker(chain[-1].data, ops.QReshape)
        if before is None:
            return None
        chain.append(before)
    if not chain or node.output in editor.outputs:
        return None
    editor.rename(node.output, chain[-1].data)
    for maker in takewhile(lambda maker: editor.is_alone(maker.output), chain):
        editor.erase(maker)
    return ()


def _gates_first(node: QGates, editor: Editor) -> Made:
    """Takes rows of gates where rows of data are taken before: steps take theirs one by one.

    before: r = QTake(x): [50, 64], x: [50, 64] from its last row to its first; g = QGates(r)
    after:  a = QGates(x): [200, 64]; g = Take(a)
    """
    maker = editor.maker(node.data, ops.QTake)
    if maker is None or node.addend is not None:
        return None
    if (order := _order_of_rows(maker, editor)) is None:
        return None
    gates, hidden = editor.shape(node.bias)
    rows = [row * gates + gate for row in order for gate in range(gates)]
    whole = editor.like(
        f"{node.output}.all", (editor.shape(maker.data)[0] * gates, hidden), node.output
    )
    taken = ops.Take(
        name=f"{node.name}.rows", output=node.output, data=whole, shape=editor.shape(node.output),
        places=(*rows, *range(hidden)),
    )  # fmt: skip
    return replace(node, data=maker.data, output=whole), taken


def _one_take(node: ops.Take, editor: Editor) -> Made:
    """One node that takes rows of rows that are taken."""
    maker = editor.maker(node.data, ops.Take) if type(node) is ops.Take else None
    if maker is None:
        return None
    rows, before = (_order_of_rows(each, editor) for each in (node, maker))
    if rows is None or before is None:
        return None
    places = (*(before[row] for row in rows), *range(node.shape[1]))
    return (replace(node, data=maker.data, places=places),)


def _parts_in_order(node: ops.QTake, editor: Editor) -> Made:
    """Single rows that are joined in another order."""
    maker, order = editor.own_maker(node.data, ops.QConcat), _order_of_rows(node, editor)
    if maker is None or order is None or maker.axis != 0:
        return None
    if any(editor.shape(part)[0] != 1 for part in maker.parts):
        return None
    editor.erase(maker)
    requant = replace(maker.requant, scale=tuple(maker.requant.scale[n] for n in order))
    joined = replace(
        maker,
        name=node.name,
        output=node.output,
        parts=tuple(maker.parts[n] for n in order),
        zeros=tuple(maker.zeros[n] for n in order),
        requant=requant,
    )
    return (joined,)


def _order_of_rows(node: ops.Take | ops.QTake, editor: Editor) -> tuple[int, ...] | None:
    """The rows that a node takes of [N, C]; None where it takes other elements."""
    shape = editor.shape(node.data)
    if len(shape) != 2 or len(node.shape) != 2 or OUTSIDE in node.places:
        return None
    rows, features = node.tables()
    return tuple(rows) if features == tuple(range(shape[1])) else None


def _stepwise(graph: Graph) -> set[str]:
    """The tensors all of whose rows are taken one by one or meet the weights of gates, and what
    such are made of."""
    taken: dict[str, set[int]] = {}
    for node in graph.of(ops.QTake):
        if _takes_row(node, graph.tensors[node.data].shape):
            start = node.start_of_run(graph.tensors[node.data].shape) or 0
            taken.setdefault(node.data, set()).add(start // node.shape[-1])
    result = {
        name for name, rows in taken.items() if len(rows) == prod(graph.tensors[name].shape[:-1])
    }
    result |= {node.data for node in graph.of(QGates)}
    followed = (*BY_ELEMENT, ops.QReshape, ops.QTranspose, ops.QDense)
    for follower in reversed(graph.of(followed)):
        if follower.output in result:
            result.update(operands(follower))
    return result
