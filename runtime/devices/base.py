"""What a device is to the executor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Dram = NDArray[np.uint8]


@dataclass(frozen=True)
class DeviceResult:
    """What running one program took. ``trace`` is the device's own record, or None."""

    cycles: int
    trace: Any = None
    extra: dict[str, Any] = field(default_factory=dict)


class Device(Protocol):
    """Runs accelerator programs over a DRAM image, in place."""

    @property
    def name(self) -> str:
        """As the user calls it: ``cpu``, ``sim``, …"""
        ...

    @property
    def config_hash(self) -> str | None:
        """The config its programs must be for; None for a device without an accelerator."""
        ...

    def load(self, program: bytes, dram: Dram) -> Callable[[], DeviceResult]:
        """Makes ``program`` ready over ``dram``; the result runs it to its end, as often as called.

        Whatever is done once (decoding, compiling loops, copying the stream) happens here, so that
        a run's seconds are the device's own.
        """
        ...
