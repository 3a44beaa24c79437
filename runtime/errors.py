"""What can be wrong with what the user hands to the runtime: one line each."""

from __future__ import annotations


class ModuleError(ValueError):
    """A module file that can't be used here."""


class InputError(ValueError):
    """An input that doesn't fit the module."""


class DeviceError(ValueError):
    """A device that can't run the module."""
