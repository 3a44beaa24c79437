"""How often blocks run: out of the text, and as the function really does."""

from __future__ import annotations

import numpy as np
import pytest
from llvm_texts import LOOP

from vdla.compiler import te
from vdla.compiler.schedule import create_schedule
from vdla.compiler.targets.processor.codegen.llvm import compile_optimized
from vdla.compiler.targets.processor.timing.counts import UNKNOWN_STEPS, Counts
from vdla.compiler.targets.processor.timing.instructions import functions_of


def runs(text: str, tasks: int = 1) -> dict[str, float]:
    return Counts(functions_of(text)["f"], tasks).runs


def test_a_loop_and_a_condition_on_its_variable():
    """The variable less one, as unsigned, is below 6 in steps 1 to 6."""
    assert runs(LOOP) == {"entry": 1, "loop": 8, "inside": pytest.approx(6), "next": 8, "end": 1}


def test_a_flag_as_a_loop_s_variable():
    flag = "  %e = phi i1 [ false, %entry ], [ true, %next ]\n"
    text = LOOP.replace("  %k =", f"{flag}  %k =").replace("  %e = icmp eq i64 %j, 8\n", "")
    assert runs(text)["loop"] == 2


def test_a_loop_s_end_in_terms_of_the_loop_around():
    text = """
define void @f(ptr %p, i32 %task) {
entry:
  br label %outer

outer:
  %o = phi i64 [ 0, %entry ], [ %o1, %outer.end ]
  %most = add i64 %o, 1
  br label %inner

inner:
  %i = phi i64 [ 0, %outer ], [ %i1, %inner ]
  store i64 %i, ptr %p
  %i1 = add i64 %i, 1
  %e = icmp eq i64 %i1, %most
  br i1 %e, label %outer.end, label %inner

outer.end:
  %o1 = add i64 %o, 1
  %f = icmp eq i64 %o1, 4
  br i1 %f, label %end, label %outer

end:
  ret void
}
"""
    assert runs(text)["inner"] == 1 + 2 + 3 + 4


def test_a_condition_on_the_task():
    """A task of 0 to 3 runs the block in half of its calls."""
    text = LOOP.replace("%in = icmp ult i64 %k, 6", "%in = icmp slt i32 %task, 2")
    assert runs(text, tasks=4)["inside"] == 4


def test_what_depends_on_data():
    data = LOOP.replace(
        "%in = icmp ult i64 %k, 6", "%d = load i64, ptr %p\n  %in = icmp eq i64 %d, 0"
    )
    assert runs(data)["inside"] == 4
    endless = LOOP.replace("  %e =", "  %d = load i64, ptr %p\n  %e =").replace("%j, 8", "%d, 8")
    assert runs(endless)["loop"] == UNKNOWN_STEPS


def test_cases_of_a_switch():
    text = LOOP.replace(
        "  br i1 %in, label %inside, label %next",
        "  switch i64 %i, label %next [\n    i64 2, label %inside\n    i64 9, label %next\n  ]",
    )
    assert runs(text)["inside"] == pytest.approx(1)


@pytest.mark.parametrize("size", [5, 37, 1000])
def test_as_many_stores_as_a_result_has_elements(size):
    """Of a function whose loop LLVM makes vectors of, with what is left over in other loops."""
    x = te.placeholder((size,), "float32", "x")
    y = te.compute((size,), lambda i: x[i] * 2.0 + 1.0, "y")
    func = create_schedule(y, [x]).mod
    functions = functions_of(compile_optimized([func]))
    function = (
        functions[f"{func.name}.body"] if f"{func.name}.body" in functions else functions[func.name]
    )
    counts, stored = Counts(function), 0.0
    for label, block in function.blocks.items():
        for each in block.instructions:
            if each.operation == "store":
                lanes = each.form.removeprefix("store ").strip("<>").partition(" x ")[0]
                stored += counts.runs[label] * (int(lanes) if lanes.isdigit() else 1)
    assert stored == pytest.approx(size)
    assert np.isfinite(stored)
