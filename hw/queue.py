"""The instructions that wait in front of an engine, and when the first of them may start.

1. Fetch puts an instruction in when ``room`` is high: fewer than ``command_queue`` wait.
2. The oldest goes into a register, and may start from there: so an instruction waits a cycle in the
   queue's memory, and no path begins at that memory's address.
3. It may start when every token it pops is there and every queue it pushes to has a free slot.
   Starting pops the tokens and reserves the slots (docs/timing.md, section 7).
4. ``busy`` is high while anything that was put in hasn't finished.
"""

from __future__ import annotations

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.count import Count
from vdla.hw.fifo import Fifo
from vdla.hw.interfaces import command
from vdla.hw.layout import instruction_bits, layout
from vdla.isa.config import Config
from vdla.isa.instructions import Instruction
from vdla.isa.registers import INDEX_BITS
from vdla.isa.ring import ring_of

MOST_STARTED = 16  # an engine has fewer instructions started and not finished


class CommandQueue(Component):
    """One engine's queue, between fetch and the engine.

    ``has_*`` and ``slot_*`` are the neighbours' tokens and slots as the token queues show them;
    ``pop_*``, ``reserve_*``, ``push_*`` act on those queues.
    """

    def __init__(self, config: Config) -> None:
        self.config, self.sides = config, ring_of(config).sides
        seen = {f"{what}_{side}": In(1) for what in ("has", "slot") for side in self.sides}
        acts = {f"{w}_{side}": Out(1) for w in ("pop", "reserve", "push") for side in self.sides}
        super().__init__(
            {
                "put": In(1),
                "word": In(instruction_bits(config)),
                "index": In(INDEX_BITS),
                "room": Out(1),
                "busy": Out(1),
                "command": Out(command(config)),
                **seen,
                **acts,
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The FIFO of instructions, the oldest one and its tokens, and how many are unfinished."""
        m = Module()
        config = self.config
        width = instruction_bits(config) + INDEX_BITS
        m.submodules.fifo = fifo = Fifo(width=width, depth=config.command_queue)
        m.d.comb += [fifo.w_en.eq(self.put), fifo.w_data.eq(Cat(self.word, self.index))]
        self._show(m, fifo)
        self._tokens(m)
        self._count(m)
        return m

    def _show(self, m: Module, fifo: Fifo) -> None:
        """The register of the oldest instruction."""
        port = self.command
        oldest = Signal(fifo.width, name="oldest", reset_less=True)
        m.d.comb += [
            Cat(port.word, port.index).eq(oldest),
            fifo.r_en.eq(~port.waiting | port.start),
        ]
        with m.If(fifo.r_en):
            m.d.sync += [oldest.eq(fifo.r_data), port.waiting.eq(fifo.r_rdy)]

    def _tokens(self, m: Module) -> None:
        port = self.command
        common = port.word[: Instruction.bits(self.config)]
        flags = data.View(layout(Instruction, self.config), common)
        ready: Value = port.waiting
        for there, verb in (("has", "pop"), ("slot", "push")):
            for side in self.sides:
                ready &= getattr(self, f"{there}_{side}") | ~flags[f"{verb}_{side}"]
        m.d.comb += port.ready.eq(ready)
        acts = (
            ("pop", port.start, "pop", flags),
            ("reserve", port.start, "push", flags),
            ("push", port.finish, "push", port),
        )
        for act, when, verb, source in acts:
            for side in self.sides:
                flag = getattr(source, f"{verb}_{side}")
                m.d.comb += getattr(self, f"{act}_{side}").eq(when & flag)

    def _count(self, m: Module) -> None:
        waiting = Count(m, "waiting", self.config.command_queue)
        waiting.move(self.put, self.command.start)
        unfinished = Count(m, "unfinished", self.config.command_queue + MOST_STARTED)
        unfinished.move(self.put, self.command.finish)
        m.d.comb += [self.room.eq(~waiting.full), self.busy.eq(unfinished.some)]
