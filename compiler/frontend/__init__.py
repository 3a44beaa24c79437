"""From files of other tools to the typed graph."""

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.onnx import import_model, import_onnx

__all__ = ["ModelError", "import_model", "import_onnx"]
