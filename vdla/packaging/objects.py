"""Objects that a package is linked of: the runtime, and a module's bytes beside its functions.

    runtime   runtime/c, for a processor
    model     NAME_open, which opens the module's bytes, in read-only data, with these functions

The third one, of the functions themselves, is the module's host code. LLVM alone makes all three.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import llvmlite.binding as llvm

from vdla.compiler.targets.llvm_passes import run_pipeline
from vdla.compiler.targets.processor.codegen.llvm import target_machine
from vdla.compiler.targets.processor.description.processor import PROCESSORS, Processor
from vdla.compiler.targets.processor.description.symbols import ALLOCATOR
from vdla.packaging.features import checked_features
from vdla.runtime.module import Module

WASM = "wasm32"
EXPORTED = "vdla_"  # what the names of runtime/c's functions for users begin with
SMALL = ' nounwind minsize optsize "no-builtins" {'  # attributes of its functions
ALLOCATED, ZEROS = 2, 8  # SHF_ALLOC and SHT_NOBITS
POOL = ("vdla_begin", "vdla_work", "vdla_set")  # of runtime/pool, in code for systems with threads


@dataclass(frozen=True)
class Packaged:
    """A module as it is packaged: its ``name``, an identifier of C, the ``processor`` that its
    functions are for, and the ``prefix`` of their symbols."""

    name: str
    module: Module
    processor: Processor
    prefix: str = ""

    @property
    def functions(self) -> Mapping[str, tuple[int, ...]]:
        """The bytes of the buffers of each host function, by its name, sorted."""
        host = self.module.host
        return dict(sorted(host.functions.items())) if host else {}


@cache
def runtime_object(processor: Processor, *, assembly: bool = False) -> bytes:
    """The runtime for a processor, optimized for size: an object file, or assembly text.

    On x86-64 it runs on any: it is there to say that another one is needed.
    """
    machine = target_machine(_least(processor), reloc="pic")
    texts = (text.replace(" nounwind {", SMALL) for text in _runtime_texts(processor))
    first, *others = map(llvm.parse_assembly, texts)
    for other in others:
        first.link_in(other)
    for function in first.functions:
        shown = function.name.startswith(EXPORTED) or function.name in ALLOCATOR
        if not function.is_declaration and not shown:
            function.linkage = llvm.Linkage.internal
    return _emitted(first, machine, assembly)


def model_object(packaged: Packaged, *, assembly: bool = False) -> bytes:
    """A module's bytes, its table of functions and NAME_open: an object file, or assembly text."""
    machine = target_machine(_least(packaged.processor), reloc="pic")
    return _emitted(llvm.parse_assembly(model_ir(packaged)), machine, assembly)


def _least(processor: Processor) -> Processor:
    """The processor, or on x86-64 the least one, under the same system."""
    known = PROCESSORS.get(processor.machine)
    return replace(processor, cpu=known.cpu, features=known.features) if known else processor


def _runtime_texts(processor: Processor) -> Iterator[str]:
    folder, bits = files("vdla.runtime.c"), processor.size_bits
    yield folder.joinpath(f"runtime{bits}.ll").read_text()
    if processor.threads:
        yield folder.joinpath(f"threads{bits}.ll").read_text()
    if processor.machine == WASM:
        yield folder.joinpath("wasm32.ll").read_text()


def _emitted(module: llvm.ModuleRef, machine: llvm.TargetMachine, assembly: bool) -> bytes:
    """A module, optimized for size, for a machine."""
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_unrolling = tuning.loop_vectorization = tuning.slp_vectorization = False
    run_pipeline(module, machine, tuning)
    text: str | bytes = (machine.emit_assembly if assembly else machine.emit_object)(module)
    return text.encode() if isinstance(text, str) else text


def loaded_bytes(code: bytes) -> int | None:
    """The bytes of an object file that a program has in its memory or flash: code and data, but no
    zeros, symbols and relocations. None of one that isn't ELF.

    Source: "System V ABI", chapter 4, section headers.
    """
    if not code.startswith(b"\x7fELF"):
        return None
    wide = code[4] == 2
    at, word = (40, "<Q") if wide else (32, "<I")
    (table,) = struct.unpack_from(word, code, at)
    each, count = struct.unpack_from("<2H", code, 58 if wide else 46)
    layout = "<2I4Q2I2Q" if wide else "<10I"
    rows = (struct.unpack_from(layout, code, table + n * each) for n in range(count))
    loaded = (row for row in rows if row[2] & ALLOCATED and row[1] != ZEROS)
    sizes: list[int] = [row[5] for row in loaded]
    return sum(sizes)


# A module's side ----------------------------------------------------------------------------------


def model_ir(packaged: Packaged) -> str:
    """The module's object as LLVM's text."""
    size, module, name = f"i{packaged.processor.size_bits}", packaged.module.packed(), packaged.name
    texts = [f"@module = internal constant [{len(module)} x i8] {quoted(module)}, align 64"]
    pool, machine = ["ptr null"] * len(POOL), "ptr null"
    if packaged.functions and packaged.processor.threads:
        pool = [f"ptr {symbol(packaged.prefix + each)}" for each in POOL]
        texts += [f"declare void {each.removeprefix('ptr ')}()" for each in pool]
    if text := checked_features(packaged.processor):
        texts.append(text)
        machine = "ptr @is_for_this_processor"
    texts += _function_table(packaged, size)
    count = len(packaged.functions)
    fields = ["ptr @functions", f"{size} {count}", machine, *pool]
    texts.append(
        f"@code = internal constant {{ptr, {size}, ptr, ptr, ptr, ptr}} {{{', '.join(fields)}}}"
    )
    given = f"ptr %memory, {size} %bytes, ptr @module, {size} {len(module)}, ptr @code, "
    texts.append(f"""\
declare i32 @vdla_open(ptr, {size}, ptr, {size}, ptr, ptr, ptr)
define i32 @{name}_open(ptr %memory, {size} %bytes, ptr %board, ptr %opened) nounwind {{
  %status = call i32 @vdla_open({given}ptr %board, ptr %opened)
  ret i32 %status
}}
""")
    return "\n".join(texts)


def _function_table(packaged: Packaged, size: str) -> Iterator[str]:
    """The fields of ``struct vdla_function`` of each function."""
    rows = []
    for number, (name, sizes) in enumerate(packaged.functions.items()):
        text = name.encode() + b"\0"
        own = symbol(packaged.prefix + name)
        yield f"declare void {own}(ptr)"
        yield f"@name{number} = internal constant [{len(text)} x i8] {quoted(text)}"
        yield f"@sizes{number} = internal constant {_array(size, [f'{size} {n}' for n in sizes])}"
        rows.append(f"{{ptr, ptr, ptr, {size}}} {{ptr @name{number}, ptr {own}, "
                    f"ptr @sizes{number}, {size} {len(sizes)}}}")  # fmt: skip
    yield f"@functions = internal constant {_array(f'{{ptr, ptr, ptr, {size}}}', rows)}"


def _array(kind: str, values: Sequence[str]) -> str:
    return f"[{len(values)} x {kind}] [{', '.join(values)}]"


def symbol(name: str) -> str:
    """A symbol as LLVM's text has it."""
    return f'@"{_escaped(name.encode())}"'


def quoted(data: bytes) -> str:
    """Bytes as LLVM's text has them."""
    return f'c"{_escaped(data)}"'


ESCAPES = [chr(n) if 32 <= n < 127 and chr(n) not in '"\\' else f"\\{n:02X}" for n in range(256)]


def _escaped(data: bytes) -> str:
    return "".join(map(ESCAPES.__getitem__, data))
