"""Virtual threads become one interleaved sequence; operands and results share a buffer."""

from __future__ import annotations

import re

import pytest

from vdla.compiler.passes.inplace import unify_inplace
from vdla.compiler.passes.vthread import inject_virtual_threads
from vdla.compiler.schedule import Schedule
from vdla.compiler.tir.printer import show
from vdla.compiler.topi.vdla.conv2d import ConvShape, ConvTile
from vdla.compiler.topi.vdla.elementwise import AddShape, AddTile
from vdla.compiler.topi.vdla.operators import schedule
from vdla.isa.config import load_config

TINY = load_config("tiny")
ADD = AddShape(12, 9000, -7000, 3, -8, 2, -128, 127)
CONV = ConvShape(
    batch=1, groups=1, inputs=2, outputs=1, height=4, width=4, kernel=(1, 1), strides=(1, 1),
    pads=(0, 0, 0, 0), dilations=(1, 1), in_zero=0, zero=0, low=-128, high=127,
)  # fmt: skip


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
    calls = [line for line in interleaved(schedule(ADD, AddTile(4, 2), TINY)) if " " in line]
    assert calls == [
        "load_acc scale_acc",
        "v_o_o 2",
        "load_acc8 wide_a.0", "load_acc8 wide_b.0",
        "load_acc8 wide_a.1", "load_acc8 wide_b.1",
        "alu_wadd added.0", "alu_wadd added.1",
        "store8 out", "store8 out",
    ]  # fmt: skip


def test_two_threads_of_a_convolution():
    """A thread's weights arrive with its activations; then both compute."""
    calls = interleaved(schedule(CONV, ConvTile(1, 2, 4, 1, 1, 2, "y"), TINY))
    assert [line for line in calls if re.match(r"load_(inp|wgt)|gemm|store", line)] == [
        "load_inp padded_inp.0", "load_inp padded_inp.1",
        "load_wgt weight_wgt.0", "load_wgt weight_wgt.1",
        "gemm acc.0", "gemm acc.1", "store8 out", "store8 out",
    ]  # fmt: skip


@pytest.mark.parametrize("threads", [2, 3])
def test_every_thread_has_its_own_buffers(threads):
    calls = interleaved(schedule(ADD, AddTile(4, threads), TINY))
    copies = [line for line in calls if line.startswith("added")]
    assert copies == [f"added.{t}" for t in range(threads)]


def test_results_take_the_place_of_operands():
    threaded = inject_virtual_threads(schedule(ADD, AddTile(4, 2), TINY).lower())
    assert {"added.0", "added.1"} < set(lines(threaded))
    after = lines(unify_inplace(threaded))
    assert not [line for line in after if "added" in line]
    assert [line for line in after if "wadd" in line] == ["alu_wadd wide_a.0", "alu_wadd wide_a.1"]
