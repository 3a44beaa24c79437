"""Errors about packages."""

from vdla.support.errors import UserError


class PackageError(UserError):
    """A module that can't be packaged as wished."""
