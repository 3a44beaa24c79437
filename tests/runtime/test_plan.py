"""Steps of a run plan: what a module's file says of them, and what it may not say."""

from __future__ import annotations

import pytest

from vdla.runtime.errors import ModuleError
from vdla.runtime.plan import (
    Accelerate,
    Gpu,
    Host,
    Onnx,
    Outside,
    accelerator_steps,
    from_json,
    host_tensors,
    program_titles,
    reads,
    to_json,
    writes,
)

PLAN = (
    Host("pack", "host_pack", ("x", "y")),
    Accelerate("program0", ("conv", "pool"), ("y",), ("t",)),
    Gpu("twice", "gpu_twice", ("t", "y")),
    Onnx("resize", "resize", ("y", "z")),
    Outside("dot", "dot8", "code0", ("y", "z")),
)


@pytest.mark.parametrize("step", PLAN, ids=lambda step: step.KIND)
def test_round_trip(step):
    assert from_json(to_json(step)) == step


def test_what_a_file_has():
    assert to_json(PLAN[1]) == {
        "kind": "vdla", "program": "program0", "layers": ["conv", "pool"], "reads": ["y"],
        "writes": ["t"],
    }  # fmt: skip
    assert to_json(PLAN[0])["kind"] == "host"


def test_the_two_sides():
    assert accelerator_steps(PLAN) == [PLAN[1]]
    assert host_tensors(PLAN) == ["x", "y", "t", "z"]


def test_what_steps_read_and_write():
    assert [(reads(step), writes(step)) for step in PLAN] == [
        (("x",), ("y",)), (("y",), ("t",)), (("t",), ("y",)), (("y",), ("z",)), (("y",), ("z",)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"kind": "npu"},
            "steps: expected one of kind host, vdla, gpu, onnxruntime, outputs, outside, copy, "
            "clear, jump, next, call, return, found 'npu'",
        ),
        ({"function": 3}, "steps: expected function of a host step, text, found 3"),
        (
            {"args": ["x", 1]},
            "steps: expected args of a host step, a list of names, found ['x', 1]",
        ),
        ({"args": "x"}, "steps: expected args of a host step, a list of names, found 'x'"),
    ],
)
def test_what_it_may_not_say(changed, message):
    with pytest.raises(ModuleError) as caught:
        from_json({**to_json(PLAN[0]), **changed})
    assert str(caught.value) == message


def test_programs_are_titled_by_their_layers():
    one = Accelerate("program0", ("conv1", "pool1", "fc"))
    assert program_titles([one]) == {"program0": "conv1 to fc"}
    assert program_titles([Accelerate("program0", ())]) == {"program0": "program0"}
    several = [one, Accelerate("program1", ("x" * 99,)), Accelerate("program2", ())]
    assert program_titles(several) == {
        "program0": "program 1 of 3: conv1 to fc",
        "program1": f"program 2 of 3: {'x' * 20}…{'x' * 19}",
        "program2": "program 3 of 3",
    }
