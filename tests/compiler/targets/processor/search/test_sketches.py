"""Sketches of any expression: each schedule computes what numpy does, and its trace is exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from vdla.compiler import te
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Step, from_json, to_json
from vdla.compiler.targets.processor.codegen.llvm import jit
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.compiler.targets.processor.search.function import ProcessorFunction
from vdla.compiler.targets.processor.search.loop_features import NAMES, features
from vdla.compiler.targets.processor.search.rules import derive, template
from vdla.compiler.targets.search.sketch import Combinations, Knob, Limit, Sketch
from vdla.compiler.targets.search.sketch_space import SketchSpace
from vdla.compiler.targets.search.stopwatch import alike
from vdla.compiler.tir.ir import For
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.visitor import walk

few = settings(max_examples=8, deadline=None)
sizes = st.integers(1, 24)


def function_of(result, layers=("f",)):
    """The function of a tensor expression."""
    return ProcessorFunction(layers, create_schedule(result).built, result, (), None, NATIVE)


def matmul(n, m, k, relu):
    """[n, m] sums over k, and with ``relu`` something behind them."""
    a, b = te.placeholder((n, k), "float32", "a"), te.placeholder((k, m), "float32", "b")
    r = te.reduce_axis((0, k), "r")
    acc = te.compute((n, m), lambda y, x: te.sum(a[y, r] * b[r, x], axis=r), "acc")
    if not relu:
        return acc
    return te.compute((n, m), lambda y, x: te.maximum(acc[y, x], te.const(0.0, "float32")), "out")


def window(h, w, c):
    """A 3×3 convolution of a padded image [h, w, c] with one channel of weights each."""
    image = te.placeholder((h, w, c), "float32", "image")
    taps = te.placeholder((3, 3, c), "float32", "taps")
    inside = lambda y, x: te.all(y >= 1, y <= h, x >= 1, x <= w)  # noqa: E731
    padded = te.compute(
        (h + 2, w + 2, c),
        lambda y, x, l: te.select(inside(y, x), image[y - 1, x - 1, l], te.const(0.0, "float32")),
        "padded",
    )
    ry, rx = te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx")
    acc = te.compute(
        (h, w, c),
        lambda y, x, l: te.sum(padded[y + ry, x + rx, l] * taps[ry, rx, l], axis=[ry, rx]),
        "acc",
    )
    return te.compute((h, w, c), lambda y, x, l: te.maximum(acc[y, x, l], image[y, x, l]), "out")


def row_sums(n, k):
    """[n] sums over k."""
    a, r = te.placeholder((n, k), "float32", "a"), te.reduce_axis((0, k), "r")
    return te.compute((n,), lambda y: te.sum(a[y, r], axis=r), "total")


def correlated(image, taps):
    """The window function in numpy."""
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    views = sliding_window_view(padded, (3, 3), axis=(0, 1))
    return np.maximum(np.einsum("yxcij,ijc->yxc", views, taps), image)


@st.composite
def expressions(draw):
    """An expression, and numpy's function of its inputs."""
    kind = draw(st.sampled_from(["product", "relu", "window", "sums"]))
    n, m, k = draw(sizes), draw(sizes), draw(sizes)
    if kind == "sums":
        return row_sums(min(n, 4), 16 * k), lambda a: a.sum(axis=1)
    if kind == "window":
        return window(n, m, min(k, 8)), correlated
    if kind == "relu":
        return matmul(n, m, k, relu=True), lambda a, b: np.maximum(a @ b, 0)
    return matmul(n, m, k, relu=False), lambda a, b: a @ b


def run(func, seed=0, threads=1):
    """(arrays, the function's result on them)."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(p.shape).astype(p.dtype) for p in func.params]
    (code,) = jit([func], threads).values()
    code(*arrays)
    return arrays[:-1], arrays[-1]


def drawn(space, count, seed):
    """Some traces of a space."""
    points = space.draw((), count, np.random.default_rng(seed))
    return [space.candidate(point) for point in points]


@few
@given(expressions(), st.integers(0, 2**31))
def test_every_sketch_computes_what_numpy_does(expression, seed):
    result, oracle = expression
    function = function_of(result)
    for sketch in derive(function):
        for trace in drawn(SketchSpace([sketch]), 1, seed):
            inputs, found = run(function.code(trace))
            assert alike(found, oracle(*inputs).astype(found.dtype)), (sketch.rule, trace)


def long(kind):
    """A function with so many steps that threads share them."""
    kinds = {
        "product": matmul(48, 64, 16, relu=False),
        "relu": matmul(48, 64, 16, relu=True),
        "window": window(20, 24, 16),
        "sums": row_sums(16, 2048),
        "lanes": te.compute((40, 96, 8), lambda *i: WIDE[i] + WIDE[i], "twice"),
    }
    return function_of(kinds[kind])


WIDE = te.placeholder((40, 96, 8), "float32", "wide")
KINDS = ("product", "relu", "window", "sums", "lanes")


@pytest.mark.parametrize("kind", KINDS)
def test_threads_share_long_functions(kind):
    function = long(kind)
    inputs, wanted = run(function.code([]))
    for sketch in derive(function):
        if sketch.rule == "tile at root" and kind == "sums":
            continue  # its one loop over results is the vector
        for trace in drawn(SketchSpace([sketch]), 6, 3):
            code = function.code(trace)
            shared = [s for s in walk(code.body) if isinstance(s, For) and s.kind == "parallel"]
            assert shared, (sketch.rule, trace)
            again, found = run(code, threads=2)
            assert all(map(np.array_equal, again, inputs))
            assert alike(found, wanted), (sketch.rule, trace)


def test_how_many_loops_threads_share_is_a_knob():
    window_function = function_of(window(40, 24, 16))
    tile = next(s for s in derive(window_function) if s.rule == "tile")
    met = set()
    for trace in drawn(SketchSpace([tile]), 40, 0):
        fused = [s.args["axes"] for s in trace if (s.primitive, s.stage) == ("fuse", "out")]
        (shared,) = (s for s in trace if (s.primitive, s.stage) == ("parallel", "out"))
        met.add((len(fused), shared.args["axis"]))
        inside = any(s.primitive == "compute_at" and s.stage == "padded" for s in trace)
        apart = any(s.primitive == "parallel" and s.stage == "padded" for s in trace)
        assert inside != apart  # what is computed in a shared loop isn't shared once more
    assert {count for count, _ in met} == {0, 1}
    assert len(met) == 2  # the shared loop is the one that was fused


def test_short_functions_stay_on_one_thread():
    for sketch in derive(function_of(matmul(8, 16, 4, relu=True))):
        assert not [step for step in sketch.steps if step.primitive in ("fuse", "parallel")]


@few
@given(expressions(), st.integers(0, 2**31))
def test_a_trace_replays_exactly_and_names_its_point(expression, seed):
    function = function_of(expression[0])
    space = SketchSpace(derive(function))
    for trace in drawn(space, 3, seed):
        s = function.schedule(trace)
        again = Schedule(function.built)
        again.replay(from_json(to_json(s.trace)), function.intrinsics)
        assert show(again.mod) == show(s.mod)
        assert again.trace == s.trace == trace
        assert space.candidate(space.point(trace)) == trace


@few
@given(expressions(), st.integers(0, 2**31))
def test_children_and_neighbours_are_schedules(expression, seed):
    function = function_of(expression[0])
    space = SketchSpace(derive(function))
    rng = np.random.default_rng(seed)
    a, *rest = space.draw((), 4, rng)
    for b in rest:
        child = space.cross(a, b, rng)
        (step,) = space.step(np.array([child]), rng)
        for point in (child, int(step)):
            number, codes = space.points[point]
            assert space.sketches[number].allows(codes)
            function.code(space.candidate(point))


def test_a_child_has_each_stage_from_one_parent(product):
    space = SketchSpace([s for s in derive(product) if s.rule == "tile"])
    rng, met = np.random.default_rng(3), set()
    a, b = space.draw((), 2, rng)
    for _ in range(20):
        child = space.candidate(space.cross(a, b, rng))
        for stage in ("out", "acc"):
            of = [
                [s for s in t if s.stage == stage] for t in (child, *map(space.candidate, (a, b)))
            ]
            assert of[0] in of[1:]
            met.add((stage, of[0] == of[1]))
    assert len(met) > 2  # from both parents


def test_rules_follow_the_structure():
    def rules(result):
        return [sketch.rule for sketch in derive(function_of(result))]

    assert rules(matmul(8, 16, 4, relu=True)) == ["tile", "tile at root"]
    assert rules(row_sums(2, 512)) == ["tile at root", "rfactor"]
    tile = derive(function_of(matmul(8, 16, 4, relu=False)))[0]
    assert tile.steps[0].primitive == "cache_write"


def test_a_template_varies_the_default_schedule(product):
    assert template(product) == []  # which leaves a plain product as it is


def test_what_is_left_out_and_what_follows():
    steps = (Step("split", "s", {"axis": "s.x", "factor": 1}), Step("unroll", "s", {"axis": "s.x"}))
    knobs = (
        Knob(0, "factor", (1, 2, 3), ((1, "axis", ("s.a", "s.b", "s.c")),)),
        Knob(1, "", (True, False)),
    )
    sketch = Sketch("rule", steps, knobs, (Limit((0,), 4),))
    assert [s.args for s in sketch.trace((1, 0))] == [{"axis": "s.x", "factor": 2}, {"axis": "s.b"}]
    assert [s.primitive for s in sketch.trace((1, 1))] == ["split"]
    assert [sketch.allows((code, 0)) for code in range(3)] == [True, True, False]
    assert sketch.codes(sketch.trace((2, 1))) == (2, 1)
    assert sketch.codes(sketch.trace((2, 0))[1:]) is None
    assert sketch.codes([*sketch.trace((2, 0)), steps[1]]) is None


def test_knobs_that_go_together():
    steps = (Step("fuse", "s", {"axes": ["s.a", "s.b"]}), Step("parallel", "s", {"axis": "s.a"}))
    knob = Knob(1, "axis", ("s.a", "s.a_s.b"), ((0, "", (False, True)),))
    sketch = Sketch("rule", steps, (knob,), (Combinations((0,), frozenset({("s.a",)})),))
    assert [sketch.allows((code,)) for code in range(2)] == [True, False]
    assert [s.primitive for s in sketch.trace((0,))] == ["parallel"]
    assert [s.primitive for s in sketch.trace((1,))] == ["fuse", "parallel"]
    assert [sketch.codes(sketch.trace((code,))) for code in range(2)] == [(0,), (1,)]


def test_features_tell_schedules_apart(product):
    plain = features(product.code([]))
    assert tuple(plain) == NAMES
    tiles = SketchSpace([s for s in derive(product) if s.rule == "tile"])
    found = [features(product.code(trace)) for trace in drawn(tiles, 6, 0)]
    assert plain["main.lanes"] == 1  # a logarithm, of 1 + 1
    assert max(f["main.lanes"] for f in found) == np.log2(1 + product.processor.vectors.lanes)
    assert min(f["main.copies"] for f in found) < max(f["main.copies"] for f in found)
    assert all(np.isfinite(list(f.values())).all() for f in found)


def test_a_step_that_does_not_apply_is_refused(product):
    with pytest.raises(ScheduleError, match=r"found acc\.nowhere"):
        product.code([Step("unroll", "acc", {"axis": "acc.nowhere"})])
