"""Reciprocals: scale words of 1 / y and 1 / √y, and requantization by scales without limits."""

from __future__ import annotations

from collections.abc import Callable

from vdla.compiler import te
from vdla.compiler.targets.accelerator.description.alu import Vectors, immediate
from vdla.compiler.targets.accelerator.description.declared import Declared, Maker
from vdla.compiler.targets.accelerator.description.intrinsics import add_intrinsics
from vdla.compiler.targets.accelerator.description.lowering import Emit
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.instructions import Alu, AluOp
from vdla.isa.options.reciprocals import OPTIONS, RECIPROCAL, RSQRT, SCALE, reciprocal_units


def _scale(name: str, config: Config) -> TensorIntrin:
    """``dst = rq(x, scale)``, with a scale per lane."""
    of = Vectors(name, config)
    emit = Emit(Alu, {"alu_op": SCALE}, {"dst": "dst", "x": "x", "y": "scale"})
    return of.declare(lambda l: te.rq(of.x[l], of.scale[l]), emit)


def _scale_word(op: AluOp, word: Callable[[Expr], Expr]) -> Maker:
    """``dst = word(y)``, the scale word of a reciprocal or of a root's."""

    def make(name: str, config: Config) -> TensorIntrin:
        of = Vectors(name, config)
        emit = Emit(Alu, {"alu_op": op}, {"dst": "dst", "y": "y"})
        return of.declare(lambda l: word(of.y[l]), emit, inplace="y")

    return make


(_OPTION,) = OPTIONS
add_intrinsics(
    Declared("alu_scale", "x requantized without limits, a scale per lane", _scale, _OPTION),
    Declared("alu_scale_imm", "x requantized without limits", immediate(SCALE, te.rq), _OPTION),
    Declared("alu_reciprocal", "the scale word of 1 / y",
             _scale_word(RECIPROCAL, te.reciprocal), _OPTION),
    Declared("alu_rsqrt", "the scale word of 1 / √y", _scale_word(RSQRT, te.rsqrt), _OPTION),
    before="alu_add_reduce",
)  # fmt: skip


def no_reciprocals(config: Config) -> str | None:
    """Reason for which a config has no reciprocals of lanes; None where it has."""
    if reciprocal_units(config):
        return None
    return f"config {config.name} has no reciprocals (reciprocal_units = 0)"
