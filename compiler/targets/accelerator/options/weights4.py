"""Weights of 4 bits: constants that lie in DRAM as nibbles, and the LOAD that widens them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.compiler import te
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


def fits(weights: NDArray[Any], config: Config) -> bool:
    """Whether a config loads weights as nibbles: it has WGT4, and they are int4."""
    return has_weights4(config) and bool(INT4_MIN <= weights.min() and weights.max() <= INT4_MAX)


def packed(tiles: NDArray[Any]) -> NDArray[np.uint8]:
    """Weights [..., 2 n] of int4 as bytes [..., n], the first of two in the low nibble."""
    nibbles = tiles.astype(np.uint8) & MASK
    return nibbles[..., ::2] | nibbles[..., 1::2] << NIBBLE_BITS


def packed_placeholder(shape: tuple[int, ...], name: str) -> Tensor:
    """A placeholder of the bytes of weights of a shape."""
    *outer, last = shape
    return te.placeholder((*outer, last // 2), "uint8", name)


def widened(data: Tensor, name: str) -> Tensor:
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
    src = packed_placeholder(entry_shape(WGT, config), "src")
    dst = widened(src, "dst")
    emit = Emit(Load, {"memory": WGT4}, {"dst": "dst", "src": "src"})
    return declare(name, dst, (), {dst: WGT, src: "global"}, Lowering((emit,)), config)


(_OPTION,) = OPTIONS
add_intrinsics(
    Declared("load_wgt4", "a WGT tile of int4 from DRAM, widened", _load_nibbles, _OPTION),
    before="load_acc",
)
