"""The processors that code can be compiled for, by name."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cache

from vdla.compiler.targets.errors import TargetError

KEEP, FLUSH = "keep", "flush"
DOTS = ("vpdpbusd", "pmaddwd", "multiply")  # a processor with one also has all later ones
# Registers that unpack bytes, where no single instruction computes a dot product.
UNPACK_REGISTERS = 4


@dataclass(frozen=True, slots=True)
class Vectors:
    """A processor's vector registers: how many, and how many float32 each holds.

    ``fused``: one instruction multiplies and adds, rounding once.
    ``dot4`` names what adds four products of uint8 and int8 to each lane's int32
    (``codegen.emit_dot``).
    """

    lanes: int
    registers: int
    fused: bool = True
    dot4: str = "multiply"

    @property
    def dots(self) -> tuple[str, ...]:
        """All that it could add products of bytes with."""
        return DOTS[DOTS.index(self.dot4) :]

    @property
    def word_registers(self) -> int:
        """Number of registers left for sums and operands of products of bytes."""
        return self.registers - (0 if self.dot4 == "vpdpbusd" else UNPACK_REGISTERS)


SSE = Vectors(4, 16, fused=False, dot4="pmaddwd")
AVX2, AVX512 = Vectors(8, 16, dot4="pmaddwd"), Vectors(16, 32, dot4="pmaddwd")
VNNI = Vectors(16, 32, dot4="vpdpbusd")
NEON32, NEON64 = Vectors(4, 16, fused=False), Vectors(4, 32)
SIMD128 = Vectors(4, 16, fused=False)  # WebAssembly has any number of values; engines have 16
# Without vectors LLVM has a register for each lane: eight vectors of four lanes fill 32.
SCALAR, SCALAR_UNFUSED = Vectors(4, 8), Vectors(4, 8, fused=False)


@dataclass(frozen=True, slots=True)
class Architecture:
    """Properties that processors of one instruction set have in common.

    ``kind`` is ``Processor.kind``, and ``size_bits`` are those of C's ``size_t``. ``has_halves``:
    LLVM compares vectors of float16, and a library converts them where no instruction does.
    """

    vectors: Vectors
    kind: str
    size_bits: int = 64
    has_halves: bool = True


ARCHITECTURES = {
    "arm": Architecture(NEON32, "armv7 neon", 32),
    "aarch64": Architecture(NEON64, "armv8"),
    "arm64": Architecture(NEON64, "armv8"),  # its name on macOS
    "riscv64": Architecture(SCALAR, "riscv64"),
    "thumbv7em": Architecture(SCALAR_UNFUSED, "armv7e-m", 32),
    "wasm32": Architecture(SIMD128, "wasm32 simd128", 32, has_halves=False),
}
UNLISTED = ARCHITECTURES["aarch64"]  # of which code takes no instruction by its name


@dataclass(frozen=True, slots=True)
class Processor:
    """Processor that the code runs on, in LLVM's words; the default is this machine.

    ``triple`` has all of its parts, vendor too: LLVM takes a shorter one for another ABI.
    ``quick`` is for code that is compiled to run once: LLVM leaves out what takes it long.
    ``winograd`` lets convolutions of floats be computed by Winograd's algorithm, which differs from
    plain sums by some 1e-5 of a result.
    ``denormals`` "flush" takes float32 and float64 below the least normal number for zeros, where
    the processor can (``codegen/denormals.py``); "keep" computes with them.
    ``abi`` is the calling convention by LLVM's name, where the triple doesn't say it, and
    ``code_model`` how far from each other code and data of a shared object may lie.
    ``shared``: the machine loads a shared object; one that doesn't is given an object file.
    ``threads``: the machine has an operating system with threads; without one parallel loops are
    serial, and code stays where it is linked.
    """

    triple: str = ""
    cpu: str = ""
    features: str = ""
    quick: bool = False
    winograd: bool = True
    denormals: str = KEEP
    abi: str = ""
    code_model: str = "jitdefault"
    shared: bool = True
    threads: bool = True

    @property
    def is_native(self) -> bool:
        """Whether it is the machine that this runs on."""
        return not self.triple

    @property
    def name(self) -> str:
        """Name for users: of PROCESSORS, or else its CPU's."""
        own = (self.triple, self.cpu, self.features)
        for name, known in PROCESSORS.items():
            if own == (known.triple, known.cpu, known.features):
                return name
        return self.cpu or self.machine

    @property
    def machine(self) -> str:
        """The architecture: ``x86_64``, ``arm`` …"""
        return (self.triple or _native_triple()).partition("-")[0]

    @property
    def system(self) -> str:
        """The rest of its triple: vendor and operating system."""
        return (self.triple or _native_triple()).partition("-")[2]

    @property
    def gnu(self) -> str:
        """The triple as GNU's tools and Debian have it: ``arm-linux-gnueabihf``."""
        return self.triple.replace("-unknown-", "-")

    @property
    def vectors(self) -> Vectors:
        """The processor's vector registers."""
        if self.is_native:
            return _native_vectors()
        if self._architecture:
            return self._architecture.vectors
        return _x86_vectors({f[1:] for f in self.features.split(",") if f.startswith("+")})

    @property
    def kind(self) -> str:
        """Kind of processor, which schedules depend on: those of one kind suit all processors of
        it.
        """
        return self._architecture.kind if self._architecture else KINDS[self.vectors]

    @property
    def size_bits(self) -> int:
        """Bits of C's ``size_t``."""
        return self._architecture.size_bits if self._architecture else 64

    @property
    def has_halves(self) -> bool:
        """Whether LLVM has all that code with float16 needs (``Architecture``)."""
        return self._architecture is None or self._architecture.has_halves

    @property
    def _architecture(self) -> Architecture | None:
        """Properties of its instruction set; None for x86-64's, which depend on features."""
        return None if self.machine == "x86_64" else ARCHITECTURES.get(self.machine, UNLISTED)


@cache
def _native_triple() -> str:
    """The triple of the machine that this runs on."""
    import llvmlite.binding as llvm  # whoever lists targets needs none

    return str(llvm.get_process_triple())


@cache
def _native_vectors() -> Vectors:
    """Vector registers of the machine that this runs on."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if NATIVE.machine != "x86_64":
        return ARCHITECTURES.get(NATIVE.machine, UNLISTED).vectors
    return _x86_vectors({name for name, present in features.items() if present})


def _x86_vectors(features: Set[str]) -> Vectors:
    """Vector registers of an x86-64 with these features, in LLVM's words."""
    if {"avx512f", "avx512bw", "avx512vl"} <= features:
        return VNNI if "avx512vnni" in features else AVX512
    return AVX2 if {"avx2", "fma"} <= features else SSE


def _x86(cpu: str, features: str, code_model: str = "jitdefault") -> Processor:
    return Processor("x86_64-unknown-linux-gnu", cpu, features, code_model=code_model)


NATIVE = Processor()
V2 = "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3"  # those of each x86-64 since some 2011
V3 = "+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"  # System V ABI, AMD64 supplement, table 3.1
V4 = f"{V3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
PROCESSORS = {
    "native": NATIVE,
    "x86-64-v3": _x86("x86-64-v3", V3),
    "x86-64-v4": _x86("x86-64-v4", V4),
    "cortex-a9": Processor("arm-unknown-linux-gnueabihf", "cortex-a9", "+neon"),
    "cortex-a53": Processor("aarch64-unknown-linux-gnu", "cortex-a53", "+neon"),
    "cortex-a72": Processor("aarch64-unknown-linux-gnu", "cortex-a72", "+neon"),
    # Any machine of an architecture, as Linux's distributions have it.
    "x86_64": _x86("x86-64-v2", V2, "default"),
    "aarch64-linux": Processor(
        "aarch64-unknown-linux-gnu", "generic", "+neon", code_model="default"
    ),
    "arm-linux": Processor(  # the oldest ARMv7-A with NEON, with no more than all of these
        "arm-unknown-linux-gnueabihf", "cortex-a8", "+neon", code_model="default"
    ),
    "riscv64-linux": Processor(
        "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c",
        abi="lp64d", code_model="default",
    ),
    # No operating system: whoever links objects gives what they call.
    "thumbv7em": Processor(  # a Cortex-M4 with its floating-point unit
        "thumbv7em-unknown-none-eabihf", "cortex-m4", "+vfp4d16sp",
        shared=False, threads=False,
    ),
    "wasm32": Processor(
        "wasm32-unknown-unknown", "generic",
        "+bulk-memory,+bulk-memory-opt,+nontrapping-fptoint,+sign-ext,+simd128",
        shared=False, threads=False,
    ),
}  # fmt: skip
KINDS = {SSE: "x86-64-v2", AVX2: "x86-64-v3", AVX512: "x86-64-v4", VNNI: "x86-64-v4 vnni"}
WINOGRAD = "-winograd"


def find_processor(name: str) -> Processor:
    """A processor by its name; ``NAME,-winograd`` is one without Winograd's algorithm.

    Raises:
        TargetError: there is none of that name.
    """
    cpu, comma, switch = name.partition(",")
    if cpu not in PROCESSORS:
        raise TargetError(f"target: expected one of {', '.join(PROCESSORS)}, found {cpu}")
    if comma and switch != WINOGRAD:
        raise TargetError(f"target: expected {cpu} or {cpu},{WINOGRAD}, found {name}")
    return replace(PROCESSORS[cpu], winograd=False) if comma else PROCESSORS[cpu]
