"""Virtual threads become one interleaved sequence; operands and results share a buffer."""

from __future__ import annotations

import re

import pytest

from vdla.compiler.passes.inplace import unify_inplace
from vdla.compiler.passes.vthread import inject_virtual_threads
from vdla.compiler.schedule import Schedule
from vdla.compiler.tir.printer import show
from vdla.compiler.topi.vdla.elementwise import AddShape, AddTile
from vdla.compiler.topi.vdla.operators import schedule
from vdla.compiler.topi.vdla.pool import PoolShape, PoolTile
from vdla.isa.config import load_config

TINY = load_config("tiny")
ADD = AddShape(12, 9000, -7000, 3, -8, 2, -128, 127)
POOL = PoolShape("max", 1, 1, 4, 4, (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), 0, 0, -128, 127)


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


def test_two_threads_of_a_pool():
    """Neighbouring leaves of one engine stay together; then the other engine takes its turn."""
    calls = interleaved(schedule(POOL, PoolTile(1, 1, 2, 2, "y"), TINY))
    assert [line for line in calls if re.match(r"load_acc8|alu|store", line)] == [
        "load_acc8 wide.0", "load_acc8 wide.1",
        "alu_max_reduce acc.0", "alu_max_reduce acc.1", "store8 out", "store8 out",
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
