"""The processors that code can be compiled for, by name."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cache

from vdla.compiler.targets.errors import TargetError

KEEP, FLUSH = "keep", "flush"
# What adds products of bytes; of one line, a processor with one also has all later ones.
ON_ANY = "multiply"
DOTS = (("vpdpbusd", "pmaddwd", ON_ANY), ("usdot", "sdot", ON_ANY))
WHOLE = ("vpdpbusd", "usdot")  # one instruction does it all
# Registers that unpack bytes, where no single instruction computes a dot product.
UNPACK_REGISTERS = 4
AVX512_LANES = 16


@dataclass(frozen=True, slots=True)
class Vectors:
    """A processor's vector registers: how many, and how many float32 each holds.

    ``fused``: one instruction multiplies and adds, rounding once.
    ``dot4`` names what adds four products of uint8 and int8 to each lane's int32
    (``codegen.emit_dot``). ``tiles``: there are tile registers for such products, too, which
    Linux grants (``codegen.emit_tiles``).
    """

    lanes: int
    registers: int
    fused: bool = True
    dot4: str = ON_ANY
    tiles: bool = False

    @property
    def masks(self) -> bool:
        """Whether one instruction reads or writes some lanes alone, of elements of any size."""
        return self.lanes == AVX512_LANES

    @property
    def dots(self) -> tuple[str, ...]:
        """All that it could add products of bytes with."""
        line = next(line for line in DOTS if self.dot4 in line)
        return line[line.index(self.dot4) :]

    @property
    def word_registers(self) -> int:
        """Number of registers left for sums and operands of products of bytes."""
        return self.registers - (0 if self.dot4 in WHOLE else UNPACK_REGISTERS)


SSE = Vectors(4, 16, fused=False, dot4="pmaddwd")
AVX2, AVX512 = Vectors(8, 16, dot4="pmaddwd"), Vectors(16, 32, dot4="pmaddwd")
AVX_VNNI, VNNI = Vectors(8, 16, dot4="vpdpbusd"), Vectors(16, 32, dot4="vpdpbusd")
AMX = Vectors(16, 32, dot4="vpdpbusd", tiles=True)
NEON32, NEON64 = Vectors(4, 16, fused=False), Vectors(4, 32)
DOTPROD, I8MM = Vectors(4, 32, dot4="sdot"), Vectors(4, 32, dot4="usdot")
SIMD128 = Vectors(4, 16, fused=False)  # WebAssembly has any number of values; engines have 16
# Without vectors LLVM has a register for each lane: eight vectors of four lanes fill 32.
SCALAR, SCALAR_UNFUSED = Vectors(4, 8), Vectors(4, 8, fused=False)


@dataclass(frozen=True, slots=True)
class Architecture:
    """Properties of each processor of one instruction set.

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
        return _vectors(self, self._named_features)

    @property
    def kind(self) -> str:
        """Kind of processor, which schedules depend on: those of one kind suit all processors of
        it.
        """
        return KINDS.get(self.vectors) or (self._architecture or UNLISTED).kind

    @property
    def _named_features(self) -> Set[str]:
        """The features that it is described with."""
        return {f[1:] for f in self.features.split(",") if f.startswith("+")}

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
def _native_features() -> Set[str]:
    """Features of the machine that this runs on, in LLVM's words; those of its CPU's, too, if that
    is one of PROCESSORS: of ARM's, systems name some by other words."""
    import llvmlite.binding as llvm

    present = {name for name, value in llvm.get_host_cpu_features().items() if value}
    cpu = llvm.get_host_cpu_name()
    alike = (p for p in PROCESSORS.values() if p.cpu == cpu and p.machine == NATIVE.machine)
    return present.union(*(p._named_features for p in alike))


@cache
def _native_vectors() -> Vectors:
    """Vector registers of the machine that this runs on."""
    return _vectors(NATIVE, _native_features())


def _vectors(processor: Processor, features: Set[str]) -> Vectors:
    """Vector registers of a processor with these features, in LLVM's words."""
    architecture = processor._architecture
    if architecture is None:
        vectors = _x86_vectors(features)
        return vectors if "linux" in processor.system else replace(vectors, tiles=False)
    if architecture.vectors != NEON64 or "dotprod" not in features:
        return architecture.vectors
    return I8MM if "i8mm" in features else DOTPROD


def _x86_vectors(features: Set[str]) -> Vectors:
    """Vector registers of an x86-64 with these features."""
    if {"avx512f", "avx512bw", "avx512vl"} <= features:
        if {"amx-tile", "amx-int8"} <= features:
            return AMX
        return VNNI if "avx512vnni" in features else AVX512
    if {"avx2", "fma"} <= features:
        return AVX_VNNI if "avxvnni" in features else AVX2
    return SSE


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
    "sapphirerapids": _x86("sapphirerapids", f"{V4},+avx512vnni,+amx-tile,+amx-int8"),
    "cortex-a9": Processor("arm-unknown-linux-gnueabihf", "cortex-a9", "+neon"),
    "cortex-a53": Processor("aarch64-unknown-linux-gnu", "cortex-a53", "+neon"),
    "cortex-a72": Processor("aarch64-unknown-linux-gnu", "cortex-a72", "+neon"),
    "cortex-a76": Processor(
        "aarch64-unknown-linux-gnu", "cortex-a76", "+neon,+dotprod,+lse,+fullfp16"
    ),
    "neoverse-v1": Processor(
        "aarch64-unknown-linux-gnu", "neoverse-v1", "+neon,+dotprod,+i8mm,+lse,+fullfp16"
    ),
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
KINDS = {  # where features decide, and not the instruction set alone
    SSE: "x86-64-v2", AVX2: "x86-64-v3", AVX_VNNI: "x86-64-v3 vnni",
    AVX512: "x86-64-v4", VNNI: "x86-64-v4 vnni", AMX: "x86-64-v4 vnni",
    DOTPROD: "armv8 dotprod", I8MM: "armv8 i8mm",
}  # fmt: skip
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
