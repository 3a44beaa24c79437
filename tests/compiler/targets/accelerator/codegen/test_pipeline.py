"""Pipelined loops: in which order the parts of their steps run, and what they refuse."""

from __future__ import annotations

from itertools import chain, product

import pytest

from vdla.compiler.targets.accelerator.codegen.leaf import CodegenError
from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.compiler.targets.accelerator.codegen.pipeline import Mark, by_engine, pipelined
from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, Gemm, Load, Store
from vdla.isa.ring import ring_of


def op(name, kind=Gemm, writes=None, reads=None):
    accesses = [(writes, True), (reads, False)]
    named = (Access("inp", at, (), write) for at, write in accesses if at is not None)
    return Op(kind(), tuple(named), name)


def step(number, parts):
    """A step whose parts are one instruction each, named after the part and the step."""
    named = [op(f"{part}{number}") for part in parts]
    cut = chain.from_iterable((each, Mark.CUT) for each in named)
    return [Mark.BEGIN, *cut, Mark.END]


def order(stream):
    return " ".join(each.name for each in pipelined(stream))


def test_parts_of_other_steps_come_between():
    steps = [each for number in range(4) for each in step(number, "abc")]
    assert order(steps) == "a0 a1 b0 a2 b1 c0 a3 b2 c1 b3 c2 c3"


def test_fewer_steps_than_parts():
    assert order(step(0, "abc")) == "a0 b0 c0"
    assert order([*step(0, "abc"), *step(1, "abc")]) == "a0 a1 b0 b1 c0 c1"


def test_steps_of_one_part_keep_their_order():
    steps = [each for number in range(3) for each in step(number, "a")]
    assert order(steps) == "a0 a1 a2"


def test_what_stands_outside_goes_with_its_neighbours():
    """Up to the last STORE it belongs to the step before, from there on to the one behind."""
    between = [op("sum"), op("out", Store), op("load")]
    stream = [op("first"), *step(0, "ab"), *between, *step(1, "ab"), op("rest"), op("end", Store)]
    assert order(stream) == "first a0 load a1 b0 sum out b1 rest end"


def test_without_steps_nothing_changes():
    assert order([op("x"), op("y", Store)]) == "x y"


@pytest.mark.parametrize(("steps", "parts"), list(product(range(1, 6), ("a", "ab", "abc", "abcd"))))
def test_every_instruction_runs_once_and_steps_keep_their_own_order(steps, parts):
    stream = [each for number in range(steps) for each in step(number, parts)]
    names = order(stream).split()
    assert sorted(names) == sorted(f"{p}{n}" for p in parts for n in range(steps))
    for number in range(steps):
        assert [n[0] for n in names if n[1:] == str(number)] == list(parts)


def test_a_buffer_of_one_copy_is_refused():
    """Part 0 of the next step would overwrite what part 1 of this one still reads."""

    def one(number):
        parts = op(f"a{number}", writes=0), op(f"b{number}", reads=0)
        return [Mark.BEGIN, parts[0], Mark.CUT, parts[1], Mark.CUT, Mark.END]

    with pytest.raises(CodegenError, match=(
        r"^a1: expected buffers with a copy for each of two steps, since b0 of a step before "
        "runs later; double_buffer what a step leaves to its end$"
    )):  # fmt: skip
        list(pipelined([*one(0), *one(1)]))


def test_copies_of_two_steps_are_too_few_where_parts_lie_three_apart():
    """Part 2 of a step runs behind part 0 of the one after the next, which has its copy."""

    def one(number):
        parts = (
            op(f"a{number}", writes=number % 2),
            op(f"b{number}"),
            op(f"c{number}", reads=number % 2),
        )
        cut = chain.from_iterable((each, Mark.CUT) for each in parts)
        return [Mark.BEGIN, *cut, Mark.END]

    with pytest.raises(CodegenError, match=r"^a2: expected .* since c0 of a step"):
        list(pipelined([*one(0), *one(1), *one(2)]))


@pytest.mark.parametrize(
    ("options", "parts"),
    [([], "l m g a | s | m g"), (["vector_engine=1"], "l m g | a | s | m g")],
    ids=["three", "four engines"],
)
def test_parts_end_where_another_engine_goes_on(options, parts):
    """ALU is an engine by itself where the config has one; LOADs go with what comes behind."""
    kinds = {"l": Load, "m": Load, "g": Gemm, "a": Alu, "s": Store}
    ops = [op(name, kinds[name]) for name in parts.replace("| ", "").split()]
    cut = by_engine(ops, ring_of(load_config("tiny", options)))
    assert " ".join("|" if each is Mark.CUT else each.name for each in cut) == parts
