"""COMPUTE: GEMM and ALU micro-ops, one a cycle, in order, across instruction boundaries.

    issue → F1 → READ → 1 → 2 → 3 → 4 → 5 → 6 → 7
                  |     |               |   |   write, finish
      early operands    their data      |   combine
                                        late read of ACC

1. The front end can hold: issue reads the micro-op (``issue.py``), F1 adds its indices to the
   loops' (``decide.py``), READ shows addresses to the scratchpads (``operands.py``) or waits
   (``hazards.py``).
2. Stages 1 to 7 never hold (``back_end.py``). The arithmetic has its own registers beside them
   (``combine.py``).
3. A micro-op that goes beyond a buffer is a fault as soon as it stands in READ.
4. An instruction finishes with the write of its last micro-op.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.compute.back_end import BackEnd
from vdla.hw.compute.combine import Combine
from vdla.hw.compute.decide import Decide, DecidePorts
from vdla.hw.compute.hazards import HazardPorts, Hazards
from vdla.hw.compute.issue import Issue, IssuePorts
from vdla.hw.compute.micro_op import COMBINE, LATE_READ, WRITE, MicroOps
from vdla.hw.compute.operands import ReadPorts, Reads, show_addresses
from vdla.hw.interfaces import (
    Cause,
    Fault,
    activity,
    command,
    fault,
    pushes,
    read_port,
    table_read_port,
    write_port,
)
from vdla.isa.config import Config


class Compute(Component):
    """The engine, its loop nest and its pipeline."""

    def __init__(self, config: Config) -> None:
        self.config = config
        acc = config.depth("acc"), 8 * config.acc_entry
        super().__init__(
            {
                "command": In(command(config)),
                "activity": Out(activity()),
                "fault": Out(fault()),
                "uop": Out(read_port(config.depth("uop"), 8 * config.entry("uop"))),
                "inp": Out(read_port(config.depth("inp"), 8 * config.inp_entry)),
                "wgt": Out(read_port(config.depth("wgt"), 8 * config.wgt_entry)),
                "acc_x": Out(read_port(*acc)),
                "acc_y": Out(read_port(*acc)),
                "acc_write": Out(write_port(*acc)),
                "acc_taken": Out(1),
                "acc_y_taken": In(1),
                **({"tab": Out(table_read_port(config))} if config.tables else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The loop nest, the stages behind it, the hazards between them, operands and results."""
        m, micro_ops = Module(), MicroOps(self.config)
        hold = Signal()
        issue = Issue(m, micro_ops, IssuePorts(self.command, self.uop, hold))
        decide = Decide(m, micro_ops, DecidePorts(issue.f1, self.uop.data, hold))
        read, following = decide.read, decide.following
        stages = BackEnd(m, micro_ops, read, hold).stages
        hazards = Hazards(m, HazardPorts(hold, read, following, stages, self.acc_y_taken))
        tab = self.tab if self.config.tables else None
        ports = ReadPorts(self.inp, self.wgt, self.acc_x, self.acc_y, tab)
        show_addresses(m, ports, Reads(read, stages[LATE_READ], hazards.meets_late))
        latest = Combine(m, self.config, ports, stages).latest
        self._write(m, stages, latest)
        self._observe(m, issue, read, stages)
        self._report(m, read, hold)
        return m

    def _write(self, m: Module, stages: Sequence[data.View], latest: Value) -> None:
        """Writes the result in stage 7, unless it is skipped; says what finishes."""
        now, write = stages[COMBINE], stages[WRITE]
        enable = Signal()  # the same as ``acc_taken``, but with so many sinks that it is late
        m.d.sync += enable.eq(now.writes & ~now.skipped)
        m.d.comb += [
            self.acc_taken.eq(write.writes & ~write.skipped),
            self.acc_write.enable.eq(enable),
            self.acc_write.address.eq(write.dst),
            self.acc_write.data.eq(latest),
            self.command.finish.eq(write.valid & write.last),
            *(getattr(self.command, f).eq(write.operation[f]) for f in pushes(self.config)),
        ]

    def _observe(
        self, m: Module, issue: Issue, read: data.View, stages: Sequence[data.View]
    ) -> None:
        """Whether anything is under way: where nothing is, what is ready starts."""
        ahead = Cat(s.valid & s.last for s in stages[1:WRITE]).any()
        under_way = issue.active | issue.f1.valid | ahead
        m.d.comb += self.activity.idle.eq(~read.valid & ~under_way & ~self.command.ready)

    def _report(self, m: Module, read: data.View, hold: Value) -> None:
        """Says why nothing goes on, if nothing does, and whether READ has a fault."""
        m.d.comb += [
            self.activity.cause.eq(Mux(hold, Cause.BANK, Mux(read.valid, Cause.BUSY, Cause.DRAIN))),
            self.fault.valid.eq(read.valid & read.beyond),
            self.fault.cause.eq(Fault.ADDRESS),
            self.fault.index.eq(read.operation.index),
        ]
