"""Images whose channels come last, as images whose channels come first.

TensorFlow's images are N, H, W, C. Its exporters put a transposition before each convolution and
another one behind it, and all that stands between is on N, H, W, C. Here that is turned, too, so
that the transpositions meet and go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.take import AnyTake
from vdla.compiler.graph.types import Shape

RANKS = (4, 5)  # of images and volumes
IMAGE = 4
INSIDE, AT_END = 2, 1  # what a transposition costs: one at the graph's ends stands beside no layer


def channels_first(graph: Graph) -> Graph:
    """Turns nodes between transpositions, where fewer of these are left then.

    before: Conv2d → Transpose(0, 2, 3, 1) → Relu → Concat(axis=3) → Transpose(0, 3, 1, 2) → Conv2d
    after:  Conv2d → Relu → Concat(axis=1) → Conv2d

    What is turned is all nodes that are joined by such tensors, or none of them. Numbers stay the
    same, bit by bit, but for the order in which a mean or a softmax adds up.
    """
    around = Neighbours(graph)
    regions = [region for region in _regions(graph, around) if region.gain() > 0]
    turned = {name for region in regions for name in region.names}
    if not turned:
        return graph
    left = {name for name in turned if _is_left(name, around)}
    walk = _Turns(Editor(graph), turned, left)
    return walk.editor.walk(walk.meet, walk.end, walk.move)


def front(rank: int) -> tuple[int, ...]:
    """The permutation that brings channels from the end to their place behind the batch."""
    return (0, rank - 1, *range(1, rank - 1))


def back(rank: int) -> tuple[int, ...]:
    """The permutation that brings channels to the end."""
    return (0, *range(2, rank), 1)


def _is_back(node: Node) -> bool:
    perm = node.perm if isinstance(node, ops.Transpose) else ()
    return len(perm) in RANKS and perm == back(len(perm))


def _is_front(node: Node) -> bool:
    perm = node.perm if isinstance(node, ops.Transpose) else ()
    return len(perm) in RANKS and perm == front(len(perm))


# Which nodes can be turned -----------------------------------------------------------------------


def _operands(node: Node, around: Neighbours) -> Sequence[str] | None:
    """The operands of a node that are turned with its result; None where it can't be turned.

    The others are numbers of one element, and constants, which are turned at once.
    """
    rank = len(around.shape(node.output))
    if rank not in RANKS or not _is_movable(node, around):
        return None
    names = [name for name in node.inputs if name not in around.constants]
    shapes = [around.shape(name) for name in names]
    if any(len(shape) != rank and prod(shape) != 1 for shape in shapes):
        return None
    return [name for name, shape in zip(names, shapes, strict=True) if len(shape) == rank]


def _is_movable(node: Node, around: Neighbours) -> bool:
    """Whether a node is the same with its operands' axes in another order, but for numbers of
    axes."""
    if isinstance(node, ops.Reduce):
        return node.keepdims
    kinds = ops.Quantize | ops.Dequantize | ops.Concat | AnyTake | ops.Softmax
    return node.ELEMENTWISE or isinstance(node, kinds)


def _ends_turning(node: Node, around: Neighbours) -> bool:
    """Whether a node's result is the same whether its operand is turned or not, once it names the
    other axes: what it leaves has the same order."""
    if isinstance(node, ops.Reduce) and not node.keepdims:
        left = [axis for axis in front(len(around.shape(node.data))) if axis not in node.axes]
        return left == sorted(left)
    return isinstance(node, ops.Reshape) and _is_pixel(around.shape(node.data))


def _is_pixel(shape: Shape) -> bool:
    """Whether an image of a shape has one pixel, so that its elements lie the same in any order of
    its axes."""
    return prod(shape[1:-1]) == 1


@dataclass(frozen=True)
class _Region:
    """Tensors that are turned together, or not at all."""

    names: Sequence[str]
    around: Neighbours

    def gain(self) -> int:
        """Cost of the transpositions that go, less that of those that come."""
        return sum(self.entry(name) + self.leaving(name) for name in self.names)

    def entry(self, name: str) -> int:
        """Gain at the maker of a tensor: a transposition may go, or has to come."""
        maker = self.around.maker(name, Node)
        if maker is not None and _is_back(maker):
            return 0 if _is_left(name, self.around) else INSIDE
        known = maker is not None and _operands(maker, self.around) is not None
        if known or name in self.around.constants or _is_pixel(self.around.shape(name)):
            return 0
        return -AT_END if name in self.around.inputs else -INSIDE

    def leaving(self, name: str) -> int:
        """Gain at the readers of a tensor: transpositions go, and one comes for others."""
        around = self.around
        meeting = [each for each in around.readers(name) if _meets(each, around)]
        gone = len(meeting) * (AT_END if name in around.inputs else INSIDE)
        maker = around.maker(name, ops.Transpose)
        if not _is_left(name, around) or (maker is not None and _is_back(maker)):
            return gone
        return gone - (AT_END if name in around.outputs else INSIDE)


def _is_left(name: str, around: Neighbours) -> bool:
    """Whether somebody reads a tensor whom its turned form doesn't serve."""
    return name in around.outputs or not all(
        _meets(node, around) or _ends_turning(node, around) or _operands(node, around) is not None
        for node in around.readers(name)
    )


def _meets(node: Node, around: Neighbours) -> bool:
    """Whether a node is a transposition that goes where its operand is turned."""
    return _is_front(node) and node.output not in around.outputs


def _regions(graph: Graph, around: Neighbours) -> Sequence[_Region]:
    """The regions of a graph: what transpositions make or read, and what turned nodes join."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for node in graph.nodes:
        if isinstance(node, ops.Transpose):
            for name, fits in ((node.output, _is_back), (node.data, _is_front)):
                if fits(node):
                    find(name)
            continue
        for name in _operands(node, around) or ():
            leader[find(name)] = find(node.output)
    regions: dict[str, list[str]] = {}
    for name in leader:
        regions.setdefault(find(name), []).append(name)
    return [_Region(names, around) for names in regions.values()]


# The change --------------------------------------------------------------------------------------


@dataclass
class _Turns:
    """One walk over a graph; ``turned`` are the tensors that are turned, ``left`` those of them
    that others read as they were, and ``images`` the turned forms."""

    editor: Editor
    turned: set[str]
    left: set[str]
    images: dict[str, str] = field(default_factory=dict)

    def meet(self, node: ops.Transpose) -> Made:
        """Nothing, where the operand is turned already; notes what is turned back."""
        if node.output in self.turned and _is_back(node):
            self.images[node.output] = node.data
            return None
        if node.data in self.turned and _meets(node, self.editor):
            self.editor.rename(node.output, self.image(node.data))
            return ()
        return None

    def end(self, node: ops.Reduce | ops.Reshape) -> Made:
        """A node of a turned operand whose result isn't turned."""
        if node.data not in self.turned or not _ends_turning(node, self.editor):
            return None
        image = self.image(node.data)
        if isinstance(node, ops.Reshape):
            return replace(node, data=image)
        return self.reduced(replace(node, data=image, axes=self.axes(node)))

    def move(self, node: Node) -> Made:
        """A node of turned operands, and a transposition for those who read its result as it
        was."""
        name = node.output
        operands = _operands(node, self.editor) if name in self.turned else None
        if operands is None:
            return None
        rank = len(self.editor.shape(name))
        names = {each: self.image(each) for each in operands}
        for each in node.inputs:
            if each in self.editor.constants and self.editor.constants[each].size > 1:
                names[each] = self.constant(each, rank)
        shape = tuple(self.editor.shape(name)[axis] for axis in front(rank))
        image = self.images[name] = self.editor.like(f"{name}.image", shape, name)
        made = self.along_other_axes(node).renamed(names).writing(image)
        moved = self.reduced(made) if isinstance(made, ops.Reduce) else (made,)
        if name not in self.left:
            return moved
        kind = ops.QTranspose if self.editor.tensors[name].dtype == "int8" else ops.Transpose
        return *moved, kind(name=f"{node.name}.last", output=name, data=image, perm=back(rank))

    def along_other_axes(self, node: Node) -> Node:
        """A node of any rank with the axes of its turned operands."""
        rank = len(self.editor.shape(node.output))
        order = front(rank)
        if isinstance(node, ops.Reduce):
            return replace(node, axes=self.axes(node))
        if isinstance(node, ops.Concat | ops.Softmax):
            return replace(node, axis=order.index(node.axis))
        if isinstance(node, ops.Quantize | ops.Dequantize) and node.axis is not None:
            return replace(node, axis=order.index(node.axis))
        if isinstance(node, AnyTake):
            tables = node.tables()
            places = tuple(place for axis in order for place in tables[axis])
            return replace(node, shape=tuple(node.shape[a] for a in order), places=places)
        return node

    def axes(self, node: ops.Reduce) -> tuple[int, ...]:
        """The axes of a turned operand that a node reduces."""
        order = front(len(self.editor.shape(node.data)))
        return tuple(sorted(order.index(axis) for axis in node.axes))

    def reduced(self, node: ops.Reduce) -> Sequence[Node]:
        """A reduction of a turned image; the mean of all pixels is a pool."""
        shape = self.editor.shape(node.data)
        pixels = node.axes == (2, 3) and self.editor.tensors[node.data].dtype == "float32"
        if node.function != "mean" or len(shape) != IMAGE or not pixels:
            return (node,)
        output = node.output
        if not node.keepdims:
            output = self.editor.like(f"{output}.pixel", (*shape[:2], 1, 1), output)
        pool = ops.AvgPool(
            name=node.name, output=output, data=node.data, kernel=(shape[2], shape[3])
        )
        if node.keepdims:
            return (pool,)
        return pool, ops.Reshape(name=f"{node.name}.flat", output=node.output, data=output)

    def image(self, name: str) -> str:
        """The turned form of a tensor, which is made where no node before has made it."""
        if name not in self.images:
            self.images[name] = self.entry(name)
        return self.images[name]

    def entry(self, name: str) -> str:
        """A tensor that no turned node makes, turned."""
        shape = self.editor.shape(name)
        order = front(len(shape))
        if name in self.editor.constants:
            return self.constant(name, len(shape))
        image = self.editor.like(f"{name}.first", tuple(shape[axis] for axis in order), name)
        if _is_pixel(shape):
            maker = self.editor.maker(name, ops.Reshape)
            self.editor.insert(
                ops.Reshape(name=image, output=image, data=maker.data if maker else name)
            )
        else:
            self.editor.insert(ops.Transpose(name=image, output=image, data=name, perm=order))
        return image

    def constant(self, name: str, rank: int) -> str:
        """A constant of at most so many axes, turned."""
        array = self.editor.constants[name]
        spread = array.reshape((1,) * (rank - array.ndim) + array.shape)
        turned = np.ascontiguousarray(spread.transpose(front(rank)))
        return self.editor.once(
            ("turned", name, rank), lambda: self.editor.constant(f"{name}.first", turned)
        )
