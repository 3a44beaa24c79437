"""Checks of modules whose plans have jumps: what doesn't fit is one line, before anything runs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from random_control import random_program

from vdla.compiler.build import Options, compile_graph
from vdla.isa.config import load_config
from vdla.runtime import Executor, Module, ModuleError
from vdla.runtime.plan import Clear, Copy, Jump, Next
from vdla.runtime.values import Each, Listed, Maybe, Rows


@pytest.fixture(scope="module")
def module():
    """One that has every kind of step of control."""
    for seed in range(50):
        made = compile_graph(random_program(seed), load_config("tiny"), Options("cpu"))
        ways = {step.way for step in made.steps if isinstance(step, Copy)}
        jumps = any(isinstance(step, Jump) and step.condition for step in made.steps)
        if jumps and ways == {"whole", "take", "put"} and {*map(type, made.steps)} >= {Clear, Next}:
            return made
    raise AssertionError("no such program")


def first(module, kind, **fields):
    """The first step of a kind, whose fields are these or not empty."""
    return next(
        number
        for number, step in enumerate(module.steps)
        if isinstance(step, kind)
        and all(getattr(step, key) == value for key, value in fields.items())
        and getattr(step, "condition", "one")
    )


def refused(module, kind, changes, **fields):
    """The message about a module, one step of which is changed."""
    number = first(module, kind, **fields)
    steps = list(module.steps)
    steps[number] = replace(steps[number], **changes)
    with pytest.raises(ModuleError) as caught:
        Executor(replace(module, steps=tuple(steps)))
    text = str(caught.value)
    assert "\n" not in text
    return text


def of_dtype(module, dtype):
    """A tensor of several elements of another type than this."""
    return next(
        name for name, info in module.tensors.items() if info.dtype != dtype and info.nbytes > 8
    )


@pytest.mark.parametrize("to", [-1, 100_000])
@pytest.mark.parametrize("kind", [Jump, Next])
def test_a_jump_leads_to_a_step(module, kind, to):
    assert re.fullmatch(
        rf"step .*: expected a step from 0 to {len(module.steps)} to go on with, found {to}",
        refused(module, kind, {"to": to}),
    )


def test_a_condition_is_one_bool(module):
    name = of_dtype(module, "bool")
    text = refused(module, Jump, {"condition": name})
    assert text.endswith(f": expected a condition of one bool, found {module.tensors[name]}")


def test_a_turn_is_one_int64(module):
    name = of_dtype(module, "int64")
    ending = f": expected a turn of one int64, found {module.tensors[name]}"
    assert refused(module, Next, {"turn": name}).endswith(ending)
    assert refused(module, Copy, {"turn": name}, way="take").endswith(ending)
    assert ": expected turns from a step before, found " in refused(module, Next, {"turns": 0})
    assert ": expected turns from a step before, found " in refused(
        module, Next, {"to": len(module.steps)}
    )


@pytest.mark.parametrize("way", ["whole", "take", "put"])
def test_a_copy_is_of_as_many_bytes(module, way):
    source, _ = module.steps[first(module, Copy, way=way)].args
    other = next(name for name, info in module.tensors.items() if info.nbytes == 1)
    text = refused(module, Copy, {"args": (source, other)}, way=way)
    assert ": expected tensors of as many bytes to copy, found " in text


@pytest.mark.parametrize(
    "changes", [{"way": "half"}, {"args": ()}, {"args": ("a", "b", "c")}, {"way": "take"}]
)
def test_a_copy_is_from_one_tensor_to_another(module, changes):
    name = next(iter(module.tensors))
    if "args" in changes:
        changes = {"args": (name,) * len(changes["args"])}
    text = refused(module, Copy, changes, way="whole")
    assert ": expected two tensors and a way, whole, take, put, the last two with a turn" in text


def test_zeros_are_for_one_tensor(module):
    assert refused(module, Clear, {"args": ()}).endswith(": expected one tensor, found 0")


@pytest.mark.parametrize("kind", [Rows, Each])
def test_a_number_of_rows_is_one_int64(module, kind):
    name = of_dtype(module, "int64")
    value = Listed((kind(name, name),))
    with pytest.raises(ModuleError, match=r"^value y: expected a number of rows of one int64, "):
        Executor(replace(module, values={"y": value}))


def test_what_says_that_a_value_is_there_is_one_bool(module):
    name = of_dtype(module, "bool")
    with pytest.raises(ModuleError, match=r"^value y: expected a condition of one bool, "):
        Executor(replace(module, values={"y": Maybe(name, name)}))


def test_a_file_keeps_the_steps(module, tmp_path):
    module.save(tmp_path / "m.vdla")
    again = Module.load(tmp_path / "m.vdla")
    assert again.steps == module.steps
    Executor(again)
