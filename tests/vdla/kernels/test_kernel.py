"""The front door: schedules become kernels on numpy arrays, or a refusal says why not."""

from __future__ import annotations

import re

import numpy as np
import pytest

import vdla
from vdla import te
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.targets.accelerator.codegen.allocate import AllocationError
from vdla.compiler.targets.accelerator.codegen.leaf import CodegenError
from vdla.compiler.targets.accelerator.operators.pool import Pool2d, PoolTile
from vdla.compiler.te import TEError
from vdla.compiler.tir.printer import show
from vdla.isa.config import load_config
from vdla.kernels.build import BuildError
from vdla.runtime.errors import DeviceError, InputError

ROWS = 6
WIDE = (-(1 << 31), (1 << 31) - 1)


def elementwise(compute, *ranges, config="tiny"):
    """(schedule, tensors): an expression of int32 vectors, every stage an instruction."""
    ins = vdla.intrinsics(config)
    lanes = ins.alu_add.output.shape[0]
    shape = (ROWS, lanes)
    inputs = [
        te.placeholder(shape, "int32", name, None if ends == WIDE else ends)
        for name, ends in zip("AB", ranges, strict=False)
    ]
    out = te.compute(shape, lambda i, l: compute(*(t[i, l] for t in inputs)), "C")
    s = te.create_schedule(out, inputs)
    made = s.cache_write(out, vdla.ACC)
    for tensor in inputs:
        copy = s.cache_read(tensor, vdla.ACC, [made])
        s[copy].tensorize(s[copy].axis[1], ins)
    s[made].tensorize(s[made].axis[1], ins)
    s[out].tensorize(s[out].axis[1], ins)
    return s, [*inputs, out]


def chosen(s):
    """The intrinsic that the computing stage was made of."""
    return next(step.args["intrin"] for step in s.trace if step.stage == "C_acc"
                and step.primitive == "tensorize")  # fmt: skip


def values(ends, seed):
    rng = np.random.default_rng(seed)
    some = rng.integers(ends[0], ends[1], (ROWS, 4), endpoint=True)
    some[0] = ends[0], ends[1], max(ends[0], min(7, ends[1])), ends[1]
    return some.astype(np.int32)


SHORT, SHIFT, FACTOR = (-(1 << 17), (1 << 17) - 1), (0, 31), (-(1 << 24), (1 << 24) - 1)
FORMS = {
    "x + y": (lambda x, y: x + y, (WIDE, WIDE), "alu_add"),
    "x - y": (lambda x, y: x - y, (WIDE, WIDE), "alu_sub"),
    "x - y, short": (lambda x, y: x - y, (SHORT, SHORT), "alu_wsub"),
    "x * y": (lambda x, y: x * y, (WIDE, FACTOR), "alu_mul"),
    "y * x": (lambda x, y: y * x, (WIDE, FACTOR), "alu_mul"),
    "max(x, y)": (te.max, (WIDE, WIDE), "alu_max"),
    "min(x, y)": (te.min, (WIDE, WIDE), "alu_min"),
    "x >> y": (lambda x, y: x >> y, (WIDE, SHIFT), "alu_shr"),
    "x + 5": (lambda x: x + 5, (WIDE,), "alu_add_imm"),
    "x - 5": (lambda x: x - 5, (WIDE,), "alu_add_imm"),
    "5 - x": (lambda x: 5 - x, (WIDE,), "alu_rsub_imm"),
    "-x": (lambda x: -x, (WIDE,), "alu_neg"),
    "x * 3": (lambda x: x * 3, (WIDE,), "alu_mul_imm"),
    "relu": (lambda x: te.max(x, 0), (WIDE,), "alu_max_imm"),
    "min(x, 6)": (lambda x: te.min(x, 6), (WIDE,), "alu_min_imm"),
    "x >> 8": (lambda x: x >> 8, (WIDE,), "alu_shr_imm"),
    "x << 3": (lambda x: x << 3, (WIDE,), "alu_shl_imm"),
    "3x + 5y": (lambda x, y: x * 3 + y * 5, (SHORT, SHORT), "alu_wadd"),
    "x + x": (lambda x: x + x, (WIDE,), "alu_add"),
    "x": (lambda x: x, (WIDE,), "alu_copy"),
    "7": (lambda: te.const(7), (), "alu_fill"),
}


@pytest.mark.parametrize("form", FORMS)
def test_elementwise_forms_take_the_cheapest_instruction_that_is_right(form):
    compute, ranges, intrin = FORMS[form]
    s, tensors = elementwise(compute, *ranges)
    assert chosen(s) == intrin
    inputs = [values(ends, seed) for seed, ends in enumerate(ranges)]
    got = {}
    for target in ("tiny", "cpu"):
        out = np.zeros((ROWS, 4), np.int32)
        kernel = vdla.build(s, tensors, target)
        kernel(*inputs, out)
        assert kernel.check() == []
        got[target] = out
    np.testing.assert_array_equal(got["tiny"], got["cpu"])
    plain = te.create_schedule(tensors[-1], tensors[:-1])
    want = np.zeros((ROWS, 4), np.int32)
    vdla.build(plain, tensors, "cpu")(*inputs, want)
    np.testing.assert_array_equal(got["tiny"], want)


@pytest.mark.parametrize(("target", "device"), [("tiny", "sim"), ("tiny", "rtl"), ("cpu", "cpu")])
def test_a_sum_of_any_int32_is_right_everywhere(target, device):
    """1,000,000 + 7 was -48,569 on the accelerator: WADD takes 18 bits of each."""
    s, tensors = elementwise(lambda x, y: x + y, WIDE, WIDE)
    a, b = np.full((ROWS, 4), 1_000_000, np.int32), np.full((ROWS, 4), 7, np.int32)
    c = np.zeros((ROWS, 4), np.int32)
    vdla.build(s, tensors, target)(a, b, c, device=device)
    assert (c == 1_000_007).all()


def test_an_operand_that_others_need_is_copied_first():
    """Both stages read A in ACC: what works in place must not overwrite it."""
    ins = vdla.intrinsics("tiny")
    A = te.placeholder((ROWS, 4), "int32", "A")
    B = te.compute((ROWS, 4), lambda i, l: A[i, l] * 3, "B")
    C = te.compute((ROWS, 4), lambda i, l: A[i, l] + B[i, l], "C")
    s = te.create_schedule(C)
    s[B].set_scope(vdla.ACC)
    made = s.cache_write(C, vdla.ACC)
    copy = s.cache_read(A, vdla.ACC, [B, made])
    for stage in (copy, B, made, C):
        s[stage].tensorize(s[stage].axis[1], ins)
    a, c = np.arange(ROWS * 4, dtype=np.int32).reshape(ROWS, 4), np.zeros((ROWS, 4), np.int32)
    vdla.build(s, [A, C], "tiny")(a, c)
    np.testing.assert_array_equal(c, 4 * a)


def test_an_operand_that_is_read_elsewhere_too_is_copied_first():
    """c[0] must not overwrite the a[0] that c[1] still reads."""
    ins = vdla.intrinsics("tiny")
    A = te.placeholder((2, 4), "int32", "A")
    C = te.compute((2, 4), lambda i, l: A[i, l] + A[1 - i, l], "C")
    s = te.create_schedule(C)
    made = s.cache_write(C, vdla.ACC)
    copy = s.cache_read(A, vdla.ACC, [made])
    for stage in (copy, made, C):
        s[stage].tensorize(s[stage].axis[1], ins)
    a, c = np.arange(8, dtype=np.int32).reshape(2, 4), np.zeros((2, 4), np.int32)
    kernel = vdla.build(s, [A, C], "tiny")
    kernel(a, c)
    np.testing.assert_array_equal(c, a + a[::-1])
    assert kernel.check() == []


def test_a_bias_that_changes_within_the_micro_ops():
    """Each output block has its own bias, and the reduction's loops lie outside of the blocks."""
    ins = vdla.intrinsics("tiny")
    A, B = te.placeholder((3, 2, 4), "int8", "A"), te.placeholder((2, 2, 4, 4), "int8", "B")
    D = te.placeholder((2, 4), "int32", "D")
    k, i = te.reduce_axis((0, 2), "k"), te.reduce_axis((0, 4), "i")
    C = te.compute((3, 2, 4), lambda m, n, l: te.sum(
        A[m, k, i].astype("int32") * B[n, k, l, i].astype("int32"), axis=[k, i], init=D[n, l]),
        "C")  # fmt: skip
    s = te.create_schedule(C, [A, B, D])
    acc = s.cache_write(C, vdla.ACC)
    copies = [s.cache_read(t, m, [acc])
              for t, m in ((A, vdla.INP), (B, vdla.WGT), (D, vdla.ACC))]  # fmt: skip
    m, n, l = s[acc].axis
    k, i = s[acc].reduce_axis
    s[acc].reorder(m, k, n, l, i)
    s[acc].tensorize(l, ins.gemm)
    for stage, axis in zip((C, *copies), (2, 2, 2, 1), strict=True):
        s[stage].tensorize(s[stage].axis[axis], ins)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, t.shape, np.int8) for t in (A, B))
    d, c = np.array([[1000] * 4, [-5000] * 4], np.int32), np.zeros((3, 2, 4), np.int32)
    vdla.build(s, [A, B, D, C], "tiny")(a, b, d, c)
    want = np.einsum("mki,nkli->mnl", a, b, dtype=np.int32) + d
    np.testing.assert_array_equal(c, want)


def test_what_a_call_returns(tmp_path):
    s, tensors = elementwise(lambda x, y: x + y, WIDE, WIDE)
    kernel = vdla.build(s, tensors, "tiny")
    arrays = [np.ones((ROWS, 4), np.int32) for _ in tensors]
    sim, rtl = kernel(*arrays), kernel(*arrays, device="rtl")
    assert sim.cycles == rtl.cycles
    assert sim.causes == rtl.causes
    assert all(sum(causes.values()) == sim.cycles for causes in sim.causes.values())
    sim.trace(tmp_path / "sim.json")
    rtl.trace(tmp_path / "rtl.json")
    assert (tmp_path / "sim.json").read_text() == (tmp_path / "rtl.json").read_text()
    assert list(kernel.passes) == [
        "expression", "schedule", "loops", "virtual_threads", "in_place", "allocate",
        "instructions", "stream",
    ]  # fmt: skip
    assert "alu_add(dst=" in kernel.passes["in_place"]


def test_arguments_may_come_in_any_order():
    s, (a, b, c) = elementwise(lambda x, y: x - y, WIDE, WIDE)
    x, y, out = (np.full((ROWS, 4), n, np.int32) for n in (5, 3, 0))
    vdla.build(s, [c, b, a], "tiny")(out, y, x)
    assert (out == 2).all()


# What is refused -------------------------------------------------------------------------------


def refuses(error, text, action):
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        action()


def test_a_range_that_is_not_known_to_hold():
    ends = "-16777216..16777215"
    refuses(
        ScheduleError,
        "tensorize C_acc.l: expected what one of 35 intrinsics does; the closest, alu_mul expects "
        f"y in {ends}, found B_acc in -2147483648..2147483647; clamp it, as "
        "te.max(te.min(B_acc[...], 16777215), -16777216), or promise it, as "
        "te.placeholder(..., value_range=(-16777216, 16777215))",
        lambda: elementwise(lambda x, y: x * y, WIDE, WIDE),
    )


def test_a_constant_that_the_field_does_not_hold():
    with pytest.raises(ScheduleError, match=r"expects the constant imm in -16777216\.\.16777215"):
        elementwise(lambda x: x * (1 << 24), WIDE)


def test_a_clamp_is_a_proof():
    s, _ = elementwise(lambda x, y: x * y, WIDE, (0, 255))
    assert chosen(s) == "alu_mul"


def test_an_expression_that_nothing_computes():
    with pytest.raises(
        ScheduleError, match=r"found A_acc\[i, l\] \^ B_acc\[i, l\]: none has the operation bitxor"
    ):
        elementwise(lambda x, y: x ^ y, WIDE, WIDE)


def test_a_stage_that_was_not_tensorized():
    A = te.placeholder((4, 4), "int32", "A")
    C = te.compute((4, 4), lambda i, l: A[i, l] + 1, "C")
    refuses(
        CodegenError,
        "C: expected a tensorized stage, found plain stores; make an instruction of its inner "
        'loop with s["C"].tensorize(axis, vdla.intrinsics(config))',
        lambda: vdla.build(te.create_schedule(C), [A, C], "tiny"),
    )


def test_a_buffer_that_does_not_fit():
    ins = vdla.intrinsics("tiny")
    A = te.placeholder((1000, 4), "int32", "A")
    C = te.compute((1000, 4), lambda i, l: A[i, l] + 1, "C")
    s = te.create_schedule(C)
    made = s.cache_write(C, vdla.ACC)
    copy = s.cache_read(A, vdla.ACC, [made])
    for stage in (copy, made, C):
        s[stage].tensorize(s[stage].axis[1], ins)
    refuses(
        AllocationError,
        "main: expected acc buffers within 128 entries (config tiny), found 1000 with A_acc; "
        "split its loops and compute_at a smaller tile",
        lambda: vdla.build(s, [A, C], "tiny"),
    )


def test_a_loop_bound_twice():
    A = te.placeholder((4, 4), "int32", "A")
    C = te.compute((4, 4), lambda i, l: A[i, l] + 1, "C")
    s = te.create_schedule(C)
    s[C].bind(s[C].axis[0], te.thread_axis("vthread"))
    refuses(
        ScheduleError,
        "bind C.i: expected a loop that isn't bound yet, found it bound to vthread; split it to "
        "bind a part",
        lambda: s[C].bind(s[C].axis[0], te.thread_axis("vthread", threads=2)),
    )


def test_threads_that_are_none():
    refuses(
        TEError,
        "thread_axis: expected threads >= 1 and the tag vthread, found 0 and vthread",
        lambda: te.thread_axis("vthread", threads=0),
    )


def test_arguments_that_are_not_the_schedules():
    s, (a, b, c) = elementwise(lambda x, y: x + y, WIDE, WIDE)
    refuses(BuildError, "build: expected each of the arguments A, B, C once, found A, C",
            lambda: vdla.build(s, [a, c], "tiny"))  # fmt: skip
    other = te.placeholder((2,), "int8", "other")
    refuses(BuildError, "build: expected the arguments A, B, C, found other",
            lambda: vdla.build(s, [a, b, other], "tiny"))  # fmt: skip
    refuses(BuildError, "build: expected the arguments A, B, C, found 3",
            lambda: vdla.build(s, [a, b, 3], "tiny"))  # fmt: skip


@pytest.mark.parametrize("target", ["tiny", "cpu"])
def test_arrays_that_are_not_the_parameters(target):
    s, tensors = elementwise(lambda x, y: x >> y, WIDE, SHIFT)
    kernel = vdla.build(s, tensors, target)
    good = np.zeros((ROWS, 4), np.int32)
    locked = good.copy()
    locked.flags.writeable = False
    refuses(InputError, "main: expected 3 arrays (A, B, C), found 2", lambda: kernel(good, good))
    refuses(InputError, "main: B: expected int32[6, 4], found int64[6, 4]",
            lambda: kernel(good, good.astype(np.int64), good))  # fmt: skip
    refuses(InputError, "main: A: expected int32[6, 4], found int32[4, 6]",
            lambda: kernel(good.T, good, good))  # fmt: skip
    refuses(InputError, "main: C: expected a numpy array int32[6, 4], found list",
            lambda: kernel(good, good, []))  # fmt: skip
    refuses(InputError, "main: C: expected an array to write to, found a read-only one",
            lambda: kernel(good, good, locked))  # fmt: skip
    refuses(InputError, "main: B: expected values in 0..31, as its placeholder promises, "
            "found 40..40", lambda: kernel(good, good + 40, good))  # fmt: skip


def test_devices_that_are_not_there():
    s, tensors = elementwise(lambda x, y: x + y, WIDE, WIDE)
    arrays = [np.zeros((ROWS, 4), np.int32) for _ in tensors]
    kernel, native = vdla.build(s, tensors, "tiny"), vdla.build(s, tensors, "cpu")
    refuses(DeviceError, "device: expected one of sim, rtl, board, found 'gpu'",
            lambda: kernel(*arrays, device="gpu"))  # fmt: skip
    refuses(DeviceError, 'device "board": expected board="NAME", found none',
            lambda: kernel(*arrays, device="board"))  # fmt: skip
    refuses(DeviceError, "device: expected \"board\" with board, virtual or port, found 'sim'",
            lambda: kernel(*arrays, board="ulx3s"))  # fmt: skip
    refuses(DeviceError, "main: expected device \"cpu\", for which it was built, found 'rtl'",
            lambda: native(*arrays, device="rtl"))  # fmt: skip
    refuses(DeviceError, "trace: expected a run on sim or rtl, found one without a record",
            lambda: native(*arrays).trace("never.json"))  # fmt: skip


def test_a_value_range_that_the_dtype_does_not_hold():
    with pytest.raises(
        Exception,
        match=r"^buffer A: expected a value_range \(low, high\) within "
        r"int8, found \(0, 300\)$",
    ):
        te.placeholder((4,), "int8", "A", value_range=(0, 300))


# --- programs from their text -----------------------------------------------------------------


def plus_imm(config="tiny", imm=3):
    return elementwise(lambda x: x + imm, SHORT, config=config)


@pytest.mark.parametrize("stage", ["loops", "virtual_threads", "in_place"])
def test_a_text_that_nobody_edited_is_the_same_kernel(stage):
    kernel = vdla.build(*plus_imm(), "tiny")
    again = vdla.build(vdla.parse(kernel.passes[stage], "tiny"), target="tiny")
    assert again.passes["stream"] == kernel.passes["stream"]
    assert "schedule" in kernel.passes
    assert "schedule" not in again.passes


def test_texts_of_threads_and_blocks_are_the_same_kernel():
    tiny = load_config("tiny")
    shape = Pool2d("max", 1, 1, 4, 4, (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), 0, 0, -128, 127)
    s = shape.schedule(PoolTile(1, 1, 2, 2, "y"), tiny)
    kernel = vdla.build(s, target=tiny)
    texts = [kernel.passes[p] for p in ("loops", "virtual_threads", "in_place")]
    for text in (show(s.mod), *texts):
        again = vdla.build(vdla.parse(text, tiny), target=tiny)
        assert again.passes["stream"] == kernel.passes["stream"]


def test_an_edited_constant_is_computed_with():
    kernel = vdla.build(*plus_imm(imm=3), "tiny")
    text = kernel.passes["loops"]
    assert text.count("imm=3") == 1
    edited = vdla.build(vdla.parse(text.replace("imm=3", "imm=-40"), "tiny"), target="tiny")
    a = values(SHORT, 1) // 4
    out = np.zeros_like(a)
    for device in ("sim", "rtl"):
        edited(a, out, device=device)
        np.testing.assert_array_equal(out, a - 40)


def test_edited_loops_are_walked_in_their_order():
    """Every tile's rows and columns change places: another order, the same result."""
    lanes = 4
    A = te.placeholder((3, 5, lanes), "int32", "A")
    C = te.compute((3, 5, lanes), lambda y, x, l: A[y, x, l] + 1, "C")
    ins = vdla.intrinsics("tiny")
    s = te.create_schedule(C, [A])
    made = s.cache_write(C, vdla.ACC)
    copy = s.cache_read(A, vdla.ACC, [made])
    s[made].compute_at(s[C], s[C].axis[1])
    s[copy].compute_at(s[C], s[C].axis[1])
    for tensor in (made, copy, C):
        s[tensor].tensorize(s[tensor].axis[2], ins)
    kernel = vdla.build(s, [A, C], "tiny")
    outer, inner = "    for y in 3:\n", "        for x in 5:\n"
    text = kernel.passes["loops"]
    assert text.count(outer + inner) == 1
    swapped = text.replace(outer + inner, "    for x in 5:\n        for y in 3:\n")
    edited = vdla.build(vdla.parse(swapped, "tiny"), ["C", "A"], "tiny")
    assert edited.passes["stream"] != kernel.passes["stream"]
    a = np.arange(60, dtype=np.int32).reshape(3, 5, lanes)
    out = np.zeros_like(a)
    edited(out, a)
    np.testing.assert_array_equal(out, a + 1)


def test_an_edited_text_on_the_cpu():
    kernel = vdla.build(*plus_imm(imm=3), "cpu")
    text = kernel.passes["loops"]
    assert text.count(" + 3\n") == 1
    edited = vdla.build(vdla.parse(text.replace(" + 3\n", " + 5\n"), "cpu"), target="cpu")
    a = values(SHORT, 1) // 4
    out = np.zeros_like(a)
    edited(a, out)
    np.testing.assert_array_equal(out, a + 5)
    native = vdla.build(vdla.parse(vdla.build(*plus_imm(), "tiny").passes["in_place"], "tiny"),
                        target="cpu")  # fmt: skip
    native(a, out)
    np.testing.assert_array_equal(out, a + 3)


def test_texts_and_programs_that_are_refused():
    text = vdla.build(*plus_imm(), "tiny").passes["loops"]
    no_target = r"line 5, column 9: expected an intrinsic \(none: no target was given\), found "
    with pytest.raises(vdla.ParseError, match=no_target):
        vdla.parse(text, "cpu")
    shift = vdla.build(elementwise(lambda x: x >> 3, WIDE)[0], target="tiny").passes["loops"]
    assert shift.count("imm=3") == 1
    refuses(vdla.ParseError, """\
line 7, column 9: main / for i: alu_shr_imm: imm: expected 0 to 31, found 40
            alu_shr_imm(dst=C_acc[i, 0], x=A_acc[i, 0], imm=40)
            ^""", lambda: vdla.parse(shift.replace("imm=3", "imm=40"), "tiny"))  # fmt: skip
    func = vdla.parse(text, "tiny")
    refuses(BuildError, "build: expected each of the arguments A, C once, found C",
            lambda: vdla.build(func, ["C"], "tiny"))  # fmt: skip
    refuses(BuildError, "build: expected the arguments A, C, found 'D'",
            lambda: vdla.build(func, ["A", "D"], "tiny"))  # fmt: skip
    other = te.placeholder((2,), "int8", "A")
    refuses(BuildError, "build: expected the arguments A, C, found A",
            lambda: vdla.build(func, [other, "C"], "tiny"))  # fmt: skip
    refuses(BuildError, "build: expected a schedule or a function from vdla.parse, found str",
            lambda: vdla.build(text, target="tiny"))  # fmt: skip
