"""Modules that runtime/c runs, in this process: as a wheel has them, or by bare calls."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np

import vdla.packaging
from vdla.compiler.targets.processor.codegen.link import link_shared
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.packaging.files import shared_library
from vdla.packaging.objects import Packaged, runtime_object
from vdla.runtime.module import Module
from vdla.runtime.values import taken_apart

TEMPLATE = Path(vdla.packaging.__path__[0], "data/wheel/network.py")
STATUSES = (
    "ok", "bad module", "bad code", "bad device", "bad memory", "bad input", "bad number",
    "no end", "no answer", "fault",
)  # fmt: skip
Pointer, Size = ctypes.c_void_p, ctypes.c_size_t


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


# Bare calls -------------------------------------------------------------------------------------


class Code(ctypes.Structure):
    """``struct vdla_code``."""

    _fields_ = (
        ("functions", Pointer), ("count", Size), ("is_for_this_processor", Pointer),
        ("begin", Pointer), ("work", Pointer), ("set", Pointer),
    )  # fmt: skip


class Function(ctypes.Structure):
    """``struct vdla_function``."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("call", Pointer), ("bytes", ctypes.POINTER(Size)),
        ("buffers", Size),
    )  # fmt: skip


@cache
def runtime() -> ctypes.CDLL:
    """The runtime alone, as a library."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "runtime.so")
        path.write_bytes(link_shared(runtime_object(NATIVE), NATIVE))
        library = ctypes.CDLL(str(path))
    library.vdla_error.restype, library.vdla_memory.restype = ctypes.c_char_p, Size
    for name in ("error", "memory", "run"):
        getattr(library, f"vdla_{name}").argtypes = [Pointer]
    return library


def code_of(functions: dict[str, tuple[int, ...]], call: Callable[[int], None] = int) -> Code:
    """Functions that do nothing but call ``call`` with the address of their buffers."""
    kind = ctypes.CFUNCTYPE(None, Pointer)
    rows = []
    for name, sizes in sorted(functions.items()):
        array = (Size * len(sizes))(*sizes)
        rows.append(Function(name.encode(), ctypes.cast(kind(call), Pointer), array, len(sizes)))
    table = (Function * len(rows))(*rows)
    made = Code(ctypes.cast(table, Pointer), len(rows))
    made.kept = table, rows, kind
    return made


def aligned(size: int, shift: int = 0) -> tuple[object, int]:
    """Bytes, and an address in them that is ``shift`` behind a multiple of 64."""
    array = (ctypes.c_uint8 * (size + 128))()
    return array, -ctypes.addressof(array) % 64 + ctypes.addressof(array) + shift


def opened(
    data: bytes, code: Code | None = None, memory_bytes: int = 1 << 20,
    shifts: tuple[int, int] = (0, 0),
) -> tuple[str, str]:  # fmt: skip
    """The status by name, and the error's text, of opening some bytes; ``shifts`` are those of
    memory and module from an aligned address."""
    library, net = runtime(), Pointer()
    _memory, place = aligned(memory_bytes, shifts[0])
    _module, first = aligned(len(data), shifts[1])
    ctypes.memmove(first, data, len(data))
    status = library.vdla_open(
        Pointer(place), Size(memory_bytes), Pointer(first), Size(len(data)),
        ctypes.byref(code) if code else None, None, ctypes.byref(net),
    )  # fmt: skip
    return STATUSES[status], library.vdla_error(net).decode()
