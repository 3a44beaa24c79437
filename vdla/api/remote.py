"""Models that a worker of a farm runs: compiled here, sent once, run there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from vdla.analysis.profile import Profile
from vdla.analysis.profile import profile as profiled
from vdla.api.ready import board_of, module_of
from vdla.boards.board import Board
from vdla.boards.reached import VIRTUAL, resource
from vdla.boards.served import Delivery, Failure, Missing, Order, carry_out, digest_of, run_all
from vdla.compiler.targets.gpu.description import GPU
from vdla.farm.status import Status
from vdla.farm.work import FarmError, Job, JobPool
from vdla.names.farms import farm_pool
from vdla.names.kinds import check_kind
from vdla.names.models import is_module
from vdla.options import Run
from vdla.options.devices import CPU, processor_of_resource
from vdla.options.spelling import UsageError
from vdla.runtime.checks import check_inputs
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module
from vdla.runtime.results import RunResult
from vdla.runtime.values import taken_apart

T = TypeVar("T")
_sent: set[tuple[str, tuple[str, ...], str]] = set()  # addresses, needs, and modules' digests


class Remote:
    """A module that workers of a farm run.

    Args:
        module: the module.
        order: what it is run on.
        pool: the farm's.
        address: the farm's.
    """

    def __init__(self, module: Module, order: Order, pool: JobPool, address: str) -> None:
        self.module, self.order, self._address = module, order, address
        self._data, self._pool = module.to_bytes(), pool
        self.order = replace(order, digest=digest_of(self._data))

    def run(self, inputs: Sequence[Mapping[str, object]], repeated: float = 0.0) -> list[RunResult]:
        """Results of one run for each of some inputs, all on one worker.

        ``repeated``: seconds for the shortest time of what the host runs.

        Raises:
            InputError: a name, shape or dtype isn't the module's.
            ModuleError, DeviceError, BoardError, LinkError: the worker's.
            FarmError: nobody has the resource any more, or what did the job died.
        """
        for each in inputs:
            check_inputs(self.module, taken_apart(self.module.arguments, each))
        done = self._ask(partial(run_all, inputs=list(inputs), repeated=repeated))
        return [replace(result, worker=done.worker) for result in done.value]

    def profile(self, inputs: Mapping[str, object]) -> Profile:
        """Profile of the time on a worker.

        Raises:
            As ``run``.
        """
        check_inputs(self.module, taken_apart(self.module.arguments, inputs))
        done = self._ask(partial(profiled, inputs=dict(inputs)))
        return replace(done.value, worker=done.worker)

    def _ask(self, work: Callable[[Executor], T]) -> Delivery[T]:
        """A worker's value of the module, which is sent where it is new or gone."""
        key = (self._address, self.order.needs, self.order.digest)
        reply = self._once(work, b"") if key in _sent else Missing()
        if isinstance(reply, Missing):
            reply = self._once(work, self._data)
        _sent.add(key)
        if isinstance(reply, Failure):
            raise reply.error()
        assert isinstance(reply, Delivery)
        return reply

    def _once(self, work: Callable[[Executor], T], data: bytes) -> Delivery[T] | Missing | Failure:
        job = Job(carry_out, (self.order, data, work), needs=self.order.needs)
        ((_, answer),) = self._pool.run([job])
        if answer.value is None:
            raise FarmError(
                f"{self._address}: expected a worker to run the module, found {answer.status}: "
                f"{answer.note}"
            )
        return answer.value


@contextmanager
def remote(model: Module | str | Path, options: Run) -> Iterator[Remote]:
    """A model that workers of the farm run on what the options name, compiled for that.

    Raises:
        FarmError: the farm can't be reached, or nobody there has the resource.
        As ``prepare``.
    """
    check_kind("farm", "an address, as tls://127.0.0.1:8786", options.farm, str)
    board, address = board_of(options), str(options.farm)
    if options.waves:
        raise UsageError(f"--trace {options.waves}: expected no --farm for waves, found both")
    needs = _needs(options)
    how = options.folder, options.without_encryption, options.report
    with farm_pool(address, *how) as pool:
        status = pool.status()
        status.check(needs)
        if not status.workers:
            raise FarmError(
                f"{address}: expected a worker to run the module, found none on the farm; "
                f"`vdla worker {address}` joins"
            )
        module, config = module_of(model, _for_worker(model, options, board, status), board)
        order = Order(
            "", options.device, config, needs, board.name if board else None, options.threads
        )
        yield Remote(module, order, pool, address)


def _needs(options: Run) -> tuple[str, ...]:
    """Resources that a worker must have: the one named, or what the device is, and the GPU that is
    the host; every worker has a processor."""
    if options.resource is not None:
        first = options.resource
    elif options.device == "board":
        first = resource(str(options.board))
    else:
        first = options.device
    names = dict.fromkeys((first, GPU if options.host == GPU else first))
    return tuple(name for name in names if name not in (CPU, "sim"))


def _for_worker(
    model: Module | str | Path, options: Run, board: Board | None, status: Status
) -> Run:
    """The options, with code for the worker's processor where the resource says which that is: by
    its name, or the board's own, which virtual boards don't have."""
    if options.target is not None or isinstance(model, Module) or is_module(model):
        return options
    target = processor_of_resource(options.resource)
    if board is not None and board.host != "native":
        held = [pair for worker in status.workers for pair in worker.resources]
        virtual = all(value == VIRTUAL for name, value in held if name == resource(board.name))
        target = None if virtual else board.host
    return replace(options, target=target)
