"""STORE's answers: instructions that have sent everything wait until their last burst is answered.

1. Writes have one ID, so answers come in the order of the bursts, and are counted. An instruction
   notes how many bursts had been opened when it sent its last, and finishes when as many are
   answered.
2. One instruction finishes a cycle, the oldest first.
3. The counts wrap. That number is less than a buffer of bursts ahead of the answers, or behind
   them, so the sign of the difference says whether it is reached.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Signal, Value

from vdla.hw.interfaces import Port, pushes
from vdla.hw.store.started import IN_FLIGHT, Queue, Started
from vdla.isa.config import Config


@dataclass(frozen=True)
class AnswerPorts:
    """Ports that the answers are connected to. They drive what ``command`` says of a finish."""

    command: Port  # interfaces.command
    opened: Value  # a burst's first beat moves
    answered: Value  # the oldest unanswered burst has been answered


class Answers:
    """``oldest`` is the first instruction that waits for answers, if one ``waits``."""

    def __init__(self, m: Module, config: Config, ports: AnswerPorts, started: Started) -> None:
        sender, command, opened = started.sender, ports.command, ports.opened
        width = config.writes_in_flight.bit_length() + IN_FLIGHT.bit_length() + 1
        bursts, answered, ahead = Signal(width), Signal(width), Signal(width)
        m.d.sync += [
            bursts.eq(bursts + opened),
            answered.eq(answered + ports.answered),
        ]
        entry = {
            "target": (bursts + opened)[:width],
            **{name: sender[name] for name in (*pushes(config), "index")},
        }
        waiting = Queue(m, "waiting", entry, started.passes, command.finish)
        self.oldest, self.waits = oldest, waits = waiting.oldest, waiting.waits
        m.d.comb += [
            ahead.eq(answered - oldest.target),
            command.finish.eq(waits & ~ahead[-1]),
            *(getattr(command, flag).eq(oldest[flag]) for flag in pushes(config)),
        ]
