"""Evaluations: what a design is worth for several models, and why it can't be built."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace
from math import inf

import pytest

from vdla.compiler.models import model_path
from vdla.compiler.targets.accelerator.search.tile_records import BUNDLED
from vdla.explore import evaluate
from vdla.explore.area import estimate
from vdla.explore.design_clock import design_clock
from vdla.explore.errors import ExploreError
from vdla.explore.evaluate import (
    BOUND,
    EXACT,
    MODEL,
    TUNED,
    AreaDependencyError,
    Evaluator,
    Outcome,
    check_objectives,
    number,
)
from vdla.explore.networks import Networks
from vdla.isa.config import load_config
from vdla.sim.energy import load_table
from vdla.support.install import pip_install


@pytest.fixture(scope="module")
def evaluator():
    paths = {"a": model_path("digits"), "b": model_path("digits")}
    return Evaluator(Networks(paths), {"digits": ("a",), "both": ("a", "b")}, {"both": 0.25})


def test_a_models_cycles_are_its_networks_and_weighted_in_the_total(evaluator):
    result = evaluator.exact(load_config("tiny"))
    one = result.cycles["digits"]
    assert (result.level, result.legal, result.cycles["both"]) == (EXACT, True, 2 * one)
    assert result.total == 1.5 * one
    assert sum(result.layers["digits"].values()) == one
    assert list(result.layers["both"])[:2] == ["a.conv1", "a.pool1"]
    assert sum(result.layers["both"].values()) == 2 * one


def test_a_bound_is_below_what_is_exact(evaluator):
    config = load_config("tiny")
    bound = evaluator.bound(config)
    assert bound.level == BOUND
    assert 0 < bound.total < evaluator.exact(config).total


def test_the_analytic_model_is_close_to_what_is_exact(evaluator):
    config = load_config("tiny")
    model = evaluator.model(config)
    assert (model.level, model.legal) == (MODEL, True)
    assert 0.9 < model.total / evaluator.exact(config).total < 1.1


def test_the_analytic_model_knows_where_no_tile_fits(evaluator):
    config = load_config("tiny", ["acc_bytes=32"])
    assert evaluator.bound(config).legal
    reasons = evaluator.model(config).reasons
    text = "config tiny: expected buffers that hold one tile of a 3×1 convolution, found "
    assert reasons[0] == f"a: {text}inp 256, wgt 128, acc 2 entries"
    assert not evaluator.exact(config).legal


def test_tuned_schedules_are_a_level_of_their_own(evaluator):
    assert evaluator.exact(load_config("paper"), BUNDLED).level == TUNED


def test_an_illegal_design_has_reasons_and_is_worth_nothing(evaluator):
    result = evaluator.exact(load_config("wide"))
    why = "conv1 stays on the host: 9 input channels fill 28 % of the 32-lane block"
    assert result.reasons == (f"a: {why}", f"b: {why}")
    assert result.vector(["cycles", "multipliers"]) == (inf, inf)
    assert result.to_json()["cycles"] is None


def test_objectives_are_numbers_of_the_design(evaluator):
    config = load_config("tiny", ["table_bytes=512"])
    result = evaluator.bound(config)
    assert result.vector(["multipliers", "buffer_bytes"]) == (16, 1024 + 2048 + 2048 + 1024 + 512)
    assert json.loads(json.dumps(result.to_json()))["multipliers"] == 16


def test_time_is_cycles_at_a_model_s_clock_or_at_one_that_is_asked(evaluator):
    config = load_config("tiny")
    result, asked = evaluator.bound(config), replace(evaluator, asked_mhz=50).bound(config)
    assert result.clock == design_clock(config, "xc7")
    assert result.vector(["ms"]) == (result.total / result.clock.mhz / 1e3,)
    assert asked.vector(["ms"]) == (result.total / 50e3,)
    shown = (result.to_json(), asked.to_json())
    assert [s["clock_source"] for s in shown] == ["estimated", "asked"]
    assert [s["clock_mhz"] for s in shown] == [result.clock.mhz, 50]
    on_ecp5 = replace(evaluator, part="ulx3s").bound(config)
    assert on_ecp5.clock == design_clock(config, "ecp5")
    assert on_ecp5.ms > result.ms


def test_energy_is_that_of_run_and_not_below_its_bound(vdla, evaluator):
    config = load_config("tiny")
    judge = replace(evaluator, table=load_table("aladdin-45nm"))
    result, bound = judge.exact(config), judge.bound(config)
    run = vdla("run", "digits", "-c", "tiny", "--records", "none", "--images", 1, "--json",
               "--energy", "aladdin-45nm").json  # fmt: skip
    assert result.energy_uj == pytest.approx(1.5 * run["energy_uj"])
    assert 0 < bound.energy_uj < result.energy_uj
    assert result.energy_table == run["energy_table"] == "aladdin-45nm"
    assert result.vector(["energy"]) == (result.energy_uj,)
    assert evaluator.exact(config).vector(["energy"]) == (inf,)
    outcome = judge.measure(config)["a"]
    assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome


def test_evaluators_go_to_other_processes(evaluator):
    config = load_config("tiny")
    assert pickle.loads(pickle.dumps(evaluator)).bound(config) == evaluator.bound(config)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["cycle"], "--objectives: expected some of cycles, .*buffer_bytes, found cycle"),
        ([], "--objectives: expected one to three, each once, found none"),
        (["cycles", "cycles"], "expected one to three, each once, found cycles,cycles"),
    ],
)
def test_unknown_objectives_are_refused(names, text):
    with pytest.raises(ExploreError, match=text):
        check_objectives(names)


def test_an_area_is_estimated_and_has_to_fit_its_part(evaluator):
    config = load_config("paper")
    judge = replace(evaluator, part="xc7z020")
    result = judge.bound(config)
    assert result.vector(["luts", "dsps"]) == (estimate(config).luts, estimate(config).dsps)
    assert result.legal
    wide = config.override(["block_in=32"])
    assert judge.bound(wide).reasons[-1] == "part xc7z020: dsp 280 of 220 (60 too many)"
    text = "--part: expected one of xc7z020, ulx3s, none, found huge"
    with pytest.raises(ExploreError, match=f"^{text}$"):
        replace(evaluator, part="huge").bound(config)


def test_without_amaranth_there_is_no_area(evaluator, monkeypatch):
    monkeypatch.setattr(evaluate, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "vdla.explore.area", None)
    config = load_config("tiny")
    result = evaluator.bound(config)
    assert (result.area, result.legal, result.to_json()["luts"]) == (None, True, None)
    rest = f": expected the package amaranth, found none; {pip_install('rtl')}"
    with pytest.raises(AreaDependencyError) as caught:
        replace(evaluator, part="xc7z020").bound(config)
    assert str(caught.value) == f"--part xc7z020{rest}"
    with pytest.raises(AreaDependencyError) as caught:
        check_objectives(["luts"])
    assert str(caught.value) == f"--objectives luts{rest}"


def test_numbers_for_programs():
    assert [number(x) for x in (2.0, 2.5, inf, None)] == [2, 2.5, None, None]
