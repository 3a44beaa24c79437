"""Every operation of the ISA as a tensor intrinsic: what it does to one vector, and how it is made.

``tensorize`` matches these behaviours and proves that operands stay within ``ranges``; the
interpreter runs the behaviours; code generation follows ``lowering``. Widths, and so the ranges,
come from ``isa``. A property test holds each behaviour against the simulator and the RTL.

    load_inp(_pad) load_wgt(_pad) load_acc(_pad)    DRAM to a buffer; ``_pad`` fills with a constant
    load_tab                                        a table of 256 results
    load_acc8(_pad)                                 int8 widened to int32, a zero point subtracted
    gemm gemm_acc gemm_zero                         matrix–vector product, from a bias, on what lies
                                                    there, from zero
    alu_add alu_sub alu_mul alu_min alu_max alu_shr     x op y
    alu_add_imm … alu_shl_imm alu_rsub_imm alu_neg      x op constant
    alu_wadd alu_wsub                               weighted sum, difference, of 18 bits each
    alu_add_reduce alu_min_reduce alu_max_reduce    reductions
    alu_rq                                          requantize, in int32
    alu_table                                       what a table has for the low 8 bits of a lane
    alu_scale alu_scale_imm                         requantize without limits
    alu_reciprocal alu_rsqrt                        the scale word of 1 / y, of 1 / √y
    alu_copy alu_fill                               move a vector, write a constant
    store32 store8                                  ACC to DRAM as it is; requantized to int8
    keep8(_pad)                                     ACC to INP, requantized to int8
    gemm_window1x3 gemm_window2x3 …                 two channels at entries of one row or two
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache

from vdla.compiler import te
from vdla.compiler.targets.accelerator.description.alu import LIMITS, AluIntrinsics, requantized
from vdla.compiler.targets.accelerator.description.lowering import (
    Emit,
    Lowering,
    Parameter,
    declare,
)
from vdla.compiler.targets.accelerator.description.memory import ACC, INP, TAB, WGT
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.instructions import AluOp, Gemm, Init, Load, Mem, Store
from vdla.isa.options.forwarding import forwards
from vdla.isa.options.reciprocals import reciprocal_units
from vdla.isa.options.tables import TABLE_RESULTS, tables
from vdla.isa.options.window import window_rows, window_taps


@dataclass(frozen=True)
class Intrinsics:
    """The tensor intrinsics of one config, by name: ``ins.gemm_zero``; iterating gives all of them
    but those that are ``absent`` from its instruction set, and ``windows``, which only compute what
    they declare where the rest of a tile's weights are 0.

    The head of this module says what each does. A vector has ``block_in`` lanes in ``vdla.inp`` and
    ``block_out`` in ``vdla.acc``; an entry of ``vdla.wgt`` is ``block_out`` × ``block_in`` weights,
    one of ``vdla.tab`` a table.
    """

    load_inp: TensorIntrin
    load_inp_pad: TensorIntrin
    load_wgt: TensorIntrin
    load_wgt_pad: TensorIntrin
    load_acc: TensorIntrin
    load_acc_pad: TensorIntrin
    load_tab: TensorIntrin
    load_acc8: TensorIntrin
    load_acc8_pad: TensorIntrin
    gemm: TensorIntrin
    gemm_acc: TensorIntrin
    gemm_zero: TensorIntrin
    alu_copy: TensorIntrin
    alu_fill: TensorIntrin
    alu_add: TensorIntrin
    alu_min: TensorIntrin
    alu_max: TensorIntrin
    alu_shr: TensorIntrin
    alu_mul: TensorIntrin
    alu_add_imm: TensorIntrin
    alu_min_imm: TensorIntrin
    alu_max_imm: TensorIntrin
    alu_shr_imm: TensorIntrin
    alu_shl_imm: TensorIntrin
    alu_mul_imm: TensorIntrin
    alu_neg: TensorIntrin
    alu_rsub_imm: TensorIntrin
    alu_wsub: TensorIntrin
    alu_sub: TensorIntrin
    alu_wadd: TensorIntrin
    alu_rq: TensorIntrin
    alu_table: TensorIntrin
    alu_scale: TensorIntrin
    alu_scale_imm: TensorIntrin
    alu_reciprocal: TensorIntrin
    alu_rsqrt: TensorIntrin
    alu_add_reduce: TensorIntrin
    alu_min_reduce: TensorIntrin
    alu_max_reduce: TensorIntrin
    store32: TensorIntrin
    store8: TensorIntrin
    keep8: TensorIntrin
    keep8_pad: TensorIntrin
    windows: Mapping[tuple[int, int], TensorIntrin]
    absent: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[TensorIntrin]:
        left_out = {"absent", "windows", *self.absent}
        return (getattr(self, f.name) for f in fields(self) if f.name not in left_out)


OF_RECIPROCALS = ("alu_scale", "alu_scale_imm", "alu_reciprocal", "alu_rsqrt")


@lru_cache
def intrinsics(config: Config) -> Intrinsics:
    """The tensor intrinsics of a config."""
    bi, bo = config.block_in, config.block_out
    alu = AluIntrinsics(config)
    return Intrinsics(
        load_inp=_load("load_inp", (bi,), "int8", INP, Mem.INP, config),
        load_inp_pad=_load_pad("load_inp_pad", (bi,), "int8", INP, Mem.INP, config),
        load_wgt=_load("load_wgt", (bo, bi), "int8", WGT, Mem.WGT, config),
        load_wgt_pad=_load_pad("load_wgt_pad", (bo, bi), "int8", WGT, Mem.WGT, config),
        load_acc=_load("load_acc", (bo,), "int32", ACC, Mem.ACC, config),
        load_acc_pad=_load_pad("load_acc_pad", (bo,), "int32", ACC, Mem.ACC, config),
        load_tab=_load("load_tab", (TABLE_RESULTS,), "int16", TAB, Mem.TAB, config),
        load_acc8=_load_wide("load_acc8", config, padded=False),
        load_acc8_pad=_load_wide("load_acc8_pad", config, padded=True),
        gemm=_gemm("gemm", config),
        gemm_acc=_gemm("gemm_acc", config, inplace=True),
        gemm_zero=_gemm_zero(config),
        alu_copy=alu.copy(),
        alu_fill=alu.fill(),
        alu_add=alu.registers("alu_add", AluOp.ADD),
        alu_min=alu.registers("alu_min", AluOp.MIN),
        alu_max=alu.registers("alu_max", AluOp.MAX),
        alu_shr=alu.registers("alu_shr", AluOp.SHR),
        alu_mul=alu.registers("alu_mul", AluOp.MUL),
        alu_add_imm=alu.immediate("alu_add_imm", AluOp.ADD),
        alu_min_imm=alu.immediate("alu_min_imm", AluOp.MIN),
        alu_max_imm=alu.immediate("alu_max_imm", AluOp.MAX),
        alu_shr_imm=alu.immediate("alu_shr_imm", AluOp.SHR),
        alu_shl_imm=alu.shift_left(),
        alu_mul_imm=alu.immediate("alu_mul_imm", AluOp.MUL),
        alu_neg=alu.negate(),
        alu_rsub_imm=alu.subtract_from(),
        alu_wsub=alu.narrow_difference(),
        alu_sub=alu.difference(),
        alu_wadd=alu.weighted_sum(),
        alu_rq=alu.requantize(),
        alu_table=alu.table(),
        alu_scale=alu.scale(),
        alu_scale_imm=alu.scale_immediate(),
        alu_reciprocal=alu.scale_word("alu_reciprocal", AluOp.RECIPROCAL, te.reciprocal),
        alu_rsqrt=alu.scale_word("alu_rsqrt", AluOp.RSQRT, te.rsqrt),
        alu_add_reduce=alu.reduction("alu_add_reduce", te.sum, AluOp.ADD),
        alu_min_reduce=alu.reduction("alu_min_reduce", te.min, AluOp.MIN),
        alu_max_reduce=alu.reduction("alu_max_reduce", te.max, AluOp.MAX),
        store32=_store32(config),
        store8=_store8(config),
        keep8=_keep8("keep8", config, padded=False),
        keep8_pad=_keep8("keep8_pad", config, padded=True),
        windows={
            (rows, taps): _window(rows, taps, config)
            for rows in range(1, window_rows(config) + 1)
            for taps in range(2, window_taps(config) + 1)
        },
        absent=_absent(config),
    )


def _absent(config: Config) -> frozenset[str]:
    """The names of what a config has no instructions for."""
    of_tables = () if tables(config) else ("load_tab", "alu_table")
    of_forwarding = () if forwards(config) else ("keep8", "keep8_pad")
    of_reciprocals = () if reciprocal_units(config) else OF_RECIPROCALS
    return frozenset((*of_tables, *of_forwarding, *of_reciprocals))


# LOAD and STORE ---------------------------------------------------------------------------------


def _load(
    name: str, shape: tuple[int, ...], dtype: str, scope: str, memory: Mem, config: Config
) -> TensorIntrin:
    src = te.placeholder(shape, dtype, "src")
    dst = te.compute(shape, lambda *i: src[i], "dst")
    emit = Emit(Load, {"memory": memory}, {"dst": "dst", "src": "src"})
    scopes = {dst: scope, src: "global"}
    return declare(name, dst, (), scopes, Lowering((emit,)), config)


def _load_pad(
    name: str, shape: tuple[int, ...], dtype: str, scope: str, memory: Mem, config: Config
) -> TensorIntrin:
    src = te.placeholder(shape, dtype, "src")
    inside, pad = te.param("inside", "bool", kind="expr"), te.param("pad_value", dtype)
    dst = te.compute(shape, lambda *i: te.if_then_else(inside, src[i], pad), "dst")
    emit = Emit(
        Load,
        {"memory": memory},
        {"dst": "dst", "src": "src"},
        {"pad_value": Parameter(("pad_value",))},
    )
    lowering = Lowering((emit,), inside="inside")
    return declare(name, dst, (inside, pad), {dst: scope, src: "global"}, lowering, config)


def _load_wide(name: str, config: Config, *, padded: bool) -> TensorIntrin:
    shape = (config.block_out,)
    src = te.placeholder(shape, "int8", "src")
    offset = te.param("offset", "int32")  # the zero point's negative
    inside, pad = te.param("inside", "bool", kind="expr"), te.param("pad_value", "int8")

    def value(l: Expr) -> Expr:
        byte: Expr = te.if_then_else(inside, src[l], pad) if padded else src[l]
        return byte.astype("int32") + offset

    dst = te.compute(shape, value, "dst")
    parameters = {"zero": Parameter(("offset",), -1)}
    if padded:
        parameters["pad_value"] = Parameter(("pad_value",))
    emit = Emit(Load, {"memory": Mem.ACC8}, {"dst": "dst", "src": "src"}, parameters)
    lowering = Lowering((emit,), inside="inside" if padded else "")
    params = (offset, inside, pad) if padded else (offset,)
    return declare(name, dst, params, {dst: ACC, src: "global"}, lowering, config)


def _store32(config: Config) -> TensorIntrin:
    acc = te.placeholder((config.block_out,), "int32", "acc")
    out = te.compute((config.block_out,), lambda l: acc[l], "out")
    emit = Emit(Store, {"memory": Mem.ACC}, {"acc": "acc", "out": "out"})
    scopes = {out: "global", acc: ACC}
    return declare("store32", out, (), scopes, Lowering((emit,)), config)


def _store8(config: Config) -> TensorIntrin:
    shape = (config.block_out,)
    acc, scale = te.placeholder(shape, "int32", "acc"), te.placeholder(shape, "int32", "scale")
    params, value = requantized(acc, scale)
    out = te.compute(shape, lambda l: value(l).astype("int8"), "out")
    emit = Emit(
        Store,
        {"memory": Mem.ACC8},
        {"acc": "acc", "out": "out", "scale": "scale"},
        LIMITS,
    )
    scopes = {out: "global", acc: ACC, scale: ACC}
    return declare("store8", out, params, scopes, Lowering((emit,)), config)


def _keep8(name: str, config: Config, *, padded: bool) -> TensorIntrin:
    """A vector requantized into INP, whose entries have as many lanes; ``padded``: a constant where
    it isn't ``inside``."""
    shape = (config.block_out,)
    acc, scale = te.placeholder(shape, "int32", "acc"), te.placeholder(shape, "int32", "scale")
    params, value = requantized(acc, scale)
    inside, pad = te.param("inside", "bool", kind="expr"), te.param("pad_value", "int8")

    def kept(l: Expr) -> Expr:
        result = value(l).astype("int8")
        return te.if_then_else(inside, result, pad) if padded else result

    out = te.compute(shape, kept, "out")
    roles = {"acc": "acc", "out": "out", "scale": "scale"}
    emits = [Emit(Store, {"memory": Mem.INP}, roles, LIMITS)]
    if padded:
        fill = {"pad_value": Parameter(("pad_value",))}
        emits.insert(0, Emit(Load, {"memory": Mem.INP}, {"dst": "out"}, fill))
        params = (*params, inside, pad)
    lowering = Lowering(tuple(emits), inside="inside" if padded else "")
    return declare(name, out, params, {out: INP, acc: ACC, scale: ACC}, lowering, config)


# GEMM -------------------------------------------------------------------------------------------


def _gemm(name: str, config: Config, *, inplace: bool = False) -> TensorIntrin:
    """From a bias; ``inplace``: from what lies at the result's place, where the bias is that."""
    bias = te.placeholder((config.block_out,), "int32", "bias")
    roles = {"acc": "acc", "inp": "inp", "wgt": "wgt", "bias": "bias"}
    emit = Emit(Gemm, {"init": Init.BIAS}, roles)
    lowering = Lowering((emit,), inplace="bias" if inplace else "")
    return _product(name, lambda o: bias[o], {bias: ACC}, lowering, config)


def _gemm_zero(config: Config) -> TensorIntrin:
    emit = Emit(Gemm, {"init": Init.ZERO}, {"acc": "acc", "inp": "inp", "wgt": "wgt"})
    return _product("gemm_zero", lambda o: te.const(0), {}, Lowering((emit,)), config)


def _product(
    name: str,
    start: Callable[[Expr], Expr],
    scopes: Mapping[Tensor, str],
    lowering: Lowering,
    config: Config,
) -> TensorIntrin:
    bi, bo = config.block_in, config.block_out
    inp, wgt = te.placeholder((bi,), "int8", "inp"), te.placeholder((bo, bi), "int8", "wgt")
    i = te.reduce_axis((0, bi), "i")
    acc = te.compute(
        (bo,),
        lambda o: te.sum(
            inp[i].astype("int32") * wgt[o, i].astype("int32"), axis=[i], init=start(o)
        ),
        "acc",
    )
    return declare(name, acc, (), {acc: ACC, inp: INP, wgt: WGT, **scopes}, lowering, config)


def _window(rows: int, taps: int, config: Config) -> TensorIntrin:
    """Both channels of an output's pair, at ``taps`` neighbouring entries of INP, in each row.

    A second row's lie as far behind the first one's as the caller likes. The tile's other weights,
    which the behaviour doesn't read, must be 0.
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
