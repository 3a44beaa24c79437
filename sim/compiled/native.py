"""A loop's machine code: what ships, or else LLVM's text, that ships or that numba makes, compiled
for this processor.

The text defines ``i64 @loop(ptr words)``. Text that numba made and machine code are kept in the
cache, each under a digest of all that it depends on, and with a seal: what is damaged is made
again. A cache that can't be written is as if it were empty.
"""

from __future__ import annotations

import ctypes
import lzma
import platform
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from vdla import isa
from vdla.sim.compiled import shipped
from vdla.support.builds import build_once
from vdla.support.errors import UserError
from vdla.support.files import cache_folder, digest, is_sealed, seal, write_bytes
from vdla.support.install import pip_install

made: list[tuple[str, str, bytes]] = []  # loop, kinds, compressed text: by numba, in this process
HELPERS: dict[Callable[..., Any], bool] = {}  # what loops call, and whether it is inlined
SEAMS: set[Any] = set()  # what options add to
ROOMS = Path(__file__).parents[1], Path(isa.__file__).parent


class Source(Protocol):
    """A loop, as far as its machine code depends on it."""

    name: str
    title: str
    function: Callable[..., Any]


class Code:
    """Machine code in this process, which lives as long as this does."""

    def __init__(self, code: bytes, gives_number: bool) -> None:
        self.gives_number = gives_number
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(*_processor()))
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self.engine.finalize_object()
        address = self.engine.get_function_address("loop")
        self.entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address)

    def __call__(self, words: NDArray[np.int64]) -> int | None:
        """Runs it on the words of its arguments."""
        result: int = self.entry(words.ctypes.data)
        return result if self.gives_number else None


def code_of(loop: Source, kinds: str, arguments: tuple[Any, ...]) -> Code:
    """The machine code of a loop for arguments of these kinds."""
    entry = shipped.entry_of(loop.name, kinds, sources_of(loop))
    code = shipped.machine_code(entry) if entry else None
    if code is None:
        packed = entry.text.read_bytes() if entry else _made(loop, kinds, arguments)
        code = _kept(loop, packed)
    return Code(code, loop.function.__annotations__.get("return") not in (None, "None"))


def _kept(loop: Source, packed: bytes) -> bytes:
    """The object file of a compressed text for this processor, from the cache or compiled now."""
    key = repr((packed, llvm.llvm_version_info, _processor()))
    path = _folder() / f"{loop.name}-{_short(key)}.o"
    code = _read(path)
    if code is None:
        code = compiled_text(lzma.decompress(packed).decode(), *_processor())
        _write(path, code)
    return code


@cache
def _rooms() -> str:
    return digest(ROOMS)


def sources_of(loop: Source) -> str:
    """A digest of the files that a loop's machine code depends on."""
    path = own_file(loop)
    return digest([path], also=_rooms()) if path else _rooms()


def own_file(loop: Source) -> Path | None:
    """The file that a loop depends on besides ROOMS."""
    path = Path(loop.function.__code__.co_filename)
    within = any(path.is_relative_to(room) for room in ROOMS)
    return None if within or not path.exists() else path


def _made(loop: Source, kinds: str, arguments: tuple[Any, ...]) -> bytes:
    """LLVM's text, compressed, that numba makes of the sources, or made of them before."""
    key = repr((loop.name, kinds, sources_of(loop), _numba(loop), _processor()))
    path = _folder() / f"{loop.name}-{_short(key)}.ll.xz"

    def make() -> bytes:
        from vdla.sim.compiled.with_numba import text_of

        text = text_of(loop.function, HELPERS, SEAMS, arguments)
        packed = lzma.compress(text.encode(), preset=9)
        made.append((loop.name, kinds, packed))
        _write(path, packed)
        return packed

    with suppress(OSError):  # no home to write to: each process makes its own
        path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.parent / "lock"
    return build_once("machine code", f"the {loop.title}", lock, partial(_read, path), make)


def _numba(loop: Source) -> str:
    """The version of numba.

    Raises:
        UserError: it isn't installed.
    """
    try:
        return metadata.version("numba")
    except metadata.PackageNotFoundError:
        raise UserError(
            f"{loop.title}: expected the package numba, which compiles the simulator's sources "
            f"where they aren't those that vdla ships, found none; {pip_install('sim')}"
        ) from None


def compiled_text(text: str, processor: str, features: str) -> bytes:
    """The object file of a text, for a processor of this machine's kind as LLVM names it."""
    machine = _machine(processor, features)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
    code: bytes = machine.emit_object(module)
    return code


def _machine(processor: str, features: str) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=processor, features=features, opt=3, reloc="pic", codemodel="jitdefault"
    )


@cache
def _processor() -> tuple[str, str]:
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


# The cache --------------------------------------------------------------------------------------


def _folder() -> Path:
    return cache_folder("code", platform.machine())


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _read(path: Path) -> bytes | None:
    """None where it isn't there, or isn't whole."""
    try:
        return path.read_bytes() if is_sealed(path) else None
    except OSError:
        return None


def _write(path: Path, data: bytes) -> None:
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, data)
        seal(path)
