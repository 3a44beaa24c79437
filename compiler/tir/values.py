"""Values that a function's buffers can hold: intervals from dtypes, promises and arithmetic.

Integers wrap, so an operation whose interval leaves its dtype tells nothing: it gets the whole
dtype. A reduction adds up as many terms as it has steps; of other values that are made of
themselves, as in a recurrence, nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from vdla.compiler.tir.ir import (
    INT_RANGES,
    Alloc,
    Binary,
    Block,
    Buffer,
    Call,
    Cast,
    Const,
    Evaluate,
    Expr,
    For,
    Load,
    PrimFunc,
    Select,
    Stmt,
    Store,
    Var,
)
from vdla.compiler.tir.visitor import blocks, loads, stmt_children, stores

Interval = tuple[int, int]
_UNKNOWN: Interval = -(1 << 200), 1 << 200
Known = Mapping[str, Interval]


def value_ranges(func: PrimFunc, known: Known | None = None) -> dict[str, Interval]:
    """The interval of every integer buffer, by name.

    ``known`` are intervals found before, such as those of stages that are intrinsic calls by now.
    """
    analysis = _Analysis(dict(known or {}))
    for param in func.params:
        if param.value_range is not None:
            analysis.stored[param.name] = param.value_range
    for buffer in _recurrent(func.body):
        analysis.stored.setdefault(buffer.name, INT_RANGES.get(buffer.dtype, INT_RANGES["int64"]))
    analysis.fixed = set(analysis.stored)
    analysis.visit(func.body, {})
    return analysis.stored


def value_interval(expr: Expr, ranges: Mapping[Var, Interval], known: Known) -> Interval:
    """The least and greatest value of an integer or bool expression.

    Args:
        expr: the expression.
        ranges: those of its variables.
        known: the intervals of the buffers that it loads from, by name.
    """
    return _Analysis(dict(known)).interval(expr, ranges)


def _recurrent(body: Stmt) -> set[Buffer]:
    """The buffers whose elements are made of the same buffer's, reductions aside."""
    needs: dict[Buffer, set[Buffer]] = {}
    simple = {b.body for b in blocks(body) if _is_reduction(b)}
    for store in stores(body):
        read = {x.buffer for x in loads(store.value)}
        needs.setdefault(store.buffer, set()).update(
            read - {store.buffer} if store in simple else read
        )

    def reached(buffer: Buffer) -> set[Buffer]:
        result: set[Buffer] = set()
        left = [buffer]
        while left:
            new = needs.get(left.pop(), set()) - result
            result |= new
            left += new
        return result

    return {buffer for buffer in needs if buffer in reached(buffer)}


def _is_reduction(block: Block) -> bool:
    return isinstance(block.body, Store) and isinstance(block.init, Store)


class _Analysis:
    """Follows the program in order; a buffer's interval covers everything stored to it."""

    def __init__(self, stored: dict[str, Interval]) -> None:
        self.stored = stored
        self.fixed: set[str] = set()

    def visit(self, stmt: Stmt, ranges: Mapping[Var, Interval]) -> None:
        if isinstance(stmt, For):
            self.visit(stmt.body, {**ranges, stmt.var: (0, stmt.extent - 1)})
        elif isinstance(stmt, Block):
            self.block(stmt, {**ranges, **{i.var: (0, i.extent - 1) for i in stmt.iters}})
        elif isinstance(stmt, Store):
            self.store(stmt, self.interval(stmt.value, ranges))
        elif isinstance(stmt, Alloc):
            self.visit(stmt.body, ranges)
        elif not isinstance(stmt, Evaluate):
            for child in stmt_children(stmt):
                self.visit(child, ranges)

    def block(self, block: Block, ranges: Mapping[Var, Interval]) -> None:
        """A stage; the value that a reduction starts from is not one that it leaves."""
        body, init = block.body, block.init
        if isinstance(body, Store) and isinstance(init, Store):
            start = self.interval(init.value, ranges)
            steps = prod(i.extent for i in block.reduce_iters)
            self.store(body, self.reduced(body, start, steps, ranges))
        else:
            for part in stmt_children(block):
                self.visit(part, ranges)

    def reduced(
        self, store: Store, start: Interval, steps: int, ranges: Mapping[Var, Interval]
    ) -> Interval:
        """Interval that ``dst = op(dst, term)`` leaves after ``steps`` runs from ``start`` on."""
        value, own = store.value, Load(store.buffer, store.indices)
        whole = INT_RANGES.get(value.dtype, INT_RANGES["int64"])
        if value.dtype not in INT_RANGES or not isinstance(value, Binary):
            return whole
        if own not in (value.a, value.b):
            return whole
        source = value.b if value.a == own else value.a
        if any(x.buffer is store.buffer for x in loads(source)):
            return whole
        term = self.interval(source, ranges)
        if value.op in ("min", "max"):
            return _CORNERS[value.op](start, term)
        if value.op == "add":
            ends = start[0] + steps * term[0], start[1] + steps * term[1]
            return _within(value.dtype, ends)
        return whole

    def store(self, store: Store, value: Interval) -> None:
        """Widens the buffer's interval by a value that is stored."""
        buffer = store.buffer
        if buffer.dtype in INT_RANGES and buffer.name not in self.fixed:
            low, high = self.stored.get(buffer.name, value)
            self.stored[buffer.name] = min(low, value[0]), max(high, value[1])

    def interval(self, expr: Expr, ranges: Mapping[Var, Interval]) -> Interval:
        """The least and greatest value of an integer or bool expression."""
        whole = INT_RANGES.get(expr.dtype, INT_RANGES["int64"])
        match expr:
            case Const(value, _) if expr.dtype in INT_RANGES:
                return int(value), int(value)
            case Var():
                return ranges.get(expr, whole)
            case Load(buffer, _):
                return self.stored.get(buffer.name, whole)
            case Cast(a, dtype) if dtype in INT_RANGES and a.dtype in INT_RANGES:
                return _within(dtype, self.interval(a, ranges))
            case Select(_, a, b):
                left, right = self.interval(a, ranges), self.interval(b, ranges)
                return min(left[0], right[0]), max(left[1], right[1])
            case Call("abs", (a,), _) if expr.dtype in INT_RANGES:
                low, high = self.interval(a, ranges)
                least = 0 if low <= 0 <= high else min(abs(low), abs(high))
                return _within(expr.dtype, (least, max(abs(low), abs(high))))
            case Binary(op, a, b) if op in _CORNERS and expr.dtype in INT_RANGES:
                left, right = self.interval(a, ranges), self.interval(b, ranges)
                return _within(expr.dtype, _CORNERS[op](left, right))
        return whole


def _within(dtype: str, interval: Interval) -> Interval:
    """The interval, or the whole dtype where some value would wrap."""
    low, high = INT_RANGES[dtype]
    return interval if low <= interval[0] and interval[1] <= high else (low, high)


def _corners(operate: Callable[[int, int], int]) -> Callable[[Interval, Interval], Interval]:
    """For an operation that is monotonic in each operand while the other one stays."""

    def ends(a: Interval, b: Interval) -> Interval:
        values = [operate(x, y) for x in a for y in b]
        return min(values), max(values)

    return ends


def _shift(operate: Callable[[int, int], int]) -> Callable[[Interval, Interval], Interval]:
    """For amounts of 0 to 63; any other tells nothing."""
    shifted = _corners(operate)

    def ends(a: Interval, b: Interval) -> Interval:
        return shifted(a, b) if b[0] >= 0 and b[1] < 64 else _UNKNOWN

    return ends


def _bits(a: Interval, b: Interval, op: str) -> Interval:
    """Bounds of a bitwise operation on numbers that aren't negative; else nothing is known."""
    if op == "bitand" and (a[0] >= 0 or b[0] >= 0):
        return 0, min(high for low, high in (a, b) if low >= 0)
    if op == "bitor" and a[0] >= 0 and b[0] >= 0:
        return max(a[0], b[0]), (1 << max(a[1], b[1]).bit_length()) - 1
    return _UNKNOWN


_CORNERS: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _corners(lambda x, y: x * y),
    "bitand": lambda a, b: _bits(a, b, "bitand"),
    "bitor": lambda a, b: _bits(a, b, "bitor"),
    "min": _corners(min),
    "max": _corners(max),
    "shl": _shift(lambda x, y: x << y),
    "shr": _shift(lambda x, y: x >> y),
}
