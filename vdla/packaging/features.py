"""The check that an x86-64 has the instructions that code needs, as LLVM's text.

A package is linked where it is made and run where nobody knows: an instruction that a processor
lacks would end the process without a word. What each bit means: Intel's manual, volume 2A, CPUID.
"""

from __future__ import annotations

from collections import defaultdict

import llvmlite.binding as llvm

from vdla.compiler.targets.processor.description.processor import NATIVE, Processor

A, B, C, D = range(4)  # registers that CPUID answers in
BITS = {  # leaf, subleaf, register and bit, by LLVM's name of the feature
    "sse3": (1, 0, C, 0), "ssse3": (1, 0, C, 9), "fma": (1, 0, C, 12), "cx16": (1, 0, C, 13),
    "sse4.1": (1, 0, C, 19), "sse4.2": (1, 0, C, 20), "movbe": (1, 0, C, 22),
    "popcnt": (1, 0, C, 23), "avx": (1, 0, C, 28), "f16c": (1, 0, C, 29),
    "bmi": (7, 0, B, 3), "avx2": (7, 0, B, 5), "bmi2": (7, 0, B, 8), "avx512f": (7, 0, B, 16),
    "avx512dq": (7, 0, B, 17), "avx512ifma": (7, 0, B, 21), "avx512cd": (7, 0, B, 28),
    "avx512bw": (7, 0, B, 30), "avx512vl": (7, 0, B, 31), "avx512vbmi": (7, 0, C, 1),
    "avx512vbmi2": (7, 0, C, 6), "gfni": (7, 0, C, 8), "vaes": (7, 0, C, 9),
    "vpclmulqdq": (7, 0, C, 10), "avx512vnni": (7, 0, C, 11), "avx512bitalg": (7, 0, C, 12),
    "avx512vpopcntdq": (7, 0, C, 14), "avx512fp16": (7, 0, D, 23), "avxvnni": (7, 1, A, 4),
    "avx512bf16": (7, 1, A, 5), "avxvnniint8": (7, 1, D, 4), "avxifma": (7, 1, A, 23),
    "lzcnt": (0x8000_0001, 0, C, 5),
}  # fmt: skip
XMM_YMM, ZMM = 0x06, 0xE6  # state that the system has to keep, in XCR0
CPUID = 'asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"'
XGETBV = 'asm sideeffect "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"'
RESULT = "{i32, i32, i32, i32}"


def checked_features(processor: Processor) -> str:
    """A function ``is_for_this_processor``; empty where nothing is to be checked, or where this
    machine's LLVM can't assemble it."""
    if processor.machine != "x86_64" or NATIVE.machine != "x86_64":
        return ""
    llvm.initialize_native_asmparser()
    features = processor.features
    if processor.is_native:
        features = llvm.get_host_cpu_features().flatten()
    names = {each[1:] for each in features.split(",") if each.startswith("+")} & BITS.keys()
    wanted = defaultdict[tuple[int, int, int], int](int)
    for leaf, subleaf, register, bit in map(BITS.__getitem__, sorted(names)):
        wanted[leaf, subleaf, register] |= 1 << bit
    state = ZMM if "avx512f" in names else XMM_YMM if names & {"avx", "avx2"} else 0
    return _function(dict(wanted), state) if wanted else ""


def _function(wanted: dict[tuple[int, int, int], int], state: int) -> str:
    """A function that gives 1 where the processor has all bits of some registers, and 0 else."""
    lines = ["define internal i32 @is_for_this_processor() nounwind {"]
    leaves = sorted({(leaf, subleaf) for leaf, subleaf, _ in wanted})
    for extended in (0, 0x8000_0000):
        lines.append(f"  %most{extended} = call {RESULT} {CPUID}(i32 {extended}, i32 0)")
        lines.append(f"  %last{extended} = extractvalue {RESULT} %most{extended}, 0")
    highest = max(leaf for leaf, _ in leaves if leaf < 0x8000_0000) if leaves else 0
    lines.append(f"  %has_leaves = icmp uge i32 %last0, {highest}")
    lines.append(f"  %most_extended = icmp uge i32 %last{0x8000_0000}, {0x8000_0001}")
    lines.append("  %can_ask = and i1 %has_leaves, %most_extended")
    lines.append("  br i1 %can_ask, label %ask, label %no\nask:")
    all_so_far = "true"
    for number, (leaf, subleaf) in enumerate(leaves):
        lines.append(f"  %cpuid{number} = call {RESULT} {CPUID}(i32 {leaf}, i32 {subleaf})")
        for register in range(4):
            if mask := wanted.get((leaf, subleaf, register)):
                name = f"{number}.{register}"
                lines.append(f"  %r{name} = extractvalue {RESULT} %cpuid{number}, {register}")
                lines.append(f"  %own{name} = and i32 %r{name}, {mask}")
                lines.append(f"  %has{name} = icmp eq i32 %own{name}, {mask}")
                lines.append(f"  %all{name} = and i1 {all_so_far}, %has{name}")
                all_so_far = f"%all{name}"
    lines.append(f"  br i1 {all_so_far}, label %state, label %no\nstate:")
    if state:
        lines.append(f"  %xcr = call {{i32, i32}} {XGETBV}(i32 0)")
        lines.append("  %low = extractvalue {i32, i32} %xcr, 0")
        lines.append(f"  %kept = and i32 %low, {state}")
        lines.append(f"  %keeps = icmp eq i32 %kept, {state}")
        lines.append("  br i1 %keeps, label %yes, label %no\nyes:")
    lines += ["  ret i32 1", "no:", "  ret i32 0", "}"]
    return "\n".join(lines)
