"""Simulator and RTL agree about VECTOR beside COMPUTE; and where they don't, it is noticed."""

from __future__ import annotations

import pytest
from planting import plant

from vdla.analysis import lockstep
from vdla.analysis.coverage import Coverage
from vdla.analysis.machines import Machines
from vdla.hw.compute import back_end, compute, decide, hazards
from vdla.hw.core import memories
from vdla.hw.load import memory_ports
from vdla.isa.config import load_config

SMALL = load_config("tiny", ["vector_engine=1", "table_bytes=1024", "token_queue=8"])


def assert_equal(config, programs, coverage=None):
    *_, tally = lockstep.lockstep(Machines(config), programs, 0, coverage=coverage)
    assert tally.programs == programs
    assert not tally.failed, (tally.differences, tally.unexpected)


def test_vector_beside_compute():
    assert_equal(SMALL, 100)


@pytest.mark.long
def test_every_goal_is_reached():
    """Tokens between any two engines among them."""
    coverage = Coverage(SMALL)
    assert_equal(SMALL, 400, coverage)
    assert coverage.missing == []


@pytest.mark.long
@pytest.mark.parametrize("config", [
    load_config("paper-ring"), SMALL,
    load_config("narrow", ["vector_engine=1", "forwarding=1", "window_taps=3"]),
], ids=["paper-ring", "small", "narrow"])  # fmt: skip
def test_five_thousand_programs(config):
    assert_equal(config, 5000)


FAULTS = {
    "VECTOR writes where GEMM does": (
        hazards, "Hazards", "_hold", "(~read.null & gemm.will_write)", "0",
    ),
    "VECTOR reads late where GEMM does": (
        hazards, "Hazards", "_hold", "(read.late & gemm.will_read)", "0",
    ),
    "VECTOR reads early where GEMM reads late": (
        hazards, "Hazards", "_hold", "x_waits |= gemm.reads", "x_waits |= 0",
    ),
    "a bubble of VECTOR waits for GEMM's write": (
        hazards, "Hazards", "_hold", "~read.null & gemm.will_write", "gemm.will_write",
    ),
    "GEMM writes what it leaves out": (
        back_end, "BackEnd", "_passing", "passing.skipped.eq(chains(self.ports.look))",
        "passing.skipped.eq(0)",
    ),
    "a micro-op that starts a reduction is chained": (
        decide, "Decide", "_chained", "& ~self.first & meets", "& meets",
    ),
    "GEMM reads what is forwarded": (
        compute, "Compute", "_late", " & ~before.chained", "",
    ),
    "LOAD writes ACC though VECTOR does": (
        memories, "Memories", "_connect_acc", "taken |= alu.acc_taken", "pass",
    ),
    "VECTOR's data go to COMPUTE's entry": (
        memory_ports, "MemoryWrites", "_write_acc", "Mux(port.enable, port.address, address)",
        "Mux(port.enable, self.ports.computed[0].address, address)",
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name, monkeypatch, tmp_path):
    """Each within 300 programs."""
    plant(FAULTS[name], monkeypatch, tmp_path)
    tallies = lockstep.lockstep(Machines(SMALL), 300, 0, keep=0)
    found = next((t.programs for t in tallies if t.mismatches), None)
    assert found is not None
    print(f"{name}: found by program {found}")
