"""A processing system's primitive: values brought to its pins' widths, AXI ports joined by pins.

AMD's processing systems name the pins of a port alike: a prefix, the channel, the signal. ``Axi``
holds what differs; tests compare each name and width with the primitive's declaration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth import C, Cat, Instance, Module, Signal, Value
from amaranth.lib.wiring import Component, In, Out, Signature

from vdla.hw.interfaces import axi4
from vdla.isa.config import Config

ADDRESS = ("addr", "len", "size", "burst", "id", "lock", "cache", "prot", "qos", "valid")
SHOWN_TO_MANAGER = ("rid", "rdata", "rresp", "rlast", "rvalid", "bid", "bresp", "bvalid")
SHOWN_TO_SUBORDINATE = ("wdata", "wstrb", "wlast", "wvalid", "rready", "bready")


@dataclass(frozen=True)
class Axi:
    """A port: the prefix of its pins and their widths. AXI3 has WID, and LOCK of two bits."""

    prefix: str
    address: int
    data: int
    id: int
    axi3: bool
    size: int = 3

    @property
    def length(self) -> int:
        """Bits of AxLEN."""
        return 4 if self.axi3 else 8

    def width(self, signal: str) -> int:
        """Bits of a signal; an address channel's bears no prefix."""
        return {
            "addr": self.address,
            "len": self.length,
            "size": self.size,
            "burst": 2,
            "lock": 2 if self.axi3 else 1,
            "cache": 4,
            "prot": 3,
            "qos": 4,
            "id": self.id,
            "rid": self.id,
            "bid": self.id,
            "wid": self.id,
            "rdata": self.data,
            "wdata": self.data,
            "wstrb": self.data // 8,
            "rresp": 2,
            "bresp": 2,
        }.get(signal, 1)


class Pins:
    """The connections of one primitive."""

    def __init__(self, m: Module) -> None:
        self.m = m
        self.connections: dict[str, Value] = {}

    def give(self, pin: str, value: Any, bits: int = 1) -> None:
        """Drives an input; a narrower value is extended by zeros."""
        value = Value.cast(value)
        if len(value) > bits:
            raise ValueError(f"{pin}: expected at most {bits} bits, found {len(value)}")
        self.connections[f"i_{pin}"] = Cat(value, C(0, bits - len(value)))

    def take(self, pin: str, bits: int = 1) -> Signal:
        """Reads an output."""
        signal = Signal(bits, name=pin.lower())
        self.connections[f"o_{pin}"] = signal
        return signal

    def take_low(self, pin: str, name: str, bits: int) -> Signal:
        """Reads an output's lowest bit as a signal of its own, for a constraint to name."""
        lowest, others = Signal(name=name), Signal(bits - 1, name=f"other_{pin.lower()}")
        self.connections[f"o_{pin}"] = Cat(lowest, others)
        return lowest

    def instance(self, kind: str) -> Instance:
        """The primitive."""
        return Instance(kind, **self.connections)

    def from_manager(self, axi: Axi, bus: Any) -> None:
        """A port where the primitive is the manager; ``bus`` is the subordinate's end."""
        for channel in ("ar", "aw"):
            for signal in ("addr", "len", "size", "burst", "id", "valid"):
                pin = self.take(_pin(axi, channel, signal), axi.width(signal))
                self.m.d.comb += getattr(bus, channel + signal).eq(pin)
        for signal in SHOWN_TO_SUBORDINATE:
            pin = self.take(_pin(axi, signal), axi.width(signal))
            self.m.d.comb += getattr(bus, signal).eq(pin)
        for signal in (*SHOWN_TO_MANAGER, "arready", "awready", "wready"):
            self.give(_pin(axi, signal), getattr(bus, signal), axi.width(signal))

    def to_subordinate(self, axi: Axi, bus: Any) -> None:
        """A port where the primitive is the subordinate; ``bus`` is the manager's end."""
        for channel in ("ar", "aw"):
            for signal in ADDRESS:
                bits = axi.width(signal)
                value = getattr(bus, channel + signal)[:bits]  # LEN, SIZE: the rest is zero
                self.give(_pin(axi, channel, signal), value, bits)
        if axi.axi3:
            self.give(_pin(axi, "wid"), 0, axi.id)  # as AWID
        for signal in SHOWN_TO_SUBORDINATE:
            self.give(_pin(axi, signal), getattr(bus, signal), axi.width(signal))
        for signal in (*SHOWN_TO_MANAGER, "arready", "awready", "wready"):
            pin = self.take(_pin(axi, signal), axi.width(signal))
            mine = getattr(bus, signal)
            self.m.d.comb += mine.eq(pin[: len(mine)])

    def silence(
        self, managers: Sequence[str], subordinates: Sequence[str], quiet: Mapping[str, int]
    ) -> None:
        """Holds low what unused ports may ask and answer, and other inputs, by their width."""
        for prefix in managers:
            self._silence(prefix, "ARREADY", "AWREADY", "WREADY", "RVALID", "BVALID")
        for prefix in subordinates:
            self._silence(prefix, "ARVALID", "AWVALID", "WVALID", "RREADY", "BREADY")
        for pin, bits in quiet.items():
            self.give(pin, 0, bits)

    def _silence(self, prefix: str, *signals: str) -> None:
        for signal in signals:
            self.give(prefix + signal, 0)


class ProcessingSystem(Component):
    """``clock`` and ``reset_n`` for the fabric; ``registers`` and ``memory`` as the PS has them."""

    def __init__(self, config: Config, clock_hz: float, registers: Signature) -> None:
        self.clock_hz = clock_hz
        super().__init__(
            {
                "clock": Out(1),
                "reset_n": Out(1),
                "irq": In(1),
                "registers": Out(registers),
                "memory": In(axi4(config)),
            }
        )

    def _buffer(self, m: Module, platform: Any, clock: Signal, kind: str) -> None:
        """The fabric's clock: the primitive's, through a global buffer."""
        platform.add_clock_constraint(clock, self.clock_hz)
        m.submodules.buffer = Instance(kind, i_I=clock, o_O=self.clock)


def _pin(axi: Axi, *words: str) -> str:
    return axi.prefix + "".join(words).upper()
