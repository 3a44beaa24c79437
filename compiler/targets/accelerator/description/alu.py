"""The ALU's operations as tensor intrinsics, on vectors x and y of ACC and a constant ``imm``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from vdla.compiler import te
from vdla.compiler.targets.accelerator.description.declared import Declared, Maker
from vdla.compiler.targets.accelerator.description.lowering import (
    Emit,
    Lowering,
    Parameter,
    Range,
    declare,
    signed,
)
from vdla.compiler.targets.accelerator.description.memory import ACC
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import Laws, Param, TensorIntrin
from vdla.isa.config import Config
from vdla.isa.instructions import Alu, AluOp

Binary = Callable[[Expr, Expr], Expr]

SHIFT_RANGE = (0, 31)  # shifts of te; the ISA's SHR shifts left by the amounts below zero
FIRST = {"init": 1}  # with every micro-op marked first: the result is y itself


class Vectors:
    """Operands of an operation of ALU, of which it declares an intrinsic: vectors x, y and
    ``scale`` of ACC, and the constant ``imm``."""

    def __init__(self, name: str, config: Config) -> None:
        self.name, self.config = name, config
        shape = (config.block_out,)
        self.x, self.y, self.scale = (
            te.placeholder(shape, "int32", n) for n in ("x", "y", "scale")
        )
        self.imm = te.param("imm", "int32")

    def declare(
        self,
        value: Callable[[Expr], Expr],
        *emits: Emit,
        params: tuple[Param, ...] = (),
        inplace: str = "x",
        laws: Laws | None = None,
    ) -> TensorIntrin:
        """The intrinsic whose lane l is ``value(l)``."""
        dst = te.compute((self.config.block_out,), value, "dst")
        scopes = dict.fromkeys((dst, *dst.compute_op.inputs), ACC)
        lowering = Lowering(emits, inplace)
        return declare(self.name, dst, params, scopes, lowering, self.config, laws)


def registers(op: AluOp, value: Binary, *, commutes: bool = False) -> Maker:
    """``dst = x op y``, of two vectors."""

    def make(name: str, config: Config) -> TensorIntrin:
        of, ranges = Vectors(name, config), _operand_ranges(op)
        if op is AluOp.SHR:
            ranges["y"] = SHIFT_RANGE
        laws = Laws(ranges, (("x", "y"),) if commutes else ())
        emit = Emit(Alu, {"alu_op": op}, {"dst": "dst", "x": "x", "y": "y"})
        return of.declare(lambda l: value(of.x[l], of.y[l]), emit, laws=laws)

    return make


def immediate(op: AluOp, value: Binary) -> Maker:
    """``dst = x op imm``, of a vector and a constant."""

    def make(name: str, config: Config) -> TensorIntrin:
        of = Vectors(name, config)
        emit = with_immediate(op, "x", {"imm": Parameter(("imm",))})
        laws = Laws({"imm": SHIFT_RANGE}) if op is AluOp.SHR else None
        return of.declare(lambda l: value(of.x[l], of.imm), emit, params=(of.imm,), laws=laws)

    return make


def shift_left(name: str, config: Config) -> TensorIntrin:
    """``dst = x << imm``, which is SHR by a negative constant."""
    of = Vectors(name, config)
    emit = with_immediate(AluOp.SHR, "x", {"imm": Parameter(("imm",), -1)})
    laws = Laws({"imm": SHIFT_RANGE})
    return of.declare(lambda l: of.x[l] << of.imm, emit, params=(of.imm,), laws=laws)


def negate(name: str, config: Config) -> TensorIntrin:
    """``dst = -x``."""
    of = Vectors(name, config)
    return of.declare(lambda l: -of.x[l], _times_minus_one("x"))


def subtract_from(name: str, config: Config) -> TensorIntrin:
    """``dst = imm - x``, by two instructions: x is negated, then the constant is added."""
    of = Vectors(name, config)
    add = with_immediate(AluOp.ADD, "dst", {"imm": Parameter(("imm",))})
    return of.declare(lambda l: of.imm - of.x[l], _times_minus_one("x"), add, params=(of.imm,))


def difference(name: str, config: Config) -> TensorIntrin:
    """``dst = x - y`` of any int32: y is negated, x added."""
    of = Vectors(name, config)
    add = Emit(Alu, {"alu_op": AluOp.ADD}, {"dst": "dst", "x": "dst", "y": "x"})
    return of.declare(lambda l: of.x[l] - of.y[l], _times_minus_one("y"), add, inplace="y")


def narrow_difference(name: str, config: Config) -> TensorIntrin:
    """``dst = x - y`` of what WADD takes whole."""
    of = Vectors(name, config)
    fixed = {"alu_op": AluOp.WADD, "weight": 1, "imm": -1}
    emit = Emit(Alu, fixed, {"dst": "dst", "x": "x", "y": "y"})
    laws = Laws(_operand_ranges(AluOp.WADD))
    return of.declare(lambda l: of.x[l] - of.y[l], emit, laws=laws)


def weighted_sum(name: str, config: Config) -> TensorIntrin:
    """``dst = x * weight + y * imm``, of vectors and two constants."""
    of, weight = Vectors(name, config), te.param("weight", "int32")
    emit = Emit(
        Alu,
        {"alu_op": AluOp.WADD},
        {"dst": "dst", "x": "x", "y": "y"},
        {"weight": Parameter(("weight",)), "imm": Parameter(("imm",))},
    )
    laws = Laws(_operand_ranges(AluOp.WADD), (("x", "y"), ("weight", "imm")))
    return of.declare(
        lambda l: of.x[l] * weight + of.y[l] * of.imm, emit, params=(weight, of.imm), laws=laws
    )


def requantize(name: str, config: Config) -> TensorIntrin:
    """``dst = clip(rq(x, scale), low, high) + zero``, with a scale per lane."""
    of = Vectors(name, config)
    params, value = requantized(of.x, of.scale)
    emit = Emit(Alu, {"alu_op": AluOp.RQ}, {"dst": "dst", "x": "x", "y": "scale"}, LIMITS)
    return of.declare(value, emit, params=params)


def reduction(op: AluOp, combine: Callable[..., Expr]) -> Maker:
    """``dst = dst op y``; the first step takes y itself."""

    def make(name: str, config: Config) -> TensorIntrin:
        of = Vectors(name, config)
        emit = Emit(Alu, {"alu_op": op}, {"dst": "dst", "y": "y"})
        return of.declare(lambda l: combine(of.y[l], axis=[]), emit, inplace="")

    return make


def copy(name: str, config: Config) -> TensorIntrin:
    """``dst = y``."""
    of = Vectors(name, config)
    emit = Emit(Alu, {"alu_op": AluOp.ADD, **FIRST}, {"dst": "dst", "y": "y"})
    return of.declare(lambda l: of.y[l], emit, inplace="")


def fill(name: str, config: Config) -> TensorIntrin:
    """``dst = imm``, a constant in every lane."""
    of = Vectors(name, config)
    fixed = {"alu_op": AluOp.ADD, "use_imm": 1, **FIRST}
    emit = Emit(Alu, fixed, {"dst": "dst"}, {"imm": Parameter(("imm",))})
    return of.declare(lambda l: of.imm, emit, params=(of.imm,), inplace="")


def with_immediate(op: AluOp, x: str, parameters: Mapping[str, Parameter]) -> Emit:
    """The instruction of an operation whose y is a constant."""
    return Emit(Alu, {"alu_op": op, "use_imm": 1}, {"dst": "dst", "x": x}, parameters)


def _times_minus_one(x: str) -> Emit:
    fixed = {"alu_op": AluOp.MUL, "use_imm": 1, "imm": -1}
    return Emit(Alu, fixed, {"dst": "dst", "x": x})


def _operand_ranges(op: AluOp) -> dict[str, Range]:
    """Ranges of x and y that an operation takes whole, where these are less than an int32."""
    bits = op.bits
    return {name: signed(bits[name]) for name in ("x", "y") if name in bits}


LIMITS = {  # fields of RQ and ACC8 from the parameters of te.requantize's form
    "zero": Parameter(("zero",)),
    "low": Parameter(("low", "zero")),
    "high": Parameter(("high", "zero")),
}


def requantized(x: Tensor, scale: Tensor) -> tuple[tuple[Param, ...], Callable[[Expr], Expr]]:
    """``clip(rq(x, scale), low, high) + zero`` and its parameters, as ``te.requantize`` makes it.

    The bounds are those before the zero point is added.
    """
    zero, low, high = (te.param(n, "int32") for n in ("zero", "low", "high"))

    def value(l: Expr) -> Expr:
        return te.minimum(te.maximum(te.rq(x[l], scale[l]), low), high) + zero

    return (zero, low, high), value


OPERATIONS = (
    Declared("alu_copy", "y", copy),
    Declared("alu_fill", "imm in every lane", fill),
    Declared("alu_add", "x + y", registers(AluOp.ADD, operator.add, commutes=True)),
    Declared("alu_min", "min(x, y)", registers(AluOp.MIN, te.minimum, commutes=True)),
    Declared("alu_max", "max(x, y)", registers(AluOp.MAX, te.maximum, commutes=True)),
    Declared("alu_shr", "x >> y", registers(AluOp.SHR, operator.rshift)),
    Declared("alu_mul", "x × y", registers(AluOp.MUL, operator.mul, commutes=True)),
    Declared("alu_add_imm", "x + imm", immediate(AluOp.ADD, operator.add)),
    Declared("alu_min_imm", "min(x, imm)", immediate(AluOp.MIN, te.minimum)),
    Declared("alu_max_imm", "max(x, imm)", immediate(AluOp.MAX, te.maximum)),
    Declared("alu_shr_imm", "x >> imm", immediate(AluOp.SHR, operator.rshift)),
    Declared("alu_shl_imm", "x << imm", shift_left),
    Declared("alu_mul_imm", "x × imm", immediate(AluOp.MUL, operator.mul)),
    Declared("alu_neg", "-x", negate),
    Declared("alu_rsub_imm", "imm - x", subtract_from),
    Declared("alu_wsub", "x - y, of 18 bits each", narrow_difference),
    Declared("alu_sub", "x - y, by two instructions", difference),
    Declared("alu_wadd", "x × weight + y × imm, x and y of 18 bits", weighted_sum),
    Declared("alu_rq", "x requantized within limits, a scale per lane, in int32", requantize),
    Declared("alu_add_reduce", "the sum of several y", reduction(AluOp.ADD, te.sum)),
    Declared("alu_min_reduce", "the least of several y", reduction(AluOp.MIN, te.min)),
    Declared("alu_max_reduce", "the greatest of several y", reduction(AluOp.MAX, te.max)),
)
