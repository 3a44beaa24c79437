"""Proves that every access of a function lies inside its buffer.

An index is in bounds where the ranges of the loops say so, or the conditions under which the access
runs: of an ``if``, of a block's predicate, of a ``select`` (whose other side isn't evaluated). From
``i * 4 + j < 10`` follows that ``i * 4 + j - 1`` is at most 8: the difference of the index and a
multiple of the condition's sides is bounded by ranges.

Data in an index counts with what is known of its values (:mod:`~vdla.compiler.tir.values`). Where
that isn't enough and the data is a parameter's, the values that it may have are given, for the
caller to check before the function runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd

from vdla.compiler.tir.arith import (
    INDEX_DTYPES,
    NEGATED,
    Bounds,
    Linear,
    Ranges,
    linear,
    linear_bounds,
)
from vdla.compiler.tir.ir import (
    COMPARISONS,
    INT_RANGES,
    Binary,
    Block,
    BoundsError,
    Buffer,
    Cast,
    Const,
    Evaluate,
    Expr,
    For,
    If,
    IntrinCall,
    IRError,
    Load,
    Not,
    Prefetch,
    PrimFunc,
    Select,
    Stmt,
    Store,
    Var,
)
from vdla.compiler.tir.lower import written_buffers
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.values import Interval, value_interval, value_ranges
from vdla.compiler.tir.visitor import (
    direct_exprs,
    expr_children,
    loads,
    map_expr,
    replace_buffer,
    stmt_children,
    substitute_expr,
    walk,
)

DEPTH = 3  # how many conditions one proof combines
ARITHMETIC = ("add", "sub", "mul", "floordiv", "floormod", "min", "max")


def check_bounds(func: PrimFunc) -> dict[str, Interval]:
    """Proves every access of a function, with blocks or without.

    Returns:
        What parameters' values have to be for data in indices to be in bounds: (least, greatest)
        by name. It is empty where everything is proved.

    Raises:
        BoundsError: an access isn't proved; the message has the range needed and the range known.
    """
    prover = _Prover(func)
    prover.stmt(func.body, _Facts({}, ()), {})
    return prover.needed


def check_all_bounds(func: PrimFunc) -> PrimFunc:
    """The function itself, if every access is proved and nothing is left for a caller to check.

    Raises:
        BoundsError: an access isn't proved, or depends on values that no parameter promises.
    """
    for name, (low, high) in check_bounds(func).items():
        raise BoundsError(
            f"{func.name}: {name}: expected a promise that its values, which are indices, are in "
            f"{low}..{high}, found none; give the parameter a value_range"
        )
    return func


def with_promises(func: PrimFunc) -> PrimFunc:
    """The function whose parameters promise the values that its indices need, for its caller to
    check.

    Raises:
        BoundsError: an access isn't proved.
    """
    params, body = [], func.body
    needed = check_bounds(func)
    for param in func.params:
        if param.name in needed:
            new = replace(param, value_range=needed[param.name])
            param, body = new, replace_buffer(body, param, new)
        params.append(param)
    return PrimFunc(func.name, tuple(params), body) if needed else func


@dataclass(frozen=True)
class _Facts:
    """Facts that hold where an expression is evaluated: the ranges of variables, and forms that are
    at least 0."""

    ranges: Ranges
    forms: tuple[Linear, ...]

    def at(self, var: Var, extent: int) -> _Facts:
        """These facts inside a loop."""
        return _Facts({**self.ranges, var: (0, extent - 1)}, self.forms)

    def given(self, cond: Expr, holds: bool = True) -> _Facts:
        """These facts where a condition over variables holds, or where it doesn't."""
        ranges, forms = dict(self.ranges), list(self.forms)
        for form in _forms(cond, holds, self.ranges):
            if len(form.terms) == 1:
                _tighten(form, ranges)
            forms.append(form)
        return _Facts(ranges, tuple(forms))

    @cached_property
    def impossible(self) -> bool:
        """Whether no values of the variables satisfy all this."""
        return any(low > high for low, high in self.ranges.values()) or any(
            (ends := linear_bounds(form, self.ranges)) is not None and ends[1] < 0
            for form in self.forms
        )

    def at_least(self, form: Linear, low: int, depth: int = DEPTH) -> bool:
        """Whether a form is provably at least ``low``: by its range, or by that of what is left
        once multiples of forms that are at least 0 are taken away."""
        ends = linear_bounds(form, self.ranges)
        if ends is not None and ends[0] >= low:
            return True
        if depth == 0:
            return False
        for atom, k in form.terms.items():
            rest = form.plus(Linear(0, {atom: k}), -1)
            match atom:
                case Binary("min" | "max" as op, a, b):
                    sides = (rest.plus(linear(x, self.ranges), k) for x in (a, b))
                    enough = all if (op == "min") == (k > 0) else any
                    return enough(self.at_least(side, low, depth - 1) for side in sides)
                case Select(cond, a, b):
                    return all(
                        self.given(cond, holds).at_least(
                            rest.plus(linear(x, self.ranges), k), low, depth - 1
                        )
                        for x, holds in ((a, True), (b, False))
                    )
        for known in self.forms:
            for scale, factor in _factors(form, known):
                rest = form.times(scale).plus(known, -factor)
                if self.at_least(rest, scale * (low - 1) + 1, depth - 1):
                    return True
        return False

    def divided(self, form: Linear) -> _Facts:
        """These facts, and of quotients in a form and in dividends: ``0 <= a - a // c * c < c``."""
        forms, atoms = list(self.forms), list(form.terms)
        for atom in atoms:  # the dividends' atoms come behind
            match atom:
                case Binary("floordiv", a, Const(c, _)) if c > 0:
                    rest = linear(a, self.ranges).plus(Linear(0, {atom: int(c)}), -1)
                    forms += [rest, Linear(int(c) - 1, {}).plus(rest, -1)]
                    atoms += [term for term in rest.terms if term not in atoms]
        return self if len(forms) == len(self.forms) else _Facts(self.ranges, tuple(forms))


def _factors(form: Linear, known: Linear) -> set[tuple[int, int]]:
    """By what ``form`` and ``known`` may be multiplied so that their difference lacks a term."""
    result = set()
    for atom, k in form.terms.items():
        other = known.terms.get(atom, 0)
        if k * other > 0:
            common = gcd(k, other)
            result.add((abs(other) // common, abs(k) // common))
    return result


def _forms(cond: Expr, holds: bool, ranges: Ranges) -> Iterator[Linear]:
    """The forms that are at least 0 where a condition holds, or where it doesn't."""
    match cond:
        case Not(a):
            yield from _forms(a, not holds, ranges)
        case Binary("and", a, b) if holds:
            yield from _forms(a, True, ranges)
            yield from _forms(b, True, ranges)
        case Binary("or", a, b) if not holds:
            yield from _forms(a, False, ranges)
            yield from _forms(b, False, ranges)
        case Binary(op, a, b) if op in COMPARISONS and a.dtype in INT_RANGES:
            op = op if holds else NEGATED[op]
            above = linear(a, ranges).plus(linear(b, ranges), -1)
            if op in ("ge", "gt", "eq"):
                yield above.plus(Linear(-1 if op == "gt" else 0, {}))
            if op in ("le", "lt", "eq"):
                yield Linear(-1 if op == "lt" else 0, {}).plus(above, -1)


def _tighten(form: Linear, ranges: dict[Var, Bounds]) -> None:
    """Narrows the range of the one variable of a form that is at least 0."""
    ((var, k),) = form.terms.items()
    if not isinstance(var, Var) or var not in ranges:
        return
    low, high = ranges[var]
    if k > 0:
        ranges[var] = max(low, -(form.constant // k)), high
    else:
        ranges[var] = low, min(high, form.constant // -k)


class _Prover:
    """Walks a function with the facts that hold at each place.

    ``data`` are loads and other values in indices, as variables: equal ones are one variable.
    """

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.written = frozenset(written_buffers(func.body))
        self.data: dict[Expr, Var] = {}
        self.needed: dict[str, Interval] = {}

    @cached_property
    def values(self) -> Mapping[str, Interval]:
        """Intervals of the integers that buffers hold when they are read: nothing is known of
        outputs, which a caller passes as they are, and of what is read before anything is stored to
        it."""
        unknown = {param.name for param in self.func.params if param in self.written}
        stored = set(self.func.params) - self.written
        for stmt in walk(self.func.body):
            read = {load.buffer for expr in direct_exprs(stmt) for load in loads(expr)}
            unknown |= {buffer.name for buffer in read - stored}
            if isinstance(stmt, Store):
                stored.add(stmt.buffer)
        ranges = value_ranges(self.func)
        return {name: ends for name, ends in ranges.items() if name not in unknown}

    # --- statements ---

    def stmt(self, stmt: Stmt, facts: _Facts, env: Mapping[Var, Expr]) -> None:
        """Proves a statement; ``env`` has what the iterators of blocks stand for."""
        try:
            self.accesses(stmt, facts, env)
        except IRError as error:
            error.stmt = stmt if error.stmt is None else error.stmt
            raise

    def accesses(self, stmt: Stmt, facts: _Facts, env: Mapping[Var, Expr]) -> None:
        """Proves the accesses of a statement.

        What an earlier statement loaded from a buffer that the function writes may be another value
        by now.
        """
        self.data = {node: var for node, var in self.data.items() if not self.changes(node)}
        match stmt:
            case For():
                self.stmt(stmt.body, facts.at(stmt.var, stmt.extent), env)
                return
            case Block():
                env = {**env, **{i.var: substitute_expr(i.binding, env) for i in stmt.iters}}
                predicate = substitute_expr(stmt.predicate, env)
                facts = self.when(predicate, facts)
                for part in (stmt.init, stmt.body):
                    if part is not None:
                        self.stmt(part, facts, env)
                return
            case If(cond, then, orelse):
                cond = substitute_expr(cond, env)
                self.expr(cond, facts)
                self.stmt(then, self.when(cond, facts), env)
                if orelse is not None:
                    self.stmt(orelse, self.when(cond, facts, holds=False), env)
                return
            case Prefetch():  # a hint, which may leave its buffer
                return
            case Evaluate(call):
                self.call(call, facts, env)
            case Store(buffer, indices, _):
                where = [(substitute_expr(index, env), 1) for index in indices]
                self.access(buffer, where, facts)
        for expr in direct_exprs(stmt):
            self.expr(substitute_expr(expr, env), facts)
        for child in stmt_children(stmt):
            self.stmt(child, facts, env)

    def changes(self, expr: Expr) -> bool:
        """Whether an expression loads from a buffer that the function writes."""
        return any(load.buffer in self.written for load in loads(expr))

    def when(self, cond: Expr, facts: _Facts, holds: bool = True) -> _Facts:
        """The facts where a condition holds, or where it doesn't."""
        if isinstance(cond, Const):
            return facts
        index, facts = self.without_data(cond, facts)
        return facts.given(index, holds)

    def call(self, call: IntrinCall, facts: _Facts, env: Mapping[Var, Expr]) -> None:
        """The regions that a call touches, each under the conditions of its behaviour."""
        for operand, (region, _) in zip(call.intrin.operands, call.regions(), strict=True):
            here = facts
            for cond in _conditions(call.intrin.update, operand):
                given: dict[Var, Expr] = {p: call.params[p.name] for p in call.intrin.params}
                here = self.when(substitute_expr(substitute_expr(cond, given), env), here)
            where = [(substitute_expr(low, env), n) for low, n in region.ranges]
            self.access(region.buffer, where, here)

    # --- expressions ---

    def expr(self, expr: Expr, facts: _Facts) -> None:
        """Proves the loads of an expression."""
        match expr:
            case Select(cond, a, b):
                self.expr(cond, facts)
                self.expr(a, self.when(cond, facts))
                self.expr(b, self.when(cond, facts, holds=False))
            case Load(buffer, indices):
                self.access(buffer, [(index, 1) for index in indices], facts)
                for index in indices:
                    self.expr(index, facts)
            case _:
                for child in expr_children(expr):
                    self.expr(child, facts)

    def access(self, buffer: Buffer, where: Sequence[tuple[Expr, int]], facts: _Facts) -> None:
        """Proves an access of so many elements from an index on, in each dimension."""
        for dim, (size, (low, extent)) in enumerate(zip(buffer.shape, where, strict=True)):
            if isinstance(low, Const) and 0 <= int(low.value) <= size - extent:
                continue
            index, known = self.without_data(low, facts)
            form, last = linear(index, known.ranges), size - extent
            if known.impossible:
                return
            known = known.divided(form)
            least, most = known.at_least(form, 0), known.at_least(form.times(-1), -last)
            ends = None if least else 0, None if most else last
            if not (least and most) and not self.promised(form, ends):
                raise BoundsError(self.refusal(buffer, where, dim, low, known.ranges, form))

    def promised(self, form: Linear, ends: tuple[int | None, int | None]) -> bool:
        """Whether an index is a parameter's value plus a constant, which then has to be within
        ``ends``; None where that end is proved."""
        if len(form.terms) != 1:
            return False
        ((atom, k),) = form.terms.items()
        load = next((node for node, var in self.data.items() if var == atom), None)
        if not isinstance(load, Load) or k != 1:
            return False
        if load.buffer not in self.func.params or load.buffer in self.written:
            return False
        low, high = self.needed.get(load.buffer.name, INT_RANGES[load.buffer.dtype])
        if ends[0] is not None:
            low = max(low, ends[0] - form.constant)
        if ends[1] is not None:
            high = min(high, ends[1] - form.constant)
        if low > high:
            return False
        self.needed[load.buffer.name] = low, high
        return True

    def without_data(self, expr: Expr, facts: _Facts) -> tuple[Expr, _Facts]:
        """An index in which data and what is no index arithmetic are variables, and the facts with
        their ranges."""
        ranges = {}

        def replaced(node: Expr) -> Expr:
            if _is_arithmetic(node):
                return map_expr(node, replaced)
            var = self.data.setdefault(node, Var("data", node.dtype))
            if var not in facts.ranges:
                ranges[var] = value_interval(node, facts.ranges, self.values)
            return var

        index = replaced(expr)
        return index, (_Facts({**facts.ranges, **ranges}, facts.forms) if ranges else facts)

    def refusal(
        self,
        buffer: Buffer,
        where: Sequence[tuple[Expr, int]],
        dim: int,
        low: Expr,
        ranges: Ranges,
        form: Linear,
    ) -> str:
        """Message about an access that isn't proved."""
        size, extent = buffer.shape[dim], where[dim][1]
        shown = ", ".join(show(e) if n == 1 else f"{show(e)} +: {n}" for e, n in where)
        ends = linear_bounds(form, ranges)
        known = f"{ends[0]}..{ends[1]}" if ends else "any value"
        return (
            f"{self.func.name}: {buffer.name}[{shown}]: expected index {dim} in "
            f"0..{size - extent}, found {show(low)} in {known}; guard the access with te.select, "
            "or clamp the index with te.minimum and te.maximum"
        )


def _is_arithmetic(expr: Expr) -> bool:
    """Whether proofs look into an expression: index arithmetic and conditions."""
    match expr:
        case Const() | Var() | Not():
            return True
        case Binary(op, _, _) if expr.dtype == "bool":
            return True
        case Binary(op, _, _):
            return expr.dtype in INDEX_DTYPES and op in ARITHMETIC
        case Select():
            return expr.dtype in INDEX_DTYPES
        case Cast(a, dtype):
            return {a.dtype, dtype} <= set(INDEX_DTYPES)
    return False


def _conditions(update: Expr, operand: Buffer) -> list[Expr]:
    """The conditions of selections under which a behaviour reads an operand."""
    match update:
        case Select(cond, a, b):
            if _reads(cond, operand) or (_reads(a, operand) and _reads(b, operand)):
                return []
            if _reads(a, operand):
                return [cond, *_conditions(a, operand)]
            return [Not(cond), *_conditions(b, operand)] if _reads(b, operand) else []
        case Load():
            return []
    parts = [part for part in expr_children(update) if _reads(part, operand)]
    return _conditions(parts[0], operand) if len(parts) == 1 else []


def _reads(expr: Expr, operand: Buffer) -> bool:
    return (isinstance(expr, Load) and expr.buffer is operand) or any(
        _reads(child, operand) for child in expr_children(expr)
    )
