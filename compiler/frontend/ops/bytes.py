"""Products of bytes with zero points, as dynamic quantization has them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.ops.windows import convolution_window
from vdla.compiler.graph import ops
from vdla.compiler.graph.window import Window


@converts("MatMulInteger")
def _matmul_integer(view: OnnxNode) -> None:
    """By a matrix of constant weights as bytes, else in int32."""
    make, known = Maker(view), view.draft.constants
    shapes = [view.shape(0), view.shape(1)]
    if min(map(len, shapes)) < 2:
        raise view.unsupported("matrices", shapes)
    sizes = [prod(view.shape(i)) if view.optional(i) else 1 for i in (2, 3)]
    constant = view.operand(1) in known and (view.optional(3) is None or view.operand(3) in known)
    if constant and len(shapes[1]) == 2 and sizes[0] == 1 and sizes[1] in (1, shapes[1][1]):
        zeros = [_zero_point(view, make, index) for index in (2, 3)]
        make.result(byte_product(make, (view.operand(0), zeros[0]), (view.operand(1), zeros[1])))
    else:
        make.result(make.matmul(_centered(view, make, 0), _centered(view, make, 1)))


def _centered(view: OnnxNode, make: Maker, index: int) -> str:
    """A factor in int32, less its zero points: one, one for each row or column, or as many as it
    has axes."""
    data = make.cast(view.operand(index), "int32")
    if view.optional(index + 2) is None:
        return data
    zero, shape = make.cast(view.operand(index + 2), "int32"), view.shape(index + 2)
    if index == 0 and len(shape) == 1 and shape != (1,):
        zero = make.reshape(zero, (*shape, 1))
    return make.binary("sub", data, zero)


def byte_product(make: Maker, data: tuple[str, str], weight: tuple[str, str]) -> str:
    """A product of two matrices of bytes, each with its zero points; the second is constant."""
    node = ops.MatMulInteger(
        **make.names(), a=data[0], b=weight[0], a_zero=data[1], b_zero=weight[1]
    )
    return make.add(node, "int32")


def _zero_point(view: OnnxNode, make: Maker, index: int) -> str:
    """A zero point as a vector; a single 0 where the node has none."""
    name = view.optional(index)
    if name is None:
        return make.constant([0], view.dtype(index - 2))
    size = prod(view.shape(index))
    if name in view.draft.constants:
        return make.constant(view.draft.constants[name].reshape(size), view.dtype(index))
    return make.reshape(name, (size,))


@converts("ConvInteger")
def _conv_integer(view: OnnxNode) -> None:
    """Multiplies constant weights by a matrix whose rows are the elements that each window sees.

    Weights that aren't constants, and groups of channels, are multiplied in int32.
    """
    window, groups, make = convolution_window(view), view.integer("group", 1), Maker(view)
    channels, weight = view.shape(0)[1], view.shape(1)
    if channels != weight[1] * groups:
        raise view.error(f"{weight[1] * groups} input channels", channels)
    if weight[0] % groups:
        raise view.error(f"output channels divisible by {groups} groups", weight[0])
    zeros = _zero_point(view, make, 2), _zero_point(view, make, 3)
    sizes = [prod(make.shape(zero)) for zero in zeros]
    if sizes[0] != 1 or sizes[1] not in (1, weight[0]):
        raise view.error(f"one zero point of the data, 1 or {weight[0]} of the weights", sizes)
    places = window.places(view.shape(0)[2:])
    if min(places) < 1:
        expected = f"a padded image no smaller than its window, {list(window.extents)}"
        raise view.error(expected, list(window.padded(view.shape(0)[2:])))
    seen = _windows(view, make, zeros[0], window)
    known = view.draft.constants
    if groups == 1 and view.operand(1) in known and zeros[1] in known:
        total = _by_constants(view, make, seen, zeros)
    else:
        total = _by_groups(view, make, seen, zeros)
    whole = make.reshape(total, (view.shape(0)[0], *places, weight[0]))
    make.result(make.transpose(whole, (0, window.rank + 1, *range(1, window.rank + 1))))


def _by_constants(view: OnnxNode, make: Maker, seen: str, zeros: Sequence[str]) -> str:
    """[N, places, O]: all taps of all channels times constant weights."""
    batch, places, taps, channels = make.shape(seen)
    weight = view.draft.constants[view.operand(1)]
    matrix = weight.reshape(len(weight), channels, taps).transpose(2, 1, 0).reshape(-1, len(weight))
    rows = make.reshape(seen, (batch, places, taps * channels))
    return byte_product(make, (rows, zeros[0]), (make.constant(matrix, view.dtype(1)), zeros[1]))


def _by_groups(view: OnnxNode, make: Maker, seen: str, zeros: Sequence[str]) -> str:
    """[N, places, O]: of each group, in int32."""
    (batch, places, taps, channels), groups = make.shape(seen), view.integer("group", 1)
    outputs, inner = view.shape(1)[0], channels // groups
    data = make.binary("sub", make.cast(seen, "int32"), make.cast(zeros[0], "int32"))
    parts = make.reshape(data, (batch, places, taps, groups, inner))
    left = make.reshape(
        make.transpose(parts, (0, 3, 1, 2, 4)), (batch, groups, places, taps * inner)
    )
    kernel = make.reshape(make.cast(view.operand(1), "int32"), (outputs, inner, taps))
    zero = make.reshape(make.cast(zeros[1], "int32"), (prod(make.shape(zeros[1])), 1, 1))
    kernel = make.binary("sub", kernel, zero)
    kernel = make.reshape(kernel, (groups, outputs // groups, inner, taps))
    right = make.reshape(
        make.transpose(kernel, (0, 3, 2, 1)), (1, groups, taps * inner, outputs // groups)
    )
    return make.transpose(make.matmul(left, right), (0, 2, 1, 3))


def _windows(view: OnnxNode, make: Maker, zero: str, window: Window) -> str:
    """[N, places, taps, C]: what each window sees, the zero point where it sees padding."""
    (batch, channels, *image), rank = view.shape(0), window.rank
    data = make.transpose(view.operand(0), (0, *range(2, rank + 2), 1))
    places = window.places(image)
    if any(window.pads):
        edges = [(window.pads[n], window.pads[n + rank]) for n in range(rank)]
        data = _padded(make, data, zero, edges)
    tables: list[Sequence[int]] = [range(batch)]
    for n in range(rank):
        steps, taps = range(places[n]), range(window.kernel[n])
        stride, dilation = window.strides[n], window.dilations[n]
        tables.append([p * stride + t * dilation for p, t in product(steps, taps)])
    seen = make.take(data, [*tables, range(channels)])
    split = [size for n in range(rank) for size in (places[n], window.kernel[n])]
    seen = make.reshape(seen, (batch, *split, channels))
    order = (0, *range(1, 2 * rank, 2), *range(2, 2 * rank + 1, 2), 2 * rank + 1)
    shape = (batch, prod(places), prod(window.kernel), channels)
    return make.reshape(make.transpose(seen, order), shape)


def _padded(make: Maker, data: str, zero: str, edges: Sequence[tuple[int, int]]) -> str:
    """[N, …, C] with a zero point, which only running may tell, around each image."""
    value = make.value(zero)
    pads = [(0, 0), *edges, (0, 0)]
    if value is not None:
        return make.padded(data, pads, float(value[0]))
    inside = np.ones((1, *make.shape(data)[1:-1], 1), bool)
    image = make.constant(np.pad(inside, pads), "bool")
    return make.where(image, make.padded(data, pads, 0.0), zero)
