"""Host code, made part of this process.

The functions have the C signature ``void f(void **buffers)``; behind the buffers they get a pool of
threads (``runtime.threads``), or null. They come as an object file or an archive of several, which
LLVM links here, or as a shared object, which the system loads: a board's processor needs no LLVM.
Code for another machine, or code that uses CPU features this machine lacks, is refused before a
byte of it runs.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import sysconfig
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Protocol

from vdla.runtime.archive import objects_in
from vdla.runtime.errors import ModuleError
from vdla.runtime.module import HostCode

OBJECT_MAGIC = (  # ELF, Mach-O, COFF, WebAssembly
    b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\x64\x86", b"\0asm\x01\0\0\0",
)  # fmt: skip
HEADER_BYTES = 20
ELF_KIND, SHARED = slice(16, 18), b"\x03\x00"  # e_type, ET_DYN
LIBRARIES = ("libm.so.6", "libgcc_s.so.1")  # what shared objects call, besides the C library
AT_HWCAP = 16  # of getauxval
NEON = {"arm": 12, "aarch64": 1}  # its bit there: Linux's asm/hwcap.h
RISCV = "mafdc"  # extensions, each of which has its letter's bit there
CPUINFO = Path("/proc/cpuinfo")
FLAGS = {  # LLVM's names of features where Linux has others
    "bmi": "bmi1", "lzcnt": "abm", "sahf": "lahf_lm", "sse3": "pni", "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
}  # fmt: skip
Entry = Any  # ctypes' function pointer types have no name to import


class NativeLibrary:
    """The functions of one piece of host code; they live as long as this does."""

    def __init__(self, host: HostCode, where: str = "host code") -> None:
        check_object(host.code, where)
        check_machine(host, where)
        load = SharedObject if is_shared(host.code) else LinkedObject
        self.library: Library = load(host.code, where)

    def address(self, name: str) -> int:
        """Address of the function exported as ``name``."""
        address = self.library.address(name)
        if not address:
            raise ModuleError(f"host code: expected a function {name}, found none")
        return address

    def function(self, name: str, *takes: Any, gives: Any = None) -> Entry:
        """The function exported as ``name``, of arguments and a result in ctypes' words."""
        return ctypes.CFUNCTYPE(gives, *takes)(self.address(name))


class Library(Protocol):
    """Code in memory."""

    def address(self, name: str) -> int | None:
        """Address of a function; 0 or None if there is none."""
        ...


class LinkedObject:
    """An object file, or several in an archive, linked by LLVM."""

    def __init__(self, code: bytes, where: str) -> None:
        llvm = _llvm()
        empty = llvm.parse_assembly("")
        machine = llvm.Target.from_default_triple().create_target_machine()
        self.engine = llvm.create_mcjit_compiler(empty, machine)  # the engine owns the machine
        for each in objects_in(code, where):
            self.engine.add_object_file(llvm.ObjectFileRef.from_data(each))
        self.engine.finalize_object()

    def address(self, name: str) -> int | None:
        """Address of a function."""
        result: int = self.engine.get_function_address(name)
        return result


class SharedObject:
    """A shared object, loaded from a file that is gone then; it stays until the process ends."""

    def __init__(self, code: bytes, where: str) -> None:
        try:
            for name in LIBRARIES:
                ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
            with NamedTemporaryFile(suffix=".so") as file:
                file.write(code)
                file.flush()
                self.library = ctypes.CDLL(file.name)
        except OSError as error:
            raise ModuleError(
                f"{where}: expected a shared object for this machine, found: {error}"
            ) from None

    def address(self, name: str) -> int | None:
        """Address of a function; None if there is none."""
        try:
            return ctypes.cast(self.library[name], ctypes.c_void_p).value
        except AttributeError:
            return None


@cache
def _llvm() -> Any:
    """LLVM, made ready for this machine; only object files need it."""
    try:
        import llvmlite.binding as llvm
    except ModuleNotFoundError:
        raise ModuleError(
            "host code: expected the package llvmlite to link an object file, found none; compile "
            "for a board's processor (vdla compile --board), or install with: pip install llvmlite"
        ) from None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def host_machine() -> tuple[str, str, str]:
    """This machine's triple, CPU and features as LLVM has them, for :class:`HostCode`."""
    llvm = _llvm()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def board_machine() -> tuple[str, str, str]:
    """Triple, processor and features of a board, without LLVM; on ARM NEON alone is looked for."""
    triple = sysconfig.get_config_var("MULTIARCH") or sys.platform
    machine = triple.partition("-")[0]
    if machine == "x86_64":
        return triple, platform.machine(), _x86_features()
    bits = {"neon": NEON[machine]} if machine in NEON else {}
    if machine == "riscv64":
        bits = {letter: ord(letter) - ord("a") for letter in RISCV}
    capable = ctypes.CDLL(None).getauxval(AT_HWCAP) if bits else 0
    features = ",".join(f"+{name}" for name, bit in bits.items() if capable >> bit & 1)
    return triple, platform.machine(), features


def _x86_features() -> str:
    """Features that Linux says this processor has, in LLVM's words."""
    text = CPUINFO.read_text() if CPUINFO.exists() else ""
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "")
    names = {linux: llvm for llvm, linux in FLAGS.items()}
    return ",".join(f"+{names.get(flag, flag)}" for flag in flags.partition(":")[2].split())


def check_machine(host: HostCode, where: str) -> None:
    """Raises ModuleError unless this machine can run the code."""
    triple, cpu, features = board_machine() if is_shared(host.code) else host_machine()
    if _platform(host.triple) != _platform(triple):
        actual = f"{host.triple} ({host.cpu})"
        raise ModuleError(f"{where}: expected host code for {triple}, found {actual}")
    missing = sorted(_enabled(host.features) - _enabled(features))
    if missing:
        some = ", ".join(missing[:4]) + (", …" if len(missing) > 4 else "")
        raise ModuleError(
            f"{where}: expected host code for this {cpu}, "
            f"found code for {host.cpu or 'a CPU'} that needs {some}"
        )


def missing_features(triple: str, features: str) -> list[str]:
    """Features that code for a machine needs and this one lacks, in LLVM's words: instructions, or
    another architecture."""
    own, _, has = host_machine()
    if _platform(triple) != _platform(own):
        return [triple.partition("-")[0]]
    return sorted(_enabled(features) - _enabled(has))


def check_object(code: bytes, where: str) -> None:
    """Raises ModuleError unless each object file begins as one does; LLVM doesn't check."""
    for each in objects_in(code, where):
        if len(each) < HEADER_BYTES or not each.startswith(OBJECT_MAGIC):
            raise ModuleError(
                f"{where}: expected an object file, found {len(each)} bytes of {each[:4]!r}"
            )


def is_shared(code: bytes) -> bool:
    """Whether ``code`` is a shared object and no object file."""
    return code.startswith(OBJECT_MAGIC[0]) and code[ELF_KIND] == SHARED


def _platform(triple: str) -> tuple[str, str]:
    """Architecture and operating system; the vendor between them means nothing."""
    parts = triple.split("-")
    systems = ("linux", "darwin", "macos", "windows", "freebsd")
    system = next((s for part in parts[1:] for s in systems if part.startswith(s)), parts[-1])
    return parts[0], "darwin" if system == "macos" else system


def _enabled(features: str) -> set[str]:
    return {f[1:] for f in features.split(",") if f.startswith("+")}
