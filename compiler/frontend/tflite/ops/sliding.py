"""Operators whose windows slide over an image: convolutions and pools."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vdla.compiler.frontend.tflite.operator import FIRST, View, converts
from vdla.compiler.frontend.tflite.schema import number_of, word
from vdla.support.numbers import ceil_div

ROW, COLUMN = 1, 2  # axes of images in the file
CONV_OUTPUTS, DEPTHWISE_OUTPUTS = 0, 3  # axes of weights in the file


@dataclass(frozen=True)
class Sliding:
    """The window of an operator: kernel, strides and dilations of rows and columns, and ONNX's pads
    (rows before, columns before, rows behind, columns behind)."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]


def window_of(view: View, data: int, kernel: tuple[int, int]) -> Sliding:
    """The window that an operator's options describe.

    Raises:
        ModelError: a stride or a dilation isn't positive.
    """
    strides = _pair(view, "StrideH", "StrideW")
    dilations = _pair(view, "DilationHFactor", "DilationWFactor")
    sizes = view.shape(data)[ROW], view.shape(data)[COLUMN]
    if word("Padding", view.integer("Padding")) == "VALID":
        return Sliding(kernel, strides, dilations, (0, 0, 0, 0))
    before, behind = [], []
    for size, extent, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        reach = (extent - 1) * dilation + 1
        total = max((ceil_div(size, stride) - 1) * stride + reach - size, 0)
        before.append(total // 2)
        behind.append(total - total // 2)
    return Sliding(kernel, strides, dilations, (*before, *behind))


def _pair(view: View, down: str, across: str) -> tuple[int, int]:
    values = view.integer(down, 1), view.integer(across, 1)
    if min(values) < 1:
        raise view.error(f"{down} and {across} ≥ 1", list(values))
    return values


def check_image(view: View, index: int) -> None:
    """Raises ModelError where an operand isn't an image."""
    if view.rank(index) != 4:
        raise view.error("data of shape [N, H, W, C]", list(view.shape(index)))


# Convolutions ------------------------------------------------------------------------------------


@converts("CONV_2D")
def _conv(view: View) -> None:
    """[O, KH, KW, I / groups] weights; the file says the groups by their sizes alone."""
    check_image(view, 0)
    check_image(view, 1)
    outputs, rows, columns, inputs = view.shape(1)
    channels = view.shape(0)[3]
    if not inputs or channels % inputs or outputs % max(channels // inputs, 1):
        raise view.error(f"weights for {channels} channels", list(view.shape(1)))
    window = window_of(view, 0, (rows, columns))
    _convolve(view, window, weights(view, 1, (0, 3, 1, 2)), channels // inputs)


@converts("DEPTHWISE_CONV_2D")
def _depthwise(view: View) -> None:
    """[1, KH, KW, C * multiplier] weights: a group for each channel."""
    check_image(view, 0)
    check_image(view, 1)
    _, rows, columns, outputs = view.shape(1)
    channels = view.shape(0)[3]
    if not channels or outputs % channels:
        raise view.error(f"a multiple of {channels} weights", outputs)
    window = window_of(view, 0, (rows, columns))
    _convolve(view, window, weights(view, 1, (3, 0, 1, 2)), channels)


def _convolve(view: View, window: Sliding, weight: str, groups: int) -> None:
    operands = [view.real(0, FIRST), weight]
    if view.has(2):
        operands.append(bias(view, 2, 0, 1))
    result = view.emit(
        "Conv",
        operands,
        kernel_shape=window.kernel,
        strides=window.strides,
        dilations=window.dilations,
        pads=window.pads,
        group=groups,
    )
    view.finish(result, FIRST)


def weights(view: View, index: int, perm: tuple[int, ...]) -> str:
    """An operand as real numbers with its axes in another order.

    Integers of a constant are put in order here, so that DequantizeLinear reads an initializer with
    a scale per channel. Where the data are floats (dynamic range), LiteRT quantizes them as it runs
    and multiplies integers; here the weights become floats, which is nearer to the float network.
    """
    tensor, array = view.tensor(index), view.known(index)
    if array is None:
        return view.emit("Transpose", [view.real(index)], perm=perm)
    axis = perm.index(tensor.axis) if tensor.scale.size > 1 else None
    return view.draft.rearranged(tensor, array.transpose(perm), axis)


def bias(view: View, index: int, data: int, weight: int) -> str:
    """An operand that is added to sums: int32 or int64 in steps of data times weights, or floats.

    Of int64, which ONNX doesn't dequantize, the real numbers are computed here.
    """
    tensor, array = view.tensor(index), view.known(index)
    if array is None or array.dtype.kind != "i":
        return view.real(index)
    scale = tensor.scale
    if not scale.size:
        scale = (view.tensor(data).scale * view.tensor(weight).scale).astype(np.float32)
    if not scale.size:
        raise view.error("a bias with a scale", "integers without one")
    own = view.draft.own[tensor.index]
    if array.dtype != np.int32:
        real = (array.astype(np.float64) * scale).astype(np.float32)
        return view.draft.constant(real, f"{own}.real")
    scale = scale.reshape(()) if scale.size == 1 else scale
    parameters = (
        view.draft.constant(array.reshape(-1), f"{own}.integers"),
        view.draft.constant(scale.astype(np.float32), f"{own}.scale"),
        view.draft.constant(np.zeros(scale.shape, np.int32), f"{own}.zero_point"),
    )
    return view.emit("DequantizeLinear", parameters, axis=0 if scale.ndim else None)


# Transposed convolutions -------------------------------------------------------------------------


@converts("TRANSPOSE_CONV")
def _transposed(view: View) -> None:
    """Operands: the result's shape, [O, KH, KW, I] weights, data, and a bias."""
    shape = view.numbers(0, "a shape")
    if len(shape) != 4:
        raise view.error("a shape of four sizes", shape)
    transposed(view, 2, (shape[ROW], shape[COLUMN]), 3)


def transposed(view: View, data: int, sizes: tuple[int, int], added: int) -> None:
    """Adds a transposed convolution whose result has ``sizes`` rows and columns.

    Args:
        view: the operator; its second operand are [O, KH, KW, I] weights.
        data: the number of the operand that is the image.
        sizes: rows and columns of the result.
        added: the number of the bias, which need not be given.
    """
    check_image(view, data)
    check_image(view, 1)
    _, rows, columns, _ = view.shape(1)
    strides = _pair(view, "StrideH", "StrideW")
    valid = view.integer("Padding") == number_of("Padding", "VALID")
    before, behind, extra = [], [], []
    for axis, kernel, stride in ((ROW, rows, strides[0]), (COLUMN, columns, strides[1])):
        wanted = sizes[axis - 1]
        if valid:
            steps = (wanted - kernel) // stride + 1
        else:
            steps = ceil_div(wanted, stride)
        if steps != view.shape(data)[axis]:
            raise view.error(f"{steps} rows or columns of data", view.shape(data)[axis])
        total = (steps - 1) * stride + kernel - wanted
        before.append(max(total, 0) // 2)
        behind.append(max(total, 0) - before[-1])
        extra.append(max(-total, 0))
    operands = [view.real(data, FIRST), weights(view, 1, (3, 0, 1, 2))]
    if view.has(added):
        operands.append(bias(view, added, data, 1))
    result = view.emit(
        "ConvTranspose",
        operands,
        kernel_shape=(rows, columns),
        strides=strides,
        pads=(*before, *behind),
        output_padding=extra if any(extra) else None,
    )
    view.finish(result, FIRST)


# Pools -------------------------------------------------------------------------------------------


@converts("MAX_POOL_2D", "AVERAGE_POOL_2D")
def _pool(view: View) -> None:
    """Elements beyond the image are none of a mean's."""
    largest = view.operator.name == "MAX_POOL_2D"
    view.finish(_pooled(view, view.real(0, FIRST), largest), FIRST)


@converts("L2_POOL_2D")
def _l2_pool(view: View) -> None:
    """The square root of the mean of squares."""
    data = view.real(0, FIRST)
    mean = _pooled(view, view.emit("Mul", [data, data]), False)
    view.finish(view.emit("Sqrt", [mean]), FIRST)


def _pooled(view: View, data: str, largest: bool) -> str:
    check_image(view, 0)
    kernel = _pair(view, "FilterHeight", "FilterWidth")
    window = window_of(view, 0, kernel)
    return view.emit(
        "MaxPool" if largest else "AveragePool",
        [data],
        kernel_shape=window.kernel,
        strides=window.strides,
        pads=window.pads,
    )
