"""Operators that normalize: by statistics of a batch, of a row, of a group; by the sum of a row."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.ops.windows import by_pixel
from vdla.compiler.graph import ops

FLOAT = 1  # ONNX's number of float32, TensorProto.FLOAT
CHANNEL_SCALES = 21  # the first opset in which GroupNormalization has a scale for each channel


@converts("BatchNormalization")
def _batch_norm(view: OnnxNode) -> None:
    if view.integer("training_mode", 0):
        raise view.error("training_mode = 0: vdla runs inference", 1)
    known = all(view.draft.known(view.operand(i)) is not None for i in range(1, 5))
    if not known or view.dtype(0) != "float32":
        _normalized_batch(view)
        return
    vectors = [view.constant(i, "statistic").astype(np.float64) for i in range(1, 5)]
    gamma, beta, mean, variance = vectors
    factor = gamma / np.sqrt(variance + view.real("epsilon", 1e-5))
    offset = beta - mean * factor
    if factor.shape != view.shape(0)[1:2]:
        result = list(factor.shape)
        raise view.error(f"statistics of shape {list(view.shape(0)[1:2])}", result)
    draft = view.draft
    node = ops.BatchNorm(
        name=view.name,
        output=view.output,
        data=view.operand(0),
        factor=draft.add_constant(f"{view.name}.factor", factor.astype(np.float32)),
        offset=draft.add_constant(f"{view.name}.offset", offset.astype(np.float32)),
    )
    draft.emit(node, "float32")


def _normalized_batch(view: OnnxNode) -> None:
    """With statistics that are known at run time."""
    make, shape = Maker(view), view.shape(0)
    if view.wanted(1):
        raise view.error("one output: vdla runs inference", view.proto.output[1])
    column = (shape[1], *(1,) * (len(shape) - 2))
    gamma, beta, mean, variance = (
        make.cast(make.reshape(view.operand(i), column), view.dtype(0)) for i in range(1, 5)
    )
    deviation = make.unary("sqrt", make.binary("add", variance, view.real("epsilon", 1e-5)))
    centered = make.binary("sub", view.operand(0), mean)
    scaled = make.binary("mul", make.binary("div", centered, deviation), gamma)
    make.result(make.binary("add", scaled, beta))


def _standard(make: Maker, data: str, axes: Sequence[int], epsilon: float) -> tuple[str, ...]:
    """Less the mean, by the deviation; the mean and the deviation's inverse with it."""
    mean = make.reduce("mean", data, axes)
    centered = make.binary("sub", data, mean)
    variance = make.reduce("mean", make.binary("mul", centered, centered), axes)
    inverse = make.unary("reciprocal", make.unary("sqrt", make.binary("add", variance, epsilon)))
    return make.binary("mul", centered, inverse), mean, inverse


@converts("LayerNormalization")
def _layer_norm(view: OnnxNode) -> None:
    dtype, rank, make = view.real_dtype(), len(view.shape(0)), Maker(view)
    axis = view.axis(view.integer("axis", -1), rank)
    wide = make.cast(view.operand(0), "float32" if dtype == "float16" else dtype)
    result, mean, inverse = _standard(make, wide, range(axis, rank), view.real("epsilon", 1e-5))
    scaled = make.binary("mul", make.cast(result, dtype), view.operand(1))
    if (bias := view.optional(2)) is not None:
        scaled = make.binary("add", scaled, bias)
    make.result(scaled)
    make.result(mean, 1)
    make.result(inverse, 2)


@converts("RMSNormalization")
def _rms_norm(view: OnnxNode) -> None:
    make, data = Maker(view), view.operand(0)
    axis = view.axis(view.integer("axis", -1), len(view.shape(0)))
    result, root = _by_root(make, data, axis, view.real("epsilon", 1e-5), view.operand(1))
    make.result(result)
    if view.wanted(1):
        make.result(make.unary("reciprocal", root), 1)


@converts("SimplifiedLayerNormalization")
def _simplified_layer_norm(view: OnnxNode) -> None:
    """onnxruntime's older name of RMSNormalization, with the root's inverse as a second result."""
    if view.integer("stash_type", FLOAT) != FLOAT:
        raise view.unsupported(f"a stash_type of {FLOAT}, float32", view.integer("stash_type", 0))
    _rms_norm(view)


@converts("SkipSimplifiedLayerNormalization", domain="com.microsoft")
def _skip_rms_norm(view: OnnxNode) -> None:
    """RMSNormalization of the sum of two or three tensors; that sum is a result, too."""
    view.real_dtype()
    if view.wanted(1) or view.wanted(2):
        raise view.unsupported("results in places 0 and 3 alone", "one of training's")
    make = Maker(view)
    data = make.binary("add", view.operand(0), view.operand(1))
    if (bias := view.optional(3)) is not None:
        data = make.binary("add", data, bias)
    axis = len(view.shape(0)) - 1
    result, _ = _by_root(make, data, axis, view.real("epsilon", 1e-5), view.operand(2))
    make.result(result)
    make.result(data, 3)


def _by_root(make: Maker, data: str, axis: int, epsilon: float, scale: str) -> tuple[str, str]:
    """Data by the root of its mean square from ``axis`` on, times ``scale``; the root with it."""
    view, dtype = make.view, make.kind(data).dtype
    view.real_dtype()
    wide = make.cast(data, "float32" if dtype == "float16" else dtype)
    power = make.reduce("mean", make.binary("mul", wide, wide), range(axis, len(make.shape(data))))
    root = make.unary("sqrt", make.binary("add", power, epsilon))
    return make.binary("mul", make.cast(make.binary("div", wide, root), dtype), scale), root


@converts("InstanceNormalization")
def _instance_norm(view: OnnxNode) -> None:
    view.real_dtype()
    make, shape = Maker(view), view.shape(0)
    column = (shape[1], *(1,) * (len(shape) - 2))
    result, *_ = _standard(make, view.operand(0), range(2, len(shape)), view.real("epsilon", 1e-5))
    scaled = make.binary("mul", result, make.reshape(view.operand(1), column))
    make.result(make.binary("add", scaled, make.reshape(view.operand(2), column)))


@converts("GroupNormalization")
def _group_norm(view: OnnxNode) -> None:
    view.real_dtype()
    make, shape, groups = Maker(view), view.shape(0), view.integer("num_groups", 0)
    if groups < 1 or shape[1] % groups:
        raise view.error(f"groups of {shape[1]} channels", groups)
    grouped = make.reshape(view.operand(0), (shape[0], groups, prod(shape[1:]) // groups))
    result, *_ = _standard(make, grouped, (2,), view.real("epsilon", 1e-5))
    if view.draft.opset < CHANNEL_SCALES:
        column: tuple[int, ...] = (groups, 1)
    else:
        column, result = (shape[1], *(1,) * (len(shape) - 2)), make.reshape(result, shape)
    for operand in (1, 2):
        if view.shape(operand) != column[:1]:
            raise view.error(f"scales and biases of shape [{column[0]}]", list(view.shape(operand)))
    scaled = make.binary("mul", result, make.reshape(view.operand(1), column))
    biased = make.binary("add", scaled, make.reshape(view.operand(2), column))
    make.result(make.reshape(biased, shape))


@converts("LpNormalization")
def _lp_norm(view: OnnxNode) -> None:
    """By the norm along an axis; where that is 0, zeros stay."""
    view.real_dtype()
    make, data = Maker(view), view.operand(0)
    axis, p = view.axis(view.integer("axis", -1), len(view.shape(0))), view.integer("p", 2)
    if p not in (1, 2):
        raise view.error("p = 1 or 2", p)
    size = make.unary("abs", data) if p == 1 else make.binary("mul", data, data)
    total = make.reduce("sum", size, (axis,))
    norm = total if p == 1 else make.unary("sqrt", total)
    zero = make.binary("eq", norm, 0.0)
    make.result(make.binary("div", data, make.where(zero, make.like(1, norm), norm)))


@converts("LRN")
def _lrn(view: OnnxNode) -> None:
    """By the squares of neighbouring channels, whose sum is a product with a band of ones: of
    images a convolution by one pixel, which lies as its neighbours do."""
    view.real_dtype()
    make, data, shape = Maker(view), view.operand(0), view.shape(0)
    size, channels = view.integer("size", 1), view.shape(0)[1]
    offsets = np.arange(channels)[:, None] - np.arange(channels)[None]
    band = (offsets >= -((size - 1) // 2)) & (offsets <= size // 2)
    squares = make.binary("mul", data, data)
    weight, bias = band.T * view.real("alpha", 1e-4) / size, view.real("bias", 1.0)
    if len(shape) == 4 and view.dtype(0) == "float32" and not make.is_quantized(data):
        start = make.like(np.full(channels, bias), data)
        base = by_pixel(make, squares, make.like(weight[..., None, None], data), start)
    else:
        rows = make.reshape(squares, (shape[0], channels, prod(shape[2:])))
        sums = make.matmul(make.like(weight, data), rows)
        base = make.binary("add", make.reshape(sums, shape), bias)
    power = _positive_power(make, base, view.real("beta", 0.75))
    make.result(make.binary("div", data, power))


def _positive_power(make: Maker, base: str, exponent: float) -> str:
    """A power of positive numbers; square roots of them where it is a half or quarters."""
    roots = {0.25: (2,), 0.5: (1,), 0.75: (1, 2), 1.0: (0,)}.get(exponent)
    if roots is None:
        return make.binary("pow", base, exponent)
    each = [base]
    for _ in range(max(roots)):
        each.append(make.unary("sqrt", each[-1]))
    first, *others = (each[n] for n in roots)
    return make.binary("mul", first, others[0]) if others else first


def _softmax_of(make: Maker, data: str, axis: int) -> str:
    """In one operator; of float16 in several, which round as numpy does."""
    dtype = make.kind(data).dtype
    if dtype != "float16":
        return make.add(ops.Softmax(**make.names(), data=data, axis=axis), dtype)
    powers = make.unary("exp", make.binary("sub", data, make.reduce("max", data, (axis,))))
    return make.binary("div", powers, make.reduce("sum", powers, (axis,)))


@converts("Softmax", "LogSoftmax")
def _softmax(view: OnnxNode) -> None:
    view.real_dtype()
    shape, make = view.shape(0), Maker(view)
    rank, modern = len(shape), view.draft.opset >= 13
    axis = view.axis(view.integer("axis", -1 if modern else 1), rank)
    data = view.operand(0)
    if not modern and axis != rank - 1:  # before opset 13, Softmax flattened its input at ``axis``
        data, axis = make.reshape(data, (prod(shape[:axis]), prod(shape[axis:]))), 1
    if view.proto.op_type == "LogSoftmax":
        top = make.reduce("max", data, (axis,))
        moved = make.binary("sub", data, top)
        total = make.reduce("sum", make.unary("exp", moved), (axis,))
        result = make.binary("sub", moved, make.unary("log", total))
    else:
        result = _softmax_of(make, data, axis)
    make.result(make.reshape(result, shape))
