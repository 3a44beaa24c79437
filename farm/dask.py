"""The engine of a farm: Dask's scheduler, workers and clients. No other file imports Dask.

Dask unpickles what a peer sends, so whoever may connect may run code. Therefore both ends of each
connection must have a certificate of the farm's own authority, and no other port is opened: the
HTTP server that Dask starts even without its dashboard is not.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import signal
import time
from asyncio import CancelledError
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import Any, NoReturn

from vdla.farm.address import Address, listening_fault, probe
from vdla.farm.batches import DEATHS, Batch, Disconnected, WorkersDown
from vdla.farm.bench import Bench
from vdla.farm.certificates import Credentials
from vdla.farm.identity import Identity, identity
from vdla.farm.status import Status
from vdla.farm.supervisor import Down, Refusal, Say
from vdla.farm.work import FarmError
from vdla.support.install import pip_install

try:
    import dask
    from distributed import Client, KilledWorker, Scheduler, SchedulerPlugin, Worker, get_worker
    from distributed.comm import connect
    from distributed.security import Security
except ImportError:
    raise FarmError(
        f"a farm: expected the package distributed, found none; install it with: "
        f"{pip_install('farm')}"
    ) from None

WORKER_SECONDS = 60  # without a sign of life, until a worker counts as gone
RATE_SECONDS = 10.0  # over which jobs are counted
ANSWER_SECONDS = 30  # that a scheduler has to answer
DASHBOARD = "127.0.0.1:8787"
DISCONNECTED = (OSError, RuntimeError, CancelledError)  # what Dask raises without a scheduler
SETTINGS = {
    "distributed.worker.daemon": False,
    "distributed.comm.timeouts.connect": "10s",
    "distributed.admin.large-graph-warning-threshold": "1GB",
    "distributed.worker.profile.enabled": False,  # it looks a hundred times a second
    "distributed.scheduler.work-stealing-interval": "100ms",  # for workers that have come back
    "distributed.scheduler.allowed-failures": DEATHS - 1,
    "distributed.scheduler.worker-ttl": f"{WORKER_SECONDS}s",
}


def _configure() -> None:
    """Sets what this machine's configuration of Dask might have otherwise; keeps Dask quiet."""
    dask.config.set(SETTINGS)
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _security(credentials: Credentials | None) -> Security:
    if credentials is None:
        return Security(require_encryption=False)
    files = {"cert": str(credentials.certificate), "key": str(credentials.key)}
    roles = ("scheduler", "worker", "client")
    pairs = {f"tls_{role}_{kind}": file for role in roles for kind, file in files.items()}
    return Security(require_encryption=True, tls_ca_file=str(credentials.authority), **pairs)


# Questions to a scheduler -------------------------------------------------------------------------

IDENTITY, STATUS, DOWN, STOP = "vdla_identity", "vdla_status", "vdla_down", "vdla_stop"


def check_identity(address: Address, credentials: Credentials | None) -> str:
    """The IP address from which a scheduler can be reached that runs the vdla that we run.

    Raises:
        FarmError: there is none.
        Refusal: it runs another vdla.
    """
    own = probe(address, credentials)
    fields = _ask(address, credentials, IDENTITY)
    if not isinstance(fields, dict):
        raise Refusal(f"{address}: expected the scheduler of a farm, found another one of Dask's")
    theirs, ours = Identity.from_message(fields), identity()
    if theirs != ours:
        raise Refusal(
            f"{address}: expected {theirs}, as the farm has, found {ours} here; install the same "
            f"on both"
        )
    return own


def status(address: Address, credentials: Credentials | None) -> Status:
    """Status of a farm. Raises FarmError where it can't be reached."""
    check_identity(address, credentials)
    return Status.from_message(_ask(address, credentials, STATUS))


def take_down(address: Address, credentials: Credentials | None) -> None:
    """Ends a farm's workers and its scheduler. Raises FarmError where it can't be reached."""
    check_identity(address, credentials)
    _ask(address, credentials, DOWN)


def _ask(address: Address, credentials: Credentials | None, question: str) -> Any:
    """A scheduler's answer; None where it doesn't know the question."""
    _configure()

    async def ask() -> Any:
        how = _security(credentials).get_connection_args("client")
        stream = await connect(str(address), timeout=5, **how)
        try:
            await stream.write({"op": question, "reply": True})
            return await stream.read()
        finally:
            await stream.close()

    try:
        with ThreadPoolExecutor(1) as thread:  # the caller may have a loop, as a notebook has
            return thread.submit(asyncio.run, ask()).result()
    except OSError as error:
        raise FarmError(f"{address}: expected an answer of the scheduler, found {error}") from None


# The scheduler ------------------------------------------------------------------------------------


class _OnlyOnePort:
    """A server that doesn't open a second port for HTTP unless it has an address for it."""

    def start_http_server(
        self, routes: Any, dashboard_address: str | None, default_port: int = 0, **more: Any
    ) -> None:
        """Opens the dashboard's port where there is to be one."""
        if dashboard_address is not None:
            super().start_http_server(routes, dashboard_address, default_port, **more)  # type: ignore[misc]


class _Scheduler(_OnlyOnePort, Scheduler):
    pass


class _Desk(SchedulerPlugin):
    """Desk of vdla at a scheduler: it says who it is, counts jobs, ends batches and the farm."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.done = 0
        self.recent: deque[tuple[float, int]] = deque()  # (time, jobs) of batches
        questions = {
            IDENTITY: identity().message,
            STATUS: self.status,
            DOWN: self.down,
            STOP: self.stop,
        }
        scheduler.handlers.update(questions)

    def transition(self, key: str, start: str, finish: str, **more: Any) -> None:
        """Counts the jobs of a batch that is done."""
        if start == "processing" and finish == "memory":
            self.done += _jobs_of(key)
            self.recent.append((time.monotonic(), _jobs_of(key)))

    def status(self) -> dict[str, Any]:
        """The fields of a ``Status``."""
        since = time.monotonic() - RATE_SECONDS
        while self.recent and self.recent[0][0] < since:
            self.recent.popleft()
        waiting = ("queued", "no-worker", "processing")
        keys = [task.key for task in self.scheduler.tasks.values() if task.state in waiting]
        running = sum(
            _jobs_of(task.key)
            for each in self.scheduler.workers.values()
            for task in each.executing
        )
        return {
            "workers": [_worker_status(each) for each in self.scheduler.workers.values()],
            "queued": max(sum(map(_jobs_of, keys)) - running, 0),
            "running": running,
            "done": self.done,
            "jobs_per_second": sum(jobs for _, jobs in self.recent) / RATE_SECONDS,
        }

    async def stop(self, names: Sequence[str]) -> None:
        """Has all workers stop the batches of some names."""
        await self.scheduler.broadcast(msg={"op": STOP, "names": list(names)}, on_error="ignore")

    async def down(self) -> str:
        """Has all workers leave, and closes the scheduler once this is answered."""
        await self.scheduler.broadcast(msg={"op": DOWN}, on_error="ignore")
        asyncio.get_running_loop().call_later(0.2, asyncio.ensure_future, self.scheduler.close())
        return "OK"


def _jobs_of(key: str) -> int:
    """Number of jobs in the batch of some name; what isn't vdla's counts as one."""
    count = str(key).rpartition("-")[2]
    return int(count) if count.isdecimal() else 1


def _worker_status(worker: Any) -> dict[str, Any]:
    return {
        "name": worker.name,
        "address": worker.address,
        "processes": worker.nthreads,
        "resources": worker.extra.get("resources", []),
        "counts": {name: int(count) for name, count in worker.resources.items()},
        "running": sum(_jobs_of(task.key) for task in worker.executing),
    }


def serve(
    address: Address, credentials: Credentials | None, dashboard: bool, ready: Say
) -> NoReturn:
    """Runs a scheduler until it is told to end: by SIGTERM, or when the farm is taken down.

    Args:
        address: where it listens.
        credentials: the scheduler's.
        dashboard: whether Dask's dashboard is at DASHBOARD, for whoever is on this machine.
        ready: is told the address at which workers reach it.

    Raises:
        FarmError: the port is taken, or this machine doesn't have the address.
        Down: it has ended as it should.
    """
    if dashboard and not find_spec("bokeh"):
        raise FarmError("--dashboard: expected the package bokeh, found none; pip install bokeh")
    _configure()

    async def run() -> None:
        scheduler = _Scheduler(
            host=address.host, port=address.port, protocol=address.scheme, dashboard=dashboard,
            security=_security(credentials), dashboard_address=DASHBOARD if dashboard else None,
        )  # fmt: skip
        scheduler.add_plugin(_Desk(scheduler))
        loop = asyncio.get_running_loop()
        await scheduler
        loop.add_signal_handler(signal.SIGTERM, lambda: asyncio.ensure_future(scheduler.close()))
        ready(scheduler.address)
        await scheduler.finished()

    try:
        asyncio.run(run())
    except (OSError, RuntimeError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        raise FarmError(listening_fault(address, cause)) from None
    raise Down


# A worker -----------------------------------------------------------------------------------------


class _Worker(_OnlyOnePort, Worker):
    bench: Bench
    is_down = False


def work(
    address: Address,
    credentials: Credentials | None,
    processes: int,
    resources: Sequence[tuple[str, str]],
    scratch: str,
    joined: Say,
) -> None:
    """Joins a farm, and does its jobs until the scheduler is gone.

    Args:
        processes: jobs at a time.
        resources: (name, value) of each; one job at a time has it, or any that has no value.
        scratch: a folder for Dask's files.
        joined: is told the worker's address once it is the farm's.

    Raises:
        FarmError: the farm can't be reached.
        Refusal: it runs another vdla.
        Down: it was taken down.
    """
    own = check_identity(address, credentials)
    _configure()

    async def run() -> bool:
        worker = _make_worker(address, credentials, processes, resources, scratch, own)
        await worker
        joined(worker.address)
        await worker.finished()
        worker.bench.close()
        return worker.is_down

    try:
        is_down = asyncio.run(run())
    except (OSError, RuntimeError) as error:
        raise FarmError(f"{address}: expected to join the farm, found {error}") from None
    if is_down:
        raise Down


def _make_worker(
    address: Address,
    credentials: Credentials | None,
    processes: int,
    resources: Sequence[tuple[str, str]],
    scratch: str,
    own: str,
) -> _Worker:
    """A worker that listens at ``own``."""
    counts = Counter(name for name, value in resources if value)
    counts.update({name: processes for name, value in resources if not value})
    worker = _Worker(
        str(address), nthreads=processes, security=_security(credentials), host=own,
        name=f"{platform.node()}-{os.getpid()}", resources=dict(counts), memory_limit=0,
        local_directory=scratch, startup_information={"resources": lambda _: list(resources)},
    )  # fmt: skip
    loop = asyncio.get_running_loop()

    def lose(name: str, left: int) -> None:
        change = worker.set_resources(**{name: left})
        asyncio.run_coroutine_threadsafe(change, loop).result(WORKER_SECONDS)

    async def leave() -> None:
        worker.is_down = True
        loop.call_later(0.1, asyncio.ensure_future, worker.close(nanny=False))

    worker.bench = Bench(processes, resources, lose)
    worker.handlers.update({STOP: worker.bench.stop, DOWN: leave})
    return worker


def do_batch(name: str, data: bytes) -> bytes:
    """Does a batch of jobs, as Dask runs it on a worker; returns their answers."""
    worker: _Worker = get_worker()
    return worker.bench.do(name, data)


# A client -----------------------------------------------------------------------------------------


class Connection:
    """A client's connection to a scheduler; once that is gone, it is of no more use.

    Raises:
        FarmError: the scheduler can't be reached, or runs another vdla.
    """

    def __init__(self, address: Address, credentials: Credentials | None) -> None:
        check_identity(address, credentials)
        _configure()
        self._finished: SimpleQueue[Any] = SimpleQueue()  # Dask's futures
        self._out: dict[str, Any] = {}  # those of the batches that are out, by name
        security = _security(credentials)
        try:
            self._client = Client(str(address), security=security, set_as_default=False)
        except DISCONNECTED as error:
            raise FarmError(f"{address}: expected to reach the scheduler, found {error}") from None

    def status(self) -> Status:
        """Status of the farm. Raises Disconnected."""
        return Status.from_message(self._call(STATUS))

    def send(self, name: str, batch: Batch) -> None:
        """Sends a batch; ``results`` has its result, or says that the scheduler is gone."""
        resources = dict.fromkeys(batch.needs, 1) or None
        try:
            future = self._client.submit(
                do_batch, name, batch.to_bytes(), key=name, pure=False, resources=resources
            )
        except DISCONNECTED:
            if self._client.status == "running":
                raise
        else:
            self._out[name] = future
            future.add_done_callback(self._finished.put)

    def results(self, seconds: float) -> dict[str, bytes | Exception]:
        """The results of batches by name, as they come; none where none comes in some seconds.

        A result may be ``WorkersDown`` or another exception.

        Raises:
            Disconnected: the scheduler is gone, or was gone for a while and knows of no batch.
        """
        futures = [each for each in _taken(self._finished, seconds) if each.key in self._out]
        client = self._client

        async def gather() -> list[Any]:
            values = (client.gather(future, asynchronous=True) for future in futures)
            return await asyncio.gather(*values, return_exceptions=True)

        try:
            results = client.sync(gather, callback_timeout=ANSWER_SECONDS) if futures else []
        except DISCONNECTED as error:
            raise Disconnected(str(error)) from None
        if client.status != "running" or any(isinstance(r, CancelledError) for r in results):
            raise Disconnected("the connection was closed")
        for future in futures:
            del self._out[future.key]
        down = WorkersDown()
        return {
            future.key: down if isinstance(result, KilledWorker) else result
            for future, result in zip(futures, results, strict=True)
        }

    def take_back(self, names: Sequence[str]) -> None:
        """Forgets batches; those that run are stopped."""
        with suppress(Disconnected, *DISCONNECTED):
            self._client.cancel([self._out.pop(name) for name in names], force=True)
            self._call(STOP, names=list(names))

    def close(self) -> None:
        """Leaves the farm."""
        with suppress(*DISCONNECTED):
            self._client.close(timeout=1)

    def _call(self, question: str, **fields: Any) -> Any:
        ask = getattr(self._client.scheduler, question)
        try:
            return self._client.sync(ask, callback_timeout=ANSWER_SECONDS, **fields)
        except DISCONNECTED as error:
            raise Disconnected(str(error)) from None


def _taken(queue: SimpleQueue[Any], seconds: float) -> list[Any]:
    """Items of a queue; it waits so long for the first."""
    result = []
    with suppress(Empty):
        result.append(queue.get(timeout=seconds))
        while True:
            result.append(queue.get_nowait())
    return result
