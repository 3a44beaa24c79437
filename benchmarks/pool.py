"""Costs of parallel loops on two threads: microseconds of small functions, each a job of the pool.

    python benchmarks/pool.py [REVISION]

With a revision of the repository, of which the pool has the same numbers, its pool and this one run
by turns in one process on the same data, and the ratio of their times is printed: this one's over
that one's. A block of calls lasts about a millisecond, and a tenth of all blocks take less than the
time that is printed, so that other processes matter little. Objects are compiled and loaded six
times, since places in memory matter.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np

from vdla import te
from vdla.compiler.targets.processor.codegen import builtins, llvm
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.runtime.calls import Calls
from vdla.runtime.module import HostCode
from vdla.runtime.native import NativeLibrary, host_machine
from vdla.runtime.threads import Pool

ROOT = Path(__file__).parent.parent
CODE, TEXTS = "compiler/targets/processor/codegen/builtins.py", "runtime/pool/pool64.ll"
CASES = ((64, 16, 30, 8), (256, 32, 30, 4), (512, 128, 10, 2), (64, 16, 1, 40))
OBJECTS, SECONDS, THREADS = 6, 18.0, 2
Text = Callable[[Processor], str]


def text_of(revision: str, folder: Path) -> Text:
    """``builtins_ir`` of a revision, with its own LLVM text."""
    (folder / "builtins.py").write_text(git_show(revision, CODE) or "")
    (folder / "pool64.ll").write_text(git_show(revision, TEXTS) or "")
    names: dict[str, object] = {"__name__": "builtins_of_revision"}
    exec(compile((folder / "builtins.py").read_text(), CODE, "exec"), names)
    if "files" in names:
        names["files"] = lambda _: folder
    return names["builtins_ir"]  # type: ignore[return-value]


def git_show(revision: str, path: str) -> str | None:
    """A file of a revision, None where it has none."""
    done = subprocess.run(
        ["git", "show", f"{revision}:{path}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return None if done.returncode else done.stdout


def aligned(rows: int, columns: int) -> np.ndarray:
    """Ones that begin at a cache line."""
    raw = np.ones(rows * columns + 16, np.float32)
    first = -raw.ctypes.data % 64 // 4
    return raw[first : first + rows * columns].reshape(rows, columns)


def calls(text: Text, arrays: tuple[np.ndarray, np.ndarray], count: int) -> Calls:
    """``count`` calls in a row of a function whose rows are shared by threads."""
    a = te.placeholder(arrays[0].shape, "float32", "a")
    out = te.compute(a.shape, lambda i, j: te.exp(a[i, j]) * 2.0, "out")
    s = te.create_schedule(out, [a], "rows")
    s[out].parallel(s[out].axis[0])
    with mock.patch.object(llvm, "builtins_ir", text):
        code = llvm.compile_object([s.lower()])
    library = NativeLibrary(HostCode(code, *host_machine(), {}))
    addresses = [array.ctypes.data for array in arrays]
    return Calls(library, [("rows", addresses)] * count, Pool(library, THREADS))


def seconds(each: Calls, runs: int) -> float:
    """Seconds of one run, of so many."""
    begin = time.perf_counter()
    for _ in range(runs):
        each.run()
    return (time.perf_counter() - begin) / runs


def tenth(times: list[float]) -> float:
    """Time that a tenth of the times is below."""
    return sorted(times)[len(times) // 10]


def measure(texts: list[Text], case: tuple[int, int, int, int]) -> list[list[float]]:
    """Microseconds of a call with each text, for each time that the objects are made."""
    rows, columns, count, runs = case
    arrays = aligned(rows, columns), aligned(rows, columns)
    results = []
    for number in range(OBJECTS):
        order = list(range(len(texts)))[:: 1 if number % 2 else -1]
        made = {k: calls(texts[k], arrays, count) for k in order}
        for each in made.values():
            seconds(each, 50)
        times: list[list[float]] = [[] for _ in texts]
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            for k in order:
                time.sleep(3e-4)  # the other one's thread falls asleep
                times[k].append(seconds(made[k], runs))
            order.reverse()
        results.append([1e6 * tenth(each) / count for each in times])
    return results


def main() -> None:
    """Prints a line for each case."""
    texts: list[Text] = [builtins.builtins_ir]
    with TemporaryDirectory() as folder:
        if len(sys.argv) > 1:
            texts.append(text_of(sys.argv[1], Path(folder)))
        for case in CASES:
            results = measure(texts, case)
            rows, columns, count, _ = case
            line = f"{rows} x {columns}, {count} in a row: {median(r[0] for r in results):.2f} us"
            if len(texts) > 1:
                ratios = [new / old for new, old in results]
                line += (
                    f", ratio {geometric_mean(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
                )
            print(line, flush=True)


if __name__ == "__main__":
    main()
