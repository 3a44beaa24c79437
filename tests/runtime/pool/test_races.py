"""The pool under sanitizers, and faults planted in it, each of which they or the driver find.

``driver.c`` says what is run. A fault is pool.c with some text replaced; where the text is no
longer part of pool.c, the test fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from vdla.runtime.pool.generate import SOURCE
from vdla.runtime.pool.numbers import POOL_BYTES

pytestmark = pytest.mark.long

DRIVER = Path(__file__).with_name("driver.c")
FLAGS = (
    "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-g", "-O1", "-pthread",
    f"-DPOOL_BYTES={POOL_BYTES}",
)  # fmt: skip
LATE = "#define pthread_cond_wait late_wait\n"  # which driver.c has
OUTCOMES = {0: "clean", 2: "wrong", 3: "hang", 66: "race", -11: "crash"}  # by the exit code
TSAN = "halt_on_error=1 exitcode=66 report_thread_leaks=0 handle_segv=0"
POOLS, PATIENCE = 60, 30  # of each caller; seconds without progress that a right pool never needs
FAULT_POOLS, FAULT_PATIENCE = 40, 3


def compile_driver(folder: Path, source: str, sanitizers: str) -> Path:
    """The driver with a pool, by gcc, which g++ brings along."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc")
    pool, driver = folder / "pool.c", folder / "driver"
    pool.write_text(LATE + source)
    sanitize = [f"-fsanitize={sanitizers}"] if sanitizers else []
    subprocess.run([gcc, *FLAGS, *sanitize, "-o", driver, pool, DRIVER], check=True)
    return driver


def outcome(driver: Path, pools: int, patience: int) -> tuple[str, str]:
    """What became of a run, and what it printed."""
    done = subprocess.run(
        [driver, str(pools), str(patience)],
        env={**os.environ, "TSAN_OPTIONS": TSAN},
        timeout=300,
        capture_output=True,
        text=True,
        check=False,
    )
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("this kernel's addresses are too random for gcc's ThreadSanitizer")
    return OUTCOMES.get(done.returncode, f"exit code {done.returncode}"), done.stderr


@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined", ""])
def test_the_pool(sanitizers, tmp_path):
    result, printed = outcome(
        compile_driver(tmp_path, SOURCE.read_text(), sanitizers), POOLS, PATIENCE
    )
    assert (result, printed) == ("clean", "")


@dataclass(frozen=True)
class Fault:
    """Replacements in pool.c, and what may become of it."""

    name: str
    outcomes: str
    replacements: tuple[tuple[str, str], ...]


def fault(name, outcomes, *texts):
    """``texts`` are old, new, old, new, …"""
    return Fault(name, outcomes, tuple(zip(texts[::2], texts[1::2], strict=True)))


FUNCTION = "    task_function *function = pool->function;\n"
CONTEXT = "    void *context = pool->context;\n"
COUNT = "    uint32_t count = (tasks - task) / 8 | 1;\n"
CLAIM = """!atomic_compare_exchange_weak_explicit(&pool->claim, &claim, claim + count,
                                               memory_order_acquire, memory_order_relaxed)"""
ADD = "    atomic_fetch_add_explicit(&pool->done, count, memory_order_release);\n"
PUBLISH = "  atomic_store_explicit(&pool->claim, tasks << SHIFT, memory_order_release);\n"
SET_STATE = "  atomic_store_explicit(&pool->state, (int32_t)state, memory_order_relaxed);\n"
LOCK = "  pthread_mutex_lock(pool->mutex);\n"
UNLOCK = "  pthread_mutex_unlock(pool->mutex);\n"
WAIT = "  while (atomic_load_explicit(&pool->done, memory_order_acquire) != tasks) rest(&times);\n"
WAKE = "pthread_cond_broadcast(pool->condition)"
OPEN = "bool open = atomic_load_explicit(&pool->state, memory_order_relaxed) == OPEN;"
FAULTS = (
    fault("a job begins without release", "race",
          "tasks << SHIFT, memory_order_release", "tasks << SHIFT, memory_order_relaxed"),
    fault("a claim doesn't acquire", "race",
          CLAIM, CLAIM.replace("acquire", "relaxed")),
    fault("a count doesn't release", "race",
          "count, memory_order_release", "count, memory_order_relaxed"),
    fault("a caller goes on without acquire", "race",
          "&pool->done, memory_order_acquire", "&pool->done, memory_order_relaxed"),
    fault("a job begins before its context is there", "race crash",
          "  pool->context = context;\n", "",
          PUBLISH, f"{PUBLISH}  pool->context = context;\n"),
    fault("a function is read before its claim", "race",
          FUNCTION, "", COUNT, f"{FUNCTION}{COUNT}"),
    fault("a context is read before its claim", "race",
          CONTEXT, "", COUNT, f"{CONTEXT}{COUNT}"),
    fault("a function is read after its count", "race crash",
          ADD, f"{ADD}    if (pool->function == NULL) return;\n"),
    fault("tasks are claimed without a comparison", "race wrong hang",
          CLAIM, "(atomic_store(&pool->claim, claim + count), false)"),
    fault("no task is claimed", "hang", "/ 8 | 1", "/ 8"),
    fault("more is claimed than is left", "race wrong hang crash", "/ 8 | 1", "/ 8 | 3"),
    fault("the last claimed task isn't run", "wrong hang", "task < end;", "task + 1 < end;"),
    fault("tasks aren't counted", "hang", ADD, ""),
    fault("one task of those claimed is counted", "hang", "&pool->done, count,", "&pool->done, 1,"),
    fault("done is not set back", "race wrong hang",
          "  atomic_store_explicit(&pool->done, 0, memory_order_relaxed);\n", ""),
    fault("done is set back after the beginning", "race wrong hang",
          "  atomic_store_explicit(&pool->done, 0, memory_order_relaxed);\n", "",
          PUBLISH, f"{PUBLISH}  rest(&(uint32_t){{0}});\n  atomic_store(&pool->done, 0);\n"),
    fault("a caller doesn't wait", "race wrong", WAIT, "  (void)times;\n"),
    fault("a function without a pool begins a job", "crash", "pool == NULL || ", ""),
    fault("the last call is left out", "wrong", "n < count;", "n + 1 < count;"),
    fault("no call is timed", "wrong", "clock_gettime(vdla_clock, times[n]);", "(void)times;"),
    fault("the state is set without the mutex", "hang",
          f"{LOCK}{SET_STATE}{UNLOCK}", SET_STATE),
    fault("nobody is woken", "hang", WAKE, "(void)0"),
    fault("one thread is woken", "hang",
          WAKE, f"{{ int pthread_cond_signal(void *); {WAKE.replace('broadcast', 'signal')}; }}"),
    fault("nobody is woken for the end", "hang", "if (state != CLOSED)", "if (state == OPEN)"),
    fault("the mutex is kept after a wait", "hang", f"{UNLOCK}  return state;", "  return state;"),
    fault("a thread never falls asleep, nor ends", "hang",
          "idle = open ? 0 : idle + 1;", "idle = open ? 0 : 0;"),
    fault("a thread falls asleep while the pool is open", "hang",
          "while (sleep_while_closed(pool) != OVER)", "if (sleep_while_closed(pool) != OVER)",
          "idle = open ? 0 : idle + 1;", "idle = open ? idle + 1 : idle + 1;"),
    fault("the state is read as plain memory", "race",
          OPEN, "bool open = *(int32_t *)&pool->state == OPEN;"),
    fault("the claim isn't set at first", "race wrong hang crash",
          "  atomic_init(&pool->claim, 0);\n", ""),
)  # fmt: skip


@pytest.mark.parametrize("planted", FAULTS, ids=lambda planted: planted.name.replace(" ", "-"))
def test_planted_faults_are_found(planted, tmp_path):
    source = SOURCE.read_text()
    for old, new in planted.replacements:
        assert source.count(old) == 1, f"pool.c: expected once, found {source.count(old)}: {old}"
        source = source.replace(old, new)
    driver = compile_driver(tmp_path, source, "thread")
    result, printed = outcome(driver, FAULT_POOLS, FAULT_PATIENCE)
    assert result in planted.outcomes.split(), printed
