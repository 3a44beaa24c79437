"""Simulated cycles per second on the ResNet-18 stream.

    python benchmarks/simulator_speed.py [--runs 5]
    python benchmarks/simulator_speed.py --against COMMIT [-c paper -c paper-full] [--runs 5]

One core, with the loops compiled before. ``--against`` runs today's simulator and that of a commit
in turns, on streams that today's compiler made for some configs, and prints how much faster today's
is: the ratio of the shortest times, timing alone and with numbers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

import vdla
from vdla import api, options
from vdla.isa.program import Program
from vdla.runtime.devices.named import module_config
from vdla.sim.machine import Run, run_stream
from vdla.sim.stream import Stream

ROOT = Path(__file__).resolve().parents[1]
PEERS = (
    ("VTA tsim (Verilator), ResNet-18", 31.4e6 / 227.73, "apache/tvm#4986"),
    ("SCALE-Sim v3, ResNet-18 layer 0", 485_840 / 108, "measured: 485,840 cycles in 108 s"),
    ("Gemmini, Verilator, 8 threads", 120e3, "NVlabs/GEM#11"),
)
# What a revision's process does: told "go", it runs once and prints the cycles and seconds.
TURN = """
import sys, time
import numpy as np
from vdla.isa.config import load_config
from vdla.isa.program import Program
from vdla.sim.machine import run_stream
from vdla.sim.stream import Stream
stored = np.load(sys.argv[1])
program = Program.from_bytes(stored["program"].tobytes(), load_config(sys.argv[2]))
stream, numerics = Stream.of(program.config, program.instructions, program.base), sys.argv[3] == "1"
run_stream(stream, stored["dram"].copy(), numerics=numerics)
print("ready", flush=True)
for line in sys.stdin:
    dram, start = stored["dram"].copy(), time.thread_time()
    cycles = run_stream(stream, dram, numerics=numerics).cycles
    print(cycles, time.thread_time() - start, flush=True)
"""


def speed(run: Callable[[], Run], runs: int) -> tuple[int, float]:
    """Cycles of a run, and the median cycles per second."""
    run()
    rates = []
    for _ in range(runs):
        start = time.perf_counter()
        cycles = run().cycles
        rates.append(cycles / (time.perf_counter() - start))
    return cycles, median(rates)


def stored_stream(config: str, folder: Path) -> Path:
    """ResNet-18's program for a config with DRAM behind a run, as arrays in a file."""
    module = vdla.compile("resnet18", config)
    ready, _ = api.prepare(module, options.Run())
    ready.run(api.random_inputs(module))
    path = folder / f"{config}.npz"
    program = np.frombuffer(module.programs["program0"], np.uint8)
    np.savez(path, program=program, dram=np.asarray(ready.dram))
    return path


def tree_of(commit: str, folder: Path) -> Path:
    """A folder with the package as a commit, or git's tree, has it, to be put on Python's path.

    Raises:
        SystemExit: there is no such commit.
    """
    tree = folder / "tree"
    done = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"--against: expected a commit of this repository, found {commit}")
    tree.mkdir()
    subprocess.run(["tar", "x"], cwd=tree, input=done.stdout, check=True)
    for room in ("boards", "compiler", "explore", "farm", "hw", "isa", "runtime", "sim", "support"):
        if (tree / room).exists():
            (tree / "vdla" / room).symlink_to(tree / room)
    return tree


def turns(trees: list[Path | None], arguments: list[str], runs: int) -> list[float]:
    """The shortest seconds of each tree's simulator, which run one after another, ``runs`` times;
    None is the installed package.

    Raises:
        RuntimeError: they count different cycles.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", TURN, *arguments], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(tree or "")},
        )
        for tree in trees
    ]  # fmt: skip
    best, counted = [float("inf")] * len(trees), set()
    for process in processes:
        _line(process)  # ready
    for _ in range(runs):
        for number, process in enumerate(processes):
            print("go", file=process.stdin, flush=True)
            cycles, seconds = _line(process).split()
            counted.add(int(cycles))
            best[number] = min(best[number], float(seconds))
    for process in processes:
        process.communicate()
    if len(counted) != 1:
        raise RuntimeError(f"expected the same cycles of both, found {counted}")
    return best


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    if line := process.stdout.readline():
        return line
    sys.exit("--against: expected a simulator that runs today's programs, found one that ended")


def against(commit: str, configs: list[str], runs: int) -> None:
    """Prints how today's simulator compares with a commit's."""
    table = Table("config", "runs", f"{commit}, s", "today, s", "today's speed")
    with TemporaryDirectory() as name:
        folder = Path(name)
        then = tree_of(commit, folder)
        for config in configs:
            path = stored_stream(config, folder)
            for what, numerics in (("timing alone", "0"), ("with numerics", "1")):
                before, after = turns([then, None], [str(path), config, numerics], runs)
                row = f"{before:.4f}", f"{after:.4f}", f"{before / after:.3f}"
                table.add_row(config, what, *row)
    Console().print(table)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--against", metavar="COMMIT")
    parser.add_argument("-c", "--config", action="append", help="default: paper and paper-full")
    arguments = parser.parse_args()
    runs = arguments.runs
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core
    if arguments.against:
        against(arguments.against, arguments.config or ["paper", "paper-full"], runs)
        return
    module = vdla.compile("resnet18")
    ready, _ = api.prepare(module, options.Run())
    ready.run(api.random_inputs(module))
    program = Program.from_bytes(module.programs["program0"], module_config(module))
    stream = Stream.of(program.config, program.instructions, program.base)
    table = Table("simulator", "Mcycles/s", "source")
    for name, numerics in (("vdla, with numerics", True), ("vdla, timing alone", False)):
        cycles, rate = speed(lambda: run_stream(stream, ready.dram, numerics=numerics), runs)
        table.add_row(name, f"{rate / 1e6:.2f}", f"this run: {cycles:,} cycles")
    for name, rate, source in PEERS:
        table.add_row(name, f"{rate / 1e6:.4f}", source)
    Console().print(table)


if __name__ == "__main__":
    main()
