"""An engine of micro-ops: one a cycle, in order, across instruction boundaries.

    issue → F1 → F2 → READ → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 8 → 9
                       |         |               |       |   write, finish
           early operands        their registers |       combine
                                                 late read of ACC

1. COMPUTE executes GEMM and ALU. Where the ring has another engine for ALU, COMPUTE executes GEMM
   alone, and each has what its kind needs.
2. The front end can hold: issue reads the micro-op (``issue.py``), F2 adds its indices to the
   loops' (``decide.py``), READ shows addresses to the scratchpads (``operands.py``) or waits
   (``hazards.py``). GEMM alone never waits, and has a stage LOOK in front of READ (``look.py``).
3. Stages 1 to 9 never hold (``back_end.py``). The arithmetic has its own registers beside them
   (``combine.py``).
4. A micro-op that goes beyond a buffer is a fault as soon as it stands in READ.
5. Options add ports, units and rules at seams (``seams.py``).
6. An instruction finishes with the write of its last micro-op.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.compute.back_end import BackEnd, BackEndPorts
from vdla.hw.compute.combine import Combine, CombinePorts
from vdla.hw.compute.decide import Decide, DecidePorts
from vdla.hw.compute.hazards import HazardPorts, Hazards
from vdla.hw.compute.issue import Issue, IssuePorts
from vdla.hw.compute.look import look_ahead, make_claims
from vdla.hw.compute.micro_op import COMBINE, LATE_READ, WRITE, MicroOps
from vdla.hw.compute.operands import ReadPorts, Reads, show_addresses
from vdla.hw.hooks import ports_of
from vdla.hw.interfaces import (
    Cause,
    Fault,
    Port,
    activity,
    claims,
    command,
    fault,
    pushes,
    read_port,
    write_port,
)
from vdla.isa.config import Config
from vdla.isa.ring import Engine

Stages = Sequence[data.View]


class Compute(Component):
    """The engine, its loop nest and its pipeline."""

    def __init__(self, config: Config, engine: Engine = Engine.COMPUTE) -> None:
        self.config, self.micro_ops = config, MicroOps(config, engine)
        kinds = self.micro_ops
        acc = config.depth("acc"), 8 * config.acc_entry
        of_gemm = {
            "inp": Out(read_port(config.depth("inp"), 8 * config.inp_entry)),
            "wgt": Out(read_port(config.depth("wgt"), 8 * config.wgt_entry)),
        }
        for place in kinds.places.values():
            bits = 8 * config.entry(place.memory)
            of_gemm[place.port] = Out(read_port(config.depth(place.memory), bits))
        of_alu = {"acc_y": Out(read_port(*acc))}
        super().__init__(
            {
                "command": In(command(config)),
                "activity": Out(activity()),
                "fault": Out(fault()),
                "uop": Out(read_port(config.depth("uop"), 8 * config.entry("uop"))),
                **(of_gemm if kinds.gemm else {}),
                "acc_x": Out(read_port(*acc)),
                **(of_alu if kinds.alu else {}),
                "acc_write": Out(write_port(*acc)),
                "acc_taken": Out(1),
                **({"acc_y_taken": In(1)} if kinds.alu else {}),
                **ports_of(kinds.hooks),
                **({"claims": Out(claims())} if kinds.looks else {}),
                **({"gemm": In(claims())} if kinds.alu and not kinds.gemm else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The loop nest, the stages behind it, the hazards between them, operands and results."""
        m, kinds = Module(), self.micro_ops
        hold = Signal()
        for hook in kinds.hooks:
            hook.begin(m, self)
        issue = Issue(m, kinds, IssuePorts(self.command, self.uop, hold))
        decide = Decide(m, kinds, DecidePorts(issue.f1, self.uop.data, hold))
        look = decide.arrived
        read = look_ahead(m, look) if kinds.looks else look
        stages = BackEnd(m, kinds, BackEndPorts(read, look, hold)).stages
        is_late, begun, waits = self._late(m, hold, decide, read, stages)
        ports = self._read_ports()
        is_alu = kinds.is_alu(read.operation)
        show_addresses(m, ports, Reads(read, is_alu, stages[LATE_READ], is_late))
        takes = read.valid & ~begun
        latest = Combine(m, kinds, CombinePorts(ports, stages, takes)).latest
        self._write(m, stages, latest)
        front = [issue.f1, decide.f2, *([look] if kinds.looks else [])]
        self._observe(m, front, issue.active, read, stages)
        self._report(m, read, waits)
        return m

    def readers(self, memory: str) -> list[Port]:
        """The engine's ports that read a memory, as ``uop`` or ``inp``."""
        places = self.micro_ops.places.values()
        names = (memory, *(place.port for place in places if place.memory == memory))
        return [getattr(self, name) for name in names if hasattr(self, name)]

    def _late(
        self,
        m: Module,
        hold: Signal,
        decide: Decide,
        read: data.View,
        stages: Stages,
    ) -> tuple[Value, Value, Value]:
        """Drives ``hold``, or what GEMM claims; returns whether stage 6 reads ACC in this cycle,
        whether the micro-op in READ has read its operands before, and whether it waits."""
        before = stages[LATE_READ - 1]
        if self.micro_ops.looks:
            is_late = Signal(name="meets_late")
            m.d.sync += is_late.eq(before.writes & before.late & ~before.chained)
            make_claims(m, self.claims, decide.arrived, read, is_late)
            return is_late, Const(0), Const(0)
        gemm = None if self.micro_ops.gemm else self.gemm
        hooks = self.micro_ops.hooks
        ports = HazardPorts(hold, read, decide.following, stages, self.acc_y_taken, gemm, hooks)
        hazards = Hazards(m, ports)
        return hazards.meets_late, hazards.begun, hazards.waits

    def _read_ports(self) -> ReadPorts:
        kinds = self.micro_ops
        return ReadPorts(
            acc_x=self.acc_x,
            acc_y=self.acc_y if kinds.alu else None,
            inp=self.inp if kinds.gemm else None,
            wgt=self.wgt if kinds.gemm else None,
            places={n: (p, getattr(self, p.port)) for n, p in kinds.places.items()},
        )

    def _write(self, m: Module, stages: Stages, latest: Value) -> None:
        """Writes the result in stage 9, unless it is skipped; says what finishes."""
        now, write = stages[COMBINE], stages[WRITE]
        enable, taken = Signal(), Signal()  # the same; the first has many sinks, so it is late
        m.d.sync += [each.eq(now.writes & ~now.skipped) for each in (enable, taken)]
        m.d.comb += [
            self.acc_taken.eq(taken),
            self.acc_write.enable.eq(enable),
            self.acc_write.address.eq(write.dst),
            self.acc_write.data.eq(latest),
            self.command.finish.eq(write.valid & write.last),
            *(getattr(self.command, f).eq(write.operation[f]) for f in pushes(self.config)),
        ]

    def _observe(
        self, m: Module, front: Stages, active: Value, read: data.View, stages: Stages
    ) -> None:
        """Whether anything is under way: where nothing is, what is ready starts."""
        ahead = Cat(s.valid & s.last for s in stages[1:WRITE]).any()
        under_way = active
        for stage in front:
            under_way |= stage.valid
        under_way |= ahead
        m.d.comb += self.activity.idle.eq(~read.valid & ~under_way & ~self.command.ready)

    def _report(self, m: Module, read: data.View, waits: Value) -> None:
        """Says why nothing goes on, as where READ ``waits``, and whether READ has a fault."""
        goes_on = Mux(read.valid, Cause.BUSY, Cause.DRAIN)
        m.d.comb += [
            self.activity.cause.eq(Mux(waits, Cause.BANK, goes_on)),
            self.fault.valid.eq(read.valid & read.beyond),
            self.fault.cause.eq(Fault.ADDRESS),
            self.fault.index.eq(read.operation.index),
        ]
