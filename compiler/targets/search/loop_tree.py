"""Trees of scheduled functions: what a cost model sees that reads loops, for any target of traces.

The nodes are those of the loop program: the function, its loops, buffers and branches, and under
each store or instruction one node for each buffer that it reads or writes. Numbers are logarithms,
since effects multiply; choices are one-hot:

- of a loop its kind, its extent, how often its body runs in all, and the bytes that all its steps
  touch together;
- of a statement its operations and how often it runs; of a buffer's own node its bytes;
- of an access the buffer's scope and bytes, the bytes that all loops touch of it, how often each is
  used again, and the stride of the innermost loop, in elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2, prod

import numpy as np

from vdla.compiler.search.forest import Forest, Tree
from vdla.compiler.tir.arith import linear
from vdla.compiler.tir.injective import offset
from vdla.compiler.tir.ir import (
    GLOBAL,
    LOCAL,
    SHARED,
    Alloc,
    Binary,
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    IntrinCall,
    Load,
    PrimFunc,
    Select,
    Stmt,
    Store,
)
from vdla.compiler.tir.ir.stmt import BLOCK_TAGS, LOOP_KINDS, THREAD_TAGS
from vdla.compiler.tir.visitor import expr_vars, stmt_children, walk_expr

NAMES = (
    *("function", *LOOP_KINDS, *BLOCK_TAGS, *THREAD_TAGS),
    *("alloc", "branch", "store", "instruction", "read", "write", GLOBAL, SHARED, LOCAL),
    *("extent", "turns", "touched", "ops", "bytes", "times", "again"),
    *("stride", "still", "side by side"),
)
Values = Mapping[str, float]  # features of a node that aren't 0; numbers not yet as logarithms
ONE_HOT = frozenset((*NAMES[: NAMES.index("extent")], "still", "side by side"))


@dataclass(frozen=True)
class Access:
    """Accesses of a statement to one buffer: how many, of how many elements each; the one that
    stands for them is at ``index``, by whose variables its place moves."""

    buffer: Buffer
    written: bool
    times: int
    elements: int
    index: tuple[Expr, ...]

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return np.dtype(self.buffer.dtype).itemsize

    def touched(self, loops: Sequence[For]) -> int:
        """Bytes that some loops around the statement touch."""
        moves = {var for index in self.index for var in expr_vars(index)}
        steps = prod(loop.extent for loop in loops if loop.var in moves)
        return self.item * min(self.buffer.size, steps * self.elements)

    def features(self, loops: Sequence[For]) -> Values:
        """Features of its node, inside some loops."""
        touched = self.touched(loops)
        steps = prod(loop.extent for loop in loops) * self.elements * self.item
        stride = self._stride(loops[-1], loops) if loops else 0
        return {
            "write" if self.written else "read": 1,
            self.buffer.scope: 1,
            "bytes": self.buffer.size * self.item,
            "times": self.times,
            "touched": touched,
            "again": steps / max(touched, 1),
            "stride": abs(stride),
            "still": stride == 0,
            "side by side": abs(stride) == 1,
        }

    def _stride(self, loop: For, loops: Sequence[For]) -> int:
        """Elements by which its place moves in a step of a loop, as far as that is a number."""
        index = self.index[-len(self.buffer.shape) :]
        ranges = {each.var: (0, each.extent - 1) for each in loops}
        return linear(offset(self.buffer.shape, index), ranges).terms.get(loop.var, 0)


def tree_of(func: PrimFunc) -> Tree:
    """The tree of a function as it would be compiled, without blocks."""
    growth = _Growth()
    root = growth.node(-1, {"function": 1})
    growth.add(root, func.body, ())
    return growth.tree()


def forest_of(
    points: Sequence[int], loops: Callable[[int], PrimFunc | None], grown: dict[int, Tree | None]
) -> Forest:
    """Trees of points' loops, none of a point without; ``grown`` keeps them."""
    for point in points:
        if point not in grown:
            func = loops(point)
            grown[point] = None if func is None else tree_of(func)
    return Forest.of(NAMES, [grown[point] for point in points])


@dataclass
class _Growth:
    """A tree in the making: parents, features, and the node of each loop."""

    parents: list[int] = field(default_factory=list)
    values: list[dict[str, float]] = field(default_factory=list)
    nodes: dict[int, int] = field(default_factory=dict)

    def node(self, parent: int, values: Values) -> int:
        """A new node; its number."""
        self.parents.append(parent)
        self.values.append(dict(values))
        return len(self.parents) - 1

    def add(self, parent: int, stmt: Stmt, loops: tuple[For, ...]) -> None:
        """Adds what a statement is, inside some loops, and all that is inside of it."""
        match stmt:
            case For(_, extent, kind, _, tag):
                loops = (*loops, stmt)
                turns = prod(loop.extent for loop in loops)
                own = {kind: 1.0, "extent": extent, "turns": turns}
                parent = self.node(parent, own | ({tag: 1.0} if tag in NAMES else {}))
                self.nodes[id(stmt)] = parent
            case Alloc(buffer):
                item = np.dtype(buffer.dtype).itemsize
                parent = self.node(
                    parent, {"alloc": 1, buffer.scope: 1, "bytes": buffer.size * item}
                )
            case If():
                parent = self.node(parent, {"branch": 1})
            case Store(_, _, value):
                ops = sum(isinstance(e, Binary | Call | Select) for e in walk_expr(value))
                self.statement(parent, {"store": 1, "ops": max(ops, 1)}, _stored(stmt), loops)
            case Evaluate(call):
                steps = prod(n for _, n, kind in call.intrin.axes if kind == "reduce")
                ops = 2 * steps * call.intrin.output.size
                self.statement(parent, {"instruction": 1, "ops": ops}, _called(call), loops)
        for child in stmt_children(stmt):
            self.add(parent, child, loops)

    def statement(
        self, parent: int, values: Values, accesses: Iterator[Access], loops: tuple[For, ...]
    ) -> None:
        """Adds a store or an instruction with its accesses, which the loops around it touch."""
        own = self.node(parent, {**values, "turns": prod(loop.extent for loop in loops)})
        for access in accesses:
            self.node(own, access.features(loops))
            for depth, loop in enumerate(loops):
                around = self.values[self.nodes[id(loop)]]
                around["touched"] = around.get("touched", 0) + access.touched(loops[depth:])

    def tree(self) -> Tree:
        """The tree, whose numbers are logarithms."""
        column = {name: i for i, name in enumerate(NAMES)}
        rows = np.zeros((len(self.values), len(NAMES)), np.float32)
        for row, values in zip(rows, self.values, strict=True):
            for name, value in values.items():
                if name in column:  # not a scope of another target's
                    row[column[name]] = value if name in ONE_HOT else log2(1 + value)
        return Tree(tuple(self.parents), rows)


def _stored(store: Store) -> Iterator[Access]:
    """Accesses of a store: what it writes, and each buffer that it reads."""
    yield Access(store.buffer, True, 1, 1, store.indices)
    reads: dict[Buffer, list[Load]] = {}
    for expr in walk_expr(store.value):
        if isinstance(expr, Load):
            reads.setdefault(expr.buffer, []).append(expr)
    for buffer, loads in reads.items():
        yield Access(buffer, False, len(loads), 1, loads[0].indices)


def _called(call: IntrinCall) -> Iterator[Access]:
    """Accesses of an instruction's operands."""
    for ref, operand in zip(call.operands, call.intrin.operands, strict=True):
        written = operand is call.intrin.output
        yield Access(ref.buffer, written, 1, operand.size, ref.indices)
