"""The meaning of every node in numpy: the oracle for the accelerator and for host code.

Integer nodes are exact. Sums of products run through float64 matrix products, which are exact here:
an int8 convolution's partial sums stay far below 2**53.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from vdla.compiler.graph import ir
from vdla.compiler.graph.infer import window_extent
from vdla.compiler.graph.ir import Array, Graph, Node, TensorType, add_terms, pool_scale
from vdla.compiler.graph.numbers import dequantize, pack_scales, quantize, rq
from vdla.compiler.te import create_prim_func
from vdla.compiler.tir import interp
from vdla.compiler.user import registered
from vdla.isa.numbers import pack_scale
from vdla.runtime.external import Session

Rule = Callable[[Any, Sequence[Array], TensorType], Array]


def evaluate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor's value, by name; blocked tensors in their physical shape."""
    values = {**graph.constants, **{name: inputs[name] for name in graph.inputs}}
    for node in graph.nodes:
        operands = [values[name] for name in node.inputs]
        values[node.output] = evaluate_node(graph, node, operands)
    return values


def evaluate_node(graph: Graph, node: Node, operands: Sequence[Array]) -> Array:
    """The value ``node`` writes when it reads ``operands`` (physical shapes in and out)."""
    kind = graph.tensors[node.output]
    if isinstance(node, ir.Fused):
        for part in node.parts:
            operands = [evaluate_node(graph, part, operands)]
        return operands[0]
    if isinstance(node, ir.Pack | ir.Unpack):
        return RULES[type(node)](node, operands, kind)
    logical = [
        unpack(value, graph.tensors[name].shape) if graph.tensors[name].block else value
        for name, value in zip(node.inputs, operands, strict=True)
    ]
    result = RULES[type(node)](node, logical, kind)
    return pack(result, kind.block) if kind.block else result


# --- layout --------------------------------------------------------------------------------------


def pack(x: Array, block: int) -> Array:
    """[N, C, H, W] or [N, C] to [N, ceil(C/block), H, W, block]; zeros fill the last block."""
    n, c = x.shape[:2]
    image = x.reshape(n, c, *(x.shape[2:] or (1, 1)))
    blocks = -(-c // block)
    padded = np.zeros((n, blocks * block, *image.shape[2:]), x.dtype)
    padded[:, :c] = image
    split = padded.reshape(n, blocks, block, *image.shape[2:])
    return np.ascontiguousarray(split.transpose(0, 1, 3, 4, 2))


def unpack(x: Array, shape: Sequence[int]) -> Array:
    """The inverse of :func:`pack` for a tensor of logical ``shape``."""
    n, blocks, h, w, block = x.shape
    channels = x.transpose(0, 1, 4, 2, 3).reshape(n, blocks * block, h, w)[:, : shape[1]]
    return np.ascontiguousarray(channels).reshape(shape)


# --- windows -------------------------------------------------------------------------------------


def window_views(x: Array, node: ir.Window, kernel: Sequence[int], pad: float) -> Array:
    """[N, C, KH, KW, OH, OW]: what each output place sees under its window."""
    top, left, bottom, right = node.pads
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=pad)
    n, c, h, w = padded.shape
    (sh, sw), (dh, dw) = node.strides, node.dilations
    oh = window_extent(h, kernel[0], sh, 0, 0, dh)
    ow = window_extent(w, kernel[1], sw, 0, 0, dw)
    s = padded.strides
    return np.lib.stride_tricks.as_strided(
        padded,
        (n, c, kernel[0], kernel[1], oh, ow),
        (s[0], s[1], s[2] * dh, s[3] * dw, s[2] * sh, s[3] * sw),
        writeable=False,
    )


def _convolve(x: Array, weight: Array, node: Any) -> Array:
    """Σ data * weight, in the operands' float type."""
    o, i, kh, kw = weight.shape
    views = window_views(x, node, (kh, kw), 0)
    n, _, _, _, oh, ow = views.shape
    result = np.empty((n, o, oh, ow), x.dtype)
    per = o // node.groups
    for g in range(node.groups):
        columns = views[:, g * i : (g + 1) * i].reshape(n, i * kh * kw, oh * ow)
        matrix = weight[g * per : (g + 1) * per].reshape(per, -1)
        result[:, g * per : (g + 1) * per] = (matrix @ columns).reshape(n, per, oh, ow)
    return result


def _depthwise(x: Array, weight: Array, node: Any) -> Array:
    o, _, kh, kw = weight.shape
    views = window_views(x, node, (kh, kw), 0)
    if o != x.shape[1]:
        views = np.repeat(views, o // x.shape[1], axis=1)
    total = np.zeros((views.shape[0], o, *views.shape[4:]), x.dtype)
    for r in range(kh):
        for s in range(kw):
            total += views[:, :, r, s] * weight[None, :, 0, r, s, None, None]
    return total


def _accumulate(x: Array, weight: Array, node: Any) -> Array:
    depthwise = weight.shape[1] == 1 and node.groups == x.shape[1]
    return _depthwise(x, weight, node) if depthwise else _convolve(x, weight, node)


# --- float ---------------------------------------------------------------------------------------


def _conv(node: ir.Conv2d, args: Sequence[Array], kind: TensorType) -> Array:
    total = _accumulate(args[0], args[1], node)
    return total + args[2][:, None, None] if len(args) > 2 else total


def _dense(node: ir.Dense, args: Sequence[Array], kind: TensorType) -> Array:
    total = args[0].reshape(args[0].shape[:2]) @ args[1].T
    return total + args[2] if len(args) > 2 else total


def _max_pool(node: ir.MaxPool, args: Sequence[Array], kind: TensorType) -> Array:
    return np.asarray(window_views(args[0], node, node.kernel, -np.inf).max(axis=(2, 3)))


def _avg_pool(node: ir.AvgPool, args: Sequence[Array], kind: TensorType) -> Array:
    total = window_views(args[0], node, node.kernel, 0).sum(axis=(2, 3), dtype=np.float32)
    return np.asarray(total / window_counts(node, args[0].shape).astype(np.float32))


def window_counts(node: Any, shape: Sequence[int]) -> Array:
    """[OH, OW]: the divisor of an average pool at each output place."""
    ones = np.ones((1, 1, *shape[2:]))
    views = window_views(ones, node, node.kernel, float(node.include_pad))
    return np.asarray(views.sum(axis=(2, 3))[0, 0])


def _batch_norm(node: ir.BatchNorm, args: Sequence[Array], kind: TensorType) -> Array:
    column = (-1, *(1,) * (args[0].ndim - 2))
    return np.asarray(args[0] * args[1].reshape(column) + args[2].reshape(column))


def _softmax(node: ir.Softmax, args: Sequence[Array], kind: TensorType) -> Array:
    e = np.exp(args[0] - args[0].max(axis=node.axis, keepdims=True))
    return np.asarray(e / e.sum(axis=node.axis, keepdims=True))


F32 = np.float32
UNARY: dict[str, Callable[[Array, Any], Any]] = {
    "sigmoid": lambda x, n: F32(1) / (F32(1) + np.exp(-x)),
    "tanh": lambda x, n: np.tanh(x),
    "exp": lambda x, n: np.exp(x),
    "log": lambda x, n: np.log(x),
    "sqrt": lambda x, n: np.sqrt(x),
    "abs": lambda x, n: np.abs(x),
    "neg": lambda x, n: -x,
    "floor": lambda x, n: np.floor(x),
    "erf": lambda x, n: np.vectorize(math.erf, otypes=[F32])(x),
    "leaky_relu": lambda x, n: np.maximum(x, F32(0)) + F32(n.alpha) * np.minimum(x, F32(0)),
    "elu": lambda x, n: np.where(x > 0, x, F32(n.alpha) * (np.exp(np.minimum(x, 0)) - F32(1))),
    "hard_sigmoid": lambda x, n: np.clip(F32(n.alpha) * x + F32(n.beta), F32(0), F32(1)),
    "hard_swish": lambda x, n: x * np.clip(x / F32(6) + F32(0.5), F32(0), F32(1)),
}
BINARY: dict[str, Callable[[Array, Array], Any]] = {
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "max": np.maximum,
    "min": np.minimum,
    "prelu": lambda a, b: np.maximum(a, F32(0)) + b * np.minimum(a, F32(0)),
}


def _unary(node: ir.Unary, args: Sequence[Array], kind: TensorType) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(UNARY[node.function](args[0], node), F32)


def _binary(node: ir.Binary, args: Sequence[Array], kind: TensorType) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(BINARY[node.function](args[0], args[1]), F32)


# --- integer -------------------------------------------------------------------------------------


def requantize(acc: Array, words: Array | int, zero_point: int, lo: int, hi: int) -> Array:
    """``clip(rq(acc, words) + zero_point, lo, hi)`` as int8."""
    return np.clip(rq(acc, words) + zero_point, lo, hi).astype(np.int8)


def _centered(x: Array, zero_point: int) -> Array:
    return x.astype(np.float64) - zero_point


def _qconv(node: ir.QConv2d, args: Sequence[Array], kind: TensorType) -> Array:
    total = _accumulate(_centered(args[0], node.in_zp), args[1].astype(np.float64), node)
    acc = total.astype(np.int64) + args[2][:, None, None]
    words = pack_scales(node.scale)[:, None, None]
    return requantize(acc, words, node.out_zp, node.lo, node.hi)


def _qconv_add(node: ir.QConv2dAdd, args: Sequence[Array], kind: TensorType) -> Array:
    value = _qconv(node, args, kind)
    zps = (node.out_zp, node.res_zp, node.add_zp)
    return _fixed_add(value, args[3], node.add_scales, zps, (node.add_lo, node.add_hi))


def _fixed_add(
    a: Array, b: Array, scales: tuple[float, float], zps: tuple[int, int, int], clip: ir.Pair
) -> Array:
    term_a, term_b, k = add_terms(*scales)
    total = (a.astype(np.int64) - zps[0]) * term_a + (b.astype(np.int64) - zps[1]) * term_b
    return requantize(total, pack_scale(2.0**-k), zps[2], *clip)


def _qadd(node: ir.QAdd, args: Sequence[Array], kind: TensorType) -> Array:
    zps = (node.a_zp, node.b_zp, node.out_zp)
    return _fixed_add(args[0], args[1], node.scales, zps, (node.lo, node.hi))


def _qdense(node: ir.QDense, args: Sequence[Array], kind: TensorType) -> Array:
    data = _centered(args[0].reshape(args[0].shape[:2]), node.in_zp)
    acc = (data @ args[1].T.astype(np.float64)).astype(np.int64) + args[2]
    return requantize(acc, pack_scales(node.scale), node.out_zp, node.lo, node.hi)


def _qmax_pool(node: ir.QMaxPool, args: Sequence[Array], kind: TensorType) -> Array:
    return np.asarray(window_views(args[0], node, node.kernel, -128).max(axis=(2, 3)))


def pool_words(node: ir.QAvgPool, shape: Sequence[int]) -> Array:
    """[OH, OW]: the packed scale of an average pool at each output place."""
    counts = window_counts(node, shape)
    scales = [pool_scale(node.in_scale, node.out_scale, max(int(c), 1)) for c in counts.flat]
    return pack_scales(scales).reshape(counts.shape)


def _qavg_pool(node: ir.QAvgPool, args: Sequence[Array], kind: TensorType) -> Array:
    total = window_views(_centered(args[0], node.in_zp), node, node.kernel, 0).sum(axis=(2, 3))
    words = pool_words(node, args[0].shape)
    return requantize(total.astype(np.int64), words, node.out_zp, node.lo, node.hi)


def _qconcat(node: ir.QConcat, args: Sequence[Array], kind: TensorType) -> Array:
    parts = [
        requantize(x.astype(np.int64) - zp, pack_scale(scale), node.out_zp, node.lo, node.hi)
        for x, scale, zp in zip(args, node.scales, node.zps, strict=True)
    ]
    return np.concatenate(parts, axis=node.axis)


def _qclip(node: ir.QClip, args: Sequence[Array], kind: TensorType) -> Array:
    centered = args[0].astype(np.int64) - node.in_zp
    return requantize(centered, pack_scale(node.scale), node.out_zp, node.lo, node.hi)


# --- boundary ------------------------------------------------------------------------------------


def along(values: Sequence[float] | Sequence[int], axis: int | None, rank: int) -> Array:
    """Per-channel values shaped to broadcast along ``axis`` of a tensor of ``rank``."""
    array = np.asarray(values)
    return (
        array.reshape([-1 if i == axis else 1 for i in range(rank)]) if axis is not None else array
    )


def _quantize(node: ir.Quantize, args: Sequence[Array], kind: TensorType) -> Array:
    scale, zero = (along(v, node.axis, args[0].ndim) for v in (node.scale, node.zero_point))
    return quantize(args[0], scale, zero, kind.dtype).reshape(kind.shape)


def _dequantize(node: ir.Dequantize, args: Sequence[Array], kind: TensorType) -> Array:
    scale, zero = (along(v, node.axis, args[0].ndim) for v in (node.scale, node.zero_point))
    return dequantize(args[0], scale, zero).reshape(kind.shape)


def _im2col(node: ir.Im2col, args: Sequence[Array], kind: TensorType) -> Array:
    return window_views(args[0], node, node.kernel, node.fill).reshape(kind.shape)


def _custom(node: ir.Custom, args: Sequence[Array], kind: TensorType) -> Array:
    """A user's expression, interpreted."""
    types = [(a.shape, str(a.dtype)) for a in args]
    inputs, output = registered(node.operator).tensors(types, json.loads(node.settings))
    return interp.evaluate(create_prim_func(inputs, output), *args)[0]


RULES: dict[type[Node], Rule] = {
    ir.Conv2d: _conv,
    ir.Dense: _dense,
    ir.Add: lambda node, args, kind: args[0] + args[1],
    ir.Relu: lambda node, args, kind: np.maximum(args[0], np.float32(0)),
    ir.Clip: lambda node, args, kind: np.clip(args[0], np.float32(node.low), np.float32(node.high)),
    ir.MaxPool: _max_pool,
    ir.AvgPool: _avg_pool,
    ir.Reshape: lambda node, args, kind: args[0].reshape(kind.shape),
    ir.Transpose: lambda node, args, kind: np.ascontiguousarray(args[0].transpose(node.perm)),
    ir.Concat: lambda node, args, kind: np.concatenate(args, axis=node.axis),
    ir.BatchNorm: _batch_norm,
    ir.Softmax: _softmax,
    ir.Unary: _unary,
    ir.Binary: _binary,
    ir.QConv2d: _qconv,
    ir.QConv2dAdd: _qconv_add,
    ir.QDense: _qdense,
    ir.QAdd: _qadd,
    ir.QMaxPool: _qmax_pool,
    ir.QAvgPool: _qavg_pool,
    ir.QConcat: _qconcat,
    ir.QClip: _qclip,
    ir.QReshape: lambda node, args, kind: args[0].reshape(kind.shape),
    ir.QTranspose: lambda node, args, kind: np.ascontiguousarray(args[0].transpose(node.perm)),
    ir.Quantize: _quantize,
    ir.Dequantize: _dequantize,
    ir.FlipSign: lambda node, args, kind: (args[0].view(np.uint8) ^ 0x80).view(kind.dtype),
    ir.Im2col: _im2col,
    ir.External: lambda node, args, kind: Session(node.model, node.name).run(args),
    ir.Custom: _custom,
    ir.Pack: lambda node, args, kind: pack(args[0], node.block),
    ir.Unpack: lambda node, args, kind: unpack(args[0], kind.shape),
}


def iter_layers(graph: Graph) -> Iterator[Node]:
    """The nodes that do integer arithmetic: what a per-layer report lists."""
    others = ir.Quantize | ir.Foreign
    return (n for n in graph.nodes if n.op.startswith("Q") and not isinstance(n, others))
