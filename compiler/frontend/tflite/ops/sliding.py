"""Operators whose windows slide over an image: convolutions and pools."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vdla.compiler.frontend.tflite.drafting import Form, is_image
from vdla.compiler.frontend.tflite.operator import FIRST, View, converts
from vdla.compiler.frontend.tflite.schema import word
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
    totals = []
    for size, extent, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        reach = (extent - 1) * dilation + 1
        totals.append(max((ceil_div(size, stride) - 1) * stride + reach - size, 0))
    down, across = totals
    pads = (down // 2, across // 2, down - down // 2, across - across // 2)
    return Sliding(kernel, strides, dilations, pads)


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
    data, margins = _behind_pad(view)
    before = [pad + margin[0] for pad, margin in zip(window.pads[:2], margins, strict=True)]
    behind = [pad + margin[1] for pad, margin in zip(window.pads[2:], margins, strict=True)]
    operands = [data, weight]
    if view.has(2):
        operands.append(bias(view, 2, 0, 1))
    result = view.emit(
        "Conv",
        operands,
        kernel_shape=window.kernel,
        strides=window.strides,
        dilations=window.dilations,
        pads=(*before, *behind),
        group=groups,
    )
    view.finish(result, FIRST)


def _behind_pad(view: View) -> tuple[str, list[tuple[int, int]]]:
    """The image, and zeros before and behind its rows and columns: those of a PAD that makes it.

    Keras writes convolutions with strides so. Nothing is left of a PAD that nobody else reads.
    """
    tensors, tensor = view.draft.tensors, view.tensor(0)
    maker = view.draft.subgraph.makers.get(tensor.index)
    if (
        maker is not None
        and maker.name == "PAD"
        and len(maker.inputs) == 2
        and min(maker.inputs) >= 0
    ):
        data, amounts = (tensors[index] for index in maker.inputs)
        pads = view.draft.value_of(amounts)
        same = np.array_equal(data.scale, tensor.scale)
        same &= np.array_equal(data.zero_point, tensor.zero_point)
        if same and is_image(data) and pads is not None and pads.shape == (4, 2):
            margins = [(int(a), int(b)) for a, b in pads]
            if not any(map(any, (margins[0], margins[3]))):
                return view.draft.get(data, Form.REAL, FIRST), margins[ROW : COLUMN + 1]
    return view.real(0, FIRST), [(0, 0), (0, 0)]


def weights(view: View, index: int, perm: tuple[int, ...]) -> str:
    """An operand as real numbers with its axes in another order.

    Integers of a constant are put in order here, so that DequantizeLinear reads an initializer with
    a scale per channel. Where the data are floats (dynamic range), LiteRT quantizes them as it runs
    and multiplies integers; here the weights become floats, which is nearer to the float network.
    """
    tensor, array = view.tensor(index), view.known(index)
    if array is None:
        return view.moved(index, "Transpose", perm=perm)
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


@dataclass(frozen=True)
class Enlarging:
    """The options of a transposed convolution: strides of rows and columns, the result's rows and
    columns, and whether the windows stay within it (VALID)."""

    strides: tuple[int, int]
    sizes: tuple[int, int]
    valid: bool


@converts("TRANSPOSE_CONV")
def _transposed(view: View) -> None:
    """Operands: the result's shape, [O, KH, KW, I] weights, data, and a bias."""
    shape = view.numbers(0, "a shape")
    if len(shape) != 4:
        raise view.error("a shape of four sizes", shape)
    valid = word("Padding", view.integer("Padding")) == "VALID"
    strides = _pair(view, "StrideH", "StrideW")
    _enlarge(view, 2, 3, Enlarging(strides, (shape[ROW], shape[COLUMN]), valid))


@converts("Convolution2DTransposeBias")
def _transposed_custom(view: View) -> None:
    """MediaPipe's own operator: data, [O, KH, KW, I] weights and a bias.

    Its options are three int32: 1 for SAME or 2 for VALID, the stride of columns, that of rows.
    """
    options = np.frombuffer(view.operator.custom_options[:12], "<i4").tolist()
    if len(options) != 3 or options[0] not in (1, 2) or min(options) < 1:
        raise view.error("options of a padding and two strides", options)
    padding, across, down = options
    shape = view.result().shape
    if len(shape) != 4:
        raise view.error("a result of four sizes", list(shape))
    sizes = shape[ROW], shape[COLUMN]
    _enlarge(view, 0, 2, Enlarging((down, across), sizes, padding == 2))


def _enlarge(view: View, data: int, added: int, form: Enlarging) -> None:
    """Adds a transposed convolution of an operand; ``added`` is the number of the bias."""
    check_image(view, data)
    check_image(view, 1)
    _, rows, columns, _ = view.shape(1)
    before, behind, extra = [], [], []
    for axis, kernel in ((0, rows), (1, columns)):
        wanted, stride = form.sizes[axis], form.strides[axis]
        steps = (wanted - kernel) // stride + 1 if form.valid else ceil_div(wanted, stride)
        if steps != view.shape(data)[axis + ROW]:
            raise view.error(f"data of {steps} rows or columns", view.shape(data)[axis + ROW])
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
        strides=form.strides,
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
