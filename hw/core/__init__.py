"""The core: the units, what connects them, the choice among their faults, and the core's states."""

from vdla.hw.core.core import Core

__all__ = ["Core"]
