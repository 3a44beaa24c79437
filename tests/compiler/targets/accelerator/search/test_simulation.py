"""Cycles of a tile: those of its layer alone, or why there are none."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from vdla.compiler.search.measurer import Measurer, local_pool
from vdla.compiler.targets.accelerator.operators.conv2d import ConvTile
from vdla.compiler.targets.accelerator.search import simulation as module
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.simulation import Cycles, Simulation
from vdla.compiler.targets.accelerator.standalone import LayerProgram, layer_program
from vdla.sim.checker import Finding
from vdla.sim.machine import simulate


def test_measured_cycles_are_those_of_the_layer_alone(layer, tiny):
    tile = default_tile(layer.template, tiny, 2, None)
    built = layer_program(layer, tile, tiny)
    run = simulate(tiny, built.program.instructions, built.dram, built.program.base)
    meter = Simulation(layer, tiny)
    assert meter.measure(tile) == Cycles("ok", cycles=run.cycles)
    assert meter.measure(tile).cost == run.cycles
    with local_pool([meter], 1) as pool:
        assert list(Measurer([meter], pool).run(0, [tile])) == [
            (0, Cycles("ok", cycles=run.cycles))
        ]


def test_layers_that_differ_in_numbers_alone_take_the_same_cycles(layer, tiny):
    tile = default_tile(layer.template, tiny, 2, None)
    other = replace(layer, template=replace(layer.template, in_zero=0, zero=9, low=0, high=77))
    assert Simulation(other, tiny).measure(tile) == Simulation(layer, tiny).measure(tile)


def test_what_cannot_be_lowered_is_illegal(layer, tiny):
    big = ConvTile(outputs=4, rows=12, cols=12, inputs=4, weights=4, vthreads=1)
    found = Simulation(layer, tiny).measure(big)
    assert (found.status, found.cycles, found.cost) == ("illegal", None, inf)
    assert "expected" in found.note


def test_what_the_checker_refuses_is_not_run(layer, tiny, monkeypatch):
    tile = default_tile(layer.template, tiny, 2, None)
    found = [Finding("conflict", 7, "it says so")]
    monkeypatch.setattr(LayerProgram, "check", lambda self: found)
    monkeypatch.setattr(module, "simulate", lambda *args, **kw: 1 / 0)
    assert Simulation(layer, tiny).measure(tile) == Cycles("illegal", "conflict at 7: it says so")


def test_the_simulator_is_compiled_before_anything_is_timed(layer, tiny, monkeypatch):
    done = []
    monkeypatch.setattr(module, "warm_up", lambda config: done.append("simulator"))
    monkeypatch.setattr(module, "check", lambda config, program: done.append(config))
    Simulation(layer, tiny).warm_up()
    assert done == ["simulator", tiny]
