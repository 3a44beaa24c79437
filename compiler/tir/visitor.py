"""Walking and rewriting the tree.

Everything is built from two functions, ``map_expr`` and ``map_stmt``, which rebuild one node from
its rewritten children and return the very same object when no child changed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter, is_

from vdla.compiler.tir.ir import (
    Alloc,
    Binary,
    Block,
    BlockIter,
    Buffer,
    BufferRef,
    BufferRegion,
    Call,
    Cast,
    Const,
    Evaluate,
    Expr,
    For,
    If,
    IntrinCall,
    Load,
    Not,
    Prefetch,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
)

ExprFn = Callable[[Expr], Expr]
StmtFn = Callable[[Stmt], Stmt]


def expr_children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside an expression."""
    kind = type(expr)
    if kind is Var or kind is Const:
        return ()
    if several := _SEVERAL.get(kind):
        return several(expr)
    return (expr.a,) if isinstance(expr, Not | Cast) else ()


# How several children are read; a match would try one kind after the other.
_SEVERAL: Mapping[type[Expr], Callable[[Expr], tuple[Expr, ...]]] = {
    Binary: attrgetter("a", "b"),
    Select: attrgetter("cond", "a", "b"),
    Load: attrgetter("indices"),
    Call: attrgetter("args"),
}


def map_expr(expr: Expr, fn: ExprFn) -> Expr:
    """An expression with ``fn`` applied to its direct children."""
    old = expr_children(expr)
    if not old:
        return expr
    new = tuple(fn(child) for child in old)
    if all(map(is_, old, new)):
        return expr
    match expr:
        case Binary(op, _, _):
            return Binary(op, *new)
        case Not():
            return Not(*new)
        case Cast(_, dtype):
            return Cast(new[0], dtype)
        case Select():
            return Select(*new)
        case Load(buffer, _):
            return Load(buffer, new)
        case Call(op, _, dtype):
            return Call(op, new, dtype)
    raise TypeError(f"not an expression with children: {type(expr).__name__}")


def rewrite_expr(expr: Expr, fn: ExprFn) -> Expr:
    """An expression rewritten bottom-up: ``fn`` gets each node with its children rewritten."""
    return fn(map_expr(expr, lambda e: rewrite_expr(e, fn)))


def walk_expr(expr: Expr) -> Iterator[Expr]:
    """The nodes of an expression, parents first."""
    waiting = [expr]
    while waiting:
        expr = waiting.pop()
        yield expr
        waiting += reversed(expr_children(expr))


def expr_vars(expr: Expr) -> set[Var]:
    """The variables that occur in an expression."""
    return {e for e in walk_expr(expr) if isinstance(e, Var)}


def uses(expr: Expr, variables: Mapping[Var, object] | set[Var]) -> bool:
    """Whether any of ``variables`` occurs in ``expr``."""
    return any(isinstance(e, Var) and e in variables for e in walk_expr(expr))


def loads(expr: Expr) -> Iterator[Load]:
    """The loads in an expression, outer ones first."""
    return (e for e in walk_expr(expr) if isinstance(e, Load))


def _same_items(a: Iterable[object], b: Iterable[object]) -> bool:
    """Whether two sequences of one length hold the very same objects."""
    return all(x is y for x, y in zip(a, b, strict=True))


def _map_region(region: BufferRegion, fe: ExprFn) -> BufferRegion:
    ranges = tuple((fe(low), extent) for low, extent in region.ranges)
    same = all(a[0] is b[0] for a, b in zip(ranges, region.ranges, strict=True))
    return region if same else BufferRegion(region.buffer, ranges)


def _map_iter(it: BlockIter, fe: ExprFn) -> BlockIter:
    binding = fe(it.binding)
    return it if binding is it.binding else replace(it, binding=binding)


def _map_ref(ref: BufferRef, fe: ExprFn) -> BufferRef:
    indices = tuple(fe(i) for i in ref.indices)
    return ref if _same_items(indices, ref.indices) else BufferRef(ref.buffer, indices)


def _map_call(call: IntrinCall, fe: ExprFn) -> IntrinCall:
    operands = tuple(_map_ref(o, fe) for o in call.operands)
    params = {name: fe(value) for name, value in call.params.items()}
    first = None if call.first is None else fe(call.first)
    if _same_items(
        (*operands, *params.values(), first), (*call.operands, *call.params.values(), call.first)
    ):
        return call
    return IntrinCall(call.intrin, operands, params, first)


def _map_block(block: Block, fs: StmtFn, fe: ExprFn) -> Block:
    iters = tuple(_map_iter(i, fe) for i in block.iters)
    reads = tuple(_map_region(r, fe) for r in block.reads)
    writes = tuple(_map_region(r, fe) for r in block.writes)
    body = fs(block.body)
    init = None if block.init is None else fs(block.init)
    predicate = fe(block.predicate)
    if _same_items(
        (*iters, *reads, *writes, body, init, predicate),
        (*block.iters, *block.reads, *block.writes, block.body, block.init, block.predicate),
    ):
        return block
    return Block(block.name, iters, reads, writes, body, init, predicate)


def _map_if(stmt: If, fs: StmtFn, fe: ExprFn) -> If:
    cond, then = fe(stmt.cond), fs(stmt.then)
    orelse = None if stmt.orelse is None else fs(stmt.orelse)
    same = _same_items((cond, then, orelse), (stmt.cond, stmt.then, stmt.orelse))
    return stmt if same else If(cond, then, orelse)


def _map_store(stmt: Store, fe: ExprFn) -> Store:
    indices, value = tuple(fe(i) for i in stmt.indices), fe(stmt.value)
    same = _same_items((*indices, value), (*stmt.indices, stmt.value))
    return stmt if same else Store(stmt.buffer, indices, value)


def map_stmt(stmt: Stmt, fs: StmtFn, fe: ExprFn | None = None) -> Stmt:
    """A statement with ``fs`` applied to its direct statements and ``fe`` to its expressions."""
    if fe is None:
        return _map_inside(stmt, fs)
    match stmt:
        case For() | Alloc() | Seq():
            return _map_inside(stmt, fs)
        case Block():
            return _map_block(stmt, fs, fe)
        case Store():
            return _map_store(stmt, fe)
        case If():
            return _map_if(stmt, fs, fe)
        case Evaluate(call):
            changed = _map_call(call, fe)
            return stmt if changed is call else Evaluate(changed)
        case Prefetch(region):
            moved = _map_region(region, fe)
            return stmt if moved is region else Prefetch(moved)
    return stmt


def _map_inside(stmt: Stmt, fs: StmtFn) -> Stmt:
    """A statement with ``fs`` applied to its direct statements alone."""
    old = stmt_children(stmt)
    if not old:
        return stmt
    new = tuple(fs(child) for child in old)
    if all(map(is_, old, new)):
        return stmt
    match stmt:
        case For(var, extent, kind, _, thread_tag, annotations):
            return For(var, extent, kind, new[0], thread_tag, annotations)
        case Alloc(buffer, _):
            return Alloc(buffer, new[0])
        case Block():
            return replace(stmt, body=new[-1], init=None if stmt.init is None else new[0])
        case If():
            return If(stmt.cond, new[0], None if stmt.orelse is None else new[1])
    return seq(*new)


def rewrite(stmt: Stmt, fs: StmtFn = lambda s: s, fe: ExprFn | None = None) -> Stmt:
    """A statement rewritten bottom-up: ``fs`` gets each one after those inside were rewritten.

    ``fe`` gets the expressions whole; they are rewritten first.
    """
    return fs(map_stmt(stmt, lambda s: rewrite(s, fs, fe), fe))


_LEAVES: frozenset[type[Stmt]] = frozenset((Store, Evaluate, Prefetch))  # most statements are


def stmt_children(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside a statement, in the order in which they run."""
    if type(stmt) in _LEAVES:
        return ()
    match stmt:
        case For() | Alloc():
            return (stmt.body,)
        case Block():
            return (stmt.body,) if stmt.init is None else (stmt.init, stmt.body)
        case If(_, then, orelse):
            return (then,) if orelse is None else (then, orelse)
        case Seq(stmts):
            return stmts
    return ()


def walk(stmt: Stmt) -> Iterator[Stmt]:
    """The statements of a tree, parents first, in program order."""
    waiting = [stmt]
    while waiting:
        stmt = waiting.pop()
        yield stmt
        waiting += reversed(stmt_children(stmt))


def direct_exprs(stmt: Stmt) -> Iterator[Expr]:
    """The expressions a statement holds itself, regions left out."""
    match stmt:
        case Block():
            yield from (i.binding for i in stmt.iters)
            yield stmt.predicate
        case Store(_, indices, value):
            yield from (*indices, value)
        case If(cond, _, _):
            yield cond
        case Evaluate(call):
            for operand in call.operands:
                yield from operand.indices
            yield from call.params.values()
            if call.first is not None:
                yield call.first
        case Prefetch(fetched):
            yield from (low for low, _ in fetched.ranges)


def stmt_loads(stmt: Stmt) -> Iterator[Load]:
    """Every load under a statement; intrinsic calls aren't opened."""
    for inner in walk(stmt):
        for expr in direct_exprs(inner):
            yield from loads(expr)


def stores(stmt: Stmt) -> Iterator[Store]:
    """The stores in a statement, in program order; intrinsic calls aren't opened."""
    return (s for s in walk(stmt) if isinstance(s, Store))


def blocks(stmt: Stmt) -> Iterator[Block]:
    """The blocks in a statement, outer ones first."""
    return (s for s in walk(stmt) if isinstance(s, Block))


def substitute_expr(expr: Expr, mapping: Mapping[Var, Expr]) -> Expr:
    """An expression with variables replaced all at once; values may mention replaced variables."""
    if isinstance(expr, Var):
        return mapping.get(expr, expr)
    return map_expr(expr, lambda e: substitute_expr(e, mapping)) if mapping else expr


def substitute(stmt: Stmt, mapping: Mapping[Var, Expr]) -> Stmt:
    """A statement with variables replaced in every expression, all at once."""
    if not mapping:
        return stmt
    return rewrite(stmt, fe=lambda e: substitute_expr(e, mapping))


def with_own_loops(stmt: Stmt) -> Stmt:
    """A copy of a statement whose loops have variables of their own: it may stand beside it."""
    fresh = {s.var: Var(s.var.name) for s in walk(stmt) if isinstance(s, For)}

    def renamed(s: Stmt) -> Stmt:
        return replace(s, var=fresh[s.var]) if isinstance(s, For) else s

    return rewrite(substitute(stmt, dict[Var, Expr](fresh)), renamed)


Reindex = Callable[[tuple[Expr, ...]], tuple[Expr, ...]]


def replace_buffer(
    stmt: Stmt, old: Buffer, new: Buffer, reindex: Reindex = lambda indices: indices
) -> Stmt:
    """A statement in which every access of ``old`` goes to ``new``; Alloc nodes are changed too.

    ``reindex`` gives the new indices for the old ones.
    """
    return replace_buffers(stmt, {old: new}, reindex)


def replace_buffers(
    stmt: Stmt, new: Mapping[Buffer, Buffer], reindex: Reindex = lambda indices: indices
) -> Stmt:
    """A statement in which the accesses of some buffers go to ``new`` ones, all at once; Alloc
    nodes are changed too.

    ``reindex`` gives the new indices for the old ones.
    """

    def load(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer in new:
            return Load(new[e.buffer], reindex(e.indices))
        return e

    def expr(e: Expr) -> Expr:  # most load nothing of it, and are not built again
        if isinstance(e, Var | Const):
            return e
        return rewrite_expr(e, load) if any(x.buffer in new for x in loads(e)) else e

    def region(r: BufferRegion) -> BufferRegion:
        if r.buffer not in new:
            return r
        lows = reindex(tuple(low for low, _ in r.ranges))
        ranges = tuple((low, r.ranges[i][1]) for i, low in enumerate(lows))
        return BufferRegion(new[r.buffer], ranges)

    def call(c: IntrinCall) -> IntrinCall:
        refs = (
            BufferRef(new[o.buffer], reindex(o.indices)) if o.buffer in new else o
            for o in c.operands
        )
        return replace(c, operands=tuple(refs))

    def node(s: Stmt) -> Stmt:
        match s:
            case Store(buffer, indices, value) if buffer in new:
                return Store(new[buffer], reindex(indices), value)
            case Block() if any(r.buffer in new for r in (*s.reads, *s.writes)):
                return replace(
                    s, reads=tuple(map(region, s.reads)), writes=tuple(map(region, s.writes))
                )
            case Alloc(buffer, body) if buffer in new:
                return Alloc(new[buffer], body)
            case Evaluate(c) if any(o.buffer in new for o in c.operands):
                return Evaluate(call(c))
            case Prefetch(fetched) if fetched.buffer in new:
                return Prefetch(region(fetched))
        return s

    def visit(s: Stmt) -> Stmt:
        return s if _leaves_alone(s, new) else node(map_stmt(s, visit, expr))

    return visit(stmt)


def _leaves_alone(stmt: Stmt, buffers: Container[Buffer]) -> bool:
    """Whether a statement is a block of one store or call, whose regions have none of some
    buffers."""
    if not isinstance(stmt, Block) or not isinstance(stmt.body, Store | Evaluate):
        return False
    return all(region.buffer not in buffers for region in (*stmt.reads, *stmt.writes))
