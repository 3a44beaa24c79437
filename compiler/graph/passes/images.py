"""Signals and volumes as images, from one convolution to the next.

A signal [N, C, L] is the image [N, C, 1, L]. A volume [N, C, D, H, W] is the images
[N * D, C, H, W]. The importer gives convolutions and pools images and turns each result back; here
what stands between two of them works on images too, so that the ways back and forth cancel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.types import Shape

Reshapes = ops.Reshape | ops.QReshape
SIGNAL, IMAGE, VOLUME = 3, 4, 5  # axes
SWAP = (0, 2, 1, 3, 4)  # channels and depth
CONCAT_AXES = {(SIGNAL, 1): 1, (SIGNAL, 2): 3, (VOLUME, 1): 1, (VOLUME, 3): 2, (VOLUME, 4): 3}


def as_images(graph: Graph) -> Graph:
    """Moves what works element by element, and concatenations, between images.

    before: Conv2d(x): [N, C, 1, L] → Reshape: [N, C, L] → Relu → Reshape: [N, C, 1, L] → Conv2d
    after:  Conv2d(x): [N, C, 1, L] → Relu → Conv2d
    """
    if not any(len(kind.shape) in (SIGNAL, VOLUME) for kind in graph.tensors.values()):
        return graph
    walk = _Images(Editor(graph))
    return walk.editor.walk(walk.reshape, walk.leave, walk.move)


def image_shape(shape: Shape) -> Shape:
    """The shape of a signal or of a volume as images."""
    if len(shape) == SIGNAL:
        return (*shape[:2], 1, shape[2])
    n, c, d, h, w = shape
    return n * d, c, h, w


@dataclass
class _Images:
    """One walk over a graph; ``images`` has the tensor that has a signal or a volume as images, by
    its name."""

    editor: Editor
    images: dict[str, str] = field(default_factory=dict)

    def shape(self, name: str) -> Shape:
        """A tensor's shape."""
        return self.editor.shape(name)

    def leave(self, node: ops.Transpose) -> Made:
        """Nothing; notes the images that a volume is made of."""
        maker = self.editor.maker(node.data, get_args(Reshapes)) if node.perm == SWAP else None
        images = image_shape(self.shape(node.output)) if maker else ()
        if maker and self.shape(maker.data) == images:
            self.images[node.output] = maker.data
        return None

    def move(self, node: Node) -> Made:
        """A node between images in the place of one between signals or volumes."""
        names = self.operands(node)
        return None if names is None else self.moved(node, names)

    def reshape(self, node: Reshapes) -> Made:
        """Notes a way to images or back; drops the second way to the same images."""
        before, after = self.shape(node.data), self.shape(node.output)
        source = self.source(node.data, after)
        image = self.images.get(source or "")
        if image is not None and node.output not in self.editor.outputs:
            self.editor.rename(node.output, image)
            return ()
        if source is not None:
            self.images[source] = node.output
        elif len(before) == IMAGE and _keeps_order(after) and image_shape(after) == before:
            self.images[node.output] = node.data
        elif _keeps_order(before) and node.data in self.images:
            return replace(node, data=self.images[node.data])
        return None

    def source(self, name: str, after: Shape) -> str | None:
        """The signal or volume whose images a reshape to a shape gives; None where it gives none.

        Those of a deep volume begin with a transposition.
        """
        if len(after) != IMAGE:
            return None
        before = self.shape(name)
        if _keeps_order(before) and image_shape(before) == after:
            return name
        maker = self.editor.maker(name, ops.Transpose)
        if maker is None or maker.perm != SWAP:
            return None
        return maker.data if image_shape(self.shape(maker.data)) == after else None

    # Nodes between images ---------------------------------------------------------------------

    def operands(self, node: Node) -> Mapping[str, str] | None:
        """Names of images that a node reads in its operands' place to write images; None where it
        can't.
        """
        shape = self.shape(node.output)
        if len(shape) not in (SIGNAL, VOLUME) or not _is_movable(node, len(shape)):
            return None
        if not any(name in self.images for name in node.inputs):
            return None
        names: dict[str, str] = {}
        for name in [node.data] if isinstance(node, ops.BatchNorm) else node.inputs:
            image = self.image(name, shape)
            if image is None:
                return None
            names[name] = image
        return names

    def image(self, name: str, shape: Shape) -> str | None:
        """An operand of a result of some shape as images; None where that takes more nodes."""
        own, maker = self.shape(name), self.editor.maker(name, ops.Dequantize)
        if name in self.images:
            return self.images[name] if _broadcasts(own, shape) else None
        if name in self.editor.constants:
            return self.constant(name, shape)
        if maker is None or maker.axis is not None:
            return None
        if maker.data not in self.editor.constants:
            return self.entry(name) if own == shape else None
        data = self.constant(maker.data, shape)
        if data is None or data == maker.data:
            return data and name
        return self.editor.once(("image", name, data), lambda: self.real(name, maker, data))

    def real(self, name: str, maker: ops.Dequantize, data: str) -> str:
        """The real numbers of a constant that is for images."""
        image = self.editor.like(f"{name}.image", self.shape(data), name)
        self.editor.insert(replace(maker, name=image, output=image, data=data))
        return image

    def constant(self, name: str, shape: Shape) -> str | None:
        """A constant that is spread to a shape, for images; None where those of a volume differ."""
        array, rank = self.editor.constants[name], len(shape)
        if array.ndim <= (1 if rank == SIGNAL else 2):  # rows and columns are those of images
            return name
        padded = array.reshape((1,) * (rank - array.ndim) + array.shape)
        if rank == VOLUME and padded.shape[0] * padded.shape[2] != 1:
            return None
        image = padded.reshape(image_shape(padded.shape))
        return self.editor.once(
            ("constant", name, rank), lambda: self.editor.constant(f"{name}.image", image)
        )

    def entry(self, name: str) -> str:
        """A signal or a volume as images, by nodes that get it there."""
        data, shape = name, self.shape(name)
        if len(shape) == VOLUME:
            data = self.editor.like(f"{name}.swapped", tuple(shape[axis] for axis in SWAP), name)
            self.editor.insert(ops.Transpose(name=data, output=data, data=name, perm=SWAP))
        image = self.editor.like(f"{name}.image", image_shape(shape), name)
        self.editor.insert(ops.Reshape(name=image, output=image, data=data))
        self.images[name] = image
        return image

    def moved(self, node: Node, names: Mapping[str, str]) -> Sequence[Node]:
        """A node between images, and a way back from them for who reads its result."""
        name, shape = node.output, self.shape(node.output)
        image = self.images[name] = self.editor.like(f"{name}.image", image_shape(shape), name)
        moved = node.renamed(names).writing(image)
        if isinstance(moved, ops.Concat):
            moved = replace(moved, axis=CONCAT_AXES[len(shape), moved.axis])
        dtype = self.editor.tensors[name].dtype
        if len(shape) == SIGNAL:
            return moved, _reshape(f"{node.name}.signal", name, image, dtype)
        data = self.editor.like(f"{name}.swapped", tuple(shape[axis] for axis in SWAP), name)
        split = _reshape(f"{node.name}.split", data, image, dtype)
        back = ops.Transpose(name=f"{node.name}.volume", output=name, data=data, perm=SWAP)
        return moved, split, back


def _reshape(name: str, output: str, data: str, dtype: str) -> Node:
    kind = ops.QReshape if dtype == "int8" else ops.Reshape
    return kind(name=name, output=output, data=data)


def _keeps_order(shape: Shape) -> bool:
    """Whether the elements of a signal or of a volume have the order of their images'."""
    if len(shape) == VOLUME:
        return 1 in shape[1:3]
    return len(shape) == SIGNAL


def _broadcasts(own: Shape, shape: Shape) -> bool:
    """Whether the images of a tensor of some shape broadcast to those of another shape."""
    if len(own) != len(shape):
        return False
    return len(own) == SIGNAL or own[0] * own[2] == 1 or (own[0], own[2]) == (shape[0], shape[2])


def _is_movable(node: Node, rank: int) -> bool:
    """Whether a node does the same to images, and never mixes those of a volume."""
    if isinstance(node, ops.Quantize | ops.Dequantize):
        return node.axis in (None, 1)
    if isinstance(node, ops.Concat):
        return (rank, node.axis) in CONCAT_AXES
    return node.ELEMENTWISE or isinstance(node, ops.BatchNorm)
