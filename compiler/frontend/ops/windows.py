"""Operators whose windows slide over an image: convolution, pooling, the mean of all of it.

Images have two dimensions. A signal is an image of one row, a volume one image after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.ops import volumes
from vdla.compiler.frontend.ops.transposed import emit_phases
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.compiler.graph.types import Pair
from vdla.compiler.graph.window import Window
from vdla.support.numbers import ceil_div

RANKS = {3: "[N, C, W]", 4: "[N, C, H, W]", 5: "[N, C, D, H, W]"}


def _last(window: Window, count: int) -> Window:
    """A window over the last dimensions alone, two at least: a signal is one row."""
    first, fill = window.rank - count, max(2 - count, 0)
    low, high = window.pads[first : window.rank], window.pads[window.rank + first :]
    return Window(
        kernel=(1,) * fill + window.kernel[first:],
        strides=(1,) * fill + window.strides[first:],
        dilations=(1,) * fill + window.dilations[first:],
        pads=((0,) * fill + low + (0,) * fill + high),
    )


def _first(window: Window) -> Window:
    """A window over the first one of three dimensions alone, along the rows of an image."""
    low, high = window.pads[0], window.pads[window.rank]
    return Window(
        kernel=(window.kernel[0], 1),
        strides=(window.strides[0], 1),
        dilations=(window.dilations[0], 1),
        pads=(low, 0, high, 0),
    )


def _several(view: OnnxNode, name: str, rank: int) -> tuple[int, ...]:
    values = view.integers(name, (1,) * rank)
    if len(values) != rank or min(values) < 1:
        numbers = {1: "one", 2: "two", 3: "three"}
        raise view.error(f"{numbers[rank]} positive {name}", list(values))
    return values


def _sliding(view: OnnxNode, kernel: tuple[int, ...]) -> Window:
    rank = len(kernel)
    strides, dilations = _several(view, "strides", rank), _several(view, "dilations", rank)
    window = Window(kernel, strides, (0,) * (2 * rank), dilations)
    return replace(window, pads=_pads(view, window))


def _pads(view: OnnxNode, window: Window) -> tuple[int, ...]:
    mode, rank = view.text("auto_pad", "NOTSET"), window.rank
    if mode == "VALID":
        return window.pads
    if mode == "NOTSET":
        pads = view.integers("pads", window.pads)
        if len(pads) != 2 * rank or min(pads) < 0:
            numbers = {1: "two", 2: "four", 3: "six"}
            raise view.error(f"{numbers[rank]} pads ≥ 0", list(pads))
        return pads
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise view.error("auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER", mode)
    low, high = [], []
    for size, extent, stride in zip(view.shape(0)[2:], window.extents, window.strides, strict=True):
        total = max((ceil_div(size, stride) - 1) * stride + extent - size, 0)
        half = total // 2
        low.append(half if mode == "SAME_UPPER" else total - half)
        high.append(total - low[-1])
    return (*low, *high)


def _dimensions(view: OnnxNode) -> int:
    """Number of dimensions behind the channels."""
    shape = view.shape(0)
    if len(shape) not in RANKS:
        raise view.unsupported(f"data of shape {' or '.join(RANKS.values())}", list(shape))
    return len(shape) - 2


# Convolutions ------------------------------------------------------------------------------------


def convolution_window(view: OnnxNode) -> Window:
    """The window of a convolution, whose weights are its second operand.

    Raises:
        ModelError: the weights or the attributes don't fit the data.
    """
    rank, weight = _dimensions(view), view.shape(1)
    if len(weight) != rank + 2:
        shapes = {1: "[O, I, K]", 2: "[O, I, KH, KW]", 3: "[O, I, KD, KH, KW]"}
        raise view.error(f"a weight of shape {shapes[rank]}", list(weight))
    kernel = view.integers("kernel_shape", weight[2:])
    if kernel != weight[2:]:
        raise view.error(f"kernel_shape {list(weight[2:])} as in the weight", list(kernel))
    return _sliding(view, kernel)


def by_pixel(make: Maker, data: str, weight: str, bias: str) -> str:
    """A convolution of an image by windows of one pixel."""
    node = ops.Conv2d(
        **make.names(), data=data, weight=weight, bias=bias,
        strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), groups=1,
    )  # fmt: skip
    return make.add(node, make.kind(data).dtype)


@converts("Conv")
def _conv(view: OnnxNode) -> None:
    window, groups = convolution_window(view), view.integer("group", 1)
    if window.rank == 2 and view.dtype(0) == "float32":
        node = ops.Conv2d(
            name=view.name,
            output=view.output,
            data=view.operand(0),
            weight=view.operand(1),
            bias=view.optional(2),
            groups=groups,
            **window.steps,
        )
        view.draft.emit(node, "float32")
        return
    make = Maker(view)
    data, weights = (make.cast(view.operand(i), "float32") for i in (0, 1))
    _finish_conv(view, make, data, weights, window)


def _finish_conv(view: OnnxNode, make: Maker, data: str, weight: str, window: Window) -> None:
    """Convolves, adds the node's bias, and gives the sums the data's type."""
    if view.dtype(0) not in ("float32", "float16"):
        raise view.unsupported("float32 or float16 data", view.dtype(0))
    bias = view.optional(2)
    bias = None if bias is None else make.cast(bias, "float32")
    result = _convolved(make, (data, weight, bias), window, view.integer("group", 1))
    make.result(make.cast(result, view.dtype(0)))


def _convolved(
    make: Maker, operands: tuple[str, str, str | None], window: Window, groups: int
) -> str:
    """``bias[o] + Σ data * weight`` over a signal, an image or a volume: of it, image by image."""
    data, weight, bias = operands
    shape, kernel = make.shape(data), make.shape(weight)
    if window.rank < 3:
        if window.rank == 1:
            data = make.reshape(data, (*shape[:2], 1, shape[2]))
            row = make.parameter(weight, lambda array: array[:, :, np.newaxis])
            weight = row or make.reshape(weight, (*kernel[:2], 1, kernel[2]))
        flat = _last(window, window.rank)
        node = ops.Conv2d(
            **make.names(), data=data, weight=weight, bias=bias, groups=groups, **flat.steps
        )
        result = make.add(node, "float32")
        return result if window.rank == 2 else _without_row(make, result)
    if (images := volumes.convolution(make, data, weight, window, groups)) is not None:
        result = _convolved(make, (images[0], images[1], bias), images[2], groups)
        return volumes.volume(make, result, shape[0])
    count = window.places(shape[2:])[0]
    total = ""
    for tap in range(kernel[2]):
        start = tap * window.dilations[0] - window.pads[0]
        places = [start + n * window.strides[0] for n in range(count)]
        inside = [p if 0 <= p < shape[2] else OUTSIDE for p in places]
        seen = volumes.images(make, make.along(data, 2, inside))
        part = make.reshape(make.along(weight, 2, [tap]), (*kernel[:2], *kernel[3:]))
        result = _convolved(make, (seen, part, bias), _last(window, 2), groups)
        total, bias = make.binary("add", total, result) if total else result, None
    return volumes.volume(make, total, shape[0])


def _without_row(make: Maker, data: str) -> str:
    n, c, _, w = make.shape(data)
    return make.reshape(data, (n, c, w))


@converts("ConvTranspose")
def _conv_transpose(view: OnnxNode) -> None:
    """Convolutions by parts of the filter; where that can't be, one of the data with zeros between
    them, by the filter turned around."""
    rank, shape, weight = _dimensions(view), view.shape(0), view.shape(1)
    groups, make = view.integer("group", 1), Maker(view)
    if len(weight) != rank + 2 or weight[0] != shape[1] or shape[1] % groups:
        raise view.error(f"a weight of shape [{shape[1]}, O, …]", list(weight))
    kernel = weight[2:]
    strides, dilations = _several(view, "strides", rank), _several(view, "dilations", rank)
    window = Window(kernel, strides, (0,) * (2 * rank), dilations)
    cuts = _cut(view, window)
    plain = rank < 3 and set(dilations) == {1} and view.dtype(0) == "float32"
    if plain and emit_phases(view, groups, cuts):
        return
    tables: list[Sequence[int]] = [range(shape[0]), range(shape[1])]
    for axis, (low, high) in enumerate(cuts):
        stride, size = window.strides[axis], shape[2 + axis]
        reach = window.dilations[axis] * (kernel[axis] - 1)
        span = range(low - reach, (size - 1) * stride + 1 + reach - high)
        result = [i // stride if i % stride == 0 else OUTSIDE for i in span]
        tables.append([i if 0 <= i < size else OUTSIDE for i in result])
    data = make.take(make.cast(view.operand(0), "float32"), tables)
    weights = make.cast(view.operand(1), "float32")
    parts = make.reshape(weights, (groups, weight[0] // groups, *weight[1:]))
    swapped = make.transpose(parts, (0, 2, 1, *range(3, rank + 3)))
    whole = make.reshape(swapped, (groups * weight[1], weight[0] // groups, *kernel))
    turned = make.take(
        whole, [range(n) for n in make.shape(whole)[:2]] + [range(k)[::-1] for k in kernel]
    )
    still = replace(window, strides=(1,) * rank)
    _finish_conv(view, make, data, turned, still)


def _cut(view: OnnxNode, window: Window) -> list[Pair]:
    """Elements of the full result that are cut off, in front and behind along each dimension."""
    rank, shape = window.rank, view.shape(0)[2:]
    extra = view.integers("output_padding", (0,) * rank)
    mode, wanted = view.text("auto_pad", "NOTSET"), view.integers("output_shape", ())
    if mode in ("SAME_UPPER", "SAME_LOWER") and not wanted:
        wanted = tuple(n * s for n, s in zip(shape, window.strides, strict=True))
    if not wanted:
        pads = _pads(view, window)
        return [(pads[n], pads[n + rank] - extra[n]) for n in range(rank)]
    result = []
    for n, size in enumerate(wanted[-rank:]):
        full = (shape[n] - 1) * window.strides[n] + window.extents[n]
        total = max(full + extra[n] - size, 0)  # what the sum lacks is behind it
        low = total // 2 if mode == "SAME_UPPER" else total - total // 2
        result.append((low, full - low - size))
    return result


# Pools -------------------------------------------------------------------------------------------


def _pool_window(view: OnnxNode) -> Window:
    rank, kernel = _dimensions(view), view.integers("kernel_shape", ())
    if len(kernel) != rank:
        numbers = {1: "one", 2: "two", 3: "three"}
        raise view.unsupported(f"a kernel_shape of {numbers[rank]}", list(kernel))
    window = _sliding(view, kernel)
    return _ceiled(view, window) if view.integer("ceil_mode", 0) else window


def _ceiled(view: OnnxNode, window: Window) -> Window:
    """The pads with which rounding down takes the places that ``ceil_mode`` rounds up to."""
    pads, rank, image = list(window.pads), window.rank, view.shape(0)[2:]
    floors, extents = window.places(image), window.extents
    for i, size in enumerate(image):
        stride, floor, reach = window.strides[i], floors[i], extents[i]
        places = ceil_div(size + pads[i] + pads[i + rank] - reach, stride) + 1
        if (places - 1) * stride >= size + pads[i]:  # the last window would see only padding
            places -= 1
        if places > floor:
            pads[i + rank] = (places - 1) * stride + reach - size - pads[i]
    return replace(window, pads=tuple(pads))


def _pooled(make: Maker, data: str, window: Window, include: bool | None = None) -> str:
    """The largest elements, or where ``include`` is given the means, of a signal, an image or a
    volume: of it first in each image, then from image to image."""
    shape = make.shape(data)
    if window.rank == 1:
        result = _pooled_image(make, make.reshape(data, (*shape[:2], 1, shape[2])), window, include)
        return _without_row(make, result)
    if window.rank == 2:
        return _pooled_image(make, data, window, include)
    if (whole := volumes.pooled(make, data, window, include)) is not None:
        return whole
    flat = make.reshape(data, (shape[0], shape[1] * shape[2], *shape[3:]))
    inner = _pooled_image(make, flat, _last(window, 2), include)
    h, w = make.shape(inner)[2:]
    rows = make.reshape(inner, (shape[0], shape[1], shape[2], h * w))
    result = _pooled_image(make, rows, _first(window), include)
    return make.reshape(result, (*shape[:2], make.shape(result)[2], h, w))


def _pooled_image(make: Maker, data: str, window: Window, include: bool | None) -> str:
    window = window if window.rank == 2 else _last(window, window.rank)
    node: ops.MaxPool | ops.AvgPool
    if include is None:
        node = ops.MaxPool(**make.names(), data=data, kernel=window.size, **window.steps)
    else:
        node = ops.AvgPool(
            **make.names(), data=data, kernel=window.size, **window.steps,
            include_pad=include,
        )  # fmt: skip
    return make.add(node, "float32")


@converts("MaxPool")
def _max_pool(view: OnnxNode) -> None:
    window = _pool_window(view)
    if view.wanted(1):
        raise view.unsupported("one output", f"a second one, {view.proto.output[1]}")
    make = Maker(view)
    make.result(_pooled(make, view.operand(0), window))


@converts("AveragePool")
def _average_pool(view: OnnxNode) -> None:
    """Places that ``ceil_mode`` adds never count, those of the pads where the node says so."""
    window, make, data = _pool_window(view), Maker(view), view.operand(0)
    plain, include = _sliding(view, window.kernel), bool(view.integer("count_include_pad", 0))
    if include and plain.pads != window.pads:
        rank = window.rank
        edges = [(plain.pads[n], plain.pads[n + rank]) for n in range(rank)]
        data = make.padded(data, [(0, 0), (0, 0), *edges], 0.0)
        more = tuple(a - b for a, b in zip(window.pads, plain.pads, strict=True))
        window, include = replace(window, pads=more), False
    make.result(_pooled(make, data, window, include))


@converts("LpPool")
def _lp_pool(view: OnnxNode) -> None:
    """``(Σ |x|^p)^(1/p)``: a mean of powers, with zeros around, times how many there are."""
    window, p, make = _pool_window(view), view.integer("p", 2), Maker(view)
    powers = make.binary("pow", make.unary("abs", view.operand(0)), float(p))
    total = make.binary("mul", _pooled(make, powers, window, True), float(prod(window.kernel)))
    make.result(make.binary("pow", total, 1 / p))


@converts("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(view: OnnxNode) -> None:
    """Over all dimensions; where integers may follow, as a pool, which the accelerator has."""
    rank, shape, make = _dimensions(view), view.shape(0), Maker(view)
    mean, quantized = view.proto.op_type == "GlobalAveragePool", make.is_quantized(view.operand(0))
    plain = view.dtype(0) == "float32"
    if plain and (quantized or (mean and rank == 2)):
        window = Window(shape[2:], (1,) * rank, (0,) * (2 * rank), (1,) * rank)
        make.result(_pooled(make, view.operand(0), window, False if mean else None))
        return
    view.real_dtype()
    make.result(make.reduce("mean" if mean else "max", view.operand(0), range(2, len(shape))))
