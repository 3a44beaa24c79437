"""Symbols that object files leave open, by architecture: what whoever links them has to give.

Linux has all of them in the C library, its mathematics (libm) and the compiler's library (libgcc or
compiler-rt). An object for thumbv7em takes them of any C library for bare machines, as newlib. One
for wasm32 takes an allocator and functions of libm, and nothing else: memory is copied and cleared
by instructions of WebAssembly, and conversions of float16 come along (``codegen.builtins``).
"""

from __future__ import annotations

from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.tir.ir import LIBRARY_CALLS

ALLOCATOR = frozenset({"malloc", "free"})  # of temporaries that are too large for the stack
MEMORY = frozenset({"memcpy", "memmove", "memset"})
THREADS = frozenset(
    {"clock_gettime", "sched_yield"}
    | {f"pthread_mutex_{end}" for end in ("init", "lock", "unlock")}
    | {f"pthread_cond_{end}" for end in ("broadcast", "init", "wait")}
)
# erf, exp, log and tanh of float32 are arithmetic (``targets.mathematics``).
MATHEMATICS = frozenset(
    {"exp", "log", "tanh", "pow", "powf", *LIBRARY_CALLS}
    | {f"{name}f" for name in LIBRARY_CALLS if name != "erf"}
)
ROUNDING = frozenset({"floor", "floorf", "rint", "rintf"})
AEABI = frozenset(  # the ABI's functions of integers and floats that ARM's instructions lack
    f"__aeabi_{name}"
    for name in (
        "d2lz", "d2ulz", "f2lz", "f2ulz", "l2d", "l2f", "ul2d", "ul2f", "ldivmod", "uldivmod",
    )
)  # fmt: skip
DIVISIONS = frozenset(f"__aeabi_{name}" for name in ("idiv", "idivmod", "uidiv", "uidivmod"))
DOUBLES = frozenset(
    f"__aeabi_{name}"
    for name in (
        "d2f", "d2iz", "d2uiz", "f2d", "i2d", "ui2d", "dadd", "dsub", "dmul", "ddiv", "dcmpeq",
        "dcmpge", "dcmpgt", "dcmple", "dcmplt", "dcmpun",
    )
)  # fmt: skip
HALVES = frozenset({"__extendhfsf2", "__truncsfhf2"})
LINUX = ALLOCATOR | MEMORY | THREADS | MATHEMATICS
SYMBOLS = {
    "x86_64": LINUX | HALVES | {"fma", "fmaf"},
    "aarch64": LINUX,
    "arm": LINUX | AEABI | DIVISIONS | ROUNDING
    | {"fma", "fmaf", "__gnu_f2h_ieee", "__gnu_h2f_ieee"},
    "riscv64": LINUX | HALVES,
    "thumbv7em": ALLOCATOR | MATHEMATICS | ROUNDING | AEABI | DOUBLES | {"sqrt", "fma"}
    | {f"__aeabi_{name}{size}" for name in ("memcpy", "memmove", "memset", "memclr")
       for size in ("", "4", "8")},
    "wasm32": ALLOCATOR | MATHEMATICS | {"fma", "fmaf"},
}  # fmt: skip
# Those that the linker itself gives.
LINKERS = {
    "x86_64": {"_GLOBAL_OFFSET_TABLE_"},
    "wasm32": {"__indirect_function_table", "__linear_memory", "__stack_pointer"},
}


def open_symbols(processor: Processor) -> frozenset[str]:
    """Names that an object for a processor may leave open, without those that linkers give."""
    return frozenset(SYMBOLS[processor.machine])


def linker_symbols(processor: Processor) -> frozenset[str]:
    """Names that an object for a processor leaves open and linkers give."""
    return frozenset(LINKERS.get(processor.machine, ()))
