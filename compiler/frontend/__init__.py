"""From files of other tools to the typed graph.

What reads ONNX takes long to import, and is when it is asked for: a network that is kept needs none
of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from vdla.compiler.frontend.errors import ModelError

if TYPE_CHECKING:
    from vdla.compiler.frontend.onnx import import_model, import_onnx

__all__ = ["ModelError", "import_model", "import_onnx"]


def __getattr__(name: str) -> object:
    """The value of that name, from the file that has it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("vdla.compiler.frontend.onnx"), name)
