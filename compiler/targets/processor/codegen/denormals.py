"""Denormal numbers as zeros: a bit or two in a register of each thread.

``vdla_flush`` sets the bits that have operands and results below the least normal number be zeros,
and gives the register as it was; ``vdla_restore`` puts that back. Functions that a caller enters
call both, and so do rows of functions and threads of a pool (``runtime/pool/pool.c``), inside which
functions find the bits set and write nothing. Processors that aren't listed have no such bits, or
LLVM has no name for them.

    x86-64   MXCSR: FTZ (bit 15), DAZ (6)     Intel 64 and IA-32 manual, volume 1, 10.2.3
    A64      FPCR: FZ (24)                    Arm Architecture Reference Manual, C5.2.8
    A32      FPSCR: FZ (24)                   the same, G8.2.55; NEON's arithmetic flushes by itself
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir as ll

from vdla.compiler.targets.processor.codegen.inlined import inlined_function
from vdla.compiler.targets.processor.description.processor import FLUSH, Processor

FLUSH_NAME, RESTORE_NAME = "vdla_flush", "vdla_restore"
FZ = 1 << 24
BITS = {"x86_64": 1 << 15 | 1 << 6, "aarch64": FZ, "arm64": FZ, "arm": FZ}
I32, I64, VOID, POINTER = ll.IntType(32), ll.IntType(64), ll.VoidType(), ll.PointerType()
Access = tuple[Callable[[ll.IRBuilder], ll.Value], Callable[[ll.IRBuilder, ll.Value], object]]


def flushes(processor: Processor) -> bool:
    """Whether code for a processor sets the bits."""
    return processor.denormals == FLUSH and processor.machine in BITS


def mode_functions(module: ll.Module, processor: Processor) -> tuple[ll.Function, ll.Function]:
    """``vdla_flush`` and ``vdla_restore`` in a module, which do nothing where no bits are to be
    set."""
    if FLUSH_NAME in module.globals:
        return module.globals[FLUSH_NAME], module.globals[RESTORE_NAME]
    flush = inlined_function(module, FLUSH_NAME, ll.FunctionType(I64, []))
    restore = inlined_function(module, RESTORE_NAME, ll.FunctionType(VOID, [I64]))
    b, back = ll.IRBuilder(flush.append_basic_block()), ll.IRBuilder(restore.append_basic_block())
    if not flushes(processor):
        b.ret(I64(0))
        back.ret_void()
        return flush, restore
    get, put = (_x86 if processor.machine == "x86_64" else _arm)(module, processor.machine)
    before = get(b)
    kind = before.type
    bits = kind(BITS[processor.machine])
    with b.if_then(_lacks(b, before, bits)):
        put(b, b.or_(before, bits))
    b.ret(before if kind == I64 else b.zext(before, I64))
    own = restore.args[0] if kind == I64 else back.trunc(restore.args[0], kind)
    with back.if_then(_lacks(back, own, bits)):
        put(back, own)
    back.ret_void()
    return flush, restore


def _lacks(b: ll.IRBuilder, value: ll.Value, bits: ll.Constant) -> ll.Value:
    """Whether a register doesn't have all bits: to write it takes longer than to read it."""
    return b.icmp_unsigned("!=", b.and_(value, bits), bits)


def _x86(module: ll.Module, machine: str) -> Access:
    """Reads of MXCSR and writes of it, each by way of memory."""
    kind = ll.FunctionType(VOID, [POINTER])
    store = ll.Function(module, kind, "llvm.x86.sse.stmxcsr")
    load = ll.Function(module, kind, "llvm.x86.sse.ldmxcsr")

    def get(b: ll.IRBuilder) -> ll.Value:
        place = b.alloca(I32)
        b.call(store, [place])
        return b.load(place, typ=I32)

    def put(b: ll.IRBuilder, value: ll.Value) -> None:
        place = b.alloca(I32)
        b.store(value, place)
        b.call(load, [place])

    return get, put


def _arm(module: ll.Module, machine: str) -> Access:
    """Reads of FPCR or FPSCR and writes of it."""
    kind, name = (I32, "arm.{}.fpscr") if machine == "arm" else (I64, "aarch64.{}.fpcr")
    read = ll.Function(module, ll.FunctionType(kind, []), f"llvm.{name.format('get')}")
    write = ll.Function(module, ll.FunctionType(VOID, [kind]), f"llvm.{name.format('set')}")
    return lambda b: b.call(read, []), lambda b, value: b.call(write, [value])


def mode_text(processor: Processor) -> str:
    """Both functions, and what they call, as LLVM's text."""
    module = ll.Module()
    mode_functions(module, processor)
    return "\n".join(map(str, module.functions))
