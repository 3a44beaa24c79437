"""Reach of one scheduler: a farm of up to 1,000 simulated workers whose jobs sleep.

    python benchmarks/scaling.py [--workers 10,100,1000] [--seconds 1,10] [--json] [--plot F.svg]

The scheduler is a process of its own (``vdla farm up``) and every worker a connection of its own
with certificates; many of them share a process, and a job is a thread that sleeps. So this machine
stands for many, and what is measured is the scheduler's: jobs per second, its time on a processor
for each job, its memory. A farm of W workers with jobs of S seconds wants W / S jobs per second.

- ``busy``: the share of the workers' time in which they had a job; 1 is ideal;
- ``scheduler_ms``: milliseconds on a processor for each job, the cost of a batch of one job; its
  inverse is where a scheduler with a processor to itself saturates;
- ``scheduler_mb``: its memory with all workers there, after the jobs.

The last rows are of one worker's process without any farm, and of the log that records go to.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from farm import LocalFarm, wait
from vdla.compiler.search.records import Log, load
from vdla.compiler.targets.accelerator.search.tile_records import BUNDLED_PATH, TileRecord
from vdla.farm import dask
from vdla.farm.address import Address
from vdla.farm.batches import Done
from vdla.farm.certificates import WORKER, Credentials, credentials
from vdla.farm.processes import ProcessPool
from vdla.farm.work import Answer, Job

HOSTS = 2  # processes that the simulated workers share
ROUNDS = 3  # jobs that each worker has on average
JOINING = 300.0  # seconds that workers have to join
# What each worker does beside its jobs, many times a second: hundreds in a process would do nothing
# else.
QUIET = {
    "distributed.admin.tick.interval": "10s",
    "distributed.admin.system-monitor.interval": "10s",
}


@dataclass(frozen=True)
class Row:
    """A farm of simulated workers, with jobs of so many seconds."""

    workers: int
    seconds: float
    jobs: int
    jobs_per_second: float
    busy: float
    scheduler_ms: float
    scheduler_mb: float


class Sleeper:
    """Stands in for a worker's processes: does jobs in the thread that asks."""

    def do(self, name: str, data: bytes) -> bytes:
        """Does a batch of pickled jobs."""
        began, answers = time.monotonic(), []
        for job in pickle.loads(data):
            function, args = pickle.loads(job.call)
            answers.append(Answer(function(*args)))  # which gives bytes
        return pickle.dumps(Done(tuple(answers), time.monotonic() - began))

    def stop(self, names: list[str]) -> None:
        """Nothing: what sleeps wakes up by itself."""

    def close(self) -> None:
        """Nothing: there are no processes."""


def host(address: Address, folder: Path, count: int) -> None:
    """Runs simulated workers, until their scheduler is gone."""
    dask.Bench = lambda *_: Sleeper()
    dask.SETTINGS.update(QUIET)
    dask._configure()
    proof = credentials(folder, WORKER)

    async def run() -> None:
        with TemporaryDirectory() as scratch:
            workers = []
            for number in range(count):
                own = _worker(address, proof, f"{scratch}/{number}", number)
                workers.append(own)
                await own
            await asyncio.gather(*(worker.finished() for worker in workers))

    asyncio.run(run())


def _worker(address: Address, proof: Credentials, scratch: str, number: int) -> dask._Worker:
    worker = dask._make_worker(address, proof, 1, (), scratch, "127.0.0.1")
    worker.name = f"{os.getpid()}-{number}"
    return worker


@contextmanager
def simulated_farm(workers: int) -> Iterator[LocalFarm]:
    """A farm with simulated workers."""
    context = get_context("spawn")
    with LocalFarm() as farm:
        shares = [workers // HOSTS + (n < workers % HOSTS) for n in range(HOSTS)]
        folder = Path(farm.folder.name)
        hosts = [
            context.Process(target=host, args=(farm.address, folder, share), daemon=True)
            for share in shares
        ]
        for each in hosts:
            each.start()
        _wait_for(farm, workers)
        yield farm
        for each in hosts:
            each.kill()


def _wait_for(farm: LocalFarm, workers: int) -> None:
    """Waits until all workers have joined."""
    end = time.monotonic() + JOINING
    while len(farm.client.status().workers) < workers:
        if time.monotonic() > end:
            raise RuntimeError(f"expected {workers} workers within {JOINING:g} s, found fewer")
        time.sleep(1)


def measure(workers: int, seconds: float) -> Row:
    """Some jobs for each worker of a farm."""
    with simulated_farm(workers) as farm:
        scheduler = _child(farm.scheduler.pid)
        list(farm.client.run(Job(wait, (n, 0.01)) for n in range(workers)))  # all have had one
        count, cpu, began = ROUNDS * workers, _cpu_seconds(scheduler), time.monotonic()
        answers = farm.client.run(Job(wait, (n, seconds)) for n in range(count))
        values = {answer.value for _, answer in answers}
        took = time.monotonic() - began
        assert values == set(range(count))
        spent = _cpu_seconds(scheduler) - cpu
        return Row(
            workers, seconds, count, count / took, count * seconds / (workers * took),
            1000 * spent / count, _memory_mb(scheduler),
        )  # fmt: skip


def _child(process: int) -> int:
    """The process that another one watches over."""
    (child,) = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return int(child)


def _cpu_seconds(process: int) -> float:
    """Seconds that a process has been on a processor."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(process: int) -> float:
    """The memory that a process has."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def one_process(count: int = 2000) -> float:
    """Jobs per second of one process of this machine, for jobs that take no time."""
    with ProcessPool(1) as pool:
        list(pool.run([Job(wait, (0, 0.0))]))
        began = time.monotonic()
        list(pool.run(Job(wait, (n, 0.0)) for n in range(count)))
        return count / (time.monotonic() - began)


def log_growth(count: int = 500) -> tuple[float, float]:
    """The bytes of a record in a log, and records per second that are safe on the disk."""
    with TemporaryDirectory() as name:
        records = load(BUNDLED_PATH, TileRecord)
        with Log(Path(name) / "log.jsonl", TileRecord) as log:
            began = time.monotonic()
            for n in range(count):
                log.append(records[n % len(records)])
            return log.size / count, count / (time.monotonic() - began)


def plot(rows: list[Row], path: Path) -> None:
    """Jobs per second over the workers there are, beside those that these want."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for n, seconds in enumerate(sorted({row.seconds for row in rows})):
        own = [row for row in rows if row.seconds == seconds]
        counts = [row.workers for row in own]
        axes.plot(
            counts, [row.jobs_per_second for row in own], f"C{n}o-", label=f"jobs of {seconds:g} s"
        )
        axes.plot(
            counts, [count / seconds for count in counts], f"C{n}:", label=f"ideal, {seconds:g} s"
        )
    limit = 1000 / min(row.scheduler_ms for row in rows)
    axes.axhline(limit, color="grey", linestyle="--", label=f"a scheduler's limit, {limit:.0f}/s")
    axes.set(xscale="log", yscale="log", xlabel="workers", ylabel="jobs per second")
    axes.legend()
    figure.savefig(path, bbox_inches="tight")


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", default="10,100,1000")
    parser.add_argument("--seconds", default="1,10")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    console, log = Console(), Console(stderr=True)
    rows = []
    for workers in map(int, arguments.workers.split(",")):
        for seconds in map(float, arguments.seconds.split(",")):
            rows.append(measure(workers, seconds))
            log.print(rows[-1], style="dim")
    size, rate = log_growth()
    others = {"one_process_jobs_per_second": one_process(), "log_bytes_per_record": size,
              "log_records_per_second": rate}  # fmt: skip
    if arguments.plot:
        plot(rows, arguments.plot)
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], **others}))
        return
    table = Table(*asdict(rows[0]))
    for row in rows:
        table.add_row(*(f"{value:.3g}" for value in asdict(row).values()))
    console.print(table)
    for name, value in others.items():
        console.print(f"{name}: {value:,.0f}")


if __name__ == "__main__":
    main()
