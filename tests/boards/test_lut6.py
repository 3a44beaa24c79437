"""Functions that share a LUT: by rules, and against all matchings of a few of them."""

import json
from functools import cache

import pytest
from amaranth import Module, Signal
from amaranth.back import rtlil
from hypothesis import given
from hypothesis import strategies as st

from vdla.boards.flows import yosys
from vdla.boards.flows.lut6 import INPUTS, pairs
from vdla.hw.count import Count
from vdla.hw.verilog import NAME, run_yosys


def nets(*names):
    return [frozenset(name) for name in names]


def test_two_multiplexers_of_one_choice_share_a_lut():
    assert pairs(nets("abs", "cds")) == 1


def test_what_has_too_many_inputs_or_none_in_common_stays_alone():
    assert pairs(nets("abcs", "des")) == 0  # six
    assert pairs(nets("ab", "cd")) == 0
    assert pairs(nets("abcdef", "abcdef")) == 0
    assert pairs([]) == 0


def test_who_has_one_partner_takes_it():
    """The first could take the second, and the third would be left over."""
    assert pairs(nets("ab", "abc", "cde", "ad")) == 2


@cache
def best(functions):
    """The most pairs, by trying them all."""
    if not functions:
        return 0
    one, *others = functions
    with_it = [
        1 + best(tuple(others[:n] + others[n + 1 :]))
        for n, other in enumerate(others)
        if one & other and len(one | other) <= INPUTS
    ]
    return max([best(tuple(others)), *with_it])


@given(st.lists(st.frozensets(st.integers(0, 6), min_size=1, max_size=6), max_size=8))
def test_never_more_than_the_best_nor_less_than_half(functions):
    found = pairs(functions)
    assert found <= best(tuple(functions)) <= 2 * found


@pytest.mark.parametrize(
    ("kind", "pins"),
    [("CARRY4", {"S": [20, 21]}), ("CARRY8", {"S": [20, 21]}), ("MUXF7", {"I0": [20], "I1": [21]})],
)
def test_what_feeds_a_carry_chain_or_a_wide_multiplexer_stays_alone(kind, pins):
    """Its two LUTs have a net in common, and so do the two beside them."""
    feeding = {f"S{n}": ("LUT2", {"I0": [n], "I1": [9], "O": [20 + n]}) for n in range(2)}
    beside = {f"L{n}": ("LUT2", {"I0": [n], "I1": [9], "O": [40 + n]}) for n in range(2)}
    fed = {"C": (kind, {**pins, "O": [30]})}
    netlist = {
        name: {
            "type": kind,
            "parameters": {},
            "connections": pins,
            "port_directions": {pin: "output" if pin == "O" else "input" for pin in pins},
        }
        for name, (kind, pins) in {**feeding, **beside, **fed}.items()
    }
    flat = yosys.Flat({NAME: {"ports": {}, "cells": netlist}})
    assert yosys.unshared(flat) == 4
    assert yosys.total(yosys.area(flat))["lut"] == 3


@pytest.mark.long
def test_a_design_mapped_by_yosys(tmp_path):
    """The mapping is one that yosys takes, and leaves nothing but the device's cells."""
    m = Module()
    up, down, level = Signal(), Signal(), Signal(5)
    count = Count(m, "count", 20)
    count.move(up, down)
    m.d.comb += level.eq(count.value)
    (tmp_path / f"{NAME}.il").write_text(
        rtlil.convert(m, name=NAME, ports=[up, down, level], emit_src=False)
    )
    (tmp_path / f"{NAME}.ys").write_text(yosys.script("xc7"))
    run_yosys(["-q", f"{NAME}.ys"], tmp_path)
    netlist = json.loads((tmp_path / f"{NAME}.json").read_text())["modules"]
    kinds = {kind for _, kind, _, _ in yosys.Flat(netlist).cells}
    assert {"FDRE"} < kinds
    assert all(kind.startswith(("LUT", "FD", "CARRY4", "INV")) for kind in kinds)
    assert 0 < yosys.total(yosys.area(yosys.Flat(netlist)))["lut"] <= 30
