"""Modules that a worker of a farm runs for others, on a device that it has.

A process keeps the newest few modules by the digests of their bytes: who sends one again sends the
digest alone. The newest one stays ready on its device, so that the next run begins at once; a board
whose memory a search has used since is made ready again.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from vdla.boards.board import BoardError
from vdla.boards.reached import forget, reached, resource
from vdla.farm.work import leased
from vdla.isa.config import Config
from vdla.runtime.board.transport import LinkError
from vdla.runtime.devices.base import Device, DeviceResult
from vdla.runtime.devices.board import BoardDevice
from vdla.runtime.errors import DeviceError, InputError, ModuleError
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module
from vdla.runtime.results import RunResult, StepResult
from vdla.support.errors import CheckError, UserError

T = TypeVar("T")
MODULES = 4  # that a process keeps: the newest
KINDS = (ModuleError, InputError, DeviceError, BoardError, UserError, CheckError)


@dataclass(frozen=True)
class Order:
    """Module to have ready, by the digest of its bytes, and the device that is to run it.

    ``config`` has the memory that the device stands in front of; ``needs`` are the resources of the
    worker, ``board`` is the board's name, and ``threads`` share what the host computes.
    """

    digest: str
    device: str
    config: Config
    needs: tuple[str, ...] = ()
    board: str | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Delivery(Generic[T]):
    """Value of what was done with a module, and the worker that did it."""

    value: T
    worker: str


@dataclass(frozen=True)
class Missing:
    """Answer of a process that doesn't have the module: it is to be sent with its bytes."""


@dataclass(frozen=True)
class Failure:
    """Error of a user's that a worker met: a class that every machine knows, and its line."""

    kind: type[Exception]
    text: str

    def error(self) -> Exception:
        """The error, to be raised where the user is."""
        return self.kind(self.text)


Work = Callable[[Executor], T]
Reply = Delivery[T] | Missing | Failure


def digest_of(data: bytes) -> str:
    """The name of a module's bytes."""
    return hashlib.sha256(data).hexdigest()


def carry_out(order: Order, data: bytes, work: Work[T]) -> Reply[T]:
    """Value of ``work`` with a module that is ready; ``data`` are its bytes, or none where it was
    sent before.

    A board that falls silent costs this run, which may be why; the next one finds the board lost
    unless it answers again.

    Raises:
        ResourceLost: the board can't be reached.
    """
    try:
        module = _module(order.digest, data)
        if module is None:
            return Missing()
        return Delivery(work(_ready(order, module)), _name(order))
    except (UserError, CheckError) as error:
        _ready_now.clear()
        if isinstance(error, LinkError) and order.board is not None:
            forget(order.board, leased(resource(order.board)))
        kind = next(kind for kind in KINDS if isinstance(error, kind))
        return Failure(kind, str(error))


def run_all(
    ready: Executor, inputs: Sequence[Mapping[str, object]], repeated: float = 0.0
) -> list[RunResult]:
    """Results of one run for each of some inputs, in a form that travels.

    ``repeated``: seconds for the shortest time of what the host runs.
    """
    ready.repeats.left = repeated
    return [_portable(ready.run(each)) for each in inputs]


def _portable(result: RunResult) -> RunResult:
    """A result whose steps are put together and counted: closures don't travel."""
    steps = [step._replace(device=_counted(step)) for step in result.steps]
    return replace(result, reports=[partial(list, steps)])


def _counted(step: StepResult) -> DeviceResult | None:
    device = step.device
    if device is None or device.counts is None:
        return device
    return replace(device, counts=partial(_itself, device.counts()))


def _itself(value: T) -> T:
    return value


# What this process has ---------------------------------------------------------------------------

_modules: dict[str, Module] = {}
_ready_now: list[tuple[Order, Executor]] = []  # one at most


def _module(digest: str, data: bytes) -> Module | None:
    """The module of a digest; None where it wasn't sent to this process, or long ago.

    Raises:
        ModuleError: the bytes are no module, or not those of the digest.
    """
    if digest in _modules:
        _modules[digest] = _modules.pop(digest)  # used just now
    elif data:
        if digest_of(data) != digest:
            raise ModuleError(f"module: expected the bytes of {digest[:12]}, found others")
        _modules[digest] = Module.from_bytes(data)
        while len(_modules) > MODULES:
            del _modules[next(iter(_modules))]
    return _modules.get(digest)


def _ready(order: Order, module: Module) -> Executor:
    """A module ready on its device."""
    device: Device | None = None
    if order.board is not None:
        device = reached(order.board, order.config, leased(resource(order.board)))
    for known, ready in _ready_now:
        same = device is None or (ready.device is device and _is_there(device, ready))
        if known == order and same:
            return ready
    _ready_now.clear()
    if device is None:
        from vdla.runtime.devices.named import make_device  # with the simulator: boards have none

        device = make_device(module, order.device, order.config)
    ready = Executor(module, device, order.threads)
    _ready_now.append((order, ready))
    return ready


def _is_there(device: Device, ready: Executor) -> bool:
    """Whether a board still has the image of a module."""
    return isinstance(device, BoardDevice) and device.has(ready.dram)


def _name(order: Order) -> str:
    """The worker's machine, and which of its resources it lends: ``desk, board:ulx3s=/dev/x``."""
    places = [f"{name}={value}" for name in order.needs if (value := leased(name))]
    return ", ".join([platform.node(), *places])
