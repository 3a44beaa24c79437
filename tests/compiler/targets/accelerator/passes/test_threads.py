"""Virtual threads become one interleaved sequence; operands and results share a buffer."""

from __future__ import annotations

import re

import numpy as np
import pytest

from vdla import te
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.operators.add import Add
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d, ConvTile
from vdla.compiler.targets.accelerator.operators.pairwise import VectorTile
from vdla.compiler.targets.accelerator.operators.pool import Pool2d, PoolTile
from vdla.compiler.targets.accelerator.passes.inplace import unify_inplace
from vdla.compiler.targets.accelerator.passes.vthread import inject_virtual_threads
from vdla.compiler.tir.interp import evaluate
from vdla.compiler.tir.ir import Alloc
from vdla.compiler.tir.parser import parse
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.visitor import walk
from vdla.isa.config import load_config

TINY = load_config("tiny")
ADD = Add(12, 9000, -7000, 3, -8, 2, -128, 127)
CONV = Conv2d(
    batch=1, groups=1, inputs=2, outputs=2, height=6, width=6, kernel=(3, 3), strides=(1, 1),
    pads=(1, 1, 1, 1), dilations=(1, 1), in_zero=5, zero=0, low=-128, high=127,
)  # fmt: skip
POOL = Pool2d("max", 1, 1, 4, 4, (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), 0, 0, -128, 127)

OUTSIDE = """
func main(a: int32[1, 4], out: int32[2, 4]):
    alloc x: int32[1, 4] @"vdla.acc":
        load_acc(dst=x[0, 0], src=a[0, 0])
        for i in 2:
            alloc y: int32[1, 4] @"vdla.acc":
                alu_mul_imm(dst=y[0, 0], x=x[0, 0], imm=3)
                store32(out=out[i, 0], acc=y[0, 0])
"""
GIVEN = """
func main(x: int32[1, 4] @"vdla.acc", y: int32[1, 4] @"vdla.acc"):
    alu_mul_imm(dst=y[0, 0], x=x[0, 0], imm=3)
"""


def lines(func):
    """Loops over more than a leaf, allocations and calls, each as its first words."""
    found = re.findall(
        r"^( *)(?:alloc ([\w.]+)|for (\w+) in (\d+):(?=\n +(?:alloc|for))|(\w+)\(\w+=([\w.]+))",
        show(func),
        re.MULTILINE,
    )
    return [" ".join(word for word in words[1:] if word) for words in found]


def interleaved(scheduled: Schedule):
    return lines(inject_virtual_threads(scheduled.lower()))


def test_two_threads_of_an_addition():
    calls = [line for line in interleaved(ADD.schedule(VectorTile(4, 2), TINY)) if " " in line]
    assert calls == [
        "load_acc scale_acc",
        "v_o_o 2",
        "load_acc8 wide_a.0", "load_acc8 wide_b.0",
        "load_acc8 wide_a.1", "load_acc8 wide_b.1",
        "alu_wadd added.0", "alu_wadd added.1",
        "store8 out", "store8 out",
    ]  # fmt: skip


def test_two_threads_of_a_pool():
    """Neighbouring leaves of one engine stay together; then the other engine takes its turn."""
    calls = interleaved(POOL.schedule(PoolTile(1, 1, 2, 2, "y"), TINY))
    assert [line for line in calls if re.match(r"load_acc8|alu|store", line)] == [
        "load_acc8 wide.0", "load_acc8 wide.1",
        "alu_max_reduce acc.0", "alu_max_reduce acc.1", "store8 out", "store8 out",
    ]  # fmt: skip


def test_an_operand_that_outlives_its_result_stays():
    """Every step of the loop reads it anew."""
    func = parse(OUTSIDE, intrinsics(TINY))
    assert unify_inplace(func).body is func.body
    x = np.arange(4, dtype=np.int32).reshape(1, 4)
    (found,) = evaluate(func, x)
    np.testing.assert_array_equal(found, np.repeat(x * 3, 2, axis=0))


def test_parameters_are_no_places_for_results():
    func = parse(GIVEN, intrinsics(TINY))
    assert unify_inplace(func).body is func.body


@pytest.mark.parametrize("threads", [2, 3])
def test_every_thread_has_its_own_buffers(threads):
    calls = interleaved(ADD.schedule(VectorTile(4, threads), TINY))
    copies = [line for line in calls if line.startswith("added")]
    assert copies == [f"added.{t}" for t in range(threads)]


def test_results_take_the_place_of_operands():
    threaded = inject_virtual_threads(ADD.schedule(VectorTile(4, 2), TINY).lower())
    assert {"added.0", "added.1"} < set(lines(threaded))
    after = lines(unify_inplace(threaded))
    assert not [line for line in after if "added" in line]
    assert [line for line in after if "wadd" in line] == ["alu_wadd wide_a.0", "alu_wadd wide_a.1"]


def test_threads_take_turns_within_a_reduction():
    """A loop around leaves of two engines is one loop still: in each step, every thread's leaf."""
    a = te.placeholder((2, 3, 4), "int32", "a")
    k = te.reduce_axis((0, 3), "k")
    c = te.compute((2, 4), lambda t, l: te.sum(a[t, k, l], axis=k), "c")
    s = te.create_schedule(c)
    made = s.cache_write(c, "vdla.acc")
    copy = s.cache_read(a, "vdla.acc", [made])
    s[made].compute_at(s[c], c.axis[0])
    s[made].reorder(*s[made].reduce_axis, s[made].axis[1])
    s[copy].compute_at(s[made], s[made].reduce_axis[0])
    s[c].bind(c.axis[0], te.thread_axis("vthread"))
    for stage in (c, made, copy):
        s[stage].tensorize(s[stage].axis[-1], intrinsics(TINY))
    func = inject_virtual_threads(s.lower())
    turns = [line for line in lines(func) if " " in line]
    assert turns == [
        "k 3", "load_acc a_acc.0", "load_acc a_acc.1",
        "alu_add_reduce c_acc.0", "alu_add_reduce c_acc.1", "store32 c", "store32 c",
    ]  # fmt: skip
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    np.testing.assert_array_equal(evaluate(func, x)[0], x.sum(axis=1))


@pytest.mark.parametrize("threads", [2, 3])
def test_a_convolution_deals_its_tiles_to_threads(threads):
    """The loop IR has the turns; the pass gives each thread accumulators, and shares operands."""
    scheduled = CONV.schedule(ConvTile(1, 2, 3, 1, 1, threads, stages=5), TINY)
    bound = [step for step in scheduled.trace if step.primitive == "bind"]
    assert [(step.args["thread"], step.args["threads"]) for step in bound] == [("vthread", threads)]
    loops = scheduled.lower()
    assert f'vthread("vthread") @threads={threads}' in show(loops)
    after = inject_virtual_threads(loops)
    copies = {s.buffer.name: s.buffer.copies for s in walk(after.body) if isinstance(s, Alloc)}
    assert "vthread" not in show(after)
    assert copies["acc"] == threads
    assert copies["padded_inp"] == copies["weight_wgt"] == 5


def test_dealt_steps_and_interleaved_steps_give_the_same():
    """Two grains of the same threads: another order, the same numbers."""
    texts = []
    for thread in (te.thread_axis("vthread"), te.thread_axis("vthread", threads=2)):
        a = te.placeholder((2, 4, 4), "int32", "a")
        c = te.compute((2, 4, 4), lambda t, i, l: a[t, i, l] + 1, "c")
        s = te.create_schedule(c)
        made = s.cache_write(c, "vdla.acc")
        copy = s.cache_read(a, "vdla.acc", [made])
        for stage in (made, copy):
            s[stage].compute_at(s[c], s[c].axis[0])
        s[c].bind(s[c].axis[0], thread)
        for stage in (c, made, copy):
            s[stage].tensorize(s[stage].axis[2], intrinsics(TINY))
        func = s.lower()
        x = np.arange(32, dtype=np.int32).reshape(2, 4, 4)
        for each in (func, inject_virtual_threads(func)):
            np.testing.assert_array_equal(evaluate(each, x)[0], x + 1)
        texts.append(show(inject_virtual_threads(func)))
    assert "c_acc.0" in texts[0]
    assert "c_acc.0" not in texts[1]
