"""Interface of a device to the executor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from vdla.isa.identity import Identity
from vdla.runtime.dram import Dram, Ranges

if TYPE_CHECKING:  # boards have no simulator
    from vdla.sim.counts import Counts


@dataclass(frozen=True)
class DeviceResult:
    """Result of running one program on a device. ``trace`` is the device's own record, or None;
    ``counts`` counts what the program does, where the device can.
    """

    cycles: int
    trace: Any = None
    extra: dict[str, Any] = field(default_factory=dict)
    counts: Callable[[], Counts] | None = None


class Device(Protocol):
    """Runs accelerator programs over a DRAM image, in place."""

    @property
    def name(self) -> str:
        """The device's name for users: ``cpu``, ``sim``, …"""
        ...

    @property
    def identity(self) -> Identity | None:
        """Identity that its programs must be for; None for a device without an accelerator."""
        ...

    def allocate(self, size: int, constants: bytes) -> Dram:
        """A DRAM image of at least ``size`` bytes that begins with a module's constants."""
        ...

    def load(
        self, program: bytes, dram: Dram, given: Ranges = (), wanted: Ranges = ()
    ) -> Callable[[], DeviceResult]:
        """Makes ``program`` ready over ``dram``; the result runs it to its end, as often as called.

        Whatever is done once (decoding, compiling loops, copying the stream) happens here, so that
        a run's seconds are the device's own. ``given`` are the bytes that the host may write before
        a run, ``wanted`` those it may read after one: a device with a memory of its own moves them.
        """
        ...
