"""Products by weights of few bits that lie packed in bytes, with a scale for each block."""

from __future__ import annotations

from math import prod

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import MICROSOFT, OnnxNode
from vdla.compiler.graph import ops
from vdla.compiler.graph.types import Array

WIDTHS = (2, 4, 8)  # bits that divide a byte


@converts("MatMulNBits", domain=MICROSOFT)
def _matmul_of_bits(view: OnnxNode) -> None:
    """A dense layer of floats; ``accuracy_level`` says how much coarser it may be computed."""
    view.attributes.pop("accuracy_level", None)
    data, dtype, shape = view.operand(0), view.real_dtype(), view.shape(0)
    if view.optional(4) is not None or dtype != "float32" or len(shape) < 2:
        raise view.unsupported("float32 data, and blocks in their order", f"{dtype}, or others")
    make, weight = Maker(view), _weights(view)
    count, depth = weight.shape
    rows = make.reshape(data, (prod(shape[:-1]), depth))
    bias = make.constant(view.constant(5, "bias"), dtype) if view.optional(5) is not None else None
    names, matrix = make.names(), make.constant(weight, dtype)
    dense = make.add(ops.Dense(**names, data=rows, weight=matrix, bias=bias), dtype)
    make.result(make.reshape(dense, (*shape[:-1], count)))


def _weights(view: OnnxNode) -> Array:
    """[N, K]: the floats that packed integers stand for, block by block along K."""
    count, depth, size = (view.integer(name, 0) for name in ("N", "K", "block_size"))
    bits, packed = view.integer("bits", 4), view.constant(1, "weight")
    if bits not in WIDTHS or packed.dtype != np.uint8 or min(count, depth, size) < 1:
        raise view.unsupported(f"weights of {WIDTHS} bits in bytes", f"{bits} bits, {packed.dtype}")
    blocks = -(-depth // size)
    integers = _unpacked(packed.reshape(count, -1), bits, blocks * size)
    scale = view.constant(2, "scale").reshape(count, blocks)
    zero = np.full((count, blocks), 1 << bits - 1, np.float32)
    if view.optional(3) is not None:
        given = view.constant(3, "zero point")
        whole = given.reshape(count, -1)
        zero = _unpacked(whole, bits, blocks) if given.dtype == np.uint8 else whole
    wide = (np.repeat(part.astype(np.float32), size, axis=1) for part in (zero, scale))
    spread, factor = wide
    return np.asarray((integers.astype(np.float32) - spread) * factor)[:, :depth]


def _unpacked(packed: Array, bits: int, count: int) -> Array:
    """[N, count]: the integers in rows of bytes, the lowest bits of each first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    mask = np.uint8((1 << bits) - 1)
    return np.asarray((packed[..., None] >> shifts & mask).reshape(len(packed), -1)[:, :count])
