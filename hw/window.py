"""The window of GEMM: the vectors before the present one, and what outputs see of them.

1. A GEMM's micro-ops come one a cycle. The window keeps the ``window_taps`` - 1 vectors before the
   present one as long as such micro-ops of one instruction follow each other, and else is zero.
2. Outputs 2p and 2p + 1 see the same, so that two products still share a multiplier: lane i below
   2 × ``window_taps`` is lane 2p + i mod 2 of the vector i // 2 steps before.
3. A choice of two stands in front of the operand's register, and none where both are one lane.
   Pairs that see the same lanes, since there are more outputs than lanes, share a register.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.isa.config import Config


class Window:
    """What outputs see of ``vector``, that of the micro-op whose data come, and those before it.

    ``used`` says that this micro-op sees the window, ``goes_on`` that it does and isn't its
    instruction's last.
    """

    def __init__(
        self, m: Module, config: Config, vector: data.View, used: Value, goes_on: Value
    ) -> None:
        self.m, self.config, self.used = m, config, used
        self.lanes = 2 * config.window_taps  # that the window fills
        self.vectors = [vector]  # the latest first
        for age in range(1, config.window_taps):
            before = Signal(vector.shape(), name=f"before_{age}", reset_less=True)
            m.d.sync += before.eq(0)
            with m.If(goes_on):
                m.d.sync += before.eq(self.vectors[-1])
            self.vectors.append(before)
        self.registers: dict[tuple[int, int], Signal] = {}  # by lane, and the lane it comes from

    def sees(self, row: int, lane: int) -> Value:
        """What output ``row`` sees in an input lane."""
        own, age = self.vectors[0][lane], lane // 2
        source = self._source(row, lane)
        if lane >= self.lanes or (age, source) == (0, lane):
            return own
        return Mux(self.used, self.vectors[age][source], own)

    def register(self, row: int, lane: int) -> Signal:
        """What ``sees`` gave a cycle before."""
        key = lane, self._source(row, lane) if lane < self.lanes else lane
        if key not in self.registers:
            name = "_".join(map(str, ("seen", *key)))
            self.registers[key] = register = Signal(
                self.vectors[0][lane].shape(), name=name, reset_less=True
            )
            self.m.d.sync += register.eq(self.sees(row, lane))
        return self.registers[key]

    def _source(self, row: int, lane: int) -> int:
        """The lane of an older vector that an output sees in this one."""
        return (row // 2 * 2 + lane % 2) % self.config.block_in
