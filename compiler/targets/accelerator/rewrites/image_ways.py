"""Ways between sequences and the images that they are, and between images.

A form (``form.py``) says how a tensor lies in the image that it came from. Where another layout is
wanted, it is a view by addresses, an exchange of channels and pixels, or a copy by runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import is_early
from vdla.compiler.graph.clusters import End
from vdla.compiler.graph.editor import Editor
from vdla.compiler.graph.form import Form, Order, Places
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.graph.ops.wide import QBytes, Quantize16
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.layers import image_shape
from vdla.compiler.targets.accelerator.rewrites.runs import moved, steps

Moves = tuple[type[ops.QReshape | ops.Reshape], type[ops.QTranspose | ops.Transpose]]
REAL: Moves = ops.Reshape, ops.Transpose


class ImageWays:
    """The images of a graph's tensors, in one walk over it.

    Attributes:
        around: the graph as it was.
        forms: by a tensor's name, the image that it is, and how it lies there.
    """

    def __init__(self, graph: Graph, accelerator: Capability) -> None:
        self.editor = Editor(graph)
        self.around = Neighbours(replace(graph, reasons=self.editor.reasons))
        self.accelerator, self.lanes = accelerator, accelerator.block
        self.forms: dict[str, tuple[str, Form]] = {}
        self.shape = self.editor.shape

    def fits(self, node: Node) -> bool:
        """Whether the accelerator takes a node."""
        return self.accelerator.takes(node, self.editor)

    def added(self, nodes: Sequence[Node], like: str, anyway: bool = False) -> str | None:
        """The result of nodes that are added, whose tensors are typed as another one; None where
        the accelerator doesn't take all of them, unless it is to have them ``anyway``."""
        names: dict[str, str] = {}
        fit = True
        for each in nodes:
            node = each.renamed(names)
            shape = node.result_shape([self.shape(node.inputs[0])]) or ()
            name = names[each.output] = self.editor.like(each.output, shape, like)
            self.editor.insert(made := replace(node, name=name, output=name))
            fit &= self.fits(made)
        return name if fit or anyway else None

    def image(self, name: str, order: Order) -> str:
        """The image of a tensor whose axes have some order there."""
        if name in self.forms:
            known, form = self.forms[name]
            if arranged := self.rearranged(known, form, form.placed(order)):
                return arranged
        return self.editor.once(("image", name, order), lambda: self.folded(name, order))

    def folded(self, name: str, order: Order) -> str:
        """An image that is made of a tensor."""
        shape = image_shape(self.shape(name), order)
        image = self.editor.like(f"{name}.image", shape, name)
        if name in self.editor.constants:
            array = self.editor.constants[name].transpose(order.perm)
            self.editor.define(image, array.reshape(shape).copy())
            return image
        maker = self.around.maker(name, (ops.Quantize, Quantize16))
        if isinstance(maker, End) and is_early(maker, self.around):
            real = self.editor.like(f"{image}.real", shape, maker.data)
            self.fold(real, maker.data, order, REAL)
            self.editor.insert(replace(maker, name=image, output=image, data=real))
        else:
            self.fold(image, name, order, self.moves(name))
        return image

    def fold(self, image: str, data: str, order: Order, moves: Moves) -> None:
        """Makes an image of a tensor by nodes that move elements."""
        reshape, transpose = moves
        sizes = tuple(self.shape(data)[axis] for axis in order.perm)
        turned = self.editor.like(f"{image}.turned", sizes, data)
        self.editor.insert(
            transpose(name=turned, output=turned, data=data, perm=order.perm),
            reshape(name=image, output=image, data=turned),
        )

    def moves(self, name: str) -> Moves:
        """The kinds of nodes that move a tensor's integers."""
        narrow = self.editor.tensors[name].dtype == "int8"
        return (ops.QReshape, ops.QTranspose) if narrow else REAL

    def bytes(self, name: str, order: Order) -> str:
        """The image of a tensor; of one of 16 bits those of its bytes, which are turned if it
        is."""
        if not self.is_wide(name):
            return self.image(name, order)
        known = self.forms.get(name)
        turned = known is not None and known[1].placed(order) != known[1].places
        own = Order(order.batch, order.pixels, order.channels) if turned else order
        split = self.split(self.image(name, own))
        return self.exchanged(split) if turned else split

    def is_wide(self, name: str) -> bool:
        """Whether a tensor has 16 bits."""
        return self.editor.tensors[name].dtype == "int32"

    def split(self, image: str) -> str:
        """The images of both bytes of one."""

        def make() -> str:
            first, *rest = self.shape(image)
            kind = replace(self.editor.tensors[image], shape=(2 * first, *rest), dtype="int8")
            name = self.editor.tensor(f"{image}.bytes", replace(kind, quant=None))
            self.editor.insert(QBytes(name=name, output=name, data=image))
            return name

        return self.editor.once(("bytes", image), make)

    def rearranged(self, image: str, form: Form, places: Places) -> str | None:
        """A tensor's image with factors in other places; None where the accelerator makes none."""
        if viewed := self.viewed(image, form, places):
            return viewed
        if self.is_wide(image):
            return None  # bytes alone are turned, and copied
        swapped = Places(places.batch, places.pixels, places.channels)
        if viewed := self.viewed(image, form, swapped):
            return self.exchanged(viewed)
        if copied := self.copied(image, form, places):
            return copied
        copied = self.copied(image, form, swapped)
        return self.exchanged(copied) if copied else None

    def exchanged(self, image: str) -> str:
        """An image with channels and pixels in each other's place."""

        def make() -> str:
            n, channels, _, pixels = self.shape(image)
            name = self.editor.like(f"{image}.transposed", (n, pixels, 1, channels), image)
            self.editor.insert(QTransposeImage(name=name, output=name, data=image))
            return name

        return self.editor.once(("transposed", image), make)

    def copied(self, image: str, form: Form, places: Places) -> str | None:
        """An image whose pixels are elsewhere, copied by runs; None where they can't be."""
        batch, channels, pixels = form.places
        way = steps(form, places)
        if way is None:
            other = replace(form, places=Places(batch, pixels, channels))
            if batch or steps(other, places) is None:
                return None
            return self.copied(self.exchanged(image), other, places)
        lanes, mark = self.lanes, self.editor.mark()
        viewed = self.viewed(image, form, way.first)
        if viewed is None or form.size(way.first.channels) % lanes:
            return None
        name = self.added(moved(viewed, f"{viewed}.copy", form, way, lanes), image)
        if name is None:
            self.editor.take_back(mark)
            return None
        return self.viewed(name, replace(form, places=way.second), places)

    def viewed(self, image: str, form: Form, places: Places) -> str | None:
        """An image with factors in other places by addresses; None where these don't do it."""
        batch, channels, pixels = map(form.size, places)
        shape = batch, channels, 1, pixels
        if self.shape(image) == shape and form.places == places:
            return image
        alike = form.places[0] + form.places[1] == places[0] + places[1]
        inner = min(channels, form.size(form.places.channels))
        whole = form.places.channels == places.channels or inner % self.lanes == 0
        if not (alike and whole and form.places.pixels == places.pixels):
            return None

        def make() -> str:
            name = self.editor.like(f"{image}.view", shape, image)
            self.editor.insert(self.view(name, name, image))
            return name

        return self.editor.once(("view", image, shape), make)

    def view(self, name: str, output: str, image: str) -> ops.QView:
        """The bytes of an image as another one."""
        shape = self.shape(output)
        return ops.QView(name=name, output=output, data=image, shape=shape, lanes=self.lanes)

    def unfolded_form(self, node: Node) -> list[Node]:
        """The nodes that make a node's result of its image, whatever part of an axis each place
        has."""
        image, form = self.forms[node.output]
        factors = [factor for place in form.places for factor in place]
        sizes = tuple(form.sizes[factor] for factor in factors)
        wanted = [factor for axis in form.axes for factor in axis]
        perm = tuple(factors.index(factor) for factor in wanted)
        parts = self.editor.like(f"{image}.parts", sizes, image)
        turned = self.editor.like(f"{image}.turned", tuple(sizes[n] for n in perm), image)
        reshape, transpose = self.moves(image)
        return [
            reshape(name=parts, output=parts, data=image),
            transpose(name=turned, output=turned, data=parts, perm=perm),
            reshape(name=f"{node.name}.sequence", output=node.output, data=turned),
        ]

    def unfolded(
        self, name: str, output: str, image: str, order: Order, moves: Moves
    ) -> list[Node]:
        """The nodes that make a tensor of an image by moving elements."""
        shape, (reshape, transpose) = self.shape(output), moves
        turned = tuple(shape[axis] for axis in order.perm)
        axes = self.editor.like(f"{image}.axes", turned, output)
        perm = tuple(order.perm.index(axis) for axis in range(len(shape)))
        return [
            reshape(name=axes, output=axes, data=image),
            transpose(name=f"{name}.sequence", output=output, data=axes, perm=perm),
        ]
