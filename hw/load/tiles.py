"""LOAD's tiles: of the instructions that have started, what the write side writes for each.

1. A tile is an instruction's data and the padding around them. It is worked out when the
   instruction starts, and with it where its data begin and end.
2. The oldest tile lies in registers (``tile``), the others wait in a queue. Each passes the queue:
   so the registers have it from the second cycle after its start on, at the soonest.
3. What the registers take over in vain isn't written: ``writing`` says whether the tile in them is
   one that has started.
"""

from __future__ import annotations

from amaranth import Cat, Module, Shape, Signal, Value
from amaranth.lib import data

from vdla.hw.fifo import Fifo
from vdla.hw.interfaces import Port, pushes
from vdla.isa.config import Config

IN_FLIGHT = 8  # instructions started and not finished
OF_HEAD = ("memory", "pad_value", "zero")  # of an instruction, with its token flags
KEPT = ("index", "empty")  # what else of a tile its last entry still needs


class Tiles:
    """``tile`` is the oldest, ``following`` the one after it; ``writing``: ``tile`` has started.

    ``command`` (interfaces.command) says what starts and finishes, ``head`` has its fields.
    """

    def __init__(self, m: Module, config: Config, command: Port, head: data.View) -> None:
        self.m, self.command = m, command
        self.of_head = (*OF_HEAD, *pushes(config))
        fields = self._tile(head)
        shape = data.StructLayout(
            {name: Shape.cast(value.shape()) for name, value in fields.items()}
        )
        m.submodules.context = self.fifo = Fifo(width=shape.size, depth=IN_FLIGHT)
        self.tile, self.following = Signal(shape, reset_less=True), Signal(shape)
        self.writing = Signal()
        self._queue(fields)

    def _queue(self, fields: dict[str, Value]) -> None:
        """The instruction that starts goes into the queue, the oldest comes out of it."""
        m, fifo = self.m, self.fifo
        started, free = Signal(self.following.shape()), ~self.writing | self.command.finish
        m.d.comb += [started[name].eq(value) for name, value in fields.items()]
        m.d.comb += [
            self.following.eq(fifo.r_data),
            fifo.w_data.eq(started),
            fifo.w_en.eq(self.command.start),
            fifo.r_en.eq(free),
        ]
        with m.If(free):
            m.d.sync += self.writing.eq(fifo.r_rdy)

    def take(self, moves: Value, begins: Value) -> None:
        """The registers take over ``following``, if it ``begins``, when the write side ``moves``.

        The last entry needs the fields of its instruction and what is KEPT, but no sizes any more:
        those needn't wait for ``moves``, which is late.
        """
        m, kept = self.m, (*self.of_head, *KEPT)
        for name in self.following.shape().members:
            with m.If(begins & moves if name in kept else begins):
                m.d.sync += self.tile[name].eq(self.following[name])

    def _tile(self, head: data.View) -> dict[str, Value]:
        """The fields of the tile of the instruction at the queue's head."""
        tile: dict[str, Value] = {}
        for axis in "xy":
            before, after = head[f"pad_{axis}0"], head[f"pad_{axis}1"]
            size = head[f"{axis}_size"]
            tile |= {
                f"{axis}_tile": before + size + after,
                f"{axis}_until": size + after,
                f"{axis}_after": after,
                f"{axis}_first": (before == 0) & (size != 0),
            }
        return tile | {
            "empty": _is_empty(head, "x") | _is_empty(head, "y") | (head.z_size == 0),
            "index": self.command.index,
            **{name: head[name] for name in ("sram_base", "z_size", *self.of_head)},
        }


def _is_empty(head: data.View, axis: str) -> Value:
    """Whether a tile has no rows or entries: without waiting for their sum."""
    parts = (f"pad_{axis}0", f"{axis}_size", f"pad_{axis}1")
    return ~Cat(head[name] for name in parts).any()
