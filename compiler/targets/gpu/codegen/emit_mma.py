"""LLVM's call of a tensor core's instruction for the loop that says what it does.

    for e in 4 (mma): for k in 16: acc[e] = acc[e] + float32(a[…, k]) * float32(b[k, …])

A lane doesn't multiply its own elements: it brings a fragment of each factor (``gpu.mma`` has the
layout), and the warp's lanes together compute what the loop says.
"""

from __future__ import annotations

from llvmlite import ir as ll

from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.gpu.codegen.values import I32, TYPES, Values, memory_type
from vdla.compiler.targets.gpu.mma import INSTRUCTIONS, MMA, OWN, Mma
from vdla.compiler.tir.ir import Binary, Cast, Const, Expr, For, Load, Store, Var, const
from vdla.compiler.tir.visitor import substitute_expr

A_REGISTERS, B_REGISTERS = 4, 2


def emit_product(values: Values, loop: For, lane: Var) -> None:
    """Appends the instruction that does a loop; ``lane`` is the thread's number in its warp."""
    mma = INSTRUCTIONS[str(dict(loop.annotations)[MMA])]
    store, a, b = product_parts(values.name, loop)
    b_places, a_places = b_fragment(loop, b, lane, mma), a_fragment(loop, a, lane, mma)
    factors = [_register(values, each) for each in (*a_places, *b_places)]
    places = [_at(store.indices, {loop.var: Const(n, "int32")}) for n in range(OWN)]
    sums = [values.load(store.buffer, place) for place in places]
    kind = TYPES[store.buffer.dtype]
    arguments = [*factors, *sums]
    function = values.function(
        mma.name, ll.LiteralStructType([kind] * OWN), [x.type for x in arguments]
    )
    result = values.builder.call(function, arguments, attrs=("convergent",))
    for n, place in enumerate(places):
        address = values.element(store.buffer, place)
        values.builder.store(values.builder.extract_value(result, n), address)


def a_fragment(loop: For, a: Load, lane: Var, mma: Mma) -> list[list[Load]]:
    """Items that a lane brings of the left factor, for each register."""
    result = []
    for r in range(A_REGISTERS):
        half, first = const(r % 2 * 2, "int32"), lane % 4 * mma.items + 4 * mma.items * (r // 2)
        result.append(
            [_element(a, {loop.var: half, _k(loop): first + i}) for i in range(mma.items)]
        )
    return result


def b_fragment(loop: For, b: Load, lane: Var, mma: Mma) -> list[list[Load]]:
    """Items that a lane brings of the right factor, for each register.

    Its column is lane / 4, which the loop gives to another lane, the one whose elements are there.
    """
    g = lane // 4
    other: dict[Var, Expr] = {lane: g // 2, loop.var: g % 2}
    result = []
    for r in range(B_REGISTERS):
        first = lane % 4 * mma.items + 4 * mma.items * r
        result.append([_element(b, {**other, _k(loop): first + i}) for i in range(mma.items)])
    return result


def product_parts(name: str, loop: For) -> tuple[Store, Load, Load]:
    """The sum that a loop adds to, and its factors."""
    inner = loop.body.body if isinstance(loop.body, For) else None
    match inner:
        case Store(
            value=Binary("add", _, Binary("mul", Cast(Load() as a, _), Cast(Load() as b, _)))
        ):
            return inner, a, b
    raise NoCodeError(f"{name}: expected products of two factors, found another loop marked {MMA}")


def _k(loop: For) -> Var:
    """The variable of the loop over a sum's products."""
    assert isinstance(loop.body, For)
    return loop.body.var


def _at(indices: tuple[Expr, ...], places: dict[Var, Expr]) -> tuple[Expr, ...]:
    return tuple(substitute_expr(index, places) for index in indices)


def _element(load: Load, places: dict[Var, Expr]) -> Load:
    """The element that a load reads where the loops stand elsewhere."""
    return Load(load.buffer, _at(load.indices, places))


def _register(values: Values, items: list[Load]) -> ll.Value:
    """Some elements side by side: halves as a vector, bytes as an int."""
    b, kind = values.builder, memory_type(items[0].buffer)
    vector = ll.Constant(ll.VectorType(kind, len(items)), ll.Undefined)
    for n, item in enumerate(items):
        element = b.load(values.element(item.buffer, item.indices), typ=kind)
        vector = b.insert_element(vector, element, I32(n))
    return b.bitcast(vector, I32) if kind == ll.IntType(8) else vector
