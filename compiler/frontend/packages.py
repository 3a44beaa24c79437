"""Packages that only some models need."""

from __future__ import annotations

from vdla.support.errors import UserError
from vdla.support.install import pip_install


def missing(where: str, error: ModuleNotFoundError, extra: str) -> UserError:
    """Error of a package that isn't installed, with the extra that brings it."""
    return UserError(
        f"{where}: expected the package {error.name}, found none; "
        f"install with: {pip_install(extra)}"
    )
