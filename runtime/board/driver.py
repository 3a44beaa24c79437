"""The driver: finds out what a board carries, runs programs on it, says what went wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vdla.isa.identity import Identity
from vdla.isa.registers import (
    BUSY,
    COUNTERS_AT,
    EVENTS,
    IDENTITY,
    RESET,
    START,
    VERSION,
    Cause,
    Fault,
    program_registers,
    register,
)
from vdla.isa.ring import Engine
from vdla.runtime.board.transport import LinkError, Transport
from vdla.runtime.errors import DeviceError

RUN_LIMIT = 60.0  # seconds
REST_LIMIT = 2.0  # for a core that was told to stop
FIRST_POLL, LONGEST_POLL = 0.0005, 0.02

_STATUS = register("STATUS")


@dataclass(frozen=True)
class Counters:
    """Cycles that a program took, and those of each engine per cause."""

    cycles: int
    causes: dict[str, dict[str, int]]


class RunLimitError(DeviceError):
    """A program that didn't end within the seconds it may take; the core was reset."""


class BoardFault(DeviceError):
    """The core stopped: docs/timing.md, section 9."""

    def __init__(self, fault: Fault, address: int, where: str) -> None:
        super().__init__(f"{where}: fault {fault.name} {where_it_was(fault, address)}")
        self.fault, self.address = fault, address


def where_it_was(fault: Fault, address: int) -> str:
    """The place of a fault, in words."""
    others = {Fault.PROGRAM_ISA: "instruction set", Fault.PROGRAM_CONFIG: "config"}
    if fault in others:
        return f"before the first instruction: the program is for another {others[fault]}"
    return f"at the instruction at byte {address:#x} of DRAM"


class Driver:
    """Drives the core behind a transport.

    ``limit``: seconds that a program may take. ``clock`` and ``sleep`` are Python's; tests replace
    them.

    Raises:
        LinkError: nobody answers, or it is no VDLA core, or one of another version.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        limit: float = RUN_LIMIT,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.transport, self.limit, self._clock, self._sleep = transport, limit, clock, sleep
        self.identity = self._identify()

    def read(self, name: str) -> int:
        """A register's value."""
        return self.transport.read(register(name).offset)[0]

    def write(self, name: str, value: int) -> None:
        """Writes a register."""
        self.transport.write(register(name).offset, value)

    def run(self, address: int, size: int, base: int, length: int, identity: Identity) -> None:
        """Runs the program of ``length`` instructions at ``base`` in the image at ``address``,
        which was compiled for ``identity``.

        Raises:
            BoardFault: the core stopped at a fault.
            RunLimitError: the program didn't end within the limit; the core is reset.
            LinkError: the board went silent, or its core doesn't come to rest.
        """
        self.stop()  # whatever ran before
        for name, value in program_registers(identity, base, length, address, size).items():
            self.write(name, value)
        self.write("INTERRUPT_STATUS", EVENTS)
        self.write("CONTROL", START)
        if not self._rests(self.limit):
            self.stop()
            raise RunLimitError(
                f"{self.transport.name}: expected a program that ends within {self.limit:g} s, "
                "found it still running; the core was reset"
            )
        self._check()

    def stop(self) -> None:
        """Brings the core to rest, whatever it does.

        Raises:
            LinkError: it doesn't stop: a transfer of it hangs.
        """
        if not self.read("STATUS"):
            return
        self.write("CONTROL", RESET)
        if not self._rests(REST_LIMIT):
            raise LinkError(
                f"{self.transport.name}: expected the core to stop within {REST_LIMIT:g} s of a "
                "reset, found a transfer that doesn't end; reload the bitstream"
            )

    def counters(self, engines: Sequence[Engine]) -> Counters:
        """The counters of the program that ran last, of a core with ``engines``, by number."""
        low, high = self.transport.read(register("CYCLES_LOW").offset, 2)
        values = iter(self.transport.read(COUNTERS_AT, len(engines) * len(Cause)))
        causes = {e.name: {c.name.lower(): next(values) for c in Cause} for e in engines}
        return Counters(low | high << 32, causes)

    def _identify(self) -> Identity:
        identity, version, isa, config = self.transport.read(register("ID").offset, 4)
        where = self.transport.name
        if identity != IDENTITY:
            raise LinkError(
                f"{where}: expected a VDLA core, ID {IDENTITY:#x}, found {identity:#x}; "
                "load a bitstream that vdla synth wrote"
            )
        if version >> 16 != VERSION >> 16:
            raise LinkError(
                f"{where}: expected register map {VERSION >> 16}, found {version >> 16}; "
                "load a bitstream of this release"
            )
        return Identity.of_words(isa, config)

    def _rests(self, limit: float) -> bool:
        """Waits until the core neither runs nor stops; false when it takes longer."""
        ends, pause = self._clock() + limit, FIRST_POLL
        while self.read("STATUS") & BUSY:
            if self._clock() > ends:
                return False
            self._sleep(pause)
            pause = min(2 * pause, LONGEST_POLL)
        return True

    def _check(self) -> None:
        status = self.read("STATUS")
        if status & _STATUS.field("FAULT").mask:
            fault = Fault(self.read("FAULT_CAUSE"))
            raise BoardFault(fault, self.read("FAULT_INSTRUCTION"), self.transport.name)
        if not status & _STATUS.field("DONE").mask:
            raise LinkError(
                f"{self.transport.name}: expected DONE after the program, found neither DONE nor "
                "FAULT: the core was reset meanwhile"
            )
