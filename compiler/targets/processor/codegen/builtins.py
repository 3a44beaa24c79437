"""The code that every object brings along: ``runtime/pool/pool.c``, as LLVM's text.

It calls functions, and hands the steps of their ``parallel`` loops to threads. The text suits any
processor; what waiting loops execute, and the number of the system's clock, are put in here.
Machines without threads get SERIAL alone, which calls nothing of any library.
"""

from __future__ import annotations

from importlib.resources import files

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


def builtins_ir(processor: Processor) -> str:
    """The code for a target, as LLVM's text."""
    if not processor.threads:
        return SERIAL
    text = files("vdla.runtime.pool").joinpath(f"pool{processor.size_bits}.ll").read_text()
    pause = PAUSES.get(processor.machine, "")
    declaration = pause.replace("call", "declare").replace(" 1", "")
    clock = 6 if "darwin" in processor.system else 1  # CLOCK_MONOTONIC
    text = text.replace(PAUSE, PAUSE_CODE.format(pause=pause, declaration=declaration))
    return text.replace(CLOCK, CLOCK_CODE.format(clock=clock))
