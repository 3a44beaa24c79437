"""Tensors that a warp has together, dealt to its lanes, and what it computes together, as their
loops.

before                                       after
    for tx in 32 threadIdx.x:                    for tx in 32 threadIdx.x:
        alloc acc: float32[16, 8] @"warp"            alloc acc: float32[4] @"local"
        mma_f16(acc[0, 0], a[0, 0],                  if k == 0: acc[…] = 0
                b[0, 0], first=k == 0)               for e in 4 (mma): for k in 16: acc[e] += …
        for y in 16: for x in 8:                     for half in 2: for odd in 2:
            C[y, x] = acc[y, x]                          C[tx // 4 + half * 8, …] = acc[…]

Rules:

- A lane has the elements that the hardware gives it (``gpu.mma``), and stores those.
- The loop that an instruction of a warp does is marked; it says to others what that does.
- Lanes are the 32 threads along ``threadIdx.x``; every warp of a group does the same, except what
  loops over ``threadIdx.y`` or ``threadIdx.z`` deal out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.gpu.mma import (
    COLUMNS,
    LANES,
    MMA,
    OWN,
    ROWS,
    WARP,
    Mma,
    column,
    row,
)
from vdla.compiler.tir.ir import (
    LOCAL,
    Alloc,
    Buffer,
    Evaluate,
    Expr,
    For,
    If,
    IntrinCall,
    Load,
    PrimFunc,
    Stmt,
    Store,
    Var,
    const,
    seq,
)
from vdla.compiler.tir.lower import simplify_stmt
from vdla.compiler.tir.visitor import (
    direct_exprs,
    loads,
    map_stmt,
    rewrite_expr,
    substitute,
    uses,
    walk,
)

LANE_TAG = "threadIdx.x"


def deal_lanes(func: PrimFunc) -> PrimFunc:
    """The function without buffers in scope "warp" and without calls of ``gpu.mma``.

    Args:
        func: what ``deal_threads`` gives.

    Raises:
        NoCodeError: a kernel with such a buffer hasn't 32 threads along threadIdx.x, or reads it
            otherwise than by loops over its rows and columns.
    """
    if not any(isinstance(s, Alloc) and s.buffer.scope == WARP for s in walk(func.body)):
        return func

    def visit(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.thread_tag == LANE_TAG:
            return _Dealer(func.name, stmt).run()
        if isinstance(stmt, Alloc) and stmt.buffer.scope == WARP:
            raise NoCodeError(
                f"{func.name}: expected {stmt.buffer.name} in scope warp inside a loop bound to "
                f"{LANE_TAG}, found none around it"
            )
        return map_stmt(stmt, visit)

    return replace(func, body=simplify_stmt(visit(func.body)))


@dataclass
class _Dealer:
    """The lanes of one kernel, which are the steps of ``lanes``.

    ``own`` are the buffers that a lane has instead of the warp's; ``parts`` are the loops over what
    a lane has of a row's or a column's loop, by its variable.
    """

    name: str
    lanes: For
    own: dict[Buffer, Buffer] = field(default_factory=dict)
    parts: dict[Var, Var] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows: set[Expr] = set()
        self.columns: set[Expr] = set()
        exprs = (e for s in walk(self.lanes.body) for e in direct_exprs(s))
        for load in (x for e in exprs for x in loads(e) if x.buffer.scope == WARP):
            y, x = load.indices[-2:]
            if not isinstance(y, Var) or not isinstance(x, Var):
                self.fail(load.buffer, "to be read by loops over its rows and columns")
            self.rows.add(y)
            self.columns.add(x)

    def fail(self, buffer: Buffer, expected: str) -> None:
        """Raises NoCodeError."""
        raise NoCodeError(f"{self.name}: expected {buffer.name} in scope warp {expected}")

    def run(self) -> Stmt:
        """The loop over the lanes."""
        return replace(self.lanes, body=self.visit(self.lanes.body))

    def visit(self, stmt: Stmt) -> Stmt:
        """A statement as each lane does its part of it."""
        match stmt:
            case Alloc(buffer, body) if buffer.scope == WARP:
                if self.lanes.extent != LANES or buffer.shape[-2:] != (ROWS, COLUMNS):
                    self.fail(buffer, f"to be [{ROWS}, {COLUMNS}] of {LANES} threads along x")
                shape = (*buffer.shape[:-2], OWN)
                self.own[buffer] = replace(buffer, shape=shape, scope=LOCAL)
                inner = self.visit(body)
                return Alloc(self.own[buffer], inner)
            case For(var) if var in self.rows | self.columns:
                return self.loop(stmt)
            case Evaluate(call) if isinstance(call.intrin.lowering, Mma):
                return self.product(call, call.intrin.lowering)
            case Store(buffer, indices, value):
                return Store(buffer, indices, rewrite_expr(value, self.read))
        return map_stmt(stmt, self.visit)

    def loop(self, loop: For) -> Stmt:
        """A loop over rows or columns, as one over those that a lane has: two."""
        is_row = loop.var in self.rows
        if loop.extent != (ROWS if is_row else COLUMNS):
            raise NoCodeError(
                f"{self.name}: expected {loop.var.name} to run over a warp's {ROWS} rows or "
                f"{COLUMNS} columns, found {loop.extent} steps"
            )
        part = self.parts[loop.var] = Var("half" if is_row else "odd")
        place = (row if is_row else column)(self.lanes.var, part)
        return For(part, 2, "unrolled", substitute(self.visit(loop.body), {loop.var: place}))

    def read(self, e: Expr) -> Expr:
        """An element of a warp's as the lane has it."""
        if not isinstance(e, Load) or e.buffer not in self.own:
            return e
        *lead, y, x = e.indices
        assert isinstance(y, Var)
        assert isinstance(x, Var)
        return Load(self.own[e.buffer], (*lead, self.parts[y] * 2 + self.parts[x]))

    def product(self, call: IntrinCall, mma: Mma) -> Stmt:
        """A call, as loops over a lane's elements and their products."""
        acc, a, b = (call.operand(name) for name in ("acc", "a", "b"))
        lane, e, k = self.lanes.var, Var("e"), Var("k")
        if any(uses(index, {lane}) for ref in (acc, a, b) for index in ref.indices):
            self.fail(acc.buffer, "to be computed from the same factors by all lanes")
        own, total = self.own[acc.buffer], acc.buffer.dtype
        at = (*acc.indices[:-2], e)
        left = Load(a.buffer, _moved(a.indices, row(lane, e // 2), k))
        right = Load(b.buffer, _moved(b.indices, k, column(lane, e % 2)))
        one = Store(own, at, Load(own, at) + left.astype(total) * right.astype(total))
        sums = For(e, OWN, "serial", For(k, mma.depth, "serial", one), "", ((MMA, mma.name),))
        if call.first is None:
            return sums
        n = Var("n")
        zero = For(n, OWN, "unrolled", Store(own, (*acc.indices[:-2], n), const(0, total)))
        return seq(If(call.first, zero), sums)


def _moved(indices: tuple[Expr, ...], y: Expr, x: Expr) -> tuple[Expr, ...]:
    """The indices of a corner's neighbour."""
    return (*indices[:-2], indices[-2] + y, indices[-1] + x)
