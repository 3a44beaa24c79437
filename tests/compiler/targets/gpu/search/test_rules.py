"""Schedules that are searched on a GPU: each computes what the expression says, without a race."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla import te
from vdla.compiler import tree_rnn
from vdla.compiler.schedule import create_schedule
from vdla.compiler.schedule.trace import from_json, to_json
from vdla.compiler.search.measurer import RefusalError
from vdla.compiler.search.tuner import TuneOptions
from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.gpu.description import ANY, Gpu, extents, kernels, shared_bytes
from vdla.compiler.targets.gpu.search import stopwatch
from vdla.compiler.targets.gpu.search.function import GpuFunction
from vdla.compiler.targets.gpu.search.kernel_features import NAMES, features
from vdla.compiler.targets.gpu.search.rules import derive, template
from vdla.compiler.targets.gpu.search.stopwatch import GpuStopwatch
from vdla.compiler.targets.gpu.search.tasks import function_tasks
from vdla.compiler.targets.search import loop_tree
from vdla.compiler.targets.search.loop_tree import tree_of
from vdla.compiler.targets.search.sketch_space import SketchSpace
from vdla.compiler.targets.search.stopwatch import alike, random_array
from vdla.compiler.tir.group import run_groups
from vdla.compiler.tir.interp import run

few = settings(max_examples=6, deadline=None)
TINY = Gpu(group=16, sides=(8, 4, 4), shared=128)


def function_of(result, gpu=ANY):
    """The function of a tensor expression."""
    return GpuFunction(("f",), create_schedule(result).built, result, (), None, gpu)


def matmul(n, m, k, dtype="float32"):
    """[n, m] sums over k, and something behind them."""
    a, b = te.placeholder((n, k), dtype, "a"), te.placeholder((k, m), dtype, "b")
    r = te.reduce_axis((0, k), "r")
    acc = te.compute((n, m), lambda y, x: te.sum(a[y, r] * b[r, x], axis=r), "acc")
    return te.compute((n, m), lambda y, x: te.maximum(acc[y, x], te.const(0, dtype)), "out")


def images(channels, size, taps, dtype="float32"):
    """A convolution [channels, size, size] of each channel of an image by itself."""
    data = te.placeholder((channels, size + taps - 1, size + taps - 1), dtype, "data")
    weight = te.placeholder((channels, taps, taps), dtype, "weight")
    y, x = te.reduce_axis((0, taps), "ky"), te.reduce_axis((0, taps), "kx")
    return te.compute(
        (channels, size, size),
        lambda c, i, j: te.sum(data[c, i + y, j + x] * weight[c, y, x], axis=[y, x]),
        "out",
    )


def sums(rows, size):
    """Long sums."""
    x, k = te.placeholder((rows, size), "float32", "x"), te.reduce_axis((0, size), "k")
    return te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), "out")


@st.composite
def expressions(draw):
    """Expressions of any of these kinds, of odd sizes, too."""
    size, kind = st.integers(1, 9), draw(st.sampled_from(["matmul", "images", "sums", "int"]))
    if kind == "sums":
        return sums(draw(st.integers(1, 3)), draw(st.integers(64, 200)))
    if kind == "images":
        return images(draw(st.integers(1, 3)), draw(size), draw(st.integers(1, 3)))
    return matmul(draw(size), draw(size), draw(size), "int32" if kind == "int" else "float32")


def check(function, trace):
    """A trace's kernels beside the expression itself, thread by thread."""
    rng = np.random.default_rng(0)
    plain = function.schedule().mod
    arrays = [random_array(p, rng) for p in plain.params]
    wanted = [array.copy() for array in arrays]
    run(plain, wanted)
    assert run_groups(function.code(trace), arrays) == ()
    assert alike(arrays[-1], wanted[-1])


@pytest.mark.long
@few
@given(expressions(), st.integers(0, 2**31))
def test_every_schedule_computes_what_the_expression_says(expression, seed):
    function = function_of(expression)
    for sketch in (*derive(function), *template(function)):
        space = SketchSpace([sketch], function.fits)
        for point in space.draw((), 1, np.random.default_rng(seed)):
            check(function, space.candidate(point))


@few
@given(expressions(), st.integers(0, 2**31))
def test_a_trace_goes_through_a_log(expression, seed):
    function = function_of(expression)
    space = SketchSpace([*derive(function), *template(function)], function.fits)
    for point in space.draw((), 2, np.random.default_rng(seed)):
        trace = from_json(to_json(space.candidate(point)))
        assert space.point(trace) == point
        assert len(function.features(function.loops(trace))) == len(NAMES)


def test_rules_follow_the_structure():
    def rules(result):
        return [sketch.rule for sketch in derive(function_of(result))]

    assert rules(matmul(8, 16, 4)) == ["tile"]
    assert rules(images(2, 8, 3)) == ["tile", "flat tile", "elements"]
    assert rules(sums(2, 512)) == ["tree", "elements"]


def test_what_exceeds_the_gpu_is_no_candidate():
    function = function_of(matmul(8, 8, 8), TINY)
    (sketch,) = derive(function)
    everything = SketchSpace([sketch])
    traces = [everything.candidate(p) for p in everything.draw((), 20, np.random.default_rng(1))]
    space = SketchSpace([sketch], function.fits)
    fitting = [trace for trace in traces if space.point(trace) is not None]
    assert 0 < len(fitting) < len(traces)
    for trace in fitting:
        for kernel in kernels(function.code(trace).body):
            assert np.prod(extents(kernel)[1]) <= TINY.group
            assert shared_bytes(kernel) <= TINY.shared


def test_what_exceeds_the_gpu_is_never_compiled(monkeypatch):
    def compiled(*args):
        raise AssertionError("compiled")

    function = function_of(matmul(8, 8, 8), TINY)
    (sketch,) = derive(function)
    space = SketchSpace([sketch])
    traces = map(space.candidate, space.draw((), 25, np.random.default_rng(1)))
    trace = next(t for t in traces if not function.fits(t))
    monkeypatch.setattr(stopwatch, "kernels_of", compiled)
    with pytest.raises(NoCodeError, match="expected at most"):
        GpuStopwatch(function).runner(trace, [])


def test_a_template_shares_the_threads_of_a_group():
    function = function_of(sums(2, 512))
    (sketch,) = template(function)
    space, met = SketchSpace([sketch], function.fits), set()
    for point in space.draw((), 8, np.random.default_rng(2)):
        trace = space.candidate(point)
        factors = {s.args["axis"]: s.args["factor"] for s in trace if s.primitive == "split"}
        parts, more = factors["out_rf.k_i"], factors["out_rf_1.k_i_i"]
        assert more == min(parts, 32)  # parts of the second step of the default schedule's tree
        met.add(parts)
    assert len(met) > 2


def test_trees_have_the_loops_that_threads_share():
    function = function_of(matmul(16, 16, 16))
    space = SketchSpace(derive(function), function.fits)
    points = space.draw((), 4, np.random.default_rng(0))
    trees = [tree_of(function.loops(space.candidate(point))) for point in points]
    for name in ("blockIdx.x", "threadIdx.x", "local", "store", "read"):
        column = loop_tree.NAMES.index(name)
        assert any(tree.rows[:, column].any() for tree in trees), name


@pytest.mark.long
def test_a_search_by_trees_of_kernels(monkeypatch):
    monkeypatch.setattr(tree_rnn, "STEPS", 20)
    (task,) = function_tasks([function_of(matmul(16, 16, 16))], "sketch")
    runs = []
    for _ in range(2):
        searcher = task.searcher(TuneOptions(cost_model=tree_rnn.TREE), [])
        points = [searcher.propose(8)]
        searcher.update({p: 1.0 + len(task.space.candidate(p)) % 3 + p % 5 for p in points[0]})
        points.append(searcher.propose(8))
        assert len({*points[0], *points[1]}) == 16
        runs.append(points)
    assert runs[0] == runs[1]
    assert task.grown
    assert not task.rows  # no features, which the other model sees


def test_features_tell_schedules_apart():
    function = function_of(matmul(16, 16, 16))
    space = SketchSpace(derive(function), function.fits)
    points = space.draw((), 8, np.random.default_rng(0))
    rows = [features(function.code(space.candidate(point))) for point in points]
    assert all(tuple(row) == NAMES for row in rows)
    assert len({tuple(row.values()) for row in rows}) > 5
    assert {row["kernels"] for row in rows} == {1.0}  # a logarithm, of 1 + 1


def test_a_candidate_is_timed_beside_the_default(gpu):
    function = function_of(matmul(16, 16, 16), Gpu.of(gpu))
    watch = GpuStopwatch(function)
    outcome = watch.measure(function.default)
    assert (outcome.status, outcome.note) == ("ok", "")
    assert outcome.cost == outcome.seconds / outcome.reference


def test_a_search_for_another_gpu_is_refused(gpu):
    other = replace(Gpu.of(gpu), name="another")
    function = function_of(matmul(16, 16, 16), other)
    with pytest.raises(RefusalError) as refused:
        GpuStopwatch(function).measure(function.default)
    assert str(refused.value) == (
        f"gpu: expected another, found {gpu.name}; have workers with that GPU alone announce gpu"
    )
