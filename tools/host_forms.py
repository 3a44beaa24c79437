"""Cycles of instructions on this x86-64, beside LLVM's machine model: where the model is wrong.

    python tools/host_forms.py [--least 0.25]

For each form of instruction of the bundled table (``compiler/targets/processor/timing``) a loop
runs eight of them with independent operands, each in a register that was just cleared, which costs
the front end a slot and no unit any time. So what takes less than half a cycle can't be seen. What
differs by more than ``--least`` of the larger one is printed; such forms have a ``[[correction]]``
in the processor's file.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import sys
import time

import llvmlite.binding as llvm
from host_tables import BYTES, sample_of

from vdla.compiler.targets.processor.codegen.optimize import Settings
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.compiler.targets.processor.timing.instructions import TYPE
from vdla.compiler.targets.processor.timing.machine import machine_for, read_table
from vdla.compiler.targets.processor.timing.stopwatch import clock_mhz

COPIES, STEPS, RUNS = 8, 20000, 8
CLEARED = {"v": "vpxorq $0, $0, $0", "r": "xorl ${0:k}, ${0:k}"}
LEAST_CYCLES = 0.5  # less is the front end's time
LOOP = """{declared}
define void @f(i64 %n, ptr %p) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{body}
  %j = add i64 %i, 1
  %e = icmp ult i64 %j, %n
  br i1 %e, label %loop, label %end
end:
  ret void
}}
"""


def register(kind: str) -> str | None:
    """The kind of register that holds a type: a vector or a general one; None for others."""
    head = re.match(r"<(\d+) x (\w+)>", kind)
    if head:
        fits = head[2] not in ("i1", "ptr") and int(head[1]) * BYTES[head[2]] in (16, 32, 64)
        return "v" if fits else None
    return {"float": "v", "double": "v"}.get(
        kind, "r" if re.fullmatch(r"i(8|16|32|64)", kind) else None
    )


def loop_of(form: str) -> str | None:
    """A function whose loop runs copies of an instruction; None where its operands fit in no
    register."""
    sample = sample_of(form)
    if sample is None:
        return None
    lines = [line for line in sample.lines if not line.startswith("declare")]
    body: list[str] = []
    for n in range(COPIES):
        for line in lines:
            own = _line(line, form)
            if own is None:
                return None
            body.append(
                re.sub(r"%([a-z]\d?)\b", lambda k: k[0] if k[1] == "p" else f"{k[0]}_{n}", own)
            )
    declared = "\n".join(line for line in sample.lines if line.startswith("declare"))
    return LOOP.format(declared=declared, body="\n".join(body))


def _line(line: str, form: str) -> str | None:
    """A line of a sample with registers in place of memory; "" for one that isn't needed."""
    if form.startswith(("load", "store")):
        return line
    loaded = re.match(rf"(%\w+) = load volatile ({TYPE}), ptr %p", line)
    stored = re.match(rf"store volatile ({TYPE}) (%\w+), ptr %p", line)
    kind = register(loaded[2] if loaded else stored[1] if stored else "i32")
    if kind is None:
        return None
    if loaded:
        return f'{loaded[1]} = call {loaded[2]} asm sideeffect "{CLEARED[kind]}", "={kind}"()'
    if stored:
        used = f'call void asm sideeffect "", "{kind}"({stored[1]} {stored[2]})'
        return used if stored[2] == "%r" else ""
    return line


def cycles(text: str, clock: float) -> float:
    """Cycles of one copy."""
    module = llvm.parse_assembly(text)
    machine = Settings("", "", "", False).machine()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)
    run = kind(engine.get_function_address("f"))
    memory = ctypes.create_string_buffer(8192)
    aligned = -(-ctypes.addressof(memory) // 64) * 64
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        run(STEPS, aligned)
        best = min(best, time.perf_counter() - start)
    return best * clock * 1e6 / STEPS / COPIES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--least", type=float, default=0.25, help="least difference, as a share")
    least = parser.parse_args().least
    if NATIVE.machine != "x86_64" or "v4" not in NATIVE.kind:
        sys.exit(f"expected an x86-64 with AVX-512, found {NATIVE.machine} ({NATIVE.kind})")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    machine, clock = machine_for(NATIVE), clock_mhz()
    print(f"{machine.name} at {clock:,.0f} MHz: cycles measured, LLVM's, and the model's")
    for form, price in read_table(machine.name).items():
        text = loop_of(form)
        if text is None:
            continue
        try:
            measured = max(cycles(text, clock), LEAST_CYCLES)
        except RuntimeError:  # LLVM has no such instruction for registers
            continue
        own = machine.price(form)
        theirs, ours = (
            max(*p.ports.values(), p.uops / machine.issue, LEAST_CYCLES) for p in (price, own)
        )
        if abs(measured - theirs) > least * max(measured, theirs):
            print(f"{measured:6.2f} {theirs:6.2f} {ours:6.2f}  {form[:90]}")


if __name__ == "__main__":
    main()
