"""Knobs that a schedule function declares, and the space that they make."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler import te
from vdla.compiler.schedule import create_schedule
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.compiler.targets.processor.search.kernel import KernelFunction
from vdla.compiler.targets.search.knob_space import KnobSpace
from vdla.compiler.targets.search.knobs import KnobError, Knobs, divisors

A = te.placeholder((12, 16), "float32", "a")
C = te.compute((12, 16), lambda y, x: A[y, x] + A[y, x], "c")


def dependent(s, knobs):
    """Rows in one of six ways; where they are split, lanes in one of two, or a factor that no loop
    has."""
    y, x = s[C].op.axis
    yo, yi = knobs.split("rows", s[C], y)
    if knobs.knob("vector", [False, True]):
        xo, xi = knobs.split("lanes", s[C], x, factors=[4, 8, 99])
        s[C].reorder(*knobs.choice("order", {"rows": (yo, xo), "columns": (xo, yo)}), yi, xi)
        s[C].vectorize(xi)


def space(schedule=dependent):
    return KnobSpace(KernelFunction.of(create_schedule(C), NATIVE), schedule)


LEAVES = 6 * (1 + 2 * 2 + 1)  # without vectors, of two widths in two orders, of no width


def values_of(made, points):
    return [tuple(made.candidate(point).knobs.items()) for point in points]


def test_a_user_gives_values_by_name():
    s = create_schedule(C)
    knobs = Knobs(rows=3, vector=True, lanes=8, order="columns", unused=1)
    dependent(s, knobs)
    extents = [s[C].extent(axis) for axis in s[C].leaf_iter_vars]
    assert extents == [2, 4, 3, 8]
    assert knobs.values == {"rows": 3, "vector": True, "lanes": 8, "order": "columns"}


def test_a_split_has_every_divisor_or_what_is_listed():
    s = create_schedule(C)
    loops = Knobs(y=(2, 3)).split("y", s[C], s[C].op.axis[0], parts=3)
    assert [s[C].extent(loop) for loop in loops] == [2, 2, 3]
    assert divisors(12, 1) == [(n,) for n in (1, 2, 3, 4, 6, 12)]
    assert len(divisors(12, 2)) == 18
    outer, inner = Knobs(x=5).split("x", s[C], s[C].op.axis[1], factors=[5])
    assert (s[C].extent(outer), s[C].extent(inner)) == (4, 5)


def test_a_filter_sees_all_parts():
    seen = []
    s = create_schedule(C)
    with pytest.raises(KnobError, match="expected one of 4, 8, found 2"):
        Knobs(x=2).split("x", s[C], s[C].op.axis[1],
                         filter=lambda sizes: seen.append(sizes) or sizes[0] in (2, 4))  # fmt: skip
    assert seen == [(16, 1), (8, 2), (4, 4), (2, 8), (1, 16)]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda k, s: k.knob("n", [1, 2]), "knob n: expected one of 1, 2, found none"),
        (lambda k, s: k.knob("m", [1, 2]), "knob m: expected one of 1, 2, found 7"),
        (lambda k, s: k.knob("", [1]), "knob: expected a name, found ''"),
        (lambda k, s: k.knob("m", [print]),
         "knob: expected a number, a text, True, False or None, found <built-in function print>; "
         "knobs.choice takes values of any kind"),
        (lambda k, s: [k.choice("o", ["a"]), k.choice("o", ["a"])],
         "knob o: expected a name of its own, found a second knob of it; an object of knobs is "
         "for one call of a schedule function"),
        (lambda k, s: k.split("m", s[C], s[C].op.axis[0], parts=1),
         "knob m: expected 2 parts or more, found 1"),
        (lambda k, s: k.split("m", s[C], s[C].op.axis[0], parts=3, factors=[2]),
         "knob m: expected 2 factors, found [2]"),
    ],
)  # fmt: skip
def test_what_is_no_knob(call, told):
    with pytest.raises(KnobError) as raised:
        call(Knobs(m=7, o=0), create_schedule(C))
    assert str(raised.value) == told


def test_a_knob_without_values_is_no_schedule():
    with pytest.raises(ScheduleError, match="knob n: expected one value or more, found none"):
        Knobs(n=1).knob("n", [])


def test_the_space_is_listed_in_order_each_point_once():
    made = space()
    points = list(made.in_order())
    assert points == list(range(LEAVES)) == list(made.in_order())
    listed = values_of(made, points)
    assert len(set(listed)) == LEAVES
    assert listed[:2] == [
        (("rows", 1), ("vector", False)),
        (("rows", 1), ("vector", True), ("lanes", 4), ("order", "rows")),
    ]
    refused = [made.candidate(point) for point in points if made.candidate(point).refusal]
    assert {c.knobs["lanes"] for c in refused} == {99}
    assert refused[0].refusal.startswith("split c.x: expected factor in 1..16")


def test_a_draw_comes_to_all_points():
    made, rng = space(), np.random.default_rng(0)
    points = made.draw(set(), 1000, rng)
    assert sorted(points) == list(range(LEAVES))
    assert made.draw(set(points), 3, rng) == []
    assert len(made.draw(set(points[1:]), 3, rng)) == 1


def test_a_step_turns_one_knob_and_what_depends_on_it():
    made, rng = space(), np.random.default_rng(1)
    start = made.named({"rows": 2, "vector": True, "lanes": 4, "order": "rows"})
    for point in made.step(np.array([start] * 40), rng):
        before, after = made.candidate(start).knobs, made.candidate(int(point)).knobs
        assert sum(after.get(name) != value for name, value in before.items() if name in after) == 1


def test_a_child_has_its_parents_values():
    made, rng = space(), np.random.default_rng(2)
    a = made.named({"rows": 2, "vector": True, "lanes": 4, "order": "rows"})
    b = made.named({"rows": 6, "vector": True, "lanes": 8, "order": "columns"})
    children = [made.candidate(made.cross(a, b, rng)).knobs for _ in range(40)]
    assert {c["rows"] for c in children} == {2, 6}
    assert {(c["lanes"], c["order"]) for c in children} == {
        (4, "rows"), (4, "columns"), (8, "rows"), (8, "columns")
    }  # fmt: skip


def test_names_and_values_that_the_function_lacks_are_no_point():
    made = space()
    assert made.named({"rows": 5, "vector": False}) is None
    assert made.named({"rows": 2}) is None
    assert made.named({"rows": 2, "vector": False, "lanes": 4}) is None
    assert made.named({"rows": 2, "vector": False}) is not None


def test_a_function_must_do_the_same_each_time():
    calls = []

    def changing(s, knobs):
        calls.append(1)
        knobs.knob("n", [0, len(calls)])

    made = space(changing)
    with pytest.raises(KnobError, match=r"knob n: expected the same knobs .*, knob n of \[0, 1\]"):
        list(made.in_order())


def test_a_function_that_fails_ends_the_search():
    def failing(s, knobs):
        return 1 // knobs.knob("n", [0])

    with pytest.raises(KnobError) as raised:
        list(space(failing).in_order())
    assert str(raised.value) == (
        "schedule(n=0): expected a function that schedules, found ZeroDivisionError: integer "
        "division or modulo by zero"
    )


def test_a_function_without_knobs_is_one_schedule():
    made = space(lambda s, knobs: s[C].parallel(s[C].op.axis[0]))
    (point,) = made.in_order()
    assert [step.primitive for step in made.candidate(point).trace] == ["parallel"]
    assert made.draw({point}, 1, np.random.default_rng(0)) == []
    assert made.step(np.array([point]), np.random.default_rng(0)).tolist() == [point]
