"""numpy's functions that move elements, and those that sum them up: shapes, indices, reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import SupportsIndex, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike

from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.control import typed
from vdla.compiler.graph.types import TensorType
from vdla.compiler.tracing.arrays import FUNCTIONS, STACK, UFUNCS, Array
from vdla.compiler.tracing.errors import TraceError
from vdla.compiler.tracing.nodes import add, array, arrays, axis_of

T = TypeVar("T")
Places = Sequence[int]


def axes_of(what: str, axis: object, rank: int) -> list[int]:
    """Axes in ascending order; None stands for all."""
    several = axis if isinstance(axis, tuple | list) else (axis,)
    return sorted(
        {axis_of(what, each, rank) for each in (range(rank) if axis is None else several)}
    )


# Shapes ------------------------------------------------------------------------------------------


def reshape(x: object, shape: int | Sequence[int], what: str = "reshape") -> Array:
    """Elements in their order under another shape, in which -1 is what is left."""
    data = array(x)
    sizes = [shape] if isinstance(shape, int | np.integer) else list(map(int, shape))
    known = prod(n for n in sizes if n != -1)
    sizes = [data.size // known if n == -1 and known else n for n in sizes]
    if prod(sizes) != data.size:
        raise TraceError(what, f"a shape of {data.size} elements", sizes)
    kind = TensorType(tuple(sizes), str(data.dtype))
    return data if kind.shape == data.shape else add(what, ops.Reshape, [data], kind)


def transpose(x: object, axes: Sequence[int] | None = None) -> Array:
    """Axes in another order: by default in reverse."""
    data = array(x)
    order = range(data.ndim)[::-1] if axes is None else axes
    perm = tuple(axis_of("transpose", each, data.ndim) for each in order)
    return add("transpose", ops.Transpose, [data], str(data.dtype), perm=perm)


def swapaxes(x: object, axis1: int, axis2: int) -> Array:
    """Two axes in each other's place."""
    order = [*range(array(x).ndim)]
    first, second = (axis_of("swapaxes", each, len(order)) for each in (axis1, axis2))
    order[first], order[second] = second, first
    return transpose(x, order)


def expand_dims(x: object, axis: int | tuple[int, ...]) -> Array:
    """New axes of size 1."""
    data, count = array(x), len(axis) if isinstance(axis, tuple) else 1
    sizes = [*data.shape]
    for place in axes_of("expand_dims", axis, data.ndim + count):
        sizes.insert(place, 1)
    return reshape(data, sizes, "expand_dims")


def squeeze(x: object, axis: object = None) -> Array:
    """The array without axes of size 1: all of them, or some."""
    data = array(x)
    ones = [n for n, size in enumerate(data.shape) if size == 1]
    gone = ones if axis is None else axes_of("squeeze", axis, data.ndim)
    if not set(gone) <= set(ones):
        raise TraceError("squeeze", "axes of size 1", f"{gone} of {typed(data.type)}")
    return reshape(data, [s for n, s in enumerate(data.shape) if n not in gone], "squeeze")


def broadcast_to(x: object, shape: Sequence[int]) -> Array:
    """Elements repeated along axes of size 1, and new axes at the front."""
    data = array(x)
    wide = reshape(data, (1,) * (len(shape) - data.ndim) + data.shape, "broadcast_to")
    pairs = zip(shape, wide.shape, strict=False)
    if len(shape) != wide.ndim or any(m not in (1, n) for n, m in pairs):
        raise TraceError("broadcast_to", f"a shape that {typed(data.type)} fits", list(shape))
    places = [[0] * n if m == 1 else range(n) for n, m in zip(shape, wide.shape, strict=True)]
    return _taken("broadcast_to", wide, places)


def concatenate(parts: Sequence[object], axis: int = 0) -> Array:
    """Arrays one behind another along an axis."""
    operands = arrays("concatenate", list(parts))
    place, kind = axis_of("concatenate", axis, operands[0].ndim), str(operands[0].dtype)
    return add("concatenate", ops.Concat, operands, kind, axis=place)


def stack(parts: Sequence[object], axis: int = 0) -> Array:
    """Arrays of one shape one behind another along a new axis."""
    return concatenate([expand_dims(each, axis) for each in arrays("stack", list(parts))], axis)


def split(
    x: object, sections: SupportsIndex | Sequence[SupportsIndex], axis: int = 0
) -> list[Array]:
    """Parts of an array along an axis: so many, or between places."""
    size = array(x).shape[axis_of("split", axis, array(x).ndim)]
    try:
        return [take(x, part, axis) for part in np.split(np.arange(size), sections)]
    except ValueError as error:
        raise TraceError("split", f"equal parts of {size} elements", error) from None


# Elements of places ------------------------------------------------------------------------------


def _taken(what: str, data: Array, places: Sequence[Places]) -> Array:
    """Elements at places along each axis, all known now."""
    shape = tuple(map(len, places))
    if 0 in shape:
        raise TraceError(what, "one element at least", list(shape))
    if all(list(p) == [*range(n)] for p, n in zip(places, data.shape, strict=True)):
        return data
    flat = tuple(int(place) for table in places for place in table)
    return add(what, ops.Take, [data], str(data.dtype), shape=shape, places=flat)


def take(x: object, indices: object, axis: int | None = None) -> Array:
    """Slices along an axis at indices, which may be known only at run time."""
    data, where = reshape(x, -1) if axis is None else array(x), array(indices)
    place = axis_of("take", 0 if axis is None else axis, data.ndim)
    if where.dtype.kind not in "iu":
        actual = f"{typed(where.type)}; np.where chooses by bools"
        raise TraceError("take", "indices of integers", actual)
    if where.value is None:
        return add("take", ops.Gather, [data, where], str(data.dtype), axis=place)
    size, known = data.shape[place], where.value.reshape(-1)
    if known.size and not -size <= known.min() <= known.max() < size:
        raise TraceError("take", f"indices from {-size} to {size - 1}", known.tolist())
    places: list[Places] = [range(n) for n in data.shape]
    places[place] = [int(n) % size for n in known]
    shape = (*data.shape[:place], *where.shape, *data.shape[place + 1 :])
    return reshape(_taken("take", data, places), shape, "take")


def index(data: Array, key: object) -> Array:
    """``data[key]``: integers, slices, None, an ellipsis, and one array of indices or integers that
    are known only at run time."""
    parts = [np.asarray(p) if isinstance(p, list) else p for p in _parts(data, key)]
    single = [part for part in parts if part is not None and not isinstance(part, slice)]
    if len(single) > 1 and any(getattr(part, "ndim", 0) for part in single):
        raise TraceError("index", "one array of indices alone", "others; index one after the other")
    axis = 0
    for part in parts:
        if part is None:
            data = expand_dims(data, axis)
        elif isinstance(part, slice):
            places: list[Places] = [range(n) for n in data.shape]
            places[axis] = places[axis][part]
            data = _taken("slice", data, places)
        else:
            data = take(data, part, axis)
            axis += getattr(part, "ndim", 0) - 1
        axis += 1
    return data


def _parts(data: Array, key: object) -> list[object]:
    """The parts of an index, one for each axis and for each new one."""
    parts = [*key] if isinstance(key, tuple) else [key]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if used > data.ndim:
        raise TraceError("index", f"at most {data.ndim} indices of {typed(data.type)}", used)
    at = next((n for n, part in enumerate(parts) if part is Ellipsis), len(parts))
    parts[at : at + 1] = [slice(None)] * (data.ndim - used)
    return parts


def set_at(x: T, indices: object, values: object) -> T:
    """A copy of ``x`` in which ``values`` are the slices at ``indices`` along the first axis."""
    if not STACK.traces:
        result = np.array(x)
        result[np.asarray(indices)] = values
        return cast("T", result)
    (data, new), where = arrays("set_at", (x, values)), array(indices)
    if where.dtype.kind not in "iu" or not data.ndim:
        raise TraceError("set_at", "indices of integers", typed(where.type))
    slices = broadcast_to(new, (*where.shape, *data.shape[1:]))
    places = reshape(where.astype("int64"), (*where.shape, 1))
    return cast("T", add("set_at", ops.ScatterND, [data, places, slices], str(data.dtype)))


# Many elements as one ----------------------------------------------------------------------------


def _reduction(function: Callable[..., object], name: str) -> Callable[..., Array]:
    """A traced form of one of numpy's sums and extremes, in the element type that numpy gives."""

    def reduce(x: object, axis: object = None, *, keepdims: bool = False) -> Array:
        data = array(x)
        kind, axes = (
            str(np.asarray(function(np.ones(1, data.dtype))).dtype),
            axes_of(name, axis, data.ndim),
        )
        fields = {"function": name, "axes": tuple(axes), "keepdims": keepdims}
        return add(name, ops.Reduce, [data.astype(kind)], kind, **fields) if axes else data

    return reduce


def _place(name: str) -> Callable[..., Array]:
    """A traced form of argmax or argmin."""

    def find(x: object, axis: int | None = None, *, keepdims: bool = False) -> Array:
        data = reshape(x, -1) if axis is None else array(x)
        place = axis_of(name, 0 if axis is None else axis, data.ndim)
        result = add(name, ops.ArgReduce, [data], "int64", axis=place, largest=name == "argmax")
        return result if keepdims else squeeze(result, place)

    return find


def cumsum(x: object, axis: int | None = None) -> Array:
    """Sum of all elements up to each one."""
    data = reshape(x, -1) if axis is None else array(x)
    place = axis_of("cumsum", 0 if axis is None else axis, data.ndim)
    kind = str(np.cumsum(np.ones(1, data.dtype)).dtype)
    return add("cumsum", ops.Cumulate, [data.astype(kind)], kind, function="sum", axis=place)


def full_like(x: Array, fill: float, dtype: DTypeLike | None = None) -> Array:
    """An array of one value, of another's shape."""
    return array(np.full(x.shape, fill, x.dtype if dtype is None else dtype))


def tested(function: Callable[..., Array]) -> Callable[..., Array]:
    """Whether all elements, or any, are true, by their least or their largest one."""
    return lambda x, axis=None: function(array(x).astype("int8"), axis).astype(bool)


def dot(a: object, b: object) -> Array:
    """A product of matrices or vectors; of a number with whatever it is, element by element."""
    operands = arrays("dot", (a, b))
    ranks = [each.ndim for each in operands]
    if max(ranks) > 2:
        raise TraceError("dot", "arrays of two axes at most", f"{max(ranks)}; np.matmul takes more")
    return UFUNCS[np.matmul if min(ranks) else np.multiply](*operands)


SUM, PROD, MEAN, MAX, MIN = (
    _reduction(each, each.__name__.removeprefix("a"))
    for each in (np.sum, np.prod, np.mean, np.amax, np.amin)
)
FUNCTIONS |= {
    Array.__getitem__: index, np.reshape: reshape, np.transpose: transpose,
    np.swapaxes: swapaxes, np.expand_dims: expand_dims, np.squeeze: squeeze,
    np.broadcast_to: broadcast_to, np.concatenate: concatenate, np.stack: stack, np.split: split,
    np.take: take, np.ravel: lambda x: reshape(x, -1, "ravel"), np.cumsum: cumsum,
    np.sum: SUM, np.prod: PROD, np.mean: MEAN, np.max: MAX, np.min: MIN, np.amax: MAX,
    np.amin: MIN, np.all: tested(MIN), np.any: tested(MAX), np.argmax: _place("argmax"),
    np.argmin: _place("argmin"), np.full_like: full_like,
    np.zeros_like: lambda x, dtype=None: full_like(x, 0, dtype),
    np.ones_like: lambda x, dtype=None: full_like(x, 1, dtype),
    np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size,
    np.dot: dot,
}  # fmt: skip
