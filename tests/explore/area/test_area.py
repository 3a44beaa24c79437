"""The area model: multipliers and RAMs against what was measured, the fit, and what fits a part."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from vdla.boards.flows.registers import move_registers
from vdla.boards.parts import XC7Z020
from vdla.explore import area
from vdla.explore.area import mapping
from vdla.explore.area.families import FAMILIES
from vdla.explore.area.fit import Measured, fit, non_negative
from vdla.explore.area.model import estimate_by, model
from vdla.explore.area.structure import block_rams, dsps
from vdla.hw.fifo import Fifo
from vdla.isa.config import load_config

SCRIPT = Path(__file__).parents[3] / "tools" / "area_fit.py"


@pytest.fixture(scope="module")
def script():
    """The benchmark that measures and fits."""
    spec = importlib.util.spec_from_file_location("area_fit", SCRIPT)
    sys.modules["area_fit"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    """Each family that is fitted."""
    return FAMILIES[request.param]


@pytest.fixture(scope="module")
def measured(script, family):
    """All cores that were mapped for a family."""
    return [Measured.of(row, script.config_of(row)) for row in script.read(family)]


@pytest.mark.parametrize("name", FAMILIES)
def test_multipliers_and_rams_are_exact(script, name):
    family = FAMILIES[name]
    measured = [Measured.of(row, script.config_of(row)) for row in script.read(family)]
    assert len(measured) > 10
    for m in measured:
        multipliers = dsps(m.config, family)
        if m.alone:
            assert m.units["GEMM"].get("dsp", 0) == multipliers["GEMM"]
            continue
        rams = block_rams(m.config, family, apart=not m.flat)
        assert sum(multipliers.values()) == m.total("dsp")
        assert sum(rams.values()) == m.total("bram")
        if not m.flat:
            for unit, counts in m.units.items():
                assert multipliers.get(unit, 0) == counts.get("dsp", 0)
                assert rams.get(unit, 0) == counts.get("bram", 0)


def test_the_model_is_what_the_measurements_fit(script, measured, family):
    assert script.to_toml(fit(measured, family)) == family.model_path.read_text(), (
        f"expected the model of {family.measured}; "
        f"run: python tools/area_fit.py --family {family.name}"
    )


def test_luts_and_flip_flops_of_configs_held_out(script, measured, family):
    held = [m for m in measured if m.held_out]
    off = script.errors(model(family.name), held)
    assert len(held) >= 5
    for resource in ("lut", "ff"):
        assert np.mean(off[resource]) < 0.07
        assert max(off[resource]) < 0.2


def test_no_config_held_out_was_fitted(measured):
    fitted = {m.config.hash for m in measured if not m.held_out}
    assert not fitted & {m.config.hash for m in measured if m.held_out}


@pytest.mark.parametrize("name", FAMILIES)
def test_plans_hold_other_configs_out_than_they_fit(script, name):
    plan = list(islice(script.plan(FAMILIES[name]), 40))
    fitted = {config.hash for config, _, held_out in plan if not held_out}
    held = {config.hash for config, _, held_out in plan if held_out}
    assert min(len(fitted), len(held)) >= 15
    assert not fitted & held


def test_what_a_family_counts():
    """An ECP5 has two multipliers for a product of 25 × 18 bits, and smaller RAMs."""
    config = load_config("ulx3s-wide")
    counts = {
        name: (sum(dsps(config, each).values()), sum(block_rams(config, each).values()))
        for name, each in FAMILIES.items()
    }
    assert counts == {"xc7": (140, 65.5), "ecp5": (152, 133)}


@pytest.mark.parametrize(
    ("name", "settings", "family", "count"),
    [
        ("paper", (), "xc7", 152),
        ("paper-full", (), "xc7", 176),
        ("ulx3s", ("alu_groups=2",), "ecp5", 64),
        ("ulx3s", ("block_in=16", "block_out=16", "alu_groups=4", "store_groups=2"), "ecp5", 152),
    ],
)
def test_lanes_in_groups_share_multipliers(name, settings, family, count):
    config = load_config(name, list(settings))
    assert sum(dsps(config, FAMILIES[family]).values()) == count


def test_estimates_add_up():
    result = area.estimate(load_config("paper"))
    for name in ("luts", "ffs", "dsps", "brams"):
        assert getattr(result, name) == sum(getattr(u, name) for u in result.units.values())
    assert (result.dsps, result.brams) == (152, 105)  # a RAM of UOP is read by nobody
    assert "VECTOR" not in result.units
    assert "VECTOR" in area.estimate(load_config("paper-full")).units


def test_more_of_anything_takes_no_less():
    paper = area.estimate(load_config("paper"))
    for setting in ("block_out=32", "port_bytes=16", "vector_engine=1", "table_bytes=2048",
                    "window_taps=3", "fabric_lanes=8", "reciprocal_units=4"):  # fmt: skip
        assert area.estimate(load_config("paper", [setting])).luts > paper.luts
    in_fabric = area.estimate(load_config("paper", ["fabric_lanes=8"]))
    assert in_fabric.dsps == paper.dsps - 64


def test_what_fits_a_part():
    assert area.fits(area.estimate(load_config("paper")), XC7Z020) == []
    reasons = area.fits(area.estimate(load_config("wide")), XC7Z020)
    assert "dsp 592 of 220 (372 too many)" in reasons


def test_non_negative_least_squares():
    rng = np.random.default_rng(0)
    matrix = rng.random((30, 6))
    known = np.array([2.0, 0.0, 0.5, 0.0, 3.0, 1.0])
    assert non_negative(matrix, matrix @ known) == pytest.approx(known)
    pulled = non_negative(matrix, matrix @ np.array([1.0, -2.0, 1.0, 1.0, 1.0, 1.0]))
    assert pulled.min() >= 0
    gradient = matrix.T @ (matrix @ pulled - matrix @ np.array([1.0, -2.0, 1.0, 1.0, 1.0, 1.0]))
    assert gradient.min() > -1e-9  # no element could grow and help
    assert abs(gradient @ pulled) < 1e-8


def test_a_mapping_is_kept(monkeypatch, tmp_path):
    """yosys runs once for a config; what was cut off is mapped again."""
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path))
    calls = []

    class Cells:
        def __init__(self, modules):
            calls.append(modules)

    monkeypatch.setattr(mapping, "netlist", lambda config, family, *, apart: apart)
    monkeypatch.setattr(mapping, "Flat", Cells)
    monkeypatch.setattr(
        mapping,
        "units_of",
        lambda flat, family: {"ALU": {"lut": 5, "dsp": 2}, "LOAD": {"bram": 0.5}},
    )
    first, second = (area.map_config(load_config("tiny")) for _ in range(2))
    assert first == second
    assert calls == [False]
    assert (first.luts, first.ffs, first.dsps, first.brams) == (5, 0, 2, 0.5)
    assert first.units["LOAD"].brams == 0.5
    (kept,) = (tmp_path / "area").glob("*.json")
    kept.write_text("{")
    assert area.map_config(load_config("tiny")) == first
    assert calls == [False, False]
    area.map_config(load_config("tiny"), apart=True)
    assert calls[-1] is True
    area.map_config(load_config("tiny"), "ecp5")
    assert calls[2:] == [True, False]


@pytest.mark.long
def test_an_estimate_and_a_mapping(monkeypatch, tmp_path):
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path))
    mapped, estimated = (f(load_config("tiny")) for f in (area.map_config, area.estimate))
    assert (mapped.dsps, mapped.brams) == (estimated.dsps, estimated.brams)
    assert mapped.luts == pytest.approx(estimated.luts, rel=0.1)
    assert mapped.ffs == pytest.approx(estimated.ffs, rel=0.1)


def test_no_yosys(monkeypatch):
    monkeypatch.setenv("YOSYS", "no-such-yosys")
    with pytest.raises(Exception, match="YOSYS: expected a program, found no-such-yosys"):
        mapping.mapped("", mapping.FLOWS["xc7"], "tiny")


def test_netlists_are_finished_as_the_flow_does(monkeypatch):
    """An ECP5's multipliers have registers, units apart or not; no other family's netlist changes,
    nor what it follows from."""
    made = {"modules": {}}
    finished = []
    monkeypatch.setattr(mapping, "run_yosys", lambda arguments, work: (
        work / "vdla.json").write_text(json.dumps(made)))  # fmt: skip
    ecp5, xc7 = mapping.FLOWS["ecp5"], mapping.FLOWS["xc7"]
    assert ecp5.finish is move_registers
    for apart in (False, True):
        mapping.mapped("", replace(ecp5, finish=finished.append), "tiny", apart=apart)
    mapping.mapped("", xc7, "tiny")
    assert finished == [{}, {}]
    assert "flows/registers.py" in ecp5.sources
    assert ecp5.steps() != ecp5.script(False)
    assert xc7.steps() == xc7.script(False)


def test_where_yosys_fails(monkeypatch):
    monkeypatch.setattr(mapping, "run_yosys", lambda arguments, work: (_ for _ in ()).throw(
        RuntimeError("yosys: out of memory")))  # fmt: skip
    with pytest.raises(Exception, match=r"^area of config tiny: expected yosys to map it, found "
                                        r"yosys: out of memory$"):  # fmt: skip
        mapping.netlist_of(Fifo(8, 4), "xc7", "tiny")


def test_the_sums_of_a_model_are_rounded_once():
    result = estimate_by(model(), load_config("tiny"))
    assert all(isinstance(u.luts, int) for u in result.units.values())
