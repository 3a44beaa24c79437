"""STORE's started instructions whose beats haven't all moved, and where those go.

1. Each is in the queue ``context``, in which it waits for its turn to send and to finish, and in
   the queue ``walks``, which gives the addresses of its beats.
2. An empty instruction (one of its sizes is 0) has no beats, so it is in the first queue alone.
3. A walk is taken at the soonest in the cycle after it was queued, which is early enough for the
   first beat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.bursts import offset_bits
from vdla.hw.fifo import Fifo
from vdla.hw.interfaces import Port, pushes
from vdla.hw.layout import scaled
from vdla.hw.runs import Walk
from vdla.hw.store.destination import DestinationHooks
from vdla.hw.store.vectors import is_narrow, vector_beats
from vdla.isa.config import Config

IN_FLIGHT = 8  # instructions started and not finished


@dataclass(frozen=True)
class StartedPorts:
    """Ports that say which instruction starts."""

    command: Port  # interfaces.command
    head: data.View  # the fields of the instruction at the queue's head
    destinations: Sequence[DestinationHooks]  # other than DRAM


class Queue:
    """Something of each instruction in flight: ``oldest`` is the first, if one ``waits``."""

    def __init__(
        self, m: Module, name: str, fields: Mapping[str, Value], put: Value, take: Value
    ) -> None:
        entry = data.StructLayout({field: len(value) for field, value in fields.items()})
        m.submodules[name] = fifo = Fifo(width=entry.size, depth=IN_FLIGHT)
        m.d.comb += [
            fifo.w_en.eq(put),
            fifo.w_data.eq(Cat(*fields.values())),
            fifo.r_en.eq(take),
        ]
        self.oldest, self.waits = data.View(entry, fifo.r_data), fifo.r_rdy


class Started:
    """``sender`` is the instruction whose beats move, if ``sending``; ``walk`` the next one's way
    through DRAM, if ``walk_waits``, and ``chosen``: of each destination, whether that goes there.

    Whoever sends drives ``passes``, the sender has nothing more to send, and ``takes``, the next
    walk begins.
    """

    def __init__(self, m: Module, config: Config, ports: StartedPorts) -> None:
        head, start = ports.head, ports.command.start
        empty = (head.x_size == 0) | (head.y_size == 0) | (head.z_size == 0)
        self.passes = Signal()
        sender = {
            "empty": empty,
            **{flag: head[flag] for flag in pushes(config)},
            "index": ports.command.index,
        }
        context = Queue(m, "context", sender, start, self.passes)
        self.sender, self.sending = context.oldest, context.waits
        self.takes = Signal(name="takes_walk")
        walks = Queue(m, "walks", _fields(config, ports), start & ~empty, self.takes)
        self.walk, self.walk_waits = _walk(config, walks.oldest), walks.waits
        self.chosen = {each: walks.oldest[each.flag] for each in ports.destinations}


def _fields(config: Config, ports: StartedPorts) -> dict[str, Value]:
    """Fields that make the way of the head's beats through DRAM, or through a destination."""
    head = ports.head
    dense = head.x_stride == 1
    return {
        "base": head.dram_base[offset_bits(config) :],
        "entries": Mux(dense, head.x_size, 1),
        "x_runs": Mux(dense, 1, head.x_size),
        "y_runs": head.y_size,
        "z_runs": head.z_size,
        "narrow": is_narrow(config, head.memory),
        **{each.flag: head.memory == each.memory for each in ports.destinations},
        **{f"{a}_stride": head[f"{a}_stride"] for a in "xyz"},
    }


def _walk(config: Config, fields: data.View) -> Walk:
    """The walk, in beats."""
    beats = vector_beats(config)

    def scale(entries: Value) -> Value:
        return Mux(fields.narrow, scaled(entries, beats.narrow), scaled(entries, beats.raw))

    return Walk(
        base=fields.base,
        beats=scale(fields.entries),
        sizes=(fields.x_runs, fields.y_runs, fields.z_runs),
        strides=(scale(fields.x_stride), scale(fields.y_stride), scale(fields.z_stride)),
    )
