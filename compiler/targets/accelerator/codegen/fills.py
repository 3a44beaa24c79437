"""Padding that is still there isn't written again.

A STORE into INP writes what lies inside an image; the LOAD before it fills all of the image with
padding. Where the image before it in the same place has the same entries inside, the padding is
still there, and that LOAD is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.compiler.targets.accelerator.codegen.order import overlap
from vdla.isa.instructions import Load, Store


def repeated_fills(ops: Sequence[Op]) -> Iterator[Op]:
    """The LOADs, of instructions in program order, that write padding where it is already."""
    known: dict[Access, tuple[Access, ...]] = {}  # what lies inside, by what was filled
    for writes, group in groupby(ops, key=lambda op: op.name if _writes_inp(op) else ""):
        if not writes:
            continue
        stage = list(group)
        fills = [_written(op) for op in stage if is_fill(op)]
        inside = tuple(_written(op) for op in stage if isinstance(op.instruction, Store))
        kept = [image for image in fills if known.get(image) == inside]
        yield from (op for op in stage if is_fill(op) and _written(op) in kept)
        written = [_written(op) for op in stage]
        for image in [i for i in known if i not in kept]:
            if any(overlap(image, each) for each in written):
                del known[image]
        known.update((image, inside) for image in fills)


def is_fill(op: Op) -> bool:
    """Whether an instruction writes padding alone."""
    return isinstance(op.instruction, Load) and not op.tensor


def _writes_inp(op: Op) -> bool:
    return any(each.write and each.space == "inp" for each in op.accesses)


def _written(op: Op) -> Access:
    """Access by which an instruction writes."""
    return next(each for each in op.accesses if each.write)
