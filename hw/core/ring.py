"""The ring: a command queue between fetch and each engine, and token queues between the engines.

1. Fetch puts an instruction into the queue of its engine when that has room. Fetch is ``busy``
   while an instruction that it has put hasn't finished.
2. A token queue leads from each engine to each other one. The command queue of the one reserves
   slots and pushes tokens, at the side where the other stands; that of the other pops them.
"""

from __future__ import annotations

from amaranth import Cat, Module, ResetInserter
from amaranth.lib.wiring import connect

from vdla.hw.core.units import Queues, Units
from vdla.hw.queue import CommandQueue
from vdla.hw.tokens import TokenQueue
from vdla.isa import ring as isa
from vdla.isa.config import Config


class Ring:
    """``queues``, one in front of each engine.

    ``in_reset`` gives the command queues and the token queues the engines' reset.
    """

    def __init__(self, m: Module, config: Config, units: Units, in_reset: ResetInserter) -> None:
        self.m, self.config, self.units, self.in_reset = m, config, units, in_reset
        ring = isa.ring_of(config)
        self.queues: Queues = {engine: CommandQueue(config) for engine in ring.engines}
        for engine, queue in self.queues.items():
            self._put(engine, queue)
        m.d.comb += units.fetch.busy.eq(Cat(q.busy for q in self.queues.values()).any())
        for queue in ring.token_queues:
            self._pass_tokens(queue)

    def _put(self, engine: isa.Engine, queue: CommandQueue) -> None:
        """Connects an engine's command queue to fetch and to the engine."""
        m, fetch, place = self.m, self.units.fetch, isa.numbered(self.config).index(engine)
        m.submodules[f"{engine.name.lower()}_queue"] = self.in_reset(queue)
        connect(m, queue.command, self.units.engines[engine].command)
        m.d.comb += [
            queue.word.eq(fetch.word),
            queue.index.eq(fetch.index),
            queue.put.eq(fetch.put[place]),
            fetch.room[place].eq(queue.room),
        ]

    def _pass_tokens(self, queue: isa.TokenQueue) -> None:
        """Connects a token queue to the command queues of its giver and its taker."""
        m, giver, taker = self.m, self.queues[queue.giver], self.queues[queue.taker]
        tokens = TokenQueue(self.config.token_queue)
        m.submodules[f"{queue.giver.name.lower()}_to_{queue.side}"] = self.in_reset(tokens)
        m.d.comb += [
            tokens.reserve.eq(getattr(giver, f"reserve_{queue.side}")),
            tokens.push.eq(getattr(giver, queue.push)),
            tokens.pop.eq(getattr(taker, queue.pop)),
            getattr(giver, f"slot_{queue.side}").eq(tokens.vacant),
            getattr(taker, f"has_{queue.back}").eq(tokens.available),
        ]
