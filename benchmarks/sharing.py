"""Gain by a second process, for all who share their work: a search, lockstep, the fuzz.

    python benchmarks/sharing.py [--json] [--of tune,lockstep,fuzz]

Each does the same work with one process of this machine, with two, and with two workers of a farm
on this machine. Processes are started, and have made what they keep, before anything is timed.
``local`` and ``farm`` are how many times faster two are than one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from farm import LocalFarm

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import fuzz

from vdla.analysis.lockstep import RTL, lockstep_in_parallel
from vdla.api import tuning
from vdla.compiler.search import tuner
from vdla.compiler.search.records import Log
from vdla.compiler.search.tuner import TuneOptions
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.farm.processes import ProcessPool
from vdla.farm.work import JobPool
from vdla.isa.config import load_config
from vdla.options import Tune

MODEL, LAYER, TRIALS = "resnet18-convs", "C3", 160
CONFIG, PROGRAMS = "tiny", 3000
PAIRS = 150


@dataclass(frozen=True)
class Row:
    """Seconds of some work, and what two processes win."""

    work: str
    one_s: float
    two_s: float
    farm_s: float
    local: float
    farm: float


def tune(pool: JobPool, share: float) -> None:
    """A search for one layer's tiles."""
    with TemporaryDirectory() as name:
        path = Path(name) / "log.jsonl"
        tasks = tuning.tile_tasks(MODEL, Tune(path, "paper", layer=LAYER))
        how = TuneOptions(trials=round(TRIALS * share))
        with Log(path, TileRecord) as log:
            tuner.tune(tasks, log, how, pool)


def lockstep(pool: JobPool, share: float) -> None:
    """Random programs on simulator and RTL."""
    config = load_config(CONFIG)
    for _ in lockstep_in_parallel(config, round(PROGRAMS * share), 0, pool=pool, memories=1):
        pass


def pairs(pool: JobPool, share: float) -> None:
    """Random networks on random configs."""
    report = fuzz.fuzz(0, round(PAIRS * share), pool=pool)
    assert not report.failed


WORK: dict[str, Callable[[JobPool, float], None]] = {
    "tune": tune, "lockstep": lockstep, "fuzz": pairs,
}  # fmt: skip


def measure(work: str) -> Row:
    """One kind of work, by each pool."""
    one, two = (_seconds(work, ProcessPool(resources=[{RTL: ""}] * n)) for n in (1, 2))
    options = ("--resource", RTL)
    with LocalFarm(options, options) as farm:
        through = _seconds(work, farm.client)
    return Row(work, one, two, through, one / two, one / through)


def _seconds(work: str, pool: JobPool) -> float:
    with pool:
        WORK[work](pool, 0.1)
        began = time.monotonic()
        WORK[work](pool, 1.0)
        return time.monotonic() - began


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--of", default=",".join(WORK))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [measure(work) for work in arguments.of.split(",")]
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    table = Table(*asdict(rows[0]))
    for row in rows:
        table.add_row(row.work, *(f"{value:.3g}" for value in list(asdict(row).values())[1:]))
    Console().print(table)


if __name__ == "__main__":
    main()
