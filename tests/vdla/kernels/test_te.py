"""What `vdla.te` expresses beyond sums, through `vdla.build`."""

from __future__ import annotations

import numpy as np
import pytest

import vdla
from vdla import te
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.targets.accelerator.codegen.leaf import CodegenError
from vdla.compiler.te import TEError

RNG = np.random.default_rng(0)


def test_a_product_on_the_cpu():
    A, k = te.placeholder((4, 5), "float32", "A"), te.reduce_axis((0, 5), "k")
    C = te.compute((4,), lambda i: te.prod(A[i, k], axis=k), "C")
    a, c = RNG.normal(size=(4, 5)).astype("float32"), np.zeros(4, "float32")
    vdla.build(te.create_schedule(C), [A, C], "cpu")(a, c)
    np.testing.assert_allclose(c, a.prod(axis=1), rtol=1e-6)


def test_argmax_on_the_cpu():
    argmax = te.comm_reducer(
        lambda x, y: (te.select(x[1] >= y[1], x[0], y[0]), te.maximum(x[1], y[1])),
        lambda t0, t1: (te.const(-1, t0), te.min_value(t1)),
        "argmax",
    )
    A, k = te.placeholder((4, 9), "int32", "A"), te.reduce_axis((0, 9), "k")
    I, V = te.compute((4,), lambda i: argmax((k, A[i, k]), axis=k), "T")
    a = RNG.integers(-9, 9, (4, 9)).astype("int32")
    i, v = np.zeros(4, "int32"), np.zeros(4, "int32")
    vdla.build(te.create_schedule([I, V]), [A, I, V], "cpu")(a, i, v)
    np.testing.assert_array_equal(i, a.argmax(axis=1))
    np.testing.assert_array_equal(v, a.max(axis=1))


def best(value=None):
    """Index and value of the least element of each row, computed together."""
    argmin = te.comm_reducer(
        lambda x, y: (te.select(x[1] <= y[1], x[0], y[0]), te.minimum(x[1], y[1])),
        lambda t0, t1: (te.const(-1, t0), te.max_value(t1)),
        "argmin",
    )
    A, k = te.placeholder((4, 9), "int32", "A"), te.reduce_axis((0, 9), "k")
    return A, *te.compute((4,), lambda i: argmin((k, A[i, k]), axis=k), "am")


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        (lambda I, V: I, "A am_v0 am_v1"),
        (lambda I, V: V, "A am_v1 am_v0"),
        (lambda I, V: I.op, "A am_v0 am_v1"),
        (lambda I, V: [I.op], "A am_v0 am_v1"),
        (lambda I, V: [V, I], "A am_v1 am_v0"),
        (lambda I, V: (V, I.op), "A am_v1 am_v0"),
    ],
)
def test_a_tuple_is_an_output_whole(outputs, names):
    A, I, V = best()
    kernel = vdla.build(te.create_schedule(outputs(I, V)), target="cpu")
    assert " ".join(p.name for p in kernel.params) == names
    a = RNG.integers(-9, 9, (4, 9)).astype("int32")
    i, v = np.zeros(4, "int32"), np.zeros(4, "int32")
    vdla.build(te.create_schedule(outputs(I, V)), [A, I, V], "cpu")(a, i, v)
    np.testing.assert_array_equal(i, a.argmin(axis=1))
    np.testing.assert_array_equal(v, a.min(axis=1))


def test_a_schedule_of_operations():
    """As TVM's tutorials have it."""
    A = te.placeholder((6,), "int32", "A")
    B = te.compute((6,), lambda i: A[i] + 1, "B")
    C = te.compute((6,), lambda i: B[i] * 2, "C")
    for outputs in (C, C.op, [C], [C.op], (C.op, C)):
        s = te.create_schedule(outputs)
        s[C.op].split(s[C].op.axis[0], factor=2)
        c = np.zeros(6, "int32")
        vdla.build(s, [A, C], "cpu")(np.arange(6, dtype="int32"), c)
        np.testing.assert_array_equal(c, (np.arange(6) + 1) * 2)
    assert [p.name for p in te.create_schedule([C.op, B.op]).mod.params] == ["A", "C", "B"]


@pytest.mark.parametrize(
    ("outputs", "found"),
    [
        (lambda A, B: "B", "'B'"),
        (lambda A, B: [B, 3], "3"),
        (lambda A, B: A.op, "None, which is a placeholder's operation"),
        (lambda A, B: [B, A.op], "None, which is a placeholder's operation"),
    ],
)
def test_what_is_no_output(outputs, found):
    A = te.placeholder((6,), "int32", "A")
    B = te.compute((6,), lambda i: A[i] + 1, "B")
    with pytest.raises(TEError) as error:
        te.create_schedule(outputs(A, B))
    assert str(error.value) == (
        "create_schedule: expected a tensor or an operation, as C or C.op, or a list of them, "
        f"found {found}"
    )


def test_no_output():
    with pytest.raises(TEError, match=r"^create_schedule: expected at least one output, found n"):
        te.create_schedule([])


def test_an_extern_statement_on_the_cpu():
    def turned(ins, outs):
        ib = te.ir_builder.create()
        with ib.for_range(0, 6, "i") as i:
            ib.buffer_ptr(outs[0])[5 - i] = ins[0][i]
        return ib.get()

    A = te.placeholder((6,), "int8", "A")
    C = te.extern((6,), [A], turned, "C")
    a, c = np.arange(6, dtype="int8"), np.zeros(6, "int8")
    vdla.build(te.create_schedule(C), [A, C], "cpu")(a, c)
    np.testing.assert_array_equal(c, a[::-1])


def test_a_recurrence_on_the_cpu():
    X, state = (te.placeholder((7, 2), "float32", n) for n in ("X", "state"))
    init = te.compute((1, 2), lambda _, i: X[0, i], "init")
    update = te.compute((7, 2), lambda t, i: state[t - 1, i] * 0.5 + X[t, i], "update")
    S = te.scan(init, update, state)
    x, y = RNG.normal(size=(7, 2)).astype("float32"), np.zeros((7, 2), "float32")
    vdla.build(te.create_schedule(S), [X, S], "cpu")(x, y)
    want = [x[0]]
    for row in x[1:]:
        want.append(want[-1] * np.float32(0.5) + row)
    np.testing.assert_array_equal(y, want)


def reduced(reducer):
    """(schedule, tensors): rows of int32 vectors reduced on the accelerator."""
    ins = vdla.intrinsics("tiny")
    lanes = ins.alu_add.output.shape[0]
    A, k = te.placeholder((6, lanes), "int32", "A"), te.reduce_axis((0, 6), "k")
    C = te.compute((1, lanes), lambda i, l: reducer(A[k, l], axis=k), "C")
    s = te.create_schedule(C)
    made = s.cache_write(C, vdla.ACC)
    copy = s.cache_read(A, vdla.ACC, [made])
    s[made].reorder(*s[made].reduce_axis, *s[made].axis)
    for stage in (copy, made, C):
        s[stage].tensorize(s[stage].axis[1], ins)
    return s, [A, C]


@pytest.mark.parametrize(
    ("combine", "identity", "reduce"),
    [
        (lambda x, y: y + x, lambda t: te.const(0, t), np.add.reduce),
        (lambda x, y: te.select(x > y, x, y), te.min_value, np.maximum.reduce),
        (lambda x, y: te.select(y < x, y, x), te.max_value, np.minimum.reduce),
    ],
)
def test_a_reducer_that_combines_as_an_instruction_is_that(combine, identity, reduce):
    s, tensors = reduced(te.comm_reducer(combine, identity))
    kernel = vdla.build(s, tensors, "tiny")
    a = RNG.integers(-99, 99, tensors[0].shape).astype("int32")
    c = np.zeros((1, a.shape[1]), "int32")
    for device in ("sim", "rtl"):
        c[...] = 0
        kernel(a, c, device=device)
        np.testing.assert_array_equal(c[0], reduce(a))


def test_a_reducer_without_an_instruction():
    with pytest.raises(ScheduleError, match="expected what one of 35 intrinsics does; the closest"):
        reduced(te.prod)


BITS = "none has the operation {}, they have add, max, min, mul, rq, shl, shr, sub"
ONE = "tensorize C_acc.l: expected what one of 35 intrinsics does, found "


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (lambda x, y: x & y, "A_acc[i, l] & B_acc[i, l]: " + BITS.format("bitand")),
        (lambda x, y: x + (x ^ 3), "A_acc[i, l] ^ 3: " + BITS.format("bitxor")),
        (lambda x, y: te.floormod(x, 4),
         "A_acc[i, l] % 4: " + BITS.format("floormod") + "; x % 2**n is x - (x >> n << n)"),
        (lambda x, y: te.floordiv(x, 4),
         "A_acc[i, l] // 4: " + BITS.format("floordiv") + "; x // 2**n is x >> n"),
        (te.abs, "abs(A_acc[i, l]): " + BITS.format("abs")),
        (lambda x, y: te.select(x > y, x, y), None),
    ],
)  # fmt: skip
def test_an_operation_without_an_instruction(value, line):
    """It is named, rather than an intrinsic that has nothing to do with it."""
    ins, args = vdla.intrinsics("tiny"), (lambda x, y: value(x, y))
    if value is te.abs:
        args = lambda x, y: te.abs(x)  # noqa: E731
    A, B = (te.placeholder((6, 4), "int32", n) for n in "AB")
    C = te.compute((6, 4), lambda i, l: args(A[i, l], B[i, l]), "C")
    s = te.create_schedule(C, [A, B])
    made = s.cache_write(C, vdla.ACC)
    for tensor in (t for t in (A, B) if t in C.compute_op.inputs):
        s.cache_read(tensor, vdla.ACC, [made])
    with pytest.raises(ScheduleError) as error:
        s[made].tensorize(s[made].axis[1], ins)
    if line:
        assert str(error.value) == ONE + line
    else:
        assert "none has the operation select by values" in str(error.value)


def test_two_operations_in_one_stage():
    """The closest is an intrinsic that has both, of something else."""
    ins, A = vdla.intrinsics("tiny"), te.placeholder((6, 4), "int32", "A")
    C = te.compute((6, 4), lambda i, l: te.max(te.min(A[i, l], 6), 0), "C")
    s = te.create_schedule(C, [A])
    made = s.cache_write(C, vdla.ACC)
    s.cache_read(A, vdla.ACC, [made])
    with pytest.raises(
        ScheduleError, match=r"the closest, alu_rq expects dst\[\.\.\.\] = min\(max"
    ):
        s[made].tensorize(s[made].axis[1], ins)


def test_a_recurrence_of_instructions():
    """A cumulative sum of vectors: each row is the one before, in ACC, and one more."""
    ins = vdla.intrinsics("tiny")
    lanes = ins.alu_add.output.shape[0]
    X, state = (te.placeholder((7, lanes), "int32", n) for n in ("X", "state"))
    init = te.compute((1, lanes), lambda _, l: X[0, l], "init")
    update = te.compute((7, lanes), lambda t, l: state[t - 1, l] + X[t, l], "update")
    S = te.scan(init, update, state, name="S")
    C = te.compute((7, lanes), lambda t, l: S[t, l], "C")
    s = te.create_schedule(C)
    s[S].set_scope(vdla.ACC)
    rows = s.cache_read(X, vdla.ACC, [update])
    for stage in (init, rows, update, C):
        s[stage].tensorize(s[stage].axis[1], ins)
    used = [step.args["intrin"] for step in s.trace if step.primitive == "tensorize"]
    assert used == ["load_acc", "load_acc", "alu_add", "store32"]
    x = RNG.integers(-99, 99, (7, lanes)).astype("int32")
    kernel = vdla.build(s, [X, C], "tiny")
    assert kernel.check() == []
    for device in ("sim", "rtl"):
        c = np.zeros((7, lanes), "int32")
        kernel(x, c, device=device)
        np.testing.assert_array_equal(c, x.cumsum(axis=0))


def test_a_stage_without_an_instruction():
    A, state = (te.placeholder((4, 4), "int32", n) for n in ("A", "state"))
    init = te.compute((1, 4), lambda _, i: A[0, i], "init")
    update = te.compute((4, 4), lambda t, i: state[t - 1, i] + A[t, i], "update")
    S = te.scan(init, update, state, name="S")
    with pytest.raises(CodegenError, match="S: expected a tensorized stage, found plain stores"):
        vdla.build(te.create_schedule(S), [A, S], "tiny")


def test_a_product_whose_reduction_two_accumulators_share():
    """rfactor: each accumulator takes every other step, and alu_add_reduce adds them up."""
    ins = vdla.intrinsics("tiny")
    bo, bi = ins.gemm.operands[3].shape
    A = te.placeholder((6, 6, bi), "int8", "A")  # vectors [k, m, lane]
    B = te.placeholder((6, 2, bo, bi), "int8", "B")  # tiles [k, n, output lane, input lane]
    k, i = te.reduce_axis((0, 6), "k"), te.reduce_axis((0, bi), "i")
    C = te.compute(
        (6, 2, bo),
        lambda m, n, l: te.sum(
            A[k, m, i].astype("int32") * B[k, n, l, i].astype("int32"), axis=[k, i]
        ),
        "C",
    )
    s = te.create_schedule(C)
    acc = s.cache_write(C, vdla.ACC)
    _, turn = s[acc].split(s[acc].reduce_axis[0], factor=2)
    parts = s.rfactor(acc, turn)
    s[parts].set_scope(vdla.ACC)
    a, b = s.cache_read(A, vdla.INP, [parts]), s.cache_read(B, vdla.WGT, [parts])
    (f, m, n, l), (ko, inner) = s[parts].axis, s[parts].reduce_axis
    s[parts].reorder(ko, f, n, m, l, inner)
    s[acc].reorder(*s[acc].reduce_axis, *s[acc].axis)
    loops = {parts: l, acc: s[acc].axis[2], a: s[a].axis[2], b: s[b].axis[2], C: C.axis[2]}
    for stage, loop in loops.items():
        s[stage].tensorize(loop, ins)
    used = {step.stage: step.args["intrin"] for step in s.trace if step.primitive == "tensorize"}
    assert used["C_acc_rf"] == "gemm_zero"
    assert used["C_acc"] == "alu_add_reduce"
    x, w = (RNG.integers(-128, 128, t.shape).astype("int8") for t in (A, B))
    want = np.einsum("kmi,knli->mnl", x, w, dtype=np.int32)
    kernel = vdla.build(s, [A, B, C], "tiny")
    assert kernel.check() == []
    for device in ("sim", "rtl"):
        c = np.zeros((6, 2, bo), np.int32)
        kernel(x, w, c, device=device)
        np.testing.assert_array_equal(c, want)
    c = np.zeros((6, 2, bo), np.int32)
    vdla.build(s, [A, B, C], "cpu")(x, w, c)
    np.testing.assert_array_equal(c, want)


def aligned_and_prefetched():
    A = te.placeholder((40, 33), "int32", "A")
    B = te.compute((40, 33), lambda y, x: A[y, x] * 3, "B")
    C = te.compute((33, 40), lambda x, y: B[y, x] + 1, "C")
    return A, B, C, te.create_schedule(C)


def test_aligned_rows_and_prefetched_ones_on_the_cpu():
    A, B, C, s = aligned_and_prefetched()
    s[B].storage_align(B.axis[0], 32, 5)
    s[B].prefetch(A, B.axis[0], 2)
    s[C].prefetch(B, C.axis[0], 1)
    kernel = vdla.build(s, [A, B, C][::2], "cpu")
    assert kernel.passes["llvm"].count('call void @"llvm.prefetch.p0"') == 2
    assert ", 37\n" in kernel.passes["llvm"]
    a, c = RNG.integers(-99, 99, (40, 33)).astype("int32"), np.zeros((33, 40), "int32")
    kernel(a, c)
    np.testing.assert_array_equal(c, a.T * 3 + 1)


def test_what_the_accelerator_has_no_use_for():
    A, B, C, s = aligned_and_prefetched()
    s[B].storage_align(B.axis[0], 16, 1)
    with pytest.raises(
        CodegenError,
        match=r"^B: expected elements that lie densely, as DMA moves them, found storage_align; it "
        "is for the CPU$",
    ):
        vdla.build(s, [A, C], "tiny")
    s, tensors = reduced(te.sum)
    s["A_acc"].prefetch(tensors[0], s["A_acc"].axis[0])
    with pytest.raises(
        CodegenError,
        match=r"^A: expected no prefetch, which is for the CPU, found one; double_buffer the stage "
        "that loads it on chip$",
    ):
        vdla.build(s, tensors, "tiny")


def stored_bytes(value):
    """int32 in, int8 out: X through ACC, by what ``value`` makes of an element and a scale."""
    ins, X = vdla.intrinsics("tiny"), te.placeholder((6, 4), "int32", "X")
    held = te.compute((6, 4), lambda i, l: X[i, l], "held")
    one = te.compute((4,), lambda l: te.const(te.scale_word(1, 0)), "one")
    Y = te.compute((6, 4), lambda i, l: value(held[i, l], one[l]), "Y")
    s = te.create_schedule(Y)
    for stage in [held, *([one] if one in Y.compute_op.inputs else [])]:
        s[stage].set_scope(vdla.ACC)
        s[stage].tensorize(stage.axis[-1], ins)
    s[Y].tensorize(Y.axis[1], ins)
    return vdla.build(s, [X, Y], "tiny")


@pytest.mark.parametrize(
    "value",
    [
        lambda x, one: x.astype("int8"),
        lambda x, one: te.max(te.min(x, 127), -128).astype("int8"),
    ],
)
def test_storing_bytes_says_how(value):
    with pytest.raises(ScheduleError) as error:
        stored_bytes(value)
    assert str(error.value).startswith("tensorize Y.l: store8 expects out[...] = ")
    assert str(error.value).endswith(
        "; int8 is stored by te.requantize(x, s).astype('int8'), which saturates: for x as it is, "
        "s is te.const(te.scale_word(1, 0)) in every lane of a stage in vdla.ACC"
    )


def test_storing_bytes_as_it_says():
    kernel = stored_bytes(lambda x, one: te.requantize(x, one).astype("int8"))
    x = RNG.integers(-300, 300, (6, 4)).astype("int32")
    y = np.zeros((6, 4), "int8")
    kernel(x, y)
    np.testing.assert_array_equal(y, np.clip(x, -128, 127))
