"""Native code for what the accelerator doesn't take: PrimFunc -> LLVM IR -> object file or JIT.

A function ``f(A, B, C)`` becomes the symbol ``f`` with the C signature ``void f(void **buffers)``:
one pointer per parameter, in order, to dense row-major data aligned to its element, and behind them
one to a pool of threads, or null. Outputs must not overlap inputs. Large temporary buffers come
from ``malloc``, and most mathematics from the C library. Targets have names in
``vdla.compiler.targets.processor.description``.

Integers wrap, as in the interpreter. Loop indices are as wide as pointers and promised not to
overflow, so that LLVM can vectorize. The steps of a ``parallel`` loop are shared among the pool's
threads (``codegen.builtins``); ``thread`` and ``vthread`` loops run serially. A ``vectorized`` loop
of 2, 4, 8, … 64 steps becomes vector instructions, a lane for each step, where no step takes
another path than the others; any other one is left to LLVM's vectorizer. A product that is added to
what it is stored over is rounded once where the processor has an instruction for both, and twice
elsewhere. Of intrinsic calls there may be those that are a processor's own instructions
(``target.cpu``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
from llvmlite import ir as ll

from vdla.compiler.targets.processor.codegen.builtins import builtins_ir
from vdla.compiler.targets.processor.codegen.denormals import flushes, mode_functions
from vdla.compiler.targets.processor.codegen.emit_parallel import internal_function
from vdla.compiler.targets.processor.codegen.emit_stmt import Emitter
from vdla.compiler.targets.processor.codegen.emit_tiles import request_tiles
from vdla.compiler.targets.processor.codegen.flat import flat_function
from vdla.compiler.targets.processor.codegen.halves import without_half_vectors
from vdla.compiler.targets.processor.codegen.optimize import (
    BITCODE,
    OBJECT,
    Settings,
    Workers,
    compiled,
    linked,
    optimized,
)
from vdla.compiler.targets.processor.description.intrinsics import Dot, Tiles, own_lowering
from vdla.compiler.targets.processor.description.processor import NATIVE, Processor
from vdla.compiler.tir.ir import Alloc, Buffer, Evaluate, For, IntrinCall, PrimFunc, Stmt
from vdla.compiler.tir.visitor import walk
from vdla.runtime.threads import Pool, available

POINTER = ll.PointerType()
PART_INSTRUCTIONS = 5000  # of a text that a process compiles by itself


class CodegenError(Exception):
    """The function can't be compiled for this target, or was called with arrays that don't fit."""


def compile_ir(funcs: Iterable[PrimFunc], processor: Processor = NATIVE) -> str:
    """The functions as LLVM IR, not optimized.

    Raises:
        CodegenError: a function has intrinsic calls or buffers that aren't in scope ``global``.
    """
    return "".join(_texts(funcs, processor, most=0))


def _texts(
    funcs: Iterable[PrimFunc], processor: Processor, most: int = PART_INSTRUCTIONS
) -> Iterator[str]:
    """The functions as LLVM IR, in texts of some ``most`` instructions; as one for 0."""
    module, parts = ll.Module(name="vdla"), 0
    for func in funcs:
        _check_supported(func, processor)
        emit_function(module, func, processor)
        if most and instructions(module) > most:
            yield str(module)
            module, parts = ll.Module(name="vdla"), parts + 1
    if module.functions or not parts:
        yield str(module)


def instructions(module: ll.Module) -> int:
    """Number of instructions in a module."""
    return sum(len(block.instructions) for f in module.functions for block in f.blocks)


def compile_object(
    funcs: Iterable[PrimFunc], processor: Processor = NATIVE, prefix: str = ""
) -> bytes:
    """The functions as an object file, optimized, which exports each by its name behind a prefix.

    Raises:
        CodegenError: as ``compile_ir``; or LLVM doesn't know the target.
    """
    machine = target_machine(processor, reloc="pic")
    module = _optimized(_texts(funcs, processor), machine, processor)
    _put_before(prefix, module)
    return machine.emit_object(module)  # type: ignore[no-any-return]


def compile_objects(funcs: Iterable[PrimFunc], processor: Processor = NATIVE) -> list[bytes]:
    """The functions as object files that LLVM links in memory, where code is as far from data as it
    likes: of a long text one for each part, which processes emit side by side.

    LLVM 22.1 mixes up the global offset tables of several objects, so these have none: their
    addresses are fixed when they are linked.

    Raises:
        CodegenError: as ``compile_object``.
    """
    machine = target_machine(processor, reloc="static")
    first, several = _peeked(_texts(funcs, processor))
    if several:
        parts = _parts(several, replace(_settings(processor), fixed=True), OBJECT)
        return [*parts, machine.emit_object(llvm.parse_bitcode(_builtins(processor)))]
    return [machine.emit_object(_optimized(iter((first,)), machine, processor))]


def compile_optimized(funcs: Iterable[PrimFunc], processor: Processor = NATIVE) -> str:
    """The functions as LLVM IR, optimized as in ``compile_object``'s object file.

    Raises:
        CodegenError: as ``compile_object``.
    """
    machine = target_machine(processor, reloc="pic")
    return str(_optimized(_texts(funcs, processor), machine, processor))


def compile_assembly(
    funcs: Iterable[PrimFunc], processor: Processor = NATIVE, prefix: str = ""
) -> str:
    """The functions as the assembly text of ``compile_object``'s object file.

    Raises:
        CodegenError: as ``compile_object``.
    """
    machine = target_machine(processor, reloc="pic")
    module = _optimized(_texts(funcs, processor), machine, processor)
    _put_before(prefix, module)
    return machine.emit_assembly(module)  # type: ignore[no-any-return]


def _put_before(prefix: str, module: llvm.ModuleRef) -> None:
    """Puts a prefix before the names of all that a module exports."""
    for function in module.functions if prefix else ():
        if not function.is_declaration and function.linkage != llvm.Linkage.internal:
            function.name = prefix + function.name


def jit(
    funcs: Iterable[PrimFunc], threads: int = 1, processor: Processor = NATIVE
) -> dict[str, NativeFunction]:
    """The functions by name, compiled into this process; ``threads`` share parallel loops.

    The code is for ``processor``, whose instructions this machine has.

    Raises:
        CodegenError: as ``compile_ir``.
    """
    group = tuple(funcs)
    module = _optimized(_texts(group, processor), target_machine(processor), processor)
    engine = llvm.create_mcjit_compiler(module, target_machine(processor))
    engine.finalize_object()
    code = Compiled(engine)
    pool = Pool(code, threads) if threads > 1 else None
    return {f.name: NativeFunction(f, code, pool) for f in group}


class Compiled:
    """Code in this process, as long as this lives."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def function(self, name: str, *takes: Any) -> Any:
        """The function of a name, of arguments in ctypes' words."""
        return ctypes.CFUNCTYPE(None, *takes)(self.engine.get_function_address(name))


class NativeFunction:
    """A compiled function; called with one numpy array per parameter, it works in place."""

    def __init__(self, func: PrimFunc, code: Compiled, pool: Pool | None) -> None:
        self.name = func.name
        self.params = func.params
        self.code = code
        self.pool = pool if any(_is_parallel(stmt) for stmt in walk(func.body)) else None
        self.entry = code.function(func.name, ctypes.POINTER(ctypes.c_void_p))

    def __call__(self, *arrays: npt.NDArray[Any]) -> None:
        """Runs the function on one array per parameter, in place.

        Raises:
            CodegenError: an array doesn't fit its parameter, or isn't aligned and C-contiguous.
        """
        _check_arrays(self.name, self.params, arrays)
        behind = self.pool.address if self.pool else 0
        addresses = [*(a.ctypes.data for a in arrays), behind]
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        with self.pool.open() if self.pool else nullcontext():
            self.entry(pointers)


def _is_parallel(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind == "parallel"


def _check_arrays(name: str, params: Sequence[Buffer], arrays: Sequence[npt.NDArray[Any]]) -> None:
    """Raises where the arrays aren't what the parameters take."""
    if len(arrays) != len(params):
        raise CodegenError(f"{name}: expected {len(params)} arrays, found {len(arrays)}")
    for param, array in zip(params, arrays, strict=True):
        if array.shape != param.shape or array.dtype != np.dtype(param.dtype):
            raise CodegenError(
                f"{name}: {param.name}: expected {param.dtype}{list(param.shape)}, "
                f"found {array.dtype}{list(array.shape)}"
            )
        if not array.flags.c_contiguous or not array.flags.aligned:
            raise CodegenError(f"{name}: {param.name}: expected an aligned C-contiguous array")


# --- LLVM's side --------------------------------------------------------------------------------


def _settings(processor: Processor) -> Settings:
    """A processor in LLVM's words."""
    p = processor
    model = p.code_model if p.shared else "default"  # the one of whoever links an object
    return Settings(p.triple, p.cpu, p.features, p.quick, p.abi, model, fixed=not p.threads)


def target_machine(processor: Processor, reloc: str = "default") -> llvm.TargetMachine:
    """LLVM's description of a target, with which it optimizes and emits."""
    try:
        return _settings(processor).machine(reloc)
    except RuntimeError as error:
        raise CodegenError(
            f"target: expected a triple that LLVM knows, found {processor.triple!r}"
        ) from error


def _optimized(
    texts: Iterator[str], machine: llvm.TargetMachine, processor: Processor
) -> llvm.ModuleRef:
    """One module of some texts and of what every object brings along, optimized.

    Raises:
        CodegenError: a process ended early.
    """
    first, several = _peeked(texts)
    if several:
        parts = [*map(llvm.parse_bitcode, _parts(several, _settings(processor), BITCODE))]
    else:
        parts = [optimized(first, _settings(processor), machine)]
    module = linked([*parts, llvm.parse_bitcode(_builtins(processor))])
    return module if processor.has_halves else without_half_vectors(module)


def _peeked(texts: Iterator[str]) -> tuple[str, Iterator[str] | None]:
    """The first text; and all of them, if there are several."""
    first, second = next(texts), next(texts, None)
    return first, None if second is None else chain((first, second), texts)


def _parts(texts: Iterator[str], settings: Settings, form: str) -> list[bytes]:
    """Each text compiled to a form, in their order.

    Processes share the texts where there are several processors; each starts on them while others
    are written.

    Raises:
        CodegenError: a process ended early.
    """
    if available() == 1:
        machine = settings.machine(reloc="pic")
        return [compiled(text, settings, machine, form) for text in texts]
    with Workers(settings, available(), form) as workers:
        for text in texts:
            workers.add(text)
        try:
            return workers.results()
        except RuntimeError as error:
            raise CodegenError(f"LLVM: expected a process to compile, found {error}") from error


@cache
def _builtins(processor: Processor) -> bytes:
    """Functions that every object brings along, optimized, as LLVM's bit code."""
    machine = target_machine(processor)
    return compiled(builtins_ir(processor), _settings(processor), machine, BITCODE)


# --- functions ----------------------------------------------------------------------------------


def emit_function(module: ll.Module, func: PrimFunc, processor: Processor) -> None:
    """The work in ``NAME.body``, whose pointers don't alias, and the entry ``NAME`` around it."""
    flat = flat_function(func, processor)
    body = internal_function(module, f"{func.name}.body", func.params, [POINTER])
    pointers = dict(zip(func.params, body.args, strict=False))
    size = ll.IntType(processor.size_bits)
    emitter = Emitter(
        module, body, pointers, size, pool=body.args[-1], masks=processor.vectors.masks
    )
    if any(isinstance(call.intrin.lowering, Tiles) for call in _calls(func)):
        request_tiles(emitter.builder, emitter.exprs.library)
    emitter.function(flat.body)
    _emit_entry(module, func, body, processor)


def _emit_entry(module: ll.Module, func: PrimFunc, body: ll.Function, processor: Processor) -> None:
    """The exported function: it takes the pointers out of their array and calls the body, in which
    denormal numbers are zeros or not, whatever the caller has them be."""
    entry = ll.Function(module, ll.FunctionType(ll.VoidType(), [POINTER]), func.name)
    entry.attributes.add("nounwind")
    builder = ll.IRBuilder(entry.append_basic_block("entry"))
    pointers = []
    for n in range(len(func.params) + 1):
        slot = builder.gep(entry.args[0], [ll.Constant(ll.IntType(64), n)], source_etype=POINTER)
        pointers.append(builder.load(slot, typ=POINTER))
    if flushes(processor):
        flush, restore = mode_functions(module, processor)
        before = builder.call(flush, [])
        builder.call(body, pointers)
        builder.call(restore, [before])
    else:
        builder.call(body, pointers)
    builder.ret_void()


def _calls(func: PrimFunc) -> Iterator[IntrinCall]:
    """The calls of intrinsics in a function."""
    return (stmt.call for stmt in walk(func.body) if isinstance(stmt, Evaluate))


def _check_supported(func: PrimFunc, processor: Processor) -> None:
    """Raises where a function has on-chip buffers, which a CPU doesn't, intrinsic calls that are
    none of the target's instructions, or a name that no symbol can have."""
    name = func.name
    if "\0" in name:
        raise CodegenError(f"function: expected a name without NUL characters, found {name!r}")
    for intrin in (call.intrin for call in _calls(func)):
        if not own_lowering(intrin):
            raise CodegenError(
                f"{name}: {intrin.name}: a tensor intrinsic has no native "
                f"code; expand it first (tir.expand_intrinsics)"
            )
        if isinstance(intrin.lowering, Tiles) and not processor.vectors.tiles:
            raise CodegenError(
                f"{name}: {intrin.name}: expected a processor with AMX, found "
                f"{processor.cpu or processor.machine}"
            )
        known = processor.vectors.dots
        if isinstance(intrin.lowering, Dot) and intrin.lowering.instruction not in known:
            raise CodegenError(
                f"{name}: {intrin.name}: expected {' or '.join(known)} on "
                f"{processor.cpu or processor.machine}, found {intrin.lowering.instruction}"
            )
    buffers = [*func.params, *(s.buffer for s in walk(func.body) if isinstance(s, Alloc))]
    for buffer in buffers:
        if buffer.scope != "global":
            raise CodegenError(
                f"{name}: {buffer.name}: expected scope global, found {buffer.scope!r}"
            )


__all__ = [
    "NATIVE",
    "CodegenError",
    "NativeFunction",
    "Processor",
    "compile_assembly",
    "compile_ir",
    "compile_object",
    "compile_objects",
    "compile_optimized",
    "jit",
]
