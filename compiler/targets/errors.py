"""Errors about a target that can't be had, or that has no code for an operator."""

from __future__ import annotations

from vdla.support.errors import UserError


class TargetError(UserError):
    """A target that isn't known or can't be used, or that this machine can't make code for."""


class NoCodeError(UserError):
    """A target has no code for an operator after all; says why."""
