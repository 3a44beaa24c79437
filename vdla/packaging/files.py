"""Files that packages have in common: headers, an archive, and what linkers make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from vdla.compiler.targets.processor.codegen.link import run_linker
from vdla.compiler.targets.processor.description.symbols import ALLOCATOR, SYMBOLS
from vdla.isa.registers import Cause
from vdla.isa.ring import numbered
from vdla.packaging.errors import PackageError
from vdla.packaging.objects import POOL, WASM, Packaged, model_object, runtime_object
from vdla.runtime.devices.named import module_config
from vdla.runtime.table import memory_of

Files = dict[str, bytes]  # by their names
WASM_STACK_BYTES = 1 << 20  # functions have temporaries of up to 16 KiB each there
ARCHIVE_MAGIC = b"!<arch>\n"
RUNTIME_SYMBOLS = (
    "vdla_open", "vdla_memory", "vdla_describe", "vdla_input", "vdla_output", "vdla_state",
    "vdla_run", "vdla_counters", "vdla_error",
)  # fmt: skip
THREAD_SYMBOLS = ("vdla_start", "vdla_close")
# What WebAssembly's functions may import: JavaScript has it, in runtime/c/bindings/vdla.mjs.
IMPORTED = sorted(SYMBOLS[WASM] - ALLOCATOR)


def shipped(name: str) -> bytes:
    """A file of ``runtime/c``."""
    return files("vdla.runtime.c").joinpath(name).read_bytes()


def header(packaged: Packaged) -> str:
    """NAME.h: how a program opens the module, and the memory that it takes."""
    name, module, memory = packaged.name, packaged.module, memory_of(packaged.module)
    upper = name.upper()
    lines = [f"// {name}: a network for {packaged.processor.name}, packaged by vdla.", "//"]
    for title, names in (("input", module.inputs), ("output", module.outputs)):
        lines += [f"//     {title} {n}: {module.tensors[n]}" for n in map(_line, names)]
    lines += ["", f"#ifndef {upper}_H", f"#define {upper}_H", "", '#include "vdla.h"', ""]
    if module.accelerated:
        engines = numbered(module_config(module))
        texts = ", ".join(f'"{engine.name}"' for engine in engines)
        lines.append(f"#define {upper}_COUNTERS {len(engines) * len(Cause)}")
        lines.append(f"#define {upper}_ENGINES {{{texts}}}")
    numbers = f"{memory.image}, {memory.buffers}, {memory.saved}"
    lines += [f"#define {upper}_MEMORY VDLA_MEMORY({numbers})", ""]
    lines += ["#ifdef __cplusplus", 'extern "C"', "#endif"]
    lines += [
        f"int {name}_open(void *memory, size_t memory_bytes, const struct vdla_board *board,",
        f"{'':{len(name) + 10}}struct vdla **opened);",
    ]
    return "\n".join([*lines, "", "#endif", ""])


def _line(text: str) -> str:
    """A name without line breaks, for a comment."""
    return " ".join(text.split())


def objects(packaged: Packaged) -> Files:
    """The object files by their names: runtime, model, and the functions if there are any."""
    host = packaged.module.host
    made = {
        "runtime.o": runtime_object(packaged.processor),
        f"{packaged.name}.o": model_object(packaged),
    }
    if host and host.functions:
        made[f"{packaged.name}_functions.o"] = host.code
    return made


def symbols(packaged: Packaged) -> dict[str, Sequence[str]]:
    """Symbols that each object exports, by its name."""
    threads = packaged.processor.threads
    pool = (*POOL, "vdla_call") if threads else ()
    own = [packaged.prefix + name for name in (*packaged.functions, *pool, "vdla_parallel")]
    return {
        "runtime.o": (*RUNTIME_SYMBOLS, *(THREAD_SYMBOLS if threads else ())),
        f"{packaged.name}.o": [f"{packaged.name}_open"],
        f"{packaged.name}_functions.o": own,
    }


def archive(members: Mapping[str, bytes], exported: Mapping[str, Sequence[str]]) -> bytes:
    """A static library, as ``ar`` of GNU has it: with an index of symbols, and long names."""
    names = "".join(f"{name}/\n" for name in members).encode()
    pairs = [(symbol, name) for name in members for symbol in exported[name]]
    texts = b"".join(symbol.encode() + b"\0" for symbol, _ in pairs)
    index_bytes = 4 + 4 * len(pairs) + len(texts)
    at = len(ARCHIVE_MAGIC) + _member_bytes(index_bytes) + _member_bytes(len(names))
    places = dict[str, int]()
    for name, data in members.items():
        places[name] = at
        at += _member_bytes(len(data))
    numbers = [len(pairs), *(places[name] for _, name in pairs)]
    index = b"".join(number.to_bytes(4, "big") for number in numbers) + texts
    parts = [ARCHIVE_MAGIC, _member("/", index), _member("//", names)]
    place = 0
    for name, data in members.items():
        parts.append(_member(f"/{place}", data))
        place += len(name) + 2
    return b"".join(parts)


def _member(name: str, data: bytes) -> bytes:
    """A file of an archive behind its head, at an even place."""
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n".encode()
    return head + data + b"\n" * (len(data) % 2)


def _member_bytes(size: int) -> int:
    return 60 + size + size % 2


# Linkers ------------------------------------------------------------------------------------------


def shared_library(packaged: Packaged) -> bytes:
    """A shared library that exports what ``vdla.h`` and NAME.h declare.

    Raises:
        PackageError: the processor loads none.
        TargetError: there is no linker, or it refuses.
    """
    if not packaged.processor.threads or "linux" not in packaged.processor.system:
        raise PackageError(
            f"--target {packaged.processor.name}: expected a processor under Linux, which loads "
            "shared libraries, found another; --as static makes a library to link"
        )
    shown = [*RUNTIME_SYMBOLS, *THREAD_SYMBOLS, f"{packaged.name}_open"]
    script = f"{{global: {'; '.join(shown)}; local: *;}};"
    flags = ["-shared", "--strip-all", "--hash-style=gnu", "-z", "max-page-size=4096"]
    flags += ["--version-script=exports", f"-soname=lib{packaged.name}.so"]
    given = {**objects(packaged), "exports": script.encode()}
    return run_linker(flags, given, packaged.processor)


def wasm_module(packaged: Packaged) -> bytes:
    """A module of WebAssembly that exports what ``vdla.h`` and NAME.h declare, and malloc and free.

    Raises:
        PackageError: code for another processor.
        TargetError: there is no linker, or it refuses.
    """
    if packaged.processor.machine != WASM:
        raise PackageError(
            f"--target: expected {WASM}, of which WebAssembly is made, found "
            f"{packaged.processor.name}"
        )
    shown = [*RUNTIME_SYMBOLS, f"{packaged.name}_open", "malloc", "free"]
    flags = ["--no-entry", "--strip-all", "--gc-sections", "--allow-undefined-file=imports"]
    flags += ["--stack-first", "-z", f"stack-size={WASM_STACK_BYTES}"]  # beyond it lies nothing
    flags += [f"--export={name}" for name in shown]
    given = {**objects(packaged), "imports": "\n".join(IMPORTED).encode()}
    return run_linker(flags, given, packaged.processor)
