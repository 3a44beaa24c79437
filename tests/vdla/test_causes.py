"""Causes of what stays on the host: groups of reasons, their cost, and what removes them."""

from __future__ import annotations

import pytest

from vdla import api
from vdla.analysis.causes import RULES, cause_of, causes
from vdla.analysis.profile import Profile, ProfiledStep
from vdla.options.spelling import UsageError


def step(name, seconds):
    return ProfiledStep(name, "op", "host", seconds, 0.1, None, None, None, None)


def row(name, op, reason, device="cpu"):
    return {"name": name, "op": op, "device": device, "reason": reason}


@pytest.mark.parametrize(("reason", "cause"), [
    ("kept on the host by --strict: recurrent cells in integers round gates and states",
     "--strict"),
    ("config paper has no tables for functions (table_bytes = 0)", "no tables of functions"),
    ("config tiny: expected buffers that hold one tile of a 1×3 convolution, found inp 2048",
     "buffers too small"),
    ("3 input channels fill 19 % of the 16-lane block", "few input channels"),
    ("a part of 24 channels doesn't end with a block of 16", "channels that fill no block"),
    ("float operator sub: expected operands of int8 with one scale, found c, which nothing "
     "quantizes", "floats in the file"),
    ("float operator Softmax: no range follows from the file; samples say one: --calibration X.npz",
     "floats without ranges"),
    ("float operator sum", "operators without integers"),
    ("layout change on the way to the accelerator", "moves of elements"),
    ("a tensor of 5 dimensions has no channel blocks", "moves of elements"),
    ("float input becomes integers", "conversions of numbers"),
    ("a reason that no rule knows", "a reason that no rule knows"),
])  # fmt: skip
def test_a_reason_has_the_cause_that_it_says(reason, cause):
    assert cause_of(reason)[0] == cause


def test_causes_are_counted_timed_and_placed():
    rows = [
        row("q", "Quantize", "float input becomes integers"),
        row("c", "QConv2d", "convolution on int8", "vdla"),
        row("u", "Unpack", "layout change on the way from the accelerator"),
        row("s", "Reduce", "float operator sum"),
        row("p", "Pack", "layout change on the way to the accelerator"),
        row("d", "QConv2d", "convolution on int8", "vdla"),
    ]
    steps = [step("q", 1e-3), step("u", 2e-3), step("s", 4e-3), step("p", 3e-3)]
    result = causes(rows, Profile(steps, 1, {}), 1e6)
    assert [(c.name, c.between, c.cycles) for c in result] == [
        ("moves of elements", 2, 5000),
        ("operators without integers", 1, 4000),
        ("conversions of numbers", 0, 1000),
    ]
    assert result[0].operators == {"Unpack": 1, "Pack": 1}


def test_every_remedy_is_an_option_that_exists_or_a_sentence():
    from vdla.isa.config import load_config

    known = {*vars(load_config("tiny"))}
    for _, _, remedy in RULES:
        if remedy.startswith("--set "):
            key = remedy.removeprefix("--set ").partition("=")[0]
            assert key in known


def test_the_command_prints_causes(vdla):
    done = vdla("run", "digits", "-c", "tiny", "--explain")
    assert "conversions of numbers" in done.out
    assert "0 operators of the host between the accelerator's first and last" in done.out


def test_a_processor_alone_has_nothing_to_explain():
    with pytest.raises(UsageError, match="--explain: expected a module for an accelerator"):
        api.explain("digits", device="cpu")
