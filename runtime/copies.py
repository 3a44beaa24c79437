"""Which tensors are copied between the image and the GPU's memory, and when.

Both have each tensor at the same place. Before a step, what it reads and what lies on the other
side alone is copied:

    plan                         copies
    Host  f: x -> a
    Gpu   g: a, w -> b           a to the GPU before it (w, a constant, when the module is loaded)
    Gpu   h: b -> c
    Host  i: c -> y              c to the image before it

No copy overwrites what is still needed: a tensor is copied after it was written and before it is
read for the last time, and while that lasts, the memory plan has nothing else at its place.
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
    """What is copied before each step of a plan, and at its end.

    Args:
        plan: each tensor is written by one step at most.
        constants: tensors that lie on both sides from the beginning.
        outputs: tensors that are wanted on the image in the end.
    """
    on_gpu, on_image = set(constants), set[str]()
    made = {name for step in plan if isinstance(step, Gpu) for name in writes(step)}
    before = []
    for step in plan:
        needed = dict.fromkeys(reads(step))
        if isinstance(step, Gpu):
            copied = tuple(name for name in needed if name not in on_gpu)
            before.append(Copies(to_gpu=copied))
            on_gpu.update(copied, writes(step))
        else:
            copied = tuple(name for name in needed if name in made - on_image)
            before.append(Copies(to_image=copied))
            on_image.update(copied)
    last = tuple(name for name in dict.fromkeys(outputs) if name in made - on_image)
    return before, Copies(to_image=last)
