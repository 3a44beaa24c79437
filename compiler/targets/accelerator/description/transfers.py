"""LOAD and STORE as tensor intrinsics: an entry of a buffer from DRAM, or to it."""

from __future__ import annotations

from vdla.compiler import te
from vdla.compiler.targets.accelerator.description.alu import LIMITS, requantized
from vdla.compiler.targets.accelerator.description.declared import Declared, Maker
from vdla.compiler.targets.accelerator.description.lowering import (
    Emit,
    Lowering,
    Parameter,
    declare,
)
from vdla.compiler.targets.accelerator.description.memory import ACC, INP, WGT, entry_shape
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.instructions import Load, Mem, Store


def load(memory: Mem, scope: str, dtype: str) -> Maker:
    """``dst = src``, of an entry in DRAM."""

    def make(name: str, config: Config) -> TensorIntrin:
        src = te.placeholder(entry_shape(scope, config), dtype, "src")
        dst = te.compute(src.shape, lambda *i: src[i], "dst")
        emit = Emit(Load, {"memory": memory}, {"dst": "dst", "src": "src"})
        scopes = {dst: scope, src: "global"}
        return declare(name, dst, (), scopes, Lowering((emit,)), config)

    return make


def load_pad(memory: Mem, scope: str, dtype: str) -> Maker:
    """``dst = src`` where that is ``inside``, else a constant."""

    def make(name: str, config: Config) -> TensorIntrin:
        src = te.placeholder(entry_shape(scope, config), dtype, "src")
        inside, pad = te.param("inside", "bool", kind="expr"), te.param("pad_value", dtype)
        dst = te.compute(src.shape, lambda *i: te.if_then_else(inside, src[i], pad), "dst")
        emit = Emit(
            Load,
            {"memory": memory},
            {"dst": "dst", "src": "src"},
            {"pad_value": Parameter(("pad_value",))},
        )
        lowering = Lowering((emit,), inside="inside")
        return declare(name, dst, (inside, pad), {dst: scope, src: "global"}, lowering, config)

    return make


def load_wide(*, padded: bool) -> Maker:
    """``dst = src - zero`` of bytes in DRAM; ``padded``: a constant where it isn't ``inside``."""

    def make(name: str, config: Config) -> TensorIntrin:
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

    return make


def store32(name: str, config: Config) -> TensorIntrin:
    """``out = acc``."""
    acc = te.placeholder((config.block_out,), "int32", "acc")
    out = te.compute((config.block_out,), lambda l: acc[l], "out")
    emit = Emit(Store, {"memory": Mem.ACC}, {"acc": "acc", "out": "out"})
    scopes = {out: "global", acc: ACC}
    return declare(name, out, (), scopes, Lowering((emit,)), config)


def store8(memory: Mem, scope: str = "global", *, padded: bool = False) -> Maker:
    """``out = clip(rq(acc, scale), low, high) + zero`` as int8; ``padded``: by a LOAD a constant
    where it isn't ``inside``."""

    def make(name: str, config: Config) -> TensorIntrin:
        shape = (config.block_out,)
        acc, scale = te.placeholder(shape, "int32", "acc"), te.placeholder(shape, "int32", "scale")
        params, value = requantized(acc, scale)
        inside, pad = te.param("inside", "bool", kind="expr"), te.param("pad_value", "int8")

        def stored(l: Expr) -> Expr:
            result = value(l).astype("int8")
            return te.if_then_else(inside, result, pad) if padded else result

        out = te.compute(shape, stored, "out")
        roles = {"acc": "acc", "out": "out", "scale": "scale"}
        emits = [Emit(Store, {"memory": memory}, roles, LIMITS)]
        if padded:
            fill = {"pad_value": Parameter(("pad_value",))}
            emits.insert(0, Emit(Load, {"memory": memory}, {"dst": "out"}, fill))
            params = (*params, inside, pad)
        lowering = Lowering(tuple(emits), inside="inside" if padded else "")
        return declare(name, out, params, {out: scope, acc: ACC, scale: ACC}, lowering, config)

    return make


PADDED = ", a constant where it isn't inside"

LOADS = (
    Declared("load_inp", "an INP vector from DRAM", load(Mem.INP, INP, "int8")),
    Declared("load_inp_pad", f"load_inp{PADDED}", load_pad(Mem.INP, INP, "int8")),
    Declared("load_wgt", "a WGT tile from DRAM", load(Mem.WGT, WGT, "int8")),
    Declared("load_wgt_pad", f"load_wgt{PADDED}", load_pad(Mem.WGT, WGT, "int8")),
    Declared("load_acc", "an ACC vector from DRAM", load(Mem.ACC, ACC, "int32")),
    Declared("load_acc_pad", f"load_acc{PADDED}", load_pad(Mem.ACC, ACC, "int32")),
    Declared("load_acc8", "int8 from DRAM, widened, less a zero point", load_wide(padded=False)),
    Declared("load_acc8_pad", f"load_acc8{PADDED}", load_wide(padded=True)),
)
STORES = (
    Declared("store32", "an ACC vector to DRAM as it is", store32),
    Declared("store8", "an ACC vector to DRAM, requantized to int8", store8(Mem.ACC8)),
)
