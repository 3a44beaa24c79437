"""ONNX's operators: a file for each family, all found by being here.

A file holds one small function per operator, which adds to the graph what a node of it means.
"""

from importlib import import_module
from pkgutil import iter_modules

from vdla.compiler.frontend.converters import CONVERTERS, Converter, converter_of

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["CONVERTERS", "Converter", "converter_of"]
