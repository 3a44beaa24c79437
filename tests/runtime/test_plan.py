"""Steps of a run plan: what a module's file says of them, and what it may not say."""

from __future__ import annotations

import pytest

from vdla.runtime.errors import ModuleError
from vdla.runtime.plan import (
    Accelerate,
    Host,
    Onnx,
    accelerator_steps,
    from_json,
    host_tensors,
    to_json,
)

PLAN = (
    Host("pack", "host_pack", ("x", "y")),
    Accelerate("program0", ("conv", "pool")),
    Onnx("resize", "resize", ("y", "z")),
)


@pytest.mark.parametrize("step", PLAN, ids=lambda step: step.KIND)
def test_round_trip(step):
    assert from_json(to_json(step)) == step


def test_what_a_file_has():
    assert to_json(PLAN[1]) == {"kind": "vdla", "program": "program0", "layers": ["conv", "pool"]}
    assert to_json(PLAN[0])["kind"] == "host"


def test_the_two_sides():
    assert accelerator_steps(PLAN) == [PLAN[1]]
    assert host_tensors(PLAN) == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"kind": "gpu"},
            "steps: expected one of kind host, vdla, onnxruntime, outside, found 'gpu'",
        ),
        ({"function": 3}, "steps: expected function of a host step, found 3"),
        ({"args": ["x", 1]}, "steps: expected args of a host step, found ['x', 1]"),
        ({"args": "x"}, "steps: expected args of a host step, found 'x'"),
    ],
)
def test_what_it_may_not_say(changed, message):
    with pytest.raises(ModuleError) as caught:
        from_json({**to_json(PLAN[0]), **changed})
    assert str(caught.value) == message
