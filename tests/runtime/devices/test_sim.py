"""The device sim: a program that runs again takes the cycles that it would take anew."""

from __future__ import annotations

import numpy as np

from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.isa.instructions import Uop
from vdla.runtime.devices import sim
from vdla.runtime.devices.sim import SimDevice

PAPER = load_config("paper")
# Whether the second micro-op reads what the first has just written is for the micro-ops to say.
PROGRAM = """
LOAD memory=UOP dram_base=8192 x_size=2 y_size=1 z_size=1 push_next
ALU pop_prev alu_op=ADD uop_count=2 extent_0=1
FINISH
"""


def write(dram, *micro_ops):
    data = b"".join(each.encode(PAPER) for each in micro_ops)
    dram[8192 : 8192 + len(data)] = np.frombuffer(data, np.uint8)


def loaded(monkeypatch):
    counted = []
    whole = sim.run_cycles
    monkeypatch.setattr(sim, "run_cycles", lambda *given: counted.append(1) or whole(*given))
    device = SimDevice(PAPER)
    dram = device.allocate(1 << 16, b"")
    write(dram, Uop(dst=0, src=0), Uop(dst=1, src=1))
    return device.load(assemble(PROGRAM, PAPER).to_bytes(), dram), dram, counted


def test_cycles_are_counted_once_while_micro_ops_stay(monkeypatch):
    run, dram, counted = loaded(monkeypatch)
    first = run()
    dram[16384:] = 7
    assert run().cycles == first.cycles
    assert len(counted) == 1


def test_cycles_are_counted_again_for_other_micro_ops(monkeypatch):
    run, dram, counted = loaded(monkeypatch)
    apart = run().cycles
    write(dram, Uop(dst=0, src=0), Uop(dst=1, src=0))
    assert run().cycles > apart
    assert len(counted) == 2
