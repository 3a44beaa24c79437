"""Expressions: pure values, and how Python's operators build them.

Grammar::

    Expr ::= Const(value, dtype) | Var(name, dtype)
           | Binary(op, a, b) | Not(a) | Select(cond, a, b) | Cast(a, dtype)
           | Load(buffer, indices: Expr*) | Call(op, args, dtype)
    op   ::= add sub mul div floordiv floormod min max shl shr  (operands and result alike)
           | lt le gt ge eq ne                                  (bool)
           | and or                                             (bool, bool -> bool)
           | bitand bitor bitxor                                (integers)

Rules of meaning:

- Integers wrap; floordiv and floormod round towards minus infinity; shr is arithmetic for signed
  integers. Select evaluates the chosen side only, so the other one may load out of bounds.
- Call("rq", acc, scale) requantizes exactly, Call("reciprocal", y) and Call("rsqrt", y) are scale
  words: see ``ops``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from vdla.compiler.tir.ir.buffer import Buffer
from vdla.compiler.tir.ir.comparison import compares_values, comparing, tree_equality
from vdla.compiler.tir.ir.dtypes import DTYPES, FLOATS, INT_RANGES, is_float, is_int
from vdla.compiler.tir.ir.error import TermError

ARITHMETIC = ("add", "sub", "mul", "div", "floordiv", "floormod", "min", "max", "shl", "shr")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
LOGIC = ("and", "or")
BITWISE = ("bitand", "bitor", "bitxor")
BINARY_OPS = (*ARITHMETIC, *COMPARISONS, *LOGIC, *BITWISE)
COMMUTATIVE = ("add", "mul", "min", "max", "eq", "ne", "and", "or", "bitand", "bitor", "bitxor")

LIBRARY_CALLS = (  # those that the C library computes
    "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
)  # fmt: skip
FLOAT_CALLS = ("exp", "sqrt", "rint", "floor", "tanh", "log", "pow", *LIBRARY_CALLS)
WORD_CALLS = ("rq", "reciprocal", "rsqrt")  # that take or give scale words, of int32
CALLS = (*FLOAT_CALLS, "abs", *WORD_CALLS, "fma")
ARGUMENTS = {"pow": 2, "rq": 2, "fma": 3}  # of the others there is one

ExprLike = Union["Expr", int, float, bool]


class Expr:
    """Base of expressions: pure values, built by Python's operators.

    ``a == b`` compares two expressions as trees and gives a Python bool; ``a.equal(b)`` is the
    expression that compares their values. In functions that a user writes for te ``==`` is that,
    too: see ``comparison``.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self.equal(other) if compares_values() else NotImplemented  # type: ignore

    def __ne__(self, other: object) -> bool:
        if compares_values():
            return self.not_equal(other)  # type: ignore
        result = self.__eq__(other)
        return result if result is NotImplemented else not result

    @property
    def dtype(self) -> str:
        """The type of the value, one of ``DTYPES``."""
        raise NotImplementedError

    def astype(self, dtype: str) -> Expr:
        """The value as another dtype; itself where it has that one.

        Integers wrap; floats become integers by dropping the fraction.
        """
        return cast(self, dtype)

    def equal(self, other: ExprLike) -> Expr:
        """The expression of whether both values are equal, a bool."""
        return binary("eq", self, other)

    def not_equal(self, other: ExprLike) -> Expr:
        """The expression of whether both values differ, a bool."""
        return binary("ne", self, other)

    def __add__(self, other: ExprLike) -> Expr:
        return binary("add", self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return binary("add", other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return binary("sub", self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return binary("sub", other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return binary("mul", self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return binary("mul", other, self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return binary("div", self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return binary("div", other, self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return binary("floordiv", self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return binary("floordiv", other, self)

    def __mod__(self, other: ExprLike) -> Expr:
        return binary("floormod", self, other)

    def __rmod__(self, other: ExprLike) -> Expr:
        return binary("floormod", other, self)

    def __lshift__(self, other: ExprLike) -> Expr:
        return binary("shl", self, other)

    def __rshift__(self, other: ExprLike) -> Expr:
        return binary("shr", self, other)

    def __lt__(self, other: ExprLike) -> Expr:
        return binary("lt", self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return binary("le", self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return binary("gt", self, other)

    def __ge__(self, other: ExprLike) -> Expr:
        return binary("ge", self, other)

    def __and__(self, other: ExprLike) -> Expr:
        return binary("and" if self.dtype == "bool" else "bitand", self, other)

    def __or__(self, other: ExprLike) -> Expr:
        return binary("or" if self.dtype == "bool" else "bitor", self, other)

    def __xor__(self, other: ExprLike) -> Expr:
        return binary("bitxor", self, other)

    def __invert__(self) -> Expr:
        return Not(self)

    def __neg__(self) -> Expr:
        return binary("sub", 0, self)

    def __bool__(self) -> bool:
        raise TermError(
            "an expression has no truth value; use te.all, te.any, te.if_then_else or .equal()"
        )


@dataclass(frozen=True, slots=True)
class Const(Expr):
    """A number of a dtype; an integer lies in the dtype's range."""

    value: int | float
    type: str
    __eq__ = tree_equality("value", "type")

    def __post_init__(self) -> None:
        _check_const(self.value, self.type)

    @property
    def dtype(self) -> str:
        """The constant's type."""
        return self.type


@dataclass(frozen=True, slots=True, eq=False)
class Var(Expr):
    """A named value; two variables are the same only if they are one object."""

    name: str
    type: str = "int32"

    @property
    def dtype(self) -> str:
        """The variable's type."""
        return self.type


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """``a op b`` for one of ``BINARY_OPS``; both operands have the same dtype."""

    op: str
    a: Expr
    b: Expr
    __eq__ = tree_equality("op", "a", "b")

    def __post_init__(self) -> None:
        if self.op not in BINARY_OPS:
            raise TermError(
                f"expected a binary operator ({' '.join(BINARY_OPS)}), found {self.op!r}"
            )
        if self.a.dtype != self.b.dtype:
            raise TermError(
                f"{self.op}: expected operands of one dtype, found "
                f"{self.a.dtype} and {self.b.dtype}; cast one of them"
            )
        _check_operand(self.op, self.a.dtype)

    @property
    def dtype(self) -> str:
        """The type of the operands; bool for comparisons and logic."""
        if self.op in COMPARISONS or self.op in LOGIC:
            return "bool"
        return self.a.dtype


@dataclass(frozen=True, slots=True)
class Not(Expr):
    """The negation of a bool."""

    a: Expr
    __eq__ = tree_equality("a")

    def __post_init__(self) -> None:
        if self.a.dtype != "bool":
            raise TermError(f"not: expected a bool, found {self.a.dtype}")

    @property
    def dtype(self) -> str:
        """Always bool."""
        return "bool"


@dataclass(frozen=True, slots=True)
class Select(Expr):
    """``a`` where the bool ``cond`` holds, else ``b``; only the chosen one is evaluated."""

    cond: Expr
    a: Expr
    b: Expr
    __eq__ = tree_equality("cond", "a", "b")

    def __post_init__(self) -> None:
        if self.cond.dtype != "bool":
            raise TermError(f"select: expected a bool condition, found {self.cond.dtype}")
        if self.a.dtype != self.b.dtype:
            raise TermError(
                f"select: expected two values of one dtype, found "
                f"{self.a.dtype} and {self.b.dtype}; cast one of them"
            )

    @property
    def dtype(self) -> str:
        """The type of both values."""
        return self.a.dtype


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """A value as another dtype: integers wrap, floats become integers by dropping the fraction."""

    a: Expr
    type: str
    __eq__ = tree_equality("a", "type")

    @property
    def dtype(self) -> str:
        """The type that the value becomes."""
        return self.type


@dataclass(frozen=True, slots=True)
class Load(Expr):
    """The element of a buffer at ``indices``, one per dimension."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    __eq__ = tree_equality("buffer", "indices")

    @property
    def dtype(self) -> str:
        """The type of the buffer's elements."""
        return self.buffer.dtype


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """One of the pure functions in ``CALLS``; ``call`` makes one and checks its arguments."""

    op: str
    args: tuple[Expr, ...]
    type: str
    __eq__ = tree_equality("op", "args", "type")

    def __post_init__(self) -> None:
        if self.op not in CALLS:
            raise TermError(f"expected a pure function ({' '.join(CALLS)}), found {self.op!r}")

    @property
    def dtype(self) -> str:
        """The type of the result, which is that of the arguments."""
        return self.type


def _check_number(value: object) -> None:
    """Raises where it is none."""
    if isinstance(value, Buffer):
        raise TermError(f"expected an element of {value.name}, by its indices, found it as a whole")
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise TermError(f"expected a number or an expression, found {value!r}")


def _check_const(value: int | float, dtype: str) -> None:
    """Raises where a value isn't one of the dtype."""
    if dtype in INT_RANGES:
        low, high = INT_RANGES[dtype]
        if not isinstance(value, int) or not low <= value <= high:
            raise TermError(f"constant: expected {dtype} ({low} to {high}), found {value!r}")
    elif dtype not in FLOATS:
        raise TermError(f"constant: expected a dtype of {', '.join(DTYPES)}, found {dtype!r}")


def _check_operand(op: str, dtype: str) -> None:
    """Raises where an operator doesn't take operands of a dtype."""
    if op in LOGIC and dtype != "bool":
        raise TermError(f"{op}: expected bool operands, found {dtype}")
    if op in (*BITWISE, "shl", "shr", "floordiv", "floormod") and not is_int(dtype):
        raise TermError(f"{op}: expected integer operands, found {dtype}")
    if op == "div" and not is_float(dtype):
        raise TermError(f"div: expected float operands, found {dtype}; use floordiv (//)")
    if op in ("add", "sub", "mul") and dtype == "bool":
        raise TermError(f"{op}: expected numbers, found bool")


def const(value: int | float | bool, dtype: str | None = None) -> Const:
    """A constant; without a dtype, bool, int32 or float32 by its Python type.

    Raises:
        TermError: it isn't a number, or not one of the dtype.
    """
    _check_number(value)
    if dtype is None:
        dtype = (
            "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
        )
    if dtype in FLOATS:
        return Const(float(value), dtype)
    if isinstance(value, float):
        raise TermError(f"constant: expected {dtype}, found {value!r}")
    return Const(value if isinstance(value, int) and dtype != "bool" else int(value), dtype)


def as_expr(value: ExprLike, dtype: str | None = None) -> Expr:
    """A Python number as a constant of ``dtype``, as in ``const``; an expression as it is."""
    return value if isinstance(value, Expr) else const(value, dtype)


def binary(op: str, a: ExprLike, b: ExprLike) -> Expr:
    """``a op b``, where a Python number takes the other side's dtype.

    Raises:
        TermError: the operands' dtypes differ, or the operator doesn't take them.
    """
    if isinstance(a, Expr):
        return Binary(op, a, as_expr(b, a.dtype))
    if isinstance(b, Expr):
        return Binary(op, as_expr(a, b.dtype), b)
    left = const(a)
    return Binary(op, left, const(b, left.dtype))


def cast(value: ExprLike, dtype: str) -> Expr:
    """``value`` as ``dtype``; itself where it already is.

    Raises:
        TermError: there is no such dtype.
    """
    if dtype not in DTYPES:
        raise TermError(f"cast: expected a dtype of {', '.join(DTYPES)}, found {dtype!r}")
    expr = as_expr(value)
    return expr if expr.dtype == dtype else Cast(expr, dtype)


def call(op: str, *args: ExprLike) -> Expr:
    """A pure function of its arguments, one of ``CALLS``; the result has their dtype.

    Raises:
        TermError: there is no such function, or it doesn't take these arguments.
    """
    exprs = tuple(as_expr(a) for a in args)
    wanted = ARGUMENTS.get(op, 1)
    if len(exprs) != wanted:
        raise TermError(f"{op}: expected {wanted} arguments, found {len(exprs)}")
    dtypes = ", ".join(e.dtype for e in exprs)
    if op in WORD_CALLS and any(e.dtype != "int32" for e in exprs):
        raise TermError(f"{op}: expected int32 operands, found {dtypes}")
    if op == "fma" and any(e.dtype != "float32" for e in exprs):
        raise TermError(f"fma: expected float32 operands, found {dtypes}")
    if op in FLOAT_CALLS and any(not is_float(e.dtype) for e in exprs):
        raise TermError(f"{op}: expected float operands, found {dtypes}")
    if any(e.dtype != exprs[0].dtype for e in exprs):
        raise TermError(f"{op}: expected operands of one dtype, found {dtypes}")
    return Call(op, exprs, exprs[0].dtype)


TRUE = Const(1, "bool")
FALSE = Const(0, "bool")
ZERO = Const(0, "int32")


def all_of(*conds: Expr) -> Expr:
    """Whether every condition holds; ``TRUE`` for none."""
    with comparing(values=False):
        kept = [c for c in conds if c != TRUE]
        if FALSE in kept:
            return FALSE
        result: Expr = TRUE
        for cond in kept:
            result = cond if result == TRUE else Binary("and", result, cond)
    return result
