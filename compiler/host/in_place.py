"""Which tensors share their bytes: what a Reshape writes, and what a function writes over.

before: f(a, b, y): y[i] = relu(a[i] + b[0])     after: f'(b, a): a[i] = relu(a[i] + b[0]); y is a

A function may write its result over an operand that nobody reads later where it reads each element
of the operand right before it writes the element in that place, and nothing else of it: a residual
that a convolution adds, what an activation takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vdla.compiler.graph.express import HostKernel
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.plan import lifetimes
from vdla.compiler.host.steps import Kernels, on_host_alone, views
from vdla.compiler.placement.partition import Placements
from vdla.compiler.tir.arith import same
from vdla.compiler.tir.ir import Buffer, Evaluate, Expr, Load, Prefetch, PrimFunc, Stmt, Store
from vdla.compiler.tir.visitor import direct_exprs, replace_buffer, walk, walk_expr

Shared = dict[str, str]  # a tensor to the one whose bytes it is


def in_place(graph: Graph, placements: Placements, kernels: Kernels) -> tuple[Kernels, Shared]:
    """The functions, some of which write over an operand now, and all tensors that share bytes.

    Not where an accelerator takes part: its streams have their addresses.
    """
    if not on_host_alone(placements):
        return kernels, {}
    sharing = _Sharing(graph, placements, kernels)
    for number, node in enumerate(graph.nodes):
        if node.name in kernels:
            sharing.write_over(number, node)
    return sharing.kernels, sharing.shared


class _Sharing:
    """``last`` is, by the tensor whose bytes they are, the last node that reads any of them;
    ``made`` are the functions that write over, which several nodes may have."""

    def __init__(self, graph: Graph, placements: Placements, kernels: Kernels) -> None:
        self.graph, self.kernels = graph, dict(kernels)
        self.shared = views(graph, placements)
        self.made: dict[tuple[str, int], PrimFunc] = {}
        self.last: dict[str, int] = {}
        for name, (_, end) in lifetimes(graph).items():
            root = self.root(name)
            self.last[root] = max(self.last.get(root, end), end)

    def root(self, name: str) -> str:
        """The tensor whose bytes a tensor is."""
        return self.shared.get(name, name)

    def write_over(self, number: int, node: Node) -> None:
        """Has a node write over an operand, if there is one that it may."""
        kernel = self.kernels[node.name]
        for place in _overwritable(kernel.func):
            root = self.root(kernel.args[place])
            if self.last.get(root) == number:  # constants have no last reader
                self.join(node, kernel, place, root)
                return

    def join(self, node: Node, kernel: HostKernel, place: int, root: str) -> None:
        """Makes a node's result the bytes of ``root``, an operand's."""
        key = (kernel.func.name, place)
        if key not in self.made:
            self.made[key] = _over(kernel.func, place)
        args = (*kernel.args[:place], *kernel.args[place + 1 :])
        self.kernels[node.name] = replace(kernel, func=self.made[key], args=args)
        self.last[root] = self.last.pop(node.output)
        seen = [view for view, name in self.shared.items() if name == node.output]
        self.shared.update(dict.fromkeys((node.output, *seen), root))


def _overwritable(func: PrimFunc) -> Iterator[int]:
    """The parameters that the result may be written over."""
    *operands, result = func.params
    stores = [stmt for stmt in walk(func.body) if _writes(stmt, result)]
    if len(stores) != 1 or not isinstance(stores[0], Store):
        return
    for place, operand in enumerate(operands):
        if (operand.shape, operand.dtype) == (result.shape, result.dtype) and _passes(
            func, operand, stores[0]
        ):
            yield place


def _writes(stmt: Stmt, buffer: Buffer) -> bool:
    if isinstance(stmt, Evaluate):
        return any(ref.buffer is buffer for ref in stmt.call.operands)
    return isinstance(stmt, Store) and stmt.buffer is buffer


def _passes(func: PrimFunc, operand: Buffer, store: Store) -> bool:
    """Whether an operand is read where the store writes, and by nothing else."""
    for stmt in walk(func.body):
        if isinstance(stmt, Evaluate | Prefetch) and _mentions(stmt, operand):
            return False
        for expr in direct_exprs(stmt):
            for load in walk_expr(expr):
                reads = isinstance(load, Load) and load.buffer is operand
                if reads and (stmt is not store or not _same_place(load, store)):
                    return False
    return True


def _same_place(load: Expr, store: Store) -> bool:
    """Whether both go to one element, of buffers of one shape."""
    assert isinstance(load, Load)
    dims = zip(load.buffer.shape, load.indices, store.indices, strict=True)
    return all(size == 1 or same(a, b) for size, a, b in dims)


def _mentions(stmt: Evaluate | Prefetch, buffer: Buffer) -> bool:
    if isinstance(stmt, Prefetch):
        return stmt.region.buffer is buffer
    return any(ref.buffer is buffer for ref in stmt.call.operands)


def _over(func: PrimFunc, place: int) -> PrimFunc:
    """The function that writes its result over the parameter in a place, which it has no more."""
    operand, result = func.params[place], func.params[-1]
    params = tuple(p for p in func.params if p is not operand)
    body = replace_buffer(func.body, operand, result)
    return PrimFunc(f"{func.name}_over{place}", params, body)
