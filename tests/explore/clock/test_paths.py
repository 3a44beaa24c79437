"""Static timing: netlists small enough to add up by hand."""

import pytest

from vdla.boards.flows.yosys import Flat
from vdla.explore.clock.cells import Cells, Wires
from vdla.explore.clock.ecp5 import ECP5
from vdla.explore.clock.paths import Paths
from vdla.explore.clock.series_7 import SERIES_7
from vdla.hw.verilog import NAME

NO_WIRES = Wires(0, 0, 0)
CLOCK = 1
OUTPUTS = ("Q", "O", "CO", "Z", "P", "S0", "S1", "COUT", "DOADO", "DO")


def cell(kind, parameters=(), **pins):
    """A cell of yosys's netlist; nets are numbers, constants texts."""
    connections = {p: bits if isinstance(bits, list) else [bits] for p, bits in pins.items()}
    directions = {p: "output" if p.rstrip("0123456789") in OUTPUTS or p in OUTPUTS else "input"
                  for p in pins}  # fmt: skip
    return {"type": kind, "connections": connections, "port_directions": directions,
            "parameters": dict(parameters)}  # fmt: skip


def paths(cells: Cells, *each, scale=1.0) -> Paths:
    named = {f"core.fetch.{n}": one for n, one in enumerate(each)}
    return Paths(Flat({NAME: {"cells": named}}), cells, scale)


def without_wires(cells: Cells) -> Cells:
    return Cells(cells.kinds, NO_WIRES)


def test_from_a_register_through_luts_to_a_register():
    """0.456 out of the first, two LUTs, 0.109 before the second; wires of 1 and of 2 sinks."""
    chain = (
        cell("FDRE", C=CLOCK, D="0", Q=2),
        cell("LUT2", I0=2, I1="1", O=3),
        cell("LUT2", I0=3, I1=3, O=4),
        cell("FDRE", C=CLOCK, CE=4, Q=5),
    )
    found = paths(without_wires(SERIES_7), *chain)
    assert found.period_ns() == pytest.approx(0.456 + 2 * 0.124 + 0.109)
    steps = found.critical()
    assert [(step.kind, step.pins, step.level) for step in steps] == [
        ("FDRE", "Q", 0), ("LUT2", "I0 O", 1), ("LUT2", "I0 O", 1), ("FDRE", "CE", 0),
    ]  # fmt: skip
    assert sum(step.cell_ns + step.wire_ns for step in steps) == pytest.approx(found.period_ns())
    wires = SERIES_7.wires
    with_wires = paths(SERIES_7, *chain, scale=2.0)
    assert with_wires.period_ns() == pytest.approx(
        found.period_ns() + 2 * (3 * wires.first + wires.doubling)
    )
    assert paths(SERIES_7.levels, *chain).period_ns() == 2


def test_a_lut_beside_its_flip_flop_has_no_wire():
    chain = (
        cell("TRELLIS_FF", CLK=CLOCK, Q=2),
        cell("LUT4", A=2, Z=3),
        cell("TRELLIS_FF", CLK=CLOCK, DI=3, Q=4),
    )
    assert [step.wire_ns > 0 for step in paths(ECP5, *chain).critical()] == [False, True, False]


def test_a_carry_chain_counts_once_and_a_bit_follows_those_below():
    """The first bit of a sum doesn't follow the operand of the last one."""
    late = cell("LUT1", I0=2, O=3), cell("LUT1", I0=3, O=4)
    carry = cell("CARRY4", CI="0", CYINIT="0", DI=["0"] * 4, S=["0", "0", "0", 4],
                 O=[10, 11, 12, 13], CO=[14, 15, 16, 17])  # fmt: skip
    more = cell("CARRY4", CI=17, CYINIT="0", DI=["0"] * 4, S=["0"] * 4,
                O=[20, 21, 22, 23], CO=[24, 25, 26, 27])  # fmt: skip
    first = cell("FDRE", C=CLOCK, Q=2)
    ends = {10: 0, 13: 3, 20: 3}
    for net, levels in ends.items():
        found = paths(SERIES_7.levels, first, *late, carry, more, cell("FDRE", C=CLOCK, D=net))
        assert found.period_ns() == levels, net


def test_only_paths_within_the_main_clock_count():
    """A register of another clock neither begins a path nor ends one."""
    own = cell("FDRE", C=CLOCK, Q=2), cell("FDRE", C=CLOCK, D=2, Q=3)
    other = (
        cell("FDRE", C=90, Q=91),
        cell("LUT1", I0=91, O=92),
        cell("LUT1", I0=92, O=93),
        cell("FDRE", C=CLOCK, D=93),
        cell("FDRE", C=90, D=92),
    )
    cells = without_wires(SERIES_7)
    assert paths(cells, *own, *other).period_ns() == paths(cells, *own).period_ns()
    assert paths(cells).period_ns() == 0.0
    assert paths(cells).critical() == []


def test_what_a_port_gives_comes_after_a_register_s_time():
    found = paths(SERIES_7, cell("LUT1", I0=50, O=51), cell("FDRE", C=CLOCK, D=51, Q=2))
    wires = SERIES_7.wires
    assert found.period_ns() == pytest.approx(0.456 + wires.first + 0.124 + 0.046)


@pytest.mark.parametrize(
    ("parameters", "launch"),
    [({"MREG": "1", "PREG": "1"}, 0.329), ({"MREG": "1", "PREG": "0"}, 1.671),
     ({"MREG": "0", "PREG": "0"}, 2.952)],
)  # fmt: skip
def test_a_multiplier_is_as_slow_as_its_registers_leave_it(parameters, launch):
    found = paths(without_wires(SERIES_7), cell("DSP48E1", parameters, CLK=CLOCK, P=[2]),
                  cell("FDRE", C=CLOCK, D=2))  # fmt: skip
    assert found.period_ns() == pytest.approx(launch + 0.046)


REGISTERED = {"inputs": {"REG_INPUTA_CLK": "CLK0", "REG_INPUTB_CLK": "CLK0"},
              "output": {"REG_OUTPUT_CLK": "CLK0"}}  # fmt: skip


@pytest.mark.parametrize(
    ("registers", "period"),
    [
        ((), 0.52 + 3.93),
        (("inputs",), 3.864),
        (("output",), 0.52 + 3.486),
        (("inputs", "output"), 0.735),
    ],
)
def test_an_ecp5_s_multiplier_has_the_registers_that_its_parameters_say(registers, period):
    """The longest of the ways into it, through it, and out of it."""
    parameters = {name: value for each in registers for name, value in REGISTERED[each].items()}
    pins = {"CLK0": CLOCK, "CE0": "1", "RST0": "0"} if registers else {}
    found = paths(
        without_wires(ECP5),
        cell("TRELLIS_FF", CLK=CLOCK, Q=2),
        cell("MULT18X18D", parameters, A0=2, B17=2, P=3, **pins),
        cell("TRELLIS_FF", CLK=CLOCK, DI=3),
    )
    assert found.period_ns() == pytest.approx(period)


def test_multipliers_with_and_without_registers_stand_in_one_netlist():
    plain = cell("MULT18X18D", A0=2, B0=2, P=3)
    behind = cell("MULT18X18D", REGISTERED["inputs"] | REGISTERED["output"], A0=3, B0=3, P=4,
                  CLK0=CLOCK, CE0=2, RST1=2)  # fmt: skip
    found = paths(without_wires(ECP5), cell("TRELLIS_FF", CLK=CLOCK, Q=2), plain, behind)
    assert found.period_ns() == pytest.approx(0.52 + 3.93 + 0.084)
    assert [step.level for step in found.critical()] == [0, 1, 0]


def test_a_loop_ends():
    ring = cell("LUT2", I0=2, I1=4, O=3), cell("LUT1", I0=3, O=4)
    found = paths(SERIES_7, cell("FDRE", C=CLOCK, Q=2), *ring, cell("FDRE", C=CLOCK, D=4))
    assert 1.0 < found.period_ns() < 3.0
