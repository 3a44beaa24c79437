"""Errors in what the user hands to the runtime: one line each."""

from __future__ import annotations

from vdla.support.errors import UserError


class ModuleError(UserError):
    """A module file that can't be used here."""


class InputError(UserError):
    """An input that doesn't fit the module."""


class DeviceError(UserError):
    """A device that can't run the module."""
