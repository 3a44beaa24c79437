"""Copies between the image and the GPU's memory: enough of them, and none too many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vdla.runtime.copies import NOTHING, Copies, constants_of, plan_copies
from vdla.runtime.plan import Accelerate, Copy, Gpu, Host, Next, reads, writes

CONSTANTS, INPUTS, MADE = ("v", "w"), ("x",), ("a", "b", "c", "d")
NAMES = (*CONSTANTS, *INPUTS, *MADE)


@st.composite
def plans(draw):
    """Steps that read what is there by then; a tensor may be written again."""
    there, steps = [*CONSTANTS, *INPUTS], []
    for number in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from([Host, Gpu, Accelerate]))
        given = tuple(draw(st.lists(st.sampled_from(there), max_size=3)))
        made = draw(st.sampled_from(MADE))
        name = f"s{number}"
        if kind is Accelerate:
            steps.append(Accelerate(name, (name,), given, (made,)))
        else:
            steps.append(kind(name, name, (*given, made)))
        there.append(made)
    outputs = draw(st.lists(st.sampled_from(there), min_size=1, max_size=3))
    return tuple(steps), outputs


class Sides:
    """What each tensor's value is called on either side; a run's inputs are the image's."""

    def __init__(self):
        self.image = dict.fromkeys(NAMES, "nothing")
        self.gpu = dict.fromkeys(NAMES, "nothing")
        for name in CONSTANTS:
            self.image[name] = self.gpu[name] = name

    def run(self, plan, outputs, turn):
        self.image.update({name: f"{name}{turn}" for name in INPUTS})
        behind, before = plan_copies(plan, CONSTANTS, outputs)
        for number, step in enumerate(plan):
            self.copy(before.get(number, NOTHING))
            side = self.gpu if isinstance(step, Gpu) else self.image
            value = result(step, side, turn)
            side.update(dict.fromkeys(writes(step), value))
        self.copy(behind.get(len(plan), NOTHING))
        return [self.image[name] for name in outputs]

    def copy(self, copies):
        for names, there, here in (
            (copies.out, self.gpu, self.image),
            (copies.to_image, self.image, self.gpu),
        ):
            for name in names:
                assert there[name] != here[name], f"{name} is there already"
                there[name] = here[name]


def result(step, side, turn):
    return f"{step}{turn}({', '.join(side[name] for name in reads(step))})"


def one_side(plan, outputs, turn):
    """The same plan where all steps share one memory."""
    side = {**dict.fromkeys(NAMES, "nothing"), **{n: n for n in CONSTANTS}}
    side.update({name: f"{name}{turn}" for name in INPUTS})
    for step in plan:
        value = result(step, side, turn)
        side.update(dict.fromkeys(writes(step), value))
    return [side[name] for name in outputs]


@given(plans())
def test_two_sides_are_as_good_as_one(plan):
    """Run after run, and whatever is copied wasn't there."""
    sides = Sides()
    for turn in range(3):
        assert sides.run(*plan, turn) == one_side(*plan, turn)


def test_before_the_step_that_reads():
    plan = (
        Host("f", "f", ("x", "a")),
        Gpu("g", "g", ("a", "w", "b")),
        Gpu("h", "h", ("b", "a", "c")),
        Host("i", "i", ("c", "y")),
    )
    behind, before = plan_copies(plan, {"w"}, ["y", "b", "y", "b"])
    assert before == {1: Copies(out=("a",)), 3: Copies(to_image=("c",))}
    assert behind == {4: Copies(to_image=("b",))}
    assert constants_of(plan, {"w", "v"}) == ("w",)


def test_a_tensor_that_is_written_again_is_copied_again():
    plan = (
        Host("f", "f", ("x", "a")),
        Gpu("g", "g", ("a", "b")),
        Host("h", "h", ("x", "a")),
        Gpu("i", "i", ("a", "c")),
    )
    behind, before = plan_copies(plan, (), ["c"])
    assert {number: each.out for number, each in before.items()} == {1: ("a",), 3: ("a",)}
    assert behind == {4: Copies(to_image=("c",))}


def test_programs_of_the_accelerator_read_and_write_on_the_image():
    plan = (
        Gpu("g", "g", ("x", "a")),
        Accelerate("p", ("conv",), ("a",), ("b",)),
        Gpu("h", "h", ("b", "c")),
    )
    behind, before = plan_copies(plan, (), ["c"])
    assert [before[number] for number in (1, 2)] == [Copies(to_image=("a",)), Copies(out=("b",))]
    assert behind == {3: Copies(to_image=("c",))}


def test_between_jumps_all_is_on_the_image():
    """A loop whose turn the GPU computes: what the next turn reads is there, whoever comes."""
    plan = (
        Gpu("g", "g", ("x", "a")),
        Gpu("h", "h", ("a", "w", "b")),
        Copy("c", ("b", "a")),
        Next("loop", 1, "turn", 3),
        Host("i", "i", ("a", "y")),
    )
    behind, before = plan_copies(plan, {"w"}, ["y"])
    assert behind == {1: Copies(to_image=("a",)), 2: Copies(to_image=("b",))}
    assert before == {0: Copies(out=("x",)), 1: Copies(out=("a",))}
