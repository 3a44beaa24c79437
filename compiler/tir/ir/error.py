"""The error of a tree that isn't well formed."""

from __future__ import annotations

from vdla.support.errors import UserError


class IRError(UserError):
    """The tree is not well formed; the message says what, and where.

    ``stmt`` is the innermost statement that is concerned, where ``verify`` found it.
    """

    stmt: object = None
