"""Cycles of blocks: issue, units, latencies, calls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from llvm_texts import LOOP

from vdla.compiler.targets.processor.timing.cycles import Cycles
from vdla.compiler.targets.processor.timing.instructions import functions_of
from vdla.compiler.targets.processor.timing.machine import Machine, Price, machine_of

FMA = "llvm.fma.v4f32 (<4 x float>, <4 x float>, <4 x float>) <4 x float>"
PRICES = {
    "add i64": Price(1, 1, {"alu": 0.25}),
    "icmp i64": Price(1, 1, {"alu": 0.25}),
    "load <4 x float>": Price(1, 5, {"load": 0.5}),
    "store <4 x float>": Price(1, 1, {"store": 1.0}),
    FMA: Price(1, 4, {"fp": 0.5}),
}


@pytest.fixture
def machine() -> Machine:
    whole = machine_of("znver4")
    return replace(whole, name="test", issue=4, call_cycles=10, calls={"free": 60}, prices=PRICES)


def cycles(text: str, machine: Machine, name: str = "f") -> float:
    return Cycles(functions_of(text), machine).of(name).cycles


def test_the_busiest_unit_of_a_loop(machine):
    """8 steps with 4 scalar operations each, and 6 stores at a cycle each."""
    assert cycles(LOOP, machine) == pytest.approx(max(8 * 4 + 6 * 3, 4 * 6) / 4)
    slow = {**PRICES, FMA: Price(1, 4, {"fp": 3.0})}
    assert cycles(LOOP, replace(machine, prices=slow)) == pytest.approx(18)


def test_in_order_a_step_takes_its_longest_chain(machine):
    """Addition, comparison, load, product, store: nothing of the next step begins before."""
    assert cycles(LOOP, replace(machine, in_order=True)) == pytest.approx(8 * (5 + 4))


def test_what_a_step_needs_of_the_one_before(machine):
    text = """
define void @f(ptr %p) {
entry:
  br label %loop

loop:
  %s = phi <4 x float> [ zeroinitializer, %entry ], [ %t, %loop ]
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %a = load <4 x float>, ptr %p
  %t = call <4 x float> @llvm.fma.v4f32(<4 x float> %a, <4 x float> %a, <4 x float> %s)
  %j = add i64 %i, 1
  %e = icmp eq i64 %j, 100
  br i1 %e, label %end, label %loop

end:
  store <4 x float> %t, ptr %p
  ret void
}
"""
    assert cycles(text, machine) == pytest.approx(100 * 4 + 1)


def test_calls_of_tasks_and_of_libraries(machine):
    """A loop that threads would share is its steps one after another."""
    text = (
        LOOP.replace("@f(", "@f.task(").replace(
            "%in = icmp ult i64 %k, 6", "%in = icmp slt i32 %task, 2"
        )
        + """
define void @f(ptr %p) {
  tail call void @vdla_parallel(ptr %q, ptr nonnull @f.task, ptr %p, i32 4)
  tail call void @free(ptr %p)
  tail call void @other(ptr %p)
  tail call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 640, i1 false)
  ret void
}
"""
    )
    whole = cycles(text, machine)
    task = Cycles(functions_of(text), machine).of("f.task", 4).cycles
    assert whole == pytest.approx(10 + 4 * task + 60 + 10 + (10 + 640 / 64))


def test_bytes_that_are_loaded_and_stored(machine):
    assert Cycles(functions_of(LOOP), machine).of("f").bytes == pytest.approx(6 * 2 * 16)
