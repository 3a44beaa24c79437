"""Operators that are sums along an axis with weights known now: resizing, Fourier transforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.resizing import axis_weights
from vdla.compiler.graph import ops
from vdla.compiler.graph.types import Array

CROPPED = "tf_crop_and_resize"
MOST_PARTS = 1 << 11  # of a pixel, that weights count


@converts("Resize", "Upsample")
def _resize(view: OnnxNode) -> None:
    """Axis by axis: each result is made of few neighbours, the same ones in every row.

    Axes along which each result is one neighbour as it is are taken together.
    """
    view.real_dtype()
    if view.text("coordinate_transformation_mode", "") == CROPPED:
        raise view.unsupported("coordinates of the whole image", CROPPED)
    data, shape = view.operand(0), view.shape(0)
    scales, sizes = _factors(view)
    make = Maker(view)
    tables: list[Sequence[int]] = [range(n) for n in shape]
    mixed: dict[int, Array] = {}
    for axis, (scale, size) in enumerate(zip(scales, sizes, strict=True)):
        if sizes != [*shape] and (scale != 1.0 or size != shape[axis]):
            weights = axis_weights(view, shape[axis], scale, size)
            if (np.sort(weights, axis=1) == [0] * (shape[axis] - 1) + [1]).all():
                tables[axis] = weights.argmax(axis=1).tolist()
            else:
                mixed[axis] = weights
    if mixed and _interpolated(make, data, mixed, tables):
        return
    for axis, weights in mixed.items():
        data = _weighted(make, data, axis, weights)
        tables[axis] = range(len(weights))
    make.result(make.take(data, tables))


def _interpolated(
    make: Maker, data: str, mixed: Mapping[int, Array], tables: Sequence[Sequence[int]]
) -> bool:
    """An image's rows and columns by weights that are few parts of a whole; False elsewhere."""
    shape, kind = make.shape(data), make.kind(data)
    unchanged = [list(tables[axis]) == list(range(n)) for axis, n in enumerate(shape[:2])]
    if len(shape) != 4 or kind.dtype != "float32" or min(mixed) < 2 or not all(unchanged):
        return False
    parts = []
    for axis in (2, 3):
        weights = mixed.get(axis, np.eye(shape[axis])[list(tables[axis])])
        whole = next((n for n in range(1, MOST_PARTS) if _is_whole(weights * n)), None)
        if whole is None:
            return False
        parts.append(make.constant(np.rint(weights * whole), "int32"))
    node = ops.Interpolate(**make.names(), data=data, rows=parts[0], columns=parts[1])
    make.result(make.add(node, "float32"))
    return True


def _is_whole(values: Array) -> bool:
    return bool((np.abs(values - np.rint(values)) < 1e-6).all() and values.min() >= 0)


def _factors(view: OnnxNode) -> tuple[list[float], list[int]]:
    """The scale and the new size of each axis."""
    shape = view.shape(0)
    rank, place = len(shape), 2 if view.proto.op_type == "Resize" and view.draft.opset > 10 else 1
    axes = [view.axis(a, rank) for a in view.integers("axes", range(rank))]
    scales, sizes = [1.0] * rank, list(shape)
    if view.optional(place) is not None and view.constant(place, "scales").size:
        given = [float(s) for s in view.constant(place, "scales").reshape(-1)]
        for axis, scale in zip(axes, given, strict=True):
            scales[axis], sizes[axis] = scale, int(np.floor(shape[axis] * scale))
        return scales, sizes
    if "scales" in view.attributes:
        given = [float(s) for s in view.attributes["scales"]]
        return given, [int(np.floor(n * s)) for n, s in zip(shape, given, strict=True)]
    wanted = [int(s) for s in view.constant(3, "sizes").reshape(-1)]
    ratios = [size / shape[axis] for axis, size in zip(axes, wanted, strict=True)]
    policy = view.text("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        one = min(ratios) if policy == "not_larger" else max(ratios)
        ratios = [one] * len(axes)
        wanted = [int(np.floor(one * shape[axis] + 0.5)) for axis in axes]
    for axis, ratio, size in zip(axes, ratios, wanted, strict=True):
        scales[axis], sizes[axis] = ratio, size
    return scales, sizes


def _weighted(make: Maker, data: str, axis: int, weights: Array) -> str:
    """``Σ_k data[…, k, …] * weights[i, k]``, as many terms as a row has weights."""
    count = int((weights != 0).sum(axis=1).max())
    order = np.argsort(weights == 0, axis=1, kind="stable")[:, :count]
    rank, total = len(make.shape(data)), ""
    for tap in range(count):
        part = make.along(data, axis, [int(k) for k in order[:, tap]])
        factors = np.take_along_axis(weights, order[:, tap : tap + 1], axis=1)
        if (factors != 1).any():
            column = factors.reshape([-1] + [1] * (rank - axis - 1))
            part = make.binary("mul", part, make.like(column, part))
        total = make.binary("add", total, part) if total else part
    return total


@converts("DFT")
def _dft(view: OnnxNode) -> None:
    """A product with the matrix of the transform, of complex numbers as pairs, in float64."""
    dtype, shape, make = view.real_dtype(), view.shape(0), Maker(view)
    rank = len(shape)
    if view.draft.opset >= 20:
        axis = int(view.constant(2, "axis").reshape(-1)[0]) if view.optional(2) else -2
    else:
        axis = view.integer("axis", 1)
    axis, inverse = view.axis(axis, rank), bool(view.integer("inverse", 0))
    length = int(view.constant(1, "length").reshape(-1)[0]) if view.optional(1) else 0
    if axis == rank - 1 or shape[-1] not in (1, 2):
        raise view.error("real or complex numbers along the last axis", list(shape))
    matrix = _fourier((shape[axis], shape[-1]), length, inverse, bool(view.integer("onesided", 0)))
    order = [n for n in range(rank - 1) if n != axis]
    rows = make.transpose(make.cast(view.operand(0), "float64"), (*order, axis, rank - 1))
    outer = tuple(shape[n] for n in order)
    flat = make.reshape(rows, (prod(outer), shape[axis] * shape[-1]))
    columns = matrix.reshape(shape[axis] * shape[-1], -1)
    product = make.matmul(flat, make.constant(columns, "float64"))
    result = make.reshape(product, (*outer, *matrix.shape[1:]))
    back = [*order, axis, rank - 1]
    make.result(make.cast(make.transpose(result, [back.index(n) for n in range(rank)]), dtype))


@converts("STFT")
def _stft(view: OnnxNode) -> None:
    """The transforms of frames, each times the window; [B, L] are signals of real elements, too."""
    dtype, make = view.real_dtype(), Maker(view)
    shape = (*view.shape(0), 1) if len(view.shape(0)) == 2 else view.shape(0)
    if len(shape) != 3:
        raise view.error("signals of shape [B, L], [B, L, 1] or [B, L, 2]", list(shape))
    step = int(view.constant(1, "frame_step").reshape(-1)[0])
    if view.optional(3) is not None:
        length = int(view.constant(3, "frame_length").reshape(-1)[0])
    elif view.optional(2) is not None:
        length = view.shape(2)[0]
    else:
        raise view.error("a frame_length or a window", "neither")
    count = (shape[1] - length) // step + 1
    if count < 1:
        raise view.error(f"signals of at least {length} elements", list(shape))
    places = [frame * step + n for frame in range(count) for n in range(length)]
    signals = make.reshape(make.cast(view.operand(0), "float64"), shape)
    frames = make.along(signals, 1, places)
    frames = make.reshape(frames, (shape[0] * count, length, shape[2]))
    if view.optional(2) is not None:
        window = make.reshape(make.cast(view.operand(2), "float64"), (length, 1))
        frames = make.binary("mul", frames, window)
    matrix = _fourier((length, shape[2]), 0, False, bool(view.integer("onesided", 1)))
    flat = make.reshape(frames, (shape[0] * count, length * shape[2]))
    columns = make.constant(matrix.reshape(length * shape[2], -1), "float64")
    result = make.reshape(make.matmul(flat, columns), (shape[0], count, *matrix.shape[1:]))
    make.result(make.cast(result, dtype))


def _fourier(size: tuple[int, int], length: int, inverse: bool, onesided: bool) -> Array:
    """[elements of the signal, elements of the result, 1 or 2]: what unit signals become."""
    units = np.eye(size[0] * size[1]).reshape(-1, *size)
    signals = units[..., 0] + 1j * units[..., 1] if size[1] == 2 else units[..., 0]
    if inverse and onesided:
        return np.asarray(np.fft.irfft(signals, length or 2 * (size[0] - 1))[..., None])
    transform = np.fft.ifft if inverse else np.fft.fft
    result = transform(signals, length or size[0])
    if onesided:
        result = result[:, : result.shape[1] // 2 + 1]
    return np.stack([result.real, result.imag], axis=-1)
