"""Random functions of the loop IR, whose names and numbers are odd."""

from __future__ import annotations

from hypothesis import strategies as st

from vdla.compiler.tir.ir import (
    BITWISE,
    COMPARISONS,
    DTYPES,
    FLOAT_CALLS,
    FLOATS,
    INT_RANGES,
    LOGIC,
    LOOP_KINDS,
    Alloc,
    Binary,
    Block,
    BlockIter,
    Buffer,
    BufferRegion,
    Cast,
    Const,
    For,
    If,
    Load,
    Not,
    PrimFunc,
    Select,
    Seq,
    Store,
    Var,
    call,
    const,
    is_float,
    is_int,
)

NAMES = st.one_of(
    st.sampled_from(["x", "x_1", "x.0", "if", "init", "min", "int8", "inf", "1a", "a b", "é", ""]),
    st.text(max_size=6),
)


def constants(dtype):
    if dtype in FLOATS:
        return st.floats(width=64).map(lambda v: Const(v, dtype))
    return st.integers(*INT_RANGES[dtype]).map(lambda v: Const(v, dtype))


def an_expr(draw, dtype, depth, variables, buffers):
    """An expression of a dtype, over variables and buffers."""
    more = lambda d: an_expr(draw, d, depth - 1, variables, buffers)  # noqa: E731
    leaves = [lambda: draw(constants(dtype))]
    leaves += [lambda v=v: v for v in variables if v.dtype == dtype]
    if not depth:
        return draw(st.sampled_from(leaves))()
    kinds = [
        *leaves,
        lambda: Select(more("bool"), more(dtype), more(dtype)),
        lambda: Cast(more(draw(st.sampled_from(DTYPES))), dtype),
    ]
    for buffer in buffers:
        if buffer.dtype == dtype:
            kinds.append(lambda b=buffer: Load(b, tuple(more("int32") for _ in b.shape)))
    if dtype == "bool":
        kinds.append(lambda: Not(more("bool")))
        kinds.append(lambda: binary(LOGIC, "bool", more))
        kinds.append(lambda: binary(COMPARISONS, draw(st.sampled_from(DTYPES)), more))
    if is_int(dtype):
        kinds.append(lambda: binary((*BITWISE, "shl", "shr", "floordiv", "floormod"), dtype, more))
    if dtype != "bool":
        kinds.append(lambda: binary(("add", "sub", "mul", "min", "max"), dtype, more))
        kinds.append(lambda: call("abs", more(dtype)))
    if is_float(dtype):
        kinds.append(lambda: Binary("div", more(dtype), more(dtype)))
        kinds.append(lambda: float_call(draw(st.sampled_from(FLOAT_CALLS)), dtype, more))
    if dtype == "int32":
        kinds.append(lambda: call("rq", more("int32"), more("int32")))
        kinds.append(lambda: call(draw(st.sampled_from(("reciprocal", "rsqrt"))), more("int32")))

    def binary(ops, operand, more):
        return Binary(draw(st.sampled_from(ops)), more(operand), more(operand))

    return draw(st.sampled_from(kinds))()


def float_call(op, dtype, more):
    return call(op, *(more(dtype) for _ in range(2 if op == "pow" else 1)))


def a_buffer(draw, scope="global"):
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.integers(1, 9), max_size=3)))
    values = None
    if dtype in INT_RANGES and draw(st.booleans()):
        values = tuple(sorted(draw(st.tuples(*2 * [st.integers(*INT_RANGES[dtype])]))))
    copies = draw(st.integers(1, 3))
    return Buffer(draw(NAMES), shape, dtype, scope, copies, values)


def a_stmt(draw, depth, variables, buffers):
    more = lambda v=variables, b=buffers: a_stmt(draw, depth - 1, v, b)  # noqa: E731
    value = lambda dtype: an_expr(draw, dtype, 2, variables, buffers)  # noqa: E731
    kind = draw(
        st.sampled_from(
            ("store",)
            if not depth
            else ("store", "for", "alloc", "if", "seq", "block", "seq", "for")
        )
    )
    if kind == "for":
        var = Var(draw(NAMES))
        notes = tuple(
            draw(
                st.lists(
                    st.tuples(
                        NAMES,
                        st.one_of(
                            st.integers(-99, 99), st.booleans(), st.text(max_size=4), st.floats()
                        ),
                    ),
                    max_size=2,
                )
            )
        )
        return For(
            var,
            draw(st.integers(1, 9)),
            draw(st.sampled_from(LOOP_KINDS)),
            more([*variables, var]),
            draw(st.sampled_from(("", "x", 'a"b\n'))),
            notes,
        )
    if kind == "alloc":
        buffer = a_buffer(draw, draw(st.sampled_from(("global", "vdla.acc", "a b"))))
        return Alloc(buffer, more(variables, [*buffers, buffer]))
    if kind == "if":
        return If(value("bool"), more(), more() if draw(st.booleans()) else None)
    if kind == "seq":
        return Seq(tuple(more() for _ in range(draw(st.integers(0, 3)))))
    if kind == "block":
        return a_block(draw, more, variables, buffers)
    buffer = draw(st.sampled_from(buffers))
    return Store(buffer, tuple(value("int32") for _ in buffer.shape), value(buffer.dtype))


def a_block(draw, more, variables, buffers):
    """A block whose regions are whole buffers, so that any body is covered."""
    iters = tuple(
        BlockIter(
            Var(draw(NAMES), dtype),
            draw(st.integers(1, 9)),
            draw(st.sampled_from(("spatial", "reduce"))),
            const(0, dtype),
        )
        for dtype in draw(st.lists(st.sampled_from(("int32", "int64")), max_size=2))
    )
    regions = tuple(BufferRegion(b, tuple((const(0), n) for n in b.shape)) for b in buffers)
    inside = [*variables, *(i.var for i in iters)]
    init = more(inside) if regions and draw(st.booleans()) else None
    predicate = an_expr(draw, "bool", 2, variables, [])
    return Block(draw(NAMES), iters, regions, regions, more(inside), init, predicate)


@st.composite
def functions(draw):
    """Functions that ``verify`` may refuse: the text need not know."""
    made = {b.name: b for b in (a_buffer(draw) for _ in range(draw(st.integers(1, 3))))}
    params = tuple(made.values())
    return PrimFunc(draw(NAMES), params, a_stmt(draw, 3, [], list(params)))
