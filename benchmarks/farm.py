"""Costs of a farm of Dask's on this machine, and its losses when its parts are killed.

    python benchmarks/farm.py [--json] [--jobs N]

Schedulers and workers are processes of this machine that talk over loopback, with certificates.

- ``jobs_per_second``: jobs that do nothing, through two workers, in batches;
- ``speedup``: of two workers over one, for jobs that compute for 50 ms each; beside it what the
  second process of a local pool wins at the same time (``speedup_of_a_local_pool``), and what the
  second worker wins for jobs that sleep (``speedup_of_waiting``), which others don't slow down;
- ``losses``: N jobs of 0.1 s over four workers, while a worker's process is killed every 5 s, and
  the scheduler's once; their parents start them again. How many results came, how many different
  ones, and the time as a multiple of the ideal one, N / 40 s.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from vdla.farm.address import Address
from vdla.farm.certificates import CLIENT, credentials
from vdla.farm.client import Farm
from vdla.farm.processes import ProcessPool
from vdla.farm.work import Job, JobPool

JOB_SECONDS, WORKERS, KILL_SECONDS = 0.1, 4, 5.0
RESTART = 12.0  # seconds until the scheduler is killed
SHORT_SECONDS, SHORT_JOBS, NOTHINGS = 0.05, 160, 5000
STARTING = 60.0  # seconds that processes have to start


def nothing(number: int) -> int:
    """A job that costs nothing."""
    return number


def wait(number: int, seconds: float) -> int:
    """A job that sleeps."""
    time.sleep(seconds)
    return number


def compute(number: int, seconds: float) -> int:
    """A job that keeps a processor busy for so long."""
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        pass
    return number


class LocalFarm:
    """A farm of processes of this machine; use it in a ``with`` statement.

    Args:
        workers: the options of each worker.
    """

    def __init__(self, *workers: Sequence[str]) -> None:
        self.folder = TemporaryDirectory(prefix="farm-")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = Address("tls", *free.getsockname())
        self.scheduler = self.start_scheduler()
        self.workers = [
            self._start("worker", self.address, "--processes", 1, *options) for options in workers
        ]
        self.client = Farm(self.address, credentials(Path(self.folder.name), CLIENT), log)
        self.wait_for_workers()

    def start_scheduler(self) -> subprocess.Popen[str]:
        """Starts a scheduler, and waits until it listens."""
        result = self._start("farm", "up", "--port", self.address.port, "--json")
        assert result.stdout is not None
        assert json.loads(result.stdout.readline())["address"] == str(self.address)
        return result

    def _start(self, *args: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "vdla", *args, "--folder", self.folder.name]
        return subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def wait_for_workers(self) -> None:
        """Returns once all have joined."""
        end = time.monotonic() + STARTING
        while len(self.client.status().workers) < len(self.workers):
            if time.monotonic() > end:
                sys.exit("farm: expected all workers to join, found some that didn't")
            time.sleep(0.1)

    def kill_worker(self, number: int) -> None:
        """Kills a worker's process, which its parent starts again."""
        _kill_child(self.workers[number].pid)

    def kill_scheduler(self) -> None:
        """Kills the scheduler's process, which its parent starts again."""
        _kill_child(self.scheduler.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.client.close()
        for each in (*self.workers, self.scheduler):
            each.terminate()
        for each in (*self.workers, self.scheduler):
            each.communicate()
        self.folder.cleanup()


def _kill_child(parent: int) -> None:
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)


def log(text: str) -> None:
    """Says something on stderr."""
    print(text, file=sys.stderr, flush=True)


def seconds(pool: JobPool, jobs: list[Job[int]]) -> float:
    """Seconds that jobs take, each of which gives its number."""
    begin = time.monotonic()
    answers = {number: answer.value for number, answer in pool.run(jobs)}
    assert answers == {number: number for number in range(len(jobs))}
    return time.monotonic() - begin


def short_jobs() -> tuple[list[Job[int]], list[Job[int]]]:
    """Jobs that compute, and jobs that wait."""
    computing = [Job(compute, (n, SHORT_SECONDS)) for n in range(SHORT_JOBS)]
    return computing, [Job(wait, (n, SHORT_SECONDS)) for n in range(SHORT_JOBS)]


def throughput() -> dict[str, float]:
    """Jobs per second, and what a second worker wins."""
    times = []
    for workers in (1, 2):
        with LocalFarm(*[()] * workers) as farm, ProcessPool(workers) as local:
            for pool in (farm.client, local):
                seconds(pool, [Job(wait, (n, 0.0)) for n in range(4 * workers)])  # they start
            computing, waiting = short_jobs()
            local_time = seconds(local, computing)
            times.append(
                (seconds(farm.client, computing), seconds(farm.client, waiting), local_time)
            )
            if workers == 2:
                jobs = [Job(nothing, (n,)) for n in range(NOTHINGS)]
                rate = NOTHINGS / seconds(farm.client, jobs)
    compute_speedup, wait_speedup, local_speedup = (
        round(one / two, 2) for one, two in zip(*times, strict=True)
    )
    return {
        "jobs_per_second": round(rate),
        "speedup": compute_speedup,
        "speedup_of_a_local_pool": local_speedup,
        "speedup_of_waiting": wait_speedup,
    }


def losses(jobs: int) -> dict[str, float]:
    """Counts of jobs that run while workers and the scheduler are killed, of their results and of
    kills; seconds.
    """
    with LocalFarm(*[()] * WORKERS) as farm:
        seconds(farm.client, [Job(wait, (n, 0.0)) for n in range(4 * WORKERS)])  # processes start
        end = threading.Event()
        killed = []

        def kill() -> None:
            while not end.wait(KILL_SECONDS):
                farm.kill_worker(len(killed) % WORKERS)
                killed.append(time.monotonic())

        def restart() -> None:
            if not end.wait(min(RESTART, jobs * JOB_SECONDS / WORKERS / 2)):
                farm.kill_scheduler()

        threads = [threading.Thread(target=each) for each in (kill, restart)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        values = [
            a.value for _, a in farm.client.run(Job(wait, (n, JOB_SECONDS)) for n in range(jobs))
        ]
        took = time.monotonic() - begin
        end.set()
        for thread in threads:
            thread.join()
    ideal = jobs * JOB_SECONDS / WORKERS
    return {
        "jobs": jobs,
        "results": len(values),
        "different_results": len(set(values) & set(range(jobs))),
        "workers_killed": len(killed),
        "seconds": round(took, 1),
        "times_ideal": round(took / ideal, 2),
    }


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description="what a farm costs, and what it loses")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--jobs", type=int, default=1000)
    given = parser.parse_args()
    figures: dict[str, object] = {**throughput(), "losses": losses(given.jobs)}
    if given.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name.replace('_', ' ')}: {value}")


if __name__ == "__main__":
    main()
