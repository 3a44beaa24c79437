"""LLVM instructions for the expressions of one kernel, and for the elements that it reads.

Rules:

- Numbers are those of ``codegen.opencl``: integers wrap, division rounds towards minus infinity
  and gives 0 by 0, ``min`` and ``max`` give NaN where either side is, floats are rounded after
  every operation, ``float16`` is computed as float, and rounded where it is stored or converted.
- A shift by as many bits as there are, or more, leaves what the interpreter leaves.
- What isn't needed may be computed, except loads that could leave their buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llvmlite import ir as ll

from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.gpu.codegen.kernel import element_number, is_unrounded
from vdla.compiler.targets.lanes import COMPARED
from vdla.compiler.targets.mathematics import IN_LANES, Mathematics, requantized, scale_word
from vdla.compiler.tir.arith import bounds, is_index
from vdla.compiler.tir.ir import (
    COMPARISONS,
    FLOAT_CALLS,
    INT_RANGES,
    LOCAL,
    WORD_CALLS,
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

I1, I8, I16, I32, I64 = (ll.IntType(n) for n in (1, 8, 16, 32, 64))
HALF, FLOAT, DOUBLE = ll.HalfType(), ll.FloatType(), ll.DoubleType()
TYPES = {  # of values
    "bool": I1, "int8": I8, "uint8": I8, "int16": I16, "uint16": I16, "int32": I32, "uint32": I32,
    "int64": I64, "uint64": I64, "float16": FLOAT, "float32": FLOAT, "float64": DOUBLE,
}  # fmt: skip
INTRINSICS = {"sqrt": "sqrt", "rint": "rint", "floor": "floor", "abs": "fabs", "fma": "fma"}
FLAGS = ("add", "sub", "mul")  # where LLVM is told that a number doesn't overflow


def memory_type(buffer: Buffer) -> ll.Type:
    """An element as it lies in memory: a bool takes a byte, a float16 half a float's."""
    if buffer.dtype == "bool":
        return I8
    if buffer.dtype == "float16" and buffer.scope != LOCAL:
        return HALF
    return TYPES[buffer.dtype]


def has_code(op: str, dtype: str) -> bool:
    """Whether a function of expressions can be computed without a library."""
    if op in WORD_CALLS or op in INTRINSICS:
        return True
    return op in IN_LANES and TYPES[dtype] == FLOAT


def no_code(name: str, op: str, dtype: str) -> NoCodeError:
    """Says that a kernel calls a function which needs a library: NVIDIA's isn't linked."""
    known = ", ".join(sorted(f for f in (*FLOAT_CALLS, "abs", "fma") if has_code(f, dtype)))
    return NoCodeError(
        f"{name}: expected a function that kernels in PTX have of {dtype} ({known}), found {op}; "
        "those in OpenCL C have it"
    )


def is_unsigned(dtype: str) -> bool:
    """Whether a dtype's numbers have no sign."""
    return dtype == "bool" or dtype.startswith("uint")


class Values:
    """Appends what computes expressions at the builder's place, which its owner moves.

    Attributes:
        name: the kernel's, for errors.
        pointers: where the elements of each buffer begin.
        variables: the value of each loop variable, an int32.
        ranges: the least and the greatest value of each loop variable.
    """

    def __init__(self, name: str, module: ll.Module, builder: ll.IRBuilder) -> None:
        self.name, self.module, self.builder = name, module, builder
        self.pointers: dict[Buffer, ll.Value] = {}
        self.variables: dict[Var, ll.Value] = {}
        self.ranges: dict[Var, tuple[int, int]] = {}

    # --- elements ---

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> ll.Value:
        """The address of an element."""
        place = element_number(buffer, indices, self.ranges)
        number = self.value(place)
        if place.dtype == "int32":
            wider = self.builder.zext if self.is_natural(place) else self.builder.sext
            number = wider(number, I64)
        kind = memory_type(buffer)
        return self.builder.gep(self.pointers[buffer], [number], inbounds=True, source_etype=kind)

    def load(self, buffer: Buffer, indices: tuple[Expr, ...]) -> ll.Value:
        """An element's value."""
        b, kind = self.builder, memory_type(buffer)
        result = b.load(self.element(buffer, indices), typ=kind)
        if buffer.dtype == "bool":
            return b.icmp_unsigned("!=", result, I8(0))
        return b.fpext(result, FLOAT) if kind == HALF else result

    def store(self, buffer: Buffer, indices: tuple[Expr, ...], value: Expr) -> None:
        """Writes an element."""
        b, kind, result = self.builder, memory_type(buffer), self.value(value)
        if buffer.dtype == "bool":
            result = b.zext(result, I8)
        if kind == HALF:
            result = b.fptrunc(result, HALF)
        b.store(result, self.element(buffer, indices))

    # --- expressions ---

    def value(self, e: Expr) -> ll.Value:
        """The value of an expression."""
        match e:
            case Const(value, dtype):
                return _constant(value, dtype)
            case Var():
                return self.variables[e]
            case Binary(op, _, _) if op in ("and", "or"):
                return self._logic(e)
            case Binary(op, a, b) if op in COMPARISONS:
                return self._comparison(op, a.dtype, self.value(a), self.value(b))
            case Binary():
                return self._binary(e)
            case Not(a):
                return self.builder.not_(self.value(a))
            case Select(cond, a, b):
                return self._choice(self.value(cond), a, b)
            case Cast(a, dtype):
                x = self.value(a)
                return self._cast(self._halved(x) if is_unrounded(a) else x, a.dtype, dtype)
            case Load(buffer, indices):
                return self.load(buffer, indices)
            case Call(op, args, dtype):
                return self._call(op, [self.value(arg) for arg in args], dtype)
        raise NoCodeError(f"{self.name}: no PTX for {type(e).__name__}")

    def _choice(self, cond: ll.Value, a: Expr, b: Expr) -> ll.Value:
        """One of two values: both and a choice where that is harmless, else a branch."""
        if self._is_safe(a) and self._is_safe(b):
            return self.builder.select(cond, self.value(a), self.value(b))
        result = []
        with self.builder.if_else(cond) as sides:
            for side, e in zip(sides, (a, b), strict=True):
                with side:
                    result.append((self.value(e), self.builder.block))
        phi = self.builder.phi(result[0][0].type)
        for value, block in result:
            phi.add_incoming(value, block)
        return phi

    def _logic(self, e: Binary) -> ll.Value:
        """``and`` and ``or``, whose second side may need the first one to hold."""
        ends = Const(e.op == "or", "bool")
        first = self.value(e.a)
        return self._choice(first, ends, e.b) if e.op == "or" else self._choice(first, e.b, ends)

    def _is_safe(self, e: Expr) -> bool:
        """Whether all loads of an expression stay in their buffers, whatever the loops' values."""
        loads = (x for x in walk_expr(e) if isinstance(x, Load))
        return all(
            self._is_within(index, 0, size - 1)
            for load in loads
            for index, size in zip(load.indices, load.buffer.shape, strict=True)
        )

    def _is_within(self, e: Expr, low: int, high: int) -> bool:
        """Whether an index provably lies between two numbers, both included."""
        result = bounds(e, self.ranges) if is_index(e) else None
        return result is not None and result[0] >= low and result[1] <= high

    def is_natural(self, e: Expr) -> bool:
        """Whether an index is provably at least 0."""
        return self._is_within(e, 0, INT_RANGES[e.dtype][1])

    def _comparison(self, op: str, dtype: str, x: ll.Value, y: ll.Value) -> ll.Value:
        """A comparison; of floats, only ``ne`` holds where one is NaN."""
        b, symbol = self.builder, COMPARED[op]
        if is_float(dtype):
            return (b.fcmp_unordered if op == "ne" else b.fcmp_ordered)(symbol, x, y)
        return (b.icmp_unsigned if is_unsigned(dtype) else b.icmp_signed)(symbol, x, y)

    def _binary(self, e: Binary) -> ll.Value:
        """Arithmetic and bits of two values of one dtype."""
        b, op, dtype = self.builder, e.op, e.dtype
        x, y = self.value(e.a), self.value(e.b)
        if op in ("min", "max"):
            chosen = self._comparison("lt" if op == "min" else "gt", dtype, x, y)
            if is_float(dtype):  # NaN in y propagates by the order, as no comparison holds
                chosen = b.or_(chosen, b.fcmp_unordered("uno", x, x))
            return b.select(chosen, x, y)
        if is_float(dtype):
            return {"add": b.fadd, "sub": b.fsub, "mul": b.fmul, "div": b.fdiv}[op](x, y)
        if op in ("floordiv", "floormod"):
            return self._quotient(e, x, y)
        if op in ("shl", "shr"):
            return self._shift(op, dtype, x, y)
        if op in FLAGS:
            known = self._is_within(e, *INT_RANGES[dtype])
            build = {"add": b.add, "sub": b.sub, "mul": b.mul}[op]
            return build(x, y, flags=("nsw",) if known and not is_unsigned(dtype) else ())
        bits: Mapping[str, Callable[[ll.Value, ll.Value], ll.Value]] = {
            "bitand": b.and_, "bitor": b.or_, "bitxor": b.xor,
        }  # fmt: skip
        return bits[op](x, y)

    def _shift(self, op: str, dtype: str, x: ll.Value, y: ll.Value) -> ll.Value:
        """A shift; of more bits than there are, it leaves zeros, or the sign to the right."""
        b, kind = self.builder, x.type
        few = b.icmp_unsigned("<", y, kind(kind.width))
        if op == "shr" and not is_unsigned(dtype):
            return b.ashr(x, b.select(few, y, kind(kind.width - 1)))
        build = b.shl if op == "shl" else b.lshr
        return b.select(few, build(x, b.select(few, y, kind(0))), kind(0))

    def _quotient(self, e: Binary, x: ll.Value, y: ll.Value) -> ll.Value:
        """A division or a remainder towards minus infinity; 0 by 0."""
        b, kind, remains = self.builder, x.type, e.op == "floormod"
        natural = is_unsigned(e.dtype) or (self.is_natural(e.a) and self.is_natural(e.b))
        zero, one = kind(0), kind(1)
        none = b.icmp_unsigned("==", y, zero)
        if natural:
            divisor = b.select(none, one, y)
            result = (b.urem if remains else b.udiv)(x, divisor)
            return b.select(none, zero, result)
        minus = b.icmp_unsigned("==", y, kind(-1))
        divisor = b.select(b.or_(none, minus), one, y)  # the least number by -1 has no quotient
        rest = b.srem(x, divisor)
        below = b.and_(
            b.icmp_unsigned("!=", rest, zero), b.icmp_signed("<", b.xor(x, divisor), zero)
        )
        if remains:  # by 1 it is 0, so that 0 and -1 have theirs
            return b.select(below, b.add(rest, divisor), rest)
        result = b.add(b.sdiv(x, divisor), b.sext(below, kind))
        return b.select(none, zero, b.select(minus, b.neg(x), result))

    def _cast(self, x: ll.Value, source: str, dtype: str) -> ll.Value:
        """A value as another dtype."""
        if dtype == "float16" and source != dtype:
            return self._halved(x if is_float(source) else self._cast(x, source, "float32"))
        b, kind = self.builder, TYPES[dtype]
        if dtype == "bool":
            zero = ll.Constant(x.type, 0)
            if is_float(source):
                return b.fcmp_unordered("!=", x, zero)
            return b.icmp_unsigned("!=", x, zero)
        if is_float(source) and is_float(dtype):
            if x.type == kind:
                return x
            return b.fpext(x, kind) if kind == DOUBLE else b.fptrunc(x, kind)
        if is_float(source):
            if dtype in ("int32", "int64"):
                return b.fptosi(x, kind)
            return b.fptoui(x, kind) if dtype == "uint64" else b.trunc(b.fptosi(x, I64), kind)
        if is_float(dtype):
            return (b.uitofp if is_unsigned(source) else b.sitofp)(x, kind)
        if kind.width <= x.type.width:
            return b.trunc(x, kind) if kind.width < x.type.width else x
        return (b.zext if is_unsigned(source) else b.sext)(x, kind)

    def _halved(self, x: ll.Value) -> ll.Value:
        """A float rounded to a float16, as a float."""
        return self.builder.fpext(self.builder.fptrunc(x, HALF), FLOAT)

    # --- functions ---

    def _call(self, op: str, args: list[ll.Value], dtype: str) -> ll.Value:
        """One of the functions of expressions."""
        b = self.builder
        if not has_code(op, dtype):
            raise no_code(self.name, op, dtype)
        if op == "rq":
            return requantized(b, *args)
        if op in WORD_CALLS:
            return scale_word(b, op, args[0], lambda x: self._intrinsic("sqrt", [x]))
        if op in IN_LANES:
            compute: Callable[[ll.Value], ll.Value] = getattr(Mathematics(b, self._fused), op)
            return compute(args[0])
        if op == "abs" and not is_float(dtype):
            x = args[0]
            if is_unsigned(dtype):
                return x
            return b.select(b.icmp_signed("<", x, x.type(0)), b.neg(x), x)
        return self._intrinsic(INTRINSICS[op], args)

    def _fused(self, x: ll.Value, y: ll.Value, to: ll.Value) -> ll.Value:
        """``x * y + to``, rounded once."""
        return self._intrinsic("fma", [x, y, to])

    def _intrinsic(self, name: str, args: list[ll.Value]) -> ll.Value:
        """One of LLVM's functions of floats."""
        kind = args[0].type
        function = self.function(f"llvm.{name}.{kind.intrinsic_name}", kind, [kind] * len(args))
        return self.builder.call(function, args)

    def function(self, name: str, result: ll.Value, args: list[ll.Value]) -> ll.Value:
        """A function of LLVM's, declared once per module."""
        if name not in self.module.globals:
            ll.Function(self.module, ll.FunctionType(result, args), name)
        return self.module.globals[name]


def _constant(value: int | float, dtype: str) -> ll.Value:
    """A number; the largest of uint64 as LLVM reads it, with a sign."""
    if dtype == "uint64" and value > INT_RANGES["int64"][1]:
        value -= 1 << 64
    return ll.Constant(TYPES[dtype], float(value) if is_float(dtype) else int(value))
