"""Volumes of one slice, as images.

A volume [N, C, 1, H, W] has the elements of an image [N, C, H, W]. What works on such volumes by
element, along channels or along pixels works on images here, and reshapes and transpositions that
only move the axis of one element are nothing. Numbers stay the same, bit by bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.take import AnyTake
from vdla.compiler.graph.types import Shape

RANK, SLICES = 5, 2  # of a volume; the axis of its slices
IMAGE = 4
Moves = ops.Reshape | ops.Transpose | ops.QReshape | ops.QTranspose


def volumes_as_images(graph: Graph) -> Graph:
    """Gives nodes on volumes of one slice images to work on.

    before: x: [1, 32, 1, 64, 64]; y = Reduce(x) axes=(1,); z = Transpose(y): [1, 1, 1, 64, 64];
            i = Reshape(z): [1, 1, 64, 64]
    after:  x.image = Reshape(x): [1, 32, 64, 64]; i = Reduce(x.image) axes=(1,)
    """
    if not any(len(kind.shape) == RANK for kind in graph.tensors.values()):
        return graph
    walk = _Volumes(Editor(graph))
    return walk.editor.walk(walk.same, walk.move)


def _is_slice(shape: Shape) -> bool:
    return len(shape) == RANK and shape[SLICES] == 1


def _squeezed(shape: Shape) -> Shape:
    return (*shape[:SLICES], *shape[SLICES + 1 :])


@dataclass
class _Volumes:
    """One walk over a graph; ``images`` are volumes' images, by the volumes' names."""

    editor: Editor
    images: dict[str, str] = field(default_factory=dict)

    def same(self, node: Moves) -> Made:
        """Nothing where a reshape or a transposition gives an image that there is; notes volumes
        of images."""
        source, shape = self.images.get(node.data, node.data), self.editor.shape(node.output)
        if isinstance(node, ops.Transpose | ops.QTranspose) and not self._keeps_order(node):
            return None
        if shape == self.editor.shape(source) and node.output not in self.editor.outputs:
            self.editor.rename(node.output, source)
            return ()
        if len(self.editor.shape(source)) == IMAGE and _without_ones(shape) == _without_ones(
            self.editor.shape(source)
        ):
            self.images[node.output] = source
        return None

    def _keeps_order(self, node: ops.Transpose | ops.QTranspose) -> bool:
        """Whether axes of one element alone change places."""
        moved = [axis for axis in node.perm if self.editor.shape(node.data)[axis] > 1]
        return moved == sorted(moved)

    def move(self, node: Node) -> Made:
        """A node of images in the place of one of volumes, and its result's volume."""
        shape = self.editor.shape(node.output)
        if not _is_slice(shape) or not self._is_movable(node):
            return None
        names = {name: self.image(name) for name in node.inputs if self._is_volume(name)}
        image = self.editor.like(f"{node.output}.image", _squeezed(shape), node.output)
        self.images[node.output] = image
        kind = ops.QReshape if self.editor.tensors[image].dtype == "int8" else ops.Reshape
        back = kind(name=f"{node.name}.volume", output=node.output, data=image)
        return _on_images(node).renamed(names).writing(image), back

    def _is_movable(self, node: Node) -> bool:
        """Whether a node is one on images, too."""
        if not all(self._is_volume(name) or self._is_the_same(name) for name in node.inputs):
            return False
        if isinstance(node, ops.Reduce):
            return node.keepdims and SLICES not in node.axes
        if isinstance(node, ops.Concat | ops.Softmax):
            return node.axis != SLICES
        if isinstance(node, ops.Quantize | ops.Dequantize):
            return node.axis is None
        return node.ELEMENTWISE or isinstance(node, AnyTake)

    def _is_volume(self, name: str) -> bool:
        """Whether a tensor is a volume of one slice, or a constant that is repeated to be one."""
        shape = self.editor.shape(name)
        known = name in self.editor.constants and len(shape) in (RANK - SLICES, RANK - 1)
        return _is_slice((*(1,) * (RANK - len(shape)), *shape) if known else shape)

    def _is_the_same(self, name: str) -> bool:
        """Whether a tensor goes with images as with volumes."""
        shape = self.editor.shape(name)
        return len(shape) < 2 or (name in self.editor.constants and len(shape) < RANK - SLICES)

    def image(self, name: str) -> str:
        """The image of a volume, which is made where there is none yet."""
        shape = self.editor.shape(name)
        shape = _squeezed((*(1,) * (RANK - len(shape)), *shape))
        if name in self.images and self.editor.shape(self.images[name]) == shape:
            return self.images[name]  # and not one whose axes of size 1 are others
        if name in self.editor.constants:
            array = self.editor.constants[name].reshape(shape)
            image = self.editor.constant(f"{name}.image", array)
        else:
            image = self.editor.like(f"{name}.image", shape, name)
            kind = ops.QReshape if self.editor.tensors[name].dtype == "int8" else ops.Reshape
            maker = self.editor.maker(name, kind)
            self.editor.insert(kind(name=image, output=image, data=maker.data if maker else name))
        self.images[name] = image
        return image


def _without_ones(shape: Shape) -> Shape:
    return tuple(size for size in shape if size > 1)


def _on_images(node: Node) -> Node:
    """A node with its axes as images have them."""
    if isinstance(node, ops.Reduce):
        return replace(node, axes=tuple(axis - (axis > SLICES) for axis in node.axes))
    if isinstance(node, ops.Concat | ops.Softmax):
        return replace(node, axis=node.axis - (node.axis > SLICES))
    if isinstance(node, AnyTake):
        tables = [table for axis, table in enumerate(node.tables()) if axis != SLICES]
        return replace(node, shape=_squeezed(node.shape), places=tuple(chain(*tables)))
    return node
