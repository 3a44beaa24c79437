"""A program that gets too long is refused before any of its instructions are made."""

from __future__ import annotations

import time

import pytest

import vdla
from vdla.compiler.targets.accelerator.codegen.leaf import CodegenError
from vdla.isa.config import load_config
from vdla.isa.registers import most_instructions

MOST = (1 << 24) - 2  # beside FINISH


def program(*loops):
    """A LOAD into one entry again and again: no instruction does that many times."""
    lines = [
        "func main(A: int32[6, 4], C: int32[6, 4]):",
        '    alloc A_acc: int32[6, 4] @"vdla.acc"',
    ]
    lines += [f"{'    ' * (i + 1)}for {loop}:" for i, loop in enumerate(loops)]
    lines += [f"{'    ' * (len(loops) + 1)}load_acc(dst=A_acc[0, 0], src=A[0, 0])"]
    lines += ["    for i0 in 6:", "        store32(out=C[i0, 0], acc=A_acc[i0, 0])"]
    return vdla.parse("\n".join(lines) + "\n", "tiny")


@pytest.mark.parametrize(
    ("loops", "found"),
    [
        (["i in 1000000000"], "1,000,000,001"),
        (["i in 100000", "j in 100000"], "10,000,000,001"),
        ([f"i in {MOST}"], "16,777,215"),
        (["i in 1000000000 vthread"], "1,000,000,001"),
        (["i in 4 vthread", "j in 1000000000"], "4,000,000,001"),
    ],
)
def test_too_many_instructions(loops, found):
    began = time.monotonic()
    with pytest.raises(CodegenError) as caught:
        vdla.build(program(*loops), target="tiny")
    assert str(caught.value) == (
        "main: expected loops that become at most 16,777,214 instructions, as a program holds "
        f"(config tiny), found {found}; let intrinsics take larger tiles, or split the function"
    )
    assert time.monotonic() - began < 5


def test_a_long_program_of_short_steps_is_estimated_not_counted(monkeypatch):
    """Where calls run more often than a program is long, instructions decide: six fold into one."""
    monkeypatch.setattr(
        "vdla.compiler.targets.accelerator.codegen.kernel.most_instructions", lambda config: 4
    )
    monkeypatch.setattr(
        "vdla.compiler.targets.accelerator.codegen.bound.most_instructions", lambda config: 4
    )
    kernel = vdla.build(program("i in 2"), target="tiny")
    assert len(kernel.alone.program.instructions) == 4
    with pytest.raises(CodegenError, match=r"^main: expected loops that become at most 3 instr"):
        vdla.build(program("i in 3"), target="tiny")


@pytest.mark.parametrize(("name", "settings"), [("tiny", []), ("wide", []), ("paper", [])])
def test_the_longest_program_fits_its_register_and_the_address_space(name, settings):
    assert most_instructions(load_config(name, settings)) == MOST + 1
