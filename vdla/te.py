"""Tensor expressions under TVM's names: ``from vdla import te``. See docs/tutorial.md."""

from vdla.compiler.te import *  # noqa: F403
from vdla.compiler.te import __all__ as __all__
