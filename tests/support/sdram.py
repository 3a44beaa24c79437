"""A controller with its chip's model behind pads, in Amaranth's simulator, at either ratio."""

from __future__ import annotations

from amaranth import DomainRenamer
from amaranth.lib.wiring import connect

from vdla.boards.models.sdram import Sdram
from vdla.boards.soc.sdram import FAST, ONE_CLOCK, HalfRate

CYCLE = 1e-6  # seconds of the simulator's


def join_chip(m, controller, chip, clock, pads=ONE_CLOCK):
    """Adds a model of a chip to a module, behind a controller's pads; the model."""
    chip_hz = pads.ratio * clock
    model = Sdram(chip, chip_hz, controller.words)
    if pads.ratio == 1:
        m.submodules.chip = model
        model.join(m, controller.pins, late=pads.late)
        return model
    m.submodules.chip = DomainRenamer(FAST)(model)
    m.submodules.half_rate = half_rate = HalfRate(chip, chip.cas(chip_hz), pads)
    connect(m, controller.pins, half_rate.inner)
    model.join(m, half_rate.outer, FAST, pads.late)
    return model


def add_clocks(simulator, pads=ONE_CLOCK):
    """The core's clock, and the chip's: each edge of the one is an edge of the other."""
    simulator.add_clock(CYCLE)
    if pads.ratio > 1:
        simulator.add_clock(CYCLE / pads.ratio, phase=CYCLE / 2, domain=FAST)
