"""Parts that several classes of options share: callbacks, checks, and where an option counts.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from vdla.options.spelling import Default, Only, UsageError, python_only

if TYPE_CHECKING:
    from vdla.compiler.frontend.shapes import Shapes

Progress = Callable[[str, int, int], None]  # called with (what, done, of)
Report = Callable[[str], None]
NO_FARM = Only("farm", given=False)


class Sized:
    """Options with the sizes that a model leaves open."""

    shapes: Shapes | None

    def __post_init__(self) -> None:
        """Raises UsageError unless the sizes are a dictionary."""
        if self.shapes is not None and not isinstance(self.shapes, Mapping):
            raise UsageError(
                "shapes: expected a dictionary of names, as {'batch': 4, 'x': (1, 3, 8, 8)}, "
                f"found {self.shapes!r}"
            )


def quiet(what: str, done: int, total: int) -> None:
    """A progress callback that does nothing."""


def silent(text: str) -> None:
    """A message callback that does nothing."""


def progress() -> Default:
    """A callback for bars."""
    return python_only(quiet, "Called with the name of a step, how many are done, and of how many.")


def report() -> Default:
    """A callback for remarks."""
    return python_only(silent, "Called with a line about what takes long.")
