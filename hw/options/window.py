"""The window of GEMM: the vectors before the present one, and what outputs see of them.

1. A GEMM's micro-ops come one a cycle. The window keeps the ``window_taps`` - 1 vectors before the
   present one as long as such micro-ops of one instruction follow each other, and else is zero.
2. Outputs 2p and 2p + 1 see the same, so that two products still share a multiplier: lane i below
   2 × ``window_taps`` is lane 2p + i mod 2 of the vector i // 2 steps before.
3. A choice of two stands in front of the operand's register, and none where both are one lane.
   Pairs that see the same lanes, since there are more outputs than lanes, share a register.
4. With ``window_rows`` = 2 there is a second vector, with a history of its own. Of these the next
   2 × ``window_taps`` lanes see what the first ones see of the first row.
5. The second vector is read at a second port of INP, src + pitch. The pitch is added on the way to
   F1, and kept like ``operation`` until then: in front of a hold, the nest has the next instruction
   already.
6. The window keeps what comes in stage 2 if the next micro-op is one of the same instruction. An
   ALU may have any bit in the flag's place: nothing of it is kept beyond its last micro-op.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Member

from vdla.hw.compute.micro_op import EARLY
from vdla.hw.compute.seams import MicroOpHooks, Place
from vdla.hw.gemm import Gemm, GemmHooks
from vdla.hw.layout import lanes
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.options.window import OPTIONS, has_second_row, window_taps

TAPS, ROWS = OPTIONS


class WindowMicroOps(MicroOpHooks):
    """The flag ``window`` in the stages of GEMM's engine."""

    option, instruction = TAPS, isa.Gemm
    kept = ("window",)

    def feed(self, m: Module, unit: Gemm, stages: Sequence[data.View]) -> None:
        """Which vectors the window keeps, along with their data."""
        now = stages[EARLY - 1]
        used, goes_on = Signal(name="window"), Signal(name="window_goes_on")
        m.d.sync += [
            used.eq(now.operation.window),
            goes_on.eq(now.writes & now.operation.window & ~now.last),
        ]
        m.d.comb += [unit.window.eq(used), unit.window_goes_on.eq(goes_on)]


SECOND = Place("inp", "inp_second", "src", lambda operation: operation.window)


class SecondRowMicroOps(MicroOpHooks):
    """The second row's place in the stages of GEMM's engine: ``second`` is src + pitch."""

    option, instruction = ROWS, isa.Gemm
    places: Mapping[str, Place] = {"second": SECOND}

    def take(self, m: Module, word: data.View) -> None:
        """Keeps the pitch of the instruction that begins."""
        self.pitch = Signal.like(word.pitch, name="pitch", reset_less=True)
        m.d.sync += self.pitch.eq(word.pitch)

    def pass_on(self, m: Module, f1: data.View, sums: Mapping[str, Value]) -> None:
        """Adds the pitch to the place of the first row."""
        m.d.sync += f1.second.eq(sums["src"] + self.pitch)


class WindowGemm(GemmHooks):
    """``window`` and ``window_goes_on`` come with the vector, and so does ``second``, the vector of
    the second row, if there is one."""

    option = TAPS

    def ports(self) -> dict[str, Member]:
        """The flags of a micro-op, and the second vector."""
        rows = {"second": In(lanes(8, self.config.block_in))}
        flags = {"window": In(1), "window_goes_on": In(1)}
        return flags | (rows if has_second_row(self.config) else {})

    def seen(self, m: Module, gemm: Gemm) -> Window:
        """The window, on the vectors that come."""
        vectors = (gemm.inp, gemm.second) if has_second_row(self.config) else (gemm.inp,)
        return Window(m, self.config, vectors, gemm.window, gemm.window_goes_on)


class WindowLane(NamedTuple):
    """A lane of a vector in the window."""

    row: int
    age: int  # steps before the present micro-op
    lane: int


class Window:
    """Part that outputs see of ``vectors``, which are those of the micro-op whose data come, one
    for each row, and of those before them.

    ``used`` says that this micro-op sees the window, ``goes_on`` that it does and isn't its
    instruction's last.
    """

    def __init__(
        self,
        m: Module,
        config: Config,
        vectors: Sequence[data.View],
        used: Value,
        goes_on: Value,
    ) -> None:
        self.m, self.config, self.used = m, config, used
        self.lanes = 2 * window_taps(config)  # that a row fills
        self.own = vectors[0]
        names = ("before", "second_before")[: len(vectors)]
        self.rows = [
            self._history(vector, goes_on, name)
            for vector, name in zip(vectors, names, strict=True)
        ]
        self.registers: dict[tuple[int, WindowLane], Signal] = {}  # by lane, and what is seen there

    def _history(self, vector: data.View, goes_on: Value, name: str) -> list[data.View]:
        """A row's vectors, the latest first."""
        m, vectors = self.m, [vector]
        for age in range(1, window_taps(self.config)):
            before = Signal(vector.shape(), name=f"{name}_{age}", reset_less=True)
            m.d.sync += before.eq(0)
            with m.If(goes_on):
                m.d.sync += before.eq(vectors[-1])
            vectors.append(before)
        return vectors

    def sees(self, output: int, lane: int) -> Value:
        """Value that an output sees in an input lane."""
        own, place = self.own[lane], self._place(output, lane)
        if place == WindowLane(0, 0, lane):
            return own
        return Mux(self.used, self.rows[place.row][place.age][place.lane], own)

    def register(self, output: int, lane: int) -> Signal:
        """Register of what ``sees`` gave a cycle before."""
        key = lane, self._place(output, lane)
        if key not in self.registers:
            name = f"seen_{lane}_{key[1].lane}"
            self.registers[key] = register = Signal(
                self.own[lane].shape(), name=name, reset_less=True
            )
            self.m.d.sync += register.eq(self.sees(output, lane))
        return self.registers[key]

    def _place(self, output: int, lane: int) -> WindowLane:
        """Place that an output sees in a lane where the window is used."""
        row, at = divmod(lane, self.lanes)
        if row >= len(self.rows):
            return WindowLane(0, 0, lane)
        return WindowLane(row, at // 2, (output // 2 * 2 + at % 2) % self.config.block_in)
