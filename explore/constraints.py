"""Constraints of a space: comparisons of integer expressions over a design's parameters.

    inp_bytes + wgt_bytes + acc_bytes <= 256 * 1024
    block_in == block_out or port_bytes == 8

Names are parameters of a config; ``memory.`` and one are the memory's. What an expression may have
is listed in ``_VALUES`` and ``_COMPARISONS``: no text of a space is run as Python.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from vdla.explore.errors import ExploreError

_VALUES: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
ALLOWED = "comparisons of integers and parameters with + - * // %, and, or, not"


@dataclass(frozen=True)
class Constraint:
    """One constraint as its text; ``holds`` says whether a design keeps to it."""

    text: str

    @cached_property
    def tree(self) -> ast.expr:
        """The parsed text.

        Raises:
            ExploreError: it isn't an expression.
        """
        try:
            return ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._error("an expression", "none") from None

    def check(self, names: Collection[str]) -> None:
        """Raises ExploreError unless the text is a constraint over parameters of these names."""
        self._check_truth(self.tree, names)

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether parameters with these values keep to it; a division by zero doesn't."""
        try:
            return self._truth(self.tree, values)
        except ZeroDivisionError:
            return False

    def _check_truth(self, node: ast.expr, names: Collection[str]) -> None:
        match node:
            case ast.BoolOp(values=parts):
                for part in parts:
                    self._check_truth(part, names)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                self._check_truth(part, names)
            case ast.Compare(left=left, ops=ops, comparators=others) if all(
                type(op) in _COMPARISONS for op in ops
            ):
                for part in (left, *others):
                    self._check_value(part, names)
            case _:
                raise self._error(ALLOWED, ast.unparse(node))

    def _check_value(self, node: ast.expr, names: Collection[str]) -> None:
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _VALUES:
                self._check_value(left, names)
                self._check_value(right, names)
            case ast.UnaryOp(op=ast.USub(), operand=part):
                self._check_value(part, names)
            case ast.Name() | ast.Attribute():
                if (name := ast.unparse(node)) not in names:
                    raise self._error(f"one of {', '.join(names)}", name)
            case _:
                raise self._error(ALLOWED, ast.unparse(node))

    def _truth(self, node: ast.expr, values: Mapping[str, int]) -> bool:
        match node:
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(self._truth(part, values) for part in parts)
            case ast.BoolOp(values=parts):
                return any(self._truth(part, values) for part in parts)
            case ast.UnaryOp(operand=part):
                return not self._truth(part, values)
            case ast.Compare(left=left, ops=ops, comparators=others):
                numbers = [self._value(part, values) for part in (left, *others)]
                pairs = zip(ops, numbers, numbers[1:], strict=False)
                return all(_COMPARISONS[type(op)](a, b) for op, a, b in pairs)
        raise self._error(ALLOWED, ast.unparse(node))

    def _value(self, node: ast.expr, values: Mapping[str, int]) -> int:
        match node:
            case ast.Constant(value=int() as value):
                return value
            case ast.BinOp(left=left, op=op, right=right):
                return _VALUES[type(op)](self._value(left, values), self._value(right, values))
            case ast.UnaryOp(operand=part):
                return -self._value(part, values)
        return values[ast.unparse(node)]

    def _error(self, expected: str, actual: str) -> ExploreError:
        text = f"constraint {self.text!r}: expected {expected}, found {actual}"
        return ExploreError(" ".join(text.split()))
