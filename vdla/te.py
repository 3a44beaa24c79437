"""Tensor expressions under TVM's names: ``from vdla import te``. See docs/tutorial.md."""

from vdla.compiler import te as _te
from vdla.compiler.schedule import create_schedule
from vdla.compiler.te import *  # noqa: F403

__all__ = [*_te.__all__, "create_schedule"]
