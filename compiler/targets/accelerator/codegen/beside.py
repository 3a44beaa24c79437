"""An operator without GEMMs runs beside the one before it, which has some.

VECTOR computes a pool while COMPUTE goes on with the convolution that the pool reads:

    one after the other   conv 0 · conv 1 · conv 2 · … · conv 9 · pool 0 · pool 1 · …
    beside                conv 0 · conv 1 · pool 0 · conv 2 · pool 1 · … · conv 9 · pool 8 · pool 9

Each instruction of the second operator comes behind the last of the first that it conflicts with:
behind the STOREs of what it loads. A LOAD would keep those behind it waiting as well, so it goes as
far down as the first that waits no less by itself. The two share the buffers: what the second has
in ACC lies behind what the first has there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from vdla.compiler.targets.accelerator.codegen.op import Op
from vdla.compiler.targets.accelerator.codegen.touches import NEVER, Touches
from vdla.isa.instructions import Alu, Gemm, Instruction, Load, Mem, Store


def has_gemm(ops: Sequence[Op]) -> bool:
    """Whether some instruction is a GEMM."""
    return any(isinstance(op.instruction, Gemm) for op in ops)


def acc_entries(ops: Sequence[Op]) -> int:
    """One past the last entry of ACC that is used."""
    return max((a.end for op in ops for a in op.accesses if a.space == "acc"), default=0)


def moved_in_acc(ops: Sequence[Op], entries: int) -> list[Op]:
    """An operator without GEMMs, so many entries further up in ACC."""
    return [
        op._replace(
            instruction=_moved(op.instruction, entries),
            accesses=tuple(
                a._replace(start=a.start + entries) if a.space == "acc" else a for a in op.accesses
            ),
        )
        for op in ops
    ]


def places_beside(first: Sequence[Op], second: Sequence[Op], touched: Touches) -> list[int]:
    """For each instruction of ``second``, how many of ``first`` come before it.

    ``touched`` is empty, and knows the addresses of DRAM's tensors.
    """
    loads, waits = [], []
    for number, op in enumerate(first):
        if isinstance(op.instruction, Load):
            loads.append(number)
            waits.append(touched.last(op))
        touched.mark(op, number)
    waits = list(accumulate(waits, max))  # of those before it as well: LOAD works in order
    places, place = [], 0
    for op in second:
        last = touched.last(op)
        place = max(place, last + 1)
        if isinstance(op.instruction, Load) and last > NEVER and loads:
            behind = bisect_left(waits, last)
            place = max(place, loads[behind] if behind < len(loads) else loads[-1] + 1)
        places.append(place)
    return _spread(places, len(first))


def _spread(places: Sequence[int], end: int) -> list[int]:
    """Places no earlier, and as evenly from the first one to the end as that allows.

    They lie on the least concave curve above what is given: where many instructions could go at one
    place, they would take the bus and LOAD from the others for a long time.
    """
    curve: list[tuple[int, int]] = []
    for point in [*enumerate(places), (len(places), end)]:
        while len(curve) > 1 and not _bends_down(curve[-2], curve[-1], point):
            curve.pop()
        curve.append(point)
    numbers, heights = zip(*curve, strict=True)
    return [int(each) for each in np.ceil(np.interp(range(len(places)), numbers, heights))]


def _bends_down(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> bool:
    """Whether a curve through three points is steeper before the middle one than behind it."""
    return (b[1] - a[1]) * (c[0] - b[0]) > (c[1] - b[1]) * (b[0] - a[0])


def _moved(instruction: Instruction, entries: int) -> Instruction:
    """An instruction whose entries of ACC lie elsewhere."""
    if isinstance(instruction, Load) and instruction.memory in (Mem.ACC, Mem.ACC8):
        return instruction.replace(sram_base=instruction.sram_base + entries)
    if isinstance(instruction, Store):
        base, scales = instruction.sram_base, instruction.scale_base
        return instruction.replace(sram_base=base + entries, scale_base=scales + entries)
    if isinstance(instruction, Alu):
        dst, src = instruction.dst_base, instruction.src_base
        return instruction.replace(dst_base=dst + entries, src_base=src + entries)
    return instruction
