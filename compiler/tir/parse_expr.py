"""Expressions and regions of a function's text, read back.

Grammar of the text; tokens are those of :mod:`vdla.compiler.text`, ``x,*`` is any number of x with
commas between::

    region  ::= NAME "[" (expr ["+:" extent: INT]),* "]"         from an element on; without it, one

    expr    ::= expr op expr | "not" expr | "(" expr ")" | literal | NAME | NAME "[" expr,* "]"
              | ("min" | "max") "(" expr "," expr ")" | "select" "(" cond "," a "," b ")"
              | function "(" expr,* ")" | dtype "(" literal ")" | dtype "(" expr ")"
    op, from the loosest to the tightest, all from left to right; comparisons don't chain::

        or   and   (not)   < <= > >= == !=   |   ^   &   << >>   + -   * / // %

A bare literal is an int32, with a point or an exponent (or ``inf``, ``nan``) a float32, ``True``
and ``False`` are bool; ``int8(3)`` is a literal of another dtype, so that the cast of a literal
names both: ``int8(int32(3))``. A name means the loop, iterator or buffer around it that binds it.
Nothing converts by itself: operands have one dtype, or there is a cast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from vdla.compiler.text import Reader, Token
from vdla.compiler.tir import ir
from vdla.compiler.tir.ir import DTYPES, Buffer, BufferRegion, Expr, IRError, Var
from vdla.compiler.tir.names import Names
from vdla.compiler.tir.printer import COMPARISON, NOT, RESERVED, SYMBOLS

MARKS = (
    *(symbol for symbol, _ in SYMBOLS.values() if not symbol.isalpha()),
    "(", ")", "[", "]", ",", ":", "+:", "..", "=", "@",
)  # fmt: skip
OPERATORS = {symbol: (op, level) for op, (symbol, level) in SYMBOLS.items()}
LARGEST = (1 << 31) - 1  # of an extent: loop variables are int32
Built = TypeVar("Built")


class ExprParser:
    """One method per rule of the grammar."""

    def __init__(self, text: str) -> None:
        self.read = Reader(text, MARKS, RESERVED)
        self.names = Names(self.read)

    def node(self, token: Token, make: Callable[..., Built], *args: object) -> Built:
        """A node; what its constructor refuses is refused at the token."""
        try:
            return make(*args)
        except IRError as error:
            raise self.read.refused(str(error), token) from None

    def expr(self, level: int = 0) -> Expr:
        """An expression whose operators bind as tightly as ``level``."""
        left: Expr
        if self.read.sees("not") and level <= NOT:
            token = self.read.next()
            own, left = NOT, self.node(token, ir.Not, self.expr(NOT))
        else:
            own, left = COMPARISON + 1, self._atom()
        while self.read.sees(*OPERATORS):
            op, binds = OPERATORS[self.read.token.text]
            if binds < level or binds > own == NOT:
                break
            if binds == own == COMPARISON:
                raise self.read.error("'and', 'or' or brackets: comparisons don't chain")
            token = self.read.next()
            left = self.node(token, ir.binary, op, left, self.expr(binds + 1))
            own = binds
        return left

    def _atom(self) -> Expr:
        token = self.read.token
        if self.read.take("("):
            expr = self.expr()
            self.read.expect(")")
            return expr
        if self._sees_literal():
            return self._literal()
        if token.kind not in ("name", "quoted") or token.text in RESERVED:
            raise self.read.error("a value")
        if self.read.after.text == "(" and token.kind == "name":
            return self._function_call()
        if self.read.after.text == "[":
            return ir.Load(*self.element())
        return self.names.known(Var, "a variable")

    def _sees_literal(self) -> bool:
        kind = self.read.token.kind
        return kind in ("int", "float") or self.read.sees("-", "inf", "nan", "True", "False")

    def _literal(self) -> Expr:
        """A literal of its own dtype."""
        token = self.read.token
        if self.read.sees("True", "False"):
            return ir.const(self.read.next().text == "True")
        return self.node(token, ir.const, self._number())

    def _number(self) -> int | float:
        negated = self.read.sees("-") and self.read.after
        if negated and negated.kind not in ("int", "float") and negated.text not in ("inf", "nan"):
            self.read.next()
            raise self.read.error("a number after '-'; an expression is negated as 0 - x")
        return self.read.number("a number")

    def _function_call(self) -> Expr:
        token = self.read.next()
        name = token.text
        if name in DTYPES:
            return self._converted(name, token)
        counts = {"min": 2, "max": 2, "select": 3}
        if name not in counts and name not in ir.CALLS:
            known = ", ".join((*DTYPES, *counts, *ir.CALLS))
            raise self.read.error(f"a function ({known})", token)
        args = self.read.listed("(", self.expr, ")")
        if len(args) != counts.get(name, len(args)):
            raise self.read.error(f"{counts[name]} arguments of {name}", token, str(len(args)))
        if name == "select":
            return self.node(token, ir.Select, *args)
        if name in counts:
            return self.node(token, ir.Binary, name, *args)
        return self.node(token, ir.call, name, *args)

    def _converted(self, dtype: str, token: Token) -> Expr:
        """``dtype(3)``, a literal; ``dtype(expr)``, a cast."""
        self.read.expect("(")
        first = self.read.at
        if self._sees_literal() and not self.read.sees("True", "False"):
            value = self._number()
            if self.read.sees(")"):
                self.read.next()
                return self.node(self.read.tokens[first], ir.const, value, dtype)
            self.read.at = first
        cast = ir.Cast(self.expr(), dtype)
        self.read.expect(")")
        return cast

    def element(self) -> tuple[Buffer, tuple[Expr, ...]]:
        """``NAME[expr, …]``, with as many indices as the buffer has dimensions."""
        start = self.read.token
        buffer = self.names.known(Buffer, "a buffer")
        indices = tuple(self.read.listed("[", self.index, "]"))
        self._check_rank(buffer, len(indices), start)
        return buffer, indices

    def index(self) -> Expr:
        """An expression that can be an index."""
        token = self.read.token
        expr = self.expr()
        if expr.dtype not in ("int32", "int64"):
            raise self.read.error("an index of int32 or int64", token, expr.dtype)
        return expr

    def _check_rank(self, buffer: Buffer, actual: int, token: Token) -> None:
        if actual != len(buffer.shape):
            wanted = f"{len(buffer.shape)} indices of {buffer.name}"
            raise self.read.error(wanted, token, str(actual))

    def region(self) -> BufferRegion:
        """``NAME[expr +: extent, …]``."""
        start = self.read.token
        buffer = self.names.known(Buffer, "a buffer")
        ranges = tuple(self.read.listed("[", self._range, "]"))
        self._check_rank(buffer, len(ranges), start)
        return BufferRegion(buffer, ranges)

    def _range(self) -> tuple[Expr, int]:
        low = self.index()
        return low, self.extent() if self.read.take("+:") else 1

    def condition(self) -> Expr:
        """An expression of bool."""
        return self.typed("bool", "a condition")

    def typed(self, dtype: str, what: str) -> Expr:
        """An expression of a dtype."""
        token = self.read.token
        expr = self.expr()
        if expr.dtype != dtype:
            raise self.read.error(f"{what} of {dtype}", token, expr.dtype)
        return expr

    def extent(self) -> int:
        """Whole number, one at least."""
        return self.read.integer("a whole number", 1, LARGEST)
