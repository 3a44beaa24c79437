"""Parallel loops on threads: the same bytes for any number of them, and nobody waits for ever."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vdla
from vdla import te
from vdla.compiler.schedule import create_schedule
from vdla.compiler.targets.processor.codegen.llvm import compile_object
from vdla.runtime.calls import Calls
from vdla.runtime.module import HostCode
from vdla.runtime.native import NativeLibrary, host_machine
from vdla.runtime.threads import NAME, Pool, current_cpu

BEFORE: set[threading.Thread] = set()


def library_of(*funcs):
    return NativeLibrary(HostCode(compile_object(funcs), *host_machine(), {}))


def rows(count, columns, name="rows"):
    """b[i, j] = Σ_k a[i, k] * (j + k) through a row of its own for each i, which threads share."""
    a = te.placeholder((count, columns), "float32", "a")
    twice = te.compute((count, columns), lambda i, j: a[i, j] * 2.0, "twice")
    k = te.reduce_axis((0, columns), "k")

    def value(i, j):
        return te.sum(twice[i, k] * (j + k).astype("float32"), axis=k)

    out = te.compute((count, columns), value, "out")
    s = create_schedule(out, [a], name)
    i, _ = s[out].axis
    s[twice].compute_at(s[out], i)
    s[out].parallel(i)
    return s.lower()


def expected(a):
    n = np.arange(a.shape[1])
    return (2 * a.astype(np.float64)) @ (n[:, None] + n[None, :])


@settings(max_examples=12)
@given(count=st.sampled_from([1, 2, 7, 255, 256, 257, 1030]), threads=st.integers(2, 5))
def test_any_number_of_threads_gives_the_same_bytes(count, threads):
    library = library_of(rows(count, 9))
    a = np.random.default_rng(count).standard_normal((count, 9)).astype(np.float32)
    found = []
    for number in (1, threads):
        out = np.full((count, 9), np.nan, np.float32)
        pool = Pool(library, number) if number > 1 else None
        calls = Calls(library, [("rows", [a.ctypes.data, out.ctypes.data])], pool)
        for _ in range(3):
            calls.run()
        found.append(out)
    assert found[0].tobytes() == found[1].tobytes()
    np.testing.assert_allclose(found[0], expected(a), rtol=1e-4, atol=1e-3)


def test_a_row_of_functions_is_one_call_and_each_is_timed():
    library = library_of(rows(64, 8, "first"), rows(300, 8, "second"))
    a = np.ones((300, 8), np.float32)
    outs = np.empty((2, 300, 8), np.float32)
    functions = [(n, [a.ctypes.data, o.ctypes.data])
                 for n, o in zip(("first", "second"), outs, strict=True)]  # fmt: skip
    seconds = Calls(library, functions, Pool(library, 2)).run()()
    np.testing.assert_allclose(outs[1], expected(a), rtol=1e-5)
    np.testing.assert_allclose(outs[0][:64], expected(a)[:64], rtol=1e-5)
    assert len(seconds) == 2
    assert min(seconds) > 0


@pytest.fixture(autouse=True)
def others(monkeypatch):
    """The threads that there are before a test: executors that other tests keep have some."""
    monkeypatch.setattr(sys.modules[__name__], "BEFORE", {*threading.enumerate()})


def helpers(expected):
    """How many threads of pools a test has, once it is as many as expected, or after a while."""
    for _ in range(300):
        gc.collect()
        own = {*threading.enumerate()} - BEFORE
        count = sum(thread.name == NAME for thread in own)
        if count == expected:
            break
        time.sleep(0.01)
    return count


def test_a_users_kernel_has_threads(monkeypatch):
    """``parallel`` in a schedule is what ``vdla.build`` for the CPU runs on threads."""
    a = te.placeholder((300, 64), "float32", "a")
    out = te.compute((300, 64), lambda i, j: te.exp(a[i, j]), "out")
    s = te.create_schedule(out, [a])
    s[out].parallel(s[out].axis[0])
    monkeypatch.setattr("vdla.kernels.kernel.available", lambda: 3)
    assert helpers(0) == 0
    kernel = vdla.build(s, [a, out], "cpu")
    x, y = np.ones((300, 64), np.float32), np.zeros((300, 64), np.float32)
    kernel(x, y)
    assert helpers(2) == 2
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)


def test_threads_end_with_their_pool():
    assert helpers(0) == 0
    pool = Pool(library_of(rows(8, 8)), 4)
    with pool.open():
        assert helpers(3) == 3
    del pool
    assert helpers(0) == 0


def test_a_pool_that_nobody_opens_starts_no_thread():
    assert helpers(0) == 0
    library = library_of(rows(8, 8))
    pool = Pool(library, 4)
    a, out = np.ones((8, 8), np.float32), np.empty((8, 8), np.float32)
    buffers = (ctypes.c_void_p * 3)(a.ctypes.data, out.ctypes.data, pool.address)
    library.function("rows", ctypes.c_void_p)(buffers)
    np.testing.assert_allclose(out, expected(a), rtol=1e-5)
    assert helpers(0) == 0


def test_pools_of_two_modules_run_at_once():
    library = library_of(rows(500, 16))
    a = np.random.default_rng(0).standard_normal((500, 16)).astype(np.float32)
    outs = np.zeros((2, 500, 16), np.float32)
    each = [Calls(library, [("rows", [a.ctypes.data, o.ctypes.data])], Pool(library, 2))
            for o in outs]  # fmt: skip
    users = [threading.Thread(target=lambda c=c: [c.run() for _ in range(50)]) for c in each]
    for user in users:
        user.start()
    for user in users:
        user.join(60)
        assert not user.is_alive()
    for out in outs:
        np.testing.assert_allclose(out, expected(a), rtol=1e-4, atol=1e-3)


def test_threads_leave_the_callers_processor_to_it(monkeypatch):
    """Wakes on the caller's own one would stand in line behind it."""
    placed = []
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 5})
    monkeypatch.setattr("os.sched_setaffinity", lambda n, cpus: placed.append((n, cpus)))
    where = iter([5, 5, 0, None, 0])
    monkeypatch.setattr("vdla.runtime.threads.current_cpu", lambda: next(where))
    pool = Pool(library_of(rows(8, 8)), 3)
    found = []
    for _ in range(5):
        placed.clear()
        with pool.open():
            found.append([cpus for _, cpus in placed])
    assert found == [[{0, 1}] * 2, [], [{1, 5}] * 2, [], []]


def test_one_processor_is_shared(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {5})
    monkeypatch.setattr("os.sched_setaffinity", lambda n, cpus: 1 / 0)
    monkeypatch.setattr("vdla.runtime.threads.current_cpu", lambda: 5)
    with Pool(library_of(rows(8, 8)), 2).open():
        assert helpers(1) == 1


def test_systems_that_take_no_wishes(monkeypatch):
    assert current_cpu() in os.sched_getaffinity(0)
    monkeypatch.delattr("os.sched_setaffinity")
    assert current_cpu() is None


def idle_seconds():
    """Seconds that this process computes in a tenth of a second; numpy's threads, too, now and
    then, which is why the least of some counts."""
    before = time.process_time()
    time.sleep(0.1)
    return time.process_time() - before


def test_threads_sleep_after_a_run_and_are_woken_again():
    a, out = np.ones((256, 64), np.float32), np.zeros((256, 64), np.float32)
    wanted = expected(a)  # by numpy's own threads, which go on looking for work for a while
    library = library_of(rows(256, 64))
    pool = Pool(library, 3)
    calls = Calls(library, [("rows", [a.ctypes.data, out.ctypes.data])], pool)
    for _ in range(4):
        calls.run()
        time.sleep(0.02)
        assert min(idle_seconds() for _ in range(4)) < 0.05  # nobody looks for work any more
        np.testing.assert_allclose(out, wanted, rtol=1e-5)
        out[...] = 0
