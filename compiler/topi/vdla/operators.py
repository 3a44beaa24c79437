"""From a graph node to an accelerator operator: its shape in blocks, its tensors, its constants.

``operator`` answers with an :class:`Operator`, which knows how to build its expression, choose its
tile and schedule it; whoever lowers it needs to know no operator by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.compiler import te
from vdla.compiler.graph import ir
from vdla.compiler.graph.ir import Graph, Node, add_terms
from vdla.compiler.schedule import Schedule
from vdla.compiler.topi.vdla.conv2d import ConvShape, Residual, conv2d, schedule_conv2d
from vdla.compiler.topi.vdla.elementwise import AddShape, add, schedule_add
from vdla.compiler.topi.vdla.pool import PoolShape, pool, schedule_pool
from vdla.compiler.topi.vdla.tiling import Shape, Tile, TilingError, best, geometry
from vdla.compiler.topi.vdla.user import UserShape, UserTile, schedule_user
from vdla.compiler.tune.records import BUNDLED, Records
from vdla.compiler.user import registered
from vdla.isa.config import Config
from vdla.isa.numbers import pack_scale

Array = NDArray[Any]


@dataclass(frozen=True)
class Operator:
    """One node, ready to be scheduled.

    ``tensors`` maps the expression's placeholders and its result ``out`` to DRAM tensors;
    ``constants`` are those that the accelerator alone reads, as it wants them. ``macs`` and
    ``dram_bytes`` are the node's own: no padding, every byte once.
    """

    node: Node
    shape: Shape | UserShape
    tensors: Mapping[str, str]
    constants: Mapping[str, Array]
    macs: int
    dram_bytes: int

    def tile(self, config: Config, vthreads: int, records: Records | None = BUNDLED) -> Tile:
        """The default tile, for as many of the threads as there are tiles for.

        Raises:
            TilingError: the buffers can't hold one tile.
        """
        if isinstance(self.shape, UserShape):
            return UserTile()
        return default_tile(self.shape, config, vthreads, records)


def default_tile(
    shape: Shape, config: Config, vthreads: int, records: Records | None = BUNDLED
) -> Tile:
    """The best recorded tile of a shape, else the analytic model's.

    There are fewer threads where the work can't be shared out. Layers of one geometry share the
    search, whatever their zero points.
    """
    return _default_tile(geometry(shape), config, vthreads, records)


@lru_cache
def _default_tile(shape: Shape, config: Config, vthreads: int, records: Records | None) -> Tile:
    for threads in range(vthreads, 0, -1):
        tuned = records.tile(shape, config, threads) if records else None
        if tuned is not None:
            return tuned
        try:
            return best(shape, config, threads)
        except TilingError:  # not enough tiles, or not enough room for so many
            if threads == 1:
                raise
    raise ValueError(f"vthreads: expected at least 1, found {vthreads}")


@lru_cache
def schedule(shape: Shape | UserShape, tile: Tile, config: Config) -> Schedule:
    """The scheduled expression of a shape."""
    if isinstance(shape, UserShape):
        return schedule_user(shape, config)
    if isinstance(shape, ConvShape):
        return schedule_conv2d(conv2d(shape, config), shape, tile, config)
    if isinstance(shape, PoolShape):
        return schedule_pool(pool(shape, config), shape, tile, config)
    return schedule_add(add(shape, config), tile, config)


def operator(node: Node, graph: Graph, config: Config) -> Operator:
    """The accelerator operator of a node that was placed there."""
    return _MAKERS[type(node)](node, graph, config)


# Convolution and dense --------------------------------------------------------------------------


def _conv(node: ir.QConv2d, graph: Graph, config: Config) -> Operator:
    n, c, h, w = graph.tensors[node.data].shape
    weight = graph.constants[node.weight]
    return _convolution(node, graph, config, (n, c, h, w), weight, node)


def _dense(node: ir.QDense, graph: Graph, config: Config) -> Operator:
    n, c = graph.tensors[node.data].shape[:2]
    weight = graph.constants[node.weight][:, :, None, None]
    return _convolution(node, graph, config, (n, c, 1, 1), weight, None)


def _convolution(
    node: ir.QConv2d | ir.QDense,
    graph: Graph,
    config: Config,
    image: tuple[int, int, int, int],
    weight: Array,
    window: ir.QConv2d | None,
) -> Operator:
    block, (n, c, h, w) = config.channel_block, image
    groups = window.groups if window else 1
    dense, merged = merge_groups(weight, groups, block)
    outs, ins, kh, kw = dense.shape[1:]
    residual = _residual(node) if isinstance(node, ir.QConv2dAdd) else None
    shape = ConvShape(
        batch=n,
        groups=merged,
        inputs=-(-ins // block),
        outputs=-(-outs // block),
        height=h,
        width=w,
        kernel=(kh, kw),
        strides=window.strides if window else (1, 1),
        pads=window.pads if window else (0, 0, 0, 0),
        dilations=window.dilations if window else (1, 1),
        in_zero=node.in_zp,
        zero=node.out_zp,
        low=node.lo,
        high=node.hi,
        residual=residual,
    )
    bias = graph.constants[node.bias].astype(np.int64)
    bias = bias - node.in_zp * weight.astype(np.int64).reshape(len(weight), -1).sum(1)
    words = np.array([pack_scale(s) for s in node.scale], np.int64)
    constants = {
        "weight": pack_weight(dense, shape, config),
        "bias": _per_channel(bias, shape, config),
        "scale": _per_channel(words, shape, config),
    }
    tensors = {"data": node.data, "out": node.output}
    if isinstance(node, ir.QConv2dAdd):
        tensors["residual"] = node.residual
        _, _, k = add_terms(*node.add_scales)
        constants["out_scale"] = np.full((1, config.block_out), pack_scale(2.0**-k), np.int32)
    pixels = n * shape.out_height * shape.out_width
    touched = _touched(shape.kernel, shape.strides, (h, w), (shape.out_height, shape.out_width))
    moved = n * c * touched + weight.size + pixels * len(weight) * (2 if residual else 1)
    return _finish(node, shape, tensors, constants, pixels * weight.size, moved)


def merge_groups(weight: Array, groups: int, block: int) -> tuple[Array, int]:
    """Weights [groups, O, I, KH, KW] with as few groups merged as fills whole channel blocks.

    A depthwise convolution becomes one group per block, its weights on the diagonal.
    """
    outs, ins = weight.shape[0] // groups, weight.shape[1]
    merged = next(
        (
            k
            for k in range(1, groups + 1)
            if groups % k == 0 and (k * outs) % block == 0 and (k * ins) % block == 0
        ),
        groups,
    )
    count = groups // merged
    dense = np.zeros((count, merged * outs, merged * ins, *weight.shape[2:]), weight.dtype)
    for g in range(groups):
        at, k = divmod(g, merged)
        rows, cols = slice(k * outs, (k + 1) * outs), slice(k * ins, (k + 1) * ins)
        dense[at, rows, cols] = weight[g * outs : (g + 1) * outs]
    return dense, count


def pack_weight(dense: Array, shape: ConvShape, config: Config) -> Array:
    """[groups, O, I, KH, KW] to tiles [g, o, so, ci, si, KH, KW, block_out, block_in]."""
    bi, bo, block = config.block_in, config.block_out, config.channel_block
    full = np.zeros(
        (shape.groups, shape.outputs * block, shape.inputs * block, *shape.kernel), np.int8
    )
    full[:, : dense.shape[1], : dense.shape[2]] = dense
    tiles = full.reshape(
        shape.groups, shape.outputs, block // bo, bo, shape.inputs, block // bi, bi, *shape.kernel
    )
    return np.ascontiguousarray(tiles.transpose(0, 1, 2, 4, 5, 7, 8, 3, 6))


def _per_channel(values: Array, shape: ConvShape, config: Config) -> Array:
    """One int32 per output channel, as vectors of block_out lanes; padded channels get 0."""
    per_group = shape.outputs * config.channel_block
    full = np.zeros((shape.groups, per_group), np.int64)
    full[:, : len(values) // shape.groups] = values.reshape(shape.groups, -1)
    return full.reshape(-1, config.block_out).astype(np.int32)


def _residual(node: ir.QConv2dAdd) -> Residual:
    a, b, _ = add_terms(*node.add_scales)
    return Residual(a, b, node.res_zp, node.add_zp, node.add_lo, node.add_hi)


def _touched(
    kernel: tuple[int, int], strides: tuple[int, int], size: tuple[int, int], out: tuple[int, int]
) -> int:
    """Input pixels that some window looks at, at most the whole image."""
    seen = [
        min(n, o * k if k < s else (o - 1) * s + k)
        for k, s, n, o in zip(kernel, strides, size, out, strict=True)
    ]
    return seen[0] * seen[1]


# Pools and additions ----------------------------------------------------------------------------


def _max_pool(node: ir.QMaxPool, graph: Graph, config: Config) -> Operator:
    shape = _pool_shape(node, graph, config, "max", (0, 0, -128, 127))
    return _pooling(node, graph, config, shape, 1.0)


def _avg_pool(node: ir.QAvgPool, graph: Graph, config: Config) -> Operator:
    finish = (node.in_zp, node.out_zp, node.lo, node.hi)
    shape = _pool_shape(node, graph, config, "sum", finish)
    return _pooling(node, graph, config, shape, node.scale)


def _pool_shape(
    node: ir.QMaxPool | ir.QAvgPool,
    graph: Graph,
    config: Config,
    kind: str,
    finish: tuple[int, int, int, int],
) -> PoolShape:
    n, c, h, w = graph.tensors[node.data].shape
    return PoolShape(
        kind,
        n,
        -(-c // config.channel_block),
        h,
        w,
        node.kernel,
        node.strides,
        node.pads,
        node.dilations,
        *finish,
    )


def _pooling(
    node: ir.QMaxPool | ir.QAvgPool, graph: Graph, config: Config, shape: PoolShape, scale: float
) -> Operator:
    constants = {"scale": np.full((1, config.block_out), pack_scale(scale), np.int32)}
    tensors = {"data": node.data, "out": node.output}
    moved = _elements(graph, node.data) + _elements(graph, node.output)
    return _finish(node, shape, tensors, constants, 0, moved)


def _addition(node: ir.QAdd, graph: Graph, config: Config) -> Operator:
    a, b, k = add_terms(*node.scales)
    physical = int(np.prod(graph.tensors[node.output].physical))
    shape = AddShape(
        physical // config.block_out, a, b, node.a_zp, node.b_zp, node.out_zp, node.lo, node.hi
    )
    constants = {"scale": np.full((1, config.block_out), pack_scale(2.0**-k), np.int32)}
    tensors = {"a": node.a, "b": node.b, "out": node.output}
    return _finish(node, shape, tensors, constants, 0, 3 * _elements(graph, node.output))


def _custom(node: ir.Custom, graph: Graph, config: Config) -> Operator:
    types = tuple((graph.tensors[n].shape, graph.tensors[n].dtype) for n in node.operands)
    user = registered(node.operator)
    shape = UserShape(user, types, node.settings)
    inputs, output = user.tensors(types, json.loads(node.settings))
    params = te.create_prim_func(inputs, output).params
    names = (*node.operands, node.output)
    tensors = {p.name: name for p, name in zip(params, names, strict=True)}
    moved = sum(graph.tensors[n].nbytes for n in (*node.operands, node.output))
    return _finish(node, shape, tensors, {}, 0, moved)


def _elements(graph: Graph, name: str) -> int:
    """Elements of a tensor without channel padding."""
    return int(np.prod(graph.tensors[name].shape))


def _finish(
    node: Node,
    shape: Shape | UserShape,
    tensors: Mapping[str, str],
    constants: Mapping[str, Array],
    macs: int,
    dram_bytes: int,
) -> Operator:
    names = {key: f"{node.name}%{key}" for key in constants}
    return Operator(
        node,
        shape,
        {**tensors, **names},
        {names[key]: array for key, array in constants.items()},
        macs,
        dram_bytes,
    )


_MAKERS: dict[type[Node], Callable[[Any, Graph, Config], Operator]] = {
    ir.QConv2d: _conv,
    ir.QConv2dAdd: _conv,
    ir.QDense: _dense,
    ir.QMaxPool: _max_pool,
    ir.QAvgPool: _avg_pool,
    ir.QAdd: _addition,
    ir.Custom: _custom,
}
