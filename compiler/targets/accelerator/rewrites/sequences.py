"""Sequences as images, whose channels lie in blocks: layers of sequences work on images then.

A sequence [1, T, C] of vectors, or its rows [T, C], is the image [1, C, 1, T]: features are
channels, and a vector is a pixel. A dense layer of each vector is a convolution by one pixel. Where
reshapes and transpositions stand between, forms (``form.py``) say how a tensor lies in the image
that it came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import remove_dead
from vdla.compiler.graph.ir import STRICT, Array, Graph, Node, Shape, TensorType
from vdla.compiler.graph.ops.rows import QImageAsRows
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.targets.accelerator.operators.template import BY_NODE, MIN_FILL
from vdla.compiler.targets.accelerator.refusal import refusal
from vdla.compiler.targets.accelerator.rewrites.clusters import Cluster, cluster_of
from vdla.compiler.targets.accelerator.rewrites.form import (
    Form,
    Order,
    Places,
    form_of,
    nearest_order,
    shared,
)
from vdla.compiler.targets.accelerator.rewrites.layers import (
    BY_ELEMENT,
    PLACES,
    convolution,
    gives_back,
    image_axis,
    image_shape,
    joined,
    operands,
)
from vdla.compiler.targets.accelerator.rewrites.neighbours import Neighbours
from vdla.compiler.targets.accelerator.rewrites.runs import moved, picked, steps
from vdla.isa.config import Config

IMAGE = Order((0,), (1,), (2, 3))  # the axes of an image
ROWS = Order((), (1,), (0,))  # the axes of rows of features
SEQUENCE = Order((0,), (2,), (1,))  # the axes of a sequence of features
CHANNELS = 1  # the second of the places
MOST_SELECTED = 1 << 20  # weights of a convolution that moves channels
Moves = tuple[type[ops.QReshape | ops.Reshape], type[ops.QTranspose | ops.Transpose]]


def sequences_as_images(
    graph: Graph, config: Config, min_fill: float = MIN_FILL, strict: bool = False
) -> Graph:
    """Gives layers of sequences images to work on, where the accelerator takes them then.

    before: x: [1, 197, 192]; r = QReshape(x): [197, 192]; d = QDense(r): [197, 768];
            s = QReshape(d): [1, 197, 768]; y = QTable(s)
    after:  i: [1, 192, 1, 197] of x; d = QConv2d(i): [1, 768, 1, 197]; t = QTable(d); y of t

    Who reads a sequence gets it from the image by nodes that move elements; so does a layer its
    image where a sequence is all there is. Products of two activations are products of images.
    ``strict`` leaves clusters float whose integers aren't the float operators' in every result.
    """
    walk = _Sequences(replace(graph.copy(), reasons={**graph.reasons}), config, min_fill, strict)
    for node in graph.nodes:
        walk.visit(node)
    return remove_dead(replace(walk.graph, nodes=tuple(walk.nodes)))


@dataclass
class _Sequences:
    """One walk over a graph.

    Attributes:
        forms: by a tensor's name, the image that it is, and how it lies there.
        made: tensors that the graph didn't have.
        clusters: by a Quantize's name, the float operators behind it.
        rows: tensors [T, C] that were sequences [1, T, C].
    """

    graph: Graph
    config: Config
    min_fill: float
    strict: bool = False
    nodes: list[Node] = field(default_factory=list)
    forms: dict[str, tuple[str, Form]] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    around: Neighbours = field(init=False)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    rows: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.around = Neighbours(self.graph)

    def visit(self, node: Node) -> None:
        """Keeps a node, or puts one that works on images in its place."""
        if isinstance(node, ops.QTable) and self.changes_nothing(node):
            node = ops.QReshape(name=node.name, output=node.output, data=node.data)
        if isinstance(node, ops.QReshape | ops.QTranspose):
            self.follow(node)
            return
        if isinstance(node, ops.QTakeView):
            self.nodes.append(self.taken(node))
            return
        node = joined(node, self.around) or node
        done = isinstance(node, ops.Dequantize) and self.ends(node)
        done = done or (isinstance(node, ops.QTake) and self.take(node))
        if done or (isinstance(node, ops.QDense) and self.dense_of_batch(node)):
            return
        order, before = self.order(node), (len(self.nodes), len(self.made))
        moved = self.moved(node, order) if order else None
        if order and moved and self.fits(moved):
            self.nodes.append(moved)
            self.forms[node.output] = moved.output, form_of(self.shape(node.output), order)
            self.leave(node, order)
            return
        self.forget(*before)
        self.nodes.append(node)
        if len(self.shape(node.output)) == len(IMAGE.perm) and type(node) in BY_NODE:
            self.forms[node.output] = node.output, form_of(self.shape(node.output), IMAGE)

    def fits(self, node: Node) -> bool:
        """Whether the accelerator takes a node."""
        graph = replace(self.graph, nodes=tuple(self.nodes))
        return refusal(node, graph, self.config, self.min_fill) is None

    def forget(self, nodes: int, tensors: int) -> None:
        """Takes back all nodes but the first few, and all tensors that were made but a few."""
        del self.nodes[nodes:]
        for name in self.made[tensors:]:
            del self.graph.tensors[name]
            self.graph.constants.pop(name, None)
        del self.made[tensors:]

    def shape(self, name: str) -> Shape:
        """A tensor's shape."""
        return self.graph.tensors[name].shape

    def tensor(self, name: str, shape: Shape, like: str) -> str:
        """A new tensor of the type of another one."""
        self.graph.tensors[name] = replace(self.graph.tensors[like], shape=shape)
        self.made.append(name)
        return name

    def constant(self, name: str, array: Array) -> None:
        """A new constant."""
        self.graph.tensors[name] = TensorType(array.shape, str(array.dtype))
        self.graph.constants[name] = array
        self.made.append(name)

    def changes_nothing(self, node: ops.QTable) -> bool:
        """Whether a function of an image gives back each int8."""
        return gives_back(self.graph.constants.get(node.table)) and node.data in self.forms

    # What only moves elements -----------------------------------------------------------------

    def follow(self, node: ops.QReshape | ops.QTranspose) -> None:
        """Keeps a node that moves elements, and notes how its result lies in an image."""
        name, before, shape = node.output, self.shape(node.data), self.shape(node.output)
        flattened = shape[0] in (1, before[0])  # images, one of them in each row
        if len(shape) == 2 and len(before) > 2 and not flattened:
            self.rows.add(name)
        image, form = self.forms.get(node.data, ("", None))
        if isinstance(node, ops.QTranspose):
            form = form and form.transposed(node.perm)
        else:
            form = form and form.reshaped(shape)
        if form and len(shape) == len(IMAGE.perm) and form.placed(IMAGE) == form.places:
            node, image = ops.QReshapeView(name=node.name, output=name, data=image), name
        if form:
            self.forms[name] = image, form
        self.nodes.append(node)

    def taken(self, node: ops.QTakeView) -> ops.QTakeView:
        """A node that takes vectors of an image's pixels, where these are what its data are."""
        name, before = node.data, (len(self.nodes), len(self.made))
        if name not in self.forms or len(self.shape(name)) != len(ROWS.perm):
            return node
        image = self.image(name, ROWS)
        rows = f"{image}.rows"
        vectors = QImageAsRows(name=rows, output=rows, data=image)
        if rows not in self.graph.tensors and not self.add([vectors], name):
            self.forget(*before)
            return node
        return replace(node, data=rows)

    def ends(self, node: ops.Dequantize) -> bool:
        """Moves elements behind the last Dequantize, in floats; False where that isn't one."""
        image, form = self.forms.get(node.data, ("", None))
        order = form.order() if form else None
        image_itself = len(self.shape(node.output)) == len(IMAGE.perm)
        if order is None or node.axis is not None or image_itself or not self.around.late(node):
            return False
        real = self.tensor(f"{node.output}.image", self.shape(image), node.output)
        self.nodes.append(replace(node, data=image, output=real))
        self.unfold(real, node.output, real, order, (ops.Reshape, ops.Transpose))
        return True

    def take(self, node: ops.QTake) -> bool:
        """Takes elements along one axis of a tensor from its image; False where it can't."""
        image, form = self.forms.get(node.data, ("", None))
        tables, shape = node.tables(), self.shape(node.data)
        parts = [n for n, size in enumerate(shape) if tables[n] != tuple(range(size))]
        if form is None or len(parts) != 1 or OUTSIDE in node.places or image == node.data:
            return False
        (axis,) = parts
        before = len(self.nodes), len(self.made)
        if form.taken(axis, tables[axis]) is None:
            places = form.flat
            image, form = self.rearranged(image, form, places) or "", replace(form, places=places)
        taken = form.taken(axis, tables[axis]) if image else None
        if taken is None:
            return False
        place, table = taken
        output, shape = f"{node.output}.image", self.shape(image)
        made = picked(image, output, shape, PLACES[place], table, self.config.channel_block)
        small = place == CHANNELS and shape[1] * len(table) <= MOST_SELECTED
        if not self.add(made, node.output) and not small:
            self.forget(*before)
            return False
        self.forms[node.output] = output, form.resized(axis, len(tables[axis]))
        self.leave_form(node)
        return True

    def add(self, nodes: Sequence[Node], like: str) -> bool:
        """Adds nodes whose tensors are typed as another one; whether the accelerator takes them."""
        for node in nodes:
            self.tensor(node.output, node.result_shape([self.shape(node.inputs[0])]) or (), like)
            self.nodes.append(node)
        return all(map(self.fits, nodes))

    # What computes ----------------------------------------------------------------------------

    def order(self, node: Node) -> Order | None:
        """The axes of a node's result in each place of its image; None for a node that stays."""
        if isinstance(node, ops.Quantize):
            return self.order_of_cluster(node)
        known = [self.forms[name] for name in node.inputs if name in self.forms]
        if isinstance(node, ops.QDense):
            rows = node.data in self.rows or (known and known[0][1].is_rows)
            return ROWS if rows else None
        order = nearest_order(known, self.graph.tensors) if known else self.order_of_input(node)
        if order is None or order == IMAGE:
            return None
        if isinstance(node, ops.QConcat):
            return order if image_axis(order, node.axis) is not None else None
        alike = all(self.shape(n) == self.shape(node.output) for n in operands(node))
        return order if isinstance(node, BY_ELEMENT) and alike else None

    def dense_of_batch(self, node: ops.QDense) -> bool:
        """Computes a dense layer of the vectors of several images; False where data are none."""
        known, form = self.forms.get(node.data, ("", None))
        if form is None or len(form.axes) != len(ROWS.perm):
            return False
        if not (batch := shared(form.axes[0], form.places.batch)):
            return False
        before = len(self.nodes), len(self.made)
        places = Places(batch, form.axes[1], form.axes[0][len(batch) :])
        if (image := self.rearranged(known, form, places)) is None:
            return False
        form = replace(form, places=places)
        n, _, _, pixels = self.shape(image)
        shape = n, self.shape(node.output)[1], 1, pixels
        output = self.tensor(f"{node.output}.image", shape, node.output)
        made = convolution(node, self.graph, image, output)
        self.made.append(made.weight)
        if not self.fits(made):
            self.forget(*before)
            return False
        self.nodes.append(made)
        self.forms[node.output] = output, form.resized(1, shape[1])
        self.leave_form(node)
        return True

    def moved(self, node: Node, order: Order) -> Node:
        """A node that does on images what one does on tensors."""
        if isinstance(node, ops.Quantize):
            return self.integers(node, order)
        names = {name: self.image(name, order) for name in operands(node)}
        shape = image_shape(self.shape(node.output), order)
        output = self.tensor(f"{node.output}.image", shape, node.output)
        if isinstance(node, ops.QDense):
            made = convolution(node, self.graph, names[node.data], output)
            self.made.append(made.weight)
            return made
        moved = replace(node.renamed(names), output=output)
        if isinstance(moved, ops.QConcat):
            axis = image_axis(order, moved.axis)
            assert axis is not None
            return replace(moved, axis=axis)
        return moved

    def order_of_input(self, node: Node) -> Order | None:
        """The axes of a sequence [1, T, C] in its image, where that is quantized for it."""
        makers = [self.around.makers.get(name) for name in operands(node)]
        made = [maker for maker in makers if maker is not None]
        early = [isinstance(m, ops.Quantize) and self.around.early(m) for m in made]
        sequence = len(self.shape(node.output)) == len(SEQUENCE.perm)
        return SEQUENCE if sequence and early and all(early) else None

    def order_of_cluster(self, node: ops.Quantize) -> Order | None:
        """The axes of what a cluster of float operators has for a result."""
        cluster = cluster_of(node, self.around)
        if cluster is None:
            return None
        if self.strict and cluster.DIFFERS:
            for part in self.around.behind(node):
                self.graph.reasons[part.name] = f"{STRICT}: {cluster.DIFFERS}"
            return None
        self.clusters[node.name] = cluster
        known = [self.forms[s.data][1] if s.data in self.forms else None for s in cluster.sources]
        return cluster.order(known, self.around)

    def integers(self, node: ops.Quantize, order: Order) -> Node:
        """The operator on images that a cluster is."""
        cluster = self.clusters[node.name]
        places = zip(cluster.sources, cluster.orders(order), strict=True)
        images = [self.image(source.data, of_image) for source, of_image in places]
        shape = image_shape(self.shape(node.output), order)
        output = self.tensor(f"{node.output}.image", shape, node.output)
        for name, array in cluster.constants().items():
            self.constant(f"{node.name}.{name}", array)
        return cluster.node(node.name, images, output, order)

    # Ways there and back ----------------------------------------------------------------------

    def image(self, name: str, order: Order) -> str:
        """The image of a tensor whose axes have some order there."""
        shape = image_shape(self.shape(name), order)
        if name in self.forms:
            known, form = self.forms[name]
            if arranged := self.rearranged(known, form, form.placed(order)):
                return arranged
        image = f"{name}.image{''.join(map(str, order.perm))}"
        if image in self.graph.tensors:
            return image
        self.tensor(image, shape, name)
        if name in self.graph.constants:
            array = self.graph.constants[name].transpose(order.perm)
            self.graph.constants[image] = array.reshape(shape).copy()
            return image
        maker = self.around.makers.get(name)
        if isinstance(maker, ops.Quantize) and self.around.early(maker):
            real = self.tensor(f"{image}.real", shape, maker.data)
            self.fold(real, maker.data, order, (ops.Reshape, ops.Transpose))
            self.nodes.append(replace(maker, name=image, output=image, data=real))
        else:
            self.fold(image, name, order, (ops.QReshape, ops.QTranspose))
        return image

    def fold(self, image: str, data: str, order: Order, moves: Moves) -> None:
        """Makes an image of a tensor by nodes that move elements."""
        reshape, transpose = moves
        sizes = tuple(self.shape(data)[axis] for axis in order.perm)
        turned = self.tensor(f"{image}.turned", sizes, data)
        self.nodes += [
            transpose(name=turned, output=turned, data=data, perm=order.perm),
            reshape(name=image, output=image, data=turned),
        ]

    def rearranged(self, image: str, form: Form, places: Places) -> str | None:
        """A tensor's image with factors in other places; None where the accelerator makes none."""
        if viewed := self.viewed(image, form, places):
            return viewed
        swapped = Places(places.batch, places.pixels, places.channels)
        if viewed := self.viewed(image, form, swapped):
            return self.transposed(viewed)
        if copied := self.copied(image, form, places):
            return copied
        copied = self.copied(image, form, swapped)
        return self.transposed(copied) if copied else None

    def transposed(self, image: str) -> str:
        """An image with channels and pixels in each other's place."""
        n, channels, _, pixels = self.shape(image)
        name = f"{image}.transposed"
        if name not in self.graph.tensors:
            self.tensor(name, (n, pixels, 1, channels), image)
            self.nodes.append(QTransposeImage(name=name, output=name, data=image))
        return name

    def copied(self, image: str, form: Form, places: Places) -> str | None:
        """An image whose pixels are elsewhere, copied by runs; None where they can't be."""
        batch, channels, pixels = form.places
        way = steps(form, places)
        if way is None:
            other = replace(form, places=Places(batch, pixels, channels))
            if batch or steps(other, places) is None:
                return None
            return self.copied(self.transposed(image), other, places)
        lanes, before = self.config.channel_block, (len(self.nodes), len(self.made))
        viewed = self.viewed(image, form, way.first)
        if viewed is None or form.size(way.first.channels) % lanes:
            return None
        name = f"{viewed}.copy{len(self.made)}"
        if self.add(moved(viewed, name, form, way, lanes), image):
            return self.viewed(name, replace(form, places=way.second), places)
        self.forget(*before)
        return None

    def viewed(self, image: str, form: Form, places: Places) -> str | None:
        """An image with factors in other places by addresses; None where these don't do it."""
        batch, channels, pixels = map(form.size, places)
        shape = batch, channels, 1, pixels
        if self.shape(image) == shape and form.places == places:
            return image
        alike = form.places[0] + form.places[1] == places[0] + places[1]
        inner = min(channels, form.size(form.places.channels))
        whole = form.places.channels == places.channels or inner % self.config.channel_block == 0
        if not (alike and whole and form.places.pixels == places.pixels):
            return None
        name = f"{image}.by{'x'.join(map(str, shape))}"
        if name not in self.graph.tensors:
            self.tensor(name, shape, image)
            self.nodes.append(ops.QReshapeView(name=name, output=name, data=image))
        return name

    def leave(self, node: Node, order: Order) -> None:
        """Makes a node's result of its image, for who reads it."""
        image, _ = self.forms[node.output]
        self.unfold(node.name, node.output, image, order, (ops.QReshape, ops.QTranspose))

    def leave_form(self, node: Node) -> None:
        """Makes a node's result of its image, whatever part of an axis each place has."""
        image, form = self.forms[node.output]
        factors = [factor for place in form.places for factor in place]
        sizes = tuple(form.sizes[factor] for factor in factors)
        wanted = [factor for axis in form.axes for factor in axis]
        perm = tuple(factors.index(factor) for factor in wanted)
        parts = self.tensor(f"{image}.parts", sizes, image)
        turned = self.tensor(f"{image}.turned", tuple(sizes[n] for n in perm), image)
        self.nodes += [
            ops.QReshape(name=parts, output=parts, data=image),
            ops.QTranspose(name=turned, output=turned, data=parts, perm=perm),
            ops.QReshape(name=f"{node.name}.sequence", output=node.output, data=turned),
        ]

    def unfold(self, name: str, output: str, image: str, order: Order, moves: Moves) -> None:
        """Makes a tensor of an image by nodes that move elements."""
        shape, (reshape, transpose) = self.shape(output), moves
        turned = tuple(shape[axis] for axis in order.perm)
        axes = self.tensor(f"{image}.axes", turned, output)
        perm = tuple(order.perm.index(axis) for axis in range(len(shape)))
        self.nodes += [
            reshape(name=axes, output=axes, data=image),
            transpose(name=f"{name}.sequence", output=output, data=axes, perm=perm),
        ]
