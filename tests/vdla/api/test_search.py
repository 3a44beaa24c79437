"""``vdla.search``: a user's knobs on the accelerator, on a processor and on a GPU."""

from __future__ import annotations

import json

import numpy as np
import pytest

import vdla
from vdla import te
from vdla.compiler.search.records import RecordError, export, load
from vdla.compiler.targets.accelerator.search import kernel_meter
from vdla.compiler.targets.accelerator.search.kernel import COUNTED, AcceleratorFunction
from vdla.compiler.targets.accelerator.search.kernel_records import KernelRecord
from vdla.compiler.targets.search.function_records import FunctionRecord
from vdla.isa.config import load_config
from vdla.support.errors import UserError

TINY = load_config("tiny")
INS = vdla.intrinsics("tiny")
A = te.placeholder((12, 4), "int32", "A")
C = te.compute((12, 4), lambda i, l: A[i, l] + 3, "C")
F = te.placeholder((16, 16), "float32", "F")
G = te.compute((16, 16), lambda y, x: F[y, x] * F[y, x], "G")


def elements(s, knobs):
    """Rows at a time on chip; all 12 with a factor that no loop has is refused."""
    made = s.cache_write(C, vdla.ACC)
    copy = s.cache_read(A, vdla.ACC, [made])
    outer, _ = knobs.split("rows", s[C], s[C].op.axis[0], factors=[1, 2, 3, 4, 6, 12, 13])
    for tensor in (made, copy):
        s[tensor].compute_at(s[C], outer)
    if knobs.knob("threads", [1, 2]) == 2:
        s[C].bind(outer, te.thread_axis("vthread", threads=2))
    s[copy].tensorize(s[copy].axis[1], INS)
    s[made].tensorize(s[made].axis[1], INS)
    s[C].tensorize(s[C].op.axis[1], INS)


def squares(s, knobs):
    y, x = s[G].op.axis
    yo, yi = knobs.split("rows", s[G], y, factors=[4, 8, 99])
    xo, xi = s[G].split(x, factor=16)
    s[G].reorder(yo, xo, yi, xi)
    if knobs.knob("vector", [True, False]):
        s[G].vectorize(xi)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A search over the whole space of a small kernel, on the accelerator."""
    log = tmp_path_factory.mktemp("search") / "log"
    return vdla.search(C, elements, log=log, target="tiny", trials=99, searcher="grid", workers=1)


def test_all_of_a_small_space_is_measured_and_the_least_is_best(result):
    assert (result.task.trials, result.task.counts["illegal"]) == (6 * 2 + 1, 1)
    records = load(result.options.log, KernelRecord)
    assert result.cost == min(r.cycles for r in records if r.status == "ok")
    (refused,) = (r for r in records if r.status == "illegal")
    assert refused.knobs == {"rows": 13}
    assert refused.note == "split C.i: expected factor in 1..12 (the loop's extent), found 13"


def test_build_takes_the_best(result):
    a = np.arange(-24, 24, dtype=np.int32).reshape(12, 4)
    c = np.zeros_like(a)
    kernel = result.build([A, C])
    assert kernel(a, c).cycles == result.cost
    np.testing.assert_array_equal(c, a + 3)
    s = te.create_schedule(C)
    elements(s, vdla.Knobs(**result.knobs))
    assert vdla.build(s, [A, C], "tiny").passes["loops"] == kernel.passes["loops"]
    plain = te.create_schedule(C)
    recorded = vdla.build(plain, [A, C], "tiny", records=result.options.log)
    assert recorded.passes["loops"] == kernel.passes["loops"]


def test_a_log_resumes(result, tmp_path):
    log = tmp_path / "log"
    lines = result.options.log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:8]))
    again = vdla.search(C, elements, log=log, target="tiny", trials=99, searcher="grid", workers=1)
    assert again.task.resumed == 8
    assert sorted(log.read_bytes().splitlines()) == sorted(map(bytes.rstrip, lines))
    assert again.history == result.history


def test_the_best_is_exported_and_built(result, tmp_path):
    best = tmp_path / "best"
    assert export(load(result.options.log, KernelRecord), best) == 1
    (record,) = load(best, KernelRecord)
    assert (record.cycles, record.knobs) == (result.cost, result.knobs)


def test_the_least_of_so_many_trials_is_drawn(result, tmp_path):
    assert result.history == sorted(result.history, reverse=True)
    assert result.history[-1] == result.cost
    picture = result.plot(tmp_path / "p.svg").read_text()
    assert "least cycles" in picture or "<svg" in picture
    assert str(result).endswith("; 13 trials: 1 illegal, 12 ok")


@pytest.mark.parametrize("searcher", ["random", "genetic", "model"])
def test_searchers_find_what_the_grid_finds(result, tmp_path, searcher):
    how = {"target": TINY, "trials": 99, "searcher": searcher, "workers": 1}
    again = vdla.search(C, elements, log=tmp_path / "log", **how)
    assert again.cost == result.cost
    assert again.task.counts["ok"] == 12


def test_trees_of_schedules_are_learned_from(result, tmp_path):
    """A TreeRNN reads the loops of a kernel for the accelerator as it does others'."""
    how = {"target": TINY, "trials": 99, "cost_model": "tree", "workers": 1}
    again = vdla.search(C, elements, log=tmp_path / "log", **how)
    assert again.cost == result.cost
    trees = again.task.trees(sorted(again.task.outcomes))
    assert trees.legal.sum() == 12
    assert len(trees.structures) > 1


def test_the_model_sees_what_schedules_do(result):
    seen = result.task.features(sorted(result.task.outcomes))
    rows = seen.values
    assert rows.shape == (13, len(seen.names))
    assert seen.legal.sum() == 12
    column = {name: rows[:-1, n] for n, name in enumerate(seen.names)}
    assert set(column["threads"]) == {0.0, np.log2(1 + 2)}
    assert len(set(column["bits vdla.acc"])) == 6
    assert {name for name in COUNTED if np.ptp(column[name])} >= {"load runs", "bits vdla.acc"}


def test_a_wrong_result_is_no_schedule(result, monkeypatch):
    meter = result.task.meter.inner
    wanted = kernel_meter._reference(meter.function)
    wrong = {**wanted, "C": wanted["C"] + 1}
    monkeypatch.setattr(kernel_meter, "_reference", lambda function: wrong)
    outcome = meter.measure(result.task.space.candidate(result.task.best).trace)
    assert (outcome.status, outcome.note) == (
        "illegal", "its result differs from the interpreter's"
    )  # fmt: skip


def test_other_machines_and_sources_have_records_of_their_own(result, tmp_path):
    log = tmp_path / "log"
    line = json.loads(result.options.log.read_text().splitlines()[0])
    other = json.loads(json.dumps(line | {"sources": "0" * 12}))
    log.write_text(json.dumps(other) + "\n")
    how = {"trials": 1, "searcher": "grid", "workers": 1}
    stale = vdla.search(C, elements, log=log, target="tiny", **how)
    assert (stale.task.resumed, stale.task.trials) == (0, 1)
    slow = ("memory.latency=200",)
    slower = vdla.search(C, elements, log=log, target="tiny", settings=slow, **how)
    assert slower.task.resumed == 0
    assert slower.cost > stale.cost
    function = AcceleratorFunction.of(te.create_schedule(C), TINY)
    assert {record.key == (function.digest, function.machine) for record in
            load(log, KernelRecord)} == {True, False}  # fmt: skip


def test_on_a_processor(tmp_path):
    log = tmp_path / "log"
    how = {"target": "cpu", "trials": 99, "searcher": "grid"}
    result = vdla.search(G, squares, log=log, **how)
    assert (result.task.counts["ok"], result.task.counts["illegal"]) == (4, 1)
    assert all(record.knobs["rows"] in (4, 8, 99) for record in load(log, FunctionRecord))
    f = np.random.default_rng(0).standard_normal((16, 16)).astype("float32")
    g = np.zeros_like(f)
    result.build([F, G])(f, g)
    np.testing.assert_allclose(g, f * f, rtol=1e-6)
    before = log.read_bytes()
    again = vdla.search(G, squares, log=log, **how)
    assert (again.task.resumed, again.cost) == (5, result.cost)
    assert log.read_bytes() == before


def test_on_a_gpu(tmp_path, gpu):
    def threads(s, knobs):
        y, x = s[G].op.axis
        block, thread = knobs.split("threads", s[G], s[G].fuse(y, x), factors=[8, 64])
        s[G].bind(block, te.thread_axis("blockIdx.x"))
        s[G].bind(thread, te.thread_axis("threadIdx.x"))

    result = vdla.search(G, threads, log=tmp_path / "log", target="gpu", trials=9, searcher="grid")
    f = np.random.default_rng(0).standard_normal((16, 16)).astype("float32")
    g = np.zeros_like(f)
    result.build([F, G])(f, g)
    np.testing.assert_allclose(g, f * f, rtol=1e-6)
    assert result.task.counts["ok"] == 2


@pytest.mark.long
def test_a_farm_measures(result, tmp_path):
    pytest.importorskip("distributed")
    from farms import LocalFarm

    log = tmp_path / "log"
    with LocalFarm(("--resource", "rtl"), ("--resource", "rtl")) as farm:
        where = {"farm": str(farm.address), "folder": farm.folder.name}
        far = vdla.search(C, elements, log=log, target="tiny", trials=99, searcher="grid", **where)
    assert far.cost == result.cost
    records = sorted(record.to_line() for record in load(log, KernelRecord))
    assert records == sorted(r.to_line() for r in load(result.options.log, KernelRecord))


def nothing(s, knobs):
    knobs.split("rows", s[C], s[C].op.axis[0], factors=[99])


def duplicate(s, knobs):
    knobs.knob("a", [1])
    knobs.knob("a", [1])


@pytest.mark.parametrize(
    ("schedule", "more", "told"),
    [
        (3, {}, "search: expected a function of a schedule and knobs, found 3"),
        (elements, {"layer": "x"}, "search: expected no option of models, found --layer"),
        (elements, {"strategy": "sketch"},
         "search: expected no option of models, found --strategy"),
        (elements, {"target": "cpu", "workers": 4},
         "--workers: expected --target accelerator, found cpu"),
        (elements, {"searcher": "oracle"},
         "--searcher: expected one of model, random, grid, genetic, found oracle"),
        (elements, {"target": "cpu", "farm": "tls://a:1"},
         "--farm: expected --target accelerator or gpu or x86-64-v3 or x86-64-v4, found cpu"),
        (duplicate, {}, "knob a: expected a name of its own, found a second knob of it; an object "
                        "of knobs is for one call of a schedule function"),
    ],
)  # fmt: skip
def test_what_is_no_search(tmp_path, schedule, more, told):
    how = {"target": "tiny", "trials": 1, "searcher": "random", **more}
    with pytest.raises(UserError) as raised:
        vdla.search(C, schedule, log=tmp_path / "log", **how)
    assert str(raised.value) == told


def test_a_search_without_a_schedule_says_what_was_refused(tmp_path):
    how = {"target": "tiny", "trials": 3, "searcher": "random"}
    result = vdla.search(C, nothing, log=tmp_path / "log", **how)
    assert str(result) == "nothing that can be measured; 1 trials: 1 illegal"
    with pytest.raises(UserError) as raised:
        result.build([A, C])
    assert str(raised.value) == (
        "C: expected a schedule that can be measured, found none among 1; the first one: split "
        "C.i: expected factor in 1..12 (the loop's extent), found 99"
    )


def test_sizes_and_results_that_a_search_does_not_take(tmp_path):
    n = te.var("n")
    a = te.placeholder((n,), "int32", "a")
    open_size = te.compute((n,), lambda i: a[i] + 1, "b")
    with pytest.raises(UserError, match=r"sizes: expected those of te.var, n, found none"):
        vdla.search(open_size, nothing, log=tmp_path / "log", target="tiny", searcher="random")
    two = [te.compute((8,), lambda i: A[i, 0] + x, f"r{x}") for x in (1, 2)]
    with pytest.raises(UserError, match="kernel: expected one result, found r1, r2"):
        vdla.search(two, nothing, log=tmp_path / "log", target="tiny", searcher="random")


def test_logs_of_other_searches_are_refused(result, tmp_path):
    log = tmp_path / "log"
    log.write_bytes(result.options.log.read_bytes())
    with pytest.raises(RecordError, match="expected a tuning record of a processor, found"):
        vdla.search(G, squares, log=log, target="cpu", searcher="random")
    log.write_text('{"schema":2,"kernel":"0","machine":{},"trace":3,"knobs":{},"status":"ok",'
                   '"cycles":1,"note":"","isa":"","sources":"","version":""}\n')  # fmt: skip
    with pytest.raises(RecordError, match=r"log:1: .*found a trace that isn't a list of steps"):
        vdla.search(C, elements, log=log, target="tiny", searcher="random")
