"""The ALU's operations as tensor intrinsics; the head of ``intrinsics`` says what each does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vdla.compiler import te
from vdla.compiler.targets.accelerator.description.lowering import (
    Emit,
    Lowering,
    Parameter,
    Range,
    declare,
    signed,
)
from vdla.compiler.targets.accelerator.description.memory import ACC, TAB
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import Laws, Param, TensorIntrin
from vdla.isa.config import Config
from vdla.isa.instructions import Alu, AluOp
from vdla.isa.options.tables import TABLE_RESULTS

BINARY: dict[AluOp, Callable[[Expr, Expr], Expr]] = {
    AluOp.ADD: lambda x, y: x + y,
    AluOp.MIN: te.minimum,
    AluOp.MAX: te.maximum,
    AluOp.SHR: lambda x, y: x >> y,
    AluOp.MUL: lambda x, y: x * y,
}
COMMUTATIVE = (AluOp.ADD, AluOp.MIN, AluOp.MAX, AluOp.MUL)
SHIFT_RANGE = (0, 31)  # shifts of te; the ISA's SHR shifts left by the amounts below zero
FIRST = {"init": 1}  # with every micro-op marked first: the result is y itself


class AluIntrinsics:
    """Declares ALU operations on vectors x and y of ACC."""

    def __init__(self, config: Config) -> None:
        self.config = config
        shape = (config.block_out,)
        self.x, self.y = (te.placeholder(shape, "int32", name) for name in ("x", "y"))
        self.imm = te.param("imm", "int32")

    def registers(self, name: str, op: AluOp) -> TensorIntrin:
        """``dst = x op y``, of two vectors."""
        ranges = _operand_ranges(op)
        if op is AluOp.SHR:
            ranges["y"] = SHIFT_RANGE
        laws = Laws(ranges, (("x", "y"),) if op in COMMUTATIVE else ())
        emit = Emit(Alu, {"alu_op": op}, {"dst": "dst", "x": "x", "y": "y"})
        behaviour = BINARY[op]
        return self.declare(name, lambda l: behaviour(self.x[l], self.y[l]), (emit,), laws=laws)

    def immediate(self, name: str, op: AluOp) -> TensorIntrin:
        """``dst = x op imm``, of a vector and a constant."""
        emit = _immediate(op, "x", {"imm": Parameter(("imm",))})
        behaviour = BINARY[op]
        laws = Laws({"imm": SHIFT_RANGE}) if op is AluOp.SHR else None
        return self.declare(
            name, lambda l: behaviour(self.x[l], self.imm), (emit,), (self.imm,), laws=laws
        )

    def shift_left(self) -> TensorIntrin:
        """``dst = x << imm``, which is SHR by a negative constant."""
        emit = _immediate(AluOp.SHR, "x", {"imm": Parameter(("imm",), -1)})
        return self.declare(
            "alu_shl_imm",
            lambda l: self.x[l] << self.imm,
            (emit,),
            (self.imm,),
            laws=Laws({"imm": SHIFT_RANGE}),
        )

    def negate(self) -> TensorIntrin:
        """``dst = -x``."""
        return self.declare("alu_neg", lambda l: -self.x[l], (_times_minus_one("x"),))

    def subtract_from(self) -> TensorIntrin:
        """``dst = imm - x``, by two instructions: x is negated, then the constant is added."""
        add = _immediate(AluOp.ADD, "dst", {"imm": Parameter(("imm",))})
        return self.declare(
            "alu_rsub_imm",
            lambda l: self.imm - self.x[l],
            (_times_minus_one("x"), add),
            (self.imm,),
        )

    def difference(self) -> TensorIntrin:
        """x - y of any int32: y is negated, x added."""
        add = Emit(Alu, {"alu_op": AluOp.ADD}, {"dst": "dst", "x": "dst", "y": "x"})
        return self.declare(
            "alu_sub",
            lambda l: self.x[l] - self.y[l],
            (_times_minus_one("y"), add),
            inplace="y",
        )

    def narrow_difference(self) -> TensorIntrin:
        """x - y of what WADD takes whole."""
        emit = Emit(
            Alu,
            {"alu_op": AluOp.WADD, "weight": 1, "imm": -1},
            {"dst": "dst", "x": "x", "y": "y"},
        )
        return self.declare(
            "alu_wsub",
            lambda l: self.x[l] - self.y[l],
            (emit,),
            laws=Laws(_operand_ranges(AluOp.WADD)),
        )

    def weighted_sum(self) -> TensorIntrin:
        """``dst = x * weight + y * imm``, of vectors and two constants."""
        weight = te.param("weight", "int32")
        emit = Emit(
            Alu,
            {"alu_op": AluOp.WADD},
            {"dst": "dst", "x": "x", "y": "y"},
            {"weight": Parameter(("weight",)), "imm": Parameter(("imm",))},
        )
        return self.declare(
            "alu_wadd",
            lambda l: self.x[l] * weight + self.y[l] * self.imm,
            (emit,),
            (weight, self.imm),
            laws=Laws(_operand_ranges(AluOp.WADD), (("x", "y"), ("weight", "imm"))),
        )

    def requantize(self) -> TensorIntrin:
        """``dst = clip(rq(x, scale), low, high) + zero``, with a scale per lane."""
        scale = te.placeholder((self.config.block_out,), "int32", "scale")
        params, value = requantized(self.x, scale)
        emit = Emit(
            Alu,
            {"alu_op": AluOp.RQ},
            {"dst": "dst", "x": "x", "y": "scale"},
            LIMITS,
        )
        return self.declare("alu_rq", value, (emit,), params)

    def scale(self) -> TensorIntrin:
        """``dst = rq(x, scale)``, with a scale per lane."""
        scale = te.placeholder((self.config.block_out,), "int32", "scale")
        emit = Emit(Alu, {"alu_op": AluOp.SCALE}, {"dst": "dst", "x": "x", "y": "scale"})
        return self.declare("alu_scale", lambda l: te.rq(self.x[l], scale[l]), (emit,))

    def scale_immediate(self) -> TensorIntrin:
        """``dst = rq(x, imm)``, with one scale for all lanes."""
        emit = _immediate(AluOp.SCALE, "x", {"imm": Parameter(("imm",))})
        return self.declare(
            "alu_scale_imm", lambda l: te.rq(self.x[l], self.imm), (emit,), (self.imm,)
        )

    def scale_word(self, name: str, op: AluOp, word: Callable[[Expr], Expr]) -> TensorIntrin:
        """``dst = word(y)``, the scale word of a reciprocal or of a root's."""
        emit = Emit(Alu, {"alu_op": op}, {"dst": "dst", "y": "y"})
        return self.declare(name, lambda l: word(self.y[l]), (emit,), inplace="y")

    def table(self) -> TensorIntrin:
        """``dst = table[y & 255]``: the result that a table has for an int8, which y is."""
        table = te.placeholder((TABLE_RESULTS,), "int16", "table")
        dst = te.compute(
            self.y.shape, lambda l: table[self.y[l] & (TABLE_RESULTS - 1)].astype("int32"), "dst"
        )
        roles = {"dst": "dst", "y": "y", "table": "table"}
        lowering = Lowering((Emit(Alu, {"alu_op": AluOp.TABLE}, roles),), inplace="y")
        scopes = {dst: ACC, self.y: ACC, table: TAB}
        return declare("alu_table", dst, (), scopes, lowering, self.config)

    def reduction(self, name: str, combine: Callable[..., Expr], op: AluOp) -> TensorIntrin:
        """``dst = dst op y``; the first step takes y itself."""
        emit = Emit(Alu, {"alu_op": op}, {"dst": "dst", "y": "y"})
        return self.declare(name, lambda l: combine(self.y[l], axis=[]), (emit,), inplace="")

    def copy(self) -> TensorIntrin:
        """``dst = y``."""
        emit = Emit(Alu, {"alu_op": AluOp.ADD, **FIRST}, {"dst": "dst", "y": "y"})
        return self.declare("alu_copy", lambda l: self.y[l], (emit,), inplace="")

    def fill(self) -> TensorIntrin:
        """``dst = imm``, a constant in every lane."""
        fixed = {"alu_op": AluOp.ADD, "use_imm": 1, **FIRST}
        emit = Emit(Alu, fixed, {"dst": "dst"}, {"imm": Parameter(("imm",))})
        return self.declare("alu_fill", lambda l: self.imm, (emit,), (self.imm,), inplace="")

    def declare(
        self,
        name: str,
        value: Callable[[Expr], Expr],
        emits: tuple[Emit, ...],
        params: tuple[Param, ...] = (),
        *,
        inplace: str = "x",
        laws: Laws | None = None,
    ) -> TensorIntrin:
        """An intrinsic on vectors of ACC."""
        dst = te.compute((self.config.block_out,), value, "dst")
        scopes = dict.fromkeys((dst, *dst.compute_op.inputs), ACC)
        lowering = Lowering(emits, inplace)
        return declare(name, dst, params, scopes, lowering, self.config, laws)


def _immediate(op: AluOp, x: str, parameters: Mapping[str, Parameter]) -> Emit:
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
