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

Between jumps and what is jumped to, all that others still read is on the image: before a jump, and
where one leads, what lies apart alone is copied to it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from vdla.runtime.plan import Control, Plan, is_apart, reads, targets, writes


@dataclass(frozen=True)
class Copies:
    """Tensors to copy out to the device apart, and to the image."""

    out: tuple[str, ...] = ()
    to_image: tuple[str, ...] = ()


NOTHING = Copies()


def constants_of(plan: Plan, constants: Collection[str]) -> tuple[str, ...]:
    """The constants that are read apart, each once: they are copied when a module is loaded."""
    read = (name for step in plan if is_apart(step) for name in reads(step))
    return tuple(dict.fromkeys(name for name in read if name in constants))


def plan_copies(
    plan: Plan, constants: Collection[str], outputs: Sequence[str]
) -> tuple[dict[int, Copies], dict[int, Copies]]:
    """Copies that belong to the steps of a plan, by the steps' numbers; steps without any are left
    out.

    Args:
        plan: its steps, in order.
        constants: tensors that nothing writes, and that lie on both sides from the beginning.
        outputs: tensors that are wanted on the image in the end.

    Returns:
        Those of a step that comes behind the one before it in the plan, and not by a jump; the
        plan's length stands for its end. And those of a step however it comes.
    """
    behind, before = dict[int, Copies](), dict[int, Copies]()
    for block in _blocks(plan):
        others = {
            n for each in (plan[: block.start], plan[block.stop :]) for s in each for n in reads(s)
        }
        wanted = {*outputs, *others}
        apart, off_image = set(constants), set[str]()  # of each tensor's latest value
        for number in block:
            step = plan[number]
            needed, written = dict.fromkeys(reads(step)), writes(step)
            if is_apart(step):
                copied = tuple(name for name in needed if name not in apart)
                before[number] = Copies(out=copied)
                apart.update(copied, written)
                off_image.update(written)
            else:
                copied = tuple(name for name in needed if name in off_image)
                before[number] = Copies(to_image=copied)
                apart.difference_update(written)
                off_image.difference_update(copied, written)
        order = dict.fromkeys((*outputs, *sorted(off_image)))
        last = tuple(name for name in order if name in off_image and name in wanted)
        behind[block.stop] = Copies(to_image=last)
    return _needed(behind), _needed(before)


def _needed(copies: dict[int, Copies]) -> dict[int, Copies]:
    """The copies that copy anything."""
    return {number: each for number, each in copies.items() if each != NOTHING}


def _blocks(plan: Plan) -> list[range]:
    """The numbers of steps that come one after another, whatever came before: jumps are blocks of
    their own, and what is jumped to begins one."""
    led_to = targets(plan)
    starts = [
        n
        for n, step in enumerate(plan)
        if n == 0 or n in led_to or isinstance(step, Control) or isinstance(plan[n - 1], Control)
    ]
    return [range(*pair) for pair in zip(starts, [*starts[1:], len(plan)], strict=False)]
