"""LLVM instructions for expressions: values, indices, addresses of elements, and functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir as ll

from vdla.compiler.tir.arith import bounds, is_index
from vdla.compiler.tir.ir import (
    COMPARISONS,
    INT_RANGES,
    LIBRARY_CALLS,
    Binary,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Not,
    Select,
    Var,
    is_float,
)
from vdla.compiler.tir.visitor import walk_expr

Value = Any  # llvmlite has no types

POINTER = ll.PointerType()
I1, I8, I32, I64 = (ll.IntType(n) for n in (1, 8, 32, 64))
TYPES = {
    "bool": I1,
    "int8": I8,
    "uint8": I8,
    "int16": ll.IntType(16),
    "uint16": ll.IntType(16),
    "int32": I32,
    "uint32": I32,
    "int64": I64,
    "uint64": I64,
    "float16": ll.HalfType(),
    "float32": ll.FloatType(),
    "float64": ll.DoubleType(),
}
SIZES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float16": 2,
    "float32": 4,
    "float64": 8,
}
SYMBOLS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def memory_type(buffer: Buffer) -> Value:
    """An element as it lies in memory: a bool takes a byte."""
    return I8 if buffer.dtype == "bool" else TYPES[buffer.dtype]


class Expressions:
    """Emits the expressions of one function at the builder's place.

    The methods give LLVM values and append what computes them.

    Attributes:
        module: what the function is in.
        builder: whoever emits statements moves it.
        pointers: where the elements of each buffer begin.
        size: the target's ``size_t``, the type of indices.
        values: the value of each loop variable, in that type.
        ranges: the least and the greatest value of each loop variable.
    """

    def __init__(
        self,
        module: ll.Module,
        builder: ll.IRBuilder,
        pointers: dict[Buffer, Value],
        size: ll.IntType,
    ) -> None:
        self.module = module
        self.builder = builder
        self.pointers = pointers
        self.size = size
        self.values: dict[Var, Value] = {}
        self.ranges: dict[Var, tuple[int, int]] = {}

    def value(self, expr: Expr) -> Value:
        """The value of an expression."""
        b = self.builder
        match expr:
            case Const(value, dtype):
                return ll.Constant(TYPES[dtype], value)
            case Var():
                return _resized(b, self.values[expr], I32)
            case Binary(op, _, _) if op in COMPARISONS:
                return self._comparison(expr)
            case Binary():
                return self._arithmetic(expr.op, expr.dtype, self.value(expr.a), self.value(expr.b))
            case Not(a):
                return b.not_(self.value(a))
            case Select():
                return self._select(expr)
            case Cast(a, dtype):
                return self._cast(self.value(a), a.dtype, dtype)
            case Load(buffer, indices):
                return self._load(buffer, indices)
            case Call(op, args, dtype):
                return self._call(op, [self.value(a) for a in args], dtype)
        raise TypeError(f"no native code for {type(expr).__name__}")

    def _load(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Value:
        """An element; a bool lies in memory as a byte."""
        value = self.builder.load(
            self.address(buffer, indices), typ=memory_type(buffer), align=SIZES[buffer.dtype]
        )
        return self.builder.icmp_unsigned("!=", value, I8(0)) if buffer.dtype == "bool" else value

    def _comparison(self, expr: Binary) -> Value:
        """A comparison; of floats, only ``ne`` holds where one is NaN."""
        b, symbol, dtype = self.builder, SYMBOLS[expr.op], expr.a.dtype
        if is_index(expr.a) and is_index(expr.b):
            return b.icmp_signed(symbol, self._index(expr.a), self._index(expr.b))
        x, y = self.value(expr.a), self.value(expr.b)
        if is_float(dtype):
            unequal = expr.op == "ne"
            return (b.fcmp_unordered if unequal else b.fcmp_ordered)(symbol, x, y)
        return (b.icmp_unsigned if _is_unsigned(dtype) else b.icmp_signed)(symbol, x, y)

    def _arithmetic(self, op: str, dtype: str, x: Value, y: Value) -> Value:
        """Arithmetic and logic on two values of one dtype."""
        b = self.builder
        if op in ("and", "bitand"):
            return b.and_(x, y)
        if op in ("or", "bitor"):
            return b.or_(x, y)
        if op == "bitxor":
            return b.xor(x, y)
        if op in ("min", "max"):
            return self._minmax(op, dtype, x, y)
        if is_float(dtype):
            return {"add": b.fadd, "sub": b.fsub, "mul": b.fmul, "div": b.fdiv}[op](x, y)
        if op in ("floordiv", "floormod"):
            return self._divide(op, x, y, plain=_is_unsigned(dtype))
        shr = b.lshr if _is_unsigned(dtype) else b.ashr
        build: Callable[[Value, Value], Value] = {
            "add": b.add,
            "sub": b.sub,
            "mul": b.mul,
            "shl": b.shl,
            "shr": shr,
        }[op]
        return build(x, y)

    def _minmax(self, op: str, dtype: str, x: Value, y: Value) -> Value:
        """The lesser or greater value; NaN where either is, as numpy has it."""
        b, symbol = self.builder, "<" if op == "min" else ">"
        if is_float(dtype):
            # y where either is NaN and x isn't chosen; NaN in y propagates, as in x by the order.
            chosen = b.or_(b.fcmp_ordered(symbol, x, y), b.fcmp_unordered("uno", x, x))
        else:
            chosen = (b.icmp_unsigned if _is_unsigned(dtype) else b.icmp_signed)(symbol, x, y)
        return b.select(chosen, x, y)

    def _select(self, expr: Select) -> Value:
        """Both sides and a select where loading them is safe, else a branch."""
        b = self.builder
        cond = self.value(expr.cond)
        if self._safe(expr.a) and self._safe(expr.b):
            return b.select(cond, self.value(expr.a), self.value(expr.b))
        with b.if_else(cond) as (then, orelse):
            with then:
                left = self.value(expr.a)
                left_block = b.block
            with orelse:
                right = self.value(expr.b)
                right_block = b.block
        phi = b.phi(TYPES[expr.dtype])
        phi.add_incoming(left, left_block)
        phi.add_incoming(right, right_block)
        return phi

    def _safe(self, expr: Expr) -> bool:
        """Whether evaluating is harmless for all values of the loops."""
        return all(
            self._in_bounds(index, size)
            for load in walk_expr(expr)
            if isinstance(load, Load)
            for index, size in zip(load.indices, load.buffer.shape, strict=True)
        )

    def _cast(self, x: Value, source: str, dtype: str) -> Value:
        """A value as another dtype, as numpy converts it where it fits."""
        b, kind = self.builder, TYPES[dtype]
        if dtype == "bool":
            zero = ll.Constant(x.type, 0)
            return (
                b.fcmp_unordered("!=", x, zero)
                if is_float(source)
                else b.icmp_signed("!=", x, zero)
            )
        if is_float(source):
            if not is_float(dtype):
                return b.fptoui(x, kind) if _is_unsigned(dtype) else b.fptosi(x, kind)
            if source == dtype:
                return x
            wider = SIZES[dtype] > SIZES[source]
            return b.fpext(x, kind) if wider else b.fptrunc(x, kind)
        if is_float(dtype):
            return b.uitofp(x, kind) if _is_unsigned(source) else b.sitofp(x, kind)
        if kind.width <= x.type.width:
            return b.trunc(x, kind) if kind.width < x.type.width else x
        return b.zext(x, kind) if _is_unsigned(source) else b.sext(x, kind)

    def address(self, buffer: Buffer, indices: tuple[Expr, ...], inbounds: bool = True) -> Value:
        """A pointer to an element. ``inbounds`` promises LLVM that it lies in the buffer."""
        b = self.builder
        flat: Value = self.size(0)
        for index, size, stride in zip(indices, buffer.shape, buffer.strides, strict=True):
            if size == 1 and self._in_bounds(index, 1):
                continue
            step = self._index(index)
            if stride != 1:
                step = b.mul(step, self.size(stride), flags=("nsw",))
            flat = step if _is_zero(flat) else b.add(flat, step, flags=("nsw",))
        return b.gep(
            self.pointers[buffer], [flat], inbounds=inbounds, source_etype=memory_type(buffer)
        )

    def _in_bounds(self, index: Expr, size: int) -> bool:
        """Whether an index provably stays in 0 to ``size - 1``."""
        found = bounds(index, self.ranges)
        return found is not None and found[0] >= 0 and found[1] < size

    def _index(self, expr: Expr) -> Value:
        """An index expression in the width of pointers, without overflow."""
        b = self.builder
        match expr:
            case Const(value, _):
                return self.size(int(value))
            case Var() if expr in self.values:
                return self.values[expr]
            case Binary("add", x, y) if is_index(expr):
                return b.add(self._index(x), self._index(y), flags=("nsw",))
            case Binary("sub", x, y) if is_index(expr):
                return b.sub(self._index(x), self._index(y), flags=("nsw",))
            case Binary("mul", x, y) if is_index(expr):
                return b.mul(self._index(x), self._index(y), flags=("nsw",))
            case Binary("floordiv" | "floormod", x, Const(c, _)) if is_index(expr) and c > 0:
                plain = self._never_negative(x)
                return self._divide(expr.op, self._index(x), self.size(int(c)), plain)
        return _resized(b, self.value(expr), self.size)

    def _never_negative(self, expr: Expr) -> bool:
        """Whether an index is provably at least 0, so that it can be divided without a sign."""
        found = bounds(expr, self.ranges)
        return found is not None and found[0] >= 0

    def _divide(self, op: str, x: Value, y: Value, plain: bool) -> Value:
        """Quotient or remainder, rounded towards minus infinity."""
        b = self.builder
        if plain:
            return b.udiv(x, y) if op == "floordiv" else b.urem(x, y)
        rest = b.srem(x, y)
        zero = ll.Constant(x.type, 0)
        wrong = b.and_(b.icmp_signed("!=", rest, zero), b.icmp_signed("<", b.xor(rest, y), zero))
        if op == "floormod":
            return b.select(wrong, b.add(rest, y), rest)
        return b.sub(b.sdiv(x, y), b.zext(wrong, x.type))

    def _call(self, op: str, args: list[Value], dtype: str) -> Value:
        """One of the functions of expressions: of LLVM, of the C library, or ``rq``."""
        if op == "rq":
            return self._requantize(*args)
        if dtype == "float16":  # no library has them: computed in float32, as numpy does
            wide = [self._cast(x, dtype, "float32") for x in args]
            return self._cast(self._call(op, wide, "float32"), "float32", dtype)
        if op in LIBRARY_CALLS:
            name = f"{op}f" if dtype == "float32" else op
            kind = TYPES[dtype]
            return self.builder.call(self.library(name, kind, [kind]), args)
        if op == "abs" and not is_float(dtype):
            negative = self.builder.icmp_signed("<", args[0], ll.Constant(args[0].type, 0))
            if _is_unsigned(dtype):
                return args[0]
            return self.builder.select(negative, self.builder.neg(args[0]), args[0])
        name = "fabs" if op == "abs" else op
        intrinsic = self.module.declare_intrinsic(
            f"llvm.{name}",
            [TYPES[dtype]],
            ll.FunctionType(TYPES[dtype], [TYPES[dtype]] * len(args)),
        )
        return self.builder.call(intrinsic, args)

    def _requantize(self, acc: Value, scale: Value) -> Value:
        """See ``tir.ops.requantize``; every step is exact in 64 bits."""
        b = self.builder
        mantissa = b.zext(b.and_(scale, I32(0xFFFFFF)), I64)
        shift = b.zext(b.and_(b.lshr(scale, I32(24)), I32(63)), I64)
        product = b.mul(b.sext(acc, I64), mantissa, flags=("nsw",))
        odd = b.and_(b.ashr(product, shift), I64(1))
        half = b.lshr(b.shl(I64(1), shift), I64(1))
        nearest = b.add(b.sub(half, I64(1)), odd)
        nearest = b.select(b.icmp_unsigned("==", shift, I64(0)), I64(0), nearest)
        result = b.ashr(b.add(product, nearest), shift)
        low, high = (I64(n) for n in INT_RANGES["int32"])
        result = b.select(b.icmp_signed("<", result, low), low, result)
        result = b.select(b.icmp_signed(">", result, high), high, result)
        return b.trunc(result, I32)

    def library(self, name: str, result: Value, args: list[Value]) -> Value:
        """A function of the C library or an intrinsic of LLVM, declared once per module."""
        if name in self.module.globals:
            return self.module.globals[name]
        function = ll.Function(self.module, ll.FunctionType(result, args), name)
        if name == "malloc":
            function.return_value.add_attribute("noalias")
        return function


def _is_unsigned(dtype: str) -> bool:
    """Whether an integer type is extended and compared without a sign; bool is."""
    return dtype.startswith("uint") or dtype == "bool"


def _resized(b: ll.IRBuilder, value: Value, kind: ll.IntType) -> Value:
    """A signed integer in another width."""
    if value.type.width == kind.width:
        return value
    return (b.sext if value.type.width < kind.width else b.trunc)(value, kind)


def _is_zero(value: Value) -> bool:
    """Whether a value is the constant 0."""
    return isinstance(value, ll.Constant) and value.constant == 0
