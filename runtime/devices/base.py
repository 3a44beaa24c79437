"""What a device is to the executor."""

from __future__ import annotations

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

    def run(self, program: bytes, dram: Dram) -> DeviceResult:
        """Runs ``program`` to its end."""
        ...
