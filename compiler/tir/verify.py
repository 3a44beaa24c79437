"""Checks that a tree is well formed; run between passes."""

from __future__ import annotations

from collections.abc import Sequence, Set

from vdla.compiler.tir.arith import Ranges, bounds, difference
from vdla.compiler.tir.ir import (
    BLOCK_TAGS,
    LOOP_KINDS,
    THREAD_TAGS,
    Alloc,
    Barrier,
    Binary,
    Block,
    BlockIter,
    Buffer,
    BufferRegion,
    Const,
    Evaluate,
    Expr,
    For,
    If,
    IntrinCall,
    IRError,
    Load,
    Prefetch,
    PrimFunc,
    Stmt,
    Store,
    Var,
)
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.region import accesses, scoped
from vdla.compiler.tir.spec import LoopSpec
from vdla.compiler.tir.visitor import (
    direct_exprs,
    expr_vars,
    loads,
    stmt_children,
    walk,
    walk_expr,
)

NUMBERS = ("int32", "int64")
TAGS = (*BLOCK_TAGS, *THREAD_TAGS)
UNIFORM = ("serial", "unrolled")  # loops of whose steps all threads of a group do the same


Covered = dict[int, tuple[Block, Ranges]]


def verify(
    func: PrimFunc, covered: Covered | None = None, spec: LoopSpec | None = None
) -> PrimFunc:
    """The function itself, if it is well formed; run between passes.

    ``spec`` is what it may hold after the pass that it comes from; all kinds of statements without.
    ``covered`` is for a function that is changed step by step: it keeps which blocks, by their
    ``id``, were found to stay within their regions and in which ranges, so that what a step leaves
    alone isn't proved again.

    Raises:
        IRError: it isn't; the message names the place and what is wrong there.
    """
    if spec is not None:
        spec.check(func)
    _Verifier(func, {} if covered is None else covered).check()
    return func


class _Verifier:
    def __init__(self, func: PrimFunc, covered: Covered) -> None:
        self.func, self.covered = func, covered
        self.bound: set[Var] = set()
        self.buffers: set[Buffer] = set(func.params)

    def check(self) -> None:
        names = [p.name for p in self.func.params]
        for name in names:
            if names.count(name) > 1:
                raise IRError(f"{self.func.name}: two parameters are named {name}")
        self.stmt(self.func.body, (self.func.name,), {})
        if any(isinstance(s, Barrier) for s in walk(self.func.body)):
            self.barriers(self.func.body, (self.func.name,), ())

    def fail(self, path: tuple[str, ...], what: str) -> None:
        raise IRError(f"{' / '.join(path)}: {what}")

    # --- statements ---

    def stmt(self, stmt: Stmt, path: tuple[str, ...], ranges: Ranges) -> None:
        try:
            self.rules(stmt, path, ranges)
        except IRError as error:
            error.stmt = stmt if error.stmt is None else error.stmt
            raise

    def rules(self, stmt: Stmt, path: tuple[str, ...], ranges: Ranges) -> None:
        match stmt:
            case For():
                self.loop(stmt, path, ranges)
                return
            case Block():
                self.block(stmt, path, ranges)
                return
            case Alloc(buffer, body):
                self.alloc(buffer, body, path, ranges)
                return
            case Store():
                self.store(stmt, path, ranges)
            case If(cond, _, _) if cond.dtype != "bool":
                self.fail(path, f"if: expected a bool condition, found {cond.dtype}")
            case Evaluate(call):
                self.call(call, path, ranges)
            case Prefetch(region):
                self.access(region.buffer, [low for low, _ in region.ranges], path)
        for expr in direct_exprs(stmt):
            self.expr(expr, path, ranges)
        for child in stmt_children(stmt):
            self.stmt(child, path, ranges)

    def bind(self, var: Var, path: tuple[str, ...]) -> None:
        if var in self.bound:
            self.fail(path, f"variable {var.name} is bound twice")
        self.bound.add(var)

    def loop(self, loop: For, path: tuple[str, ...], ranges: Ranges) -> None:
        here = (*path, f"for {loop.var.name}")
        self.bind(loop.var, here)
        if loop.var.dtype != "int32":
            self.fail(here, f"expected an int32 loop variable, found {loop.var.dtype}")
        if not isinstance(loop.extent, int) or loop.extent < 1:
            self.fail(here, f"expected an extent of at least 1, found {loop.extent}")
        if loop.kind not in LOOP_KINDS:
            self.fail(here, f"expected a loop kind of {', '.join(LOOP_KINDS)}, found {loop.kind!r}")
        if loop.kind == "thread" and loop.thread_tag not in TAGS:
            self.fail(here, f"expected a tag of {', '.join(TAGS)}, found {loop.thread_tag!r}")
        self.stmt(loop.body, here, {**ranges, loop.var: (0, loop.extent - 1)})

    def alloc(self, buffer: Buffer, body: Stmt, path: tuple[str, ...], ranges: Ranges) -> None:
        if buffer in self.buffers:
            self.fail(path, f"buffer {buffer.name} is allocated twice")
        self.buffers.add(buffer)
        self.stmt(body, path, ranges)
        self.buffers.discard(buffer)

    def store(self, store: Store, path: tuple[str, ...], ranges: Ranges) -> None:
        self.access(store.buffer, store.indices, path)
        if store.value.dtype != store.buffer.dtype:
            self.fail(
                path,
                f"store to {store.buffer.name}: expected {store.buffer.dtype}, "
                f"found {store.value.dtype}",
            )

    def call(self, call: IntrinCall, path: tuple[str, ...], ranges: Ranges) -> None:
        intrin = call.intrin
        if len(call.operands) != len(intrin.operands):
            self.fail(
                path,
                f"{intrin.name}: expected {len(intrin.operands)} operands, "
                f"found {len(call.operands)}",
            )
        for formal, ref in zip(intrin.operands, call.operands, strict=True):
            self.access(ref.buffer, ref.indices, path)
            if ref.buffer.dtype != formal.dtype:
                self.fail(
                    path,
                    f"{intrin.name}: {formal.name}: expected {formal.dtype}, "
                    f"found {ref.buffer.dtype}",
                )
            scope = intrin.scopes.get(formal.name, ref.buffer.scope)
            if ref.buffer.scope != scope:
                self.fail(
                    path,
                    f"{intrin.name}: {formal.name}: expected a buffer in {scope}, "
                    f"found {ref.buffer.name} in {ref.buffer.scope}",
                )
        wanted = {p.name for p in intrin.params}
        if set(call.params) != wanted:
            self.fail(
                path,
                f"{intrin.name}: expected params {sorted(wanted)}, found {sorted(call.params)}",
            )
        if (call.first is not None) != intrin.is_reduction:
            self.fail(path, f"{intrin.name}: expected `first` exactly where there is an init")
        for name, (low, high) in intrin.laws.ranges.items():
            parts = [call.params.get(part) for part in name.split(" + ")]
            known = [part.value for part in parts if isinstance(part, Const)]
            if len(known) == len(parts) and not low <= sum(known) <= high:
                self.fail(
                    path, f"{intrin.name}: {name}: expected {low} to {high}, found {sum(known)}"
                )

    # --- barriers ---

    def barriers(self, stmt: Stmt, path: tuple[str, ...], around: tuple[Stmt, ...]) -> None:
        """Every barrier is reached by all threads of its group, which run side by side."""
        here = (*path, f"for {stmt.var.name}") if isinstance(stmt, For) else path
        try:
            if isinstance(stmt, For) and stmt.kind == "thread":
                self.tag_once(stmt, here, around)
            if isinstance(stmt, Barrier):
                self.barrier(here, around)
        except IRError as error:
            error.stmt = stmt
            raise
        for child in stmt_children(stmt):
            self.barriers(child, here, (*around, stmt))

    def tag_once(self, loop: For, path: tuple[str, ...], around: tuple[Stmt, ...]) -> None:
        if any(isinstance(s, For) and s.thread_tag == loop.thread_tag for s in around):
            self.fail(
                path,
                "expected one loop of each tag around a statement, where a function has barriers, "
                f"found two of {loop.thread_tag}",
            )

    def barrier(self, path: tuple[str, ...], around: tuple[Stmt, ...]) -> None:
        nest = [n for n, s in enumerate(around) if _tag(s) in THREAD_TAGS]
        if not nest:
            self.fail(path, "barrier: expected it inside a loop over threads, found none around it")
        threads = {s.var for s in around if isinstance(s, For) and s.thread_tag in THREAD_TAGS}
        for n, outer in enumerate(around[nest[0] :], nest[0]):
            result = _between(outer) if n < nest[-1] else _apart(outer, threads)
            if result:
                self.fail(
                    path, f"barrier: expected all threads of a group to reach it, found {result}"
                )

    # --- blocks ---

    def block(self, block: Block, path: tuple[str, ...], ranges: Ranges) -> None:
        here = (*path, f"block {block.name}")
        for it in block.iters:
            self.iterator(it, here, ranges)
        self.expr(block.predicate, here, ranges)
        if block.predicate.dtype != "bool":
            self.fail(here, f"expected a bool predicate, found {block.predicate.dtype}")
        if block.init is not None and not block.writes:
            self.fail(here, "an init, but nothing is written")
        inside = {**ranges, **{i.var: (0, i.extent - 1) for i in block.iters}}
        for region in (*block.reads, *block.writes):
            self.access(region.buffer, [low for low, _ in region.ranges], here)
            for low, _ in region.ranges:
                self.expr(low, here, inside)
        known = self.covered.get(id(block))
        proved = known is not None and known[0] is block and known[1] == ranges
        for part in stmt_children(block):
            if not proved:
                self.coverage(block, part, here, inside)
            self.stmt(part, here, inside)
        self.covered[id(block)] = (block, ranges)

    def iterator(self, it: BlockIter, path: tuple[str, ...], ranges: Ranges) -> None:
        if it.kind not in ("spatial", "reduce"):
            self.fail(path, f"{it.var.name}: expected kind spatial or reduce, found {it.kind!r}")
        self.expr(it.binding, path, ranges)
        if it.binding.dtype != it.var.dtype:
            self.fail(
                path,
                f"{it.var.name}: expected a binding of {it.var.dtype}, found {it.binding.dtype}",
            )
        limits = bounds(it.binding, ranges)
        if limits is not None and (limits[0] >= it.extent or limits[1] < 0):
            self.fail(
                path,
                f"{it.var.name}: expected a binding in 0..{it.extent - 1}, "
                f"found {show(it.binding)} in {limits[0]}..{limits[1]}",
            )
        self.bind(it.var, path)

    def coverage(self, block: Block, part: Stmt, path: tuple[str, ...], ranges: Ranges) -> None:
        """Every access of the body or the init lies inside a declared region."""
        local = {s.buffer for s, _, _ in scoped(part, {}, {}) if isinstance(s, Alloc)}
        for wrote, buffer, access, extents in accesses(part):
            if buffer in local:
                continue
            own = block.init is not None and not wrote
            declared = block.writes if wrote else block.reads + (block.writes if own else ())
            if not any(
                r.buffer is buffer and not _outside(r, access, extents, ranges) for r in declared
            ):
                text = f"{buffer.name}[{', '.join(show(low) for low, _ in access)}]"
                verb = "writes" if wrote else "reads"
                self.fail(path, f"{verb} {text}, which its declared regions don't cover")

    # --- expressions ---

    def access(self, buffer: Buffer, indices: Sequence[Expr], path: tuple[str, ...]) -> None:
        if buffer not in self.buffers:
            self.fail(path, f"buffer {buffer.name} is neither a parameter nor allocated here")
        if len(indices) != len(buffer.shape):
            self.fail(
                path, f"{buffer.name}: expected {len(buffer.shape)} indices, found {len(indices)}"
            )
        for index in indices:
            if index.dtype not in NUMBERS:
                self.fail(path, f"{buffer.name}: expected an integer index, found {index.dtype}")

    def expr(self, expr: Expr, path: tuple[str, ...], ranges: Ranges) -> None:
        for node in walk_expr(expr):
            if isinstance(node, Var) and node not in ranges:
                self.fail(path, f"variable {node.name} is used outside its loop or block")
            if isinstance(node, Load):
                self.access(node.buffer, node.indices, path)


def _tag(stmt: Stmt) -> str:
    """The tag of a loop over groups or threads; empty for other statements."""
    return stmt.thread_tag if isinstance(stmt, For) and stmt.kind == "thread" else ""


def _between(stmt: Stmt) -> str:
    """Statement that keeps loops over threads from being directly inside one another; empty if
    none.
    """
    if _tag(stmt) in THREAD_TAGS or isinstance(stmt, Alloc):
        return ""
    what = f"loop {stmt.var.name}" if isinstance(stmt, For) else "other statements"
    return f"{what} between loops over threads"


def _apart(stmt: Stmt, threads: Set[Var]) -> str:
    """Statement that may keep threads from a barrier inside it; empty if none."""
    match stmt:
        case If(cond) if expr_vars(cond) & threads or list(loads(cond)):
            return f"it under a condition that may differ from thread to thread: {show(cond)}"
        case Block(name=name):
            return f"it in block {name}"
        case For(var=var) if _tag(stmt) in BLOCK_TAGS:
            return f"loop {var.name} over groups inside one over threads"
        case For(var=var, kind=kind) if kind not in (*UNIFORM, "thread"):
            return f"it in {kind} loop {var.name}"
    return ""


def _outside(
    region: BufferRegion,
    access: Sequence[tuple[Expr, int]],
    extents: dict[Var, int] | object,
    ranges: Ranges,
) -> bool:
    """Whether an access provably leaves the region in some dimension."""
    inner = extents if isinstance(extents, dict) else {}
    full = {**ranges, **{v: (0, n - 1) for v, n in inner.items()}}
    for (low, extent), (base, size) in zip(access, region.ranges, strict=True):
        delta = bounds(Binary("sub", low, base), full) if low.dtype == base.dtype else None
        if delta is not None and (delta[0] < 0 or delta[1] + extent > size):
            free = expr_vars(low) - expr_vars(base) - set(inner)
            if not free or difference(low, base, full) is not None:
                return True
    return False
