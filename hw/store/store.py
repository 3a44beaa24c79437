"""STORE: reads ACC, requantizes on the way, and writes bursts.

    read → data → lanes → operands, products, sum → by 16s, shifted, moved → limited → write buffer
     0      1      2         3        4        5      6       7       8          9          cycle

1. The reader (``reader.py``) runs ahead with an instruction of its own. A vector is held from
   cycle 1 on (``held.py``) while its beats pass the pipeline (``pipeline.py``).
2. The burst side (``sender.py``) follows: it works on the oldest instruction whose beats haven't
   all moved (``started.py``).
3. An instruction finishes when its last burst has been answered (``answers.py``), one that writes a
   memory on chip (``destination.py``) when its last beat has moved, and no earlier one waits for an
   answer.
4. A read beyond ACC, a burst outside DRAM and a beat beyond its memory are faults, each with the
   number of its instruction.
"""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.bursts import PAGES_BITS
from vdla.hw.hooks import hooks_of, ports_of
from vdla.hw.interfaces import (
    Fault,
    activity,
    command,
    fault,
    read_port,
    write_request,
)
from vdla.hw.layout import layout
from vdla.hw.store.answers import AnswerPorts, Answers
from vdla.hw.store.destination import DestinationHooks
from vdla.hw.store.held import Held, Read
from vdla.hw.store.pipeline import Pipeline
from vdla.hw.store.reader import Reader, ReaderPorts
from vdla.hw.store.sender import Sender, SenderPorts
from vdla.hw.store.started import Started, StartedPorts
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.registers import INDEX_BITS


class Store(Component):
    """STORE's reader, its pipeline, its burst side.

    An answer belongs to ``oldest`` if one that has sent everything ``waits``, else to the one that
    sends, whose number ``burst_fault`` has. ``fault`` is the reader's.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.layout = layout(isa.Store, config)
        self.destinations = hooks_of(DestinationHooks, config)
        super().__init__(
            {
                "command": In(command(config)),
                "activity": Out(activity()),
                "fault": Out(fault()),
                "burst_fault": Out(fault()),
                "waits": Out(1),
                "oldest": Out(INDEX_BITS),
                "acc": Out(read_port(config.depth("acc"), 8 * config.acc_entry)),
                "write": Out(write_request(config)),
                "dram_pages": In(PAGES_BITS),
                "stop": In(1),
                **ports_of(self.destinations),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The reader of ACC, the requantizing pipeline, and the side that sends bursts."""
        m = Module()
        for destination in self.destinations:
            destination.begin(self)
        head = data.View(self.layout, self.command.word[: isa.Store.bits(self.config)])
        sent = Signal()  # a beat moves
        ports = ReaderPorts(self.command, head, self.acc, self.activity, sent)
        reader = Reader(m, self.config, ports)
        pipeline = self._pipeline(m, reader, sent)
        starts = StartedPorts(self.command, head, self.destinations)
        self.started = Started(m, self.config, starts)
        sender = self._sender(m, pipeline, sent)
        m.d.comb += [
            self.fault.valid.eq(reader.fails),
            self.fault.cause.eq(Fault.ADDRESS),
            self.fault.index.eq(reader.index),
            self.burst_fault.valid.eq(sender.fails),
            self.burst_fault.cause.eq(Fault.ADDRESS),
            self.burst_fault.index.eq(self.started.sender.index),
        ]
        return m

    def _pipeline(self, m: Module, reader: Reader, sent: Signal) -> Pipeline:
        """Pipeline of what the reader reads, on its way to the bus."""
        read = Read(reader.now, reader.reads_scale, reader.reads_vector, self.acc.data)
        pipeline = Pipeline(m, self.config, Held(m, self.config, read), sent)
        m.d.comb += self.write.data.eq(pipeline.beat)
        return pipeline

    def _sender(self, m: Module, pipeline: Pipeline, sent: Signal) -> Sender:
        """The burst side, and what waits for answers behind it."""
        waits = pipeline.beat_waits
        ports = SenderPorts(
            self.write, waits, sent, self.dram_pages, self.stop, pipeline.beat, self.destinations
        )
        sender = Sender(m, self.config, ports, self.started)
        finish = AnswerPorts(self.command, sender.opened, self.write.answered)
        answers = Answers(m, self.config, finish, self.started)
        m.d.comb += [self.waits.eq(answers.waits), self.oldest.eq(answers.oldest.index)]
        return sender
