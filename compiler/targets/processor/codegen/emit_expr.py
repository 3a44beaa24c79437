"""LLVM instructions for expressions: values, indices, addresses of elements, and functions.

In a vectorized loop a value that depends on the loop's variable is a vector, with a lane for each
step; every other one stays a scalar until it meets a vector (``targets.lanes``).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir as ll

from vdla.compiler.targets.lanes import (
    COMPARED,
    constant,
    element,
    lane,
    lanes_of,
    per_lane,
    shaped,
    splat,
    together,
)
from vdla.compiler.targets.mathematics import IN_LANES, Mathematics, requantized, scale_word
from vdla.compiler.targets.processor.codegen.emit_memory import (
    I32,
    I64,
    SIZES,
    TYPES,
    Memory,
    is_unsigned,
    resized,
)
from vdla.compiler.targets.processor.codegen.inlined import inlined_function
from vdla.compiler.tir.arith import bounds, is_index
from vdla.compiler.tir.ir import (
    COMPARISONS,
    LIBRARY_CALLS,
    WORD_CALLS,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Not,
    Select,
    Var,
    is_float,
    is_int,
)
from vdla.compiler.tir.visitor import loads, uses, walk_expr

WHOLE = 1.5 * 2.0**52  # float64 has no bits for a fraction there
ODD = 29  # how many bits of a mantissa float64 has more than float32


class Expressions(Memory):
    """Emits the expressions of one function at the builder's place.

    The methods give LLVM values and append what computes them.
    """

    def value(self, expr: Expr) -> ll.Value:
        """The value of an expression."""
        b = self.builder
        match expr:
            case Const(value, dtype):
                return ll.Constant(TYPES[dtype], value)
            case Var():
                return resized(b, self.values[expr], I32)
            case Binary(op, _, _) if op in COMPARISONS:
                return self._comparison(expr)
            case Binary():
                return self._arithmetic(expr.op, expr.dtype, self.value(expr.a), self.value(expr.b))
            case Not(a):
                return b.not_(self.value(a))
            case Select():
                return self._select(expr)
            case Cast(Call("rint", (a,), "float64"), "int32"):
                return self._nearest(self.value(a))
            case Cast(a, dtype):
                return self._cast(self.value(a), a.dtype, dtype)
            case Load(buffer, indices):
                return self.load(buffer, indices)
            case Call(op, args, dtype):
                return self._call(op, [self.value(a) for a in args], dtype)
        raise TypeError(f"no native code for {type(expr).__name__}")

    def _comparison(self, expr: Binary) -> ll.Value:
        """A comparison; of floats, only ``ne`` holds where one is NaN."""
        b, symbol, dtype = self.builder, COMPARED[expr.op], expr.a.dtype
        if is_index(expr.a) and is_index(expr.b):
            return b.icmp_signed(symbol, *together(b, self._index(expr.a), self._index(expr.b)))
        x, y = together(b, self.value(expr.a), self.value(expr.b))
        if is_float(dtype):
            unequal = expr.op == "ne"
            return (b.fcmp_unordered if unequal else b.fcmp_ordered)(symbol, x, y)
        return (b.icmp_unsigned if is_unsigned(dtype) else b.icmp_signed)(symbol, x, y)

    def _arithmetic(self, op: str, dtype: str, x: ll.Value, y: ll.Value) -> ll.Value:
        """Arithmetic and logic on two values of one dtype."""
        b = self.builder
        x, y = together(b, x, y)
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
            return self._divide(op, x, y, plain=is_unsigned(dtype))
        shr = b.lshr if is_unsigned(dtype) else b.ashr
        build: Callable[[ll.Value, ll.Value], ll.Value] = {
            "add": b.add,
            "sub": b.sub,
            "mul": b.mul,
            "shl": b.shl,
            "shr": shr,
        }[op]
        return build(x, y)

    def _minmax(self, op: str, dtype: str, x: ll.Value, y: ll.Value) -> ll.Value:
        """The lesser or greater value; NaN where either is, as numpy has it."""
        b, symbol = self.builder, "<" if op == "min" else ">"
        if is_float(dtype):
            # y where either is NaN and x isn't chosen; NaN in y propagates, as in x by the order.
            chosen = b.or_(b.fcmp_ordered(symbol, x, y), b.fcmp_unordered("uno", x, x))
        else:
            chosen = (b.icmp_unsigned if is_unsigned(dtype) else b.icmp_signed)(symbol, x, y)
        return b.select(chosen, x, y)

    def _select(self, expr: Select) -> ll.Value:
        """Both sides and a select where loading them is safe, else a branch; one side where the
        condition is known, as it is of a loop that is unrolled."""
        b, known = self.builder, self._known(expr.cond)
        if known is not None:
            return self.value(expr.a if known else expr.b)
        cond = self.value(expr.cond)
        if self.safe(expr.a) and self.safe(expr.b):
            x, y, *_ = together(b, self.value(expr.a), self.value(expr.b), cond)
            return b.select(cond, x, y)
        if isinstance(cond.type, ll.VectorType):
            with self.masked(cond):
                left = self.value(expr.a)
            with self.masked(b.not_(cond)):
                right = self.value(expr.b)
            left, right, *_ = together(b, left, right, cond)
            return b.select(cond, left, right)
        with b.if_else(cond) as (then, orelse):
            with then:
                left = self._in_all_lanes(expr.a, expr)
                left_block = b.block
            with orelse:
                right = self._in_all_lanes(expr.b, expr)
                right_block = b.block
        phi = b.phi(left.type)
        phi.add_incoming(left, left_block)
        phi.add_incoming(right, right_block)
        return phi

    def _known(self, cond: Expr) -> bool | None:
        """Whether a condition on indices holds for all values of the loops, or for none."""
        match cond:
            case Binary("and" | "or" as op, a, b):
                sides = (self._known(a), self._known(b))
                if (op == "or") in sides:
                    return op == "or"
                return None if None in sides else op == "and"
            case Binary(op, a, b) if op in COMPARISONS and is_index(a) and is_index(b):
                return self._compared(op, a, b)
        return None

    def _compared(self, op: str, a: Expr, b: Expr) -> bool | None:
        """Result of comparing two indices, where that is the same for all values of the loops; None
        elsewhere.
        """
        limits = bounds(a - b, self.ranges)
        if limits is None:
            return None
        low, high = limits
        holds = {"lt": high < 0, "le": high <= 0, "gt": low > 0, "ge": low >= 0,
                 "eq": low == high == 0, "ne": low > 0 or high < 0}  # fmt: skip
        fails = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
        return True if holds[op] else False if holds[fails[op]] else None

    def _in_all_lanes(self, side: Expr, expr: Select) -> ll.Value:
        """One side of a selection, as a vector where either of them is one."""
        value = self.value(side)
        if self.vector is None or not uses(expr, {self.vector[0]}) or lanes_of(value):
            return value
        return splat(self.builder, value, self.vector[1])

    def safe(self, expr: Expr) -> bool:
        """Whether evaluating is harmless for all values of the loops."""
        return all(
            self._in_bounds(index, size)
            for load in walk_expr(expr)
            if isinstance(load, Load)
            for index, size in zip(load.indices, load.buffer.shape, strict=True)
        )

    def maskable(self, expr: Expr) -> bool:
        """Whether evaluating is harmless in all lanes where a mask shuts some: what lies beyond a
        buffer is read side by side, and no integers are divided."""
        beside = (self.lane_step(e.buffer, e.indices) == 1 or self.safe(e) for e in loads(expr))
        return all(beside) and not divides(expr)

    def _cast(self, x: ll.Value, source: str, dtype: str) -> ll.Value:
        """A value as another dtype, as numpy converts it where it fits."""
        b, kind = self.builder, shaped(TYPES[dtype], x)
        if dtype == "bool":
            zero = constant(x.type, 0)
            return (
                b.fcmp_unordered("!=", x, zero)
                if is_float(source)
                else b.icmp_signed("!=", x, zero)
            )
        if is_float(source):
            if not is_float(dtype):
                return b.fptoui(x, kind) if is_unsigned(dtype) else b.fptosi(x, kind)
            if source == dtype:
                return x
            if (source, dtype) == ("float64", "float16"):
                x = self._to_odd(x)
            wider = SIZES[dtype] > SIZES[source]
            return b.fpext(x, kind) if wider else b.fptrunc(x, kind)
        if is_float(dtype):
            return b.uitofp(x, kind) if is_unsigned(source) else b.sitofp(x, kind)
        width, wanted = element(x).width, TYPES[dtype].width
        if wanted <= width:
            return b.trunc(x, kind) if wanted < width else x
        return b.zext(x, kind) if is_unsigned(source) else b.sext(x, kind)

    def _nearest(self, x: ll.Value) -> ll.Value:
        """The whole number nearest to a float64, as int32, in one addition: it stands in the lowest
        bits of a number as large as WHOLE."""
        b = self.builder
        bits = b.bitcast(b.fadd(x, constant(x.type, WHOLE)), shaped(I64, x))
        return b.trunc(bits, shaped(I32, x))

    def _to_odd(self, x: ll.Value) -> ll.Value:
        """A float64 as a float32 whose last bit is set where bits are lost.

        Rounding it again is then the same as rounding the float64 once. No processor here makes a
        float16 of a float64, and LLVM's call of a function for it finds none in every process.
        """
        b, wide = self.builder, shaped(I64, x)
        bits, last = b.bitcast(x, wide), 1 << ODD
        lost = b.and_(bits, constant(wide, last - 1))
        kept = b.xor(bits, lost)
        odd = b.icmp_unsigned("!=", lost, constant(wide, 0))
        bits = b.or_(kept, b.shl(b.zext(odd, wide), constant(wide, ODD)))
        return b.fptrunc(b.bitcast(bits, x.type), shaped(TYPES["float32"], x))

    def _call(self, op: str, args: list[ll.Value], dtype: str) -> ll.Value:
        """One of the functions of expressions: of LLVM, of the C library, or of scale words."""
        args = list(together(self.builder, *args))
        if op == "rq":
            return requantized(self.builder, *args)
        if op in WORD_CALLS:
            return scale_word(self.builder, op, args[0], lambda x: self._intrinsic("sqrt", [x]))
        if op in IN_LANES and dtype == "float32":
            return self.builder.call(self._written_once(op, args[0].type), args)
        if dtype == "float16":  # no library has them: computed in float32, as numpy does
            wider = [self._cast(x, dtype, "float32") for x in args]
            return self._cast(self._call(op, wider, "float32"), "float32", dtype)
        if op in LIBRARY_CALLS:
            name = f"{op}f" if dtype == "float32" else op
            return self._each(self.library(name, TYPES[dtype], [TYPES[dtype]]), args[0])
        if op == "fma":
            return self._intrinsic("fma", args)
        if op == "abs" and not is_float(dtype):
            negative = self.builder.icmp_signed("<", args[0], constant(args[0].type, 0))
            if is_unsigned(dtype):
                return args[0]
            return self.builder.select(negative, self.builder.neg(args[0]), args[0])
        return self._intrinsic("fabs" if op == "abs" else op, args)

    def _written_once(self, op: str, kind: ll.Type) -> ll.Function:
        """One of the functions that are arithmetic, for a type."""
        lanes = kind.count if isinstance(kind, ll.VectorType) else 0
        name = f"vdla.{op}.v{lanes}" if lanes else f"vdla.{op}"
        if name not in self.module.globals:
            function = inlined_function(self.module, name, ll.FunctionType(kind, [kind]))
            builder = ll.IRBuilder(function.append_basic_block())
            inner = Expressions(self.module, builder, {}, self.size)
            compute: Callable[[ll.Value], ll.Value]
            compute = getattr(Mathematics(builder, inner.multiply_add), op)
            builder.ret(compute(function.args[0]))
        return self.module.globals[name]

    def _intrinsic(self, name: str, args: list[ll.Value]) -> ll.Value:
        """One of LLVM's functions, of floats."""
        kind = args[0].type
        lanes = f"v{lanes_of(args[0])}" if lanes_of(args[0]) else ""
        full = f"llvm.{name}.{lanes}{element(args[0]).intrinsic_name}"
        return self.builder.call(self.library(full, kind, [kind] * len(args)), args)

    def _each(self, function: ll.Value, x: ll.Value) -> ll.Value:
        """A function of scalars, of every lane."""
        b, lanes = self.builder, lanes_of(x)
        if not lanes:
            return b.call(function, [x])
        return per_lane(b, lanes, lambda i: b.call(function, [lane(b, x, i)]))

    def multiply_add(self, x: ll.Value, y: ll.Value, to: ll.Value) -> ll.Value:
        """``x * y + to`` of floats, rounded once where the target does both in one instruction."""
        return self._intrinsic("fmuladd", list(together(self.builder, x, y, to)))

    def library(self, name: str, result: ll.Value, args: list[ll.Value]) -> ll.Value:
        """A function of the C library or an intrinsic of LLVM, declared once per module."""
        if name in self.module.globals:
            return self.module.globals[name]
        function = ll.Function(self.module, ll.FunctionType(result, args), name)
        if name == "malloc":
            function.return_value.add_attribute("noalias")
        return function


def divides(expr: Expr) -> bool:
    """Whether integers are divided by what may be zero, which ends a program."""
    return any(
        isinstance(e, Binary)
        and e.op in ("floordiv", "floormod")
        and is_int(e.dtype)
        and not (isinstance(e.b, Const) and e.b.value)
        for e in walk_expr(expr)
    )
