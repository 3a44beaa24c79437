"""Expressions and regions of a script, read from Python's syntax tree.

Operators, comparisons, ``and``, ``or``, ``not`` and ``A[y, x]`` are Python's. Functions are those
of :mod:`vdla.compiler.tir.parse_expr`: ``vdla.exp(x)`` or ``exp(x)``, ``vdla.int8(3)`` for a
literal of a dtype and for a cast; ``vdla.select(c, a, b)`` is ``a if c else b``. A literal takes
the dtype of what it meets, so that ``A[i] + 1`` is of A's; else it is an int32, a float32 or a
bool. A number that stands around the function is a literal, too.
"""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Callable
from typing import TypeVar

from vdla.compiler.tir import ir
from vdla.compiler.tir.ir import DTYPES, Buffer, BufferRegion, Const, Expr, IRError, Var
from vdla.compiler.tir.names import Scopes, Thing
from vdla.compiler.tir.parse_expr import LARGEST
from vdla.compiler.tir.script_source import Source, word_of

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "floormod", ast.LShift: "shl", ast.RShift: "shr", ast.BitAnd: "bitand",
    ast.BitXor: "bitxor", ast.BitOr: "bitor",
}  # fmt: skip
COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
COUNTS = {"min": 2, "max": 2, "select": 3}
Bound = ChainMap[str, tuple[Var | Buffer, int]]  # what is bound, and in which line
Built = TypeVar("Built")


class ScriptExprs(Scopes[int]):
    """Reads expressions where names are bound."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    # Names ------------------------------------------------------------------------------------

    def bind(self, name: str, thing: Var | Buffer, node: ast.AST) -> None:
        """From here on in this scope, ``name`` means ``thing``.

        Raises:
            ParseError: the name means something already.
        """
        if name in self.bound:
            line = self.source.first + self.bound[name][1] - 1
            raise self.source.expected("a new name", node, f"{name}, which line {line} binds")
        self.bound[name] = (thing, getattr(node, "lineno", 1))

    def known(self, kind: type[Thing], what: str, node: ast.expr) -> Thing:
        """Meaning of a name.

        Raises:
            ParseError: nothing of that kind has the name.
        """
        thing = (
            self.bound[node.id][0] if isinstance(node, ast.Name) and node.id in self.bound else 0
        )
        if not isinstance(thing, kind):
            group = [name for name, (each, _) in self.bound.items() if isinstance(each, kind)]
            choice = f" of {', '.join(sorted(group))}" if group else ""
            raise self.source.expected(f"{what}{choice}", node)
        return thing

    # Expressions ------------------------------------------------------------------------------

    def node(self, at: ast.AST, make: Callable[..., Built], *args: object) -> Built:
        """A node; what its constructor refuses is refused where it stands."""
        try:
            return make(*args)
        except IRError as error:
            raise self.source.refused(str(error), at) from None

    def expr(self, e: ast.expr) -> Expr:
        """An expression."""
        if (number := self.literal(e)) is not None:
            return self.node(e, ir.const, number)
        match e:
            case ast.Name():
                return self.known(Var, "a variable", e)
            case ast.Subscript():
                return ir.Load(*self.element(e))
            case ast.BinOp(a, op, b) if type(op) in OPERATORS:
                return self.binary(e, OPERATORS[type(op)], a, b)
            case ast.Compare(a, [op], [b]) if type(op) in COMPARED:
                return self.binary(e, COMPARED[type(op)], a, b)
            case ast.Compare(_, [_, _, *_], _):
                raise self.source.expected("'and', 'or' or brackets: comparisons don't chain", e)
            case ast.BoolOp(op, values):
                return self.logic("and" if isinstance(op, ast.And) else "or", values)
            case ast.UnaryOp(ast.Not(), value):
                return self.node(e, ir.Not, self.expr(value))
            case ast.UnaryOp(ast.USub(), value):
                x = self.expr(value)
                return self.node(e, ir.binary, "sub", 0, x)
            case ast.IfExp(cond, a, b):
                return self.select(e, cond, a, b)
            case ast.Call():
                return self.called_function(e)
        raise self.source.expected("a value", e)

    def literal(self, e: ast.expr) -> int | float | None:
        """The number that an expression is: written, or standing around the function; else None."""
        match e:
            case ast.Constant(value) if isinstance(value, int | float):
                return value
            case ast.UnaryOp(ast.USub(), value):
                number = self.literal(value)
                return None if number is None or isinstance(number, bool) else -number
            case ast.Name(name) if name not in self.bound and name in self.source.around:
                around = self.source.around[name]
                return around if isinstance(around, int | float) else None
            case ast.Attribute(_, "inf" | "nan" as name) if word_of(e):
                return float(name)
        return None

    def pair(self, a: ast.expr, b: ast.expr) -> tuple[Expr, Expr]:
        """Two operands; a literal has the dtype of the other one."""
        left, right = self.literal(a), self.literal(b)
        if right is not None and left is None:
            x = self.expr(a)
            return x, self.of_dtype(b, right, x.dtype)
        if left is not None and right is None:
            y = self.expr(b)
            return self.of_dtype(a, left, y.dtype), y
        return self.expr(a), self.expr(b)

    def of_dtype(self, at: ast.expr, number: int | float, dtype: str) -> Expr:
        """A literal of a dtype; of its own where the dtype can't hold such numbers."""
        fits = isinstance(number, bool) == (dtype == "bool")
        fits = fits and (ir.is_float(dtype) or not isinstance(number, float))
        return self.node(at, ir.const, number, dtype if fits else None)

    def binary(self, at: ast.expr, op: str, a: ast.expr, b: ast.expr) -> Expr:
        """An operator's result."""
        return self.node(at, ir.Binary, op, *self.pair(a, b))

    def logic(self, op: str, values: list[ast.expr]) -> Expr:
        """Conditions joined from left to right."""
        result = self.expr(values[0])
        for value in values[1:]:
            result = self.node(value, ir.Binary, op, result, self.expr(value))
        return result

    def select(self, at: ast.expr, cond: ast.expr, a: ast.expr, b: ast.expr) -> Expr:
        """One of two values by a condition."""
        return self.node(at, ir.Select, self.expr(cond), *self.pair(a, b))

    def called_function(self, e: ast.Call) -> Expr:
        """The result of a function."""
        name, args = word_of(e.func), e.args
        if e.keywords:
            raise self.source.expected("arguments without names", e.keywords[0].value)
        if name in DTYPES:
            return self.converted(e, name)
        if name not in COUNTS and name not in ir.CALLS:
            known = ", ".join((*DTYPES, *COUNTS, *ir.CALLS))
            raise self.source.expected(f"a function ({known})", e)
        if len(args) != COUNTS.get(name, len(args)):
            raise self.source.expected(f"{COUNTS[name]} arguments of {name}", e, str(len(args)))
        if name == "select":
            return self.select(e, *args)
        if name in COUNTS:
            return self.binary(e, name, *args)
        return self.node(e, ir.call, name, *map(self.expr, args))

    def converted(self, e: ast.Call, dtype: str) -> Expr:
        """``vdla.int8(3)``, a literal; ``vdla.int8(x)``, a cast."""
        if len(e.args) != 1:
            raise self.source.expected(f"1 argument of {dtype}", e, str(len(e.args)))
        number = self.literal(e.args[0])
        if number is not None and not isinstance(number, bool):
            return self.node(e.args[0], ir.const, number, dtype)
        return ir.Cast(self.expr(e.args[0]), dtype)

    def typed(self, dtype: str, what: str, e: ast.expr) -> Expr:
        """An expression of a dtype."""
        number = self.literal(e)
        expr = self.expr(e) if number is None else self.of_dtype(e, number, dtype)
        if expr.dtype != dtype:
            raise self.source.expected(f"{what} of {dtype}", e, expr.dtype)
        return expr

    # Places -----------------------------------------------------------------------------------

    def element(self, e: ast.expr) -> tuple[Buffer, tuple[Expr, ...]]:
        """``NAME[expr, …]``, with as many indices as the buffer has dimensions."""
        buffer, dims = self.subscript(e)
        return buffer, tuple(map(self.index, dims))

    def subscript(self, e: ast.expr) -> tuple[Buffer, list[ast.expr]]:
        """A buffer, and what stands in brackets behind it for each dimension."""
        if not isinstance(e, ast.Subscript):
            raise self.source.expected("an element of a buffer, as A[i]", e)
        buffer = self.known(Buffer, "a buffer", e.value)
        dims = list(e.slice.elts) if isinstance(e.slice, ast.Tuple) else [e.slice]
        if len(dims) != len(buffer.shape):
            wanted = f"{len(buffer.shape)} indices of {buffer.name}"
            raise self.source.expected(wanted, e, str(len(dims)))
        return buffer, dims

    def index(self, e: ast.expr) -> Expr:
        """An expression that can be an index."""
        expr = self.expr(e)
        if expr.dtype not in ("int32", "int64"):
            raise self.source.expected("an index of int32 or int64", e, expr.dtype)
        return expr

    def region(self, e: ast.expr) -> BufferRegion:
        """``NAME[low : low + extent, index]``."""
        buffer, dims = self.subscript(e)
        return BufferRegion(buffer, tuple(map(self.range, dims)))

    def range(self, e: ast.expr) -> tuple[Expr, int]:
        """The lowest index of a slice, and how many there are from it on; of an index, one."""
        if not isinstance(e, ast.Slice):
            return self.index(e), 1
        wanted = "a slice as y : y + 4"
        if e.lower is None or e.upper is None or e.step is not None:
            raise self.source.expected(wanted, e)
        low = self.index(e.lower)
        match e.upper:
            case ast.BinOp(left, ast.Add(), right) if ast.dump(left) == ast.dump(e.lower):
                return low, self.extent(right)
        top = self.literal(e.upper)
        if isinstance(low, Const) and isinstance(top, int) and top > low.value:
            return low, top - int(low.value)
        raise self.source.expected(wanted, e)

    def extent(self, e: ast.expr) -> int:
        """Whole number, one at least, that is known before the function runs."""
        wanted = f"a whole number from 1 to {LARGEST}"
        value = self.source.constant(e, wanted)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
            raise self.source.expected(wanted, e, repr(value))
        return value
