"""Which tensors are copied between the image and the memory of a device apart, and when.

Both have each tensor at the same place. Before a step, what it reads and what lies on the other
side alone is copied:

    plan                         copies
    Host   f: x -> a
    apart  g: a, w -> b          a out before it (w, a constant, when the module is loaded)
    apart  h: b -> c
    Host   i: c -> y             c to the image before it

A step's result is the latest value of its tensor, on the step's side alone. No copy overwrites what
is still needed: a tensor is copied after it was written and before it is read for the last time,
and while that lasts, the memory plan has nothing else at its place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from vdla.runtime.plan import Plan, is_apart, reads, writes


@dataclass(frozen=True)
class Copies:
    """Tensors to copy out to the device apart, and to the image."""

    out: tuple[str, ...] = ()
    to_image: tuple[str, ...] = ()


def constants_of(plan: Plan, constants: Collection[str]) -> tuple[str, ...]:
    """The constants that are read apart, each once: they are copied when a module is loaded."""
    read = (name for step in plan if is_apart(step) for name in reads(step))
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
    apart, off_image = set(constants), set[str]()  # of each tensor's latest value
    before = []
    for step in plan:
        needed, written = dict.fromkeys(reads(step)), writes(step)
        if is_apart(step):
            copied = tuple(name for name in needed if name not in apart)
            before.append(Copies(out=copied))
            apart.update(copied, written)
            off_image.update(written)
        else:
            copied = tuple(name for name in needed if name in off_image)
            before.append(Copies(to_image=copied))
            apart.difference_update(written)
            off_image.difference_update(copied, written)
    last = tuple(name for name in dict.fromkeys(outputs) if name in off_image)
    return before, Copies(to_image=last)
