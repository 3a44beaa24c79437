"""Commands of a farm: its scheduler, its workers, and what they do."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from vdla.commands.output import console, log, print_json, table
from vdla.farm import dask
from vdla.farm.address import ENCRYPTED, INSIST, PLAIN, Address, free_port
from vdla.farm.bench import read_resources
from vdla.farm.certificates import (
    CLIENT,
    SCHEDULER,
    WORKER,
    Credentials,
    complete,
    credentials,
    default_folder,
)
from vdla.farm.status import Status, WorkerStatus
from vdla.farm.supervisor import stopped_by_signals, supervise
from vdla.names.farms import access


def up(
    listen: tuple[str, int], folder: Path | None, plain: bool, dashboard: bool, json: bool
) -> None:
    """Runs a scheduler until it is ended; says how to join it.

    Args:
        listen: host and port.
        folder: where the certificates are, or are made.
        plain: whether nothing is encrypted, and nobody proves who they are.
    """
    host, port = listen
    address = Address(PLAIN if plain else ENCRYPTED, host, port or free_port(host))
    home = (folder or default_folder()).absolute()
    proof = None
    if not plain:
        complete(home)
        proof = credentials(home, SCHEDULER)

    def ready(contact: str) -> None:
        join = shlex.join([_own_command(), "worker", contact, *_access(proof, home)])
        if json:
            print_json({"address": contact, "join": join, "folder": None if plain else str(home)})
        else:
            _print_up(contact, join, proof)
        sys.stdout.flush()  # whoever started this may wait for it

    serve = partial(dask.serve, address, proof, dashboard)
    stopped_by_signals(partial(supervise, serve, partial(_say, f"farm at {address}"), ready))


def _say(who: str, line: str) -> None:
    log.print(f"{who}: {line}")


def _own_command() -> str:
    """Command to type for the ``vdla`` that runs."""
    own = Path(sys.argv[0]).absolute()
    return "vdla" if shutil.which("vdla") == str(own) else str(own)


def _access(proof: Credentials | None, home: Path) -> list[str]:
    return [INSIST] if proof is None else ["--folder", str(home)]


def _print_up(contact: str, join: str, proof: Credentials | None) -> None:
    if proof is None:
        console.print(f"a farm at {contact}, where anyone who reaches it can run code")
    else:
        console.print(f"{proof.farm} at {contact}; its certificates expire on {proof.expiry:%F}")
    console.print(f"to join it: {join}")
    if proof is not None:
        console.print(
            "on another machine: copy ca.pem, worker.pem and worker-key.pem to a folder there "
            "first, and give that as --folder"
        )


def status(text: str, folder: Path | None, plain: bool, json: bool) -> None:
    """Prints a farm's workers, their resources, and its jobs."""
    address, proof = access(text, folder, plain, CLIENT)
    actual = dask.status(address, proof)
    if json:
        print_json({"address": str(address), **asdict(actual)})
    else:
        _print_status(address, actual)


def _print_status(address: Address, actual: Status) -> None:
    rows = [
        (each.name, each.address, each.processes, each.running, ", ".join(_resources(each)))
        for each in actual.workers
    ]
    table(f"workers of {address}", ("worker", "address", "processes", "jobs", "resources"), rows)
    console.print(
        f"jobs: {actual.queued} wait, {actual.running} run, {actual.done} are done, "
        f"{actual.jobs_per_second:.1f} per second"
    )


def _resources(worker: WorkerStatus) -> list[str]:
    """A worker's resources as they were typed, and whether they were lost."""
    named = [f"{name}={value}" if value else name for name, value in worker.resources]
    lost = [name for name, count in worker.counts.items() if count == 0]
    return named + [f"{name} is lost" for name in lost]


def down(text: str, folder: Path | None, plain: bool) -> None:
    """Ends a farm's workers and its scheduler."""
    address, proof = access(text, folder, plain, CLIENT)
    dask.take_down(address, proof)
    log.print(f"{address}: the farm is down")


def worker(
    text: str, folder: Path | None, plain: bool, processes: int | None, resources: Sequence[str]
) -> None:
    """Does a farm's jobs until the farm is taken down."""
    address, proof = access(text, folder, plain, WORKER)
    held = read_resources(resources)
    count = processes or len(os.sched_getaffinity(0))
    with TemporaryDirectory(prefix="vdla-worker-") as scratch:
        join = partial(dask.work, address, proof, count, held, scratch)
        stopped_by_signals(partial(supervise, join, partial(_say, f"worker of {address}")))
