"""What the accelerator's instructions do to one vector, in the tensor expression language.

``tensorize`` matches these behaviours and the interpreter runs them. Each intrinsic's ``emit``
attribute names the rule of ``fold.py`` that turns a call and the loops around it into
instructions; the other attributes are that rule's parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from vdla.compiler import te
from vdla.compiler.tir.intrin import TensorIntrin
from vdla.compiler.tir.ir import Buffer, Expr
from vdla.isa.config import Config
from vdla.isa.instructions import AluOp, Mem

INP, WGT, ACC = "vdla.inp", "vdla.wgt", "vdla.acc"
BUFFER_OF_SCOPE = {INP: "inp", WGT: "wgt", ACC: "acc"}


def entries(buffer: Buffer, config: Config) -> int:
    """Entries one copy of a buffer takes in its scope: its elements over the lanes of an entry."""
    lanes = {INP: config.block_in, WGT: config.block_in * config.block_out, ACC: config.block_out}
    return -(-prod(buffer.shape) // lanes[buffer.scope])


@dataclass(frozen=True)
class Intrinsics:
    """The intrinsics of one config. ``…_pad`` fill with a constant where a condition fails."""

    load_inp: TensorIntrin
    load_inp_pad: TensorIntrin
    load_wgt: TensorIntrin
    load_acc: TensorIntrin
    load_acc8: TensorIntrin
    load_acc8_pad: TensorIntrin
    gemm: TensorIntrin
    alu_rq: TensorIntrin
    alu_wadd: TensorIntrin
    alu_sum: TensorIntrin
    alu_max: TensorIntrin
    store8: TensorIntrin
    store32: TensorIntrin


@lru_cache
def intrinsics(config: Config) -> Intrinsics:
    """Declares the intrinsics of a config."""
    bi, bo = config.block_in, config.block_out
    return Intrinsics(
        load_inp=_load("load_inp", (bi,), "int8", INP, Mem.INP),
        load_inp_pad=_load_pad("load_inp_pad", bi, INP, Mem.INP),
        load_wgt=_load("load_wgt", (bo, bi), "int8", WGT, Mem.WGT),
        load_acc=_load("load_acc", (bo,), "int32", ACC, Mem.ACC),
        load_acc8=_load_wide("load_acc8", bo, padded=False),
        load_acc8_pad=_load_wide("load_acc8_pad", bo, padded=True),
        gemm=_gemm(bi, bo),
        alu_rq=_alu_rq(bo),
        alu_wadd=_alu_wadd(bo),
        alu_sum=_alu_reduce("alu_sum", bo, te.sum, AluOp.ADD),
        alu_max=_alu_reduce("alu_max", bo, te.max, AluOp.MAX),
        store8=_store8(bo),
        store32=_store32(bo),
    )


def _load(name: str, shape: tuple[int, ...], dtype: str, scope: str, mem: Mem) -> TensorIntrin:
    src = te.placeholder(shape, dtype, "src")
    dst = te.compute(shape, lambda *i: src[i], "dst")
    return te.decl_intrin(
        name, dst, scopes={dst: scope, src: "global"}, attrs={"emit": "load", "memory": mem}
    )


def _load_pad(name: str, lanes: int, scope: str, mem: Mem) -> TensorIntrin:
    src = te.placeholder((lanes,), "int8", "src")
    inside = te.param("inside", "bool", kind="expr")
    pad = te.param("pad_value", "int8")
    dst = te.compute((lanes,), lambda l: te.if_then_else(inside, src[l], pad), "dst")
    return te.decl_intrin(
        name,
        dst,
        [inside, pad],
        scopes={dst: scope, src: "global"},
        attrs={"emit": "load", "memory": mem},
    )


def _load_wide(name: str, lanes: int, *, padded: bool) -> TensorIntrin:
    src = te.placeholder((lanes,), "int8", "src")
    offset = te.param("offset", "int32")  # the zero point's negative
    inside = te.param("inside", "bool", kind="expr")
    pad = te.param("pad_value", "int8")

    def value(l: Expr) -> Expr:
        byte: Expr = te.if_then_else(inside, src[l], pad) if padded else src[l]
        return byte.astype("int32") + offset

    dst = te.compute((lanes,), value, "dst")
    return te.decl_intrin(
        name,
        dst,
        [offset, inside, pad] if padded else [offset],
        scopes={dst: ACC, src: "global"},
        attrs={"emit": "load", "memory": Mem.ACC8},
    )


def _gemm(bi: int, bo: int) -> TensorIntrin:
    inp = te.placeholder((bi,), "int8", "inp")
    wgt = te.placeholder((bo, bi), "int8", "wgt")
    bias = te.placeholder((bo,), "int32", "bias")
    i = te.reduce_axis((0, bi), "i")
    acc = te.compute(
        (bo,),
        lambda o: te.sum(
            inp[i].astype("int32") * wgt[o, i].astype("int32"), axis=[i], init=bias[o]
        ),
        "acc",
    )
    return te.decl_intrin(
        "gemm", acc, scopes={acc: ACC, inp: INP, wgt: WGT, bias: ACC}, attrs={"emit": "gemm"}
    )


def _clip(value: Expr, low: Expr, high: Expr) -> Expr:
    return te.minimum(te.maximum(value, low), high)


def _alu_rq(bo: int) -> TensorIntrin:
    x = te.placeholder((bo,), "int32", "x")
    scale = te.placeholder((bo,), "int32", "src")
    zero, low, high = (te.param(n, "int32") for n in ("zero", "low", "high"))
    dst = te.compute((bo,), lambda l: _clip(te.rq(x[l], scale[l]) + zero, low, high), "dst")
    return te.decl_intrin(
        "alu_rq",
        dst,
        [zero, low, high],
        scopes={dst: ACC, x: ACC, scale: ACC},
        attrs={"emit": "alu", "op": AluOp.RQ, "inplace": "x"},
    )


def _alu_wadd(bo: int) -> TensorIntrin:
    x = te.placeholder((bo,), "int32", "x")
    y = te.placeholder((bo,), "int32", "src")
    weight, imm = te.param("weight", "int32"), te.param("imm", "int32")
    dst = te.compute((bo,), lambda l: x[l] * weight + y[l] * imm, "dst")
    return te.decl_intrin(
        "alu_wadd",
        dst,
        [weight, imm],
        scopes={dst: ACC, x: ACC, y: ACC},
        attrs={"emit": "alu", "op": AluOp.WADD, "inplace": "x"},
    )


def _alu_reduce(name: str, bo: int, combine: Callable[..., Expr], op: AluOp) -> TensorIntrin:
    src = te.placeholder((bo,), "int32", "src")
    dst = te.compute((bo,), lambda l: combine(src[l], axis=[]), "dst")
    return te.decl_intrin(name, dst, scopes={dst: ACC, src: ACC}, attrs={"emit": "alu", "op": op})


def _store8(bo: int) -> TensorIntrin:
    acc = te.placeholder((bo,), "int32", "acc")
    scale = te.placeholder((bo,), "int32", "scale")
    zero, low, high = (te.param(n, "int32") for n in ("zero", "low", "high"))
    out = te.compute(
        (bo,),
        lambda l: _clip(te.rq(acc[l], scale[l]) + zero, low, high).astype("int8"),
        "out",
    )
    return te.decl_intrin(
        "store8",
        out,
        [zero, low, high],
        scopes={out: "global", acc: ACC, scale: ACC},
        attrs={"emit": "store", "memory": Mem.ACC8},
    )


def _store32(bo: int) -> TensorIntrin:
    acc = te.placeholder((bo,), "int32", "acc")
    out = te.compute((bo,), lambda l: acc[l], "out")
    return te.decl_intrin(
        "store32",
        out,
        scopes={out: "global", acc: ACC},
        attrs={"emit": "store", "memory": Mem.ACC},
    )
