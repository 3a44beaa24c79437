"""STORE's walk through ACC: which vector is due, and which scales belong to its plane.

1. Vectors go in the order z, y, x. A step in y or z is the instruction's pitch, one in x is one
   entry.
2. A store of narrow vectors has a vector of scales for each plane, one after the other from
   ``scale_base`` on. It is ``due`` before the plane's first vector.
3. Places in ACC only grow, and never wrap.
"""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.layout import add_sticky
from vdla.hw.loops import Loop, Nest
from vdla.hw.store.vectors import is_narrow
from vdla.isa.config import Config


class AccWalk:
    """``entry`` is the place of the vector, ``scale`` that of its scales, ``due``: these come next.

    ``begins`` says that the vector after this one is the next instruction's, the one of ``head``.
    """

    def __init__(self, m: Module, config: Config, now: data.View, head: data.View) -> None:
        self.m, self.config, self.now, self.head = m, config, now, head
        self.due = Signal(name="scale_due")
        bits = len(head.sram_base) + 1
        self.vectors = [Signal(bits, name=f"{a}_at", reset_less=True) for a in "xyz"]
        self.entry = self.vectors[0]
        self.scale = Signal(bits, reset_less=True)
        self.loops = [Loop(m, a, now[f"{a}_size"]) for a in "xyz"]

    def begins(self, unused: Value) -> Value:
        """Whether this vector is the last one of its instruction, if there is any (``unused``)."""
        return unused | Cat(loop.end for loop in self.loops).all()

    def go_on(self, moves: Value, begins: Value, reads_scale: Value) -> Value:
        """To the next vector if it ``moves``; past the scales if they are read. Returns whether
        scales are ``due`` in the next cycle."""
        m, head, now = self.m, self.head, self.now
        steps = [Const(1), now.y_pitch, now.z_pitch]
        first = head.sram_base, [head[f"{a}_size"] for a in "xyz"]
        Nest(self.loops, self.vectors, steps).advance(m, moves, begins, first)
        x, y, _ = self.loops
        plane_ends = x.end & y.end
        due = Signal(name="scale_will_be_due")
        m.d.comb += due.eq(self.due & ~reads_scale)
        with m.If(moves & (begins | plane_ends)):
            m.d.sync += self.scale.eq(Mux(begins, head.scale_base, add_sticky(self.scale, 1)))
            memory = Mux(begins, head.memory, now.memory)
            m.d.comb += due.eq(is_narrow(self.config, memory))
        m.d.sync += self.due.eq(due)
        return due
