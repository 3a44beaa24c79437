"""Tensor intrinsics: an instruction's effect on whole vectors, declared by runnable behaviour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from vdla.compiler.tir.ir import (
    FALSE,
    Block,
    BlockIter,
    Buffer,
    BufferRegion,
    Const,
    Evaluate,
    Expr,
    For,
    IntrinCall,
    IRError,
    Load,
    Select,
    Stmt,
    Store,
    Var,
)
from vdla.compiler.tir.visitor import rewrite, rewrite_expr


@dataclass(frozen=True, slots=True, eq=False)
class Param(Var):
    """A hole in a behaviour: matches a constant, or (kind ``"expr"``) any loop-invariant value."""

    kind: str = "const"

    def __post_init__(self) -> None:
        if self.kind not in ("const", "expr"):
            raise IRError(f"param {self.name}: expected kind const or expr, found {self.kind!r}")


@dataclass(frozen=True, slots=True)
class Laws:
    """What a behaviour's expression leaves unsaid: for which values it holds, and what commutes.

    Attributes:
        ranges: by name, which values (both ends included) an operand, a param or a sum of params
            (``"a + b"``) may have for the behaviour to hold.
        swaps: pairs of names that may change places together without changing the result.
    """

    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    swaps: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TensorIntrin:
    """An instruction's effect on one vector, as a behaviour that can be matched and run.

    The axes run over the vector; every step is ``output[indices] = update``. In a reduction
    (``init`` isn't None) the update reads ``output[indices]`` too, and the first step is preceded
    by the init.

    Attributes:
        name: as it is printed, and named in errors.
        operands: the output first, then the inputs in their order of appearance.
        params: the holes that take constants or expressions of the matched code.
        axes: variable, extent and kind (``"spatial"`` or ``"reduce"``) of each loop over the
            vector.
        indices: where in the output a step writes.
        update: what a step writes.
        init: what a reduction starts from; None where it is none.
        scopes: by name, in which memory an operand must lie.
        laws: what else the behaviour keeps to.
        cost: cycles per call.
        lowering: the target's: how a call becomes instructions.
    """

    name: str
    operands: tuple[Buffer, ...]
    params: tuple[Param, ...]
    axes: tuple[tuple[Var, int, str], ...]
    indices: tuple[Expr, ...]
    update: Expr
    init: Expr | None
    scopes: Mapping[str, str] = field(default_factory=dict)
    laws: Laws = field(default_factory=Laws)
    cost: int = 1
    lowering: object = None

    @property
    def output(self) -> Buffer:
        """The operand that the intrinsic writes."""
        return self.operands[0]

    @property
    def is_reduction(self) -> bool:
        """Whether steps add to what is there, from an init on."""
        return self.init is not None

    def regions(self, call: IntrinCall) -> Iterator[tuple[BufferRegion, bool]]:
        """The region that a call touches of each operand, and whether it writes it.

        The output of a reduction counts as written only: its first step initializes it.
        """
        for operand, ref in zip(self.operands, call.operands, strict=True):
            lead = len(ref.indices) - len(operand.shape)
            extents = (1,) * lead + operand.shape
            region = BufferRegion(ref.buffer, tuple(zip(ref.indices, extents, strict=True)))
            yield region, operand is self.output

    def expand(self, call: IntrinCall) -> Stmt:
        """The behaviour as loops on the call's operands, with a block for the init's condition."""
        refs = dict(zip(self.operands, call.operands, strict=True))
        fresh = {var: Var(var.name) for var, _, _ in self.axes}
        values: dict[Var, Expr] = {p: call.params[p.name] for p in self.params}
        values.update(fresh)

        def placed(operand: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
            ref = refs[operand]
            lead = len(ref.indices) - len(indices)
            tail = (base + i for base, i in zip(ref.indices[lead:], indices, strict=True))
            return ref.buffer, (*ref.indices[:lead], *tail)

        def bound(e: Expr) -> Expr:
            if isinstance(e, Load):
                return Load(*placed(e.buffer, e.indices))
            return values.get(e, e) if isinstance(e, Var) else e

        def store(value: Expr) -> Store:
            where = tuple(rewrite_expr(i, bound) for i in self.indices)
            return Store(*placed(self.output, where), rewrite_expr(value, bound))

        body: Stmt = store(self.update)
        if self.init is not None:
            first = FALSE if call.first is None else call.first
            body = self.guarded(body, store(self.init), first, fresh)
        for var, extent, _ in reversed(self.axes):
            body = For(fresh[var], extent, "serial", body)
        return body

    def guarded(self, body: Stmt, init: Stmt, first: Expr, fresh: Mapping[Var, Var]) -> Block:
        """A block whose init runs on the first step of the reduction inside and outside."""
        later = Select(first, Const(0, "int32"), Const(1, "int32"))
        iters = [BlockIter(Var("later"), 2, "reduce", later)]
        for var, extent, kind in self.axes:
            if kind == "reduce":
                iters.append(BlockIter(Var(var.name), extent, "reduce", fresh[var]))
        return Block(self.name, tuple(iters), (), (), body, init)


def expand_intrinsics(stmt: Stmt) -> Stmt:
    """A statement with every intrinsic call replaced by its behaviour."""
    return rewrite(stmt, lambda s: s.call.intrin.expand(s.call) if isinstance(s, Evaluate) else s)
