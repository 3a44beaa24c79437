"""A real board, or a virtual one: whatever a transport reaches."""

from __future__ import annotations

from collections.abc import Callable

from vdla.isa.config import Config
from vdla.isa.identity import Identity, other_isa
from vdla.isa.instructions import instruction_bytes
from vdla.isa.ring import numbered
from vdla.runtime.board.driver import Driver
from vdla.runtime.board.transport import Transport
from vdla.runtime.devices.base import DeviceResult
from vdla.runtime.dram import Dram, Ranges, place
from vdla.runtime.errors import DeviceError
from vdla.runtime.turns import Turns


class OtherBitstreamError(DeviceError):
    """A board whose bitstream is for another instruction set or config."""


class BoardDevice:
    """Runs programs on a board. The host's image and the board's memory are kept in step: constants
    and programs go there once, what the host has written before each run, and what it will read
    comes back after it. While a program runs, no cache of the host has anything to write back.
    Threads that share the device take turns, a program each.

    Raises:
        LinkError: the board doesn't answer, or is another.
        OtherBitstreamError: its bitstream is for another instruction set or config.
    """

    name = "board"

    def __init__(self, config: Config, transport: Transport, driver: Driver | None = None) -> None:
        self.config, self.transport = config, transport
        self.driver, self._turns = driver or Driver(transport), Turns()
        self._image: Dram | None = None  # the newest, which the board's memory has
        own, board = Identity.of(config), self.driver.identity
        self.identity: Identity | None = own
        if board.isa != own.isa:
            text = other_isa(own.isa, board.isa, "built", "load a bitstream of this release")
            raise OtherBitstreamError(f"{transport.name}: {text}")
        if board.config != own.config:
            raise OtherBitstreamError(
                f"{transport.name}: expected a bitstream for config {own.config} ({config.name}), "
                f"found one for {board.config}; name the board's config, or load a bitstream of "
                "this one"
            )

    def allocate(self, size: int, constants: bytes) -> Dram:
        """The image of a module."""
        dram, self.address = self.transport.allocate(size)
        self._image, self._constant_bytes = dram, len(constants)
        dram[: len(constants)] = memoryview(constants)
        self.transport.upload(dram, 0, len(constants))
        return dram

    def has(self, dram: Dram) -> bool:
        """Whether the board's memory still has an image, and none that was allocated after it."""
        return self._image is dram

    def load(
        self, program: bytes, dram: Dram, given: Ranges = (), wanted: Ranges = ()
    ) -> Callable[[], DeviceResult]:
        """Places the stream in DRAM."""
        loaded = place(self.name, program, self.config, dram)
        length, identity = len(loaded.instructions), Identity.of(loaded.config)
        end = loaded.base + length * instruction_bytes(self.config)
        self.transport.upload(dram, loaded.base, end)

        def run() -> DeviceResult:
            with self._turns:
                return transfer_and_run()

        def transfer_and_run() -> DeviceResult:
            for start, stop in given:
                self.transport.upload(dram, start, stop)
            self.transport.release(dram, self._constant_bytes, dram.size)
            self.driver.run(self.address, dram.size, loaded.base, length, identity)
            result = self.driver.counters(numbered(self.config))
            for start, stop in wanted:
                self.transport.download(dram, start, stop)
            return DeviceResult(result.cycles, extra={"causes": result.causes})

        return run
