"""A serial line: 8 bits, no parity, one stop bit; ``divisor`` clocks to a bit.

1. The receiver takes a bit in its middle; a start bit that is gone by then was noise, a stop bit
   that is low drops the byte. What it has received is there for one cycle.
2. The transmitter takes a byte whenever it is ``ready``.
"""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import Component, In, Out

from vdla.runtime.board.link import BAUD

BITS = 8
TOLERANCE = 0.02  # of a bit; a chip of FTDI takes 3 % (AN232B-05), and is exact at 3 Mbaud itself


def divisor_of(clock_hz: float, baud: int = BAUD) -> int:
    """The divisor of a clock.

    Raises:
        ValueError: a bit would last over two hundredths too long or too short.
    """
    divisor = round(clock_hz / baud)
    if abs(clock_hz / divisor / baud - 1) > TOLERANCE:
        raise ValueError(f"baud: expected a clock of n × {baud}, found {clock_hz:.0f} Hz")
    return divisor


class Receiver(Component):
    """``valid`` pulses with each byte of ``data``."""

    def __init__(self, divisor: int) -> None:
        self.divisor = divisor
        super().__init__({"rx": In(1, init=1), "data": Out(BITS), "valid": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Waits for a start bit, then samples each bit in its middle."""
        m = Module()
        line = Signal(init=1)
        m.submodules += FFSynchronizer(self.rx, line, init=1)
        clocks = Signal(range(self.divisor))
        left = Signal(range(BITS + 3))  # of a frame: start, data, stop
        m.d.sync += self.valid.eq(0)
        with m.If(left == 0):
            m.d.sync += clocks.eq(self.divisor // 2 - 1)
            with m.If(~line):
                m.d.sync += left.eq(BITS + 2)
        with m.Elif(clocks != 0):
            m.d.sync += clocks.eq(clocks - 1)
        with m.Else():
            noise = (left == BITS + 2) & line
            m.d.sync += [
                clocks.eq(self.divisor - 1),
                left.eq(Mux(noise, 0, left - 1)),
                self.valid.eq((left == 1) & line),
            ]
            with m.If(left != 1):
                m.d.sync += self.data.eq(Cat(self.data[1:], line))
        return m


class Transmitter(Component):
    """Sends ``data`` when ``valid`` and ``ready``."""

    def __init__(self, divisor: int) -> None:
        self.divisor = divisor
        super().__init__({"tx": Out(1, init=1), "data": In(BITS), "valid": In(1), "ready": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Shifts out a start bit, the data and a stop bit."""
        m = Module()
        clocks = Signal(range(self.divisor))
        frame = Signal(BITS + 1, init=~0)
        left = Signal(range(BITS + 3))
        m.d.comb += [self.ready.eq(left == 0), self.tx.eq(frame[0])]
        with m.If(self.ready), m.If(self.valid):
            m.d.sync += [
                frame.eq(Cat(0, self.data)),
                left.eq(BITS + 2),
                clocks.eq(self.divisor - 1),
            ]
        with m.Elif(clocks != 0):
            m.d.sync += clocks.eq(clocks - 1)
        with m.Else():
            m.d.sync += [
                clocks.eq(self.divisor - 1),
                frame.eq(Cat(frame[1:], 1)),
                left.eq(left - 1),
            ]
        return m
