"""Sequences as images, whose channels lie in blocks: layers of sequences work on images then.

A sequence [1, T, C] of vectors, or its rows [T, C], is the image [1, C, 1, T]: features are
channels, and a vector is a pixel. A dense layer of each vector is a convolution by one pixel. Where
reshapes and transpositions stand between, forms (``form.py``) say how a tensor lies in the image
that it came from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import behind, is_early, is_late
from vdla.compiler.graph.clusters import Cluster, End, cluster_of
from vdla.compiler.graph.editor import Made
from vdla.compiler.graph.form import Form, Order, Places, form_of, nearest_order, shared
from vdla.compiler.graph.ir import STRICT, Graph, Node
from vdla.compiler.graph.ops.exchange import QExchange
from vdla.compiler.graph.ops.image_matmul import QMatMul
from vdla.compiler.graph.ops.recurrent import QGates
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.graph.ops.wide import QWideSum
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.operators.template import BY_NODE
from vdla.compiler.targets.accelerator.rewrites.image_ways import REAL, ImageWays
from vdla.compiler.targets.accelerator.rewrites.layers import (
    PLACES,
    ByElement,
    convolution,
    gives_back,
    image_axis,
    image_shape,
    joined,
    operands,
)
from vdla.compiler.targets.accelerator.rewrites.runs import picked

IMAGE = Order((0,), (1,), (2, 3))  # the axes of an image
ROWS = Order((), (1,), (0,))  # the axes of rows of features
SEQUENCE = Order((0,), (2,), (1,))  # the axes of a sequence of features
N = TypeVar("N", bound=Node)
CHANNELS = 1  # the second of the places
MOST_SELECTED = 1 << 20  # weights of a convolution that moves channels


def sequences_as_images(graph: Graph, accelerator: Capability) -> Graph:
    """Gives layers of sequences images to work on, where the accelerator takes them then.

    before: x: [1, 197, 192]; r = QReshape(x): [197, 192]; d = QDense(r): [197, 768];
            s = QReshape(d): [1, 197, 768]; y = QTable(s)
    after:  i: [1, 192, 1, 197] of x; d = QConv2d(i): [1, 768, 1, 197]; t = QTable(d); y of t

    Who reads a sequence gets it from the image by nodes that move elements; so does a layer its
    image where a sequence is all there is. Products of two activations are products of images.
    A strict accelerator leaves clusters float whose integers aren't the float operators' in every
    result.
    """
    walk = _Sequences(graph, accelerator)
    return walk.editor.walk(
        walk.idle, walk.reshaped, walk.transposed, walk.of_rows, walk.ends, walk.take, walk.joined,
        walk.dense_of_batch, walk.dense, walk.cluster, walk.concatenated, walk.by_element,
        walk.wide_sum, walk.stays,
    )  # fmt: skip


def _joins_rows(node: ops.QConcat, graph: Graph) -> bool:
    """Whether a node joins several vectors one behind another."""
    return node.axis == 0 and len(graph.tensors[node.output].shape) == len(ROWS.perm)


class _Sequences(ImageWays):
    """One walk over a graph.

    Attributes:
        rows: tensors [T, C] that were sequences [1, T, C].
        states: tensors [T, C] of vectors that were made one by one.
    """

    def __init__(self, graph: Graph, accelerator: Capability) -> None:
        super().__init__(graph, accelerator)
        self.rows: set[str] = set()
        self.states = {node.output for node in graph.of(ops.QConcat) if _joins_rows(node, graph)}

    def idle(self, node: ops.QTable) -> Made:
        """A reshape in the place of a function of an image that gives back each int8."""
        table = self.editor.constants.get(node.table)
        if not gives_back(table) or node.data not in self.forms:
            return None
        return self.reshaped(ops.QReshape(name=node.name, output=node.output, data=node.data))

    def joined(self, node: ops.QConcat) -> Made:
        """The parts of one tensor that are joined, as one QTake."""
        whole = joined(node, self.around)
        return whole and (self.take(whole) or self.stays(whole))

    def stays(self, node: Node) -> Node:
        """The node itself."""
        if len(self.shape(node.output)) == len(IMAGE.perm) and type(node) in BY_NODE:
            self.forms[node.output] = node.output, form_of(self.shape(node.output), IMAGE)
        return node

    # What only moves elements -----------------------------------------------------------------

    def reshaped(self, node: ops.QReshape) -> Node:
        """A reshape; notes how its result lies in an image."""
        before, shape = self.shape(node.data), self.shape(node.output)
        if len(shape) == 2 and len(before) > 2 and shape[0] not in (1, before[0]):
            self.rows.add(node.output)  # not images, one of them in each row
        if node.data in self.states:
            self.note_pixels(node.data)
        image, form = self.forms.get(node.data, ("", None))
        return self.follow(node, image, form and form.reshaped(shape))

    def note_pixels(self, name: str) -> None:
        """Notes the image whose pixels are vectors: the one that they are taken from, or a new one
        for those that were made one by one."""
        maker, shape = self.editor.maker(name, QExchange), self.shape(name)
        if maker is not None and len(shape) == len(ROWS.perm):
            self.forms[name] = maker.data, form_of(shape, ROWS)
        if name in self.forms or name not in self.states:
            return
        mark = self.editor.mark()
        image = self.editor.like(f"{name}.pixels", image_shape(shape, ROWS), name)
        exchange = QExchange(name=image, output=image, data=name)
        self.editor.insert(exchange)
        if self.fits(exchange):
            self.forms[name] = image, form_of(shape, ROWS)
        else:
            self.editor.take_back(mark)

    def transposed(self, node: ops.QTranspose) -> Node:
        """A transposition; notes how its result lies in an image."""
        image, form = self.forms.get(node.data, ("", None))
        return self.follow(node, image, form and form.transposed(node.perm))

    def follow(self, node: Node, image: str, form: Form | None) -> Node:
        """A node whose result has a form in an image; a view of that where they are the same."""
        if form is None:
            return node
        whole = len(form.axes) == len(IMAGE.perm) and form.placed(IMAGE) == form.places
        self.forms[node.output] = node.output if whole else image, form
        return self.view(node.name, node.output, image) if whole else node

    def of_rows(self, node: ops.QTakeView | QGates) -> Node:
        """A node that reads vectors of an image's pixels, where these are what its data are."""
        name, mark = node.data, self.editor.mark()
        if name not in self.forms or len(self.shape(name)) != len(ROWS.perm):
            return node
        image = self.image(name, ROWS)
        rows = self.editor.once(("rows", image), lambda: self.rows_of(image, name))
        if self.fits(QExchange(name=rows, output=rows, data=image)):
            return replace(node, data=rows)
        self.editor.take_back(mark)
        return node

    def rows_of(self, image: str, like: str) -> str:
        """Vectors of an image's pixels."""
        rows = self.editor.like(f"{image}.rows", self.shape(like), like)
        self.editor.insert(QExchange(name=rows, output=rows, data=image))
        return rows

    def ends(self, node: ops.Dequantize) -> Made:
        """Moves of elements behind the last Dequantize, in floats; None where that isn't one."""
        image, form = self.forms.get(node.data, ("", None))
        order = form.order() if form else None
        image_itself = len(self.shape(node.output)) == len(IMAGE.perm)
        if order is None or node.axis is not None or image_itself or not is_late(node, self.around):
            return None
        real = self.editor.like(f"{node.output}.image", self.shape(image), node.output)
        last = replace(node, data=image, output=real)
        return last, *self.unfolded(real, node.output, real, order, REAL)

    def take(self, node: ops.QTake) -> Made:
        """The nodes that take elements along one axis of a tensor from its image."""
        self.note_pixels(node.data)
        image, form = self.forms.get(node.data, ("", None))
        tables, shape = node.tables(), self.shape(node.data)
        parts = [n for n, size in enumerate(shape) if tables[n] != tuple(range(size))]
        if form is None or len(parts) != 1 or OUTSIDE in node.places or image == node.data:
            return None
        (axis,), mark = parts, self.editor.mark()
        if form.taken(axis, tables[axis]) is None:
            places = form.flat
            image, form = self.rearranged(image, form, places) or "", replace(form, places=places)
        taken = form.taken(axis, tables[axis]) if image else None
        if taken is None:
            return None
        place, table = taken
        shape, lanes = self.shape(image), self.lanes
        small = place == CHANNELS and shape[1] * len(table) <= MOST_SELECTED
        made = picked(image, f"{node.output}.image", shape, PLACES[place], table, lanes)
        output = self.added(made, node.output, anyway=small)
        if output is None:
            self.editor.take_back(mark)
            return None
        self.forms[node.output] = output, form.resized(axis, len(tables[axis]))
        return self.unfolded_form(node)

    # What computes ----------------------------------------------------------------------------

    def placed(self, node: Node, order: Order | None, make: Callable[[Order], Node]) -> Made:
        """The node on images that one becomes whose result has axes in places of their own, and its
        result; None where the accelerator doesn't take it."""
        mark = self.editor.mark()
        if order is None:
            return None
        moved = make(order)
        if not self.fits(moved):
            self.editor.take_back(mark)
            return None
        self.forms[node.output] = moved.output, form_of(self.shape(node.output), order)
        image = moved.output
        ways = self.unfolded(node.name, node.output, image, order, self.moves(image))
        return moved, *ways

    def nearest(self, node: Node) -> Order | None:
        """The order of a result of operands of one shape that takes the fewest exchanges; None
        where they lie as images do, or in none."""
        known = [self.forms[name] for name in node.inputs if name in self.forms]
        if known and all(self.forms.get(name, ("", None))[0] == name for name in operands(node)):
            return None  # images: where axes have one element, other orders of them fit, too
        turned = {image for image, _ in known if self.editor.knows(("transposed", image))}
        order = nearest_order(known, turned) if known else self.order_of_input(node)
        return None if order == IMAGE else order

    def on_images(self, node: N, order: Order) -> N:
        """A node that does on images what one does on tensors."""
        names = {name: self.image(name, order) for name in operands(node)}
        return node.renamed(names).writing(self.result(node, order))

    def result(self, node: Node, order: Order) -> str:
        """An image for a node's result."""
        shape = image_shape(self.shape(node.output), order)
        return self.editor.like(f"{node.output}.image", shape, node.output)

    def by_element(self, node: ByElement) -> Made:
        """A node that works element by element, on images."""
        alike = all(self.shape(name) == self.shape(node.output) for name in operands(node))
        order = self.nearest(node) if alike else None
        return self.placed(node, order, lambda order: self.on_images(node, order))

    def wide_sum(self, node: QWideSum) -> Made:
        """A sum of 16 bits on images, which lie as those of its operands do that have 16 bits."""
        names = [name for name in operands(node) if name not in self.editor.constants]
        wide = [name for name in names if self.editor.tensors[name].dtype == "int32"]
        known = [self.forms[name] for name in wide if name in self.forms]
        known = known or [self.forms[name] for name in names if name in self.forms]
        whole = all(name not in self.forms or self.forms[name][0] == name for name in names)
        if len(self.shape(node.output)) == len(IMAGE.perm) and known and whole:
            return None  # images already
        order = nearest_order(known, ()) if known else self.order_of_input(node)
        return self.placed(
            node, order, lambda order: self.on_images(self.turned(node, order), order)
        )

    def turned(self, node: QWideSum, order: Order) -> QWideSum:
        """A sum whose constant lies as images do."""
        if node.offset is None:
            return node
        array, sizes = self.editor.constants[node.offset], list(self.shape(node.offset))
        for place in order:
            if any(sizes[axis] > 1 for axis in place):  # of which an image has all, or one
                for axis in place:
                    sizes[axis] = self.shape(node.output)[axis]
        whole = np.broadcast_to(array, sizes).transpose(order.perm)
        image = whole.reshape(image_shape(tuple(sizes), order))
        return replace(node, offset=self.editor.constant(f"{node.offset}.image", image.copy()))

    def concatenated(self, node: ops.QConcat) -> Made:
        """A concatenation of images, along the axis of theirs that is outermost in its place."""
        for part in node.parts if node.axis > 0 else ():
            self.note_pixels(part)
        whole = all(self.forms.get(part, ("", None))[0] == part for part in node.parts)
        if whole and len(self.shape(node.output)) == len(IMAGE.perm) and self.fits(node):
            return None  # where axes have one element, other orders of them fit, too
        order = self.nearest(node)
        axis = image_axis(order, node.axis) if order else None
        if axis is None:
            return None

        def images(order: Order) -> Node:
            return replace(self.on_images(node, order), axis=axis)

        return self.placed(node, order, images)

    def dense(self, node: ops.QDense) -> Made:
        """A dense layer of rows as a convolution."""
        known = self.forms.get(node.data)
        rows = node.data in self.rows or (known is not None and known[1].is_rows)

        def layer(order: Order) -> Node:
            data = self.image(node.data, order)
            return convolution(node, self.editor, data, self.result(node, order))

        return self.placed(node, ROWS if rows else None, layer)

    def dense_of_batch(self, node: ops.QDense) -> Made:
        """A dense layer of the vectors of several images; None where data are none."""
        known, form = self.forms.get(node.data, ("", None))
        if form is None or len(form.axes) != len(ROWS.perm):
            return None
        if not (batch := shared(form.axes[0], form.places.batch)):
            return None
        mark = self.editor.mark()
        places = Places(batch, form.axes[1], form.axes[0][len(batch) :])
        if (image := self.rearranged(known, form, places)) is None:
            return None
        form = replace(form, places=places)
        n, _, _, pixels = self.shape(image)
        shape = n, self.shape(node.output)[1], 1, pixels
        output = self.editor.like(f"{node.output}.image", shape, node.output)
        made = convolution(node, self.editor, image, output)
        if not self.fits(made):
            self.editor.take_back(mark)
            return None
        self.forms[node.output] = output, form.resized(1, shape[1])
        return made, *self.unfolded_form(node)

    def order_of_input(self, node: Node) -> Order | None:
        """The axes of a sequence [1, T, C] in its image, where that is quantized for it; None of a
        signal [1, C, L], which becomes an image of one row."""
        made = [name for name in operands(node) if self.around.maker(name, Node)]
        makers = [self.around.maker(name, ops.Quantize) for name in made]
        early = [maker is not None and is_early(maker, self.around) for maker in makers]
        shape = self.shape(node.output)
        signal = any(
            self.shape(reader.output) == (*shape[:2], 1, shape[2])
            for reader in self.around.readers(node.output)
            if isinstance(reader, ops.QReshape) and len(shape) == len(SEQUENCE.perm)
        )
        sequence = len(shape) == len(SEQUENCE.perm) and not signal
        return SEQUENCE if sequence and early and all(early) else None

    def cluster(self, node: End) -> Made:
        """The operator on images that the float operators behind a Quantize are."""
        cluster = cluster_of(node, self.around)
        if cluster is None:
            return None
        if self.accelerator.strict and cluster.DIFFERS:
            for part in behind(node, self.around):
                self.editor.reasons[part.name] = f"{STRICT}: {cluster.DIFFERS}"
            return None
        known = [self.forms[s.data][1] if s.data in self.forms else None for s in cluster.sources]
        order = cluster.order(known, self.around)
        return self.placed(node, order, lambda order: self.integers(cluster, node, order))

    def integers(self, cluster: Cluster, node: End, order: Order) -> Node:
        """The operator on images that a cluster is."""
        places = zip(cluster.sources, cluster.orders(order), strict=True)
        images = [self.bytes(source.data, of_image) for source, of_image in places]
        output = self.result(node, order)
        arrays = {
            name: self.editor.constant(f"{node.name}.{name}", array)
            for name, array in cluster.constants().items()
        }
        made = replace(cluster.node(node.name, images, output, order), **arrays)
        odd = isinstance(made, QMatMul) and self.shape(made.a)[1] % self.lanes
        return made.renamed({image: self.with_zeros(image) for image in images}) if odd else made

    def with_zeros(self, image: str) -> str:
        """An image whose lanes without a channel are zeros, as those of one are that was turned."""
        turned = self.editor.maker(image, QTransposeImage)
        return image if turned else self.exchanged(self.exchanged(image))
