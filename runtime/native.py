"""Host code: an object file linked into this process.

The functions have the C signature ``void f(void **buffers)``. An object for another machine, or one
that uses CPU features this machine lacks, is refused before a byte of it runs.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from vdla.runtime.errors import ModuleError
from vdla.runtime.module import HostCode

OBJECT_MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\x64\x86")  # ELF, Mach-O, COFF
HEADER_BYTES = 20
Entry = Any  # ctypes' function pointer types have no name to import


class NativeLibrary:
    """The functions of one object file; they live as long as this does."""

    def __init__(self, host: HostCode, where: str = "host code") -> None:
        check_machine(host, where)
        check_object(host.code, where)
        _initialize()
        empty = llvm.parse_assembly("")
        machine = llvm.Target.from_default_triple().create_target_machine()
        self.engine = llvm.create_mcjit_compiler(empty, machine)  # the engine owns the machine
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(host.code))
        self.engine.finalize_object()

    def function(self, name: str) -> Entry:
        """The function exported as ``name``."""
        address = self.engine.get_function_address(name)
        if not address:
            raise ModuleError(f"host code: expected a function {name}, found none")
        return ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p))(address)


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def host_machine() -> tuple[str, str, str]:
    """This machine's triple, CPU and features, as :class:`HostCode` has them."""
    features = llvm.get_host_cpu_features().flatten()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def check_machine(host: HostCode, where: str) -> None:
    """Raises ModuleError unless this machine can run the object file."""
    triple, cpu, features = host_machine()
    if _platform(host.triple) != _platform(triple):
        raise ModuleError(f"{where}: expected host code for {triple}, found {host.triple}")
    missing = sorted(_enabled(host.features) - _enabled(features))
    if missing:
        some = ", ".join(missing[:4]) + (", …" if len(missing) > 4 else "")
        raise ModuleError(
            f"{where}: expected host code for this {cpu}, "
            f"found code for {host.cpu or 'a CPU'} that needs {some}"
        )


def check_object(code: bytes, where: str) -> None:
    """Raises ModuleError unless ``code`` begins as an object file does; LLVM doesn't check."""
    if len(code) < HEADER_BYTES or not code.startswith(OBJECT_MAGIC):
        raise ModuleError(
            f"{where}: expected an object file, found {len(code)} bytes of {code[:4]!r}"
        )


def _platform(triple: str) -> tuple[str, str]:
    """Architecture and operating system; the vendor between them means nothing."""
    parts = triple.split("-")
    systems = ("linux", "darwin", "macos", "windows", "freebsd")
    system = next((s for part in parts[1:] for s in systems if part.startswith(s)), parts[-1])
    return parts[0], "darwin" if system == "macos" else system


def _enabled(features: str) -> set[str]:
    return {f[1:] for f in features.split(",") if f.startswith("+")}
