"""The errors of a tree that isn't well formed."""

from __future__ import annotations

from vdla.support.errors import UserError


class IRError(Exception):
    """The tree is not well formed; the message says what, and where.

    ``stmt`` is the innermost statement that is concerned, where ``verify`` found it.
    """

    stmt: object = None


class TermError(IRError, UserError):
    """A buffer, an expression or a parameter that can't be made of what it was given.

    Users make these, with te; a tree that a pass makes wrong is an ``IRError`` of ``verify``'s.
    """


class BoundsError(IRError, UserError):
    """An access that isn't proved to lie inside its buffer."""
