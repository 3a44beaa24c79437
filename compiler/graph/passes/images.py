"""Signals and volumes as images, from one convolution to the next.

A signal [N, C, L] is the image [N, C, 1, L]. A volume [N, C, D, H, W] is the images
[N * D, C, H, W]. The importer gives convolutions and pools images and turns each result back; here
what stands between two of them works on images too, so that the ways back and forth cancel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import remove_dead
from vdla.compiler.graph.ir import Array, Graph, Node, Shape, TensorType

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
    walk = _Images(graph, dict(graph.tensors), dict(graph.constants))
    for node in graph.nodes:
        walk.visit(node.renamed(walk.names))
    if not walk.changed:
        return graph
    tensors, constants = walk.tensors, walk.constants
    nodes = tuple(walk.nodes)
    return remove_dead(replace(graph, nodes=nodes, tensors=tensors, constants=constants))


def image_shape(shape: Shape) -> Shape:
    """The shape of a signal or of a volume as images."""
    if len(shape) == SIGNAL:
        return (*shape[:2], 1, shape[2])
    n, c, d, h, w = shape
    return n * d, c, h, w


@dataclass
class _Images:
    """One walk over a graph.

    Attributes:
        images: by the name of a signal or of a volume, the tensor that has it as images.
        names: tensors that are others by now.
        makers: tensor to the node that writes it.
    """

    graph: Graph
    tensors: dict[str, TensorType]
    constants: dict[str, Array]
    nodes: list[Node] = field(default_factory=list)
    images: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    makers: dict[str, Node] = field(default_factory=dict)
    changed: bool = False

    def shape(self, name: str) -> Shape:
        """A tensor's shape."""
        return self.tensors[name].shape

    def add(self, node: Node) -> None:
        """Keeps a node."""
        self.nodes.append(node)
        self.makers[node.output] = node

    def visit(self, node: Node) -> None:
        """Keeps a node, or the same between images."""
        if isinstance(node, ops.Reshape | ops.QReshape):
            self.reshape(node)
        elif isinstance(node, ops.Transpose) and node.perm == SWAP:
            self.add(node)
            self.leave(node.output, self.makers.get(node.data))
        elif (names := self.operands(node)) is not None:
            self.move(node, names)
        else:
            self.add(node)

    def leave(self, volume: str, maker: Node | None) -> None:
        """Notes the images that a volume is made of."""
        if not isinstance(maker, ops.Reshape | ops.QReshape):
            return
        if self.shape(maker.data) == image_shape(self.shape(volume)):
            self.images[volume] = maker.data

    def reshape(self, node: ops.Reshape | ops.QReshape) -> None:
        """Notes a way to images or back; drops the second way to the same images."""
        before, after = self.shape(node.data), self.shape(node.output)
        source = self.source(node.data, after)
        image = self.images.get(source or "")
        if image is not None and node.output not in self.graph.outputs:
            self.names[node.output] = image
            self.changed = True
            return
        if source is not None:
            self.images[source] = node.output
        elif len(before) == IMAGE and _keeps_order(after) and image_shape(after) == before:
            self.images[node.output] = node.data
        elif _keeps_order(before) and node.data in self.images:
            node = replace(node, data=self.images[node.data])
            self.changed = True
        self.add(node)

    def source(self, name: str, after: Shape) -> str | None:
        """The signal or volume whose images a reshape to a shape gives; None where it gives none.

        Those of a deep volume begin with a transposition.
        """
        if len(after) != IMAGE:
            return None
        before = self.shape(name)
        if _keeps_order(before) and image_shape(before) == after:
            return name
        maker = self.makers.get(name)
        if not isinstance(maker, ops.Transpose) or maker.perm != SWAP:
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
        own, maker = self.shape(name), self.makers.get(name)
        if name in self.images:
            return self.images[name] if _broadcasts(own, shape) else None
        if name in self.constants:
            return self.constant(name, shape)
        if not isinstance(maker, ops.Dequantize) or maker.axis is not None:
            return None
        if maker.data not in self.constants:
            return self.entry(name) if own == shape else None
        data, output = self.constant(maker.data, shape), f"{name}.image"
        if data is None or data == maker.data:
            return data and name
        if output not in self.tensors:
            self.tensors[output] = replace(self.tensors[name], shape=self.shape(data))
            self.add(replace(maker, name=f"{maker.name}.image", output=output, data=data))
        return output

    def constant(self, name: str, shape: Shape) -> str | None:
        """A constant that is spread to a shape, for images; None where those of a volume differ."""
        array, rank = self.constants[name], len(shape)
        if array.ndim <= (1 if rank == SIGNAL else 2):  # rows and columns are those of images
            return name
        padded = array.reshape((1,) * (rank - array.ndim) + array.shape)
        if rank == VOLUME and padded.shape[0] * padded.shape[2] != 1:
            return None
        image = f"{name}.image"
        self.constants[image] = padded.reshape(image_shape(padded.shape))
        self.tensors[image] = replace(self.tensors[name], shape=self.constants[image].shape)
        return image

    def entry(self, name: str) -> str:
        """A signal or a volume as images, by nodes that get it there."""
        kind, image = self.tensors[name], f"{name}.image"
        data = name
        if len(kind.shape) == VOLUME:
            data = f"{name}.swapped"
            swapped = tuple(kind.shape[axis] for axis in SWAP)
            self.tensors[data] = replace(kind, shape=swapped)
            self.add(ops.Transpose(name=data, output=data, data=name, perm=SWAP))
        self.tensors[image] = replace(kind, shape=image_shape(kind.shape))
        self.add(ops.Reshape(name=image, output=image, data=data))
        self.images[name] = image
        return image

    def move(self, node: Node, names: Mapping[str, str]) -> None:
        """Keeps a node between images, and a way back from them for who reads its result."""
        kind, image = self.tensors[node.output], f"{node.output}.image"
        shape = kind.shape
        moved = replace(node.renamed(names), output=image)
        if isinstance(moved, ops.Concat):
            moved = replace(moved, axis=CONCAT_AXES[len(shape), moved.axis])
        self.tensors[image] = replace(kind, shape=image_shape(shape))
        self.add(moved)
        data = image
        if len(shape) == VOLUME:
            data = f"{node.output}.swapped"
            swapped = tuple(shape[axis] for axis in SWAP)
            self.tensors[data] = replace(kind, shape=swapped)
            self.add(_reshape(f"{node.name}.split", data, image, kind.dtype))
            back: Node = ops.Transpose(
                name=f"{node.name}.volume", output=node.output, data=data, perm=SWAP
            )
        else:
            back = _reshape(f"{node.name}.signal", node.output, image, kind.dtype)
        self.add(back)
        self.images[node.output] = image
        self.changed = True


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
