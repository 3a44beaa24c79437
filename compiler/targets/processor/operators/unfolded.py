"""A convolution of floats as a product of matrices: the windows of the data by the weights.

Where an image has neither channels enough for blocks nor columns enough for vectors, as a signal
under a filter bank or a patch embedding has, its windows are the rows of a matrix, one for each
place of the result::

    windows [G, N * OH * OW, I * KH * KW]  by  weights [G, I * KH * KW, O / G]

The product has output channels in the lanes (``product``); the result is written in plain order
afterwards. Windows of one channel and one row lie in the data as they are, others are copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import inside
from vdla.compiler.graph.ir import Graph, Node, Recipe
from vdla.compiler.graph.ops.conv2d import Conv2d
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.targets.processor.operators.image import float_parameters
from vdla.compiler.targets.processor.operators.nests import schedule_nest
from vdla.compiler.targets.processor.operators.product import Product, float_product
from vdla.compiler.targets.processor.operators.template import Template
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

FEWEST = 8  # output channels of a group, that fill half a vector
LEAST = 1 << 12  # multiply-adds from which on it is worth it


@dataclass(frozen=True)
class Unfolded(Template[Conv2d]):
    """``windows`` is the copy of the data, where there is one."""

    NODES: ClassVar[tuple[type[Node], ...]] = (Conv2d,)

    product: Product
    windows: Tensor | None
    result: Tensor

    @classmethod
    def refusal(cls, node: Conv2d, graph: Graph, processor: Processor) -> str | None:
        """Known weights, a result in plain order, and channels that fill a vector."""
        known = node.weight in graph.constants and (node.bias or node.weight) in graph.constants
        result, weight = graph.tensors[node.output], graph.tensors[node.weight].shape
        if not known or result.block:
            return "its weights aren't known, or its channels lie in blocks"
        if weight[0] // node.groups < FEWEST:
            return "its channels fill no vector"
        if prod(result.shape) * prod(weight[1:]) < LEAST:
            return "it is too small"
        return None

    @classmethod
    def of(cls, node: Conv2d, recipe: Recipe, processor: Processor) -> Unfolded:
        """The windows, the product, and the image that it is."""
        weight, start = float_parameters(node, recipe)
        groups, (o, *window) = node.groups, weight.shape
        matrices = weight.reshape(groups, o // groups, prod(window)).swapaxes(1, 2)
        windows, moves = _windows(node, recipe)
        product = float_product(recipe, windows, np.ascontiguousarray(matrices), processor.vectors)
        bias, (_, _, oh, ow) = recipe.constant("bias", start), recipe.shape(node.output)

        def value(b: Expr, channel: Expr, y: Expr, x: Expr) -> Expr:
            group, own = te.floordiv(channel, o // groups), te.floormod(channel, o // groups)
            return bias[channel] + product.element(group, (b * oh + y) * ow + x, own)

        result = te.compute(recipe.out_shape, value, "out")
        return cls(product, windows if moves else None, result)

    @property
    def placed(self) -> tuple[Tensor, ...]:
        """The copy of the data, and the rearranged factors."""
        return (*([] if self.windows is None else [self.windows]), *self.product.placed)

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """The product as a whole, then the result."""
        lanes = self.product.vectors.lanes
        for tensor in self.placed:
            schedule_nest(s, s[tensor], lanes)
        self.product.schedule_sums(s)
        schedule_nest(s, s[result], lanes)


def _windows(node: Conv2d, recipe: Recipe) -> tuple[Tensor, bool]:
    """[G, N * OH * OW, I * KH * KW], and whether they are worth a copy."""
    n, c, h, w = recipe.shape(node.data)
    _, i, kh, kw = recipe.shape(node.weight)
    _, _, oh, ow = recipe.shape(node.output)
    (sh, sw), (dh, dw), (top, left, _, _) = node.strides, node.dilations, node.pads
    image = recipe.image(node.data)

    def element(group: Expr, place: Expr, step: Expr) -> Expr:
        b, rest = te.floordiv(place, oh * ow), te.floormod(place, oh * ow)
        channel, tap = te.floordiv(step, kh * kw), te.floormod(step, kh * kw)
        row = te.floordiv(rest, ow) * sh + te.floordiv(tap, kw) * dh - top
        column = te.floormod(rest, ow) * sw + te.floormod(tap, kw) * dw - left
        seen = image(b, group * i + channel, row, column)
        if not any(node.pads):
            return seen
        within = te.all(inside(row, h), inside(column, w))
        return te.select(within, seen, te.const(0.0, "float32"))

    shape = (c // i, n * oh * ow, i * kh * kw)
    return te.compute(shape, element, "windows"), i * kh > 1 or any(node.pads)
