"""Leaves: one intrinsic call and the loops directly around it, in linear form.

A leaf is what folds into instructions; unrolled loops stay outside of it. Its loops keep their
order; its operands' positions and its conditions are linear in loop variables, those of the leaf
and those of the loops outside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vdla.compiler.targets.accelerator.description.lowering import lowering_of
from vdla.compiler.tir.arith import affine
from vdla.compiler.tir.ir import (
    FALSE,
    TRUE,
    Binary,
    Block,
    Buffer,
    Const,
    Evaluate,
    Expr,
    For,
    If,
    IntrinCall,
    Stmt,
    Var,
)
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.visitor import substitute_expr
from vdla.support.errors import UserError

Env = Mapping[Var, int]


class CodegenError(UserError):
    """Loops or accesses that no instruction expresses."""


@dataclass(frozen=True)
class AffineExpr:
    """A number that is linear in loop variables: ``constant + Σ coefficient × variable``."""

    constant: int
    terms: Mapping[Var, int]

    @classmethod
    def of(cls, expr: Expr, where: str) -> AffineExpr:
        """The linear form of an index expression.

        Raises:
            CodegenError: the expression is not linear in loop variables.
        """
        form = affine(expr)
        if form is None:
            result = show(expr)
            hint = "; split loops before they are fused" if "//" in result or "%" in result else ""
            text = f"expected an index linear in the loops, found {result}{hint}"
            raise CodegenError(f"{where}: {text}")
        return cls(*form)

    def at(self, env: Env) -> AffineExpr:
        """The form in which the variables in ``env`` have their values."""
        constant, terms = self.constant, {}
        for var, coefficient in self.terms.items():
            if var in env:
                constant += coefficient * env[var]
            else:
                terms[var] = coefficient
        return AffineExpr(constant, terms)

    def step(self, var: Var) -> int:
        """Growth of the number when ``var`` grows by 1: its coefficient, or 0."""
        return self.terms.get(var, 0)


@dataclass(frozen=True)
class Position:
    """An operand's first element: a buffer and an offset in elements."""

    buffer: Buffer
    offset: AffineExpr


@dataclass(frozen=True)
class Leaf:
    """One call with its loops, outermost first. Conditions are forms that must be ≥ 0.

    ``guards`` come from predicates: where one fails, nothing happens. ``inside`` comes from a
    padded load: where one fails, padding is written. ``first`` holds forms that are 0 on the first
    step of a reduction; None when there is no reduction.
    """

    name: str
    call: IntrinCall
    loops: tuple[tuple[Var, int], ...]
    operands: Mapping[str, Position]
    params: Mapping[str, int]
    guards: tuple[AffineExpr, ...] = ()
    inside: tuple[AffineExpr, ...] = ()
    first: tuple[AffineExpr, ...] | None = None


@dataclass
class _Path:
    """The loops, bindings and conditions on the way from a statement down to a call."""

    loops: list[tuple[Var, int]] = field(default_factory=list)
    bindings: dict[Var, Expr] = field(default_factory=dict)
    guards: list[Expr] = field(default_factory=list)
    name: str = ""

    def bound(self, expr: Expr) -> Expr:
        """An expression in loop variables, block iterators replaced by what they are bound to."""
        return substitute_expr(expr, self.bindings)


def find_leaf(stmt: Stmt) -> Leaf | None:
    """The leaf that a statement is, or None when it holds more than one call."""
    path = _Path()
    while not isinstance(stmt, Evaluate):
        if isinstance(stmt, For) and stmt.kind not in ("vthread", "unrolled"):
            path.loops.append((stmt.var, stmt.extent))
            stmt = stmt.body
        elif isinstance(stmt, Block) and stmt.init is None:
            for each in stmt.iters:
                path.bindings[each.var] = path.bound(each.binding)
            path.guards.append(path.bound(stmt.predicate))
            path.name = stmt.name
            stmt = stmt.body
        elif isinstance(stmt, If) and stmt.orelse is None:
            path.guards.append(path.bound(stmt.cond))
            stmt = stmt.then
        else:
            return None
    return _leaf(path, stmt.call)


def _leaf(path: _Path, call: IntrinCall) -> Leaf:
    where = f"{path.name or call.intrin.name}"
    operands = {}
    for buffer, ref in zip(call.intrin.operands, call.operands, strict=True):
        offset = AffineExpr(0, {})
        for stride, index in zip(ref.buffer.strides, ref.indices, strict=True):
            offset = _further(offset, stride, AffineExpr.of(path.bound(index), where))
        operands[buffer.name] = Position(ref.buffer, offset)
    params: dict[str, int] = {}
    inside: tuple[AffineExpr, ...] = ()
    for name, expr in call.params.items():
        if name == lowering_of(call.intrin).inside:
            inside = _conditions(path.bound(expr), where)
        else:
            params[name] = _constant(path.bound(expr), f"{where}.{name}")
    first = None
    if call.first is not None:
        first = _zeros(path.bound(call.first), where)
    guards = tuple(form for guard in path.guards for form in _conditions(guard, where))
    return Leaf(where, call, tuple(path.loops), operands, params, guards, inside, first)


def _further(offset: AffineExpr, stride: int, index: AffineExpr) -> AffineExpr:
    """The offset ``index`` strides further: ``offset + stride * index``."""
    terms = dict(offset.terms)
    for var, step in index.terms.items():
        terms[var] = terms.get(var, 0) + stride * step
    return AffineExpr(offset.constant + stride * index.constant, terms)


def _constant(expr: Expr, where: str) -> int:
    form = (
        AffineExpr.of(expr, where)
        if not isinstance(expr, Const)
        else AffineExpr(int(expr.value), {})
    )
    if form.terms:
        raise CodegenError(f"{where}: expected a constant, found {show(expr)}")
    return form.constant


def _conjuncts(expr: Expr) -> list[Expr]:
    if isinstance(expr, Binary) and expr.op == "and":
        return _conjuncts(expr.a) + _conjuncts(expr.b)
    return [] if expr == TRUE else [expr]


def _conditions(expr: Expr, where: str) -> tuple[AffineExpr, ...]:
    """A conjunction of comparisons as forms that must be ≥ 0."""
    forms = []
    for each in _conjuncts(expr):
        if each == FALSE:
            forms.append(AffineExpr(-1, {}))
            continue
        if not isinstance(each, Binary) or each.op not in ("lt", "le", "gt", "ge"):
            raise CodegenError(f"{where}: expected comparisons of indices, found {show(each)}")
        low, high = (each.b, each.a) if each.op in ("gt", "ge") else (each.a, each.b)
        slack = 1 if each.op in ("lt", "gt") else 0
        forms.append(AffineExpr.of(Binary("sub", high, low), where))
        forms[-1] = AffineExpr(forms[-1].constant - slack, forms[-1].terms)
    return tuple(forms)


def _zeros(expr: Expr, where: str) -> tuple[AffineExpr, ...]:
    """A conjunction of equalities as forms that must be 0."""
    forms = []
    for each in _conjuncts(expr):
        if each == FALSE:
            forms.append(AffineExpr(1, {}))
        elif isinstance(each, Binary) and each.op == "eq":
            forms.append(AffineExpr.of(Binary("sub", each.a, each.b), where))
        else:
            raise CodegenError(f"{where}: expected index = 0, found {show(each)}")
    return tuple(forms)
