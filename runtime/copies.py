"""Which tensors are copied between the image and the GPU's memory, and when.

Both have each tensor at the same place. Before a step, what it reads and what lies on the other
side alone is copied:

    plan                         copies
    Host  f: x -> a
    Gpu   g: a, w -> b           a to the GPU before it (w, a constant, when the module is loaded)
    Gpu   h: b -> c
    Host  i: c -> y              c to the image before it

A step's result is the latest value of its tensor, on the step's side alone. No copy overwrites what
is still needed: a tensor is copied after it was written and before it is read for the last time,
and while that lasts, the memory plan has nothing else at its place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from vdla.runtime.plan import Gpu, Plan, reads, writes


@dataclass(frozen=True)
class Copies:
    """Tensors to copy to the GPU's memory, and to the image."""

    to_gpu: tuple[str, ...] = ()
    to_image: tuple[str, ...] = ()


def constants_of(plan: Plan, constants: Collection[str]) -> tuple[str, ...]:
    """The constants that kernels read, each once: they are copied when a module is loaded."""
    read = (name for step in plan if isinstance(step, Gpu) for name in reads(step))
    return tuple(dict.fromkeys(name for name in read if name in constants))


def plan_copies(
    plan: Plan, constants: Collection[str], outputs: Sequence[str]
) -> tuple[list[Copies], Copies]:
    """Copies before each step of a plan, and at its end.

    Args:
        plan: its steps, in order.
        constants: tensors that nothing writes, and that lie on both sides from the beginning.
        outputs: tensors that are wanted on the image in the end.
    """
    on_gpu, off_image = set(constants), set[str]()  # of each tensor's latest value
    before = []
    for step in plan:
        needed, written = dict.fromkeys(reads(step)), writes(step)
        if isinstance(step, Gpu):
            copied = tuple(name for name in needed if name not in on_gpu)
            before.append(Copies(to_gpu=copied))
            on_gpu.update(copied, written)
            off_image.update(written)
        else:
            copied = tuple(name for name in needed if name in off_image)
            before.append(Copies(to_image=copied))
            on_gpu.difference_update(written)
            off_image.difference_update(copied, written)
    last = tuple(name for name in dict.fromkeys(outputs) if name in off_image)
    return before, Copies(to_image=last)
