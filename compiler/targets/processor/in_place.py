"""Which tensors share their bytes: views, and what a function writes over.

before: f(a, b, y): y[i] = relu(a[i] + b[0])     after: f'(b, a): a[i] = relu(a[i] + b[0]); y is a

A function may write its result over a tensor that nobody reads later. It may do so where every
access to the tensor's bytes, by whichever of its parameters, is a read of the element that the
same statement writes then, and that statement writes no element twice: a residual that a
convolution adds, what an activation takes. A tensor that the function also reads as an image, or
under another shape, is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.views import View
from vdla.compiler.graph.plan import address_views
from vdla.compiler.graph.sharing import Sharing
from vdla.compiler.placement import ACCELERATOR, ONNXRUNTIME, PROCESSOR, Placements
from vdla.compiler.targets.functions import FunctionCodes
from vdla.compiler.targets.processor.views import on_processor_alone, views
from vdla.compiler.targets.target import Code
from vdla.compiler.tir.arith import same
from vdla.compiler.tir.injective import stores_once
from vdla.compiler.tir.ir import Buffer, Evaluate, Expr, Load, Prefetch, PrimFunc, Stmt, Store
from vdla.compiler.tir.visitor import direct_exprs, replace_buffer, walk, walk_expr

Shared = Mapping[str, View]  # a tensor to its place in the one whose bytes it is, no view itself


def in_place(
    graph: Graph, placements: Placements, functions: FunctionCodes
) -> tuple[FunctionCodes, Shared]:
    """The functions, some of which write over an operand now, and all tensors that share bytes.

    No function does where an accelerator takes part: its streams have their addresses. Copies
    share bytes there, too. With another device nothing does: it has a memory of its own, and its
    tensors are copied by their names.
    """
    if not {ACCELERATOR, PROCESSOR, ONNXRUNTIME}.issuperset(
        each.device for each in placements.values()
    ):
        return functions, {}
    if not on_processor_alone(placements):
        sharing = Sharing(graph, address_views(graph))
        sharing.join_copies()
        return functions, sharing.views
    over = _WriteOver(Sharing(graph, views(graph, placements)), functions)
    over.sharing.join_copies()
    for number, node in enumerate(graph.nodes):
        if node.name in functions:
            over.write_over(number, node)
    return over.functions, over.sharing.views


class _WriteOver:
    """Functions that are to write over operands.

    ``stores`` are their only ones, and ``made`` the functions that write over: several nodes may
    have one function.
    """

    def __init__(self, sharing: Sharing, functions: FunctionCodes) -> None:
        self.sharing, self.functions = sharing, dict(functions)
        self.stores: dict[str, Store | None] = {}
        self.made: dict[tuple[str, tuple[int, ...]], PrimFunc] = {}

    def write_over(self, number: int, node: Node) -> None:
        """Has a node write over an operand, if there is one that it may."""
        function = self.functions[node.name]
        name = function.program.name
        if name not in self.stores:
            self.stores[name] = _only_store(function.program)
        store = self.stores[name]
        if store is None:
            return
        operands: dict[str, list[int]] = {}
        for param, name in enumerate(function.args[:-1]):
            operands.setdefault(self.sharing.place(name).whole, []).append(param)
        result, offset = self.sharing.place(node.output)
        for root, params in operands.items():
            place, *others = {self.sharing.place(function.args[param]) for param in params}
            if others or offset or not self.sharing.can_join(result, root, number):
                continue
            if _overwritable(function.program, params, store):
                self.functions[node.name] = self.over(function, tuple(params))
                self.sharing.join(result, place)
                return

    def over(self, function: Code[PrimFunc], params: tuple[int, ...]) -> Code[PrimFunc]:
        """A function that writes its result over the parameters ``params``."""
        key = (function.program.name, params)
        if key not in self.made:
            self.made[key] = _over(function.program, params)
        args = tuple(name for param, name in enumerate(function.args) if param not in params)
        return replace(function, program=self.made[key], args=args)


def _only_store(func: PrimFunc) -> Store | None:
    """The statement that writes a function's result, if that is one alone and writes no element
    twice."""
    stores = [stmt for stmt in walk(func.body) if _writes(stmt, func.params[-1])]
    if len(stores) != 1 or not isinstance(stores[0], Store):
        return None
    return stores[0] if stores_once(func.body, stores[0]) else None


def _overwritable(func: PrimFunc, places: Sequence[int], store: Store) -> bool:
    """Whether the result may be written over a tensor that the parameters in ``places`` are."""
    return all(
        (func.params[place].shape, func.params[place].dtype)
        == (store.buffer.shape, store.buffer.dtype)
        and _passes(func, func.params[place], store)
        for place in places
    )


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


def _over(func: PrimFunc, places: Sequence[int]) -> PrimFunc:
    """The function that writes its result over the parameters in ``places``, which go."""
    result, body = func.params[-1], func.body
    for place in places:
        body = replace_buffer(body, func.params[place], result)
    params = tuple(param for place, param in enumerate(func.params) if place not in places)
    name = "_".join(str(place) for place in places)
    return PrimFunc(f"{func.name}_over{name}", params, body)
