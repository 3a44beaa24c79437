"""The window of GEMM: sums of products over neighbouring entries of INP, of one row or two."""

from __future__ import annotations

from functools import lru_cache

from vdla.compiler import te
from vdla.compiler.targets.accelerator.description.lowering import Emit, Lowering, declare
from vdla.compiler.targets.accelerator.description.memory import ACC, INP, WGT
from vdla.compiler.targets.accelerator.passes.added import ADDED, AddedPass
from vdla.compiler.targets.accelerator.passes.window_rows import widen_rows
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.instructions import Gemm, Init
from vdla.isa.options.window import has_window, window_taps

ADDED.add(AddedPass("window_rows", widen_rows, has_window))


@lru_cache
def gemm_window(rows: int, taps: int, config: Config) -> TensorIntrin:
    """Both channels of an output's pair, at ``taps`` neighbouring entries of INP, in each row.

    A second row's lie as far behind the first one's as the caller likes. The tile's other weights,
    which the behaviour doesn't read, must be 0, so tensorize doesn't choose it by itself.
    """
    bi, bo = config.block_in, config.block_out
    bias = te.placeholder((bo,), "int32", "bias")
    names = ("inp", "second")[:rows]
    read = [te.placeholder((taps, bi), "int8", name) for name in names]
    wgt = te.placeholder((bo, bi), "int8", "wgt")
    t, b = te.reduce_axis((0, taps), "t"), te.reduce_axis((0, 2), "b")

    def product(row: int, o: Expr) -> Expr:
        pixel = read[row][taps - 1 - t, te.floordiv(o, 2) * 2 + b].astype("int32")
        return pixel * wgt[o, row * 2 * window_taps(config) + t * 2 + b].astype("int32")

    def total(o: Expr) -> Expr:
        value = product(0, o) + product(1, o) if rows > 1 else product(0, o)
        return te.sum(value, axis=[t, b], init=bias[o])

    acc = te.compute((bo,), total, "acc")
    roles = {name: name for name in ("acc", *names, "wgt", "bias")}
    emit = Emit(Gemm, {"init": Init.BIAS, "window": 1}, roles)
    scopes = {acc: ACC, wgt: WGT, bias: ACC, **dict.fromkeys(read, INP)}
    lowering = Lowering((emit,), fills=taps - 1)
    return declare(f"gemm_window{rows}x{taps}", acc, (), scopes, lowering, config)
