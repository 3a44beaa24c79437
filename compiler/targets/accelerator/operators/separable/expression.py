"""The expression of a depthwise convolution between two that look at single pixels.

Tensors lie in channel blocks: ``data[n, c, y, x, i]`` (N, channel blocks, H, W, block) and
``out[n, o, y, x, l]`` in DRAM. Between them

    staged[n, c, p, y, x, i]    int8    the data with columns of one phase ``p`` (every
                                        ``phases``-th) side by side; only where there are several
    expanded[n, c, p, y, x, l]  int32   what the first convolution sums up
    image[n, c, p, y, x, i]     int8    its result as the window sees it: by phases, and padded
    filtered[n, c, y, x, l]     int32   what the depthwise convolution sums up
    middle[n, c, y, x, i]       int8    its result
    projected[n, o, y, x, l]    int32   what the last convolution sums up

Without ``expand`` the image is loaded from ``data``, without ``project`` the result is
``filtered``'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.targets.accelerator.operators.separable.sizes import Limits, SeparableSizes
from vdla.compiler.targets.accelerator.options.weights4 import weights
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.config import Config
from vdla.isa.options.window import window_taps


@dataclass(frozen=True)
class Sums:
    """One convolution: its weights, these as int8, biases and scales, and what it sums up."""

    weight: Tensor
    tiles: Tensor
    bias: Tensor
    scale: Tensor
    acc: Tensor

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders."""
        return [self.weight, self.bias, self.scale]


@dataclass(frozen=True)
class Addition:
    """The stages of a residual addition: the convolution's result, the residual, their sum, and
    what becomes of it."""

    residual: Tensor
    scale: Tensor
    requantized: Tensor
    wide: Tensor
    added: Tensor
    out: Tensor

    @property
    def stages(self) -> list[Tensor]:
        """The stages in ACC, the last one first."""
        return [self.added, self.wide, self.requantized]


@dataclass(frozen=True)
class SeparableTensors:
    """The tensors of the expression; what isn't there is None."""

    data: Tensor
    staged: Tensor | None
    expand: Sums | None
    image: Tensor
    filter: Sums
    middle: Tensor | None
    project: Sums | None
    addition: Addition | None
    out: Tensor

    @property
    def sums(self) -> list[Sums]:
        """The convolutions, in their order."""
        return [each for each in (self.expand, self.filter, self.project) if each is not None]

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders, in the order of the function's parameters."""
        added = [self.addition.residual, self.addition.scale] if self.addition else []
        return [self.data, *(t for each in self.sums for t in each.inputs), *added]


def expression(shape: SeparableSizes, config: Config) -> SeparableTensors:
    """The expression for a config whose blocks are of one size."""
    block = config.block_in
    channels = shape.inputs or shape.blocks
    data = te.placeholder((shape.batch, channels, shape.height, shape.width, block), "int8", "data")
    staged = _staged(data, shape, block) if shape.inputs and shape.phases > 1 else None
    expand = _expand(staged or data, shape, block) if shape.inputs else None
    image = _image(data, expand, shape, block)
    filtered = _filter(image, shape, config)
    if not shape.outputs:
        out = _narrowed(filtered, shape.filtered, "out")
        return SeparableTensors(data, staged, expand, image, filtered, None, None, None, out)
    middle = _narrowed(filtered, shape.filtered, "middle")
    project = _project(middle, shape, block)
    assert shape.projected is not None
    addition = _added(project, shape, block) if shape.residual else None
    out = addition.out if addition else _narrowed(project, shape.projected, "out")
    return SeparableTensors(data, staged, expand, image, filtered, middle, project, addition, out)


def _columns(shape: SeparableSizes) -> int:
    """Columns of the window's image in each phase."""
    if shape.taps > 1:
        return shape.out_width + shape.portions * shape.taps - 1
    reach = (shape.kernel[1] - 1) * shape.dilations[1]
    return (shape.out_width - 1) * shape.strides[1] + reach + 1


def _staged(data: Tensor, shape: SeparableSizes, block: int) -> Tensor:
    """The data by phases; what lies outside of them is computed with and not used."""
    n, channels, height, width, _ = data.shape
    left, phases = shape.pads[1], shape.phases

    def value(n: Expr, c: Expr, p: Expr, y: Expr, x: Expr, i: Expr) -> Expr:
        x = x * phases + p - left
        inside = te.all(x >= 0, x < width)
        return te.if_then_else(inside, data[n, c, y, x, i], te.const(0, "int8"))

    return te.compute((n, channels, phases, height, _columns(shape), block), value, "staged")


def _expand(source: Tensor, shape: SeparableSizes, block: int) -> Sums:
    """A 1 × 1 convolution of all channel blocks, by phases if there are several."""
    n, inputs, *_, height, width, _ = source.shape
    size = shape.blocks, inputs, block, block
    weight, tiles = weights(size, "expand_weight", weights4=shape.weights4)
    bias, scale = _per_channel(shape.blocks, block, "expand")
    c, i = te.reduce_axis((0, inputs), "c"), te.reduce_axis((0, block), "i")

    def total(n: Expr, o: Expr, p: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        pixel = source[n, c, p, y, x, i] if shape.phases > 1 else source[n, c, y, x, i]
        product = pixel.astype("int32") * tiles[o, c, l, i].astype("int32")
        return te.sum(product, axis=[c, i], init=bias[o, l])

    result = n, shape.blocks, shape.phases, height, width, block
    return Sums(weight, tiles, bias, scale, te.compute(result, total, "expand_acc"))


def _project(source: Tensor, shape: SeparableSizes, block: int) -> Sums:
    """A 1 × 1 convolution of all channel blocks."""
    n, inputs, height, width, _ = source.shape
    size = shape.outputs, inputs, block, block
    weight, tiles = weights(size, "project_weight", weights4=shape.weights4)
    bias, scale = _per_channel(shape.outputs, block, "project")
    c, i = te.reduce_axis((0, inputs), "c"), te.reduce_axis((0, block), "i")

    def total(n: Expr, o: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        product = source[n, c, y, x, i].astype("int32") * tiles[o, c, l, i].astype("int32")
        return te.sum(product, axis=[c, i], init=bias[o, l])

    acc = te.compute((n, shape.outputs, height, width, block), total, "project_acc")
    return Sums(weight, tiles, bias, scale, acc)


def _per_channel(blocks: int, block: int, name: str) -> tuple[Tensor, Tensor]:
    """A bias and a scale for each channel."""
    bias = te.placeholder((blocks, block), "int32", f"{name}_bias")
    return bias, te.placeholder((blocks, block), "int32", f"{name}_scale")


def _narrow(sums: Sums, limits: Limits) -> Callable[[tuple[Expr, ...], Expr, Expr], Expr]:
    """An int8 element of a convolution's result, from its place, its channel block and its lane."""
    return lambda place, c, l: te.requantize(
        sums.acc[place], sums.scale[c, l], limits.zero, limits.low, limits.high
    ).astype("int8")


def _narrowed(sums: Sums, limits: Limits, name: str) -> Tensor:
    narrow = _narrow(sums, limits)
    return te.compute(sums.acc.shape, lambda n, c, y, x, l: narrow((n, c, y, x, l), c, l), name)


def _image(data: Tensor, expand: Sums | None, shape: SeparableSizes, block: int) -> Tensor:
    """Image that the window steps over."""
    n, _, height, width, _ = data.shape
    (top, left, _, _), (sy, _), phases = shape.pads, shape.strides, shape.phases
    rows = (shape.out_height - 1) * sy + (shape.kernel[0] - 1) * shape.dilations[0] + 1

    def value(n: Expr, c: Expr, p: Expr, y: Expr, x: Expr, i: Expr) -> Expr:
        row, column = y - top, x * phases + p - left
        element: Expr
        if expand is None:
            element = data[n, c, row, column, i]
        else:
            assert shape.expanded is not None
            place = x if phases > 1 else column
            element = _narrow(expand, shape.expanded)((n, c, p, row, place, i), c, i)
        inside = te.all(row >= 0, row < height, column >= 0, column < width)
        return te.if_then_else(inside, element, te.const(shape.pad, "int8"))

    return te.compute((n, shape.blocks, phases, rows, _columns(shape), block), value, "image")


def _filter(image: Tensor, shape: SeparableSizes, config: Config) -> Sums:
    """The depthwise convolution, by a window register or by products with diagonals."""
    block, (kh, kw) = config.block_in, shape.kernel
    sy, sx = shape.strides
    dy, dx = shape.dilations
    bias, scale = _per_channel(shape.blocks, block, "filter")
    size = (shape.batch, shape.blocks, shape.out_height, shape.out_width, block)
    if shape.taps == 1:
        ky = te.reduce_axis((0, kh), "ky")
        dense = shape.blocks, kh, kw, block, block
        weight, tiles = weights(dense, "filter_weight", weights4=shape.weights4)
        kx, i = te.reduce_axis((0, kw), "kx"), te.reduce_axis((0, block), "i")

        def diagonal(n: Expr, c: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
            pixel = image[n, c, 0, y * sy + ky * dy, x * sx + kx * dx, i]
            product = pixel.astype("int32") * tiles[c, ky, kx, l, i].astype("int32")
            return te.sum(product, axis=[ky, kx, i], init=bias[c, l])

        return Sums(weight, tiles, bias, scale, te.compute(size, diagonal, "filter_acc"))
    down, over = shape.steps
    windows = shape.blocks, down, over, shape.portions, block, block
    weight, tiles = weights(windows, "filter_weight", weights4=shape.weights4)
    ky, p = te.reduce_axis((0, down), "ky"), te.reduce_axis((0, over), "p")
    q = te.reduce_axis((0, shape.portions), "q")
    t, b = te.reduce_axis((0, shape.taps), "t"), te.reduce_axis((0, 2), "b")

    def product(row: int, n: Expr, c: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        phase = row if shape.pairs_phases else p
        line = y * sy + (ky + row * shape.pitch) * dy
        column = x + q * shape.taps + (shape.taps - 1 - t)
        pixel = image[n, c, phase, line, column, te.floordiv(l, 2) * 2 + b].astype("int32")
        lane = row * 2 * window_taps(config) + t * 2 + b
        return pixel * tiles[c, ky, p, q, l, lane].astype("int32")

    def window(*place: Expr) -> Expr:
        value = product(0, *place)
        if shape.window_rows > 1:
            value = value + product(1, *place)
        return te.sum(value, axis=[ky, p, q, t, b], init=bias[place[1], place[-1]])

    return Sums(weight, tiles, bias, scale, te.compute(size, window, "filter_acc"))


def _added(project: Sums, shape: SeparableSizes, block: int) -> Addition:
    """The residual addition behind the last convolution, on centred values."""
    r, limits, size = shape.residual, shape.projected, project.acc.shape
    assert r is not None
    assert limits is not None
    residual = te.placeholder(size, "int8", "residual")
    scale = te.placeholder((1, block), "int32", "out_scale")
    requantized = te.compute(
        size,
        lambda n, o, y, x, l: te.requantize(
            project.acc[n, o, y, x, l],
            project.scale[o, l],
            0,
            limits.low - limits.zero,
            limits.high - limits.zero,
        ),
        "requantized",
    )
    wide = te.compute(size, lambda *i: residual[i].astype("int32") - te.const(r.zero), "wide")
    added = te.compute(
        size,
        lambda *i: requantized[i] * te.const(r.weight) + wide[i] * te.const(r.imm),
        "added",
    )
    out = te.compute(
        size,
        lambda n, o, y, x, l: te.requantize(
            added[n, o, y, x, l], scale[0, l], r.out_zero, r.low, r.high
        ).astype("int8"),
        "out",
    )
    return Addition(residual, scale, requantized, wide, added, out)
