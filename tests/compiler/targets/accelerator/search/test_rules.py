"""Schedules that rules derive of an expression alone: right, within the memories, of many kinds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import vdla
from vdla.compiler import te
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.targets.accelerator.description import ACC, INP, WGT
from vdla.compiler.targets.accelerator.operators.add import Add
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d
from vdla.compiler.targets.accelerator.operators.matmul import MatMul
from vdla.compiler.targets.accelerator.search.kernel import AcceleratorFunction
from vdla.compiler.targets.accelerator.search.knob_task import CycleKnobTask
from vdla.compiler.targets.accelerator.search.roles import roles_of
from vdla.isa.config import load_config

TINY = load_config("tiny")  # 4 × 4
CLIP = {"zero": 1, "low": -128, "high": 127}
CONV = {
    "batch": 1, "inputs": 2, "height": 5, "width": 6, "kernel": (3, 3), "pads": (1, 1, 1, 1),
    "strides": (1, 1), "dilations": (1, 1), "in_zero": 3, "residual": None, **CLIP,
}  # fmt: skip


def of_template(template):
    """The function of a template's expression."""
    tile = template.best(TINY, 1)
    return AcceleratorFunction.of(Schedule(template.schedule(tile, TINY).built), TINY)


def product(k_order=True):
    """[12, 8] of int32; ``k_order`` has tiles of weights outermost in k."""
    a = te.placeholder((12, 16), "int8", "a")
    b = te.placeholder((4, 2, 4, 4) if k_order else (2, 4, 4, 4), "int8", "b")
    k, i = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 4), "i")

    def weight(n):
        return b[k, n // 4, n % 4, i] if k_order else b[n // 4, k, n % 4, i]

    return te.compute(
        (12, 8),
        lambda m, n: te.sum(
            a[m, k * 4 + i].astype("int32") * weight(n).astype("int32"), axis=[k, i]
        ),
        "c",
    )


def chain():
    """Three operations on vectors, two inputs."""
    a, b = (te.placeholder((20, 4), "int32", name) for name in "ab")
    s = te.compute(a.shape, lambda i, l: a[i, l] + b[i, l], "s")
    m = te.compute(a.shape, lambda i, l: te.max(s[i, l], 0), "m")
    return te.compute(a.shape, lambda i, l: m[i, l] >> 2, "r")


def of_tensor(tensor):
    return AcceleratorFunction.of(create_schedule(tensor), TINY)


FUNCTIONS = {
    "product": lambda: of_tensor(product()),
    "product of other tiles": lambda: of_tensor(product(k_order=False)),
    "chain": lambda: of_tensor(chain()),
    "convolution": lambda: of_template(Conv2d(groups=1, outputs=3, **CONV)),
    "strides": lambda: of_template(Conv2d(groups=1, outputs=1, **CONV | {"strides": (2, 2)})),
    "depthwise": lambda: of_template(Conv2d(groups=3, outputs=1, **CONV | {"inputs": 1})),
    "two images": lambda: of_template(MatMul(2, 8, 2, 6, 8, 0, 0, **CLIP)),
    "zero points": lambda: of_template(MatMul(1, 8, 2, 6, 8, 3, -2, **CLIP)),
    "addition": lambda: of_template(Add(30, 9000, -7000, 3, -8, 2, -128, 127)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derived_schedules_compute_what_the_interpreter_does(name):
    """Few are illegal: those whose copies for threads the memories can't hold."""
    task = CycleKnobTask.of(FUNCTIONS[name]())
    points = task.space.draw(set(), 8, np.random.default_rng(0))
    outcomes = [task.meter.measure(task.space.candidate(point)) for point in points]
    assert len(outcomes) >= 6
    assert not [o.note for o in outcomes if "differs" in o.note]
    assert sum(o.status == "ok" for o in outcomes) >= len(outcomes) / 2, outcomes
    assert len({o.cycles for o in outcomes}) > 3


def test_roles_follow_from_the_expression():
    roles = roles_of(FUNCTIONS["product"]())
    assert roles.written
    assert {(c.tensor, c.scope) for c in roles.copies} == {("a", INP), ("b", WGT)}
    roles = roles_of(FUNCTIONS["convolution"]())
    assert not roles.written
    assert roles.scopes == {"padded": INP, "acc": ACC}
    copies = {(c.tensor, c.scope) for c in roles.copies}
    assert copies == {("weight", WGT), ("bias", ACC), ("scale", ACC)}
    roles = roles_of(FUNCTIONS["addition"]())
    assert [c.tensor for c in roles.copies] == ["scale"]  # the others are loaded as they widen
    assert roles_of(FUNCTIONS["chain"]()).written


def test_what_the_memories_cannot_hold_is_no_point():
    small = load_config("tiny", ["inp_bytes=64", "acc_bytes=128"])
    function = AcceleratorFunction.of(create_schedule(product()), small)
    task = CycleKnobTask.of(function)
    rng = np.random.default_rng(0)
    points = task.space.draw(set(), 8, rng)
    assert points
    chosen = [task.space.candidate(point) for point in points]
    assert not [c.refusal for c in chosen if c.refusal]
    assert len(task.space.chosen) > len(points)  # others were refused
    for point in task.space.step(np.array(points), rng):
        assert not task.space.candidate(int(point)).refusal
    for a, b in pairwise(points):
        assert not task.space.candidate(task.space.cross(a, b, rng)).refusal


def test_an_expression_that_no_instruction_computes_has_no_points():
    """A division, and a vector of fewer elements than lanes."""
    a = te.placeholder((8, 4), "int32", "a")
    thirds = te.compute((8, 4), lambda y, x: a[y, x] // 3, "thirds")
    short = te.compute((3,), lambda i: a[i, 0], "short")
    for tensor in (thirds, short):
        space = CycleKnobTask.of(of_tensor(tensor)).space
        assert space.draw(set(), 2, np.random.default_rng(0)) == []
        assert space.chosen[0].refusal


def test_stages_of_several_tensors_are_refused():
    a = te.placeholder((8, 4), "int32", "a")
    both = te.compute((8, 4), lambda y, x: (a[y, x], a[y, x] + 1), "both")
    last = te.compute((8, 4), lambda y, x: both[0][y, x] + both[1][y, x], "last")
    with pytest.raises(ScheduleError, match=r"sketch both: expected a stage of one tensor"):
        CycleKnobTask.of(of_tensor(last))


def test_a_search_without_a_schedule_function(tmp_path):
    result = vdla.search(product(), log=tmp_path / "log", target="tiny", trials=12,
                         searcher="random", workers=1)  # fmt: skip
    assert result.cost < result.history[0]
    a = np.random.default_rng(0).integers(-128, 127, (12, 16), np.int8)
    b = np.random.default_rng(1).integers(-128, 127, (4, 2, 4, 4), np.int8)
    c = np.zeros((12, 8), np.int32)
    result.build()(a, b, c)
    weights = b.transpose(0, 3, 1, 2).reshape(16, 8)
    np.testing.assert_array_equal(c, a.astype(int) @ weights.astype(int))
    with pytest.raises(vdla.UserError) as raised:
        vdla.search(product(), log=tmp_path / "other", target="cpu")
    assert str(raised.value) == (
        "search: expected a function of a schedule and knobs, found None; "
        'vdla.tune(tensor, log, target="cpu", strategy="sketch") derives schedules'
    )
