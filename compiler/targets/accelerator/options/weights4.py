"""Weights of 4 bits: constants that lie in DRAM as nibbles, and the LOAD that widens them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.types import Array
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.accelerator.description.declared import Declared
from vdla.compiler.targets.accelerator.description.intrinsics import add_intrinsics
from vdla.compiler.targets.accelerator.description.lowering import Emit, Lowering, declare
from vdla.compiler.targets.accelerator.description.memory import WGT, entry_shape
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.instructions import Load
from vdla.isa.options.weights4 import (
    INT4_MAX,
    INT4_MIN,
    NIBBLE_BITS,
    OPTIONS,
    WGT4,
    has_weights4,
)

MASK = (1 << NIBBLE_BITS) - 1


def fits(weights: Iterable[Array], config: Config) -> bool:
    """Whether a config loads some weights as nibbles: it has WGT4, and they are int4."""
    if not has_weights4(config):
        return False
    return all(each.min() >= INT4_MIN and each.max() <= INT4_MAX for each in weights)


def in_dram(tiles: Array, *, weights4: bool) -> Array:
    """Tiles of weights [..., 2 n] as they lie in DRAM: as int8, or as nibbles in bytes [..., n],
    the first of two in the low one."""
    if not weights4:
        return tiles
    nibbles = tiles.astype(np.uint8) & MASK
    return nibbles[..., ::2] | nibbles[..., 1::2] << NIBBLE_BITS


def weights(shape: Sequence[int], name: str, *, weights4: bool) -> tuple[Tensor, Tensor]:
    """A placeholder of weights of a shape, and the same as int8: itself, or its nibbles widened."""
    if not weights4:
        data = te.placeholder(tuple(shape), "int8", name)
        return data, data
    data = te.placeholder((*shape[:-1], shape[-1] // 2), "uint8", name)
    return data, _widened(data, f"{name}_tiles")


def hold_weights(s: Schedule, tiles: Tensor, reader: Tensor) -> tuple[Tensor, str]:
    """Places weights as int8, which ``reader`` multiplies by, in WGT; the stage that loads them and
    the name of its intrinsic."""
    if tiles.op is None:
        return s.cache_read(tiles, WGT, [reader]), "load_wgt"
    s[tiles].set_scope(WGT)
    return tiles, "load_wgt4"


def _widened(data: Tensor, name: str) -> Tensor:
    """The weights of bytes, int8 of twice as many in the last dimension."""
    *outer, last = data.shape

    def weight(*at: Expr) -> Expr:
        *place, i = at
        byte = data[(*place, te.floordiv(i, 2))].astype("int32")
        nibble = byte >> te.floormod(i, 2) * NIBBLE_BITS
        return ((nibble - INT4_MIN & MASK) + INT4_MIN).astype("int8")

    return te.compute((*outer, 2 * last), weight, name)


def _load_nibbles(name: str, config: Config) -> TensorIntrin:
    """``dst = src``, of an entry of nibbles in DRAM."""
    src, _ = weights(entry_shape(WGT, config), "src", weights4=True)
    dst = _widened(src, "dst")
    emit = Emit(Load, {"memory": WGT4}, {"dst": "dst", "src": "src"})
    return declare(name, dst, (), {dst: WGT, src: "global"}, Lowering((emit,)), config)


(_OPTION,) = OPTIONS
add_intrinsics(
    Declared("load_wgt4", "a WGT tile of int4 from DRAM, widened", _load_nibbles, _OPTION),
    before="load_acc",
)
