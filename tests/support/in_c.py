"""Modules that runtime/c runs, in this process, as an installed wheel has them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np

import vdla.packaging
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.packaging.files import shared_library
from vdla.packaging.objects import Packaged
from vdla.runtime.module import Module
from vdla.runtime.values import taken_apart

TEMPLATE = Path(vdla.packaging.__path__[0], "data/wheel/network.py")


def network(module: Module, folder: Path, name: str = "net") -> ModuleType:
    """The package that a wheel has, in a folder."""
    folder.joinpath("lib.so").write_bytes(shared_library(Packaged(name, module, NATIVE)))
    path = folder / "__init__.py"
    path.write_bytes(TEMPLATE.read_bytes())
    spec = importlib.util.spec_from_file_location(name, path)
    package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    package._library()  # it stays loaded when its file is gone
    return package


class InC:
    """A module on runtime/c; called with inputs as an executor is, it gives the same outputs."""

    def __init__(self, module: Module, threads: int = 1) -> None:
        self.module = module
        with TemporaryDirectory() as folder:
            self.package = network(module, Path(folder))
        self.net = self.package.Network(threads)

    def run(self, inputs):
        """The outputs by their names."""
        arrays = taken_apart(self.module.arguments, inputs)
        return self.net.run(**{name: np.asarray(array) for name, array in arrays.items()})
