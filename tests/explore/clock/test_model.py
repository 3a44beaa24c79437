"""The clock's model: the fit, its error over designs held out, and routed designs."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from vdla.explore.clock.families import FAMILIES
from vdla.explore.clock.fit import LongPath, Measured, Routed, fit, wires_scale
from vdla.explore.clock.model import estimate_by, estimate_clock, model
from vdla.explore.design_clock import design_clock
from vdla.isa.clock import clock_of
from vdla.isa.config import load_config

TOOLS = Path(__file__).parents[3] / "tools"
MEAN_ERROR = 0.08  # of the clock, over the designs held out
ROUTED_ERROR = 0.08
TINY = load_config("tiny")


@pytest.fixture(scope="module")
def script():
    """The tool that measures and fits."""
    sys.path.insert(0, str(TOOLS))
    spec = importlib.util.spec_from_file_location("clock_fit", TOOLS / "clock_fit.py")
    sys.modules["clock_fit"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(TOOLS))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_model_that_ships_is_the_fit_and_is_near_designs_it_never_saw(script, name):
    family = FAMILIES[name]
    measured = script.measured_of(script.measure(family, 0))
    routed = [Routed(config, mhz) for config, mhz, _ in script.routed_lines(family)]
    own = fit(measured, routed, family)
    shipped = model(name)
    assert (own.period, own.levels, own.wires) == (shipped.period, shipped.levels, shipped.wires)
    held = [m for m in measured if m.held_out]
    assert len(held) >= 10
    assert mean(map(abs, script.errors(shipped, held))) <= MEAN_ERROR
    for each in routed:
        assert abs(estimate_by(shipped, each.config).mhz / each.mhz - 1) <= ROUTED_ERROR


def test_an_estimate_is_what_a_config_s_file_may_say():
    for name in FAMILIES:
        estimate = estimate_clock(TINY, name)
        assert clock_of(estimate.clock.to_dict(), int(estimate.mhz), "x") == estimate.clock
        assert estimate.clock.most_mhz == pytest.approx(estimate.mhz, rel=1e-3)
    clock = design_clock(TINY, "xc7")
    assert clock.text == f"{clock.mhz:.1f} MHz (estimated)"
    assert clock.milliseconds(1e6) == pytest.approx(1e3 / clock.mhz)
    asked = design_clock(TINY, "xc7", 125)
    assert (asked.at, asked.milliseconds(250_000)) == ("at 125 MHz (asked)", 2.0)


def test_a_larger_core_is_not_faster():
    small = estimate_clock(TINY, "xc7").period_ns
    larger = TINY.override(["block_in=16", "block_out=16", "acc_bytes=65536", "wgt_bytes=65536",
                            "inp_bytes=65536", "uop_bytes=8192", "port_bytes=8"])  # fmt: skip
    assert estimate_clock(larger, "xc7").period_ns >= small


def core(settings, *paths, held_out=False):
    return Measured(TINY.override(settings), [LongPath(*path) for path in paths], held_out)


def test_wires_are_scaled_to_routed_designs():
    """Cells of 2 ns and wires of 4: at 10 ns the wires are twice as long."""
    one = core([], (2.0, 4.0, 3))
    family = FAMILIES["xc7"]
    assert wires_scale([one], []) == 1.0
    assert wires_scale([one], [Routed(TINY, 100.0)]) == pytest.approx(2.0, abs=1e-3)
    assert fit([one], [Routed(TINY, 125.0)], family).wires == pytest.approx(1.5, abs=1e-3)
    with pytest.raises(ValueError, match="expected a mapping of the routed design"):
        wires_scale([], [Routed(TINY, 100.0)])


def test_another_path_is_the_longest_at_another_scale():
    each = core([], (6.0, 1.0, 9), (2.0, 4.0, 3))
    assert (each.period(1.0), each.longest(1.0).levels) == (7.0, 9)
    assert (each.period(2.0), each.longest(2.0).levels) == (10.0, 3)


def test_what_is_held_out_has_no_part_in_the_fit():
    own = [core([f"token_queue={n}"], (2.0 + 0.5 * k, 4.0, 4 + k))
           for k, n in enumerate((2, 4, 8, 16))]  # fmt: skip
    other = core(["block_out=16"], (50.0, 50.0, 50), held_out=True)
    family = FAMILIES["xc7"]
    made = fit([*own, other], [], family)
    assert made == fit(own, [], family)
    for each in own:
        assert estimate_by(made, each.config).period_ns == pytest.approx(each.period(1.0), rel=1e-3)
    assert estimate_by(replace(made, period={"once": 4.0}), TINY).mhz == 250
