"""The code that every object brings along: ``runtime/pool/pool.c``, as LLVM's text.

It calls functions, and hands the steps of their ``parallel`` loops to threads. The text suits any
processor; what waiting loops execute, how threads take denormal numbers for zeros, and the number
of the system's clock, are put in here.
Machines without threads get SERIAL alone, which calls nothing of any library, and those without a
library for float16 HALVES, its conversions.
"""

from __future__ import annotations

from importlib.resources import files

from vdla.compiler.targets.processor.codegen.denormals import mode_text
from vdla.compiler.targets.processor.description.processor import Processor

PARALLEL = "vdla_parallel"
YIELD = "call void @llvm.aarch64.hint(i32 1)"
PAUSES = {
    "x86_64": "call void @llvm.x86.sse2.pause()",
    "aarch64": YIELD,
    "arm64": YIELD,  # its name on macOS
    "arm": "call void @llvm.arm.hint(i32 1)",
}
PAUSE = "declare void @vdla_pause()\n"
PAUSE_CODE = """\
define internal void @vdla_pause() alwaysinline nounwind {{
  {pause}
  ret void
}}

{declaration}
"""
MODES = ("declare i64 @vdla_flush()\n", "declare void @vdla_restore(i64)\n")
CLOCK = "@vdla_clock = external constant i32, align 4\n"
CLOCK_CODE = "@vdla_clock = internal constant i32 {clock}\n"
# Weak, since several objects of one program may bring it along.
SERIAL = """\
define weak_odr hidden void @vdla_parallel(ptr %pool, ptr %function, ptr %context, i32 %tasks) \
nounwind {
entry:
  br label %head

head:
  %task = phi i32 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i32 %task, %tasks
  br i1 %more, label %body, label %end

body:
  call void %function(ptr %context, i32 %task)
  %next = add i32 %task, 1
  br label %head

end:
  ret void
}
"""
# Conversions under the names that LLVM calls. A float16 is a float32 with another bias, whose
# product with 2^112 is exact; the other way bits are rounded to the nearest even number, and those
# below the least normal float16 (2^-14) by an addition to 0.5, whose last bit is 2^-24.
HALVES = """\

define weak_odr hidden float @__extendhfsf2(i16 zeroext %half) nounwind {
  %bits = zext i16 %half to i32
  %size = and i32 %bits, 32767
  %sign = and i32 %bits, 32768
  %high = shl i32 %sign, 16
  %moved = shl i32 %size, 13
  %small = bitcast i32 %moved to float
  %scaled = fmul float %small, 0x46F0000000000000
  %finite = bitcast float %scaled to i32
  %infinite = or i32 %moved, 2139095040
  %wide = icmp uge i32 %size, 31744
  %chosen = select i1 %wide, i32 %infinite, i32 %finite
  %signed = or i32 %chosen, %high
  %result = bitcast i32 %signed to float
  ret float %result
}

define weak_odr hidden zeroext i16 @__truncsfhf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %size = and i32 %bits, 2147483647
  %high = lshr i32 %bits, 16
  %sign = and i32 %high, 32768
  %lost = lshr i32 %size, 13
  %odd = and i32 %lost, 1
  %above = add i32 %size, -939520001
  %rounded = add i32 %above, %odd
  %normal = lshr i32 %rounded, 13
  %positive = bitcast i32 %size to float
  %sum = fadd float %positive, 5.000000e-01
  %fixed = bitcast float %sum to i32
  %tiny = sub i32 %fixed, 1056964608
  %payload = and i32 %lost, 1023
  %nan = or i32 %payload, 32256
  %is_tiny = icmp ult i32 %size, 947912704
  %finite = select i1 %is_tiny, i32 %tiny, i32 %normal
  %is_large = icmp uge i32 %size, 1199566848
  %limited = select i1 %is_large, i32 31744, i32 %finite
  %is_nan = icmp ugt i32 %size, 2139095040
  %chosen = select i1 %is_nan, i32 %nan, i32 %limited
  %signed = or i32 %chosen, %sign
  %result = trunc i32 %signed to i16
  ret i16 %result
}
"""


def builtins_ir(processor: Processor) -> str:
    """The code for a target, as LLVM's text."""
    if not processor.threads:
        return SERIAL if processor.has_halves else SERIAL + HALVES
    text = files("vdla.runtime.pool").joinpath(f"pool{processor.size_bits}.ll").read_text()
    pause = PAUSES.get(processor.machine, "")
    declaration = pause.replace("call", "declare").replace(" 1", "")
    clock = 6 if "darwin" in processor.system else 1  # CLOCK_MONOTONIC
    text = text.replace(PAUSE, PAUSE_CODE.format(pause=pause, declaration=declaration))
    for declaration in MODES:
        text = text.replace(declaration, "")
    text += f"\n{mode_text(processor)}"
    return text.replace(CLOCK, CLOCK_CODE.format(clock=clock))
