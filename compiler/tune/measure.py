"""Measuring candidates in worker processes: cycles, or why there are none.

A worker compiles a candidate, proves its stream sound with the static checker, and only then runs
it on the cycle simulator, timing alone. A worker that crashes or hangs costs its candidate and is
replaced; the search goes on.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from vdla.compiler.targets.accelerator.codegen.allocate import AllocationError
from vdla.compiler.targets.accelerator.codegen.leaf import CodegenError
from vdla.compiler.targets.accelerator.operators.template import Operator, Tile
from vdla.compiler.targets.accelerator.standalone import layer_program
from vdla.isa.config import Config
from vdla.isa.instructions import Finish
from vdla.sim.checker import check
from vdla.sim.machine import SimulationError, simulate, warm_up

TIMEOUT = 20.0  # seconds for one candidate, before its worker is replaced
STARTING = 300.0  # seconds until a worker must be ready: it imports the compiler and the simulator
READY = "ready"  # what a worker says first: only from then on its candidate's time counts


@dataclass(frozen=True)
class Outcome:
    """What became of a candidate: ``status`` and ``note`` as a record holds them."""

    status: str
    cycles: int | None = None
    note: str = ""


def measure(op: Operator, tile: Tile, config: Config) -> Outcome:
    """Compiles, checks and times one candidate, alone and cold."""
    try:
        built = layer_program(op, tile, config)
        stream = built.program.instructions
        found = built.check()
        if found:
            return Outcome("illegal", note=f"{found[0].kind} at {found[0].index}: {found[0].text}")
        run = simulate(config, stream, built.dram, built.program.base, numerics=False)
    except (AllocationError, CodegenError, SimulationError) as error:
        return Outcome("illegal", note=str(error))
    return Outcome("ok", run.cycles)


class Measurer:
    """Worker processes that measure candidates; use it in a ``with`` statement.

    Args:
        operators: what candidates are of, by the names that ``run`` is given.
        config: the machine; None for the processor that this runs on.
        workers: how many processes.
        timeout: seconds a candidate may take.
        how: measures one candidate, in the worker.
    """

    def __init__(
        self,
        operators: Mapping[str, Any],
        config: Any,
        workers: int = 2,
        timeout: float = TIMEOUT,
        how: Any = measure,
    ) -> None:
        self.operators, self.config, self.timeout, self.how = operators, config, timeout, how
        if how is measure:
            _warm_up(config)  # into the cache, from which the workers take it
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload([__name__])
        self.workers = [_Worker(self) for _ in range(workers)]

    def run(self, name: str, candidates: Sequence[Any]) -> Iterator[tuple[int, Outcome]]:
        """(position, outcome) of every candidate, as they come in."""
        waiting = deque(range(len(candidates)))
        while waiting or any(w.position is not None for w in self.workers):
            for worker in self.workers:
                if worker.position is None and waiting:
                    worker.start(waiting.popleft(), name, candidates)
            busy = [w for w in self.workers if w.position is not None]
            soonest = min(w.deadline for w in busy) - time.monotonic()
            ready = wait([w.pipe for w in busy], timeout=max(soonest, 0))
            for worker in busy:
                position, outcome = worker.position, None
                if worker.pipe in ready:
                    outcome = worker.receive()
                elif time.monotonic() >= worker.deadline:
                    worker.replace()
                    outcome = Outcome("timeout", note=f"not done after {self.timeout:g} s")
                if outcome is not None and position is not None:
                    yield position, outcome

    def __enter__(self) -> Measurer:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.stop()


class _Worker:
    """One process and what it is at work on; ``position`` is None while it is idle."""

    def __init__(self, owner: Measurer) -> None:
        self.owner = owner
        self.position: int | None = None
        self.deadline = 0.0
        self.ready = False
        self._begin()

    def _begin(self) -> None:
        owner, self.ready = self.owner, False
        self.pipe, theirs = owner.context.Pipe()
        args = (theirs, owner.operators, owner.config, owner.how)
        self.process = owner.context.Process(target=_serve, args=args, daemon=True)
        self.process.start()
        theirs.close()

    def start(self, position: int, name: str, candidates: Sequence[Any]) -> None:
        """Hands over a candidate."""
        self.position = position
        self._count_from_now()
        with suppress(OSError):  # it died while idle: that shows when its answer is read
            self.pipe.send((name, candidates[position]))

    def _count_from_now(self) -> None:
        patience = self.owner.timeout if self.ready else STARTING
        self.deadline = time.monotonic() + patience

    def receive(self) -> Outcome | None:
        """The answer, or that the process died of the candidate; None: it has only now started."""
        try:
            outcome = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(5)
            code = self.process.exitcode
            self.replace()
            return Outcome("crash", note=f"the worker ended with exit code {code}")
        if outcome == READY:
            self.ready = True
            self._count_from_now()
            return None
        self.position = None
        assert isinstance(outcome, Outcome)
        return outcome

    def replace(self) -> None:
        """A new process for one that crashed or hangs."""
        self.stop()
        self.position = None
        self._begin()

    def stop(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection, operators: Mapping[str, Any], config: Any, how: Any) -> None:
    """A worker's life: measures what it is sent until its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if how is measure:
        _warm_up(config)
    with suppress(OSError):  # nobody waits any more: the next line finds out, too
        pipe.send(READY)
    while True:
        try:
            name, candidate = pipe.recv()
        except EOFError:
            return
        try:
            outcome = how(operators[name], candidate, config)
        except Exception as error:  # a fault of ours, not of the search: told, and gone on
            outcome = Outcome("crash", note=f"{type(error).__name__}: {error}")
        try:
            pipe.send(outcome)
        except OSError:
            return


def _warm_up(config: Config) -> None:
    """Has the simulator's and the checker's loops compiled."""
    warm_up()
    check(config, [Finish()])
